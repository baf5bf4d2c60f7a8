//! Tests a PM Client: its time-outs, and its reactions to the messages that it receives.

use std::cell::RefCell;

use weft_core::requirement;
use weft_peer::portmap::{Client, ClientSettings, Discarded, Fallback, QueryError, Resolution};

use crate::portmap::octets::{
    ACCEPT, ACK, DENY, Fields, HANDLE, REQ, ask, at, client, fields, mapper, millis, proves, requesting_client,
    resolution, sent,
};

const CONVENTIONAL: &str = "10.0.0.1:5001";

fn conventional(why: Fallback) -> Option<Resolution> {
    Some(Resolution::Conventional { address: at(CONVENTIONAL), why })
}

#[test]
fn a_request_without_answer_is_repeated_and_then_given_up() {
    let (mut client, first) = requesting_client();
    let mut times = Vec::new();
    let mut same = true;
    while let Some(deadline) = client.deadline() {
        client.handle_timeout(deadline);
        for datagram in std::iter::from_fn(|| client.poll_datagram()) {
            times.push(deadline.as_nanos() / 1_000_000);
            same &= datagram.octets == first && datagram.to == mapper();
        }
    }
    let end = client.poll_event().unwrap();
    let open = client.open();
    // The client first waits half a second. It doubles the wait each time, up to four seconds.
    let expected = [500, 1500, 3500, 7500];
    proves([
        (requirement!("PM-7.5-1"), &|| assert!(!times.is_empty())),
        (requirement!("PM-7.5.1-2"), &|| assert_eq!(times.first(), Some(&500))),
        (requirement!("PM-7.5.1-3"), &|| assert_eq!(times, expected)),
        (requirement!("PM-7.5.1-4"), &|| assert_eq!((times.len(), end.requests), (4, 5))),
        (requirement!("PM-7.5.1-5"), &|| assert!(same)),
        (requirement!("PM-7.5.1-8"), &|| assert_eq!(Some(end.resolution), conventional(Fallback::Silent))),
        (requirement!("PM-7.2-2"), &|| assert_eq!(open, 0)),
    ]);
}

#[test]
fn an_accept_resolves_to_the_address_it_names() {
    let (mut client, _) = requesting_client();
    let accept = Fields { ap_port: 7777, ap: at("10.0.0.77:0").ip(), ..fields(ACCEPT) };
    client.handle_datagram(millis(1), mapper(), &accept.octets());
    let got = resolution(&mut client).unwrap();
    assert_eq!(client.deadline(), None);
    proves([
        (requirement!("PM-7-2"), &|| assert!(matches!(got, Resolution::Sdp { cached: false, .. }))),
        (requirement!("PM-7.1-4"), &|| assert_eq!(got.address(), at("10.0.0.77:7777"))),
    ]);
}

#[test]
fn a_deny_ends_it() {
    let (mut client, _) = requesting_client();
    client.handle_datagram(millis(1), mapper(), &fields(DENY).octets());
    let got = resolution(&mut client);
    client.handle_timeout(millis(100_000));
    let later = sent(&mut client);
    proves([
        (requirement!("PM-7-3"), &|| assert_eq!(got, conventional(Fallback::Denied))),
        (requirement!("PM-7.1-1"), &|| assert_eq!(got.unwrap().address(), at(CONVENTIONAL))),
        (requirement!("PM-7.4-64"), &|| assert!(later.iter().all(|sent| sent.first != REQ), "{later:?}")),
        (requirement!("PM-7.4-65"), &|| assert!(later.iter().all(|sent| sent.first != ACK), "{later:?}")),
        (requirement!("PM-7.1-2"), &|| assert!(matches!(got, Some(Resolution::Conventional { .. })))),
    ]);
}

