//! The documents about captures.

use schemars::JsonSchema;
use serde::Serialize;
use weft_core::RequirementId;
use weft_core::requirement::Severity;

/// The captures of the folder, those that changed last first.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Captures {
    pub(super) captures: Vec<CaptureEntry>,
}

/// A capture in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct CaptureEntry {
    pub(super) id: String,
    pub(super) name: String,
    /// Octets of the file.
    pub(super) size: u64,
    /// When it changed last, in milliseconds since 1970.
    pub(super) changed_unix_ms: u64,
}

/// What is in a capture.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Capture {
    pub(super) id: String,
    pub(super) name: String,
    /// Octets of the file.
    pub(super) size: u64,
    /// Packets that were read.
    pub(super) packets: u64,
    pub(super) findings: Counts,
    /// Connections with iWARP or SDP.
    pub(super) connections: u64,
    /// Why not all of it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    /// What was joined, given up because of bounds on memory, and not read: a sentence each.
    pub(super) remarks: Vec<String>,
}

/// Findings by severity.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Counts {
    pub(super) errors: u64,
    pub(super) warnings: u64,
    pub(super) notes: u64,
}

/// Part of a list of packets.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Packets {
    /// Packets of the whole list, which are those that pass the filter.
    pub(super) listed: u64,
    pub(super) packets: Vec<PacketEntry>,
}

/// A packet in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct PacketEntry {
    pub(super) number: u64,
    /// Nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// Octets on the wire.
    pub(super) length: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<String>,
    /// Number of its TCP connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<u32>,
    /// What stands in it, in a few words.
    pub(super) words: String,
    /// How many findings it shows.
    pub(super) findings: u32,
}

/// A packet.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Packet {
    pub(super) number: u64,
    /// Nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// Octets on the wire.
    pub(super) length: u32,
    /// Its first octets, in hexadecimal.
    pub(super) octets: String,
    /// Messages that end in it.
    pub(super) units: Vec<PacketUnit>,
    pub(super) findings: Vec<PacketFinding>,
}

/// A message.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct PacketUnit {
    pub(super) summary: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) fields: Vec<PacketField>,
}

/// A header or field.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct PacketField {
    /// 0 for headers.
    pub(super) depth: usize,
    /// Its name in filters.
    pub(super) name: String,
    /// Its name in its specification.
    pub(super) label: String,
    /// For people; empty for headers.
    pub(super) value: String,
    /// Its octets in the packet: of each part the first, and the one behind the last.
    pub(super) octets: Vec<[usize; 2]>,
}

/// A finding of a packet.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct PacketFinding {
    #[schemars(with = "String")]
    pub(super) requirement: RequirementId,
    #[schemars(with = "String")]
    pub(super) severity: Severity,
    pub(super) expected: String,
    pub(super) found: String,
}

/// Part of the findings of a capture.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Findings {
    /// All of them.
    pub(super) total: u64,
    /// Of these, how many of the last ones are counted alone.
    pub(super) left_out: u64,
    pub(super) findings: Vec<CaptureFinding>,
}

/// A finding of a capture.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct CaptureFinding {
    /// The packet that shows it.
    pub(super) packet: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<u32>,
    #[serde(flatten)]
    pub(super) finding: PacketFinding,
}

/// Is a text a display filter?
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct FilterRead {
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The first character that is wrong, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<usize>,
}

/// What was made.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Made {
    /// The id of the capture.
    pub(super) id: String,
}
