//! A connection's machine, and the RNIC's objects that it speaks through: what it puts out becomes work requests, what completes
//! goes back in.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use bytes::Bytes;

use super::area::Area;
use super::{SdpError, SdpSettings};
use crate::driver::Device;
use crate::memory::{Access, PdId};
use crate::sdp::{
    Arrival, Connection, Event, Exposed, OpId, Output, Piece, PrivateBuffer, ReceiveEnd, ReceiveId, Region, Role,
    SendId, Start,
};
use crate::time::Instant;
use crate::verbs::{
    CompletedOperation, CompletionStatus, CqHandle, Operation, Payload, PostError, PostStatus, QpHandle, QpInit,
    ReceiveWr, Rnic, SendWr, WorkCompletion,
};

/// Work requests of the Send Queue at a time.
const SENDS: u32 = 256;
/// Bit of a receive's `wr_id`; the rest is the Private Buffer.
const RECEIVE: u64 = 1 << 63;
/// `wr_id` of a Send whose completion the machine does not want.
const NOBODY: u64 = RECEIVE - 1;

/// Octets that have arrived for the reader.
#[derive(Debug)]
pub(super) struct Ready {
    area: Area,
    from: usize,
    to: usize,
}

/// One connection's engine.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) device: Device,
    pub(super) machine: Connection,
    settings: SdpSettings,
    pd: PdId,
    pub(super) cq: CqHandle,
    pub(super) qp: QpHandle,
    /// What was written and is not out.
    sends: HashMap<SendId, Bytes>,
    unsent: usize,
    receives: HashMap<ReceiveId, Area>,
    private: HashMap<PrivateBuffer, Area>,
    /// Copies of sends that the peer may read, by STag.
    exposed: HashMap<u32, Area>,
    next_id: u64,
    /// Receives on which nothing waits.
    spare: Vec<Area>,
    ready: VecDeque<Ready>,
    /// The peer sends no more.
    ended: bool,
    /// How the connection ended.
    graceful: Option<bool>,
    waiting: VecDeque<SendWr>,
    in_queue: u32,
    pub(super) streaming: VecDeque<Vec<u8>>,
    pub(super) start: Option<Start>,
    /// TCP is to be ended; by a reset.
    pub(super) hang_up: Option<bool>,
    pub(super) error: Option<SdpError>,
    pub(super) opened: bool,
    /// The task is over.
    pub(super) gone: bool,
    /// Octets that were copied for Bcopy, and for who reads and writes.
    pub(super) copied: u64,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Who waits for the connection to open or to be over.
    pub(super) watchers: Vec<Waker>,
    /// Nobody reads any more.
    pub(super) discards: bool,
}

impl Engine {
    pub(super) fn new(device: &Device, now: Instant, role: Role, settings: SdpSettings) -> Result<Self, SdpError> {
        let pd = device.verbs(Rnic::allocate_pd)?;
        // A change of size may double the Private Buffers for a while.
        let receives = u32::from(settings.sdp.bufs).saturating_mul(4).max(64);
        let cq = device.create_cq(SENDS + receives)?;
        let init = QpInit {
            max_sq_wrs: SENDS,
            max_rq_wrs: receives,
            ord: settings.sdp.ord.into(),
            ird: settings.sdp.ird.into(),
            ..QpInit::new(pd, cq, cq)
        };
        let (qp, _, _) = device.verbs(|rnic| rnic.create_qp(init, None))?;
        let machine = match role {
            Role::Connecting => Connection::connect(now, settings.sdp),
            Role::Accepting => Connection::accept(now, settings.sdp),
        };
        Ok(Engine {
            device: device.clone(),
            machine,
            settings,
            pd,
            cq,
            qp,
            sends: HashMap::new(),
            unsent: 0,
            receives: HashMap::new(),
            private: HashMap::new(),
            exposed: HashMap::new(),
            next_id: 0,
            spare: Vec::new(),
            ready: VecDeque::new(),
            ended: false,
            graceful: None,
            waiting: VecDeque::new(),
            in_queue: 0,
            streaming: VecDeque::new(),
            start: None,
            hang_up: None,
            error: None,
            opened: false,
            gone: false,
            copied: 0,
            reader: None,
            writer: None,
            watchers: Vec::new(),
            discards: false,
        })
    }

