//! Tests the states Idle and RTS of a Queue Pair, and the transitions between them
//! (draft-hilland-rddp-verbs, sections 6.2.1, 6.2.2, 6.6.1 and 13.1, Figures 7 and 8).

use bytes::Bytes;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::Opcode;
use weft_peer::Instant;
use weft_peer::verbs::{
    CompletionStatus, EventId, NotifyKind, QpError, QpModify, QpState, ReceiveWr, RnicSettings, TransmitResult,
};

use crate::verbs::peers::{Bench, PLAIN, Peers, Side, fpdu, llp_settings, shows, tagged, ulpdus, untagged, write};

fn send_of(payload: &[u8]) -> Vec<u8> {
    untagged(Opcode::SEND, 0, 1, 0, true, payload)
}

/// A side in Idle with a Send and a receive posted.
fn loaded() -> Side {
    let mut side = Side::new(|_| ());
    let wr = side.send_of(1, 0, 4);
    side.post(wr);
    side.post_receive(2, 0, 9);
    side
}

#[test]
fn nothing_moves_before_rts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = loaded();
    let before = (side.transmit(Instant::ORIGIN, 99), side.poll().len(), side.state());
    shows! { proof:
        "VERBS-6.2.1.3-6" => before == ((Vec::new(), None), 0, QpState::Idle);
        "VERBS-6.2.1-5" => side.rnic.query_qp(side.qp).unwrap().llp.is_none();
        "VERBS-6.1.1-19" => side.transmit(Instant::ORIGIN, 99).0.is_empty();
    }
    side.modify(&QpModify::to_rts(side.llp)).unwrap();
    let sent = side.transmit(Instant::ORIGIN, usize::MAX).0;
    shows! { proof:
        "VERBS-5.1.1.1-8" => ulpdus(&sent).len() == 1;
        "VERBS-6.2.2-1" => side.poll().len() == 1;
        "VERBS-6.2-3" => QpState::ALL.into_iter().all(|state| {
            let mut side = Side::new(|_| ());
            if state != QpState::Idle {
                side = side.start();
            }
            if !matches!(state, QpState::Idle | QpState::Rts) {
                side.to(state).unwrap();
            }
            side.transmit(Instant::ORIGIN, usize::MAX);
            let early = Instant::ORIGIN + std::time::Duration::from_secs(9);
            side.rnic.handle_timeout(early, side.llp);
            side.state() == state
        });
    }
    let mut side = loaded();
    shows! { proof:
        "VERBS-6.2.1.3-10" => side.to(QpState::Error) == Ok(()) && side.state() == QpState::Error;
        "VERBS-6.1.1-17" => QpState::ALL.map(|state| state.to_string()) == ["Idle", "RTS", "Closing", "Terminate", "Error"];
    }
}

#[test]
fn with_a_stream_message() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut side = loaded();
    let message = Bytes::from_static(b"the last streaming message");
    side.modify(&QpModify { stream_message: Some(message.clone()), ..QpModify::to_rts(side.llp) }).unwrap();
    side.rnic.handle_octets(Instant::ORIGIN, side.llp, &fpdu(&send_of(b"meanwhile")));
    let (sent, _) = side.transmit(Instant::ORIGIN, usize::MAX);
    let (raw, framed) = sent.split_at(message.len());
    shows! { proof:
        "VERBS-6.2.1.2-12" => raw == message;
        "VERBS-6.2.1.3-8" => ulpdus(framed).len() == 1 && side.state() == QpState::Rts;
        "VERBS-6.2.1.2-14" => side.octets()[..9] == *b"meanwhile";
        "VERBS-6.6.1.1-4" => sent.starts_with(&message);
    }
    let mut side = loaded();
    side.modify(&QpModify::to_rts(side.llp)).unwrap();
    let (sent, _) = side.transmit(Instant::ORIGIN, usize::MAX);
    shows! { proof:
        "VERBS-6.2.1.3-9" => ulpdus(&sent).len() == 1 && sent[3] & 0xf == 3;
        "VERBS-6.6.1.2-5" => u16::from_be_bytes([sent[0], sent[1]]) == 18 + 4;
        "VERBS-13.1-4" => sent.len() == fpdu(&send_of(b"four")).len();
        // After the streaming message, a Queue Pair sends only FPDUs. In RTS, it cannot send
        // another streaming message.
        "VERBS-6.6.1-3" => side.modify(&QpModify { stream_message: Some(message.clone()), ..QpModify::to(QpState::Rts) })
            == Err(QpError::CannotChangeAttribute) && side.transmit(Instant::ORIGIN, 9).0.is_empty();
    }
}

