//! Tests draft-pinkerton-iwarp-sdp-01 Figures 24 and 25. The figures list the actions that are
//! allowed in each Mode and in each pair of Modes. The tests also check how the machine handles a
//! violation.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{Half, ReceiveOutcome, SendOutcome};

use crate::sdp::bench::Bench;
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::wire::{sink_ah, src_ah, word};
use crate::sdp::zcopy::{
    DATA, MODE_CHANGE, POLICY, RDMA_RD_COMPL, SEND_SM, SINK_AVAIL, SRC_AVAIL, TO_BUFFERED, TO_PIPELINED, bench,
    received, sent, serve_read,
};

const MODES: [Mode; 3] = [Mode::Buffered, Mode::Combined, Mode::Pipelined];

/// Returns host A of Figure 25. `out` is the Mode of the direction from A to B, and `back` is the
/// Mode of the direction from B to A.
fn pair(out: Mode, back: Mode) -> Bench {
    let mut bench = bench(POLICY);
    bench.host.machine.set_mode(Half::Out, out).unwrap();
    bench.messages();
    match back {
        Mode::Combined => {}
        Mode::Buffered => bench.deliver(MODE_CHANGE, &word(TO_BUFFERED)),
        Mode::Pipelined => bench.deliver(MODE_CHANGE, &word(TO_PIPELINED)),
    }
    assert_eq!((bench.host.machine.mode(Half::Out), bench.host.machine.mode(Half::In)), (out, back));
    bench.events();
    bench
}

fn count(items: &[Item], of: impl Fn(&Item) -> bool) -> u8 {
    items.iter().filter(|item| of(item)).count() as u8
}

fn is(item: &Item, mid: u8, payload: bool) -> bool {
    let headers = if mid == SINK_AVAIL { 36 } else { 32 };
    matches!(item, Item::Message { octets, .. } if octets[3] == mid && (octets.len() > headers) == payload)
}

/// Returns a line of Figure 25, which the function determines by experiment. The columns are: posts
/// RDMA Read, posts RDMA Write, sends SrcAvail, sends SinkAvail, sends Transaction, accepts
/// SrcAvail, accepts SinkAvail, accepts Transaction. If the figure distinguishes one advertisement
/// from several, 0 means NO, 1 means one at a time, and 2 means YES. In the other columns, 0 means
/// NO and 1 means YES.
fn line(out: Mode, back: Mode) -> [u8; 8] {
    let src_avail = |stag| [src_ah(50, stag, 0), vec![1; usize::from(back != Mode::Pipelined)]].concat();
    let mut reads = pair(out, back);
    reads.deliver(SRC_AVAIL, &src_avail(1));
    reads.receive(1, 50);
    let mut writes = pair(out, back);
    writes.deliver(SINK_AVAIL, &sink_ah(150, 1, 0, 0));
    if !writes.host.machine.is_over() {
        writes.send(1, 150);
    }
    let mut sends = pair(out, back);
    (1..=2).for_each(|id| sends.send(id, 150));
    let mut offers = pair(out, back);
    offers.receive(1, 1000);
    let mut transacts = pair(out, back);
    transacts.send(1, 10);
    transacts.receive(1, 1000);
    let mut accepts = pair(out, back);
    let accepted = (1..=2).take_while(|stag| {
        accepts.deliver(SRC_AVAIL, &src_avail(*stag));
        !accepts.is_aborted()
    });
    let accepted = accepted.count() as u8;
    let takes = |payload: usize| {
        let mut bench = pair(out, back);
        bench.deliver(SINK_AVAIL, &[sink_ah(150, 1, 0, 0), vec![1; payload]].concat());
        u8::from(!bench.is_aborted())
    };
    [
        count(&reads.all(), |item| matches!(item, Item::ReadRequest { .. })),
        count(&writes.all(), |item| matches!(item, Item::Write { .. })),
        count(&sends.all(), |item| is(item, SRC_AVAIL, out == Mode::Combined)),
        count(&offers.all(), |item| is(item, SINK_AVAIL, false)),
        count(&transacts.all(), |item| is(item, SINK_AVAIL, true)),
        accepted,
        takes(0),
        takes(1),
    ]
}

#[test]
fn figure_25_of_a_buffered_or_combined_source() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let [buffered, combined, pipelined] = MODES;
    shows!(proof:
        "SDP-11-16" => line(buffered, buffered) == [0, 0, 0, 0, 0, 0, 0, 0];
        "SDP-11-17" => line(buffered, combined) == [1, 0, 0, 0, 0, 1, 0, 0];
        "SDP-11-18" => line(buffered, pipelined) == [1, 0, 0, 1, 1, 2, 0, 0];
        "SDP-11-19" => line(combined, buffered) == [0, 0, 1, 0, 0, 0, 0, 0];
        "SDP-11-20" => line(combined, combined) == [1, 0, 1, 0, 0, 1, 0, 0];
        "SDP-11-21" => line(combined, pipelined) == [1, 0, 1, 1, 1, 2, 0, 0];
    );
}

