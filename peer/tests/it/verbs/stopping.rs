//! These tests check what happens when an RNIC terminates a connection: where sending and receiving
//! stop, and what the Terminate contains (draft-hilland-rddp-verbs, section 6.4, Figure 12).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_peer::Instant;
use weft_peer::memory::Access;
use weft_peer::verbs::{CompletionStatus, EventId, Operation, Payload, QpState, SendWr, Sge};

use crate::verbs::peers::{Bench, VA, number, register, shows, tagged, ulpdus, untagged, write};

/// Length in octets of a message that needs many segments.
const LONG: u32 = 20_000;

fn opcodes(sent: &[Vec<u8>]) -> Vec<u8> {
    sent.iter().map(|ulpdu| ulpdu[1] & 0xf).collect()
}

fn request(msn: u32, stag: u32, length: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    ReadRequest { sink_stag: 1, sink_to: 0, rdmardsz: length, src_stag: stag, src_to: VA }.emit(&mut payload);
    untagged(Opcode::READ_REQUEST, 1, msn, 0, true, &payload)
}

/// Returns the ULPDUs of the first batch of output. The batch has complete FPDUs. The RNIC has not
/// built the rest of the output yet.
fn first_batch(bench: &mut Bench) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    bench.side.rnic.poll_transmit(Instant::ORIGIN, bench.side.llp, |slices| {
        slices.iter().for_each(|slice| out.extend_from_slice(slice));
        out.len()
    });
    ulpdus(&out)
}

/// Posts a long Write from a region that is deallocated after the first batch. Returns the ULPDUs
/// of the first batch, the later ULPDUs, and the bench.
fn source_gone() -> (Vec<Vec<u8>>, Vec<Vec<u8>>, Bench) {
    let mut bench = Bench::new();
    let pd = bench.side.pd;
    let buffer = bench.side.rnic.memory_mut().allocate_buffer(1 << 20).unwrap();
    let stag = register(&mut bench.side.rnic, pd, buffer, Access::ALL);
    let gather = vec![Sge { stag: stag.to_bits(), tagged_offset: VA, length: 1 << 20 }];
    let remote = bench.side.remote(0);
    bench.side.post(SendWr::new(1, Operation::Write { payload: Payload::Gather(gather), remote }));
    let before = first_batch(&mut bench);
    bench.side.rnic.memory_mut().deallocate_stag(stag.index).unwrap();
    let (after, _) = bench.sent();
    (before, after, bench)
}

#[test]
fn at_the_boundary_of_a_segment() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (before, after, mut bench) = source_gone();
    let last_of = |ulpdu: &Vec<u8>| ulpdu[0] & 0x40 != 0;
    shows! { proof:
        "VERBS-6.4-4" => before.len() > 1 && !before.iter().any(last_of);
        "VERBS-6.4-5" => opcodes(&after) == [7];
        "VERBS-6.4-1" => before.iter().all(|ulpdu| ulpdu.len() == before[0].len());
        "VERBS-6.4-3" => after.len() == 1 && after[0][1] & 0xf == 7;
        "VERBS-6.4-26" => after[0][18..] == [0, 0, 0, 0];
    }
    assert_eq!(bench.side.statuses(), [(1, CompletionStatus::InvalidStag)]);
}

#[test]
fn at_the_consumers_request() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let list =
        vec![write(&bench.side, 1, 0, 60_000, bench.side.remote(0)), write(&bench.side, 2, 0, 4, bench.side.remote(0))];
    bench.side.rnic.post_send(bench.side.qp, list).unwrap();
    let before = first_batch(&mut bench);
    bench.side.to(QpState::Terminate).unwrap();
    let (after, _) = bench.sent();
    let ended = before.iter().chain(&after).filter(|ulpdu| ulpdu[1] & 0xf == 0 && ulpdu[0] & 0x40 != 0).count();
    shows! { proof:
        "VERBS-6.4-9" => opcodes(&after) == [7];
        "VERBS-6.4-10" => ended <= 1;
        "VERBS-6.4-25" => after[0][18..] == [0, 0, 0, 0] && after[0].len() == 22;
    }
    bench.hand_in(&tagged(Opcode::WRITE, bench.side.stag.to_bits(), VA, b"late"));
    shows! { proof: "VERBS-6.4-8" => bench.side.octets()[..4] == [0; 4]; }
    let mut bench = Bench::new();
    bench.side.post_receive(1, 0, 100);
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, false, b"half of it"));
    bench.side.to(QpState::Terminate).unwrap();
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 10, true, b"and the rest"));
    shows! { proof:
        "VERBS-6.4-21" => bench.side.statuses() == [(1, CompletionStatus::Flushed)];
    }
}

