//! Tests ready-to-receive messages: which kind the Initiator sends, when it sends the message, and
//! which resources the message uses. The sources are RFC 6581 section 9.2 and the e-mail proposal
//! of 2007 that preceded this RFC.

use std::time::Duration;

use weft_core::coverage::{Coverage, CoverageKind as Proven};
use weft_core::requirement;
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Event, Transmit};
use weft_peer::mpa::{Depth, EnhancedSettings, EnhancedUse, Model, Rtr, RtrKinds, SetupError};
use weft_peer::rdmap::StreamError;

use crate::connection::machine::{Machine, SEND, WRITE, mpa};
use crate::mpa::wire::{Wire, established, fpdus, split_frame};

fn peer_to_peer(change: impl FnOnce(&mut EnhancedSettings)) -> Settings {
    mpa(|mpa| {
        mpa.enhanced = EnhancedUse::Request;
        mpa.enhanced_settings.model = Model::PeerToPeer;
        change(&mut mpa.enhanced_settings);
    })
}

/// Returns an Initiator that has received a Reply whose IRD and ORD fields are `words`.
fn after_reply(change: impl FnOnce(&mut EnhancedSettings), words: &[u8; 4]) -> Machine {
    let mut initiator = Machine::initiator(peer_to_peer(change));
    initiator.forget();
    initiator.octets(&[b"MPA ID Rep Frame\x50\x02\0\x04", &words[..]].concat());
    initiator
}

/// A Responder's flags A to D in answer to these flags.
fn flags(rtr: RtrKinds, requested: [u8; 2]) -> [u8; 2] {
    let mut responder = Machine::responder(peer_to_peer(|e| e.rtr = rtr));
    responder.octets(&[b"MPA ID Req Frame\x50\x02\0\x04", &[requested[0], 8, requested[1], 8][..]].concat());
    let sent = responder.octets_sent();
    [sent[20] & 0xc0, sent[22] & 0xc0]
}

/// The FPDUs READ and READ_RESPONSE, like WRITE and SEND, have CRCs from an independent
/// implementation.
const READ: &[u8; 52] =
    b"\0\x2e\x41\x41\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \xf2\xc6\xdd\x3d";
const READ_RESPONSE: &[u8; 20] = b"\0\x0e\xc1\x42\0\0\0\0\0\0\0\0\0\0\0\0\x69\x75\xd6\xca";

#[test]
fn the_initiator_sends_one_of_the_replys_kinds() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-9.2-10"), || {
        assert_eq!(after_reply(|_| (), b"\x80\x01\x80\x01").octets_sent(), WRITE);
    });
    proof.verify(requirement!("P2P-9.2-11"), || {
        assert_eq!(after_reply(|_| (), b"\x80\x01\x40\x01").octets_sent(), READ);
    });
    proof.verify(requirement!("P2P-9.2-13"), || {
        let mut initiator = after_reply(|_| (), b"\xc0\x01\0\x01");
        assert_eq!(initiator.octets_sent(), SEND);
        initiator.connection.post_send(&b""[..]).unwrap();
        initiator.settle();
        assert_eq!(initiator.octets_sent()[SEND.len() + 12..][..4], [0, 0, 0, 2], "MSN of the next Send");
    });
    proof.verify(requirement!("P2P-1.1-3"), || {
        // If the Reply offers all three kinds, the Initiator sends exactly one message, of the
        // preferred kind.
        for (kind, octets) in [(Rtr::Read, &READ[..]), (Rtr::Send, SEND), (Rtr::Write, WRITE)] {
            assert_eq!(after_reply(|e| e.preferred_rtr = kind, b"\xc0\x01\xc0\x01").octets_sent(), octets);
        }
    });
    proof.verify(requirement!("P2P-9.2-9"), || {
        // The Reply does not offer the preferred kind.
        let likes_send = |e: &mut EnhancedSettings| e.preferred_rtr = Rtr::Send;
        assert_eq!(after_reply(likes_send, b"\x80\x01\x40\x01").octets_sent(), READ);
        // A Read needs a Responder with an IRD of at least one. A Write does not need IRD.
        let likes_read = |e: &mut EnhancedSettings| e.preferred_rtr = Rtr::Read;
        assert_eq!(after_reply(likes_read, b"\x80\0\xc0\x01").octets_sent(), WRITE);
        // RFC 6581 section 9.2 requires the ready-to-receive message after each accepting Reply
        // with A=1, even if the Request had A=0 (the client-server model).
        let client = |e: &mut EnhancedSettings| e.model = Model::ClientServer;
        assert_eq!(after_reply(client, b"\x80\x01\x80\x01").octets_sent(), WRITE);
    });
    proof.verify(requirement!("P2P-5-4"), || {
        let mut initiator = Machine::initiator(peer_to_peer(|_| ()));
        initiator.forget();
        initiator.connection.handle_octets(initiator.now, b"MPA ID Rep Frame\x50\x02\0\x04\x80\x01\x80\x01");
        initiator.connection.post_send(&b"later"[..]).unwrap();
        initiator.settle();
        assert!(initiator.octets_sent().starts_with(WRITE));
    });
    proof.verify(requirement!("P2P-9.2-25"), || {
        // If A=0, the flags B, C and D have no meaning.
        assert_eq!(after_reply(|_| (), b"\x40\x01\xc0\x01").sent, []);
        assert_eq!(flags(RtrKinds::ALL, [0x40, 0xc0]), [0, 0]);
    });
    proof.verify(requirement!("P2P-9.2-7"), || assert_eq!(flags(RtrKinds::ALL, [0, 0]), [0, 0]));
}

