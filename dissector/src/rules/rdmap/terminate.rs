//! Checks the fields of a Terminate message: queue, MSN and MO, error codes, and copied headers
//! (RFC 5040 section 4.8).

use weft_core::requirement;
use weft_core::wire::ddp::{Msn, RawHeader, RawTagged, RawUntagged, Segment};
use weft_core::wire::rdmap::{
    ErrorLayer, HeaderControl, RawReadRequest, RawTerminate, RawTerminateParts, SEGMENT_LENGTH_LEN,
};
use zerocopy::FromBytes;

use crate::follow::{ConnectionState, TerminateSummary};
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

const TERMINATE: u16 = 1 << 7;
/// Offset of the Terminate header in the FPDU, from `ULPDU_Length`.
const AT: usize = ULPDU_AT + 18;

pub(super) static NUMBERS: Rule = Check::Opcode(TERMINATE, numbers).covers(requirements!["RDMAP-5.4-2"]);

pub(super) static CODES: Rule = Check::Opcode(TERMINATE, codes).covers(requirements![
    "RDMAP-4.8-2",
    "RDMAP-4.8-3",
    "RDMAP-4.8-4",
    "RDMAP-4.8-6",
    "RDMAP-4.8-31",
    "RDMAP-4.8-37",
    "RDMAP-4.8-38"
]);

pub(super) static PARTS: Rule = Check::Opcode(TERMINATE, parts).covers(requirements![
    "RDMAP-4.2-3",
    "RDMAP-4.2-5",
    "RDMAP-4.8-5",
    "RDMAP-4.8-9",
    "RDMAP-4.8-10",
    "RDMAP-4.8-11",
    "RDMAP-4.8-12"
]);

pub(super) static FIGURE_10: Rule = Check::Opcode(TERMINATE, figure_10).covers(requirements![
    "RDMAP-3.1-7",
    "RDMAP-4.8-14",
    "RDMAP-4.8-15",
    "RDMAP-4.8-16",
    "RDMAP-4.8-39",
    "RDMAP-4.8-40"
]);

/// Returns the fixed part of a Terminate. `None` if octets are missing, or if the message is
/// tagged.
fn fixed<'a>(view: &SegmentView<'a>) -> Option<&'a RawTerminate> {
    let Segment::Untagged(..) = view.segment else { return None };
    RawTerminate::ref_from_prefix(view.payload.get(0..RawTerminate::LEN)?).ok().map(|(fixed, _)| fixed)
}

fn numbers(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Segment::Untagged(header, _) = view.segment else { return };
    let (msn, mo) = (header.msn(), header.mo.get());
    if (msn, mo, view.last()) != (Msn::FIRST, 0, true) {
        let found = format!("MSN {msn}, MO {mo}, L={}", u8::from(view.last()));
        let expected = "MSN 1, MO 0 and L=1 in a Terminate";
        findings.report(requirement!("RDMAP-5.4-2"), unit, ULPDU_AT..AT, expected, found);
    }
}

/// Returns whether the order of the bits in a Terminate's first octets differs from RFC 5040 Figure
/// 8. Either layer and type are exchanged, or the sender put HdrCt into the reserved bits. If so,
/// rules should not interpret the values.
pub(crate) fn has_swapped_bits(unit: &Unit<'_>, view: &SegmentView<'_>) -> bool {
    let Some(fixed) = fixed(view) else { return false };
    let has_more = view.payload_len as usize > RawTerminate::LEN;
    let no_parts = fixed.header_control.0 & 0xe0 == 0 && fixed.reserved_bits() != 0 && has_more;
    no_parts || TerminateSummary::read(unit, view).is_some_and(|terminate| terminate.has_swapped_layer_and_type())
}

fn codes(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(fixed) = fixed(view) else { return };
    let (error, reserved) = (fixed.error(), fixed.reserved_bits());
    if reserved != 0 {
        let found = format!("{reserved:#06x}");
        findings.report(requirement!("RDMAP-4.8-6"), unit, AT + 2..AT + 4, "13 reserved bits of zero", found);
    }
    let is_swapped = has_swapped_bits(unit, view);
    if !error.is_assigned() {
        let found = format!("{error:?}");
        let (id, range) = match (error.layer.0, error.error_type) {
            (3.., _) => (requirement!("RDMAP-4.8-2"), AT..AT + 1),
            (0 | 1, 3..) | (2, 1..) => (requirement!("RDMAP-4.8-3"), AT..AT + 1),
            _ => (requirement!("RDMAP-4.8-4"), AT + 1..AT + 2),
        };
        findings.report(id, unit, range, "an assigned layer, type and code", found.clone());
        let expected = "layer, type and code of RFC 5040 Figure 9";
        findings.report(requirement!("RDMAP-4.8-38"), unit, AT..AT + 2, expected, found.clone());
        if error.layer == ErrorLayer::DDP && !is_swapped {
            let expected = "a type and code of RFC 5041 section 7.2";
            findings.report(requirement!("RDMAP-4.8-31"), unit, AT..AT + 2, expected, found);
        }
    }
    if is_swapped {
        let found = format!("{:02x} {:02x} {:02x}", fixed.layer_etype, fixed.error_code, fixed.header_control.0);
        let expected = "Layer, EType, Error Code and HdrCt in this order, from the most significant bit";
        findings.report(requirement!("RDMAP-4.8-37"), unit, AT..AT + 3, expected, found);
    }
}

