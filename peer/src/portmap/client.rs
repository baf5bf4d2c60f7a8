//! The PM Client: one transaction for each query, with its timer and its result (sections 7.4 and
//! 7.5.1).
//!
//! The draft specifies neither the timeout nor the number of repetitions. This client repeats a
//! PMReq without answer after [`ClientSettings::wait`]. Each further wait is twice as long, up to
//! [`ClientSettings::longest_wait`]. After [`ClientSettings::repeats`] repetitions the result is
//! the Conventional Address.
//!
//! The first reply is the result. The client discards later replies, and datagrams that match no
//! open PMReq. A reply may come from another address than the one to which the PMReq was sent. The
//! PMAck is sent to the address from which the reply came.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};

use weft_core::wire::portmap::{Mapped, Message, MessageType, PmTime};

use super::Datagram;
use super::ask::{Ask, AskError, Fallback, Resolution};
use super::cache::Cache;
use super::message::{self, Discarded};
use crate::hostile::{Deviations, PmConduct, PmSide, hook};
use crate::time::Instant;

/// Maximum number of finished transactions that are stored, if the settings require it. Also the
/// maximum number of stored [`Discarded`] reports.
const MOST_DONE: usize = 1024;

/// Settings of a client.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Time until the first repetition. Default 500 ms.
    pub wait: Duration,
    /// Maximum time between two repetitions. Default 4 s.
    pub longest_wait: Duration,
    /// Maximum number of repetitions of a PMReq. Default 4.
    pub repeats: u32,
    /// Maximum number of open queries. Default 1024.
    pub most_open: usize,
    /// Acknowledge a repeated PMAccept again, for a minute. The draft forbids this (section 7.5.1),
    /// but the Linux daemon repeats its PMAccept until a PMAck arrives, and a PMAck can be lost.
    /// Default false.
    pub acknowledges_repeats: bool,
    /// Send PMReqs in the format of the Linux daemon: 64 bytes, with a second copy of the
    /// connecting port and address. The daemon passes the second copy to its kernel. From a PMReq
    /// in the format of the draft it passes undefined bytes. This setting violates the format of
    /// the draft (section 7.3). Default false.
    pub in_linux_manner: bool,
    /// Deviations that the client commits.
    pub deviations: Deviations,
}

impl Default for ClientSettings {
    fn default() -> Self {
        ClientSettings {
            wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(4),
            repeats: 4,
            most_open: 1024,
            acknowledges_repeats: false,
            in_linux_manner: false,
            deviations: Deviations::NONE,
        }
    }
}

/// Number of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transaction(u64);

/// Result of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// The query.
    pub transaction: Transaction,
    /// The parameters of the query.
    pub ask: Ask,
    /// The result.
    pub resolution: Resolution,
    /// Number of PMReqs that were sent for the query.
    pub requests: u32,
}

/// AssocHandle, CpIPAddr and CpPort. They match a reply to its PMReq.
type ThreeTuple = (u64, SocketAddr);

#[derive(Debug, Clone)]
struct Open {
    transaction: Transaction,
    ask: Ask,
    request: Message,
    /// Number of PMReqs that were sent.
    sent: u32,
    wait: Duration,
    due: Instant,
}

/// The PM Client, a sans-IO state machine.
#[derive(Debug)]
pub struct Client {
    settings: ClientSettings,
    conduct: PmConduct,
    next_handle: u64,
    open: HashMap<ThreeTuple, Open>,
    cache: Cache,
    /// Finished transactions whose repeated replies the client still processes, in order of time.
    done: VecDeque<(ThreeTuple, Instant, Open)>,
    datagrams: VecDeque<Datagram>,
    events: VecDeque<Resolved>,
    discarded: VecDeque<(SocketAddr, Discarded)>,
    next_transaction: u64,
}

impl Client {
    /// Creates a client. `random` is the first AssocHandle. Each further AssocHandle is one higher,
    /// and 0 is skipped.
    #[must_use]
    pub fn new(settings: ClientSettings, random: u64) -> Self {
        Client {
            conduct: hook::pm_conduct(&settings.deviations),
            settings,
            next_handle: random,
            open: HashMap::new(),
            cache: Cache::default(),
            done: VecDeque::new(),
            datagrams: VecDeque::new(),
            events: VecDeque::new(),
            discarded: VecDeque::new(),
            next_transaction: 0,
        }
    }

