//! The transport header of a frame. The transport is TCP or UDP.

use std::net::SocketAddr;

use crate::frame_number::FrameNumber;
use crate::ip::{Datagram, Segment};
use crate::stream_id::StreamId;

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
