//! One end: SDP's machine, the RNIC's objects that it speaks through, and its user.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use super::SdpServer;
use super::area::{Area, Keys, VA};
use super::user::{Mind, Wish};
use crate::connection::Transmit;
use crate::hostile::hook;
use crate::memory::{Access, PdId};
use crate::sdp::{
    Arrival, Connection, Event, Exposed, OpId, Output, Piece, PrivateBuffer, ReceiveEnd, ReceiveId, Region, SendId,
    Start,
};
use crate::service::Served;
use crate::time::Instant;
use crate::verbs::{
    CompletedOperation, CompletionStatus, CqHandle, LateSegment, LlpHandle, Node, Operation, Payload, QpHandle, QpInit,
    QpModify, QpState, ReceiveWr, Rnic, RnicSettings, SendWr, Sent,
};
use crate::workload::WorkloadError;

/// Bit of a receive's `wr_id`; the rest is the Private Buffer.
const RECEIVE: u64 = 1 << 63;
/// `wr_id` of a Send whose completion the machine does not want.
const NOBODY: u64 = RECEIVE - 1;
/// Work requests of the Send Queue.
const SENDS: u32 = 256;
/// Receives: a change of size may double the Private Buffers for a while.
const RECEIVES: u32 = 256;
/// Octets of payload that a TCP segment carries at most.
const EMSS: u32 = 1460;

const SENT: Access = Access { local_read: true, remote_read: true, ..Access::LOCAL };
const RECEIVED: Access = Access { remote_write: true, ..Access::LOCAL };

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct SdpEnd {
    machine: Connection,
    mind: Mind,
    rnic: Rnic,
    keys: Keys,
    pd: PdId,
    cq: CqHandle,
    qp: QpHandle,
    /// ORD and IRD.
    depths: (u32, u32),
    llp: Option<LlpHandle>,
    /// What goes out in streaming mode.
    streaming: VecDeque<Transmit>,
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
    over: bool,
    /// The port to connect to when TCP has come to its end.
    reconnect: Option<u16>,
    /// Of the hostile endpoint.
    keeps_memory: bool,
}

impl SdpEnd {
    pub(super) fn new(now: Instant, server: &SdpServer) -> Result<Self, WorkloadError> {
        const NAME: &str = "weft0";
        let (mut rnic, _) = Node::new([NAME])
            .open(NAME, RnicSettings::default())
            .map_err(|error| WorkloadError::Local(error.to_string()))?;
        rnic.deviate(server.deviations.clone());
        let pd = rnic.allocate_pd()?;
        let (cq, _) = rnic.create_cq(SENDS + RECEIVES, None)?;
        let settings = server.settings;
        let depths = (settings.ord.into(), settings.ird.into());
        let qp = queue_pair(&mut rnic, pd, cq, depths)?;
        let machine = Connection::deviating(now, server.role, settings, server.deviations.clone());
        let mut end = SdpEnd {
            machine,
            mind: Mind::new(server.user),
            rnic,
            keys: Keys::default(),
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
            over: false,
            reconnect: None,
            keeps_memory: hook::sdp_conduct(&server.deviations).keeps_memory,
        };
        end.run(now);
        Ok(end)
    }

