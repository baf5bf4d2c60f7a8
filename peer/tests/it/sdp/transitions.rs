//! Tests draft-pinkerton-iwarp-sdp-01 section 12 (Figures 26 to 31): which side changes from one
//! Mode to another, and how both sides handle open advertisements.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{CommandError, Half, Policy, ReceiveOutcome, SendOutcome, SrcAvailAnswer};

use crate::sdp::bench::{Bench, parse_message};
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::talk::Talk;
use crate::sdp::wire::{sink_ah, src_ah, word};
use crate::sdp::zcopy::{
    DATA, MODE_CHANGE, POLICY, RDMA_RD_COMPL, RDMA_WR_COMPL, S, SEND_SM, SINK_AVAIL, SRC_AVAIL, TO_BUFFERED,
    TO_COMBINED, TO_PIPELINED, bench, pipelined, received, sent, serve_read,
};

/// Returns the word after the header of each ModeChange that the machine sent.
fn changes(bench: &mut Bench) -> Vec<u32> {
    bench.messages().iter().filter(|message| message.mid == MODE_CHANGE).map(|message| message.word(0)).collect()
}

fn asks(bench: &mut Bench, half: Half, mode: Mode) -> Result<Vec<u32>, CommandError> {
    bench.host.machine.set_mode(half, mode)?;
    Ok(changes(bench))
}

fn words(items: &[Item]) -> Vec<(u8, usize)> {
    items
        .iter()
        .filter_map(|item| parse_message(item.clone()))
        .map(|message| (message.mid, message.rest.len()))
        .collect()
}

#[test]
fn the_master_of_each_mode() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut out = bench(POLICY);
    let to_buffered = asks(&mut out, Half::Out, Mode::Buffered);
    let back = asks(&mut out, Half::Out, Mode::Combined);
    let mut sink = bench(POLICY);
    let in_combined = asks(&mut sink, Half::In, Mode::Buffered);
    sink.deliver(MODE_CHANGE, &word(TO_BUFFERED));
    let to_combined = asks(&mut sink, Half::In, Mode::Combined);
    sink.deliver(MODE_CHANGE, &word(TO_PIPELINED));
    let in_pipelined = asks(&mut sink, Half::In, Mode::Combined);
    let mut piped = bench(POLICY);
    let to_pipelined = asks(&mut piped, Half::Out, Mode::Pipelined);
    let from_pipelined = asks(&mut piped, Half::Out, Mode::Combined);
    shows!(proof:
        "SDP-12-3" => to_buffered == Ok(vec![TO_BUFFERED]) && back == Err(CommandError::NotMaster);
        "SDP-12-4" => to_combined == Ok(vec![TO_COMBINED | S]);
        "SDP-12-5" => to_pipelined == Ok(vec![TO_PIPELINED]);
        "SDP-12-6" => from_pipelined == Ok(vec![TO_COMBINED]);
        "SDP-12-10" => in_combined == Err(CommandError::NotMaster);
        "SDP-12-11" => in_pipelined == Err(CommandError::NotMaster);
        "SDP-12.5-14" => piped.host.machine.mode(Half::Out) == Mode::Combined && to_pipelined == Ok(vec![4]);
        "SDP-12.5-23" => sink.host.machine.mode(Half::In) == Mode::Pipelined && to_combined == Ok(vec![3]);
    );
}

