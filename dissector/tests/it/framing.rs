//! These tests check how the dissector finds units (start-up frames, FPDUs) in TCP segments. They
//! cover start-up frames, all splits into segments, the roles of the endpoints, gaps, and captures
//! that start in mid-stream.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use crate::common::{TestDissector, fpdus, hex, send, startup, unit_fields};
use serde_json::Value;

const CRC: u8 = 0x40;
const MARKERS: u8 = 0x80;
const REJECT: u8 = 0x20;

fn sends(count: u32, length: usize) -> Vec<Vec<u8>> {
    (1..=count).map(|msn| send(msn, &vec![msn as u8; length])).collect()
}

/// The units from port 49152, without their frame numbers.
fn without_frames(mut units: Vec<Value>) -> Vec<Value> {
    units.retain(|unit| unit["src"].as_str().unwrap().ends_with(":49152"));
    for unit in &mut units {
        unit.as_object_mut().unwrap().remove("frame");
        unit.as_object_mut().unwrap().remove("time");
    }
    units
}

/// RFC 5044 section 7.1.2: how TCP splits octets into segments does not change the meaning of the
/// octets.
#[test]
fn every_split_in_two_or_three_gives_the_same_units() {
    for (markers, flags) in [(false, CRC), (true, CRC | MARKERS)] {
        let mut stream = startup(false, CRC, 1, b"private");
        stream.extend(fpdus(&sends(4, 37), markers, true));
        let read = |cuts: &[usize]| {
            let mut dissector = TestDissector::opened();
            let mut from = 0;
            for to in cuts.iter().copied().chain([stream.len()]) {
                dissector.data(0, from, &stream[from..to]);
                if from == 0 {
                    dissector.data(1, 0, &startup(true, flags, 1, b""));
                }
                from = to;
            }
            without_frames(dissector.finish())
        };
        let unsplit = read(&[]);
        let statuses = unit_fields(&unsplit, 0, "crc_status");
        assert_eq!(statuses[0], "mpa_request null");
        assert_eq!(statuses[1..], vec!["fpdu \"good\""; 4]);
        for cut in 1..stream.len() {
            assert_eq!(read(&[cut]), unsplit, "cut at {cut}");
            let second = (cut * 7919) % stream.len();
            if second > cut {
                assert_eq!(read(&[cut, second]), unsplit, "cuts at {cut}, {second}");
            }
        }
        assert_eq!(read(&(1..stream.len()).collect::<Vec<_>>()), unsplit, "octet by octet");
    }
}

#[test]
fn any_order_of_segments_gives_the_same_units() {
    let mut stream = startup(false, CRC, 1, b"");
    stream.extend(fpdus(&sends(6, 20), false, true));
    let pieces: Vec<(usize, &[u8])> = stream.chunks(17).enumerate().map(|(n, piece)| (n * 17, piece)).collect();
    let read = |order: &[usize]| {
        let mut dissector = TestDissector::opened();
        dissector.data(1, 0, &startup(true, CRC, 1, b""));
        for index in order {
            dissector.data(0, pieces[*index].0, pieces[*index].1);
        }
        without_frames(dissector.finish())
    };
    let forward: Vec<usize> = (0..pieces.len()).collect();
    let in_order = read(&forward);
    assert_eq!(unit_fields(&in_order, 0, "crc_status").len(), 7);
    assert_eq!(read(&forward.iter().rev().copied().collect::<Vec<_>>()), in_order);
    for step in [3, 5, 7] {
        // If the step is not coprime to the number of pieces, this order leaves out some pieces. So
        // all pieces are added again at the end.
        let mut order: Vec<usize> = (0..pieces.len()).map(|n| n * step % pieces.len()).collect();
        order.extend(&forward);
        assert_eq!(read(&order), in_order, "step {step}");
    }
}

