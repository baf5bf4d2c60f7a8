//! Tests the FPDUs that an endpoint sends and receives: layout, CRC, size and errors (RFC 5044
//! sections 3 to 6, 8 and 9).

use weft_core::coverage::{Coverage, CoverageKind as Proven};
use weft_core::wire::mpa::Framing;
use weft_core::{crc, requirement};
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, Event, Transmit};
use weft_peer::rdmap::StreamError;

use crate::connection::machine::{Machine, REPLY, REQUEST, SEND, WRITE, mpa};
use crate::mpa::wire::{SeenFpdu, fpdus, read};

const CRC: Framing = Framing { markers: false, crc: true };
const PLAIN: Framing = Framing { markers: false, crc: false };

/// An Initiator in Full Operation. The Reply that it received had these flags.
fn initiator(settings: Settings, flags: u8) -> Machine {
    let mut machine = Machine::initiator(settings);
    machine.octets(&[b"MPA ID Rep Frame", &[flags, 1, 0, 0][..]].concat());
    machine.forget();
    machine
}

/// The output of an Initiator that sends messages of these lengths.
fn sent(emss: u32, lengths: &[usize]) -> Vec<u8> {
    let mut machine = initiator(Settings { emss, ..Settings::default() }, 0x40);
    for length in lengths {
        machine.connection.post_send(vec![0x77; *length]).unwrap();
    }
    machine.settle();
    machine.octets_sent()
}

/// A Responder in Full Operation. Its own flag C is `crc`, and the flag C of its peer is 0.
fn responder(crc: bool, receives: usize) -> Machine {
    let mut machine = Machine::responder(mpa(|mpa| mpa.crc = crc));
    machine.octets(b"MPA ID Req Frame\0\x01\0\0");
    (0..receives).for_each(|_| machine.connection.post_receive(600).unwrap());
    machine.forget();
    machine
}

/// A Send with a correct CRC and this PAD.
fn send(msn: u8, payload: &[u8], pad: u8) -> Vec<u8> {
    let length = u16::try_from(18 + payload.len()).unwrap();
    let mut fpdu = [&length.to_be_bytes()[..], b"\x41\x43", &[0; 11], &[msn], &[0; 4], payload].concat();
    while fpdu.len() % 4 != 0 {
        fpdu.push(pad);
    }
    let field = crc::to_octets(crc::crc32c(&fpdu));
    fpdu.extend(field);
    fpdu
}

#[test]
fn the_layout_of_what_is_sent() {
    let mut proof = Coverage::new(Proven::Test);
    let seen: Vec<SeenFpdu> = fpdus(&sent(1460, &[0, 1, 2, 3, 4, 5]), CRC);
    proof.verify(requirement!("MPA-4.1-1"), || assert_eq!(sent(1460, &[0]), SEND));
    proof.verify(requirement!("MPA-4.1-5"), || {
        let lengths: Vec<(usize, usize)> = seen.iter().map(|fpdu| (fpdu.pad.len(), fpdu.length)).collect();
        assert_eq!(lengths, [(0, 24), (3, 28), (2, 28), (1, 28), (0, 28), (3, 32)]);
    });
    proof.verify(requirement!("MPA-4.1-3"), || {
        assert!(seen.iter().flat_map(|fpdu| &fpdu.pad).all(|octet| *octet == 0));
    });
    proof.verify(requirement!("MPA-4.1-6"), || assert!(seen.iter().all(|fpdu| fpdu.crc_field == fpdu.crc)));
    proof.verify(requirement!("MPA-3-7"), || {
        // Each FPDU has one DDP segment: a header, and the payload of one message.
        let lengths: Vec<usize> = seen.iter().map(|fpdu| fpdu.ulpdu.len() - 18).collect();
        assert_eq!(lengths, [0, 1, 2, 3, 4, 5]);
    });
    proof.verify(requirement!("MPA-4.4-18"), || {
        // The least significant octet is first. The value of this CRC is 0xc4e87b58.
        assert_eq!(sent(1460, &[0])[20..], *b"\x58\x7b\xe8\xc4");
    });
    proof.verify(requirement!("MPA-4.1-8"), || {
        let mut machine = initiator(mpa(|mpa| mpa.crc = false), 0);
        machine.connection.post_send(&b"x"[..]).unwrap();
        machine.settle();
        assert_eq!(machine.octets_sent().len(), 2 + 19 + 3 + 4);
        fpdus(&machine.octets_sent(), PLAIN);
    });
    proof.verify(requirement!("MPA-4.4-9"), || {
        // This endpoint requests no CRCs, but the peer's frame has C=1. All 50 FPDUs have CRCs.
        let mut machine = initiator(mpa(|mpa| mpa.crc = false), 0x40);
        for _ in 0..50 {
            machine.connection.post_send(vec![3; 1000]).unwrap();
        }
        machine.settle();
        assert_eq!(fpdus(&machine.octets_sent(), CRC).len(), 50);
    });
}

