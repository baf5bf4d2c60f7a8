//! A frame for tshark's output formats: its wanted fields, units and findings.

use crate::filter::{FrameFacts, Values};
use crate::finding::Finding;
use crate::stream_id::StreamId;

use super::layers::Layer;

/// A frame with all its units and findings.
#[derive(Debug, Default)]
pub struct Record {
    /// Facts about the frame.
    pub facts: FrameFacts,
    /// Its link type.
    pub link_type: u16,
    /// Number of the interface in the capture.
    pub interface: u32,
    /// The TCP connection of its packet; if no packet is known, that of a unit or finding.
    pub stream: Option<StreamId>,
    /// It carries a fragment of an IP packet that was not complete yet.
    pub fragment: bool,
    /// The wanted fields.
    pub values: Values,
    /// Its octets, when they are kept.
    pub octets: Vec<u8>,
    /// Its units, as far as they are kept.
    pub units: Vec<UnitKept>,
    /// Findings at it.
    pub findings: Vec<Finding>,
}

/// The kept parts of a unit.
#[derive(Debug, Default)]
pub struct UnitKept {
    /// A short summary.
    pub summary: String,
    /// Its fields, as lines.
    pub tree: String,
    /// Its layers.
    pub layers: Vec<Layer>,
}
