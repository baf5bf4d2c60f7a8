//! Delays findings about a datagram that a later PMReq can explain.
//!
//! A transaction consists of a PMReq, its answers and the PMAck. AssocHandle, CpPort and CpIPAddr
//! are the key of a transaction. If only some of these fields of a datagram match a transaction,
//! there are two possible reasons. Either the datagram is wrong, or it belongs to another
//! transaction, whose PMReq is missing in the capture or comes after the answer. Section 7.5.2 of
//! the SDP draft allows a new AssocHandle for the same four-tuple. Section 7.4 allows the same
//! AssocHandle for the next four-tuple, because section 7.4 requires different AssocHandles only
//! for transactions in flight. UDP has no sequence numbers, so the capture does not show whether
//! the datagram is wrong. A finding waits for the time [`IN_FLIGHT`], or until the capture ends.
//! Then the finding
//!
//! * is dropped if a PMReq explains the datagram,
//! * becomes a note if a message of the peer has the same key as the datagram, if the transaction
//!   also has its correct answer, or if the capture lost or reordered other port mapper messages,
//! * is reported with the severity of its requirement in all other cases.

use std::collections::VecDeque;

use weft_core::requirement::Severity;
use weft_core::wire::portmap::MessageType;

use crate::finding::Finding;
use crate::follow::portmap::{IN_FLIGHT, PmDatagram, RequestConflict, Role, TransactionKey, Transactions};

/// Maximum number of datagrams with waiting findings, and maximum number of kept messages without
/// PMReq.
const MAX_PENDING: usize = 256;

/// The reason why findings about a datagram are uncertain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Only some of AssocHandle, CpPort and CpIPAddr are the same as in the transaction.
    Key,
    /// The IP addresses and UDP ports differ from those of all PMReqs of the transaction.
    AddressPair,
    /// The datagram is a PMReq with the AssocHandle of another transaction, and it is possible that
    /// this transaction is complete.
    Handle,
}

/// A datagram that was matched with the transaction `key`, but possibly belongs to another
/// transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UncertainMatch {
    doubt: Doubt,
    key: TransactionKey,
    /// Whether the transaction with the key `key` still expects a datagram from the sender of this
    /// datagram.
    is_awaited: bool,
}

impl UncertainMatch {
    /// Returns the doubt about a datagram; `None` if there is no doubt.
    pub(crate) fn find(seen: &PmDatagram, transactions: &Transactions) -> Option<Self> {
        if seen.is_from(Role::Client, MessageType::PM_REQ) {
            let (RequestConflict::SameHandle, earlier) = transactions.find_conflict(seen)? else { return None };
            return Some(UncertainMatch { doubt: Doubt::Handle, key: earlier.key(), is_awaited: true });
        }
        let transaction = transactions.find(seen)?;
        let key = transaction.request.key();
        if key != seen.key() {
            return Some(UncertainMatch { doubt: Doubt::Key, key, is_awaited: transaction.is_awaiting(seen.role()) });
        }
        let is_same_pair = |(src, dst): &(_, _)| match seen.role() {
            Some(Role::Client) => *src == seen.src,
            _ => (*src, *dst) == (seen.dst, seen.src),
        };
        let is_known = transaction.address_pairs.iter().any(is_same_pair);
        (!is_known).then_some(UncertainMatch { doubt: Doubt::AddressPair, key, is_awaited: true })
    }

    /// Returns whether the findings compare the datagram with a transaction that is possibly the
    /// wrong transaction.
    pub(crate) fn has_doubtful_transaction(&self) -> bool {
        self.doubt != Doubt::Handle
    }
}

/// A datagram and its waiting findings.
struct Pending {
    seen: PmDatagram,
    uncertain: UncertainMatch,
    /// Whether the findings keep their severity, judged only by the messages so far.
    is_proven: bool,
    findings: Vec<Finding>,
}

/// The effect of a later message on waiting findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Nothing,
    /// The message is a PMReq that explains the datagram, so the findings are wrong.
    Explains,
    /// The message suggests that the datagram belongs to another transaction.
    Weakens,
    /// The message shows that the earlier transaction was still in flight.
    Proves,
}

impl Pending {
    fn effect_of(&self, message: &PmDatagram) -> Effect {
        let (seen, key) = (&self.seen, self.uncertain.key);
        let is_request = message.is_from(Role::Client, MessageType::PM_REQ);
        let same_role = message.role() == seen.role();
        match self.uncertain.doubt {
            Doubt::Key if message.key() == seen.key() => match (is_request, same_role) {
                (true, _) => Effect::Explains,
                (false, false) => Effect::Weakens,
                (false, true) => Effect::Nothing,
            },
            Doubt::Key if message.key() == key && same_role && !is_request => Effect::Weakens,
            Doubt::AddressPair if is_request && message.key() == key => {
                let client = if seen.role() == Some(Role::Client) { seen.src } else { seen.dst };
                if message.src == client { Effect::Explains } else { Effect::Nothing }
            }
            Doubt::Handle if is_request && message.key() == key => Effect::Proves,
            _ => Effect::Nothing,
        }
    }
}

