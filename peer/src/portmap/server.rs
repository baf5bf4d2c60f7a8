//! The PM Server: answers Requests from its table (sections 7.4 and 7.5.2).
//!
//! An accepted Request is known until its PMAck or its connection comes, or
//! [`ServerSettings::hold`] has passed; a duplicate gets the same SDP Address while the service
//! still gives it, and begins the time anew. It goes on being known for as long after the PMAck, so
//! that a duplicate that was late gets the same answer, or for its PmTime, if that is longer and
//! not for ever: so long a connection may come, and a port that was made for it stays.
//!
//! The draft leaves open what answers a malformed datagram: nothing does.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;

use weft_core::wire::portmap::{Cache, Message, MessageType, PmTime};

use super::Datagram;
use super::message::{self, Discarded};
use super::rate::Rate;
use super::requests::{FourTuple, Held, Phase, Requests};
use super::table::{Given, Table};
use crate::hostile::{Deviations, PmConduct, PmSide, hook};
use crate::time::Instant;

/// Events that wait to be polled; the oldest go first.
const MOST_EVENTS: usize = 4096;

/// How a server answers.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// How long a PMAccept waits for its PMAck or its connection.
    pub hold: Duration,
    /// Requests that are known at a time.
    pub most_requests: usize,
    /// Those of one connecting address among them.
    pub most_of_one: usize,
    /// More Requests a second than this raise an alarm.
    pub alarm: u32,
    /// The requested ApPort is in a PMDeny, as section 7.4 has it; not 0, as section 7.3.1.6.
    pub denies_with_port: bool,
    /// What it does wrong.
    pub deviations: Deviations,
}

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings {
            hold: Duration::from_secs(10),
            most_requests: 4096,
            most_of_one: 256,
            alarm: 1000,
            denies_with_port: false,
            deviations: Deviations::NONE,
        }
    }
}

/// Why a Request is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The service is not mapped, cannot be had now, or has no address or port left.
    NoMapping,
    /// Too many Requests wait for their PMAck.
    Full,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Denial::NoMapping => "no mapping",
            Denial::Full => "too many requests",
        })
    }
}

/// The event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// A PMAccept went out.
    Accepted {
        /// CpIPAddr and CpPort.
        connecting: SocketAddr,
        /// The requested address.
        service: SocketAddr,
        /// The SDP Address.
        address: SocketAddr,
        /// It answers a duplicate.
        again: bool,
    },
    /// A PMDeny went out.
    Denied {
        /// CpIPAddr and CpPort.
        connecting: SocketAddr,
        /// The requested address.
        service: SocketAddr,
        /// Why.
        why: Denial,
    },
    /// A PMAck came.
    Acknowledged {
        /// CpIPAddr and CpPort.
        connecting: SocketAddr,
        /// The SDP Address.
        address: SocketAddr,
    },
    /// Nobody took what a PMAccept offered, in time or before a newer Request: its state is gone.
    /// Connections are not touched.
    Expired {
        /// CpIPAddr and CpPort.
        connecting: SocketAddr,
        /// The SDP Address.
        address: SocketAddr,
    },
    /// A port that was made for a Request is free again; listening on it can end.
    Released {
        /// The SDP Address.
        address: SocketAddr,
    },
    /// More Requests than [`ServerSettings::alarm`] arrived within a second (section 15.2.1).
    Alarm,
    /// A datagram was not acted on.
    Discarded {
        /// Where it came from.
        from: SocketAddr,
        /// Why.
        why: Discarded,
    },
}

/// The machine.
#[derive(Debug)]
pub struct Server {
    settings: ServerSettings,
    conduct: PmConduct,
    table: Table,
    requests: Requests,
    rate: Rate,
    datagrams: VecDeque<Datagram>,
    events: VecDeque<ServerEvent>,
    /// A Request was accepted before; for deviations.
    accepted_before: Vec<FourTuple>,
}

impl Server {
    /// A server of these mappings.
    #[must_use]
    pub fn new(settings: ServerSettings, table: Table) -> Self {
        Server {
            conduct: hook::pm_conduct(&settings.deviations),
            requests: Requests::new(settings.most_requests, settings.most_of_one),
            settings,
            table,
            rate: Rate::default(),
            datagrams: VecDeque::new(),
            events: VecDeque::new(),
            accepted_before: Vec::new(),
        }
    }