#[test]
fn figure_25_of_a_pipelined_source() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let [buffered, combined, pipelined] = MODES;
    shows!(proof:
        "SDP-11-22" => line(pipelined, buffered) == [0, 1, 2, 0, 0, 0, 1, 1];
        "SDP-11-23" => line(pipelined, combined) == [1, 1, 2, 0, 0, 1, 1, 1];
        "SDP-11-24" => line(pipelined, pipelined) == [1, 1, 2, 1, 1, 2, 1, 1];
    );
}

/// The messages sent for one send of this length.
fn first(out: Mode, back: Mode, len: u64) -> Vec<(u8, usize)> {
    let mut bench = pair(out, back);
    bench.send(1, len);
    bench.messages().iter().map(|message| (message.mid, message.rest.len())).collect()
}

#[test]
fn the_threshold_chooses_between_bcopy_and_zcopy() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let [buffered, combined, pipelined] = MODES;
    let written = {
        let mut bench = pair(pipelined, combined);
        bench.deliver(SINK_AVAIL, &sink_ah(101, 1, 0, 0));
        bench.send(1, 101);
        count(&bench.all(), |item| matches!(item, Item::Write { .. }))
    };
    shows!(proof:
        // The threshold is 100 octets, and a Private Buffer of the peer has space for 184 octets of
        // payload.
        "SDP-11-1" => MODES.iter().all(|out| first(*out, combined, 100) == [(DATA, 100)]);
        "SDP-11.2-1" => first(combined, combined, 1) == [(DATA, 1)] && first(combined, pipelined, 100) == [(DATA, 100)];
        "SDP-11.2-2" => first(combined, combined, 101) == [(SRC_AVAIL, 26)];
        "SDP-11.2-9" => first(combined, pipelined, 101) == [(SRC_AVAIL, 26)];
        "SDP-11.3-2" => first(pipelined, combined, 101) == [(SRC_AVAIL, 16)] && written == 1;
        "SDP-11.3-7" => first(pipelined, pipelined, 5000) == [(SRC_AVAIL, 16)];
        "SDP-11.1-2" => first(buffered, combined, 150) == [(DATA, 150)];
    );
}

#[test]
fn figure_24_of_buffered_and_combined() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let [buffered, combined, pipelined] = MODES;
    let mut one = pair(combined, combined);
    (1..=2).for_each(|id| one.send(id, 150));
    let advert = one.messages();
    let va = u64::from(advert[0].word(8)) << 32 | u64::from(advert[0].word(12));
    one.send(3, 5);
    let read = Item::ReadRequest { op: weft_peer::sdp::OpId(9), stag: advert[0].word(4), va: va + 10, len: 140 };
    one.host.arrive(one.now, read);
    let while_read: Vec<Item> = one.all();
    one.deliver(RDMA_RD_COMPL, &word(140));
    let then = one.mids();
    let mut receives = pair(combined, combined);
    receives.receive(1, 1000);
    receives.send(1, 150);
    let mut data = pair(combined, combined);
    data.receive(1, 50);
    data.deliver(DATA, &[1, 2, 3]);
    shows!(proof:
        "SDP-11-6" => first(buffered, combined, 150) == [(DATA, 150)] && line(buffered, pipelined)[2..5] == [0, 1, 1]
            && line(buffered, combined)[4] == 0;
        "SDP-11-7" => advert.len() == 1;
        "SDP-11.2-7" => advert[0].mid == SRC_AVAIL && then == [SRC_AVAIL];
        "SDP-11.2-8" => while_read.iter().all(|item| matches!(item, Item::ReadResponse { .. }));
        "SDP-11-9" => advert[0].rest.len() > 16;
        "SDP-11-8" => receives.mids() == [SRC_AVAIL] && line(combined, combined)[1] == 0;
        "SDP-11.2-3" => data.events() == [received(1, 3, ReceiveOutcome::More)];
    );
}