#[test]
fn how_large_fpdus_are() {
    let longest = |emss, markers: bool| {
        let mut machine = initiator(Settings { emss, ..Settings::default() }, if markers { 0xc0 } else { 0x40 });
        machine.connection.post_send(vec![1; 300_000]).unwrap();
        machine.settle();
        let seen = read(&machine.octets_sent(), markers);
        let last = seen.len() - 1;
        let lengths: Vec<usize> = seen[..last].iter().map(|fpdu| fpdu.ulpdu.len()).collect();
        assert!(lengths.iter().all(|length| *length == lengths[0]), "all but the last are as long as MULPDU allows");
        (lengths[0], seen.iter().map(|fpdu| fpdu.length).max().unwrap())
    };
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-4.5-2"), || {
        for (emss, mulpdu) in
            [(140, 130), (512, 502), (536, 522), (1448, 1430), (1460, 1442), (1461, 1442), (8960, 8882)]
        {
            assert_eq!(longest(emss, true).0, mulpdu, "EMSS {emss}");
        }
    });
    proof.verify(requirement!("MPA-4.5-3"), || {
        for (emss, mulpdu) in
            [(140, 134), (512, 506), (536, 530), (1448, 1442), (1460, 1454), (1463, 1454), (8960, 8954)]
        {
            assert_eq!(longest(emss, false).0, mulpdu, "EMSS {emss}");
        }
    });
    proof.verify(requirement!("MPA-4.5-8"), || {
        for emss in [0, 64, 88, 127, 128] {
            assert_eq!(longest(emss, true).0, 128);
        }
    });
    proof.verify(requirement!("MPA-3-3"), || {
        assert_eq!(longest(65_495, false).0, 64_768);
        assert_eq!(longest(u32::MAX, true).0, 64_768);
    });
    proof.verify(requirement!("MPA-3-8"), || {
        for emss in (140..3000).step_by(61) {
            assert!(longest(emss, true).1 <= usize::try_from(emss).unwrap());
            assert!(longest(emss, false).1 <= usize::try_from(emss).unwrap());
        }
    });
}

