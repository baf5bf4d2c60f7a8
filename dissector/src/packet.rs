//! The transport header of a frame. The transport is TCP or UDP.

use std::net::SocketAddr;

use crate::frame_number::FrameNumber;
use crate::ip::{Datagram, Segment};
use crate::stream_id::StreamId;
use crate::tcp::{SegmentShape, before};

/// The transport header of a frame. If the frame completed an IP packet of several fragments, this
/// is the transport header of that IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Number of the frame.
    pub frame: FrameNumber,
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// Number of payload octets on the wire. Counts octets that were not captured, too.
    pub payload_len: u32,
    /// TCP or UDP.
    pub transport: TransportKind,
}

/// The fields that depend on the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// A TCP segment.
    Tcp {
        /// Number of the connection, as in [`crate::parse::Unit::stream`].
        stream: StreamId,
        /// TCP sequence number.
        seq: u32,
        /// SYN.
        syn: bool,
        /// FIN.
        fin: bool,
        /// RST.
        rst: bool,
        /// ACK.
        ack: bool,
    },
    /// A UDP datagram.
    Udp,
}

impl TransportKind {
    /// Number of the connection; `None` for UDP.
    pub(crate) fn stream(self) -> Option<StreamId> {
        match self {
            TransportKind::Tcp { stream, .. } => Some(stream),
            TransportKind::Udp => None,
        }
    }

    /// Names of the TCP flags that are set.
    pub(crate) fn tcp_flags(self) -> String {
        let TransportKind::Tcp { syn, fin, rst, ack, .. } = self else { return String::new() };
        let flags = [(syn, "SYN"), (fin, "FIN"), (rst, "RST"), (ack, "ACK")];
        flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
    }
}

impl Packet {
    /// The packet of a segment of connection `stream`.
    pub(crate) fn of_segment(segment: &Segment<'_>, stream: StreamId) -> Self {
        let Segment { seq, syn, fin, rst, ack_flag: ack, .. } = *segment;
        let transport = TransportKind::Tcp { stream, seq, syn, fin, rst, ack };
        Packet { frame: segment.frame, src: segment.src, dst: segment.dst, payload_len: segment.wire_len, transport }
    }

    /// The packet of a datagram.
    pub(crate) fn of_datagram(datagram: &Datagram<'_>) -> Self {
        let Datagram { frame, src, dst, wire_len: payload_len, .. } = *datagram;
        Packet { frame, src, dst, payload_len, transport: TransportKind::Udp }
    }
}

/// A TCP segment of a connection: the fields of TCP that [`Packet`] does not have, and the fields
/// of IP that depend on the device that sent the segment.
#[derive(Debug, Clone, Copy)]
pub struct TcpSegment<'a>(&'a Segment<'a>);

impl<'a> TcpSegment<'a> {
    pub(crate) fn new(segment: &'a Segment<'a>) -> Self {
        TcpSegment(segment)
    }

    /// Number of the frame.
    #[must_use]
    pub fn frame(&self) -> FrameNumber {
        self.0.frame
    }

    /// Capture time of the frame, in nanoseconds since 1970.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.0.time
    }

    /// The sender.
    #[must_use]
    pub fn src(&self) -> SocketAddr {
        self.0.src
    }

    /// The receiver.
    #[must_use]
    pub fn dst(&self) -> SocketAddr {
        self.0.dst
    }

    /// Sequence number.
    #[must_use]
    pub fn seq(&self) -> u32 {
        self.0.seq
    }

    /// Acknowledgement number; `None` if ACK is clear.
    #[must_use]
    pub fn ack(&self) -> Option<u32> {
        self.0.ack_flag.then_some(self.0.ack)
    }

    /// SYN.
    #[must_use]
    pub fn syn(&self) -> bool {
        self.0.syn
    }

    /// FIN.
    #[must_use]
    pub fn fin(&self) -> bool {
        self.0.fin
    }

    /// RST.
    #[must_use]
    pub fn rst(&self) -> bool {
        self.0.rst
    }

    /// The window field without scaling.
    #[must_use]
    pub fn window(&self) -> u16 {
        self.0.window
    }

    /// Number of payload octets on the wire. Counts octets that were not captured, too.
    #[must_use]
    pub fn payload_len(&self) -> u32 {
        self.0.wire_len
    }

    /// The remaining hops of the IP packet: TTL of IPv4, Hop Limit of IPv6.
    #[must_use]
    pub fn ttl(&self) -> u8 {
        self.0.ttl
    }

    /// The field Identification of IPv4; `None` for IPv6.
    #[must_use]
    pub fn identification(&self) -> Option<u16> {
        self.0.identification
    }

    /// Returns whether the segment selectively acknowledges later octets (RFC 2018): the first
    /// block of its SACK option begins after the acknowledgement number. A duplicate SACK (RFC
    /// 2883) does not count.
    #[must_use]
    pub fn has_sack(&self) -> bool {
        let mut options = self.0.options;
        while let [kind, rest @ ..] = options {
            match (kind, rest) {
                (0, _) => return false,
                (1, _) => options = rest,
                (5, [_, block @ ..]) => {
                    let start = block.first_chunk().map(|start| u32::from_be_bytes(*start));
                    return start.is_some_and(|start| self.0.ack_flag && before(self.0.ack, start));
                }
                (_, [length @ 2..=40, ..]) => options = options.get(usize::from(*length)..).unwrap_or(&[]),
                _ => return false,
            }
        }
        false
    }

    /// The payload octets that were captured.
    pub(crate) fn octets(&self) -> &'a [u8] {
        self.0.octets
    }

    /// The parts of the segment that [`SequenceTrack`](crate::tcp::SequenceTrack) compares.
    pub(crate) fn shape(&self) -> SegmentShape {
        self.0.into()
    }
}
