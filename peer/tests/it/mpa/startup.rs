//! Tests start-up frames and rules, one requirement at a time (RFC 5044 section 7.1). The tests in
//! `connection` cover the same rules with more cases.

use std::time::Duration;

use weft_core::coverage::{Coverage, CoverageKind as Proven};
use weft_core::requirement;
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, Event, Transmit};
use weft_peer::mpa::{PrivateData, StartupError};

use crate::connection::machine::{Machine, REPLY, REQUEST, SEND, WRITE, mpa};
use crate::mpa::wire::{Wire, established};

fn private(octets: Vec<u8>) -> PrivateData {
    PrivateData::new(octets).unwrap()
}

fn with_private_data(octets: usize) -> Settings {
    Settings { private_data: private(vec![0x70; octets]), ..Settings::default() }
}

fn initiator() -> Machine {
    let mut machine = Machine::initiator(Settings::default());
    machine.forget();
    machine
}

fn responder() -> Machine {
    Machine::responder(Settings::default())
}

/// Checks that the machine closes at once, sends only FIN, and reports an error to the ULP.
fn refuses(mut machine: Machine, octets: &[u8]) -> CloseCause {
    machine.octets(octets);
    assert_eq!(machine.sent, [Transmit::Fin], "{octets:02x?}");
    machine.fin();
    let Some(Closed { by: ClosedBy::Library, why }) = machine.closed() else { panic!("{:?}", machine.events) };
    why
}

#[test]
fn frames_that_are_sent() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-7.1.1-1"), || {
        let key = b"\x4d\x50\x41\x20\x49\x44\x20\x52\x65\x71\x20\x46\x72\x61\x6d\x65";
        assert_eq!(Machine::initiator(Settings::default()).octets_sent()[..16], *key);
    });
    proof.verify(requirement!("MPA-7.1.1-3"), || {
        let key = b"\x4d\x50\x41\x20\x49\x44\x20\x52\x65\x70\x20\x46\x72\x61\x6d\x65";
        let mut machine = responder();
        machine.octets(REQUEST);
        assert_eq!(machine.octets_sent()[..16], *key);
    });
    proof.verify(requirement!("MPA-7.1.1-5"), || {
        for markers in [false, true] {
            let sent = Machine::initiator(mpa(|mpa| mpa.markers = markers)).octets_sent();
            assert_eq!(sent[16], if markers { 0xc0 } else { 0x40 });
        }
    });
    proof.verify(requirement!("MPA-4.4-5"), || {
        assert_eq!(Machine::initiator(Settings::default()).octets_sent()[16], 0x40);
        let mut machine = responder();
        machine.octets(b"MPA ID Req Frame\0\x01\0\0");
        assert_eq!(machine.octets_sent()[16], 0x40);
    });
    proof.verify(requirement!("MPA-7.1.1-20"), || {
        assert_eq!(Machine::initiator(Settings::default()).octets_sent()[17], 1);
    });
    proof.verify(requirement!("MPA-7.1.1-24"), || {
        for length in [0, 1, 255, 256, 511, 512] {
            let sent = Machine::initiator(with_private_data(length)).octets_sent();
            assert_eq!(sent.len(), 20 + length);
            assert_eq!(usize::from(u16::from_be_bytes([sent[18], sent[19]])), length);
        }
    });
    proof.verify(requirement!("MPA-7.1.1-28"), || {
        assert_eq!(PrivateData::new(vec![0; 513]).unwrap_err().max, 512);
    });
    proof.verify(requirement!("MPA-7.1.1-27"), || {
        for length in [0, 1, 4, 255, 256, 512] {
            let mut wire = Wire::new(with_private_data(length), with_private_data(512 - length));
            wire.run();
            assert_eq!(established(&wire.responder).1.private_data.as_octets(), vec![0x70; length]);
            assert_eq!(established(&wire.initiator).1.private_data.as_octets(), vec![0x70; 512 - length]);
        }
    });
}

