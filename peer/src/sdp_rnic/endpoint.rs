//! One side of a connection: the SDP state machine, its own software RNIC, and memory that payload
//! is copied to and from.

use std::collections::{HashMap, VecDeque};

use super::area::{Area, Keys, VA};
use super::binding::{self, Step};
use super::buffers::{Buffers, RECEIVED};
use crate::connection::Transmit;
use crate::hostile::{Deviations, hook};
use crate::memory::PdId;
use crate::sdp::{Connection, Event, ReceiveId, Role, SendId, Settings, Start};
use crate::service::poll_transmit;
use crate::time::Instant;
use crate::verbs::{
    CompletedOperation, CompletionStatus, CqHandle, LateSegment, LlpHandle, Node, Operation, Payload, QpHandle, QpInit,
    QpModify, QpState, Rnic, RnicSettings, SendWr,
};
use crate::workload::WorkloadError;

/// Maximum number of payload bytes in a TCP segment.
const EMSS: u32 = 1460;

/// Sizes and settings of the queues of an endpoint's Queue Pairs.
#[derive(Debug, Clone, Copy)]
pub struct Queues {
    /// Number of Work Requests in the Send Queue.
    pub sends: u32,
    /// Number of Work Requests in the Receive Queue. While the Private Buffers are resized, twice
    /// their normal number can be posted.
    pub receives: u32,
    /// Handling of a segment that arrives while this side closes.
    pub late: LateSegment,
}

/// What [`Endpoint::advance`] did.
#[derive(Debug)]
pub enum Progress {
    /// The endpoint posted a message.
    Sent {
        /// Message ID of the message.
        mid: u8,
        /// MSeqAck of the message.
        mseq_ack: u32,
    },
    /// A message of the peer has arrived.
    MessageReceived,
    /// An event for the user. If the event reports the end of a receive, the bytes are the received
    /// data.
    Event(Event, Vec<u8>),
    /// The endpoint did something else.
    Other,
}

/// One side of an SDP connection. See the [module](super).
#[derive(Debug)]
pub struct Endpoint {
    machine: Connection,
    buffers: Buffers,
    queues: Queues,
    cq: CqHandle,
    qp: QpHandle,
    /// ORD and IRD, in this order.
    depths: (u32, u32),
    llp: Option<LlpHandle>,
    /// Actions on TCP in streaming mode, before the Queue Pair uses the stream.
    streaming: VecDeque<Transmit>,
    next_id: u64,
    in_queue: u32,
    /// TCP is to be closed after all posted Work Requests have completed.
    closing: bool,
    /// The TCP connection has ended.
    ended: bool,
    /// This side has reset the TCP connection.
    reset: bool,
    /// A deviation: the memory of completed receives stays registered.
    keeps_memory: bool,
    /// A deviation: a DisConn is the answer to the peer's FIN.
    answers_fin: bool,
    /// The RNIC gets the peer's FIN after all posted Work Requests have completed. Always false
    /// without deviations.
    fin_waits: bool,
}

impl Endpoint {
    /// An endpoint on a new TCP connection.
    ///
    /// # Errors
    /// The RNIC cannot create the objects of a connection.
    pub fn new(
        now: Instant,
        role: Role,
        settings: Settings,
        queues: Queues,
        deviations: &Deviations,
    ) -> Result<Self, WorkloadError> {
        const NAME: &str = "weft0";
        let (mut rnic, _) = Node::new([NAME])
            .open(NAME, RnicSettings::default())
            .map_err(|error| WorkloadError::Local(error.to_string()))?;
        rnic.deviate(deviations.clone());
        let conduct = hook::sdp_conduct(deviations);
        let pd = rnic.memory_mut().allocate_pd()?;
        let depths = (settings.ord.into(), settings.ird.into());
        let (cq, qp) = queue_pair(&mut rnic, pd, queues, depths)?;
        let buffers = Buffers {
            rnic,
            keys: Keys::default(),
            pd,
            va: VA,
            sends: HashMap::new(),
            receives: HashMap::new(),
            private: HashMap::new(),
            exposed: HashMap::new(),
        };
        Ok(Endpoint {
            machine: Connection::deviating(now, role, settings, deviations.clone()),
            buffers,
            queues,
            cq,
            qp,
            depths,
            llp: None,
            streaming: VecDeque::new(),
            next_id: 0,
            in_queue: 0,
            closing: false,
            ended: false,
            reset: false,
            keeps_memory: conduct.keeps_memory,
            answers_fin: conduct.answers_fin,
            fin_waits: false,
        })
    }

    /// The SDP state machine.
    #[must_use]
    pub fn machine(&self) -> &Connection {
        &self.machine
    }

    /// The SDP state machine, for commands. Call [`advance`](Self::advance) afterwards.
    pub fn machine_mut(&mut self) -> &mut Connection {
        &mut self.machine
    }

