//! Tests Full Operation: Sends in both directions, and the answers to faulty FPDUs and segments.

use weft_core::crc;
use weft_core::requirement;
use weft_core::wire::rdmap::TerminateError;
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, CommandError, Event, Transmit};
use weft_peer::rdmap::SendId;

use crate::connection::machine::{Machine, Pair, REQUEST, SEND, WRITE, mpa};

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 % 251) as u8).collect()
}

/// An FPDU with a correct CRC.
fn fpdu(ulpdu: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(ulpdu.len()).unwrap().to_be_bytes().to_vec();
    out.extend_from_slice(ulpdu);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(&crc::to_octets(crc::crc32c(&out)));
    out
}

#[test]
fn a_send_each_way_in_every_segment_size() {
    for segment in [1, 2, 3, 5, 17, 512, 1460, usize::MAX] {
        // The filter leaves out long messages in small segments. They would take a long time and
        // test nothing new.
        let lengths = [0, 1, 2, 3, 4, 1436, 1437, 5000, 70_000];
        for length in lengths.into_iter().filter(|length| *length < 1000 * segment.min(1000)) {
            let mut pair = Pair::established();
            pair.segment = segment;
            let (ping, pong) = (pattern(length), pattern(length + 1));
            pair.responder.connection.post_receive(length as u32).unwrap();
            pair.initiator.connection.post_receive(length as u32 + 1).unwrap();
            assert_eq!(pair.initiator.connection.post_send(ping.clone()), Ok(SendId(0)));
            pair.run();
            pair.responder.connection.post_send(pong.clone()).unwrap();
            pair.run();
            assert_eq!(pair.responder.received(), [ping]);
            assert_eq!(pair.initiator.received(), [pong]);
            assert!(pair.initiator.events.contains(&Event::SendCompleted(SendId(0))));
            assert_eq!(pair.initiator.connection.outstanding_sends(), 0);
            assert_eq!(pair.initiator.connection.outstanding_octets(), 0);
        }
    }
}

/// No FPDU exceeds the EMSS (DDP-5.2-12). Only the last FPDU of a message is much shorter.
#[test]
fn fpdus_fill_the_emss() {
    let mut pair = Pair::new(Settings { emss: 1448, ..Settings::default() }, Settings::default());
    pair.run();
    pair.responder.connection.post_receive(10_000).unwrap();
    pair.initiator.forget();
    pair.initiator.connection.post_send(pattern(10_000)).unwrap();
    pair.initiator.settle();
    let lengths: Vec<usize> = pair
        .initiator
        .sent
        .iter()
        .map(|sent| if let Transmit::Octets(octets) = sent { octets.len() } else { 0 })
        .collect();
    // MULPDU is 1442. Each full FPDU has 1424 octets of payload and 24 other octets. 10,000 = 7 *
    // 1424 + 32.
    assert_eq!(lengths, [1448, 1448, 1448, 1448, 1448, 1448, 1448, 32 + 24]);
}

/// MPA-7.1.2-17: the Responder sends no FPDU before the first valid FPDU has arrived, even if its
/// user posts a Send. The first FPDU can be a Write without payload.
#[test]
fn the_responder_is_silent_before_the_first_fpdu() {
    let mut responder = Machine::established(1);
    responder.connection.post_send(&b""[..]).unwrap();
    responder.settle();
    assert_eq!((responder.sent.len(), responder.connection.outstanding_sends()), (0, 1));
    responder.octets(&WRITE[..19]);
    assert_eq!(responder.sent, []);
    responder.octets(&WRITE[19..]);
    assert_eq!(responder.octets_sent(), SEND);
    assert_eq!(responder.events, [Event::SendCompleted(SendId(0))]);
}

/// MPA-7.1.1-6, MPA-4.3-11: if the peer's frame has M=1, the first octets of the stream to this
/// peer are a marker.
#[test]
fn sends_markers_to_a_peer_that_requests_them() {
    let mut responder = Machine::responder(Settings { emss: 1460, ..Settings::default() });
    responder.octets(b"MPA ID Req Frame\xc0\x01\x00\x00");
    responder.forget();
    responder.octets(WRITE);
    responder.connection.post_send((0..1424u32).map(|i| i as u8).collect::<Vec<u8>>()).unwrap();
    responder.settle();
    let octets = responder.octets_sent();
    // A full segment has a ULPDU of 1442 octets, and markers at 0, 512 and 1024. The CRC comes from
    // an independent implementation.
    assert_eq!((responder.sent.len(), octets.len()), (1, 1460));
    for (at, pointer) in [(0, [0, 0]), (512, [0x01, 0xfc]), (1024, [0x03, 0xfc])] {
        assert_eq!(octets[at..at + 4], [0, 0, pointer[0], pointer[1]]);
    }
    assert_eq!(octets[4..8], [0x05, 0xa2, 0x41, 0x43]);
    assert_eq!(octets[1456..], [0x5d, 0xdd, 0xaf, 0x4a]);
}

