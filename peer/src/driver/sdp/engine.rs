//! A connection's SDP state machine with its RNIC objects. Outputs of the state machine become Work
//! Requests. Completions become inputs of the state machine.

mod end;
mod memory;

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use tokio::net::TcpStream;

use self::memory::Private;
use super::addresses::Addresses;
use super::arrived::Arrived;
use super::outgoing::Outgoing;
use super::posted::Posted;
use super::queue::SendQueue;
use super::receive_sizer::ReceiveSizer;
use super::spare_memory::SpareMemory;
use super::{SdpError, SdpSettings, queue};
use crate::driver::Device;
use crate::memory::{PdId, Stag};
use crate::sdp::{
    Connection, Event, OpId, PrivateBuffer, ReceiveId, ReceiveOutcome, Role, SendOutcome, Settings, Start,
};
use crate::sdp_rnic::{self, Step};
use crate::time::Instant;
use crate::verbs::{
    CompletedOperation, CqError, CqHandle, LateSegment, PostError, PostStatus, QpHandle, QpInit, WorkCompletion,
};

/// Maximum number of polls for completions before other tasks may run.
const MAX_POLLS: usize = 16;

/// The CQs of the Queue Pair's two queues. If TCP accepts a Send at once, the completion is at once
/// in the send CQ, and the caller can poll it. The connection's task usually waits only for
/// receives, so this completion does not wake the task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cqs {
    pub(super) send: CqHandle,
    pub(super) receive: CqHandle,
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) device: Device,
    /// The addresses of the TCP connection.
    pub(super) addresses: Addresses,
    pub(super) machine: Connection,
    pub(super) settings: SdpSettings,
    pub(super) pd: PdId,
    pub(super) cqs: Cqs,
    pub(super) qp: QpHandle,
    /// Data that is written and not sent yet.
    pub(super) outgoing: Outgoing,
    receives: HashMap<ReceiveId, Posted>,
    private: HashMap<PrivateBuffer, Private>,
    /// Regions of written data that the peer may read, by STag.
    exposed: HashMap<u32, Stag>,
    /// The RDMA Read in progress, and the receive that it fills.
    reading: Option<(OpId, ReceiveId)>,
    next_receive: u64,
    receive_sizer: ReceiveSizer,
    /// Unused memory.
    pub(super) spare: SpareMemory,
    pub(super) arrived: Arrived,
    /// The peer sends no more data.
    pub(super) ended: bool,
    /// Whether the connection ended with a graceful close. `None` while it has not ended.
    pub(super) graceful: Option<bool>,
    /// The cause of the end, if a layer below SDP ended the connection.
    cause: Option<String>,
    queue: SendQueue,
    /// Completions that were polled and are being handled. Empty while no completion is being
    /// handled.
    completions: Vec<WorkCompletion>,
    pub(super) streaming: VecDeque<Vec<u8>>,
    pub(super) start: Option<Start>,
    /// Set if TCP has to be closed. `true` means a reset, and `false` means a graceful close.
    pub(super) disconnect: Option<bool>,
    pub(super) error: Option<SdpError>,
    pub(super) opened: bool,
    /// Set while the connection is suspended. The inner value is the port that this side connects
    /// to, or `None` if the peer connects.
    pub(super) reconnect: Option<Option<u16>>,
    /// The new TCP connection that the peer opened, and the device for this connection.
    pub(super) successor: Option<(Device, TcpStream)>,
    /// Number of times that the connection resumed on a TCP connection opened by the peer.
    pub(super) moves: u64,
    /// The connection's task has finished.
    pub(super) gone: bool,
    /// The deadline at which the connection's task wakes without an event.
    pub(super) watched: Option<Instant>,
    /// The connection's task waits for completions of the Send Queue too.
    pub(super) watches_sends: bool,
    /// A Work Request has completed since the task last checked for unused memory.
    pub(super) busy: bool,
    /// Number of bytes that this side copied: from the user, to the user, or between its own
    /// buffers for Bcopy.
    pub(super) copied: u64,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Tasks that wait for the connection to open, to end, or to change in another way.
    pub(super) watchers: Vec<Waker>,
    /// Reading has ended, so arriving data is dropped.
    pub(super) discards: bool,
    /// Some written bytes were never sent.
    pub(super) lost: bool,
}

