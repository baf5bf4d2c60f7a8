//! Collects the transactions of the port mapper. Rules check each transaction. A transaction has a
//! request, the source of the request, and the answers.
//!
//! [`super::exchange`] groups messages in the same way as the draft, and shows users the state of
//! each exchange. This module also finds the transaction of a datagram if only some fields match. A
//! rule can then report the wrong field. For example, if an answer has a wrong AssocHandle, it
//! still has the CpPort and the CpIPAddr of its Request.
//!
//! At most [`MAX_TRANSACTIONS`] transactions are kept. The oldest transaction is dropped first. A
//! transaction is used until [`LIFETIME`] has passed after its last datagram.

use crate::frame_number::FrameNumber;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use weft_core::wire::portmap::{MessageType, RawMessage, UDP_PORT};

use super::exchange::remove_number;

/// Maximum number of transactions that are kept.
const MAX_TRANSACTIONS: usize = 1024;
/// Maximum number of PMAccepts that are kept for one transaction. If a PMAccept has the same
/// source, ApIPAddr and ApPort as a kept PMAccept, it is not kept.
const MAX_ACCEPTS: usize = 4;
/// Maximum number of pairs of source and destination that are kept for one transaction. The PMReqs
/// of one transaction can have different sources and destinations.
const MAX_ADDRESS_PAIRS: usize = 4;
/// The maximum time that a packet can be in transit, in nanoseconds (120 s). If a packet with the
/// same AssocHandle, CpPort and CpIPAddr comes later, it is possible that it belongs to a new
/// transaction.
const LIFETIME: u64 = 120_000_000_000;
/// If a PMReq is neither answered nor repeated for this time in nanoseconds (5 s), weft assumes
/// that the client has given up the request.
pub(crate) const IN_FLIGHT: u64 = 5_000_000_000;

/// The role of the sender of a datagram. The ports of the datagram show this role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// A port mapper message, and the addresses of its datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PmDatagram {
    pub(crate) raw: RawMessage,
    pub(crate) src: SocketAddr,
    pub(crate) dst: SocketAddr,
    pub(crate) frame: FrameNumber,
    /// When the datagram was captured, in nanoseconds since 1970.
    pub(crate) time: u64,
}