    /// Does all that the machine wants done.
    pub(super) fn run(&mut self, now: Instant) {
        self.post_receives();
        loop {
            let (device, pd, sends) = (&self.device, self.pd, &self.sends);
            let (receives, exposed) = (&self.receives, &mut self.exposed);
            let mut register = |what| match what {
                Exposed::Source(piece) => {
                    let octets = slice(sends, piece)?;
                    let access = Access { local_read: true, remote_read: true, ..Access::default() };
                    let area = Area::new(device, pd, octets.len(), access).ok()?;
                    device.verbs(|rnic| area.put(rnic, &octets));
                    exposed.insert(area.stag(), area);
                    Some(Region { stag: area.stag(), va: 0 })
                }
                Exposed::Sink { receive, .. } => receives.get(&receive).map(|area| Region { stag: area.stag(), va: 0 }),
            };
            let Some(output) = self.machine.poll(now, &mut register) else { break };
            if let Err(error) = self.act(output) {
                self.error.get_or_insert(error);
                self.machine.handle_disconnected(now);
            }
        }
        self.post();
    }

    fn act(&mut self, output: Output) -> Result<(), SdpError> {
        match output {
            Output::Receive { buffer, octets } => self.post_private(buffer, octets)?,
            Output::Release(buffer) => {
                if let Some(area) = self.private.remove(&buffer) {
                    self.device.verbs(|rnic| area.free(rnic));
                }
            }
            Output::Streaming(octets) => self.streaming.push_back(octets),
            Output::Start(start) => self.start = Some(*start),
            Output::Send { op, mut head, payload, solicited, invalidate } => {
                if let Some(octets) = payload.and_then(|piece| slice(&self.sends, piece)) {
                    self.copied += octets.len() as u64;
                    head.extend_from_slice(&octets);
                }
                let payload = Payload::Inline(head.into());
                let wr_id = op.map_or(NOBODY, |op| op.0);
                self.waiting.push_back(SendWr::new(wr_id, Operation::Send { payload, solicited, invalidate }));
            }
            Output::Read { op, remote, receive, at, len } => {
                let Some(area) = self.receives.get(&receive) else { return Ok(()) };
                let local = area.part(at, len);
                self.waiting.push_back(SendWr::new(op.0, Operation::Read { local, remote, invalidate_local: false }));
            }
            Output::Write { op, data, remote } => {
                let payload = Payload::Inline(slice(&self.sends, data).unwrap_or_default());
                self.waiting.push_back(SendWr::new(op.0, Operation::Write { payload, remote }));
            }
            Output::Place { buffer, from, len, receive, at } => {
                if let (Some(private), Some(area)) = (self.private.get(&buffer), self.receives.get(&receive)) {
                    let at = usize::try_from(at).unwrap_or(usize::MAX);
                    self.device.verbs(|rnic| private.copy(rnic, from as usize, len as usize, area, at));
                    self.copied += u64::from(len);
                }
            }
            Output::Withdraw { stag } => self.withdraw(stag)?,
            Output::Event(event) => self.event(event),
            Output::Disconnect { abortive } => self.hang_up = Some(abortive),
        }
        Ok(())
    }

    /// The peer's access ends: a copy goes, a receive gets an STag that the peer does not know.
    fn withdraw(&mut self, stag: u32) -> Result<(), SdpError> {
        if let Some(area) = self.exposed.remove(&stag) {
            self.device.verbs(|rnic| area.free(rnic));
            return Ok(());
        }
        let Some(area) = self.receives.values_mut().find(|area| area.stag() == stag) else { return Ok(()) };
        let pd = self.pd;
        self.device.verbs(|rnic| area.renew(rnic, pd, RECEIVES))
    }

