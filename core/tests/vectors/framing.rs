//! Tests the FPDUs of RFC 5044 Figures 4 to 6, FPDUs with each length of PAD, and FPDUs with
//! markers at the first and the last possible positions.

use weft_core::wire::mpa::fpdu::Piece;
use weft_core::wire::mpa::{Fpdu, Layout, fpdu};
use weft_core::wire::rdmap::Opcode;

use super::{both_ways, crc_field, framed, hex, tagged, unframed, untagged};

fn send(msn: u32, payload: &[u8]) -> Vec<u8> {
    untagged(Opcode::SEND, 0, msn, payload)
}

/// Returns the ULPDU of a Write to STag 0x11223344 and TO 0x1000. Its payload is the octets 1 to
/// `octets`.
fn write(octets: u8) -> Vec<u8> {
    tagged(Opcode::WRITE, 0x1122_3344, 0x1000, &(1..=octets).collect::<Vec<u8>>())
}

const ZEROES: &str = "000000000000000000000000000000000000000000000000";

#[test]
fn figure_5_a_send_after_the_first_marker() {
    let expected = hex(&format!("00000000 002a4143 00000000 00000000 00000001 00000000 {ZEROES} 52239983"));
    both_ways(0, true, &send(1, &[0; 24]), &expected);
}

#[test]
fn figure_6_a_marker_in_the_payload() {
    let expected = hex(&format!("002a4143 00000000 00000000 00000002 00000000 00000014 {ZEROES} 84925898"));
    both_ways(0x1ec, true, &send(2, &[0; 24]), &expected);
}

#[test]
fn figure_5_without_its_marker() {
    crc_field(&send(1, &[0; 24]), "b7243ec3");
}

/// The ULPDU of Figure 4 is not a DDP segment. The framing does not depend on the content of the
/// ULPDU.
#[test]
fn figure_4_a_marker_twelve_octets_after_the_length() {
    let ulpdu: Vec<u8> = (0..16).collect();
    let expected = hex("00100001 02030405 06070809 0000000c 0a0b0c0d 0e0f0000 105b1c88");
    both_ways(500, true, &ulpdu, &expected);
}

#[test]
fn three_octets_of_pad() {
    let expected = hex("0013c140 11223344 00000000 00001000 01020304 05000000 6549c47f");
    both_ways(0, false, &write(5), &expected);
}

#[test]
fn two_octets_of_pad() {
    crc_field(&write(6), "2b19a2e2");
    assert_eq!(fpdu::pad_len(20), 2);
}

#[test]
fn one_octet_of_pad() {
    crc_field(&write(7), "56201ced");
    assert_eq!(framed(0, false, &write(7))[..2], [0x00, 0x15]);
}

#[test]
fn no_pad() {
    crc_field(&write(8), "d168b1f9");
    assert_eq!(fpdu::pad_len(22), 0);
}

#[test]
fn a_marker_after_four_octets() {
    let expected = hex("001a4143 00000004 00000000 00000000 00000001 00000000 00010203 04050607 43df15f1");
    both_ways(508, true, &send(1, &[0, 1, 2, 3, 4, 5, 6, 7]), &expected);
}

#[test]
fn a_marker_between_pad_and_crc() {
    let expected = hex("0013c140 11223344 00000000 00001000 01020304 05000000 00000018 2a1da437");
    both_ways(488, true, &write(5), &expected);
}

#[test]
fn a_marker_due_after_the_crc_belongs_to_the_next_fpdu() {
    let first = framed(484, true, &write(5));
    assert_eq!(first[first.len() - 4..], hex("6549c47f"));
    assert_eq!(484 + first.len(), 512);
    let next = hex("00000000 0013c140 11223344 00000000 00001000 01020304 05000000 e262f60c");
    both_ways(512, true, &write(5), &next);
}

/// The FPDU fills a TCP segment of 1460 octets.
#[test]
fn three_markers_in_1442_octets() {
    let ulpdu = send(1, &(0..1424).map(|i| u8::try_from(i % 256).unwrap()).collect::<Vec<u8>>());
    assert_eq!(ulpdu.len(), 1442);
    let octets = framed(0, true, &ulpdu);
    assert_eq!((octets.len(), &octets[1456..]), (1460, &hex("5dddaf4a")[..]));
    let markers = |start, octets| {
        let fpdu = Fpdu::new(octets, Layout::new(start, 1442, Some(0))).unwrap();
        fpdu.markers().map(|marker| (marker.offset, marker.fpduptr)).collect::<Vec<_>>()
    };
    assert_eq!(markers(0, &octets), [(0, 0), (512, 0x1fc), (1024, 0x3fc)]);
    assert_eq!(unframed(0, true, &octets), ulpdu);
    let octets = framed(508, true, &ulpdu);
    assert_eq!(markers(508, &octets), [(4, 0x0004), (516, 0x0204), (1028, 0x0404)]);
}

#[test]
fn an_empty_fpdu() {
    both_ways(0, false, &[], &hex("00000000 c74b6748"));
}

/// Tests the TCP sequence numbers of the first markers by the rules of RFC 5044 section 4.3.
/// `start` is the sequence number after the start-up frame. In the last assertion, the sequence
/// number wraps.
#[test]
fn marker_positions_in_sequence_numbers() {
    let first = |start: u32, markers: usize| -> Vec<u32> {
        let positions = Layout::new(0, 2000, Some(0)).pieces().filter_map(|piece| match piece {
            Piece::Marker { position, .. } => Some(u32::try_from(position).unwrap()),
            Piece::Body(_) => None,
        });
        positions.map(|at| start.wrapping_add(at)).take(markers).collect()
    };
    assert_eq!(first(11, 3), [11, 523, 1035]);
    assert_eq!(first(1021, 3), [1021, 1533, 2045]);
    assert_eq!(first(5025, 1), [5025]);
    assert_eq!(first(0xffff_ff00, 3), [0xffff_ff00, 0x0000_0100, 0x0000_0300]);
}
