//! Tests the PMDeny that a PM Server sends. Section numbers refer to draft-pinkerton-iwarp-sdp-01.

use weft_core::requirement;
use weft_peer::portmap::{Denial, Server, ServerEvent, ServerSettings};

use crate::portmap::octets::{
    DENY, Fields, HANDLE, REQ, answer, answers, asker, at, events, fields, fixed, millis, proves, server, table,
};

fn unmapped() -> Fields {
    Fields { ap_port: 5002, ..fields(REQ) }
}

#[test]
fn its_octets_are_those_of_figure_17() {
    let mut server = server();
    server.handle_datagram(millis(0), asker(), &unmapped().octets());
    let datagram = server.poll_datagram().unwrap();
    let left = server.poll_datagram();
    proves([
        (requirement!("PM-7.4-49"), &|| assert_eq!(datagram.octets[0] >> 4, 3)),
        (requirement!("PM-7.4-50"), &|| assert_eq!((datagram.to, datagram.from_other_port), (asker(), false))),
        (requirement!("PM-7.4-51"), &|| assert_eq!(datagram.octets, fields(DENY).octets())),
        (requirement!("PM-7.4-62"), &|| assert_eq!(datagram.to, asker())),
        (requirement!("PM-7.4-63"), &|| assert_eq!(left, None)),
        (requirement!("PM-7.3.1.2-5"), &|| assert_eq!(datagram.octets[0] & 0x30, 0x30)),
        (requirement!("PM-7.3.1.6-4"), &|| assert_eq!(datagram.octets[4..6], [0, 0])),
    ]);
    let why = Denial::NoMapping;
    assert_eq!(
        events(&mut server),
        [ServerEvent::Denied { connecting: at("10.0.0.2:40001"), service: at("10.0.0.1:5002"), why }]
    );
}

#[test]
fn its_fields_are_those_of_the_request() {
    let deny = answer(&mut server(), millis(0), &unmapped().octets());
    proves([
        (requirement!("PM-7.4-52"), &|| assert_eq!(deny.first & 0xc0, 0)),
        (requirement!("PM-7.4-53"), &|| assert_eq!(deny.first & 0x0f, 4)),
        (requirement!("PM-7.4-54"), &|| assert_eq!(deny.first & 0x30, 0x30)),
        (requirement!("PM-7.4-55"), &|| assert_eq!(deny.time, 0)),
        (requirement!("PM-7.4-58"), &|| assert_eq!(deny.cp_port, 40001)),
        (requirement!("PM-7.4-59"), &|| assert_eq!(deny.handle, HANDLE)),
        (requirement!("PM-7.4-60"), &|| assert_eq!(deny.cp, at("10.0.0.2:0").ip())),
        (requirement!("PM-7.4-61"), &|| assert_eq!(deny.ap, at("10.0.0.1:0").ip())),
    ]);
}

/// The draft contradicts itself about ApPort in a PMDeny. Section 7.3.1.6 requires zero, which is
/// the default of the server. Section 7.4 requires the port of the request, and a setting selects
/// this value.
#[test]
fn its_port_is_zero_or_the_requested_one() {
    let settings = ServerSettings { denies_with_port: true, ..ServerSettings::default() };
    let mut echoes = Server::new(settings, table([fixed("10.0.0.1:5001", &["10.0.0.1:7001"], 0)]));
    let other = Fields { cp_port: 2, handle: 3, ap: at("10.0.0.9:0").ip(), ..unmapped() };
    let deny = answer(&mut echoes, millis(0), &other.octets());
    proves([
        (requirement!("PM-7.4-57"), &|| assert_eq!(deny.ap_port, 5002)),
        (requirement!("PM-7.3.1.7-4"), &|| assert_eq!(deny.cp_port, 2)),
        (requirement!("PM-7.3.1.10-4"), &|| assert_eq!(deny.ap, at("10.0.0.9:0").ip())),
    ]);
}

/// The draft defines an answer only to a request. The server does not answer any other message.
#[test]
fn only_requests_get_an_answer() {
    let mut server = server();
    let mut octets = fields(REQ).octets();
    for first in [0x44, 0x00, 0x05, 0x0f, 0x14, 0x34] {
        octets[0] = first;
        assert!(answers(&mut server, millis(0), &octets).is_empty(), "{first:#04x}");
        assert!(matches!(events(&mut server)[..], [ServerEvent::Discarded { .. }]), "{first:#04x}");
    }
    octets[0] = REQ;
    for len in [0, 1, 47, 49, 63, 65, 1500] {
        octets.resize(len, 0);
        assert!(answers(&mut server, millis(0), &octets).is_empty(), "{len}");
    }
    assert_eq!(server.stored_requests(), 0);
}