#[test]
fn ignores_reserved_fields_of_a_reply() {
    let got = |octets: &[u8]| {
        let (mut client, _) = requesting_client();
        client.handle_datagram(millis(1), mapper(), octets);
        resolution(&mut client)
    };
    proves([
        (requirement!("PM-7.3.1.6-5"), &|| {
            assert_eq!(got(&Fields { ap_port: 999, ..fields(DENY) }.octets()), conventional(Fallback::Denied));
        }),
        (requirement!("PM-7.4-56"), &|| {
            let (mut client, _) = requesting_client();
            client.handle_datagram(millis(1), mapper(), &Fields { time: 0xff, ..fields(DENY) }.octets());
            assert_eq!(resolution(&mut client), conventional(Fallback::Denied));
            client.query(millis(2), ask()).unwrap();
            assert_eq!((sent(&mut client).len(), resolution(&mut client)), (1, None));
        }),
        (requirement!("PM-7.3.1.5-2"), &|| {
            let got = got(&Fields { reserved: 0xffff, ..fields(ACCEPT) }.octets());
            assert_eq!(got.map(|it| it.address()), Some(at("10.0.0.1:7001")));
        }),
        (requirement!("PM-7.3.1.3-3"), &|| {
            let mut octets = fields(ACCEPT).octets();
            octets[20..32].fill(0xaa);
            octets[36..48].fill(0x55);
            assert_eq!(got(&octets).map(|it| it.address()), Some(at("10.0.0.1:7001")));
        }),
    ]);
}

#[test]
fn the_first_reply_decides() {
    for [first, later] in [[ACCEPT, DENY], [DENY, ACCEPT], [ACCEPT, ACCEPT]] {
        let (mut client, _) = requesting_client();
        client.handle_datagram(millis(1), mapper(), &fields(first).octets());
        let acks = sent(&mut client).len();
        let decided = resolution(&mut client);
        client.handle_datagram(millis(2), mapper(), &fields(later).octets());
        let (again, changed) = (sent(&mut client), resolution(&mut client));
        proves([
            (requirement!("PM-7.5-4"), &|| {
                assert!(decided.is_some());
                assert_eq!(acks, usize::from(first == ACCEPT));
                assert_eq!(again, []);
            }),
            (requirement!("PM-7.5.1-10"), &|| assert_eq!(changed, None)),
        ]);
    }
}

#[test]
fn discards_unrelated_messages() {
    let (client, _) = requesting_client();
    let client = RefCell::new(client);
    let nothing = |fields: Fields| {
        let mut client = client.borrow_mut();
        client.handle_datagram(millis(1), mapper(), &fields.octets());
        assert_eq!((sent(&mut client), resolution(&mut client), client.open()), (vec![], None, 1));
        assert!(client.poll_discarded().is_some());
    };
    proves([(requirement!("PM-7.5.1-11"), &|| {
        nothing(Fields { handle: HANDLE ^ 1, ..fields(ACCEPT) });
        nothing(Fields { cp_port: 40002, ..fields(ACCEPT) });
        nothing(Fields { cp: at("10.0.0.3:0").ip(), ..fields(DENY) });
        nothing(fields(REQ));
        nothing(fields(ACK));
        nothing(Fields { first: 0x54, ..fields(ACCEPT) });
    })]);
    let mut client = client.into_inner();
    client.handle_datagram(millis(2), mapper(), &fields(ACCEPT).octets()[..47]);
    assert_eq!((resolution(&mut client), client.open()), (None, 1));
}

/// draft-pinkerton-iwarp-sdp-01 section 7.5.1: a reset is equivalent to a PMDeny.
#[test]
fn a_reset_leads_to_the_conventional_address() {
    let (mut client, _) = requesting_client();
    client.handle_datagram(millis(1), mapper(), &Fields { time: 255, ..fields(ACCEPT) }.octets());
    let sdp = resolution(&mut client).unwrap();
    let got = client.reset(&ask(), sdp.address());
    proves([(requirement!("PM-7.5.1-9"), &|| assert_eq!(Some(got), conventional(Fallback::Reset)))]);
    sent(&mut client);
    // The cached answer is gone.
    client.query(millis(2), ask()).unwrap();
    assert_eq!(sent(&mut client).len(), 1);
}

