//! Tests FPDUs that other stacks sent. The captures in `siw` are from the Linux kernel, with CRC
//! and without markers. The captures in `osc` are from a user-space stack, with markers and CRC.
//! The comment of each test names the capture and the frames that have the octets of the test.

use weft_core::wire::ddp::{Msn, Segment, Tagged, Untagged, UntaggedUlp};
use weft_core::wire::mpa::{Enhanced, Startup, StartupKind};
use weft_core::wire::rdmap::{Control, Opcode, ReadRequest};

use super::{framed, hex, unframed};

/// Reads the FPDU and emits its ULPDU again. The emitted FPDU must have the same octets.
fn ulpdu(position: u64, markers: bool, octets: &[u8]) -> Vec<u8> {
    let ulpdu = unframed(position, markers, octets);
    assert_eq!(framed(position, markers, &ulpdu), octets);
    ulpdu
}

/// Capture `siw/rping-p2p-crc`, frames 6 and 8.
#[test]
fn siw_starts_up_peer_to_peer() {
    let request = hex("4d504120494420526571204672616d65 50020004 8001c001");
    let frame = Startup::parse(&request).unwrap();
    let enhanced = Enhanced { peer_to_peer: true, rtr_send: false, ird: 1, rtr_write: true, rtr_read: true, ord: 1 };
    assert_eq!((frame.kind, frame.enhanced, frame.crc), (StartupKind::Request, Some(enhanced), true));
    let reply = hex("4d504120494420526570204672616d65 50020004 80018001");
    let frame = Startup::parse(&reply).unwrap();
    assert_eq!((frame.kind, frame.enhanced), (StartupKind::Reply, Some(Enhanced { rtr_read: false, ..enhanced })));
}

/// Capture `siw/probe-ops-crc`, frame 13. The FPDU has three octets of payload and one octet of
/// PAD.
#[test]
fn siw_sends() {
    let ulpdu = ulpdu(0, false, &hex("001541430000000000000000000000020000000005121f0056762f8e"));
    let (header, ulp, payload) = Untagged::parse(&ulpdu, 1).unwrap();
    assert_eq!(header, Untagged { last: true, qn: 0, msn: Msn::new(2), mo: 0 });
    assert_eq!((ulp.control, payload), (Control::new(Opcode::SEND, 1), &[0x05, 0x12, 0x1f][..]));
}

/// Capture `siw/probe-ops-crc`, frame 200.
#[test]
fn siw_invalidates_an_stag() {
    let ulpdu = ulpdu(0, false, &hex("001e4144e4ead90000000000000000060000000005121f2c394653606d7a8794f64ea0aa"));
    let (header, ulp, payload) = Untagged::parse(&ulpdu, 1).unwrap();
    let control = Control::new(Opcode::SEND_INVALIDATE, 1);
    assert_eq!((header.msn, ulp), (Msn::new(6), UntaggedUlp { control, word: 0xe4ea_d900 }));
    assert_eq!(payload.len(), 12);
}

/// Capture `siw/probe-ops-crc`, frame 24.
#[test]
fn siw_writes() {
    let ulpdu = ulpdu(0, false, &hex("0015c140e4ead90000007febb8db400005121f2c394653009e8714e3"));
    let (header, control, payload) = Tagged::parse(&ulpdu, 1).unwrap();
    assert_eq!(header, Tagged { last: true, stag: 0xe4ea_d900, tagged_offset: 0x7feb_b8db_4000 });
    assert_eq!((control.opcode(), payload.len()), (Opcode::WRITE, 7));
}

/// Capture `siw/probe-ops-crc`, frames 104 and 103.
#[test]
fn siw_reads() {
    let octets = hex(concat!(
        "002e4141000000000000000100000002000000",
        "0012296a0000007f352557b00000000021e4ead90000007febb8db40002122679a"
    ));
    let ulpdu = ulpdu(0, false, &octets);
    let (header, ulp, payload) = Untagged::parse(&ulpdu, 1).unwrap();
    assert_eq!((header.qn, header.msn, ulp.control.opcode()), (1, Msn::new(2), Opcode::READ_REQUEST));
    let expected = ReadRequest {
        sink_stag: 0x1229_6a00,
        sink_to: 0x7f35_2557_b000,
        rdmardsz: 0x21,
        src_stag: 0xe4ea_d900,
        src_to: 0x7feb_b8db_4000,
    };
    assert_eq!(ReadRequest::parse(payload), Ok(expected));
    let ulpdu = self::ulpdu(0, false, &hex("000ec1420000000000000000000000006975d6ca"));
    assert_eq!(Segment::parse(&ulpdu).unwrap().ulp_control().opcode(), Opcode::READ_RESPONSE);
}

/// Capture `siw/terminate-no-receive-crc`, frame 13. The CRC is correct, but the Terminate has
/// Layer and EType swapped.
#[test]
fn siw_terminates() {
    let octets = hex(concat!(
        "002a414700000000000000020000000100000000",
        "2102030000644143000000000000000000000001000000004b4c42d2"
    ));
    let ulpdu = ulpdu(0, false, &octets);
    let (header, ulp, _) = Untagged::parse(&ulpdu, 1).unwrap();
    assert_eq!((header.qn, header.msn, ulp.control.opcode()), (2, Msn::FIRST, Opcode::TERMINATE));
}

/// Checks a Send of the capture `osc/rfc-sweep-small-m1c1`. Its payload has `payload` octets. Each
/// octet is higher by 7 than the octet before.
fn osc(position: u64, msn: u32, payload: usize, octets: &str) {
    let ulpdu = ulpdu(position, true, &hex(octets));
    let (header, ulp, found) = Untagged::parse(&ulpdu, 1).unwrap();
    assert_eq!(
        (header, ulp.control.opcode()),
        (Untagged { last: true, qn: 0, msn: Msn::new(msn), mo: 0 }, Opcode::SEND)
    );
    let first = found[0];
    assert_eq!(found, (0..payload).map(|i| first.wrapping_add((7 * i % 256) as u8)).collect::<Vec<u8>>());
}

/// The FPDU is from frame 80 of the capture `osc/rfc-sweep-small-m1c1`. It is at stream position
/// 1536.
#[test]
fn osc_marker_before_the_length() {
    let octets = concat!(
        "00000000003541430000000000000000000000250000000000070e151c232a31383f464d545b626970777e858c939aa1",
        "a8afb6bdc4cbd2d9e0e7ee009c617758"
    );
    osc(1536, 0x25, 35, octets);
}

/// The FPDU is from frame 63 of the capture `osc/rfc-sweep-small-m1c1`. It is at stream position
/// 1532.
#[test]
fn osc_marker_after_four_octets() {
    let octets = concat!(
        "005141430000000400000000000000000000001c0000000080878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21",
        "282f363d444b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b32002b095a66"
    );
    osc(1532, 0x1c, 63, octets);
}

/// The FPDU is from frame 94 of the capture `osc/rfc-sweep-small-m1c1`. It is at stream position
/// 1984.
#[test]
fn osc_marker_between_pad_and_crc() {
    let octets = concat!(
        "003c414300000000000000000000002c0000000000070e151c232a31383f464d545b626970777e858c939aa1a8afb6bd",
        "c4cbd2d9e0e7eef5fc030a11181f000000000040e4a4cd7b"
    );
    osc(1984, 0x2c, 42, octets);
}
