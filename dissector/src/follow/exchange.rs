//! Exchanges of the port mapper (section 7 of the draft): Request, Accept or Deny, Ack, and the TCP
//! connections that follow.
//!
//! A datagram belongs to the exchange with its three-tuple AssocHandle, CpPort and CpIPAddr. A
//! Request with the same three-tuple for another address begins a new exchange. Repeated messages
//! are counted. A connection follows an exchange if its SYN goes to the address that the Accept
//! named. The newest Accept for the two ends counts, else the newest Accept for the address alone.
//!
//! A datagram that is not a message of the draft (or of the Linux daemon) changes nothing. At most
//! [`MOST`] exchanges are kept, each with its first [`MOST_STREAMS`] connections; the oldest
//! exchange is dropped first.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use weft_core::wire::portmap::{Message, MessageType};

use crate::ip::{Datagram, Segment};
use crate::stream_id::StreamId;

/// Exchanges that are kept.
pub const MOST: usize = 1024;
/// Connections of an exchange that are listed.
pub const MOST_STREAMS: usize = 16;

/// Where and when something was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Frame.
    pub frame: u64,
    /// In nanoseconds since 1970.
    pub time: u64,
}

/// The state of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A PMReq without an answer.
    Requested,
    /// A PMAccept that no PMAck acknowledged; a SYN acknowledges it as well (section 7.5.2).
    Accepted,
    /// A PMAck.
    Acknowledged,
    /// A PMDeny.
    Denied,
}

impl State {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::Requested => "requested",
            State::Accepted => "accepted",
            State::Acknowledged => "acknowledged",
            State::Denied => "denied",
        }
    }
}

/// An exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// Its number, from 0, in the order of first datagrams.
    pub exchange: u64,
    /// AssocHandle.
    pub handle: u64,
    /// CpIPAddr and CpPort.
    pub connecting: SocketAddr,
    /// Where a Linux daemon's client will connect from.
    pub connecting_mapped: Option<SocketAddr>,
    /// ApIPAddr and ApPort of the Request.
    #[serde(rename = "asked")]
    pub requested: Option<SocketAddr>,
    /// ApIPAddr and ApPort of the Accept: the address to connect to.
    pub mapped: Option<SocketAddr>,
    /// PmTime of the Accept.
    pub pm_time: Option<u8>,
    /// The first PMReq.
    pub request: Option<Seen>,
    /// The first PMAccept.
    pub accept: Option<Seen>,
    /// The first PMAck.
    pub ack: Option<Seen>,
    /// The first PMDeny.
    pub deny: Option<Seen>,
    /// Repeated PMReqs, PMAccepts, PMAcks and PMDenys, without the first of each.
    pub repeats: [u64; 4],
    /// The first connections that followed.
    pub streams: Vec<StreamId>,
    /// Number of all connections that followed.
    pub followers: u64,
    /// Did the last datagram repeat an earlier one?
    #[serde(skip)]
    pub repeated: bool,
}

impl Exchange {
    /// How far it has come.
    #[must_use]
    pub fn state(&self) -> State {
        match self {
            Exchange { ack: Some(_), .. } => State::Acknowledged,
            Exchange { accept: Some(_), .. } => State::Accepted,
            Exchange { deny: Some(_), .. } => State::Denied,
            _ => State::Requested,
        }
    }

    fn new(number: u64, handle: u64, connecting: SocketAddr) -> Self {
        Exchange {
            exchange: number,
            handle,
            connecting,
            connecting_mapped: None,
            requested: None,
            mapped: None,
            pm_time: None,
            request: None,
            accept: None,
            ack: None,
            deny: None,
            repeats: [0; 4],
            streams: Vec::new(),
            followers: 0,
            repeated: false,
        }
    }

    /// Processes a message of its three-tuple.
    fn message(&mut self, message: &Message, seen: Seen) {
        let accepting = SocketAddr::new(message.addresses.accepting(), message.ap_port);
        let (first, index) = match message.message_type {
            MessageType::PM_REQ => {
                self.requested.get_or_insert(accepting);
                let family = message.addresses.ipv();
                self.connecting_mapped = message.mapped.map(|it| SocketAddr::new(address(family, it.ip_addr), it.port));
                (&mut self.request, 0)
            }
            MessageType::PM_ACCEPT => {
                // The first answer counts (section 7.5.1).
                self.mapped.get_or_insert(accepting);
                self.pm_time.get_or_insert(message.pm_time.0);
                (&mut self.accept, 1)
            }
            MessageType::PM_ACK => (&mut self.ack, 2),
            _ => (&mut self.deny, 3),
        };
        self.repeated = first.is_some();
        self.repeats[index] += u64::from(self.repeated);
        first.get_or_insert(seen);
    }
}