#[test]
fn no_kind_in_common() {
    let writes = |e: &mut EnhancedSettings| e.rtr = RtrKinds::only(Rtr::Write);
    let mut proof = Coverage::new(Proven::Test);
    // A Terminate with code 20 07. An independent, table-driven implementation computed its CRC.
    let terminate = b"\0\x16\x41\x47\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\x20\x07\0\0\x1b\xd2\xba\xbe";
    proof.verify(requirement!("P2P-9.2-23"), || {
        for words in [b"\x80\x01\x40\x01", b"\xc0\x01\0\x01", b"\xc0\x01\x40\x01", b"\x80\x01\0\x01"] {
            assert_eq!(after_reply(writes, words).octets_sent(), terminate);
        }
    });
    proof.verify(requirement!("P2P-9.2-16"), || {
        let mut initiator = after_reply(writes, b"\x80\x01\x40\x01");
        assert_eq!(initiator.sent.last(), Some(&Transmit::Fin));
        initiator.fin();
        assert_eq!(initiator.closed().unwrap().why, CloseCause::Fault(StreamError::Setup(SetupError::NoMatchingRtr)));
    });
    proof.verify(requirement!("P2P-9.2-22"), || {
        for (own, granted) in [(Rtr::Send, [0xc0, 0]), (Rtr::Write, [0x80, 0x80]), (Rtr::Read, [0x80, 0x40])] {
            let others =
                [(0xc0, 0), (0x80, 0x80), (0x80, 0x40)].into_iter().filter(|requested| *requested != granted.into());
            for (a, c) in others.chain([(0x80, 0)]) {
                assert_eq!(flags(RtrKinds::only(own), [a, c]), granted);
            }
        }
    });
    proof.verify(requirement!("P2P-9.2-20"), || {
        for bits in 1..8u8 {
            let rtr = RtrKinds { send: bits & 1 != 0, write: bits & 2 != 0, read: bits & 4 != 0 };
            assert_eq!(
                flags(rtr, [0xc0, 0xc0]),
                [
                    0x80 | if rtr.send { 0x40 } else { 0 },
                    if rtr.write { 0x80 } else { 0 } | if rtr.read { 0x40 } else { 0 }
                ]
            );
        }
    });
    proof.verify(requirement!("P2P-9.2-6"), || assert_eq!(flags(RtrKinds::NONE, [0xc0, 0xc0]), [0x80, 0x80]));
    proof.verify(requirement!("P2P-9.2-4"), || assert_eq!(flags(RtrKinds::ALL, [0x80, 0x80])[0] & 0x80, 0x80));
    proof.verify(requirement!("P2P-8-4"), || {
        // The Terminate has QN 2, MSN 1, MO 0, L=1, ULPDU_Length 22, and HdrCt 000 without a header
        // after it.
        let sent = after_reply(writes, b"\x80\x01\x40\x01").octets_sent();
        assert_eq!((sent.len(), &sent[..2], &sent[22..24]), (28, &[0, 22][..], &[0, 0][..]));
    });
}

