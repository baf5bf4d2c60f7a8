//! Tests Bcopy, credits and Out-Of-Band data (draft-pinkerton-iwarp-sdp-01, sections 9.1, 9.5.3 and
//! 10). With Bcopy, messages carry the data, and the receiver copies it out of Private Buffers.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::sdp::{Event, Policy, ReceiveId, ReceiveOutcome, SendId, SendOutcome};

use crate::sdp::bench::Bench;
use crate::sdp::shows;

const BCOPY: Policy = Policy { source_threshold: u64::MAX, ..POLICY };
const POLICY: Policy = crate::sdp::POLICY;

#[test]
fn splits_data_to_the_peers_private_buffers_and_numbers_it() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new(BCOPY, 16, 50);
    bench.send(1, 100);
    let messages = bench.messages();
    shows!(proof:
        "SDP-9.1-1" => messages.iter().map(|message| message.rest.len()).eq([34, 34, 32]);
        "SDP-9.1-2" => messages.iter().all(|message| message.mid == 0xff);
        "SDP-6.1.5-2" => messages.iter().map(|message| message.mseq).eq([1, 2, 3]);
        "SDP-6.1.6-2" => messages.iter().all(|message| message.mseq_ack == 0);
        "SDP-14.2-15" => messages.iter().all(|message| !message.solicited && message.invalidate.is_none());
        // The machine posted 16 Private Buffers. HelloAck used one of them, and the machine posted
        // it again.
        "SDP-6.1.3-1" => messages.iter().all(|message| message.bufs == 16);
        "SDP-6-3" => messages.concat_rest() == (1..=100).collect::<Vec<u8>>();
    );
    assert_eq!(bench.events(), [Event::Sent { send: SendId(1), octets: 100, end: SendOutcome::Complete }]);
}

trait Concat {
    fn concat_rest(&self) -> Vec<u8>;
}

impl Concat for Vec<crate::sdp::bench::SentMessage> {
    fn concat_rest(&self) -> Vec<u8> {
        self.iter().flat_map(|message| message.rest.clone()).collect()
    }
}

#[test]
fn two_credits_are_kept() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new(BCOPY, 5, 50);
    bench.send(1, 340);
    shows!(proof:
        // With five credits, the machine sends three messages with payload.
        "SDP-10.5-1" => bench.mids() == [0xff, 0xff, 0xff];
        "SDP-10.5-4" => bench.host.machine.credit() == 2;
    );
    bench.deliver(0xff, &[]);
    let more = bench.messages();
    shows!(proof:
        "SDP-6.3.1-4" => more.len() == 3 && more.iter().all(|message| message.rest.len() == 34);
        "SDP-6.1.6-1" => more.iter().all(|message| message.mseq_ack == 1);
    );
}

#[test]
fn updates_the_credit_before_the_peer_has_none() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new(BCOPY, 16, 50);
    let mut messages = Vec::new();
    for id in 0..15 {
        bench.receive(id, 100);
        bench.deliver(0xff, &[7]);
        messages.extend(bench.messages());
    }
    shows!(proof:
        "SDP-10.4-1" => messages.iter().all(|message| message.mid == 0xff && message.rest.is_empty()) && !messages.is_empty();
        "SDP-10.5-10" => messages[0].mseq_ack <= 15 && messages[0].bufs == 16;
    );
    // The user reads nothing, so the payload of each message stays in its Private Buffer.
    let mut bench = Bench::new(BCOPY, 16, 50);
    for _ in 0..13 {
        bench.deliver(0xff, &[7]);
    }
    let messages = bench.messages();
    shows!(proof:
        "SDP-10-1" => messages.iter().all(|message| u32::from(message.bufs) == 16 - message.mseq_ack);
    );
    assert_eq!(bench.host.copied, 0);
    bench.receive(99, 100);
    assert_eq!(bench.host.copied, 13);
    assert_eq!(bench.messages().last().unwrap().bufs, 16);
}

#[test]
fn receives_are_filled_in_their_order() {
    let mut bench = Bench::new(BCOPY, 16, 50);
    bench.deliver(0xff, &[1, 2, 3]);
    bench.receive(1, 2);
    bench.receive_so(2, 3, true);
    bench.receive(3, 9);
    bench.deliver(0xff, &[4]);
    let received = |receive, octets| Event::Received {
        receive: ReceiveId(receive),
        octets,
        urgent: false,
        end: ReceiveOutcome::More,
    };
    assert_eq!(bench.events(), [received(1, 2)]);
    bench.deliver(0xff, &[5, 6]);
    assert_eq!(bench.events(), [received(2, 3), received(3, 1)]);
    assert_eq!(bench.host.receives[&ReceiveId(2)], [3, 4, 5]);
}

#[test]
fn an_urgent_octet_is_announced_and_comes_last_in_its_data() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new(BCOPY, 16, 50);
    bench.send_so(1, 40, true);
    bench.send(2, 5);
    let messages = bench.messages();
    shows!(proof:
        "SDP-9.5.3-4" => messages.iter().filter(|message| message.flags & 2 != 0).count() == 1;
        "SDP-9.5.3-5" => messages[0].flags == 2;
        "SDP-9.5.3-8" => messages[1].flags == 1 && messages[1].rest == [35, 36, 37, 38, 39, 40];
        "SDP-14.2-11" => messages[0].solicited && messages[1].solicited && !messages[2].solicited;
        "SDP-9.5.3-1" => messages.concat_rest()[..40] == (1..=40).collect::<Vec<u8>>()[..] && messages[2].flags == 0;
    );
    bench.events();
    bench.receive(1, 50);
    bench.receive(2, 50);
    bench.deliver_with(2, 0xff, 3, &[], None);
    bench.deliver_with(1, 0xff, 3, &[1, 2, 3], None);
    let urgent = Event::Received { receive: ReceiveId(1), octets: 3, urgent: true, end: ReceiveOutcome::More };
    shows!(proof:
        "SDP-9.5.3-9" => bench.events() == [Event::UrgentPending, urgent];
    );
}

/// If there is no credit for payload, the message that announces the urgent octet uses a reserved
/// credit.
#[test]
fn the_announcement_does_not_wait_for_the_octet() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new(BCOPY, 3, 50);
    bench.send(1, 34);
    assert_eq!(bench.messages().len(), 1);
    bench.send_so(2, 10, true);
    let messages = bench.messages();
    shows!(proof:
        "SDP-9.5.3-7" => messages.len() == 1 && messages[0].flags == 2 && messages[0].rest.is_empty();
    );
}

#[test]
fn broken_numbers_and_messages_end_the_connection() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let aborts = |wrong: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::new(BCOPY, 16, 50);
        wrong(&mut bench);
        bench.is_aborted()
    };
    shows!(proof:
        "SDP-8.2.2-10" => aborts(&|bench| bench.deliver(0x0f, &[]));
        "SDP-8.2.2-8" => aborts(&|bench| bench.deliver(0x06, &[0, 0, 0, 1]));
        "SDP-8.2.2-11" => aborts(&|bench| bench.deliver(0x04, &[0]));
    );
    assert!(aborts(&|bench| bench.deliver(0x05, &[0, 0, 0, 1])), "RdmaWrCompl without SinkAvail");
    assert!(aborts(&|bench| bench.deliver_with(0, 0xff, 1, &[], None)), "MSeqAck of a message that was not sent");
    assert!(aborts(&|bench| bench.deliver(0x00, &[0; 16])), "a second Hello");
    assert!(!aborts(&|bench| bench.deliver_with(0xf8, 0xff, 0, &[], None)), "reserved flags are ignored");
}
