//! Checks Terminates that report an error of DDP.

use weft_core::requirement;
use weft_core::wire::ddp::RawTagged;
use weft_core::wire::rdmap::{ErrorLayer, Opcode, TerminateError};

use crate::direction::Direction;
use crate::follow::{ConnectionState, LoggedSegment, Remark, RemarkKind, TerminateMessage};
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rdmap::has_swapped_bits;
use crate::rules::rule::{Check, Findings, Rule};

const TERMINATE: u16 = 1 << 7;

pub(super) static REPORT: Rule = Check::Opcode(TERMINATE, report).covers(requirements![
    "DDP-7.1-17",
    "DDP-7.2-1",
    "DDP-7.2-7",
    "DDP-7.2-13",
    "DDP-7.2-14"
]);

pub(super) static STAG: Rule = Check::Opcode(TERMINATE, stag).covers(requirements!["DDP-4.2-5"]);

pub(super) static LATE_STAG: Rule = Check::End(late_stag).covers(requirements!["DDP-4.2-5"]);

pub(super) static ONE_MORE: Rule = Check::Remark(one_more).covers(requirements!["DDP-7.1-19"]);

fn report(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(seen) = state.traffic.terminate_at(unit).filter(|seen| seen.error.layer == ErrorLayer::DDP) else {
        return;
    };
    let at = ULPDU_AT + 18;
    // If the reported segment is too short for a DDP header, there is no header to copy.
    let nothing = seen.error.error_type == 0 && !seen.control.m() && !seen.control.d();
    if !nothing && (!seen.control.m() || !seen.control.d()) {
        let expected = "the length and the DDP header of the segment (M=1, D=1)";
        let found = format!("M={}, D={}", u8::from(seen.control.m()), u8::from(seen.control.d()));
        findings.report(requirement!("DDP-7.1-17"), unit, at + 2..at + 3, expected, found);
    }
    if seen.error.error_type == 3 {
        let found = format!("{:?}", seen.error);
        let expected = "no error type 3, which is reserved for the LLP";
        findings.report(requirement!("DDP-7.2-14"), unit, at..at + 2, expected, found);
    } else if !seen.error.is_assigned() {
        // If the sender wrote the bits in another order, RDMAP-4.8-37 reports the wrong order
        // instead.
        if has_swapped_bits(unit, view) {
            return;
        }
        let found = format!("{:?}", seen.error);
        findings.report(requirement!("DDP-7.2-1"), unit, at..at + 2, "a type and code of RFC 5041 section 7.2", found);
    } else if let Some(target) = seen.reported_segment() {
        // A wrong version has different error codes for tagged segments and for untagged segments.
        let is_tagged = target.header().len() == RawTagged::LEN;
        let (id, expected) = match seen.error {
            TerminateError::DDP_TAGGED_INVALID_VERSION if !is_tagged => {
                (requirement!("DDP-7.2-13"), TerminateError::DDP_UNTAGGED_INVALID_VERSION)
            }
            TerminateError::DDP_UNTAGGED_INVALID_VERSION if is_tagged => {
                (requirement!("DDP-7.2-7"), TerminateError::DDP_TAGGED_INVALID_VERSION)
            }
            _ => return,
        };
        findings.report(id, unit, at..at + 2, &format!("{expected:?}"), format!("{:?}", seen.error));
    }
}

/// Reports an STag that the receiver rejected by a Terminate. The error in the Terminate is that
/// the STag is unknown, or does not belong to this stream.
fn stag(state: &ConnectionState, unit: &Unit<'_>, _: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(seen) = state.traffic.terminate_at(unit) else { return };
    if let Some(target) = seen.reported_segment() {
        rejected_stag(state, unit.direction().peer(), seen, &target, findings);
    }
}

/// Like [`stag`], but octets before the rejected segment are missing. Therefore the monitor
/// processed this segment only after the Terminate.
fn late_stag(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (direction, side) in Direction::BOTH.into_iter().zip(&state.traffic.directions) {
        let sender = direction.peer();
        if let Some(seen) = &side.terminate
            && let Some(target) = seen.late_reported_segment(&state.traffic.directions[sender].log)
        {
            rejected_stag(state, sender, seen, &target, findings);
        }
    }
}

