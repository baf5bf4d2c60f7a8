//! Tests Memory Windows that peers use: access, invalidation, and the effects of a deallocation
//! (draft-hilland-rddp-verbs, sections 7.10.4 and 7.10.6).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_peer::Instant;
use weft_peer::memory::{Access, Bind, Stag, StagKey, StagState};
use weft_peer::verbs::{CompletionStatus, EventId, Operation, QpState, RemoteAddress, SendWr, Sge};

use crate::verbs::peers::{Bench, VA, fpdu, register, shows, tagged, untagged};
use crate::verbs::windows::{bind, bound, done, on, sibling, state, window, written};

#[test]
fn access_through_a_window() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // Delivers a Write to a window. `enabled` decides whether the Queue Pair allows the Write, and
    // `write` decides whether the window allows it. Returns the place of the Write, and the events.
    let rights = |enabled: bool, write: bool| {
        let mut bench = Bench::with(|init| init.inbound_write = enabled);
        let index = window(&mut bench);
        let (stag, _) = bind(&mut bench, index, 7, |bind| bind.access.write = write);
        written(&mut bench, stag, 0, b"x")
    };
    let elsewhere = || {
        let (stag, mut bench) = bound(|_| ());
        let pair = sibling(&mut bench.side, None);
        let mut bench = on(bench, pair);
        let result = written(&mut bench, stag, 0, b"x");
        (result, bench.code())
    };
    let none = |event| (None, vec![event]);
    shows! { proof:
        "VERBS-7.10.6.2-8" => [rights(false, false).0, rights(false, true).0, rights(true, false).0, rights(true, true).0]
            == [None, None, None, Some(100)];
        "VERBS-7.10.6.2-12" => rights(true, false) == none(EventId::ProtectionAccessRights) && rights(true, true).1.is_empty();
        "VERBS-7.10.6.2-13" => rights(false, true) == none(EventId::WriteNotEnabled);
        "VERBS-7.10.2-22" => elsewhere() == (none(EventId::ProtectionInvalidPd), Some(0x1102));
        "VERBS-7.10.2-7" => elsewhere().0.0.is_none();
        "VERBS-7.10.2-23" => {
            let (stag, mut bench) = bound(|_| ());
            written(&mut bench, stag, 49, b"xy") == none(EventId::ProtectionBaseAndBounds) && bench.code() == Some(0x1101)
        };
        "VERBS-7.10.6.2-4" => {
            let (stag, mut bench) = bound(|_| ());
            let fits = written(&mut bench, stag, 48, b"xy").0;
            fits == Some(148) && written(&mut bench, stag, 50, b"z").1 == [EventId::ProtectionBaseAndBounds]
        };
        "VERBS-7.10.6.2-2" => {
            let mut bench = Bench::new();
            let index = window(&mut bench);
            let stag = Stag { index, key: StagKey(7) };
            written(&mut bench, stag, 0, b"x") == none(EventId::ProtectionInvalidStag) && bench.code() == Some(0x1100)
        };
    }
}

#[test]
fn a_refused_access_changes_nothing() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let with = |change: fn(&mut Bind), key: u8, to: u64| {
        let (stag, mut bench) = bound(change);
        let (place, events) = written(&mut bench, Stag { key: StagKey(key), ..stag }, to, b"xy");
        (place, events, bench.code())
    };
    let results = [
        with(|bind| bind.access.write = false, 7, 0),
        with(|_| (), 7, 50),
        with(|_| (), 7, u64::MAX),
        with(|_| (), 0, 0),
    ];
    use EventId::{ProtectionAccessRights, ProtectionBaseAndBounds, ProtectionInvalidStag, ProtectionWrap};
    shows! { proof:
        "VERBS-7.10.6.2-9" => results.iter().all(|result| result.0.is_none());
        "VERBS-7.10.6.2-10" => results.iter().map(|result| result.1[0])
            .eq([ProtectionAccessRights, ProtectionBaseAndBounds, ProtectionWrap, ProtectionInvalidStag]);
        "VERBS-7.10.6.2-1" => results.iter().map(|result| result.2).eq([Some(0x1102), Some(0x1101), Some(0x1103), Some(0x1100)]);
    }
}

