//! Tests the three passes on synthetic connections.

use super::{Counts, Planner, Scrubber, Survey};
use crate::dissector::Dissector;
use crate::finding::Finding;
use crate::testing::{Marked, Wire, fpdu, hex, reply_frame, send_of, startup_frame, with_crc};

/// Starts the third pass.
fn scrubber(wire: &Wire) -> Scrubber {
    let mut survey = Survey::default();
    wire.feed(&mut survey);
    let mut planner = Planner::new(survey);
    let mut dissector = Dissector::default();
    wire.each(|frame| planner.frame(frame, &mut dissector));
    dissector.finish(&mut planner);
    planner.finish(Dissector::default())
}

/// The frames after the replacement, and the counts.
fn scrubbed(wire: &Wire) -> (Wire, Counts) {
    let mut scrubber = scrubber(wire);
    let mut frames = Vec::new();
    wire.each(|frame| frames.push((frame.time, scrubber.frame(frame).to_vec())));
    (wire.changed(|_| frames), scrubber.counts())
}

fn frames(wire: &Wire) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    wire.each(|frame| frames.push(frame.octets.to_vec()));
    frames
}

/// The findings without their texts. A text can contain a replaced value.
fn findings(wire: &Wire) -> Vec<String> {
    let shown = |finding: &Finding| {
        let Finding { requirement, severity, stream, direction, frame, range, locations, .. } = finding;
        format!("{requirement} {severity} {stream:?} {direction} {frame} {range:?} {locations:?}")
    };
    wire.findings().iter().map(shown).collect()
}

/// Checks that the findings stay the same, that a second replacement changes nothing, and that no
/// frame contains the text `SECRET`. Returns the new frames.
#[track_caller]
fn check(wire: &Wire) -> Wire {
    let (once, counts) = scrubbed(wire);
    assert_eq!(findings(&once), findings(wire));
    assert_eq!(counts.frames, wire.count() as u64);
    let (twice, again) = scrubbed(&once);
    assert_eq!(frames(&twice), frames(&once));
    assert_eq!(again.changed_octets, 0);
    for frame in frames(&once) {
        assert!(!frame.windows(6).any(|window| window == b"SECRET"), "{frame:02x?}");
    }
    once
}

/// The FPDU of an RDMA Write with this payload.
fn write(payload: &[u8]) -> Vec<u8> {
    fpdu(&[hex("c140 11223344 0000000000001000"), payload.to_vec()].concat())
}

/// The private data names NVMe. The command is an Identify, and the response has the same CID.
#[test]
fn keeps_the_capsules_of_nvme() {
    let (mut request, mut accept) = (hex("0000 0000 2000 1f00"), hex("0000 2000"));
    request.resize(32, 0);
    accept.resize(32, 0);
    let mut wire = Wire::started_as(&startup_frame(0x40, 1, &request), &reply_frame(0x40, 1, &accept));
    let mut command = hex("0640 0100 00000000 0000000000000000 0000000000000000");
    command.extend(hex("0000000000100000 001000 11223344 40 01000000"));
    command.resize(64, 0);
    let response = hex("00000000 00000000 0200 0000 0100 0000");
    let send = |octets: &[u8]| fpdu(&[&hex("4143 00000000 00000000 00000001 00000000")[..], octets].concat());
    wire.send(0, &send(&[&command[..], b"SECRET"].concat()));
    wire.send(1, &send(&response));
    let found = frames(&check(&wire));
    // The DDP header ends at offset 20 of the FPDU.
    assert_eq!(found[4][74..138], command);
    assert_eq!(&found[4][138..144], b"VVVVVV");
    assert_eq!(found[5][74..90], response);
}

