//! Tests the octets after the key in Request and Reply frames.

use weft_core::wire::mpa::{Enhanced, Startup, StartupKind};

use super::hex;

const PLAIN: Startup<'static> = Startup {
    kind: StartupKind::Request,
    markers: false,
    crc: true,
    reject: false,
    revision: 1,
    enhanced: None,
    private_data: &[],
};

const ENHANCED: Enhanced =
    Enhanced { peer_to_peer: true, rtr_send: false, ird: 1, rtr_write: true, rtr_read: true, ord: 1 };

fn both_ways(frame: &Startup<'_>, tail: &str) {
    let mut octets = Vec::new();
    frame.emit(&mut octets);
    assert_eq!(octets[16..], hex(tail));
    assert_eq!(Startup::parse(&octets), Ok(*frame));
}

#[test]
fn revision_1() {
    both_ways(&PLAIN, "40010000");
}

#[test]
fn rdma_consortium() {
    both_ways(&Startup { markers: true, revision: 0, ..PLAIN }, "c0000000");
}

#[test]
fn revision_2_request_offers_write_and_read() {
    both_ways(&Startup { revision: 2, enhanced: Some(ENHANCED), ..PLAIN }, "50020004 8001c001");
}

#[test]
fn revision_2_reply_chooses_read() {
    let enhanced = Some(Enhanced { rtr_write: false, ..ENHANCED });
    both_ways(&Startup { kind: StartupKind::Reply, revision: 2, enhanced, ..PLAIN }, "50020004 80014001");
}
