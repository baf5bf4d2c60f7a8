//! Shared Receive Queues (draft section 6.3).
//!
//! Work requests are taken in order of posting, one for each message that begins ("sequential" and
//! "arrival" dequeue model are the same over one ordered TCP stream; Query RNIC returns the one of
//! the settings).

use std::collections::VecDeque;

use super::work_request::ReceiveWr;
use crate::memory::PdId;

/// The arguments of Create S-RQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SrqInit {
    /// Its PD, which the STags of its receives must have.
    pub pd: PdId,
    /// Work requests that may be outstanding.
    pub max_wrs: u32,
    /// Elements of each.
    pub max_sges: u32,
    /// An event is raised when less than these are left; 0 for none. Armed once by this.
    pub limit: u32,
}

/// The result of Query S-RQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SrqAttributes {
    /// Its PD.
    pub pd: PdId,
    /// Work requests that may be outstanding.
    pub max_wrs: u32,
    /// Elements of each.
    pub max_sges: u32,
    /// The limit.
    pub limit: u32,
    /// The limit's event is still to come.
    pub armed: bool,
}

/// The arguments of Modify S-RQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SrqModify {
    /// A new size.
    pub max_wrs: Option<u32>,
    /// A new limit, armed unless it is 0.
    pub limit: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Srq {
    pub(super) attributes: SrqAttributes,
    pub(super) posted: VecDeque<ReceiveWr>,
    /// Work requests whose completion was not polled, posted ones among them.
    pub(super) used: u32,
    pub(super) qps: usize,
    /// It can give no more receives: it failed.
    pub(super) failed: bool,
}

impl Srq {
    pub(super) fn new(init: SrqInit) -> Self {
        let SrqInit { pd, max_wrs, max_sges, limit } = init;
        let attributes = SrqAttributes { pd, max_wrs, max_sges, limit, armed: limit > 0 };
        Srq { attributes, posted: VecDeque::new(), used: 0, qps: 0, failed: false }
    }

    /// Takes one; returns whether the limit's event is due.
    pub(super) fn take(&mut self) -> Option<(ReceiveWr, bool)> {
        let wr = self.posted.pop_front()?;
        let due = self.attributes.armed && self.posted.len() < self.attributes.limit as usize;
        self.attributes.armed &= !due;
        Some((wr, due))
    }
}
