//! The transport header of a frame's packet, TCP or UDP.

use std::net::SocketAddr;

/// The transport header of a frame, or of the datagram that its last fragment completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The frame.
    pub frame: u64,
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// Payload octets on the wire.
    pub payload_len: u32,
    /// TCP or UDP.
    pub transport: TransportKind,
}

/// The fields that depend on the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// A segment.
    Tcp {
        /// Number of its connection, as in [`crate::unit::Unit::stream`].
        stream: u32,
        /// Sequence number of the header.
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
    /// A datagram.
    Udp,
}
