//! Tests RFC 6581: the frames, the values IRD and ORD, and how each side uses the values of its
//! peer.

use weft_core::coverage::{Coverage, CoverageKind as Proven};
use weft_core::requirement;
use weft_core::wire::mpa::Enhanced;
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, CommandError, Event, Transmit};
use weft_peer::mpa::{Agreed, Depth, EnhancedSettings, EnhancedUse, Model, PrivateData, Rtr, RtrKinds, SetupError};
use weft_peer::rdmap::StreamError;

use crate::connection::machine::{Machine, mpa};
use crate::mpa::wire::{Wire, established};

/// Settings that request the enhanced set-up.
fn asking(change: impl FnOnce(&mut EnhancedSettings)) -> Settings {
    mpa(|mpa| {
        mpa.enhanced = EnhancedUse::Request;
        change(&mut mpa.enhanced_settings);
    })
}

fn request(flags: u8, revision: u8, tail: &[u8]) -> Vec<u8> {
    let length = u8::try_from(tail.len()).unwrap();
    [b"MPA ID Req Frame", &[flags, revision, 0, length][..], tail].concat()
}

fn reply(tail: &[u8]) -> Vec<u8> {
    let length = u8::try_from(tail.len()).unwrap();
    [b"MPA ID Rep Frame", &[0x50, 2, 0, length][..], tail].concat()
}

/// The two words with IRD and ORD. The two high bits of the first word are the flags A and B. The
/// two high bits of the second word are C and D.
fn words(ird: u16, ord: u16) -> Vec<u8> {
    [ird.to_be_bytes(), ord.to_be_bytes()].concat()
}

/// The words IRD and ORD in the Reply of a Responder with these settings. `ird` and `ord` are the
/// words in the Request.
fn answer(change: impl FnOnce(&mut EnhancedSettings), ird: u16, ord: u16) -> (u16, u16) {
    let mut responder = Machine::responder(asking(change));
    responder.octets(&request(0x50, 2, &words(ird, ord)));
    let sent = responder.octets_sent();
    assert_eq!((sent.len(), &sent[16..20]), (24, &[0x50, 2, 0, 4][..]));
    (u16::from_be_bytes([sent[20], sent[21]]), u16::from_be_bytes([sent[22], sent[23]]))
}

/// An Initiator that has received a Reply with these values.
fn answered(change: impl FnOnce(&mut EnhancedSettings), ird: u16, ord: u16) -> Machine {
    let mut initiator = Machine::initiator(asking(change));
    initiator.forget();
    initiator.octets(&reply(&words(ird, ord)));
    initiator
}

fn agreed(machine: &Machine) -> Agreed {
    established(machine).0.enhanced.unwrap()
}

/// The kernel's siw sent these octets as Initiator and as Responder in the captures
/// `rping-p2p-crc`, `rping-p2p-read-rtr` and `rping-crc`.
#[test]
fn the_frames_of_siw() {
    let peer_to_peer = |rtr: RtrKinds, crc: bool| {
        let mut settings = asking(|e| {
            (e.model, e.ird, e.ord, e.rtr) = (Model::PeerToPeer, Depth::negotiated(1), Depth::negotiated(1), rtr);
        });
        settings.mpa.crc = crc;
        settings
    };
    let write_or_read = RtrKinds { send: false, ..RtrKinds::ALL };
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-9-7"), || {
        let initiator = Machine::initiator(peer_to_peer(write_or_read, true));
        assert_eq!(initiator.octets_sent(), request(0x50, 2, b"\x80\x01\xc0\x01"));
    });
    proof.verify(requirement!("P2P-9.2-5"), || {
        let mut responder = Machine::responder(peer_to_peer(RtrKinds::only(Rtr::Write), true));
        responder.octets(&request(0x50, 2, b"\x80\x01\xc0\x01"));
        assert_eq!(responder.octets_sent(), reply(b"\x80\x01\x80\x01"));
    });
    proof.verify(requirement!("P2P-9-6"), || {
        let read = RtrKinds::only(Rtr::Read);
        assert_eq!(Machine::initiator(peer_to_peer(read, false)).octets_sent(), request(0x10, 2, b"\x80\x01\x40\x01"));
        let mut responder = Machine::responder(peer_to_peer(read, false));
        responder.octets(&request(0x10, 2, b"\x80\x01\x40\x01"));
        assert_eq!(responder.octets_sent()[16..], *b"\x10\x02\0\x04\x80\x01\x40\x01");
    });
    proof.verify(requirement!("P2P-9.2-24"), || {
        let client = asking(|e| (e.ird, e.ord) = (Depth::negotiated(1), Depth::negotiated(1)));
        assert_eq!(Machine::initiator(client).octets_sent(), request(0x50, 2, b"\0\x01\0\x01"));
    });
}

