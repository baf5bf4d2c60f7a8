//! The Send Queue: work in order of posting, completed in that order (draft sections 8.2.1 and
//! 8.2.2).
//!
//! Whether an operation succeeds is found elsewhere; here is whose turn it is, what is in flight,
//! and what may complete.

use std::collections::VecDeque;

use weft_core::wire::rdmap::ReadRequest;

use crate::ddp::Segmenter;
use crate::verbs::completion::CompletionStatus;
use crate::verbs::work_request::{Fence, Operation, SendWr};

#[derive(Debug)]
pub(super) struct Wqe {
    pub(super) wr: SendWr,
    pub(super) progress: Progress,
}

#[derive(Debug)]
pub(super) enum Progress {
    /// Not begun.
    Posted,
    /// Going out.
    Sending(Segmenter),
    /// A Read or Atomic Operation whose request went out, and the octets that arrived.
    Waiting { arrived: u32 },
    /// Over.
    Done { status: CompletionStatus, original_value: Option<u64> },
}

/// A work request that left the queue.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) wr: SendWr,
    pub(super) status: CompletionStatus,
    pub(super) original_value: Option<u64>,
}

#[derive(Debug)]
pub(super) struct SendQueue {
    wqes: VecDeque<Wqe>,
    /// WQEs from the front that were begun.
    begun: usize,
    /// Reads and Atomic Operations in flight: they lie before `begun`.
    pub(super) in_flight: u32,
    /// Slots that are not free: unfinished ones, and those whose completion was not polled.
    pub(super) used: u32,
    pub(super) capacity: u32,
}

impl SendQueue {
    pub(super) fn new(capacity: u32) -> Self {
        SendQueue { wqes: VecDeque::new(), begun: 0, in_flight: 0, used: 0, capacity }
    }

    /// Nothing is unfinished.
    pub(super) fn is_empty(&self) -> bool {
        self.wqes.is_empty()
    }

    pub(super) fn push(&mut self, wr: SendWr) {
        self.used += 1;
        self.wqes.push_back(Wqe { wr, progress: Progress::Posted });
    }

    /// The message that is going out.
    pub(super) fn sending(&mut self) -> Option<&mut Wqe> {
        let last = self.begun.checked_sub(1)?;
        self.wqes.get_mut(last).filter(|wqe| matches!(wqe.progress, Progress::Sending(_)))
    }

    /// The next WQE to begin, if its fence and `ord` let it. A Read with ORD 0 is let through: it
    /// fails.
    pub(super) fn ready(&self, ord: u32) -> Option<&Wqe> {
        let wqe = self.wqes.get(self.begun)?;
        let fenced = match wqe.wr.fence {
            Fence::None => false,
            Fence::Read => self.in_flight > 0,
            Fence::Local => self.begun > 0,
        };
        let reads = matches!(wqe.wr.operation, Operation::Read { .. } | Operation::Atomic { .. });
        let stalled = reads && ord > 0 && self.in_flight >= ord;
        (!fenced && !stalled).then_some(wqe)
    }

    /// The ready WQE is begun.
    pub(super) fn begin(&mut self, progress: Progress) {
        if let Some(wqe) = self.wqes.get_mut(self.begun) {
            wqe.progress = progress;
            self.begun += 1;
        }
    }

    /// The request of the message that was going out is out: it waits for its response.
    pub(super) fn wait(&mut self) {
        if let Some(wqe) = self.sending() {
            wqe.progress = Progress::Waiting { arrived: 0 };
            self.in_flight += 1;
        }
    }

    /// The oldest Read or Atomic Operation in flight.
    pub(super) fn waiting(&mut self) -> Option<&mut Wqe> {
        if self.in_flight == 0 {
            return None;
        }
        self.wqes.iter_mut().take(self.begun).find(|wqe| matches!(wqe.progress, Progress::Waiting { .. }))
    }

    /// The oldest Read or Atomic Operation in flight is over.
    pub(super) fn answer(&mut self, status: CompletionStatus, original_value: Option<u64>) {
        if let Some(wqe) = self.waiting() {
            wqe.progress = Progress::Done { status, original_value };
            self.in_flight -= 1;
        }
    }

    /// The Read in flight that a Read Request, or what is left of one, belongs to is over; without
    /// one nothing is.
    pub(super) fn fail_read(&mut self, request: &ReadRequest, status: CompletionStatus) {
        let is_it = |wqe: &&mut Wqe| match (&wqe.wr.operation, &wqe.progress) {
            (Operation::Read { local, remote, .. }, Progress::Waiting { .. }) => {
                let passed = request.sink_to.wrapping_sub(local.tagged_offset);
                (local.stag, remote.stag) == (request.sink_stag, request.src_stag)
                    && remote.tagged_offset.wrapping_add(passed) == request.src_to
                    && passed.checked_add(u64::from(request.rdmardsz)) == Some(u64::from(local.length))
            }
            _ => false,
        };
        if let Some(wqe) = self.wqes.iter_mut().find(is_it) {
            wqe.progress = Progress::Done { status, original_value: None };
            self.in_flight -= 1;
        }
    }

    /// The message that was going out, or was to begin, is over.
    pub(super) fn finish(&mut self, status: CompletionStatus) {
        if let Some(wqe) = self.sending() {
            wqe.progress = Progress::Done { status, original_value: None };
        } else {
            self.begin(Progress::Done { status, original_value: None });
        }
    }

    /// The next WQE that may complete.
    pub(super) fn pop(&mut self) -> Option<Finished> {
        let Progress::Done { status, original_value } = self.wqes.front()?.progress else { return None };
        let wqe = self.wqes.pop_front()?;
        self.begun -= 1;
        Some(Finished { wr: wqe.wr, status, original_value })
    }

    /// All that is not over is over as Flushed.
    pub(super) fn flush(&mut self) {
        for wqe in &mut self.wqes {
            if !matches!(wqe.progress, Progress::Done { status, .. } if status != CompletionStatus::Success) {
                wqe.progress = Progress::Done { status: CompletionStatus::Flushed, original_value: None };
            }
        }
        self.begun = self.wqes.len();
        self.in_flight = 0;
    }
}
