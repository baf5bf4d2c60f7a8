//! A connection's machine with its RNIC objects: outputs of the machine become work requests, and
//! completions become its inputs.

mod end;
mod memory;

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use tokio::net::TcpStream;

use self::memory::Private;
use super::ahead::Ahead;
use super::arrived::Arrived;
use super::ends::Ends;
use super::outgoing::Outgoing;
use super::posted::Posted;
use super::queue::SendQueue;
use super::spare::Spare;
use super::{SdpError, SdpSettings, queue};
use crate::driver::Device;
use crate::memory::{PdId, Stag};
use crate::sdp::{Connection, Event, OpId, PrivateBuffer, ReceiveEnd, ReceiveId, Role, SendEnd, Settings, Start};
use crate::sdp_rnic::{self, Step};
use crate::time::Instant;
use crate::verbs::{
    CompletedOperation, CqError, CqHandle, LateSegment, PostError, PostStatus, QpHandle, QpInit, Rnic, WorkCompletion,
};

/// How often completions are looked for before others have their turn.
const LOOKS: usize = 16;

/// The CQs of the Queue Pair's two queues. If TCP takes a Send, its completion is there at once, so
/// that the task, which waits for receives, need not be woken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cqs {
    pub(super) send: CqHandle,
    pub(super) receive: CqHandle,
}

/// One connection's engine.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) device: Device,
    /// The ends of the TCP connection.
    pub(super) ends: Ends,
    pub(super) machine: Connection,
    pub(super) settings: SdpSettings,
    pub(super) pd: PdId,
    pub(super) cqs: Cqs,
    pub(super) qp: QpHandle,
    /// What was written and is not out.
    pub(super) outgoing: Outgoing,
    receives: HashMap<ReceiveId, Posted>,
    private: HashMap<PrivateBuffer, Private>,
    /// What the peer may read of sends.
    exposed: HashMap<u32, Stag>,
    /// The Read in progress, and its sink.
    reading: Option<(OpId, ReceiveId)>,
    next_receive: u64,
    ahead: Ahead,
    /// Memory that nothing waits in.
    pub(super) spare: Spare,
    pub(super) arrived: Arrived,
    /// The peer sends no more.
    pub(super) ended: bool,
    /// How the connection ended.
    pub(super) graceful: Option<bool>,
    /// The cause of the end below SDP, unless it was graceful.
    cause: Option<String>,
    queue: SendQueue,
    /// Work requests that are through, while they are looked at.
    completions: Vec<WorkCompletion>,
    pub(super) streaming: VecDeque<Vec<u8>>,
    pub(super) start: Option<Start>,
    /// TCP is to be ended; by a reset.
    pub(super) hang_up: Option<bool>,
    pub(super) error: Option<SdpError>,
    pub(super) opened: bool,
    /// The connection rests: the port to connect to; none where the peer connects.
    pub(super) reconnect: Option<Option<u16>>,
    /// The connection that the peer made, and whose it is.
    pub(super) successor: Option<(Device, TcpStream)>,
    /// How often the connection went on over another one that the peer made.
    pub(super) moves: u64,
    /// The task is over.
    pub(super) gone: bool,
    /// When its task wakes by itself.
    pub(super) watched: Option<Instant>,
    /// Its task waits for what the Send Queue completes, too.
    pub(super) watches_sends: bool,
    /// Something has moved since its task polled last.
    pub(super) busy: bool,
    /// Octets that were copied for Bcopy, and for who reads and writes.
    pub(super) copied: u64,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Tasks that wait for the connection to open or to end.
    pub(super) watchers: Vec<Waker>,
    /// Nobody reads any more.
    pub(super) discards: bool,
    /// Octets that were written never got out.
    pub(super) lost: bool,
}

impl Engine {
    pub(super) fn new(
        device: &Device,
        now: Instant,
        role: Role,
        settings: SdpSettings,
        ends: Ends,
    ) -> Result<Self, SdpError> {
        let pd = device.verbs(Rnic::allocate_pd)?;
        let (cqs, qp) = queue_pair(device, pd, &settings.sdp)?;
        let deviations = device.verbs(|rnic| rnic.deviations().clone());
        let machine = Connection::deviating(now, role, settings.sdp, deviations);
        Ok(Engine {
            device: device.clone(),
            ends,
            machine,
            settings,
            pd,
            cqs,
            qp,
            outgoing: Outgoing::default(),
            receives: HashMap::new(),
            private: HashMap::new(),
            exposed: HashMap::new(),
            reading: None,
            next_receive: 0,
            ahead: Ahead::default(),
            spare: Spare::default(),
            arrived: Arrived::new(settings.oob_inline),
            ended: false,
            graceful: None,
            cause: None,
            queue: SendQueue::default(),
            completions: Vec::new(),
            streaming: VecDeque::new(),
            start: None,
            hang_up: None,
            error: None,
            opened: false,
            reconnect: None,
            successor: None,
            moves: 0,
            gone: false,
            watched: None,
            watches_sends: false,
            busy: false,
            copied: 0,
            reader: None,
            writer: None,
            watchers: Vec::new(),
            discards: false,
            lost: false,
        })
    }

