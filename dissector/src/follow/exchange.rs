//! Collects the exchanges of the port mapper (section 7 of the SDP draft). An exchange has a
//! Request, an answer (Accept or Deny), an Ack, and the TCP connections that the exchange prepared.
//!
//! AssocHandle, CpPort and CpIPAddr are the three-tuple of a datagram. The datagram belongs to the
//! exchange with the same three-tuple. If a Request has the three-tuple of an exchange but requests
//! another address, the Request begins a new exchange. Repeated messages are counted. An exchange
//! prepared a connection if the SYN of the connection goes to the address in the Accept. If several
//! exchanges match, weft selects the newest Accept that fits both addresses of the connection. If
//! no Accept fits both addresses, weft selects the newest Accept that has the destination address.
//!
//! If a datagram is neither a message of the draft nor a message of the Linux daemon, it is
//! ignored. At most [`MAX_EXCHANGES`] exchanges are kept, and the oldest exchange is dropped first.
//! For each exchange, the first [`MAX_STREAMS`] connections are kept.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use weft_core::wire::portmap::{Message, MessageType};

use crate::format::named;
use crate::frame_number::FrameNumber;
use crate::ip::{Datagram, Segment};
use crate::stream_id::StreamId;

/// Maximum number of exchanges that are kept.
pub const MAX_EXCHANGES: usize = 1024;
/// Maximum number of connections that are listed for an exchange.
pub const MAX_STREAMS: usize = 16;

/// The frame and time at which a message was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CapturePoint {
    /// Frame number.
    pub frame: FrameNumber,
    /// Time in nanoseconds since 1970.
    pub time: u64,
}

named! {
    /// The state of an exchange.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum State {
        /// A PMReq was sent. It is not answered yet.
        Requested = "requested",
        /// A PMAccept was sent. A PMAck was not sent. (The client is allowed to send a SYN instead,
        /// because a SYN also acknowledges a PMAccept: section 7.5.2.)
        Accepted = "accepted",
        /// A PMAck was sent.
        Acknowledged = "acknowledged",
        /// A PMDeny was sent.
        Denied = "denied",
    }
}

/// A port mapper exchange: messages with the same three-tuple.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// Number of the exchange. Exchanges are numbered from 0, in the order of their first
    /// datagrams.
    pub exchange: u64,
    /// AssocHandle.
    pub handle: u64,
    /// CpIPAddr and CpPort.
    pub connecting: SocketAddr,
    /// The mapped address in the Request of a Linux daemon. The client will connect from this
    /// address. `None` if the Request does not contain it.
    pub connecting_mapped: Option<SocketAddr>,
    /// ApIPAddr and ApPort of the Request.
    #[serde(rename = "asked")]
    pub requested: Option<SocketAddr>,
    /// ApIPAddr and ApPort of the Accept: the address to which the client must connect.
    pub mapped: Option<SocketAddr>,
    /// PmTime of the Accept.
    pub pm_time: Option<u8>,
    /// The first PMReq.
    pub request: Option<CapturePoint>,
    /// The first PMAccept.
    pub accept: Option<CapturePoint>,
    /// The first PMAck.
    pub ack: Option<CapturePoint>,
    /// The first PMDeny.
    pub deny: Option<CapturePoint>,
    /// Numbers of repeated PMReqs, PMAccepts, PMAcks and PMDenys, in this order. The first message
    /// of each type does not count.
    pub repeats: [u64; 4],
    /// The first connections that the exchange prepared, at most [`MAX_STREAMS`].
    pub streams: Vec<StreamId>,
    /// Number of all connections that the exchange prepared.
    pub followers: u64,
    /// Whether the last datagram of the exchange repeated an earlier datagram.
    #[serde(skip)]
    pub repeated: bool,
}

impl Exchange {
    /// Returns the state, derived from the messages so far.
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

