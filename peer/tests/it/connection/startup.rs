//! Tests MPA start-up (RFC 5044 section 7.1). In these tests, start-up succeeds, is rejected, or is
//! too slow.

use std::time::Duration;

use weft_core::requirement;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, CommandError, Event, Transmit};
use weft_peer::mpa::{Negotiated, PrivateData, Role, RtrKinds, StartupError};
use weft_peer::{Connection, Settings};

use crate::connection::machine::{Machine, Pair, REPLY, REQUEST, SEND, mpa};

fn private(octets: &'static [u8]) -> PrivateData {
    PrivateData::new(octets).unwrap()
}

fn negotiated(machine: &Machine) -> Negotiated {
    match &machine.events[0] {
        Event::Established { negotiated, .. } => *negotiated,
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_are_those_of_rfc_5044_figure_8() {
    let pair = Pair::established();
    assert_eq!(pair.initiator.octets_sent(), REQUEST);
    assert_eq!(pair.responder.octets_sent(), REPLY);
    let agreed = Negotiated {
        role: Role::Initiator,
        peer_revision: 1,
        version: 1,
        crc: true,
        markers_sent: false,
        markers_received: false,
        enhanced: None,
        rtr: RtrKinds::NONE,
    };
    assert_eq!(negotiated(&pair.initiator), agreed);
    assert_eq!(negotiated(&pair.responder), Negotiated { role: Role::Responder, ..agreed });
}

/// MPA-7.1.1-12, MPA-4.4-9: C=1 in either frame enables CRCs, and the Reply then has C=1.
#[test]
fn crc_is_used_if_either_side_requests_it() {
    for (ours, theirs) in [(false, false), (false, true), (true, false), (true, true)] {
        let settings = |crc| mpa(|mpa| mpa.crc = crc);
        let mut pair = Pair::new(settings(ours), settings(theirs));
        pair.run();
        assert_eq!(negotiated(&pair.initiator).crc, ours || theirs);
        assert_eq!(negotiated(&pair.responder).crc, ours || theirs);
        assert_eq!(pair.responder.octets_sent()[16], if ours || theirs { 0x40 } else { 0 });
    }
}

#[test]
fn private_data_of_every_length_goes_both_ways() {
    for length in [0, 1, 255, 256, 511, 512] {
        let settings =
            |octet| Settings { private_data: PrivateData::new(vec![octet; length]).unwrap(), ..Settings::default() };
        let mut pair = Pair::new(settings(1), settings(2));
        pair.run();
        for (machine, octet) in [(&pair.initiator, 2), (&pair.responder, 1)] {
            let Event::Established { peer, .. } = &machine.events[0] else { panic!("established") };
            assert_eq!(peer.private_data.as_octets(), vec![octet; length]);
        }
    }
    assert_eq!(
        PrivateData::new(vec![0; 513]).unwrap_err().to_string(),
        "the private data has 513 bytes, but a start-up frame can carry at most 512 bytes"
    );
}

/// The result does not change if a frame is split at any offset, or if it arrives octet by octet.
#[test]
fn any_split_of_the_frames_is_the_same() {
    let request = [&b"MPA ID Req Frame\xc0\x01\x00\x05"[..], b"there"].concat();
    for cut in 0..=request.len() {
        let mut responder = Machine::responder(Settings::default());
        responder.octets(&request[..cut]);
        assert_eq!(responder.sent.len(), usize::from(cut == request.len()), "cut at {cut}");
        responder.octets(&request[cut..]);
        let Event::Established { negotiated, peer } = &responder.events[0] else { panic!("established") };
        assert_eq!((peer.private_data.as_octets(), negotiated.markers_sent), (&b"there"[..], true));
    }
    let mut pair = Pair::new(Settings::default(), Settings { private_data: private(b"back"), ..Settings::default() });
    pair.segment = 1;
    pair.run();
    let Event::Established { peer, .. } = &pair.initiator.events[0] else { panic!("established") };
    assert_eq!(peer.private_data.as_octets(), b"back");
}

#[test]
fn the_user_may_decide() {
    let mut responder = Machine::responder(Settings { accept: false, ..Settings::default() });
    assert_eq!(responder.connection.accept(responder.now, &private(b"")), Err(CommandError::NoRequest));
    responder.octets(b"MPA ID Req Frame\x40\x01\x00\x02hi");
    assert_eq!(responder.sent, []);
    let [Event::Request(request)] = &responder.events[..] else { panic!("{:?}", responder.events) };
    assert_eq!(request.private_data.as_octets(), b"hi");
    responder.connection.accept(responder.now, &private(b"ok")).unwrap();
    responder.settle();
    assert_eq!(responder.octets_sent(), b"MPA ID Rep Frame\x40\x01\x00\x02ok");
    assert_eq!(responder.connection.reject(&private(b"")), Err(CommandError::NoRequest));
}

/// MPA-7.1.2-5, -7, -15: R=1 ends MPA. TCP stays open until the user closes it, and no FPDU
/// follows.
#[test]
fn a_rejected_start_up_leaves_tcp_to_the_user() {
    let mut pair = Pair::new(Settings::default(), Settings { accept: false, ..Settings::default() });
    pair.run();
    pair.responder.connection.reject(&private(b"no")).unwrap();
    pair.run();
    assert_eq!(pair.responder.octets_sent(), b"MPA ID Rep Frame\x60\x01\x00\x02no");
    let [Event::Rejected(reply)] = &pair.initiator.events[..] else { panic!("{:?}", pair.initiator.events) };
    assert_eq!(reply.private_data.as_octets(), b"no");
    assert_eq!(pair.initiator.connection.post_send(&b"x"[..]), Err(CommandError::NotOperating));
    pair.initiator.pass(Duration::from_secs(3600));
    assert_eq!(pair.initiator.sent.len(), 1);
    pair.initiator.close();
    pair.run();
    assert_eq!(pair.responder.events.last(), Some(&Event::HalfClosed));
    pair.responder.close();
    pair.run();
    assert_eq!(pair.initiator.closed(), Some(Closed { by: ClosedBy::User, why: CloseCause::Requested }));
    assert_eq!(pair.responder.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::Fin }));
}