    /// Does all that the machine wants done.
    pub(super) fn run(&mut self, now: Instant) {
        self.settle(now);
        self.queue.post(&self.device, self.qp);
    }

    /// The same, and continues with what that completes. `false`: there is more to look at.
    pub(super) fn run_on(&mut self, now: Instant) -> bool {
        for _ in 0..LOOKS {
            self.run(now);
            if !self.take_completions(now) {
                return true;
            }
        }
        false
    }

    /// There is something to do that only its task does: a move, an end, an earlier deadline, a
    /// wait for TCP.
    pub(super) fn wants_task(&self) -> bool {
        let sooner = match (self.machine.poll_timeout(), self.watched) {
            (Some(deadline), Some(watched)) => deadline < watched,
            (deadline, _) => deadline.is_some(),
        };
        let unwatched = !self.is_idle() && !self.watches_sends;
        sooner || unwatched || self.machine.is_over() || self.machine.is_suspended()
    }

    /// Takes what has completed; `false` when nothing has. What it leads to is not posted yet.
    fn take_completions(&mut self, now: Instant) -> bool {
        // Send completions come first: an answer cannot arrive before its message was sent.
        let Cqs { send, receive } = self.cqs;
        self.take_completions_of(now, &[send, receive])
    }

    fn take_completions_of(&mut self, now: Instant, cqs: &[CqHandle]) -> bool {
        let mut completions = std::mem::take(&mut self.completions);
        self.device.verbs(|rnic| {
            for cq in cqs {
                completions.extend(std::iter::from_fn(|| rnic.poll_cq(*cq).ok()));
            }
        });
        let any = !completions.is_empty();
        self.busy |= any;
        for completion in completions.drain(..) {
            self.completed(now, &completion);
            // Receives come before the next message, which would be held for them otherwise.
            self.settle(now);
        }
        self.completions = completions;
        any
    }

    /// Does all that the machine wants done, but for posting to the Send Queue.
    fn settle(&mut self, now: Instant) {
        // A receive that is posted may take what waits in Private Buffers, and leave room for the
        // next; what nobody reads leaves it, too.
        loop {
            let posted = self.post_receives();
            self.drain(now);
            if !self.discard() && !posted {
                return;
            }
        }
    }

    /// Performs all steps that are due now.
    fn drain(&mut self, now: Instant) {
        loop {
            let (machine, mut buffers) = self.parts();
            let Some(step) = sdp_rnic::step(now, machine, &mut buffers) else { break };
            if let Err(error) = step.and_then(|step| self.act(step)) {
                self.error.get_or_insert(error);
                self.machine.handle_disconnected(now);
            }
        }
    }

