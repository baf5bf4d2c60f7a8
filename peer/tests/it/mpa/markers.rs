//! Tests the markers that an endpoint sends and receives (RFC 5044 sections 4.2, 4.3 and 8).

use weft_core::coverage::{Coverage, CoverageKind as Proven};
use weft_core::wire::mpa::Framing;
use weft_core::{crc, requirement};
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Event, Transmit};
use weft_peer::mpa::FpduError;
use weft_peer::rdmap::StreamError;

use crate::connection::machine::{Machine, REPLY, SEND, WRITE, mpa};
use crate::mpa::wire::{SeenFpdu, fpdus};

const FRAMING: Framing = Framing { markers: true, crc: true };

/// An Initiator whose peer requests markers.
fn sender(emss: u32) -> Machine {
    let mut initiator = Machine::initiator(Settings { emss, ..Settings::default() });
    initiator.octets(b"MPA ID Rep Frame\xc0\x01\0\0");
    initiator.forget();
    initiator
}

/// The stream of an Initiator that sends messages of these lengths to a peer with M=1. Also returns
/// the FPDUs of this stream.
fn stream(emss: u32, lengths: &[usize]) -> (Vec<u8>, Vec<SeenFpdu>) {
    let mut initiator = sender(emss);
    for length in lengths {
        initiator.connection.post_send(vec![0x5a; *length]).unwrap();
    }
    initiator.settle();
    let octets = initiator.octets_sent();
    let seen = fpdus(&octets, FRAMING);
    (octets, seen)
}

/// A marker is at each multiple of 512 octets of the stream. In RFC 5044 Figure 4, an FPDU of 28
/// octets begins at octet 500, so it has a marker after 12 octets.
#[test]
fn positions_of_markers() {
    let mut proof = Coverage::new(Proven::Test);
    let long = stream(1460, &[20_000]);
    let markers = |seen: &[SeenFpdu]| seen.iter().flat_map(|fpdu| fpdu.markers.clone()).collect::<Vec<_>>();
    proof.verify(requirement!("MPA-4.3-4"), || {
        let positions: Vec<usize> = markers(&long.1).iter().map(|(at, _)| *at).collect();
        let due: Vec<usize> = (0..long.0.len()).step_by(512).collect();
        assert_eq!(positions, due);
    });
    proof.verify(requirement!("MPA-4.3-10"), || {
        assert_eq!(long.0[..6], *b"\0\0\0\0\x05\xa2", "a marker, then ULPDU_Length 1442");
    });
    proof.verify(requirement!("MPA-4.3-13"), || {
        assert_eq!(long.1[0].markers, [(0, 0), (512, 0x1fc), (1024, 0x3fc)]);
    });
    // Each FPDU has 28 octets. The leading marker and 18 FPDUs have 508 octets. So the next FPDU
    // has the marker at 512, after its first four octets.
    let short = stream(1460, &[4; 40]);
    proof.verify(requirement!("MPA-4.3-14"), || {
        assert_eq!(short.1[18].markers, [(512, 4)]);
        assert!(short.1[1].markers.is_empty() && short.1[17].markers.is_empty());
    });
    proof.verify(requirement!("MPA-4.3-7"), || {
        // The first FPDU and the leading marker have 52 octets. Together with 15 FPDUs of 28 octets
        // and an FPDU of 40 octets, they have 512 octets. The marker at 512 is therefore between
        // two FPDUs.
        let (octets, seen) = stream(1460, &[&[24][..], &[4; 15], &[16, 4]].concat());
        assert_eq!(seen[17].markers, [(512, 0)]);
        assert_eq!(octets[512..518], *b"\0\0\0\0\0\x16");
    });
    proof.verify(requirement!("MPA-4.2-2"), || {
        assert!(markers(&long.1).iter().all(|(at, _)| long.0[*at..*at + 2] == [0, 0]));
    });
    proof.verify(requirement!("MPA-4.2-5"), || {
        for lengths in [&[1, 2, 3, 5, 7, 11, 700][..], &[1441; 30]] {
            let (octets, seen) = stream(1460, lengths);
            assert!(markers(&seen).iter().all(|(at, pointer)| pointer & 3 == 0 && octets[at + 3] & 3 == 0));
        }
    });
    proof.verify(requirement!("MPA-4.2-4"), || {
        // `fpdus` compares each FPDUPTR with the distance from the marker back to its FPDU. With an
        // EMSS of 140 octets, the markers are at many different offsets of FPDUs.
        let (_, seen) = stream(140, &[17_000]);
        let pointers: std::collections::BTreeSet<u16> = markers(&seen).iter().map(|(_, pointer)| *pointer).collect();
        assert!(pointers.len() > 5, "{pointers:?}");
    });
}

