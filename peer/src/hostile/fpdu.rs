//! Deviations in the FPDUs that are sent, in their markers and CRCs, and in the processing of
//! received FPDUs.

use weft_core::wire::mpa::fpdu::len_without_markers;
use weft_core::wire::rdmap::Opcode;

use super::context::fpdu::{SentFpdu, right_marker};
use super::context::segment::{MO, SENDS, has_payload, is_last, opcode, word};

fn is_short_send(octets: &[u8]) -> bool {
    SENDS.contains(&opcode(octets)) && is_last(octets) && word(octets, MO) == 0 && octets.len() < 100
}

fn is_terminate(fpdu: &SentFpdu<'_>) -> bool {
    opcode(fpdu.ulpdu) == Opcode::TERMINATE
}

/// Sends the first 16 bytes of another FPDU before this FPDU. The other FPDU would contain a Send
/// of eight bytes.
fn precede_by_cut(fpdu: &mut SentFpdu<'_>) {
    let mut send = [0; 26];
    (send[0], send[1]) = (0x41, 0x43);
    let mut octets = fpdu.compose(&send, fpdu.framing.phase(), right_marker, 0);
    octets.truncate(16);
    octets.extend(SentFpdu::right(fpdu.position + 16, fpdu.ulpdu, fpdu.framing).octets);
    fpdu.octets = octets;
}

/// Returns the length of an FPDU without markers that contains this ULPDU, in bytes.
fn fpdu_len(ulpdu: &[u8]) -> usize {
    len_without_markers(u16::try_from(ulpdu.len()).unwrap_or(u16::MAX))
}

