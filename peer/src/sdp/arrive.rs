//! Inputs of a connection: bytes in streaming mode, messages, completions, the end of TCP, and
//! time. Section numbers are those of the SDP draft.

use super::connection::{Arrival, Connection};
use super::control::{Control, queue_answers};
use super::hello::{self, Agreed, Refusal};
use super::inbound::Inbound;
use super::op::Op;
use super::phase::Phase;
use super::role::Role;
use super::startup::Progress;
use super::{Event, OpId, Output, PrivateBuffer, Start, Violation};
use crate::hostile::hook;
use crate::time::Instant;

/// Maximum number of waiting answers, without the answers to SrcAvails. The counted answers are
/// SinkCancelAck, the end of a SrcAvailCancel, RdmaWrCompl and the first update. In addition, two
/// answers can wait for each SrcAvail. If more answers wait, the peer has sent requests too early
/// (sections 9.5.4, 9.5.5, 11.3).
const MAX_OTHER_ANSWERS: usize = 8;

/// Inputs.
impl Connection {
    /// Processes bytes that TCP delivered in streaming mode. After [`Output::Start`], the bytes
    /// from TCP belong to the RNIC.
    pub fn handle_streaming(&mut self, now: Instant, octets: &[u8]) {
        let arrived;
        let octets = match &mut self.hostile {
            Some(hostile) => {
                arrived = hook::sdp_arrived(hostile, self.order, octets, None).0;
                &arrived
            }
            None => octets,
        };
        let Phase::Starting(startup) = &mut self.phase else { return };
        let progress = startup.handle_octets(octets);
        if startup.waits_for_request() {
            if self.settings.request_wait.is_zero() {
                return self.no_request(now);
            }
            self.credit_deadline = Some(now + self.settings.request_wait);
            return;
        }
        self.progress(now, progress);
    }

    /// Continues start-up if no Request arrived after the Hello.
    fn no_request(&mut self, now: Instant) {
        self.credit_deadline = None;
        let Phase::Starting(startup) = &mut self.phase else { return };
        let mut request = Vec::new();
        let progress = startup.no_request(&mut request);
        if !request.is_empty() {
            self.out.push_back(Output::Streaming(request));
        }
        self.progress(now, Ok(progress));
    }

    /// Performs the actions that follow from the progress of start-up.
    fn progress(&mut self, now: Instant, progress: Result<Progress, Refusal>) {
        match progress {
            Err(refusal) => self.refuse(refusal),
            Ok(Progress::Rejected { reply, refusal }) => {
                self.out.push_back(Output::Streaming(reply));
                self.out.push_back(Output::Event(Event::Refused(refusal)));
                // This side does not reset TCP, because a reset could overtake the Reply.
                self.end(true, None, Some(false));
            }
            Ok(Progress::Waiting) => {}
            Ok(Progress::Started { start, agreed, acknowledged }) => self.started(now, *start, agreed, acknowledged),
        }
    }

    /// Starts iWARP. `agreed` is set if the peer's Hello or HelloAck is known. `acknowledged` is
    /// set if the HelloAck has been exchanged as private data.
    fn started(&mut self, now: Instant, start: Start, agreed: Option<Agreed>, acknowledged: bool) {
        let Phase::Starting(startup) = &self.phase else { return };
        let size = agreed.map(|agreed| startup.recv_size(&agreed));
        if let (Role::Accepting, Some(size)) = (self.role, size) {
            self.post_buffers(size);
        }
        self.out.push_back(Output::Start(Box::new(start)));
        match (self.role, agreed) {
            (Role::Accepting, Some(agreed)) => {
                if !acknowledged {
                    let head = hello::hello_ack(&self.settings, self.pool.size, &agreed);
                    let (op, payload, invalidate) = (None, None, None);
                    self.out.push_back(Output::Send { op, head, payload, solicited: true, invalidate });
                    self.credits.kept_back = 1;
                    self.credit_deadline = Some(now + self.settings.credit_wait);
                }
                self.open(agreed);
            }
            (Role::Connecting, Some(agreed)) => {
                self.open(agreed);
                // The peer is MPA Responder, and must not send before it has received an FPDU. This
                // side sends an update as that FPDU.
                self.control.push_back(Control::Update);
            }
            _ => self.phase = Phase::WaitHelloAck,
        }
    }

    /// Opens the connection after Hello and HelloAck.
    pub(super) fn open(&mut self, agreed: Agreed) {
        self.startup_deadline = None;
        self.order = agreed.order;
        self.peer_max_adverts = agreed.peer_max_adverts;
        self.resize.begin(agreed.peer_recv_size);
        self.credits.begin(self.settings.bufs, agreed.peer_bufs, self.settings.first_mseq);
        self.credits.posted = self.pool.announced();
        self.phase = Phase::Open;
        if self.settings.first_mseq == 0 {
            // A peer that counts from 0 takes MSeqAck 0 as the acknowledgement of its first
            // message. So the peer sends one message more than Bufs before this side acknowledges
            // anything else.
            self.pool.post_unannounced(&mut self.out);
        }
        let resumed = self.suspension.restarted;
        self.out.push_back(Output::Event(if resumed { Event::Resumed(agreed) } else { Event::Opened(agreed) }));
    }

