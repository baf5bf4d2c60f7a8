//! These tests check the effect of each error of an inbound segment (draft-hilland-rddp-verbs,
//! Figure 24), and the Terminate that is sent. The module `figure_23` tests errors of work
//! requests.

use bytes::Bytes;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::{RequirementId, requirement};
use weft_peer::Instant;
use weft_peer::memory::{Access, Stag, StagKey};
use weft_peer::verbs::{CompletionStatus, EventId, Operation, Payload, QpState, SendWr};

use crate::verbs::peers::{Bench, LENGTH, Peers, VA, number, register, shows, tagged, untagged};

/// The outcome of an error.
pub(crate) struct Outcome {
    pub(crate) code: Option<u16>,
    pub(crate) events: Vec<EventId>,
    pub(crate) statuses: Vec<CompletionStatus>,
    pub(crate) state: QpState,
}

impl Bench {
    pub(crate) fn outcome(&mut self) -> Outcome {
        let code = self.code();
        let events = self.side.event_ids();
        let statuses = self.side.statuses().into_iter().map(|(_, status)| status).collect();
        Outcome { code, events, statuses, state: self.side.state() }
    }
}

/// Delivers a faulty ULPDU. Returns whether this causes the Asynchronous Event `event` and a
/// Terminate with `code` (Figure 24).
fn raises_event(bench: &mut Bench, ulpdu: &[u8], code: u16, event: EventId) -> bool {
    bench.hand_in(ulpdu);
    let outcome = bench.outcome();
    (outcome.code, outcome.events.as_slice(), outcome.state) == (Some(code), &[event], QpState::Terminate)
        && outcome.statuses.is_empty()
}

fn read_of(stag: u32, to: u64, length: u32) -> Vec<u8> {
    let mut request = Vec::new();
    ReadRequest { sink_stag: 1, sink_to: 0, rdmardsz: length, src_stag: stag, src_to: to }.emit(&mut request);
    untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &request)
}

#[test]
fn figure_24_tagged_segments() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut row = |id: RequirementId, code, event, ulpdu: fn(&mut Bench) -> Vec<u8>| {
        let mut bench = Bench::new();
        let ulpdu = ulpdu(&mut bench);
        proof.verify(id, || assert!(raises_event(&mut bench, &ulpdu, code, event), "{id}"));
    };
    row(requirement!("VERBS-8.3.3-20"), 0x1100, EventId::ProtectionInvalidStag, |bench| {
        tagged(Opcode::WRITE, bench.side.stag.to_bits() ^ 1, VA, b"x")
    });
    row(requirement!("VERBS-8.3.3-21"), 0x1101, EventId::ProtectionBaseAndBounds, |bench| {
        tagged(Opcode::WRITE, bench.side.stag.to_bits(), VA + LENGTH - 1, b"xy")
    });
    row(requirement!("VERBS-8.3.3-22"), 0x1102, EventId::ProtectionAccessRights, |bench| {
        let side = &mut bench.side;
        let stag = register(&mut side.rnic, side.pd, side.buffer, Access::LOCAL);
        tagged(Opcode::WRITE, stag.to_bits(), VA, b"x")
    });
    row(requirement!("VERBS-8.3.3-23"), 0x1102, EventId::ProtectionInvalidPd, |bench| {
        let side = &mut bench.side;
        let other = side.rnic.memory_mut().allocate_pd().unwrap();
        let stag = register(&mut side.rnic, other, side.buffer, Access::ALL);
        tagged(Opcode::WRITE, stag.to_bits(), VA, b"x")
    });
    row(requirement!("VERBS-8.3.3-24"), 0x1103, EventId::ProtectionWrap, |bench| {
        tagged(Opcode::WRITE, bench.side.stag.to_bits(), u64::MAX, b"xy")
    });
    row(requirement!("VERBS-8.1.3.2.1-3"), 0x1100, EventId::ProtectionInvalidStag, |bench| {
        let at = bench.side.buffer.address().0;
        tagged(Opcode::WRITE, 0, at, b"x")
    });
    row(requirement!("VERBS-8.3.3-16"), 0x0206, EventId::UnexpectedOpcode, |_| {
        tagged(Opcode::READ_RESPONSE, 1, 0, b"")
    });
    let mut disabled = Bench::with(|init| init.inbound_write = false);
    let write = tagged(Opcode::WRITE, disabled.side.stag.to_bits(), VA, b"x");
    shows! { proof: "VERBS-8.1.2.2-18" => raises_event(&mut disabled, &write, 0x1102, EventId::WriteNotEnabled); }
}

