//! Checks all requests and responses of a connection. Each request needs a response, each response
//! needs a request, and at most the agreed number of requests is allowed to be outstanding.

use weft_core::requirement;
use weft_core::wire::rdmap::Opcode;

use crate::direction::Direction;
use crate::follow::{ConnectionState, Overrun, RequestKind};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static ANSWERED: Rule = Check::End(answered).covers(requirements![
    "RDMAP-1.2-1",
    "RDMAP-5.2-1",
    "RDMAP-5.2.1-18",
    "RDMAP-7306.5.2.1-21",
    "RDMAP-7306.5.2.2-3"
]);

pub(super) static DEPTH: Rule = Check::End(depth).covers(requirements!["RDMAP-6.1-7", "RDMAP-7306.5.2-3"]);

fn answered(state: &ConnectionState, findings: &mut Findings<'_>) {
    let (connection, traffic) = (&state.connection, &state.traffic);
    // If the snap length cut off octets, or if a SYN was not captured, the monitor sometimes
    // processes Requests after their Responses. Then a Response can seem to have no Request.
    let is_late = state.mpa.tcp.iter().any(|tcp| tcp.cut) || connection.syn != [true; 2];
    if is_late || !traffic.is_complete() || traffic.directions.iter().any(|side| side.terminate.is_some()) {
        return;
    }
    for requester in Direction::BOTH {
        let (responder, operations) = (requester.peer(), &traffic.directions[requester].operations);
        if let Some((header, opcode)) = operations.unsolicited()
            && opcode == Opcode::READ_RESPONSE
            // If the segment with L=1 of the Response came too early, DDP-4.1-6 reports that.
            && traffic.directions[responder]
                .messages
                .unfinished_message()
                .is_none_or(|message| message.early_last.is_none())
        {
            let expected = "one Read Response for each Read Request";
            let ids = requirements!["RDMAP-1.2-1", "RDMAP-5.2-1"];
            findings.report_each_in_frame(ids, responder, header, expected, "a Response without a Request");
        }
        if let Some((header, Opcode::ATOMIC_RESPONSE)) = operations.unsolicited() {
            let (id, expected) = (requirement!("RDMAP-7306.5.2.2-3"), "one Atomic Response for each Atomic Request");
            findings.report_in_frame(id, responder, header, expected, "a Response without a Request");
        }
        // Only a graceful close shows that no more responses will come.
        let reset = connection.rst.iter().any(Option::is_some);
        let Some(fin) = connection.fin[responder].filter(|_| !reset) else { continue };
        // If the requester closes first, its close can cut off a Response that is not complete.
        // DDP-6.2.1-6 covers DDP's half-closed state.
        let gave_up = connection.fin[requester].is_some_and(|first| first < fin);
        // A responder that closes before a request arrives owes no response.
        let tcp = &state.mpa.tcp;
        let had = |end: u64| tcp[responder].had_received(fin, &tcp[requester], end) == Some(true);
        let missed = operations.unanswered().filter(|request| request.frame < fin && had(request.end)).take(1);
        for request in missed.filter(|request| !gave_up || request.answered == 0) {
            let (id, expected) = match request.kind {
                RequestKind::Read(_) => (requirement!("RDMAP-5.2.1-18"), "a Read Response before the close"),
                RequestKind::Atomic { .. } => {
                    (requirement!("RDMAP-7306.5.2.1-21"), "an Atomic Response before the close")
                }
            };
            let found = format!("a close without a response to the request of frame {}", request.frame);
            findings.report_in_frame(id, responder, fin, expected, found);
        }
    }
}

