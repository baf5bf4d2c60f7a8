//! [`Early`]: accesses and responses that have no command yet. The dissector can deliver a unit of
//! one direction before an earlier unit of the other direction.

use super::access::Access;
use super::event::End;
use crate::direction::Direction;
use crate::exchange::CapturePoint;
use crate::upper::Ulp;

/// Maximum number of accesses, and of responses, that wait.
const MAX_EARLY: usize = 64;

/// A response that has no command yet.
#[derive(Debug)]
pub(super) struct EarlyEnd {
    /// The direction of the response.
    pub(super) direction: Direction,
    pub(super) protocol: Ulp,
    pub(super) end: End,
    /// Where the first and the last segment of the response were captured.
    pub(super) began: CapturePoint,
    pub(super) ended: CapturePoint,
}

/// The accesses and responses of a connection that have no command yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Early {
    accesses: Vec<Access>,
    ends: Vec<EarlyEnd>,
}

impl Early {
    pub(super) fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.ends.is_empty()
    }

    /// Adds an access. If there are too many, removes and returns the oldest one.
    pub(super) fn add_access(&mut self, access: Access) -> Option<Access> {
        if self.accesses.last_mut().is_some_and(|latest| latest.extend(&access)) {
            return None;
        }
        let oldest = (self.accesses.len() >= MAX_EARLY).then(|| self.accesses.remove(0));
        self.accesses.push(access);
        oldest
    }

    /// Adds a response. If there are too many, removes and returns the oldest one.
    pub(super) fn add_end(&mut self, end: EarlyEnd) -> Option<EarlyEnd> {
        let oldest = (self.ends.len() >= MAX_EARLY).then(|| self.ends.remove(0));
        self.ends.push(end);
        oldest
    }

    /// Removes and returns the accesses that pass the test.
    pub(super) fn take_accesses(&mut self, is_taken: impl Fn(&Access) -> bool) -> Vec<Access> {
        self.accesses.extract_if(.., |access| is_taken(access)).collect()
    }

    /// Removes and returns the responses that pass the test.
    pub(super) fn take_ends(&mut self, is_taken: impl Fn(&EarlyEnd) -> bool) -> Vec<EarlyEnd> {
        self.ends.extract_if(.., |end| is_taken(end)).collect()
    }

    /// Removes and returns the oldest response that passes the test.
    pub(super) fn take_end(&mut self, is_it: impl Fn(&EarlyEnd) -> bool) -> Option<EarlyEnd> {
        self.ends.iter().position(is_it).map(|at| self.ends.remove(at))
    }

    /// The end of the oldest access or response, in nanoseconds since 1970.
    pub(super) fn oldest(&self) -> Option<u64> {
        let access = self.accesses.first().map(|access| access.latest.time);
        let end = self.ends.first().map(|end| end.ended.time);
        access.into_iter().chain(end).min()
    }
}