    /// Sends a PMReq, unless the cache has the answer. In both cases
    /// [`poll_event`](Self::poll_event) returns the result.
    ///
    /// # Errors
    /// The query is invalid, or cannot be sent now.
    pub fn ask(&mut self, now: Instant, ask: Ask) -> Result<Transaction, AskError> {
        let mut request = ask.request(self.next_handle.max(1))?;
        if self.settings.in_linux_manner {
            request.mapped = Some(Mapped { port: request.cp_port, ip_addr: request.to_raw().cp_ip_addr });
        }
        let transaction = Transaction(self.next_transaction);
        if !self.conduct.keeps_for_ever {
            self.cache.flush(now);
        }
        let at = if self.conduct.keeps_for_ever { Instant::ORIGIN } else { now };
        if let Some((address, pm_time)) = self.cache.answer(at, &ask) {
            self.next_transaction += 1;
            let resolution = Resolution::Sdp { address, pm_time, cached: true };
            self.events.push_back(Resolved { transaction, ask, resolution, requests: 0 });
            return Ok(transaction);
        }
        let same = |open: &Open| (open.ask.service, open.ask.connecting) == (ask.service, ask.connecting);
        if self.open.values().any(same) {
            return Err(AskError::InFlight);
        }
        if self.open.len() >= self.settings.most_open {
            return Err(AskError::Busy);
        }
        hook::pm_request(&self.settings.deviations, &mut request);
        self.next_transaction += 1;
        self.next_handle = self.next_handle.max(1).wrapping_add(1);
        let wait = self.settings.wait;
        let open = Open { transaction, ask, request, sent: 1, wait, due: now + wait };
        self.send(&request, ask.mapper, 0, None);
        self.open.insert(three_tuple(&request), open);
        Ok(transaction)
    }

    /// Cancels a query. The query gets no result.
    pub fn cancel(&mut self, transaction: Transaction) {
        self.open.retain(|_, open| open.transaction != transaction);
    }

    /// Reports that the connection to `address`, a result for `ask`, was reset. The reset has the
    /// same meaning as a PMDeny (section 7.5.1): the result is the Conventional Address, and the
    /// cached answer is removed.
    pub fn reset(&mut self, ask: &Ask, address: SocketAddr) -> Resolution {
        if self.conduct.ignores_reset {
            return Resolution::Sdp { address, pm_time: PmTime::ONCE, cached: false };
        }
        self.cache.forget(ask);
        Resolution::Conventional { address: ask.service, why: Fallback::Reset }
    }

