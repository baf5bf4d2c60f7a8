//! Tests the data that a PM Server stores about Requests, and how long it stores them. Section
//! numbers refer to draft-pinkerton-iwarp-sdp-01.

use std::cell::RefCell;
use std::time::Duration;

use weft_core::requirement;
use weft_peer::portmap::{Server, ServerEvent, ServerSettings};

use crate::portmap::octets::{
    ACCEPT, ACK, DENY, Fields, REQ, answer, answers, asker, at, events, fields, fixed, made, millis, proves, server,
    table,
};

/// A Request for the service that gets a new port for each Request.
fn wants_port(cp_port: u16, handle: u64) -> Fields {
    Fields { ap_port: 6001, cp_port, handle, ..fields(REQ) }
}

/// The PMAck to an answer.
fn ack(accept: &Fields) -> Vec<u8> {
    Fields { first: ACK, time: 0, ..*accept }.octets()
}

fn expired(events: &[ServerEvent]) -> usize {
    events.iter().filter(|event| matches!(event, ServerEvent::Expired { .. })).count()
}

#[test]
fn a_duplicate_gets_the_same_answer_and_restarts_the_timer() {
    let mut server = server();
    let first = answer(&mut server, millis(0), &wants_port(1, 1).octets());
    let other = answer(&mut server, millis(0), &wants_port(2, 2).octets());
    let again = answer(&mut server, millis(9_000), &wants_port(1, 1).octets());
    let known = server.stored_requests();
    server.handle_timeout(millis(10_000));
    let after_ten = server.stored_requests();
    server.handle_timeout(millis(18_999));
    let before_end = server.stored_requests();
    server.handle_timeout(millis(19_000));
    let at_end = server.stored_requests();
    proves([
        (requirement!("PM-7.5-3"), &|| assert_eq!((again, known), (first, 2))),
        (requirement!("PM-7.5.2-4"), &|| assert_eq!(again.first, ACCEPT)),
        (requirement!("PM-7.5.2-5"), &|| assert_eq!((after_ten, before_end, at_end), (1, 1, 0))),
        (requirement!("PM-7.3.1.8-3"), &|| assert_ne!(first.ap_port, other.ap_port)),
    ]);
}

#[test]
fn unused_ports_are_freed() {
    let server = RefCell::new(server());
    let ask =
        |now, cp_port| answer(&mut server.borrow_mut(), millis(now), &wants_port(cp_port, cp_port.into()).octets());
    let ports: Vec<u16> = [1, 2, 3].map(|cp_port| ask(0, cp_port).ap_port).to_vec();
    let full = ask(1, 4).first;
    let deadline = server.borrow().deadline();
    server.borrow_mut().handle_timeout(millis(9_999));
    let early = expired(&events(&mut server.borrow_mut()));
    server.borrow_mut().handle_timeout(millis(10_000));
    let seen = events(&mut server.borrow_mut());
    let released = seen.iter().filter(|event| matches!(event, ServerEvent::Released { .. })).count();
    proves([
        (requirement!("PM-7.4-23"), &|| assert_eq!(ports, [9001, 9002, 9003])),
        (requirement!("PM-7.4-49"), &|| assert_eq!(full, DENY)),
        (requirement!("PM-7.5-2"), &|| assert_eq!((early, expired(&seen)), (0, 3))),
        (requirement!("PM-7.5.2-1"), &|| assert_eq!(deadline, Some(millis(10_000)))),
        (requirement!("PM-7.5.2-2"), &|| assert_eq!((released, server.borrow().stored_requests()), (3, 0))),
        (requirement!("PM-7.4-47"), &|| assert_eq!(released, 3)),
        (requirement!("PM-15.2.2.1-1"), &|| assert_eq!(ask(10_000, 4).first, ACCEPT)),
        (requirement!("PM-7.5.2-10"), &|| assert_eq!(ask(10_001, 1).first, ACCEPT)),
    ]);
}

#[test]
fn an_ack_or_a_connection_stops_the_timer() {
    let taken = |take: &dyn Fn(&mut Server, &Fields)| {
        let mut server = server();
        let accept = answer(&mut server, millis(0), &wants_port(1, 1).octets());
        take(&mut server, &accept);
        events(&mut server);
        server.handle_timeout(millis(1_000_000));
        expired(&events(&mut server))
    };
    proves([
        (requirement!("PM-7.4-37"), &|| {
            let heeded = |server: &mut Server, accept: &Fields| {
                server.handle_datagram(millis(1), asker(), &Fields { first: ACK, time: 255, ..*accept }.octets());
            };
            assert_eq!(taken(&heeded), 0);
        }),
        (requirement!("PM-7.5.2-3"), &|| {
            let connects = |server: &mut Server, accept: &Fields| {
                let address = std::net::SocketAddr::new(accept.ap, accept.ap_port);
                let service = server.handle_connection(millis(1), at("10.0.0.2:1"), address);
                assert_eq!(service, Some(at("10.0.0.1:6001")));
            };
            assert_eq!(taken(&connects), 0);
        }),
        (requirement!("PM-7.5.2-1"), &|| assert_eq!(taken(&|_, _| {}), 1)),
    ]);
}

