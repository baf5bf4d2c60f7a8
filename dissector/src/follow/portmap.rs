//! Transactions of the port mapper, for rules: each request, its source, and its answers.
//!
//! [`super::exchange`] shows users the state of an exchange and groups messages as the draft does.
//! This module also matches a datagram by part of its fields, so that a rule can name the wrong
//! field. An answer with a wrong AssocHandle still has CpPort and CpIPAddr of its Request; an
//! answer with a wrong CpPort still has the AssocHandle.
//!
//! At most [`MOST`] transactions are kept, each for [`LIFETIME`] after its last datagram; the
//! oldest is dropped first.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use weft_core::wire::portmap::{MessageType, RawMessage, UDP_PORT};

/// Transactions that are kept.
const MOST: usize = 1024;
/// PMAccepts that are kept of one transaction: those that differ in their SDP Address.
const MOST_ACCEPTS: usize = 4;
/// Pairs of source and destination that are kept of the PMReqs of one transaction.
const MOST_WAYS: usize = 4;
/// The longest that a packet may be in transit, in nanoseconds. An older packet cannot be
/// distinguished from a new one with the same names.
const LIFETIME: u64 = 120_000_000_000;
/// After this time without an answer or a repetition, a PMReq is no longer waited for.
pub(crate) const IN_FLIGHT: u64 = 5_000_000_000;

/// The role of a datagram's sender, by its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A message as received, and its packet headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PmSeen {
    pub(crate) raw: RawMessage,
    pub(crate) src: SocketAddr,
    pub(crate) dst: SocketAddr,
    pub(crate) frame: u64,
    /// In nanoseconds since 1970.
    pub(crate) time: u64,
}

/// The significant octets of an address field.
fn field(ipv: u8, field: [u8; 16]) -> [u8; 16] {
    match (ipv, field) {
        (4, [a, b, c, d, ..]) => [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        _ => field,
    }
}

impl PmSeen {
    /// The role of its sender; `None` if both ports, or none, are those of port mappers.
    pub(crate) fn side(&self) -> Option<Side> {
        match (self.src.port() == UDP_PORT, self.dst.port() == UDP_PORT) {
            (true, false) => Some(Side::Server),
            (false, true) => Some(Side::Client),
            _ => None,
        }
    }

    pub(crate) fn is(&self, side: Side, message_type: MessageType) -> bool {
        self.side() == Some(side) && self.raw.mt() == message_type
    }

    /// CpIPAddr.
    fn connecting(&self) -> [u8; 16] {
        field(self.raw.ipv(), self.raw.cp_ip_addr)
    }

    /// ApIPAddr.
    fn accepting(&self) -> [u8; 16] {
        field(self.raw.ipv(), self.raw.ap_ip_addr)
    }

    /// Is its CpIPAddr that of `other`, compared by the IPV of `other`?
    pub(crate) fn connects_like(&self, other: &PmSeen) -> bool {
        field(other.raw.ipv(), self.raw.cp_ip_addr) == other.connecting()
    }

    /// Is its ApIPAddr that of `other`, compared by the IPV of `other`?
    pub(crate) fn accepts_like(&self, other: &PmSeen) -> bool {
        field(other.raw.ipv(), self.raw.ap_ip_addr) == other.accepting()
    }

    /// AssocHandle, CpPort and CpIPAddr, which identify a transaction (section 7.5 of the draft).
    pub(crate) fn names(&self) -> Names {
        (self.raw.assoc_handle.get(), self.end())
    }

    fn end(&self) -> End {
        (self.raw.cp_port.get(), self.connecting())
    }

    /// ApPort and ApIPAddr.
    fn service(&self) -> (u16, [u8; 16]) {
        (self.raw.ap_port.get(), self.accepting())
    }

    /// Are CpPort and CpIPAddr, ApPort and ApIPAddr those of `other`?
    fn has_four_tuple_of(&self, other: &PmSeen) -> bool {
        self.end() == other.end() && self.service() == other.service()
    }
}

type End = (u16, [u8; 16]);

/// AssocHandle, and CpPort with CpIPAddr.
pub(crate) type Names = (u64, End);

/// A Request and its answers.
#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    /// The first PMReq observed.
    pub(crate) request: PmSeen,
    /// Sources and destinations of its PMReqs. More than one is unusual, and each of them may be
    /// answered.
    pub(crate) ways: Vec<(SocketAddr, SocketAddr)>,
    /// Time of its last datagram.
    latest: u64,
    /// The PMAccepts that differ.
    pub(crate) accepts: Vec<PmSeen>,
    /// The first PMDeny.
    pub(crate) deny: Option<PmSeen>,
    /// Was a PMAck observed?
    acknowledged: bool,
    /// PMReqs, and answers to them.
    requests: u32,
    answers: u32,
}

