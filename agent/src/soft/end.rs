//! Connections: MPA's start-up by the verbs of a connection manager, then a Queue Pair on the stream.

use std::collections::VecDeque;
use std::mem;

use bytes::Bytes;
use weft_peer::mpa::{
    AfterReply, AfterRequest, Depth, Negotiated, PrivateData, StartupError, WaitDecision, WaitReply, WaitRequest,
};
use weft_peer::rdmap::Outbound;
use weft_peer::service::Served;
use weft_peer::verbs::{CqHandle, LlpHandle, LlpSettings, QpHandle, QpInit, QpModify, QpState, Sent};
use weft_peer::{Instant, Transmit};

use super::{Inner, Soft, Thing, invalid, none};
use crate::protocol::{Action, Done, Event, Failure, Object, Octets, Parameters};

/// Octets of private data that a connection manager takes.
const MOST_PRIVATE: usize = 255;
/// Numbers of errno.
const ECONNREFUSED: i32 = 111;
const ECONNRESET: i32 = 104;
const EPROTO: i32 = 71;
const ETIMEDOUT: i32 = 110;

/// A connection, from its first octet or its way to a peer on.
#[derive(Debug)]
pub(super) struct End {
    state: State,
    pub(super) pair: Option<Pair>,
    /// What goes out while the RNIC has no part in it.
    outgoing: VecDeque<Transmit>,
    deadline: Option<Instant>,
    /// Something was done to it since it was driven last.
    touched: bool,
    /// It was there, and its end is not told yet.
    established: bool,
    /// The peer has ended it.
    ended: bool,
}

#[derive(Debug)]
enum State {
    /// There is a way to the peer, and no stream.
    Resolved,
    WaitRequest(WaitRequest),
    /// A Request is here, and somebody has to say what becomes of it.
    Asked(WaitDecision),
    WaitReply(WaitReply),
    /// The RNIC has the stream.
    Operating(LlpHandle),
    /// FIN is sent, or will be; the peer's is waited for.
    Refused,
    Over,
}

/// A Queue Pair, and the completion queue of both of its queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) cq: CqHandle,
    pub(super) qp: QpHandle,
}

impl End {
    fn new(state: State, deadline: Option<Instant>) -> Self {
        End { state, pair: None, outgoing: VecDeque::new(), deadline, touched: false, established: false, ended: false }
    }

    pub(super) fn resolved() -> Self {
        End::new(State::Resolved, None)
    }

    fn send(&mut self, item: Transmit) {
        self.outgoing.push_back(item);
        self.touched = true;
    }

    fn over(&mut self) {
        (self.state, self.deadline) = (State::Over, None);
    }
}

/// What is asked of connections.
impl Inner {
    pub(super) fn end(&mut self, connection: Object) -> Result<&mut End, Failure> {
        let known = matches!(self.things.get(&connection), Some(Thing::Connection));
        let end = self.ends.get_mut(&connection).filter(|_| known).ok_or_else(|| none(connection, "connection"))?;
        end.touched = true;
        Ok(end)
    }

    pub(super) fn pair_of(&mut self, connection: Object) -> Result<Pair, Failure> {
        let pair = self.end(connection)?.pair;
        pair.ok_or_else(|| Failure::of(format!("connection {connection} has no Queue Pair yet: pair")))
    }

