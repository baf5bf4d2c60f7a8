//! Transactions of the port mapper, for rules: each request, its source, and its answers.
//!
//! [`super::exchange`] shows users the state of an exchange and groups messages as the draft does.
//! This module also matches a datagram by only some of its fields, so that a rule can name the
//! wrong field. An answer with a wrong AssocHandle still has CpPort and CpIPAddr of its Request. An
//! answer with a wrong CpPort still has the AssocHandle.
//!
//! At most [`MOST`] transactions are kept, each for [`LIFETIME`] after its last datagram. The
//! oldest transaction is dropped first.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use weft_core::wire::portmap::{MessageType, RawMessage, UDP_PORT};

/// Maximum number of transactions that are kept.
const MOST: usize = 1024;
/// Maximum number of PMAccepts that are kept for one transaction. Only PMAccepts with different
/// source or ApIPAddr and ApPort are kept.
const MOST_ACCEPTS: usize = 4;
/// Maximum number of different pairs of source and destination that are kept for the PMReqs of one
/// transaction.
const MOST_WAYS: usize = 4;
/// The maximum time that a packet may be in transit, in nanoseconds (120 s). A later packet with
/// the same AssocHandle, CpPort and CpIPAddr may belong to a new transaction.
const LIFETIME: u64 = 120_000_000_000;
/// Time in nanoseconds (5 s) after which a PMReq without answer or repetition counts as given up.
pub(crate) const IN_FLIGHT: u64 = 5_000_000_000;

/// The role of a datagram's sender, by its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A port mapper message, and the addresses of its datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PmSeen {
    pub(crate) raw: RawMessage,
    pub(crate) src: SocketAddr,
    pub(crate) dst: SocketAddr,
    pub(crate) frame: u64,
    /// When the datagram was captured, in nanoseconds since 1970.
    pub(crate) time: u64,
}

/// Returns an address field with the insignificant octets set to 0.
fn field(ipv: u8, field: [u8; 16]) -> [u8; 16] {
    match (ipv, field) {
        (4, [a, b, c, d, ..]) => [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        _ => field,
    }
}

impl PmSeen {
    /// Returns the role of the sender. `None` if both ports or neither port is that of port
    /// mappers.
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

    /// Returns CpIPAddr.
    fn connecting(&self) -> [u8; 16] {
        field(self.raw.ipv(), self.raw.cp_ip_addr)
    }

    /// Returns ApIPAddr.
    fn accepting(&self) -> [u8; 16] {
        field(self.raw.ipv(), self.raw.ap_ip_addr)
    }

    /// Returns whether both messages have the same CpIPAddr. The IPV of `other` decides how many
    /// octets are compared.
    pub(crate) fn connects_like(&self, other: &PmSeen) -> bool {
        field(other.raw.ipv(), self.raw.cp_ip_addr) == other.connecting()
    }

    /// Returns whether both messages have the same ApIPAddr. The IPV of `other` decides how many
    /// octets are compared.
    pub(crate) fn accepts_like(&self, other: &PmSeen) -> bool {
        field(other.raw.ipv(), self.raw.ap_ip_addr) == other.accepting()
    }

    /// Returns AssocHandle, CpPort and CpIPAddr, which identify a transaction (section 7.5 of the
    /// draft).
    pub(crate) fn names(&self) -> Names {
        (self.raw.assoc_handle.get(), self.end())
    }

    fn end(&self) -> End {
        (self.raw.cp_port.get(), self.connecting())
    }

    /// Returns ApPort and ApIPAddr.
    fn service(&self) -> (u16, [u8; 16]) {
        (self.raw.ap_port.get(), self.accepting())
    }

    /// Returns whether CpPort, CpIPAddr, ApPort and ApIPAddr are those of `other`.
    fn has_four_tuple_of(&self, other: &PmSeen) -> bool {
        self.end() == other.end() && self.service() == other.service()
    }
}

/// CpPort and CpIPAddr: the address from which the client will connect.
type End = (u16, [u8; 16]);

/// AssocHandle, and CpPort with CpIPAddr.
pub(crate) type Names = (u64, End);

/// A Request and its answers.
#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    /// The first PMReq.
    pub(crate) request: PmSeen,
    /// Different pairs of source and destination of the PMReqs. More than one pair is unusual. The
    /// server may answer each of them.
    pub(crate) ways: Vec<(SocketAddr, SocketAddr)>,
    /// Time of the last datagram, in nanoseconds since 1970.
    latest: u64,
    /// The PMAccepts with different source or ApIPAddr and ApPort.
    pub(crate) accepts: Vec<PmSeen>,
    /// The first PMDeny.
    pub(crate) deny: Option<PmSeen>,
    /// Was a PMAck observed?
    acknowledged: bool,
    /// Number of PMReqs.
    requests: u32,
    /// Number of answers (PMAccept or PMDeny).
    answers: u32,
}