    /// The mappings, to look at or to change; answers follow their present state.
    pub fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    /// A datagram arrived.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, octets: &[u8]) {
        let octets = hook::pm_arrived(&self.settings.deviations, PmSide::Server, octets);
        let taken = [MessageType::PM_REQ, MessageType::PM_ACK];
        let Some(octets) = octets else { return };
        match message::read(&octets, taken) {
            Err(why) => self.event(ServerEvent::Discarded { from, why }),
            Ok(message) if message.message_type == MessageType::PM_REQ => self.request(now, from, &message),
            Ok(message) => self.ack(now, from, &message),
        }
    }

    /// A connection to an SDP Address is being set up, or was: as good as a PMAck (section 7.5.2).
    /// Gives the service it was requested, when the end that connects requested one, or another
    /// port of its host did and may keep the answer (section 7.3.1.4). A listener may refuse any
    /// other (section 7.4), where no PmTime is for ever: a Request is not known so long.
    pub fn handle_connection(
        &mut self,
        now: Instant,
        connecting: SocketAddr,
        address: SocketAddr,
    ) -> Option<SocketAddr> {
        // A message has neither a scope nor a flow label, and a listener for both families sees
        // IPv4 addresses mapped.
        let plain = |it: SocketAddr| SocketAddr::new(it.ip(), it.port());
        let unmapped = |it: SocketAddr| SocketAddr::new(it.ip().to_canonical(), it.port());
        let ends = [(plain(connecting), plain(address)), (unmapped(connecting), unmapped(address))];
        let own = ends.iter().find_map(|(from, to)| self.requests.by_ends(*from, *to).next());
        if let Some((tuple, held)) = own {
            self.taken(now, tuple, held);
            return Some(tuple.accepting);
        }
        let kept = |held: &Held| held.given.pm_time.cache() != Cache::Once;
        let of_host = ends.iter().find_map(|(from, to)| {
            self.requests.by_host(from.ip(), *to).find(|(_, held)| kept(held)).map(|(tuple, _)| tuple)
        });
        of_host.map(|tuple| tuple.accepting)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.conduct.never_expires {
            return;
        }
        while let Some((tuple, held)) = self.requests.expired(now) {
            self.gone(tuple, &held);
        }
    }

    /// When [`Server::handle_timeout`] wants to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.requests.deadline().filter(|_| !self.conduct.never_expires)
    }

    /// The next datagram to send; it answers the one that was handed in last.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Requests that are known.
    #[must_use]
    pub fn known(&self) -> usize {
        self.requests.len()
    }

    fn request(&mut self, now: Instant, from: SocketAddr, request: &Message) {
        self.handle_timeout(now);
        if self.rate.count(now, self.settings.alarm) {
            self.event(ServerEvent::Alarm);
        }
        let tuple = FourTuple {
            accepting: SocketAddr::new(request.addresses.accepting(), request.ap_port),
            connecting: SocketAddr::new(request.addresses.connecting(), request.cp_port),
        };
        let mut known = self.requests.get(&tuple).copied();
        let same = known.is_some_and(|held| held.handle == request.assoc_handle);
        if self.silent_about(tuple, known.is_some(), same) {
            return;
        }
        if self.conduct.gives_anew {
            self.requests.remove(&tuple);
            known = None;
        } else if !same && !self.conduct.keeps_old_handle {
            // A newer Request of the same four-tuple: the older one is over.
            if let Some(held) = known.take().and_then(|_| self.requests.remove(&tuple)) {
                self.gone(tuple, &held);
            }
        }
        let given = match known {
            Some(held) if self.table.still_gives(&held.given) || self.conduct.answers_as_before => Ok(held.given),
            _ => {
                // The table now gives another answer, which no client has accepted yet.
                known = None;
                if let Some(held) = self.requests.remove(&tuple) {
                    self.gone(tuple, &held);
                }
                if self.requests.make_room(tuple.connecting.ip(), from.ip()) {
                    self.table.give(tuple.accepting).ok_or(Denial::NoMapping)
                } else {
                    Err(Denial::Full)
                }
            }
        };
        match given {
            Ok(given) => self.accept(now, from, request, tuple, known, given),
            Err(why) => self.deny(from, request, tuple, why),
        }
    }

    /// Deviations that leave a Request without answer.
    fn silent_about(&mut self, tuple: FourTuple, known: bool, duplicate: bool) -> bool {
        if self.conduct.answers_once && self.accepted_before.contains(&tuple) && !known {
            return true;
        }
        self.conduct.ignores_duplicates && duplicate || self.conduct.one_at_a_time && !known && self.requests.len() > 0
    }

    fn accept(
        &mut self,
        now: Instant,
        from: SocketAddr,
        request: &Message,
        tuple: FourTuple,
        known: Option<Held>,
        given: Given,
    ) {
        let phase = known.map_or(Phase::Offered, |held| held.phase);
        let until = known.filter(|_| self.conduct.keeps_time).map_or(now + self.settings.hold, |held| held.until);
        // What was taken is not offered again: its time only gets longer.
        let until = known.filter(|held| held.phase == Phase::Taken).map_or(until, |held| held.until.max(until));
        let handle = known.map_or(request.assoc_handle, |held| held.handle);
        self.requests.put(tuple, Held { handle, from: from.ip(), given, phase, until });
        if self.conduct.answers_once && self.accepted_before.len() < MOST_EVENTS {
            self.accepted_before.push(tuple);
        }
        let answer = Message {
            message_type: MessageType::PM_ACCEPT,
            pm_time: given.pm_time,
            ap_port: given.address.port(),
            assoc_handle: handle,
            addresses: request.addresses.with_accepting(given.address.ip()),
            mapped: None,
            ..*request
        };
        self.send(&answer, from, request);
        let FourTuple { connecting, accepting: service } = tuple;
        let again = known.is_some();
        self.event(ServerEvent::Accepted { connecting, service, address: given.address, again });
    }

    fn deny(&mut self, from: SocketAddr, request: &Message, tuple: FourTuple, why: Denial) {
        let answer = Message {
            message_type: MessageType::PM_DENY,
            pm_time: PmTime::ONCE,
            ap_port: if self.settings.denies_with_port { request.ap_port } else { 0 },
            mapped: None,
            ..*request
        };
        self.send(&answer, from, request);
        let FourTuple { connecting, accepting: service } = tuple;
        self.event(ServerEvent::Denied { connecting, service, why });
    }

    fn ack(&mut self, now: Instant, from: SocketAddr, ack: &Message) {
        let connecting = SocketAddr::new(ack.addresses.connecting(), ack.cp_port);
        let address = SocketAddr::new(ack.addresses.accepting(), ack.ap_port);
        let known = self.requests.by_ends(connecting, address).find(|(_, held)| held.handle == ack.assoc_handle);
        match known {
            Some((tuple, held)) => {
                if held.phase == Phase::Offered {
                    self.event(ServerEvent::Acknowledged { connecting, address });
                }
                self.taken(now, tuple, held);
            }
            None => {
                if self.conduct.answers_unknown_ack {
                    let deny = Message { message_type: MessageType::PM_DENY, ..*ack };
                    self.send(&deny, from, ack);
                }
                let why = Discarded::Unknown(MessageType::PM_ACK);
                self.event(ServerEvent::Discarded { from, why });
            }
        }
    }

    /// The timer of a PMAccept has expired: its offer counts as accepted.
    fn taken(&mut self, now: Instant, tuple: FourTuple, held: Held) {
        let kept = match held.given.pm_time.cache() {
            Cache::For(time) => time.max(self.settings.hold),
            // A table does not reserve a port for ever, and a fixed port is not remembered for
            // ever.
            Cache::Once | Cache::Forever => self.settings.hold,
        };
        let until = if held.phase == Phase::Taken { held.until } else { now + kept };
        self.requests.put(tuple, Held { phase: Phase::Taken, until, ..held });
    }

    /// A Request is known no more.
    fn gone(&mut self, tuple: FourTuple, held: &Held) {
        let address = held.given.address;
        if held.phase == Phase::Offered {
            self.event(ServerEvent::Expired { connecting: tuple.connecting, address });
        }
        if held.given.made {
            self.table.take_back(&held.given);
            self.event(ServerEvent::Released { address });
        }
    }

    fn send(&mut self, message: &Message, to: SocketAddr, answers: &Message) {
        hook::pm_sent(&self.settings.deviations, message, to, 0, Some(answers), |datagram| {
            self.datagrams.push_back(datagram);
        });
    }

    fn event(&mut self, event: ServerEvent) {
        if self.events.len() >= MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
