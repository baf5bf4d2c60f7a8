//! Tests requirements that other tests cover only in part. Each requirement has its own assertion.

use weft_core::coverage::{Coverage, CoverageKind as Proven};
use weft_core::{crc, requirement};
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, Event, Transmit};
use weft_peer::mpa::EnhancedUse;

use crate::connection::machine::{Machine, REPLY, REQUEST, SEND, WRITE, mpa};
use crate::mpa::wire::established;

fn responder(octets: &[&[u8]]) -> Machine {
    let mut machine = Machine::responder(Settings::default());
    octets.iter().for_each(|octets| machine.octets(octets));
    machine
}

fn initiator(octets: &[u8]) -> Machine {
    let mut machine = Machine::initiator(Settings::default());
    machine.forget();
    machine.octets(octets);
    machine
}

/// A Responder in Full Operation with posted receives. It has received these octets, each slice
/// with one write.
fn operating(crc: bool, octets: &[&[u8]]) -> Machine {
    let mut machine = Machine::responder(mpa(|mpa| mpa.crc = crc));
    machine.octets(b"MPA ID Req Frame\0\x01\0\0");
    (0..4).for_each(|_| machine.connection.post_receive(100).unwrap());
    machine.forget();
    octets.iter().for_each(|octets| machine.octets(octets));
    machine
}

fn with_field(field: [u8; 4]) -> Vec<u8> {
    [&SEND[..20], &field].concat()
}

#[test]
fn malformed_frames() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-7.1.2-4"), || {
        for request in
            [&b"MPA ID Req frame\x40\x01\0\0"[..], b"MPA ID Req Frame\x40\x04\0\0", b"MPA ID Req Frame\x40\x01\x03\0"]
        {
            assert_eq!(responder(&[request]).sent, [Transmit::Fin]);
        }
    });
    proof.verify(requirement!("MPA-7.1.2-14"), || {
        for reply in
            [&b"MPA ID Rep frame\x40\x01\0\0"[..], b"MPA ID Rep Frame\x40\x04\0\0", b"MPA ID Rep Frame\x40\x01\x03\0"]
        {
            assert_eq!(initiator(reply).sent, [Transmit::Fin]);
        }
    });
    proof.verify(requirement!("MPA-7.1.2-18"), || {
        let mut machine = responder(&[b"MPA ID Rex Frame\x40\x01\0\0"]);
        machine.fin();
        assert!(matches!(machine.closed(), Some(Closed { by: ClosedBy::Library, why: CloseCause::Startup(_) })));
    });
    proof.verify(requirement!("MPA-7.1.2-26"), || {
        let machine = responder(&[b"MPA ID Req Frame\x40\x01\0\x02abc"]);
        assert_eq!((machine.events.len(), machine.sent.as_slice()), (0, &[Transmit::Fin][..]));
    });
    proof.verify(requirement!("MPA-7.1.1-21"), || {
        let taken: Vec<u8> = (0..=255)
            .filter(|rev| {
                let request = [&b"MPA ID Req Frame\x40"[..], &[*rev, 0, 0]].concat();
                responder(&[&request]).connection.is_operating()
            })
            .collect();
        assert_eq!(taken, [1, 2]);
    });
    proof.verify(requirement!("MPA-8-4"), || {
        let mut machine = initiator(b"HTTP/1.1 400 Bad Request");
        machine.fin();
        let why = machine.closed().unwrap().why;
        assert!(why.to_string().starts_with("malformed start-up frame: MPA key at byte 0"), "{why}");
    });
}