fn rejected_stag(
    state: &ConnectionState,
    sender: Direction,
    seen: &TerminateMessage,
    target: &LoggedSegment,
    findings: &mut Findings<'_>,
) {
    let unknown = seen.error.layer == ErrorLayer::DDP && seen.error.error_type == 1 && matches!(seen.error.code, 0 | 2);
    // The STag of a message without payload has no meaning (DDP-5.2-9).
    let header = target.header();
    if !unknown || header.len() != RawTagged::LEN || target.ulpdu_len as usize <= RawTagged::LEN {
        return;
    }
    let stag = u32::from_be_bytes([header[2], header[3], header[4], header[5]]);
    let (expected, found) =
        ("an STag that is valid on this stream", format!("STag {stag:#010x}, rejected in frame {}", seen.frame));
    // The receiver itself named the STag of a Read Response in its Read Request. If the receiver is
    // an SDP socket, its SinkAvail may have named the STag of a Write. SDP has rules for that.
    let may_be_named = match target.opcode() {
        Opcode::READ_RESPONSE => state.traffic.directions[sender.peer()].operations.unsolicited().is_none(),
        _ => state.context().sdp.is_some(),
    };
    // If the STag was used before, either its owner has invalidated it since, or the receiver is
    // wrong. So the finding is a note. The finding is also a note if it is possible that an earlier
    // use of the STag is missing in the capture.
    let log = &state.traffic.directions[sender].log;
    let mut findings = findings.as_note_if(may_be_named || log.has_earlier_stag_use(header) || !log.is_complete());
    findings.report_in_frame(requirement!("DDP-4.2-5"), sender, target.frame, expected, found);
}

