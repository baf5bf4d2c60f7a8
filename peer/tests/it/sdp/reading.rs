//! These tests check Read Zcopy on both sides, and the SendSm that can end it. They check each
//! sentence of draft-pinkerton-iwarp-sdp-01 sections 9.2 and 9.5.2.1.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::sdp::{OpId, Policy, ReceiveId, ReceiveOutcome, SendOutcome, SrcAvailAnswer};

use crate::sdp::bench::{Bench, SentMessage};
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::talk::Talk;
use crate::sdp::wire::{sink_ah, src_ah, word};
use crate::sdp::zcopy::{
    DATA, POLICY, RDMA_RD_COMPL, SEND_SM, SINK_AVAIL, SRC_AVAIL, SRC_AVAIL_CANCEL, bench, pipelined, received, sent,
    serve_read,
};

/// A Data Source in Pipelined Mode that has sent these SrcAvails.
fn source(lens: &[u64]) -> (Bench, Vec<SentMessage>) {
    let mut bench = pipelined(POLICY);
    for (id, len) in (1..).zip(lens) {
        bench.send(id, *len);
    }
    let adverts = bench.messages();
    assert_eq!(adverts.len(), lens.len());
    (bench, adverts)
}

fn read(bench: &mut Bench, advert: &SentMessage, at: u64, len: u32) -> Vec<Item> {
    let va = u64::from(advert.word(8)) << 32 | u64::from(advert.word(12));
    bench.host.arrive(bench.now, Item::ReadRequest { op: OpId(99), stag: advert.word(4), va: va + at, len });
    bench.all()
}

fn octets(from: u8, to: u8) -> Vec<Item> {
    vec![Item::ReadResponse { op: OpId(99), octets: (from..=to).collect() }]
}

#[test]
fn advertised_buffers_can_be_read_until_they_are_completed() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut late, adverts) = source(&[150]);
    late.now = late.now + core::time::Duration::from_secs(24 * 3600);
    late.host.machine.handle_timeout(late.now);
    let after_a_day = read(&mut late, &adverts[0], 0, 150);
    late.deliver(RDMA_RD_COMPL, &word(50));
    let rest = read(&mut late, &adverts[0], 50, 100);
    late.deliver(RDMA_RD_COMPL, &word(100));
    let gone = late.all().is_empty() && !late.host.exposes(adverts[0].word(4));
    let ends = |how: &dyn Fn(&mut Bench, u32)| {
        let (mut bench, adverts) = source(&[150]);
        let stag = adverts[0].word(4);
        let before = bench.host.exposes(stag);
        how(&mut bench, adverts[0].mseq);
        bench.all();
        before && !bench.host.exposes(stag)
    };
    shows!(proof:
        "SDP-9.2-23" => after_a_day == octets(1, 150) && rest == octets(51, 150);
        "SDP-9.2-30" => gone;
        "SDP-9.2-24" => ends(&|bench, _| bench.deliver(SEND_SM, &[]))
            && ends(&|bench, mseq| bench.deliver_with(0, SINK_AVAIL, mseq, &sink_ah(300, 7, 0, 0), None))
            && ends(&|bench, mseq| {
                bench.host.machine.cancel_sends();
                assert_eq!(bench.mids(), [SRC_AVAIL_CANCEL]);
                assert!(bench.host.exposes(0x201), "until the revocation is Processed");
                bench.deliver_with(0, SEND_SM, mseq + 1, &[], None);
            });
        "SDP-9.2-28" => {
            let (mut bench, adverts) = source(&[150, 160]);
            bench.deliver_with(0, RDMA_RD_COMPL, adverts[1].mseq, &word(150), Some(adverts[1].word(4)));
            bench.is_aborted()
        };
        "SDP-9.2-16" => {
            let (mut bench, _) = source(&[150]);
            bench.deliver(RDMA_RD_COMPL, &word(149));
            bench.all().is_empty() && bench.events().is_empty() && !bench.is_aborted()
        };
    );
}

