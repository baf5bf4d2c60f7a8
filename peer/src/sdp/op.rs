//! Work Requests whose completion the machine waits for.

use std::collections::VecDeque;

use super::OpId;

/// The Work Request that a completion reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Payload,
    Read,
    Write,
    DisConn,
    AbortConn,
    SuspCommAck,
}

/// The Work Requests that are not complete.
#[derive(Debug, Default)]
pub(super) struct Ops {
    next: u64,
    posted: VecDeque<(OpId, Op)>,
}

impl Ops {
    /// Assigns an id to a Work Request and stores its kind.
    pub(super) fn assign(&mut self, kind: Op) -> OpId {
        let op = OpId(self.next);
        self.next += 1;
        self.posted.push_back((op, kind));
        op
    }

    /// Removes a Work Request that is complete. Returns its kind, or `None` if the id is unknown.
    pub(super) fn complete(&mut self, op: OpId) -> Option<Op> {
        let at = self.posted.iter().position(|(id, _)| *id == op)?;
        self.posted.remove(at).map(|(_, kind)| kind)
    }

    /// Removes all Work Requests. Their ids are not assigned again.
    pub(super) fn clear(&mut self) {
        self.posted.clear();
    }
}
