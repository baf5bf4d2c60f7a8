//! Work Requests: what PostSQ and PostRQ are given (draft sections 8.1 and 9.3.1).
//!
//! Each operation has exactly the modifiers that draft Figure 27 gives it; others cannot be
//! expressed.

use bytes::Bytes;
use weft_core::wire::rdmap::{AtomicOperation, Immediate};

use crate::memory::{Bind, FastRegistration, Stag};

/// An element of a scatter/gather list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sge {
    /// The 32 bits of an STag; 0 is physical memory, for privileged Queue Pairs. Not looked at when
    /// `length` is 0.
    pub stag: u32,
    /// TO of the first octet.
    pub tagged_offset: u64,
    /// Octets.
    pub length: u32,
}

/// Memory of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteAddress {
    /// The STag that the peer advertised.
    pub stag: u32,
    /// TO of the first octet.
    pub tagged_offset: u64,
}

/// Where the payload of a Send or Write is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// In registered memory. Zero elements are a message of no octets.
    Gather(Vec<Sge>),
    /// In the work request itself: the Consumer need not keep it.
    Inline(Bytes),
}

/// A Send Queue operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// One of the four Sends.
    Send {
        /// What is sent.
        payload: Payload,
        /// With Solicited Event.
        solicited: bool,
        /// With Invalidate: this STag of the peer.
        invalidate: Option<u32>,
    },
    /// Immediate Data (RFC 7306 section 6): eight octets for one receive of the peer.
    Immediate {
        /// The octets.
        data: Immediate,
        /// With Solicited Event.
        solicited: bool,
    },
    /// RDMA Write.
    Write {
        /// What is written.
        payload: Payload,
        /// Where to.
        remote: RemoteAddress,
    },
    /// RDMA Read.
    Read {
        /// Where to: one element, of a region or window that permits remote writing.
        local: Sge,
        /// Where from.
        remote: RemoteAddress,
        /// With Invalidate Local STag: `local`'s becomes Invalid when the data is there.
        invalidate_local: bool,
    },
    /// Atomic Operation (RFC 7306 section 5) on eight octets of the peer. The value from before
    /// comes with the completion.
    Atomic {
        /// Which eight octets.
        remote: RemoteAddress,
        /// What is done to them.
        operation: AtomicOperation,
    },
    /// Bind Memory Window.
    Bind(Bind),
    /// Fast-Register Non-Shared Memory Region.
    FastRegister(FastRegistration),
    /// Invalidate Local STag.
    InvalidateLocal(Stag),
}

/// The condition for the start of an operation (draft section 8.2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fence {
    /// Its turn.
    #[default]
    None,
    /// Earlier Reads and Atomic Operations (Sends and Writes only).
    Read,
    /// All earlier work of the queue (Invalidate Local STag only).
    Local,
}

/// A Work Request for a Send Queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendWr {
    /// Comes back with the completion.
    pub wr_id: u64,
    /// A completion is wanted even when it succeeds.
    pub signaled: bool,
    /// What it waits for.
    pub fence: Fence,
    /// What to do.
    pub operation: Operation,
}

impl SendWr {
    /// A signaled one without fence.
    #[must_use]
    pub const fn new(wr_id: u64, operation: Operation) -> Self {
        SendWr { wr_id, signaled: true, fence: Fence::None, operation }
    }
}

/// A Work Request for a Receive Queue; always signaled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiveWr {
    /// Comes back with the completion.
    pub wr_id: u64,
    /// Where the message goes. Zero elements take a message of no octets.
    pub scatter: Vec<Sge>,
}

impl Payload {
    /// Octets of the message.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Payload::Gather(sges) => length(sges),
            Payload::Inline(octets) => octets.len() as u64,
        }
    }
}

/// Octets of a list.
pub(super) fn length(sges: &[Sge]) -> u64 {
    sges.iter().map(|sge| u64::from(sge.length)).sum()
}
