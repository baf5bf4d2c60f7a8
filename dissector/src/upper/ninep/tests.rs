//! Tests with synthetic Sends whether 9P is recognised.

use super::Connection;
use crate::testing::hex;
use crate::upper::Ulp;
use crate::upper::tests::{TestConnection, check_headers};

/// `Tversion` and `Rversion` of `9P2000.L`, with messages of at most 8192 bytes.
const TVERSION: &str = "15000000 64 ffff 00200000 0800 395032303030 2e4c";
const RVERSION: &str = "15000000 65 ffff 00200000 0800 395032303030 2e4c";
/// A `Tclunk` and its `Rclunk`.
const TCLUNK: &str = "0b000000 78 0100 05000000";
const RCLUNK: &str = "07000000 79 0100";

/// The recognised protocol after these Sends: the direction and the bytes.
fn ulp(sends: &[(usize, &str)]) -> Option<Ulp> {
    let mut talk = TestConnection::new();
    sends.iter().for_each(|(direction, octets)| talk.send_one(*direction, octets));
    talk.read().1
}

#[test]
fn versions_of_both_peers_prove_the_protocol() {
    let mut talk = TestConnection::new();
    for (direction, octets) in [(0, TVERSION), (1, RVERSION), (0, TCLUNK), (1, RCLUNK)] {
        talk.send_one(direction, octets);
    }
    let expected = ["Rversion", "request", "response"].map(str::to_owned);
    assert_eq!(talk.read(), (expected.to_vec(), Some(Ulp::NineP)));
}

#[test]
fn similar_sends_prove_nothing() {
    assert_eq!(ulp(&[(0, TCLUNK), (1, RCLUNK)]), None);
    assert_eq!(ulp(&[(0, TVERSION), (0, RVERSION)]), None);
    assert_eq!(ulp(&[(0, RVERSION), (1, TVERSION)]), None);
    assert_eq!(ulp(&[(0, TVERSION), (1, &RVERSION.replace("ffff", "fffe"))]), None);
    assert_eq!(ulp(&[(0, TVERSION), (1, &RVERSION.replace("395032", "395033"))]), None);
    assert_eq!(ulp(&[(0, TVERSION), (1, &RVERSION.replace("15000000", "16000000"))]), None);
}

#[test]
fn other_sends_disprove_the_protocol() {
    // Another type, a length above the length of the Send, and a response of the client.
    for wrong in ["07000000 80 0100", "08000000 78 0100", RCLUNK] {
        assert_eq!(ulp(&[(0, TVERSION), (1, RVERSION), (0, wrong)]), None, "{wrong}");
    }
}

#[test]
fn the_copy_of_scrub_keeps_headers_and_the_version() {
    let kept = check_headers::<Connection>(&hex(TVERSION), true);
    assert_eq!(kept, [&hex(TVERSION)[..7], b"VVVVVV9P2000VV"].concat());
    assert_eq!(check_headers::<Connection>(&hex(TCLUNK), true), [&hex(TCLUNK)[..7], b"VVVV"].concat());
    for (octets, is_complete) in [("15000000 64 ffff 0020", false), ("15", false), ("00000000 00 0000 01", true)] {
        check_headers::<Connection>(&hex(octets), is_complete);
    }
}