#[test]
fn hints_are_taken_and_may_be_ignored() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let hinted = |follows_hints: bool| {
        let mut bench = bench(Policy { follows_hints, ..POLICY });
        bench.send(1, 150);
        bench.messages();
        bench.deliver_with(0, SEND_SM, 1, &[], None);
        bench.messages();
        bench.send(2, 150);
        bench.messages();
        bench.deliver_with(4, RDMA_RD_COMPL, 3, &word(140), None);
        let changes = changes(&mut bench);
        (!bench.is_aborted()).then_some(changes)
    };
    // This machine requests Pipelined Mode, but its peer ignores the request and never changes the
    // Mode.
    let mut wishes =
        bench(Policy { wants_pipelined: true, answer: SrcAvailAnswer::ReadThenSendSm, max_read: 20, ..POLICY });
    for stag in 1..=3 {
        wishes.deliver(SRC_AVAIL, &[src_ah(50, stag, 0), vec![1; 10]].concat());
        wishes.receive(u64::from(stag), 50);
        serve_read(&mut wishes);
        assert_eq!(wishes.mids(), [RDMA_RD_COMPL, SEND_SM]);
        wishes.deliver(DATA, &[2; 20]);
    }
    shows!(proof:
        "SDP-12-13" => hinted(true) == Some(vec![TO_PIPELINED]);
        "SDP-12-14" => hinted(false) == Some(vec![])
            && wishes.events() == [1, 2, 3].map(|id| received(id, 50, ReceiveOutcome::More));
    );
}

#[test]
fn a_slave_obeys_at_once() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut sink = bench(POLICY);
    sink.receive(1, 1000);
    sink.deliver(MODE_CHANGE, &word(TO_PIPELINED));
    let offered = sink.messages();
    sink.deliver(SRC_AVAIL, &src_ah(50, 7, 0));
    let taken = !sink.is_aborted();
    sink.deliver(MODE_CHANGE, &word(TO_COMBINED));
    sink.receive(2, 1000);
    let no_more = sink.mids();
    let mut buffered = bench(POLICY);
    buffered.deliver(MODE_CHANGE, &word(TO_BUFFERED));
    buffered.receive(1, 1000);
    let mute = buffered.all().is_empty();
    let leads = asks(&mut buffered, Half::In, Mode::Combined);
    buffered.deliver(SRC_AVAIL, &[src_ah(50, 7, 0), vec![1]].concat());
    let mut out = bench(POLICY);
    asks(&mut out, Half::Out, Mode::Buffered).unwrap();
    out.send(1, 150);
    let data = out.mids();
    out.deliver(MODE_CHANGE, &word(TO_COMBINED | S));
    out.send(2, 150);
    shows!(proof:
        "SDP-12-19" => offered.iter().map(|message| (message.mid, message.mseq_ack)).eq([(SINK_AVAIL, 1)]) && mute;
        "SDP-12.5-21" => taken;
        "SDP-12.5-24" => !no_more.contains(&SINK_AVAIL) && sink.host.registered() == 0;
        "SDP-12.5-20" => leads == Ok(vec![TO_COMBINED | S]);
        "SDP-12.2-2" => serve_read(&mut buffered) == (7, 1, 49);
        "SDP-12-17" => data == [DATA] && out.mids() == [SRC_AVAIL];
        "SDP-12.5-1" => {
            let mut bench = bench(POLICY);
            for change in [TO_PIPELINED, TO_COMBINED, TO_PIPELINED, TO_COMBINED, TO_BUFFERED] {
                bench.deliver(MODE_CHANGE, &word(change));
            }
            !bench.is_aborted()
        };
    );
}

#[test]
fn a_src_avail_is_open_while_the_mode_changes() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut waits = bench(POLICY);
    waits.send(1, 150);
    waits.messages();
    let open = asks(&mut waits, Half::Out, Mode::Buffered);
    waits.deliver(RDMA_RD_COMPL, &word(100));
    let partly = changes(&mut waits);
    waits.deliver(RDMA_RD_COMPL, &word(40));
    let read = changes(&mut waits);
    let mut refused = bench(POLICY);
    refused.send(1, 150);
    refused.messages();
    asks(&mut refused, Half::Out, Mode::Buffered).unwrap();
    refused.deliver(SEND_SM, &[]);
    let by_send_sm = refused.mids();
    let mut goes = bench(POLICY);
    goes.send(1, 150);
    goes.messages();
    let at_once = asks(&mut goes, Half::Out, Mode::Pipelined);
    goes.deliver(RDMA_RD_COMPL, &word(140));
    let mut peer = bench(POLICY);
    peer.deliver(SRC_AVAIL, &[src_ah(50, 7, 0), vec![1]].concat());
    peer.deliver(MODE_CHANGE, &word(TO_PIPELINED));
    peer.receive(1, 50);
    shows!(proof:
        "SDP-12.1-2" => open == Ok(vec![]) && partly.is_empty() && read == [TO_BUFFERED];
        "SDP-12.5-13" => by_send_sm.contains(&MODE_CHANGE) && by_send_sm.contains(&DATA);
        "SDP-12.3-2" => at_once == Ok(vec![TO_PIPELINED]) && !goes.is_aborted() && serve_read(&mut peer) == (7, 1, 49);
    );
}

