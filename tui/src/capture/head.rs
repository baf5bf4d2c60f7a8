//! Addresses, TCP flags and lengths of a frame, for rows without units (SYN, pure acknowledgements,
//! other traffic).

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use weft_dissector::{Packet, TransportKind};

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Sender and receiver.
    pub(crate) ends: Option<(SocketAddr, SocketAddr)>,
    pub(crate) carries: Carries,
}

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Carries {
    /// A TCP segment.
    Tcp(Tcp),
    /// A UDP datagram with a payload of this many bytes.
    Udp(u32),
    /// Neither, or a fragment that completes no packet.
    #[default]
    Other,
}

/// The most important fields of a TCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tcp {
    /// Sequence number.
    pub(crate) seq: u32,
    syn: bool,
    fin: bool,
    rst: bool,
    ack: bool,
    /// Bytes of payload on the wire.
    pub(crate) len: u32,
}

impl Tcp {
    /// The names of the flags that are set.
    pub(crate) fn flags(self) -> String {
        let flags = [(self.syn, "SYN"), (self.fin, "FIN"), (self.rst, "RST"), (self.ack, "ACK")];
        flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
    }
}

impl Head {
    pub(crate) fn of(packet: &Packet) -> Self {
        let len = packet.payload_len;
        let carries = match packet.transport {
            TransportKind::Tcp { seq, syn, fin, rst, ack, .. } => Carries::Tcp(Tcp { seq, syn, fin, rst, ack, len }),
            TransportKind::Udp => Carries::Udp(len),
        };
        Head { ends: Some((packet.src, packet.dst)), carries }
    }

    pub(crate) fn summary(&self) -> String {
        match self.carries {
            Carries::Tcp(tcp) => format!("TCP {}  seq {} len {}", tcp.flags(), tcp.seq, tcp.len),
            Carries::Udp(len) => format!("UDP  {len} bytes"),
            Carries::Other => "neither TCP nor UDP".to_owned(),
        }
    }
}

/// The number of the TCP connection of `packet`.
pub(crate) fn stream(packet: &Packet) -> Option<u32> {
    match packet.transport {
        TransportKind::Tcp { stream, .. } => Some(stream),
        TransportKind::Udp => None,
    }
}