#[test]
fn send_sm_is_about_the_oldest_src_avail() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut bench, _) = source(&[150, 160]);
    bench.deliver(SEND_SM, &[]);
    let first = bench.messages();
    let (mut part, _) = source(&[150, 160]);
    part.deliver(RDMA_RD_COMPL, &word(40));
    part.deliver(SEND_SM, &[]);
    let rest = part.messages();
    part.deliver(RDMA_RD_COMPL, &word(160));
    let mut combined = self::bench(POLICY);
    combined.send(1, 150);
    combined.messages();
    combined.deliver(SEND_SM, &[]);
    let after_payload = combined.messages();
    shows!(proof:
        "SDP-9.2-31" => first.iter().map(|message| message.mid).eq([DATA]) && first[0].rest == (1..=150).collect::<Vec<u8>>();
        "SDP-9.2-35" => rest.iter().map(|message| message.mid).eq([DATA]) && rest[0].rest == (41..=150).collect::<Vec<u8>>();
        "SDP-9.5.2.1-2" => after_payload.len() == 1 && after_payload[0].rest == (11..=150).collect::<Vec<u8>>();
        "SDP-9.5.2.1-6" => part.events() == [sent(1, 150, SendOutcome::Complete), sent(2, 160, SendOutcome::Complete)];
        "SDP-11.3-9" => bench.all().is_empty() && bench.host.registered() == 1;
        "SDP-9.5.2.1-1" => after_payload[0].mid == DATA && first[0].mid == DATA;
        // The peer is allowed to answer the SrcAvail with Reads or with SendSm.
        "SDP-9.2-6" => combined.events() == [sent(1, 150, SendOutcome::Complete)];
        "SDP-11-4" => after_payload[0].rest.len() == 140 && first[0].rest.len() == 150;
    );
}

#[test]
fn completed_reads_are_reported_one_by_one() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut held = bench(POLICY);
    held.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    held.receive(1, 200);
    let Some(Item::ReadRequest { op, len, .. }) = held.all().pop() else { panic!("no read") };
    held.now = held.now + core::time::Duration::from_secs(3600);
    held.host.machine.handle_timeout(held.now);
    let meanwhile = held.all();
    held.host.arrive(held.now, Item::ReadResponse { op, octets: vec![2; len as usize] });
    let then = held.mids();
    let mut three = pipelined(POLICY);
    for (stag, len) in [(1, 30), (2, 40), (3, 50)] {
        three.deliver(SRC_AVAIL, &src_ah(len, stag, 0));
    }
    three.receive_so(1, 1000, true);
    let mut completions = Vec::new();
    let mut reads = Vec::new();
    for _ in 0..6 {
        for item in three.all() {
            match item {
                Item::ReadRequest { op, stag, len, .. } => {
                    reads.push((stag, len));
                    three.host.arrive(three.now, Item::ReadResponse { op, octets: vec![0; len as usize] });
                }
                item => completions.extend(crate::sdp::bench::parse_message(item)),
            }
        }
    }
    shows!(proof:
        "SDP-9.2-12" => meanwhile.is_empty();
        "SDP-9.2-11" => then == [RDMA_RD_COMPL];
        "SDP-9.2-14" => completions.iter().map(|message| (message.mid, message.word(0))).eq([(RDMA_RD_COMPL, 30), (RDMA_RD_COMPL, 40), (RDMA_RD_COMPL, 50)]);
        "SDP-9.2-15" => completions.iter().map(|message| message.invalidate).eq([Some(1), Some(2), Some(3)]);
        "SDP-9.5.2.1-3" => reads == [(1, 30), (2, 40), (3, 50)];
        "SDP-10.1-2" => {
            let mut bench = bench(POLICY);
            bench.deliver(DATA, &[1]);
            bench.deliver(DATA, &[2, 3]);
            bench.deliver(2, &[]);
            bench.receive_so(1, 100, true);
            bench.host.receives[&ReceiveId(1)][..3] == [1, 2, 3]
                && bench.events().last() == Some(&received(1, 3, ReceiveOutcome::EndOfStream))
        };
    );
}

/// The policy decides how the machine fills a receive. It reads the advertised octets, or it
/// requests them as Data with a SendSm.
#[test]
fn a_src_avail_is_answered_by_reads_or_by_send_sm() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let answered = |answer: SrcAvailAnswer, piped: bool| {
        let policy = Policy { answer, ..POLICY };
        let mut bench = if piped { pipelined(policy) } else { bench(policy) };
        bench.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1; usize::from(!piped)]].concat());
        let before = bench.all();
        assert!(before.is_empty(), "nobody receives");
        bench.receive(1, 200);
        let first = bench.all().remove(0);
        (bench, first)
    };
    let is_send_sm = |item: &Item| matches!(item, Item::Message { octets, .. } if octets[3] == SEND_SM);
    let reads = |item: &Item| matches!(item, Item::ReadRequest { .. });
    let (mut declined, first) = answered(SrcAvailAnswer::SendSm, false);
    [48, 48, 3].iter().for_each(|len| declined.deliver(DATA, &vec![2; *len]));
    let got = declined.events();
    declined.deliver(SRC_AVAIL, &[src_ah(50, 8, 0), vec![1]].concat());
    declined.receive(2, 50);
    shows!(proof:
        "SDP-9.2-7" => is_send_sm(&first);
        "SDP-9.2-8" => reads(&answered(SrcAvailAnswer::Read, false).1) && reads(&answered(SrcAvailAnswer::Read, true).1);
        "SDP-9-8" => is_send_sm(&first) && !declined.is_aborted();
        "SDP-9-9" => got == [received(1, 100, ReceiveOutcome::More)];
        "SDP-9.5.2.1-5" => is_send_sm(&answered(SrcAvailAnswer::SendSm, true).1);
        "SDP-11.2-4" => reads(&answered(SrcAvailAnswer::Read, false).1);
        "SDP-11.3-4" => reads(&answered(SrcAvailAnswer::Read, true).1);
        "SDP-11.3-19" => reads(&answered(SrcAvailAnswer::Read, true).1);
    );
}