fn one_more(state: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    let RemarkKind::AfterTerminate(opcode) = remark.kind else { return };
    let terminate = state.traffic.directions[remark.direction].terminate;
    if terminate.is_some_and(|seen| seen.error.layer == ErrorLayer::DDP) {
        let expected = "no message after the error except the Terminate";
        let ids = requirements!["DDP-7.1-19"];
        findings.report_remark(ids, unit, remark, expected, &format!("{opcode} after the Terminate"));
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;

    use crate::testing::{self, Wire, exchange, proves};

    const WRITE: &str = "c140 deadbeef 0000000000002000 2a";

    /// Plays a Terminate that rejects a Write. `report` is the Terminate's content after the DDP
    /// header.
    fn rejected(report: &str) -> Wire {
        exchange(&[(0, WRITE), (1, &format!("4147 00000000 00000002 00000001 00000000 {report}"))])
    }

    #[test]
    fn an_stag_that_was_good_may_have_become_invalid() {
        let report = "4147 00000000 00000002 00000001 00000000 1102c000 000f c140 deadbeef 0000000000002000";
        let severities = |wire: &Wire| -> Vec<Severity> {
            let of = |finding: &&crate::Finding| finding.requirement == requirement!("DDP-4.2-5");
            wire.findings().iter().filter(of).map(|finding| finding.severity).collect()
        };
        assert_eq!(severities(&exchange(&[(0, WRITE), (1, report)])), [Severity::Error]);
        let before = "c140 deadbeef 0000000000001000 2a";
        assert_eq!(severities(&exchange(&[(0, before), (0, WRITE), (1, report)])), [Severity::Note]);
    }

    /// The Read Request names the STag that the same end rejects later.
    #[test]
    fn an_stag_of_the_receivers_own_read_request_is_no_error() {
        let request =
            "4141 00000000 00000001 00000001 00000000 deadbeef 0000000000002000 00000001 cafe0001 0000000000000000";
        let response = "c142 deadbeef 0000000000002000 2a";
        let report = "4147 00000000 00000002 00000001 00000000 1100c000 000f c142 deadbeef 0000000000002000";
        let of = |wire: &Wire| -> Vec<Severity> {
            let findings = wire.findings();
            let of_stag = findings.iter().filter(|finding| finding.requirement == requirement!("DDP-4.2-5"));
            of_stag.map(|finding| finding.severity).collect()
        };
        let send = "4143 00000000 00000000 00000001 00000000 2a";
        assert_eq!(of(&exchange(&[(0, send), (1, request), (0, response), (1, report)])), [Severity::Note]);
        let other = "c142 deadbee0 0000000000002000 2a";
        let report = report.replace("deadbeef", "deadbee0");
        // The rules for Read Responses report an STag that the Read Request does not have.
        let findings = exchange(&[(0, send), (1, request), (0, other), (1, &report)]).findings();
        assert!(findings.iter().any(|finding| finding.severity == Severity::Error), "{findings:?}");
    }

    /// If octets before the segment are missing, the dissector processes the segment after the
    /// Terminate. It is possible that the receiver accepted the same STag in the missing octets.
    #[test]
    fn an_stag_is_refused_after_missing_octets() {
        let report = "4147 00000000 00000002 00000001 00000000 1100c000 000f c140 deadbeef 0000000000002000";
        let after_missing = |report: &str| {
            let mut wire = Wire::started();
            wire.lose(0, &testing::fpdu(&testing::hex("4143 00000000 00000000 00000001 00000000 2a")));
            wire.send_ulpdu(0, WRITE);
            wire.send_ulpdu(1, report);
            wire.fin(1);
            wire.fin(0);
            wire.findings()
        };
        let found = |report: &str| {
            let findings = after_missing(report).into_iter();
            findings.filter(|finding| finding.requirement == requirement!("DDP-4.2-5")).collect::<Vec<_>>()
        };
        let [finding] = &found(report)[..] else { panic!("{:?}", found(report)) };
        assert_eq!((finding.direction, finding.severity), (0, Severity::Note));
        // The Terminate reports another segment, which can be among the missing octets.
        assert_eq!(found(&report.replace("2000", "3000")), []);
    }

    /// It is possible that the receiver accepted the same STag before the first captured octet.
    #[test]
    fn an_stag_is_refused_in_a_capture_that_begins_late() {
        let report = "4147 00000000 00000002 00000001 00000000 1100c000 000f c140 deadbeef 0000000000002000";
        let mut wire = exchange(&[(0, "c140 deadbeef 0000000000001000 2a")]);
        let begin = wire.count();
        for msn in 1..=6 {
            (0..2).for_each(|direction| wire.send(direction, &testing::fpdu(&testing::send_of(msn, 30))));
        }
        wire.send_ulpdu(0, WRITE);
        wire.send_ulpdu(1, report);
        let found = wire.changed(|frames| frames[begin..].to_vec()).findings().into_iter();
        let found: Vec<_> = found.filter(|finding| finding.requirement == requirement!("DDP-4.2-5")).collect();
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.direction, finding.severity), (0, Severity::Note));
    }

    #[test]
    fn errors_of_ddp() {
        let right = || rejected("1101c000 000f c140 deadbeef 0000000000002000");
        proves(requirement!("DDP-7.1-17"), &rejected("11010000"), &right());
        proves(requirement!("DDP-7.2-1"), &rejected("1109c000 000f c140 deadbeef 0000000000002000"), &right());
        let version = |segment: &str, header: &str, error: &str, octets: &str| {
            exchange(&[
                (0, segment),
                (1, &format!("4147 00000000 00000002 00000001 00000000 {error}c000 {octets} {header}")),
            ])
        };
        let (send, write) = ("4243 00000000 00000000 00000001 00000000", "c240 deadbeef 0000000000002000");
        let of_send = |error: &str| version(&format!("{send} 2a"), send, error, "0013");
        let of_write = |error: &str| version(&format!("{write} 2a"), write, error, "000f");
        proves(requirement!("DDP-7.2-13"), &of_send("1104"), &of_send("1206"));
        proves(requirement!("DDP-7.2-7"), &of_write("1206"), &of_write("1104"));
        proves(requirement!("DDP-7.2-14"), &rejected("1301c000 000f c140 deadbeef 0000000000002000"), &right());
        let unknown = rejected("1100c000 000f c140 deadbeef 0000000000002000");
        proves(requirement!("DDP-4.2-5"), &unknown, &right());
        // In a segment without payload, the STag has no meaning.
        let empty = "c140 deadbeef 0000000000002000";
        let report = "4147 00000000 00000002 00000001 00000000 1100c000 000e c140 deadbeef 0000000000002000";
        let found = exchange(&[(0, empty), (1, report)]).findings();
        assert!(found.iter().all(|finding| finding.requirement != requirement!("DDP-4.2-5")), "{found:?}");
        // The reported segment is too short for a header, so there is no header to copy.
        let found =
            exchange(&[(0, "c140 deadbeef 00000000"), (1, "4147 00000000 00000002 00000001 00000000 10000000")]);
        let found: Vec<_> = found.findings().into_iter().filter(|finding| finding.direction == 1).collect();
        assert!(found.is_empty(), "{found:?}");
        let mut more = right();
        more.send_ulpdu(1, "4143 00000000 00000000 00000001 00000000 2a");
        proves(requirement!("DDP-7.1-19"), &more, &right());
    }
}
