//! Events of connections: new streams, start-up frames, and the close.

use std::mem;

use bytes::Bytes;
use weft_peer::Instant;
use weft_peer::Transmit;
use weft_peer::mpa::{AfterReply, AfterRequest, Negotiated, PrivateData, StartupError, WaitRequest};
use weft_peer::rdmap::Outbound;
use weft_peer::verbs::{LlpSettings, QpModify};

use super::connection::{Connection, Pair, State};
use super::{DeviceObject, Inner, invalid};
use crate::common::{NO_ROOM, NO_ROOM_STATUS};
use crate::protocol::{Event, Failure, Object, Octets};

/// errno values of Linux.
const ECONNREFUSED: i32 = 111;
const EPROTO: i32 = 71;

impl Inner {
    /// Assigns a new stream to the oldest connection that waits for a stream. If no connection
    /// waits, assigns the stream to the newest listener. Returns `None` if there is no waiting
    /// connection and no listener.
    pub(super) fn accept_stream(&mut self, now: Instant) -> Option<Object> {
        if let Some(connecting) = self.connecting.pop_front() {
            return Some(connecting);
        }
        let listener = self.listener()?;
        self.accept_stream_at(now, listener)
    }

    /// Assigns a new stream to `listener`. Returns `None` if the limit of objects is reached.
    pub(super) fn accept_stream_at(&mut self, now: Instant, listener: Object) -> Option<Object> {
        self.limits.check_objects(self.connections.len()).ok()?;
        let startup = WaitRequest::start(self.settings.mpa, self.settings.deviations.clone());
        let object = self.number();
        let deadline = Some(now + self.settings.startup_timeout);
        self.connections.insert(object, Connection::new(State::WaitRequest(startup), listener, deadline));
        Some(object)
    }

    fn listener(&self) -> Option<Object> {
        let mut newest_first = self.objects.iter().rev();
        newest_first.find(|(_, kind)| matches!(kind, DeviceObject::Listener)).map(|(object, _)| *object)
    }

    pub(super) fn handle_octets(&mut self, now: Instant, object: Object, octets: &[u8]) {
        let room = self.limits.check_objects(self.objects.len());
        let Some(entry) = self.connections.get_mut(&object) else { return };
        match mem::replace(&mut entry.state, State::Refused) {
            State::WaitReply(waiting) => self.handle_reply(now, object, waiting.handle_octets(octets)),
            State::WaitRequest(waiting) => match waiting.handle_octets(octets) {
                Ok(AfterRequest::Waiting(more)) => entry.state = State::WaitRequest(more),
                Ok(AfterRequest::Arrived(decision)) if room.is_err() => {
                    let mut reply = Vec::new();
                    decision.reject(&PrivateData::default(), &mut reply);
                    entry.send(Transmit::Octets(reply.into()));
                    let (kind, status) = (NO_ROOM.to_owned(), NO_ROOM_STATUS);
                    self.events.push_back((now, Event::Failed { connection: entry.listener, kind, status }));
                    self.refuse(now, object);
                }
                Ok(AfterRequest::Arrived(decision)) => {
                    let request = decision.request();
                    let (ird, ord) = request.enhanced.map_or((0, 0), |words| (depth(words.ird), depth(words.ord)));
                    let private_data = Octets(request.private_data.as_octets().to_vec());
                    (entry.state, entry.deadline) = (State::Undecided(decision), None);
                    self.objects.insert(object, DeviceObject::Connection);
                    let event = Event::Request { listener: entry.listener, connection: object, private_data, ird, ord };
                    self.events.push_back((now, event));
                }
                Err(_) => self.refuse(now, object),
            },
            State::Operating(llp) => {
                entry.state = State::Operating(llp);
                self.rnic.handle_octets(now, llp, octets);
            }
            state => entry.state = state,
        }
    }