    /// Does all that the user, the machine and the RNIC want done.
    fn run(&mut self, now: Instant) {
        loop {
            while let Some(wish) = self.mind.next(now, &mut self.machine) {
                self.grant(wish);
            }
            let (rnic, keys, pd, sends) = (&mut self.rnic, &mut self.keys, self.pd, &self.sends);
            let (receives, exposed) = (&self.receives, &mut self.exposed);
            let mut register = |what| match what {
                Exposed::Source(piece) => {
                    let octets = cut(sends, piece);
                    let area = Area::new(rnic, keys, pd, octets.len(), SENT).ok()?;
                    area.put(rnic, 0, octets);
                    exposed.insert(area.stag(), area);
                    Some(Region { stag: area.stag(), va: VA })
                }
                Exposed::Sink { receive, .. } => Some(Region { stag: receives.get(&receive)?.stag(), va: VA }),
            };
            if let Some(output) = self.machine.poll(now, &mut register) {
                if self.act(now, output).is_err() {
                    self.hang_up();
                }
            } else if !self.complete(now) {
                break;
            }
        }
        if self.closing && self.in_queue == 0 {
            self.closing = false;
            if self.rnic.modify_qp(now, self.qp, &QpModify::to(QpState::Closing)).is_err() {
                self.hang_up();
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

    /// Destroying the Queue Pair resets the connection.
    fn hang_up(&mut self) {
        // It may be gone already.
        let _ = self.rnic.destroy_qp(self.qp);
    }

    /// There is no Queue Pair for another stream.
    fn give_up(&mut self) {
        self.streaming.push_back(Transmit::Reset);
    }

    fn grant(&mut self, wish: Wish) {
        let id = self.next_id;
        self.next_id += 1;
        match wish {
            Wish::Send { octets, urgent } => {
                // What is sent where that is over is lost.
                if self.machine.send(SendId(id), octets.len() as u64, urgent).is_ok() {
                    self.sends.insert(SendId(id), octets);
                }
            }
            Wish::Receive(len) => {
                let size = usize::try_from(len).unwrap_or(usize::MAX);
                let area = Area::new(&mut self.rnic, &mut self.keys, self.pd, size, RECEIVED);
                if let Ok(area) = area
                    && self.machine.receive(ReceiveId(id), len, false).is_ok()
                {
                    self.receives.insert(ReceiveId(id), area);
                }
            }
            Wish::Nothing => {}
        }
    }

    /// One completion; `false` when there is none.
    fn complete(&mut self, now: Instant) -> bool {
        let Ok(completion) = self.rnic.poll_cq(self.cq) else { return false };
        let ok = completion.status == CompletionStatus::Success;
        if completion.operation != CompletedOperation::Receive {
            self.in_queue = self.in_queue.saturating_sub(1);
            if completion.wr_id != NOBODY {
                self.machine.handle_completed(now, OpId(completion.wr_id), ok);
            } else if !ok {
                self.machine.handle_disconnected(now);
            }
        } else if ok {
            let buffer = PrivateBuffer(u32::try_from(completion.wr_id & !RECEIVE).unwrap_or(u32::MAX));
            let octets = self.private.get(&buffer).map(|area| area.octets(&self.rnic, 0, completion.octets as usize));
            let arrival = Arrival { invalidated: completion.invalidated };
            self.machine.handle_message(now, buffer, &octets.unwrap_or_default(), arrival);
        } else {
            self.machine.handle_disconnected(now);
        }
        true
    }

    fn act(&mut self, now: Instant, output: Output) -> Result<(), WorkloadError> {
        match output {
            Output::Receive { buffer, octets } => self.post_private(buffer, octets)?,
            Output::Release(buffer) => {
                if let Some(area) = self.private.remove(&buffer) {
                    area.free(&mut self.rnic);
                }
            }
            Output::Streaming(octets) => self.streaming.push_back(Transmit::Octets(octets.into())),
            Output::Start(start) => self.start(now, *start)?,
            Output::Send { op, mut head, payload, solicited, invalidate } => {
                head.extend(payload.map(|piece| cut(&self.sends, piece)).into_iter().flatten());
                let wr_id = op.map_or(NOBODY, |op| op.0);
                self.post(wr_id, Operation::Send { payload: Payload::Inline(head.into()), solicited, invalidate });
            }
            Output::Read { op, remote, receive, at, len } => {
                let Some(area) = self.receives.get(&receive) else { return Ok(()) };
                let local = area.part(at, len);
                self.post(op.0, Operation::Read { local, remote, invalidate_local: false });
            }
            Output::Write { op, data, remote } => {
                let payload = Payload::Inline(Bytes::copy_from_slice(cut(&self.sends, data)));
                self.post(op.0, Operation::Write { payload, remote });
            }
            Output::Place { buffer, from, len, receive, at } => {
                if let (Some(private), Some(area)) = (self.private.get(&buffer), self.receives.get(&receive)) {
                    let octets = private.octets(&self.rnic, from as usize, len as usize);
                    area.put(&mut self.rnic, usize::try_from(at).unwrap_or(usize::MAX), &octets);
                }
            }
            Output::Withdraw { stag } => self.withdraw(stag)?,
            Output::Event(event) => self.event(event),
            Output::Disconnect { abortive } => match self.llp {
                Some(_) if abortive => self.hang_up(),
                Some(_) => self.closing = true,
                None => self.streaming.push_back(if abortive { Transmit::Reset } else { Transmit::Fin }),
            },
        }
        Ok(())
    }

    /// A Queue Pair in error takes none.
    fn post(&mut self, wr_id: u64, operation: Operation) {
        if self.rnic.post_send(self.qp, vec![SendWr::new(wr_id, operation)]).is_ok() {
            self.in_queue += 1;
        }
    }

    fn post_private(&mut self, buffer: PrivateBuffer, octets: u32) -> Result<(), WorkloadError> {
        let size = octets as usize;
        let area = match self.private.get(&buffer).copied().filter(|area| area.len >= size) {
            Some(area) => area,
            None => {
                let area = Area::new(&mut self.rnic, &mut self.keys, self.pd, size, Access::LOCAL)?;
                if let Some(old) = self.private.insert(buffer, area) {
                    old.free(&mut self.rnic);
                }
                area
            }
        };
        let scatter = vec![area.part(0, octets)];
        // A Queue Pair that has ended takes none.
        let _ = self.rnic.post_receive(self.qp, vec![ReceiveWr { wr_id: RECEIVE | u64::from(buffer.0), scatter }]);
        Ok(())
    }

    fn withdraw(&mut self, stag: u32) -> Result<(), WorkloadError> {
        if let Some(area) = self.exposed.remove(&stag) {
            area.free(&mut self.rnic);
        } else if let Some(area) = self.receives.values_mut().find(|area| area.stag() == stag) {
            area.withdraw(&mut self.rnic, &mut self.keys, self.pd, RECEIVED)?;
        }
        Ok(())
    }

    fn start(&mut self, now: Instant, start: Start) -> Result<(), WorkloadError> {
        let llp = self.rnic.attach_stream(start.llp(EMSS))?;
        self.rnic.handle_octets(now, llp, &start.unread);
        let stream_message = (!start.last.is_empty()).then(|| start.last.into());
        let modify = QpModify { llp: Some(llp), stream_message, ..QpModify::to(QpState::Rts) };
        self.rnic.modify_qp(now, self.qp, &modify)?;
        self.llp = Some(llp);
        Ok(())
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Opened(_) => self.mind.opened(),
            Event::Received { receive, octets, urgent, end } => {
                let Some(area) = self.receives.remove(&receive) else { return };
                let got = area.octets(&self.rnic, 0, usize::try_from(octets).unwrap_or(usize::MAX));
                if !self.keeps_memory {
                    area.free(&mut self.rnic);
                }
                let more = matches!(end, ReceiveEnd::More | ReceiveEnd::Canceled);
                self.mind.received(got, urgent, more);
            }
            Event::Suspended { reconnect } => self.reconnect = reconnect,
            _ => {}
        }
    }
}

impl Served for SdpEnd {
    fn handle_octets(&mut self, now: Instant, octets: &[u8]) {
        match self.llp {
            None => self.machine.handle_streaming(now, octets),
            Some(llp) => self.rnic.handle_octets(now, llp, octets),
        }
        self.run(now);
    }

    fn handle_fin(&mut self, now: Instant) {
        match self.llp {
            None => self.machine.handle_disconnected(now),
            Some(llp) => self.rnic.handle_fin(now, llp),
        }
        self.run(now);
    }

    fn handle_reset(&mut self, now: Instant) {
        match self.llp {
            None => self.machine.handle_disconnected(now),
            Some(llp) => self.rnic.handle_reset(now, llp),
        }
        self.run(now);
        self.over = true;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        if let Some(llp) = self.llp {
            self.rnic.handle_timeout(now, llp);
        }
        self.run(now);
    }

    fn serve(&mut self, now: Instant) {
        self.run(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.over {
            return None;
        }
        if let Some(transmit) = self.streaming.pop_front() {
            self.over = matches!(transmit, Transmit::Reset);
            return Some(transmit);
        }
        let llp = self.llp?;
        let mut octets = Vec::new();
        let sent = self.rnic.poll_transmit(now, llp, |slices| {
            slices.iter().for_each(|slice| octets.extend_from_slice(slice));
            octets.len()
        });
        self.run(now);
        match sent {
            Sent::Nothing => None,
            Sent::Octets(_) => Some(Transmit::Octets(octets.into())),
            Sent::Fin => Some(Transmit::Fin),
            Sent::Reset => {
                self.over = true;
                Some(Transmit::Reset)
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.over {
            return None;
        }
        let llp = self.llp.and_then(|llp| self.rnic.poll_timeout(llp));
        self.machine.poll_timeout().into_iter().chain(llp).chain(self.mind.wait).min()
    }

    fn poll_reconnect(&mut self) -> Option<u16> {
        self.reconnect.take_if(|_| self.ended && self.machine.is_suspended())
    }

    fn handle_reconnected(&mut self, now: Instant) {
        // The old ones hold what was flushed.
        let _ = self.rnic.destroy_qp(self.qp);
        self.streaming.clear();
        let Ok((cq, _)) = self.rnic.create_cq(SENDS + RECEIVES, None) else { return self.give_up() };
        let Ok(qp) = queue_pair(&mut self.rnic, self.pd, cq, self.depths) else { return self.give_up() };
        (self.cq, self.qp) = (cq, qp);
        (self.llp, self.in_queue) = (None, 0);
        (self.closing, self.ended, self.over) = (false, false, false);
        self.machine.reconnected(now);
        self.run(now);
    }

    fn is_over(&self) -> bool {
        let stream = self.llp.is_none_or(|llp| self.rnic.is_stream_over(llp));
        self.over || self.machine.is_over() && self.streaming.is_empty() && stream
    }
}

/// The Queue Pair of one stream.
fn queue_pair(rnic: &mut Rnic, pd: PdId, cq: CqHandle, (ord, ird): (u32, u32)) -> Result<QpHandle, WorkloadError> {
    let init = QpInit {
        ord,
        ird,
        max_sq_wrs: SENDS,
        max_rq_wrs: RECEIVES,
        // The peer's updates may cross the last DisConn, and TCP still have octets for it.
        late: LateSegment::Drop,
        ..QpInit::new(pd, cq, cq)
    };
    Ok(rnic.create_qp(init, None)?.0)
}

/// Octets of a send; of those that it has.
fn cut(sends: &HashMap<SendId, Vec<u8>>, piece: Piece) -> &[u8] {
    let octets = sends.get(&piece.send).map(Vec::as_slice).unwrap_or_default();
    let from = usize::try_from(piece.from).unwrap_or(usize::MAX).min(octets.len());
    &octets[from..octets.len().min(from.saturating_add(piece.len as usize))]
}
