//! A peer that breaks the rules: the machine stays within its bounds, and ends the connection where going on would harm the user.

use crate::host::Item;
use crate::wire::{src_ah, word};
use crate::zcopy::{DATA, POLICY, SEND_SM, SRC_AVAIL, SRC_AVAIL_CANCEL, bench};

const CH_RCV_BUF: u8 = 0x0b;

/// While a SrcAvailCancel waits for a read that is never answered, each message has its buffer made up for; not without end.
#[test]
fn a_read_that_is_never_answered_makes_few_private_buffers() {
    let mut bench = bench(POLICY);
    bench.receive(1, 100);
    bench.hear(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    assert!(bench.all().iter().any(|item| matches!(item, Item::ReadRequest { .. })));
    bench.hear(SRC_AVAIL_CANCEL, &[]);
    for _ in 0..200 {
        bench.hear(DATA, &[]);
    }
    assert!(!bench.is_aborted());
    assert_eq!(bench.host.posted(), 64, "four times as many as there are otherwise");
}

/// Section 10.6: no second ChRcvBuf before the ChRcvBufAck, which waits for the old buffers here.
#[test]
fn a_change_of_size_in_front_of_the_last_ones_answer_ends_the_connection() {
    let mut bench = bench(POLICY);
    bench.hear(CH_RCV_BUF, &word(500));
    assert!(!bench.is_aborted());
    bench.hear(CH_RCV_BUF, &word(37));
    assert!(bench.is_aborted());
}

/// A SendSm waits for credit, and the peer revokes its SrcAvail over and over.
#[test]
fn many_revocations_are_one() {
    let mut bench = bench(POLICY);
    bench.send(1, 150);
    assert_eq!(bench.mids(), [SRC_AVAIL]);
    bench.bufs = 0;
    bench.hear(SRC_AVAIL, &[src_ah(50, 7, 0), vec![1]].concat());
    bench.wait();
    for _ in 0..20_000 {
        bench.hear(SRC_AVAIL_CANCEL, &[]);
    }
    bench.bufs = 16;
    bench.hear(DATA, &[]);
    assert_eq!(bench.mids().first(), Some(&SEND_SM));
}
