//! These tests send FIN or RST to a connection in each state. They also check how the user closes
//! and aborts a connection.

use std::time::Duration;

use weft_peer::connection::{CloseCause, Closed, ClosedBy, CommandError, Event, Transmit};
use weft_peer::{Instant, Settings};

use crate::connection::machine::{Machine, Pair, REPLY, REQUEST, SEND, WRITE};

/// A machine in each state, with its name.
fn states() -> Vec<(&'static str, Machine)> {
    let ask = || Settings { accept: false, ..Settings::default() };
    let mut decision = Machine::responder(ask());
    decision.octets(REQUEST);
    let mut rejected = Machine::initiator(Settings::default());
    rejected.octets(b"MPA ID Rep Frame\x60\x01\x00\x00");
    let mut initiator = Machine::initiator(Settings::default());
    initiator.octets(REPLY);
    let mut responder = Machine::established(4);
    responder.octets(WRITE);
    let mut part_of_request = Machine::responder(Settings::default());
    part_of_request.octets(&REQUEST[..7]);
    let mut part_of_fpdu = Machine::established(4);
    part_of_fpdu.octets(&SEND[..7]);
    let mut all = vec![
        ("wait request", Machine::responder(Settings::default())),
        ("part of a request", part_of_request),
        ("wait decision", decision),
        ("wait reply", Machine::initiator(Settings::default())),
        ("rejected", rejected),
        ("full operation, initiator", initiator),
        ("full operation, responder", responder),
        ("wait first FPDU", Machine::established(4)),
        ("part of an FPDU", part_of_fpdu),
    ];
    all.iter_mut().for_each(|(_, machine)| machine.forget());
    all
}

/// RST ends the connection at once, and nothing more is sent.
#[test]
fn a_reset_in_each_state() {
    for (name, mut machine) in states() {
        machine.reset();
        assert_eq!(machine.events, [Event::Closed(Closed { by: ClosedBy::Peer, why: CloseCause::Reset })], "{name}");
        assert_eq!((machine.sent.len(), machine.connection.poll_timeout()), (0, None), "{name}");
        assert!(machine.connection.is_over(), "{name}");
        // No later event changes anything.
        machine.octets(REQUEST);
        machine.fin();
        machine.reset();
        machine.close();
        machine.connection.abort();
        machine.pass(Duration::from_secs(1000));
        assert_eq!((machine.sent.len(), machine.events.len()), (0, 1), "{name}");
    }
}

/// FIN before Full Operation, or before a Responder's first FPDU, closes the connection. During
/// Full Operation and after a rejected start-up, the connection is half closed until the user
/// closes it.
#[test]
fn a_fin_in_each_state() {
    for (name, mut machine) in states() {
        machine.fin();
        let waits_for_user = matches!(name, "rejected" | "full operation, initiator" | "full operation, responder");
        if waits_for_user {
            assert_eq!((&machine.events[..], &machine.sent[..]), (&[Event::HalfClosed][..], &[][..]), "{name}");
            machine.close();
        }
        assert_eq!(machine.sent, [Transmit::Fin], "{name}");
        let closed = machine.closed().unwrap_or_else(|| panic!("{name}: {:?}", machine.events));
        assert_eq!(closed.by, ClosedBy::Peer, "{name}");
        let abortive = matches!(name, "part of a request" | "part of an FPDU");
        assert_eq!(closed.why == CloseCause::Fin, !abortive, "{name}: {closed}");
        assert!(machine.connection.is_over(), "{name}");
    }
}

/// In each state, close() sends FIN. The connection ends when the peer's FIN arrives. If that FIN
/// does not arrive, this side resets the connection after ten seconds.
#[test]
fn closing_in_each_state() {
    for peer_closes in [true, false] {
        for (name, mut machine) in states() {
            machine.close();
            assert_eq!(machine.sent, [Transmit::Fin], "{name}");
            assert_eq!(machine.events, [], "{name}");
            assert_eq!(machine.connection.post_send(&b""[..]), Err(CommandError::NotOperating), "{name}");
            machine.close();
            if peer_closes {
                machine.fin();
            } else {
                machine.pass(Duration::from_millis(9999));
                assert_eq!(machine.sent.len(), 1, "{name}");
                machine.pass(Duration::from_millis(1));
                assert_eq!(machine.sent[1..], [Transmit::Reset], "{name}");
            }
            assert_eq!(machine.closed(), Some(Closed { by: ClosedBy::User, why: CloseCause::Requested }), "{name}");
            assert!(machine.connection.is_over(), "{name}");
        }
    }
}