#[test]
fn in_a_read_response() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let pd = bench.side.pd;
    let buffer = bench.side.rnic.memory_mut().allocate_buffer(1 << 20).unwrap();
    let source = register(&mut bench.side.rnic, pd, buffer, Access::ALL);
    bench.hand_in(&request(1, source.to_bits(), 1 << 20));
    let before = first_batch(&mut bench);
    bench.side.rnic.memory_mut().deallocate_stag(source.index).unwrap();
    let (after, _) = bench.sent();
    let record = bench.side.rnic.query_qp(bench.side.qp).unwrap().terminate.unwrap().terminate;
    shows! { proof:
        "VERBS-6.4-13" => before.len() > 1 && opcodes(&after) == [7];
        "VERBS-6.4-29" => number(record.error) == 0x0100 && record.read_request.is_some() && record.ddp_header.is_some();
    }
    assert_eq!(bench.side.event_ids(), [EventId::IrrqInvalidStag]);
}

#[test]
fn errors_of_inbound_messages() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let record = |ulpdu: &[u8]| {
        let mut bench = Bench::new();
        bench.hand_in(ulpdu);
        bench.terminate().unwrap()
    };
    let a_write = tagged(Opcode::WRITE, 0x7700, VA, b"x");
    let a_send = untagged(Opcode::SEND, 0, 1, 0, true, b"x");
    let a_read = request(1, 0x7700, 1);
    let a_response = tagged(Opcode::READ_RESPONSE, 5, 0, b"");
    shows! { proof:
        "VERBS-6.4-28" => [&a_write, &a_send, &a_read, &a_response].into_iter().all(|ulpdu| {
            let terminate = record(ulpdu);
            terminate.ddp_header.is_some_and(|header| ulpdu.starts_with(header.as_octets()))
        });
        "VERBS-6.4-2" => record(&a_write).segment_length == Some(15) && record(&a_read).read_request.is_some()
            && record(&a_write).read_request.is_none();
        "VERBS-6.4-17" => {
            let mut bench = Bench::new();
            bench.hand_in(&a_write);
            bench.hand_in(&a_send);
            bench.side.event_ids() == [EventId::ProtectionInvalidStag] && bench.code() == Some(0x1100)
        };
        // Half an FPDU is not delivered and has no effect.
        "VERBS-6.4-16" => {
            let mut bench = Bench::new();
            let octets = crate::verbs::peers::fpdu(&a_write);
            let llp = bench.side.llp;
            bench.side.rnic.handle_octets(Instant::ORIGIN, llp, &octets[..octets.len() - 1]);
            let before = bench.side.state();
            bench.side.rnic.handle_octets(Instant::ORIGIN, llp, &octets[octets.len() - 1..]);
            (before, bench.side.state()) == (QpState::Rts, QpState::Terminate)
        };
        "VERBS-6.4-31" => {
            let mut bench = Bench::new();
            bench.hand_in(&untagged(Opcode::TERMINATE, 2, 1, 0, true, &[0, 0, 0, 0]));
            bench.sent().0.is_empty()
        };
    }
    // A local error does not wait for the rest of a segment that is arriving.
    let mut bench = Bench::new();
    let llp = bench.side.llp;
    bench.side.rnic.handle_octets(Instant::ORIGIN, llp, &crate::verbs::peers::fpdu(&a_write)[..9]);
    let bad = bench.side.send_of(1, 1 << 40, 4);
    bench.side.post(bad);
    shows! { proof: "VERBS-6.4-19" => bench.code() == Some(0) && bench.side.state() == QpState::Terminate; }
}

/// If a CQ overflows, the side sends at most the message that is in progress.
#[test]
fn for_a_completion_without_a_cq_entry() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    bench.side.rnic.modify_cq(bench.side.cq, 1).unwrap();
    let list: Vec<_> = (0..4).map(|n| write(&bench.side, n, 0, LONG, bench.side.remote(0))).collect();
    bench.side.rnic.post_send(bench.side.qp, list).unwrap();
    let (sent, _) = bench.sent();
    let complete = sent.iter().filter(|ulpdu| ulpdu[1] & 0xf == 0 && ulpdu[0] & 0x40 != 0).count();
    shows! { proof: "VERBS-6.4-14" => complete == 2 && sent.last().is_some_and(|ulpdu| ulpdu[1] & 0xf == 7); }
}
