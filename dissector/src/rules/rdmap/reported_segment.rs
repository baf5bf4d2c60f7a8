//! Compares a Terminate with the segment that the Terminate reports.

use weft_core::requirement;
use weft_core::wire::rdmap::{ErrorLayer, Opcode, RawReadRequest, RawTerminate, RawTerminateParts, ReadRequest};

use super::terminate::lacks_parts;
use crate::direction::Direction;
use crate::follow::{ConnectionState, LoggedSegment, RequestKind, TerminateMessage};
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

const TERMINATE: u16 = 1 << 7;
/// Offset of the Terminate header in the FPDU, from `ULPDU_Length`.
const AT: usize = ULPDU_AT + 18;

pub(super) static SEGMENT: Rule = Check::Opcode(TERMINATE, segment).covers(requirements![
    "RDMAP-4.8-8",
    "RDMAP-4.8-13",
    "RDMAP-4.8-41",
    "RDMAP-4.8-44",
    "RDMAP-7.1-4",
    "RDMAP-7.1-5",
    "RDMAP-7.1-6",
    "RDMAP-7306.8.1-3",
    "RDMAP-7306.8.2-9"
]);

pub(super) static REPEATED_HEADER: Rule = Check::End(repeated_header).covers(requirements!["RDMAP-4.8-8"]);

pub(super) static SYNTHETIC: Rule = Check::End(synthetic).covers(requirements!["RDMAP-4.8-10"]);

pub(super) static READ: Rule = Check::Opcode(TERMINATE, read).covers(requirements!["RDMAP-4.8-42", "RDMAP-4.8-43"]);

pub(super) static INVALIDATION: Rule =
    Check::Opcode(TERMINATE, invalidation).covers(requirements!["RDMAP-4.1-15", "RDMAP-5.3-18"]);

fn segment(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(seen) = state.traffic.terminate_at(unit) else { return };
    let sender = &state.traffic.directions[unit.direction().peer()];
    if let Some(target) = seen.reported_segment() {
        if let Some((expected, found)) = wrong_length(seen, &target).filter(|_| !may_repeat(seen, &target)) {
            findings.report(requirement!("RDMAP-4.8-8"), unit, AT + 4..AT + 6, &expected, found);
        }
        if let Some(fault) = sender.fault
            && fault.number < target.number
            // If several segments have the same header, the Terminate can report any of these
            // segments.
            && !sender.log.has(fault.number, target.header())
        {
            let expected = format!("the header of the first segment in error, in frame {}", fault.frame);
            let found = format!("the header of the segment in frame {}", target.frame);
            findings.report(requirement!("RDMAP-7.1-6"), unit, AT + 6..AT + 20, &expected, found);
        }
    }
    if !lacks_parts(view) {
        by_opcode(state, unit, seen, findings);
    }
}

/// Returns whether the peer can have sent several segments with the header of `target`. A tagged
/// header has no sequence number. An untagged header repeats only if its sender repeats an MSN, and
/// the receiver can report that as an invalid MSN.
fn may_repeat(seen: &TerminateMessage, target: &LoggedSegment) -> bool {
    let error = seen.error;
    let is_about_msn = error.layer == ErrorLayer::DDP && error.error_type == 2 && matches!(error.code, 2 | 3);
    target.msn().is_none() || is_about_msn
}

/// If the Terminate has a length that the reported segment `target` does not have, returns the
/// expected and the found length.
fn wrong_length(seen: &TerminateMessage, target: &LoggedSegment) -> Option<(String, String)> {
    let length = seen.segment_length.filter(|length| seen.control.m() && u32::from(*length) != target.ulpdu_len)?;
    let expected = format!("length {}, the length of the segment in frame {}", target.ulpdu_len, target.frame);
    Some((expected, format!("length {length}")))
}