/// The source leaves Pipelined Mode while the RNIC writes. One more SinkAvail is open, but the
/// source must not use it.
#[test]
fn writes_end_before_the_mode_change() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    for stag in 1..=2 {
        bench.deliver(SINK_AVAIL, &sink_ah(300, stag, 0, 0));
    }
    bench.send(1, 150);
    bench.host.run(bench.now);
    let writing: Vec<Item> = bench.host.outgoing.drain(..).collect();
    bench.host.machine.set_mode(Half::Out, Mode::Combined).unwrap();
    bench.host.run(bench.now);
    let meanwhile: Vec<Item> = bench.host.outgoing.drain(..).collect();
    let after = bench.all();
    bench.send(2, 150);
    bench.send(3, 150);
    let combined = bench.all();
    let talk = Talk::held();
    let leaves = talk
        .items
        .iter()
        .position(|(side, item)| {
            *side == 0
                && parse_message(item.clone())
                    .is_some_and(|message| message.mid == MODE_CHANGE && message.word(0) == TO_COMBINED)
        })
        .unwrap();
    let later = &talk.items[leaves..];
    shows!(proof:
        "SDP-12.5-2" => matches!(writing[..], [Item::Write { stag: 1, .. }]) && meanwhile.is_empty();
        "SDP-12.4-6" => later.iter().all(|(side, item)| *side == 1 || !matches!(item, Item::Write { .. }));
        "SDP-12.4-7" => words(&after) == [(RDMA_WR_COMPL, 4), (MODE_CHANGE, 4)];
        "SDP-12.5-3" => parse_message(after[1].clone()).unwrap().word(0) == TO_COMBINED;
        "SDP-12.5-19" => bench.host.machine.mode(Half::Out) == Mode::Combined;
        "SDP-12.4-2" => words(&combined) == [(SRC_AVAIL, 26)];
        // The second SinkAvail was still open.
        "SDP-12.5-4" => combined.iter().all(|item| !matches!(item, Item::Write { .. }));
    );
}

/// Returns a Data Source that has just left Pipelined Mode after it advertised these sends. Also
/// returns the MSeq of its ModeChange.
fn left(sends: &[u64]) -> (Bench, u32) {
    let mut bench = pipelined(POLICY);
    for (id, len) in (1..).zip(sends) {
        bench.send(id, *len);
    }
    bench.messages();
    bench.host.machine.set_mode(Half::Out, Mode::Combined).unwrap();
    let messages = bench.messages();
    assert_eq!(messages[0].word(0), TO_COMBINED);
    (bench, messages[0].mseq)
}

