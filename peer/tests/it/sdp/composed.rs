//! Tests the messages that a tester composes. They can violate draft-pinkerton-iwarp-sdp-01.

use weft_core::wire::sdp::FieldOrder;

use crate::sdp::bench::Bench;
use crate::sdp::wire::message;
use crate::sdp::zcopy::{DATA, POLICY, SEND_SM, bench};

/// A SendSm without payload, in the layout of Figure 2.
fn send_sm(_: FieldOrder, (bufs, mseq, mseq_ack): (u16, u32, u32)) -> Vec<u8> {
    message(bufs, 0, SEND_SM, mseq, mseq_ack, &[])
}

/// Section 6.1.5: each message has the next MSeq.
#[test]
fn composed_messages_are_counted_like_other_messages() {
    let mut bench = bench(POLICY);
    assert!(bench.host.machine.send_composed(true, send_sm));
    bench.send(1, 5);
    let messages = bench.messages();
    let numbers: Vec<(u8, u32, bool)> = messages.iter().map(|it| (it.mid, it.mseq, it.solicited)).collect();
    assert_eq!(numbers, [(SEND_SM, 1, true), (DATA, 2, false)]);
}

/// Section 10.2: the peer has three Private Buffers, so this side can send three messages.
#[test]
fn rejects_a_composed_message_without_credit() {
    let mut bench = Bench::new(POLICY, 3, 200);
    let sent = [(); 4].map(|()| bench.host.machine.send_composed(false, send_sm));
    assert_eq!(sent, [true, true, true, false]);
    assert_eq!(bench.mids(), [SEND_SM; 3]);
}

#[test]
fn rejects_a_composed_message_on_an_ended_connection() {
    let mut bench = bench(POLICY);
    let now = bench.now;
    bench.host.machine.abort(now);
    assert!(!bench.host.machine.send_composed(false, send_sm));
}
