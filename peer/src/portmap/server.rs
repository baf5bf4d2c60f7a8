//! The PM Server: answers Requests from its table (sections 7.4 and 7.5.2 of the SDP draft).
//!
//! The server stores an accepted Request, and waits [`ServerSettings::hold`] for the PMAck or the
//! connection. If neither arrives, the server removes the Request. A duplicate restarts the timer.
//! A duplicate gets the same SDP Address if the table still allows that address.
//!
//! After the PMAck or the connection, the server stores the Request for another
//! [`ServerSettings::hold`]. Therefore a duplicate that arrives after the PMAck gets the same
//! answer. If the PmTime of the answer is longer than `hold` and is not "for ever", the server
//! stores the Request for the PmTime instead. During this time connections can arrive, so a port
//! that was assigned for the Request stays in use.
//!
//! The draft does not specify an answer to a malformed datagram. This server sends no answer.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;

use weft_core::wire::portmap::{Cache, Message, MessageType, PmTime};

use super::Datagram;
use super::message::{self, Discarded};
use super::rate::Rate;
use super::requests::{FourTuple, Phase, Requests, StoredRequest};
use super::table::{Assignment, Table};
use crate::hostile::{Deviations, PmConduct, PmSide, hook};
use crate::time::Instant;

/// Maximum number of events that wait until the caller polls them. If there are more events, the
/// server drops the oldest events.
const MAX_EVENTS: usize = 4096;

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// How long the server waits after a PMAccept for the PMAck or the connection. Default 10 s.
    pub hold: Duration,
    /// Maximum number of stored Requests. Default 4096.
    pub max_requests: usize,
    /// Maximum number of stored Requests of one host. Default 256.
    pub max_per_host: usize,
    /// The server raises [`ServerEvent::Alarm`] if more than this number of Requests arrive in one
    /// second. Default 1000.
    pub alarm: u32,
    /// The ApPort in a PMDeny, for which the draft has two rules that contradict each other. If
    /// true, the server sends the requested ApPort, as section 7.4 requires. If false, it sends 0,
    /// as section 7.3.1.6 requires. Default false.
    pub denies_with_port: bool,
    /// Deviations (deliberate protocol violations) that the server commits.
    pub deviations: Deviations,
}

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings {
            hold: Duration::from_secs(10),
            max_requests: 4096,
            max_per_host: 256,
            alarm: 1000,
            denies_with_port: false,
            deviations: Deviations::NONE,
        }
    }
}

/// Why the server denies a Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The service is not mapped or not available, or has no SDP Address left.
    #[error("no SDP Address is available for this service")]
    NoMapping,
    /// Too many Requests are stored.
    #[error("the server already stores the maximum number of requests, in total or from this host")]
    Full,
}

/// An event of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// The server sent a PMAccept.
    Accepted {
        /// CpIPAddr and CpPort.
        connecting: SocketAddr,
        /// The requested address.
        service: SocketAddr,
        /// The SDP Address.
        address: SocketAddr,
        /// The PMAccept answers a duplicate.
        again: bool,
    },
    /// The server sent a PMDeny.
    Denied {
        /// CpIPAddr and CpPort.
        connecting: SocketAddr,
        /// The requested address.
        service: SocketAddr,
        /// Why the Request is denied.
        why: Denial,
    },
    /// A PMAck arrived.
    Acknowledged {
        /// CpIPAddr and CpPort.
        connecting: SocketAddr,
        /// The SDP Address.
        address: SocketAddr,
    },
    /// The server removed a Request that no PMAck or connection had confirmed. The Request expired,
    /// a newer Request replaced it, or the table no longer allows its SDP Address. Existing
    /// connections are not affected.
    Expired {
        /// CpIPAddr and CpPort.
        connecting: SocketAddr,
        /// The SDP Address.
        address: SocketAddr,
    },
    /// A port that was assigned for a Request is free again. The listener on this port can be
    /// closed.
    Released {
        /// The SDP Address.
        address: SocketAddr,
    },
    /// More Requests than [`ServerSettings::alarm`] arrived within a second (section 15.2.1).
    Alarm,
    /// The server discarded a datagram.
    Discarded {
        /// Source address of the datagram.
        from: SocketAddr,
        /// The reason.
        why: Discarded,
    },
}

