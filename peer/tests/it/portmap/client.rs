//! What a client does with time, and with what arrives.

use std::cell::RefCell;

use weft_core::requirement;
use weft_peer::portmap::{AskError, Client, ClientSettings, Discarded, Fallback, Resolution};

use crate::portmap::octets::{
    ACCEPT, ACK, DENY, HANDLE, REQ, Said, ask, asked, at, client, mapper, millis, proves, resolution, said, sent,
};

const CONVENTIONAL: &str = "10.0.0.1:5001";

fn conventional(why: Fallback) -> Option<Resolution> {
    Some(Resolution::Conventional { address: at(CONVENTIONAL), why })
}

#[test]
fn a_request_without_answer_is_repeated_and_then_given_up() {
    let (mut client, first) = asked();
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
    // Half a second, then twice as long each time, four at most.
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
    let (mut client, _) = asked();
    let accept = Said { ap_port: 7777, ap: at("10.0.0.77:0").ip(), ..said(ACCEPT) };
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
    let (mut client, _) = asked();
    client.handle_datagram(millis(1), mapper(), &said(DENY).octets());
    let got = resolution(&mut client);
    client.handle_timeout(millis(100_000));
    let behind = sent(&mut client);
    proves([
        (requirement!("PM-7-3"), &|| assert_eq!(got, conventional(Fallback::Denied))),
        (requirement!("PM-7.1-1"), &|| assert_eq!(got.unwrap().address(), at(CONVENTIONAL))),
        (requirement!("PM-7.4-64"), &|| assert!(behind.iter().all(|sent| sent.first != REQ), "{behind:?}")),
        (requirement!("PM-7.4-65"), &|| assert!(behind.iter().all(|sent| sent.first != ACK), "{behind:?}")),
        (requirement!("PM-7.1-2"), &|| assert!(matches!(got, Some(Resolution::Conventional { .. })))),
    ]);
}

#[test]
fn what_is_to_be_ignored_in_a_reply_is() {
    let got = |octets: &[u8]| {
        let (mut client, _) = asked();
        client.handle_datagram(millis(1), mapper(), octets);
        resolution(&mut client)
    };
    proves([
        (requirement!("PM-7.3.1.6-5"), &|| {
            assert_eq!(got(&Said { ap_port: 999, ..said(DENY) }.octets()), conventional(Fallback::Denied));
        }),
        (requirement!("PM-7.4-56"), &|| {
            let (mut client, _) = asked();
            client.handle_datagram(millis(1), mapper(), &Said { time: 0xff, ..said(DENY) }.octets());
            assert_eq!(resolution(&mut client), conventional(Fallback::Denied));
            client.ask(millis(2), ask()).unwrap();
            assert_eq!((sent(&mut client).len(), resolution(&mut client)), (1, None));
        }),
        (requirement!("PM-7.3.1.5-2"), &|| {
            let got = got(&Said { reserved: 0xffff, ..said(ACCEPT) }.octets());
            assert_eq!(got.map(|it| it.address()), Some(at("10.0.0.1:7001")));
        }),
        (requirement!("PM-7.3.1.3-3"), &|| {
            let mut octets = said(ACCEPT).octets();
            octets[20..32].fill(0xaa);
            octets[36..48].fill(0x55);
            assert_eq!(got(&octets).map(|it| it.address()), Some(at("10.0.0.1:7001")));
        }),
    ]);
}