/// Section 7.4: if a listener reports a connection, the server can compare it with the CpIPAddr of
/// the Request and the granted ApPort.
#[test]
fn reports_an_unrequested_connection() {
    let mut server = server();
    let accept = answer(&mut server, millis(0), &wants_port(1, 1).octets());
    let address = std::net::SocketAddr::new(accept.ap, accept.ap_port);
    let mappings = [("10.0.0.3:1", address), ("10.0.0.2:2", address), ("10.0.0.2:1", at("10.0.0.1:9002"))]
        .map(|(from, to)| server.handle_connection(millis(1), at(from), to));
    proves([(requirement!("PM-7.4-42"), &|| assert_eq!(mappings, [None; 3]))]);
}

#[test]
fn discards_an_unrelated_ack() {
    let mut server = server();
    let accept = answer(&mut server, millis(0), &wants_port(1, 1).octets());
    events(&mut server);
    let changed = [
        Fields { handle: 2, ..accept },
        Fields { cp_port: 2, ..accept },
        Fields { ap_port: 9002, ..accept },
        Fields { cp: at("10.0.0.3:0").ip(), ..accept },
    ];
    let got: Vec<_> = changed.iter().map(|other| answers(&mut server, millis(1), &ack(other))).collect();
    let seen = events(&mut server);
    server.handle_timeout(millis(10_000));
    let still = expired(&events(&mut server));
    proves([(requirement!("PM-7.5.2-6"), &|| {
        assert!(got.iter().all(Vec::is_empty));
        assert_eq!(seen.len(), 4);
        assert!(seen.iter().all(|event| matches!(event, ServerEvent::Discarded { .. })));
        assert_eq!(still, 1, "no changed PMAck stopped the timer");
    })]);
}

#[test]
fn a_newer_request_replaces_the_older_one() {
    let mut server = server();
    let old = answer(&mut server, millis(0), &wants_port(1, 1).octets());
    let new = answer(&mut server, millis(1), &wants_port(1, 2).octets());
    let seen = events(&mut server);
    let known = server.stored_requests();
    answers(&mut server, millis(2), &ack(&old));
    server.handle_timeout(millis(10_001));
    let old_ack_counts = expired(&events(&mut server)) == 0;
    proves([
        (requirement!("PM-7.5.2-8"), &|| {
            assert_eq!((expired(&seen), known, old_ack_counts), (1, 1, false));
        }),
        (requirement!("PM-7.5.2-9"), &|| assert_eq!((new.first, new.handle), (ACCEPT, 2))),
        (requirement!("PM-7.2-7"), &|| assert_eq!(new.handle, 2)),
    ]);
}

#[test]
fn a_duplicate_gets_the_current_mapping() {
    let server = RefCell::new(server());
    let ask = |now| answer(&mut server.borrow_mut(), millis(now), &fields(REQ).octets()).first;
    let set = |available| server.borrow_mut().table().set_available(at("10.0.0.1:5001"), available);
    proves([(requirement!("PM-7.5.2-7"), &|| {
        assert_eq!(ask(0), ACCEPT);
        assert!(set(false));
        assert_eq!((ask(1), server.borrow().stored_requests()), (DENY, 0));
        assert!(set(true));
        assert_eq!(ask(2), ACCEPT);
    })]);
}

/// A PmTime of 20 is 5 s, and a PmTime of 100 is 25 s. The client is allowed to cache the answer
/// during the PmTime. A port that was created for a Request stays during the PmTime, and at least
/// for ten seconds.
#[test]
fn a_port_stays_for_its_pm_time() {
    for (time, millis_kept) in [(0, 10_000), (20, 10_000), (100, 25_000)] {
        let mut mapping = made("10.0.0.1:6001");
        mapping.pm_time = weft_core::wire::portmap::PmTime(time);
        let mut server = Server::new(Default::default(), crate::portmap::octets::table([mapping]));
        let accept = answer(&mut server, millis(0), &wants_port(1, 1).octets());
        answers(&mut server, millis(0), &ack(&accept));
        events(&mut server);
        assert_eq!(server.deadline(), Some(millis(0) + Duration::from_millis(millis_kept)), "{time}");
        server.handle_timeout(millis(millis_kept));
        let seen = events(&mut server);
        let id = requirement!("PM-7.4-48");
        proves([(id, &|| assert!(matches!(seen[..], [ServerEvent::Released { .. }]), "{time}: {seen:?}"))]);
    }
}

