//! Faults of messages that later segments can explain.
//!
//! For each queue, and for each tagged opcode, only the first fault of each kind is kept.

use weft_core::wire::ddp::Msn;

use crate::parse::Location;

/// Faults of a queue, or of a tagged opcode, that later segments can explain: the sender may have
/// sent the missing part later. Therefore the faults are reported when the connection ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnexplainedFaults {
    /// The first MSN of the queue, if it is not 1 and MSN 1 did not follow. The location is the
    /// location of the DDP header.
    pub first_msn: Option<(Msn, Location)>,
    /// The first gap in a message.
    pub gap: Option<Gap>,
}

/// A gap in a message: no segment has the octets between two segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Whether the offsets are TOs. If false, they are MOs.
    pub tagged: bool,
    /// The offset where the gap begins.
    pub expected: u64,
    /// The offset of the segment after the gap.
    pub found: u64,
    /// Location of the DDP header of the segment after the gap.
    pub octets: Location,
}
