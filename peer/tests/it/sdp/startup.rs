//! Tests SDP start-up in every profile (sequence of start-up frames) and with both orders of
//! fields. Other tests check every rejection (draft-pinkerton-iwarp-sdp-01, sections 6.2.1, 6.2.2
//! and 8.1).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::requirement;
use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::Instant;
use weft_peer::sdp::{Agreed, Connection, Event, Half, Output, Profile, Refusal, Role, SendId, Settings};

use crate::sdp::host::{Host, Item};
use crate::sdp::peers::Peers;
use crate::sdp::shows;
use crate::sdp::wire::{HELLO, Hello, mirror_first_word};

const PROFILES: [Profile; 5] =
    [Profile::Swapped, Profile::Bare, Profile::Natural, Profile::Enhanced, Profile::PrivateData];
const ORDERS: [FieldOrder; 2] = [FieldOrder::Figure, FieldOrder::Mirrored];

fn with(profile: Profile) -> Settings {
    Settings { profile, ..Settings::default() }
}

fn connecting(settings: Settings) -> Host {
    let mut host = Host::new(Connection::connect(Instant::ORIGIN, settings));
    host.run(Instant::ORIGIN);
    host
}

/// An Accepting Peer that received these octets. It uses the bare profile, in which FPDUs follow
/// the Hello without MPA start-up frames.
fn accepting(octets: &[u8], settings: Settings) -> Host {
    let mut host = Host::new(Connection::accept(Instant::ORIGIN, settings));
    host.arrive(Instant::ORIGIN, Item::Streaming(octets.to_vec()));
    host
}

/// A Connecting Peer of the bare profile that received this first message.
fn answered(octets: &[u8]) -> Host {
    let mut host = connecting(with(Profile::Bare));
    host.outgoing.clear();
    let (octets, solicited, invalidate) = (octets.to_vec(), true, None);
    host.arrive(Instant::ORIGIN, Item::Message { octets, solicited, invalidate });
    host
}

fn opened(host: &Host) -> Option<Agreed> {
    host.events.iter().find_map(|event| match event {
        Event::Opened(agreed) => Some(*agreed),
        _ => None,
    })
}

fn refused(host: &Host) -> Option<Refusal> {
    host.events.iter().find_map(|event| match event {
        Event::Refused(refusal) => Some(*refusal),
        _ => None,
    })
}

#[test]
fn the_hello_is_figure_5_in_streaming_mode_and_nothing_follows_it() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut machine = Connection::connect(Instant::ORIGIN, Settings::default());
    let outputs: Vec<Output> = std::iter::from_fn(|| machine.poll(Instant::ORIGIN, &mut |_| None)).collect();
    let posted = outputs.iter().filter(|output| matches!(output, Output::Receive { octets: 8192, .. })).count();
    let hello = outputs.last().cloned();
    shows!(proof:
        "SDP-8.1.1-7" => posted == 16 && outputs.len() == 17;
        "SDP-8.1.1-2" => matches!(hello, Some(Output::Streaming(_)));
        "SDP-6.2.1-2" => hello == Some(Output::Streaming(HELLO.octets()));
        "SDP-8.1.1-13" => machine.send(SendId(1), 1, false).is_ok()
            && machine.poll(Instant::ORIGIN, &mut |_| None).is_none();
    );
    let mirrored = connecting(Settings { order: FieldOrder::Mirrored, ..with(Profile::Bare) });
    assert_eq!(mirrored.outgoing, [Item::Streaming(HELLO.mirrored())]);
}

#[test]
fn a_good_hello_is_answered_by_a_solicited_hello_ack() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let host = accepting(&HELLO.octets(), with(Profile::Bare));
    let expected = Item::Message { octets: HELLO.ack(), solicited: true, invalidate: None };
    shows!(proof:
        "SDP-8.1.1-21" => host.outgoing == [expected.clone()];
        "SDP-8.1.1-28" => matches!(host.outgoing.front(), Some(Item::Message { solicited: true, .. }));
        "SDP-14.2-7" => matches!(host.outgoing.front(), Some(Item::Message { solicited: true, .. }));
        "SDP-6.2.2-2" => host.outgoing.front() == Some(&expected);
        "SDP-8.1.1-29" => host.machine.mode(Half::In) == Mode::Combined && host.machine.mode(Half::Out) == Mode::Combined;
    );
    let mirrored = accepting(&HELLO.mirrored(), with(Profile::Bare));
    let Some(Item::Message { octets, .. }) = mirrored.outgoing.front() else { panic!() };
    assert_eq!(octets[..4], mirror_first_word(HELLO.ack())[..4], "the HelloAck has the field order of the Hello");
}