/// MPA-7.1.1-14: if CRCs are not used, the CRC field is allowed to have any value.
#[test]
fn ignores_the_crc_field_without_crc() {
    let mut responder = Machine::responder(mpa(|mpa| mpa.crc = false));
    responder.octets(b"MPA ID Req Frame\x00\x01\x00\x00");
    responder.connection.post_receive(4).unwrap();
    let mut send = SEND.to_vec();
    send[20..].copy_from_slice(b"junk");
    responder.octets(&send);
    assert_eq!(responder.received(), [b""]);
}

/// MPA-4.1-4: PAD is allowed to have any value. The CRC covers PAD.
#[test]
fn pad_is_ignored() {
    let mut responder = Machine::established(1);
    let mut send = fpdu(b"\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0x");
    send[21..24].copy_from_slice(b"pad");
    let sum = crc::to_octets(crc::crc32c(&send[..24]));
    send[24..].copy_from_slice(&sum);
    responder.octets(&send);
    assert_eq!(responder.received(), [b"x"]);
}

/// The first FPDU has a wrong CRC. Such an FPDU does not allow the Responder to send, so the
/// Responder sends no Terminate.
#[test]
fn a_wrong_crc_in_the_first_fpdu_only_closes() {
    for at in 0..SEND.len() {
        let mut responder = Machine::established(1);
        let mut send = SEND.to_vec();
        send[at] ^= 0x10;
        responder.octets(&send);
        if at < 2 {
            // If ULPDU_Length is changed, the machine waits for more octets. When these octets
            // arrive, the CRC is wrong.
            responder.octets(&[0; 1 << 16]);
        }
        assert_eq!(responder.sent, [Transmit::Fin], "octet {at}");
        responder.fin();
        let Some(Closed { by: ClosedBy::Library, why: why @ CloseCause::FirstFpdu(_) }) = responder.closed() else {
            panic!("{:?}", responder.events)
        };
        assert_eq!(why.requirement(), Some(requirement!("MPA-8-2")));
        assert_eq!(responder.received(), [b""; 0]);
    }
}

/// A good FPDU arrives, and then an FPDU with a wrong CRC. The Responder sends a Terminate with
/// code 20 02 and without copied headers, and then FIN. It drops later input.
#[test]
fn a_later_wrong_crc_causes_a_terminate() {
    let mut responder = Machine::established(4);
    responder.octets(WRITE);
    let mut send = SEND.to_vec();
    send[23] ^= 1;
    responder.octets(&[&send, SEND].concat());
    responder.octets(SEND);
    // CRC from an independent implementation.
    let terminate = b"\0\x16\x41\x47\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\x20\x02\0\0\x7f\xe4\x25\x85";
    assert_eq!(responder.octets_sent(), terminate);
    assert_eq!(responder.sent.last(), Some(&Transmit::Fin));
    responder.fin();
    let [Event::TerminateSent(error), Event::Closed(Closed { by: ClosedBy::Library, why: CloseCause::Fault(fault) })] =
        &responder.events[..]
    else {
        panic!("{:?}", responder.events)
    };
    assert_eq!((error, error.code()), (fault, TerminateError::MPA_CRC));
}