impl Transaction {
    /// Returns whether each PMReq has an answer. Otherwise the client may have used an answer that
    /// the capture missed.
    pub(crate) fn is_complete(&self) -> bool {
        self.answers >= self.requests
    }

    fn is_answered(&self) -> bool {
        !self.accepts.is_empty() || self.deny.is_some()
    }

    /// Returns whether an Ack of the client or an answer of the server may come next.
    pub(crate) fn awaits(&self, side: Option<Side>) -> bool {
        match side {
            Some(Side::Client) => !self.accepts.is_empty() && !self.acknowledged,
            _ => !self.is_answered(),
        }
    }
}

/// How a PMReq conflicts with an earlier PMReq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clash {
    /// The same AssocHandle, CpPort and CpIPAddr, but another ApPort or ApIPAddr, while the earlier
    /// PMReq has no answer: a changed repetition.
    Changed,
    /// The same AssocHandle, CpPort and CpIPAddr, but another ApPort or ApIPAddr, after the answer
    /// to the earlier PMReq.
    Reused,
    /// The same AssocHandle with another CpPort or CpIPAddr, while the earlier PMReq has no answer.
    SameHandle,
    /// The same AssocHandle, CpPort, CpIPAddr, ApPort and ApIPAddr, but from another UDP port or IP
    /// address.
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

    /// Returns the transaction of a datagram that is not a PMReq. The first choice is the
    /// transaction with the same AssocHandle, CpPort and CpIPAddr. The second choice has the same
    /// CpPort and CpIPAddr, if the datagram may come next. The last choice has the same
    /// AssocHandle, which clients increment, and the same CpPort or CpIPAddr.
    pub(crate) fn of(&self, seen: &PmSeen) -> Option<&Transaction> {
        let by_handle = || {
            let kept = self.get(self.by_handle.get(&seen.raw.assoc_handle.get()), seen.time)?;
            let one_more = kept.request.raw.cp_port == seen.raw.cp_port || seen.connects_like(&kept.request);
            one_more.then_some(kept)
        };
        let by_end = || {
            let kept = self.get(self.by_end.get(&seen.end()), seen.time)?;
            let due = kept.awaits(seen.side());
            // A client that restarts may connect from the same TCP port, but probably uses another
            // UDP port.
            let client = if seen.side() == Some(Side::Client) { seen.src } else { seen.dst };
            let same_client = kept.ways.iter().any(|(src, _)| *src == client);
            (due && same_client && seen.time.saturating_sub(kept.latest) <= IN_FLIGHT).then_some(kept)
        };
        self.known(seen).or_else(by_end).or_else(by_handle)
    }

    /// Returns whether a PMReq was captured so far.
    pub(crate) fn has_any(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns the earlier PMReq with which the new PMReq `seen` conflicts, and the kind of
    /// conflict.
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
        // Other hosts choose their AssocHandles independently.
        (open && other.request.src.ip() == seen.src.ip()).then_some((Clash::SameHandle, &other.request))
    }

    /// Records a message if the sender's role may send that type of message.
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
        // The transaction with this AssocHandle was dropped. The newest transaction with the same
        // CpPort and CpIPAddr is used instead.
        assert_eq!(transactions.of(&seen(0x14, 0, 0)).unwrap().request.raw.assoc_handle.get(), 2 * MOST as u64 - 1);
    }

    #[test]
    fn what_is_old_is_not_known_any_more() {
        let mut transactions = Transactions::default();
        transactions.note(seen(0x04, 1, 0));
        // An answer with another AssocHandle is matched only for a shorter time: the capture may
        // have missed another PMReq with the same CpPort and CpIPAddr.
        assert!(transactions.of(&seen(0x14, 2, IN_FLIGHT)).is_some());
        assert!(transactions.of(&seen(0x14, 2, IN_FLIGHT + 1)).is_none());
        assert!(transactions.of(&seen(0x14, 1, LIFETIME)).is_some());
        assert!(transactions.of(&seen(0x14, 1, LIFETIME + 1)).is_none());
    }
}