#[test]
fn each_flag_and_field_has_its_place() {
    let one = |kind| {
        let settings = asking(|e| {
            (e.model, e.rtr) = (Model::PeerToPeer, RtrKinds::only(kind));
            (e.ird, e.ord) = (Depth::negotiated(0x2aaa), Depth::negotiated(0x1555));
        });
        Machine::initiator(settings).octets_sent()[16..].to_vec()
    };
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-9-4"), || assert_eq!(one(Rtr::Send), b"\x50\x02\0\x04\xea\xaa\x15\x55"));
    proof.verify(requirement!("P2P-9-5"), || assert_eq!(one(Rtr::Write), b"\x50\x02\0\x04\xaa\xaa\x95\x55"));
    proof.verify(requirement!("P2P-9-2"), || assert_eq!(one(Rtr::Read), b"\x50\x02\0\x04\xaa\xaa\x55\x55"));
    proof.verify(requirement!("P2P-9.2-2"), || {
        for bits in 1..8u8 {
            let rtr = RtrKinds { send: bits & 1 != 0, write: bits & 2 != 0, read: bits & 4 != 0 };
            let sent = Machine::initiator(asking(|e| (e.model, e.rtr) = (Model::PeerToPeer, rtr))).octets_sent();
            let flags = [sent[20] & 0x40 != 0, sent[22] & 0x80 != 0, sent[22] & 0x40 != 0];
            assert_eq!(flags, [rtr.send, rtr.write, rtr.read]);
        }
    });
    proof.verify(requirement!("P2P-9.2-3"), || {
        // The Request does not show which kinds of ready-to-receive message the endpoint supports.
        assert_eq!(Machine::initiator(asking(|_| ())).octets_sent()[20..], words(32, 32));
    });
    proof.verify(requirement!("P2P-6-10"), || {
        let private_data = PrivateData::new(&b"hello"[..]).unwrap();
        let sent = Machine::initiator(Settings { private_data, ..asking(|_| ()) }).octets_sent();
        assert_eq!(sent[18..], *b"\0\x09\0\x20\0\x20hello");
    });
    proof.verify(requirement!("P2P-9-8"), || {
        let private_data = |octets: usize| PrivateData::new(vec![1; octets]).unwrap();
        let settings = |octets| Settings { private_data: private_data(octets), ..asking(|_| ()) };
        let error = weft_peer::Connection::initiate(weft_peer::Instant::ORIGIN, settings(509)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the private data has 509 bytes, but an enhanced start-up frame can carry at most 508 bytes"
        );
        assert_eq!(Machine::initiator(settings(508)).octets_sent().len(), 532);
        // The private data in this Responder's settings is too long for the Reply. So the Responder
        // lets its user decide whether to accept. If the user passes private data of the same
        // length, the call fails.
        let mut responder = Machine::responder(settings(509));
        responder.octets(&request(0x50, 2, &words(1, 1)));
        assert!(matches!(responder.events[..], [Event::Request(_)]));
        let refused = responder.connection.accept(responder.now, &private_data(509));
        assert!(matches!(refused, Err(CommandError::PrivateData(_))), "{refused:?}");
        assert_eq!(responder.connection.reject(&private_data(509)), refused);
        responder.connection.accept(responder.now, &private_data(508)).unwrap();
        responder.settle();
        assert_eq!(responder.octets_sent().len(), 532);
    });
    proof.verify(requirement!("P2P-6-2"), || {
        let mut responder = Machine::responder(Settings::default());
        responder.octets(&request(0x50, 2, b"\0\x01\0\x01data"));
        assert_eq!(established(&responder).1.private_data.as_octets(), b"data");
        assert_eq!(responder.octets_sent()[18..20], [0, 4]);
    });
}