/// Checks the Terminate for each faulty segment: octets 18 and 19, and the copied header.
#[test]
fn each_faulty_segment_has_its_terminate() {
    let send = |qn: u8, msn: u8, mo: u8, payload: usize| {
        let mut segment = vec![0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, qn, 0, 0, 0, msn, 0, 0, 0, mo];
        segment.resize(18 + payload, 0xaa);
        segment
    };
    let with = |octet: usize, value: u8| {
        let mut segment = send(0, 1, 0, 1);
        segment[octet] = value;
        segment
    };
    let write = b"\xc1\x40\xde\xad\xbe\xef\0\0\0\0\0\0\x20\0octet".to_vec();
    for (receives, segment, code) in [
        (0, send(0, 1, 0, 1), [0x12, 0x02]),
        (1, send(0, 1, 0, 65), [0x12, 0x05]),
        (1, send(3, 1, 0, 1), [0x12, 0x01]),
        (1, send(0, 2, 0, 1), [0x12, 0x03]),
        (1, send(0, 0, 0, 1), [0x12, 0x03]),
        (1, send(0, 1, 1, 1), [0x12, 0x04]),
        (1, with(0, 0x40), [0x12, 0x06]),
        (1, with(1, 0x4c), [0x02, 0x06]),
        (1, with(1, 0x83), [0x02, 0x05]),
        (1, write, [0x11, 0x00]),
    ] {
        let mut responder = Machine::established(receives);
        responder.octets(&fpdu(&segment));
        responder.octets(&fpdu(&send(0, 1, 0, 1)));
        let header = if segment[0] & 0x80 == 0 { 18 } else { 14 };
        let length = u16::try_from(segment.len()).unwrap().to_be_bytes();
        let terminate =
            [&b"\x41\x47\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0"[..], &code, &[0xc0, 0x00], &length, &segment[..header]]
                .concat();
        assert_eq!(responder.octets_sent(), fpdu(&terminate), "{code:02x?}");
        assert_eq!(responder.sent.last(), Some(&Transmit::Fin));
        assert_eq!(responder.received(), [b""; 0], "nothing is delivered");
        responder.fin();
        let Some(Closed { by: ClosedBy::Library, why: why @ CloseCause::Fault(_) }) = responder.closed() else {
            panic!("{code:?}")
        };
        assert!(why.requirement().is_some(), "{code:02x?}");
    }
}

/// RDMAP-7.1-7: the message that is in progress is allowed to precede the Terminate. Later messages
/// must not precede the Terminate (RDMAP-5.4-12).
#[test]
fn a_terminate_overtakes_messages_not_yet_begun() {
    let mut initiator = Pair::established().initiator;
    initiator.forget();
    initiator.connection.post_send(pattern(3000)).unwrap();
    initiator.connection.post_send(pattern(10)).unwrap();
    let Some(Transmit::Octets(first)) = initiator.connection.poll_transmit(initiator.now) else { panic!("an FPDU") };
    assert_eq!(first.len(), 1460);
    initiator.connection.handle_octets(initiator.now, &fpdu(b"\x41\x43"));
    initiator.settle();
    let opcodes: Vec<u8> =
        initiator.sent.iter().map(|sent| if let Transmit::Octets(octets) = sent { octets[3] } else { 0 }).collect();
    assert_eq!(opcodes, [0x43, 0x43, 0x47, 0]);
    assert_eq!(initiator.sent.last(), Some(&Transmit::Fin));
    assert!(matches!(initiator.events[..], [Event::TerminateSent(_), Event::SendCompleted(SendId(0))]));
}

#[test]
fn the_peers_terminate_ends_the_stream() {
    let mut pair = Pair::established();
    pair.initiator.connection.post_send(&b"no receive is posted"[..]).unwrap();
    pair.run();
    let code = TerminateError::DDP_UNTAGGED_NO_BUFFER;
    assert!(pair.initiator.events.contains(&Event::TerminateReceived(code)));
    assert_eq!(pair.initiator.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::TerminateReceived(code) }));
    assert!(matches!(pair.responder.closed(), Some(Closed { by: ClosedBy::Library, why: CloseCause::Fault(_) })));
    assert_eq!(pair.initiator.connection.post_send(&b""[..]), Err(CommandError::NotOperating));
}

#[test]
fn queues_have_their_limits() {
    let settings = Settings { max_sends: 2, max_receives: 3, ..Settings::default() };
    let mut responder = Machine::responder(settings);
    assert_eq!(responder.connection.post_receive(1), Err(CommandError::NotOperating));
    responder.octets(REQUEST);
    for _ in 0..3 {
        responder.connection.post_receive(1).unwrap();
    }
    assert_eq!(responder.connection.post_receive(1), Err(CommandError::QueueFull(3)));
    assert_eq!(responder.connection.posted_receives(), 3);
    responder.connection.post_send(&b"a"[..]).unwrap();
    responder.connection.post_send(&b"bc"[..]).unwrap();
    assert_eq!(responder.connection.post_send(&b""[..]), Err(CommandError::QueueFull(2)));
    assert_eq!(responder.connection.outstanding_octets(), 3);
    // The first FPDU allows both messages to be sent.
    responder.octets(WRITE);
    assert_eq!(responder.connection.post_send(&b""[..]), Ok(SendId(2)));
}
