//! The PM Client: one transaction for each query, with its timer and its result (sections 7.4 and
//! 7.5.1 of the SDP draft).
//!
//! The draft specifies neither the timeout nor the number of repetitions. If a PMReq gets no
//! answer, this client repeats the PMReq after [`ClientSettings::wait`]. Each further wait is twice
//! as long as the previous wait, up to [`ClientSettings::longest_wait`]. After
//! [`ClientSettings::repeats`] repetitions without an answer, the result is the Conventional
//! Address.
//!
//! The first reply to a PMReq is the result. The client discards all further replies, and datagrams
//! that match no open PMReq. A reply can come from an address other than the destination of the
//! PMReq. The client sends the PMAck to the address from which the reply came.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};

use weft_core::wire::portmap::{Mapped, Message, MessageType, PmTime};

use super::Datagram;
use super::cache::Cache;
use super::message::{self, Discarded};
use super::query::{Fallback, Query, QueryError, Resolution};
use crate::hostile::{Deviations, PmConduct, PmSide, hook};
use crate::reject::reject_if;
use crate::time::Instant;

/// Maximum number of finished transactions that the client stores. It stores them only with
/// [`ClientSettings::acknowledges_repeats`] or with a deviation (a deliberate protocol violation).
/// The same number limits the stored [`Discarded`] reports.
const MAX_DONE: usize = 1024;

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
    pub max_open: usize,
    /// If true, the client sends a PMAck for each repeated PMAccept that arrives within one minute
    /// after the first PMAck. The draft forbids these further PMAcks (section 7.5.1). But the Linux
    /// daemon repeats its PMAccept until a PMAck arrives, and a PMAck can be lost. Default false.
    pub acknowledges_repeats: bool,
    /// If true, the client sends PMReqs in the format of the Linux daemon: 64 bytes, with a second
    /// copy of the connecting port and address. The daemon passes the second copy to its kernel. If
    /// the PMReq has the format of the draft, the daemon passes undefined bytes to its kernel. This
    /// setting violates the format of the draft (section 7.3). Default false.
    pub linux_format: bool,
    /// Deviations that the client commits.
    pub deviations: Deviations,
}

impl Default for ClientSettings {
    fn default() -> Self {
        ClientSettings {
            wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(4),
            repeats: 4,
            max_open: 1024,
            acknowledges_repeats: false,
            linux_format: false,
            deviations: Deviations::NONE,
        }
    }
}

/// Identifies a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transaction(u64);

/// Result of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// The query.
    pub transaction: Transaction,
    /// The parameters of the query.
    pub query: Query,
    /// The result.
    pub resolution: Resolution,
    /// Number of PMReqs that were sent for the query.
    pub requests: u32,
}

/// AssocHandle, and CpIPAddr with CpPort. A reply has the same values as its PMReq.
type ThreeTuple = (u64, SocketAddr);

#[derive(Debug, Clone)]
struct Open {
    transaction: Transaction,
    query: Query,
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
    /// Finished transactions whose repeated replies the client still processes. They are in the
    /// order in which they finished.
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

    /// Sends a PMReq if the cache does not have the answer. With or without a PMReq,
    /// [`poll_event`](Self::poll_event) returns the result.
    ///
    /// # Errors
    /// The query is invalid, or its PMReq cannot be sent now.
    pub fn query(&mut self, now: Instant, query: Query) -> Result<Transaction, QueryError> {
        let mut request = query.request(self.next_handle.max(1))?;
        if self.settings.linux_format {
            request.mapped = Some(Mapped { port: request.cp_port, ip_addr: request.to_raw().cp_ip_addr });
        }
        let transaction = Transaction(self.next_transaction);
        if !self.conduct.keeps_for_ever {
            self.cache.flush(now);
        }
        let at = if self.conduct.keeps_for_ever { Instant::ORIGIN } else { now };
        if let Some((address, pm_time)) = self.cache.answer(at, &query) {
            self.next_transaction += 1;
            let resolution = Resolution::Sdp { address, pm_time, cached: true };
            self.events.push_back(Resolved { transaction, query, resolution, requests: 0 });
            return Ok(transaction);
        }
        let same = |open: &Open| (open.query.service, open.query.connecting) == (query.service, query.connecting);
        reject_if(self.open.values().any(same), QueryError::InFlight)?;
        reject_if(self.open.len() >= self.settings.max_open, QueryError::Busy)?;
        hook::pm_request(&self.settings.deviations, &mut request);
        self.next_transaction += 1;
        self.next_handle = self.next_handle.max(1).wrapping_add(1);
        let wait = self.settings.wait;
        let open = Open { transaction, query, request, sent: 1, wait, due: now + wait };
        self.send(&request, query.mapper, 0, None);
        self.open.insert(three_tuple(&request), open);
        Ok(transaction)
    }

    /// Cancels a query. The query gets no result.
    pub fn cancel(&mut self, transaction: Transaction) {
        self.open.retain(|_, open| open.transaction != transaction);
    }