#[test]
fn the_crc_field_of_what_is_received() {
    let good = send(1, b"payload", 0);
    let with_field = |field: [u8; 4]| [&good[..good.len() - 4], &field].concat();
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-7.1.1-14"), || {
        for field in [[0; 4], [0xff; 4], [1, 2, 3, 4]] {
            let mut machine = responder(false, 1);
            machine.octets(&with_field(field));
            assert_eq!(machine.received(), [b"payload"]);
        }
    });
    proof.verify(requirement!("MPA-4.4-6"), || {
        // The peer has C=0, this side has C=1.
        let mut machine = responder(true, 1);
        machine.octets(&with_field([0; 4]));
        assert_eq!((machine.received().len(), machine.sent.as_slice()), (0, &[Transmit::Fin][..]));
    });
    proof.verify(requirement!("MPA-4.1-4"), || {
        for pad in [0, 1, 0xff] {
            let mut machine = responder(true, 1);
            machine.octets(&send(1, b"payload", pad));
            assert_eq!(machine.received(), [b"payload"]);
        }
    });
    proof.verify(requirement!("MPA-4.4-19"), || {
        // One bit is changed in each octet of the FPDU in turn.
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let mut machine = responder(true, 1);
            machine.octets(&bad);
            assert_eq!(machine.received().len(), 0, "octet {at}");
        }
    });
    proof.verify(requirement!("MPA-4.4-10"), || {
        let mut machine = responder(true, 101);
        for msn in 1..=100 {
            machine.octets(&send(msn, b"good", 0));
        }
        let mut bad = send(101, b"bad!", 0);
        bad[20] ^= 1;
        machine.octets(&bad);
        assert_eq!(machine.received().len(), 100);
        // A Terminate with code 20 02. An independent, table-driven implementation computed its
        // CRC.
        let terminate = b"\0\x16\x41\x47\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\x20\x02\0\0\x7f\xe4\x25\x85";
        assert_eq!(machine.octets_sent(), terminate);
    });
    proof.verify(requirement!("MPA-4.4-11"), || {
        let mut machine = responder(false, 1);
        machine.octets(&with_field([9; 4]));
        assert_eq!(machine.received().len(), 1, "the very first FPDU");
    });
}

#[test]
fn boundaries_of_what_is_received() {
    let stream = [send(1, b"first", 0), send(2, b"", 0), send(3, &[7; 500], 0)].concat();
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-5.1-7"), || {
        for first in 0..=stream.len() {
            for second in (first..=stream.len()).step_by(97) {
                let mut machine = responder(true, 3);
                for piece in [&stream[..first], &stream[first..second], &stream[second..]] {
                    machine.octets(piece);
                }
                assert_eq!(machine.received(), [&b"first"[..], b"", &[7; 500]], "cut at {first} and {second}");
            }
        }
    });
    proof.verify(requirement!("MPA-5.2-1"), || {
        // One TCP segment has many FPDUs.
        let many: Vec<u8> = (1..=200).flat_map(|msn| send(msn, b"one of many", 0)).collect();
        let mut machine = responder(true, 200);
        machine.octets(&many);
        assert_eq!(machine.received().len(), 200);
    });
    proof.verify(requirement!("MPA-6-7"), || {
        let mut machine = responder(true, 1);
        for octet in &stream[..31] {
            machine.octets(&[*octet]);
            assert_eq!(machine.events, []);
        }
        machine.octets(&stream[31..32]);
        assert_eq!(machine.received(), [b"first"]);
    });
    proof.verify(requirement!("MPA-A.4-2"), || {
        for segment in [1, 7, 100] {
            let mut machine = responder(true, 3);
            stream.chunks(segment).for_each(|octets| machine.octets(octets));
            assert_eq!(machine.received().len(), 3);
        }
    });
    proof.verify(requirement!("MPA-A.4-3"), || {
        let mut machine = responder(true, 3);
        machine.octets(&[&stream[..], &WRITE[..7]].concat());
        machine.pass(std::time::Duration::from_secs(3600));
        machine.octets(&WRITE[7..]);
        assert!(machine.connection.is_operating());
    });
    proof.verify(requirement!("MPA-3-9"), || {
        for length in [0, 1, 17, 599, 600] {
            let mut machine = responder(true, 1);
            machine.octets(&send(1, &vec![9; length], 0));
            assert_eq!(machine.received(), [vec![9; length]]);
        }
    });
    proof.verify(requirement!("MPA-3-5"), || {
        // Use the shortest segment (a Write without payload) and the longest possible segment (a
        // Send of 64750 octets).
        let mut machine = responder(true, 0);
        machine.connection.post_receive(64_750).unwrap();
        machine.octets(&[WRITE, &send(1, &vec![1; 64_750], 0)].concat());
        assert_eq!(machine.received()[0].len(), 64_750);
    });
}

