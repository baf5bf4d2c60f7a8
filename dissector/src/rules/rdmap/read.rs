//! Checks RDMA Reads: a Read Response must match its Read Request.

use weft_core::requirement;
use weft_core::wire::rdmap::{RawReadRequest, ReadRequest};

use crate::follow::{ConnectionState, Remark, RemarkKind};
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static RESPONSE: Rule = Check::Remark(response).covers(requirements![
    "RDMAP-4.4-5",
    "RDMAP-4.4-8",
    "RDMAP-4.4-9",
    "RDMAP-4.5-1",
    "RDMAP-5.2.1-21",
    "RDMAP-5.2.2-15"
]);

pub(super) static ORDER: Rule =
    Check::Remark(order).covers(requirements!["RDMAP-5.2.1-14", "RDMAP-5.2.2-8", "RDMAP-5.5-10", "RDMAP-B-9"]);

pub(super) static SOURCE: Rule = Check::Opcode(1 << 1, source).covers(requirements!["RDMAP-5.2.1-16"]);

fn response(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    match remark.kind {
        RemarkKind::SinkStag { expected, found, .. } => {
            let expected = format!("STag {expected:#010x}, the SinkSTag of the Read Request");
            let found = format!("STag {found:#010x}");
            findings.report_remark(requirements!["RDMAP-4.4-5"], unit, remark, &expected, &found);
        }
        RemarkKind::SinkOffset { expected, found } => {
            let expected = format!("TO {expected:#x}, the SinkTO of the Read Request");
            let found = format!("TO {found:#x}");
            findings.report_remark(requirements!["RDMAP-4.4-8"], unit, remark, &expected, &found);
        }
        RemarkKind::ResponseLength { expected, found, segments } => {
            let ids = if expected == 0 {
                requirements!["RDMAP-5.2.1-21"]
            } else if found > u64::from(expected) && (found - u64::from(expected)).is_multiple_of(4) {
                // A header consists of 32-bit words. If the number of superfluous octets is a
                // multiple of four, they are possibly a repeated header.
                requirements!["RDMAP-4.4-9", "RDMAP-4.5-1"]
            } else {
                requirements!["RDMAP-4.4-9"]
            };
            let expected = match expected {
                0 => "one segment without payload, because RDMARDSZ is 0".to_owned(),
                _ => format!("{expected} bytes, the RDMARDSZ"),
            };
            findings.report_remark(ids, unit, remark, &expected, &format!("{found} bytes in {segments} segments"));
        }
        RemarkKind::SameDirection => {
            let expected = "the Read Response from the other side";
            let found = "a Read Response from the side that sent the Request";
            findings.report_remark(requirements!["RDMAP-5.2.2-15"], unit, remark, expected, found);
        }
        _ => {}
    }
}

fn order(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    if let RemarkKind::ResponseOrder { atomic: false, earlier_atomic: false } = remark.kind {
        let ids = requirements!["RDMAP-5.2.1-14", "RDMAP-5.2.2-8", "RDMAP-5.5-10", "RDMAP-B-9"];
        let expected = "Read Responses in the order of their Requests";
        findings.report_remark(ids, unit, remark, expected, "the Response to a later Request");
    }
}

