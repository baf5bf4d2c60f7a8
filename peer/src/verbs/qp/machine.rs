//! Executes the state table: finds the entry for an event, and executes its actions. "Draft" means
//! draft-hilland-rddp-verbs-00.

use weft_core::wire::rdmap::{Terminate, TerminateError};

use super::table::{self, QpAction, QpEvent, QpState};
use super::{Qp, TerminateRecord};
use crate::ddp::QueueError;
use crate::hostile;
use crate::mpa::{Deframer, FpduError};
use crate::rdmap::{Fault, SegmentError};
use crate::time::Instant;
use crate::verbs::async_event::{AsyncEvent, EventId, Resource, terminate_code};
use crate::verbs::completion::{CompletedOperation, CompletionStatus, WorkCompletion};
use crate::verbs::cq::{Cqe, FreedSlot};
use crate::verbs::llp::{Fin, Llp};
use crate::verbs::shared::Shared;
use crate::verbs::slab::Key;
use weft_core::wire::ddp::queue;

/// One Queue Pair, its stream, and the data that all Queue Pairs share.
pub(in crate::verbs) struct Context<'a> {
    pub(in crate::verbs) now: Instant,
    pub(in crate::verbs) shared: &'a mut Shared,
    pub(in crate::verbs) qp: &'a mut Qp,
    pub(in crate::verbs) llp: Option<&'a mut Llp>,
}

/// Details of an event. Some actions need these details.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::verbs) struct Cause {
    pub(in crate::verbs) event: Option<EventId>,
    pub(in crate::verbs) terminate: Option<Terminate>,
    pub(in crate::verbs) status: Option<(CompletionStatus, FailedWork)>,
}

/// The Work Request whose completion reports an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum FailedWork {
    /// The Work Request that is being sent. If no Work Request is being sent, the Work Request that
    /// would begin next.
    Send,
    /// The oldest Read or Atomic Operation in flight.
    Answer,
    /// The receive for the message that is arriving.
    Receive,
}

/// An event of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum WireEvent {
    /// The peer sent FIN.
    Fin,
    /// Both directions are closed.
    Closed,
    /// The peer or the network reset the connection.
    Reset,
    /// The connection was lost, or a time-out expired.
    TimedOut,
}

impl Cause {
    pub(in crate::verbs) fn event(event: EventId) -> Self {
        Cause { event: Some(event), ..Cause::default() }
    }

    /// Creates the cause for an event and for a Terminate without headers.
    pub(in crate::verbs) fn reported(event: EventId, error: TerminateError) -> Self {
        Cause { event: Some(event), terminate: Some(bare(error)), status: None }
    }

    fn work(status: CompletionStatus, at: FailedWork) -> Self {
        let terminate = Some(bare(TerminateError::RDMAP_LOCAL_CATASTROPHIC));
        Cause { event: None, terminate, status: Some((status, at)) }
    }
}

fn bare(error: TerminateError) -> Terminate {
    Terminate { error, segment_length: None, ddp_header: None, read_request: None }
}