/// Checks the Responder's part of RFC 6581 section 9.1.
#[test]
fn a_responder_answers_ird_and_ord() {
    let depths =
        |ird, ord| move |e: &mut EnhancedSettings| (e.ird, e.ord) = (Depth::negotiated(ird), Depth::negotiated(ord));
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-9.1-20"), || {
        for ird in [0, 1, 3, 31, 32, 33, 0x3ffe] {
            assert_eq!(answer(depths(8, 32), ird, 1).1, ird.min(32));
        }
    });
    proof.verify(requirement!("P2P-9.1-7"), || {
        // The Responder raises its IRD to the requested number, but at most to the limit of 128.
        // The Reply has the raised IRD.
        for (ord, ird) in [(0, 8), (8, 8), (9, 9), (128, 128), (129, 128), (16_000, 128)] {
            assert_eq!(answer(depths(8, 8), 1, ord).0, ird);
        }
    });
    proof.verify(requirement!("P2P-9.1-13"), || assert_eq!(answer(depths(8, 8), 4, 0x3fff).0, 0x3fff));
    proof.verify(requirement!("P2P-9.1-14"), || assert_eq!(answer(depths(8, 8), 0x3fff, 4).1, 0x3fff));
    proof.verify(requirement!("P2P-9.1-17"), || {
        assert_eq!(answer(depths(8, 8), 4, 0x3fff), (0x3fff, 4));
        assert_eq!(answer(depths(8, 8), 0x3fff, 9), (9, 0x3fff));
    });
    proof.verify(requirement!("P2P-9.1-19"), || {
        // A Read as ready-to-receive message needs an IRD of at least one.
        let read = |e: &mut EnhancedSettings| {
            (e.rtr, e.ird) = (RtrKinds::only(Rtr::Read), Depth::negotiated(0));
        };
        assert_eq!(answer(read, 0x8000, 0x4000), (0x8001, 0x4000));
    });
    proof.verify(requirement!("P2P-9.1-3"), || {
        let mut responder = Machine::responder(asking(depths(8, 8)));
        responder.octets(&request(0x50, 2, &words(3, 20)));
        assert_eq!(responder.octets_sent()[20..], words(20, 3));
        assert_eq!(agreed(&responder), Agreed { ird: 20, ord: 3, peer_to_peer: false });
    });
    proof.verify(requirement!("P2P-9.1-8"), || {
        let mut responder = Machine::responder(asking(depths(8, 8)));
        responder.octets(&request(0x50, 2, &words(3, 0x3fff)));
        let peer = Enhanced { ird: 3, ord: 0x3fff, ..Enhanced::default() };
        assert_eq!(established(&responder).1.enhanced, Some(peer));
        // The IRD of the Responder stays unchanged.
        assert_eq!(agreed(&responder).ird, 8);
    });
}

/// Checks the Initiator's part of RFC 6581 section 9.1.
#[test]
fn an_initiator_follows_the_reply() {
    let depths =
        |ird, ord| move |e: &mut EnhancedSettings| (e.ird, e.ord) = (Depth::negotiated(ird), Depth::negotiated(ord));
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-9.1-9"), || {
        for (ird, ord) in [(0, 0), (1, 1), (15, 15), (16, 16), (17, 16), (0x3ffe, 16)] {
            assert_eq!(agreed(&answered(depths(4, 16), ird, 1)).ord, ord);
        }
    });
    proof.verify(requirement!("P2P-9.1-23"), || {
        for (ord, ird) in [(0, 4), (4, 4), (5, 5), (128, 128)] {
            assert_eq!(agreed(&answered(depths(4, 4), 1, ord)).ird, ird);
        }
    });
    proof.verify(requirement!("P2P-9.1-15"), || assert_eq!(agreed(&answered(depths(4, 16), 0x3fff, 4)).ord, 16));
    proof.verify(requirement!("P2P-9.1-16"), || assert_eq!(agreed(&answered(depths(4, 16), 16, 0x3fff)).ird, 4));
    proof.verify(requirement!("P2P-9.1-12"), || {
        let fixed = asking(|e| (e.ird, e.ord) = (Depth::fixed(7), Depth::fixed(9)));
        assert_eq!(Machine::initiator(fixed.clone()).octets_sent()[20..], words(0x3fff, 0x3fff));
        let mut wire = Wire::new(fixed, asking(depths(2, 3)));
        wire.run();
        assert_eq!(agreed(&wire.initiator), Agreed { ird: 7, ord: 9, peer_to_peer: false });
        assert_eq!(agreed(&wire.responder), Agreed { ird: 2, ord: 3, peer_to_peer: false });
    });
    proof.verify(requirement!("P2P-9.1-24"), || {
        let initiator = answered(depths(4, 4), 1, 129);
        // A Terminate with code 20 06. An independent, table-driven implementation computed its
        // CRC.
        let terminate = b"\0\x16\x41\x47\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\x20\x06\0\0\x65\x40\xfb\x1b";
        assert_eq!(initiator.octets_sent(), terminate);
    });
    proof.verify(requirement!("P2P-9.1-10"), || {
        let mut initiator = answered(depths(4, 4), 1, 0x3ffe);
        assert_eq!(initiator.sent.last(), Some(&Transmit::Fin));
        initiator.fin();
        let error = StreamError::Setup(SetupError::InsufficientIrd { wanted: 0x3ffe, most: 128 });
        assert_eq!(initiator.closed(), Some(Closed { by: ClosedBy::Library, why: CloseCause::Fault(error) }));
    });
    proof.verify(requirement!("P2P-9.1-25"), || {
        let initiator = answered(depths(4, 4), 1, 129);
        let [Event::Unusable(peer), Event::TerminateSent(_)] = &initiator.events[..] else { panic!() };
        assert_eq!(peer.enhanced.map(|words| (words.ird, words.ord)), Some((1, 129)));
        let mut rejected = Machine::initiator(asking(|_| ()));
        rejected.octets(&[b"MPA ID Rep Frame\x70\x02\0\x08", &words(5, 6)[..], b"sry!"].concat());
        let [Event::Rejected(peer)] = &rejected.events[..] else { panic!() };
        assert_eq!(peer.enhanced.map(|words| (words.ird, words.ord)), Some((5, 6)));
        assert_eq!(peer.private_data.as_octets(), b"sry!");
    });
}

