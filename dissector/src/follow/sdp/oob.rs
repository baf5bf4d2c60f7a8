//! Tracks the Out-Of-Band octets of a Data Source. The state has the position of the Data Source in
//! the stream of ULP octets. It also has the positions of Out-Of-Band octets that were announced,
//! but not sent (section 9.5.3 of the SDP draft).
//!
//! Octets that a SrcAvail advertises count as sent. If a SendSm, a SinkAvail or a cancel ends the
//! SrcAvail, its remaining octets no longer count as sent. They count again when they are sent in
//! another way.

use std::collections::VecDeque;

use weft_core::wire::sdp::Mid;

use super::message::{Extension, Message};

/// Maximum number of announcements that are kept.
const MAX_ANNOUNCEMENTS: usize = 256;

/// The position and the pending Out-Of-Band octets of a Data Source.
#[derive(Debug, Clone, Default)]
pub(super) struct OobState {
    position: i64,
    pending: VecDeque<i64>,
    lost: bool,
}

/// A summary of [`OobState`] for rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OobSummary {
    /// Number of octets that were sent or advertised so far.
    pub position: i64,
    /// Position of the oldest announcement whose Out-Of-Band octet was not sent.
    pub oldest: Option<i64>,
    /// Number of announcements whose Out-Of-Band octet was not sent.
    pub count: usize,
    /// Whether announcements were dropped, because there were too many announcements.
    pub lost: bool,
}

impl OobState {
    pub(super) fn summary(&self) -> OobSummary {
        OobSummary {
            position: self.position,
            oldest: self.pending.front().copied(),
            count: self.pending.len(),
            lost: self.lost,
        }
    }

    /// Records that the Data Source sends `message`.
    pub(super) fn record_sent(&mut self, message: &Message) {
        let moved = match (message.mid, message.extension) {
            (Mid::SRC_AVAIL, Extension::Advert { len, .. }) | (Mid::RDMA_WR_COMPL, Extension::Moved(len)) => len,
            _ => message.payload,
        };
        // The octets of a RdmaWrCompl were written before this message, so they precede its flag.
        let before_flag = if message.mid == Mid::RDMA_WR_COMPL { moved } else { 0 };
        if message.flags.oob_pend && self.pending.len() < MAX_ANNOUNCEMENTS {
            self.pending.push_back(self.position + i64::from(before_flag));
        } else {
            self.lost |= message.flags.oob_pend;
        }
        self.position += i64::from(moved);
        if message.mid == Mid::DATA && message.flags.oob_pres {
            self.pending.pop_front();
        }
    }

    /// Records that a SrcAvail ended, and that `octets` octets of it were not transferred. The Data
    /// Source sends these octets in another way, or not at all.
    pub(super) fn subtract(&mut self, octets: u64) {
        self.position -= i64::try_from(octets).unwrap_or(i64::MAX);
    }

    /// Memory in use, in octets.
    pub(super) fn memory(&self) -> usize {
        self.pending.capacity() * size_of::<i64>()
    }
}