    pub(super) fn pair(&mut self, action: &Action) -> Result<Done, Failure> {
        let Action::Pair { connection, domain, shared, depth, parts, inline: _ } = *action else {
            return Err(Failure::of("no Queue Pair is asked for"));
        };
        let pd = self.of_domain(domain)?;
        let srq = match shared.map(|shared| (shared, self.things.get(&shared))) {
            None => None,
            Some((_, Some(Thing::Shared(srq)))) => Some(*srq),
            Some((shared, _)) => return Err(none(shared, "shared receive queue")),
        };
        if self.end(connection)?.pair.is_some() {
            return Err(Failure::of(format!("connection {connection} has a Queue Pair")));
        }
        let entries = depth.saturating_mul(if srq.is_some() { 3 } else { 2 }).max(16);
        let (cq, _) = self.rnic.create_cq(entries, None).map_err(invalid)?;
        let init = QpInit {
            srq,
            max_sq_wrs: depth,
            max_rq_wrs: depth,
            max_send_sges: parts,
            max_write_sges: parts,
            max_receive_sges: parts,
            ..QpInit::new(pd, cq, cq)
        };
        let qp = match self.rnic.create_qp(init, None) {
            Ok((qp, _, _)) => qp,
            Err(error) => {
                // Nothing uses it.
                let _ = self.rnic.destroy_cq(cq);
                return Err(invalid(error));
            }
        };
        self.end(connection)?.pair = Some(Pair { cq, qp });
        Ok(Done::Nothing)
    }

    pub(super) fn connect(&mut self, now: Instant, parameters: &Parameters) -> Result<Done, Failure> {
        let private_data = private_data(&parameters.private_data)?;
        self.pair_of(parameters.connection)?;
        let mut mpa = self.settings.mpa;
        mpa.enhanced_settings.ird = Depth::negotiated(parameters.ird.into());
        mpa.enhanced_settings.ord = Depth::negotiated(parameters.ord.into());
        let (deviations, within) = (self.settings.deviations.clone(), self.settings.startup_timeout);
        let end = self.end(parameters.connection)?;
        if !matches!(end.state, State::Resolved) {
            return Err(invalid("it connects already"));
        }
        let mut request = Vec::new();
        end.state = State::WaitReply(WaitReply::start(mpa, &private_data, deviations, &mut request).map_err(invalid)?);
        end.deadline = Some(now + within);
        end.send(Transmit::Octets(request.into()));
        self.connecting.push_back(parameters.connection);
        Ok(Done::Nothing)
    }

    pub(super) fn accept(&mut self, now: Instant, parameters: &Parameters) -> Result<Done, Failure> {
        let private_data = private_data(&parameters.private_data)?;
        let connection = parameters.connection;
        self.pair_of(connection)?;
        let decision = self.decision(connection)?;
        let mut reply = Vec::new();
        let negotiated = decision.accept(&private_data, &mut reply);
        self.operate(now, connection, &negotiated, Some(reply.into()), (parameters.ird, parameters.ord))?;
        let (ird, ord) = (parameters.ird, parameters.ord);
        self.established(now, connection, Octets::default(), (ird, ord));
        Ok(Done::Nothing)
    }

    pub(super) fn reject(&mut self, now: Instant, connection: Object, told: &Octets) -> Result<Done, Failure> {
        let private_data = private_data(told)?;
        let decision = self.decision(connection)?;
        let mut reply = Vec::new();
        decision.reject(&private_data, &mut reply);
        self.end(connection)?.send(Transmit::Octets(reply.into()));
        self.refuse(now, connection);
        Ok(Done::Nothing)
    }

    fn decision(&mut self, connection: Object) -> Result<WaitDecision, Failure> {
        let end = self.end(connection)?;
        match mem::replace(&mut end.state, State::Refused) {
            State::Asked(decision) => Ok(decision),
            state => {
                end.state = state;
                Err(Failure::of(format!("connection {connection} asks for nothing")))
            }
        }
    }

    pub(super) fn disconnect(&mut self, now: Instant, connection: Object) -> Result<Done, Failure> {
        let Pair { qp, .. } = self.pair_of(connection)?;
        // With work under way there is no graceful close.
        let closing = self.rnic.modify_qp(now, qp, &QpModify::to(QpState::Closing));
        closing.or_else(|_| self.rnic.modify_qp(now, qp, &QpModify::to(QpState::Error))).map_err(invalid)?;
        Ok(Done::Nothing)
    }