#[test]
fn a_faulty_hello_ends_the_attempt_without_an_answer() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let ends = |hello: Hello| {
        let host = accepting(&hello.octets(), with(Profile::Bare));
        refused(&host).is_some() && host.outgoing == [Item::Reset] && opened(&host).is_none()
    };
    shows!(proof:
        "SDP-8.1.1-14" => ends(Hello { version: 0x12, ..HELLO });
        "SDP-8.1.1-15" => ends(Hello { max_adverts: 0, ..HELLO });
        "SDP-8.1.1-16" => ends(Hello { ird: 0, ..HELLO });
        "SDP-8.1.1-17" => ends(Hello { ord: 0, ..HELLO });
        "SDP-6.2.1-6" => ends(Hello { bufs: 2, ..HELLO });
        "SDP-10-7" => ends(Hello { local: 36, ..HELLO });
        "SDP-6.2.1.5-1" => ends(Hello { local: (1 << 31) + 1, ..HELLO });
    );
    assert!(ends(Hello { des_rem: (1 << 31) + 1, ..HELLO }));
    assert!(!ends(HELLO));
    let other = accepting(b"GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n", with(Profile::Bare));
    assert!(refused(&other).is_some());
}

/// If the private data is invalid, the Reply has R=1, and TCP ends after the Reply (RFC 5044
/// section 7.1.2, rules 2 and 6).
#[test]
fn a_faulty_hello_in_private_data_is_answered_by_a_rejecting_reply() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let outgoing = |hello: Vec<u8>| {
        let length = u8::try_from(hello.len()).unwrap();
        let mut request = b"MPA ID Req Frame\x40\x01\0".to_vec();
        request.push(length);
        request.extend(hello);
        let host = accepting(&request, Settings::default());
        (refused(&host), host.outgoing)
    };
    let rejecting = b"MPA ID Rep Frame\x60\x01\0\0".to_vec();
    shows!(proof:
        "MPA-7.1.2-5" => {
            let (refusal, out) = outgoing(Hello { version: 0x12, ..HELLO }.octets());
            refusal == Some(Refusal::Version { found: 2, receiver: Role::Accepting })
                && out == [Item::Streaming(rejecting.clone()), Item::Fin]
        };
        "MPA-7.1.2-20" => outgoing(b"somebody else's".to_vec()).1 == [Item::Streaming(rejecting.clone()), Item::Fin];
    );
    assert_eq!(outgoing(Vec::new()).1, [Item::Streaming(rejecting), Item::Fin], "no private data at all");
    assert_eq!(outgoing(HELLO.octets()).0, None);
}

#[test]
fn a_faulty_hello_ack_ends_the_attempt_without_an_answer() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let ends = |hello: Hello| {
        let host = answered(&hello.ack());
        refused(&host).is_some() && host.outgoing == [Item::Reset]
    };
    shows!(proof:
        "SDP-8.1.1-31" => ends(Hello { version: 0x12, ..HELLO });
        "SDP-8.1.1-32" => ends(Hello { max_adverts: 0, ..HELLO });
        "SDP-8.1.1-33" => ends(Hello { ord: 0, ..HELLO });
        "SDP-8.1.1-34" => ends(Hello { ird: 0, ..HELLO });
        "SDP-6.2.2-6" => ends(Hello { bufs: 2, ..HELLO });
        "SDP-6.2.2.4-1" => ends(Hello { local: (1 << 31) + 1, ..HELLO });
    );
    assert!(refused(&answered(&HELLO.octets())).is_some(), "a Hello is not a HelloAck");
    assert!(!ends(HELLO));
}