#[test]
fn invalidation() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let by_peer = |opcode: Opcode| {
        let (stag, mut bench) = bound(|_| ());
        bench.side.post_receive(5, 0, 9);
        let mut ulpdu = untagged(opcode, 0, 1, 0, true, b"x");
        ulpdu[2..6].copy_from_slice(&stag.to_bits().to_be_bytes());
        bench.hand_in(&ulpdu);
        (bench.side.statuses(), state(&bench, stag))
    };
    let by_read = || {
        let (stag, mut bench) = bound(|_| ());
        let local = Sge { stag: stag.to_bits(), tagged_offset: 3, length: 1 };
        let remote = RemoteAddress { stag: 9, tagged_offset: 0 };
        bench.side.post(SendWr::new(6, Operation::Read { local, remote, invalidate_local: true }));
        bench.sent();
        bench.hand_in(&tagged(Opcode::READ_RESPONSE, stag.to_bits(), 3, b"x"));
        (bench.side.statuses(), state(&bench, stag), bench.side.octets()[103])
    };
    let (stag, mut bench) = bound(|_| ());
    let first = done(&mut bench, Operation::InvalidateLocal(stag));
    let once = state(&bench, stag);
    let second = done(&mut bench, Operation::InvalidateLocal(stag));
    use CompletionStatus::Success;
    shows! { proof:
        "VERBS-7.10.5-4" => [by_peer(Opcode::SEND_INVALIDATE), by_peer(Opcode::SEND_SE_INVALIDATE)]
            == [(vec![(5, Success)], StagState::Invalid), (vec![(5, Success)], StagState::Invalid)];
        "VERBS-7.10.5-5" => by_read() == (vec![(6, Success)], StagState::Invalid, b'x');
        "VERBS-7.10.4-2" => (first, once) == (Success, StagState::Invalid);
        "VERBS-7.10.4.1-5" => second == Success && state(&bench, stag) == StagState::Invalid;
        "VERBS-7.10.4-9" => bench.side.rnic.destroy_qp(bench.side.qp) == Ok(());
        "VERBS-7.10.4-7" => {
            let pair = sibling(&mut bench.side, None);
            let mut bench = on(bench, pair);
            bind(&mut bench, stag.index, 8, |_| ()).1 == Success
        };
        "VERBS-7.10.4-10" => {
            let (stag, mut bench) = bound(|_| ());
            done(&mut bench, Operation::InvalidateLocal(stag));
            bind(&mut bench, stag.index, 9, |_| ()).1 == Success
        };
        "VERBS-7.10.4.1-2" => {
            let (stag, mut bench) = bound(|_| ());
            done(&mut bench, Operation::InvalidateLocal(stag));
            written(&mut bench, stag, 0, b"x") == (None, vec![EventId::ProtectionInvalidStag])
        };
    }
}