/// Returns an address field with its unused octets set to 0.
fn field(ipv: u8, field: [u8; 16]) -> [u8; 16] {
    match (ipv, field) {
        (4, [a, b, c, d, ..]) => [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        _ => field,
    }
}

impl PmDatagram {
    /// Returns the role of the sender. If both ports or neither port is the port of port mappers,
    /// returns `None`.
    pub(crate) fn role(&self) -> Option<Role> {
        match (self.src.port() == UDP_PORT, self.dst.port() == UDP_PORT) {
            (true, false) => Some(Role::Server),
            (false, true) => Some(Role::Client),
            _ => None,
        }
    }

    pub(crate) fn is_from(&self, role: Role, message_type: MessageType) -> bool {
        self.role() == Some(role) && self.raw.mt() == message_type
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
    pub(crate) fn has_cp_address_of(&self, other: &PmDatagram) -> bool {
        field(other.raw.ipv(), self.raw.cp_ip_addr) == other.connecting()
    }

    /// Returns whether both messages have the same ApIPAddr. The IPV of `other` decides how many
    /// octets are compared.
    pub(crate) fn has_ap_address_of(&self, other: &PmDatagram) -> bool {
        field(other.raw.ipv(), self.raw.ap_ip_addr) == other.accepting()
    }

    /// Returns AssocHandle, CpPort and CpIPAddr, which identify a transaction (section 7.5 of the
    /// SDP draft).
    pub(crate) fn key(&self) -> TransactionKey {
        (self.raw.assoc_handle.get(), self.connecting_address())
    }

    fn connecting_address(&self) -> ConnectingAddress {
        (self.raw.cp_port.get(), self.connecting())
    }

    /// Returns ApPort and ApIPAddr.
    fn accepting_address(&self) -> (u16, [u8; 16]) {
        (self.raw.ap_port.get(), self.accepting())
    }

    /// Returns whether CpPort, CpIPAddr, ApPort and ApIPAddr are the same as in `other`.
    fn has_four_tuple_of(&self, other: &PmDatagram) -> bool {
        self.connecting_address() == other.connecting_address() && self.accepting_address() == other.accepting_address()
    }
}

/// CpPort and CpIPAddr: the address from which the client will connect.
type ConnectingAddress = (u16, [u8; 16]);

/// AssocHandle, and CpPort with CpIPAddr.
pub(crate) type TransactionKey = (u64, ConnectingAddress);

/// A Request and its answers.
#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    /// The first PMReq.
    pub(crate) request: PmDatagram,
    /// The pairs of source and destination of the PMReqs; each pair is listed once. More than one
    /// pair is unusual. The server is allowed to answer each pair.
    pub(crate) address_pairs: Vec<(SocketAddr, SocketAddr)>,
    /// Time of the last datagram, in nanoseconds since 1970.
    latest: u64,
    /// The PMAccepts. No two PMAccepts have the same source, ApIPAddr and ApPort.
    pub(crate) accepts: Vec<PmDatagram>,
    /// The first PMDeny.
    pub(crate) deny: Option<PmDatagram>,
    /// Whether a PMAck was captured.
    acknowledged: bool,
    /// Number of PMReqs.
    requests: u32,
    /// Number of answers (PMAccept or PMDeny).
    answers: u32,
}

impl Transaction {
    /// Returns whether there is an answer for each PMReq. If false, it is possible that the client
    /// used an answer that was not captured.
    pub(crate) fn is_complete(&self) -> bool {
        self.answers >= self.requests
    }

    fn is_answered(&self) -> bool {
        !self.accepts.is_empty() || self.deny.is_some()
    }

    /// Returns whether it is the turn of `role` to send the next message of the transaction. The
    /// server answers the Request. The client sends an Ack after an Accept.
    pub(crate) fn is_awaiting(&self, role: Option<Role>) -> bool {
        match role {
            Some(Role::Client) => !self.accepts.is_empty() && !self.acknowledged,
            _ => !self.is_answered(),
        }
    }
}

/// How a PMReq conflicts with an earlier PMReq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestConflict {
    /// A changed repetition: the new PMReq has the same AssocHandle, CpPort and CpIPAddr, but
    /// another ApPort or ApIPAddr. The earlier PMReq is not answered.
    Changed,
    /// The new PMReq has the same AssocHandle, CpPort and CpIPAddr, but another ApPort or ApIPAddr.
    /// The earlier PMReq is already answered.
    Reused,
    /// The new PMReq has the same AssocHandle, but another CpPort or CpIPAddr. The earlier PMReq is
    /// not answered.
    SameHandle,
    /// The new PMReq has the same AssocHandle, CpPort, CpIPAddr, ApPort and ApIPAddr, but comes
    /// from another UDP port or IP address.
    OtherSource,
}

/// The transactions of a capture.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    kept: VecDeque<Transaction>,
    /// Number of transactions that were dropped.
    dropped: u64,
    by_handle: HashMap<u64, u64>,
    by_connecting: HashMap<ConnectingAddress, u64>,
    by_key: HashMap<TransactionKey, u64>,
}

impl Transactions {
    fn get(&self, number: Option<&u64>, now: u64) -> Option<&Transaction> {
        let index = usize::try_from(number?.checked_sub(self.dropped)?).ok()?;
        self.kept.get(index).filter(|kept| now.saturating_sub(kept.latest) <= LIFETIME)
    }

    fn known(&self, seen: &PmDatagram) -> Option<&Transaction> {
        self.get(self.by_key.get(&seen.key()), seen.time)
    }