    /// Processes a received datagram.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, octets: &[u8]) {
        let octets = hook::pm_arrived(&self.settings.deviations, PmSide::Client, octets);
        let taken = [MessageType::PM_ACCEPT, MessageType::PM_DENY];
        let reply = match octets.map(|octets| message::read(&octets, taken)) {
            None => return,
            Some(Ok(reply)) => reply,
            Some(Err(why)) => return self.discard(from, why),
        };
        // Such a PMAccept is ignored. The client repeats the PMReq, or uses the Conventional
        // Address in the end.
        if reply.message_type == MessageType::PM_ACCEPT
            && let Err(why) = message::sdp_address(&reply)
        {
            return self.discard(from, why);
        }
        let tuple = three_tuple(&reply);
        let Some(open) = self.open.get(&tuple) else { return self.late(now, from, &reply) };
        let denies = reply.message_type == MessageType::PM_DENY;
        if denies && (self.conduct.ignores_deny || self.conduct.heeds_deny_port && reply.ap_port != 0) {
            return;
        }
        let open = open.clone();
        self.open.remove(&tuple);
        self.answered(now, from, open, &reply);
    }

    /// Processes the first reply to a query.
    fn answered(&mut self, now: Instant, from: SocketAddr, open: Open, reply: &Message) {
        let ask = open.ask;
        let mut address = SocketAddr::new(reply.addresses.accepting(), reply.ap_port);
        let resolution = if reply.message_type == MessageType::PM_DENY {
            if self.conduct.acknowledges_deny {
                self.acknowledge(reply, from);
            }
            if self.conduct.keeps_denials {
                self.cache.keep(now, &ask, ask.service, reply.pm_time);
            }
            if self.conduct.connects_after_deny {
                Resolution::Sdp { address: ask.service, pm_time: PmTime::ONCE, cached: false }
            } else {
                Resolution::Conventional { address: ask.service, why: Fallback::Denied }
            }
        } else {
            self.acknowledge(reply, from);
            if self.conduct.keeps_requested_address {
                address = ask.service;
            }
            let pm_time = if self.conduct.keeps_once { PmTime(u8::MAX) } else { reply.pm_time };
            self.cache.keep(now, &ask, address, pm_time);
            Resolution::Sdp { address, pm_time: reply.pm_time, cached: false }
        };
        self.events.push_back(Resolved { transaction: open.transaction, ask, resolution, requests: open.sent });
        let remembers =
            self.settings.acknowledges_repeats || self.conduct.acknowledges_again || self.conduct.takes_later;
        if remembers {
            if self.done.len() >= MOST_DONE {
                self.done.pop_front();
            }
            self.done.push_back((three_tuple(reply), now, open));
        }
    }

    /// Processes a reply that matches no open query.
    fn late(&mut self, now: Instant, from: SocketAddr, reply: &Message) {
        /// How long finished transactions are stored. The Linux daemon repeats for ten seconds.
        const REMEMBERED: Duration = Duration::from_secs(60);
        while self.done.front().is_some_and(|(_, at, _)| now.saturating_duration_since(*at) > REMEMBERED) {
            self.done.pop_front();
        }
        let done = self.done.iter().position(|(tuple, ..)| *tuple == three_tuple(reply));
        if self.conduct.takes_later
            && let Some((_, _, open)) = done.and_then(|at| self.done.remove(at))
        {
            return self.answered(now, from, open, reply);
        }
        if reply.message_type == MessageType::PM_ACCEPT && (done.is_some() || self.conduct.takes_unasked) {
            return self.acknowledge(reply, from);
        }
        self.discard(from, Discarded::Unknown(reply.message_type));
    }

    /// Processes the time: repeats PMReqs and ends queries without answer.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.conduct.keeps_for_ever {
            self.cache.flush(now);
        }
        let mut due: Vec<ThreeTuple> =
            self.open.iter().filter(|(_, open)| open.due <= now).map(|(tuple, _)| *tuple).collect();
        due.sort_unstable();
        for tuple in due {
            let Some(open) = self.open.get_mut(&tuple) else { continue };
            let again = (open.sent <= self.settings.repeats || self.conduct.never_stops) && !self.conduct.never_repeats;
            if again {
                open.wait = (open.wait * 2).min(self.settings.longest_wait);
                open.due = now + open.wait;
                let (request, mapper, sent) = (open.request, open.ask.mapper, open.sent);
                open.sent = open.sent.saturating_add(1);
                self.send(&request, mapper, sent, None);
            } else if let Some(open) = self.open.remove(&tuple) {
                let (transaction, ask, requests) = (open.transaction, open.ask, open.sent);
                if !self.conduct.never_falls_back {
                    let resolution = Resolution::Conventional { address: ask.service, why: Fallback::Silent };
                    self.events.push_back(Resolved { transaction, ask, resolution, requests });
                }
            }
        }
    }

    /// Returns when [`Client::handle_timeout`] must be called. `None` if no timer runs.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let flush = self.cache.deadline().filter(|_| !self.conduct.keeps_for_ever);
        self.open.values().map(|open| open.due).chain(flush).min()
    }

    /// Reports that the UDP port of the port mapper is closed. Queries to it get the Conventional
    /// Address as result, as after the last repetition.
    pub fn handle_absent(&mut self, mapper: SocketAddr) {
        if self.conduct.never_falls_back {
            return;
        }
        let mut gone: Vec<Open> =
            self.open.extract_if(|_, open| open.ask.mapper == mapper).map(|(_, open)| open).collect();
        gone.sort_unstable_by_key(|open| open.transaction);
        for Open { transaction, ask, sent, .. } in gone {
            let resolution = Resolution::Conventional { address: ask.service, why: Fallback::Absent };
            self.events.push_back(Resolved { transaction, ask, resolution, requests: sent });
        }
    }

    /// Returns whether a query to this port mapper is open.
    #[must_use]
    pub fn is_asking(&self, mapper: SocketAddr) -> bool {
        self.open.values().any(|open| open.ask.mapper == mapper)
    }

    /// Returns the next datagram to send.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    /// Returns the next result of a query.
    pub fn poll_event(&mut self) -> Option<Resolved> {
        self.events.pop_front()
    }

    /// Returns the sender of the next discarded datagram, and the reason.
    pub fn poll_discarded(&mut self) -> Option<(SocketAddr, Discarded)> {
        self.discarded.pop_front()
    }

    /// Number of queries that wait for an answer.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Sends a PMAck to the address from which `accept` came (section 7.4).
    fn acknowledge(&mut self, accept: &Message, to: SocketAddr) {
        let ack = Message { message_type: MessageType::PM_ACK, pm_time: PmTime::ONCE, mapped: None, ..*accept };
        self.send(&ack, to, 0, Some(accept));
    }

    fn send(&mut self, message: &Message, to: SocketAddr, repeat: u32, answers: Option<&Message>) {
        hook::pm_sent(&self.settings.deviations, message, to, repeat, answers, |datagram| {
            self.datagrams.push_back(datagram);
        });
    }

    fn discard(&mut self, from: SocketAddr, why: Discarded) {
        if self.discarded.len() < MOST_DONE {
            self.discarded.push_back((from, why));
        }
    }
}

fn three_tuple(message: &Message) -> ThreeTuple {
    (message.assoc_handle, SocketAddr::new(message.addresses.connecting(), message.cp_port))
}