impl Transaction {
    /// Is there an answer for each PMReq? If not, the client may have used an answer that the
    /// capture missed.
    pub(crate) fn is_complete(&self) -> bool {
        self.answers >= self.requests
    }

    fn is_answered(&self) -> bool {
        !self.accepts.is_empty() || self.deny.is_some()
    }

    /// May a datagram of `side` that is not a PMReq come next?
    pub(crate) fn awaits(&self, side: Option<Side>) -> bool {
        match side {
            Some(Side::Client) => !self.accepts.is_empty() && !self.acknowledged,
            _ => !self.is_answered(),
        }
    }
}

/// How a PMReq conflicts with an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clash {
    /// The same AssocHandle, CpPort and CpIPAddr for another service while the earlier one is open:
    /// a changed repetition.
    Changed,
    /// The same, after the answer to the earlier one.
    Reused,
    /// The same AssocHandle from another connecting end, while the earlier one is open.
    SameHandle,
    /// The same five-tuple from another UDP port or address.
    OtherSource,
}

/// The transactions of a capture.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    kept: VecDeque<Transaction>,
    /// Number of transactions that were dropped.
    gone: u64,
    by_handle: HashMap<u64, u64>,
    by_end: HashMap<End, u64>,
    by_both: HashMap<Names, u64>,
}

impl Transactions {
    fn get(&self, number: Option<&u64>, now: u64) -> Option<&Transaction> {
        let index = usize::try_from(number?.checked_sub(self.gone)?).ok()?;
        self.kept.get(index).filter(|kept| now.saturating_sub(kept.latest) <= LIFETIME)
    }

    fn known(&self, seen: &PmSeen) -> Option<&Transaction> {
        self.get(self.by_both.get(&seen.names()), seen.time)
    }

    /// The transaction of a datagram that is not a PMReq. All three names decide first; then CpPort
    /// and CpIPAddr, if such a datagram is due. The last choice is AssocHandle, which clients
    /// increment, with one more name.
    pub(crate) fn of(&self, seen: &PmSeen) -> Option<&Transaction> {
        let by_handle = || {
            let kept = self.get(self.by_handle.get(&seen.raw.assoc_handle.get()), seen.time)?;
            let one_more = kept.request.raw.cp_port == seen.raw.cp_port || seen.connects_like(&kept.request);
            one_more.then_some(kept)
        };
        let by_end = || {
            let kept = self.get(self.by_end.get(&seen.end()), seen.time)?;
            let due = kept.awaits(seen.side());
            // A client that restarts may connect from the same port, but hardly sends requests from
            // the same UDP port.
            let client = if seen.side() == Some(Side::Client) { seen.src } else { seen.dst };
            let same_client = kept.ways.iter().any(|(src, _)| *src == client);
            (due && same_client && seen.time.saturating_sub(kept.latest) <= IN_FLIGHT).then_some(kept)
        };
        self.known(seen).or_else(by_end).or_else(by_handle)
    }

    /// Does the capture have a PMReq so far?
    pub(crate) fn has_any(&self) -> bool {
        !self.kept.is_empty()
    }

    /// The earlier PMReq that a PMReq conflicts with, and how.
    pub(crate) fn clash(&self, seen: &PmSeen) -> Option<(Clash, &PmSeen)> {
        if let Some(known) = self.known(seen) {
            let clash = match (seen.has_four_tuple_of(&known.request), known.is_answered()) {
                (true, _) if seen.src == known.request.src => return None,
                (true, _) => Clash::OtherSource,
                (false, false) => Clash::Changed,
                (false, true) => Clash::Reused,
            };
            return Some((clash, &known.request));
        }
        let other = self.get(self.by_handle.get(&seen.raw.assoc_handle.get()), seen.time)?;
        let open = !other.is_answered() && seen.time.saturating_sub(other.latest) <= IN_FLIGHT;
        // Other hosts choose their handles independently.
        (open && other.request.src.ip() == seen.src.ip()).then_some((Clash::SameHandle, &other.request))
    }

