//! The endpoint with an RNIC. It performs start-up in the same way as `driver::cm` (connection
//! management). Then it uses a Queue Pair with guarded memory.

use core::time::Duration;

use bytes::Bytes;
use fastrand::Rng;

use super::endpoint::Endpoint;
use super::{GuardedMemory, MemoryViolation, RandomWork, Remote};
use crate::connection::Transmit;
use crate::hostile::Deviations;
use crate::memory::{MemorySettings, PdId};
use crate::mpa::{AfterReply, AfterRequest, MpaSettings, Negotiated, PrivateData, WaitReply, WaitRequest};
use crate::service::poll_transmit;
use crate::time::Instant;
use crate::verbs::{CqHandle, LlpHandle, LlpSettings, Node, QpHandle, QpInit, QpModify, QpState, Rnic, RnicSettings};

/// Time limit for start-up.
const STARTUP: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct RnicEndpoint {
    rnic: Rnic,
    pd: PdId,
    cq: CqHandle,
    qp: QpHandle,
    guarded: GuardedMemory,
    emss: u32,
    state: State,
    deadline: Option<Instant>,
}

#[derive(Debug)]
enum State {
    /// A Responder that waits for the Request.
    Request(WaitRequest, PrivateData),
    /// An Initiator that waits for the Reply. The vector contains the Request until the Request is
    /// sent.
    Reply(WaitReply, Vec<u8>),
    Joined(LlpHandle),
    /// Start-up failed, and TCP has to be closed.
    Leaving,
    Closed,
}

impl RnicEndpoint {
    pub(super) fn new(
        now: Instant,
        rng: &mut Rng,
        mpa: MpaSettings,
        initiates: bool,
        private_data: PrivateData,
        deviations: &Deviations,
        emss: u32,
    ) -> Result<Self, String> {
        let memory = MemorySettings { stag_seed: rng.u64(..), ..MemorySettings::default() };
        let settings = RnicSettings { memory, ..RnicSettings::default() };
        let (mut rnic, _) = Node::new(["weft0"]).open("weft0", settings).map_err(|error| error.to_string())?;
        rnic.deviate(deviations.clone());
        let pd = rnic.memory_mut().allocate_pd().map_err(|error| error.to_string())?;
        let (cq, _) = rnic.create_cq(1 << 12, None).map_err(|error| error.to_string())?;
        let depth = rng.u32(1..=16);
        let init = QpInit { max_sq_wrs: 256, max_rq_wrs: 256, ord: depth, ird: depth, ..QpInit::new(pd, cq, cq) };
        let (qp, _, _) = rnic.create_qp(init, None).map_err(|error| error.to_string())?;
        let guarded = GuardedMemory::new(&mut rnic, pd, rng).map_err(|error| error.to_string())?;
        let state = if initiates {
            let mut request = Vec::new();
            let waiting = WaitReply::start(mpa, &private_data, deviations.clone(), &mut request);
            State::Reply(waiting.map_err(|error| error.to_string())?, request)
        } else {
            State::Request(WaitRequest::start(mpa, deviations.clone()), private_data)
        };
        let mut end = RnicEndpoint { rnic, pd, cq, qp, guarded, emss, state, deadline: Some(now + STARTUP) };
        for _ in 0..4 {
            end.receive(rng);
        }
        Ok(end)
    }

    fn receive(&mut self, rng: &mut Rng) {
        // Ignore an error: a queue that is full or in the Error state rejects the receives.
        let _ = self.rnic.post_receive(self.qp, RandomWork::receives(rng, &self.guarded));
    }

    fn start_up(&mut self, now: Instant, octets: &[u8]) {
        self.state = match std::mem::replace(&mut self.state, State::Leaving) {
            State::Request(waiting, private_data) => match waiting.handle_octets(octets) {
                Ok(AfterRequest::Waiting(more)) => State::Request(more, private_data),
                Ok(AfterRequest::Arrived(decision)) if decision.check(&private_data).is_ok() => {
                    let mut reply = Vec::new();
                    let negotiated = decision.accept(&private_data, &mut reply);
                    self.join(now, &negotiated, Some(reply.into()))
                }
                Ok(AfterRequest::Arrived(_)) | Err(_) => State::Leaving,
            },
            State::Reply(waiting, frame) => match waiting.handle_octets(octets) {
                Ok(AfterReply::Waiting(more)) => State::Reply(more, frame),
                Ok(AfterReply::Accepted(negotiated, _)) => self.join(now, &negotiated, None),
                Ok(AfterReply::Unacceptable(..) | AfterReply::Rejected(_)) | Err(_) => State::Leaving,
            },
            other => other,
        };
    }

