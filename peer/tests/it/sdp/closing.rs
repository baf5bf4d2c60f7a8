//! These tests check DisConn, AbortConn and the end of TCP (draft-pinkerton-iwarp-sdp-01 section
//! 8.2).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::sdp::{
    CommandError, Event, Policy, ReceiveId, ReceiveOutcome, SendId, SendOutcome, SrcAvailAnswer, Violation,
};

use crate::sdp::bench::Bench;
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::wire::src_ah;

const DIS_CONN: u8 = 2;
const ABORT_CONN: u8 = 3;

fn bench() -> Bench {
    Bench::new(Policy { source_threshold: u64::MAX, ..crate::sdp::POLICY }, 16, 50)
}

fn closed(events: &[Event]) -> Option<bool> {
    events.iter().find_map(|event| match event {
        Event::Closed { graceful, .. } => Some(*graceful),
        _ => None,
    })
}

#[test]
fn a_graceful_close_sends_all_and_waits_for_the_peer() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench();
    bench.send(1, 100);
    bench.host.machine.shut_down();
    let messages = bench.messages();
    shows!(proof:
        "SDP-8.2.1-5" => messages.iter().map(|message| message.mid).eq([0xff, 0xff, 0xff, DIS_CONN]);
        "SDP-8.2.1-2" => bench.host.machine.send(SendId(2), 1, false) == Err(CommandError::Closed);
        "SDP-14.2-12" => !messages[3].solicited && messages[3].rest.is_empty();
        "SDP-8.2.1-1" => bench.all().is_empty() && !bench.host.machine.is_over();
    );
    bench.receive(1, 10);
    bench.deliver(0xff, &[9]);
    let got = Event::Received { receive: ReceiveId(1), octets: 1, urgent: false, end: ReceiveOutcome::More };
    shows!(proof:
        "SDP-8.2.1-10" => bench.events().contains(&got);
    );
    bench.deliver(DIS_CONN, &[]);
    // The peer sent its DisConn last, so the peer ends TCP.
    shows!(proof:
        "SDP-8.2.1-11" => bench.all().is_empty();
    );
    bench.host.arrive(bench.now, Item::Fin);
    let events = bench.events();
    shows!(proof:
        "SDP-8.2.1-17" => closed(&events) == Some(true);
    );
}

#[test]
fn the_last_side_to_close_ends_tcp() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench();
    bench.receive(1, 10);
    bench.deliver(DIS_CONN, &[]);
    let end = |receive| Event::Received {
        receive: ReceiveId(receive),
        octets: 0,
        urgent: false,
        end: ReceiveOutcome::EndOfStream,
    };
    let events = bench.events();
    bench.receive(2, 10);
    shows!(proof:
        "SDP-8.2.1-23" => events == [Event::PeerClosed, end(1)] || events == [end(1), Event::PeerClosed];
        "SDP-8.2.1-26" => bench.events() == [end(2)];
        "SDP-8.2.1-24" => bench.all().is_empty();
    );
    bench.send(1, 5);
    shows!(proof:
        "SDP-8.2.1-25" => bench.mids() == [0xff];
    );
    bench.host.machine.shut_down();
    let last = bench.messages();
    assert!(bench.all().is_empty(), "the peer may send messages before it receives the DisConn");
    bench.deliver(0xff, &[]);
    shows!(proof:
        "SDP-8.2.1-30" => last.iter().map(|message| message.mid).eq([DIS_CONN]);
        "SDP-8.2.1-32" => bench.all() == [Item::Fin];
    );
    assert_eq!(closed(&bench.events()), Some(true));
}

#[test]
fn only_an_abort_after_dis_conn_sends_abort_conn() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench();
    bench.send(1, 600);
    bench.all();
    bench.host.machine.abort(bench.now);
    let sent = bench.all();
    let events = bench.events();
    shows!(proof:
        "SDP-8.2.2-3" => sent.iter().all(|item| !matches!(item, Item::Message { .. }));
        "SDP-8.2.2-4" => sent == [Item::Reset];
        "SDP-8.2.2-7" => matches!(events[..], [.., Event::Sent { end: SendOutcome::Aborted, .. },
            Event::Closed { graceful: false, .. }]);
    );
    let mut bench = self::bench();
    bench.host.machine.shut_down();
    assert_eq!(bench.mids(), [DIS_CONN]);
    bench.host.machine.abort(bench.now);
    bench.host.run(bench.now);
    let before = bench.host.outgoing.clone();
    let after = bench.all();
    shows!(proof:
        "SDP-8.2.2-2" => matches!(&before.make_vec()[..], [Item::Message { octets, .. }] if octets[3] == ABORT_CONN);
        "SDP-14.2-1" => matches!(&after[0], Item::Message { solicited: true, .. });
        "SDP-8.2.2-13" => after[1..] == [Item::Fin];
    );
}

trait MakeVec {
    fn make_vec(&self) -> Vec<Item>;
}

impl MakeVec for std::collections::VecDeque<Item> {
    fn make_vec(&self) -> Vec<Item> {
        self.iter().cloned().collect()
    }
}