    /// Returns the transaction of a datagram that is not a PMReq. The first choice is the
    /// transaction with the same AssocHandle, CpPort and CpIPAddr. The second choice is a
    /// transaction with the same CpPort and CpIPAddr, if the datagram can be the next message of
    /// this transaction. The last choice is a transaction with the same AssocHandle, and with the
    /// same CpPort or CpIPAddr. Clients increment the AssocHandle, so few transactions have the
    /// same AssocHandle.
    pub(crate) fn find(&self, seen: &PmDatagram) -> Option<&Transaction> {
        let by_handle = || {
            let kept = self.get(self.by_handle.get(&seen.raw.assoc_handle.get()), seen.time)?;
            let one_more = kept.request.raw.cp_port == seen.raw.cp_port || seen.has_cp_address_of(&kept.request);
            one_more.then_some(kept)
        };
        let by_connecting = || {
            let kept = self.get(self.by_connecting.get(&seen.connecting_address()), seen.time)?;
            let due = kept.is_awaiting(seen.role());
            // A client that was restarted can connect from the same TCP port as before, but it
            // probably uses another UDP port.
            let client = if seen.role() == Some(Role::Client) { seen.src } else { seen.dst };
            let same_client = kept.address_pairs.iter().any(|(src, _)| *src == client);
            (due && same_client && seen.time.saturating_sub(kept.latest) <= IN_FLIGHT).then_some(kept)
        };
        self.known(seen).or_else(by_connecting).or_else(by_handle)
    }

    /// Returns the newest transaction whose PMReq has the four-tuple of the PMReq in `transaction`,
    /// at time `now`.
    pub(crate) fn newest_like(&self, transaction: &Transaction, now: u64) -> Option<&Transaction> {
        let newest = self.get(self.by_connecting.get(&transaction.request.connecting_address()), now)?;
        newest.request.has_four_tuple_of(&transaction.request).then_some(newest)
    }

