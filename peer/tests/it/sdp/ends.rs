//! These tests end connections in every way, step by step as in draft-pinkerton-iwarp-sdp-01
//! section 8.2. They also check the events that the user gets.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::sdp::{CommandError, Event, Policy, ReceiveId, ReceiveOutcome, SendId, SendOutcome};

use crate::sdp::bench::{Bench, parse_message};
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::talk::Talk;
use crate::sdp::wire::{sink_ah, src_ah};
use crate::sdp::zcopy::{DATA, RDMA_RD_COMPL, SINK_AVAIL, SRC_AVAIL, pipelined, received, serve_read};

const DIS_CONN: u8 = 2;
const ABORT_CONN: u8 = 3;

fn bench() -> Bench {
    Bench::new(Policy { source_threshold: u64::MAX, ..crate::sdp::POLICY }, 32, 50)
}

/// Returns whether the reported end was graceful, or `None` if no end was reported.
fn was_graceful(bench: &mut Bench) -> Option<bool> {
    bench.events().iter().find_map(|event| match event {
        Event::Closed { graceful, .. } => Some(*graceful),
        _ => None,
    })
}

fn messages(items: &[Item]) -> Vec<u8> {
    items.iter().filter_map(|item| Some(parse_message(item.clone())?.mid)).collect()
}

/// Returns a bench in which this side has closed first. `peer` then delivers the messages that the
/// peer sends after this close.
fn closing(peer: impl FnOnce(&mut Bench)) -> Bench {
    let mut bench = bench();
    bench.host.machine.shut_down();
    assert_eq!(bench.mids(), [DIS_CONN]);
    peer(&mut bench);
    bench
}

#[test]
fn the_first_side_to_close_sends_everything_and_still_receives() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench();
    bench.send(1, 600);
    bench.host.machine.shut_down();
    bench.host.machine.shut_down();
    let sent = bench.messages();
    let payload: Vec<u8> = sent.iter().flat_map(|message| message.rest.clone()).collect();
    let waits = bench.all();
    bench.receive(1, 10);
    bench.deliver(DATA, &[1, 2]);
    let got = bench.events();
    bench.receive(2, 100);
    bench.deliver(SRC_AVAIL, &[src_ah(50, 7, 0), vec![3]].concat());
    let read = serve_read(&mut bench);
    let answer = bench.mids();
    bench.deliver(DIS_CONN, &[]);
    let still = bench.all();
    bench.host.arrive(bench.now, Item::Fin);
    shows!(proof:
        "SDP-8.2-1" => payload == (1..=600u32).map(|octet| octet as u8).collect::<Vec<u8>>();
        "SDP-8.2.1-7" => sent.iter().filter(|message| message.mid == DIS_CONN).count() == 1;
        "SDP-8.2.1-4" => sent.last().unwrap().mid == DIS_CONN && waits.is_empty() && still.is_empty();
        "SDP-8.2.1-3" => got.contains(&received(1, 2, ReceiveOutcome::More)) && read == (7, 1, 49)
            && answer == [RDMA_RD_COMPL];
        "SDP-8.2.1-12" => was_graceful(&mut bench) == Some(true);
    );
}

#[test]
fn events_that_end_the_wait_for_the_peers_dis_conn() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut reset = closing(|bench| bench.host.arrive(bench.now, Item::Reset));
    let mut user = closing(|bench| bench.host.machine.abort(bench.now));
    let items = user.all();
    let mut silent = closing(|bench| bench.deliver(DIS_CONN, &[]));
    silent.wait();
    let gives_up = silent.all();
    let ends = [
        |bench: &mut Bench| {
            bench.deliver(DIS_CONN, &[]);
            bench.host.arrive(bench.now, Item::Fin);
        },
        |bench: &mut Bench| {
            bench.deliver(DIS_CONN, &[]);
            bench.deliver(ABORT_CONN, &[]);
            bench.host.arrive(bench.now, Item::Fin);
        },
        |bench: &mut Bench| bench.host.arrive(bench.now, Item::Fin),
    ];
    let results = ends.map(|end| was_graceful(&mut closing(end)));
    shows!(proof:
        "SDP-8.2.1-13" => was_graceful(&mut reset) == Some(false);
        "SDP-8.2.1-14" => messages(&items) == [ABORT_CONN] && items.last() == Some(&Item::Fin);
        "SDP-8.2.1-15" => messages(&gives_up) == [ABORT_CONN] && was_graceful(&mut silent) == Some(false);
        "SDP-8.2.1-16" => results == [Some(true), Some(false), Some(false)];
        "SDP-8.2.1-18" => results[1] == Some(false) && results[2] == Some(false);
        "SDP-8.2.2-12" => {
            let mut bench = closing(ends[1]);
            let events = bench.events();
            events.contains(&Event::PeerClosed) && events.iter().any(|event| matches!(event, Event::Closed { graceful: false, .. }))
        };
    );
}