#[test]
fn src_avails_are_issued_again_when_a_sink_avail_crossed() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut crossed, change) = left(&[150, 160]);
    crossed.deliver_with(0, SINK_AVAIL, change - 1, &sink_ah(300, 7, 0, 0), None);
    let again = crossed.messages();
    crossed.deliver_with(0, SINK_AVAIL, change - 1, &sink_ah(300, 8, 0, 0), None);
    let more = crossed.all();
    crossed.deliver_with(0, RDMA_RD_COMPL, change + 1, &word(140), None);
    let second = crossed.messages();
    crossed.deliver_with(0, RDMA_RD_COMPL, change + 2, &word(150), None);
    let (mut quiet, change) = left(&[150, 160]);
    quiet.deliver_with(0, RDMA_RD_COMPL, change, &word(150), None);
    quiet.deliver_with(0, RDMA_RD_COMPL, change, &word(160), None);
    let nothing = quiet.all();
    shows!(proof:
        "SDP-12.4-9" => again.iter().map(|message| (message.mid, message.word(0))).eq([(SRC_AVAIL, 150)]);
        "SDP-12.5-6" => again[0].rest.len() == 26 && second.iter().map(|message| (message.mid, message.word(0))).eq([(SRC_AVAIL, 160)])
            && second[0].rest.len() == 26;
        "SDP-12.5-7" => more.is_empty();
        "SDP-12.5-5" => nothing.is_empty() && quiet.host.registered() == 0;
        // Each octet was sent once, both if messages crossed and if they did not.
        "SDP-12.4-5" => [&mut crossed, &mut quiet].into_iter().all(|bench|
            bench.events().ends_with(&[sent(1, 150, SendOutcome::Complete), sent(2, 160, SendOutcome::Complete)]));
    );
}

#[test]
fn until_the_mode_change_is_acknowledged() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut bench, change) = left(&[]);
    let early = asks(&mut bench, Half::Out, Mode::Pipelined);
    bench.deliver_with(0, DATA, change - 1, &[], None);
    let still = changes(&mut bench);
    bench.deliver_with(0, DATA, change, &[], None);
    let then = changes(&mut bench);
    // At first, this machine has no credit for payload. Then a SinkAvail gives it credit. The peer
    // sent this SinkAvail before it received the ModeChange, so the machine ignores the
    // advertisement.
    let mut waits = pipelined(Policy { source_threshold: u64::MAX, ..POLICY });
    waits.host.machine.set_mode(Half::Out, Mode::Combined).unwrap();
    let change = waits.messages()[0].mseq;
    waits.bufs = 2;
    waits.deliver_with(0, DATA, change - 1, &[], None);
    waits.send(1, 50);
    let without = waits.mids();
    waits.bufs = 16;
    waits.deliver_with(0, SINK_AVAIL, change - 1, &sink_ah(300, 7, 0, 0), None);
    let with = waits.mids();
    let mut never = self::bench(POLICY);
    never.deliver(SINK_AVAIL, &sink_ah(300, 7, 0, 0));
    let (mut just, change) = left(&[]);
    just.deliver_with(0, SINK_AVAIL, change - 1, &sink_ah(300, 7, 0, 0), None);
    just.send(1, 150);
    let ignored = just.all();
    shows!(proof:
        "SDP-12.5-8" => early == Ok(vec![]) && still.is_empty() && then == [TO_PIPELINED];
        "SDP-12.4-13" => without.is_empty() && with == [DATA];
        "SDP-12.5-16" => never.is_aborted() && !just.is_aborted();
        "SDP-9.5.1-17" => words(&ignored) == [(SRC_AVAIL, 26)];
    );
}

#[test]
fn the_sink_drops_its_sink_avails() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(POLICY);
    bench.receive(1, 300);
    bench.receive(2, 300);
    let adverts = bench.messages();
    bench.deliver_with(0, MODE_CHANGE, 1, &word(TO_COMBINED), None);
    bench.receive(3, 300);
    let stopped = bench.mids();
    let dropped = adverts.iter().all(|message| !bench.host.exposes(message.word(4)));
    bench.deliver(SRC_AVAIL, &[src_ah(50, 7, 0), vec![1]].concat());
    shows!(proof:
        "SDP-12.5-9" => stopped.is_empty();
        "SDP-12.5-10" => adverts.len() == 2 && dropped && serve_read(&mut bench) == (7, 1, 49);
    );
}
