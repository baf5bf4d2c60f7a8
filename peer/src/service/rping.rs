//! `rping -s` and `rping -c` as state machines: MPA start-up, a Queue Pair of the software RNIC,
//! and the message sequence of [`ping`](crate::workload::ping).
//!
//! All connections of one [`RpingServer`], or `RpingClient`, share its RNIC. Each connection has
//! its own Protection Domain, Queue Pair and buffer, as in rping. If a Send advertises more bytes
//! than fit in the buffer, or arrives out of sequence, this side closes the connection. If no
//! transfer is in progress, the close is graceful. The client repeats its rounds until its peer
//! closes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{DrivenConnection, poll_transmit};
use crate::connection::{Settings, Transmit};
use crate::memory::{Access, PdId};
use crate::mpa::{
    AfterReply, AfterRequest, Negotiated, PrivateData, StartupError, WaitDecision, WaitReply, WaitRequest,
};
use crate::rdmap::Outbound;
use crate::time::Instant;
use crate::verbs::{
    CompletedOperation, CompletionStatus, CqHandle, LlpHandle, LlpSettings, Node, Operation, Payload, QpHandle, QpInit,
    QpModify, QpState, ReceiveWr, Rnic, RnicError, RnicSettings, SendWr, WorkCompletion,
};
use crate::workload::ping::{Advertisement, MESSAGE, RECEIVES, REMOTE, text};
use crate::workload::{Region, WorkloadError};

/// Maximum number of outstanding RDMA Reads in each direction.
const READS: u32 = 16;
/// Size of the Send Queue, the Receive Queue and the completion queue.
const WORK: u32 = 64;

/// The server. All of its connections share one RNIC.
#[derive(Debug, Clone)]
pub struct RpingServer {
    rnic: Arc<Mutex<Rnic>>,
    settings: Settings,
}

impl RpingServer {
    /// Size in bytes of each connection's buffer. This is the largest size that rping accepts.
    pub const SIZE: u32 = 65_535;

    /// Creates a server whose connections use `settings`, including the deviations.
    ///
    /// # Errors
    /// The software RNIC cannot be opened.
    pub fn new(settings: Settings) -> Result<Self, RnicError> {
        const NAME: &str = "weft0";
        let (mut rnic, _) = Node::new([NAME]).open(NAME, RnicSettings::default())?;
        rnic.deviate(settings.deviations.clone());
        Ok(RpingServer { rnic: Arc::new(Mutex::new(rnic)), settings })
    }

    /// Creates the server's side of a new TCP connection.
    pub(crate) fn accept(&self, now: Instant) -> Rping {
        let startup = WaitRequest::start(self.settings.mpa, self.settings.deviations.clone());
        Rping::new(now, &self.rnic, self.settings.clone(), State::WaitRequest(startup), Expected::Source)
    }
}

/// The client. All of its connections share one RNIC.
#[derive(Debug, Clone)]
pub(crate) struct RpingClient(RpingServer);

impl RpingClient {
    /// Number of data bytes in each round. This is rping's default.
    const SIZE: u32 = 64;

    /// Creates a client whose connections use `settings`, including the deviations.
    ///
    /// # Errors
    /// The software RNIC cannot be opened.
    pub(crate) fn new(settings: Settings) -> Result<Self, RnicError> {
        RpingServer::new(settings).map(RpingClient)
    }

    /// Creates the client's side of a new TCP connection.
    pub(crate) fn connect(&self, now: Instant) -> Rping {
        let RpingServer { rnic, settings } = self.0.clone();
        let mut request = Vec::new();
        // The private data is empty, so the Request cannot be too long.
        let reply = WaitReply::start(settings.mpa, &PrivateData::default(), settings.deviations.clone(), &mut request);
        let state = reply.map_or(State::Closed, State::WaitReply);
        let mut rping = Rping::new(now, &rnic, settings, state, Expected::ReadDone);
        rping.outgoing.push_back(Transmit::Octets(request.into()));
        rping
    }
}

/// One connection of the server or of the client.
#[derive(Debug)]
pub(crate) struct Rping {
    rnic: Arc<Mutex<Rnic>>,
    settings: Settings,
    state: State,
    verbs: Option<Verbs>,
    expected: Expected,
    /// Bytes that are sent while the RNIC does not own the stream.
    outgoing: VecDeque<Transmit>,
    deadline: Option<Instant>,
}

#[derive(Debug)]
enum State {
    WaitRequest(WaitRequest),
    WaitReply(WaitReply),
    /// The Queue Pair uses the stream.
    Operating(LlpHandle),
    /// This side sends FIN and waits for the peer's FIN.
    Closing,
    Closed,
}

