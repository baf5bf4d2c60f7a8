//! Tests streaming mode, in which TCP carries plain octets before MPA starts ("delayed start", RFC
//! 5044 sections 7.1, 7.1.3, 7.1.5). The swapped profile of SDP uses streaming mode: the side that
//! sends first in streaming mode becomes the Responder.

use std::time::Duration;

use weft_core::coverage::{Coverage, CoverageKind as Proven};
use weft_core::requirement;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, CommandError, Event, Transmit};
use weft_peer::mpa::{PrivateData, StartupError};
use weft_peer::{Connection, Settings};

use crate::connection::machine::{Machine, REPLY, REQUEST, SEND, WRITE, mpa};

fn streaming() -> Machine {
    Machine::new(Connection::stream(Settings::default()))
}

/// The octets that streaming mode delivered.
fn streamed(machine: &Machine) -> Vec<u8> {
    let octets = machine.events.iter().filter_map(|event| match event {
        Event::Streamed(octets) => Some(&octets[..]),
        _ => None,
    });
    octets.collect::<Vec<_>>().concat()
}

#[test]
fn hello_then_mpa_with_the_roles_swapped() {
    let [mut connecting, mut accepting] = [streaming(), streaming()];
    let mut proof = Coverage::new(Proven::Test);
    connecting.connection.start_responder(connecting.now, &b"Hello"[..], b"").unwrap();
    connecting.settle();
    proof.verify(requirement!("MPA-7.1.5-2"), || assert_eq!(connecting.octets_sent(), b"Hello"));
    accepting.octets(b"Hel");
    accepting.octets(b"lo");
    proof.verify(requirement!("MPA-7.1-4"), || {
        assert_eq!(streamed(&accepting), b"Hello");
        accepting.connection.start_initiator(accepting.now, b"").unwrap();
        accepting.settle();
        assert_eq!(accepting.octets_sent(), REQUEST);
    });
    connecting.octets(REQUEST);
    proof.verify(requirement!("MPA-7.1-9"), || assert_eq!(connecting.octets_sent(), [&b"Hello"[..], REPLY].concat()));
    connecting.connection.post_send(&b""[..]).unwrap();
    connecting.settle();
    connecting.forget();
    proof.verify(requirement!("MPA-7.1.3-2"), || {
        connecting.pass(Duration::from_secs(30));
        assert_eq!(connecting.sent, []);
    });
    accepting.octets(REPLY);
    accepting.forget();
    accepting.connection.post_send(&b""[..]).unwrap();
    accepting.settle();
    connecting.connection.post_receive(0).unwrap();
    proof.verify(requirement!("MPA-7.1-1"), || {
        connecting.octets(&accepting.octets_sent());
        assert_eq!(connecting.octets_sent(), SEND);
        assert_eq!(connecting.received().len(), 1);
    });
}

/// It is possible that the Request arrives before the user ends streaming mode. No octet is lost in
/// this case.
#[test]
fn octets_that_came_early() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-7.1.5-5"), || {
        for cut in 0..=REQUEST.len() {
            let mut machine = streaming();
            machine.octets(&[b"bye", &REQUEST[..cut]].concat());
            let octets = streamed(&machine);
            machine.connection.start_responder(machine.now, &b""[..], &octets[3..]).unwrap();
            machine.octets(&REQUEST[cut..]);
            assert_eq!(machine.octets_sent(), REPLY, "cut at {cut}");
        }
    });
    proof.verify(requirement!("MPA-7.1-2"), || {
        // Streaming mode ends permanently, in both directions at once.
        let mut machine = streaming();
        machine.connection.start_responder(machine.now, &b"last"[..], b"").unwrap();
        assert_eq!(machine.connection.post_streaming(&b"more"[..]), Err(CommandError::NotStreaming));
        machine.octets(b"raw octets");
        assert_eq!(streamed(&machine), b"");
    });
    proof.verify(requirement!("MPA-7.1.2-11"), || {
        // The peer becomes the Responder. A Responder sends no Reply before the Request arrives. So
        // octets that arrive with the peer's last streaming message are not a Reply.
        let mut machine = streaming();
        machine.octets(&[b"bye", &REPLY[..]].concat());
        machine.connection.start_initiator(machine.now, REPLY).unwrap();
        machine.settle();
        machine.fin();
        let why = CloseCause::Startup(StartupError::Surplus { octets: 20 });
        assert_eq!(machine.closed(), Some(Closed { by: ClosedBy::Library, why }));
    });
    proof.verify(requirement!("MPA-1.2-6"), || {
        // A connection can leave streaming mode without any streaming octet.
        let mut machine = streaming();
        machine.connection.start_responder(machine.now, &b""[..], b"").unwrap();
        machine.octets(REQUEST);
        assert_eq!(machine.octets_sent(), REPLY);
    });
}

#[test]
fn streaming_octets_go_before_the_request_and_have_no_time_limit() {
    let mut machine = streaming();
    machine.pass(Duration::from_secs(86_400));
    machine.connection.post_streaming(&b"one, "[..]).unwrap();
    machine.connection.post_streaming(&b"two"[..]).unwrap();
    machine.connection.start_initiator(machine.now, b"").unwrap();
    machine.settle();
    assert_eq!(machine.octets_sent(), [&b"one, two"[..], REQUEST].concat());
    // From now on, the normal start-up time-out applies.
    machine.pass(Duration::from_secs(10));
    assert_eq!(machine.sent.last(), Some(&Transmit::Fin));
}

#[test]
fn the_end_in_streaming_mode() {
    let mut machine = streaming();
    machine.fin();
    assert_eq!(machine.events, [Event::HalfClosed]);
    assert_eq!(machine.connection.start_initiator(machine.now, b""), Err(CommandError::NotStreaming));
    machine.close();
    assert_eq!(machine.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::Fin }));
    let mut machine = streaming();
    machine.connection.post_streaming(&b"bye"[..]).unwrap();
    machine.close();
    assert_eq!((machine.octets_sent(), machine.sent.last()), (b"bye".to_vec(), Some(&Transmit::Fin)));
    assert_eq!(machine.connection.post_streaming(&b"more"[..]), Err(CommandError::NotStreaming));
    let mut machine = streaming();
    machine.reset();
    assert_eq!(machine.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::Reset }));
}

#[test]
fn commands_that_do_not_fit() {
    let mut machine = streaming();
    assert_eq!(machine.connection.post_send(&b""[..]), Err(CommandError::NotOperating));
    assert_eq!(machine.connection.accept(machine.now, &PrivateData::default()), Err(CommandError::NoRequest));
    let mut started = Machine::initiator(Settings::default());
    assert_eq!(started.connection.start_initiator(started.now, b""), Err(CommandError::NotStreaming));
    assert_eq!(started.connection.start_responder(started.now, &b""[..], WRITE), Err(CommandError::NotStreaming));
    // An enhanced Request has less space for private data. After the error, the connection is
    // unchanged.
    let mut settings = mpa(|mpa| mpa.enhanced = weft_peer::mpa::EnhancedUse::Request);
    settings.private_data = PrivateData::new(vec![0; 512]).unwrap();
    let mut machine = Machine::new(Connection::stream(settings));
    let refused = machine.connection.start_initiator(machine.now, b"");
    assert!(matches!(refused, Err(CommandError::PrivateData(_))));
    machine.connection.post_streaming(&b"still here"[..]).unwrap();
    let bounded = (0..5000).map_while(|_| machine.connection.post_streaming(&b"x"[..]).ok()).count();
    assert_eq!(bounded, 4095);
}
