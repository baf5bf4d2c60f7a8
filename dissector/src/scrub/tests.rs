//! Tests the three passes on synthetic connections.

use super::{Counts, Planner, Scrubber, Survey};
use crate::dissector::Dissector;
use crate::finding::Finding;
use crate::sink::Sink;
use crate::testing::{Marked, Wire, fpdu, hex, reply_frame, send_of, startup_frame, with_crc};
use crate::unit::Unit;
use crate::upper::UlpMessage;

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

/// The messages of the recognised protocols above RDMAP.
fn messages(wire: &Wire) -> Vec<UlpMessage> {
    #[derive(Default)]
    struct Collect(Vec<UlpMessage>);
    impl Sink for Collect {
        fn unit(&mut self, unit: &Unit<'_>) {
            self.0.extend(unit.context.and_then(|context| context.ulp_message));
        }
    }
    let mut found = Collect::default();
    wire.feed(&mut found);
    found.0
}

/// Checks that the findings and the messages above RDMAP stay the same, that a second replacement
/// changes nothing, and that no frame contains the text `SECRET`. Returns the new frames.
#[track_caller]
fn check(wire: &Wire) -> Wire {
    let (once, counts) = scrubbed(wire);
    assert_eq!(findings(&once), findings(wire));
    assert_eq!(messages(&once), messages(wire));
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

/// The private data of `smb-ops.pcap`: IRD and ORD. The client sends them in little-endian order.
const IRD_AND_ORD: [&str; 2] = ["20000000 01000000", "00000001 00000008"];

#[test]
fn keeps_ird_and_ord_of_smb_direct_in_both_byte_orders() {
    let started = |port, texts: [&[u8]; 2]| {
        let mut wire = Wire::connected_to(port);
        wire.send(0, &startup_frame(0x40, 1, texts[0]));
        wire.send(1, &reply_frame(0x40, 1, texts[1]));
        wire
    };
    let private_data = |wire: &Wire| {
        let found = frames(&check(wire));
        [2, 3].map(|frame: usize| found[frame][54 + 20..54 + 28].to_vec())
    };
    let words = IRD_AND_ORD.map(hex);
    let filled = [[b'V'; 8]; 2].map(|octets| octets.to_vec());
    assert_eq!(private_data(&started(5445, [&words[0], &words[1]])), words);
    // On this port, other private data is replaced, too.
    assert_eq!(private_data(&started(5445, [b"aSECRETb", b"\x01\0\0\0\0\0\0\x01"])), filled);
    // On another port, only a message proves SMB Direct.
    let mut wire = started(4210, [&words[0], &words[1]]);
    assert_eq!(private_data(&wire), filled);
    let negotiate = hex("00010001 0000 0a00 00040000 00200000 00000200");
    wire.send(0, &fpdu(&[hex("4143 00000000 00000000 00000001 00000000"), negotiate].concat()));
    assert_eq!(private_data(&wire), words);
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

/// A connection with these Sends. The first Send is in frame 5.
fn sends(sends: &[(usize, Vec<u8>)]) -> Wire {
    let (mut wire, mut msn) = (Wire::started(), [0_u32; 2]);
    for (direction, octets) in sends {
        msn[*direction] += 1;
        let head = hex(&format!("4143 00000000 00000000 {:08x} 00000000", msn[*direction]));
        wire.send(*direction, &fpdu(&[head, octets.clone()].concat()));
    }
    wire
}

/// The octets of the Send number `index` of [`sends`], and after it the padding and the CRC.
fn content(wire: &Wire, index: usize) -> Vec<u8> {
    // The headers of Ethernet, IPv4 and TCP have 54 octets.
    frames(wire)[4 + index][54 + 2 + 18..].to_vec()
}

/// A Connect command with its data, a Write with its data, and their responses.
#[test]
fn capsules_of_nvme_have_no_names_and_no_data() {
    let entry = |head: &str, len: &str, dwords: &str| {
        let zero = "0000000000000000";
        let mut entry = hex(&format!("{head} {zero} {zero} {zero} {len} 000000 01 {dwords}"));
        entry.resize(64, 0);
        entry
    };
    let mut data = b"SECRET host id\x05\x06\xff\xff".to_vec();
    for name in [&b"nqn.2014-08.SECRET"[..], b"nqn.2014-08.SECRET host"] {
        data.resize(data.len().next_multiple_of(256), 0);
        data.extend_from_slice(name);
    }
    data.resize(1024, 0);
    let write = [entry("0140 0c00 01000000", "0c000000", "10000000"), b"SECRETSECRET".to_vec()].concat();
    let wire = sends(&[
        (0, [entry("7f40 0000 01000000", "00040000", "0000 0100 1f00 0000"), data].concat()),
        (1, hex("0100000000000000 0100 0000 0000 0000")),
        (0, write.clone()),
        (1, hex("0000000000000000 0200 0000 0c00 0000")),
    ]);
    assert_eq!(messages(&wire).len(), 4);
    let once = check(&wire);
    let connect = content(&once, 0);
    assert_eq!(connect[64..82], *b"VVVVVVVVVVVVVVVV\xff\xff");
    assert_eq!(connect[64 + 256..64 + 276], *b"nqn.VVVVVVVVVVVVVV\0V");
    assert_eq!(connect[64 + 512..64 + 537], *b"nqn.VVVVVVVVVVVVVVVVVVV\0V");
    assert_eq!(content(&once, 2)[..76], [&write[..64], b"VVVVVVVVVVVV"].concat());
}

/// A Login with text keys, and a SCSI Command with data. Their responses have text keys and sense
/// data.
#[test]
fn pdus_of_iser_have_no_values_and_no_data() {
    let send = |bhs: &str, data: &[u8]| {
        let header = "10000000 00000000 0000000000000000 00000000 0000000000000000";
        let mut octets = [hex(header), hex(bhs), data.to_vec()].concat();
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    };
    let zero = "00000000 00000000";
    let text = b"InitiatorName=iqn.2026-11.SECRET\0SessionType=Normal\0";
    let login = format!("43870000 {:08x} 00023d00 00010000 {zero} 00000001 00000000 {zero} {zero}", text.len());
    let answer = b"TargetAlias=SECRET";
    let accepted =
        format!("23870000 {:08x} 00023d00 00010001 {zero} ecc6c67c 00000001 00000001 00000000 {zero}", answer.len());
    let write =
        format!("01a10000 0000000c {zero} 11000000 00000200 0000002f 02ff1fee 2a000000 00800000 01000000 00000000");
    let failed = format!("21800002 00000014 {zero} 11000000 00000000 02ff1fda 0000001c 0000005b 00000000 {zero}");
    let sense = hex("0012 700005000000000a00000000200000000000");
    let wire = sends(&[
        (0, send(&login, text)),
        (1, send(&accepted, answer)),
        (0, send(&write, b"SECRETSECRET")),
        (1, send(&failed, &sense)),
    ]);
    assert_eq!(messages(&wire).len(), 4);
    let once = check(&wire);
    assert_eq!(content(&once, 0)[76..][..text.len()], *b"InitiatorName=VVVVVVVVVVVVVVVVVV\0SessionType=VVVVVV\0");
    assert_eq!(content(&once, 1)[76..][..answer.len()], *b"TargetAlias=VVVVVV");
    assert_eq!(content(&once, 2)[76..88], [b'V'; 12]);
    assert_eq!(content(&once, 3)[76..96], sense);
}

/// A LOOKUP of NFS version 3, and its reply with a file handle. In the copy, the arguments and the
/// results cannot be decoded.
#[test]
fn messages_of_rpc_have_no_names_and_no_file_handles() {
    let head = "12345678 00000001 00000020 00000000 00000000 00000000 00000000 12345678";
    let padded = |text: &[u8]| {
        let len = u32::try_from(text.len()).unwrap().to_be_bytes();
        let mut octets = [&len[..], text].concat();
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    };
    // Credentials AUTH_SYS with the name of the client, and no verifier.
    let name = padded(b"SECRET");
    let credentials = padded(&[&hex("00000007")[..], &name, &hex("00000000 00000000 00000000")].concat());
    let call = [
        hex(&format!("{head} 00000000 00000002 000186a3 00000003 00000003 00000001")),
        credentials,
        hex("00000000 00000000"),
        padded(b"SECRET file handle"),
        padded(b"SECRET.txt"),
    ]
    .concat();
    let status = hex(&format!("{head} 00000001 00000000 00000000 00000000 00000000 00000000"));
    let reply = [status, padded(b"SECRET file handle"), hex("00000000 00000000")].concat();
    let wire = sends(&[(0, call), (1, reply)]);
    assert_eq!(messages(&wire).len(), 2);
    let once = check(&wire);
    assert!(once.errors().is_empty());
    // The headers of RPC-over-RDMA, and the XID, the type and the next word of the RPC message.
    assert_eq!(content(&once, 0)[..41], [&hex(head)[..], &hex("00000000 00000002"), b"V"].concat());
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