/// Returns the length of the copied DDP header. The header comes after DDP Segment Length. Its first
/// bit shows whether it is tagged.
fn copied_header_len(view: &SegmentView<'_>) -> usize {
    let at = RawTerminate::LEN + SEGMENT_LENGTH_LEN;
    let first = view.payload.get(at..at + 1);
    if first.is_some_and(|first| first[0] & 0x80 != 0) { RawTagged::LEN } else { RawUntagged::LEN }
}

/// Returns the number of octets after the fixed part that the header control bits announce.
/// `header_len` is the length of the copied DDP header.
fn announced_len(bits: HeaderControl, header_len: usize) -> usize {
    let length = if bits.m() || bits.d() { SEGMENT_LENGTH_LEN } else { 0 };
    let header = if bits.d() { header_len } else { 0 };
    let request = if bits.r() { RawReadRequest::LEN } else { 0 };
    length + header + request
}

/// Returns whether the Terminate is shorter than its header control bits announce. Then it is not
/// known where the copied header begins.
pub(super) fn lacks_parts(view: &SegmentView<'_>) -> bool {
    let Some(fixed) = fixed(view) else { return false };
    let announced = announced_len(fixed.header_control, copied_header_len(view));
    (view.payload_len as usize) < RawTerminate::LEN + announced
}

fn parts(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let (Some(fixed), Some(octets)) = (fixed(view), view.payload.all()) else { return };
    let (bits, rest) = (fixed.header_control, &octets[RawTerminate::LEN..]);
    let parts = RawTerminateParts::split(bits, rest);
    let header_wanted = copied_header_len(view);
    let announced = announced_len(bits, header_wanted);
    let range = AT + 2..AT + octets.len();
    let bits_text = format!("M={}, D={}, R={}", u8::from(bits.m()), u8::from(bits.d()), u8::from(bits.r()));
    let found = format!("{} bytes", rest.len());
    if rest.len() < announced {
        let expected = format!("{announced} bytes after HdrCt, because {bits_text}");
        // Check whether the sender omitted the length. If so, a DDP header begins in place of the
        // length, and the message ends after this header or after the RDMA header.
        let bare = bits.d()
            && RawHeader::from_prefix(rest).is_some_and(|(header, tail)| {
                header.control().reserved() == 0
                    && header.ulp_control().reserved() == 0
                    && (tail.is_empty() || bits.r() && tail.len() == RawReadRequest::LEN)
            });
        // With M=0, the length is omitted as the bits announce it.
        if bits.m() || !bare {
            findings.report(requirement!("RDMAP-4.8-5"), unit, range.clone(), &expected, found.clone());
        }
        let id = if bare {
            requirement!("RDMAP-4.8-9")
        } else if bits.d() && parts.ddp_header.len() < header_wanted {
            requirement!("RDMAP-4.8-10")
        } else {
            requirement!("RDMAP-4.8-12")
        };
        if bare || bits.d() || bits.r() {
            findings.report(id, unit, range.clone(), &expected, found);
        }
        let expected = format!("the headers that {bits_text} announces");
        let found = format!("{} bytes after HdrCt", rest.len());
        findings.report(requirement!("RDMAP-4.2-3"), unit, range, &expected, found);
    } else if parts.rest.iter().any(|octet| *octet != 0) {
        // Superfluous octets of zero are allowed: RFC 5040 section 7.1 allows fields set to zero.
        let expected = format!("no more bytes than {bits_text} announces");
        let found = format!("{} more bytes", parts.rest.len());
        findings.report(requirement!("RDMAP-4.2-5"), unit, range.clone(), &expected, found.clone());
        if !bits.d() && RawHeader::from_prefix(parts.rest.get(2..).unwrap_or_default()).is_some() {
            let expected = "no DDP header with D=0";
            findings.report(requirement!("RDMAP-4.8-11"), unit, range, expected, found);
        }
    }
}

