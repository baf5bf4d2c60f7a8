//! Findings about a datagram that a later PMReq may explain: they wait for that PMReq.
//!
//! Some datagrams have only part of the names of a transaction. Such a datagram may be wrong. It
//! may also belong to another transaction whose PMReq the capture lost, or has after the answer.
//! Both are legal. Section 7.5.2 of the draft allows a new AssocHandle for the same four-tuple.
//! Section 7.4 allows the same AssocHandle for the next four-tuple, because handles differ only
//! between transactions in flight. UDP has no sequence numbers, so the capture alone does not
//! decide it. A finding waits for [`IN_FLIGHT`], or until the capture ends. Then it
//!
//! * is dropped if a PMReq explains the datagram;
//! * becomes a note if the other end uses those names too, if the transaction also has its right
//!   answer, or if other port mapper messages show that the capture lost or reordered some;
//! * is reported with the severity of its requirement in all other cases.

use std::collections::VecDeque;

use weft_core::requirement::Severity;
use weft_core::wire::portmap::MessageType;

use crate::finding::Finding;
use crate::follow::portmap::{Clash, IN_FLIGHT, Names, PmSeen, Side, Transactions};

/// The most datagrams with waiting findings, and the most remembered names without PMReq.
const MOST: usize = 256;

/// The reason why findings about a datagram are uncertain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It has only part of the transaction's names: AssocHandle, CpPort and CpIPAddr.
    Names,
    /// Its addresses and ports differ from those of each PMReq of its transaction.
    Way,
    /// It is a PMReq with the AssocHandle of a transaction that may be complete.
    Handle,
}

/// A datagram that may belong to a transaction other than `of`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uncertain {
    doubt: Doubt,
    of: Names,
    /// Does that transaction await a datagram like it?
    is_due: bool,
}

impl Uncertain {
    /// Returns what is uncertain about a datagram, if anything is.
    pub(crate) fn about(seen: &PmSeen, transactions: &Transactions) -> Option<Self> {
        if seen.is(Side::Client, MessageType::PM_REQ) {
            let (Clash::SameHandle, earlier) = transactions.clash(seen)? else { return None };
            return Some(Uncertain { doubt: Doubt::Handle, of: earlier.names(), is_due: true });
        }
        let transaction = transactions.of(seen)?;
        let of = transaction.request.names();
        if of != seen.names() {
            return Some(Uncertain { doubt: Doubt::Names, of, is_due: transaction.awaits(seen.side()) });
        }
        let is_way = |(src, dst): &(_, _)| match seen.side() {
            Some(Side::Client) => *src == seen.src,
            _ => (*src, *dst) == (seen.dst, seen.src),
        };
        let is_known = transaction.ways.iter().any(is_way);
        (!is_known).then_some(Uncertain { doubt: Doubt::Way, of, is_due: true })
    }

    /// Do its findings compare it with a transaction that may be the wrong one?
    pub(crate) fn has_doubtful_transaction(&self) -> bool {
        self.doubt != Doubt::Handle
    }
}

/// A datagram and its waiting findings.
struct Pending {
    seen: PmSeen,
    uncertain: Uncertain,
    /// Does no message so far suggest another transaction?
    is_proven: bool,
    findings: Vec<Finding>,
}

/// The effect of a later message on waiting findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Nothing,
    /// The message is the PMReq that explains the datagram.
    Explains,
    /// The message suggests another transaction.
    Weakens,
    /// The transaction was still in flight.
    Proves,
}

impl Pending {
    fn effect_of(&self, message: &PmSeen) -> Effect {
        let (seen, of) = (&self.seen, self.uncertain.of);
        let is_request = message.is(Side::Client, MessageType::PM_REQ);
        let same_side = message.side() == seen.side();
        match self.uncertain.doubt {
            Doubt::Names if message.names() == seen.names() => match (is_request, same_side) {
                (true, _) => Effect::Explains,
                (false, false) => Effect::Weakens,
                (false, true) => Effect::Nothing,
            },
            Doubt::Names if message.names() == of && same_side && !is_request => Effect::Weakens,
            Doubt::Way if is_request && message.names() == of => {
                let client = if seen.side() == Some(Side::Client) { seen.src } else { seen.dst };
                if message.src == client { Effect::Explains } else { Effect::Nothing }
            }
            Doubt::Handle if is_request && message.names() == of => Effect::Proves,
            _ => Effect::Nothing,
        }
    }
}

/// The waiting findings.
#[derive(Default)]
pub(crate) struct PendingFindings {
    waiting: VecDeque<Pending>,
    /// Names and senders of answers and PMAcks without PMReq, oldest first.
    strays: VecDeque<(Names, Option<Side>)>,
    /// Does the capture show that it lost or reordered port mapper messages?
    is_imperfect: bool,
}

impl PendingFindings {
    /// Adds findings about `seen` that wait.
    pub(crate) fn wait(&mut self, seen: &PmSeen, uncertain: Uncertain, findings: Vec<Finding>) {
        if findings.is_empty() {
            return;
        }
        let other_end = |(names, side): &(Names, _)| *names == seen.names() && *side != seen.side();
        let is_proven = match uncertain.doubt {
            Doubt::Names => uncertain.is_due && !self.strays.iter().any(other_end),
            Doubt::Way => true,
            Doubt::Handle => false,
        };
        self.waiting.push_back(Pending { seen: *seen, uncertain, is_proven, findings });
    }