#[test]
fn markers_belong_to_the_fpdu_around_them() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-4.4-17"), || {
        // This is the FPDU of RFC 5044 Figure 5, with a payload of zeros. The CRC covers the marker
        // and all octets after it.
        let mut initiator = sender(1460);
        initiator.connection.post_send(vec![0; 24]).unwrap();
        initiator.settle();
        let figure = [&b"\0\0\0\0\0\x2a\x41\x43"[..], &[0; 11], &[1], &[0; 28], b"\x52\x23\x99\x83"].concat();
        assert_eq!(initiator.octets_sent(), figure);
    });
    proof.verify(requirement!("MPA-4.3-1"), || {
        // This is the FPDU of Figure 6. It begins at 0x1ec, after the FPDU of Figure 5 and an FPDU
        // of 440 octets.
        let mut initiator = sender(1460);
        for length in [24, 416, 24] {
            initiator.connection.post_send(vec![0; length]).unwrap();
        }
        initiator.settle();
        let octets = initiator.octets_sent();
        let mut third = octets[0x1ec..].to_vec();
        // In the figure, this Send has MSN 2. Here it is the third Send.
        assert_eq!(third[15], 3);
        third[15] = 2;
        assert_eq!(third[20..24], [0, 0, 0, 0x14]);
        assert_eq!(crc::to_octets(crc::crc32c(&third[..48])), *b"\x84\x92\x58\x98");
    });
    proof.verify(requirement!("MPA-4.4-16"), || {
        // The leading marker and the first FPDU end at 488. The next FPDU has 24 octets before its
        // CRC, so its PAD ends at 512, and a marker follows before the CRC.
        let (octets, seen) = stream(1460, &[458, 4]);
        let (body, last) = (4 + 2 + 18 + 458 + 2, &seen[1]);
        assert_eq!((body + 4, last.markers.as_slice()), (488, &[(512, 24)][..]));
        assert_eq!((octets[512..516].to_vec(), last.length), (vec![0, 0, 0, 24], 32));
    });
    proof.verify(requirement!("MPA-4.3-8"), || {
        let (octets, seen) = stream(1460, &[&[24][..], &[4; 15], &[16, 4]].concat());
        assert_eq!(seen[17].crc_field, crc::to_octets(crc::crc32c(&octets[512..512 + seen[17].length - 4])));
    });
    proof.verify(requirement!("MPA-4.1-2"), || {
        let (_, seen) = stream(1460, &[1424]);
        assert_eq!((seen[0].ulpdu.len(), seen[0].length), (1442, 2 + 1442 + 4 + 3 * 4));
    });
    proof.verify(requirement!("MPA-7.1.1-8"), || {
        let mut initiator = Machine::initiator(Settings::default());
        initiator.octets(REPLY);
        initiator.forget();
        initiator.connection.post_send(vec![0x5a; 3000]).unwrap();
        initiator.settle();
        let octets = initiator.octets_sent();
        assert_eq!(octets[..2], [5, 174]);
        assert_eq!(fpdus(&octets, Framing { markers: false, crc: true }).len(), 3);
    });
    proof.verify(requirement!("MPA-7.1.2-21"), || {
        // The peer's flag M also decides whether a Responder sends markers. The Responder's own
        // flag M has no influence.
        for (m, own, first) in [(0x80, false, &b"\0\0\0\0\0\x12"[..]), (0, true, b"\0\x12\x41\x43\0\0")] {
            let mut responder = Machine::responder(mpa(|mpa| mpa.markers = own));
            responder.octets(&[b"MPA ID Req Frame", &[m | 0x40, 1, 0, 0][..]].concat());
            assert_eq!(responder.octets_sent()[16] & 0x80 != 0, own);
            responder.forget();
            responder.connection.post_send(&b""[..]).unwrap();
            let write = if own { with_leading_marker(&WRITE[..16]) } else { WRITE.to_vec() };
            responder.octets(&write);
            assert_eq!(responder.octets_sent()[..6], *first);
        }
    });
    proof.verify(requirement!("MPA-4.3-3"), || {
        // No setting of this side can reject the peer's request for markers. This side itself
        // requests no markers.
        let mut responder = Machine::responder(Settings::default());
        responder.octets(b"MPA ID Req Frame\xc0\x01\0\0");
        assert!(crate::mpa::wire::established(&responder).0.markers_sent);
    });
}