#[test]
fn aborting_in_each_state() {
    for (name, mut machine) in states() {
        machine.connection.abort();
        assert!(machine.connection.is_aborting(), "{name}");
        machine.settle();
        assert_eq!(machine.sent, [Transmit::Reset], "{name}");
        assert_eq!(machine.closed(), Some(Closed { by: ClosedBy::User, why: CloseCause::Requested }), "{name}");
    }
}

/// DDP-6.2.1-1: posted messages are sent before FIN. A message that arrives after this FIN was sent
/// is still delivered (DDP-6.2.1-9).
#[test]
fn a_graceful_close_sends_posted_messages_and_still_receives() {
    let mut pair = Pair::established();
    for _ in 0..3 {
        pair.responder.connection.post_receive(5000).unwrap();
        pair.initiator.connection.post_send(vec![1; 5000]).unwrap();
    }
    pair.initiator.connection.post_receive(4).unwrap();
    pair.initiator.close();
    pair.run();
    assert_eq!(pair.responder.received().len(), 3);
    assert_eq!(pair.responder.events.last(), Some(&Event::HalfClosed));
    pair.responder.connection.post_send(&b"late"[..]).unwrap();
    pair.responder.close();
    pair.run();
    assert_eq!(pair.initiator.received(), [b"late"]);
    assert_eq!(pair.initiator.closed(), Some(Closed { by: ClosedBy::User, why: CloseCause::Requested }));
    assert_eq!(pair.responder.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::Fin }));
}

/// The close time-out restarts while the peer accepts or sends octets.
#[test]
fn waits_for_a_slow_peer_that_makes_progress() {
    let mut initiator = Pair::established().initiator;
    initiator.connection.post_receive(64).unwrap();
    initiator.connection.post_send(vec![0; 5 * 1436]).unwrap();
    initiator.connection.close(initiator.now);
    for _ in 0..5 {
        initiator.pass_without_sending(Duration::from_secs(9));
        assert!(matches!(initiator.connection.poll_transmit(initiator.now), Some(Transmit::Octets(_))));
    }
    assert_eq!(initiator.connection.poll_transmit(initiator.now), Some(Transmit::Fin));
    for _ in 0..5 {
        initiator.pass_without_sending(Duration::from_secs(9));
        initiator.connection.handle_octets(initiator.now, WRITE);
    }
    assert!(!initiator.connection.is_over());
    let deadline = initiator.connection.poll_timeout();
    assert_eq!(deadline, Some(initiator.now + Duration::from_secs(10)));
    assert!(deadline > Some(Instant::ORIGIN + Duration::from_secs(90)));
}

/// After an error, octets that arrive do not delay the end of the connection.
#[test]
fn a_peer_that_floods_after_an_error_is_reset() {
    let mut responder = Machine::established(0);
    responder.octets(SEND);
    assert_eq!(responder.sent.last(), Some(&Transmit::Fin));
    for _ in 0..9 {
        responder.pass(Duration::from_secs(1));
        responder.octets(SEND);
    }
    assert!(!responder.connection.is_over());
    responder.pass(Duration::from_secs(1));
    assert_eq!(responder.sent.last(), Some(&Transmit::Reset));
    assert!(responder.connection.is_over());
}

/// FIN arrives in the middle of a message. The FPDUs before FIN are complete.
#[test]
fn a_message_cut_short() {
    let mut pair = Pair::established();
    pair.responder.connection.post_receive(5000).unwrap();
    pair.initiator.connection.post_send(vec![0; 5000]).unwrap();
    let Some(Transmit::Octets(first)) = pair.initiator.connection.poll_transmit(Instant::ORIGIN) else {
        panic!("FPDU")
    };
    pair.responder.octets(&first);
    pair.responder.fin();
    assert_eq!(pair.responder.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::CutShort }));
}