#[test]
fn a_failed_completion_makes_the_close_abortive() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench();
    bench.send(1, 30);
    bench.host.machine.shut_down();
    bench.host.run(bench.now);
    let op = bench.host.completions.pop_front().unwrap();
    bench.host.machine.handle_completed(bench.now, op, false);
    let items = bench.all();
    let events = bench.events();
    // In the first case, the message that could not be sent is the Data. In this second case, it is
    // the DisConn.
    let mut last = self::bench();
    last.host.machine.shut_down();
    last.host.run(last.now);
    let op = last.host.completions.pop_front().unwrap();
    last.host.machine.handle_completed(last.now, op, false);
    last.all();
    shows!(proof:
        "SDP-8.2.1-6" => messages(&items) == [DATA] && items.last() == Some(&Item::Reset);
        "SDP-8.2.2-9" => events.iter().any(|event| matches!(event, Event::Closed { graceful: false, .. }))
            && was_graceful(&mut last) == Some(false);
    );
}

#[test]
fn the_last_side_to_close() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut sink = pipelined(crate::sdp::POLICY);
    sink.receive(1, 100);
    let stag = sink.messages()[0].word(4);
    sink.deliver(DIS_CONN, &[]);
    let events = sink.events();
    let mut abort = bench();
    abort.deliver(DIS_CONN, &[]);
    abort.host.machine.abort(abort.now);
    let aborted = abort.all();
    let mut last = bench();
    last.deliver(DIS_CONN, &[]);
    last.send(1, 60);
    last.host.machine.shut_down();
    let mids = last.mids();
    let refused = last.host.machine.send(SendId(2), 1, false);
    last.deliver(DATA, &[]);
    let end = last.all();
    let mut late = bench();
    late.deliver(DIS_CONN, &[]);
    late.host.machine.shut_down();
    late.messages();
    late.deliver(ABORT_CONN, &[]);
    shows!(proof:
        "SDP-8.2.1-22" => events.contains(&Event::Received { receive: ReceiveId(1), octets: 0, urgent: false,
            end: ReceiveOutcome::EndOfStream })
            && !sink.host.exposes(stag);
        "SDP-8.2.1-27" => aborted == [Item::Reset] && was_graceful(&mut abort) == Some(false);
        "SDP-8.2.1-28" => mids == [DATA, DATA, DIS_CONN];
        "SDP-8.2.1-29" => refused == Err(CommandError::Closed);
        "SDP-8.2.1-21" => end == [Item::Fin] && was_graceful(&mut last) == Some(true);
        "SDP-8.2.1-31" => was_graceful(&mut late) == Some(false);
    );
}

#[test]
fn an_abort_ends_it_at_once() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // The rest of the send waits for credit.
    let mut bench = Bench::new(Policy { source_threshold: u64::MAX, ..crate::sdp::POLICY }, 3, 50);
    bench.send(1, 500);
    assert_eq!(bench.mids(), [DATA]);
    bench.host.machine.abort(bench.now);
    let items = bench.all();
    let sent = bench.events();
    let after = {
        let mut bench = closing(|bench| bench.host.machine.abort(bench.now));
        messages(&bench.all())
    };
    shows!(proof:
        "SDP-8.2-2" => items == [Item::Reset]
            && sent.contains(&Event::Sent { send: SendId(1), octets: 34, end: SendOutcome::Aborted });
        "SDP-8.2.2-1" => messages(&items).is_empty() && after == [ABORT_CONN];
    );
}

/// The peer advertises a buffer, and the user receives. The machine sends no more data.
#[test]
fn sends_no_data_after_dis_conn() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = pipelined(crate::sdp::POLICY);
    bench.send(1, 5);
    bench.host.machine.shut_down();
    let before = bench.mids();
    bench.deliver(SINK_AVAIL, &sink_ah(300, 7, 0, 1));
    bench.receive(1, 100);
    bench.deliver(DATA, &[]);
    let after = bench.all();
    let talk = Talk::held();
    let ends = talk
        .messages()
        .iter()
        .filter(|(_, message)| matches!(message.mid, DIS_CONN | ABORT_CONN))
        .map(|(side, message)| (*side, message.mid))
        .collect::<Vec<_>>();
    shows!(proof:
        "SDP-6.2.3-2" => before == [DATA, DIS_CONN] && after.iter().all(|item| parse_message(item.clone()).is_some_and(|message|
            message.mid == SINK_AVAIL && message.rest.len() == 20 || message.rest.is_empty()));
        "SDP-6.2.4-2" => ends == [(0, DIS_CONN), (0, ABORT_CONN)];
    );
}
