//! Out-Of-Band octets of a Data Source: the position of its stream, and the positions of announced
//! octets that have not come (section 9.5.3).
//!
//! Advertised octets count as sent. Octets that a SendSm, a SinkAvail or a cancel gives back do not
//! count until they are sent another way.

use std::collections::VecDeque;

use weft_core::wire::sdp::Mid;

use super::message::{Extension, Message};

/// Announcements that are kept.
const MOST: usize = 256;

/// A Data Source's stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Urgent {
    position: i64,
    pending: VecDeque<i64>,
    lost: bool,
}

/// The state for rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Announced {
    /// Octets sent or advertised so far.
    pub position: i64,
    /// Position of the oldest announcement whose octet has not come.
    pub oldest: Option<i64>,
    /// Number of such announcements.
    pub count: usize,
    /// Are there too many to follow?
    pub lost: bool,
}

impl Urgent {
    pub(super) fn announced(&self) -> Announced {
        Announced {
            position: self.position,
            oldest: self.pending.front().copied(),
            count: self.pending.len(),
            lost: self.lost,
        }
    }

    /// It sends `message`.
    pub(super) fn sends(&mut self, message: &Message) {
        if message.flags.oob_pend && self.pending.len() < MOST {
            self.pending.push_back(self.position);
        } else {
            self.lost |= message.flags.oob_pend;
        }
        let moved = match (message.mid, message.extension) {
            (Mid::SRC_AVAIL, Extension::Advert { len, .. }) | (Mid::RDMA_WR_COMPL, Extension::Moved(len)) => len,
            _ => message.payload,
        };
        self.position += i64::from(moved);
        if message.mid == Mid::DATA && message.flags.oob_pres {
            self.pending.pop_front();
        }
    }

    /// This many advertised octets are sent another way, or not at all.
    pub(super) fn takes_back(&mut self, octets: u64) {
        self.position -= i64::try_from(octets).unwrap_or(i64::MAX);
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.pending.capacity() * size_of::<i64>()
    }
}
