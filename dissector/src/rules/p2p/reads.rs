//! Compares the number of unanswered Read Requests with the IRD and ORD that both endpoints agreed
//! on (RFC 6581 section 9.1).

use weft_core::requirement;
use weft_core::wire::rdmap::{Opcode, TerminateError};

use crate::direction::Direction;
use crate::follow::{ConnectionState, Excess};
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

const TERMINATE: u16 = 1 << 7;
/// Length of a Read Request with its DDP header, in octets.
const REQUEST: u32 = 18 + 28;

pub(super) static ACCEPTED: Rule = Check::Opcode(TERMINATE, accepted).covers(requirements!["P2P-3-1"]);

pub(super) static WITHIN_DEPTHS: Rule = Check::End(within_depths).covers(requirements![
    "P2P-3-2",
    "P2P-4.1-2",
    "P2P-9.1-2",
    "P2P-9.1-3",
    "P2P-9.1-4",
    "P2P-9.1-5",
    "P2P-9.1-9"
]);

fn within_depths(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(pair) = state.connection.startup_pair() else { return };
    for (direction, reads) in Direction::BOTH.into_iter().zip(&state.mpa.reads) {
        let is_in_order = |excess: &Excess| !state.mpa.tcp[direction.peer()].may_be_late_at(excess.frame);
        let [own, peer] = reads.excess().map(|excess| excess.filter(is_in_order));
        let is_initiator = direction == pair.initiator;
        let mut report = |id, is_certain: bool, excess: Excess, limit: &str, most: Option<u32>| {
            let expected = format!("at most {} unanswered Read Requests, the {limit}", most.unwrap_or(0));
            let found = format!("{} unanswered Read Requests", excess.outstanding);
            findings.as_note_if(!is_certain).report_in_frame(id, direction, excess.header, &expected, found);
        };
        if let Some(excess) = own {
            let (limit, most) = ("ORD of the requester", reads.ord.max);
            // The MPA Request has the Initiator's first ORD. The Initiator is allowed to increase
            // its ORD later, up to the Responder's IRD. So the finding is a note if the Responder's
            // IRD is known and was not exceeded.
            let is_certain = !is_initiator || peer.is_some() || reads.ird.max.is_none();
            let id = if is_initiator { requirement!("P2P-9.1-2") } else { requirement!("P2P-9.1-3") };
            for id in [requirement!("P2P-3-2"), requirement!("P2P-4.1-2"), id] {
                report(id, is_certain, excess, limit, most);
            }
        }
        if let Some(excess) = peer {
            let (limit, most) = ("IRD of the responder", reads.ird.max);
            if is_initiator {
                report(requirement!("P2P-9.1-4"), true, excess, limit, most);
                report(requirement!("P2P-9.1-9"), true, excess, limit, most);
            } else {
                report(requirement!("P2P-9.1-5"), true, excess, limit, most);
            }
            if own.is_none() {
                report(requirement!("P2P-4.1-2"), true, excess, limit, most);
            }
        }
    }
}

