//! Tests a PM Server whose services have several addresses or the unspecified address, and a server
//! that maps for another host.

use weft_core::requirement;
use weft_peer::portmap::{Server, ServerSettings, Table, TableError, Target};

use crate::portmap::octets::{ACCEPT, DENY, Fields, REQ, answer, at, fields, fixed, made, millis, proves, table};

fn asks(server: &mut Server, cp_port: u16, ap: &str) -> Fields {
    answer(server, millis(0), &Fields { cp_port, ap: at(ap).ip(), ..fields(REQ) }.octets())
}

#[test]
fn rotates_addresses_and_skips_those_that_are_down() {
    let three = ["10.0.0.11:7001", "10.0.0.12:7001", "10.0.0.13:7002"];
    let mut server = Server::new(ServerSettings::default(), table([fixed("10.0.0.1:5001", &three, 0)]));
    let service = at("10.0.0.1:5001");
    let next = |server: &mut Server, cp_port| {
        let answer = asks(server, cp_port, "10.0.0.1:0");
        (answer.first == ACCEPT).then(|| std::net::SocketAddr::new(answer.ap, answer.ap_port).to_string())
    };
    let turns: Vec<_> = (1..=4).filter_map(|cp_port| next(&mut server, cp_port)).collect();
    assert!(server.table().set_target(service, at(three[1]), false));
    let without: Vec<_> = (5..=7).filter_map(|cp_port| next(&mut server, cp_port)).collect();
    for address in three {
        server.table().set_target(service, at(address), false);
    }
    let none = next(&mut server, 8);
    server.table().set_target(service, at(three[2]), true);
    let one = next(&mut server, 9);
    proves([
        (requirement!("PM-7.2-5"), &|| {
            assert_eq!(turns, [three[0], three[1], three[2], three[0]]);
            assert_eq!(without, [three[2], three[0], three[2]]);
            assert_eq!((none.as_deref(), one.as_deref()), (None, Some(three[2])));
        }),
        (requirement!("PM-7.3.1.10-2"), &|| assert!(!turns.iter().any(|address| address.starts_with("10.0.0.1:")))),
    ]);
}

/// A duplicate of a Request gets the address of the first answer, and not the next address. If the
/// address of the first answer has failed in the meantime, the duplicate gets another address.
#[test]
fn a_duplicate_keeps_its_turn() {
    let two = ["10.0.0.11:7001", "10.0.0.12:7001"];
    let mut server = Server::new(ServerSettings::default(), table([fixed("10.0.0.1:5001", &two, 0)]));
    let first = asks(&mut server, 1, "10.0.0.1:0").ap;
    assert_eq!(asks(&mut server, 1, "10.0.0.1:0").ap, first);
    server.table().set_target(at("10.0.0.1:5001"), at(two[0]), false);
    assert_eq!(asks(&mut server, 1, "10.0.0.1:0").ap, at(two[1]).ip());
}

#[test]
fn the_unspecified_address_matches_all_of_its_family() {
    let mappings = [fixed("0.0.0.0:5001", &["0.0.0.0:7001"], 0), fixed("10.0.0.5:5001", &["10.0.0.6:8001"], 0)];
    let mut server = Server::new(ServerSettings::default(), table(mappings));
    let any = asks(&mut server, 1, "10.0.0.4:0");
    assert_eq!((any.ap, any.ap_port), (at("10.0.0.4:0").ip(), 7001));
    let own = asks(&mut server, 2, "10.0.0.5:0");
    assert_eq!((own.ap, own.ap_port), (at("10.0.0.6:0").ip(), 8001));
    let (cp, ap) = (at("[::1]:0").ip(), at("[::2]:0").ip());
    assert_eq!(
        answer(&mut server, millis(0), &Fields { first: 0x06, cp, ap, ..fields(REQ) }.octets()).first & 0x30,
        DENY & 0x30
    );
}

/// draft-pinkerton-iwarp-sdp-01 section 7.4 ("centralized or distributed"): the server and the
/// service can be on different hosts.
#[test]
fn a_server_maps_for_other_hosts() {
    let mut server =
        Server::new(ServerSettings::default(), table([fixed("198.51.100.7:80", &["198.51.100.8:7080"], 0)]));
    let request = Fields { ap: at("198.51.100.7:0").ip(), ap_port: 80, ..fields(REQ) };
    let accept = answer(&mut server, millis(0), &request.octets());
    proves([(requirement!("PM-7.4-27"), &|| {
        assert_eq!((accept.ap, accept.ap_port), (at("198.51.100.8:0").ip(), 7080));
    })]);
}

#[test]
fn rejects_invalid_mappings() {
    let refused = |mapping| Table::default().insert(mapping).unwrap_err();
    assert_eq!(refused(fixed("10.0.0.1:0", &["10.0.0.1:1"], 0)), TableError::NoPort);
    assert_eq!(refused(fixed("10.0.0.1:1", &["10.0.0.1:0"], 0)), TableError::NoPort);
    assert_eq!(refused(fixed("10.0.0.1:1", &[], 0)), TableError::NoPort);
    assert_eq!(refused(fixed("10.0.0.1:1", &["[::1]:1"], 0)), TableError::Families);
    proves([(requirement!("PM-7.3.1.4-10"), &|| {
        for time in 1..=3 {
            assert_eq!(refused(fixed("10.0.0.1:1", &["10.0.0.1:2"], time)), TableError::Short);
        }
        assert_eq!(Table::default().insert(fixed("10.0.0.1:1", &["10.0.0.1:2"], 4)), Ok(()));
    })]);
    let mut forever = made("10.0.0.1:1");
    forever.pm_time = weft_core::wire::portmap::PmTime(255);
    assert_eq!(refused(forever), TableError::Forever);
    let mut none = made("10.0.0.1:1");
    none.target = Target::PortRange { at: at("10.0.0.1:0"), ports: std::ops::RangeInclusive::new(2, 1) };
    assert_eq!(refused(none), TableError::NoPort);
    let mut table = table([made("10.0.0.1:1")]);
    assert_eq!(table.mappings().count(), 1);
    assert!(table.remove(at("10.0.0.1:1")) && !table.remove(at("10.0.0.1:1")));
}
