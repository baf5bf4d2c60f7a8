//! Connections. At first, requests of the tester control the start-up of MPA, in the same way as
//! the functions of a connection manager. After start-up, a Queue Pair uses the stream.

use std::collections::VecDeque;

use weft_peer::mpa::{Depth, PrivateData, WaitDecision, WaitReply, WaitRequest};
use weft_peer::verbs::{CqHandle, LlpHandle, NotifyKind, QpHandle, QpInit, QpModify, QpState};
use weft_peer::{Instant, Transmit};

use super::{DeviceObject, Inner, invalid};
use crate::common::{self, cq_entries, no_pair, not_found, pair_exists, requests_nothing, require};
use crate::protocol::{Action, Failure, Object, Octets, Parameters, Success};

/// A connection. [`Action::Resolve`] creates a connection. A listener also creates a connection
/// when a stream arrives.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) state: State,
    /// Listener that received the connection. 0 if this side connects.
    pub(super) listener: Object,
    /// EMSS of the stream in bytes, if it is a TCP connection.
    pub(super) emss: Option<u32>,
    pub(super) pair: Option<Pair>,
    /// Output to send while the RNIC does not own the stream.
    pub(super) outgoing: VecDeque<Transmit>,
    pub(super) deadline: Option<Instant>,
    /// IRD and ORD that the user requested. These values apply if start-up does not negotiate IRD
    /// and ORD.
    pub(super) requested: (u8, u8),
    /// Whether an action changed the connection since it was last driven.
    pub(super) changed: bool,
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
    Closed,
}

/// A Queue Pair, and the completion queue of both of its queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) cq: CqHandle,
    pub(super) qp: QpHandle,
    /// Whether the completion queue is polled only after a notification (the field `solicited` of
    /// the request `pair`).
    pub(super) solicited: bool,
}

impl Connection {
    pub(super) fn new(state: State, listener: Object, deadline: Option<Instant>) -> Self {
        Connection {
            state,
            listener,
            emss: None,
            pair: None,
            outgoing: VecDeque::new(),
            deadline,
            requested: (1, 1),
            changed: false,
            established: false,
            ended: false,
        }
    }

    pub(super) fn send(&mut self, item: Transmit) {
        self.outgoing.push_back(item);
        self.changed = true;
    }

    /// Resets the stream. Discards the output that was not sent yet.
    fn reset(&mut self) {
        self.outgoing.clear();
        self.send(Transmit::Reset);
        self.set_closed();
    }

    pub(super) fn set_closed(&mut self) {
        (self.state, self.deadline) = (State::Closed, None);
    }
}

/// Requests about connections.
impl Inner {
    pub(super) fn find_connection(&mut self, connection: Object) -> Result<&mut Connection, Failure> {
        let known = matches!(self.objects.get(&connection), Some(DeviceObject::Connection));
        let entry = self.connections.get_mut(&connection).filter(|_| known);
        let entry = entry.ok_or_else(|| not_found(connection, "connection"))?;
        entry.changed = true;
        Ok(entry)
    }

    pub(super) fn find_pair(&mut self, connection: Object) -> Result<Pair, Failure> {
        let pair = self.find_connection(connection)?.pair;
        pair.ok_or_else(|| no_pair(connection))
    }

    pub(super) fn pair(&mut self, action: &Action) -> Result<Success, Failure> {
        let Action::Pair { connection, domain, shared, depth, parts, inline: _, solicited } = *action else {
            return Err(Failure::of("the request is not `pair`"));
        };
        let pd = self.find_domain(domain)?;
        let srq = shared.map(|shared| self.find_shared(shared)).transpose()?;
        require(self.find_connection(connection)?.pair.is_none(), || pair_exists(connection))?;
        let (cq, _) = self.rnic.create_cq(cq_entries(depth, srq.is_some()), Some(self.handler)).map_err(invalid)?;
        let init = QpInit {
            srq,
            max_sq_wrs: depth,
            max_rq_wrs: depth,
            max_send_sges: parts,
            max_write_sges: parts,
            max_receive_sges: parts,
            ..QpInit::new(pd, cq, cq)
        };
        let (qp, _, _) = self.rnic.create_qp(init, None).map_err(|error| {
            // No Queue Pair uses the completion queue.
            let _ = self.rnic.destroy_cq(cq);
            invalid(error)
        })?;
        if solicited {
            self.rnic.request_completion_notification(cq, NotifyKind::NextCompletion).map_err(invalid)?;
        }
        self.find_connection(connection)?.pair = Some(Pair { cq, qp, solicited });
        Ok(Success::Nothing)
    }