    /// Reports a reset of the connection to `address`, which was the result of `query`. The reset
    /// has the same meaning as a PMDeny (section 7.5.1): the result is the Conventional Address,
    /// and the cached answer is removed.
    pub fn reset(&mut self, query: &Query, address: SocketAddr) -> Resolution {
        if self.conduct.ignores_reset {
            return Resolution::Sdp { address, pm_time: PmTime::ONCE, cached: false };
        }
        self.cache.forget(query);
        Resolution::Conventional { address: query.service, why: Fallback::Reset }
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
        // Ignore a PMAccept with an SDP Address to which no connection is possible. The client
        // continues to repeat the PMReq, and finally uses the Conventional Address.
        if reply.message_type == MessageType::PM_ACCEPT
            && let Err(why) = message::sdp_address(&reply)
        {
            return self.discard(from, why);
        }
        let tuple = three_tuple(&reply);
        let Some(open) = self.open.get(&tuple) else { return self.handle_late_reply(now, from, &reply) };
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
        let query = open.query;
        let mut address = SocketAddr::new(reply.addresses.accepting(), reply.ap_port);
        let resolution = if reply.message_type == MessageType::PM_DENY {
            if self.conduct.acknowledges_deny {
                self.acknowledge(reply, from);
            }
            if self.conduct.keeps_denials {
                self.cache.keep(now, &query, query.service, reply.pm_time);
            }
            if self.conduct.connects_after_deny {
                Resolution::Sdp { address: query.service, pm_time: PmTime::ONCE, cached: false }
            } else {
                Resolution::Conventional { address: query.service, why: Fallback::Denied }
            }
        } else {
            self.acknowledge(reply, from);
            if self.conduct.keeps_requested_address {
                address = query.service;
            }
            let pm_time = if self.conduct.keeps_once { PmTime(u8::MAX) } else { reply.pm_time };
            self.cache.keep(now, &query, address, pm_time);
            Resolution::Sdp { address, pm_time: reply.pm_time, cached: false }
        };
        self.events.push_back(Resolved { transaction: open.transaction, query, resolution, requests: open.sent });
        let remembers =
            self.settings.acknowledges_repeats || self.conduct.acknowledges_again || self.conduct.takes_later;
        if remembers {
            if self.done.len() >= MAX_DONE {
                self.done.pop_front();
            }
            self.done.push_back((three_tuple(reply), now, open));
        }
    }

    /// Processes a reply that matches no open query.
    fn handle_late_reply(&mut self, now: Instant, from: SocketAddr, reply: &Message) {
        /// How long finished transactions are stored. The Linux daemon repeats its PMAccept for ten
        /// seconds.
        const STORED_FOR: Duration = Duration::from_secs(60);
        let is_old = |(_, at, _): &mut (ThreeTuple, Instant, Open)| now.saturating_duration_since(*at) > STORED_FOR;
        while self.done.pop_front_if(is_old).is_some() {}
        let done = self.done.iter().position(|(tuple, ..)| *tuple == three_tuple(reply));
        if self.conduct.takes_later
            && let Some((_, _, open)) = done.and_then(|at| self.done.remove(at))
        {
            return self.answered(now, from, open, reply);
        }
        if reply.message_type == MessageType::PM_ACCEPT && (done.is_some() || self.conduct.takes_unrequested) {
            return self.acknowledge(reply, from);
        }
        self.discard(from, Discarded::Unknown(reply.message_type));
    }

    /// Repeats PMReqs that are due, and ends queries whose last repetition got no answer.
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
                let (request, mapper, sent) = (open.request, open.query.mapper, open.sent);
                open.sent = open.sent.saturating_add(1);
                self.send(&request, mapper, sent, None);
            } else if let Some(open) = self.open.remove(&tuple).filter(|_| !self.conduct.never_falls_back) {
                self.fall_back(&open, Fallback::Silent);
            }
        }
    }

    /// Returns the time at which [`Client::handle_timeout`] must be called. `None` if no timer
    /// runs.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let flush = self.cache.deadline().filter(|_| !self.conduct.keeps_for_ever);
        self.open.values().map(|open| open.due).chain(flush).min()
    }

    /// Reports that the UDP port of the port mapper is closed. Open queries to this port mapper end
    /// with the Conventional Address, in the same way as queries without an answer.
    pub fn handle_absent(&mut self, mapper: SocketAddr) {
        if self.conduct.never_falls_back {
            return;
        }
        let mut gone: Vec<Open> =
            self.open.extract_if(|_, open| open.query.mapper == mapper).map(|(_, open)| open).collect();
        gone.sort_unstable_by_key(|open| open.transaction);
        for open in &gone {
            self.fall_back(open, Fallback::Absent);
        }
    }

    fn fall_back(&mut self, open: &Open, why: Fallback) {
        let Open { transaction, query, sent: requests, .. } = *open;
        let resolution = Resolution::Conventional { address: query.service, why };
        self.events.push_back(Resolved { transaction, query, resolution, requests });
    }

    /// Returns whether a query to this port mapper is open.
    #[must_use]
    pub fn has_open_query(&self, mapper: SocketAddr) -> bool {
        self.open.values().any(|open| open.query.mapper == mapper)
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
        if self.discarded.len() < MAX_DONE {
            self.discarded.push_back((from, why));
        }
    }
}

fn three_tuple(message: &Message) -> ThreeTuple {
    (message.assoc_handle, SocketAddr::new(message.addresses.connecting(), message.cp_port))
}