/// Reports a Read Request whose source range wraps around the end of the address space, because no
/// buffer contains such a range.
fn source(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let at = view.header_len;
    let Some(octets) = view.payload.get(0..RawReadRequest::LEN) else { return };
    let Ok(read) = ReadRequest::parse(octets) else { return };
    if view.payload_len as usize == RawReadRequest::LEN
        && read.src_to.checked_add(u64::from(read.rdmardsz).saturating_sub(1)).is_none()
    {
        let found = format!("{} bytes from TO {:#x}", read.rdmardsz, read.src_to);
        let range = ULPDU_AT + at + 12..ULPDU_AT + at + 28;
        let expected = "a range that one Tagged Buffer can hold";
        findings.report(requirement!("RDMAP-5.2.1-16"), unit, range, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, exchange, proves};

    /// Three Read Requests of 8 octets with different sinks, and a Read Request of 0 octets.
    const FIRST: &str = "4141 00000000 00000001 00000001 00000000
        00000100 0000000000001000 00000008 00000200 0000000000002000";
    const SECOND: &str = "4141 00000000 00000001 00000002 00000000
        00000101 0000000000001000 00000008 00000200 0000000000002000";
    const THIRD: &str = "4141 00000000 00000001 00000003 00000000
        00000102 0000000000001000 00000008 00000200 0000000000002000";
    const EMPTY: &str = "4141 00000000 00000001 00000001 00000000
        00000100 0000000000001000 00000000 00000200 0000000000002000";
    const TO_FIRST: &str = "c142 00000100 0000000000001000 0102030405060708";
    const TO_SECOND: &str = "c142 00000101 0000000000001000 0102030405060708";
    const TO_THIRD: &str = "c142 00000102 0000000000001000 0102030405060708";

    #[test]
    fn a_response_matches_its_request() {
        let answered = |response: &str| exchange(&[(0, FIRST), (1, response)]);
        let right = answered(TO_FIRST);
        let stag = answered("c142 00010000 0000000000001000 0102030405060708");
        proves(requirement!("RDMAP-4.4-5"), &stag, &right);
        let offset = answered("c142 00000100 0000000000001001 0102030405060708");
        proves(requirement!("RDMAP-4.4-8"), &offset, &right);
        let short = answered("c142 00000100 0000000000001000 01020304050607");
        proves(requirement!("RDMAP-4.4-9"), &short, &right);
        // The same test without CRC. The next FPDU of the responder comes only after the next
        // Request. The monitor has to process the first Response before that FPDU arrives.
        let mut wire = Wire::started_as(&testing::startup_frame(0, 1, &[]), &testing::reply_frame(0, 1, &[]));
        wire.send_ulpdu(0, FIRST);
        wire.send_ulpdu(1, "c142 00010000 0000000000001000 0102030405060708");
        wire.send_ulpdu(0, SECOND);
        wire.send_ulpdu(1, TO_SECOND);
        assert!(wire.errors().iter().any(|finding| finding.requirement == requirement!("RDMAP-4.4-5")));
        let long = answered("c142 00000100 0000000000001000 010203040506070809");
        proves(requirement!("RDMAP-4.4-9"), &long, &right);
        // The Response repeats the Request's header before the data.
        let headed = answered(
            "c142 00000100 0000000000001000
            00000100 0000000000001000 00000008 00000200 0000000000002000 0102030405060708",
        );
        proves(requirement!("RDMAP-4.5-1"), &headed, &long);
        let empty = |response: &str| exchange(&[(0, EMPTY), (1, response)]);
        let nothing = "c142 00000000 0000000000000000";
        proves(requirement!("RDMAP-5.2.1-21"), &empty("c142 00000100 0000000000001000 01"), &empty(nothing));
        let same = exchange(&[(0, FIRST), (0, TO_FIRST)]);
        proves(requirement!("RDMAP-5.2.2-15"), &same, &right);
    }

    /// Both endpoints read into the same STag, and octets that one endpoint sent are missing.
    #[test]
    fn a_request_that_is_missing_may_have_the_same_stag() {
        let mut wire = exchange(&[(0, FIRST)]);
        wire.lose(1, &testing::fpdu(&testing::hex(TO_FIRST)));
        wire.send_ulpdu(1, FIRST);
        wire.send_ulpdu(0, TO_FIRST);
        assert_eq!(wire.errors(), []);
    }

    /// Both endpoints read into the same STag and TO. The monitor processes one direction late,
    /// because the SYN of this direction is missing or its segments come late.
    #[test]
    fn both_sides_may_read_into_the_same_stag() {
        let send = "4143 00000000 00000000 00000001 00000000 2a";
        let mut wire = exchange(&[(0, send), (1, send)]);
        wire.at_once(|wire| wire.send_ulpdu(0, FIRST), |wire| wire.send_ulpdu(1, FIRST));
        wire.at_once(|wire| wire.send_ulpdu(0, TO_FIRST), |wire| wire.send_ulpdu(1, TO_FIRST));
        wire.fin(0);
        wire.fin(1);
        assert_eq!(wire.errors(), []);
        for lost in [&[0][..], &[1], &[0, 1]] {
            let without = |frames: Vec<_>| {
                let kept = frames.into_iter().enumerate().filter(|(at, _)| !lost.contains(at));
                kept.map(|(_, frame)| frame).collect()
            };
            assert_eq!(wire.changed(without).errors(), [], "without frames {lost:?}");
        }
        for (from, to) in [(6, 8), (7, 9), (8, 6), (9, 6), (9, 7)] {
            let moved = |mut frames: Vec<_>| {
                let frame = frames.remove(from);
                frames.insert(to, frame);
                frames
            };
            assert_eq!(wire.changed(moved).errors(), [], "frame {from} in place of {to}");
        }
    }

    #[test]
    fn responses_keep_the_order_of_the_requests() {
        let pair = |one: &str, other: &str| exchange(&[(0, FIRST), (0, SECOND), (1, one), (1, other)]);
        let right = pair(TO_FIRST, TO_SECOND);
        proves(requirement!("RDMAP-5.2.1-14"), &pair(TO_SECOND, TO_FIRST), &right);
        proves(requirement!("RDMAP-B-9"), &pair(TO_SECOND, TO_FIRST), &right);
        let three = |order: [&str; 3]| {
            exchange(&[(0, FIRST), (0, SECOND), (0, THIRD), (1, order[0]), (1, order[1]), (1, order[2])])
        };
        let right = three([TO_FIRST, TO_SECOND, TO_THIRD]);
        proves(requirement!("RDMAP-5.2.2-8"), &three([TO_FIRST, TO_THIRD, TO_SECOND]), &right);
        proves(requirement!("RDMAP-5.5-10"), &three([TO_THIRD, TO_FIRST, TO_SECOND]), &right);
    }

    #[test]
    fn a_read_is_from_one_buffer() {
        let at = |to: &str| exchange(&[(0, &FIRST.replacen("0000000000002000", to, 1))]);
        proves(requirement!("RDMAP-5.2.1-16"), &at("fffffffffffffff9"), &at("fffffffffffffff8"));
    }

    #[test]
    fn lost_messages_are_not_checked() {
        // The second Request is not in the capture.
        let mut wire = exchange(&[(0, FIRST)]);
        wire.lose(0, &testing::fpdu(&testing::hex(SECOND)));
        wire.send_ulpdu(0, THIRD);
        for response in [TO_FIRST, TO_SECOND, TO_THIRD] {
            wire.send_ulpdu(1, response);
        }
        wire.send_ulpdu(0, &FIRST.replacen("00000001 00000001", "00000001 00000004", 1));
        wire.send_ulpdu(1, TO_FIRST);
        wire.fin(0);
        wire.fin(1);
        assert_eq!(wire.findings(), []);
        // The requester's direction is incomplete.
        let mut wire = exchange(&[(0, "4143 00000000 00000000 00000001 00000000 2a")]);
        for response in [TO_FIRST, TO_SECOND] {
            wire.send_ulpdu(1, response);
        }
        wire.lose(0, &testing::fpdu(&testing::hex(FIRST)));
        wire.send_ulpdu(0, SECOND);
        assert_eq!(wire.findings(), []);
    }

    /// Returns a Read Request for `len` octets, and the Response. All such Reads use the same sink.
    fn into_one_sink(msn: u32, len: usize) -> [Vec<u8>; 2] {
        let request = format!(
            "4141 00000000 00000001 {msn:08x} 00000000
            00000100 0000000000001000 {len:08x} 00000200 0000000000002000"
        );
        let response = format!("c142 00000100 0000000000001000 {}", "2a".repeat(len));
        [request, response].map(|ulpdu| testing::fpdu(&testing::hex(&ulpdu)))
    }

    #[test]
    fn after_a_loss_reads_into_one_sink_are_not_checked() {
        // Two Reads are outstanding at a time. In the first round, the first Response was not
        // captured. In the second round, the second Request was not captured.
        for lost in [(1, 1), (0, 2)] {
            let mut wire = exchange(&[]);
            let send = |wire: &mut Wire, direction: usize, msn: u32| {
                let octets = &into_one_sink(msn, 4 * msn as usize)[direction];
                if lost == (direction, msn) { wire.lose(direction, octets) } else { wire.send(direction, octets) }
            };
            send(&mut wire, 0, 1);
            for msn in 1..=8 {
                send(&mut wire, 0, msn + 1);
                send(&mut wire, 1, msn);
            }
            assert_eq!(wire.errors(), [], "{lost:?} lost");
            assert_eq!(wire.cut_to(128).errors(), [], "{lost:?} lost, and frames cut");
            assert_eq!(wire.changed(|frames| frames[9..].to_vec()).errors(), [], "begun late");
        }
    }

    /// Plays twelve Reads into one sink, on a connection without CRC. Three Reads are outstanding
    /// at a time. The sixth Read requests 192 octets, and its Response has `sixth` octets.
    fn without_crc(sixth: usize) -> Wire {
        let mut wire = Wire::started_as(&testing::startup_frame(0, 1, &[]), &testing::reply_frame(0, 1, &[]));
        let requested = |msn: u32| 64 * (1 + msn as usize % 4);
        let respond = |wire: &mut Wire, msn: u32| {
            let len = if msn == 6 { sixth } else { requested(msn) };
            wire.send(1, &into_one_sink(msn, len)[1]);
        };
        for msn in 1..=12 {
            wire.send(0, &into_one_sink(msn, requested(msn))[0]);
            if msn > 2 {
                respond(&mut wire, msn - 2);
            }
        }
        (11..=12).for_each(|msn| respond(&mut wire, msn));
        wire.fin(1);
        wire.fin(0);
        wire
    }

    #[test]
    fn without_crc_reads_into_one_sink_are_not_checked_after_a_loss() {
        let wire = without_crc(192);
        assert_eq!(wire.errors(), []);
        // The first four frames are the SYNs and the start-up frames.
        for lost in 4..wire.count() {
            let lossy = wire.changed(|mut frames| {
                frames.remove(lost);
                frames
            });
            assert_eq!(lossy.errors(), [], "frame {} lost", lost + 1);
            assert_eq!(lossy.cut_to(128).errors(), [], "frame {} lost, and frames cut", lost + 1);
        }
        // If no frame is missing, a Response that is too short or too long is reported.
        let ids = |sixth: usize| -> Vec<_> {
            without_crc(sixth).errors().iter().map(|finding| finding.requirement).collect()
        };
        let (short, long) = (ids(188), ids(196));
        assert!(short.contains(&requirement!("DDP-5.2-3")), "{short:?}");
        assert!(short.contains(&requirement!("RDMAP-4.4-9")), "{short:?}");
        assert!(long.contains(&requirement!("RDMAP-4.4-9")), "{long:?}");
        assert!(long.contains(&requirement!("RDMAP-4.5-1")), "{long:?}");
    }

    #[test]
    fn reads_are_checked_again_once_all_are_answered() {
        let wrong_after = |open: u32| {
            let mut wire = exchange(&[]);
            wire.send(0, &into_one_sink(1, 8)[0]);
            // The responder sends an FPDU with a bad CRC. It is possible that this FPDU was the
            // first Response. If the first Response follows this FPDU (`open` is 1), all Reads are
            // answered, and the rules check Reads again.
            let mut damaged = testing::fpdu(&testing::send_of(1, 30));
            damaged[20] ^= 1;
            wire.send(1, &damaged);
            (open..2).for_each(|msn| wire.send(1, &into_one_sink(msn, 8)[1]));
            wire.send(0, &into_one_sink(2, 8)[0]);
            wire.send(1, &into_one_sink(2, 4)[1]);
            wire
        };
        proves(requirement!("RDMAP-4.4-9"), &wrong_after(1), &wrong_after(2));
    }

    /// This requester sends more Reads without Response than the monitor keeps.
    #[test]
    fn dropped_requests_are_not_checked() {
        let mut wire = exchange(&[]);
        for msn in 1..=4097u32 {
            wire.send_ulpdu(0, &FIRST.replacen("00000001 00000001", &format!("00000001 {msn:08x}"), 1));
        }
        for _ in 0..4097 {
            wire.send_ulpdu(1, TO_FIRST);
        }
        wire.fin(1);
        wire.fin(0);
        assert_eq!(wire.findings(), []);
    }
}