#[test]
fn figure_24_read_requests() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut row = |id: RequirementId, code, event, ulpdu: fn(&mut Bench) -> Vec<u8>| {
        let mut bench = Bench::new();
        let ulpdu = ulpdu(&mut bench);
        proof.verify(id, || assert!(raises_event(&mut bench, &ulpdu, code, event), "{id}"));
    };
    row(requirement!("VERBS-8.3.3-29"), 0x0100, EventId::IrrqInvalidStag, |_| read_of(0x1234_5600, VA, 1));
    row(requirement!("VERBS-8.3.3-30"), 0x0101, EventId::IrrqBaseAndBounds, |bench| {
        read_of(bench.side.stag.to_bits(), VA, LENGTH as u32 + 1)
    });
    row(requirement!("VERBS-8.3.3-31"), 0x0102, EventId::IrrqAccessRights, |bench| {
        let side = &mut bench.side;
        let stag = register(&mut side.rnic, side.pd, side.buffer, Access::LOCAL);
        read_of(stag.to_bits(), VA, 1)
    });
    row(requirement!("VERBS-8.3.3-32"), 0x0103, EventId::IrrqInvalidPd, |bench| {
        let side = &mut bench.side;
        let other = side.rnic.memory_mut().allocate_pd().unwrap();
        let stag = register(&mut side.rnic, other, side.buffer, Access::ALL);
        read_of(stag.to_bits(), VA, 1)
    });
    row(requirement!("VERBS-8.3.3-33"), 0x0104, EventId::IrrqWrap, |bench| {
        read_of(bench.side.stag.to_bits(), u64::MAX, 2)
    });
    row(requirement!("VERBS-8.3.3-35"), 0x1203, EventId::IrrqMsnGap, |_| {
        untagged(Opcode::READ_REQUEST, 1, 2, 0, true, &[0; 28])
    });
    row(requirement!("VERBS-8.3.3-36"), 0x1203, EventId::IrrqMsnRange, |_| {
        untagged(Opcode::READ_REQUEST, 1, 0, 0, true, &[0; 28])
    });
    let mut disabled = Bench::with(|init| init.inbound_read = false);
    let read = read_of(disabled.side.stag.to_bits(), VA, 1);
    shows! { proof: "VERBS-8.3.3-18" => raises_event(&mut disabled, &read, 0x1201, EventId::ReadNotEnabled); }
}

#[test]
fn figure_24_the_rest() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let change = |at: usize, value: u8| {
        let mut ulpdu = untagged(Opcode::SEND, 0, 1, 0, true, b"x");
        ulpdu[at] = value;
        ulpdu
    };
    let check = |ulpdu: &[u8], code, event| raises_event(&mut Bench::new(), ulpdu, code, event);
    let mut two = Bench::with(|init| init.ird = 1);
    let stag = two.side.stag.to_bits();
    two.hand_in(&read_of(stag, VA, 1));
    let mut second = read_of(stag, VA, 1);
    second[13] = 2;
    shows! { proof:
        "VERBS-8.3.3-14" => check(&change(0, 0x40), 0x1206, EventId::InvalidDdpVersion);
        "VERBS-8.3.3-15" => check(&change(1, 0x03), 0x0205, EventId::InvalidRdmapVersion);
        "VERBS-8.3.3-17" => check(&untagged(Opcode::SEND, 4, 1, 0, true, b"x"), 0x1201, EventId::InvalidDdpQueue);
        "VERBS-8.3.3-11" => check(&[0x41; 10], 0x1000, EventId::LlpIntegritySegmentSize);
        "VERBS-8.3.3-27" => check(&untagged(Opcode::SEND, 0, 1, 0, true, b"x"), 0x1202, EventId::RqMsnRange);
        "VERBS-8.3.3-28" => check(&untagged(Opcode::SEND, 0, 2, 0, true, b"x"), 0x1202, EventId::RqMsnGap);
        "VERBS-8.3.3-34" => {
            two.hand_in(&second);
            two.side.event_ids() == [EventId::IrrqTooManyReads] && two.code() == Some(0x1203)
        };
    }
    let mut bench = Bench::new();
    bench.side.post_receive(1, 0, 100);
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, false, b"x"));
    bench.hand_in(&untagged(Opcode::SEND, 0, 2, 0, true, b"x"));
    shows! { proof: "VERBS-8.3.3-19" => bench.code() == Some(0x0207) && bench.side.event_ids() == [EventId::MissingLast]; }
}