    /// Returns whether a PMReq was captured so far.
    pub(crate) fn has_any(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns the earlier PMReq with which the new PMReq `seen` conflicts, and the kind of
    /// conflict.
    pub(crate) fn find_conflict(&self, seen: &PmDatagram) -> Option<(RequestConflict, &PmDatagram)> {
        if let Some(known) = self.known(seen) {
            let conflict = match (seen.has_four_tuple_of(&known.request), known.is_answered()) {
                (true, _) if seen.src == known.request.src => return None,
                (true, _) => RequestConflict::OtherSource,
                (false, false) => RequestConflict::Changed,
                (false, true) => RequestConflict::Reused,
            };
            return Some((conflict, &known.request));
        }
        let other = self.get(self.by_handle.get(&seen.raw.assoc_handle.get()), seen.time)?;
        let open = !other.is_answered() && seen.time.saturating_sub(other.latest) <= IN_FLIGHT;
        // Two hosts choose their AssocHandles independently. So compare only PMReqs of the same
        // host.
        (open && other.request.src.ip() == seen.src.ip()).then_some((RequestConflict::SameHandle, &other.request))
    }

    /// Records a message if the sender's role is allowed to send that type of message.
    pub(crate) fn record(&mut self, seen: PmDatagram) {
        match (seen.role(), seen.raw.mt()) {
            (Some(Role::Client), MessageType::PM_REQ) => self.record_request(seen),
            (Some(Role::Client), MessageType::PM_ACK) => self.update(&seen, |kept| kept.acknowledged = true),
            (Some(Role::Server), MessageType::PM_ACCEPT) => self.update(&seen, |kept| {
                kept.answers = kept.answers.saturating_add(1);
                let same = |it: &PmDatagram| it.accepting_address() == seen.accepting_address() && it.src == seen.src;
                if kept.accepts.len() < MAX_ACCEPTS && !kept.accepts.iter().any(same) {
                    kept.accepts.push(seen);
                }
            }),
            (Some(Role::Server), MessageType::PM_DENY) => self.update(&seen, |kept| {
                kept.answers = kept.answers.saturating_add(1);
                kept.deny.get_or_insert(seen);
            }),
            _ => {}
        }
    }

    fn record_request(&mut self, seen: PmDatagram) {
        let again = self.known(&seen).is_some_and(|known| seen.has_four_tuple_of(&known.request));
        if again {
            return self.update(&seen, |kept| {
                kept.requests = kept.requests.saturating_add(1);
                if kept.address_pairs.len() < MAX_ADDRESS_PAIRS && !kept.address_pairs.contains(&(seen.src, seen.dst)) {
                    kept.address_pairs.push((seen.src, seen.dst));
                }
            });
        }
        let number = self.dropped + self.kept.len() as u64;
        let handle = seen.raw.assoc_handle.get();
        self.by_handle.insert(handle, number);
        self.by_connecting.insert(seen.connecting_address(), number);
        self.by_key.insert((handle, seen.connecting_address()), number);
        self.kept.push_back(Transaction {
            request: seen,
            address_pairs: vec![(seen.src, seen.dst)],
            latest: seen.time,
            accepts: Vec::new(),
            deny: None,
            acknowledged: false,
            requests: 1,
            answers: 0,
        });
        if self.kept.len() > MAX_TRANSACTIONS {
            self.drop_oldest();
        }
    }

    fn update(&mut self, seen: &PmDatagram, change: impl FnOnce(&mut Transaction)) {
        let number = self.by_key.get(&seen.key());
        let index = number.and_then(|number| usize::try_from(number.checked_sub(self.dropped)?).ok());
        if let Some(kept) = index.and_then(|index| self.kept.get_mut(index)) {
            kept.latest = seen.time;
            change(kept);
        }
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.kept.pop_front() else { return };
        let number = self.dropped;
        self.dropped += 1;
        let (handle, connecting) = (oldest.request.raw.assoc_handle.get(), oldest.request.connecting_address());
        remove_number(&mut self.by_handle, &handle, number);
        remove_number(&mut self.by_connecting, &connecting, number);
        remove_number(&mut self.by_key, &(handle, connecting), number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use zerocopy::FromBytes;

    fn seen(first: u8, handle: u64, time: u64) -> PmDatagram {
        let zeros = "00".repeat(12);
        let octets = hex(&format!("{first:02x}000000 1389 9c41 {handle:016x} 0a000002 {zeros} 0a000001 {zeros}"));
        let (client, server) = ("10.0.0.2:40000".parse().unwrap(), "10.0.0.1:3935".parse().unwrap());
        let (src, dst) = if first & 0x10 == 0 { (client, server) } else { (server, client) };
        PmDatagram { raw: RawMessage::read_from_bytes(&octets).unwrap(), src, dst, frame: FrameNumber::FIRST, time }
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let mut transactions = Transactions::default();
        for handle in 0..2 * MAX_TRANSACTIONS as u64 {
            transactions.record(seen(0x04, handle, handle));
        }
        assert_eq!(
            (transactions.kept.len(), transactions.by_handle.len(), transactions.by_key.len()),
            (MAX_TRANSACTIONS, MAX_TRANSACTIONS, MAX_TRANSACTIONS)
        );
        assert_eq!(transactions.by_connecting.len(), 1);
        assert!(transactions.find(&seen(0x14, MAX_TRANSACTIONS as u64, 0)).is_some());
        // The transaction with this AssocHandle was dropped. Instead, the newest transaction with
        // the same CpPort and CpIPAddr is found.
        assert_eq!(
            transactions.find(&seen(0x14, 0, 0)).unwrap().request.raw.assoc_handle.get(),
            2 * MAX_TRANSACTIONS as u64 - 1
        );
    }

    #[test]
    fn what_is_old_is_not_known_any_more() {
        let mut transactions = Transactions::default();
        transactions.record(seen(0x04, 1, 0));
        // An answer with another AssocHandle is matched only until `IN_FLIGHT`. A later answer may
        // belong to another PMReq, which has the same CpPort and CpIPAddr but was not captured.
        assert!(transactions.find(&seen(0x14, 2, IN_FLIGHT)).is_some());
        assert!(transactions.find(&seen(0x14, 2, IN_FLIGHT + 1)).is_none());
        assert!(transactions.find(&seen(0x14, 1, LIFETIME)).is_some());
        assert!(transactions.find(&seen(0x14, 1, LIFETIME + 1)).is_none());
    }
}