#[test]
fn tcp_alone_and_abort_conn_are_abortive_ends() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut cut = bench();
    cut.receive(1, 10);
    cut.host.arrive(cut.now, Item::Fin);
    let events = cut.events();
    let aborted = Event::Received { receive: ReceiveId(1), octets: 0, urgent: false, end: ReceiveOutcome::Aborted };
    shows!(proof:
        "SDP-8.2.2-5" => closed(&events) == Some(false);
        "SDP-8.2.1-19" => events.contains(&aborted);
    );
    let mut both = bench();
    both.host.machine.shut_down();
    both.messages();
    both.deliver(DIS_CONN, &[]);
    both.deliver(ABORT_CONN, &[]);
    let events = both.events();
    shows!(proof:
        "SDP-8.2.2-6" => closed(&events) == Some(false);
        "SDP-6.2.4-3" => events.contains(&Event::PeerClosed);
    );
    let mut late = bench();
    late.deliver(DIS_CONN, &[]);
    late.deliver(0xff, &[1]);
    shows!(proof:
        "SDP-8.2.1-9" => late.is_aborted();
    );
}

/// Two DisConns cross. A side that has sent its own DisConn and received the peer's DisConn is
/// allowed to end TCP.
#[test]
fn crossed_dis_conns_end_gracefully() {
    let mut bench = bench();
    bench.host.machine.shut_down();
    assert_eq!(bench.mids(), [DIS_CONN]);
    bench.deliver_with(0, DIS_CONN, 0, &[], None);
    assert!(bench.all().is_empty());
    bench.wait();
    assert_eq!(bench.all(), [Item::Fin]);
    assert_eq!(closed(&bench.events()), Some(true));
}

/// The reason for which the connection ended.
fn violation(bench: &mut Bench) -> Option<Violation> {
    bench.events().into_iter().find_map(|event| match event {
        Event::Closed { violation, .. } => violation,
        _ => None,
    })
}

#[test]
fn sends_dis_conn_once_and_after_all_data() {
    const SRC_AVAIL: u8 = 0xfe;
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut unread = bench();
    unread.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1; 10]].concat());
    unread.deliver(DIS_CONN, &[]);
    let mut owed = Bench::new(Policy { answer: SrcAvailAnswer::SendSm, ..crate::sdp::POLICY }, 16, 50);
    owed.receive(1, 200);
    owed.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1; 10]].concat());
    assert_eq!(owed.mids(), [4], "SendSm");
    owed.deliver(0xff, &[2; 40]);
    owed.deliver(DIS_CONN, &[]);
    shows!(proof:
        "SDP-8.2.1-5" => [&mut unread, &mut owed].map(violation) == [Some(Violation::Owed(90)), Some(Violation::Owed(50))];
    );
    let violation_after_dis_conn = |mid, rest: &[u8]| {
        let mut bench = bench();
        bench.deliver(DIS_CONN, &[]);
        bench.deliver(mid, rest);
        violation(&mut bench).map(|violation| violation.requirement().as_str())
    };
    shows!(proof:
        "SDP-8.2.1-9" => violation_after_dis_conn(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1; 10]].concat()) == Some("SDP-8.2.1-9");
        "SDP-8.2.1-7" => violation_after_dis_conn(DIS_CONN, &[]).is_some();
    );
    assert_eq!(violation_after_dis_conn(0xff, &[]), None, "an update");
}

/// Step R3 of section 8.2.1: the close is graceful if this side's DisConn has completed without
/// error, or if the peer acknowledges this DisConn.
#[test]
fn a_close_is_graceful_after_its_dis_conn_was_sent() {
    let end = |acknowledged, completed: Option<bool>| {
        let mut bench = bench();
        bench.host.machine.shut_down();
        bench.host.run(bench.now);
        let op = bench.host.completions.pop_front().unwrap();
        bench.deliver_with(0, DIS_CONN, acknowledged, &[], None);
        if let Some(ok) = completed {
            bench.host.machine.handle_completed(bench.now, op, ok);
            bench.host.run(bench.now);
        }
        bench.host.arrive(bench.now, Item::Fin);
        closed(&bench.events())
    };
    assert_eq!(end(0, None), Some(false));
    assert_eq!(end(0, Some(false)), Some(false));
    assert_eq!(end(0, Some(true)), Some(true));
    assert_eq!(end(1, None), Some(true));
}

#[test]
fn an_abort_conn_that_fails_ends_the_connection_at_once() {
    let mut bench = bench();
    bench.host.machine.shut_down();
    assert_eq!(bench.mids(), [DIS_CONN]);
    bench.host.machine.abort(bench.now);
    bench.host.run(bench.now);
    let op = bench.host.completions.pop_front().unwrap();
    bench.host.machine.handle_completed(bench.now, op, false);
    assert!(bench.is_aborted());
    assert_eq!(bench.host.machine.poll_timeout(), None);
}

/// Until TCP ends, a Read of the RNIC can still write into the receive. So the machine must report
/// the end of the receive after the end of TCP. `Host` checks this order.
#[test]
fn a_receive_with_a_read_in_progress_ends_after_tcp() {
    for shut_down in [false, true] {
        let mut bench = Bench::new(crate::sdp::POLICY, 16, 50);
        bench.receive(1, 200);
        if shut_down {
            bench.host.machine.shut_down();
        }
        bench.deliver(0xfe, &[src_ah(100, 7, 0), vec![1; 10]].concat());
        assert!(bench.all().iter().any(|item| matches!(item, Item::ReadRequest { .. })));
        bench.host.machine.abort(bench.now);
        let aborted =
            Event::Received { receive: ReceiveId(1), octets: 10, urgent: false, end: ReceiveOutcome::Aborted };
        assert_eq!(bench.all().last(), Some(&Item::Reset));
        assert!(bench.events().contains(&aborted));
    }
}