#[test]
fn replaces_payload_and_addresses() {
    let mut wire = Wire::started_as(
        &startup_frame(0x40, 1, b"SECRET private data"),
        &reply_frame(0x40, 1, b"SECRET private data"),
    );
    wire.send(0, &write(b"a SECRET value"));
    wire.send(0, &fpdu(&[hex("4143 00000000 00000000 00000001 00000000"), b"SECRET".to_vec()].concat()));
    wire.send(1, &fpdu(&send_of(1, 30)));
    let once = check(&wire);
    let found = frames(&once);
    // The addresses of Ethernet and IPv4, in the order of their first frame.
    assert_eq!(found[0][..12], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    assert_eq!(found[0][26..34], [198, 18, 0, 1, 198, 18, 0, 2]);
    assert_eq!(found[1][26..34], [198, 18, 0, 2, 198, 18, 0, 1]);
    let payload = &found[4][54..];
    assert_eq!(payload[..16], write(b"a SECRET value")[..16]);
    assert_eq!(payload[16..30], [b'V'; 14]);
    assert_eq!(*payload, write(&[b'V'; 14]), "the CRC is the CRC of the new octets");
    check(&wire.over_ipv6());
    check(&wire.over(&[0x81, 0, 0, 7]));
}

#[test]
fn markers_stay_at_their_positions() {
    let mut wire = Wire::started_with_markers();
    let mut sender = Marked::default();
    let secret = b"SECRET".repeat(150);
    for msn in 1..=3 {
        let head = hex(&format!("4143 00000000 00000000 {msn:08x} 00000000"));
        wire.send(0, &sender.fpdu(&[head, secret.clone()].concat()));
    }
    let once = check(&wire);
    let mut counter = Marked::default();
    let head = hex("4143 00000000 00000000 00000001 00000000");
    assert_eq!(frames(&once)[4][54..], counter.fpdu(&[head, vec![b'V'; 900]].concat()));
}

/// The FPDU is in two segments. The second segment arrives first, and the first segment is sent
/// twice, with other boundaries.
#[test]
fn retransmissions_and_reordered_segments_agree() {
    let mut wire = Wire::started();
    let octets = write(&b"SECRET".repeat(20));
    let (one, other) = octets.split_at(50);
    wire.swapped(|wire| wire.send(0, one), |wire| wire.send(0, other));
    wire.send_again(0, octets.len() as u32, &octets[..70]);
    wire.send(0, &write(b"SECRET"));
    check(&wire);
}

#[test]
fn wrong_checksums_and_crcs_stay_wrong() {
    let mut wire = Wire::started();
    wire.send(0, &fpdu(&send_of(1, 30)));
    let octets = write(b"SECRET SECRET");
    // A wrong TCP checksum, and a retransmission.
    wire.send_damaged(0, &octets, 20);
    wire.send(0, &octets);
    // A CRC of zero, a wrong CRC, and a CRC with reversed octets.
    for field in [[0; 4], [1, 2, 3, 4]] {
        let mut bad = write(b"SECRET SECRET");
        let at = bad.len() - 4;
        bad[at..].copy_from_slice(&field);
        wire.send(0, &bad);
    }
    let mut reversed = write(b"SECRET SECRET");
    let at = reversed.len() - 4;
    reversed[at..].reverse();
    wire.send(0, &reversed);
    wire.send(1, &fpdu(&send_of(1, 30)));
    let once = check(&wire);
    assert!(!once.findings().is_empty());
}

/// A damaged FPDU with a correct TCP checksum, and a retransmission of the correct FPDU.
#[test]
fn an_fpdu_that_a_retransmission_repairs_stays_repaired() {
    let mut wire = Wire::started();
    let good = write(b"SECRET SECRET");
    let mut bad = good.clone();
    bad[20] ^= 1;
    wire.send(0, &bad);
    wire.send_again(0, good.len() as u32, &good);
    wire.send(0, &write(b"SECRET"));
    wire.send(1, &fpdu(&send_of(1, 30)));
    check(&wire);
}

/// The first FPDU of each connection has a known error: ULPDU_Length is little-endian, counts
/// itself and the CRC, or the FPDU has the wrong number of PAD octets.
#[test]
fn errors_of_the_sender_stay_visible() {
    for first in [
        "1300 4143 00000000 00000000 00000001 00000000 2a 000000",
        "0019 4143 00000000 00000000 00000001 00000000 2a 000000",
        "0013 4143 00000000 00000000 00000001 00000000 2a",
        "0014 4143 00000000 00000000 00000001 00000000 2a2b 0000 00000000",
    ] {
        let mut wire = Wire::started();
        wire.send(0, &with_crc(hex(first)));
        // Send more octets than the swapped length announces.
        (0..200).for_each(|_| wire.send(0, &fpdu(&send_of(2, 34))));
        assert!(!wire.errors().is_empty(), "{first}");
        check(&wire);
    }
    let mut garbage = Wire::started();
    garbage.send(0, &fpdu(&send_of(1, 30)));
    garbage.send(0, b"SECRET octets that are not an FPDU, and some others");
    garbage.send(0, &fpdu(&send_of(2, 30)));
    check(&garbage);
}

#[test]
fn a_connection_of_another_protocol_is_filled() {
    let mut wire = Wire::connected();
    wire.send(0, b"GET /SECRET HTTP/1.1\r\nHost: SECRET\r\n\r\n");
    wire.send(1, b"HTTP/1.1 200 OK\r\n\r\nSECRET");
    let once = check(&wire);
    assert!(frames(&once)[2][54..].iter().all(|octet| *octet == b'V'));
}

#[test]
fn messages_of_a_port_mapper_have_the_mapped_addresses() {
    // A PMReq for port 4420 of 10.0.0.1, from 10.0.0.2.
    let request = hex(concat!(
        "04 00 0000 1144 9c40 0000000000000007",
        "0a000002 000000000000000000000000 0a000001 000000000000000000000000",
    ));
    let wire = Wire::connected_after(&[(0, request)]);
    let once = check(&wire);
    let message = &frames(&once)[0][42..];
    assert_eq!(message[..16], hex("04 00 0000 1144 9c40 0000000000000007"));
    assert_eq!((&message[16..20], &message[32..36]), (&[198, 18, 0, 1][..], &[198, 18, 0, 2][..]));
}

/// The frame as two fragments of its IPv4 packet, if it has enough octets. The second fragment
/// comes first. A frame has 14 octets of Ethernet and 20 octets of IPv4.
fn fragments((time, frame): (u64, Vec<u8>)) -> Vec<(u64, Vec<u8>)> {
    const FIRST: usize = 40;
    let Some((first, second)) = frame[34..].split_at_checked(FIRST).filter(|(_, second)| !second.is_empty()) else {
        return vec![(time, frame)];
    };
    let part = |payload: &[u8], position: u16| {
        let mut octets = [&frame[..34], payload].concat();
        octets[16..18].copy_from_slice(&u16::try_from(20 + payload.len()).unwrap().to_be_bytes());
        // Identification, and the offset with the flag More Fragments.
        octets[18..20].copy_from_slice(&u16::try_from(time / 1_000_000).unwrap().to_be_bytes());
        octets[20..22].copy_from_slice(&position.to_be_bytes());
        (time, octets)
    };
    vec![part(second, FIRST as u16 / 8), part(first, 0x2000)]
}

#[test]
fn fragments_of_segments_are_replaced_like_segments() {
    let mut wire = Wire::started();
    wire.send(0, &write(b"SECRET SECRET SECRET"));
    wire.send(1, &fpdu(&send_of(1, 60)));
    wire.send(0, &write(b"SECRET"));
    let wire = wire.changed(|frames| frames.into_iter().flat_map(fragments).collect());
    assert!(wire.count() > 7);
    let once = check(&wire);
    assert_eq!(scrubbed(&once).1.fragments, 0);
}

/// The snap length cuts the payload of all FPDUs.
#[test]
fn frames_that_are_cut_have_no_payload() {
    let mut wire = Wire::started();
    for _ in 0..3 {
        wire.send(0, &write(&b"SECRET".repeat(40)));
    }
    let cut = wire.cut_to(120);
    let mut scrubber = scrubber(&cut);
    cut.each(|frame| {
        let octets = scrubber.frame(frame);
        assert_eq!(octets.len(), frame.octets.len());
        assert!(!octets.windows(6).any(|window| window == b"SECRET"));
    });
    assert_eq!(scrubber.counts().cut_frames, 3);
}