/// The event that this side waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Server: the Send that advertises the data to read.
    Source,
    /// Server: the completion of the RDMA Read of this number of bytes.
    Data(u32),
    /// Server: the Send that advertises where to write this number of bytes.
    Sink(u32),
    /// Client: the Send that reports the end of the RDMA Read. Then the client advertises its sink.
    ReadDone,
    /// Client: the Send that reports the end of the RDMA Write. Then the next round begins.
    WriteDone,
    /// No event. The connection is ending.
    Nothing,
}

/// The RNIC objects of one connection.
#[derive(Debug, Clone, Copy)]
struct Verbs {
    pd: PdId,
    cq: CqHandle,
    qp: QpHandle,
    messages: Region,
    /// The server's buffer, or the data that the client offers for reading.
    data: Region,
    /// The client's buffer for the server's RDMA Write.
    sink: Option<Region>,
}

fn lock(rnic: &Mutex<Rnic>) -> MutexGuard<'_, Rnic> {
    // If a holder of the lock panicked, the RNIC's objects are still consistent.
    rnic.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DrivenConnection for Rping {
    fn handle_octets(&mut self, now: Instant, octets: &[u8]) {
        match std::mem::replace(&mut self.state, State::Closing) {
            State::WaitReply(waiting) => self.handle_reply(now, waiting.handle_octets(octets)),
            State::WaitRequest(waiting) => match waiting.handle_octets(octets) {
                Ok(AfterRequest::Waiting(more)) => self.state = State::WaitRequest(more),
                Ok(AfterRequest::Arrived(decision)) => {
                    if self.begin(now, decision).is_err() {
                        self.abort();
                    }
                }
                Err(_) => self.close(now),
            },
            State::Operating(llp) => {
                self.state = State::Operating(llp);
                lock(&self.rnic).handle_octets(now, llp, octets);
                self.work(now);
            }
            state => self.state = state,
        }
    }

    fn handle_fin(&mut self, now: Instant) {
        match &self.state {
            State::WaitRequest(_) | State::WaitReply(_) => {
                self.outgoing.push_back(Transmit::Fin);
                self.end();
            }
            State::Operating(llp) => {
                lock(&self.rnic).handle_fin(now, *llp);
                self.work(now);
            }
            State::Closing => self.end(),
            State::Closed => {}
        }
    }

    fn handle_reset(&mut self, now: Instant) {
        if let State::Operating(llp) = self.state {
            lock(&self.rnic).handle_reset(now, llp);
        }
        self.outgoing.clear();
        self.end();
    }

    fn handle_timeout(&mut self, now: Instant) {
        match &self.state {
            State::Operating(llp) => {
                lock(&self.rnic).handle_timeout(now, *llp);
                self.work(now);
            }
            State::WaitRequest(_) | State::WaitReply(_) => self.close(now),
            State::Closing => self.abort(),
            State::Closed => {}
        }
    }

    fn serve(&mut self, now: Instant) {
        self.work(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let State::Operating(llp) = self.state else { return self.outgoing.pop_front() };
        poll_transmit(&mut lock(&self.rnic), now, llp, usize::MAX)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Operating(llp) => lock(&self.rnic).poll_timeout(llp),
            _ => self.deadline,
        }
    }

    fn is_over(&self) -> bool {
        match self.state {
            State::Operating(llp) => lock(&self.rnic).is_stream_over(llp),
            State::WaitRequest(_) | State::WaitReply(_) | State::Closing => false,
            State::Closed => self.outgoing.is_empty(),
        }
    }
}

impl Rping {
    fn new(now: Instant, rnic: &Arc<Mutex<Rnic>>, settings: Settings, state: State, expected: Expected) -> Self {
        Rping {
            rnic: Arc::clone(rnic),
            deadline: Some(now + settings.startup_timeout),
            settings,
            state,
            verbs: None,
            expected,
            outgoing: VecDeque::new(),
        }
    }

    /// Handles the result of parsing the Reply.
    fn handle_reply(&mut self, now: Instant, reply: Result<AfterReply, StartupError>) {
        match reply {
            Ok(AfterReply::Waiting(more)) => self.state = State::WaitReply(more),
            Ok(AfterReply::Accepted(negotiated, _)) => {
                let begun = self.operate(now, &negotiated, None);
                let advertised = begun.and_then(|verbs| verbs.advertise(&mut lock(&self.rnic), verbs.data));
                if advertised.is_err() {
                    self.abort();
                }
            }
            Ok(AfterReply::Unacceptable(negotiated, _, error)) => {
                let terminate = Outbound::setup_terminate(&negotiated, error, self.settings.deviations.clone());
                self.outgoing.push_back(Transmit::Octets(terminate.into()));
                self.close(now);
            }
            Ok(AfterReply::Rejected(_)) | Err(_) => self.close(now),
        }
    }