/// The client has sent several requests, and the answers arrive in reverse order.
#[test]
fn each_answer_matches_its_request() {
    let mut client = client();
    let asks = [40001, 40002, 40003].map(|port| {
        let mut ask = ask();
        ask.connecting.set_port(port);
        (client.query(millis(0), ask).unwrap(), ask)
    });
    let requests = sent(&mut client);
    for request in requests.iter().rev() {
        let accept = Fields { first: ACCEPT, ap_port: request.cp_port - 30_000, ..*request };
        client.handle_datagram(millis(1), mapper(), &accept.octets());
    }
    let resolved: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    proves([(requirement!("PM-7.3.1.8-3"), &|| {
        for (resolved, (transaction, ask)) in resolved.iter().rev().zip(&asks) {
            assert_eq!((resolved.transaction, resolved.query), (*transaction, *ask));
            assert_eq!(resolved.resolution.address().port(), ask.connecting.port() - 30_000);
        }
        assert_eq!(resolved.len(), 3);
    })]);
}

/// The Linux daemon repeats its PMAccept until a PMAck arrives.
#[test]
fn acknowledges_repeats_if_configured() {
    let settings = ClientSettings { acknowledges_repeats: true, ..ClientSettings::default() };
    let mut client = Client::new(settings, HANDLE);
    client.query(millis(0), ask()).unwrap();
    client.poll_datagram();
    for second in 1..=3 {
        client.handle_datagram(millis(second * 1000), mapper(), &fields(ACCEPT).octets());
    }
    assert_eq!(sent(&mut client), [fields(ACK); 3]);
    assert!(client.poll_event().is_some());
    assert_eq!(client.poll_event(), None);
    // The client does not acknowledge a PMDeny. After a minute, it acknowledges no message.
    client.handle_datagram(millis(4000), mapper(), &fields(DENY).octets());
    client.handle_datagram(millis(62_001), mapper(), &fields(ACCEPT).octets());
    assert_eq!(sent(&mut client), []);
}

#[test]
fn rejects_invalid_requests() {
    let mut client = client();
    let refused = |client: &mut Client, change: &dyn Fn(&mut weft_peer::portmap::Query)| {
        let mut ask = ask();
        change(&mut ask);
        client.query(millis(0), ask).unwrap_err()
    };
    assert_eq!(refused(&mut client, &|ask| ask.service.set_port(0)), QueryError::NoPort);
    assert_eq!(refused(&mut client, &|ask| ask.connecting.set_port(0)), QueryError::NoPort);
    assert_eq!(refused(&mut client, &|ask| ask.connecting = at("[::1]:1")), QueryError::Families);
    client.query(millis(0), ask()).unwrap();
    assert_eq!(refused(&mut client, &|_| {}), QueryError::InFlight);
    let settings = ClientSettings { max_open: 1, ..ClientSettings::default() };
    let mut client = Client::new(settings, 1);
    let transaction = client.query(millis(0), ask()).unwrap();
    assert_eq!(refused(&mut client, &|ask| ask.connecting.set_port(2)), QueryError::Busy);
    client.cancel(transaction);
    assert_eq!((client.open(), client.deadline()), (0, None));
}

/// ApPort must be a port that a listener can have, and ApIPAddr an address of one host. Any other
/// PMAccept is ignored.
#[test]
fn discards_an_accept_with_an_unusable_address() {
    let (mut client, _) = requesting_client();
    let place = |ap: &str| Fields { ap: at(ap).ip(), ..fields(ACCEPT) };
    for wrong in [Fields { ap_port: 0, ..fields(ACCEPT) }, place("0.0.0.0:0"), place("224.0.0.1:0")] {
        client.handle_datagram(millis(1), mapper(), &wrong.octets());
        assert_eq!((sent(&mut client), resolution(&mut client)), (vec![], None));
        assert!(matches!(client.poll_discarded(), Some((_, Discarded::Nowhere(_)))));
    }
    client.handle_datagram(millis(2), mapper(), &fields(ACCEPT).octets());
    assert_eq!(resolution(&mut client).map(|it| it.address()), Some(at("10.0.0.1:7001")));
}