    pub(super) fn connect(&mut self, now: Instant, parameters: &Parameters) -> Result<Success, Failure> {
        let private_data = private_data(&parameters.private_data)?;
        self.find_pair(parameters.connection)?;
        let mut mpa = self.settings.mpa;
        mpa.enhanced_settings.ird = Depth::negotiated(parameters.ird.into());
        mpa.enhanced_settings.ord = Depth::negotiated(parameters.ord.into());
        let (deviations, within) = (self.settings.deviations.clone(), self.settings.startup_timeout);
        let entry = self.find_connection(parameters.connection)?;
        let is_new = matches!(entry.state, State::Resolved);
        require(is_new, || invalid("the connection is already being established, or is established"))?;
        let mut request = Vec::new();
        entry.state =
            State::WaitReply(WaitReply::start(mpa, &private_data, deviations, &mut request).map_err(invalid)?);
        (entry.deadline, entry.requested) = (Some(now + within), (parameters.ird, parameters.ord));
        entry.send(Transmit::Octets(request.into()));
        self.connecting.push_back(parameters.connection);
        Ok(Success::Nothing)
    }

    pub(super) fn accept(&mut self, now: Instant, parameters: &Parameters) -> Result<Success, Failure> {
        let private_data = private_data(&parameters.private_data)?;
        let connection = parameters.connection;
        self.find_pair(connection)?;
        let decision = self.decision(connection)?;
        let mut reply = Vec::new();
        let negotiated = decision.accept(&private_data, &mut reply);
        // If this call fails, the Request still waits for an answer.
        self.operate(now, connection, &negotiated, Some(reply.into()), (parameters.ird, parameters.ord))?;
        let (ird, ord) = (parameters.ird, parameters.ord);
        self.established(now, connection, Octets::default(), (ird, ord));
        Ok(Success::Nothing)
    }

    pub(super) fn reject(&mut self, now: Instant, connection: Object, data: &Octets) -> Result<Success, Failure> {
        let private_data = private_data(data)?;
        let decision = self.decision(connection)?;
        let mut reply = Vec::new();
        decision.reject(&private_data, &mut reply);
        self.find_connection(connection)?.send(Transmit::Octets(reply.into()));
        self.refuse(now, connection);
        Ok(Success::Nothing)
    }

    fn decision(&mut self, connection: Object) -> Result<WaitDecision, Failure> {
        match &self.find_connection(connection)?.state {
            State::Undecided(decision) => Ok(decision.clone()),
            _ => Err(requests_nothing(connection)),
        }
    }

    pub(super) fn disconnect(&mut self, now: Instant, connection: Object) -> Result<Success, Failure> {
        let Pair { qp, .. } = self.find_pair(connection)?;
        // The RNIC refuses a graceful close while work is in progress.
        let closing = self.rnic.modify_qp(now, qp, &QpModify::to(QpState::Closing));
        closing.or_else(|_| self.rnic.modify_qp(now, qp, &QpModify::to(QpState::Error))).map_err(invalid)?;
        Ok(Success::Nothing)
    }

    /// Destroys the Queue Pair of a connection, and resets its stream if there is one.
    pub(super) fn destroy_connection(&mut self, connection: Object) {
        self.connecting.retain(|object| *object != connection);
        let Some(entry) = self.connections.get_mut(&connection) else { return };
        (entry.established, entry.changed) = (false, true);
        let pair = entry.pair.take();
        let stream = match entry.state {
            State::Operating(llp) => Some(llp),
            State::Resolved => {
                self.connections.remove(&connection);
                None
            }
            _ => {
                entry.reset();
                None
            }
        };
        // Destroying the Queue Pair resets the stream. If the Queue Pair cannot be destroyed yet,
        // the stream is detached and reset here.
        let released = pair.is_none_or(|pair| self.release_pair(pair));
        if let Some(llp) = stream.filter(|_| !released) {
            self.rnic.detach_stream(self.now, llp);
            if let Some(entry) = self.connections.get_mut(&connection) {
                entry.reset();
            }
        }
    }
}

fn private_data(data: &Octets) -> Result<PrivateData, Failure> {
    let (octets, _) = common::private_data(data)?;
    PrivateData::new(octets.to_vec()).map_err(invalid)
}
