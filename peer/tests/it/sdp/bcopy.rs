//! Bcopy, credits, Out-Of-Band data (sections 9.1, 9.5.3, 10).

use weft_core::coverage::{By, Proof};
use weft_peer::sdp::{Event, Policy, ReceiveEnd, ReceiveId, SendEnd, SendId};

use crate::sdp::bench::Bench;
use crate::sdp::shows;

const BCOPY: Policy = Policy { source_threshold: u64::MAX, ..POLICY };
const POLICY: Policy = crate::sdp::POLICY;

#[test]
fn data_is_cut_to_the_peers_private_buffers_and_numbered() {
    let mut proof = Proof::new(By::Test);
    let mut bench = Bench::new(BCOPY, 16, 50);
    bench.send(1, 100);
    let said = bench.said();
    shows!(proof:
        "SDP-9.1-1" => said.iter().map(|said| said.rest.len()).eq([34, 34, 32]);
        "SDP-9.1-2" => said.iter().all(|said| said.mid == 0xff);
        "SDP-6.1.5-2" => said.iter().map(|said| said.mseq).eq([1, 2, 3]);
        "SDP-6.1.6-2" => said.iter().all(|said| said.mseq_ack == 0);
        "SDP-14.2-15" => said.iter().all(|said| !said.solicited && said.invalidate.is_none());
        // 16 were posted, and HelloAck took one that was posted again.
        "SDP-6.1.3-1" => said.iter().all(|said| said.bufs == 16);
        "SDP-6-3" => said.concat_rest() == (1..=100).collect::<Vec<u8>>();
    );
    assert_eq!(bench.events(), [Event::Sent { send: SendId(1), octets: 100, end: SendEnd::Complete }]);
}

trait Concat {
    fn concat_rest(&self) -> Vec<u8>;
}

impl Concat for Vec<crate::sdp::bench::Said> {
    fn concat_rest(&self) -> Vec<u8> {
        self.iter().flat_map(|said| said.rest.clone()).collect()
    }
}

#[test]
fn two_credits_are_kept() {
    let mut proof = Proof::new(By::Test);
    let mut bench = Bench::new(BCOPY, 5, 50);
    bench.send(1, 340);
    shows!(proof:
        // Of five credits three carry payload.
        "SDP-10.5-1" => bench.mids() == [0xff, 0xff, 0xff];
        "SDP-10.5-4" => bench.host.machine.credit() == 2;
    );
    bench.hear(0xff, &[]);
    let more = bench.said();
    shows!(proof:
        "SDP-6.3.1-4" => more.len() == 3 && more.iter().all(|said| said.rest.len() == 34);
        "SDP-6.1.6-1" => more.iter().all(|said| said.mseq_ack == 1);
    );
}

#[test]
fn the_peer_is_told_of_free_buffers_before_it_has_none() {
    let mut proof = Proof::new(By::Test);
    let mut bench = Bench::new(BCOPY, 16, 50);
    let mut told = Vec::new();
    for id in 0..15 {
        bench.receive(id, 100);
        bench.hear(0xff, &[7]);
        told.extend(bench.said());
    }
    shows!(proof:
        "SDP-10.4-1" => told.iter().all(|said| said.mid == 0xff && said.rest.is_empty()) && !told.is_empty();
        "SDP-10.5-10" => told[0].mseq_ack <= 15 && told[0].bufs == 16;
    );
    // Nobody reads: payload stays in its buffers, and what has none goes through.
    let mut bench = Bench::new(BCOPY, 16, 50);
    for _ in 0..13 {
        bench.hear(0xff, &[7]);
    }
    let said = bench.said();
    shows!(proof:
        "SDP-10-1" => said.iter().all(|said| u32::from(said.bufs) == 16 - said.mseq_ack);
    );
    assert_eq!(bench.host.copied, 0);
    bench.receive(99, 100);
    assert_eq!(bench.host.copied, 13);
    assert_eq!(bench.said().last().unwrap().bufs, 16);
}

