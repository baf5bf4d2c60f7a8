//! Connections: a connection manager's verbs control the start-up of MPA, and then a Queue Pair
//! uses the stream.

use std::collections::VecDeque;

use weft_peer::mpa::{Depth, PrivateData, WaitDecision, WaitReply, WaitRequest};
use weft_peer::verbs::{CqHandle, LlpHandle, NotifyKind, QpHandle, QpInit, QpModify, QpState};
use weft_peer::{Instant, Transmit};

use super::{Inner, Thing, invalid};
use crate::common::{self, asks_nothing, entries, has_pair, no_pair, none};
use crate::protocol::{Action, Done, Failure, Object, Octets, Parameters};

/// A connection. It exists from its first byte, or from [`Action::Resolve`] on.
#[derive(Debug)]
pub(super) struct End {
    pub(super) state: State,
    /// Listener that received the connection. 0 if this side connects.
    pub(super) listener: Object,
    /// EMSS of the stream in bytes, if it is a TCP connection.
    pub(super) emss: Option<u32>,
    pub(super) pair: Option<Pair>,
    /// Output to send while the RNIC does not own the stream.
    pub(super) outgoing: VecDeque<Transmit>,
    pub(super) deadline: Option<Instant>,
    /// IRD and ORD that the user requested. They apply if start-up does not negotiate these values.
    pub(super) requested: (u8, u8),
    /// Whether an action changed the connection since it was last driven.
    pub(super) touched: bool,
    /// Whether the connection was established and its end is not reported yet.
    pub(super) established: bool,
    /// Whether the peer has ended the connection.
    pub(super) ended: bool,
}

#[derive(Debug)]
pub(super) enum State {
    /// The address of the peer is resolved, but no stream exists.
    Resolved,
    WaitRequest(WaitRequest),
    /// A Request has arrived, and the user must accept or reject it.
    Undecided(WaitDecision),
    WaitReply(WaitReply),
    /// The RNIC owns the stream.
    Operating(LlpHandle),
    /// This side sends FIN, and waits for the peer's FIN.
    Refused,
    Over,
}

/// A Queue Pair, and the completion queue of both of its queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) cq: CqHandle,
    pub(super) qp: QpHandle,
    /// Whether its completion queue is polled only after a notification.
    pub(super) solicited: bool,
}

impl End {
    fn new(state: State, listener: Object, deadline: Option<Instant>) -> Self {
        End {
            state,
            listener,
            emss: None,
            pair: None,
            outgoing: VecDeque::new(),
            deadline,
            requested: (1, 1),
            touched: false,
            established: false,
            ended: false,
        }
    }

    pub(super) fn arrived(startup: WaitRequest, listener: Object, deadline: Instant) -> Self {
        End::new(State::WaitRequest(startup), listener, Some(deadline))
    }

    pub(super) fn resolved() -> Self {
        End::new(State::Resolved, 0, None)
    }

    pub(super) fn send(&mut self, item: Transmit) {
        self.outgoing.push_back(item);
        self.touched = true;
    }

    /// Resets the stream. Output that waits is discarded.
    fn reset(&mut self) {
        self.outgoing.clear();
        self.send(Transmit::Reset);
        self.over();
    }

    pub(super) fn over(&mut self) {
        (self.state, self.deadline) = (State::Over, None);
    }
}

/// Requests about connections.
impl Inner {
    pub(super) fn end(&mut self, connection: Object) -> Result<&mut End, Failure> {
        let known = matches!(self.things.get(&connection), Some(Thing::Connection));
        let end = self.ends.get_mut(&connection).filter(|_| known).ok_or_else(|| none(connection, "connection"))?;
        end.touched = true;
        Ok(end)
    }

    pub(super) fn pair_of(&mut self, connection: Object) -> Result<Pair, Failure> {
        let pair = self.end(connection)?.pair;
        pair.ok_or_else(|| no_pair(connection))
    }

