//! One end: SDP's machine on a Queue Pair of an RNIC, and its user's octets. There are no sockets
//! and no clock.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};

use weft_peer::memory::{Access, Buffer, PdId, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use weft_peer::sdp::{
    Arrival, Connection, Event, Exposed, OpId, Output, Piece, PrivateBuffer, ReceiveId, Region, Role, SendId, Settings,
    Start,
};
use weft_peer::verbs::{
    CompletedOperation, CompletionStatus, CqHandle, LlpHandle, Node, Operation, Payload, QpHandle, QpInit, QpModify,
    QpState, ReceiveWr, Rnic, RnicSettings, SendWr, Sent, Sge,
};
use weft_peer::{Deviations, Instant};

use crate::hostile::side::Put;

/// Bit of a receive's `wr_id`; the rest is the Private Buffer.
const RECEIVE: u64 = 1 << 63;
/// `wr_id` of a Send whose completion the machine does not want.
const NOBODY: u64 = RECEIVE - 1;
/// Where advertised memory begins: in both words, and at no even octet.
const VA: u64 = 0x0000_0007_1000_0000 + SHIFT as u64;
/// Octets of a buffer in front of what is advertised.
const SHIFT: usize = 3;
/// Octets of payload that a TCP segment carries at most.
pub(crate) const EMSS: u16 = 1460;

const SENT: Access = Access { local_read: true, remote_read: true, ..Access::LOCAL };
const RECEIVED: Access = Access { remote_write: true, ..Access::LOCAL };

#[derive(Clone, Copy)]
struct Area {
    buffer: Buffer,
    stag: Stag,
    len: usize,
}

impl Area {
    fn new(rnic: &mut Rnic, keys: &Cell<u8>, pd: PdId, len: usize, access: Access) -> Self {
        let buffer = rnic.allocate_buffer(len + SHIFT).unwrap();
        Area { buffer, stag: register(rnic, keys, pd, buffer, access), len }
    }

    fn part(&self, at: u64, length: u32) -> Sge {
        Sge { stag: self.stag.to_bits(), tagged_offset: VA + at, length }
    }

    fn octets<'a>(&self, rnic: &'a Rnic, from: usize, len: usize) -> &'a [u8] {
        &rnic.buffer(self.buffer).unwrap()[SHIFT + from..SHIFT + from + len]
    }

    fn put(&self, rnic: &mut Rnic, at: usize, octets: &[u8]) {
        rnic.buffer_mut(self.buffer).unwrap()[SHIFT + at..SHIFT + at + octets.len()].copy_from_slice(octets);
    }

    fn free(self, rnic: &mut Rnic) {
        rnic.deallocate_stag(self.stag.index).unwrap();
        rnic.free_buffer(self.buffer).unwrap();
    }
}

/// Keys of STags: few, since those of one index lie together.
const KEYS: u8 = 7;

fn register(rnic: &mut Rnic, keys: &Cell<u8>, pd: PdId, buffer: Buffer, access: Access) -> Stag {
    let list = PhysicalBufferList::of(buffer, SHIFT as u64, (buffer.len() - SHIFT) as u64, 4096);
    let base = ToBase::VaBased(VA);
    // An index that is used again does not make an STag valid that the other end has just received.
    let key = StagKey(0x11 + keys.replace((keys.get() + 1) % KEYS));
    rnic.register(&Registration { pd, key, list, base, remote: access.is_remote(), access }).unwrap().stag
}

pub(crate) struct End {
    pub(crate) machine: Connection,
    rnic: Rnic,
    keys: Cell<u8>,
    pd: PdId,
    cq: CqHandle,
    qp: QpHandle,
    /// ORD and IRD.
    depths: (u32, u32),
    llp: Option<LlpHandle>,
    streaming: VecDeque<Put>,
    /// All that was ever sent: one that deviates may send it again.
    sends: HashMap<SendId, Vec<u8>>,
    receives: HashMap<ReceiveId, Area>,
    private: HashMap<PrivateBuffer, Area>,
    /// Copies of sends that the peer may read, by STag.
    exposed: HashMap<u32, Area>,
    next_id: u64,
    in_queue: u32,
    /// TCP is to be closed when all that is posted is out.
    closing: bool,
    ended: bool,
    done: bool,
    /// Receives that have ended keep their memory.
    keeps_memory: bool,
    pub(crate) events: Vec<Event>,
    /// TCP rests; where this end is to connect to, if it is.
    pub(crate) rests: Option<Option<u16>>,
    /// What the user has got.
    pub(crate) got: Vec<u8>,
    sent: u64,
    /// MID and MSeqAck of the messages that it sent; in their place among those that it got, which
    /// are zeros.
    pub(crate) messages: Vec<(u8, u32)>,
}

