//! These tests check ChRcvBuf and ChRcvBufAck, which change the size of Private Buffers
//! (draft-pinkerton-iwarp-sdp-01 section 10.6).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::sdp::{Event, Policy};

use crate::sdp::bench::Bench;
use crate::sdp::shows;
use crate::sdp::wire::word;
use crate::sdp::zcopy::{DATA, POLICY, bench, pipelined};

const CH_RCV_BUF: u8 = 0x0b;
const CH_RCV_BUF_ACK: u8 = 0x0c;

fn mids(bench: &mut Bench) -> Vec<u8> {
    bench.messages().iter().map(|message| message.mid).collect()
}

#[test]
fn a_smaller_size_is_acknowledged_at_once_and_a_larger_one_when_the_old_ones_are_used_up() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(POLICY);
    bench.deliver(CH_RCV_BUF, &word(50));
    let messages = bench.messages();
    shows!(proof:
        "SDP-10.6-12" => messages.iter().map(|message| (message.mid, message.word(0))).eq([(CH_RCV_BUF_ACK, 50)]);
        "SDP-14.2-18" => !messages[0].solicited;
    );
    // Sixteen buffers of the old size are posted. Each message uses one of them.
    bench.deliver(CH_RCV_BUF, &word(500));
    let mut before = Vec::new();
    for _ in 0..15 {
        bench.deliver(0xff, &[]);
        before.extend(mids(&mut bench));
    }
    shows!(proof:
        "SDP-10.6-13" => !before.contains(&CH_RCV_BUF_ACK);
    );
    bench.deliver(0xff, &[]);
    let messages = bench.messages();
    shows!(proof:
        "SDP-10.6-11" => messages.iter().any(|message| message.mid == CH_RCV_BUF_ACK && message.word(0) == 500);
    );
    assert_eq!(bench.host.machine.recv_size(), 500);
}

#[test]
fn the_new_size_limits_advertisements_after_the_answer() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.deliver(CH_RCV_BUF, &word(40));
    assert_eq!(mids(&mut bench), [CH_RCV_BUF_ACK]);
    bench.receive(1, 40);
    assert!(mids(&mut bench).is_empty());
    bench.host.machine.cancel_receives();
    bench.receive(2, 41);
    shows!(proof:
        "SDP-10.6-16" => mids(&mut bench) == [0xfd];
    );
}

#[test]
fn the_requester_sends_smaller_messages_at_once_and_larger_ones_later() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(POLICY);
    bench.host.machine.resize(66);
    assert_eq!(mids(&mut bench), [CH_RCV_BUF]);
    bench.send(1, 80);
    shows!(proof:
        "SDP-10.6-1" => bench.messages().iter().map(|message| message.rest.len()).eq([50, 30]);
    );
    bench.deliver(CH_RCV_BUF_ACK, &word(66));
    assert_eq!(bench.events().last(), Some(&Event::Resized(66)));
    bench.host.machine.resize(116);
    assert_eq!(mids(&mut bench), [CH_RCV_BUF]);
    bench.send(2, 60);
    let sizes: Vec<usize> = bench.messages().iter().map(|message| message.rest.len()).collect();
    bench.deliver(CH_RCV_BUF_ACK, &word(116));
    bench.send(3, 60);
    shows!(proof:
        "SDP-10-6" => sizes == [50, 10] && bench.messages().iter().map(|message| message.rest.len()).eq([60]);
    );
    // This ChRcvBufAck answers no request.
    bench.deliver(CH_RCV_BUF_ACK, &word(116));
    assert!(bench.is_aborted());
}

/// A message that is larger than an advertised buffer would overflow this buffer. So the machine
/// acknowledges a larger size only if all outstanding SinkAvails are larger than this size.
#[test]
fn a_larger_size_waits_for_the_sink_avails_that_it_would_not_fit_into() {
    let answers = |advertised: u64| {
        let mut bench = pipelined(POLICY);
        bench.receive(1, advertised);
        assert_eq!(mids(&mut bench), [0xfd]);
        bench.deliver(CH_RCV_BUF, &word(500));
        let mut answers = Vec::new();
        for _ in 0..16 {
            bench.deliver(0xff, &[]);
            answers.extend(
                bench.messages().iter().filter(|message| message.mid == CH_RCV_BUF_ACK).map(|message| message.word(0)),
            );
        }
        let before = answers.len();
        bench.receive(2, 400);
        bench.deliver(0x05, &word(10));
        answers.extend(
            bench.messages().iter().filter(|message| message.mid == CH_RCV_BUF_ACK).map(|message| message.word(0)),
        );
        assert_eq!(answers, [500]);
        before
    };
    assert_eq!(answers(500), 0);
    assert_eq!(answers(501), 1);
}

/// Without `data_first`, a ChRcvBuf precedes the data that waits. A ChRcvBufAck always precedes it.
#[test]
fn data_first_sends_the_waiting_data_before_a_ch_rcv_buf() {
    let order = |data_first| {
        let mut bench = bench(Policy { data_first, ..POLICY });
        bench.host.machine.resize(66);
        bench.send(1, 5);
        mids(&mut bench)
    };
    assert_eq!(order(false), [CH_RCV_BUF, DATA]);
    assert_eq!(order(true), [DATA, CH_RCV_BUF]);
    let mut answering = bench(Policy { data_first: true, ..POLICY });
    answering.send(1, 5);
    answering.deliver(CH_RCV_BUF, &word(50));
    assert_eq!(mids(&mut answering), [CH_RCV_BUF_ACK, DATA]);
}