    pub(super) fn pair(&mut self, action: &Action) -> Result<Done, Failure> {
        let Action::Pair { connection, domain, shared, depth, parts, inline: _, solicited } = *action else {
            return Err(Failure::of("the request is not for a Queue Pair"));
        };
        let pd = self.of_domain(domain)?;
        let srq = match shared.map(|shared| (shared, self.things.get(&shared))) {
            None => None,
            Some((_, Some(Thing::Shared(srq)))) => Some(*srq),
            Some((shared, _)) => return Err(none(shared, "shared receive queue")),
        };
        if self.end(connection)?.pair.is_some() {
            return Err(has_pair(connection));
        }
        let (cq, _) = self.rnic.create_cq(entries(depth, srq.is_some()), Some(self.handler)).map_err(invalid)?;
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
                // No Queue Pair uses the completion queue.
                let _ = self.rnic.destroy_cq(cq);
                return Err(invalid(error));
            }
        };
        if solicited {
            self.rnic.request_completion_notification(cq, NotifyKind::NextCompletion).map_err(invalid)?;
        }
        self.end(connection)?.pair = Some(Pair { cq, qp, solicited });
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
        (end.deadline, end.requested) = (Some(now + within), (parameters.ird, parameters.ord));
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
        // If this fails, the Request still waits for an answer.
        self.operate(now, connection, &negotiated, Some(reply.into()), (parameters.ird, parameters.ord))?;
        let (ird, ord) = (parameters.ird, parameters.ord);
        self.established(now, connection, Octets::default(), (ird, ord));
        Ok(Done::Nothing)
    }

    pub(super) fn reject(&mut self, now: Instant, connection: Object, data: &Octets) -> Result<Done, Failure> {
        let private_data = private_data(data)?;
        let decision = self.decision(connection)?;
        let mut reply = Vec::new();
        decision.reject(&private_data, &mut reply);
        self.end(connection)?.send(Transmit::Octets(reply.into()));
        self.refuse(now, connection);
        Ok(Done::Nothing)
    }

    fn decision(&mut self, connection: Object) -> Result<WaitDecision, Failure> {
        match &self.end(connection)?.state {
            State::Undecided(decision) => Ok(decision.clone()),
            _ => Err(asks_nothing(connection)),
        }
    }

    pub(super) fn disconnect(&mut self, now: Instant, connection: Object) -> Result<Done, Failure> {
        let Pair { qp, .. } = self.pair_of(connection)?;
        // The RNIC refuses a graceful close while work is in progress.
        let closing = self.rnic.modify_qp(now, qp, &QpModify::to(QpState::Closing));
        closing.or_else(|_| self.rnic.modify_qp(now, qp, &QpModify::to(QpState::Error))).map_err(invalid)?;
        Ok(Done::Nothing)
    }

    /// Destroys the Queue Pair of a connection, and resets its stream if there is one.
    pub(super) fn forget(&mut self, connection: Object) {
        self.connecting.retain(|object| *object != connection);
        let Some(end) = self.ends.get_mut(&connection) else { return };
        (end.established, end.touched) = (false, true);
        let pair = end.pair.take();
        let stream = match end.state {
            State::Operating(llp) => Some(llp),
            State::Resolved => {
                self.ends.remove(&connection);
                None
            }
            _ => {
                end.reset();
                None
            }
        };
        // Destroying the Queue Pair resets the stream. If the Queue Pair cannot be destroyed yet,
        // the stream is detached and reset here.
        let given = pair.is_none_or(|pair| self.give_back(pair));
        if let Some(llp) = stream.filter(|_| !given) {
            self.rnic.detach_stream(self.now, llp);
            if let Some(end) = self.ends.get_mut(&connection) {
                end.reset();
            }
        }
    }
}

fn private_data(data: &Octets) -> Result<PrivateData, Failure> {
    let (octets, _) = common::private_data(data)?;
    PrivateData::new(octets.to_vec()).map_err(invalid)
}