impl Engine {
    pub(super) fn new(
        device: &Device,
        now: Instant,
        role: Role,
        settings: SdpSettings,
        addresses: Addresses,
    ) -> Result<Self, SdpError> {
        let pd = device.verbs(|rnic| rnic.memory_mut().allocate_pd())?;
        let (cqs, qp) = queue_pair(device, pd, &settings.sdp)?;
        let deviations = device.verbs(|rnic| rnic.deviations().clone());
        let machine = Connection::deviating(now, role, settings.sdp, deviations);
        Ok(Engine {
            device: device.clone(),
            addresses,
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
            receive_sizer: ReceiveSizer::default(),
            spare: SpareMemory::default(),
            arrived: Arrived::new(settings.oob_inline),
            ended: false,
            graceful: None,
            cause: None,
            queue: SendQueue::default(),
            completions: Vec::new(),
            streaming: VecDeque::new(),
            start: None,
            disconnect: None,
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

    /// Performs everything that the state machine requires now.
    pub(super) fn run(&mut self, now: Instant) {
        self.settle(now);
        self.queue.post(&self.device, self.qp);
    }

    /// Acts like [`run`](Self::run), and also handles the completions that follow. Returns `false`
    /// if this call reached [`MAX_POLLS`].
    pub(super) fn run_on(&mut self, now: Instant) -> bool {
        for _ in 0..MAX_POLLS {
            self.run(now);
            if !self.take_completions(now) {
                return true;
            }
        }
        false
    }

    /// Returns whether there is work that only the connection's task does. Such work is a move of
    /// the connection, its end, an earlier deadline than `watched`, or a wait for TCP.
    pub(super) fn wants_task(&self) -> bool {
        let deadline = self.machine.poll_timeout();
        let sooner = deadline.is_some_and(|deadline| self.watched.is_none_or(|watched| deadline < watched));
        let unwatched = !self.is_idle() && !self.watches_sends;
        sooner || unwatched || self.machine.is_over() || self.machine.is_suspended()
    }

    /// Handles the completions that are available. Returns `false` if no completion is available.
    /// This function does not post the resulting Work Requests to the Send Queue.
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
            // Post new receives before the next message is handled. Without a receive, the message
            // would stay in its Private Buffer.
            self.settle(now);
        }
        self.completions = completions;
        any
    }

    /// Performs everything that the state machine requires now, but does not post to the Send
    /// Queue.
    fn settle(&mut self, now: Instant) {
        // Data can wait in Private Buffers. A new receive can take this data and end at once. Then
        // another receive can be posted. After unread data is discarded, another receive can also
        // be posted.
        loop {
            let posted = self.post_receives();
            self.drain(now);
            if !self.discard() && !posted {
                return;
            }
        }
    }

    /// Performs all steps of the state machine that are due now.
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
                // The connection has ended. Messages that arrived before the end are still
                // reported.
                Ok(_) | Err(PostError { status: PostStatus::InvalidQpState, .. }) => {}
                Err(error) => return Err(error.into()),
            },
            Step::Streaming(octets) => self.streaming.push_back(octets),
            Step::Start(start) => self.start = Some(*start),
            Step::Event(event) => self.event(event),
            Step::Disconnect { abortive } => {
                self.disconnect = Some(abortive);
                if abortive {
                    // The memory now belongs to the reader. The RNIC must not place more data in
                    // it.
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
                self.lost |= end == SendOutcome::Aborted;
                self.outgoing.over(&self.device, send, &mut self.spare);
                self.writer.take().into_iter().for_each(Waker::wake);
            }
            Event::Received { receive, octets, urgent, end } => {
                if let Some(posted) = self.receives.remove(&receive) {
                    let octets = usize::try_from(octets).unwrap_or(usize::MAX).min(posted.len);
                    self.receive_sizer.ended(posted.len, octets, self.least_advertised());
                    let (device, most, spare) = (&self.device, self.settings.receives, &mut self.spare);
                    let mut parts = posted.into_parts(device, octets, spare).into_iter().peekable();
                    while let Some(part) = parts.next() {
                        let urgent = urgent && parts.peek().is_none();
                        self.copied += self.arrived.push(device, part, urgent, most, spare) as u64;
                    }
                }
                self.ended |= end != ReceiveOutcome::More;
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
                self.moves += u64::from(!self.addresses.connected);
                self.watchers.drain(..).for_each(Waker::wake);
            }
            Event::PeerClosed | Event::ModeChanged { .. } | Event::Resized(_) => {}
        }
    }

    /// Returns the largest size in bytes at which a receive is not advertised.
    fn least_advertised(&self) -> usize {
        usize::try_from(self.machine.sink_threshold()).unwrap_or(usize::MAX)
    }

    /// Registers `task`. The next event wakes the task, except events that concern only reading or
    /// writing. A task that registers again is not woken twice.
    pub(super) fn watch(&mut self, task: &Waker) {
        if !self.watchers.iter().any(|known| known.will_wake(task)) {
            self.watchers.push(task.clone());
        }
    }

    pub(super) fn wake(&mut self) {
        let users = self.reader.take().into_iter().chain(self.writer.take());
        users.chain(self.watchers.drain(..)).for_each(Waker::wake);
    }

    /// Returns whether no Work Request is queued or in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Handles the result of a wait for a completion.
    pub(super) fn handle_completion(&mut self, now: Instant, completion: Result<WorkCompletion, CqError>) {
        if matches!(&completion, Ok(completion) if completion.operation == CompletedOperation::Receive) {
            // Send completions come first: an answer cannot arrive before its message was sent.
            self.take_completions_of(now, &[self.cqs.send]);
        }
        match completion {
            Ok(completion) => self.completed(now, &completion),
            Err(_) => self.machine.handle_disconnected(now),
        }
    }

    /// Handles the completion of a Work Request.
    fn completed(&mut self, now: Instant, completion: &WorkCompletion) {
        if completion.operation != CompletedOperation::Receive {
            self.queue.completed();
        }
        let (machine, mut buffers) = self.parts();
        sdp_rnic::complete(now, machine, &mut buffers, completion);
    }

    /// Resets the state that belongs to a Queue Pair, before start-up on a new Queue Pair.
    pub(super) fn start_anew(&mut self) {
        self.queue.clear();
        self.streaming.clear();
        (self.reading, self.start, self.disconnect, self.reconnect) = (None, None, None, None);
    }

    /// Destroys the Queue Pair and the CQs. Received bytes, including the bytes in Private Buffers,
    /// stay until they are read.
    pub(super) fn tear_down(&mut self) {
        // The calls fail only if the RNIC itself is gone.
        let _ = self.device.destroy_qp(self.qp);
        let _ = self.device.destroy_cq(self.cqs.send);
        let _ = self.device.destroy_cq(self.cqs.receive);
    }
}

/// Creates a Queue Pair for an SDP connection, and its CQs.
pub(super) fn queue_pair(device: &Device, pd: PdId, sdp: &Settings) -> Result<(Cqs, QpHandle), SdpError> {
    // While the Private Buffers are resized, their number can be twice `bufs`. The queues have room
    // for twice that number.
    let receives = u32::from(sdp.bufs).saturating_mul(4).max(64);
    let cqs = Cqs { send: device.create_cq(queue::SENDS)?, receive: device.create_cq(receives)? };
    let init = QpInit {
        max_sq_wrs: queue::SENDS,
        max_rq_wrs: receives,
        ord: sdp.ord.into(),
        ird: sdp.ird.into(),
        // The RNIC drops segments that arrive after this side closes, for example the peer's credit
        // updates. If the RNIC reset the connection instead, bytes that TCP has not sent yet would
        // be lost.
        late: LateSegment::Drop,
        ..QpInit::new(pd, cqs.send, cqs.receive)
    };
    let (qp, _, _) = device.verbs(|rnic| rnic.create_qp(init, None))?;
    Ok((cqs, qp))
}

#[cfg(test)]
mod tests;
