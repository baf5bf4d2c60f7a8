//! Checks the positions of markers. In the direction to a peer that requested markers, a marker is
//! due every 512 octets after the start-up frame.

use weft_core::marker::INTERVAL;
use weft_core::{RequirementId, requirement};

use crate::direction::Direction;
use crate::follow::{ConnectionState, StartupFrame, Stream};
use crate::parse::{Fpdu, MarkerStatus, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static WHERE_DUE: Rule = Check::Fpdu(where_due).covers(requirements![
    "MPA-1.2-5",
    "MPA-2-3",
    "MPA-4.3-4",
    "MPA-4.3-10",
    "MPA-4.3-12",
    "MPA-7.1.1-8",
    "MPA-7.1.1-9",
    "MPA-7.1.2-21",
    "MPA-C.2-2",
    "MPA-C.2.3-1",
    "MPA-C.2.5-2",
    "MPA-C.3-1"
]);

pub(super) static ARE_SENT: Rule =
    Check::End(are_sent).covers(requirements!["MPA-4.3-3", "MPA-7.1.1-6", "MPA-7.1.1-7"]);

pub(super) static NOT_REQUESTED: Rule = Check::Other(not_requested).covers(requirements![
    "MPA-1.2-5",
    "MPA-7.1.1-8",
    "MPA-7.1.2-21",
    "MPA-C.2-2",
    "MPA-C.3-1"
]);

/// Returns the range of an FPDU where its first marker is due. If that position is not known, the
/// result is the range of `ULPDU_Length`.
fn due_in(state: &ConnectionState, fpdu: &Fpdu<'_>, direction: Direction) -> std::ops::Range<usize> {
    let (start, end) = (fpdu.layout.start, fpdu.layout.end);
    let Some(own) = state.connection.startup[direction] else { return 0..2 };
    let ahead = own.end.wrapping_sub(start) % INTERVAL;
    if start + ahead >= end {
        return 0..2;
    }
    let at = usize::try_from(ahead).unwrap_or_default();
    at..at + 4
}

/// Reports FPDUs with misplaced markers. Some requirements are reported only at the first such FPDU
/// of the direction.
fn where_due(state: &ConnectionState, unit: &Unit<'_>, fpdu: &Fpdu<'_>, findings: &mut Findings<'_>) {
    if fpdu.marker_status != MarkerStatus::Misplaced {
        return;
    }
    let direction = unit.direction();
    let stream = &state.mpa.streams[direction];
    if !state.markers_are_certain(direction) {
        return;
    }
    // In the offsets within a unit, the markers come after the body and the CRC field.
    let body = fpdu.body.len() + 4;
    let octets = body..body + 4 * fpdu.markers.len();
    let first_fpdu = stream.fpdus == 1 && !stream.broken;
    if fpdu.layout.phase().is_some() && is_declined(state, direction) {
        if stream.misplaced == 1 {
            unrequested(first_fpdu, findings, |findings, ids, expected| {
                findings.report_each(ids, unit, octets.clone(), expected, "an FPDU with markers");
            });
        }
        return;
    }
    let expected = "a marker at every multiple of 512 bytes after the start-up frame";
    let positions = "markers at the positions of RFC 5044 section 4.3, because the peer sent M=1";
    let Some(phase) = fpdu.layout.phase() else {
        let due = due_in(state, fpdu, direction);
        findings.report(requirement!("MPA-4.3-4"), unit, due.clone(), expected, "no markers in this FPDU");
        // A sender that has sent markers supports markers. So if this FPDU has no markers, the
        // sender has possibly computed wrong positions, for example because it did not count its
        // CRC fields.
        if stream.unmarked > 1
            || stream.has_markers
            || state.connection.peer_startup(direction).is_none_or(|frame| !frame.wants_markers())
        {
            return;
        }
        let none = "an FPDU without markers";
        findings.report(requirement!("MPA-7.1.1-9"), unit, due.clone(), positions, none);
        if first_fpdu {
            let first = "the marker 00 00 00 00, then ULPDU_Length";
            let expected = "the first marker before the first FPDU";
            findings.report(requirement!("MPA-4.3-10"), unit, due.clone(), expected, none);
            findings.report(requirement!("MPA-7.1.2-21"), unit, due.clone(), first, none);
        }
        informative(state, unit, direction, findings);
        return;
    };
    let found = || match stream.interval {
        Some(interval) if interval != INTERVAL => {
            format!("a marker {interval} bytes after the previous marker")
        }
        _ => match state.connection.startup[direction] {
            // The distance is a multiple of four, because FPDUs and markers are multiples of four
            // octets long.
            Some(own) => {
                let shift = u64::from(phase).wrapping_sub(own.end) % INTERVAL;
                format!("markers {shift} bytes after the required positions")
            }
            None => "markers at other positions (modulo 512) than the earlier markers".to_owned(),
        },
    };
    findings.report(requirement!("MPA-4.3-4"), unit, octets.clone(), expected, found());
    let counted = "markers where (SeqNum - SeqStart) mod 512 is 0";
    findings.report(requirement!("MPA-4.3-12"), unit, octets.clone(), counted, found());
    if stream.interval.is_some_and(|interval| interval != INTERVAL) {
        findings.report(requirement!("MPA-2-3"), unit, octets.clone(), "512 bytes from marker to marker", found());
    }
    if stream.misplaced == 1 && state.connection.peer_startup(direction).is_some_and(StartupFrame::wants_markers) {
        findings.report(requirement!("MPA-7.1.1-9"), unit, octets.clone(), positions, found());
        informative(state, unit, direction, findings);
    }
    if first_fpdu {
        let id = requirement!("MPA-4.3-10");
        findings.report(id, unit, octets, "the first marker directly before the first FPDU", found());
    }
}

/// Reports a sender that never sends the markers that its peer requested. If the sender sends markers
/// at wrong positions, its first FPDUs can be without markers. So this rule runs at the end.
fn are_sent(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (direction, stream) in Direction::BOTH.into_iter().zip(&state.mpa.streams) {
        let wants_markers = state.connection.peer_startup(direction).is_some_and(StartupFrame::wants_markers);
        let Some(at) = stream.first_unmarked.filter(|_| wants_markers && !stream.has_markers) else { continue };
        if !state.markers_are_certain(direction) {
            continue;
        }
        let (none, expected) = ("an FPDU without markers", "markers, because the peer sent M=1");
        findings.report_in_frame(requirement!("MPA-4.3-3"), direction, at, expected, none);
        if let Some(pair) = state.connection.startup_pair() {
            let (id, expected) = if pair.initiator == direction {
                (requirement!("MPA-7.1.1-7"), "markers, because the Reply has M=1")
            } else {
                (requirement!("MPA-7.1.1-6"), "markers, because the Request has M=1")
            };
            findings.report_in_frame(id, direction, at, expected, none);
        }
    }
}

/// Reports violations of Appendix C of RFC 5044. The appendix repeats the rules that determine
/// whether markers are due.
fn informative(state: &ConnectionState, unit: &Unit<'_>, direction: Direction, findings: &mut Findings<'_>) {
    let Some(pair) = state.connection.startup_pair() else { return };
    let mut notes = findings.as_note();
    let found = "markers missing or misplaced";
    if pair.is_rdmac() {
        let expected = "markers in both directions, because the Reply has Rev 0";
        notes.report(requirement!("MPA-C.2.3-1"), unit, 0..2, expected, found);
        if pair.initiator == direction && pair.request.revision > 0 {
            notes.report(requirement!("MPA-C.2.5-2"), unit, 0..2, "markers, because the Reply has Rev 0", found);
        }
    } else {
        let expected = "markers in each direction whose receiver sent M=1, and in no other direction";
        notes.report_each(requirements!["MPA-C.2-2", "MPA-C.3-1"], unit, 0..2, expected, found);
    }
}

/// Returns whether the receiver of `direction` declared by M=0 that it wants no markers.
fn is_declined(state: &ConnectionState, direction: Direction) -> bool {
    state.connection.peer_startup(direction).is_some_and(|frame| !frame.wants_markers())
}

/// Calls `report` for the first markers to a peer that wants no markers. `is_first` is true if no
/// FPDU precedes these markers.
fn unrequested(
    is_first: bool,
    findings: &mut Findings<'_>,
    report: impl Fn(&mut Findings<'_>, &[RequirementId], &str),
) {
    report(findings, requirements!["MPA-7.1.1-8", "MPA-1.2-5"], "no markers, because the peer sent M=0");
    if is_first {
        report(findings, requirements!["MPA-7.1.2-21"], "ULPDU_Length as the first field of the FPDU, not a marker");
    }
    let expected = "markers in each direction whose receiver sent M=1, and in no other direction";
    report(&mut findings.as_note(), requirements!["MPA-C.2-2", "MPA-C.3-1"], expected);
}

/// Reports octets that could not be parsed because a marker precedes the FPDU, although the
/// receiver sent M=0.
fn not_requested(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    if !Stream::is_unrequested_marker(unit) {
        return;
    }
    let direction = unit.direction();
    let declined = is_declined(state, direction);
    let stream = &state.mpa.streams[direction];
    if !declined || stream.fpdus > 0 {
        return;
    }
    let (marker, found) = (unit.locate_first(0..4), "a marker (00 00 00 00) before the first FPDU");
    unrequested(true, findings, |findings, ids, expected| {
        findings.report_each_in_frame(ids, direction, marker, expected, found);
    });
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Marked, Wire, proves};

    /// `direction` sends `count` Sends, each with a ULPDU of `len` octets. `sender` adds the
    /// markers. `frames` has the flags of the two start-up frames.
    fn sends(frames: [u8; 2], direction: usize, mut sender: Marked, len: usize, count: u32) -> Wire {
        let mut wire =
            Wire::started_as(&testing::startup_frame(frames[0], 1, &[]), &testing::reply_frame(frames[1], 1, &[]));
        if direction == 1 {
            // The Initiator has to send the first FPDU.
            let octets = if frames[1] & 0x80 == 0 {
                testing::fpdu(&testing::send_of(1, 30))
            } else {
                Marked::default().fpdu(&testing::send_of(1, 30))
            };
            wire.send(0, &octets);
        }
        for msn in 1..=count {
            wire.send(direction, &sender.fpdu(&testing::send_of(msn, len)));
        }
        wire
    }

    const MARKERS: [u8; 2] = [0xc0, 0xc0];
    const NO_MARKERS: [u8; 2] = [0x40, 0x40];

    #[test]
    fn markers_recur_every_512_octets() {
        let good = sends(MARKERS, 0, Marked::default(), 600, 4);
        let drifting = sends(MARKERS, 0, Marked { crc_counts: false, ..Marked::default() }, 600, 4);
        proves(requirement!("MPA-2-3"), &drifting, &good);
        proves(requirement!("MPA-4.3-4"), &drifting, &good);
        proves(requirement!("MPA-4.3-12"), &drifting, &good);
        proves(requirement!("MPA-7.1.1-9"), &drifting, &good);
        let shifted = sends(MARKERS, 0, Marked { shift: 64, ..Marked::default() }, 600, 4);
        proves(requirement!("MPA-4.3-10"), &shifted, &good);
        proves(requirement!("MPA-2-3"), &drifting, &shifted);
        let shift = shifted.findings().into_iter().find(|finding| finding.requirement == requirement!("MPA-4.3-12"));
        assert_eq!(shift.unwrap().found, "markers 64 bytes after the required positions");
    }

    #[test]
    fn requested_markers_are_sent() {
        let none = Marked { none: true, ..Marked::default() };
        let good = sends(MARKERS, 0, Marked::default(), 600, 2);
        let bad = sends(MARKERS, 0, none.clone(), 600, 2);
        proves(requirement!("MPA-4.3-3"), &bad, &good);
        proves(requirement!("MPA-7.1.1-7"), &bad, &good);
        proves(requirement!("MPA-7.1.2-21"), &bad, &good);
        let good = sends([0xc0, 0x40], 1, Marked::default(), 600, 2);
        proves(requirement!("MPA-7.1.1-6"), &sends([0xc0, 0x40], 1, none, 600, 2), &good);
        // The first FPDU ends before the first marker of this sender, which comes too late.
        let late = sends(MARKERS, 0, Marked { shift: 256, ..Marked::default() }, 100, 4);
        proves(requirement!("MPA-4.3-3"), &bad, &late);
    }

    #[test]
    fn markers_that_were_not_requested_are_omitted() {
        let bad = sends(NO_MARKERS, 0, Marked::default(), 30, 3);
        let good = sends(NO_MARKERS, 0, Marked { none: true, ..Marked::default() }, 30, 3);
        proves(requirement!("MPA-7.1.1-8"), &bad, &good);
        proves(requirement!("MPA-1.2-5"), &bad, &good);
        proves(requirement!("MPA-7.1.2-21"), &bad, &good);
        proves(requirement!("MPA-C.3-1"), &bad, &good);
        let one_way = [0xc0, 0x40];
        let bad = sends(one_way, 1, Marked { none: true, ..Marked::default() }, 600, 2);
        proves(requirement!("MPA-C.2-2"), &bad, &sends(one_way, 1, Marked::default(), 600, 2));
    }

    #[test]
    fn the_rdma_consortium_has_markers_both_ways() {
        let rdmac = |sender: Marked| {
            let mut wire = Wire::started_as(&testing::startup_frame(0x40, 1, &[]), &testing::reply_frame(0xc0, 0, &[]));
            let mut sender = sender;
            for msn in 1..3 {
                let mut ulpdu = testing::send_of(msn, 30);
                (ulpdu[0], ulpdu[1]) = (0x40, 0x03);
                wire.send(0, &sender.fpdu(&ulpdu));
            }
            wire
        };
        let (bad, good) = (rdmac(Marked { none: true, ..Marked::default() }), rdmac(Marked::default()));
        proves(requirement!("MPA-C.2.3-1"), &bad, &good);
        proves(requirement!("MPA-C.2.5-2"), &bad, &good);
    }
}
