//! What a frame carried, as far as TCP and UDP tell.

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

/// What is particular to each transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// A segment.
    Tcp {
        /// Number of its connection, as in [`crate::unit::Unit::stream`].
        stream: u32,
        /// Sequence number, as it stands in the header.
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