fn depth(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (requester, side) in Direction::BOTH.into_iter().zip(&state.traffic.directions) {
        let is_in_order = |overrun: &Overrun| !state.mpa.tcp[requester.peer()].may_be_late_at(overrun.frame);
        if let Some(overrun) = side.operations.overrun().filter(is_in_order) {
            let expected = format!("at most {} Reads without a response, as the endpoints agreed", overrun.limit);
            let found = format!("{} Reads without a response", overrun.outstanding);
            findings.report_in_frame(requirement!("RDMAP-6.1-7"), requester, overrun.header, &expected, found);
        }
        // RFC 7306 section 5.2 allows atomic operations to share the queue depth of Reads. Section
        // 5.2.2 allows the ULPs to agree on an additional depth for atomic operations. RFC 6581 has
        // no field for that number, so the finding is a note.
        if let Some(overrun) = side.operations.mixed_overrun().filter(is_in_order) {
            let expected = format!("at most {} requests without a response, if atomics count as Reads", overrun.limit);
            let found = format!("{} requests without a response", overrun.outstanding);
            let id = requirement!("RDMAP-7306.5.2-3");
            findings.as_note().report_in_frame(id, requester, overrun.header, &expected, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::{RequirementId, requirement};

    use crate::testing::{self, Wire, exchange, fpdu, proves};

    fn read(msn: u32) -> String {
        format!(
            "4141 00000000 00000001 {msn:08x} 00000000 00000100 0000000000001000 00000004 00000200 0000000000002000"
        )
    }
    fn atomic(msn: u32) -> String {
        format!(
            "414a 00000000 00000001 {msn:08x} 00000000 00000000 {msn:08x} 00000200 0000000000002000
            0000000000000005 0000000000000000 0000000000000000 ffffffffffffffff"
        )
    }
    const READ_RESPONSE: &str = "c142 00000100 0000000000001000 01020304";
    const ATOMIC_RESPONSE: &str = "414b 00000000 00000003 00000001 00000000 00000001 0000000000000007";

    fn closed(ulpdus: &[(usize, &str)]) -> Wire {
        let mut wire = exchange(ulpdus);
        wire.fin(1);
        wire.fin(0);
        wire
    }

    #[test]
    fn each_request_has_a_response_and_each_response_a_request() {
        let request = read(1);
        let right = closed(&[(0, &request), (1, READ_RESPONSE)]);
        let twice = closed(&[(0, &request), (1, READ_RESPONSE), (1, READ_RESPONSE)]);
        proves(requirement!("RDMAP-1.2-1"), &twice, &right);
        proves(requirement!("RDMAP-5.2-1"), &closed(&[(1, READ_RESPONSE)]), &right);
        proves(requirement!("RDMAP-5.2.1-18"), &closed(&[(0, &request)]), &right);
        let request = atomic(1);
        let right = closed(&[(0, &request), (1, ATOMIC_RESPONSE)]);
        proves(requirement!("RDMAP-7306.5.2.1-21"), &closed(&[(0, &request)]), &right);
    }

    /// By RFC 7306 section 5.2.2, a response has the Request Identifier of a request.
    #[test]
    fn each_atomic_response_has_a_request() {
        let (id, request) = (requirement!("RDMAP-7306.5.2.2-3"), atomic(1));
        let right = closed(&[(0, &request), (1, ATOMIC_RESPONSE)]);
        proves(id, &closed(&[(1, ATOMIC_RESPONSE)]), &right);
        let second = ATOMIC_RESPONSE.replacen("00000003 00000001", "00000003 00000002", 1);
        proves(id, &closed(&[(0, &request), (1, ATOMIC_RESPONSE), (1, &second)]), &right);
        let from_requester = closed(&[(0, &request), (1, ATOMIC_RESPONSE), (0, ATOMIC_RESPONSE)]);
        proves(id, &from_requester, &right);
        // The Request is missing in the capture.
        let mut wire = exchange(&[]);
        wire.lose(0, &fpdu(&testing::hex(&request)));
        wire.send_ulpdu(1, ATOMIC_RESPONSE);
        (0..2).for_each(|direction| wire.fin(direction));
        assert_eq!(wire.errors(), []);
    }

    #[test]
    fn a_requester_that_closes_is_owed_no_rest_of_a_response() {
        let closing = |response: &[&str], first: usize| {
            let mut wire = Wire::started();
            wire.send_ulpdu(0, &read(1));
            response.iter().for_each(|ulpdu| wire.send_ulpdu(1, ulpdu));
            wire.fin(first);
            wire.fin(1 - first);
            wire.errors().iter().any(|finding| finding.requirement == requirement!("RDMAP-5.2.1-18"))
        };
        let begun = "8142 00000100 0000000000001000 0102";
        assert!(!closing(&[begun], 0));
        assert!(closing(&[begun], 1));
        assert!(closing(&[], 0));
    }

    #[test]
    fn requests_and_responses_lost_before_the_close_are_not_reported() {
        // The FIN follows octets that were not captured.
        let mut wire = Wire::started();
        wire.send_ulpdu(0, &read(1));
        wire.lose(1, &fpdu(&testing::hex(READ_RESPONSE)));
        wire.fin(1);
        wire.fin(0);
        assert_eq!(wire.errors(), []);
        // The Response acknowledges a Request that was not captured.
        let mut wire = Wire::started();
        wire.send_ulpdu(0, "4143 00000000 00000000 00000001 00000000 2a");
        wire.lose(0, &fpdu(&testing::hex(&read(1))));
        wire.send_ulpdu(1, READ_RESPONSE);
        assert_eq!(wire.errors(), []);
    }

    /// Plays the start-up of a connection of revision 2 with CRC. The Initiator is allowed to have
    /// `ord` requests outstanding.
    fn agreed(ord: u8) -> Wire {
        agreed_as(0x50, ord)
    }

    /// Does the same as [`agreed`], but with the flags `flags` in both start-up frames.
    fn agreed_as(flags: u8, ord: u8) -> Wire {
        let request = testing::startup_frame(flags, 2, &[0, 4, 0, 4]);
        Wire::started_as(&request, &testing::reply_frame(flags, 2, &[0, ord, 0, 4]))
    }

    /// The findings about the number of outstanding requests and about Request Identifiers.
    fn of_requests(wire: &Wire) -> Vec<RequirementId> {
        let ids = [requirement!("RDMAP-6.1-7"), requirement!("RDMAP-7306.5.2-3"), requirement!("RDMAP-7306.5.2.2-3")];
        wire.findings().iter().map(|finding| finding.requirement).filter(|id| ids.contains(id)).collect()
    }

    /// Returns `wire` without some frames: `lost` has the indices of these frames.
    fn without(wire: &Wire, lost: &[usize]) -> Wire {
        wire.changed(|frames| {
            let kept = frames.into_iter().enumerate().filter(|(index, _)| !lost.contains(index));
            kept.map(|(_, frame)| frame).collect()
        })
    }

    #[test]
    fn no_more_requests_than_agreed_on() {
        let reads = |ord| {
            let mut wire = agreed(ord);
            (1..=3).for_each(|msn| wire.send_ulpdu(0, &read(msn)));
            (1..=3).for_each(|_| wire.send_ulpdu(1, READ_RESPONSE));
            wire
        };
        proves(requirement!("RDMAP-6.1-7"), &reads(2), &reads(3));
        let mixed = |ord| {
            let mut wire = agreed(ord);
            wire.send_ulpdu(0, &read(1));
            wire.send_ulpdu(0, &atomic(2));
            wire
        };
        proves(requirement!("RDMAP-7306.5.2-3"), &mixed(1), &mixed(2));
        // It is possible that the upper-layer protocols agreed on a number of atomic operations.
        // The capture does not show this number.
        let errors = mixed(1).errors();
        assert!(errors.iter().all(|finding| finding.requirement != requirement!("RDMAP-7306.5.2-3")), "{errors:#?}");
        // If each request is answered before the next request, any depth is enough.
        let mut wire = agreed(1);
        for msn in 1..=3 {
            wire.send_ulpdu(0, &read(msn));
            wire.send_ulpdu(1, READ_RESPONSE);
        }
        assert!(wire.findings().iter().all(|finding| finding.requirement != requirement!("RDMAP-6.1-7")));
    }

    /// The capture consists of two files, one after the other. Each file has one direction.
    #[test]
    fn requests_that_acknowledge_responses_were_sent_after_them() {
        let mut wire = agreed(1);
        for msn in 1..=3 {
            wire.send_ulpdu(0, &read(msn));
            wire.send_ulpdu(1, READ_RESPONSE);
        }
        for first in [1, 2] {
            let appended = wire.changed(|mut frames| {
                frames.sort_by_key(|(_, frame)| frame[29] != first);
                frames
            });
            let found = appended.findings();
            assert!(found.iter().all(|finding| finding.requirement != requirement!("RDMAP-6.1-7")), "{found:#?}");
        }
    }

    #[test]
    fn a_response_that_was_acknowledged_came_before() {
        // The capture has the Response after the next Request, but that Request acknowledges the
        // Response.
        let mut wire = agreed(1);
        wire.send_ulpdu(0, &read(1));
        wire.swapped(|wire| wire.send_ulpdu(1, READ_RESPONSE), |wire| wire.send_ulpdu(0, &read(2)));
        wire.send_ulpdu(1, READ_RESPONSE);
        assert!(wire.findings().iter().all(|finding| finding.requirement != requirement!("RDMAP-6.1-7")));
    }

    /// A snap length cuts a Request, so not all Requests are known. The snap length also cuts an
    /// FPDU of the responder. Therefore the monitor processes the Responses only after the
    /// Requests.
    #[test]
    fn requests_that_were_not_all_known_are_not_counted() {
        let mut wire = agreed(3);
        wire.send(1, &fpdu(&testing::send_of(1, 1000)));
        (1..=3).for_each(|msn| wire.send_ulpdu(0, &read(msn)));
        wire.send_ulpdu(1, READ_RESPONSE);
        wire.send(0, &[fpdu(&testing::send_of(1, 426)), fpdu(&testing::hex(&read(4)))].concat());
        for msn in 5..=6 {
            wire.send_ulpdu(1, READ_RESPONSE);
            wire.send_ulpdu(0, &read(msn));
        }
        (0..3).for_each(|_| wire.send_ulpdu(1, READ_RESPONSE));
        // The snap length cuts only the payload of the fourth Request.
        let found = wire.cut_to(512).findings();
        assert!(found.iter().all(|finding| finding.requirement != requirement!("RDMAP-6.1-7")), "{found:#?}");
    }

    /// Plays five Reads into one sink and five atomic operations, alternately. Three requests are
    /// outstanding at a time, and the endpoints agreed on `ord` requests. The second Atomic
    /// Response has the Request Identifier `second`. The correct value is 4.
    fn reads_and_atomics(flags: u8, ord: u8, second: u32) -> Wire {
        let mut wire = agreed_as(flags, ord);
        wire.send(1, &fpdu(&testing::send_of(1, 1000)));
        let request = |msn: u32| if msn % 2 == 1 { read(msn) } else { atomic(msn) };
        let response = |msn: u32| {
            let identifier = if msn == 4 { second } else { msn };
            let atomic = format!("414b 00000000 00000003 {:08x} 00000000 {identifier:08x} 0000000000000007", msn / 2);
            if msn % 2 == 1 { READ_RESPONSE.to_owned() } else { atomic }
        };
        for msn in 1..=10 {
            wire.send_ulpdu(0, &request(msn));
            if msn > 2 {
                wire.send_ulpdu(1, &response(msn - 2));
            }
        }
        (9..=10).for_each(|msn| wire.send_ulpdu(1, &response(msn)));
        wire.fin(1);
        wire.fin(0);
        wire
    }

    /// In each round, another frame after the start-up is lost. The snap length of 512 cuts the
    /// responder's first FPDU. Therefore the monitor processes all Responses after all requests.
    #[test]
    fn after_a_loss_reads_and_atomics_are_neither_counted_nor_matched() {
        // These are the flags of the start-up frames, first with CRC and then without CRC.
        for flags in [0x50, 0x10] {
            let wire = reads_and_atomics(flags, 3, 4);
            assert_eq!(of_requests(&wire), []);
            for lost in 4..wire.count() {
                let lossy = without(&wire, &[lost]);
                for snap_length in [512, 2000] {
                    let found = of_requests(&lossy.cut_to(snap_length));
                    assert_eq!(found, [], "flags {flags:#x}, frame {} lost, snap length {snap_length}", lost + 1);
                }
            }
            // If no frame is missing, requests over the limit and wrong identifiers are reported.
            assert_eq!(of_requests(&reads_and_atomics(flags, 2, 4)), [requirement!("RDMAP-7306.5.2-3")]);
            assert_eq!(of_requests(&reads_and_atomics(flags, 3, 99)), [requirement!("RDMAP-7306.5.2.2-3")]);
        }
    }

    /// The endpoint that accepted the connection sends Reads. At most one Read is allowed to be
    /// outstanding.
    fn reads_of_responder() -> Wire {
        let words = [0, 1, 0, 1];
        let reply = testing::reply_frame(0x50, 2, &words);
        let mut wire = Wire::started_as(&testing::startup_frame(0x50, 2, &words), &reply);
        wire.send(0, &fpdu(&testing::send_of(1, 30)));
        wire
    }

    /// The monitor processes all Responses before all Read Requests, and octets between the
    /// Responses are missing. Therefore no Response shows that all Read Requests are answered.
    #[test]
    fn after_a_loss_responses_do_not_answer_requests_that_are_processed_later() {
        let mut wire = reads_of_responder();
        for msn in 1..=6 {
            wire.send_ulpdu(1, &read(msn));
            wire.send_ulpdu(0, READ_RESPONSE);
        }
        (0..2).for_each(|direction| wire.fin(direction));
        assert_eq!(of_requests(&wire), []);
        // The direction of the Responses has no SYN, so the monitor processes this direction at the
        // end of the capture. The direction of the Read Requests waits for the MPA Request.
        for lost in 4..wire.count() {
            assert_eq!(of_requests(&without(&wire, &[0, lost])), [], "frames 1 and {} lost", lost + 1);
        }
        // The snap length cuts the first FPDU of the direction of the Read Requests. Therefore the
        // monitor processes this direction at the end. Some frames have two Sends. In these frames,
        // the snap length cuts off the second Send including its header.
        let mut wire = reads_of_responder();
        wire.send(1, &fpdu(&testing::send_of(1, 1000)));
        for msn in 1..=4 {
            wire.send_ulpdu(1, &read(msn));
            let pair = [fpdu(&testing::send_of(2 * msn, 600)), fpdu(&testing::send_of(2 * msn + 1, 30))];
            wire.send(0, &pair.concat());
            wire.send_ulpdu(0, READ_RESPONSE);
        }
        assert_eq!(of_requests(&wire.cut_to(512)), []);
    }
}