/// The last streaming message of a Responder is MPA's Reply. After the Reply, the Responder sends
/// nothing before it has received an FPDU.
#[test]
fn the_side_that_must_receive_first() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let responder = || Side::with(RnicSettings::default(), llp_settings(PLAIN, 1460, false), |_| ());
    let mut side = responder();
    side.rnic.handle_octets(Instant::ORIGIN, side.llp, &fpdu(&send_of(b"early")));
    side.post_receive(1, 0, 9);
    let before = side.poll().len();
    side.modify(&QpModify::to_rts(side.llp)).unwrap();
    shows! { proof:
        "VERBS-6.2.1.2-8" => before == 0 && side.statuses() == [(1, CompletionStatus::Success)];
        "VERBS-6.6.1.1-3" => side.octets()[..5] == *b"early";
    }
    let mut side = responder();
    side.post_receive(1, 0, 9);
    let wr = side.send_of(2, 0, 1);
    side.post(wr);
    side.rnic.request_completion_notification(side.cq, NotifyKind::NextSolicited).unwrap();
    side.modify(&QpModify { stream_message: Some(Bytes::from_static(b"reply")), ..QpModify::to_rts(side.llp) })
        .unwrap();
    let silent = side.transmit(Instant::ORIGIN, usize::MAX).0;
    side.rnic.handle_octets(Instant::ORIGIN, side.llp, &fpdu(&untagged(Opcode::SEND_SE, 0, 1, 0, true, b"go")));
    let completions = side.poll();
    shows! { proof:
        "VERBS-6.6.1.1-5" => silent == b"reply" && ulpdus(&side.transmit(Instant::ORIGIN, usize::MAX).0).len() == 1;
        "VERBS-6.6.1.1-6" => completions[0].solicited;
    }
}

#[test]
fn starting_at_connection_set_up() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let peers = |a_posts: bool, b_posts: bool| {
        let side = || Side::with(RnicSettings::default(), llp_settings(PLAIN, 1460, true), |_| ());
        let (mut a, mut b) = (side(), side());
        for (side, posts) in [(&mut a, a_posts), (&mut b, b_posts)] {
            side.post_receive(1, 0, 9);
            if posts {
                let wr = side.send_of(2, 100, 3);
                side.post(wr);
            }
            side.modify(&QpModify::to_rts(side.llp)).unwrap();
        }
        let mut peers = Peers { now: Instant::ORIGIN, a, b, segment: 99, take: 99, from_a: Vec::new() };
        peers.run();
        peers
    };
    let ids = |side: &mut Side| side.statuses().into_iter().map(|done| done.0).collect::<Vec<_>>();
    shows! { proof:
        "VERBS-13.1-7" => {
            let mut peers = peers(true, true);
            ids(&mut peers.a).len() == 2 && ids(&mut peers.b).len() == 2
        };
        "VERBS-13.1-3" => ids(&mut peers(true, false).b) == [1];
        "VERBS-6.6.1.2-3" => ids(&mut peers(true, false).a) == [2];
        "VERBS-13.1-1" => {
            let mut peers = peers(false, false);
            let wr = write(&peers.a, 5, 0, 3, peers.b.remote(10));
            peers.a.post(wr);
            peers.run();
            ids(&mut peers.a) == [5] && peers.b.event_ids().is_empty()
        };
        "VERBS-6.6.1.1-2" => ids(&mut peers(false, true).a) == [1];
        "VERBS-6.6.1.2-2" => ids(&mut peers(true, false).b).len() == 1;
        "VERBS-6.6.1.2-4" => {
            let mut peers = peers(false, false);
            let wr = peers.a.send_of(8, 0, 1);
            peers.a.post(wr);
            peers.run();
            ids(&mut peers.a) == [8] && ids(&mut peers.b) == [1]
        };
        "VERBS-6.6.1.2-7" => {
            let mut peers = peers(true, false);
            for n in 10..60 {
                let wr = write(&peers.a, n, 0, 3, peers.b.remote(10));
                peers.a.post(wr);
            }
            peers.run();
            ids(&mut peers.a).len() == 51
        };
    }
}

/// Streaming octets arrive where an FPDU is expected. They do not look like an FPDU, so this is an
/// error.
#[test]
fn two_streaming_messages_are_one_too_many() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let stray = b"GET / HTTP/1.0\r\n\r\n streaming octets where an FPDU should be, and many more of them, so that it is ample ....";
    for _ in 0..200 {
        bench.side.rnic.handle_octets(Instant::ORIGIN, bench.side.llp, stray);
    }
    shows! { proof: "VERBS-6.6.1.2-6" => bench.side.state() == QpState::Terminate && !bench.side.event_ids().is_empty(); }
    shows! { proof:
        "VERBS-6.6.1-1" => {
            // This side sends its last streaming message. The octets that it received in streaming
            // mode do not go to the RNIC. Then FPDUs pass in both directions.
            let mut late = Bench { side: Side::new(|_| ()) };
            late.side.post_receive(1, 0, 9);
            let wr = late.side.send_of(2, 0, 1);
            late.side.post(wr);
            let message = Some(Bytes::from_static(b"220 ready"));
            late.side.modify(&QpModify { stream_message: message, ..QpModify::to_rts(late.side.llp) }).unwrap();
            let (sent, _) = late.side.transmit(Instant::ORIGIN, usize::MAX);
            late.hand_in(&send_of(b"late"));
            sent.starts_with(b"220 ready") && ulpdus(&sent[9..]).len() == 1
                && late.side.statuses() == [(2, CompletionStatus::Success), (1, CompletionStatus::Success)]
        };
    }
}