/// The waiting findings.
#[derive(Default)]
pub(crate) struct PendingFindings {
    waiting: VecDeque<Pending>,
    /// Key and sender's role of each answer and PMAck without a PMReq, oldest first.
    unmatched: VecDeque<(TransactionKey, Option<Role>)>,
    /// Whether the capture lost or reordered port mapper messages.
    is_imperfect: bool,
}

impl PendingFindings {
    /// Delays findings about `seen`.
    pub(crate) fn delay(&mut self, seen: &PmDatagram, uncertain: UncertainMatch, findings: Vec<Finding>) {
        if findings.is_empty() {
            return;
        }
        let is_from_peer = |(key, role): &(TransactionKey, _)| *key == seen.key() && *role != seen.role();
        let is_proven = match uncertain.doubt {
            Doubt::Key => uncertain.is_awaited && !self.unmatched.iter().any(is_from_peer),
            Doubt::AddressPair => true,
            Doubt::Handle => false,
        };
        self.waiting.push_back(Pending { seen: *seen, uncertain, is_proven, findings });
    }

    /// Updates the waiting findings with a message that `transactions` do not include yet.
    pub(crate) fn record_message(&mut self, message: &PmDatagram, transactions: &Transactions) {
        let is_request = message.is_from(Role::Client, MessageType::PM_REQ);
        let mut explained = false;
        self.waiting.retain_mut(|pending| {
            match pending.effect_of(message) {
                Effect::Nothing => {}
                Effect::Weakens => pending.is_proven = false,
                Effect::Proves => pending.is_proven = true,
                Effect::Explains => {
                    explained = true;
                    return false;
                }
            }
            true
        });
        if is_request {
            let has_same_key = |(key, _): &(TransactionKey, _)| *key == message.key();
            self.is_imperfect |= explained || self.unmatched.iter().any(has_same_key);
            return;
        }
        match transactions.find(message) {
            Some(transaction) if transaction.request.key() == message.key() => return,
            Some(_) => {}
            // If no PMReq was captured so far, it is possible that the capture started after the
            // PMReq of this message. In this case, the capture has not lost the PMReq.
            None => self.is_imperfect |= transactions.has_any(),
        }
        self.unmatched.push_back((message.key(), message.role()));
        self.unmatched.drain(..self.unmatched.len().saturating_sub(MAX_PENDING));
    }

    /// Removes and returns the findings that have waited long enough at `now` (nanoseconds since
    /// 1970), and the oldest findings above the limit.
    pub(crate) fn take_due(&mut self, now: u64) -> Vec<Finding> {
        let mut found = Vec::new();
        while let Some(first) = self.waiting.front() {
            let is_over = now.saturating_sub(first.seen.time) > IN_FLIGHT;
            if !is_over && self.waiting.len() <= MAX_PENDING {
                break;
            }
            self.release(is_over, &mut found);
        }
        found
    }

    /// Removes and returns all waiting findings, at the end of the capture.
    pub(crate) fn finish(&mut self) -> Vec<Finding> {
        let mut found = Vec::new();
        while !self.waiting.is_empty() {
            self.release(true, &mut found);
        }
        found
    }

