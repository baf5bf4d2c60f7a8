//! The expected octets come from Figure 17 of the SDP draft (draft-pinkerton-iwarp-sdp-01), and
//! from datagrams of two Linux daemons. The frame numbers are those of the capture
//! `portmap/iwpmd-two-daemons`.

use proptest::prelude::*;

use super::*;

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn emitted(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.emit(&mut out);
    out
}

const CP: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const AP: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

const ACCEPT: Message = Message {
    message_type: MessageType::PM_ACCEPT,
    pm_time: PmTime::ONCE,
    ap_port: 0xcf23,
    cp_port: 8001,
    assoc_handle: 0x5628_127d_89e0,
    addresses: Addresses::V4 { connecting: CP, accepting: AP },
    mapped: None,
};

/// Frames 1 to 3 are a Request with a mapped address, its Accept, and its Ack.
#[test]
fn three_way_exchange_over_ipv4() {
    let request = octets(concat!(
        "0400bd951b581f4100005628127d89e0",
        "0a090002000000000000000000000000",
        "0a090001000000000000000000000000",
        "0a090002000000000000000000000000"
    ));
    let accept = octets(concat!(
        "14000000cf231f4100005628127d89e0",
        "0a090002000000000000000000000000",
        "0a090001000000000000000000000000"
    ));
    let mut ack = accept.clone();
    ack[0] = 0x24;
    let mapped = Some(Mapped { port: 0xbd95, ip_addr: padded(CP) });
    for (expected, message) in [
        (&request, Message { message_type: MessageType::PM_REQ, ap_port: 7000, mapped, ..ACCEPT }),
        (&accept, ACCEPT),
        (&ack, Message { message_type: MessageType::PM_ACK, ..ACCEPT }),
    ] {
        assert_eq!(Message::parse(expected), Ok(message));
        assert_eq!(&emitted(&message), expected);
    }
    // According to the draft, a Request has 48 octets. The parser does not check the Reserved
    // field.
    let plain = Message { message_type: MessageType::PM_REQ, ap_port: 7000, ..ACCEPT };
    assert_eq!(Message::parse(&request[..48]), Ok(plain));
    assert_eq!(emitted(&plain)[..4], [0x04, 0, 0, 0]);
}

/// Frame 8 is an Accept over IPv6.
#[test]
fn accept_over_ipv6() {
    let accept = octets(concat!(
        "16000000d2971f4100005628127d8290",
        "fd000009000000000000000000000002",
        "fd000009000000000000000000000001"
    ));
    let connecting = Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 2);
    let accepting = Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 1);
    let addresses = Addresses::V6 { connecting, accepting };
    let message = Message { ap_port: 0xd297, assoc_handle: 0x5628_127d_8290, addresses, ..ACCEPT };
    assert_eq!(Message::parse(&accept), Ok(message));
    assert_eq!(emitted(&message), accept);
    assert_eq!(message.addresses.connecting(), IpAddr::V6(connecting));
    assert_eq!(message.addresses.accepting(), IpAddr::V6(accepting));
}

/// Frame 14 is a Deny. Its address fields have stale octets after the IPv4 addresses.
#[test]
fn stale_octets_after_an_ipv4_address_are_ignored() {
    let deny = octets(concat!(
        "340000001f3f1f4400005628127d9070",
        "0a090002000000000000000000000002",
        "0a090001000000000000000000000001"
    ));
    let message = Message::parse(&deny).unwrap();
    assert_eq!(message.message_type, MessageType::PM_DENY);
    assert_eq!(message.addresses, ACCEPT.addresses);
    assert_eq!(emitted(&message)[16..], emitted(&ACCEPT)[16..]);
}

#[test]
fn what_is_wrong_is_named() {
    let request = emitted(&Message { message_type: MessageType::PM_REQ, ..ACCEPT });
    let error = |octets: &[u8]| Message::parse(octets).unwrap_err();
    for length in [0, 47] {
        assert_eq!(error(&request[..length]).found, Found::Octets(length));
    }
    let longer = |message: &[u8], length| {
        let mut octets = message.to_vec();
        octets.resize(length, 0);
        Message::parse(&octets).map(|message| message.mapped.is_some()).map_err(|error| error.requirement)
    };
    let length = Err(Some(requirement!("PM-7.3-1")));
    assert_eq!([49, 63, 64, 65].map(|octets| longer(&request, octets)), [length, length, Ok(true), length]);
    assert_eq!(longer(&emitted(&ACCEPT), 64), length);

    let first = |octet: u8| {
        let mut octets = request.clone();
        octets[0] = octet;
        Message::parse(&octets).map_err(|error| (error.field, error.found))
    };
    assert_eq!(first(0x44), Err(("Ver", Found::Value(1))));
    assert_eq!(first(0x05), Err(("IPV", Found::Value(5))));
    assert!(first(0x06).is_ok());
}

proptest! {
    #[test]
    fn what_is_emitted_is_read_back(
        mt in 0u8..4, pm_time: u8, ports: (u16, u16), assoc_handle: u64, v6: bool, fields: ([u8; 16], [u8; 16]),
        mapped: Option<(u16, [u8; 16])>,
    ) {
        let addresses = if v6 {
            Addresses::V6 { connecting: fields.0.into(), accepting: fields.1.into() }
        } else {
            Addresses::V4 { connecting: first_four(&fields.0), accepting: first_four(&fields.1) }
        };
        let message = Message {
            message_type: MessageType(mt),
            pm_time: PmTime(pm_time),
            ap_port: ports.0,
            cp_port: ports.1,
            assoc_handle,
            addresses,
            mapped: mapped.filter(|_| mt == 0).map(|(port, ip_addr)| Mapped { port, ip_addr }),
        };
        prop_assert_eq!(Message::parse(&emitted(&message)), Ok(message));
    }

    #[test]
    fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Message::parse(&octets);
    }
}