#[test]
fn bits_that_count_and_bits_that_do_not() {
    let mut proof = Coverage::new(Proven::Test);
    let reply_to = |settings: Settings, flags: u8| {
        let mut machine = Machine::responder(settings);
        machine.octets(&[&REQUEST[..16], &[flags, 1, 0, 0]].concat());
        machine.octets_sent()
    };
    proof.verify(requirement!("MPA-7.1.1-12"), || {
        for (own, flags, crc) in [(false, 0, 0), (false, 0x40, 0x40), (true, 0, 0x40), (true, 0x40, 0x40)] {
            assert_eq!(reply_to(mpa(|mpa| mpa.crc = own), flags)[16], crc);
        }
    });
    proof.verify(requirement!("MPA-7.1.1-16"), || assert_eq!(reply_to(Settings::default(), 0x60), REPLY));
    proof.verify(requirement!("MPA-7.1.1-19"), || {
        for reserved in 1..0x20 {
            assert_eq!(reply_to(Settings::default(), 0x40 | reserved), REPLY);
        }
    });
    proof.verify(requirement!("MPA-7.1.1-18"), || {
        assert_eq!(Machine::initiator(Settings::default()).octets_sent()[16] & 0x1f, 0);
        assert_eq!(reply_to(Settings::default(), 0xff)[16] & 0x1f, 0);
    });
    proof.verify(requirement!("MPA-7.1.1-15"), || {
        assert_eq!(Machine::initiator(Settings::default()).octets_sent()[16] & 0x20, 0);
    });
    proof.verify(requirement!("MPA-7.1.1-17"), || {
        assert_eq!(reply_to(Settings::default(), 0x40)[16] & 0x20, 0);
        let mut machine = Machine::responder(Settings { accept: false, ..Settings::default() });
        machine.octets(REQUEST);
        machine.connection.reject(&PrivateData::default()).unwrap();
        machine.settle();
        assert_eq!(machine.octets_sent()[16], 0x60);
    });
    proof.verify(requirement!("MPA-7.1.1-23"), || {
        let mut machine = responder();
        machine.octets(REQUEST);
        assert_eq!((established(&machine).0.peer_revision, established(&machine).1.revision), (1, 1));
    });
    proof.verify(requirement!("MPA-7.1.1-29"), || {
        let mut machine = Machine::responder(with_private_data(2));
        machine.octets(REQUEST);
        assert_eq!(machine.octets_sent(), b"MPA ID Rep Frame\x40\x01\0\x02pp");
    });
}

#[test]
fn rejected_frames() {
    let pd_length =
        |length: u16, following: usize| [&REQUEST[..18], &length.to_be_bytes(), &vec![0; following]].concat();
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-7.1.1-2"), || {
        for at in 0..16 {
            let mut request = *REQUEST;
            request[at] ^= 0x20;
            assert_eq!(refuses(responder(), &request).requirement(), Some(requirement!("MPA-7.1.1-2")));
        }
    });
    proof.verify(requirement!("MPA-7.1.1-4"), || {
        for at in 0..16 {
            let mut reply = *REPLY;
            reply[at] ^= 0x20;
            assert_eq!(refuses(initiator(), &reply).requirement(), Some(requirement!("MPA-7.1.1-4")));
        }
    });
    proof.verify(requirement!("MPA-7.1.1-22"), || {
        for revision in [0].into_iter().chain(3..=255) {
            let request = [&REQUEST[..17], &[revision, 0, 0]].concat();
            assert_eq!(refuses(responder(), &request).requirement(), Some(requirement!("MPA-7.1.1-22")));
        }
        for revision in [0].into_iter().chain(2..=255) {
            refuses(initiator(), &[&REPLY[..17], &[revision, 0, 0]].concat());
        }
    });
    proof.verify(requirement!("MPA-7.1.1-26"), || {
        refuses(responder(), &pd_length(513, 513));
        refuses(responder(), &pd_length(4, 8));
        refuses(initiator(), &[&REPLY[..18], &[0, 4, 1, 2, 3, 4, 5, 6, 7, 8]].concat());
        for cut in 20..28 {
            let mut machine = responder();
            machine.octets(&pd_length(8, 8)[..cut]);
            machine.fin();
            assert_eq!(machine.closed().unwrap().why, CloseCause::Startup(StartupError::CutShort { received: cut }));
        }
    });
    proof.verify(requirement!("MPA-7.1.2-24"), || {
        for length in [513, 600, 0x0200 | 0x8000, 0xffff] {
            assert_eq!(refuses(responder(), &pd_length(length, 0)).requirement(), Some(requirement!("MPA-7.1.2-24")));
        }
    });
    proof.verify(requirement!("MPA-7.1.2-25"), || {
        let mut machine = responder();
        machine.octets(&pd_length(512, 512));
        assert_eq!(machine.octets_sent(), REPLY);
    });
    proof.verify(requirement!("MPA-7.1.3-1"), || {
        refuses(responder(), b"G");
        refuses(responder(), b"GET / HTTP/1.1\r\n");
    });
    proof.verify(requirement!("MPA-8-9"), || {
        // The endpoint closes at once and does not wait for the private data that the header
        // announces.
        refuses(responder(), b"MPA ID Req Frame\x40\x03\0\x08");
        refuses(responder(), b"MPA ID Req Frame\x40\x01\x02\x01");
    });
}

