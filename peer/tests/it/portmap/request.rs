//! Tests the PMReq that a client sends.

use weft_core::requirement;

use crate::portmap::octets::{
    Fields, HANDLE, REQ, ask, at, client, fields, mapper, millis, proves, requesting_client, sent,
};

fn first() -> Fields {
    Fields::read(&requesting_client().1)
}

#[test]
fn its_octets_are_those_of_figure_17() {
    let (_, octets) = requesting_client();
    assert_eq!(octets, fields(REQ).octets());
    proves([
        (requirement!("PM-7.3-1"), &|| assert_eq!(octets.len(), 48)),
        (requirement!("PM-7.3.1.1-1"), &|| assert_eq!(octets[0] >> 6, 0)),
        (requirement!("PM-7.3.1.2-2"), &|| assert_eq!(octets[0] >> 4 & 3, 0)),
        (requirement!("PM-7.3.1.3-1"), &|| {
            assert_eq!((&octets[16..20], &octets[32..36]), (&[10, 0, 0, 2][..], &[10, 0, 0, 1][..]));
        }),
        (requirement!("PM-7.3.1.3-2"), &|| assert_eq!((&octets[20..32], &octets[36..]), (&[0; 12][..], &[0; 12][..]))),
        (requirement!("PM-7.3.1.5-1"), &|| assert_eq!(octets[2..4], [0, 0])),
        (requirement!("PM-7.3.1.8-1"), &|| assert_eq!(octets[8..16], HANDLE.to_be_bytes())),
        (requirement!("PM-7.4-4"), &|| assert_eq!(octets, fields(REQ).octets())),
    ]);
}

#[test]
fn its_fields_describe_the_request() {
    let request = first();
    proves([
        (requirement!("PM-7.3.1.6-1"), &|| assert_eq!(request.ap_port, 5001)),
        (requirement!("PM-7.3.1.7-1"), &|| assert_eq!(request.cp_port, 40001)),
        (requirement!("PM-7.3.1.9-1"), &|| assert_eq!(request.cp, at("10.0.0.2:0").ip())),
        (requirement!("PM-7.3.1.10-1"), &|| assert_eq!(request.ap, at("10.0.0.1:0").ip())),
        (requirement!("PM-7.4-5"), &|| assert_eq!(request.first & 0xc0, 0)),
        (requirement!("PM-7.4-6"), &|| assert_eq!(request.first & 0x0f, 4)),
        (requirement!("PM-7.4-7"), &|| assert_eq!(request.first & 0x30, 0)),
        (requirement!("PM-7.4-8"), &|| assert_eq!(request.time, 0)),
    ]);
}

#[test]
fn other_requests_have_other_fields() {
    let mut client = client();
    let question = |service: &str, connecting: &str| {
        let mut ask = ask();
        (ask.service, ask.connecting) = (at(service), at(connecting));
        ask
    };
    client.query(millis(0), question("10.0.0.1:5001", "10.0.0.2:40001")).unwrap();
    client.query(millis(0), question("10.0.0.9:80", "10.0.0.3:40002")).unwrap();
    let all = sent(&mut client);
    let [one, other] = [all[0], all[1]];
    proves([
        (requirement!("PM-7.4-10"), &|| assert_eq!([one.ap_port, other.ap_port], [5001, 80])),
        (requirement!("PM-7.4-11"), &|| assert_eq!([one.cp_port, other.cp_port], [40001, 40002])),
        (requirement!("PM-7.4-12"), &|| assert_eq!([one.handle, other.handle], [HANDLE, HANDLE + 1])),
        (requirement!("PM-7.4-13"), &|| assert_eq!([one.cp, other.cp], [at("10.0.0.2:0").ip(), at("10.0.0.3:0").ip()])),
        (requirement!("PM-7.4-14"), &|| assert_eq!([one.ap, other.ap], [at("10.0.0.1:0").ip(), at("10.0.0.9:0").ip()])),
        (requirement!("PM-7.5.1-7"), &|| assert_ne!(one, other)),
    ]);
}

#[test]
fn it_goes_first_and_to_the_port_mapper() {
    let mut client = client();
    client.query(millis(0), ask()).unwrap();
    let datagram = client.poll_datagram().unwrap();
    proves([
        (requirement!("PM-7-1"), &|| assert_eq!(Fields::read(&datagram.octets).first, REQ)),
        (requirement!("PM-7.4-1"), &|| assert_eq!(datagram.to.port(), weft_core::wire::portmap::UDP_PORT)),
        (requirement!("PM-7.4-2"), &|| assert_eq!(datagram.octets[0], 0x04)),
        (requirement!("PM-7.4-15"), &|| assert_eq!(datagram.to, mapper())),
        (requirement!("PM-7.3.1.2-1"), &|| assert!([0, 2].contains(&(datagram.octets[0] >> 4)))),
    ]);
}

#[test]
fn ipv6_fills_both_fields() {
    let mut client = client();
    let mut ask = ask();
    (ask.service, ask.connecting) = (at("[fd00:9::1]:5001"), at("[fd00:9::2]:40001"));
    client.query(millis(0), ask).unwrap();
    let octets = client.poll_datagram().unwrap().octets;
    proves([
        (requirement!("PM-7.3.1.3-4"), &|| {
            assert_eq!(octets[16..32], [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
            assert_eq!(octets[32..48], [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        }),
        (requirement!("PM-7.3.1.3-5"), &|| assert_eq!(octets[0], 0x06)),
    ]);
}

/// The Linux port mapper daemon interprets handle 0 differently, so the client skips it.
#[test]
fn no_handle_is_zero_and_they_wrap() {
    let mut client = weft_peer::portmap::Client::new(Default::default(), u64::MAX);
    for port in [40001, 40002, 40003] {
        let mut ask = ask();
        ask.connecting.set_port(port);
        client.query(millis(0), ask).unwrap();
    }
    let handles: Vec<u64> = sent(&mut client).iter().map(|request| request.handle).collect();
    assert_eq!(handles, [u64::MAX, 1, 2]);
}

/// The messages of the Linux port mapper daemon have the mapped port in Reserved, and the mapped
/// address after the last field of the draft.
#[test]
fn sends_the_linux_daemons_form_if_configured() {
    let settings = weft_peer::portmap::ClientSettings { linux_format: true, ..Default::default() };
    let mut client = weft_peer::portmap::Client::new(settings, HANDLE);
    client.query(millis(0), ask()).unwrap();
    let octets = client.poll_datagram().unwrap().octets;
    let mut expected = Fields { reserved: 40001, ..fields(REQ) }.octets();
    expected.extend([10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(octets, expected);
}

/// The same endpoint sends several requests, each after the answer to the previous request.
#[test]
fn no_three_tuple_is_used_twice() {
    let mut client = client();
    let mut handles = std::collections::BTreeSet::new();
    for round in 0..2000 {
        client.query(millis(round), ask()).unwrap();
        let request = sent(&mut client)[0];
        client.handle_datagram(
            millis(round),
            mapper(),
            &Fields { handle: request.handle, ..fields(crate::portmap::octets::DENY) }.octets(),
        );
        assert!(client.poll_event().is_some());
        handles.insert(request.handle);
    }
    proves([(requirement!("PM-7.5.1-1"), &|| assert_eq!(handles.len(), 2000))]);
}