#[test]
fn work_in_rts() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    bench.side.octets()[..2].copy_from_slice(b"ab");
    let list = vec![bench.side.send_of(1, 0, 1), bench.side.send_of(2, 1, 1)];
    let posted = bench.side.rnic.post_send(bench.side.qp, list);
    let received =
        bench.side.rnic.post_receive(bench.side.qp, vec![ReceiveWr { wr_id: 3, scatter: vec![bench.side.sge(9, 9)] }]);
    let still = bench.side.state();
    let (sent, _) = bench.sent();
    shows! { proof:
        "VERBS-6.2.2.4-9" => (posted, received, still) == (Ok(2), Ok(1), QpState::Rts);
        "VERBS-6.2.2.4-11" => sent.len() == 2 && bench.side.state() == QpState::Rts;
        "VERBS-6.2.2-3" => sent[0].last() == Some(&b'a') && sent[1].last() == Some(&b'b');
    }
    bench.side.poll();
    bench.hand_in(&send_of(b"in"));
    let done = bench.side.statuses();
    bench.hand_in(&tagged(Opcode::WRITE, bench.side.stag.to_bits(), crate::verbs::peers::VA + 50, b"written"));
    shows! { proof:
        "VERBS-6.2.2-8" => done == [(3, CompletionStatus::Success)];
        "VERBS-6.2.2.4-10" => bench.side.state() == QpState::Rts && bench.side.octets()[9..11] == *b"in";
        "VERBS-6.2.2-4" => bench.side.octets()[50..57] == *b"written";
        "VERBS-6.2.2-5" => {
            bench.hand_in(&tagged(Opcode::WRITE, 0x7700, 0, b"x"));
            bench.side.state() == QpState::Terminate
        };
    }
}

#[test]
fn the_peer_closes() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut quiet = Bench::new();
    quiet.side.post_receive(1, 0, 9);
    quiet.side.rnic.handle_fin(Instant::ORIGIN, quiet.side.llp);
    let closing = quiet.side.state();
    let (sent, end) = quiet.sent();
    shows! { proof:
        "VERBS-6.2.2.2-1" => closing != QpState::Rts;
        "VERBS-6.2.2.4-25" => closing == QpState::Closing
            && (sent.is_empty(), end) == (true, Some(TransmitResult::Fin));
        "VERBS-6.2.2.2-2" => quiet.side.state() == QpState::Idle && quiet.side.event_ids() == [EventId::LlpCloseComplete];
        // The Queue Pair has already left Closing. A receive that is posted now waits in Idle.
        "VERBS-6.2.1-8" => {
            quiet.side.poll();
            quiet.side.post_receive(5, 0, 9);
            quiet.side.poll().is_empty() && quiet.side.state() == QpState::Idle
        };
    }
    let mut busy = Bench::new();
    let wr = crate::verbs::peers::read(&busy.side, 1, 0, 4, busy.side.remote(0));
    busy.side.post(wr);
    busy.sent();
    busy.side.rnic.handle_fin(Instant::ORIGIN, busy.side.llp);
    let mut terminated = Bench::new();
    terminated.hand_in(&untagged(Opcode::TERMINATE, 2, 1, 0, true, &[0, 0, 0, 0]));
    shows! { proof:
        "VERBS-6.2.2.4-24" => busy.side.state() == QpState::Terminate && busy.code() == Some(0x0207);
        "VERBS-6.2.2.2-4" => busy.side.event_ids() == [EventId::BadLlpClose]
            && terminated.side.event_ids() == [EventId::TerminateReceived];
        "VERBS-6.2.2.3-2" => {
            let mut remote = Bench::new();
            remote.hand_in(&send_of(b"no receive"));
            remote.side.state() == QpState::Terminate && terminated.side.state() == QpState::Terminate
        };
        "VERBS-6.2.2.3-3" => {
            let mut remote = Bench::new();
            remote.hand_in(&tagged(Opcode::WRITE, 0x7700, 0, b"x"));
            remote.side.event_ids() == [EventId::ProtectionInvalidStag]
        };
    }
}