/// By section 7.3.1.4, a client is allowed to connect as long as it is allowed to cache the answer.
/// A PmTime of 100 is 25 s.
#[test]
fn a_fixed_address_is_known_for_its_pm_time() {
    let mapping = fixed("10.0.0.1:5001", &["10.0.0.1:7001"], 100);
    let mut server = Server::new(ServerSettings::default(), table([mapping]));
    let accept = answer(&mut server, millis(0), &fields(REQ).octets());
    answers(&mut server, millis(0), &ack(&accept));
    let mut connects = |now| {
        server.handle_timeout(millis(now));
        server.handle_connection(millis(now), at("10.0.0.2:40009"), at("10.0.0.1:7001"))
    };
    assert_eq!((connects(24_999), connects(25_000)), (Some(at("10.0.0.1:5001")), None));
}

/// If a duplicate of a Request gets a different answer, the server waits for another PMAck. Without
/// this PMAck, the Request expires.
#[test]
fn another_answer_to_a_duplicate_is_not_acknowledged_yet() {
    let mut server = server();
    let accept = answer(&mut server, millis(0), &fields(REQ).octets());
    answers(&mut server, millis(0), &ack(&accept));
    server.table().insert(fixed("10.0.0.1:5001", &["10.0.0.1:7002"], 20)).unwrap();
    assert_eq!(answer(&mut server, millis(1), &fields(REQ).octets()).ap_port, 7002);
    events(&mut server);
    server.handle_timeout(millis(10_001));
    assert_eq!(expired(&events(&mut server)), 1);
}

/// A port belongs to only one Request at a time, even if two mappings use the same ports, and even
/// if the mapping of the port is replaced.
#[test]
fn no_port_is_given_twice() {
    let mut server = Server::new(ServerSettings::default(), table([made("10.0.0.1:6001"), made("10.0.0.1:6002")]));
    let first = answer(&mut server, millis(0), &wants_port(1, 1).octets()).ap_port;
    let other = answer(&mut server, millis(0), &Fields { ap_port: 6002, ..wants_port(2, 2) }.octets()).ap_port;
    server.table().insert(made("10.0.0.1:6001")).unwrap();
    let anew = answer(&mut server, millis(1), &wants_port(3, 3).octets());
    assert_eq!((first, other, anew.ap_port), (9001, 9002, 9003));
    assert!(server.table().remove(at("10.0.0.1:6001")));
    assert_eq!(answer(&mut server, millis(2), &Fields { ap_port: 6002, ..wants_port(4, 4) }.octets()).first, DENY);
    server.handle_timeout(millis(10_001));
    assert_eq!(
        answer(&mut server, millis(10_001), &Fields { ap_port: 6002, ..wants_port(4, 4) }.octets()).ap_port,
        9001
    );
}

/// If the target of a mapping has the unspecified address, the server grants the requested address.
/// If the requested address is also unspecified, the server denies the request.
#[test]
fn the_unspecified_address_is_not_given() {
    let mapping = fixed("0.0.0.0:5001", &["0.0.0.0:7001"], 0);
    let mut server = Server::new(ServerSettings::default(), table([mapping]));
    let asks =
        |server: &mut Server, ap: &str| answer(server, millis(0), &Fields { ap: at(ap).ip(), ..fields(REQ) }.octets());
    assert_eq!(asks(&mut server, "0.0.0.0:0").first, DENY);
    let other = asks(&mut server, "10.0.0.1:0");
    assert_eq!((other.first, other.ap), (ACCEPT, at("10.0.0.1:0").ip()));
}

/// By section 7.3.1.4, a client that is allowed to cache an answer is also allowed to connect again
/// from another port. With a PmTime of 0, no client is allowed to cache the answer.
#[test]
fn a_cached_answer_is_valid_for_another_port_of_the_same_host() {
    let mut server = server();
    answer(&mut server, millis(0), &fields(REQ).octets());
    let connects = |server: &mut Server, from: &str, to: &str| server.handle_connection(millis(1), at(from), at(to));
    let service = Some(at("10.0.0.1:5001"));
    assert_eq!(connects(&mut server, "10.0.0.2:40001", "10.0.0.1:7001"), service);
    assert_eq!(connects(&mut server, "10.0.0.2:40002", "10.0.0.1:7001"), service);
    assert_eq!(connects(&mut server, "10.0.0.3:40001", "10.0.0.1:7001"), None);
    assert_eq!(connects(&mut server, "[::ffff:10.0.0.2]:40001", "[::ffff:10.0.0.1]:7001"), service);
}

/// The link-local address of a connection has a scope (an interface). The addresses in messages
/// have no scope.
#[test]
fn a_connection_within_a_link_fits_its_request() {
    let mapping = fixed("[fe80::1]:5001", &["[fe80::1]:7001"], 0);
    let mut server = Server::new(ServerSettings::default(), table([mapping]));
    let (cp, ap) = (at("[fe80::2]:0").ip(), at("[fe80::1]:0").ip());
    let accept = answer(&mut server, millis(0), &Fields { first: 0x06, cp, ap, ..fields(REQ) }.octets());
    assert_eq!(accept.ap_port, 7001);
    let service = server.handle_connection(millis(1), at("[fe80::2%3]:40001"), at("[fe80::1%3]:7001"));
    assert_eq!(service, Some(at("[fe80::1]:5001")));
}
