//! Tests Out-Of-Band data that a user sends (draft-pinkerton-iwarp-sdp-01 section 9.5.3).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::sdp::Policy;

use crate::sdp::bench::Bench;
use crate::sdp::shows;

const BCOPY: Policy = Policy { source_threshold: u64::MAX, ..crate::sdp::POLICY };

#[test]
fn one_urgent_octet() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new(BCOPY, 16, 50);
    bench.send_so(1, 1, true);
    let messages = bench.messages();
    // The Out-Of-Band octet follows 3,400 octets. The window allows 14 messages of 34 octets.
    let mut queued = Bench::new(BCOPY, 16, 50);
    queued.send(1, 3400);
    queued.send_so(2, 1, true);
    let first = queued.messages();
    shows!(proof:
        "SDP-5-5" => messages.len() == 1 && messages[0].flags == 3 && messages[0].rest == [1];
        "SDP-6.1.2-7" => messages[0].mid == 0xff && messages[0].flags & 1 == 1;
        "SDP-9.5.3-2" => messages.iter().filter(|message| message.flags & 2 != 0).count() == 1;
        "SDP-9.5.3-3" => first[0].flags == 2 && first.len() == 14 && first[1..].iter().all(|message| message.flags == 0);
    );
}