#[test]
fn the_order_of_frames() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-7.1.2-1"), || {
        assert_eq!(Machine::initiator(Settings::default()).octets_sent(), REQUEST);
    });
    proof.verify(requirement!("MPA-7.1.2-12"), || {
        let mut machine = responder();
        machine.pass(Duration::from_millis(9999));
        machine.octets(&REQUEST[..19]);
        assert_eq!(machine.sent, []);
    });
    proof.verify(requirement!("MPA-7.1.2-13"), || {
        let mut machine = initiator();
        assert!(machine.connection.post_send(&b"x"[..]).is_err());
        machine.octets(&REPLY[..19]);
        assert_eq!(machine.sent, []);
    });
    proof.verify(requirement!("MPA-7.1.2-10"), || {
        let mut machine = responder();
        machine.octets(REQUEST);
        machine.connection.post_receive(0).unwrap();
        machine.octets(SEND);
        assert_eq!(machine.received().len(), 1);
    });
    proof.verify(requirement!("MPA-7.1.2-15"), || {
        let mut machine = initiator();
        machine.octets(b"MPA ID Rep Frame\x60\x01\0\x02no");
        machine.pass(Duration::from_secs(3600));
        assert_eq!(machine.sent, [], "no FPDU and no FIN: the ULP closes TCP");
        assert!(matches!(&machine.events[..], [Event::Rejected(_)]));
    });
    proof.verify(requirement!("MPA-7.1.2-7"), || {
        let mut machine = Machine::responder(Settings { accept: false, ..Settings::default() });
        machine.octets(REQUEST);
        machine.connection.reject(&PrivateData::default()).unwrap();
        machine.settle();
        machine.pass(Duration::from_secs(3600));
        assert_eq!(machine.sent.len(), 1, "the Reply alone");
        machine.octets(WRITE);
        assert_eq!(machine.events.len(), 1);
    });
    proof.verify(requirement!("MPA-7.1.4.2-2"), || {
        let mut machine = initiator();
        machine.octets(b"MPA ID Rep Frame\x60\x01\0\x05sorry");
        let [Event::Rejected(reply)] = &machine.events[..] else { panic!("{:?}", machine.events) };
        assert_eq!(reply.private_data.as_octets(), b"sorry");
    });
    proof.verify(requirement!("MPA-7.1.2-11"), || {
        // The peer sends an FPDU before the Reply, and an FPDU while the Responder's ULP decides.
        refuses(responder(), &[&REQUEST[..], WRITE].concat());
        let mut machine = Machine::responder(Settings { accept: false, ..Settings::default() });
        machine.octets(REQUEST);
        machine.octets(WRITE);
        assert_eq!(machine.sent, [Transmit::Fin]);
    });
}

#[test]
fn time_outs_and_roles() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-7.1.2-22"), || {
        assert_eq!(refuses(initiator(), REQUEST), CloseCause::Startup(StartupError::BothInitiators));
        refuses(responder(), REPLY);
    });
    proof.verify(requirement!("MPA-7.1-8"), || {
        // Both endpoints are Initiators ("active/active").
        let [mut one, mut other] = [initiator(), initiator()];
        one.octets(REQUEST);
        other.octets(REQUEST);
        for machine in [&mut one, &mut other] {
            assert_eq!(machine.sent, [Transmit::Fin]);
            machine.fin();
            let requirement = machine.closed().unwrap().why.requirement();
            assert_eq!(requirement, Some(requirement!("MPA-7.1.2-22")));
        }
    });
    proof.verify(requirement!("MPA-7.1.2-23"), || {
        // Both endpoints are Responders ("passive/passive").
        let mut machine = responder();
        machine.pass(Duration::from_secs(10));
        assert_eq!(machine.sent, [Transmit::Fin]);
        machine.fin();
        assert_eq!(machine.closed(), Some(Closed { by: ClosedBy::Library, why: CloseCause::NoRequest }));
    });
    proof.verify(requirement!("MPA-7.1.2-28"), || {
        for (mut machine, frame) in [(responder(), &REQUEST[..]), (initiator(), REPLY)] {
            machine.octets(&frame[..19]);
            machine.pass(Duration::from_millis(9999));
            assert_eq!(machine.sent, []);
            machine.pass(Duration::from_millis(1));
            assert_eq!(machine.sent, [Transmit::Fin]);
        }
        let mut machine = responder();
        machine.octets(b"MPA ID Req Frame\x40\x01\0\x08four");
        machine.pass(Duration::from_secs(10));
        assert_eq!(machine.sent, [Transmit::Fin]);
    });
    proof.verify(requirement!("MPA-7.1.2-29"), || {
        let mut machine = responder();
        machine.octets(REQUEST);
        machine.pass(Duration::from_secs(60));
        assert_eq!(machine.sent.last(), Some(&Transmit::Fin));
    });
    proof.verify(requirement!("MPA-7.1-3"), || {
        let mut machine = responder();
        machine.octets(REQUEST);
        assert_eq!(machine.octets_sent(), REPLY, "the very first octets");
    });
}