impl Context<'_> {
    /// Processes `event`. Returns false if the current state has no entry for `event`.
    pub(in crate::verbs) fn react(&mut self, event: QpEvent, cause: Cause) -> bool {
        let Some(entry) = table::find(self.qp.state, event) else { return false };
        for action in entry.actions {
            self.act(*action, &cause);
        }
        if entry.next == QpState::Terminate && entry.state != QpState::Terminate {
            self.qp.no_event_reported = cause.event.is_none();
        }
        self.qp.state = entry.next;
        true
    }

    fn act(&mut self, action: QpAction, cause: &Cause) {
        match action {
            // The caller executes these actions, because the caller has the necessary data.
            QpAction::ChangeAttributes | QpAction::Enqueue | QpAction::Attach | QpAction::Process => {}
            QpAction::CompleteInError => self.complete_in_error(cause),
            QpAction::Notify => self.notify(cause.event),
            QpAction::SendTerminate => {
                let mut terminate = cause.terminate.unwrap_or(bare(TerminateError::RDMAP_LOCAL_CATASTROPHIC));
                hostile::hook::terminate(&self.shared.deviations, &mut terminate);
                self.qp.terminate = Some(TerminateRecord { terminate, local: true });
                // A Responder that has received no valid FPDU must not send anything
                // (MPA-7.1.2-17).
                let silent = hostile::hook::conduct(&self.shared.deviations).skips_terminate;
                if !silent && self.llp.as_ref().is_some_and(|llp| llp.may_send && llp.fin != Fin::Sent) {
                    let mut octets = Vec::new();
                    terminate.emit(&mut octets);
                    self.qp.terminate_out = Some(octets.into());
                }
            }
            QpAction::CloseLlp if hostile::hook::conduct(&self.shared.deviations).keeps_open => {}
            QpAction::CloseLlp => {
                let deadline = self.now + self.shared.settings.close_timeout;
                if let Some(llp) = &mut self.llp {
                    if llp.fin == Fin::Open {
                        llp.fin = Fin::Wanted;
                    }
                    llp.deadline = Some(deadline);
                }
            }
            QpAction::ResetLlp => self.llp.iter_mut().for_each(|llp| llp.want_reset()),
            QpAction::Flush => {
                self.qp.sq.flush();
                self.drain();
                self.qp.response = None;
                self.qp.irrq.clear();
                self.flush_receives();
            }
            QpAction::FlushReceives => self.flush_receives(),
            QpAction::Detach => {
                self.qp.llp = None;
                if let Some(llp) = &mut self.llp {
                    llp.qp = None;
                    llp.deadline = None;
                    llp.over |= llp.is_closed();
                }
            }
        }
    }

    fn notify(&mut self, event: Option<EventId>) {
        if let Some(event) = event {
            self.shared.notify(AsyncEvent { resource: Resource::Qp(self.qp.handle, self.qp.id), event });
        }
    }

    fn complete_in_error(&mut self, cause: &Cause) {
        match cause.status {
            Some((status, FailedWork::Send)) => self.qp.sq.finish(status),
            Some((status, FailedWork::Answer)) => self.qp.sq.answer(status, None),
            Some((status, FailedWork::Receive)) => {
                if let Some(wr) = self.qp.receiving.take() {
                    self.complete_receive(receive(wr.wr_id, self.qp, status));
                }
            }
            None => {}
        }
    }

    /// Completes the finished Work Requests at the front of the Send Queue.
    pub(in crate::verbs) fn drain(&mut self) {
        while let Some(finished) = self.qp.sq.pop() {
            if finished.status == CompletionStatus::Success && !finished.wr.signaled {
                self.qp.free_send_slot();
                continue;
            }
            let completion = WorkCompletion {
                operation: CompletedOperation::from(&finished.wr.operation),
                original_value: finished.original_value,
                ..receive(finished.wr.wr_id, self.qp, finished.status)
            };
            let cqe = Cqe { completion, qp: self.qp.handle.key, frees: FreedSlot::Sq };
            let error = self.shared.complete(self.qp.sq_cq, cqe);
            self.qp.local_error = self.qp.local_error.or(error);
        }
    }

    pub(in crate::verbs) fn complete_receive(&mut self, completion: WorkCompletion) {
        let frees = self.qp.srq.map_or(FreedSlot::Rq, FreedSlot::Srq);
        let cqe = Cqe { completion, qp: self.qp.handle.key, frees };
        let mixed = |_: &Key| hostile::hook::conduct(&self.shared.deviations).mixes_shared_completions;
        let taker = self.qp.srq.filter(mixed).and_then(|key| self.shared.srqs.get(key)?.taker);
        let error = self.shared.complete(taker.unwrap_or(self.qp.rq_cq), cqe);
        self.qp.local_error = self.qp.local_error.or(error);
    }

    /// Reports the first receive as completed, although no message has used this receive. This
    /// violation is a [deviation](crate::hostile).
    pub(in crate::verbs) fn complete_startup(&mut self) {
        if let Some(first) = self.qp.receives.front() {
            self.complete_receive(receive(first.wr_id, self.qp, CompletionStatus::Success));
        }
    }

    /// Completes unfinished receives as Flushed. Receives that are still in an S-RQ do not belong
    /// to the Queue Pair (VERBS-6.3.6-7).
    fn flush_receives(&mut self) {
        let mut unfinished: Vec<_> = self.qp.receiving.take().into_iter().chain(self.qp.receives.drain(..)).collect();
        let flushed = |_: &Key| hostile::hook::conduct(&self.shared.deviations).flushes_shared_receives;
        if let Some(srq) = self.qp.srq.filter(flushed).and_then(|key| self.shared.srqs.get_mut(key)) {
            unfinished.extend(srq.posted.drain(..));
        }
        for wr in unfinished {
            self.complete_receive(receive(wr.wr_id, self.qp, CompletionStatus::Flushed));
        }
    }
}

/// The completion of a receive. The fields that only a successful receive has are empty.
pub(super) fn receive(wr_id: u64, qp: &Qp, status: CompletionStatus) -> WorkCompletion {
    WorkCompletion {
        wr_id,
        qp: qp.id,
        status,
        operation: CompletedOperation::Receive,
        octets: 0,
        invalidated: None,
        immediate: None,
        original_value: None,
        solicited: false,
    }
}