    /// Sends bytes. If the state machine rejects the send, drops the bytes and returns `false`.
    pub fn send(&mut self, octets: Vec<u8>, urgent: bool) -> bool {
        let id = SendId(self.next_id);
        self.next_id += 1;
        let accepted = self.machine.send(id, octets.len() as u64, urgent).is_ok();
        if accepted {
            self.buffers.sends.insert(id, octets);
        }
        accepted
    }

    /// Sets the virtual address of the buffers that the peer may read or write. The address is for
    /// buffers that are registered afterwards. Each buffer must end before 2^64, so `va` must not
    /// be too close to 2^64.
    pub fn place_buffers_at(&mut self, va: u64) {
        self.buffers.va = va;
    }

    /// Posts a receive of `len` bytes. Returns `false` if the RNIC or the state machine rejects the
    /// receive.
    pub fn receive(&mut self, len: u64, wait_for_all: bool) -> bool {
        let id = ReceiveId(self.next_id);
        self.next_id += 1;
        let size = usize::try_from(len).unwrap_or(usize::MAX);
        let Buffers { rnic, keys, pd, va, receives, .. } = &mut self.buffers;
        match Area::new(rnic, keys, (*pd, *va), size, RECEIVED) {
            Ok(area) if self.machine.receive(id, len, wait_for_all).is_ok() => {
                receives.insert(id, area);
                true
            }
            _ => false,
        }
    }

    /// Number of receives that have not ended.
    #[must_use]
    pub fn receives(&self) -> usize {
        self.buffers.receives.len()
    }

    /// Handles one output of the state machine or one completion. If there is no output and no
    /// completion, returns `None`. The caller then has to call [`settle`](Self::settle).
    pub fn advance(&mut self, now: Instant) -> Option<Progress> {
        let Some(step) = binding::step(now, &mut self.machine, &mut self.buffers) else { return self.complete(now) };
        let acted = step.and_then(|step| self.act(now, step));
        Some(acted.unwrap_or_else(|_| {
            self.reset_tcp();
            Progress::Other
        }))
    }

    /// Closes TCP if the close is due. Returns `true` if the TCP connection has ended. In this
    /// case, the state machine has more to do.
    pub fn settle(&mut self, now: Instant) -> bool {
        if self.fin_waits
            && self.in_queue == 0
            && let Some(llp) = self.llp
        {
            self.fin_waits = false;
            self.buffers.rnic.handle_fin(now, llp);
        }
        let rnic = &mut self.buffers.rnic;
        if self.closing && self.in_queue == 0 {
            self.closing = false;
            if rnic.modify_qp(now, self.qp, &QpModify::to(QpState::Closing)).is_err() {
                self.reset_tcp();
            }
        }
        let state = self.buffers.rnic.query_qp(self.qp).map(|attributes| attributes.state);
        let is_connected = matches!(state, Ok(QpState::Rts | QpState::Closing | QpState::Terminate));
        let has_ended = self.llp.is_some() && !is_connected && !self.ended;
        if has_ended {
            self.ended = true;
            self.machine.handle_disconnected(now);
        }
        has_ended
    }

    /// Resets the connection by destroying the Queue Pair.
    fn reset_tcp(&mut self) {
        // Ignore an error, because the Queue Pair can already be destroyed.
        let _ = self.buffers.rnic.destroy_qp(self.qp);
    }

    fn complete(&mut self, now: Instant) -> Option<Progress> {
        let completion = self.buffers.rnic.poll_cq(self.cq).ok()?;
        let is_receive = completion.operation == CompletedOperation::Receive;
        if !is_receive {
            self.in_queue = self.in_queue.saturating_sub(1);
        }
        binding::complete(now, &mut self.machine, &mut self.buffers, &completion);
        let is_message = is_receive && completion.status == CompletionStatus::Success;
        Some(if is_message { Progress::MessageReceived } else { Progress::Other })
    }

    fn act(&mut self, now: Instant, step: Step) -> Result<Progress, WorkloadError> {
        match step {
            Step::Done => {}
            Step::Send { wr, .. } => return Ok(self.post(wr)),
            Step::Receive(wr) => {
                // Ignore an error: a Queue Pair whose connection has ended rejects the receive.
                let _ = self.buffers.rnic.post_receive(self.qp, vec![wr]);
            }
            Step::Streaming(octets) => self.streaming.push_back(Transmit::Octets(octets.into())),
            Step::Start(start) => self.start(now, *start)?,
            Step::Event(event) => return Ok(self.event(event)),
            Step::Disconnect { abortive } => match self.llp {
                Some(_) if abortive => self.reset_tcp(),
                Some(_) => self.closing = true,
                None => self.streaming.push_back(if abortive { Transmit::Reset } else { Transmit::Fin }),
            },
        }
        Ok(Progress::Other)
    }

    /// Posts to the Send Queue. A Queue Pair in the Error state rejects the Work Request.
    fn post(&mut self, wr: SendWr) -> Progress {
        let progress = match &wr.operation {
            Operation::Send { payload: Payload::Inline(message), .. } => {
                let mseq_ack =
                    message.get(12..16).and_then(|octets| octets.try_into().ok()).map_or(0, u32::from_be_bytes);
                Progress::Sent { mid: message.get(3).copied().unwrap_or_default(), mseq_ack }
            }
            _ => Progress::Other,
        };
        if self.buffers.rnic.post_send(self.qp, vec![wr]).is_ok() {
            self.in_queue += 1;
        }
        progress
    }

