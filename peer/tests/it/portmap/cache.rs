//! Tests the answers that a PM Client caches (draft-pinkerton-iwarp-sdp-01 section 7.3.1.4).

use weft_core::requirement;
use weft_peer::portmap::{Client, Resolution};

use crate::portmap::octets::{
    ACCEPT, Fields, ask, at, fields, mapper, millis, proves, requesting_client, resolution, sent,
};

/// A client whose request was answered at 1 s with this PmTime.
fn answered(time: u8) -> Client {
    let (mut client, _) = requesting_client();
    client.handle_datagram(millis(1000), mapper(), &Fields { time, ..fields(ACCEPT) }.octets());
    assert!(resolution(&mut client).is_some());
    sent(&mut client);
    client
}

/// Returns whether the client sends a request at that time.
fn asks(client: &mut Client, at_millis: u64) -> bool {
    let transaction = client.query(millis(at_millis), ask()).unwrap();
    let asks = !sent(client).is_empty();
    let kept = resolution(client);
    assert_eq!(kept.is_none(), asks);
    if let Some(kept) = kept {
        assert_eq!(kept.address(), at("10.0.0.1:7001"));
        assert!(matches!(kept, Resolution::Sdp { cached: true, .. }));
    }
    client.cancel(transaction);
    asks
}

/// Returns whether the client sends a request at two times: `millis` - 1 ms after the answer, and
/// `millis` ms after the answer.
fn edge(time: u8, millis: u64) -> [bool; 2] {
    [asks(&mut answered(time), 1000 + millis - 1), asks(&mut answered(time), 1000 + millis)]
}

#[test]
fn an_answer_is_kept_for_its_pm_time() {
    proves([
        (requirement!("PM-7.3.1.4-1"), &|| assert_eq!(edge(40, 10_000), [false, true])),
        (requirement!("PM-7.3.1.4-2"), &|| {
            let mut client = answered(40);
            assert_eq!(client.deadline(), Some(millis(11_000)));
            client.handle_timeout(millis(11_000));
            assert_eq!(client.deadline(), None);
        }),
        (requirement!("PM-7.3.1.4-3"), &|| assert!(asks(&mut answered(1), 1250))),
        (requirement!("PM-7.3.1.4-4"), &|| assert!(asks(&mut answered(0), 1000))),
        (requirement!("PM-7.3.1.4-7"), &|| {
            assert_eq!((edge(1, 250), edge(127, 31_750)), ([false, true], [false, true]));
        }),
        (requirement!("PM-7.3.1.4-8"), &|| {
            assert_eq!((edge(128, 128_000), edge(254, 254_000)), ([false, true], [false, true]));
        }),
        (requirement!("PM-7.3.1.4-9"), &|| assert!(!asks(&mut answered(255), u64::from(u32::MAX)))),
    ]);
}

#[test]
fn it_serves_the_same_question_alone() {
    let mut client = answered(255);
    let changes: [&dyn Fn(&mut weft_peer::portmap::Query); 3] =
        [&|ask| ask.service.set_port(5002), &|ask| ask.mapper = at("10.0.0.9:3935"), &|ask| {
            ask.connecting = at("10.0.0.4:40001");
        }];
    for change in changes {
        let mut other = ask();
        change(&mut other);
        client.query(millis(2000), other).unwrap();
        assert_eq!(sent(&mut client).len(), 1);
    }
    // The client can also use the cached answer for another port of its host.
    let mut other = ask();
    other.connecting.set_port(40002);
    client.query(millis(2000), other).unwrap();
    assert_eq!(sent(&mut client), []);
}