impl End {
    pub(crate) fn new(now: Instant, role: Role, settings: Settings, deviations: &Deviations) -> Self {
        let (mut rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
        rnic.deviate(deviations.clone());
        let pd = rnic.allocate_pd().unwrap();
        let cq = rnic.create_cq(8192, None).unwrap().0;
        let depths = (settings.ord.into(), settings.ird.into());
        let qp = queue_pair(&mut rnic, pd, cq, depths);
        let machine = Connection::deviating(now, role, settings, deviations.clone());
        let mut end = End {
            machine,
            rnic,
            keys: Cell::new(0),
            pd,
            cq,
            qp,
            depths,
            llp: None,
            streaming: VecDeque::new(),
            sends: HashMap::new(),
            receives: HashMap::new(),
            private: HashMap::new(),
            exposed: HashMap::new(),
            next_id: 0,
            in_queue: 0,
            closing: false,
            ended: false,
            done: false,
            keeps_memory: deviations.iter().any(|deviation| deviation.name == "sdp.stags-left-valid"),
            events: Vec::new(),
            rests: None,
            got: Vec::new(),
            sent: 0,
            messages: Vec::new(),
        };
        end.run(now);
        end
    }

    /// TCP has ended after a suspension.
    pub(crate) fn has_come_to_rest(&self) -> bool {
        self.rests.is_some() && self.ended && self.machine.is_suspended()
    }

    /// Another TCP connection, another Queue Pair.
    pub(crate) fn reconnect(&mut self, now: Instant) {
        self.rests = None;
        let _ = self.rnic.destroy_qp(self.qp);
        self.cq = self.rnic.create_cq(8192, None).unwrap().0;
        self.qp = queue_pair(&mut self.rnic, self.pd, self.cq, self.depths);
        (self.llp, self.in_queue) = (None, 0);
        (self.closing, self.ended, self.done) = (false, false, false);
        self.machine.reconnected(now);
        self.run(now);
    }

    /// The user sends; what it sends is lost where that is over.
    pub(crate) fn send(&mut self, octets: Vec<u8>, urgent: bool) {
        let id = SendId(self.next_id);
        self.next_id += 1;
        if self.machine.send(id, octets.len() as u64, urgent).is_ok() {
            self.sent += octets.len() as u64;
            self.sends.insert(id, octets);
        }
    }

    /// Octets that the user has sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Octets that the user has got.
    pub(crate) fn waited(&self) -> u64 {
        self.got.len() as u64
    }

    /// Receives that have not ended.
    pub(crate) fn waiting(&self) -> usize {
        self.receives.len()
    }

    /// The user waits for octets.
    pub(crate) fn receive(&mut self, len: u64, wait_for_all: bool) {
        let id = ReceiveId(self.next_id);
        self.next_id += 1;
        let area = Area::new(&mut self.rnic, &self.keys, self.pd, usize::try_from(len).unwrap(), RECEIVED);
        self.receives.insert(id, area);
        self.machine.receive(id, len, wait_for_all).unwrap();
    }

    /// Does all that the machine and the RNIC want done.
    pub(crate) fn run(&mut self, now: Instant) {
        loop {
            let (rnic, keys, pd, sends) = (&mut self.rnic, &self.keys, self.pd, &self.sends);
            let (receives, exposed) = (&self.receives, &mut self.exposed);
            let mut register = |what| match what {
                Exposed::Source(piece) => {
                    let octets = cut(sends, piece);
                    let area = Area::new(rnic, keys, pd, octets.len(), SENT);
                    area.put(rnic, 0, octets);
                    exposed.insert(area.stag.to_bits(), area);
                    Some(Region { stag: area.stag.to_bits(), va: VA })
                }
                Exposed::Sink { receive, .. } => Some(Region { stag: receives.get(&receive)?.stag.to_bits(), va: VA }),
            };
            if let Some(output) = self.machine.poll(now, &mut register) {
                self.act(now, output);
            } else if !self.complete(now) {
                break;
            }
        }
        if self.closing && self.in_queue == 0 {
            self.closing = false;
            if self.rnic.modify_qp(now, self.qp, &QpModify::to(QpState::Closing)).is_err() {
                let _ = self.rnic.destroy_qp(self.qp);
            }
        }
        let state = self.rnic.query_qp(self.qp).map(|attributes| attributes.state);
        let goes_on = matches!(state, Ok(QpState::Rts | QpState::Closing | QpState::Terminate));
        if self.llp.is_some() && !goes_on && !self.ended {
            self.ended = true;
            self.machine.handle_disconnected(now);
            self.run(now);
        }
    }

    /// One completion; `false` when there is none.
    fn complete(&mut self, now: Instant) -> bool {
        let Ok(completion) = self.rnic.poll_cq(self.cq) else { return false };
        let ok = completion.status == CompletionStatus::Success;
        if completion.operation != CompletedOperation::Receive {
            self.in_queue -= 1;
            if completion.wr_id != NOBODY {
                self.machine.handle_completed(now, OpId(completion.wr_id), ok);
            } else if !ok {
                self.machine.handle_disconnected(now);
            }
        } else if ok {
            self.messages.push((0, 0));
            let buffer = PrivateBuffer(u32::try_from(completion.wr_id & !RECEIVE).unwrap());
            // After a suspension there is none.
            let Some(area) = self.private.get(&buffer) else { return true };
            let octets = area.octets(&self.rnic, 0, completion.octets as usize).to_vec();
            self.machine.handle_message(now, buffer, &octets, Arrival { invalidated: completion.invalidated });
        } else {
            self.machine.handle_disconnected(now);
        }
        true
    }

    fn act(&mut self, now: Instant, output: Output) {
        match output {
            Output::Receive { buffer, octets } => self.post_private(buffer, octets),
            Output::Release(buffer) => {
                if let Some(area) = self.private.remove(&buffer) {
                    area.free(&mut self.rnic);
                }
            }
            Output::Streaming(octets) => self.streaming.push_back(Put::Octets(octets)),
            Output::Start(start) => self.start(now, *start),
            Output::Send { op, mut head, payload, solicited, invalidate } => {
                head.extend(payload.map(|piece| cut(&self.sends, piece)).into_iter().flatten());
                let wr_id = op.map_or(NOBODY, |op| op.0);
                let ack = head.get(12..16).map_or(0, |ack| u32::from_be_bytes(ack.try_into().unwrap()));
                self.messages.push((head.get(3).copied().unwrap_or_default(), ack));
                self.post(wr_id, Operation::Send { payload: Payload::Inline(head.into()), solicited, invalidate });
            }
            Output::Read { op, remote, receive, at, len } => {
                let Some(area) = self.receives.get(&receive) else { return };
                let local = area.part(at, len);
                self.post(op.0, Operation::Read { local, remote, invalidate_local: false });
            }
            Output::Write { op, data, remote } => {
                let payload = Payload::Inline(cut(&self.sends, data).to_vec().into());
                self.post(op.0, Operation::Write { payload, remote });
            }
            Output::Place { buffer, from, len, receive, at } => {
                let octets = self.private[&buffer].octets(&self.rnic, from as usize, len as usize).to_vec();
                self.receives[&receive].put(&mut self.rnic, usize::try_from(at).unwrap(), &octets);
            }
            Output::Withdraw { stag } => self.withdraw(stag),
            Output::Event(event) => self.event(event),
            Output::Disconnect { abortive } => match self.llp {
                Some(_) if abortive => {
                    let _ = self.rnic.destroy_qp(self.qp);
                }
                Some(_) => self.closing = true,
                None => self.streaming.push_back(if abortive { Put::Reset } else { Put::Fin }),
            },
        }
    }

    /// A Queue Pair in error takes none.
    fn post(&mut self, wr_id: u64, operation: Operation) {
        if self.rnic.post_send(self.qp, vec![SendWr::new(wr_id, operation)]).is_ok() {
            self.in_queue += 1;
        }
    }

    fn post_private(&mut self, buffer: PrivateBuffer, octets: u32) {
        let size = octets as usize;
        if self.private.get(&buffer).is_none_or(|area| area.len < size) {
            let area = Area::new(&mut self.rnic, &self.keys, self.pd, size, Access::LOCAL);
            if let Some(old) = self.private.insert(buffer, area) {
                old.free(&mut self.rnic);
            }
        }
        let scatter = vec![self.private[&buffer].part(0, octets)];
        let _ = self.rnic.post_receive(self.qp, vec![ReceiveWr { wr_id: RECEIVE | u64::from(buffer.0), scatter }]);
    }

    fn withdraw(&mut self, stag: u32) {
        if let Some(area) = self.exposed.remove(&stag) {
            return area.free(&mut self.rnic);
        }
        // The receive gets an STag that the peer does not know.
        let (rnic, keys, pd) = (&mut self.rnic, &self.keys, self.pd);
        if let Some(area) = self.receives.values_mut().find(|area| area.stag.to_bits() == stag) {
            rnic.deallocate_stag(area.stag.index).unwrap();
            area.stag = register(rnic, keys, pd, area.buffer, RECEIVED);
        }
    }

    fn start(&mut self, now: Instant, start: Start) {
        let llp = self.rnic.attach_stream(start.llp(EMSS.into())).unwrap();
        self.rnic.handle_octets(now, llp, &start.unread);
        let stream_message = (!start.last.is_empty()).then(|| start.last.into());
        let modify = QpModify { llp: Some(llp), stream_message, ..QpModify::to(QpState::Rts) };
        self.rnic.modify_qp(now, self.qp, &modify).unwrap();
        self.llp = Some(llp);
    }

    fn event(&mut self, event: Event) {
        if let Event::Received { receive, octets, .. } = event {
            let area = self.receives.remove(&receive).unwrap();
            self.got.extend_from_slice(area.octets(&self.rnic, 0, usize::try_from(octets).unwrap()));
            if !self.keeps_memory {
                area.free(&mut self.rnic);
            }
        }
        if let Event::Suspended { reconnect } = event {
            self.rests = Some(reconnect);
        }
        self.events.push(event);
    }

    /// Something arrives.
    pub(crate) fn take(&mut self, now: Instant, put: &Put) {
        match (self.llp, put) {
            (None, Put::Octets(octets)) => self.machine.handle_streaming(now, octets),
            (Some(llp), Put::Octets(octets)) => self.rnic.handle_octets(now, llp, octets),
            (None, Put::Fin | Put::Reset) => self.machine.handle_disconnected(now),
            (Some(llp), Put::Fin) => self.rnic.handle_fin(now, llp),
            (Some(llp), Put::Reset) => self.rnic.handle_reset(now, llp),
        }
        self.run(now);
    }

    /// When its next timer expires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let llp = self.llp.and_then(|llp| self.rnic.poll_timeout(llp));
        self.machine.poll_timeout().into_iter().chain(llp).min()
    }

