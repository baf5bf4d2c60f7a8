//! The record of the injected faults.

use std::net::SocketAddr;

use serde::Serialize;
use weft_dissector::FrameNumber;

use crate::side::Side;

/// What the bridge did to a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// The segment was not forwarded.
    Loss,
    /// The segment was forwarded twice.
    Duplicate,
    /// The segment was forwarded after segments that followed it.
    Reorder,
    /// The segment was divided into two segments.
    Split {
        /// Number of payload bytes in the first of the two segments.
        at: u32,
    },
    /// Bits of one payload byte were inverted, and the TCP checksum was corrected.
    Corrupt {
        /// Offset of the byte in the payload.
        at: u32,
        /// The inverted bits.
        bits: u8,
    },
    /// The packet was longer than the MTU of the path. It was not forwarded, and the sender
    /// received an ICMP error.
    TooLong {
        /// The MTU in bytes.
        mtu: u16,
    },
}

impl FaultKind {
    /// The name of the impairment, as in the options of `weft between`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Loss => "loss",
            FaultKind::Duplicate => "duplicate",
            FaultKind::Reorder => "reorder",
            FaultKind::Split { .. } => "split",
            FaultKind::Corrupt { .. } => "corrupt",
            FaultKind::TooLong { .. } => "mtu",
        }
    }
}

/// An injected fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Number of the fault. The first fault has number 1.
    pub number: u32,
    /// When the frame arrived at the bridge, in nanoseconds since 1970.
    pub time: u64,
    /// What the bridge did.
    #[serde(flatten)]
    pub kind: FaultKind,
    /// The side that sent the segment.
    pub from: Side,
    /// The sender of the segment.
    pub src: SocketAddr,
    /// The receiver of the segment.
    pub dst: SocketAddr,
    /// Sequence number of the segment.
    pub seq: u32,
    /// Number of payload bytes of the segment.
    pub len: u32,
    /// The frame in the capture of the sender's side.
    pub sent: FrameNumber,
    /// The first frame in the capture of the receiver's side that contains the fault; `None` if the
    /// segment was not forwarded.
    pub received: Option<FrameNumber>,
}