    /// Records a message if its side may send it.
    pub(crate) fn note(&mut self, seen: PmSeen) {
        match (seen.side(), seen.raw.mt()) {
            (Some(Side::Client), MessageType::PM_REQ) => self.request(seen),
            (Some(Side::Client), MessageType::PM_ACK) => self.update(&seen, |kept| kept.acknowledged = true),
            (Some(Side::Server), MessageType::PM_ACCEPT) => self.update(&seen, |kept| {
                kept.answers = kept.answers.saturating_add(1);
                let same = |it: &PmSeen| it.service() == seen.service() && it.src == seen.src;
                if kept.accepts.len() < MOST_ACCEPTS && !kept.accepts.iter().any(same) {
                    kept.accepts.push(seen);
                }
            }),
            (Some(Side::Server), MessageType::PM_DENY) => self.update(&seen, |kept| {
                kept.answers = kept.answers.saturating_add(1);
                kept.deny.get_or_insert(seen);
            }),
            _ => {}
        }
    }

    fn request(&mut self, seen: PmSeen) {
        let again = self.known(&seen).is_some_and(|known| seen.has_four_tuple_of(&known.request));
        if again {
            return self.update(&seen, |kept| {
                kept.requests = kept.requests.saturating_add(1);
                if kept.ways.len() < MOST_WAYS && !kept.ways.contains(&(seen.src, seen.dst)) {
                    kept.ways.push((seen.src, seen.dst));
                }
            });
        }
        let number = self.gone + self.kept.len() as u64;
        let handle = seen.raw.assoc_handle.get();
        self.by_handle.insert(handle, number);
        self.by_end.insert(seen.end(), number);
        self.by_both.insert((handle, seen.end()), number);
        self.kept.push_back(Transaction {
            request: seen,
            ways: vec![(seen.src, seen.dst)],
            latest: seen.time,
            accepts: Vec::new(),
            deny: None,
            acknowledged: false,
            requests: 1,
            answers: 0,
        });
        if self.kept.len() > MOST {
            self.forget();
        }
    }

    fn update(&mut self, seen: &PmSeen, change: impl FnOnce(&mut Transaction)) {
        let number = self.by_both.get(&seen.names());
        let index = number.and_then(|number| usize::try_from(number.checked_sub(self.gone)?).ok());
        if let Some(kept) = index.and_then(|index| self.kept.get_mut(index)) {
            kept.latest = seen.time;
            change(kept);
        }
    }

    fn forget(&mut self) {
        let Some(oldest) = self.kept.pop_front() else { return };
        let number = self.gone;
        self.gone += 1;
        let (handle, end) = (oldest.request.raw.assoc_handle.get(), oldest.request.end());
        if self.by_handle.get(&handle) == Some(&number) {
            self.by_handle.remove(&handle);
        }
        if self.by_end.get(&end) == Some(&number) {
            self.by_end.remove(&end);
        }
        if self.by_both.get(&(handle, end)) == Some(&number) {
            self.by_both.remove(&(handle, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use zerocopy::FromBytes;

    fn seen(first: u8, handle: u64, time: u64) -> PmSeen {
        let zeros = "00".repeat(12);
        let octets = hex(&format!("{first:02x}000000 1389 9c41 {handle:016x} 0a000002 {zeros} 0a000001 {zeros}"));
        let (client, server) = ("10.0.0.2:40000".parse().unwrap(), "10.0.0.1:3935".parse().unwrap());
        let (src, dst) = if first & 0x10 == 0 { (client, server) } else { (server, client) };
        PmSeen { raw: RawMessage::read_from_bytes(&octets).unwrap(), src, dst, frame: 1, time }
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let mut transactions = Transactions::default();
        for handle in 0..2 * MOST as u64 {
            transactions.note(seen(0x04, handle, handle));
        }
        assert_eq!(
            (transactions.kept.len(), transactions.by_handle.len(), transactions.by_both.len()),
            (MOST, MOST, MOST)
        );
        assert_eq!(transactions.by_end.len(), 1);
        assert!(transactions.of(&seen(0x14, MOST as u64, 0)).is_some());
        // Its own transaction was dropped; the newest one of the same end is used instead.
        assert_eq!(transactions.of(&seen(0x14, 0, 0)).unwrap().request.raw.assoc_handle.get(), 2 * MOST as u64 - 1);
    }

    #[test]
    fn what_is_old_is_not_known_any_more() {
        let mut transactions = Transactions::default();
        transactions.note(seen(0x04, 1, 0));
        // With another AssocHandle it is known for a shorter time: another PMReq of the same end
        // may have been missed.
        assert!(transactions.of(&seen(0x14, 2, IN_FLIGHT)).is_some());
        assert!(transactions.of(&seen(0x14, 2, IN_FLIGHT + 1)).is_none());
        assert!(transactions.of(&seen(0x14, 1, LIFETIME)).is_some());
        assert!(transactions.of(&seen(0x14, 1, LIFETIME + 1)).is_none());
    }
}