    fn act(&mut self, step: Step) -> Result<(), SdpError> {
        match step {
            Step::Done => {}
            Step::Send { wr, head } => self.queue.push(&self.device, self.pd, wr, head)?,
            Step::Receive(wr) => match self.device.post_receive(self.qp, [wr]) {
                // The connection has ended; messages that arrived before are reported first.
                Ok(_) | Err(PostError { status: PostStatus::InvalidQpState, .. }) => {}
                Err(error) => return Err(error.into()),
            },
            Step::Streaming(octets) => self.streaming.push_back(octets),
            Step::Start(start) => self.start = Some(*start),
            Step::Event(event) => self.event(event),
            Step::Disconnect { abortive } => {
                self.hang_up = Some(abortive);
                if abortive {
                    // From here on, the memory belongs to the reader. The RNIC must not place more
                    // data there.
                    let _ = self.device.destroy_qp(self.qp);
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Opened(_) => {
                self.opened = true;
                self.wake();
            }
            Event::Refused(refusal) => _ = self.error.get_or_insert(refusal.into()),
            Event::Sent { send, end, .. } => {
                self.lost |= end == SendEnd::Aborted;
                self.outgoing.over(&self.device, send, &mut self.spare);
                self.writer.take().into_iter().for_each(Waker::wake);
            }
            Event::Received { receive, octets, urgent, end } => {
                if let Some(posted) = self.receives.remove(&receive) {
                    let octets = usize::try_from(octets).unwrap_or(usize::MAX).min(posted.len);
                    self.ahead.ended(posted.len, octets, self.least_advertised());
                    let (device, most, spare) = (&self.device, self.settings.receives, &mut self.spare);
                    let mut parts = posted.into_parts(device, octets, spare).into_iter().peekable();
                    while let Some(part) = parts.next() {
                        let urgent = urgent && parts.peek().is_none();
                        self.copied += self.arrived.push(device, part, urgent, most, spare) as u64;
                    }
                }
                self.ended |= end != ReceiveEnd::More;
                self.reader.take().into_iter().for_each(Waker::wake);
                if urgent || self.ended {
                    self.watchers.drain(..).for_each(Waker::wake);
                }
            }
            Event::UrgentPending => {
                self.arrived.announce();
                self.watchers.drain(..).for_each(Waker::wake);
            }
            Event::Closed { graceful, violation } => {
                self.graceful = Some(graceful);
                if !graceful {
                    self.cause = self.cause_of_end();
                }
                if let Some(violation) = violation {
                    self.error.get_or_insert(violation.into());
                }
                self.wake();
            }
            Event::Suspended { reconnect } => {
                self.reconnect = Some(reconnect);
                self.watchers.drain(..).for_each(Waker::wake);
            }
            Event::Resumed(_) => {
                self.moves += u64::from(!self.ends.connected);
                self.watchers.drain(..).for_each(Waker::wake);
            }
            Event::PeerClosed | Event::ModeChanged { .. } | Event::Resized(_) => {}
        }
    }

    /// Octets up to which a receive is not advertised.
    fn least_advertised(&self) -> usize {
        usize::try_from(self.machine.sink_threshold()).unwrap_or(usize::MAX)
    }

    /// Wakes this task when something happens that is not only a reader's or a writer's. A task
    /// that registers again is not woken twice.
    pub(super) fn watch(&mut self, task: &Waker) {
        if !self.watchers.iter().any(|known| known.will_wake(task)) {
            self.watchers.push(task.clone());
        }
    }

    pub(super) fn wake(&mut self) {
        let users = self.reader.take().into_iter().chain(self.writer.take());
        users.chain(self.watchers.drain(..)).for_each(Waker::wake);
    }

    /// Nothing is queued or in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// A wait for a completion is over.
    pub(super) fn took(&mut self, now: Instant, completion: Result<WorkCompletion, CqError>) {
        if matches!(&completion, Ok(completion) if completion.operation == CompletedOperation::Receive) {
            // Send completions come first: an answer cannot arrive before its message was sent.
            self.take_completions_of(now, &[self.cqs.send]);
        }
        match completion {
            Ok(completion) => self.completed(now, &completion),
            Err(_) => self.machine.handle_disconnected(now),
        }
    }

    /// A work request has completed.
    fn completed(&mut self, now: Instant, completion: &WorkCompletion) {
        if completion.operation != CompletedOperation::Receive {
            self.queue.completed();
        }
        let (machine, mut buffers) = self.parts();
        sdp_rnic::complete(now, machine, &mut buffers, completion);
    }

    /// The connection has another Queue Pair: nothing is queued, and start-up comes.
    pub(super) fn start_anew(&mut self) {
        self.queue.clear();
        self.streaming.clear();
        (self.reading, self.start, self.hang_up, self.reconnect) = (None, None, None, None);
    }

    /// Gives the RNIC's objects back. Octets that have arrived stay until they are read, in Private
    /// Buffers too.
    pub(super) fn tear_down(&mut self) {
        // Each can be gone already only with the RNIC itself.
        let _ = self.device.destroy_qp(self.qp);
        let _ = self.device.destroy_cq(self.cqs.send);
        let _ = self.device.destroy_cq(self.cqs.receive);
    }
}

/// A Queue Pair as such a connection needs it, and its CQs.
pub(super) fn queue_pair(device: &Device, pd: PdId, sdp: &Settings) -> Result<(Cqs, QpHandle), SdpError> {
    // A change of size may double the Private Buffers for a while.
    let receives = u32::from(sdp.bufs).saturating_mul(4).max(64);
    let cqs = Cqs { send: device.create_cq(queue::SENDS)?, receive: device.create_cq(receives)? };
    let init = QpInit {
        max_sq_wrs: queue::SENDS,
        max_rq_wrs: receives,
        ord: sdp.ord.into(),
        ird: sdp.ird.into(),
        // The peer's updates may cross the last DisConn, and TCP still have octets for it.
        late: LateSegment::Drop,
        ..QpInit::new(pd, cqs.send, cqs.receive)
    };
    let (qp, _, _) = device.verbs(|rnic| rnic.create_qp(init, None))?;
    Ok((cqs, qp))
}

#[cfg(test)]
mod tests;