    /// Handles the result of the peer's Reply.
    fn handle_reply(&mut self, now: Instant, object: Object, reply: Result<AfterReply, StartupError>) {
        match reply {
            Ok(AfterReply::Waiting(more)) => {
                if let Some(entry) = self.connections.get_mut(&object) {
                    entry.state = State::WaitReply(more);
                }
            }
            Ok(AfterReply::Accepted(negotiated, frame)) => {
                let requested = self.connections.get(&object).map_or((1, 1), |entry| entry.requested);
                let depths = negotiated.enhanced.map_or(requested, |agreed| (depth(agreed.ird), depth(agreed.ord)));
                // The user gets the values in the Responder's Reply, not the negotiated values
                // (P2P-9.1-25). The Responder's ORD is reported as the IRD of this side.
                let reported = frame.enhanced.map_or(depths, |words| (depth(words.ord), depth(words.ird)));
                match self.operate(now, object, &negotiated, None, depths) {
                    Ok(()) => {
                        let private_data = Octets(frame.private_data.as_octets().to_vec());
                        self.established(now, object, private_data, reported);
                    }
                    Err(_) => self.failed(now, object, "connect_error", EPROTO),
                }
            }
            Ok(AfterReply::Unacceptable(negotiated, _, error)) => {
                let terminate = Outbound::setup_terminate(&negotiated, error, self.settings.deviations.clone());
                if let Some(entry) = self.connections.get_mut(&object) {
                    entry.send(Transmit::Octets(terminate.into()));
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

    pub(super) fn failed(&mut self, now: Instant, object: Object, kind: &str, status: i32) {
        let event = Event::Failed { connection: object, kind: kind.to_owned(), status };
        self.events.push_back((now, event));
        self.refuse(now, object);
    }

    pub(super) fn established(&mut self, now: Instant, connection: Object, private_data: Octets, (ird, ord): (u8, u8)) {
        if let Some(entry) = self.connections.get_mut(&connection) {
            entry.established = true;
        }
        self.events.push_back((now, Event::Established { connection, private_data, ird, ord }));
    }

    /// Passes the stream to the Queue Pair. If there is a Reply, it is sent before all other
    /// output.
    pub(super) fn operate(
        &mut self,
        now: Instant,
        connection: Object,
        negotiated: &Negotiated,
        reply: Option<Bytes>,
        (ird, ord): (u8, u8),
    ) -> Result<(), Failure> {
        let Pair { qp, .. } = self.find_pair(connection)?;
        let emss = self.find_connection(connection)?.emss.unwrap_or(self.settings.emss);
        let settings = LlpSettings::new(negotiated, emss);
        let llp = self.rnic.attach_stream(settings).map_err(invalid)?;
        let agreed = negotiated.enhanced.map_or((ird.into(), ord.into()), |it| (it.ird.into(), it.ord.into()));
        let (ird, ord) = (Some(agreed.0), Some(agreed.1));
        let modify = QpModify { stream_message: reply, ird, ord, ..QpModify::to_rts(llp) };
        if let Err(refused) = self.rnic.modify_qp(now, qp, &modify) {
            self.rnic.detach_stream(now, llp);
            return Err(invalid(refused));
        }
        let entry = self.find_connection(connection)?;
        (entry.state, entry.deadline) = (State::Operating(llp), None);
        Ok(())
    }

    /// Sends FIN instead of establishing the connection.
    pub(super) fn refuse(&mut self, now: Instant, object: Object) {
        let within = self.settings.close_timeout;
        let Some(entry) = self.connections.get_mut(&object) else { return };
        (entry.state, entry.deadline) = (State::Refused, Some(now + within));
        entry.send(Transmit::Fin);
    }

    /// Reports established connections that have ended.
    pub(super) fn report_ended(&mut self, now: Instant) {
        if !self.rnic.reports_end() {
            return;
        }
        for (object, entry) in &mut self.connections {
            let State::Operating(llp) = entry.state else { continue };
            if entry.established && (entry.ended || self.rnic.is_stream_over(llp)) {
                entry.established = false;
                self.events.push_back((now, Event::Disconnected { connection: *object }));
            }
        }
    }
}

/// Limits a depth to 8 bits, as in librdmacm.
fn depth(depth: u16) -> u8 {
    u8::try_from(depth).unwrap_or(u8::MAX)
}
