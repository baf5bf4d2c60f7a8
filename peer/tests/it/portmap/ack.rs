//! Tests the PMAck that a client sends.

use weft_core::requirement;

use crate::portmap::octets::{ACCEPT, ACK, Fields, HANDLE, at, fields, mapper, millis, proves, requesting_client};

fn ack_of(accept: &Fields) -> (Fields, std::net::SocketAddr) {
    let (mut client, _) = requesting_client();
    client.handle_datagram(millis(1), mapper(), &accept.octets());
    let datagram = client.poll_datagram().unwrap();
    assert_eq!(client.poll_datagram(), None);
    (Fields::read(&datagram.octets), datagram.to)
}

#[test]
fn its_fields_are_those_of_the_accept() {
    let (ack, _) = ack_of(&Fields { time: 20, ..fields(ACCEPT) });
    proves([
        (requirement!("PM-7.4-30"), &|| assert_eq!(ack.first >> 4, 2)),
        (requirement!("PM-7.4-32"), &|| assert_eq!(ack, fields(ACK))),
        (requirement!("PM-7.4-33"), &|| assert_eq!(ack.first & 0xc0, 0)),
        (requirement!("PM-7.4-34"), &|| assert_eq!(ack.first & 0x0f, 4)),
        (requirement!("PM-7.4-35"), &|| assert_eq!(ack.first & 0x30, 0x20)),
        (requirement!("PM-7.4-36"), &|| assert_eq!(ack.time, 0)),
        (requirement!("PM-7.4-38"), &|| assert_eq!(ack.ap_port, 7001)),
        (requirement!("PM-7.4-39"), &|| assert_eq!(ack.cp_port, 40001)),
    ]);
}

#[test]
fn reflects_the_fields_of_the_accept() {
    let elsewhere = at("10.0.0.77:0").ip();
    let (ack, to) = ack_of(&Fields { ap_port: 7777, ap: elsewhere, reserved: 0xcf23, ..fields(ACCEPT) });
    proves([
        (requirement!("PM-7.4-40"), &|| assert_eq!(ack.handle, HANDLE)),
        (requirement!("PM-7.4-41"), &|| assert_eq!(ack.cp, at("10.0.0.2:0").ip())),
        (requirement!("PM-7.4-43"), &|| assert_eq!(ack.ap, elsewhere)),
        (requirement!("PM-7.3.1.6-3"), &|| assert_eq!(ack.ap_port, 7777)),
        (requirement!("PM-7.3.1.7-3"), &|| assert_eq!(ack.cp_port, 40001)),
        (requirement!("PM-7.3.1.10-3"), &|| assert_eq!(ack.ap, elsewhere)),
        (requirement!("PM-7.3.1.2-4"), &|| assert_eq!(ack.first, 0x24)),
        (requirement!("PM-7.4-45"), &|| assert_eq!(to, mapper())),
    ]);
}

/// A server with several addresses can answer from an address other than the destination of the
/// request. The client sends the PMAck to the source address of the answer.
#[test]
fn it_goes_where_the_accept_came_from() {
    let (mut client, _) = requesting_client();
    let elsewhere = at("10.0.0.99:4444");
    client.handle_datagram(millis(1), elsewhere, &fields(ACCEPT).octets());
    let datagram = client.poll_datagram().unwrap();
    proves([
        (requirement!("PM-7.4-44"), &|| assert_eq!(datagram.to, elsewhere)),
        (requirement!("PM-7.4-31"), &|| assert_eq!((datagram.to.port(), datagram.from_other_port), (4444, false))),
        (requirement!("PM-7.4-46"), &|| assert_eq!(datagram.octets[0], ACK)),
    ]);
}