    fn start(&mut self, now: Instant, start: Start) -> Result<(), WorkloadError> {
        let rnic = &mut self.buffers.rnic;
        let llp = rnic.attach_stream(start.llp(EMSS))?;
        rnic.handle_octets(now, llp, &start.unread);
        let stream_message = (!start.last.is_empty()).then(|| start.last.into());
        let modify = QpModify { llp: Some(llp), stream_message, ..QpModify::to(QpState::Rts) };
        rnic.modify_qp(now, self.qp, &modify)?;
        self.llp = Some(llp);
        Ok(())
    }

    fn event(&mut self, event: Event) -> Progress {
        let Event::Received { receive, octets, .. } = event else { return Progress::Event(event, Vec::new()) };
        let Some(area) = self.buffers.receives.remove(&receive) else { return Progress::Other };
        let octets = area.octets(&self.buffers.rnic, 0, usize::try_from(octets).unwrap_or(usize::MAX));
        if !self.keeps_memory {
            area.free(&mut self.buffers.rnic);
        }
        Progress::Event(event, octets)
    }

    /// Handles bytes received on TCP.
    pub fn handle_octets(&mut self, now: Instant, octets: &[u8]) {
        match self.llp {
            None => self.machine.handle_streaming(now, octets),
            Some(llp) => self.buffers.rnic.handle_octets(now, llp, octets),
        }
    }

    /// Handles the peer's FIN.
    pub fn handle_fin(&mut self, now: Instant) {
        match self.llp {
            None => self.machine.handle_disconnected(now),
            Some(_) if self.answers_fin && self.machine.is_open() => {
                self.machine.shut_down();
                self.fin_waits = true;
            }
            Some(llp) => self.buffers.rnic.handle_fin(now, llp),
        }
    }

    /// Handles the peer's reset.
    pub fn handle_reset(&mut self, now: Instant) {
        match self.llp {
            None => self.machine.handle_disconnected(now),
            Some(llp) => self.buffers.rnic.handle_reset(now, llp),
        }
    }

    /// Handles the deadlines that have passed at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        if let Some(llp) = self.llp {
            self.buffers.rnic.handle_timeout(now, llp);
        }
    }

    /// The next action on TCP. The transmission of bytes can complete Work Requests, so call
    /// [`advance`](Self::advance) afterwards.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.reset {
            return None;
        }
        if let Some(transmit) = self.streaming.pop_front() {
            self.reset = matches!(transmit, Transmit::Reset);
            return Some(transmit);
        }
        let transmit = poll_transmit(&mut self.buffers.rnic, now, self.llp?, usize::MAX);
        self.reset = matches!(transmit, Some(Transmit::Reset));
        transmit
    }

    /// The next deadline.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let llp = self.llp.and_then(|llp| self.buffers.rnic.poll_timeout(llp));
        self.machine.poll_timeout().into_iter().chain(llp).min()
    }

    /// Returns whether the connection is suspended and TCP has ended, so that it can resume on a
    /// new TCP connection.
    #[must_use]
    pub fn awaits_reconnect(&self) -> bool {
        self.ended && self.machine.is_suspended()
    }

    /// Continues on a new TCP connection, with a new Queue Pair.
    pub fn reconnect(&mut self, now: Instant) {
        // Destroys the old queues, which contain flushed Work Requests.
        self.reset_tcp();
        self.streaming.clear();
        let Ok((cq, qp)) = queue_pair(&mut self.buffers.rnic, self.buffers.pd, self.queues, self.depths) else {
            self.streaming.push_back(Transmit::Reset);
            return;
        };
        (self.cq, self.qp) = (cq, qp);
        (self.llp, self.in_queue) = (None, 0);
        (self.closing, self.ended, self.reset, self.fin_waits) = (false, false, false, false);
        self.machine.reconnected(now);
    }

    /// Returns whether this side has reset the TCP connection.
    #[must_use]
    pub fn has_reset(&self) -> bool {
        self.reset
    }

    /// Returns whether the connection is over and everything was sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_stream_over = self.llp.is_none_or(|llp| self.buffers.rnic.is_stream_over(llp));
        self.reset || self.machine.is_over() && self.streaming.is_empty() && is_stream_over
    }
}

/// Creates a CQ and a Queue Pair for one TCP connection.
fn queue_pair(
    rnic: &mut Rnic,
    pd: PdId,
    queues: Queues,
    (ord, ird): (u32, u32),
) -> Result<(CqHandle, QpHandle), WorkloadError> {
    let Queues { sends, receives, late } = queues;
    let (cq, _) = rnic.create_cq(sends + receives, None)?;
    let init = QpInit { ord, ird, max_sq_wrs: sends, max_rq_wrs: receives, late, ..QpInit::new(pd, cq, cq) };
    Ok((cq, rnic.create_qp(init, None)?.0))
}