    /// Moves the findings about the oldest datagram to `found`. If the findings did not wait long
    /// enough (`is_over` is false), the findings become notes.
    fn release(&mut self, is_over: bool, found: &mut Vec<Finding>) {
        let Some(Pending { is_proven, uncertain, findings, .. }) = self.waiting.pop_front() else { return };
        let repeated = uncertain.doubt == Doubt::Handle;
        let is_certain = is_proven && is_over && (repeated || !self.is_imperfect);
        found.extend(findings.into_iter().map(|finding| Finding {
            severity: if is_certain { finding.severity } else { Severity::Note },
            ..finding
        }));
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;

    use super::MAX_PENDING;
    use crate::rules::portmap::testing::{ACCEPT, ACK, DENY, Datagram, Datagrams, REQ, datagram, other_host};

    /// A message with AssocHandle `handle` and CpPort `port`.
    fn with(first: u8, handle: u8, port: u8) -> Vec<u8> {
        datagram(first, |octets| (octets[15], octets[7]) = (handle, port)).octets()
    }

    fn capture(messages: &[(usize, Vec<u8>)]) -> Datagrams {
        let mut wire = Datagrams::default();
        messages.iter().for_each(|(from, octets)| wire.put(*from, octets));
        wire
    }

    fn reported(wire: &Datagrams) -> Vec<(&'static str, Severity)> {
        let mut reported: Vec<_> =
            wire.findings().iter().map(|finding| (finding.requirement.as_str(), finding.severity)).collect();
        reported.sort_unstable();
        reported.dedup();
        reported
    }

    const HANDLE: [(&str, Severity); 3] =
        [("PM-7.3.1.8-2", Severity::Error), ("PM-7.4-18", Severity::Error), ("PM-7.4-25", Severity::Error)];

    #[test]
    fn a_wrong_handle_is_an_error_where_nothing_explains_it() {
        assert_eq!(reported(&capture(&[(0, with(REQ, 1, 1)), (1, with(ACCEPT, 9, 1))])), HANDLE);
        // The client repeats the PMReq, and later sends a PMAck with the AssocHandle of the PMReq.
        let again = [(0, with(REQ, 1, 1)), (1, with(ACCEPT, 9, 1)), (0, with(REQ, 1, 1)), (0, with(ACK, 1, 1))];
        assert_eq!(reported(&capture(&again)), HANDLE);
        // The finding is reported before the capture ends, once a later PMReq is unlikely.
        let mut wire = capture(&[(0, with(REQ, 1, 1)), (1, with(ACCEPT, 9, 1))]);
        wire.wait(6);
        wire.put(0, &with(REQ, 9, 1));
        assert_eq!(reported(&wire), HANDLE);
    }

    #[test]
    fn reports_no_error_for_an_answer_before_its_request() {
        // In the first round, the answer has another AssocHandle for the same four-tuple. In the
        // second round, it has the same AssocHandle for another four-tuple.
        for (handle, port) in [(9, 1), (1, 9)] {
            for answer in [ACCEPT, DENY] {
                let answer = with(answer, handle, port);
                let wire = capture(&[(0, with(REQ, 1, 1)), (1, answer), (0, with(REQ, handle, port))]);
                assert_eq!(wire.errors(), [], "{handle} {port}");
            }
        }
        let late = [(0, with(REQ, 1, 1)), (1, with(ACCEPT, 1, 1)), (0, with(ACK, 9, 1)), (0, with(REQ, 9, 1))];
        assert_eq!(reported(&capture(&late)), []);
    }

    #[test]
    fn an_answer_whose_request_is_missed_is_a_note_at_most() {
        let note = HANDLE.map(|(id, _)| (id, Severity::Note));
        // The client acknowledges the answer. In the capture, the PMAck is before or after the
        // answer.
        let (request, accept, ack) = ((0, with(REQ, 1, 1)), (1, with(ACCEPT, 9, 1)), (0, with(ACK, 9, 1)));
        assert_eq!(reported(&capture(&[request.clone(), accept.clone(), ack.clone()])), note);
        assert_eq!(reported(&capture(&[request.clone(), ack, accept.clone()])), note);
        // The earlier PMReq has a correct answer as well.
        let own = (1, with(ACCEPT, 1, 1));
        assert_eq!(reported(&capture(&[request.clone(), accept.clone(), own])), note);
        // An earlier answer has no PMReq either, so the capture is incomplete.
        let missed = [(0, with(REQ, 1, 1)), (1, with(ACCEPT, 7, 7)), accept];
        assert_eq!(reported(&capture(&missed)), note);
        // A client is allowed to reuse an AssocHandle immediately after the answer.
        let reused = [request, (1, with(ACCEPT, 1, 1)), (0, with(ACK, 1, 1)), (1, with(ACCEPT, 1, 9))];
        assert!(capture(&reused).errors().is_empty());
    }

    #[test]
    fn answer_to_a_late_repetition_has_a_known_path() {
        let ends = Datagrams::ENDPOINTS.map(|end| end.parse().unwrap());
        let put = |repeated: bool| {
            let mut wire = Datagrams::default();
            wire.put(0, &Datagram::new(REQ).octets());
            wire.put_between(ends[1], other_host(0), &Datagram::new(ACCEPT).octets());
            if repeated {
                wire.put_between(other_host(0), ends[1], &Datagram::new(REQ).octets());
            }
            wire.errors().iter().map(|finding| finding.requirement).collect::<Vec<_>>()
        };
        assert_eq!((put(false), put(true)), (vec![requirement!("PM-7.4-17")], vec![]));
    }

    #[test]
    fn a_handle_is_in_flight_for_certain_if_its_request_is_repeated() {
        let again = [(0, with(REQ, 1, 1)), (0, with(REQ, 1, 9)), (0, with(REQ, 1, 1))];
        let ids = ["PM-7.3.1.8-1", "PM-7.4-12"];
        assert_eq!(reported(&capture(&again)), ids.map(|id| (id, Severity::Error)));
        // It is possible that the capture missed the answer between the two PMReqs.
        assert_eq!(reported(&capture(&again[..2])), ids.map(|id| (id, Severity::Note)));
    }

    #[test]
    fn limits_the_waiting_findings() {
        let mut wire = capture(&[(0, with(REQ, 1, 1))]);
        // The next frame releases the datagram that exceeds the limit.
        (0..MAX_PENDING + 2).for_each(|_| wire.put(1, &with(ACCEPT, 9, 1)));
        let frames = |severity| {
            let found = wire.findings().into_iter().filter(move |finding| finding.severity == severity);
            found.map(|finding| finding.frame).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!((frames(Severity::Note), frames(Severity::Error).len()), ([2.into()].into(), MAX_PENDING + 1));
    }
}