    /// Processes a message of this exchange.
    fn record_message(&mut self, message: &Message, seen: CapturePoint) {
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

/// Returns the address in a 16-octet field. An IPv4 address is in the first four octets.
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
    dropped: u64,
    by_tuple: HashMap<(u64, SocketAddr), u64>,
    /// For each address in an Accept: the number of the exchange with the newest Accept that has
    /// this address.
    by_mapped: HashMap<SocketAddr, u64>,
    /// An Accept allows a connection between two addresses. For each such pair of source and
    /// destination: the number of the exchange with the newest Accept that allows the connection.
    by_addresses: HashMap<(SocketAddr, SocketAddr), u64>,
}

impl Exchanges {
    /// Processes a datagram from or to the port mapper. Returns the exchange of the datagram. If
    /// the oldest exchange was dropped because of the limit, also returns the dropped exchange.
    pub(crate) fn record_datagram(&mut self, datagram: &Datagram<'_>) -> (Option<&Exchange>, Option<Exchange>) {
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
        let mut removed = None;
        let number = known.unwrap_or_else(|| {
            let number = self.dropped + self.kept.len() as u64;
            self.by_tuple.insert(tuple, number);
            self.kept.push_back(Exchange::new(number, message.assoc_handle, connecting));
            if self.kept.len() > MAX_EXCHANGES {
                removed = self.drop_oldest();
            }
            number
        });
        let seen = CapturePoint { frame: datagram.frame, time: datagram.time };
        if let Some(exchange) = self.get_mut(number) {
            exchange.record_message(&message, seen);
            let repeated = exchange.repeated;
            let (mapped, sources) = (exchange.mapped, [Some(connecting), exchange.connecting_mapped]);
            if let Some(mapped) = mapped.filter(|_| message.message_type == MessageType::PM_ACCEPT && !repeated) {
                self.by_mapped.insert(mapped, number);
                self.by_addresses.extend(sources.into_iter().flatten().map(|source| ((source, mapped), number)));
            }
        }
        (self.get(number), removed)
    }

    /// Returns the number of the exchange that prepared a connection. `segment` is the SYN or
    /// SYN-ACK of the connection.
    pub(crate) fn number_for(&self, segment: &Segment<'_>) -> Option<u64> {
        if !segment.syn || self.by_mapped.is_empty() {
            return None;
        }
        let (from, to) = if segment.ack_flag { (segment.dst, segment.src) } else { (segment.src, segment.dst) };
        self.by_addresses.get(&(from, to)).or_else(|| self.by_mapped.get(&to)).copied()
    }

    /// Records that exchange `number` prepared connection `stream`. Returns the exchange, or `None`
    /// if this was recorded before.
    pub(crate) fn join(&mut self, number: u64, stream: StreamId) -> Option<&Exchange> {
        let exchange = self.get_mut(number)?;
        if exchange.streams.last() == Some(&stream) {
            return None;
        }
        exchange.followers += 1;
        if exchange.streams.len() < MAX_STREAMS {
            exchange.streams.push(stream);
        }
        Some(exchange)
    }

    /// Removes and returns all exchanges, at the end of the capture.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Exchange> {
        self.by_tuple.clear();
        self.by_mapped.clear();
        self.by_addresses.clear();
        self.dropped += self.kept.len() as u64;
        std::mem::take(&mut self.kept).into_iter()
    }

    fn get(&self, number: u64) -> Option<&Exchange> {
        self.kept.get(usize::try_from(number.checked_sub(self.dropped)?).ok()?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Exchange> {
        self.kept.get_mut(usize::try_from(number.checked_sub(self.dropped)?).ok()?)
    }

    fn drop_oldest(&mut self) -> Option<Exchange> {
        let oldest = self.kept.pop_front()?;
        self.dropped += 1;
        let number = oldest.exchange;
        remove_number(&mut self.by_tuple, &(oldest.handle, oldest.connecting), number);
        if let Some(mapped) = oldest.mapped {
            remove_number(&mut self.by_mapped, &mapped, number);
            self.by_addresses.retain(|_, kept| *kept != number);
        }
        Some(oldest)
    }
}

/// Removes `key` if its value is still `number`.
pub(super) fn remove_number<K: Eq + Hash>(numbers: &mut HashMap<K, u64>, key: &K, number: u64) {
    if numbers.get(key) == Some(&number) {
        numbers.remove(key);
    }
}

#[cfg(test)]
mod tests;
