//! The JSON documents about captures.

use schemars::JsonSchema;
use serde::Serialize;
use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_dissector::diagnosis::Diagnosis;
use weft_dissector::io::{IoCommand, IoTotals, KindStatistics, OutstandingSeries};

/// The captures of the folder. The most recently changed capture is the first.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Captures {
    pub(super) captures: Vec<CaptureEntry>,
}

/// A capture in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct CaptureEntry {
    pub(super) id: String,
    pub(super) name: String,
    /// Length of the file in bytes.
    pub(super) size: u64,
    /// Time of the last change, in milliseconds since 1970.
    pub(super) changed_unix_ms: u64,
}

/// A capture.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Capture {
    pub(super) id: String,
    pub(super) name: String,
    /// Length of the file in bytes.
    pub(super) size: u64,
    /// Number of packets that were read.
    pub(super) packets: u64,
    /// Number of problems: groups of findings with one root.
    pub(super) problems: u64,
    pub(super) findings: Counts,
    /// Number of iWARP and SDP connections.
    pub(super) connections: u64,
    /// Why the capture was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    /// Sentences about connections that were merged or dropped to limit memory, and about frames
    /// that were not read.
    pub(super) remarks: Vec<String>,
}

/// Findings by severity.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Counts {
    pub(super) errors: u64,
    pub(super) warnings: u64,
    pub(super) notes: u64,
}

/// A page of a list of packets.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Packets {
    /// Length of the complete list: the number of packets that match the filter.
    pub(super) listed: u64,
    pub(super) packets: Vec<PacketEntry>,
}

/// A packet in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct PacketEntry {
    pub(super) number: u64,
    /// Nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// Length on the wire in bytes.
    pub(super) length: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<String>,
    /// Number of the TCP connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<u32>,
    /// A summary of the content.
    pub(super) words: String,
    /// Number of findings.
    pub(super) findings: u32,
}

/// A packet.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Packet {
    pub(super) number: u64,
    /// Nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// Length on the wire in bytes.
    pub(super) length: u32,
    /// The first bytes of the packet, in hexadecimal.
    pub(super) octets: String,
    /// Messages that end in this packet.
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
    /// Depth in the tree of fields. 0 for headers.
    pub(super) depth: usize,
    /// The name in display filters.
    pub(super) name: String,
    /// The name in the specification.
    pub(super) label: String,
    /// The value as text. Empty for headers.
    pub(super) value: String,
    /// Byte ranges of the field in the packet. Each range has the offset of its first byte, and the
    /// offset after its last byte.
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

/// A page of the findings of a capture.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Findings {
    /// Number of all findings.
    pub(super) total: u64,
    /// Number of findings that are counted in `total` but cannot be listed. These are the last
    /// findings of the capture.
    pub(super) left_out: u64,
    pub(super) findings: Vec<CaptureFinding>,
}

/// A finding of a capture.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct CaptureFinding {
    /// Number of the packet that shows the finding.
    pub(super) packet: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<u32>,
    /// Number of the problem that the finding belongs to. Omitted if the finding belongs to no
    /// problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<u64>,
    #[serde(flatten)]
    pub(super) finding: PacketFinding,
}

/// A page of the problems of a capture.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct CaptureProblems {
    /// Number of all problems.
    pub(super) total: u64,
    /// The problems, ordered by their numbers.
    pub(super) problems: Vec<CaptureProblem>,
}

/// A problem of a capture: the findings with one root.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct CaptureProblem {
    /// Number of the problem, from 0. The findings of the problem have this number.
    pub(super) problem: u64,
    /// Number of the TCP connection. Omitted for a datagram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<u32>,
    /// Number of the direction in which the violating endpoint sends: 0 or 1.
    pub(super) direction: u8,
    /// The highest severity of the findings.
    #[schemars(with = "String")]
    pub(super) severity: Severity,
    /// The requirement at the root.
    #[schemars(with = "String")]
    pub(super) requirement: RequirementId,
    /// All violated requirements.
    #[schemars(with = "Vec<String>")]
    pub(super) requirements: Vec<RequirementId>,
    /// The first packets with the problem.
    pub(super) packets: Vec<u64>,
    /// Number of packets with the problem.
    pub(super) count: u64,
    /// The behaviour that `requirement` requires, at the first packet.
    pub(super) expected: String,
    /// The observed behaviour at the first packet.
    pub(super) found: String,
}

/// A page of the answers about a capture: what happened on each connection, and why it ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Answers {
    /// Number of all answers about connections.
    pub(super) total: u64,
    /// Number of connections without an answer, because the capture has too many connections.
    pub(super) unexplained: u64,
    /// The answers, ordered by the numbers of the connections.
    pub(super) answers: Vec<Answer>,
    /// The port mapper exchanges that led to no connection. Only the page from 0 has them.
    pub(super) exchanges: Vec<ExchangeAnswer>,
}

/// The answer about a connection.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Answer {
    /// Number of the TCP connection.
    pub(super) stream: u32,
    /// The answer in one clause.
    pub(super) headline: String,
    /// The paragraph of `weft why`, on one line.
    pub(super) text: String,
    /// Whether the connection did not open, an error or an endpoint ended it, or it no longer
    /// works.
    pub(super) is_failure: bool,
    /// Whether there is nothing to report.
    pub(super) is_healthy: bool,
    /// The facts, with the keys of `weft why --json`.
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub(super) facts: Diagnosis,
}

/// The answer about a port mapper exchange.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct ExchangeAnswer {
    /// Number of the exchange.
    pub(super) exchange: u64,
    pub(super) text: String,
}

/// A page of the storage commands of a capture. The objects have the keys of `weft io --json`,
/// except `kind` and `file`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct StorageCommands {
    /// Number of listed commands that match the query.
    pub(super) total: u64,
    /// Number of commands that are counted in `summary` but cannot be listed.
    pub(super) left_out: u64,
    /// The commands.
    #[schemars(with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>")]
    pub(super) commands: Vec<IoCommand>,
    /// Percentiles of the latencies of each kind of command. They count all commands.
    #[schemars(with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>")]
    pub(super) statistics: Vec<KindStatistics>,
    /// The number of outstanding commands over time.
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub(super) outstanding: OutstandingSeries,
    /// The numbers of commands.
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub(super) summary: IoTotals,
}

/// The result of checking a display filter.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct FilterRead {
    /// Why the text is not a valid display filter. Omitted if it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The position of the first wrong character, from 1. Omitted if the text is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<usize>,
}

/// A capture that was added.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::routes::api) struct Made {
    /// The id of the capture.
    pub(super) id: String,
}
