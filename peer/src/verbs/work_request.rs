//! Work Requests: the arguments of PostSQ and PostRQ (draft-hilland-rddp-verbs sections 8.1 and
//! 9.3.1).
//!
//! Each operation has exactly the input modifiers of draft Figure 27. The types cannot express
//! other combinations.

use bytes::Bytes;
use weft_core::wire::rdmap::{AtomicOperation, Immediate};

use crate::memory::{Bind, FastRegistration, Stag};

/// An element of a scatter/gather list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sge {
    /// The 32 bits of an STag. STag 0 means physical memory, which only privileged Queue Pairs may
    /// use. The STag is ignored if `length` is 0.
    pub stag: u32,
    /// TO of the first byte.
    pub tagged_offset: u64,
    /// Length in bytes.
    pub length: u32,
}

/// Memory of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteAddress {
    /// The STag that the peer advertised.
    pub stag: u32,
    /// TO of the first byte.
    pub tagged_offset: u64,
}

/// The payload of a Send or Write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// The payload is in registered memory. An empty list means a message of 0 bytes.
    Gather(Vec<Sge>),
    /// The payload is in the Work Request itself. The Consumer can discard its copy after posting.
    Inline(Bytes),
}

/// A Send Queue operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// One of the four kinds of Send.
    Send {
        /// Payload of the Send.
        payload: Payload,
        /// Send with Solicited Event.
        solicited: bool,
        /// Send with Invalidate: the peer's STag that the Send invalidates.
        invalidate: Option<u32>,
    },
    /// Immediate Data (RFC 7306 section 6): a message of eight bytes that uses one receive of the
    /// peer.
    Immediate {
        /// The eight bytes.
        data: Immediate,
        /// Immediate Data with Solicited Event.
        solicited: bool,
    },
    /// RDMA Write.
    Write {
        /// Payload of the Write.
        payload: Payload,
        /// Destination in the peer's memory.
        remote: RemoteAddress,
    },
    /// RDMA Read.
    Read {
        /// Destination: one element, in a region or window with remote write access.
        local: Sge,
        /// Source in the peer's memory.
        remote: RemoteAddress,
        /// Read with Invalidate Local STag: the STag of `local` becomes Invalid when all data has
        /// arrived.
        invalidate_local: bool,
    },
    /// Atomic Operation (RFC 7306 section 5) on eight bytes of the peer's memory. The completion
    /// returns the previous value of these bytes.
    Atomic {
        /// The eight bytes in the peer's memory.
        remote: RemoteAddress,
        /// The change to the eight bytes.
        operation: AtomicOperation,
    },
    /// Bind Memory Window.
    Bind(Bind),
    /// Fast-Register Non-Shared Memory Region.
    FastRegister(FastRegistration),
    /// Invalidate Local STag.
    InvalidateLocal(Stag),
}

/// Condition for the start of an operation (draft section 8.2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fence {
    /// No condition.
    #[default]
    None,
    /// The operation starts when all earlier Reads and Atomic Operations are complete. Only for
    /// Sends, Writes and Immediate Data.
    Read,
    /// The operation starts when all earlier Work Requests of the queue are complete. Only for
    /// Invalidate Local STag.
    Local,
}

/// A Work Request for a Send Queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendWr {
    /// Number that the Consumer chooses. The completion returns this number.
    pub wr_id: u64,
    /// True: the RNIC reports a completion even if the operation succeeds.
    pub signaled: bool,
    /// Condition for the start.
    pub fence: Fence,
    /// The operation.
    pub operation: Operation,
}

impl SendWr {
    /// Creates a signaled Work Request without a fence.
    #[must_use]
    pub const fn new(wr_id: u64, operation: Operation) -> Self {
        SendWr { wr_id, signaled: true, fence: Fence::None, operation }
    }
}

/// A Work Request for a Receive Queue. It is always signaled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiveWr {
    /// Number that the Consumer chooses. The completion returns this number.
    pub wr_id: u64,
    /// Memory for the message. An empty list can receive only a message of 0 bytes.
    pub scatter: Vec<Sge>,
}

impl Payload {
    /// Length of the message in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Payload::Gather(sges) => length(sges),
            Payload::Inline(octets) => octets.len() as u64,
        }
    }
}

/// Total length of a list in bytes.
pub(super) fn length(sges: &[Sge]) -> u64 {
    sges.iter().map(|sge| u64::from(sge.length)).sum()
}