    /// Gives back what a connection has. Its stream, if any, is reset.
    pub(super) fn forget(&mut self, connection: Object) {
        self.connecting.retain(|object| *object != connection);
        let Some(end) = self.ends.get_mut(&connection) else { return };
        (end.established, end.touched) = (false, true);
        if let Some(Pair { cq, qp }) = end.pair.take() {
            // Windows that are bound to it keep it; nobody can name it any more.
            let _ = self.rnic.destroy_qp(qp);
            let _ = self.rnic.destroy_cq(cq);
        }
        match end.state {
            State::Operating(_) => {}
            State::Resolved => drop(self.ends.remove(&connection)),
            _ => {
                end.outgoing.clear();
                end.send(Transmit::Reset);
                end.over();
            }
        }
    }
}

/// What happens to connections.
impl Inner {
    /// A stream is there.
    pub(super) fn arrive(&mut self, now: Instant) -> Option<Object> {
        if let Some(connecting) = self.connecting.pop_front() {
            return Some(connecting);
        }
        self.listener()?;
        let startup = WaitRequest::start(self.settings.mpa, self.settings.deviations.clone());
        let object = self.number();
        let deadline = now + self.settings.startup_timeout;
        self.ends.insert(object, End::new(State::WaitRequest(startup), Some(deadline)));
        Some(object)
    }

    fn listener(&self) -> Option<Object> {
        self.things.iter().rev().find(|(_, thing)| matches!(thing, Thing::Listener)).map(|(object, _)| *object)
    }

    fn handle_octets(&mut self, now: Instant, object: Object, octets: &[u8]) {
        let listener = self.listener().unwrap_or(0);
        let Some(end) = self.ends.get_mut(&object) else { return };
        match mem::replace(&mut end.state, State::Refused) {
            State::WaitReply(waiting) => self.answered(now, object, waiting.handle_octets(octets)),
            State::WaitRequest(waiting) => match waiting.handle_octets(octets) {
                Ok(AfterRequest::Waiting(more)) => end.state = State::WaitRequest(more),
                Ok(AfterRequest::Arrived(decision)) => {
                    let request = decision.request();
                    let (ird, ord) = request.enhanced.map_or((0, 0), |words| (depth(words.ird), depth(words.ord)));
                    let private_data = Octets(request.private_data.as_octets().to_vec());
                    (end.state, end.deadline) = (State::Asked(decision), None);
                    self.things.insert(object, Thing::Connection);
                    let event = Event::Request { listener, connection: object, private_data, ird, ord };
                    self.events.push_back((now, event));
                }
                Err(_) => self.refuse(now, object),
            },
            State::Operating(llp) => {
                end.state = State::Operating(llp);
                self.rnic.handle_octets(now, llp, octets);
            }
            state => end.state = state,
        }
    }

    /// What the Reply led to.
    fn answered(&mut self, now: Instant, object: Object, reply: Result<AfterReply, StartupError>) {
        match reply {
            Ok(AfterReply::Waiting(more)) => {
                if let Some(end) = self.ends.get_mut(&object) {
                    end.state = State::WaitReply(more);
                }
            }
            Ok(AfterReply::Accepted(negotiated, frame)) => {
                let depths = negotiated.enhanced.map_or((1, 1), |agreed| (depth(agreed.ird), depth(agreed.ord)));
                match self.operate(now, object, &negotiated, None, depths) {
                    Ok(()) => {
                        let private_data = Octets(frame.private_data.as_octets().to_vec());
                        self.established(now, object, private_data, depths);
                    }
                    Err(_) => self.failed(now, object, "connect_error", EPROTO),
                }
            }
            Ok(AfterReply::Impossible(negotiated, _, error)) => {
                let words = Outbound::last_words(&negotiated, error, self.settings.deviations.clone());
                if let Some(end) = self.ends.get_mut(&object) {
                    end.send(Transmit::Octets(words.into()));
                }
                self.failed(now, object, "connect_error", EPROTO);
            }
            Ok(AfterReply::Rejected(frame)) => {
                let private_data = Octets(frame.private_data.as_octets().to_vec());
                let event = Event::Rejected { connection: object, status: ECONNREFUSED, private_data };
                self.events.push_back((now, event));
                self.refuse(now, object);
            }
            Err(_) => self.failed(now, object, "connect_error", EPROTO),
        }
    }