/// Like [`segment`], but for a header that can repeat. A segment with the same header and another
/// length can be missing in the capture, or captured after the Terminate. All segments of a
/// direction are known only when the connection ends, so this rule runs at the end.
fn repeated_header(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (direction, side) in Direction::BOTH.into_iter().zip(&state.traffic.directions) {
        let other = &state.traffic.directions[direction.peer()];
        let Some(seen) = side.terminate.as_ref().filter(|_| other.log.is_complete()) else { continue };
        let is_sent = |target: &LoggedSegment| {
            seen.segment_length.is_some_and(|length| other.log.has_with_len(target.header(), length.into()))
        };
        if let Some(target) = seen.reported_segment().filter(|target| may_repeat(seen, target) && !is_sent(target))
            && let Some((expected, found)) = wrong_length(seen, &target)
        {
            findings.report_in_frame(requirement!("RDMAP-4.8-8"), direction, seen.length_at, &expected, found);
        }
    }
}

/// Reports a Terminate with a copied header that no segment of the other direction has. All
/// segments of that direction are known only when the connection ends, so this rule runs at the
/// end.
fn synthetic(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (direction, side) in Direction::BOTH.into_iter().zip(&state.traffic.directions) {
        let Some(seen) = &side.terminate else { continue };
        let other = &state.traffic.directions[direction.peer()];
        if other.messages.is_complete() && seen.has_unsent_header(&other.log) {
            let expected = "the header of a segment that the peer sent";
            let found = "a header that no segment of the peer has";
            findings.report_in_frame(requirement!("RDMAP-4.8-10"), direction, seen.copied, expected, found);
        }
    }
}

/// Checks the header control bits and the error against the opcode in the copied header.
fn by_opcode(state: &ConnectionState, unit: &Unit<'_>, seen: &TerminateMessage, findings: &mut Findings<'_>) {
    let Some(opcode) = seen.opcode else { return };
    let (bits, error) = (seen.control, seen.error);
    let at = AT + 2..AT + 3;
    let protection = error.layer == ErrorLayer::RDMAP && error.error_type == 1;
    let is_read = opcode == Opcode::READ_REQUEST;
    let found = format!("M={}, D=1, R={} about {opcode}", u8::from(bits.m()), u8::from(bits.r()));
    if bits.r() && !is_read {
        let expected = "no RDMA header, because the segment is not a Read Request";
        findings.report(requirement!("RDMAP-4.8-13"), unit, at.clone(), expected, found.clone());
    }
    // RFC 5040 Figure 10 has no row for other layers and types.
    let is_in_figure = matches!((error.layer.0, error.error_type), (0 | 1, 0..=2) | (2, 0));
    if is_in_figure && bits.r() != (protection && is_read) {
        let expected = if bits.r() {
            "R=0 unless the Terminate reports a Remote Protection error of a Read Request"
        } else {
            "R=1, because the Terminate reports a Remote Protection error of a Read Request"
        };
        findings.report(requirement!("RDMAP-4.8-41"), unit, at.clone(), expected, found.clone());
    }
    if protection && !is_read && !opcode.invalidates() {
        let expected = "Remote Protection errors only about Read Requests and Sends with Invalidate";
        findings.as_behaviour().report(requirement!("RDMAP-4.8-44"), unit, AT..AT + 2, expected, found.clone());
    }
    match opcode {
        Opcode::READ_REQUEST if protection && !(bits.m() && bits.r()) => {
            let expected = "length, DDP header and RDMA header (M=1, D=1, R=1) of the segment";
            findings.as_behaviour().report(requirement!("RDMAP-7.1-5"), unit, at, expected, found);
        }
        // An RDMA Write, a Read Response or a Send.
        Opcode(0 | 2..=6) if !bits.m() || bits.r() => {
            let expected = "length and DDP header of the segment, but no RDMA header (M=1, D=1, R=0)";
            findings.as_behaviour().report(requirement!("RDMAP-7.1-4"), unit, at, expected, found);
        }
        Opcode(8..=11) => {
            if bits.r() {
                let expected = "no RDMA header (R=0) in a Terminate about a message of RFC 7306";
                findings.report(requirement!("RDMAP-7306.8.1-3"), unit, at, expected, found);
            }
            misaligned(state, unit, seen, findings);
        }
        _ => {}
    }
}