    /// Closes the connection after an invalid or rejecting start-up frame.
    fn close(&mut self, now: Instant) {
        self.state = State::Closing;
        self.outgoing.push_back(Transmit::Fin);
        self.deadline = Some(now + self.settings.close_timeout);
    }

    fn abort(&mut self) {
        self.outgoing.push_back(Transmit::Reset);
        self.end();
    }

    fn end(&mut self) {
        (self.state, self.deadline) = (State::Closed, None);
    }

    /// Accepts a valid Request. The Queue Pair takes over the stream and sends the Reply first.
    fn begin(&mut self, now: Instant, decision: WaitDecision) -> Result<(), WorkloadError> {
        let mut reply = Vec::new();
        let negotiated = decision.accept(&self.settings.private_data, &mut reply);
        self.operate(now, &negotiated, Some(reply.into())).map(|_| ())
    }

    /// Creates the Queue Pair, which takes over the stream.
    fn operate(&mut self, now: Instant, negotiated: &Negotiated, reply: Option<Bytes>) -> Result<Verbs, WorkloadError> {
        let verbs = self.open()?;
        let (ird, ord) = negotiated.enhanced.map(|agreed| (agreed.ird.into(), agreed.ord.into())).unzip();
        let mut rnic = lock(&self.rnic);
        let llp = rnic.attach_stream(LlpSettings::new(negotiated, self.settings.emss))?;
        self.state = State::Operating(llp);
        let modify = QpModify { stream_message: reply, ird, ord, ..QpModify::to_rts(llp) };
        rnic.modify_qp(now, verbs.qp, &modify)?;
        Ok(verbs)
    }

    /// Creates the connection's RNIC objects and posts its receives. If a step fails, the objects
    /// that were created before this step stay until the RNIC is closed.
    fn open(&mut self) -> Result<Verbs, WorkloadError> {
        let mut rnic = lock(&self.rnic);
        let pd = rnic.memory_mut().allocate_pd()?;
        let (cq, _) = rnic.create_cq(WORK, None)?;
        let init = QpInit { max_sq_wrs: WORK, max_rq_wrs: WORK, ord: READS, ird: READS, ..QpInit::new(pd, cq, cq) };
        let (qp, _, _) = rnic.create_qp(init, None)?;
        let messages = Region::register(&mut rnic, pd, 0, (MESSAGE * RECEIVES) as usize, Access::LOCAL)?;
        let is_client = self.expected == Expected::ReadDone;
        let size = if is_client { RpingClient::SIZE } else { RpingServer::SIZE };
        let data = Region::register(&mut rnic, pd, 1, size as usize, REMOTE)?;
        let sink = is_client.then(|| Region::register(&mut rnic, pd, 2, size as usize, REMOTE)).transpose()?;
        let verbs = Verbs { pd, cq, qp, messages, data, sink };
        (0..u64::from(RECEIVES)).try_for_each(|slot| verbs.post_receive(&mut rnic, slot))?;
        self.verbs = Some(verbs);
        Ok(verbs)
    }

    /// Handles all completions.
    fn work(&mut self, now: Instant) {
        let Some(verbs) = self.verbs else { return };
        let mut rnic = lock(&self.rnic);
        while let Ok(completion) = rnic.poll_cq(verbs.cq) {
            let next = match completion.status {
                CompletionStatus::Success => verbs.react(&mut rnic, self.expected, &completion),
                _ => Ok(Expected::Nothing),
            };
            self.expected = next.unwrap_or_else(|_| {
                // Ignore an error, because the Queue Pair can already be closing.
                let _ = rnic.modify_qp(now, verbs.qp, &QpModify::to(QpState::Closing));
                Expected::Nothing
            });
        }
    }
}