/// The PM Server, a sans-IO state machine.
#[derive(Debug)]
pub struct Server {
    settings: ServerSettings,
    conduct: PmConduct,
    table: Table,
    requests: Requests,
    rate: Rate,
    datagrams: VecDeque<Datagram>,
    events: VecDeque<ServerEvent>,
    /// The Requests that the server has accepted, at most [`MAX_EVENTS`]. Only a deviation uses
    /// this list.
    accepted_before: Vec<FourTuple>,
}

impl Server {
    /// Creates a server with these mappings.
    #[must_use]
    pub fn new(settings: ServerSettings, table: Table) -> Self {
        Server {
            conduct: hook::pm_conduct(&settings.deviations),
            requests: Requests::new(settings.max_requests, settings.max_per_host),
            settings,
            table,
            rate: Rate::default(),
            datagrams: VecDeque::new(),
            events: VecDeque::new(),
            accepted_before: Vec::new(),
        }
    }

    /// The mappings, which the caller can change. The next answer uses the changed mappings.
    pub fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    /// Processes a received datagram.
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

    /// Reports a connection to an SDP Address. The connection is established or is being set up.
    /// The connection has the same effect as a PMAck (section 7.5.2).
    ///
    /// Returns the service that was requested for the connection. A Request matches if it has the
    /// same connecting address and port. If clients may keep the answer, a Request with another
    /// port of the same host also matches (section 7.3.1.4).
    ///
    /// Returns `None` if no Request matches. Section 7.4 then permits a listener to reject the
    /// connection. If a mapping has the PmTime "for ever", the listener should accept the
    /// connection. The server does not store Requests for ever, so it has possibly already removed
    /// the Request.
    pub fn handle_connection(
        &mut self,
        now: Instant,
        connecting: SocketAddr,
        address: SocketAddr,
    ) -> Option<SocketAddr> {
        // A message contains neither a scope nor a flow label, so both are removed. A listener for
        // both families gets IPv4 addresses as IPv4-mapped IPv6 addresses, so both forms are looked
        // up.
        let plain = |it: SocketAddr| SocketAddr::new(it.ip(), it.port());
        let unmapped = |it: SocketAddr| SocketAddr::new(it.ip().to_canonical(), it.port());
        let ends = [(plain(connecting), plain(address)), (unmapped(connecting), unmapped(address))];
        let own = ends.iter().find_map(|(from, to)| self.requests.by_addresses(*from, *to).next());
        if let Some((tuple, stored)) = own {
            self.confirm(now, tuple, stored);
            return Some(tuple.accepting);
        }
        let kept = |stored: &StoredRequest| stored.assignment.pm_time.cache() != Cache::Once;
        let of_host = ends.iter().find_map(|(from, to)| {
            self.requests.by_host(from.ip(), *to).find(|(_, stored)| kept(stored)).map(|(tuple, _)| tuple)
        });
        of_host.map(|tuple| tuple.accepting)
    }

