//! Shared Receive Queues (draft-hilland-rddp-verbs section 6.3).
//!
//! Each message takes the oldest posted Work Request when the message begins. Over one ordered TCP
//! stream, the dequeue models "sequential" and "arrival" have the same effect. Query RNIC returns
//! the model that the settings name.

use std::collections::VecDeque;

use super::slab::Key;
use super::work_request::ReceiveWr;
use crate::memory::PdId;

/// The arguments of the verb Create S-RQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SrqInit {
    /// PD of the S-RQ. The STags of its receives must have this PD.
    pub pd: PdId,
    /// Greatest number of outstanding Work Requests.
    pub max_wrs: u32,
    /// Greatest number of scatter elements of a Work Request.
    pub max_sges: u32,
    /// If the number of posted receives is below this number, the RNIC raises an event. 0 means no
    /// event. Create S-RQ arms the event for one report.
    pub limit: u32,
}

/// The result of the verb Query S-RQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SrqAttributes {
    /// PD of the S-RQ.
    pub pd: PdId,
    /// Greatest number of outstanding Work Requests.
    pub max_wrs: u32,
    /// Greatest number of scatter elements of a Work Request.
    pub max_sges: u32,
    /// Number of posted receives below which the event is raised.
    pub limit: u32,
    /// The event for the limit is armed and was not raised yet.
    pub armed: bool,
}

/// The arguments of the verb Modify S-RQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SrqModify {
    /// The new greatest number of outstanding Work Requests.
    pub max_wrs: Option<u32>,
    /// The new limit. If the limit is not 0, the event for the limit is armed.
    pub limit: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Srq {
    pub(super) attributes: SrqAttributes,
    pub(super) posted: VecDeque<ReceiveWr>,
    /// Number of posted receives, plus used receives whose completion was not polled.
    pub(super) used: u32,
    pub(super) qps: usize,
    /// For a deviation: the CQ of the Queue Pair that took the last receive.
    pub(super) taker: Option<Key>,
    /// The S-RQ has failed and provides no more receives.
    pub(super) failed: bool,
}

impl Srq {
    pub(super) fn new(init: SrqInit) -> Self {
        let SrqInit { pd, max_wrs, max_sges, limit } = init;
        let attributes = SrqAttributes { pd, max_wrs, max_sges, limit, armed: limit > 0 };
        Srq { attributes, posted: VecDeque::new(), used: 0, qps: 0, taker: None, failed: false }
    }

    /// Takes the oldest receive. Returns the receive, and whether the event for the limit has to be
    /// raised.
    pub(super) fn take(&mut self) -> Option<(ReceiveWr, bool)> {
        let wr = self.posted.pop_front()?;
        let due = self.attributes.armed && self.posted.len() < self.attributes.limit as usize;
        self.attributes.armed &= !due;
        Some((wr, due))
    }
}
