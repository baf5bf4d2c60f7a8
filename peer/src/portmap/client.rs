//! The PM Client: one transaction for each question, its timer, and what comes of it (sections 7.4
//! and 7.5.1).
//!
//! The draft leaves the values of timer and count open. Here a PMReq that stays without answer is
//! sent again after [`ClientSettings::wait`], each time after twice as long up to
//! [`ClientSettings::longest_wait`], and [`ClientSettings::repeats`] times in all; then the
//! Conventional Address is to be used.
//!
//! The first reply decides. Later ones are discarded, and so are datagrams that belong to no
//! request, from any address. A reply may come from another address than the requested one; its
//! PMAck is sent there.

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

/// Transactions that are remembered after their reply, if that is configured.
const MOST_DONE: usize = 1024;

/// How a client asks.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Until the first repetition.
    pub wait: Duration,
    /// No repetition waits longer.
    pub longest_wait: Duration,
    /// How often a PMReq is sent again at most.
    pub repeats: u32,
    /// Questions that are open at a time.
    pub most_open: usize,
    /// A PMAccept that comes again is acknowledged again, for a minute. The draft forbids it
    /// (section 7.5.1); the Linux daemon repeats its PMAccept until a PMAck arrives, and one may be
    /// lost.
    pub acknowledges_repeats: bool,
    /// PMReqs have the Linux daemon's form: 64 octets, with the connecting port and address once
    /// more, which it hands to its kernel; of a PMReq of the draft it passes on what happens to be
    /// there. Against the draft, this breaks the format (section 7.3).
    pub in_linux_manner: bool,
    /// What it does wrong.
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

/// A question's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transaction(u64);

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// The transaction.
    pub transaction: Transaction,
    /// The request.
    pub ask: Ask,
    /// What came of it.
    pub resolution: Resolution,
    /// PMReqs that were sent for it.
    pub requests: u32,
}

/// AssocHandle, CpIPAddr and CpPort: what assigns a reply to a request.
type ThreeTuple = (u64, SocketAddr);

#[derive(Debug, Clone)]
struct Open {
    transaction: Transaction,
    ask: Ask,
    request: Message,
    /// PMReqs sent.
    sent: u32,
    wait: Duration,
    due: Instant,
}

/// The machine.
#[derive(Debug)]
pub struct Client {
    settings: ClientSettings,
    conduct: PmConduct,
    next_handle: u64,
    open: HashMap<ThreeTuple, Open>,
    cache: Cache,
    /// Accepted transactions, in order, whose repeats are acknowledged.
    done: VecDeque<(ThreeTuple, Instant, Open)>,
    datagrams: VecDeque<Datagram>,
    events: VecDeque<Resolved>,
    discarded: VecDeque<(SocketAddr, Discarded)>,
    next_transaction: u64,
}

impl Client {
    /// A client whose first AssocHandle is `random`; those that follow count on from there, and
    /// none is 0.
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

    /// Asks, unless an answer is kept; either way a [`Resolved`] comes of it.
    ///
    /// # Errors
    /// The request makes no sense, or cannot be sent now.
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

    /// Gives a question up: nothing comes of it any more.
    pub fn cancel(&mut self, transaction: Transaction) {
        self.open.retain(|_, open| open.transaction != transaction);
    }

    /// The connection to `address`, which a question was resolved to, was reset: as a PMDeny
    /// (section 7.5.1). An answer that was kept is forgotten.
    pub fn reset(&mut self, ask: &Ask, address: SocketAddr) -> Resolution {
        if self.conduct.ignores_reset {
            return Resolution::Sdp { address, pm_time: PmTime::ONCE, cached: false };
        }
        self.cache.forget(ask);
        Resolution::Conventional { address: ask.service, why: Fallback::Reset }
    }

    /// A datagram arrived.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, octets: &[u8]) {
        let octets = hook::pm_arrived(&self.settings.deviations, PmSide::Client, octets);
        let taken = [MessageType::PM_ACCEPT, MessageType::PM_DENY];
        let reply = match octets.map(|octets| message::read(&octets, taken)) {
            None => return,
            Some(Ok(reply)) => reply,
            Some(Err(why)) => return self.discard(from, why),
        };
        // The reply is ignored: the PMReq is repeated, or the Conventional Address is used.
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

    /// The first reply to a question.
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

    /// A reply without a question that waits for it.
    fn late(&mut self, now: Instant, from: SocketAddr, reply: &Message) {
        /// The Linux daemon repeats for ten seconds.
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

    /// Time has passed.
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

    /// When [`Client::handle_timeout`] wants to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let flush = self.cache.deadline().filter(|_| !self.conduct.keeps_for_ever);
        self.open.values().map(|open| open.due).chain(flush).min()
    }

    /// The port mapper's port is closed: requests to it continue without SDP, as after the last
    /// repetition.
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

    /// Is an answer of this port mapper waited for?
    #[must_use]
    pub fn is_asking(&self, mapper: SocketAddr) -> bool {
        self.open.values().any(|open| open.ask.mapper == mapper)
    }

    /// The next datagram to send.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    /// The next thing that came of a question.
    pub fn poll_event(&mut self) -> Option<Resolved> {
        self.events.pop_front()
    }

    /// The next datagram that was not acted on: from where, and why.
    pub fn poll_discarded(&mut self) -> Option<(SocketAddr, Discarded)> {
        self.discarded.pop_front()
    }

    /// Questions that wait for an answer.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// The PMAck to where `accept` came from (section 7.4).
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