    /// Removes Requests that have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.conduct.never_expires {
            return;
        }
        while let Some((tuple, stored)) = self.requests.expired(now) {
            self.report_removed(tuple, &stored);
        }
    }

    /// Returns the time at which [`Server::handle_timeout`] must be called. `None` if no timer
    /// runs.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.requests.deadline().filter(|_| !self.conduct.never_expires)
    }

    /// Returns the next datagram to send. The returned datagram answers the last datagram that was
    /// passed in.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Number of stored Requests.
    #[must_use]
    pub fn stored_requests(&self) -> usize {
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
        let same = known.is_some_and(|stored| stored.handle == request.assoc_handle);
        if self.leaves_unanswered(tuple, known.is_some(), same) {
            return;
        }
        if self.conduct.gives_anew {
            self.requests.remove(&tuple);
            known = None;
        } else if !same && !self.conduct.keeps_old_handle {
            // A newer Request with the same four-tuple replaces the older Request.
            if let Some(stored) = known.take().and_then(|_| self.requests.remove(&tuple)) {
                self.report_removed(tuple, &stored);
            }
        }
        let assignment = match known {
            Some(stored) if self.table.is_still_valid(&stored.assignment) || self.conduct.answers_as_before => {
                Ok(stored.assignment)
            }
            _ => {
                // The Request is new, or the table no longer allows the stored SDP Address. In both
                // cases the Request is treated as new.
                known = None;
                if let Some(stored) = self.requests.remove(&tuple) {
                    self.report_removed(tuple, &stored);
                }
                if self.requests.make_room(tuple.connecting.ip(), from.ip()) {
                    self.table.assign(tuple.accepting).ok_or(Denial::NoMapping)
                } else {
                    Err(Denial::Full)
                }
            }
        };
        match assignment {
            Ok(assignment) => self.accept(now, from, request, tuple, known, assignment),
            Err(why) => self.deny(from, request, tuple, why),
        }
    }

    /// Returns whether a deviation leaves this Request without answer.
    fn leaves_unanswered(&mut self, tuple: FourTuple, known: bool, duplicate: bool) -> bool {
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
        known: Option<StoredRequest>,
        assignment: Assignment,
    ) {
        let phase = known.map_or(Phase::Offered, |stored| stored.phase);
        let until = known.filter(|_| self.conduct.keeps_time).map_or(now + self.settings.hold, |stored| stored.until);
        // A repetition of an acknowledged Request never shortens the time for which the Request is
        // stored.
        let until =
            known.filter(|stored| stored.phase == Phase::Confirmed).map_or(until, |stored| stored.until.max(until));
        let handle = known.map_or(request.assoc_handle, |stored| stored.handle);
        self.requests.put(tuple, StoredRequest { handle, from: from.ip(), assignment, phase, until });
        if self.conduct.answers_once && self.accepted_before.len() < MAX_EVENTS {
            self.accepted_before.push(tuple);
        }
        let answer = Message {
            message_type: MessageType::PM_ACCEPT,
            pm_time: assignment.pm_time,
            ap_port: assignment.address.port(),
            assoc_handle: handle,
            addresses: request.addresses.with_accepting(assignment.address.ip()),
            mapped: None,
            ..*request
        };
        self.send(&answer, from, request);
        let FourTuple { connecting, accepting: service } = tuple;
        let again = known.is_some();
        self.event(ServerEvent::Accepted { connecting, service, address: assignment.address, again });
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
        let known =
            self.requests.by_addresses(connecting, address).find(|(_, stored)| stored.handle == ack.assoc_handle);
        match known {
            Some((tuple, stored)) => {
                if stored.phase == Phase::Offered {
                    self.event(ServerEvent::Acknowledged { connecting, address });
                }
                self.confirm(now, tuple, stored);
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

    /// Processes the PMAck or the connection of a Request: the client uses the offered SDP Address.
    fn confirm(&mut self, now: Instant, tuple: FourTuple, stored: StoredRequest) {
        let kept = match stored.assignment.pm_time.cache() {
            Cache::For(time) => time.max(self.settings.hold),
            // Only a fixed SDP Address can have the PmTime "for ever". No port has to stay in use
            // for such a Request, so the Request need not be stored for ever.
            Cache::Once | Cache::Forever => self.settings.hold,
        };
        let until = if stored.phase == Phase::Confirmed { stored.until } else { now + kept };
        self.requests.put(tuple, StoredRequest { phase: Phase::Confirmed, until, ..stored });
    }

    /// Reports that a Request was removed, and releases its port.
    fn report_removed(&mut self, tuple: FourTuple, stored: &StoredRequest) {
        let address = stored.assignment.address;
        if stored.phase == Phase::Offered {
            self.event(ServerEvent::Expired { connecting: tuple.connecting, address });
        }
        if stored.assignment.from_range {
            self.table.release(&stored.assignment);
            self.event(ServerEvent::Released { address });
        }
    }

    fn send(&mut self, message: &Message, to: SocketAddr, answers: &Message) {
        hook::pm_sent(&self.settings.deviations, message, to, 0, Some(answers), |datagram| {
            self.datagrams.push_back(datagram);
        });
    }

    fn event(&mut self, event: ServerEvent) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