/// Reports a Remote Operation error other than 0/2/07 (layer, type, code) if the Terminate is about
/// a request with a misaligned TO. The finding is a note, because the capture does not show the
/// alignment of the buffer's address.
fn misaligned(state: &ConnectionState, unit: &Unit<'_>, seen: &TerminateMessage, findings: &mut Findings<'_>) {
    let requester = &state.traffic.directions[unit.direction().peer()];
    let Some(msn) = seen.reported_segment().and_then(|target| target.msn()) else { return };
    let Some(RequestKind::Atomic { offset, .. }) = requester.operations.request(msn).map(|request| request.kind) else {
        return;
    };
    let operation = seen.error.layer == ErrorLayer::RDMAP && seen.error.error_type == 2;
    if offset % 8 != 0 && operation && seen.error.code != 7 {
        let expected = "error 0/2/07 about a misaligned TO";
        let id = requirement!("RDMAP-7306.8.2-9");
        findings.as_note().report(id, unit, AT..AT + 2, expected, format!("{:?}, with TO {offset:#x}", seen.error));
    }
}

/// Compares the copied Read Request with the original. If octets were already answered, the copy
/// must be advanced by their number. Otherwise the copy must be equal to the original.
fn read(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(seen) = state.traffic.terminate_at(unit).filter(|seen| seen.control.r()) else { return };
    let requester = &state.traffic.directions[unit.direction().peer()];
    let Some(octets) = view.payload.all().and_then(|octets| octets.get(RawTerminate::LEN..)) else { return };
    let parts = RawTerminateParts::split(seen.control, octets);
    let (Ok(copied), Some(msn)) =
        (ReadRequest::parse(parts.rdma_header), seen.reported_segment().and_then(|target| target.msn()))
    else {
        return;
    };
    let Some(request) = requester.operations.request(msn) else { return };
    let RequestKind::Read(original) = request.kind else { return };
    let done = u32::try_from(request.answered).unwrap_or(u32::MAX).min(original.rdmardsz);
    let advanced = |done: u32| ReadRequest {
        sink_to: original.sink_to.wrapping_add(u64::from(done)),
        rdmardsz: original.rdmardsz - done,
        src_to: original.src_to.wrapping_add(u64::from(done)),
        ..original
    };
    // If octets are missing, it is possible that more octets were answered than the capture shows.
    let advance =
        original.rdmardsz.checked_sub(copied.rdmardsz).filter(|_| requester.operations.outstanding().is_none());
    let expected = advanced(done);
    if copied == expected || advance.is_some_and(|advance| copied == advanced(advance)) {
        return;
    }
    let id = if done == 0 { requirement!("RDMAP-4.8-42") } else { requirement!("RDMAP-4.8-43") };
    let shown = |read: ReadRequest| {
        format!(
            "SinkSTag {:#010x}, SinkTO {:#x}, {} bytes, SrcSTag {:#010x}, SrcTO {:#x}",
            read.sink_stag, read.sink_to, read.rdmardsz, read.src_stag, read.src_to
        )
    };
    let start = AT + RawTerminate::LEN + octets.len() - parts.rest.len() - RawReadRequest::LEN;
    let expected = format!("{} ({done} bytes were answered)", shown(expected));
    findings.report(id, unit, start..start + RawReadRequest::LEN, &expected, shown(copied));
}

