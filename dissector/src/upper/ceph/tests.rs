//! Tests with synthetic Sends whether the messenger of Ceph is recognised.

use super::Connection;
use crate::testing::hex;
use crate::upper::Ulp;
use crate::upper::tests::{TestConnection, check_headers};

/// The banner of version 2: `ceph v2`, a line feed, the length 16, and the supported and the
/// required features.
const BANNER: &str = "63657068207632 0a 1000 0300000000000000 0000000000000000";
/// `ceph v027`, and the first bytes of an address.
const OLD_BANNER: &str = "636570682076303237 00000000 00000000";
const DATA: &str = "0101 20000000";

/// The recognised protocol after these Sends: the direction and the bytes.
fn ulp(sends: &[(usize, &str)]) -> Option<Ulp> {
    let mut talk = TestConnection::new();
    sends.iter().for_each(|(direction, octets)| talk.send_one(*direction, octets));
    talk.read().1
}

#[test]
fn banners_of_both_peers_prove_the_protocol() {
    let mut talk = TestConnection::new();
    for (direction, octets) in [(0, BANNER), (1, BANNER), (0, DATA)] {
        talk.send_one(direction, octets);
    }
    assert_eq!(talk.read(), (vec!["banner".to_owned(), "data".to_owned()], Some(Ulp::Ceph)));
    assert_eq!(ulp(&[(1, OLD_BANNER), (0, OLD_BANNER)]), Some(Ulp::Ceph));
}

#[test]
fn similar_sends_prove_nothing() {
    assert_eq!(ulp(&[(0, BANNER), (0, BANNER)]), None);
    assert_eq!(ulp(&[(0, BANNER), (1, OLD_BANNER)]), None);
    assert_eq!(ulp(&[(0, BANNER), (1, &BANNER.replace("1000", "1100"))]), None);
    assert_eq!(ulp(&[(0, BANNER), (1, "63657068207632 0a 1000 03")]), None);
    assert_eq!(ulp(&[(0, BANNER), (1, DATA), (1, BANNER)]), None);
}

#[test]
fn the_copy_of_scrub_keeps_banners() {
    let kept = check_headers::<Connection>(&hex(BANNER), true);
    assert_eq!(kept, [&b"ceph v2\n\x10\x00"[..], &[b'V'; 16]].concat());
    assert_eq!(check_headers::<Connection>(&hex(DATA), true), [b'V'; 6]);
    check_headers::<Connection>(&hex("6365"), false);
}