/// Each end decides whether its peer sends markers, by flag M (RFC 5044 section 7.1.1).
#[test]
fn markers_are_in_the_direction_that_the_peer_requested() {
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, &startup(false, CRC, 1, b""));
    dissector.data(1, 0, &startup(true, CRC | MARKERS, 1, b""));
    dissector.data(0, 20, &fpdus(&sends(2, 600), true, true));
    dissector.data(1, 20, &fpdus(&sends(2, 600), false, true));
    let units = dissector.finish();
    assert_eq!(unit_fields(&units, 0, "marker_status"), ["mpa_request null", "fpdu \"good\"", "fpdu \"good\""]);
    assert_eq!(unit_fields(&units, 1, "marker_status"), ["mpa_reply null", "fpdu \"none\"", "fpdu \"none\""]);
    // RFC 5044 section 4.3: the markers are at 0, 512 and so on. The second marker points back to
    // ULPDU_Length, which follows the first marker and is 508 octets before the second.
    assert_eq!(unit_fields(&units, 0, "iwarp_mpa.marker_fpduptr")[1], "fpdu [0,508]");
}

/// RFC 5044 section 7.1.1: the MPA Initiator need not be the endpoint that opened the TCP
/// connection.
#[test]
fn the_listener_may_send_the_request() {
    let mut dissector = TestDissector::opened();
    dissector.data(1, 0, &startup(false, CRC, 1, b""));
    dissector.data(0, 0, &startup(true, 0, 1, b""));
    dissector.data(1, 20, &fpdus(&sends(1, 5), false, true));
    let units = dissector.finish();
    assert_eq!(unit_fields(&units, 1, "crc_status"), ["mpa_request null", "fpdu \"good\""]);
    assert_eq!(unit_fields(&units, 0, "iwarp_mpa.rev"), ["mpa_reply 1"]);
}

/// RFC 5044 Appendix C: revision 0 with the flag M means that both directions have markers and CRC.
#[test]
fn rdma_consortium_mode_has_markers_and_crc_both_ways() {
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, &startup(false, 0, 0, b""));
    dissector.data(1, 0, &startup(true, MARKERS, 0, b""));
    for from in [0, 1] {
        dissector.data(from, 20, &fpdus(&sends(1, 600), true, true));
    }
    let units = dissector.finish();
    for from in [0, 1] {
        assert_eq!(unit_fields(&units, from, "marker_status")[1], "fpdu \"good\"");
        assert_eq!(unit_fields(&units, from, "crc_status")[1], "fpdu \"good\"");
    }
}

/// RFC 5044 section 7.1.1: after a Reply with the flag R, the connection returns to streaming mode.
#[test]
fn after_a_reject_all_octets_are_streaming() {
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, &startup(false, CRC, 1, b""));
    dissector.data(1, 0, &startup(true, REJECT | CRC, 1, b"no"));
    dissector.data(0, 20, &fpdus(&sends(1, 5), false, true));
    dissector.data(1, 22, b"bye");
    let units = dissector.finish();
    assert_eq!(unit_fields(&units, 0, "len"), ["mpa_request null", "streaming 32"]);
    assert_eq!(unit_fields(&units, 1, "len"), ["mpa_reply null", "streaming 3"]);
}

#[test]
fn without_crc_the_field_is_not_looked_at() {
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, &startup(false, 0, 1, b""));
    dissector.data(1, 0, &startup(true, 0, 1, b""));
    dissector.data(0, 20, &fpdus(&sends(2, 5), false, false));
    assert_eq!(unit_fields(&dissector.finish(), 0, "crc_status")[1..], ["fpdu \"unchecked\"", "fpdu \"unchecked\""]);
}

#[test]
fn a_lost_segment_is_a_gap_and_fpdus_continue_after_it() {
    let stream = fpdus(&sends(5, 30), false, true);
    let length = stream.len() / 5;
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, &startup(false, CRC, 1, b""));
    dissector.data(1, 0, &startup(true, CRC, 1, b""));
    for n in [0, 3, 4] {
        dissector.data(0, 20 + n * length, &stream[n * length..(n + 1) * length]);
    }
    let units = dissector.finish();
    let lost = 2 * length;
    let expected = ["mpa_request null", "fpdu null", &format!("gap {lost}"), "fpdu null", "fpdu null"];
    assert_eq!(unit_fields(&units, 0, "len"), expected);
    assert_eq!(unit_fields(&units, 0, "iwarp_ddp.msn")[3..], ["fpdu 4", "fpdu 5"]);
}

