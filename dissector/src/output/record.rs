//! [`Record`]: a frame with its requested fields, units and findings, for tshark's output formats.

use crate::filter::{FrameFacts, OtherFrame, Values};
use crate::finding::Finding;
use crate::stream_id::StreamId;

use super::layers::Layer;

/// A frame with its requested fields, units and findings.
#[derive(Debug, Default)]
pub struct Record {
    /// Facts about the frame.
    pub facts: FrameFacts,
    /// Link type of the frame.
    pub link_type: u16,
    /// Number of the interface in the capture.
    pub interface: u32,
    /// The TCP connection of the packet. If the packet is unknown, this is the TCP connection of a
    /// unit or of a finding.
    pub stream: Option<StreamId>,
    /// Whether the frame contains a fragment of an IP packet that was still incomplete.
    pub fragment: bool,
    /// The addresses and the protocol of a frame without a TCP segment or UDP datagram, if columns
    /// are requested.
    pub other: Option<OtherFrame>,
    /// Values of the requested fields.
    pub values: Values,
    /// Octets of the frame, if requested.
    pub octets: Vec<u8>,
    /// Requested parts of the units that the frame completed.
    pub units: Vec<UnitRecord>,
    /// Findings that the frame shows, if requested.
    pub findings: Vec<Finding>,
}

/// The requested parts of a unit. Parts that are not requested are empty.
#[derive(Debug, Default)]
pub struct UnitRecord {
    /// The highest protocol; `None` for octets outside MPA.
    pub protocol: Option<&'static str>,
    /// A short summary.
    pub summary: String,
    /// The fields as lines of text.
    pub tree: String,
    /// The layers of fields.
    pub layers: Vec<Layer>,
}