/// For every combination of these depths, the ORD of each side is at most the IRD of its peer.
#[test]
fn ord_never_exceeds_the_peers_ird() {
    let sizes = [0, 1, 2, 7, 128, 129, 0x3ffe];
    let mut proof = Coverage::new(Proven::Test);
    let pairs = |check: &dyn Fn(Agreed, Agreed)| {
        let mut checked = 0;
        let size = |index: usize, place: u32| sizes[index / sizes.len().pow(place) % sizes.len()];
        for index in 0..sizes.len().pow(4) {
            let [a, b, c, d] = [0, 1, 2, 3].map(|place| size(index, place));
            let depths = |ird, ord| asking(|e| (e.ird, e.ord) = (Depth::negotiated(ird), Depth::negotiated(ord)));
            let mut wire = Wire::new(depths(a, b), depths(c, d));
            wire.run();
            check(agreed(&wire.initiator), agreed(&wire.responder));
            checked += 1;
        }
        assert_eq!(checked, 2401);
    };
    proof.verify(requirement!("P2P-9.1-4"), || pairs(&|initiator, responder| assert!(initiator.ord <= responder.ird)));
    proof.verify(requirement!("P2P-9.1-5"), || pairs(&|initiator, responder| assert!(responder.ord <= initiator.ird)));
}