#[test]
fn the_first_reply_decides() {
    for [first, later] in [[ACCEPT, DENY], [DENY, ACCEPT], [ACCEPT, ACCEPT]] {
        let (mut client, _) = asked();
        client.handle_datagram(millis(1), mapper(), &said(first).octets());
        let acks = sent(&mut client).len();
        let decided = resolution(&mut client);
        client.handle_datagram(millis(2), mapper(), &said(later).octets());
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
fn what_belongs_to_nothing_is_discarded() {
    let (client, _) = asked();
    let client = RefCell::new(client);
    let nothing = |said: Said| {
        let mut client = client.borrow_mut();
        client.handle_datagram(millis(1), mapper(), &said.octets());
        assert_eq!((sent(&mut client), resolution(&mut client), client.open()), (vec![], None, 1));
        assert!(client.poll_discarded().is_some());
    };
    proves([(requirement!("PM-7.5.1-11"), &|| {
        nothing(Said { handle: HANDLE ^ 1, ..said(ACCEPT) });
        nothing(Said { cp_port: 40002, ..said(ACCEPT) });
        nothing(Said { cp: at("10.0.0.3:0").ip(), ..said(DENY) });
        nothing(said(REQ));
        nothing(said(ACK));
        nothing(Said { first: 0x54, ..said(ACCEPT) });
    })]);
    let mut client = client.into_inner();
    client.handle_datagram(millis(2), mapper(), &said(ACCEPT).octets()[..47]);
    assert_eq!((resolution(&mut client), client.open()), (None, 1));
}

/// Section 7.5.1: as good as a PMDeny.
#[test]
fn a_reset_leads_to_the_conventional_address() {
    let (mut client, _) = asked();
    client.handle_datagram(millis(1), mapper(), &Said { time: 255, ..said(ACCEPT) }.octets());
    let sdp = resolution(&mut client).unwrap();
    let got = client.reset(&ask(), sdp.address());
    proves([(requirement!("PM-7.5.1-9"), &|| assert_eq!(Some(got), conventional(Fallback::Reset)))]);
    sent(&mut client);
    // What was kept is gone.
    client.ask(millis(2), ask()).unwrap();
    assert_eq!(sent(&mut client).len(), 1);
}

/// Several questions at once, answered in the other order.
#[test]
fn each_answer_finds_its_question() {
    let mut client = client();
    let asks = [40001, 40002, 40003].map(|port| {
        let mut ask = ask();
        ask.connecting.set_port(port);
        (client.ask(millis(0), ask).unwrap(), ask)
    });
    let requests = sent(&mut client);
    for request in requests.iter().rev() {
        let accept = Said { first: ACCEPT, ap_port: request.cp_port - 30_000, ..*request };
        client.handle_datagram(millis(1), mapper(), &accept.octets());
    }
    let resolved: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    proves([(requirement!("PM-7.3.1.8-3"), &|| {
        for (resolved, (transaction, ask)) in resolved.iter().rev().zip(&asks) {
            assert_eq!((resolved.transaction, resolved.ask), (*transaction, *ask));
            assert_eq!(resolved.resolution.address().port(), ask.connecting.port() - 30_000);
        }
        assert_eq!(resolved.len(), 3);
    })]);
}

/// The Linux daemon repeats its PMAccept until a PMAck arrives.
#[test]
fn repeats_are_acknowledged_where_that_is_asked_for() {
    let settings = ClientSettings { acknowledges_repeats: true, ..ClientSettings::default() };
    let mut client = Client::new(settings, HANDLE);
    client.ask(millis(0), ask()).unwrap();
    client.poll_datagram();
    for second in 1..=3 {
        client.handle_datagram(millis(second * 1000), mapper(), &said(ACCEPT).octets());
    }
    assert_eq!(sent(&mut client), [said(ACK); 3]);
    assert!(client.poll_event().is_some());
    assert_eq!(client.poll_event(), None);
    // A PMDeny is not; nor is anything after a minute.
    client.handle_datagram(millis(4000), mapper(), &said(DENY).octets());
    client.handle_datagram(millis(62_001), mapper(), &said(ACCEPT).octets());
    assert_eq!(sent(&mut client), []);
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let mut client = client();
    let refused = |client: &mut Client, change: &dyn Fn(&mut weft_peer::portmap::Ask)| {
        let mut ask = ask();
        change(&mut ask);
        client.ask(millis(0), ask).unwrap_err()
    };
    assert_eq!(refused(&mut client, &|ask| ask.service.set_port(0)), AskError::NoPort);
    assert_eq!(refused(&mut client, &|ask| ask.connecting.set_port(0)), AskError::NoPort);
    assert_eq!(refused(&mut client, &|ask| ask.connecting = at("[::1]:1")), AskError::Families);
    client.ask(millis(0), ask()).unwrap();
    assert_eq!(refused(&mut client, &|_| {}), AskError::InFlight);
    let settings = ClientSettings { most_open: 1, ..ClientSettings::default() };
    let mut client = Client::new(settings, 1);
    let transaction = client.ask(millis(0), ask()).unwrap();
    assert_eq!(refused(&mut client, &|ask| ask.connecting.set_port(2)), AskError::Busy);
    client.cancel(transaction);
    assert_eq!((client.open(), client.deadline()), (0, None));
}

/// ApPort has to be a port that somebody listens at, and ApIPAddr an address of one host; another PMAccept is as if it had not come.
#[test]
fn an_accept_that_leads_nowhere_is_discarded() {
    let (mut client, _) = asked();
    let place = |ap: &str| Said { ap: at(ap).ip(), ..said(ACCEPT) };
    for wrong in [Said { ap_port: 0, ..said(ACCEPT) }, place("0.0.0.0:0"), place("224.0.0.1:0")] {
        client.handle_datagram(millis(1), mapper(), &wrong.octets());
        assert_eq!((sent(&mut client), resolution(&mut client)), (vec![], None));
        assert!(matches!(client.poll_discarded(), Some((_, Discarded::Nowhere(_)))));
    }
    client.handle_datagram(millis(2), mapper(), &said(ACCEPT).octets());
    assert_eq!(resolution(&mut client).map(|it| it.address()), Some(at("10.0.0.1:7001")));
}