#[test]
fn receives_are_filled_in_their_order() {
    let mut bench = Bench::new(BCOPY, 16, 50);
    bench.hear(0xff, &[1, 2, 3]);
    bench.receive(1, 2);
    bench.receive_so(2, 3, true);
    bench.receive(3, 9);
    bench.hear(0xff, &[4]);
    let received =
        |receive, octets| Event::Received { receive: ReceiveId(receive), octets, urgent: false, end: ReceiveEnd::More };
    assert_eq!(bench.events(), [received(1, 2)]);
    bench.hear(0xff, &[5, 6]);
    assert_eq!(bench.events(), [received(2, 3), received(3, 1)]);
    assert_eq!(bench.host.receives[&ReceiveId(2)], [3, 4, 5]);
}

#[test]
fn an_urgent_octet_is_announced_and_comes_last_in_its_data() {
    let mut proof = Proof::new(By::Test);
    let mut bench = Bench::new(BCOPY, 16, 50);
    bench.send_so(1, 40, true);
    bench.send(2, 5);
    let said = bench.said();
    shows!(proof:
        "SDP-9.5.3-4" => said.iter().filter(|said| said.flags & 2 != 0).count() == 1;
        "SDP-9.5.3-5" => said[0].flags == 2;
        "SDP-9.5.3-8" => said[1].flags == 1 && said[1].rest == [35, 36, 37, 38, 39, 40];
        "SDP-14.2-11" => said[0].solicited && said[1].solicited && !said[2].solicited;
        "SDP-9.5.3-1" => said.concat_rest()[..40] == (1..=40).collect::<Vec<u8>>()[..] && said[2].flags == 0;
    );
    bench.events();
    bench.receive(1, 50);
    bench.receive(2, 50);
    bench.hear_so(2, 0xff, 3, &[], None);
    bench.hear_so(1, 0xff, 3, &[1, 2, 3], None);
    let urgent = Event::Received { receive: ReceiveId(1), octets: 3, urgent: true, end: ReceiveEnd::More };
    shows!(proof:
        "SDP-9.5.3-9" => bench.events() == [Event::UrgentPending, urgent];
    );
}

/// With credit for no payload, the flag takes one of the reserved ones.
#[test]
fn the_announcement_does_not_wait_for_the_octet() {
    let mut proof = Proof::new(By::Test);
    let mut bench = Bench::new(BCOPY, 3, 50);
    bench.send(1, 34);
    assert_eq!(bench.said().len(), 1);
    bench.send_so(2, 10, true);
    let said = bench.said();
    shows!(proof:
        "SDP-9.5.3-7" => said.len() == 1 && said[0].flags == 2 && said[0].rest.is_empty();
    );
}

#[test]
fn broken_numbers_and_messages_end_the_connection() {
    let mut proof = Proof::new(By::Test);
    let aborts = |wrong: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::new(BCOPY, 16, 50);
        wrong(&mut bench);
        bench.is_aborted()
    };
    shows!(proof:
        "SDP-8.2.2-10" => aborts(&|bench| bench.hear(0x0f, &[]));
        "SDP-8.2.2-8" => aborts(&|bench| bench.hear(0x06, &[0, 0, 0, 1]));
        "SDP-8.2.2-11" => aborts(&|bench| bench.hear(0x04, &[0]));
    );
    assert!(aborts(&|bench| bench.hear(0x05, &[0, 0, 0, 1])), "RdmaWrCompl without SinkAvail");
    assert!(aborts(&|bench| bench.hear_so(0, 0xff, 1, &[], None)), "MSeqAck ahead of what was sent");
    assert!(aborts(&|bench| bench.hear(0x00, &[0; 16])), "a second Hello");
    assert!(!aborts(&|bench| bench.hear_so(0xf8, 0xff, 0, &[], None)), "reserved flags are not looked at");
}
