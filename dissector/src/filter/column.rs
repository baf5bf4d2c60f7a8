//! The columns of Wireshark's packet list, as fields `_ws.col.*`. tshark 4.0 has the names of the
//! second half of [`COLUMNS`], and later versions have those of the first half.
//!
//! The text of a column is known only when all units of the frame are known.

use std::net::IpAddr;

use super::frame_facts::FrameFacts;
use super::time_format::TimeFormat;
use crate::packet::{Packet, TransportKind};
use crate::source::{Names, TimeResolution};
use crate::unit::{Kind, Unit};

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Number,
    Time,
    Source,
    Destination,
    Protocol,
    Length,
    Info,
    /// Seconds since the previous frame that passed the filter. This is not a column, but it is
    /// known at the same time.
    DeltaDisplayed,
}

/// Name, label and column.
pub(super) static COLUMNS: &[(&str, &str, Column)] = &[
    ("_ws.col.number", "Frame number", Column::Number),
    ("_ws.col.cls_time", "Time in the form of -t", Column::Time),
    ("_ws.col.def_src", "Address of the sender", Column::Source),
    ("_ws.col.def_dst", "Address of the receiver", Column::Destination),
    ("_ws.col.protocol", "Highest protocol of the frame", Column::Protocol),
    ("_ws.col.packet_length", "Bytes on the wire", Column::Length),
    ("_ws.col.info", "Summaries of the units of the frame", Column::Info),
    ("_ws.col.No.", "Frame number", Column::Number),
    ("_ws.col.Time", "Time in the form of -t", Column::Time),
    ("_ws.col.Source", "Address of the sender", Column::Source),
    ("_ws.col.Destination", "Address of the receiver", Column::Destination),
    ("_ws.col.Protocol", "Highest protocol of the frame", Column::Protocol),
    ("_ws.col.Length", "Bytes on the wire", Column::Length),
    ("_ws.col.Info", "Summaries of the units of the frame", Column::Info),
];

/// The names of the columns that tshark prints by default, in their order.
pub const DEFAULT_COLUMNS: [&str; 7] = [
    "_ws.col.No.",
    "_ws.col.Time",
    "_ws.col.Source",
    "_ws.col.Destination",
    "_ws.col.Protocol",
    "_ws.col.Length",
    "_ws.col.Info",
];

/// The ends and the protocol of a frame without a TCP segment or UDP datagram, for its columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherFrame {
    /// The addresses of sender and receiver: of the innermost IP header, or else of Ethernet. Empty
    /// if the frame has neither.
    pub ends: [String; 2],
    /// For example `ARP`.
    pub protocol: String,
}

/// The parts of a frame, or of a unit that is alone, from which the columns are made.
pub(super) struct ColumnSource<'a> {
    pub(super) facts: &'a FrameFacts,
    /// Time of the previous frame that passed the filter.
    pub(super) displayed: Option<u64>,
    pub(super) other: Option<&'a OtherFrame>,
    /// Sender and receiver, if no packet is known.
    pub(super) ends: Option<(IpAddr, IpAddr)>,
    pub(super) protocol: Option<&'static str>,
    pub(super) info: String,
    pub(super) names: &'a Names,
    pub(super) time: TimeFormat,
    pub(super) resolution: &'a TimeResolution,
}

impl ColumnSource<'_> {
    /// The text of a column. It is empty if it is unknown.
    pub(super) fn text(&self, column: Column) -> String {
        match column {
            Column::Number => self.facts.number.to_string(),
            Column::Time => self.time.of(self.facts, self.displayed, self.resolution),
            Column::Source => self.end(0),
            Column::Destination => self.end(1),
            Column::Protocol => self.protocol(),
            Column::Length => self.facts.len.map_or_else(String::new, |(wire, _)| wire.to_string()),
            Column::Info | Column::DeltaDisplayed => self.info.clone(),
        }
    }

    fn end(&self, index: usize) -> String {
        let packet = self.facts.packet.map(|packet| (packet.src.ip(), packet.dst.ip()));
        match (packet.or(self.ends), self.other) {
            (Some((src, dst)), _) => self.names.address([src, dst][index]),
            (None, Some(other)) => other.ends[index].clone(),
            (None, None) => String::new(),
        }
    }

    fn protocol(&self) -> String {
        match (self.protocol, &self.facts.packet, self.other) {
            (Some(protocol), ..) => protocol.to_owned(),
            (None, Some(Packet { transport: TransportKind::Tcp { .. }, .. }), _) => "TCP".to_owned(),
            (None, Some(Packet { transport: TransportKind::Udp, .. }), _) => "UDP".to_owned(),
            (None, None, Some(other)) => other.protocol.clone(),
            (None, None, None) => String::new(),
        }
    }
}

/// The name of the highest protocol of a unit, as in Wireshark. `None` for octets outside MPA.
pub(crate) fn protocol_of(unit: &Unit<'_>) -> Option<&'static str> {
    match unit.kind {
        Kind::Startup(..) | Kind::Unparsed { .. } => Some("MPA"),
        Kind::Fpdu(_) => Some("DDP/RDMA"),
        Kind::Sdp(..) => Some("SDP"),
        Kind::PortMapper(_) => Some("SDP PM"),
        Kind::Streaming { .. } | Kind::Gap { .. } => None,
    }
}
