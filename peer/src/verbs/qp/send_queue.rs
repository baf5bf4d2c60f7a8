//! The Send Queue: Work Requests begin and complete in the order of posting
//! (draft-hilland-rddp-verbs sections 8.2.1 and 8.2.2).
//!
//! This module selects the next Work Request, counts the Reads in flight, and decides which Work
//! Requests may complete. Other modules determine whether an operation succeeds. A WQE (Work Queue
//! Element) is a Work Request in the queue.

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
    /// The Work Request has not begun.
    Posted,
    /// The message or request is being sent.
    Sending(Segmenter),
    /// The request of a Read or Atomic Operation was sent. `arrived` is the number of bytes of the
    /// response that have arrived.
    Waiting { arrived: u32 },
    /// The operation is finished, but the Work Request has not completed yet.
    Done { status: CompletionStatus, original_value: Option<u64> },
}

/// A Work Request that has left the queue.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) wr: SendWr,
    pub(super) status: CompletionStatus,
    pub(super) original_value: Option<u64>,
}

#[derive(Debug)]
pub(super) struct SendQueue {
    wqes: VecDeque<Wqe>,
    /// Number of WQEs that have begun. They are at the front of `wqes`.
    begun: usize,
    /// Number of Reads and Atomic Operations in flight. Their WQEs are among the first `begun`
    /// WQEs.
    pub(super) in_flight: u32,
    /// Number of used slots: unfinished Work Requests, and Work Requests whose completion was not
    /// polled.
    pub(super) used: u32,
    pub(super) capacity: u32,
}

impl SendQueue {
    pub(super) fn new(capacity: u32) -> Self {
        SendQueue { wqes: VecDeque::new(), begun: 0, in_flight: 0, used: 0, capacity }
    }

    /// Returns whether the queue has no unfinished Work Requests.
    pub(super) fn is_empty(&self) -> bool {
        self.wqes.is_empty()
    }

    pub(super) fn push(&mut self, wr: SendWr) {
        self.used += 1;
        self.wqes.push_back(Wqe { wr, progress: Progress::Posted });
    }

    /// The WQE whose message is being sent.
    pub(super) fn sending(&mut self) -> Option<&mut Wqe> {
        let last = self.begun.checked_sub(1)?;
        self.wqes.get_mut(last).filter(|wqe| matches!(wqe.progress, Progress::Sending(_)))
    }

    /// The next WQE to begin, if its fence and `ord` allow its start. If `ord` is 0, a Read also
    /// starts, and then fails with an error.
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

    /// Begins the WQE that [`ready`](Self::ready) returned.
    pub(super) fn begin(&mut self, progress: Progress) {
        if let Some(wqe) = self.wqes.get_mut(self.begun) {
            wqe.progress = progress;
            self.begun += 1;
        }
    }

    /// Records that the request was sent completely. The WQE now waits for the response.
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

    /// Finishes the oldest Read or Atomic Operation in flight.
    pub(super) fn answer(&mut self, status: CompletionStatus, original_value: Option<u64>) {
        if let Some(wqe) = self.waiting() {
            wqe.progress = Progress::Done { status, original_value };
            self.in_flight -= 1;
        }
    }

    /// Finishes the Read in flight to which `request` belongs. `request` is for the complete Read
    /// or for its last part. Does nothing if no Read matches.
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

    /// Finishes the WQE whose message is being sent. If no message is being sent, finishes the WQE
    /// that would begin next.
    pub(super) fn finish(&mut self, status: CompletionStatus) {
        if let Some(wqe) = self.sending() {
            wqe.progress = Progress::Done { status, original_value: None };
        } else {
            self.begin(Progress::Done { status, original_value: None });
        }
    }

    /// Removes the WQE at the front if it is finished.
    pub(super) fn pop(&mut self) -> Option<Finished> {
        let Progress::Done { status, original_value } = self.wqes.front()?.progress else { return None };
        let wqe = self.wqes.pop_front()?;
        self.begun -= 1;
        Some(Finished { wr: wqe.wr, status, original_value })
    }

    /// Finishes all WQEs. A WQE that has failed keeps its status. Every other WQE gets the status
    /// Flushed.
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
