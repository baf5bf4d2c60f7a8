//! Tests with synthetic connections whether rsockets is recognised. The source of the bytes is
//! librdmacm's `rsocket.c`.

use super::{Connection, PrivateData};
use crate::testing::{Wire, hex, reply_frame, startup_frame};
use crate::upper::Ulp;
use crate::upper::tests::{TestConnection, check_headers};

/// The private data of a little-endian host with 384 receives.
const PRIVATE: &str = "01 02 0180 000000 00 00007f0000001000 00000100 00000002 00007f0000010000 00000200 00010000";

fn opened(request: &[u8], reply: &[u8]) -> TestConnection {
    TestConnection::over(Wire::started_as(&startup_frame(0x40, 1, request), &reply_frame(0x40, 1, reply)))
}

#[test]
fn private_data_of_both_peers_proves_the_protocol() {
    let private = hex(PRIVATE);
    let mut talk = opened(&private, &private);
    talk.0.send_ulpdu(0, "c140 00000200 00007f0000010000 68656c6c6f");
    talk.send_one(0, "05000000");
    talk.send_one(1, "81010080");
    talk.send_one(0, "020000e0");
    talk.send_one(1, "000000e0");
    let expected = ["data", "SGL", "shutdown", "disconnect"].map(str::to_owned);
    assert_eq!(talk.read(), (expected.to_vec(), Some(Ulp::Rsockets)));
    let (units, lines, _) = talk.units();
    assert_eq!(units.last().unwrap()["weft.ulp"], "rsockets");
    assert!(lines.iter().any(|line| line.contains("rsockets data bytes 5")), "{lines:?}");
    assert!(lines[0].contains("rsockets credits 384 little-endian data 0x7f0000010000"), "{lines:?}");
}

/// The flag NET of the client: its messages are big-endian.
#[test]
fn each_direction_has_its_byte_order() {
    let mut client = hex(PRIVATE);
    client[1] = 3;
    let mut talk = opened(&client, &hex(PRIVATE));
    talk.send_one(0, "e0000001");
    talk.send_one(1, "010000e0");
    assert_eq!(talk.read(), (vec!["keepalive".to_owned(); 2], Some(Ulp::Rsockets)));
}

#[test]
fn similar_private_data_proves_nothing() {
    let right = hex(PRIVATE);
    assert_eq!(opened(&right, &right).read().1, Some(Ulp::Rsockets));
    // The version, a flag, a reserved byte, the number of buffers, the credits, the length of data.
    for (at, value) in [(0, 2), (1, 0), (1, 6), (5, 1), (23, 3), (37, 0)] {
        let mut wrong = right.clone();
        wrong[at] = value;
        assert_eq!(PrivateData::parse(&wrong), None, "{at}");
        assert_eq!(opened(&right, &wrong).read().1, None, "{at}");
        assert_eq!(opened(&wrong, &right).read().1, None, "{at}");
    }
    assert_eq!(opened(&right, &right[..39]).read().1, None);
    assert_eq!(opened(&right, &[&right[..], &[0]].concat()).read().1, None);
    // Messages without private data.
    let mut talk = TestConnection::new();
    talk.send_one(0, "05000000");
    talk.send_one(1, "81010080");
    assert_eq!(talk.read().1, None);
}

#[test]
fn other_messages_disprove_the_protocol() {
    let private = hex(PRIVATE);
    // The kinds 1 and 5, an unknown control message, and another length.
    for wrong in ["00000020", "000000a0", "030000e0", "0500000000"] {
        let mut talk = opened(&private, &private);
        talk.send_one(0, wrong);
        assert_eq!(talk.read().1, None, "{wrong}");
    }
}

#[test]
fn the_copy_of_scrub_keeps_messages() {
    for (text, kept) in [("05000000", "05000000"), ("000000e0", "000000e0"), ("01010101 01", "5656565656")] {
        assert_eq!(check_headers::<Connection>(&hex(text), true), hex(kept));
    }
    check_headers::<Connection>(&hex("0500"), false);
    check_headers::<Connection>(&hex("4020 4020"), true);
}