impl Verbs {
    /// Handles a completion. Returns the event to wait for next.
    fn react(&self, rnic: &mut Rnic, expected: Expected, done: &WorkCompletion) -> Result<Expected, WorkloadError> {
        let out_of_sequence = || Err(WorkloadError::Protocol("a Send arrived before the Read completed".to_owned()));
        match (done.operation, expected) {
            (_, Expected::Nothing) => Ok(expected),
            (CompletedOperation::Receive, Expected::Source) => {
                let source = self.receive_advertisement(rnic, done)?;
                let local = self.data.part(0, source.size);
                let read = Operation::Read { local, remote: source.address, invalidate_local: false };
                rnic.post_send(self.qp, vec![SendWr::new(0, read)])?;
                Ok(Expected::Data(source.size))
            }
            (CompletedOperation::Read, Expected::Data(size)) => {
                self.send(rnic, [0; MESSAGE as usize])?;
                Ok(Expected::Sink(size))
            }
            (CompletedOperation::Receive, Expected::Sink(size)) => {
                let sink = self.receive_advertisement(rnic, done)?;
                // rping writes a C string: all bytes up to and including the first zero byte.
                let text =
                    rnic.memory().buffer(self.data.buffer)?.iter().take(size as usize).position(|octet| *octet == 0);
                let length = text.and_then(|zero| u32::try_from(zero + 1).ok()).unwrap_or(size).min(sink.size);
                let payload = Payload::Gather(vec![self.data.part(0, length)]);
                let write = Operation::Write { payload, remote: sink.address };
                rnic.post_send(self.qp, vec![SendWr { signaled: false, ..SendWr::new(0, write) }])?;
                self.send(rnic, [0; MESSAGE as usize])?;
                Ok(Expected::Source)
            }
            (CompletedOperation::Receive, Expected::ReadDone) => {
                self.receive_signal(rnic, done)?;
                self.advertise(rnic, self.sink.unwrap_or(self.data))?;
                Ok(Expected::WriteDone)
            }
            (CompletedOperation::Receive, Expected::WriteDone) => {
                self.receive_signal(rnic, done)?;
                self.advertise(rnic, self.data)?;
                Ok(Expected::ReadDone)
            }
            (CompletedOperation::Receive, Expected::Data(_)) => out_of_sequence(),
            _ => Ok(expected),
        }
    }

    /// Parses an advertisement of the client, and posts the receive of this advertisement again.
    fn receive_advertisement(
        &self,
        rnic: &mut Rnic,
        received: &WorkCompletion,
    ) -> Result<Advertisement, WorkloadError> {
        let start = usize::try_from(received.wr_id).unwrap_or(0) * MESSAGE as usize;
        let octets = rnic.memory().buffer(self.messages.buffer)?.get(start..);
        let advertisement = octets.filter(|_| received.octets == MESSAGE).and_then(Advertisement::parse);
        // The client can close after its last round. In this case the receive cannot be posted
        // again, but it is not needed.
        let _ = self.post_receive(rnic, received.wr_id);
        advertisement
            .filter(|advertisement| advertisement.size <= RpingServer::SIZE)
            .ok_or_else(|| WorkloadError::Protocol("the peer sent a Send that is not an rping message".to_owned()))
    }

    /// Checks a Send of the server. The client accepts any Send of the right length as the signal
    /// to continue, as rping does.
    fn receive_signal(&self, rnic: &mut Rnic, received: &WorkCompletion) -> Result<(), WorkloadError> {
        let _ = self.post_receive(rnic, received.wr_id);
        match received.octets == MESSAGE {
            true => Ok(()),
            false => Err(WorkloadError::Protocol("the peer sent a Send that is not an rping message".to_owned())),
        }
    }

    /// Fills the client's data for a round, and advertises `region`.
    fn advertise(&self, rnic: &mut Rnic, region: Region) -> Result<(), WorkloadError> {
        let size = RpingClient::SIZE;
        rnic.memory_mut().buffer_mut(self.data.buffer)?.copy_from_slice(&text(0, size));
        let advertisement = Advertisement { address: region.remote(0), size };
        self.send(rnic, advertisement.emit())
    }

    fn send(&self, rnic: &mut Rnic, message: [u8; MESSAGE as usize]) -> Result<(), WorkloadError> {
        let payload = Payload::Inline(Bytes::copy_from_slice(&message));
        let send = Operation::Send { payload, solicited: false, invalidate: None };
        rnic.post_send(self.qp, vec![SendWr { signaled: false, ..SendWr::new(0, send) }])?;
        Ok(())
    }

    fn post_receive(&self, rnic: &mut Rnic, slot: u64) -> Result<(), WorkloadError> {
        let scatter = vec![self.messages.part(slot * u64::from(MESSAGE), MESSAGE)];
        rnic.post_receive(self.qp, vec![ReceiveWr { wr_id: slot, scatter }])?;
        Ok(())
    }
}

impl Drop for Rping {
    fn drop(&mut self) {
        let Some(Verbs { pd, cq, qp, messages, data, sink }) = self.verbs else { return };
        let mut rnic = lock(&self.rnic);
        // If a call fails, an unused object stays in the RNIC. This object affects no other
        // connection.
        let _ = rnic.destroy_qp(qp);
        let _ = rnic.destroy_cq(cq);
        for region in [Some(messages), Some(data), sink].into_iter().flatten() {
            region.deregister(&mut rnic);
        }
        let _ = rnic.memory_mut().deallocate_pd(pd);
    }
}
