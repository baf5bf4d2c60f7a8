//! Tests with synthetic connections whether Lustre is recognised.

use super::{Connection, is_private_data};
use crate::testing::{Wire, hex, reply_frame, startup_frame};
use crate::upper::Ulp;
use crate::upper::tests::{TestConnection, check_headers};

/// The NIDs of the two endpoints.
const NIDS: [&str; 2] = ["0200000a00000500", "0100000a00000500"];

/// A little-endian message of `direction`, with `body` after the header. `kind` is its type.
fn message(direction: usize, kind: &str, body: &str) -> String {
    let len = 48 + hex(body).len();
    let (source, destination) = (NIDS[direction], NIDS[1 - direction]);
    format!(
        "911be90b 1200 {kind} 01 {len:02x}000000 00000000 {source} 1111111111111111 {destination} 2222222222222222 {body}"
    )
}

fn ulp(sends: &[(usize, String)]) -> Option<Ulp> {
    let mut talk = TestConnection::new();
    sends.iter().for_each(|(direction, octets)| talk.send_one(*direction, octets));
    talk.read().1
}

#[test]
fn messages_of_both_peers_prove_the_protocol() {
    let mut talk = TestConnection::new();
    talk.send_one(0, &message(0, "d1", "01020304"));
    talk.send_one(1, &message(1, "d0", ""));
    talk.send_one(0, &message(0, "d7", "010203040506070800000000"));
    assert_eq!(talk.read(), (vec!["NOOP".to_owned(), "GET_DONE".to_owned()], Some(Ulp::Lustre)));
    // A Send without the header.
    talk.send_one(1, &"00".repeat(48));
    assert_eq!(talk.read().1, None);
}

#[test]
fn private_data_of_both_peers_proves_the_protocol() {
    let private = [message(0, "c0", "0800000000001000"), message(1, "c1", "0800000000001000")].map(|text| hex(&text));
    let opened = |request: &[u8], reply: &[u8]| {
        TestConnection::over(Wire::started_as(&startup_frame(0x40, 1, request), &reply_frame(0x40, 1, reply)))
    };
    let mut talk = opened(&private[0], &private[1]);
    talk.send_one(0, &message(0, "d0", ""));
    assert_eq!(talk.read(), (vec!["NOOP".to_owned()], Some(Ulp::Lustre)));
    // The request has the type of an acknowledgement, or the private data is not complete.
    for (request, reply) in [(&private[1][..], &private[1][..]), (&private[0][..], &private[1][..52])] {
        let mut talk = opened(request, reply);
        talk.send_one(0, "01");
        assert_eq!(talk.read().1, None);
    }
    assert!(private.iter().all(|private| is_private_data(private) && !is_private_data(&private[..52])));
}

#[test]
fn similar_messages_prove_nothing() {
    let (request, answer) = (message(0, "d1", "01020304"), message(1, "d0", ""));
    assert_eq!(ulp(&[(0, request.clone()), (1, answer.clone())]), Some(Ulp::Lustre));
    assert_eq!(ulp(&[(0, request.clone()), (0, request.clone())]), None);
    let wrong = [
        answer.replacen("911be90b", "911be90c", 1),
        answer.replacen("1200", "1300", 1),
        answer.replacen("d0", "d8", 1),
        answer.replacen("30000000", "2f000000", 1),
        answer.replacen("30000000", "31000000", 1),
        // The NID of another endpoint.
        answer.replacen(NIDS[0], "0300000a00000500", 1),
    ];
    for wrong in wrong {
        assert_ne!(wrong, answer);
        assert_eq!(ulp(&[(0, request.clone()), (1, wrong.clone())]), None, "{wrong}");
    }
}

#[test]
fn the_copy_of_scrub_keeps_no_nids() {
    let octets = hex(&message(0, "d1", "01020304"));
    let kept = check_headers::<Connection>(&octets, true);
    assert_eq!(kept, [&octets[..12], &[b'V'; 40]].concat());
    check_headers::<Connection>(&octets[..20], false);
    check_headers::<Connection>(&[0; 48], true);
}