/// Listeners of other protocols send these first octets. Some send them at once, and others send
/// them in answer to the Hello.
#[test]
fn distinguishes_plain_tcp_from_a_peer_that_rejects() {
    for greeting in
        [&b"SSH-2.0-OpenSSH_9.9\r\n"[..], b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\0\x02\x02\x32"]
    {
        let mut host = connecting(Settings::default());
        host.outgoing.clear();
        host.arrive(Instant::ORIGIN, Item::Streaming(greeting.to_vec()));
        assert_eq!(refused(&host), Some(Refusal::Other { receiver: Role::Connecting }));
        assert_eq!(host.outgoing, [Item::Reset]);
    }
}

#[test]
fn ignores_fields_that_must_not_be_checked() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let hello = |hello: Hello| opened(&accepting(&hello.octets(), with(Profile::Bare))).is_some();
    let ack = |hello: Hello| opened(&answered(&hello.ack())).is_some();
    shows!(proof:
        "SDP-8.1.1-19" => hello(Hello { version: 0xf1, ..HELLO });
        "SDP-6.2.1-8" => hello(Hello { mseq: 7, ..HELLO });
        "SDP-6.2.1-10" => hello(Hello { mseq_ack: 7, ..HELLO });
        "SDP-6.2.1.8-2" => hello(Hello { rsvd: 0xff, ..HELLO });
        "SDP-8.1.1-35" => ack(Hello { version: 0xf1, ..HELLO });
        "SDP-6.2.2-8" => ack(Hello { mseq: 7, ..HELLO });
        "SDP-6.2.2-10" => ack(Hello { mseq_ack: 7, ..HELLO });
        "SDP-6.2.2.7-2" => ack(Hello { rsvd: 0xff, ..HELLO });
    );
}

#[test]
fn ird_and_ord_follow_the_peer() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let one = Hello { ird: 1, max_adverts: 3, ..HELLO };
    let (accepted, connected) = (accepting(&one.octets(), with(Profile::Bare)), answered(&one.ack()));
    let Some(Item::Message { octets: ack, .. }) = accepted.outgoing.front() else { panic!() };
    shows!(proof:
        "SDP-8.1.1-27" => opened(&accepted).unwrap().ord == 1;
        "SDP-8.1.1-25" => ack[26..28] == [0, 1];
        "SDP-8.1.1-24" => ack[24..26] == [0, 16];
        "SDP-8.1.1-38" => opened(&connected).unwrap().ord == 1;
        "SDP-8.1.1-20" => opened(&accepted).unwrap().minv == 1;
        "SDP-6.2.1.4-1" => accepting(&Hello { des_rem: 20000, ..HELLO }.octets(), with(Profile::Bare)).machine.recv_size() == 20000;
        "SDP-6.2.1.4-2" => accepting(&Hello { des_rem: 1 << 30, ..HELLO }.octets(), with(Profile::Bare)).machine.recv_size() == 65536;
    );
    assert_eq!(opened(&connected).unwrap().peer_max_adverts, 3);
}