/// An address field; the first four octets of an IPv4 address count.
fn address(ipv: u8, field: [u8; 16]) -> IpAddr {
    match (ipv, field) {
        (4, [a, b, c, d, ..]) => IpAddr::from([a, b, c, d]),
        _ => IpAddr::from(field),
    }
}

/// The exchanges of a capture.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    kept: VecDeque<Exchange>,
    /// Number of exchanges that were dropped.
    gone: u64,
    by_tuple: HashMap<(u64, SocketAddr), u64>,
    /// By the address of the newest Accept, and by both ends.
    by_mapped: HashMap<SocketAddr, u64>,
    by_ends: HashMap<(SocketAddr, SocketAddr), u64>,
}

impl Exchanges {
    /// Processes a datagram from or to the port mapper. Returns its exchange, and an exchange that
    /// is dropped to make room.
    pub(crate) fn datagram(&mut self, datagram: &Datagram<'_>) -> (Option<&Exchange>, Option<Exchange>) {
        let complete = datagram.octets.len() as u64 == u64::from(datagram.wire_len);
        let Some(message) = Message::parse(datagram.octets).ok().filter(|_| complete) else { return (None, None) };
        let connecting = SocketAddr::new(message.addresses.connecting(), message.cp_port);
        let tuple = (message.assoc_handle, connecting);
        let requested = (message.message_type == MessageType::PM_REQ)
            .then(|| SocketAddr::new(message.addresses.accepting(), message.ap_port));
        let known = self.by_tuple.get(&tuple).copied().filter(|number| {
            let same = |kept: &Exchange| kept.requested.is_none() || requested.is_none() || kept.requested == requested;
            self.get(*number).is_some_and(same)
        });
        let mut forgotten = None;
        let number = known.unwrap_or_else(|| {
            let number = self.gone + self.kept.len() as u64;
            self.by_tuple.insert(tuple, number);
            self.kept.push_back(Exchange::new(number, message.assoc_handle, connecting));
            if self.kept.len() > MOST {
                forgotten = self.forget();
            }
            number
        });
        let seen = Seen { frame: datagram.frame, time: datagram.time };
        if let Some(exchange) = self.get_mut(number) {
            exchange.message(&message, seen);
            let repeated = exchange.repeated;
            let (mapped, sources) = (exchange.mapped, [Some(connecting), exchange.connecting_mapped]);
            if let Some(mapped) = mapped.filter(|_| message.message_type == MessageType::PM_ACCEPT && !repeated) {
                self.by_mapped.insert(mapped, number);
                self.by_ends.extend(sources.into_iter().flatten().map(|source| ((source, mapped), number)));
            }
        }
        (self.get(number), forgotten)
    }

    /// The exchange that the opening of a connection follows.
    pub(crate) fn followed_by(&self, segment: &Segment<'_>) -> Option<u64> {
        if !segment.syn || self.by_mapped.is_empty() {
            return None;
        }
        let (from, to) = if segment.ack_flag { (segment.dst, segment.src) } else { (segment.src, segment.dst) };
        self.by_ends.get(&(from, to)).or_else(|| self.by_mapped.get(&to)).copied()
    }

    /// Connection `stream` follows an exchange. Returns the exchange unless this was already known.
    pub(crate) fn join(&mut self, number: u64, stream: StreamId) -> Option<&Exchange> {
        let exchange = self.get_mut(number)?;
        if exchange.streams.last() == Some(&stream) {
            return None;
        }
        exchange.followers += 1;
        if exchange.streams.len() < MOST_STREAMS {
            exchange.streams.push(stream);
        }
        Some(exchange)
    }

    /// All exchanges that are kept, at the end of the capture.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Exchange> {
        self.by_tuple.clear();
        self.by_mapped.clear();
        self.by_ends.clear();
        self.gone += self.kept.len() as u64;
        std::mem::take(&mut self.kept).into_iter()
    }

    fn get(&self, number: u64) -> Option<&Exchange> {
        self.kept.get(usize::try_from(number.checked_sub(self.gone)?).ok()?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Exchange> {
        self.kept.get_mut(usize::try_from(number.checked_sub(self.gone)?).ok()?)
    }

    fn forget(&mut self) -> Option<Exchange> {
        let oldest = self.kept.pop_front()?;
        self.gone += 1;
        let number = oldest.exchange;
        let tuple = (oldest.handle, oldest.connecting);
        if self.by_tuple.get(&tuple) == Some(&number) {
            self.by_tuple.remove(&tuple);
        }
        if let Some(mapped) = oldest.mapped {
            if self.by_mapped.get(&mapped) == Some(&number) {
                self.by_mapped.remove(&mapped);
            }
            self.by_ends.retain(|_, kept| *kept != number);
        }
        Some(oldest)
    }
}

#[cfg(test)]
mod tests;
