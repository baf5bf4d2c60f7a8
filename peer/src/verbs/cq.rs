//! Completion Queues (draft-hilland-rddp-verbs sections 5.3 and 8.2.5).

use std::collections::VecDeque;

use super::slab::Key;
use super::{CompletionHandlerId, CompletionStatus, WorkCompletion};
use crate::reject::reject_if;

/// Condition of the verb Request Completion Notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NotifyKind {
    /// The completion of a receive for a message whose sender requested a solicited event, or any
    /// completion with an error.
    NextSolicited,
    /// Any completion.
    NextCompletion,
}

/// The result of the verb Query CQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CqAttributes {
    /// Number of entries.
    pub entries: u32,
    /// Completion Event Handler of the CQ.
    pub handler: Option<CompletionHandlerId>,
}

/// A completion on a CQ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cqe {
    pub(super) completion: WorkCompletion,
    pub(super) qp: Key,
    pub(super) frees: FreedSlot,
}

/// The queue that gets a free slot when the completion is polled (VERBS-8.2.1-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FreedSlot {
    Sq,
    Rq,
    Srq(Key),
}

#[derive(Debug)]
pub(super) struct Cq {
    pub(super) entries: VecDeque<Cqe>,
    pub(super) capacity: u32,
    pub(super) handler: Option<CompletionHandlerId>,
    pub(super) armed: Option<NotifyKind>,
    /// Number of Work Queues that use this CQ.
    pub(super) queues: usize,
    /// The CQ has failed and accepts no more completions.
    pub(super) failed: bool,
}

/// Reason why a CQ does not accept a completion.
pub(super) enum PushError {
    /// The CQ is full.
    Overflow,
    /// The CQ has failed.
    Failed,
}

impl Cq {
    pub(super) fn new(capacity: u32, handler: Option<CompletionHandlerId>) -> Self {
        Cq { entries: VecDeque::new(), capacity, handler, armed: None, queues: 0, failed: false }
    }

    /// Arms the CQ: the next completion that matches `kind` causes a notification. If the CQ is
    /// already armed, the wider of the two conditions applies (VERBS-8.2.5-8).
    pub(super) fn arm(&mut self, kind: NotifyKind) {
        self.armed = self.armed.max(Some(kind));
    }

    /// Adds a completion. If the CQ was armed for this completion, returns the handler to notify.
    pub(super) fn push(&mut self, cqe: Cqe) -> Result<Option<CompletionHandlerId>, PushError> {
        reject_if(self.failed, PushError::Failed)?;
        reject_if(self.entries.len() >= self.capacity as usize, PushError::Overflow)?;
        let solicited = cqe.completion.solicited || cqe.completion.status != CompletionStatus::Success;
        self.entries.push_back(cqe);
        match self.armed {
            Some(NotifyKind::NextCompletion) => {}
            Some(NotifyKind::NextSolicited) if solicited => {}
            Some(NotifyKind::NextSolicited) | None => return Ok(None),
        }
        self.armed = None;
        Ok(self.handler)
    }
}