/// Checks the header control bits against RFC 5040 Figure 10. The figure lists for which errors a
/// Terminate copies length and DDP header of the reported segment.
fn figure_10(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(fixed) = fixed(view) else { return };
    let (error, bits) = (fixed.error(), fixed.header_control);
    let at = AT + 2..AT + 3;
    let found = format!("M={}, D={}, R={}", u8::from(bits.m()), u8::from(bits.d()), u8::from(bits.r()));
    let both = bits.m() && bits.d();
    match (error.layer, error.error_type) {
        (ErrorLayer::RDMAP, 0) | (ErrorLayer::LLP, _) => {
            if bits.d() || bits.r() {
                let expected = "no copied header with a Local Catastrophic or LLP error";
                findings.report(requirement!("RDMAP-4.8-14"), unit, at.clone(), expected, found.clone());
            }
            if bits.m() {
                findings.report(requirement!("RDMAP-4.8-39"), unit, at.clone(), "M=0 with this error", found.clone());
            }
            if bits.d() {
                findings.report(requirement!("RDMAP-4.8-40"), unit, at, "D=0 with this error", found);
            }
        }
        (ErrorLayer::RDMAP, error_type @ (1 | 2)) => {
            // Figure 10 contains "if possible", so a Terminate is allowed to omit both length and
            // header. But a Terminate with only the length, or with only the header, is wrong. The
            // requirement to set the bits is only a SHOULD.
            if bits.d() && !bits.m() {
                findings.report(requirement!("RDMAP-4.8-39"), unit, at.clone(), "M=1 with D=1", found.clone());
            }
            if bits.m() && !bits.d() {
                findings.report(requirement!("RDMAP-4.8-40"), unit, at.clone(), "D=1 with M=1", found.clone());
            }
            if error_type == 2 && bits.r() {
                let expected =
                    "length and DDP header, but no RDMA header (M=1, D=1, R=0), for a Remote Operation error";
                findings.report(requirement!("RDMAP-4.8-15"), unit, at, expected, found);
            }
        }
        // If the reported segment is too short for a DDP header, there is no header to copy.
        (ErrorLayer::DDP, 0) if !(bits.m() || bits.d() || bits.r()) => {}
        (ErrorLayer::DDP, _) => {
            if !both || bits.r() {
                let expected = "length and DDP header, but no RDMA header (M=1, D=1, R=0), for a DDP error";
                findings.report(requirement!("RDMAP-4.8-16"), unit, at.clone(), expected, found.clone());
            }
            if !bits.m() {
                findings.report(requirement!("RDMAP-4.8-39"), unit, at.clone(), "M=1 with a DDP error", found.clone());
            }
            if !bits.d() {
                findings.report(requirement!("RDMAP-4.8-40"), unit, at.clone(), "D=1 with a DDP error", found.clone());
                let expected = "the DDP header that DDP passed to RDMAP";
                findings.as_behaviour().report(requirement!("RDMAP-3.1-7"), unit, at, expected, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;

    use crate::testing::{Wire, exchange, proves};

    const SEND: &str = "4143 00000000 00000000 00000001 00000000 2a";
    const HEADER: &str = "4143 00000000 00000000 00000001 00000000";
    const READ: &str = "4141 00000000 00000001 00000001 00000000
        00000100 0000000000001000 00000008 00000200 0000000000002000";
    const READ_HEADER: &str = "4141 00000000 00000001 00000001 00000000";
    const READ_BODY: &str = "00000100 0000000000001000 00000008 00000200 0000000000002000";

    /// Plays a Send, and then a Terminate. `report` is the content of the Terminate after its DDP
    /// header.
    fn about_send(report: &str) -> Wire {
        exchange(&[(0, SEND), (1, &format!("4147 00000000 00000002 00000001 00000000 {report}"))])
    }
    fn about_read(report: &str) -> Wire {
        exchange(&[(0, READ), (1, &format!("4147 00000000 00000002 00000001 00000000 {report}"))])
    }
    fn right() -> Wire {
        about_send(&format!("1205c000 0013 {HEADER}"))
    }

    #[test]
    fn numbers_and_codes() {
        let second = exchange(&[(0, SEND), (1, "4147 00000000 00000002 00000002 00000000 20020000")]);
        proves(requirement!("RDMAP-5.4-2"), &second, &about_send("20020000"));
        proves(requirement!("RDMAP-4.8-2"), &about_send("30020000"), &about_send("20020000"));
        proves(requirement!("RDMAP-4.8-3"), &about_send("03000000"), &about_send("00000000"));
        proves(requirement!("RDMAP-4.8-4"), &about_send("20080000"), &about_send("20020000"));
        proves(requirement!("RDMAP-4.8-38"), &about_send("20000000"), &about_send("20010000"));
        proves(requirement!("RDMAP-4.8-31"), &about_send(&format!("1207c000 0013 {HEADER}")), &right());
        // 0x21 is 0x12 (layer 1, type 2) with exchanged nibbles. The value 0x21 itself means layer
        // 2 and type 1, which is not assigned.
        proves(requirement!("RDMAP-4.8-37"), &about_send(&format!("2105c000 0013 {HEADER}")), &right());
        proves(requirement!("RDMAP-4.8-6"), &about_send(&format!("1205c001 0013 {HEADER}")), &right());
    }

    #[test]
    fn type_3_of_layer_1_is_reserved() {
        // RFC 5040 reserves type 3 of layer 1 for the LLP, so the type is wrong, not the code.
        let of_the_llp = about_send(&format!("1301c000 0013 {HEADER}"));
        proves(requirement!("RDMAP-4.8-3"), &of_the_llp, &right());
        proves(requirement!("RDMAP-4.8-4"), &about_send("20080000"), &of_the_llp);
    }

    #[test]
    fn a_swapped_layout_is_not_an_unknown_ddp_error() {
        // Both Terminates have an unassigned DDP code. The second Terminate has HdrCt in the
        // reserved bits.
        for report in [format!("1207c000 0013 {HEADER}"), format!("12070003 0013 {HEADER}")] {
            let ids: Vec<_> = about_send(&report).findings().iter().map(|finding| finding.requirement).collect();
            let is_swapped = ids.contains(&requirement!("RDMAP-4.8-37"));
            assert_eq!(is_swapped, report.starts_with("12070003"), "{ids:?}");
            assert_eq!(ids.contains(&requirement!("RDMAP-4.8-31")), !is_swapped, "{ids:?}");
            assert_eq!(ids.contains(&requirement!("DDP-7.2-1")), !is_swapped, "{ids:?}");
        }
    }

    #[test]
    fn parts_that_are_announced() {
        let right = right();
        proves(requirement!("RDMAP-4.8-5"), &about_send("1205c000"), &right);
        let bare = about_send(&format!("12054000 {HEADER}"));
        proves(requirement!("RDMAP-4.8-9"), &bare, &right);
        // M=0 announces no length, so the bits and the parts fit.
        proves(requirement!("RDMAP-4.8-5"), &about_send("1205c000"), &bare);
        proves(requirement!("RDMAP-4.8-10"), &about_send("1205c000 0013 4143 00000000"), &right);
        let read = about_read(&format!("0100e000 002e {READ_HEADER} {READ_BODY}"));
        proves(requirement!("RDMAP-4.8-12"), &about_read(&format!("0100e000 002e {READ_HEADER} 00000100")), &read);
        let with_payload = about_send(&format!("1205c000 0013 {HEADER} 2a"));
        proves(requirement!("RDMAP-4.2-5"), &with_payload, &right);
        // Superfluous octets are payload, but the Terminate has its header.
        proves(requirement!("RDMAP-4.2-3"), &about_send("1205c000"), &with_payload);
        proves(requirement!("RDMAP-4.8-11"), &about_send(&format!("12050000 0013 {HEADER}")), &right);
        // Octets of zero that no bit announces are allowed.
        let zeros = about_send(&format!("20020000 {}", "00".repeat(20)));
        assert!(zeros.findings().iter().all(|finding| finding.requirement != requirement!("RDMAP-4.2-5")));
    }

    #[test]
    fn parts_by_error() {
        let right = right();
        proves(requirement!("RDMAP-3.1-7"), &about_send("12050000"), &right);
        let local = about_send("00000000");
        proves(requirement!("RDMAP-4.8-14"), &about_send(&format!("0000c000 0013 {HEADER}")), &local);
        let operation = about_read(&format!("02ffc000 002e {READ_HEADER}"));
        let with_read = about_read(&format!("02ffe000 002e {READ_HEADER} {READ_BODY}"));
        proves(requirement!("RDMAP-4.8-15"), &with_read, &operation);
        // The header without the length violates only a SHOULD.
        let without_length = about_read(&format!("02ff4000 0000 {READ_HEADER}"));
        let found: Vec<_> = without_length.errors().iter().map(|it| (it.requirement, it.severity)).collect();
        assert_eq!(found, [(requirement!("RDMAP-4.8-39"), Severity::Warning)]);
        let read_at_ddp = about_read(&format!("1202c000 002e {READ_HEADER}"));
        let too_much = about_read(&format!("1202e000 002e {READ_HEADER} {READ_BODY}"));
        proves(requirement!("RDMAP-4.8-16"), &too_much, &read_at_ddp);
        proves(requirement!("RDMAP-4.8-39"), &about_send(&format!("12054000 0013 {HEADER}")), &right);
        proves(requirement!("RDMAP-4.8-40"), &about_send("12058000 0013"), &right);
    }
}