/// Reports a Terminate that rejects a Read Request because the queue has no room, although at most
/// IRD requests were outstanding.
fn accepted(state: &ConnectionState, unit: &Unit<'_>, _: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let requester = unit.direction().peer();
    let Some(seen) = state.traffic.terminate_at(unit).filter(|seen| seen.opcode == Some(Opcode::READ_REQUEST)) else {
        return;
    };
    let no_place =
        [TerminateError::DDP_UNTAGGED_NO_BUFFER, TerminateError::DDP_UNTAGGED_MSN_RANGE].contains(&seen.error);
    let (reads, sender) = (&state.mpa.reads[requester], &state.traffic.directions[requester]);
    // A receiver can also reject a Read Request because the numbers or the length of the request
    // are wrong.
    let is_right = sender.fault.is_none() && !sender.lost;
    let target = seen.reported_segment().filter(|target| target.ulpdu_len == REQUEST);
    if let Some(target) = target.filter(|_| no_place && is_right && reads.is_within_ird()) {
        let expected = format!("room for {} Read Requests, as IRD announces", reads.ird.max.unwrap_or(0));
        let found = format!("no room for the Read Request of frame {}", target.frame);
        findings.report(requirement!("P2P-3-1"), unit, ULPDU_AT + 18..ULPDU_AT + 20, &expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, fpdu, proves};

    fn read(msn: u32) -> Vec<u8> {
        let sink = "00000100 0000000000001000 00000040 00000200 0000000000002000";
        fpdu(&testing::hex(&format!("4141 00000000 00000001 {msn:08x} 00000000 {sink}")))
    }

    fn response() -> Vec<u8> {
        let mut ulpdu = testing::hex("c142 00000100 0000000000001000");
        ulpdu.resize(14 + 0x40, 7);
        fpdu(&ulpdu)
    }

    /// Plays start-up frames with these IRD and ORD fields. Then `direction` sends two Read
    /// Requests. If `at_once` is true, the first answer comes after the second Read Request.
    /// Otherwise the first answer comes before the second Read Request.
    fn reads(request: &str, reply: &str, direction: usize, at_once: bool) -> Wire {
        let request = testing::startup_frame(0x50, 2, &testing::hex(request));
        let mut wire = Wire::started_as(&request, &testing::reply_frame(0x50, 2, &testing::hex(reply)));
        if direction == 1 {
            wire.send(0, &fpdu(&testing::send_of(1, 30)));
        }
        wire.send(direction, &read(1));
        if !at_once {
            wire.send(1 - direction, &response());
        }
        wire.send(direction, &read(2));
        if at_once {
            wire.send(1 - direction, &response());
        }
        wire.send(1 - direction, &response());
        wire
    }

    #[test]
    fn as_many_are_accepted_as_ird_announces() {
        let rejected = |reply: &str, error: &str| {
            let request = testing::startup_frame(0x50, 2, &testing::hex("0004 0004"));
            let mut wire = Wire::started_as(&request, &testing::reply_frame(0x50, 2, &testing::hex(reply)));
            wire.send(0, &read(1));
            wire.send(0, &read(2));
            let header = "4141 00000000 00000001 00000002 00000000";
            let report = format!("4147 00000000 00000002 00000001 00000000 {error}c000 002e {header}");
            wire.send(1, &fpdu(&testing::hex(&report)));
            wire
        };
        let bad = rejected("0002 0004", "1202");
        proves(requirement!("P2P-3-1"), &bad, &rejected("0001 0004", "1202"));
        proves(requirement!("P2P-3-1"), &rejected("0002 0004", "1203"), &rejected("0002 0004", "1206"));
        // Without an agreed limit, there is no finding.
        proves(requirement!("P2P-3-1"), &bad, &rejected("3fff 0004", "1202"));
    }

    #[test]
    fn a_request_in_two_segments_is_one() {
        let in_two = |cut: bool| {
            let request = testing::startup_frame(0x50, 2, &testing::hex("0001 0001"));
            let mut wire = Wire::started_as(&request, &testing::reply_frame(0x50, 2, &testing::hex("0001 0001")));
            if cut {
                wire.send(
                    0,
                    &fpdu(&testing::hex("0141 00000000 00000001 00000001 00000000 00000100 0000000000001000 0000")),
                );
                wire.send(
                    0,
                    &fpdu(&testing::hex("4141 00000000 00000001 00000001 0000000e 0040 00000200 0000000000002000")),
                );
            } else {
                wire.send(0, &read(1));
                wire.send(0, &read(2));
            }
            wire.send(1, &response());
            wire
        };
        proves(requirement!("P2P-9.1-9"), &in_two(false), &in_two(true));
    }

    #[test]
    fn the_initiator_keeps_to_its_ord() {
        let (bad, good) = (reads("0001 0001", "0004 0001", 0, true), reads("0001 0001", "0004 0001", 0, false));
        proves(requirement!("P2P-3-2"), &bad, &good);
        proves(requirement!("P2P-4.1-2"), &bad, &reads("0001 0002", "0004 0001", 0, true));
        proves(requirement!("P2P-9.1-2"), &bad, &good);
        // The findings are notes if the Responder's IRD is large enough, and errors otherwise.
        assert_eq!(bad.errors(), []);
        let ids: Vec<_> = reads("0001 0001", "0001 0001", 0, true).errors().iter().map(|f| f.requirement).collect();
        assert!(ids.contains(&requirement!("P2P-9.1-2")), "{ids:?}");
    }

    #[test]
    fn the_initiator_keeps_to_the_responders_ird() {
        let (bad, good) = (reads("0001 0004", "0001 0001", 0, true), reads("0001 0004", "0001 0001", 0, false));
        proves(requirement!("P2P-9.1-4"), &bad, &good);
        proves(requirement!("P2P-9.1-9"), &bad, &reads("0001 0004", "0002 0001", 0, true));
    }

    #[test]
    fn the_responder_keeps_to_its_reply() {
        let good = reads("0004 0001", "0001 0002", 1, true);
        proves(requirement!("P2P-9.1-3"), &reads("0004 0001", "0001 0001", 1, true), &good);
        proves(requirement!("P2P-9.1-5"), &reads("0001 0001", "0001 0004", 1, true), &good);
    }

    #[test]
    fn a_response_that_was_acknowledged_came_before() {
        let mut wire = Wire::started_as(
            &testing::startup_frame(0x50, 2, &testing::hex("0001 0001")),
            &testing::reply_frame(0x50, 2, &testing::hex("0001 0001")),
        );
        wire.send(0, &read(1));
        wire.swapped(|wire| wire.send(1, &response()), |wire| wire.send(0, &read(2)));
        wire.send(1, &response());
        assert_eq!(wire.errors(), []);
    }

    #[test]
    fn a_response_that_was_not_captured_counts() {
        let mut wire = Wire::started_as(
            &testing::startup_frame(0x50, 2, &testing::hex("0001 0001")),
            &testing::reply_frame(0x50, 2, &testing::hex("0001 0001")),
        );
        wire.send(0, &read(1));
        wire.lose(1, &response());
        wire.send(0, &read(2));
        wire.send(1, &response());
        assert_eq!(wire.errors(), []);
    }

    /// Returns the messages of a connection in the peer-to-peer model, each with its direction. The
    /// first message is the ready-to-receive Read. Each request is answered before the next request
    /// of the same endpoint.
    fn messages() -> Vec<(usize, Vec<u8>)> {
        let message = |ulpdu: &str| fpdu(&testing::hex(ulpdu));
        let empty_read = "4141 00000000 00000001 00000001 00000000
            00000009 0000000000000090 00000000 00000001 0000000000000000";
        let mut messages = vec![(0, message(empty_read)), (1, message("c142 00000009 0000000000000090"))];
        for round in 1..=3 {
            for (requester, msn) in [(0, 3 * round - 1), (1, 3 * round - 2)] {
                let atomic = format!(
                    "414a 00000000 00000001 {0:08x} 00000000 00000000 {0:08x} 00000200 0000000000002000
                    0000000000000005 0000000000000000 0000000000000000 ffffffffffffffff",
                    msn + 2
                );
                let answer = format!("414b 00000000 00000003 {round:08x} 00000000 {:08x} 0000000000000007", msn + 2);
                messages.extend([
                    (requester, read(msn)),
                    (1 - requester, response()),
                    (1 - requester, fpdu(&testing::send_of(round, 30))),
                    (requester, read(msn + 1)),
                    (1 - requester, response()),
                    (requester, message(&atomic)),
                    (1 - requester, message(&answer)),
                ]);
            }
        }
        messages
    }

    /// Plays a connection with [`messages`]. Each endpoint is allowed to have one request
    /// outstanding. If `late` is `Some((number, by))`, the message with this number was not
    /// captured when it was sent. Only its retransmission was captured, after `by` other messages.
    fn one_at_a_time(late: Option<(usize, usize)>) -> Wire {
        let words = testing::hex("8001 4001");
        let request = testing::startup_frame(0x50, 2, &words);
        let mut wire = Wire::started_as(&request, &testing::reply_frame(0x50, 2, &words));
        let messages = messages();
        let mut back = 0;
        for (number, (direction, octets)) in messages.iter().enumerate() {
            let Some((lost, by)) = late.filter(|(lost, _)| number >= *lost) else {
                wire.send(*direction, octets);
                continue;
            };
            if number == lost {
                wire.lose(*direction, octets);
            } else {
                wire.send(*direction, octets);
            }
            let (sender, retransmitted) = &messages[lost];
            if direction == sender {
                back += octets.len() as u32;
            }
            if number == lost + by {
                wire.send_again(*sender, back, retransmitted);
            }
        }
        (0..2).for_each(|direction| wire.fin(direction));
        wire
    }

    /// The findings about the number of outstanding requests.
    fn of_depth(wire: &Wire) -> Vec<String> {
        let ids = wire.findings().iter().map(|finding| finding.requirement.to_string()).collect::<Vec<_>>();
        let is_of_depth =
            |id: &String| id.starts_with("P2P-9.1-") || ["RDMAP-6.1-7", "RDMAP-7306.5.2-3"].contains(&id.as_str());
        ids.into_iter().filter(is_of_depth).collect()
    }

    /// A separate tap records each direction. The clock of one tap is ahead.
    #[test]
    fn skewed_taps_exceed_no_depth() {
        let wire = one_at_a_time(None);
        assert_eq!(of_depth(&wire), [""; 0]);
        for direction in 0..2 {
            for ahead in [500_000, 1_500_000, 3_500_000, 7_500_000, 15_500_000, 31_500_000, 1_000_000_000] {
                let skewed = wire.changed(|mut frames| {
                    let sender = [2, 1][direction];
                    frames.iter_mut().filter(|(_, frame)| frame[29] == sender).for_each(|(time, _)| *time += ahead);
                    frames.sort_by_key(|(time, _)| *time);
                    frames
                });
                assert_eq!(of_depth(&skewed), [""; 0], "direction {direction} is {ahead} ns ahead");
            }
        }
    }

    /// The requester acknowledges a Response that was not captured, and sends its next request.
    /// Later, a retransmission of the Response is captured.
    #[test]
    fn a_late_retransmission_exceeds_no_depth() {
        let count = messages().len();
        for lost in 0..count {
            for by in 1..=(count - 1 - lost).min(8) {
                let found = of_depth(&one_at_a_time(Some((lost, by))));
                assert_eq!(found, [""; 0], "message {lost} comes {by} messages late");
            }
        }
    }

    /// If a retransmission fills a gap before the peer acknowledges the octets of the gap, the
    /// order of the frames is known.
    #[test]
    fn a_retransmission_before_its_acknowledgement_hides_no_excess() {
        let words = testing::hex("0001 0001");
        let request = testing::startup_frame(0x50, 2, &words);
        let mut wire = Wire::started_as(&request, &testing::reply_frame(0x50, 2, &words));
        let sends = [1, 2].map(|msn| fpdu(&testing::send_of(msn, 30)));
        wire.send(0, &sends[0]);
        wire.lose(1, &sends[0]);
        wire.send(1, &sends[1]);
        wire.send_again(1, 72, &sends[0]);
        (1..=2).for_each(|msn| wire.send(0, &read(msn)));
        (0..2).for_each(|_| wire.send(1, &response()));
        let found = of_depth(&wire);
        assert!(["P2P-9.1-9", "RDMAP-6.1-7"].iter().all(|id| found.iter().any(|it| it == id)), "{found:?}");
    }
}