    fn failed(&mut self, now: Instant, object: Object, kind: &str, status: i32) {
        let event = Event::Failed { connection: object, kind: kind.to_owned(), status };
        self.events.push_back((now, event));
        self.refuse(now, object);
    }

    fn established(&mut self, now: Instant, connection: Object, private_data: Octets, (ird, ord): (u8, u8)) {
        if let Some(end) = self.ends.get_mut(&connection) {
            end.established = true;
        }
        self.events.push_back((now, Event::Established { connection, private_data, ird, ord }));
    }

    /// The Queue Pair takes over; a Reply goes out in front of everything.
    fn operate(
        &mut self,
        now: Instant,
        connection: Object,
        negotiated: &Negotiated,
        reply: Option<Bytes>,
        (ird, ord): (u8, u8),
    ) -> Result<(), Failure> {
        let Pair { qp, .. } = self.pair_of(connection)?;
        let settings = LlpSettings::new(negotiated, self.settings.emss);
        let llp = self.rnic.attach_stream(settings).map_err(invalid)?;
        let agreed = negotiated.enhanced.map_or((ird.into(), ord.into()), |it| (it.ird.into(), it.ord.into()));
        let modify = QpModify {
            llp: Some(llp),
            stream_message: reply,
            ird: Some(agreed.0),
            ord: Some(agreed.1),
            ..QpModify::to(QpState::Rts)
        };
        self.rnic.modify_qp(now, qp, &modify).map_err(invalid)?;
        let end = self.end(connection)?;
        (end.state, end.deadline) = (State::Operating(llp), None);
        Ok(())
    }

    /// No connection: close.
    fn refuse(&mut self, now: Instant, object: Object) {
        let within = self.settings.close_timeout;
        let Some(end) = self.ends.get_mut(&object) else { return };
        (end.state, end.deadline) = (State::Refused, Some(now + within));
        end.send(Transmit::Fin);
    }

    /// Tells the end of connections that were there.
    pub(super) fn tell_ended(&mut self, now: Instant) {
        for (object, end) in &mut self.ends {
            let State::Operating(llp) = end.state else { continue };
            if end.established && (end.ended || self.rnic.is_stream_over(llp)) {
                end.established = false;
                self.events.push_back((now, Event::Disconnected { connection: *object }));
            }
        }
    }
}

/// The end of a stream, for a driver.
#[derive(Debug)]
pub(super) struct SoftEnd {
    pub(super) soft: Soft,
    pub(super) object: Object,
}

impl SoftEnd {
    fn with<R>(&self, now: Instant, act: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.soft.lock();
        let result = act(&mut inner);
        inner.collect(now);
        result
    }
}

impl Served for SoftEnd {
    fn handle_octets(&mut self, now: Instant, octets: &[u8]) {
        self.with(now, |inner| inner.handle_octets(now, self.object, octets));
    }

    fn handle_fin(&mut self, now: Instant) {
        self.with(now, |inner| {
            let Some(end) = inner.ends.get_mut(&self.object) else { return };
            match &end.state {
                State::Operating(llp) => {
                    end.ended = true;
                    inner.rnic.handle_fin(now, *llp);
                }
                State::WaitReply(_) => {
                    let (status, private_data) = (ECONNRESET, Octets::default());
                    let event = Event::Rejected { connection: self.object, status, private_data };
                    end.send(Transmit::Fin);
                    end.over();
                    inner.events.push_back((now, event));
                }
                State::Resolved | State::WaitRequest(_) | State::Asked(_) => {
                    end.send(Transmit::Fin);
                    end.over();
                }
                State::Refused => end.over(),
                State::Over => {}
            }
        });
    }