    fn post_private(&mut self, buffer: PrivateBuffer, octets: u32) -> Result<(), SdpError> {
        let size = octets as usize;
        if self.private.get(&buffer).is_none_or(|area| area.len() < size) {
            let area = Area::new(&self.device, self.pd, size, Access::LOCAL)?;
            if let Some(old) = self.private.insert(buffer, area) {
                self.device.verbs(|rnic| old.free(rnic));
            }
        }
        let Some(area) = self.private.get(&buffer) else { return Ok(()) };
        let wr = ReceiveWr { wr_id: RECEIVE | u64::from(buffer.0), scatter: vec![area.part(0, octets)] };
        match self.device.post_receive(self.qp, vec![wr]) {
            // The connection has ended; what had arrived is told first.
            Ok(_) | Err(PostError { status: PostStatus::InvalidQpState, .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Opened(_) => {
                self.opened = true;
                self.wake();
            }
            Event::Refused(refusal) => _ = self.error.get_or_insert(refusal.into()),
            Event::Sent { send, .. } => {
                if let Some(octets) = self.sends.remove(&send) {
                    self.unsent -= octets.len();
                }
                self.writer.take().into_iter().for_each(Waker::wake);
            }
            Event::Received { receive, octets, end, .. } => {
                if let Some(area) = self.receives.remove(&receive) {
                    let to = usize::try_from(octets).unwrap_or(usize::MAX);
                    self.ready.push_back(Ready { area, from: 0, to });
                }
                self.ended |= end != ReceiveEnd::More;
                self.reader.take().into_iter().for_each(Waker::wake);
            }
            Event::Closed { graceful, violation } => {
                self.graceful = Some(graceful);
                if let Some(violation) = violation {
                    self.error.get_or_insert(violation.into());
                }
                self.wake();
            }
            Event::PeerClosed | Event::UrgentPending | Event::ModeChanged { .. } | Event::Resized(_) => {}
        }
    }

    pub(super) fn wake(&mut self) {
        let users = self.reader.take().into_iter().chain(self.writer.take());
        users.chain(self.watchers.drain(..)).for_each(Waker::wake);
    }

    /// Receives are posted ahead, as many as the settings say.
    fn post_receives(&mut self) {
        while !self.ended && self.receives.len() + self.ready.len() < self.settings.receives.max(1) {
            let area = match self.spare.pop() {
                Some(area) => area,
                None => match Area::new(&self.device, self.pd, self.settings.receive, RECEIVES) {
                    Ok(area) => area,
                    Err(error) => {
                        self.error.get_or_insert(error);
                        return;
                    }
                },
            };
            let id = ReceiveId(self.next_id);
            self.next_id += 1;
            self.receives.insert(id, area);
            if self.machine.receive(id, area.len() as u64, false).is_err() {
                return;
            }
        }
    }

    /// Posts what the Send Queue has room for.
    fn post(&mut self) {
        while self.in_queue < SENDS
            && let Some(wr) = self.waiting.pop_front()
        {
            // A Queue Pair that left RTS flushes nothing that it did not take: the receives' completions tell of its end.
            if self.device.post_send(self.qp, vec![wr]).is_ok() {
                self.in_queue += 1;
            }
        }
    }

    /// Nothing is queued and nothing under way.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_queue == 0
    }

    /// A work request is through.
    pub(super) fn completed(&mut self, now: Instant, completion: &WorkCompletion) {
        let ok = completion.status == CompletionStatus::Success;
        if completion.operation == CompletedOperation::Receive {
            if !ok {
                return self.machine.handle_disconnected(now);
            }
            let buffer = PrivateBuffer(u32::try_from(completion.wr_id & !RECEIVE).unwrap_or(u32::MAX));
            let Some(area) = self.private.get(&buffer) else { return };
            let octets = completion.octets as usize;
            // Headers only: payload is placed from where it is.
            let message = self.device.verbs(|rnic| area.octets(rnic, 0, octets).to_vec());
            self.machine.handle_message(now, buffer, &message, Arrival { invalidated: completion.invalidated });
            return;
        }
        self.in_queue = self.in_queue.saturating_sub(1);
        if completion.wr_id != NOBODY {
            self.machine.handle_completed(now, OpId(completion.wr_id), ok);
        } else if !ok {
            self.machine.handle_disconnected(now);
        }
    }

    /// The Queue Pair's connection is over: what had arrived counts, then nothing more does.
    pub(super) fn ended(&mut self, now: Instant) {
        while let Ok(completion) = self.device.verbs(|rnic| rnic.poll_cq(self.cq)) {
            self.completed(now, &completion);
            self.run(now);
        }
        self.machine.handle_disconnected(now);
    }

    /// Takes octets of the user, as many as there is room for; `None` when there is none.
    pub(super) fn write(&mut self, octets: &[u8]) -> Option<Result<usize, SdpError>> {
        if self.gone || self.machine.is_over() {
            let closed = SdpError::Io(std::io::ErrorKind::BrokenPipe, "the connection is closed".to_owned());
            return Some(Err(self.error.clone().unwrap_or(closed)));
        }
        let room = self.settings.send_buffer.saturating_sub(self.unsent);
        if room == 0 {
            return None;
        }
        let len = octets.len().min(room);
        let id = SendId(self.next_id);
        self.next_id += 1;
        if self.machine.send(id, len as u64, false).is_err() {
            let closed = "this side has shut down sending".to_owned();
            return Some(Err(SdpError::Io(std::io::ErrorKind::BrokenPipe, closed)));
        }
        self.sends.insert(id, Bytes::copy_from_slice(&octets[..len]));
        self.unsent += len;
        self.copied += len as u64;
        Some(Ok(len))
    }

    /// Drops what arrives for nobody.
    pub(super) fn discard(&mut self) {
        if self.discards {
            self.spare.extend(self.ready.drain(..).map(|ready| ready.area));
            self.post_receives();
        }
    }

    /// Octets that were written and are not out.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Gives the reader octets, as many as fit and are there; `None` when it has to wait, 0 at the end of the stream.
    pub(super) fn read(&mut self, to: &mut [u8]) -> Option<Result<usize, SdpError>> {
        let mut read = 0;
        while let Some(front) = self.ready.front_mut().filter(|_| read < to.len()) {
            let len = (front.to - front.from).min(to.len() - read);
            let (area, from) = (front.area, front.from);
            self.device.verbs(|rnic| {
                let octets = area.octets(rnic, from, from + len);
                if let Some(to) = to.get_mut(read..read + octets.len()) {
                    to.copy_from_slice(octets);
                }
            });
            front.from += len;
            read += len;
            if front.from == front.to {
                self.spare.extend(self.ready.pop_front().map(|ready| ready.area));
            }
        }
        self.copied += read as u64;
        if read > 0 || to.is_empty() {
            return Some(Ok(read));
        }
        if !self.ended && !self.gone {
            return None;
        }
        match self.error.clone() {
            Some(error) => Some(Err(error)),
            None if self.graceful == Some(false) => {
                let reset = "the connection was reset".to_owned();
                Some(Err(SdpError::Io(std::io::ErrorKind::ConnectionReset, reset)))
            }
            None => Some(Ok(0)),
        }
    }

    /// Gives the RNIC's objects back. Octets that have arrived stay until they are read, in Private Buffers too.
    pub(super) fn tear_down(&mut self) {
        // Each can be gone already only with the RNIC itself.
        let _ = self.device.destroy_qp(self.qp);
        let _ = self.device.destroy_cq(self.cq);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let kept = self.private.values().chain(self.exposed.values()).chain(self.receives.values());
        let areas: Vec<Area> = kept.chain(&self.spare).copied().chain(self.ready.iter().map(|it| it.area)).collect();
        let pd = self.pd;
        self.device.verbs(|rnic| {
            areas.into_iter().for_each(|area| area.free(rnic));
            let _ = rnic.deallocate_pd(pd);
        });
    }
}

/// Rights of a receive: its own Reads, and the peer's Writes.
const RECEIVES: Access =
    Access { local_read: false, local_write: true, remote_read: false, remote_write: true, bind: false };

/// Octets of a send, not copied.
fn slice(sends: &HashMap<SendId, Bytes>, piece: Piece) -> Option<Bytes> {
    let octets = sends.get(&piece.send)?;
    let from = usize::try_from(piece.from).ok()?;
    let to = from.checked_add(piece.len as usize).filter(|to| *to <= octets.len())?;
    Some(octets.slice(from..to))
}