#[test]
fn counts_the_remaining_octets_after_send_sm() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(Policy { answer: SrcAvailAnswer::ReadThenSendSm, max_read: 30, ..POLICY });
    bench.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1; 10]].concat());
    bench.receive_so(1, 100, true);
    serve_read(&mut bench);
    let answer = bench.mids();
    // The SrcAvail advertised 100 octets. Its payload had 10, and a Read got 30, so 60 octets are
    // missing.
    bench.deliver(DATA, &[2; 40]);
    bench.deliver(DATA, &[2; 19]);
    let short = bench.events();
    bench.deliver(DATA, &[2; 1]);
    let filled = bench.events();
    bench.deliver(SRC_AVAIL, &[src_ah(50, 8, 0), vec![1; 10]].concat());
    bench.receive(2, 50);
    let mut other = pipelined(Policy { answer: SrcAvailAnswer::ReadThenSendSm, max_read: 30, ..POLICY });
    other.deliver(SRC_AVAIL, &src_ah(50, 1, 0));
    other.deliver(SRC_AVAIL, &src_ah(60, 2, 0));
    other.receive_so(1, 110, true);
    serve_read(&mut other);
    let other_answer = other.mids();
    let waits = other.all();
    other.deliver(DATA, &[2; 20]);
    let goes_on = serve_read(&mut other);
    shows!(proof:
        "SDP-9.2-37" => answer == [RDMA_RD_COMPL, SEND_SM] && short.is_empty()
            && filled == [received(1, 100, ReceiveOutcome::More)]
            && serve_read(&mut bench).0 == 8;
        "SDP-11.3-10" => other_answer == [RDMA_RD_COMPL, SEND_SM] && waits.is_empty() && goes_on == (2, 0, 30);
    );
}

#[test]
fn the_order_of_read_zcopy_and_of_write_zcopy() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let talk = Talk::held();
    // For each side, `sources` and `sinks` have the advertisements that the side is allowed to use
    // now. `read` and `written` count the transfers that the side has not reported yet.
    let mut order = true;
    let (mut sources, mut sinks) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let (mut read, mut written) = ([0, 0], [0, 0]);
    let mut completions = [0; 2];
    for (side, item) in &talk.items {
        let (me, peer) = (*side, 1 - *side);
        match item {
            Item::ReadRequest { stag, .. } => order &= sources[peer].contains(stag),
            Item::ReadResponse { octets, .. } => read[peer] += octets.len() as u32,
            Item::Write { stag, octets, .. } => {
                order &= sinks[peer].contains(stag);
                written[me] += octets.len() as u32;
            }
            item => {
                let Some(message) = crate::sdp::bench::parse_message(item.clone()) else { continue };
                match message.mid {
                    SRC_AVAIL => sources[me].push(message.word(4)),
                    SINK_AVAIL => sinks[me].push(message.word(4)),
                    RDMA_RD_COMPL => {
                        order &= message.word(0) == read[me];
                        read[me] = 0;
                        completions[0] += 1;
                    }
                    5 => {
                        order &= message.word(0) == written[me];
                        written[me] = 0;
                        completions[1] += 1;
                    }
                    _ => {}
                }
            }
        }
    }
    let mut combined = bench(Policy { wants_pipelined: true, ..POLICY });
    combined.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    combined.receive(1, 100);
    serve_read(&mut combined);
    shows!(proof:
        "SDP-9.2-1" => order && completions[0] >= 6;
        "SDP-9.3-1" => order && completions[1] >= 4;
        "SDP-9.2-20" => combined.messages().iter().map(|message| (message.mid, message.flags)).eq([(RDMA_RD_COMPL, 4)]);
    );
}