#[test]
fn part_of_an_fpdu_lost_leaves_it_incomplete() {
    let stream = fpdus(&sends(2, 300), false, true);
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, &startup(false, CRC, 1, b""));
    dissector.data(1, 0, &startup(true, CRC, 1, b""));
    dissector.data(0, 20, &stream[..100]);
    dissector.data(0, 20 + 200, &stream[200..]);
    let units = dissector.finish();
    assert_eq!(unit_fields(&units, 0, "crc_status")[1..], ["fpdu \"truncated\"", "fpdu \"good\""]);
    assert_eq!(unit_fields(&units, 0, "incomplete")[1], "fpdu 1");
}

#[test]
fn framing_lost_by_a_wrong_length_is_found_again_by_crc() {
    let mut stream = fpdus(&sends(4, 30), false, true);
    let length = stream.len() / 4;
    stream[length..length + 2].copy_from_slice(&[0x7f, 0xff]);
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, &startup(false, CRC, 1, b""));
    dissector.data(1, 0, &startup(true, CRC, 1, b""));
    dissector.data(0, 20, &stream);
    // According to its wrong length, the FPDU ends within these octets. No FPDU starts at the
    // position after this end.
    dissector.data(0, 20 + stream.len(), &vec![0xee; 40_000]);
    let units = dissector.finish();
    let lengths = unit_fields(&units, 0, "len");
    assert_eq!(
        lengths[..5],
        ["mpa_request null", "fpdu null", &format!("unparsed {length}"), "fpdu null", "fpdu null"]
    );
    assert_eq!(lengths[5..], ["unparsed 40000"]);
}

/// The capture starts anywhere in a stream. Two consecutive FPDUs with correct CRCs prove where
/// FPDUs begin.
#[test]
fn captures_that_begin_in_mid_stream_lock_with_and_without_markers() {
    for markers in [false, true] {
        let stream = fpdus(&sends(12, 100), markers, true);
        let mut dissector = TestDissector::default();
        dissector.data(0, 0, &stream[61..]);
        let units = dissector.finish();
        let (kinds, statuses) = (unit_fields(&units, 0, "len"), unit_fields(&units, 0, "marker_status"));
        assert!(kinds[0].starts_with("unparsed"), "{kinds:?}");
        assert_eq!(kinds.len(), 12, "the first FPDU is cut, and 11 FPDUs are complete");
        assert_eq!(statuses[11], if markers { "fpdu \"good\"" } else { "fpdu \"none\"" });
        assert_eq!(unit_fields(&units, 0, "crc_status")[1..], vec!["fpdu \"good\""; 11]);
    }
}

/// A possible Send of 65,520 octets starts at every fourth octet of the junk. The search has a
/// budget of octets for CRC checks, and this budget is too small for all these candidates.
#[test]
fn octets_full_of_headers_do_not_hide_fpdus_at_the_start_of_a_segment() {
    let junk = hex("fff0 4143").repeat(50_000);
    for markers in [false, true] {
        let stream = [junk.clone(), fpdus(&sends(40, 1000), markers, true)].concat();
        let mut dissector = TestDissector::default();
        let (first, rest) = stream.split_at(junk.len());
        for (index, segment) in first.chunks(1000).chain(rest.chunks(1000)).enumerate() {
            dissector.data(0, index * 1000, segment);
        }
        let units = dissector.finish();
        let (lengths, statuses) = (unit_fields(&units, 0, "len"), unit_fields(&units, 0, "crc_status"));
        assert_eq!(lengths[0], format!("unparsed {}", junk.len()), "markers: {markers}");
        assert_eq!(statuses[1..], vec!["fpdu \"good\""; 40], "markers: {markers}");
    }
}