#[test]
fn figure_24_of_pipelined() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let [_, combined, pipelined] = MODES;
    let mut several = pair(pipelined, pipelined);
    for stag in 1..=16 {
        several.deliver(SRC_AVAIL, &src_ah(50, stag, 0));
    }
    let sixteen = !several.is_aborted();
    let mut cross = pair(pipelined, pipelined);
    cross.send(1, 150);
    cross.receive(1, 300);
    let both = cross.mids();
    cross.deliver_with(0, SINK_AVAIL, 1, &sink_ah(300, 1, 0, 0), None);
    cross.deliver_with(0, SRC_AVAIL, 1, &src_ah(500, 2, 0), None);
    let mut mixes = pair(pipelined, combined);
    mixes.deliver(SINK_AVAIL, &sink_ah(150, 1, 0, 0));
    mixes.deliver(SINK_AVAIL, &sink_ah(150, 2, 0, 0));
    mixes.send(1, 150);
    mixes.send(2, 10);
    let order: Vec<u8> = mixes
        .all()
        .iter()
        .map(|item| match item {
            Item::Message { octets, .. } => octets[3],
            _ => 0,
        })
        .collect();
    let mut read = pair(pipelined, combined);
    read.send(1, 150);
    read.send(2, 10);
    let first = read.mids();
    read.deliver(RDMA_RD_COMPL, &word(150));
    let mut data = pair(pipelined, pipelined);
    data.receive(1, 50);
    data.deliver(DATA, &[1, 2, 3]);
    shows!(proof:
        "SDP-11-11" => sixteen;
        "SDP-11-12" => both == [SRC_AVAIL, SINK_AVAIL] && !cross.is_aborted();
        "SDP-11-13" => line(pipelined, combined)[2] == 2;
        // The order is a Write (0), its RdmaWrCompl (5), and Data. The Data makes the second
        // SinkAvail stale.
        "SDP-11-14" => order == [0, 5, DATA];
        "SDP-11-15" => first == [SRC_AVAIL] && read.mids() == [DATA];
        "SDP-11.3-3" => data.events() == [received(1, 3, ReceiveOutcome::More)];
        "SDP-11.3-11" => line(combined, pipelined)[3] == 1 && line(combined, combined)[3] == 0;
    );
}

#[test]
fn crossing_advertisements() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let source = |payloads: u64| {
        let mut bench = pair(Mode::Pipelined, Mode::Pipelined);
        (0..payloads).for_each(|id| bench.send(50 + id, 5));
        bench.send(1, 150);
        let messages = bench.messages();
        let stag = messages.last().unwrap().word(4);
        bench.deliver_with(0, SINK_AVAIL, 1, &sink_ah(300, 7, 0, 0), None);
        (bench, stag)
    };
    let (mut fresh, gone) = source(0);
    let fresh_items = fresh.all();
    let (mut stale, kept) = source(1);
    let stale_items = stale.all();
    let mut sink = pair(Mode::Pipelined, Mode::Pipelined);
    sink.receive(1, 300);
    sink.receive(2, 300);
    sink.messages();
    sink.deliver_with(0, SRC_AVAIL, 1, &src_ah(500, 1, 0), None);
    let ignored = sink.all();
    sink.deliver(5, &word(300));
    let events = sink.events();
    let still = sink.all();
    shows!(proof:
        "SDP-11.3-12" => matches!(fresh_items[0], Item::Write { stag: 7, .. }) && !fresh.host.exposes(gone);
        "SDP-11.3-14" => stale_items.is_empty() && stale.host.exposes(kept);
        "SDP-11.3-20" => ignored.iter().all(|item| !matches!(item, Item::ReadRequest { .. }) && !is(item, SEND_SM, false));
        "SDP-9.5.2.1-4" => events == [received(1, 300, ReceiveOutcome::More)]
            && still.iter().all(|item| !matches!(item, Item::ReadRequest { .. }));
        "SDP-11.3-13" => fresh.events().contains(&sent(1, 150, SendOutcome::Complete));
    );
}

#[test]
fn each_direction_has_its_mode_and_the_sink_may_force_bcopy() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let independent = MODES.iter().all(|out| {
        MODES.iter().all(|back| {
            let bench = pair(*out, *back);
            (bench.host.machine.mode(Half::Out), bench.host.machine.mode(Half::In)) == (*out, *back)
        })
    });
    let forced = |out: Mode| {
        let mut bench = pair(out, Mode::Combined);
        bench.send(1, 150);
        let messages = bench.mids();
        if messages == [SRC_AVAIL] {
            bench.deliver(SEND_SM, &[]);
            assert_eq!(bench.mids(), [DATA]);
        }
        bench.events() == [sent(1, 150, SendOutcome::Complete)]
    };
    let mut served = pair(Mode::Combined, Mode::Combined);
    served.deliver(SRC_AVAIL, &[src_ah(50, 7, 0), vec![1]].concat());
    served.receive(1, 50);
    shows!(proof:
        "SDP-11-5" => independent;
        "SDP-11-3" => MODES.iter().all(|out| forced(*out));
        "SDP-12.5-11" => serve_read(&mut served) == (7, 1, 49);
    );
}