/// MPA-7.1.1-16, -19: R and the reserved bits of a Request have no meaning. In the Reply, these
/// bits are zero.
#[test]
fn bits_without_meaning_are_ignored() {
    for bits in [0x20, 0x10, 0x1f, 0x3f] {
        let mut request = *REQUEST;
        request[16] |= bits;
        let mut responder = Machine::responder(Settings::default());
        responder.octets(&request);
        assert_eq!(responder.octets_sent(), REPLY, "{bits:#x}");
        let mut reply = *REPLY;
        reply[16] |= bits & 0x1f;
        let mut initiator = Machine::initiator(Settings::default());
        initiator.octets(&reply);
        assert!(initiator.connection.is_operating());
    }
}

/// P2P-10-3, P2P-10-10: a Request of revision 2 without an enhanced feature (S=0) is an unenhanced
/// Request. S is a reserved bit in earlier revisions.
#[test]
fn revision_2_without_enhancement_is_accepted() {
    let mut responder = Machine::responder(Settings::default());
    responder.octets(b"MPA ID Req Frame\x40\x02\x00\x04\x80\x01\xc0\x01");
    let Event::Established { peer, negotiated } = &responder.events[0] else { panic!("established") };
    assert_eq!((peer.private_data.as_octets(), negotiated.peer_revision), (&b"\x80\x01\xc0\x01"[..], 2));
    assert_eq!(responder.octets_sent(), b"MPA ID Rep Frame\x40\x02\x00\x00");
}

/// MPA-7.1.2-28: the start-up time-out is ten seconds by default. It begins when TCP is
/// established, and octets that arrive slowly do not extend it.
#[test]
fn start_up_times_out() {
    for mut machine in [Machine::responder(Settings::default()), Machine::initiator(Settings::default())] {
        let frame = if machine.sent.is_empty() { REQUEST } else { REPLY };
        machine.forget();
        for octet in &frame[..9] {
            machine.octets(&[*octet]);
            machine.pass(Duration::from_secs(1));
        }
        machine.pass(Duration::from_millis(999));
        assert_eq!(machine.sent, []);
        machine.pass(Duration::from_millis(1));
        assert_eq!(machine.sent, [Transmit::Fin]);
        // The rest of the frame arrives too late.
        machine.octets(&frame[9..]);
        assert_eq!((machine.sent.len(), machine.events.len()), (1, 0));
        machine.fin();
        let why = CloseCause::StartupTimeout;
        assert_eq!(machine.closed(), Some(Closed { by: ClosedBy::Library, why }));
        assert_eq!(why.requirement(), Some(requirement!("MPA-7.1.2-28")));
        assert!(machine.connection.is_over());
    }
}

/// MPA-7.1.2-29: the wait for the first FPDU has a time-out. Otherwise, a Responder could wait
/// forever for the rest of an FPDU.
#[test]
fn waiting_for_the_first_fpdu_times_out() {
    let mut responder = Machine::established(1);
    responder.octets(&SEND[..20]);
    responder.pass(Duration::from_secs(60));
    assert_eq!(responder.sent, [Transmit::Fin]);
    responder.fin();
    assert_eq!(responder.closed(), Some(Closed { by: ClosedBy::Library, why: CloseCause::FirstFpduTimeout }));

    let mut served = Machine::established(1);
    served.octets(SEND);
    served.pass(Duration::from_secs(3600));
    assert_eq!((served.received().len(), served.sent.len()), (1, 0));
    assert_eq!(served.connection.poll_timeout(), None);
}

/// MPA-7.1.2-11: it is an error if octets arrive while the user decides whether to accept.
#[test]
fn octets_before_the_reply_are_surplus() {
    let mut responder = Machine::responder(Settings { accept: false, ..Settings::default() });
    responder.octets(REQUEST);
    responder.octets(SEND);
    assert_eq!(responder.sent, [Transmit::Fin]);
    assert_eq!(responder.connection.accept(responder.now, &private(b"")), Err(CommandError::NoRequest));
    responder.fin();
    let why = CloseCause::Startup(StartupError::Surplus { octets: SEND.len() });
    assert_eq!(responder.closed(), Some(Closed { by: ClosedBy::Library, why }));
}

#[test]
fn connections_cross_threads() {
    fn is_send<T: Send>() {}
    is_send::<Connection>();
}
