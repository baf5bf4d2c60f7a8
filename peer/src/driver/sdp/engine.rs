//! A connection's machine, and the RNIC's objects that it speaks through: what it puts out becomes work requests, what completes
//! goes back in.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use bytes::Bytes;
use tokio::net::TcpStream;

use super::area::{self, Area};
use super::arrived::Arrived;
use super::failover::Ends;
use super::{SdpError, SdpSettings};
use crate::driver::Device;
use crate::memory::{Access, PdId};
use crate::sdp::{
    Arrival, Connection, Event, Exposed, OpId, Output, Piece, PrivateBuffer, ReceiveEnd, ReceiveId, Region, Role,
    SendId, Settings, Start,
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

/// One connection's engine.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) device: Device,
    /// Of the TCP connection.
    pub(super) ends: Ends,
    pub(super) machine: Connection,
    pub(super) settings: SdpSettings,
    pub(super) pd: PdId,
    pub(super) cq: CqHandle,
    pub(super) qp: QpHandle,
    /// What was written and is not out.
    pub(super) sends: HashMap<SendId, Bytes>,
    pub(super) unsent: usize,
    receives: HashMap<ReceiveId, Area>,
    private: HashMap<PrivateBuffer, Area>,
    /// Copies of sends that the peer may read, by STag.
    exposed: HashMap<u32, Area>,
    /// The Read that is under way, and where to.
    reading: Option<(OpId, ReceiveId)>,
    pub(super) next_id: u64,
    /// Receives on which nothing waits.
    pub(super) spare: Vec<Area>,
    pub(super) arrived: Arrived,
    /// The peer sends no more.
    pub(super) ended: bool,
    /// How the connection ended.
    pub(super) graceful: Option<bool>,
    waiting: VecDeque<SendWr>,
    in_queue: u32,
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
    pub(super) fn new(
        device: &Device,
        now: Instant,
        role: Role,
        settings: SdpSettings,
        ends: Ends,
    ) -> Result<Self, SdpError> {
        let pd = device.verbs(Rnic::allocate_pd)?;
        let (cq, qp) = queue_pair(device, pd, &settings.sdp)?;
        let deviations = device.verbs(|rnic| rnic.deviations().clone());
        let machine = Connection::deviating(now, role, settings.sdp, deviations);
        Ok(Engine {
            device: device.clone(),
            ends,
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
            reading: None,
            next_id: 0,
            spare: Vec::new(),
            arrived: Arrived::default(),
            ended: false,
            graceful: None,
            waiting: VecDeque::new(),
            in_queue: 0,
            streaming: VecDeque::new(),
            start: None,
            hang_up: None,
            error: None,
            opened: false,
            reconnect: None,
            successor: None,
            moves: 0,
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
        // A receive that is posted may take what waits in Private Buffers, and leave room for the next.
        while self.post_receives() {
            self.drain(now);
        }
        self.drain(now);
        self.post();
    }

    /// Does all that the machine wants done as things stand.
    fn drain(&mut self, now: Instant) {
        loop {
            let (device, pd, sends) = (&self.device, self.pd, &self.sends);
            let (receives, exposed) = (&mut self.receives, &mut self.exposed);
            let mut register = |what| match what {
                Exposed::Source(piece) => {
                    let octets = slice(sends, piece)?;
                    let area = Area::registered(device, pd, octets.len(), area::SOURCE).ok()?;
                    device.verbs(|rnic| area.put(rnic, &octets));
                    let stag = area.stag()?;
                    exposed.insert(stag, area);
                    Some(Region { stag, va: 0 })
                }
                Exposed::Sink { receive, .. } => {
                    let area = receives.get_mut(&receive)?;
                    let stag = device.verbs(|rnic| area.register(rnic, pd, area::SINK)).ok()?;
                    Some(Region { stag, va: 0 })
                }
            };
            let Some(output) = self.machine.poll(now, &mut register) else { break };
            if let Err(error) = self.act(output) {
                self.error.get_or_insert(error);
                self.machine.handle_disconnected(now);
            }
        }
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
                let (pd, area) = (self.pd, self.receives.get_mut(&receive));
                let Some(area) = area else { return Ok(()) };
                // In iWARP the answer to a Read is a write of the peer.
                self.device.verbs(|rnic| area.register(rnic, pd, area::SINK))?;
                let Some(local) = area.part(at, len) else { return Ok(()) };
                self.reading = Some((op, receive));
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
            Output::Withdraw { stag } => self.withdraw(stag),
            Output::Event(event) => self.event(event),
            Output::Disconnect { abortive } => {
                self.hang_up = Some(abortive);
                if abortive {
                    // What the RNIC still places would come into memory that is the reader's from here on.
                    let _ = self.device.destroy_qp(self.qp);
                }
            }
        }
        Ok(())
    }

    /// The peer's access ends; a copy goes.
    fn withdraw(&mut self, stag: u32) {
        if let Some(area) = self.exposed.remove(&stag) {
            self.device.verbs(|rnic| area.free(rnic));
        } else if let Some(area) = self.receives.values_mut().find(|area| area.stag() == Some(stag)) {
            self.device.verbs(|rnic| area.withdraw(rnic));
        }
    }

    fn post_private(&mut self, buffer: PrivateBuffer, octets: u32) -> Result<(), SdpError> {
        let size = octets as usize;
        if self.private.get(&buffer).is_none_or(|area| area.len() < size) {
            let area = Area::registered(&self.device, self.pd, size, Access::LOCAL)?;
            if let Some(old) = self.private.insert(buffer, area) {
                self.device.verbs(|rnic| old.free(rnic));
            }
        }
        let Some(area) = self.private.get_mut(&buffer) else { return Ok(()) };
        if area.stag().is_none() {
            // It held octets while the connection moved.
            let pd = self.pd;
            self.device.verbs(|rnic| area.register(rnic, pd, Access::LOCAL))?;
        }
        let wr =
            ReceiveWr { wr_id: RECEIVE | u64::from(buffer.0), scatter: area.part(0, octets).into_iter().collect() };
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
            Event::Received { receive, octets, urgent, end } => {
                if let Some(mut area) = self.receives.remove(&receive) {
                    // A Read that the connection's end cut short.
                    self.device.verbs(|rnic| area.withdraw(rnic));
                    let octets = usize::try_from(octets).unwrap_or(usize::MAX);
                    let most = self.settings.receives;
                    if let Some(spare) = self.arrived.push(&self.device, area, octets, urgent, most) {
                        self.copied += octets as u64;
                        self.spare.push(spare);
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

    pub(super) fn wake(&mut self) {
        let users = self.reader.take().into_iter().chain(self.writer.take());
        users.chain(self.watchers.drain(..)).for_each(Waker::wake);
    }

    /// Receives are posted ahead, as many as the settings say, less those that what is unread takes up; gives whether any was.
    pub(super) fn post_receives(&mut self) -> bool {
        let mut any = false;
        let taken = self.arrived.receives(self.settings.receive);
        while !self.ended && self.receives.len() + taken < self.settings.receives.max(1) {
            let area = match self.spare.pop() {
                Some(area) => area,
                None => match self.device.verbs(|rnic| Area::new(rnic, self.settings.receive)) {
                    Ok(area) => area,
                    Err(error) => {
                        self.error.get_or_insert(error);
                        return false;
                    }
                },
            };
            let (id, len) = (ReceiveId(self.next_id), area.len() as u64);
            self.next_id += 1;
            self.receives.insert(id, area);
            if self.machine.receive(id, len, false).is_err() {
                return false;
            }
            any = true;
        }
        any
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
        if let Some((_, receive)) = self.reading.take_if(|(op, _)| op.0 == completion.wr_id)
            && let Some(area) = self.receives.get_mut(&receive)
        {
            self.device.verbs(|rnic| area.withdraw(rnic));
        }
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

    /// It is over, and not by a graceful close.
    pub(super) fn is_broken(&self) -> bool {
        self.gone && (self.error.is_some() || self.graceful != Some(true))
    }

    /// The connection has another Queue Pair: nothing is queued, and start-up comes.
    pub(super) fn start_anew(&mut self) {
        self.waiting.clear();
        self.streaming.clear();
        (self.in_queue, self.reading, self.start, self.hang_up, self.reconnect) = (0, None, None, None, None);
    }

    /// All memory that is the connection's.
    pub(super) fn areas_mut(&mut self) -> impl Iterator<Item = &mut Area> {
        let posted = self.receives.values_mut().chain(self.private.values_mut()).chain(self.exposed.values_mut());
        posted.chain(&mut self.spare).chain(self.arrived.areas_mut())
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
        let private = self.private.drain().map(|(_, area)| area);
        let kept =
            private.chain(self.exposed.drain().map(|(_, area)| area)).chain(self.receives.drain().map(|it| it.1));
        let arrived = std::mem::take(&mut self.arrived).into_areas();
        let pd = self.pd;
        self.device.verbs(|rnic| {
            kept.chain(self.spare.drain(..)).chain(arrived).for_each(|area| area.free(rnic));
            let _ = rnic.deallocate_pd(pd);
        });
    }
}

/// A Queue Pair as such a connection needs it, and its CQ.
pub(super) fn queue_pair(device: &Device, pd: PdId, sdp: &Settings) -> Result<(CqHandle, QpHandle), SdpError> {
    // A change of size may double the Private Buffers for a while.
    let receives = u32::from(sdp.bufs).saturating_mul(4).max(64);
    let cq = device.create_cq(SENDS + receives)?;
    let init = QpInit {
        max_sq_wrs: SENDS,
        max_rq_wrs: receives,
        ord: sdp.ord.into(),
        ird: sdp.ird.into(),
        ..QpInit::new(pd, cq, cq)
    };
    let (qp, _, _) = device.verbs(|rnic| rnic.create_qp(init, None))?;
    Ok((cq, qp))
}

/// Octets of a send, not copied.
fn slice(sends: &HashMap<SendId, Bytes>, piece: Piece) -> Option<Bytes> {
    let octets = sends.get(&piece.send)?;
    let from = usize::try_from(piece.from).ok()?;
    let to = from.checked_add(piece.len as usize).filter(|to| *to <= octets.len())?;
    Some(octets.slice(from..to))
}

#[cfg(test)]
mod tests;