/// Every Terminate for a rejected segment carries the header of the segment. For a rejected Read
/// Request, it also carries the header of the Read Request (VERBS-6.4-20).
#[test]
fn terminates_give_the_offending_header_back() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let read = read_of(0x5500, VA, 9);
    bench.hand_in(&read);
    let terminate = bench.terminate().unwrap();
    shows! { proof:
        "VERBS-6.4-20" => terminate.ddp_header.unwrap().as_octets() == &read[..18];
        "RDMAP-4.8-42" => terminate.read_request.unwrap().rdmardsz == 9;
        "RDMAP-4.8-8" => terminate.segment_length == Some(46);
    }
    let mut bench = Bench::new();
    let write = tagged(Opcode::WRITE, 0x5500, VA, b"payload");
    bench.hand_in(&write);
    let terminate = bench.terminate().unwrap();
    shows! { proof:
        "RDMAP-7.1-4" => terminate.ddp_header.unwrap().as_octets() == &write[..14]
            && terminate.read_request.is_none() && terminate.segment_length == Some(21);
    }
    let mut bench = Bench::new();
    bench.side.post(SendWr::new(1, Operation::InvalidateLocal(Stag { key: StagKey(0), ..bench.side.stag })));
    let terminate = bench.terminate().unwrap();
    shows! { proof:
        "VERBS-6.4-22" => number(terminate.error) == 0;
        "VERBS-6.4-23" => terminate.ddp_header.is_none() && terminate.segment_length.is_none();
    }
}

/// The source of a Read becomes invalid before the first octet of the response is sent. The
/// Terminate reports the remaining length, which is the complete length (RFC 5040 section 4.8).
#[test]
fn a_terminated_read_reports_the_remaining_length() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = Bench::new();
    let stag = bench.side.stag;
    bench.hand_in(&read_of(stag.to_bits(), VA, 60_000));
    bench.side.rnic.memory_mut().deallocate_stag(stag.index).unwrap();
    let terminate = bench.terminate().unwrap();
    shows! { proof:
        "VERBS-7.9-6" => number(terminate.error) == 0x0100;
        "VERBS-9.2.6.4-4" => terminate.read_request.unwrap().rdmardsz == 60_000;
    }
    assert_eq!(bench.side.event_ids(), [EventId::IrrqInvalidStag]);
}

#[test]
fn a_wrong_crc_is_reported_without_headers() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    let payload = Payload::Inline(Bytes::from_static(b"x"));
    peers.a.post(SendWr::new(1, Operation::Send { payload, solicited: false, invalidate: None }));
    let (mut octets, _) = peers.a.transmit(Instant::ORIGIN, usize::MAX);
    *octets.last_mut().unwrap() ^= 1;
    peers.b.rnic.handle_octets(Instant::ORIGIN, peers.b.llp, &octets);
    peers.run();
    let terminate = peers.b.rnic.query_qp(peers.b.qp).unwrap().terminate.unwrap();
    shows! { proof:
        "VERBS-8.3.3-12" => peers.b.events[0].event == EventId::LlpIntegrityCrc && number(terminate.terminate.error) == 0x2002;
        "VERBS-8.3.3-8" => peers.a.events[0].event == EventId::TerminateReceived;
        "VERBS-6.6.2.5-3" => terminate.local;
        "VERBS-8.3.2-3" => peers.a.rnic.query_qp(peers.a.qp).unwrap().terminate.is_some_and(|record| !record.local
            && record.terminate == terminate.terminate);
    }
}