#[test]
fn octets_that_prove_nothing_are_streaming() {
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, b"GET / HTTP/1.1\r\n");
    dissector.data(0, 16, b"\r\n");
    assert_eq!(unit_fields(&dissector.finish(), 0, "len"), ["streaming 18"]);
}

/// draft-pinkerton-iwarp-sdp-01 section 5.1: a Hello (MID 0, Len 32) is sent in streaming mode. The
/// fields of its words have one of two orders: the order of the draft's figures, or the mirrored
/// order (the order of InfiniBand's SDP).
#[test]
fn a_mirrored_hello_turns_the_fields_of_all_messages_around() {
    let figure = hex("0010 00 00 00000020 00000000 00000000 0004 00 11 00001000 00001000 0004 0004");
    let mirrored = hex("00 00 0010 00000020 00000000 00000000 11 00 0004 00001000 00001000 0004 0004");
    // A Data message (MID 0xFF) with 3 octets, 7 buffers, MSeq 5 and MSeqAck 2.
    let in_figure = hex("0007 00 ff 00000013 00000005 00000002 616263");
    let in_mirror = hex("ff 00 0007 00000013 00000005 00000002 616263");
    for (hello, data) in [(figure, in_figure), (mirrored, in_mirror)] {
        let mut dissector = TestDissector::opened();
        dissector.data(0, 0, &hello);
        dissector.data(1, 0, &startup(false, CRC, 1, b""));
        dissector.data(0, 32, &startup(true, CRC, 1, b""));
        dissector.data(0, 52, &fpdus(&[send(1, &data)], false, true));
        let units = dissector.finish();
        assert_eq!(unit_fields(&units, 0, "iwarp_sdp.mid"), ["sdp 0", "mpa_reply null", "fpdu null", "sdp 255"]);
        assert_eq!(unit_fields(&units, 0, "iwarp_sdp.bufs")[3], "sdp 7");
        assert_eq!(unit_fields(&units, 0, "payload_len")[3], "sdp 3");
    }
}

/// RFC 6581 section 9: the start-up frames have revision 2 and the flags S, A, C and D. The
/// ready-to-receive FPDU is a zero-length RDMA Write.
#[test]
fn the_enhanced_start_up_has_its_fields() {
    let mut dissector = TestDissector::opened();
    dissector.data(0, 0, &startup(false, CRC | 0x10, 2, &hex("8004 c002 6869")));
    dissector.data(1, 0, &startup(true, CRC | 0x10, 2, &hex("8002 8004")));
    dissector.data(0, 26, &fpdus(&[hex("c1 40 00000000 0000000000000000")], false, true));
    let units = dissector.finish();
    for (key, value) in [("a_flag", "1"), ("ird", "4"), ("c_flag", "1"), ("d_flag", "1"), ("ord", "2"), ("s_flag", "1")]
    {
        assert_eq!(unit_fields(&units, 0, &format!("iwarp_mpa.{key}"))[0], format!("mpa_request {value}"), "{key}");
    }
    assert_eq!(unit_fields(&units, 1, "iwarp_mpa.d_flag")[0], "mpa_reply 0");
    assert_eq!(unit_fields(&units, 0, "payload_len")[1], "fpdu 0");
}

/// The receiver has sent M=0, but the sender nevertheless inserts markers. Some FPDUs are too short
/// to contain a marker.
#[test]
fn unrequested_markers_hide_no_fpdu() {
    for (flags, status) in [(CRC, "good"), (0, "unchecked")] {
        let mut dissector = TestDissector::opened();
        dissector.data(0, 0, &startup(false, flags, 1, b""));
        dissector.data(1, 0, &startup(true, flags, 1, b""));
        dissector.data(0, 20, &fpdus(&sends(9, 300), true, flags == CRC));
        let units = dissector.finish();
        assert_eq!(unit_fields(&units, 0, "crc_status")[1..], vec![format!("fpdu \"{status}\""); 9]);
        assert!(units.iter().any(|unit| unit["marker_status"] == "misplaced"), "{units:#?}");
    }
}