/// Checks the errors of RFC 5044 section 8.
#[test]
fn errors_end_a_half_connection() {
    let bad = || {
        let mut bad = send(2, b"bad", 0);
        bad[21] ^= 1;
        bad
    };
    // The peer sends one good Send, and then a bad Send.
    let failed = |following: &[u8]| {
        let mut machine = responder(true, 3);
        machine.octets(&[&send(1, b"good", 0), &bad()[..], following].concat());
        machine
    };
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-8-2"), || {
        let machine = failed(b"");
        let Some(Event::TerminateSent(error)) = machine.events.last() else { panic!("{:?}", machine.events) };
        assert_eq!(error.requirement(), Some(requirement!("MPA-8-2")));
        assert!(error.to_string().contains("FPDU at stream byte 28"), "{error}");
    });
    proof.verify(requirement!("MPA-8-5"), || assert_eq!(failed(b"").octets_sent()[20..22], [0x20, 0x02]));
    proof.verify(requirement!("MPA-8-13"), || {
        let machine = failed(&[send(2, b"good again", 0), send(3, b"and again", 0)].concat());
        assert_eq!(machine.received(), [b"good"]);
        let mut later = failed(b"");
        later.octets(&send(2, b"good again", 0));
        assert_eq!(later.received(), [b"good"]);
    });
    proof.verify(requirement!("MPA-8-14"), || {
        // This side sends the FPDU in progress, then the Terminate, and then FIN. MPA itself does
        // not close.
        let machine = failed(b"");
        assert!(matches!(machine.sent[..], [Transmit::Octets(_), Transmit::Fin]), "{:?}", machine.sent);
    });
    proof.verify(requirement!("MPA-7.1.2-17"), || {
        let mut machine = responder(true, 1);
        machine.connection.post_send(&b"waiting"[..]).unwrap();
        machine.settle();
        assert_eq!(machine.sent, []);
        machine.octets(&bad());
        assert_eq!(machine.sent, [Transmit::Fin], "no FPDU, not even a Terminate");
    });
    proof.verify(requirement!("MPA-9.1-1"), || {
        let mut machine = responder(true, 1);
        machine.octets(&send(1, b"good", 0));
        machine.octets(b"GET / HTTP/1.1\r\nHost: a name that goes on for a while\r\n\r\n".repeat(400).as_slice());
        assert!(!machine.connection.is_operating());
        machine.fin();
        assert!(matches!(
            machine.closed(),
            Some(Closed { by: ClosedBy::Library, why: CloseCause::Fault(StreamError::Fpdu(_)) })
        ));
    });
    proof.verify(requirement!("MPA-8-1"), || {
        let mut machine = responder(true, 1);
        machine.octets(WRITE);
        machine.reset();
        assert_eq!(machine.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::Reset }));
    });
    proof.verify(requirement!("MPA-7.2-2"), || {
        let mut machine = responder(true, 1);
        machine.octets(&send(1, b"last", 0));
        machine.fin();
        assert_eq!(machine.events.last(), Some(&Event::HalfClosed));
        assert_eq!(machine.received(), [b"last"], "the data before FIN is kept");
    });
}

/// MPA-7.2-1: FIN is sent after the last FPDU.
#[test]
fn closing_gracefully() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-7.2-1"), || {
        let mut machine = initiator(Settings::default(), 0x40);
        machine.connection.post_send(vec![1; 5000]).unwrap();
        machine.close();
        assert_eq!(machine.sent.last(), Some(&Transmit::Fin));
        assert_eq!(fpdus(&machine.octets_sent(), CRC).len(), 4);
    });
    proof.verify(requirement!("MPA-7.1.2-16"), || {
        let mut machine = Machine::initiator(Settings::default());
        machine.octets(REPLY);
        machine.connection.post_send(&b""[..]).unwrap();
        machine.settle();
        assert_eq!(machine.octets_sent(), [&REQUEST[..], SEND].concat());
    });
}
