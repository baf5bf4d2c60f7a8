//! Out-Of-Band data as a user sends it (section 9.5.3).

use weft_core::coverage::{By, Proof};
use weft_peer::sdp::Policy;

use crate::sdp::bench::Bench;
use crate::sdp::shows;

const BCOPY: Policy = Policy { source_threshold: u64::MAX, ..crate::sdp::POLICY };

#[test]
fn one_urgent_octet() {
    let mut proof = Proof::new(By::Test);
    let mut bench = Bench::new(BCOPY, 16, 50);
    bench.send_so(1, 1, true);
    let said = bench.said();
    // Behind 3,400 octets, in a window of 14 messages of 34.
    let mut behind = Bench::new(BCOPY, 16, 50);
    behind.send(1, 3400);
    behind.send_so(2, 1, true);
    let first = behind.said();
    shows!(proof:
        "SDP-5-5" => said.len() == 1 && said[0].flags == 3 && said[0].rest == [1];
        "SDP-6.1.2-7" => said[0].mid == 0xff && said[0].flags & 1 == 1;
        "SDP-9.5.3-2" => said.iter().filter(|said| said.flags & 2 != 0).count() == 1;
        "SDP-9.5.3-3" => first[0].flags == 2 && first.len() == 14 && first[1..].iter().all(|said| said.flags == 0);
    );
}