#[test]
fn fpdus_that_are_checked() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-4.1-7"), || {
        for field in [[0; 4], [0xde, 0xad, 0xbe, 0xef]] {
            assert_eq!(operating(false, &[&with_field(field)]).sent, [], "no Terminate");
        }
    });
    proof.verify(requirement!("MPA-7.1.1-10"), || {
        let octets = [&with_field([0xff; 4])[..], WRITE].concat();
        let machine = operating(false, &[&octets]);
        assert!(machine.connection.is_operating() && machine.received().len() == 1);
    });
    proof.verify(requirement!("MPA-4.4-20"), || {
        let machine = operating(true, &[WRITE, &with_field([0xff; 4])]);
        assert!(matches!(machine.events[..], [Event::TerminateSent(_)]), "{:?}", machine.events);
    });
    proof.verify(requirement!("MPA-6-3"), || {
        // This CRC belongs to another FPDU of the same length.
        let mut other = SEND[..20].to_vec();
        other[15] = 2;
        let field = crc::to_octets(crc::crc32c(&other));
        assert_eq!(operating(true, &[WRITE, &with_field(field)]).received().len(), 0);
    });
    proof.verify(requirement!("MPA-6-2"), || {
        // The FPDU contains octets that look like the start of another FPDU.
        let mut inside = [&[0, 18 + 24][..], &SEND[2..20], SEND].concat();
        inside.extend(crc::to_octets(crc::crc32c(&inside)));
        for cut in 0..inside.len() {
            let machine = operating(true, &[&inside[..cut], &inside[cut..]]);
            assert_eq!(machine.received(), [SEND], "cut at {cut}");
        }
    });
    proof.verify(requirement!("MPA-6-4"), || assert_eq!(operating(true, &[SEND]).received(), [b""]));
    proof.verify(requirement!("MPA-4.3-17"), || {
        let mut second = SEND[..20].to_vec();
        second[15] = 2;
        second.extend(crc::to_octets(crc::crc32c(&second)));
        assert_eq!(operating(true, &[&[SEND, &second].concat()]).received().len(), 2);
    });
    proof.verify(requirement!("MPA-A.4-1"), || {
        for cut in 0..=SEND.len() {
            assert_eq!(operating(true, &[&SEND[..cut], &SEND[cut..]]).received().len(), 1);
        }
    });
}

#[test]
fn revisions_side_by_side() {
    let enhanced = || mpa(|mpa| mpa.enhanced = EnhancedUse::Request);
    let takes = |request: &[u8]| {
        let mut machine = Machine::responder(enhanced());
        machine.octets(request);
        machine.octets_sent()
    };
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-6-8"), || assert_eq!(takes(REQUEST), REPLY));
    proof.verify(requirement!("P2P-10-10"), || {
        assert_eq!(takes(b"MPA ID Req Frame\x40\x02\0\0"), b"MPA ID Rep Frame\x40\x02\0\0");
    });
    proof.verify(requirement!("P2P-1.1-1"), || {
        let mut machine = Machine::responder(enhanced());
        machine.octets(REQUEST);
        machine.connection.post_receive(0).unwrap();
        machine.octets(SEND);
        assert_eq!((established(&machine).0.enhanced, machine.received().len()), (None, 1));
    });
    proof.verify(requirement!("P2P-6-3"), || {
        let mut machine = Machine::responder(enhanced());
        machine.octets(b"MPA ID Req Frame\x40\x02\0\x08\x80\x01\xc0\x01data");
        assert_eq!(established(&machine).1.private_data.as_octets(), b"\x80\x01\xc0\x01data");
        assert_eq!(machine.octets_sent()[16] & 0x10, 0);
    });
    proof.verify(requirement!("P2P-9.1-18"), || {
        let mut machine = Machine::responder(enhanced());
        machine.octets(b"MPA ID Req Frame\x50\x02\0\x04\0\0\0\0");
        assert_eq!(established(&machine).0.enhanced.map(|agreed| agreed.ord), Some(0));
    });
    proof.verify(requirement!("P2P-12-2"), || {
        for words in [[0xff; 4], [0; 4], [0x7f, 0xff, 0, 0], [0x80, 0, 0xff, 0xff]] {
            let reply = takes(&[&b"MPA ID Req Frame\x50\x02\0\x04"[..], &words].concat());
            assert_eq!(reply.len(), 24, "{words:02x?}");
        }
    });
}
