//! Tests the PMAccept that a server sends.

use std::cell::RefCell;

use weft_core::requirement;

use crate::portmap::octets::{ACCEPT, Fields, HANDLE, REQ, answer, asker, at, fields, millis, proves, server};

fn accept() -> Fields {
    answer(&mut server(), millis(0), &fields(REQ).octets())
}

#[test]
fn its_octets_are_those_of_figure_17() {
    let mut server = server();
    server.handle_datagram(millis(0), asker(), &fields(REQ).octets());
    let datagram = server.poll_datagram().unwrap();
    let expected = Fields { time: 20, ..fields(ACCEPT) };
    proves([
        (requirement!("PM-7.4-16"), &|| assert_eq!(datagram.octets[0] >> 4, 1)),
        (requirement!("PM-7.4-17"), &|| assert_eq!((datagram.to, datagram.from_other_port), (asker(), false))),
        (requirement!("PM-7.4-18"), &|| assert_eq!(datagram.octets, expected.octets())),
        (requirement!("PM-7.4-29"), &|| assert_eq!(datagram.to, asker())),
        (requirement!("PM-7.3.1.2-3"), &|| assert_eq!(datagram.octets[0] & 0x30, 0x10)),
    ]);
}

#[test]
fn its_fields_are_those_of_the_request_and_the_mapping() {
    let accept = accept();
    proves([
        (requirement!("PM-7.4-19"), &|| assert_eq!(accept.first & 0xc0, 0)),
        (requirement!("PM-7.4-20"), &|| assert_eq!(accept.first & 0x0f, 4)),
        (requirement!("PM-7.4-21"), &|| assert_eq!(accept.first & 0x30, 0x10)),
        (requirement!("PM-7.4-22"), &|| assert_eq!(accept.time, 20)),
        (requirement!("PM-7.4-23"), &|| assert_eq!(accept.ap_port, 7001)),
        (requirement!("PM-7.4-24"), &|| assert_eq!(accept.cp_port, 40001)),
        (requirement!("PM-7.4-25"), &|| assert_eq!(accept.handle, HANDLE)),
        (requirement!("PM-7.4-26"), &|| assert_eq!(accept.cp, at("10.0.0.2:0").ip())),
    ]);
}

#[test]
fn reflects_fields_with_any_value() {
    let other = Fields { cp_port: 1, handle: 0xfeed, cp: at("192.0.2.7:0").ip(), ..fields(REQ) };
    let accept = answer(&mut server(), millis(0), &other.octets());
    proves([
        (requirement!("PM-7.3.1.6-2"), &|| assert_eq!(accept.ap_port, 7001)),
        (requirement!("PM-7.3.1.7-2"), &|| assert_eq!(accept.cp_port, 1)),
        (requirement!("PM-7.3.1.8-2"), &|| assert_eq!(accept.handle, 0xfeed)),
        (requirement!("PM-7.3.1.9-2"), &|| assert_eq!(accept.cp, at("192.0.2.7:0").ip())),
        (requirement!("PM-7.4-27"), &|| assert_eq!(accept.ap, at("10.0.0.1:0").ip())),
    ]);
}

#[test]
fn ignores_reserved_fields_of_a_request() {
    let server = RefCell::new(server());
    let ask = |octets: &[u8]| answer(&mut server.borrow_mut(), millis(0), octets);
    let expected = Fields { time: 20, ..fields(ACCEPT) };
    proves([
        (requirement!("PM-7.4-9"), &|| assert_eq!(ask(&Fields { time: 0xff, ..fields(REQ) }.octets()), expected)),
        (requirement!("PM-7.3.1.5-2"), &|| {
            assert_eq!(ask(&Fields { reserved: 0xffff, ..fields(REQ) }.octets()), expected);
        }),
        (requirement!("PM-7.3.1.3-3"), &|| {
            let mut octets = fields(REQ).octets();
            octets[20..32].fill(0xaa);
            octets[36..48].fill(0x55);
            assert_eq!(ask(&octets), expected);
        }),
    ]);
}

/// A server of IPv6 services gives IPv6 addresses.
#[test]
fn answers_ipv6_with_ipv6() {
    use crate::portmap::octets::{fixed, table};
    let table = table([fixed("[fd00:9::1]:5001", &["[fd00:9::7]:7001"], 0)]);
    let mut server = weft_peer::portmap::Server::new(Default::default(), table);
    let (cp, ap) = (at("[fd00:9::2]:0").ip(), at("[fd00:9::1]:0").ip());
    let accept = answer(&mut server, millis(0), &Fields { first: 0x06, cp, ap, ..fields(REQ) }.octets());
    proves([
        (requirement!("PM-7.2-6"), &|| assert_eq!((accept.first, accept.ap), (0x16, at("[fd00:9::7]:0").ip()))),
        (requirement!("PM-7.4-28"), &|| assert_ne!(accept.ap, ap)),
    ]);
}

/// The Request of the Linux daemon has 64 octets, with the daemon's own port in Reserved.
#[test]
fn the_linux_daemons_request_is_answered() {
    let mut octets = Fields { reserved: 0xbd95, ..fields(REQ) }.octets();
    octets.extend([10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(answer(&mut server(), millis(0), &octets), Fields { time: 20, ..fields(ACCEPT) });
}