    pub(crate) fn pass(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        if let Some(llp) = self.llp {
            self.rnic.handle_timeout(now, llp);
        }
        self.run(now);
    }

    /// The next thing that it does to the wire.
    pub(crate) fn put(&mut self, now: Instant) -> Option<Put> {
        if self.done {
            return None;
        }
        if let Some(put) = self.streaming.pop_front() {
            self.done = matches!(put, Put::Reset);
            return Some(put);
        }
        let mut octets = Vec::new();
        let sent = self.rnic.poll_transmit(now, self.llp?, |slices| {
            slices.iter().for_each(|slice| octets.extend_from_slice(slice));
            octets.len()
        });
        self.run(now);
        match sent {
            Sent::Nothing => None,
            Sent::Octets(_) => Some(Put::Octets(octets)),
            Sent::Fin => Some(Put::Fin),
            Sent::Reset => {
                self.done = true;
                Some(Put::Reset)
            }
        }
    }
}

fn queue_pair(rnic: &mut Rnic, pd: PdId, cq: CqHandle, (ord, ird): (u32, u32)) -> QpHandle {
    let init = QpInit { max_sq_wrs: 4096, max_rq_wrs: 1024, ord, ird, ..QpInit::new(pd, cq, cq) };
    rnic.create_qp(init, None).unwrap().0
}

/// Octets of a send; of those that it has.
fn cut(sends: &HashMap<SendId, Vec<u8>>, piece: Piece) -> &[u8] {
    let (octets, from) = (&sends[&piece.send], usize::try_from(piece.from).unwrap());
    &octets[from..octets.len().min(from + piece.len as usize)]
}