deviations! {
    "mpa.accepts-bad-crc" [Framing(|_, received| received.crc = false)]
        ["MPA-8-2", "MPA-4.4-10", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-4.4-6", "MPA-6-6"]
        "does not check the CRCs of received FPDUs, whatever was negotiated";
    "mpa.checks-unused-crc" [Framing(|_, received| received.crc = true)]
        ["MPA-7.1.1-10", "MPA-7.1.1-14", "MPA-4.1-7", "MPA-4.4-11"]
        "checks the CRCs of received FPDUs although both sides have C=0";
    "mpa.coalesces-sends" [Segment(|sent| if let Some(octets) = sent.out.first().cloned() && is_short_send(&octets) {
        match sent.state.held.pop() {
            None => sent.state.held.append(&mut sent.out),
            Some(first) => sent.out = vec![[first, octets].concat()],
        }
    })] ["MPA-3-7", "MPA-B.1-1", "DDP-4.3-6"] "sends two short Sends in one FPDU";
    "mpa.count-with-header" [Fpdu(|fpdu| {
        let at = fpdu.header();
        let length = u16::try_from(fpdu.ulpdu.len()).unwrap_or(u16::MAX).wrapping_add(2).to_be_bytes();
        fpdu.change(|octets| octets[at..at + 2].copy_from_slice(&length));
    })] ["MPA-4.1-2", "MPA-4.1-1"] "counts the ULPDU_Length field itself in ULPDU_Length";
    "mpa.crc-byte-order" [Fpdu(|fpdu| {
        let at = fpdu.octets.len() - 4;
        fpdu.octets[at..].reverse();
    })] ["MPA-4.4-18", "MPA-4.1-6", "MPA-4.4-14", "MPA-4.4-1"] "sends the CRC field in the wrong byte order, most significant byte first";
    "mpa.crc-flipped" [Fpdu(|fpdu| {
        let at = fpdu.octets.len() - 1;
        fpdu.octets[at] ^= 1;
    })] ["MPA-4.1-6", "MPA-4.4-14", "MPA-4.4-1", "MPA-4.4-9", "MPA-7.1.1-12"] "sends a CRC field with one wrong bit";
    "mpa.crc-left-out" [Fpdu(|fpdu| fpdu.octets.truncate(fpdu.octets.len() - 4))]
        ["MPA-4.4-13", "MPA-4.1-8", "MPA-7.1.1-13", "MPA-4.1-1", "MPA-4.1-9"] "does not send the CRC field";
    "mpa.crc-of-payload" [Fpdu(|fpdu| {
        let from = fpdu.header() + 2;
        let covered = fpdu.octets[from..fpdu.octets.len() - 4].to_vec();
        fpdu.set_crc(&covered);
    })] ["MPA-4.4-15", "MPA-4.1-6"] "computes the CRC without ULPDU_Length";
    "mpa.crc-of-terminate-byte-order" [Fpdu(|fpdu| if fpdu.ulpdu.get(1).is_some_and(|octet| octet & 0xf == 7) {
        let at = fpdu.octets.len() - 4;
        fpdu.octets[at..].reverse();
    })] ["MPA-4.4-18", "MPA-4.1-6"] "sends the CRC field of a Terminate in the wrong byte order, most significant byte first";
    "mpa.crc-unused-left-out" [Fpdu(|fpdu| if !fpdu.framing.crc { fpdu.octets.truncate(fpdu.octets.len() - 4) })]
        ["MPA-4.1-9", "MPA-4.4-13", "MPA-4.1-8", "MPA-7.1.1-13"] "does not send the CRC field if both sides have C=0";
    "mpa.crc-without-leading-marker" [Fpdu(|fpdu| fpdu.leave_out_of_crc(|layout, position| position < layout.header))]
        ["MPA-4.4-17", "MPA-4.3-8", "MPA-4.4-21"] "computes the CRC without the marker before ULPDU_Length";
    "mpa.crc-without-markers" [Fpdu(|fpdu| fpdu.leave_out_of_crc(|_, _| true))]
        ["MPA-4.3-1", "MPA-4.4-15", "MPA-4.4-22"] "computes the CRC without the markers";
    "mpa.crc-without-trailing-marker" [Fpdu(|fpdu| fpdu.leave_out_of_crc(|layout, position| position + 4 == layout.crc))]
        ["MPA-4.4-16"] "computes the CRC without a marker between PAD and the CRC field";
    "mpa.crc-zero" [Framing(|sent, _| sent.crc = false)]
        ["MPA-7.1.1-12", "MPA-4.4-9", "MPA-4.1-6", "MPA-4.4-14", "MPA-4.4-1", "DDP-3-7"]
        "sends zero in the CRC field, whatever was negotiated";
    "mpa.cuts-fpdu-before-terminate" [Fpdu(|fpdu| if is_terminate(fpdu) && !fpdu.begins_stream() { precede_by_cut(fpdu) })]
        ["MPA-4.1-1", "MPA-4.4-13", "MPA-4.1-6", "RDMAP-6.2.1-1"]
        "sends the first 16 bytes of another FPDU before the FPDU of a Terminate, unless this is its first FPDU";
    "mpa.damages-fpdus-of-64" [SegmentArrived(|octets| if fpdu_len(octets) == 64 && has_payload(octets) && let Some(last) = octets.last_mut() {
        *last ^= 0xff;
    })] ["MPA-5.2-1", "MPA-3-9"] "passes the ULPDU of an FPDU of 64 bytes to DDP with a wrong last byte";
    "mpa.first-marker-left-out" [Fpdu(|fpdu| if fpdu.begins_stream() && fpdu.framing.markers {
        fpdu.change(|octets| drop(octets.drain(..4)));
    })] ["MPA-7.1.1-6", "MPA-4.3-10", "MPA-4.3-12"] "omits the marker before the first FPDU";
    "mpa.length-byte-order" [Fpdu(|fpdu| {
        let at = fpdu.header();
        fpdu.change(|octets| octets[at..at + 2].reverse());
    })] ["MPA-4.1-1"] "sends ULPDU_Length in little-endian byte order";
    "mpa.marker-fields-swapped" [Fpdu(|fpdu| fpdu.mark(|[high, low]| [high, low, 0, 0]))]
        ["MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4"] "sends markers with FPDUPTR before the reserved half";
    "mpa.marker-from-zero" [Fpdu(|fpdu| {
        fpdu.mark(|pointer| match u16::from_be_bytes(pointer) {
            0 => [0, 0, 0, 4],
            _ => right_marker(pointer),
        });
    })] ["MPA-4.3-11", "MPA-4.3-15", "MPA-4.3-7", "MPA-4.3-10"]
        "sends FPDUPTR 4 instead of 0 in the first marker and in markers between two FPDUs";
    "mpa.marker-little-endian" [Fpdu(|fpdu| fpdu.mark(|[high, low]| [0, 0, low, high]))]
        ["MPA-4.2-1", "MPA-4.2-4", "MPA-4.3-5", "MPA-4.3-14"] "sends FPDUPTR in little-endian byte order";
    "mpa.marker-low-bits" [Fpdu(|fpdu| fpdu.mark(|[high, low]| [0, 0, high, low | 3]))]
        ["MPA-4.2-5"] "sets the two low bits of FPDUPTR";
    "mpa.marker-modulo" [Fpdu(|fpdu| {
        fpdu.mark(|pointer| if u16::from_be_bytes(pointer) > 512 { [0, 0, 2, 0] } else { right_marker(pointer) });
    })] ["MPA-4.3-13", "MPA-4.3-5", "MPA-4.2-4"] "points the later markers of a long FPDU to the previous marker instead of to the start of the FPDU";
    "mpa.marker-of-terminate-left-out" [Fpdu(|fpdu| if is_terminate(fpdu) {
        fpdu.octets = fpdu.compose(fpdu.ulpdu, None, right_marker, 0);
    })] ["MPA-4.3-4", "MPA-7.1.1-9"] "omits the markers in the FPDU of a Terminate";
    "mpa.marker-off-by-four" [Fpdu(|fpdu| {
        fpdu.mark(|pointer| match u16::from_be_bytes(pointer) {
            0 => [0; 4],
            right => {
                let [high, low] = right.wrapping_add(4).to_be_bytes();
                [0, 0, high, low]
            }
        });
    })] ["MPA-4.2-4", "MPA-4.3-5", "MPA-4.3-14", "MPA-4.3-16"] "counts the marker itself in FPDUPTR";
    "mpa.marker-reserved" [Fpdu(|fpdu| fpdu.mark(|[high, low]| [0xff, 0xff, high, low]))]
        ["MPA-4.2-2"] "sends markers whose reserved half is not zero";
    "mpa.markers-left-out" [Framing(|sent, _| sent.markers = false)]
        ["MPA-7.1.1-9", "MPA-4.3-3", "MPA-7.1.1-6", "MPA-7.1.1-7", "MPA-4.3-10", "MPA-7.1.2-21", "MPA-C.2-2", "MPA-C.3-1"]
        "sends no markers although the peer has M=1";
    "mpa.markers-out-of-phase" [Fpdu(|fpdu| {
        if fpdu.framing.markers {
            fpdu.octets = fpdu.compose(fpdu.ulpdu, Some(256), right_marker, 0);
        }
    })] ["MPA-4.3-12", "MPA-4.3-10", "MPA-4.3-4", "MPA-2-3"] "sends the first marker 256 bytes after the start of the stream";
    "mpa.markers-unrequested" [Framing(|sent, _| sent.markers = true)]
        ["MPA-7.1.1-8", "MPA-1.2-5", "MPA-7.1.2-21"] "sends markers although the peer has M=0";
    "mpa.mulpdu-below-128" [Mulpdu(|mulpdu| *mulpdu = 100)]
        ["MPA-4.5-8", "MPA-3-3", "MPA-4.5-6"] "splits messages into ULPDUs of 100 bytes";
    "mpa.mulpdu-beyond-64768" [Mulpdu(|mulpdu| *mulpdu = 65_000), Fpdu(|_| ())]
        ["MPA-3-4", "MPA-3-3", "MPA-3-2", "MPA-3-8", "MPA-4.5-2", "MPA-4.5-3"] "splits messages into ULPDUs of 65,000 bytes";
    "mpa.mulpdu-without-crc" [Mulpdu(|mulpdu| *mulpdu = mulpdu.saturating_add(4))]
        ["MPA-4.5-3", "MPA-4.5-2", "MPA-3-8", "MPA-4.5-1", "MPA-3-2", "MPA-5.1-1"]
        "sends ULPDUs that are four bytes longer than MULPDU, because it reserves no bytes for the CRC";
    "mpa.pad-left-out" [Fpdu(|fpdu| fpdu.resize_pad(|_| 0))]
        ["MPA-4.1-5", "MPA-2-5", "MPA-4.1-1"] "sends FPDUs without PAD";
    "mpa.pad-left-out-later" [Fpdu(|fpdu| if !fpdu.begins_stream() { fpdu.resize_pad(|_| 0) })]
        ["MPA-4.1-5", "MPA-2-5", "MPA-4.1-1"] "sends PAD only in the first FPDU";
    "mpa.pad-not-zero" [Fpdu(|fpdu| fpdu.octets = fpdu.compose(fpdu.ulpdu, fpdu.framing.phase(), right_marker, 0xff))]
        ["MPA-4.1-3", "MPA-2-5"] "sends 0xff in the bytes of PAD";
    "mpa.pad-of-ulpdu" [Fpdu(|fpdu| fpdu.resize_pad(|pad| (pad + 2) % 4))]
        ["MPA-4.1-5", "MPA-4.1-6"] "pads the ULPDU instead of the FPDU to a multiple of four bytes";
    "mpa.refuses-marker-bits" [Refuses(|fpdu| fpdu.markers().any(|marker| marker.fpduptr & 3 != 0))]
        ["MPA-4.2-6", "MPA-4.3-9"] "rejects a marker if the low bits of its FPDUPTR are set";
    "mpa.refuses-marker-in-header" [Refuses(|fpdu| fpdu.markers().any(|marker| matches!(marker.expected, 4 | 8)))]
        ["MPA-6-4", "RDMAP-5.3-5", "RDMAP-5.2.1-18"] "rejects an FPDU with a marker 4 or 8 bytes after the start of ULPDU_Length";
    "mpa.refuses-marker-reserved" [Refuses(|fpdu| fpdu.markers().any(|marker| marker.reserved != 0))]
        ["MPA-4.2-3"] "rejects a marker whose reserved half is not zero";
    "mpa.refuses-pad" [Refuses(|fpdu| fpdu.pad().flatten().any(|octet| *octet != 0))]
        ["MPA-4.1-4"] "rejects an FPDU whose PAD is not zero";
    "mpa.refuses-short-ulpdu" [Refuses(|fpdu| fpdu.layout().ulpdu_length < 20)]
        ["MPA-3-5"] "rejects an FPDU with a ULPDU of less than 20 bytes";
    "mpa.refuses-ulpdu-over-127" [Refuses(|fpdu| fpdu.layout().ulpdu_length > 127)]
        ["MPA-5.2-1"] "rejects an FPDU whose ULPDU_Length needs more than seven bits";
    "mpa.two-ulpdus" [Fpdu(|fpdu| {
        let twice = [fpdu.ulpdu, fpdu.ulpdu].concat();
        if fpdu.ulpdu.len() <= 64 {
            fpdu.octets = fpdu.compose(&twice, fpdu.framing.phase(), right_marker, 0);
        }
    })] ["MPA-3-7", "MPA-B.1-1"] "sends a short ULPDU twice in its FPDU";
}