    fn handle_reset(&mut self, now: Instant) {
        self.with(now, |inner| {
            let Some(end) = inner.ends.get_mut(&self.object) else { return };
            end.outgoing.clear();
            match end.state {
                State::Operating(llp) => {
                    end.ended = true;
                    inner.rnic.handle_reset(now, llp);
                }
                State::WaitReply(_) => {
                    let (status, private_data) = (ECONNRESET, Octets::default());
                    let event = Event::Rejected { connection: self.object, status, private_data };
                    end.over();
                    inner.events.push_back((now, event));
                }
                _ => end.over(),
            }
        });
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.with(now, |inner| {
            let Some(end) = inner.ends.get_mut(&self.object) else { return };
            end.touched = false;
            if let State::Operating(llp) = end.state {
                return inner.rnic.handle_timeout(now, llp);
            }
            if end.deadline.is_none_or(|deadline| now < deadline) {
                return;
            }
            match &end.state {
                State::WaitReply(_) => inner.failed(now, self.object, "unreachable", ETIMEDOUT),
                State::WaitRequest(_) => inner.refuse(now, self.object),
                _ => {
                    end.send(Transmit::Reset);
                    end.over();
                }
            }
        });
    }

    fn serve(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.with(now, |inner| {
            let end = inner.ends.get_mut(&self.object)?;
            if let Some(item) = end.outgoing.pop_front() {
                return Some(item);
            }
            let State::Operating(llp) = end.state else { return None };
            let mut octets = Vec::new();
            let sent = inner.rnic.poll_transmit(now, llp, |slices| {
                slices.iter().for_each(|slice| octets.extend_from_slice(slice));
                octets.len()
            });
            match sent {
                Sent::Nothing => None,
                Sent::Octets(_) => Some(Transmit::Octets(octets.into())),
                Sent::Fin => Some(Transmit::Fin),
                Sent::Reset => Some(Transmit::Reset),
            }
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let inner = self.soft.lock();
        let end = inner.ends.get(&self.object)?;
        match end.state {
            _ if end.touched => Some(Instant::ORIGIN),
            State::Operating(llp) => inner.rnic.poll_timeout(llp),
            _ => end.deadline,
        }
    }

    fn is_ready(&self) -> bool {
        let inner = self.soft.lock();
        match inner.ends.get(&self.object).map(|end| &end.state) {
            Some(State::Operating(llp)) => inner.rnic.wants_octets(*llp),
            _ => true,
        }
    }

    fn is_over(&self) -> bool {
        let inner = self.soft.lock();
        match inner.ends.get(&self.object) {
            None => true,
            Some(end) => match end.state {
                State::Operating(llp) => end.outgoing.is_empty() && inner.rnic.is_stream_over(llp),
                State::Over => end.outgoing.is_empty(),
                _ => false,
            },
        }
    }
}

impl Drop for SoftEnd {
    fn drop(&mut self) {
        let mut inner = self.soft.lock();
        let inner = &mut *inner;
        if let Some(Pair { cq, qp }) = inner.ends.remove(&self.object).and_then(|end| end.pair) {
            // Nobody asks for what does not come back.
            let _ = inner.rnic.destroy_qp(qp);
            let _ = inner.rnic.destroy_cq(cq);
        }
        inner.things.remove(&self.object);
    }
}

/// As far as a connection manager can say it.
fn depth(depth: u16) -> u8 {
    u8::try_from(depth).unwrap_or(u8::MAX)
}

fn private_data(octets: &Octets) -> Result<PrivateData, Failure> {
    if octets.0.len() > MOST_PRIVATE {
        return Err(Failure::of(format!("{} octets of private data: at most {MOST_PRIVATE}", octets.0.len())));
    }
    PrivateData::new(octets.0.clone()).map_err(invalid)
}