/// Checks, for each profile, the order of the frames that open a connection. A frame is identified
/// by its sender and its first octets.
#[test]
fn each_profile_has_its_sequence() {
    for order in ORDERS {
        for profile in PROFILES {
            let settings = Settings { order, ..with(profile) };
            // An Accepting Peer can choose only between swapped and bare.
            let other = if profile == Profile::Bare { profile } else { Profile::Swapped };
            let mut peers = Peers::new(settings, with(other));
            peers.settle();
            for side in 0..2 {
                assert!(peers.hosts[side].machine.is_open(), "{profile:?} {order:?}");
                assert_eq!(peers.hosts[side].machine.mode(Half::Out), Mode::Combined);
            }
            let kinds = |side: usize| -> Vec<char> {
                let kind = |octets: &Vec<u8>| match octets.get(..14) {
                    Some(b"MPA ID Req Fra") => 'Q',
                    Some(b"MPA ID Rep Fra") => 'P',
                    _ if octets.len() == 32 => 'H',
                    _ if octets.len() == 28 => 'A',
                    _ if octets.len() == 16 => 'd',
                    // The machine wrote Hello and Request together.
                    _ if octets.len() > 32 && octets[32..].starts_with(b"MPA ID Req Fra") => 'B',
                    _ => '?',
                };
                peers.sent[side].iter().map(kind).collect()
            };
            let expected = match profile {
                Profile::Swapped => ("HP", "QA"),
                Profile::Bare => ("H", "A"),
                Profile::Natural | Profile::Enhanced => ("B", "PA"),
                // The connecting side sends an empty Data at once, because the other side is the
                // MPA Responder.
                Profile::PrivateData => ("Qd", "P"),
            };
            assert_eq!(
                (kinds(0), kinds(1)),
                (expected.0.chars().collect(), expected.1.chars().collect()),
                "{profile:?}"
            );
            let start = |side: usize| peers.hosts[side].start.clone().unwrap();
            assert_eq!(start(0).negotiated.is_some(), profile != Profile::Bare);
            let enhanced = start(1).negotiated.and_then(|negotiated| negotiated.enhanced);
            assert_eq!(enhanced.is_some(), profile == Profile::Enhanced);
            if profile == Profile::Enhanced {
                let rtr = start(0).rtr;
                assert!(!rtr.send && (rtr.write || rtr.read), "the peer would treat a Send as a message");
            }
            let silent = matches!(profile, Profile::Enhanced | Profile::PrivateData);
            assert_eq!(start(1).speaks_first, !silent, "{profile:?}");
        }
    }
}

/// TCP is allowed to split the streaming octets anywhere.
#[test]
fn streaming_octets_may_come_one_by_one() {
    for profile in PROFILES {
        let other = if profile == Profile::Bare { profile } else { Profile::Swapped };
        // The Request arrives octet by octet after the Hello. Without this wait, the machine would
        // handle the Hello before the Request is complete.
        let wait = Settings { request_wait: core::time::Duration::from_secs(1), ..with(other) };
        let mut peers = Peers::new(with(profile), wait);
        loop {
            let mut moved = false;
            for from in 0..2 {
                match peers.wires[from].pop_front() {
                    Some(Item::Streaming(octets)) => {
                        for octet in octets {
                            let now = peers.now;
                            if peers.hosts[1 - from].start.is_none() {
                                peers.hosts[1 - from].arrive(now, Item::Streaming(vec![octet]));
                            }
                        }
                        peers.load(1 - from);
                        moved = true;
                    }
                    Some(item) => {
                        peers.wires[from].push_front(item);
                        moved |= peers.deliver(from);
                    }
                    None => {}
                }
            }
            if !moved && (peers.hosts.iter().all(|host| host.machine.is_open()) || !peers.wait()) {
                break;
            }
        }
        assert!(peers.hosts.iter().all(|host| host.machine.is_open()), "{profile:?}");
    }
}

#[test]
fn losing_tcp_during_start_up_ends_it() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut host = connecting(Settings::default());
    host.outgoing.clear();
    host.arrive(Instant::ORIGIN, Item::Reset);
    proof.verify(requirement!("SDP-8.1.2-1"), || {
        assert!(refused(&host).is_some() && host.machine.is_over() && host.outgoing.is_empty());
    });
    // In the last case, TCP stays open and no answer arrives.
    let mut host = connecting(Settings::default());
    host.outgoing.clear();
    let deadline = host.machine.poll_timeout().unwrap();
    assert_eq!(deadline, Instant::ORIGIN + core::time::Duration::from_secs(10));
    host.machine.handle_timeout(deadline);
    host.run(deadline);
    assert_eq!(refused(&host), Some(Refusal::TimedOut));
    assert_eq!(host.outgoing, [Item::Reset]);
}

/// Section 8.1.2: SDP has no message that rejects a connection. So a peer rejects a connection by
/// ending TCP.
#[test]
fn tcp_that_ends_in_place_of_the_hello_ack_is_a_refusal() {
    let mut host = connecting(with(Profile::Bare));
    host.machine.handle_streaming(Instant::ORIGIN, &[0, 46]);
    host.run(Instant::ORIGIN);
    assert_eq!(refused(&host), None);
    host.arrive(Instant::ORIGIN, Item::Fin);
    assert_eq!(refused(&host), Some(Refusal::Rejected));
}