    fn join(&mut self, now: Instant, negotiated: &Negotiated, reply: Option<Bytes>) -> State {
        self.deadline = None;
        let Ok(llp) = self.rnic.attach_stream(LlpSettings::new(negotiated, self.emss)) else { return State::Leaving };
        let depths = negotiated.enhanced.map(|agreed| (agreed.ird.into(), agreed.ord.into())).unzip();
        let modify = QpModify { stream_message: reply, ird: depths.0, ord: depths.1, ..QpModify::to_rts(llp) };
        if self.rnic.modify_qp(now, self.qp, &modify).is_err() {
            self.rnic.detach_stream(now, llp);
            return State::Leaving;
        }
        State::Joined(llp)
    }
}

impl Endpoint for RnicEndpoint {
    fn arrived(&mut self, now: Instant, arrived: &Transmit) {
        match (&self.state, arrived) {
            (State::Joined(llp), Transmit::Octets(octets)) => self.rnic.handle_octets(now, *llp, octets),
            (State::Joined(llp), Transmit::Fin) => self.rnic.handle_fin(now, *llp),
            (State::Joined(llp), Transmit::Reset) => self.rnic.handle_reset(now, *llp),
            (State::Request(..) | State::Reply(..), Transmit::Octets(octets)) => self.start_up(now, octets),
            (State::Request(..) | State::Reply(..), Transmit::Fin) => self.state = State::Leaving,
            (_, Transmit::Reset) => self.state = State::Closed,
            (State::Leaving | State::Closed, _) => {}
        }
    }

    fn reads(&self) -> bool {
        match self.state {
            State::Joined(llp) => self.rnic.wants_octets(llp),
            _ => true,
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Joined(llp) => self.rnic.poll_timeout(llp),
            State::Request(..) | State::Reply(..) => self.deadline,
            State::Leaving | State::Closed => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Joined(llp) => self.rnic.handle_timeout(now, llp),
            State::Request(..) | State::Reply(..) if self.deadline.is_some_and(|at| at <= now) => {
                self.state = State::Leaving;
            }
            _ => {}
        }
    }

    fn transmit(&mut self, now: Instant, rng: &mut Rng) -> Option<Transmit> {
        while self.rnic.poll_cq(self.cq).is_ok() {}
        while self.rnic.poll_notification().is_some() {}
        let llp = match &mut self.state {
            State::Reply(_, frame) if !frame.is_empty() => {
                return Some(Transmit::Octets(std::mem::take(frame).into()));
            }
            State::Leaving => {
                self.state = State::Closed;
                return Some(Transmit::Fin);
            }
            State::Joined(llp) => *llp,
            State::Request(..) | State::Reply(..) | State::Closed => return None,
        };
        // Like TCP, this function sometimes accepts only a part of the bytes.
        let most = if rng.u32(0..4) == 0 { rng.usize(1..3000) } else { usize::MAX };
        let sent = poll_transmit(&mut self.rnic, now, llp, most);
        if self.rnic.is_stream_over(llp) {
            self.rnic.detach_stream(now, llp);
            self.state = State::Closed;
        }
        sent
    }

    fn perform_action(&mut self, rng: &mut Rng, peer: Option<&Remote>) {
        self.receive(rng);
        let own = self.guarded.remote();
        // A peer without registered memory has no addresses, and rejects each access. Therefore the
        // addresses do not matter, and this endpoint uses the addresses of its own memory.
        let operations = RandomWork::operations(rng, &self.guarded, peer.unwrap_or(&own));
        // Ignore an error: a Queue Pair that is full or in the Error state rejects the operations.
        let _ = self.rnic.post_send(self.qp, operations);
    }

    fn close(&mut self, now: Instant) {
        match self.state {
            // Ignore an error, because the Queue Pair can already be closing.
            State::Joined(_) => drop(self.rnic.modify_qp(now, self.qp, &QpModify::to(QpState::Closing))),
            State::Request(..) | State::Reply(..) => self.state = State::Leaving,
            State::Leaving | State::Closed => {}
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    fn remote(&self) -> Option<Remote> {
        Some(self.guarded.remote())
    }

    fn check(&self) -> Result<(), MemoryViolation> {
        self.guarded.check(&self.rnic)
    }

    fn release(self: Box<Self>) -> Result<(), String> {
        let RnicEndpoint { mut rnic, pd, cq, qp, guarded, .. } = *self;
        rnic.destroy_qp(qp).map_err(|error| format!("QP: {error}"))?;
        guarded.release(&mut rnic)?;
        rnic.destroy_cq(cq).map_err(|error| format!("CQ: {error}"))?;
        rnic.memory_mut().deallocate_pd(pd).map_err(|error| format!("PD: {error}"))
    }
}
