//! Compares the length of ULPDUs with the maximum segment size of TCP (RFC 5044 section 4.5).
//! MULPDU is the length of the longest ULPDU whose FPDU fits into one TCP segment. EMSS is the
//! payload length of a full TCP segment. The two SYNs show EMSS.

use weft_core::requirement;
use weft_core::wire::mpa::fpdu::MAX_ULPDU;
use weft_core::wire::mpa::mulpdu::{MIN_MULPDU, mulpdu};

use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::follow::tcp::MIN_SEGMENT_LEN;
use crate::parse::{CrcStatus, Fpdu, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static FITS_SEGMENT: Rule = Check::Fpdu(fits_segment).covers(requirements![
    "MPA-3-2",
    "MPA-3-3",
    "MPA-3-4",
    "MPA-3-8",
    "MPA-4.5-1",
    "MPA-4.5-2",
    "MPA-4.5-3",
    "MPA-5.1-1"
]);

pub(super) static FILLS_SEGMENT: Rule =
    Check::End(fills_segment).covers(requirements!["MPA-3-3", "MPA-4.5-6", "MPA-4.5-8"]);

/// TCP options and rounding can make a ULPDU shorter. So weft treats a ULPDU as full even if it is
/// shorter than MULPDU by up to this number of octets.
const SLACK: u16 = 64;

fn fits_segment(state: &ConnectionState, unit: &Unit<'_>, fpdu: &Fpdu<'_>, findings: &mut Findings<'_>) {
    let length = fpdu.layout.ulpdu_length;
    let stream = &state.mpa.streams[unit.direction()];
    let capacity = stream.capacity;
    if length <= capacity.map_or(MAX_ULPDU, |capacity| capacity.mulpdu) || matches!(fpdu.crc_status, CrcStatus::Bad) {
        return;
    }
    let found = || format!("ULPDU_Length {length}");
    if length > MAX_ULPDU {
        findings.report(requirement!("MPA-3-4"), unit, 0..2, "ULPDU_Length of at most 64768", found());
        findings.report(requirement!("MPA-3-3"), unit, 0..2, "a MULPDU of 128 to 64768 bytes", found());
    }
    let Some(capacity) = capacity.filter(|capacity| length > capacity.mulpdu) else { return };
    let emss = capacity.emss;
    let expected = |mulpdu: u16| format!("ULPDU_Length of at most {mulpdu}, the MULPDU for EMSS {emss}");
    // If the formula allows more than the longest possible ULPDU, no FPDU violates the formula.
    if capacity.mulpdu < MAX_ULPDU {
        let id = if capacity.markers { requirement!("MPA-4.5-2") } else { requirement!("MPA-4.5-3") };
        findings.report(id, unit, 0..2, &expected(capacity.mulpdu), found());
    }
    if stream.oversized > 1 {
        return;
    }
    let total = fpdu.layout.end - fpdu.layout.start;
    if total > u64::from(emss) {
        let expected = format!("an FPDU of at most {emss} bytes");
        findings.as_behaviour().report(requirement!("MPA-3-8"), unit, 0..2, &expected, format!("{total} bytes"));
    }
    if length > capacity.without_markers && capacity.without_markers < MAX_ULPDU {
        // The ULPDU is too long even without markers, so the sender did not compute MULPDU.
        let expected = expected(capacity.mulpdu);
        findings.as_behaviour().report(requirement!("MPA-4.5-1"), unit, 0..2, &expected, found());
        findings.report_each(requirements!["MPA-3-2", "MPA-5.1-1"], unit, 0..2, &expected, &found());
    }
}

/// Reports a direction whose DDP segments are much shorter than MULPDU. The last segment of each
/// message does not count.
///
/// Some paths limit segments to a shorter length than the SYNs allow. Two lengths certainly fit the
/// path: the length of the longest segment that this endpoint has sent, and the minimum length that
/// every path carries. Findings about a MULPDU below 128 are notes. "DDP MAY post a ULPDU of any
/// size" (RFC 5044 section 3), so short ULPDUs do not prove a small MULPDU.
fn fills_segment(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (direction, stream) in Direction::BOTH.into_iter().zip(&state.mpa.streams) {
        let (Some(capacity), (count, longest)) = (stream.capacity, stream.non_last_segments) else { continue };
        let Some(frame) = stream.first.filter(|_| count >= 2) else { continue };
        let found = || {
            format!("at most {longest} bytes in each of {count} segments (the last segments of messages do not count)")
        };
        // If any ULPDU has 128 octets or more, MULPDU is large enough. If all ULPDUs are shorter,
        // the finding is only a note, because DDP can also end a segment where a buffer of the
        // sender ends.
        if stream.longest < MIN_MULPDU {
            let expected = "a MULPDU of 128 bytes or more, unless DDP chose shorter segments";
            let ids = requirements!["MPA-3-3", "MPA-4.5-8"];
            findings.as_note().report_each_in_frame(ids, direction, frame, expected, &found());
        }
        let emss = capacity.emss.min(state.mpa.tcp[direction].longest.max(MIN_SEGMENT_LEN));
        let mulpdu = mulpdu(emss, capacity.markers);
        if u32::from(longest) + u32::from(SLACK) < u32::from(mulpdu) {
            let expected = format!("ULPDUs of nearly {mulpdu} bytes, because TCP segments carry {emss} bytes");
            findings.report_in_frame(requirement!("MPA-4.5-6"), direction, frame, &expected, found());
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Marked, Wire, proves};

    /// Both endpoints announce `mss` in their SYNs. Then Writes with ULPDUs of these lengths
    /// follow.
    fn writes(mss: u16, flags: u8, ulpdus: &[usize], last: bool) -> Wire {
        let mut wire = Wire::connected_with_mss(mss);
        wire.send(0, &testing::startup_frame(flags, 1, &[]));
        wire.send(1, &testing::reply_frame(flags, 1, &[]));
        let mut sender = Marked { none: flags & 0x80 == 0, ..Marked::default() };
        for len in ulpdus {
            let mut ulpdu = testing::hex(if last { "c140 00000001" } else { "8140 00000001" });
            ulpdu.resize(*len, 0);
            wire.send(0, &sender.fpdu(&ulpdu));
        }
        wire
    }

    #[test]
    fn mulpdu_leaves_room_for_markers() {
        proves(requirement!("MPA-4.5-2"), &writes(1460, 0xc0, &[1443], true), &writes(1460, 0xc0, &[1442], true));
        proves(requirement!("MPA-3-8"), &writes(1460, 0xc0, &[1454], true), &writes(1460, 0xc0, &[1442], true));
        let marked = writes(1460, 0xc0, &[1454], true);
        for id in [requirement!("MPA-4.5-1"), requirement!("MPA-3-2"), requirement!("MPA-5.1-1")] {
            assert!(marked.findings().iter().all(|finding| finding.requirement != id), "{id}");
        }
    }

    #[test]
    fn an_fpdu_fits_a_segment() {
        let (bad, good) = (writes(1460, 0x40, &[1455], true), writes(1460, 0x40, &[1454], true));
        proves(requirement!("MPA-4.5-3"), &bad, &good);
        proves(requirement!("MPA-4.5-1"), &bad, &good);
        proves(requirement!("MPA-3-2"), &bad, &good);
        proves(requirement!("MPA-5.1-1"), &bad, &good);
    }

    #[test]
    fn no_ulpdu_is_longer_than_64768() {
        let (bad, good) = (writes(65495, 0x40, &[64769], true), writes(65495, 0x40, &[64768], true));
        proves(requirement!("MPA-3-4"), &bad, &good);
        proves(requirement!("MPA-3-3"), &bad, &good);
        // The formula of RFC 5044 section 4.5 gives a MULPDU of 65486.
        let formula = [requirement!("MPA-4.5-1"), requirement!("MPA-4.5-3"), requirement!("MPA-5.1-1")];
        assert!(bad.findings().iter().all(|finding| !formula.contains(&finding.requirement)));
    }

    #[test]
    fn long_messages_have_long_segments() {
        proves(
            requirement!("MPA-4.5-6"),
            &writes(1460, 0x40, &[300; 3], false),
            &writes(1460, 0x40, &[1454; 3], false),
        );
        proves(requirement!("MPA-4.5-8"), &writes(88, 0x40, &[82; 3], false), &writes(88, 0x40, &[128; 3], false));
        assert!(writes(88, 0x40, &[82; 3], false).errors().is_empty(), "DDP is allowed to choose short segments");
        // A longer ULPDU shows that the other segments could have been longer. This also applies if
        // the longer ULPDU is the last segment of its message.
        let mut wire = writes(1460, 0x40, &[82; 3], false);
        assert!(wire.findings().iter().any(|finding| finding.requirement == requirement!("MPA-3-3")));
        let mut ulpdu = testing::hex("c140 00000001");
        ulpdu.resize(1414, 0);
        wire.send(0, &testing::fpdu(&ulpdu));
        assert!(wire.findings().iter().all(|finding| finding.requirement != requirement!("MPA-3-3")));
    }

    /// The SYNs allow segments of 1460 octets. It is possible that the path requires shorter
    /// segments.
    #[test]
    fn a_path_may_carry_less_than_the_syns_allow() {
        let is_blamed =
            |wire: &Wire| wire.findings().iter().any(|found| found.requirement == requirement!("MPA-4.5-6"));
        let mut wire = writes(1460, 0x40, &[700; 3], false);
        assert!(!is_blamed(&wire));
        let mut ulpdu = testing::hex("c140 00000001");
        ulpdu.resize(1414, 0);
        wire.send(0, &testing::fpdu(&ulpdu));
        assert!(is_blamed(&wire), "one segment was twice as long");
    }

    /// If a TCP segment already has an FPDU, the free space in the segment can limit MULPDU.
    #[test]
    fn the_rest_of_a_packed_segment_may_be_filled() {
        let packed = |packed: bool| {
            let mut wire = writes(1460, 0x40, &[], false);
            for _ in 0..3 {
                let (mut full, mut rest) = (testing::hex("c140 00000001"), testing::hex("8140 00000001"));
                full.resize(954, 0);
                rest.resize(300, 0);
                let (full, rest) = (testing::fpdu(&full), testing::fpdu(&rest));
                if packed {
                    wire.send(0, &[full, rest].concat());
                } else {
                    wire.send(0, &full);
                    wire.send(0, &rest);
                }
            }
            wire.findings().iter().any(|found| found.requirement == requirement!("MPA-4.5-6"))
        };
        assert!(!packed(true));
        assert!(packed(false));
    }
}