#[test]
fn invalidation_is_the_queue_pairs_own() {
    let mut proof = Coverage::new(CoverageKind::Test);
    // Invalidates a window on a second Queue Pair. If `bound_first` is true, the window is bound on
    // the first Queue Pair. If `foreign` is true, the second Queue Pair has a different PD.
    let from = |foreign: bool, bound_first: bool| {
        let mut bench = Bench::new();
        let index = window(&mut bench);
        let stag = Stag { index, key: StagKey(7) };
        if bound_first {
            bind(&mut bench, index, 7, |_| ());
        }
        let pd = foreign.then(|| bench.side.rnic.memory_mut().allocate_pd().unwrap());
        let pair = sibling(&mut bench.side, pd);
        let mut bench = on(bench, pair);
        let status = done(&mut bench, Operation::InvalidateLocal(stag));
        (status, state(&bench, stag), bench.side.state())
    };
    let by_peer = || {
        let (stag, mut bench) = bound(|_| ());
        let pair = sibling(&mut bench.side, None);
        let mut bench = on(bench, pair);
        bench.side.post_receive(5, 0, 9);
        let mut ulpdu = untagged(Opcode::SEND_INVALIDATE, 0, 1, 0, true, b"x");
        ulpdu[2..6].copy_from_slice(&stag.to_bits().to_be_bytes());
        bench.hand_in(&ulpdu);
        (bench.side.statuses(), bench.code(), state(&bench, stag))
    };
    use CompletionStatus::{InvalidPdId, InvalidateRefused, Success};
    shows! { proof:
        "VERBS-7.10.6.3-2" => from(false, true) == (InvalidPdId, StagState::Valid, QpState::Terminate);
        "VERBS-7.10.6.3-3" => from(true, false).0 == InvalidPdId && from(false, false).0 == Success;
        "VERBS-7.10.6.3-5" => by_peer() == (vec![(5, InvalidateRefused)], Some(0x0103), StagState::Valid);
        "VERBS-7.10.6.3-1" => from(false, true).1 == StagState::Valid && by_peer().2 == StagState::Valid;
        "VERBS-7.10.2-35" => from(true, true).0 == InvalidPdId && from(false, false).1 == StagState::Invalid;
        "VERBS-7.10.4-6" => {
            let (stag, mut bench) = bound(|_| ());
            done(&mut bench, Operation::InvalidateLocal(stag));
            let window = bench.side.rnic.memory().query_window(stag.index).unwrap();
            (window.state, window.pd, window.key) == (StagState::Invalid, bench.side.pd, None)
                && bench.side.rnic.memory_mut().deallocate_stag(bench.side.stag.index).is_ok()
        };
    }
}

/// A Read of the peer is in progress when its window is deallocated.
#[test]
fn a_window_is_deallocated_during_a_read() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let reading = || {
        let mut bench = Bench::new();
        let buffer = bench.side.rnic.memory_mut().allocate_buffer(1 << 20).unwrap();
        let region = register(&mut bench.side.rnic, bench.side.pd, buffer, Access::ALL);
        let index = window(&mut bench);
        let (stag, status) = bind(&mut bench, index, 7, |bind| {
            (bind.region, bind.address, bind.length) = (region, VA, 1 << 20);
        });
        assert_eq!(status, CompletionStatus::Success);
        let mut payload = Vec::new();
        ReadRequest { sink_stag: 1, sink_to: 0, rdmardsz: 1 << 20, src_stag: stag.to_bits(), src_to: 0 }
            .emit(&mut payload);
        bench.hand_in(&untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &payload));
        let mut first = 0;
        bench.side.rnic.poll_transmit(Instant::ORIGIN, bench.side.llp, |slices| {
            first = slices.iter().map(|slice| slice.len()).sum();
            first
        });
        assert!(first > 0);
        (stag, bench)
    };
    let (stag, mut gone) = reading();
    gone.side.rnic.memory_mut().deallocate_stag(stag.index).unwrap();
    let (sent, _) = gone.sent();
    shows! { proof:
        "VERBS-7.10.4.1-3" => sent.len() == 1 && sent[0][1] & 0xf == 7 && gone.side.event_ids() == [EventId::IrrqInvalidStag];
    }
    let (stag, mut bench) = reading();
    bench.side.post_receive(5, 0, 9);
    let mut ulpdu = untagged(Opcode::SEND_INVALIDATE, 0, 1, 0, true, b"x");
    ulpdu[2..6].copy_from_slice(&stag.to_bits().to_be_bytes());
    bench.side.rnic.handle_octets(Instant::ORIGIN, bench.side.llp, &fpdu(&ulpdu));
    let (sent, _) = bench.sent();
    shows! { proof:
        "VERBS-7.10.4.1-1" => sent.last().is_some_and(|ulpdu| ulpdu[1] & 0xf == 7) && bench.side.event_ids() == [EventId::IrrqInvalidStag];
    }
}