/// Checks the answer to each kind of Request (RFC 6581 sections 6 and 10).
#[test]
fn enhanced_and_unenhanced_endpoints() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-10-2"), || {
        let mut responder = Machine::responder(Settings { accept: false, ..Settings::default() });
        responder.octets(&request(0x50, 2, &words(1, 1)));
        responder.connection.reject(&PrivateData::new(&b"no"[..]).unwrap()).unwrap();
        responder.settle();
        assert_eq!(responder.octets_sent(), [&b"MPA ID Rep Frame\x70\x02\0\x06"[..], &words(32, 1), b"no"].concat());
    });
    proof.verify(requirement!("P2P-9.1-21"), || {
        let mut responder = Machine::responder(asking(|e| e.min_ord = 4));
        responder.octets(&request(0x50, 2, &words(3, 1)));
        assert_eq!(responder.octets_sent()[16..], [&b"\x70\x02\0\x04"[..], &words(32, 4)].concat());
        assert_eq!(responder.sent.last(), Some(&Transmit::Fin));
        responder.fin();
        assert_eq!(responder.closed(), Some(Closed { by: ClosedBy::Library, why: CloseCause::PeerIrd }));
        assert_eq!(answer(|e| e.min_ord = 4, 4, 1).1, 4);
    });
    proof.verify(requirement!("P2P-10-3"), || {
        let mut responder = Machine::responder(asking(|_| ()));
        responder.octets(&request(0x50, 1, &words(1, 1)));
        assert_eq!(responder.octets_sent(), b"MPA ID Rep Frame\x40\x01\0\0");
        assert_eq!(established(&responder).1.private_data.as_octets(), words(1, 1));
    });
    proof.verify(requirement!("P2P-10-11"), || {
        let mut responder = Machine::responder(asking(|_| ()));
        responder.octets(&request(0x40, 2, b"eight octets"));
        assert_eq!(responder.octets_sent(), b"MPA ID Rep Frame\x40\x02\0\0");
        assert_eq!(established(&responder).1.private_data.as_octets(), b"eight octets");
    });
    proof.verify(requirement!("P2P-6-5"), || {
        let mut responder = Machine::responder(asking(|_| ()));
        responder.octets(&request(0x5f, 2, &words(1, 1)));
        assert_eq!(responder.octets_sent()[16], 0x50);
    });
    proof.verify(requirement!("P2P-10-4"), || {
        let mut responder = Machine::responder(mpa(|mpa| mpa.enhanced = EnhancedUse::Off));
        responder.octets(&request(0x50, 2, &words(1, 1)));
        assert_eq!(responder.sent, [Transmit::Fin]);
    });
    proof.verify(requirement!("P2P-10-1"), || {
        assert_eq!(Machine::initiator(Settings::default()).octets_sent()[16..18], [0x40, 1]);
    });
    proof.verify(requirement!("P2P-6-12"), || {
        for length in 0..4 {
            let mut responder = Machine::responder(Settings::default());
            responder.octets(&request(0x50, 2, &[0; 3][..length]));
            assert_eq!(responder.sent, [Transmit::Fin]);
            responder.fin();
            assert_eq!(responder.closed().unwrap().why.requirement(), Some(requirement!("P2P-6-12")));
        }
    });
}

/// P2P-10-5, P2P-10-12: an endpoint without RFC 6581 closes. The Initiator then reports that it is
/// allowed to connect again with revision 1.
#[test]
fn falling_back_to_revision_1() {
    let refused = |end: &dyn Fn(&mut Machine), settings: Settings| {
        let mut initiator = Machine::initiator(settings);
        end(&mut initiator);
        initiator.connection.may_fall_back()
    };
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-10-5"), || {
        assert!(refused(&|machine| machine.fin(), asking(|_| ())));
        assert!(refused(&|machine| machine.reset(), asking(|_| ())));
        assert!(!refused(&|machine| machine.fin(), Settings::default()), "the Request was not enhanced");
        let answered = |machine: &mut Machine| {
            machine.octets(&reply(&words(1, 1)));
            machine.fin();
        };
        assert!(!refused(&answered, asking(|_| ())), "the peer answered the Request");
        let again = Machine::initiator(asking(|_| ()).unenhanced());
        assert_eq!(again.octets_sent(), b"MPA ID Req Frame\x40\x01\0\0");
    });
    proof.verify(requirement!("P2P-10-12"), || {
        let mut wire = Wire::new(asking(|_| ()), mpa(|mpa| mpa.enhanced = EnhancedUse::Off));
        wire.run();
        assert_eq!(wire.initiator.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::Fin }));
        assert!(matches!(wire.responder.closed(), Some(Closed { by: ClosedBy::Library, why: CloseCause::Startup(_) })));
    });
}

/// The Responder answers an enhanced Request without enhancement. The result is a connection of
/// revision 1.
#[test]
fn an_unenhanced_reply_to_an_enhanced_request() {
    for tail in [&b"\x40\x01\0\0"[..], b"\x40\x02\0\0", b"\x40\x01\0\x02hi"] {
        let mut initiator = Machine::initiator(asking(|e| e.model = Model::PeerToPeer));
        initiator.forget();
        initiator.octets(&[b"MPA ID Rep Frame", tail].concat());
        assert_eq!(established(&initiator).0.enhanced, None);
        assert_eq!(initiator.sent, [], "no ready-to-receive message");
    }
    // If the Initiator did not request the enhanced set-up, a Reply of revision 2 is invalid.
    let mut initiator = Machine::initiator(Settings::default());
    initiator.octets(&reply(&words(1, 1)));
    assert_eq!(initiator.sent.last(), Some(&Transmit::Fin));
}