/// Errors, grouped by the place of detection.
impl Context<'_> {
    /// Handles the error of a local Work Request (draft Figure 23, lower part).
    pub(in crate::verbs) fn work_error(&mut self, status: CompletionStatus, at: FailedWork) {
        self.react(QpEvent::WorkError, Cause::work(status, at));
    }

    /// Handles a rejected inbound segment (draft Figure 23, upper part, and Figure 24).
    pub(in crate::verbs) fn segment_error(&mut self, error: &SegmentError) {
        let terminate = Some(error.terminate(terminate_code(error.fault)));
        let conduct = hostile::hook::conduct(&self.shared.deviations);
        if conduct.acts_after_error {
            return self.act(QpAction::SendTerminate, &Cause { terminate, ..Cause::default() });
        }
        if conduct.delays_terminate {
            self.qp.delayed = self.qp.delayed.or(terminate);
            return;
        }
        let status = match error.fault {
            Fault::Buffer(error) => Some(error.into()),
            Fault::Queue { qn: queue::SEND, error: QueueError::TooLong } => Some(CompletionStatus::BaseAndBounds),
            Fault::Invalidate(crate::memory::InvalidateError::InvalidStag) => Some(CompletionStatus::InvalidStag),
            Fault::Invalidate(_) => Some(CompletionStatus::InvalidateRefused),
            _ => None,
        };
        if let Some(status) = status {
            let status = Some((status, FailedWork::Receive));
            self.react(QpEvent::SendError, Cause { event: None, terminate, status });
        } else {
            let event = Some(EventId::of(error.fault));
            self.react(QpEvent::MessageError, Cause { event, terminate, status: None });
        }
    }

    /// Handles an invalid FPDU. The Terminate contains no headers of the FPDU, because they are
    /// unreliable.
    pub(in crate::verbs) fn fpdu_error(&mut self, error: FpduError) {
        let event = EventId::of_fpdu(&error);
        let code = crate::rdmap::StreamError::Fpdu(error).code();
        self.react(QpEvent::LlpErrorSpeaking, Cause::reported(event, code));
    }

    /// Ends the stream if a CQ rejected a completion or the S-RQ provided no receive (draft Figure
    /// 24, Local Errors).
    pub(in crate::verbs) fn check_local_error(&mut self) {
        if let Some(event) = self.qp.local_error
            && self.qp.state == QpState::Rts
        {
            self.local_error(event);
        }
    }

    /// Ends the stream because of a local error.
    pub(in crate::verbs) fn local_error(&mut self, event: EventId) {
        let cause = Cause::reported(event, TerminateError::RDMAP_CATASTROPHIC_STREAM);
        self.react(QpEvent::LlpErrorSpeaking, cause);
    }

    /// Ends the stream because the RNIC failed. The peer gets a Terminate. The event reports the
    /// failure of the RNIC, not a failure of the Queue Pair.
    pub(in crate::verbs) fn rnic_error(&mut self) {
        let terminate = Some(bare(TerminateError::RDMAP_CATASTROPHIC_GLOBAL));
        self.react(QpEvent::LlpErrorSpeaking, Cause { terminate, ..Cause::default() });
        self.qp.no_event_reported = false;
    }

    /// Handles the peer's Terminate, and stores it for Query QP.
    pub(in crate::verbs) fn terminate_received(&mut self, terminate: Terminate) {
        let event = if self.qp.state == QpState::Closing { EventId::BadClose } else { EventId::TerminateReceived };
        self.qp.terminate = Some(TerminateRecord { terminate, local: false });
        if let Some(request) = terminate.read_request {
            self.qp.sq.fail_read(&request, CompletionStatus::RemoteTermination);
        }
        self.react(QpEvent::TerminateReceived, Cause::event(event));
    }

    /// Handles an event of the stream.
    pub(in crate::verbs) fn wire_event(&mut self, event: WireEvent) {
        let state = self.qp.state;
        match event {
            WireEvent::Fin if state == QpState::Rts && self.qp.delayed.is_some() => {
                let terminate = self.qp.delayed.take();
                self.react(QpEvent::MessageError, Cause { terminate, ..Cause::default() });
            }
            WireEvent::Fin if state == QpState::Rts => {
                let ends_cleanly =
                    self.llp.as_ref().and_then(|llp| llp.deframer.as_ref()).is_none_or(Deframer::is_at_boundary);
                if ends_cleanly && self.qp.is_idle() && !self.qp.is_mid_message() {
                    self.react(QpEvent::LlpCloseDone, Cause::default());
                } else if !hostile::hook::conduct(&self.shared.deviations).ignores_fin_in_message {
                    let code = TerminateError::RDMAP_CATASTROPHIC_STREAM;
                    self.react(QpEvent::LlpCloseBusy, Cause::reported(EventId::BadLlpClose, code));
                }
            }
            WireEvent::Fin => {}
            WireEvent::Closed => {
                let cause =
                    if state == QpState::Closing { Cause::event(EventId::LlpCloseComplete) } else { Cause::default() };
                self.react(QpEvent::CloseComplete, cause);
            }
            WireEvent::Reset | WireEvent::TimedOut => {
                let event = match state {
                    QpState::Terminate => self.qp.no_event_reported.then_some(EventId::BadClose),
                    QpState::Rts if event == WireEvent::Reset => Some(EventId::LlpConnectionReset),
                    QpState::Rts | QpState::Closing => Some(EventId::LlpConnectionLost),
                    QpState::Idle | QpState::Error => None,
                };
                self.react(QpEvent::LlpFailure, Cause { event, ..Cause::default() });
            }
        }
    }
}