    /// Ends start-up with a reset of TCP. No message reports the reason to the peer.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.out.push_back(Output::Event(Event::Refused(refusal)));
        self.end(true, None, Some(true));
    }

    /// Processes a message of the peer. The message is at the start of the Private Buffer `buffer`,
    /// and `octets` is the complete message.
    pub fn handle_message(&mut self, now: Instant, buffer: PrivateBuffer, octets: &[u8], arrival: Arrival) {
        // Messages fill Private Buffers in the order of posting. A completion that is out of this
        // order belongs to another TCP connection.
        if !self.pool.filled(buffer) || self.is_over() {
            return;
        }
        self.credits.posted = self.pool.announced();
        let judged = match &mut self.hostile {
            Some(hostile) => {
                let (octets, invalidated) = hook::sdp_arrived(hostile, self.order, octets, arrival.invalidated);
                Inbound { connection: self, now, buffer, arrival: Arrival { invalidated } }.process(&octets)
            }
            None => Inbound { connection: self, now, buffer, arrival }.process(octets),
        };
        if let Err(violation) = judged
            && !self.hostile.as_ref().is_some_and(|hostile| hook::sdp_overlooks(&hostile.deviations, &violation))
        {
            self.begin_abort(now, Some(violation));
        }
        self.advance();
        self.drop_needless_answers();
        if self.close.is_aborting() {
            // This side sends nothing after AbortConn.
            self.control.retain(|control| *control == Control::AbortConn);
        } else if self.control.len() > MAX_OTHER_ANSWERS + 2 * usize::from(self.settings.max_adverts) {
            self.begin_abort(now, Some(Violation::Unacknowledged(self.control.len())));
        }
        self.watch_for_deadlock(now);
    }

    /// Processes the completion of a Work Request. If `ok` is false, the Work Request failed
    /// because the LLP connection has ended or is ending.
    pub fn handle_completed(&mut self, now: Instant, op: OpId, ok: bool) {
        let Some(kind) = self.ops.complete(op).filter(|_| !self.is_over()) else { return };
        if !ok {
            // The LLP connection is not valid, so this side sends nothing more (section 8.2.2).
            return self.connection_failed();
        }
        match kind {
            Op::Payload => self.source.completed(),
            Op::Read => {
                let answer = self.sink.read_completed(op, &self.settings.policy, &mut self.out);
                queue_answers(&mut self.control, answer);
            }
            Op::Write => {
                let done = self.source.written(op);
                self.control.extend(done.iter().map(|it| Control::RdmaWrCompl { len: it.len, stag: it.stag }));
                if self.source.sink_cancel && self.source.writing.is_empty() {
                    self.source.sink_cancel = false;
                    self.control.push_back(Control::SinkCancelAck);
                }
            }
            Op::DisConn => self.close.dis_conn_sent(now + self.settings.close_linger),
            Op::AbortConn => self.abort_sent(),
            Op::SuspCommAck => self.suspend_tcp(now, Role::Connecting, self.suspension.answers),
        }
        self.advance();
        self.drop_needless_answers();
        self.watch_for_deadlock(now);
    }

    /// Processes the end of the LLP connection: the peer closed or reset the connection, or the
    /// connection was lost.
    pub fn handle_disconnected(&mut self, _now: Instant) {
        // During a suspension, the end of TCP is not an error.
        if self.is_over() || self.is_suspended() {
            return;
        }
        let refusal = match &self.phase {
            Phase::Starting(startup) => Some(startup.cut_short()),
            Phase::WaitHelloAck => Some(Refusal::Rejected),
            Phase::Open | Phase::Suspended | Phase::Closed => None,
        };
        self.out.extend(refusal.map(|refusal| Output::Event(Event::Refused(refusal))));
        self.end(!self.close.is_graceful(), None, None);
    }

    /// Processes the timers that have expired. [`poll_timeout`](Self::poll_timeout) returns the
    /// time at which to call this function.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |deadline: &mut Option<Instant>| deadline.take_if(|deadline| *deadline <= now).is_some();
        if due(&mut self.startup_deadline) {
            return self.refuse(Refusal::TimedOut);
        }
        if due(&mut self.credit_deadline) {
            self.credits.kept_back = 0;
            if matches!(&self.phase, Phase::Starting(startup) if startup.waits_for_request()) {
                self.no_request(now);
            }
        }
        if due(&mut self.deadlock_deadline) && self.is_deadlocked() {
            queue_answers(&mut self.control, self.sink.request_data());
        }
        self.credit_request.advance(now);
        self.echo.advance(now);
        if due(&mut self.close.deadline) {
            self.close_timed_out(now);
        }
        self.advance();
        self.drop_needless_answers();
    }
}