    /// Updates the waiting findings with a message. `transactions` do not include it yet.
    pub(crate) fn message(&mut self, message: &PmSeen, transactions: &Transactions) {
        let is_request = message.is(Side::Client, MessageType::PM_REQ);
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
            let is_stray = |(names, _): &(Names, _)| *names == message.names();
            self.is_imperfect |= explained || self.strays.iter().any(is_stray);
            return;
        }
        match transactions.of(message) {
            Some(transaction) if transaction.request.names() == message.names() => return,
            Some(_) => {}
            // A capture may start after the PMReq of its first answer.
            None => self.is_imperfect |= transactions.has_any(),
        }
        self.strays.push_back((message.names(), message.side()));
        self.strays.drain(..self.strays.len().saturating_sub(MOST));
    }

    /// The findings that have waited long enough at `now`, in nanoseconds; empty if none have.
    pub(crate) fn due(&mut self, now: u64) -> Vec<Finding> {
        let mut found = Vec::new();
        while let Some(first) = self.waiting.front() {
            let is_over = now.saturating_sub(first.seen.time) > IN_FLIGHT;
            if !is_over && self.waiting.len() <= MOST {
                break;
            }
            self.release(is_over, &mut found);
        }
        found
    }

    /// All waiting findings, at the end of the capture.
    pub(crate) fn finish(&mut self) -> Vec<Finding> {
        let mut found = Vec::new();
        while !self.waiting.is_empty() {
            self.release(true, &mut found);
        }
        found
    }

    /// Releases the oldest findings. If they did not wait long enough, they become notes.
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

    use super::MOST;
    use crate::rules::portmap::testing::{ACCEPT, ACK, DENY, Datagram, Datagrams, REQ, datagram, other_end};

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
        // The client repeats the request, and acknowledges the answer at last.
        let again = [(0, with(REQ, 1, 1)), (1, with(ACCEPT, 9, 1)), (0, with(REQ, 1, 1)), (0, with(ACK, 1, 1))];
        assert_eq!(reported(&capture(&again)), HANDLE);
        // The finding is due before the capture ends, once a later answer is unlikely.
        let mut wire = capture(&[(0, with(REQ, 1, 1)), (1, with(ACCEPT, 9, 1))]);
        wire.wait(6);
        wire.put(0, &with(REQ, 9, 1));
        assert_eq!(reported(&wire), HANDLE);
    }

    #[test]
    fn reports_no_error_for_an_answer_before_its_request() {
        // Another AssocHandle for the same four-tuple, and the same AssocHandle for another
        // four-tuple.
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
        // The client acknowledges the answer, before or after it in the capture.
        let (request, accept, ack) = ((0, with(REQ, 1, 1)), (1, with(ACCEPT, 9, 1)), (0, with(ACK, 9, 1)));
        assert_eq!(reported(&capture(&[request.clone(), accept.clone(), ack.clone()])), note);
        assert_eq!(reported(&capture(&[request.clone(), ack, accept.clone()])), note);
        // The earlier PMReq has its own answer.
        let own = (1, with(ACCEPT, 1, 1));
        assert_eq!(reported(&capture(&[request.clone(), accept.clone(), own])), note);
        // An earlier answer also has no PMReq.
        let missed = [(0, with(REQ, 1, 1)), (1, with(ACCEPT, 7, 7)), accept];
        assert_eq!(reported(&capture(&missed)), note);
        // An AssocHandle is free after the answer, even if it is reused at once.
        let reused = [request, (1, with(ACCEPT, 1, 1)), (0, with(ACK, 1, 1)), (1, with(ACCEPT, 1, 9))];
        assert!(capture(&reused).errors().is_empty());
    }

    #[test]
    fn answer_to_a_late_repetition_has_a_known_path() {
        let ends = Datagrams::ENDS.map(|end| end.parse().unwrap());
        let put = |repeated: bool| {
            let mut wire = Datagrams::default();
            wire.put(0, &Datagram::new(REQ).octets());
            wire.put_between(ends[1], other_end(0), &Datagram::new(ACCEPT).octets());
            if repeated {
                wire.put_between(other_end(0), ends[1], &Datagram::new(REQ).octets());
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
        // The capture may have missed the answer between the two.
        assert_eq!(reported(&capture(&again[..2])), ids.map(|id| (id, Severity::Note)));
    }

    #[test]
    fn limits_the_waiting_findings() {
        let mut wire = capture(&[(0, with(REQ, 1, 1))]);
        // The next frame releases the datagram that exceeds the limit.
        (0..MOST + 2).for_each(|_| wire.put(1, &with(ACCEPT, 9, 1)));
        let frames = |severity| {
            let found = wire.findings().into_iter().filter(move |finding| finding.severity == severity);
            found.map(|finding| finding.frame).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!((frames(Severity::Note), frames(Severity::Error).len()), ([2].into(), MOST + 1));
    }
}