/// Reports a Send with Invalidate if its receiver rejects the STag: the STag is invalid, does not
/// belong to this stream, or cannot be invalidated.
fn invalidation(state: &ConnectionState, unit: &Unit<'_>, _: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(seen) = state.traffic.terminate_at(unit) else { return };
    let Some(target) = seen.reported_segment().filter(|target| target.opcode().invalidates()) else { return };
    let ids = match (seen.error.layer, seen.error.error_type, seen.error.code) {
        (ErrorLayer::RDMAP, 1, 0 | 3) => requirements!["RDMAP-4.1-15", "RDMAP-5.3-18"],
        (ErrorLayer::RDMAP, 1 | 2, 9) => requirements!["RDMAP-5.3-18"],
        _ => return,
    };
    let header = target.header();
    let stag = u32::from_be_bytes([header[2], header[3], header[4], header[5]]);
    let found = format!("STag {stag:#010x}, rejected in frame {}: {}", seen.frame, seen.error);
    let sender = unit.direction().peer();
    findings.report_each_in_frame(ids, sender, target.frame, "an STag that the receiver can invalidate", &found);
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{Wire, exchange, fpdu, hex, proves};

    const SEND: &str = "4143 00000000 00000000 00000001 00000000 2a";
    const SEND_HEADER: &str = "4143 00000000 00000000 00000001 00000000";
    const INVALIDATE: &str = "4144 00000300 00000000 00000001 00000000 2a";
    const INVALIDATE_HEADER: &str = "4144 00000300 00000000 00000001 00000000";
    const READ: &str = "4141 00000000 00000001 00000001 00000000
        00000100 0000000000001000 00000008 00000200 0000000000002000";
    const READ_HEADER: &str = "4141 00000000 00000001 00000001 00000000";
    const READ_BODY: &str = "00000100 0000000000001000 00000008 00000200 0000000000002000";
    const ATOMIC: &str = "414a 00000000 00000001 00000001 00000000 00000000 00000001 00000200 0000000000002004
        0000000000000005 0000000000000000 0000000000000000 ffffffffffffffff";
    const ATOMIC_HEADER: &str = "414a 00000000 00000001 00000001 00000000";

    fn about(ulpdu: &str, report: &str) -> Wire {
        exchange(&[(0, ulpdu), (1, &format!("4147 00000000 00000002 00000001 00000000 {report}"))])
    }

    #[test]
    fn the_segment_in_error() {
        let right = about(SEND, &format!("1205c000 0013 {SEND_HEADER}"));
        proves(requirement!("RDMAP-4.8-8"), &about(SEND, &format!("1205c000 0012 {SEND_HEADER}")), &right);
        let with_read = format!("0209e000 0013 {INVALIDATE_HEADER} {READ_BODY}");
        let without = about(INVALIDATE, &format!("0209c000 0013 {INVALIDATE_HEADER}"));
        proves(requirement!("RDMAP-4.8-13"), &about(INVALIDATE, &with_read), &without);
        let read = about(READ, &format!("0102e000 002e {READ_HEADER} {READ_BODY}"));
        let short = about(READ, &format!("0102c000 002e {READ_HEADER}"));
        proves(requirement!("RDMAP-4.8-41"), &short, &read);
        proves(requirement!("RDMAP-7.1-5"), &short, &read);
        let write = "c140 deadbeef 0000000000002000 2a";
        let protection = about(write, "0102c000 000f c140 deadbeef 0000000000002000");
        let tagged = about(write, "1100c000 000f c140 deadbeef 0000000000002000");
        proves(requirement!("RDMAP-4.8-44"), &protection, &tagged);
        let no_length = about(write, "11004000 000f c140 deadbeef 0000000000002000");
        proves(requirement!("RDMAP-7.1-4"), &no_length, &tagged);
        // Two segments are wrong. The Terminate reports the segment with the header `header`.
        let two = |header: &str| {
            exchange(&[
                (0, "4143 00000000 00000009 00000001 00000000 2a"),
                (0, "4143 00000000 00000008 00000001 00000000 2a"),
                (1, &format!("4147 00000000 00000002 00000001 00000000 1201c000 0013 {header}")),
            ])
        };
        proves(
            requirement!("RDMAP-7.1-6"),
            &two("4143 00000000 00000008 00000001 00000000"),
            &two("4143 00000000 00000009 00000001 00000000"),
        );
        // Both segments have the same header, so it is possible that the Terminate reports the
        // first segment.
        let again = "4143 00000000 00000009 00000001 00000000 2a";
        let report = "4147 00000000 00000002 00000001 00000000 1201c000 0013 4143 00000000 00000009 00000001 00000000";
        let found = exchange(&[(0, again), (0, again), (1, report)]).findings();
        assert!(found.iter().all(|finding| finding.requirement != requirement!("RDMAP-7.1-6")), "{found:?}");
    }

    const WRITE: &str = "c140 deadbeef 0000000000002000 2a";
    const LONG_WRITE: &str = "c140 deadbeef 0000000000002000 2a2b2c2d";

    fn report_of_write(length: &str) -> String {
        format!("4147 00000000 00000002 00000001 00000000 1101c000 {length} c140 deadbeef 0000000000002000")
    }

    /// Two Writes have the same header and different lengths. The receiver rejects the second one.
    #[test]
    fn the_length_of_a_segment_whose_header_repeats() {
        let id = requirement!("RDMAP-4.8-8");
        let both = |length: &str| exchange(&[(0, WRITE), (0, LONG_WRITE), (1, &report_of_write(length))]);
        proves(id, &both("0013"), &both("0012"));
        let mut late = exchange(&[(0, WRITE)]);
        late.swapped(|wire| wire.send_ulpdu(0, LONG_WRITE), |wire| wire.send_ulpdu(1, &report_of_write("0012")));
        late.send_ulpdu(0, "4143 00000000 00000000 00000001 00000000 2a");
        proves(id, &both("0013"), &late);
        let mut lost = exchange(&[(0, WRITE)]);
        lost.lose(0, &fpdu(&hex(LONG_WRITE)));
        lost.send_ulpdu(1, &report_of_write("0012"));
        proves(id, &both("0013"), &lost);
        lost.send_ulpdu(0, "4143 00000000 00000000 00000001 00000000 2a");
        proves(id, &both("0013"), &lost);
    }

    /// The receiver rejects the second Send with MSN 1, which is longer than the first one.
    #[test]
    fn the_length_of_a_segment_whose_msn_repeats() {
        let report = |length: &str| {
            format!(
                "4147 00000000 00000002 00000001 00000000 1203c000 {length} 4143 00000000 00000000 00000001 00000000"
            )
        };
        let id = requirement!("RDMAP-4.8-8");
        let wrong = exchange(&[(0, SEND), (1, &report("0014"))]);
        let mut lost = exchange(&[(0, SEND)]);
        lost.lose(0, &fpdu(&hex(&format!("{SEND}2b"))));
        lost.send_ulpdu(1, &report("0014"));
        proves(id, &wrong, &lost);
    }

    #[test]
    fn an_unknown_segment_is_not_judged() {
        let with_read = format!("0209e000 0013 {INVALIDATE_HEADER} {READ_BODY}");
        let short = about(READ, &format!("0102c000 002e {READ_HEADER}"));
        // Type 7 is not assigned, so it is unknown whether R is right.
        let other_type = about(READ, &format!("0702e000 002e {READ_HEADER} {READ_BODY}"));
        proves(requirement!("RDMAP-4.8-41"), &short, &other_type);
        // Without the length, the opcode cannot be found.
        let without_length = about(READ, &format!("0102e000 {READ_HEADER} {READ_BODY}"));
        proves(requirement!("RDMAP-4.8-41"), &short, &without_length);
        proves(requirement!("RDMAP-4.8-13"), &about(INVALIDATE, &with_read), &without_length);
    }

    #[test]
    fn messages_of_rfc_7306_in_error() {
        let right = about(ATOMIC, &format!("0207c000 0046 {ATOMIC_HEADER}"));
        let with_header = about(ATOMIC, &format!("0207e000 0046 {ATOMIC_HEADER} {READ_BODY}"));
        proves(requirement!("RDMAP-7306.8.1-3"), &with_header, &right);
        proves(requirement!("RDMAP-7306.8.2-9"), &about(ATOMIC, &format!("02ffc000 0046 {ATOMIC_HEADER}")), &right);
    }

    #[test]
    fn the_read_request_that_a_terminate_copies() {
        let back = |body: &str| about(READ, &format!("0101e000 002e {READ_HEADER} {body}"));
        let advanced = "00000100 0000000000001004 00000004 00000200 0000000000002004";
        proves(requirement!("RDMAP-4.8-42"), &back(advanced), &back(READ_BODY));
        let half_way = |body: &str| {
            exchange(&[
                (0, READ),
                (1, "8142 00000100 0000000000001000 01020304"),
                (1, &format!("4147 00000000 00000002 00000001 00000000 0101e000 002e {READ_HEADER} {body}")),
            ])
        };
        proves(requirement!("RDMAP-4.8-43"), &half_way(READ_BODY), &half_way(advanced));
        // The Read Response is missing in this capture, so the monitor does not know how many
        // octets it answered. The copy in the Terminate is correct if its offsets match any number
        // of octets.
        let lost = |body: &str| {
            let mut wire = exchange(&[(0, READ)]);
            wire.lose(1, &fpdu(&hex("8142 00000100 0000000000001000 01020304")));
            wire.send_ulpdu(1, &format!("4147 00000000 00000002 00000001 00000000 0101e000 002e {READ_HEADER} {body}"));
            wire
        };
        assert_eq!(lost(advanced).errors(), []);
        // The offsets in this copy do not match any number of answered octets.
        let other = "00000100 0000000000001004 00000004 00000200 0000000000002000";
        proves(requirement!("RDMAP-4.8-42"), &lost(other), &lost(advanced));
    }

    #[test]
    fn stags_that_cannot_be_invalidated() {
        let right = about(INVALIDATE, &format!("1205c000 0013 {INVALIDATE_HEADER}"));
        let unknown = about(INVALIDATE, &format!("0100c000 0013 {INVALIDATE_HEADER}"));
        proves(requirement!("RDMAP-4.1-15"), &unknown, &right);
        let bound = about(INVALIDATE, &format!("0209c000 0013 {INVALIDATE_HEADER}"));
        proves(requirement!("RDMAP-5.3-18"), &bound, &right);
    }

    #[test]
    fn a_header_that_was_not_sent() {
        let findings = about(SEND, "1205c000 0013 4143 00000000 00000000 00000007 00000000").findings();
        assert!(findings.iter().any(|finding| finding.requirement == requirement!("RDMAP-4.8-10")));
        let mut lost = Wire::started();
        lost.lose(0, &crate::testing::fpdu(&crate::testing::hex(SEND)));
        lost.send_ulpdu(0, "4143 00000000 00000000 00000002 00000000 2a");
        lost.send_ulpdu(1, &format!("4147 00000000 00000002 00000001 00000000 1205c000 0013 {SEND_HEADER}"));
        assert_eq!(lost.findings(), []);
    }

    /// The capture has only one direction, or begins after the segment.
    #[test]
    fn a_header_that_was_not_captured() {
        let mut wire = about(SEND, &format!("1205c000 0013 {SEND_HEADER}"));
        wire.send_ulpdu(0, "4143 00000000 00000000 00000002 00000000 2a");
        assert_eq!(wire.alone(1).errors(), []);
        let mut wire = Wire::started();
        (1..=6).for_each(|msn| wire.send(0, &crate::testing::fpdu(&crate::testing::send_of(msn, 30))));
        wire.send_ulpdu(1, "4143 00000000 00000000 00000001 00000000 2a");
        wire.send_ulpdu(1, &format!("4147 00000000 00000002 00000001 00000000 1205c000 0013 {SEND_HEADER}"));
        assert_eq!(wire.changed(|frames| frames[5..].to_vec()).errors(), []);
    }

    /// It is possible that the Terminate reports a segment whose header the monitor no longer
    /// keeps.
    #[test]
    fn a_header_that_is_forgotten() {
        let mut wire = exchange(&[(0, "c140 deadbeef 0000000000002000 2a")]);
        for offset in 0..256u64 {
            wire.send_ulpdu(0, &format!("c140 11223344 {offset:016x} 2a"));
        }
        wire.send_ulpdu(1, "4147 00000000 00000002 00000001 00000000 1100c000 000f c140 deadbeef 0000000000002000");
        assert_eq!(wire.findings(), []);
    }
}