/// Puts a marker before an FPDU without CRC, and adds the CRC. The result can be at the start of a
/// stream, or after 512 octets.
fn with_leading_marker(fpdu: &[u8]) -> Vec<u8> {
    with_crc([&[0; 4], fpdu].concat())
}

fn with_crc(mut octets: Vec<u8>) -> Vec<u8> {
    let crc = crc::to_octets(crc::crc32c(&octets));
    octets.extend(crc);
    octets
}

/// A Responder after start-up. It has requested markers, and has posted a receive of 600 octets.
fn receiver() -> Machine {
    let mut responder = Machine::responder(mpa(|mpa| mpa.markers = true));
    responder.octets(b"MPA ID Req Frame\x40\x01\0\0");
    assert_eq!(responder.octets_sent()[16], 0xc0);
    responder.connection.post_receive(600).unwrap();
    responder.forget();
    responder
}

/// Returns the octets of a Write without payload and of a Send of 550 octets, and the payload of
/// the Send. The payload repeats the values 0 to 255. The marker at 512, inside the Send, is
/// `marker`.
fn marked(marker: [u8; 4]) -> (Vec<u8>, Vec<u8>) {
    let first = with_leading_marker(&WRITE[..16]);
    assert_eq!(first.len(), 24);
    let payload: Vec<u8> = (0..550).map(|at| (at % 256) as u8).collect();
    let body = [&568u16.to_be_bytes()[..], &SEND[2..20], &payload, &[0, 0]].concat();
    let second = [&body[..488], &marker, &body[488..]].concat();
    ([first, with_crc(second)].concat(), payload)
}

#[test]
fn markers_that_are_received() {
    let right = 488u16.to_be_bytes();
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-4.3-18"), || {
        let (stream, payload) = marked([0, 0, right[0], right[1]]);
        for cut in 0..=stream.len() {
            let mut machine = receiver();
            machine.octets(&stream[..cut]);
            machine.octets(&stream[cut..]);
            assert_eq!(machine.received(), [&payload[..]], "cut at {cut}");
        }
    });
    proof.verify(requirement!("MPA-4.2-3"), || {
        let mut machine = receiver();
        machine.octets(&marked([0xff, 0xff, right[0], right[1]]).0);
        assert_eq!(machine.received().len(), 1);
    });
    proof.verify(requirement!("MPA-4.2-6"), || {
        for low in 1..4 {
            let mut machine = receiver();
            machine.octets(&marked([0, 0, right[0], right[1] | low]).0);
            assert_eq!(machine.received().len(), 1);
        }
    });
    proof.verify(requirement!("MPA-8-3"), || {
        for wrong in [0u16, 4, 484, 492, 0xfffc] {
            let mut machine = receiver();
            let wrong_octets = wrong.to_be_bytes();
            machine.octets(&marked([0, 0, wrong_octets[0], wrong_octets[1]]).0);
            assert_eq!(machine.received().len(), 0);
            let error = FpduError::Marker { position: 512, expected: 488, found: wrong };
            assert_eq!(machine.events, [Event::TerminateSent(StreamError::Fpdu(error))]);
        }
    });
    proof.verify(requirement!("MPA-8-6"), || {
        let mut machine = receiver();
        machine.octets(&marked([0, 0, 0, 4]).0);
        assert_eq!(machine.octets_sent()[18 + 2..][..2], [0x20, 0x03], "Terminate: layer 2, type 0, code 3");
        assert_eq!(machine.sent.last(), Some(&Transmit::Fin));
    });
    proof.verify(requirement!("MPA-4.3-6"), || {
        // FPDUPTR is also valid in an FPDU after more than 2^16 octets of the stream.
        let mut machine = Machine::responder(mpa(|mpa| mpa.markers = true));
        machine.octets(b"MPA ID Req Frame\x40\x01\0\0");
        let mut peer = sender(1460);
        for _ in 0..100 {
            machine.connection.post_receive(1424).unwrap();
            peer.connection.post_send(vec![1; 1424]).unwrap();
        }
        peer.settle();
        machine.octets(&peer.octets_sent());
        assert_eq!(machine.received().len(), 100);
    });
    // The faulty FPDU is the first FPDU. This side is not allowed to send yet, so it sends no
    // Terminate.
    let mut machine = receiver();
    machine.octets(&with_crc([&b"\0\0\0\x04"[..], &WRITE[..16]].concat()));
    assert_eq!(machine.sent, [Transmit::Fin]);
    machine.fin();
    let why = machine.closed().unwrap().why;
    assert_eq!(why, CloseCause::FirstFpdu(FpduError::Marker { position: 0, expected: 0, found: 4 }));
    assert_eq!(why.requirement(), Some(requirement!("MPA-8-3")));
}