/// The Responder accepts each kind of ready-to-receive message. After this message, it sends the
/// Send that its own ULP has posted.
#[test]
fn the_responder_takes_each_kind() {
    let responder = || {
        let mut machine = Machine::responder(peer_to_peer(|_| ()));
        machine.octets(b"MPA ID Req Frame\x50\x02\0\x04\xc0\x01\xc0\x01");
        machine.connection.post_receive(16).unwrap();
        machine.connection.post_send(&b""[..]).unwrap();
        machine.settle();
        machine.forget();
        machine
    };
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-3-4"), || {
        let mut machine = responder();
        machine.pass(Duration::from_secs(59));
        assert_eq!(machine.sent, [], "the Responder sends nothing until the message has arrived");
        machine.octets(&WRITE[..19]);
        assert_eq!(machine.sent, []);
        machine.octets(&WRITE[19..]);
        assert_eq!(machine.octets_sent(), SEND);
    });
    proof.verify(requirement!("P2P-9.2-12"), || {
        let mut machine = responder();
        machine.octets(READ);
        assert_eq!(machine.octets_sent(), [READ_RESPONSE, SEND].concat());
        // The Read Response has the SinkSTag and the SinkTO of the Read Request.
        let mut named = READ[..48].to_vec();
        named[20..32].copy_from_slice(b"stag_and__to");
        named.extend(weft_core::crc::to_octets(weft_core::crc::crc32c(&named)));
        let mut machine = responder();
        machine.octets(&named);
        assert_eq!(machine.octets_sent()[..16], *b"\0\x0e\xc1\x42stag_and__to");
    });
    proof.verify(requirement!("P2P-9.2-14"), || {
        for octet in [0, 1, 0xff] {
            let mut write = WRITE[..16].to_vec();
            write[4..].fill(octet);
            write.extend(weft_core::crc::to_octets(weft_core::crc::crc32c(&write)));
            let mut machine = responder();
            machine.octets(&write);
            assert_eq!(machine.octets_sent(), SEND);
        }
    });
    proof.verify(requirement!("P2P-mail.6-1"), || {
        let mut machine = responder();
        machine.pass(Duration::from_secs(60));
        assert_eq!(machine.sent, [Transmit::Fin]);
        machine.fin();
        assert_eq!(machine.closed().unwrap().why, CloseCause::FirstFpduTimeout);
    });
    proof.verify(requirement!("P2P-1.1-2"), || {
        // The message is a Send without octets. It uses no buffer of the ULP, and the next Send has
        // MSN 2.
        let mut machine = responder();
        machine.octets(SEND);
        assert_eq!((machine.received().len(), machine.connection.posted_receives()), (0, 1));
        let mut second = SEND[..20].to_vec();
        second[15] = 2;
        second.extend(weft_core::crc::to_octets(weft_core::crc::crc32c(&second)));
        machine.octets(&second);
        assert_eq!((machine.received().len(), machine.connection.posted_receives()), (1, 0));
    });
}

/// Checks the complete exchange between two endpoints of weft. The Responder's ULP sends first, and
/// no ULP receives the ready-to-receive message.
#[test]
fn either_side_may_send_first() {
    for kind in Rtr::ALL {
        let settings = |depth| {
            peer_to_peer(|e| {
                e.preferred_rtr = kind;
                (e.ird, e.ord) = (Depth::negotiated(depth), Depth::negotiated(depth));
            })
        };
        let mut wire = Wire::new(settings(0), settings(1));
        wire.run();
        wire.initiator.connection.post_receive(5).unwrap();
        wire.responder.connection.post_receive(5).unwrap();
        wire.responder.connection.post_send(&b"first"[..]).unwrap();
        wire.run();
        wire.initiator.connection.post_send(&b"then"[..]).unwrap();
        wire.run();
        assert_eq!(
            (wire.initiator.received(), wire.responder.received()),
            (vec![b"first".to_vec()], vec![b"then".to_vec()])
        );
        let sent = wire.initiator.octets_sent();
        let framing = established(&wire.initiator).0.framing_sent();
        assert_eq!(fpdus(split_frame(&sent).1, framing)[0].ulpdu, kind.ulpdu(1));
        let back = wire.responder.octets_sent();
        let answers = fpdus(split_frame(&back).1, framing).len();
        assert_eq!(answers, if kind == Rtr::Read { 2 } else { 1 });
    }
}

/// Checks revision 1 with a ready-to-receive message that was agreed out of band. This is option A
/// of the e-mail proposal, and the behaviour of cxgb4 (the Linux driver of Chelsio).
#[test]
fn the_proposal_of_2007() {
    let agreed = |kind| mpa(|mpa| mpa.agreed_rtr = Some(kind));
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-mail.1-1"), || {
        assert_eq!(Machine::initiator(agreed(Rtr::Write)).octets_sent(), b"MPA ID Req Frame\x40\x01\0\0");
    });
    proof.verify(requirement!("P2P-mail.4-1"), || {
        for (kind, octets) in [(Rtr::Read, &READ[..]), (Rtr::Send, SEND), (Rtr::Write, WRITE)] {
            let mut initiator = Machine::initiator(agreed(kind));
            initiator.forget();
            initiator.octets(b"MPA ID Rep Frame\x40\x01\0\0");
            assert_eq!(initiator.octets_sent(), octets);
        }
    });
    proof.verify(requirement!("P2P-mail.5-1"), || {
        let mut responder = Machine::responder(agreed(Rtr::Send));
        responder.octets(b"MPA ID Req Frame\x40\x01\0\0");
        responder.connection.post_send(&b""[..]).unwrap();
        responder.settle();
        responder.forget();
        responder.pass(Duration::from_secs(2));
        assert_eq!(responder.sent, []);
        responder.octets(SEND);
        assert_eq!(responder.octets_sent(), SEND);
    });
    proof.verify(requirement!("P2P-mail.2-3"), || {
        // Without an agreement, the Initiator's ULP sends first.
        let mut initiator = Machine::initiator(Settings::default());
        initiator.forget();
        initiator.octets(b"MPA ID Rep Frame\x40\x01\0\0");
        assert_eq!(initiator.sent, []);
    });
    // A Read without an agreement is answered nevertheless.
    let mut responder = Machine::established(0);
    responder.octets(READ);
    assert_eq!(responder.octets_sent(), READ_RESPONSE);
}

/// P2P-9.3-4: checks the Terminate for a local failure that has no code of its own.
#[test]
fn a_local_failure() {
    let terminate = |machine: &mut Machine| {
        machine.connection.fail(machine.now);
        machine.settle();
        let sent = machine.octets_sent();
        assert_eq!(machine.sent.last(), Some(&Transmit::Fin));
        sent
    };
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("P2P-9.3-4"), || {
        let mut initiator = after_reply(|_| (), b"\x80\x01\x80\x01");
        initiator.forget();
        let sent = terminate(&mut initiator);
        assert_eq!(sent[..24], *b"\0\x16\x41\x47\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\x20\x05\0\0");
        let error = StreamError::Setup(SetupError::LocalCatastrophic);
        assert_eq!(initiator.events, [Event::TerminateSent(error)]);
    });
    // If a Responder is not allowed to send yet, it closes and sends no Terminate. A Responder in
    // start-up does the same.
    let mut responder = Machine::established(0);
    assert_eq!(terminate(&mut responder), b"");
    let mut waiting = Machine::responder(Settings::default());
    assert_eq!(terminate(&mut waiting), b"");
}
