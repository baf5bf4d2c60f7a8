//! Tests draft-hilland-rddp-verbs Figure 37. Each test causes an Asynchronous Event, and checks
//! that the event is reported once, with its resource.

use std::time::Duration;

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::mpa::Framing;
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::{RequirementId, requirement};
use weft_peer::Instant;
use weft_peer::memory::Access;
use weft_peer::verbs::{AsyncEvent, EventId, QpState, Resource, RnicSettings};

use crate::verbs::peers::{Bench, LENGTH, Side, VA, llp_settings, number, read, register, shows, tagged, untagged};

/// Checks that `act` causes exactly this event of this Queue Pair.
fn once(proof: &mut Coverage, id: RequirementId, event: EventId, act: fn(&mut Bench)) {
    let mut bench = Bench::with(|init| init.ird = 2);
    act(&mut bench);
    bench.side.settle();
    let expected = AsyncEvent { resource: Resource::Qp(bench.side.qp, bench.side.id), event };
    proof.verify(id, || assert_eq!(bench.side.events, [expected], "{id}"));
}

fn framed(markers: bool, crc: bool) -> Bench {
    let llp = llp_settings(Framing { markers, crc }, 1460, true);
    Bench { side: Side::with(RnicSettings::default(), llp, |_| ()).start() }
}

fn send(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut ulpdu = untagged(Opcode::SEND, 0, 1, 0, true, b"x");
    change(&mut ulpdu);
    ulpdu
}

fn request(msn: u32, stag: u32, to: u64, length: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    ReadRequest { sink_stag: 1, sink_to: 0, rdmardsz: length, src_stag: stag, src_to: to }.emit(&mut payload);
    untagged(Opcode::READ_REQUEST, 1, msn, 0, true, &payload)
}

#[test]
fn events_of_the_stream() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut row = |id, event, act| once(&mut proof, id, event, act);
    row(requirement!("VERBS-9.5.3-4"), EventId::LlpCloseComplete, |bench| {
        bench.side.to(QpState::Closing).unwrap();
        bench.sent();
        bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
    });
    row(requirement!("VERBS-9.5.3-5"), EventId::TerminateReceived, |bench| {
        bench.hand_in(&untagged(Opcode::TERMINATE, 2, 1, 0, true, &[0x12, 2, 0, 0]));
    });
    row(requirement!("VERBS-9.5.3-6"), EventId::LlpConnectionReset, |bench| {
        bench.side.rnic.handle_reset(Instant::ORIGIN, bench.side.llp);
    });
    row(requirement!("VERBS-9.5.3-7"), EventId::LlpConnectionLost, |bench| {
        bench.side.rnic.handle_lost(Instant::ORIGIN, bench.side.llp);
    });
    row(requirement!("VERBS-6.2.5-30"), EventId::LlpConnectionLost, |bench| {
        bench.side.to(QpState::Closing).unwrap();
        bench.side.rnic.handle_reset(Instant::ORIGIN, bench.side.llp);
    });
    row(requirement!("VERBS-6.2.5-17"), EventId::LlpConnectionLost, |bench| {
        bench.side.to(QpState::Closing).unwrap();
        bench.sent();
        let deadline = bench.side.rnic.poll_timeout(bench.side.llp).unwrap();
        bench.side.rnic.handle_timeout(deadline + Duration::from_nanos(1), bench.side.llp);
    });
    row(requirement!("VERBS-9.5.3-24"), EventId::BadClose, |bench| {
        bench.side.to(QpState::Closing).unwrap();
        bench.hand_in(&send(|_| ()));
    });
    row(requirement!("VERBS-9.5.3-25"), EventId::BadLlpClose, |bench| {
        let wr = read(&bench.side, 1, 0, 4, bench.side.remote(0));
        bench.side.post(wr);
        bench.sent();
        bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
    });
}

#[test]
fn events_of_remote_operations() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut row = |id, event, act| once(&mut proof, id, event, act);
    row(requirement!("VERBS-9.5.3-8"), EventId::LlpIntegritySegmentSize, |bench| bench.hand_in(&[0x41; 10]));
    row(requirement!("VERBS-9.5.3-11"), EventId::InvalidDdpVersion, |bench| {
        bench.hand_in(&send(|octets| octets[0] = 0x42));
    });
    row(requirement!("VERBS-9.5.3-12"), EventId::InvalidRdmapVersion, |bench| {
        bench.hand_in(&send(|octets| octets[1] = 0x83));
    });
    row(requirement!("VERBS-9.5.3-13"), EventId::UnexpectedOpcode, |bench| {
        bench.hand_in(&send(|octets| octets[1] = 0x4f));
    });
    row(requirement!("VERBS-9.5.3-14"), EventId::InvalidDdpQueue, |bench| {
        bench.hand_in(&untagged(Opcode::SEND, 9, 1, 0, true, b"x"));
    });
    row(requirement!("VERBS-9.5.3-17"), EventId::ReadRequestFormat, |bench| {
        bench.hand_in(&untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &[0; 27]));
    });
    row(requirement!("VERBS-9.5.3-18"), EventId::MissingLast, |bench| {
        bench.hand_in(&untagged(Opcode::READ_REQUEST, 1, 1, 0, false, &[0; 28]));
    });
    row(requirement!("VERBS-9.5.3-26"), EventId::RqMsnRange, |bench| bench.hand_in(&send(|_| ())));
}

#[test]
fn events_of_protection() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut row = |id, event, act| once(&mut proof, id, event, act);
    row(requirement!("VERBS-9.5.3-19"), EventId::ProtectionInvalidStag, |bench| {
        bench.hand_in(&tagged(Opcode::WRITE, 0, 0, b"x"));
    });
    row(requirement!("VERBS-9.5.3-20"), EventId::ProtectionBaseAndBounds, |bench| {
        bench.hand_in(&tagged(Opcode::WRITE, bench.side.stag.to_bits(), VA - 1, b"x"));
    });
    row(requirement!("VERBS-9.5.3-21"), EventId::ProtectionAccessRights, |bench| {
        let stag = other(bench, Access { remote_write: false, ..Access::ALL }, false);
        bench.hand_in(&tagged(Opcode::WRITE, stag, VA, b"x"));
    });
    row(requirement!("VERBS-9.5.3-22"), EventId::ProtectionInvalidPd, |bench| {
        let stag = other(bench, Access::ALL, true);
        bench.hand_in(&tagged(Opcode::WRITE, stag, VA, b"x"));
    });
    row(requirement!("VERBS-9.5.3-23"), EventId::ProtectionWrap, |bench| {
        bench.hand_in(&tagged(Opcode::WRITE, bench.side.stag.to_bits(), u64::MAX - 1, b"xyz"));
    });
    row(requirement!("VERBS-9.5.3-27"), EventId::RqMsnGap, |bench| {
        bench.side.post_receive(1, 0, 9);
        bench.hand_in(&untagged(Opcode::SEND, 0, 2, 0, true, b"x"));
    });
    row(requirement!("VERBS-9.5.3-28"), EventId::IrrqTooManyReads, |bench| {
        let stag = bench.side.stag.to_bits();
        (1..4).for_each(|msn| bench.hand_in(&request(msn, stag, VA, 1)));
    });
    row(requirement!("VERBS-9.5.3-29"), EventId::IrrqMsnGap, |bench| {
        bench.hand_in(&request(2, bench.side.stag.to_bits(), VA, 1));
    });
}

/// Registers another region. If `foreign` is true, the region is in another PD.
fn other(bench: &mut Bench, access: Access, foreign: bool) -> u32 {
    let side = &mut bench.side;
    let pd = if foreign { side.rnic.memory_mut().allocate_pd().unwrap() } else { side.pd };
    register(&mut side.rnic, pd, side.buffer, access).to_bits()
}

#[test]
fn events_of_read_requests() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut row = |id, event, act| once(&mut proof, id, event, act);
    row(requirement!("VERBS-9.5.3-30"), EventId::IrrqMsnRange, |bench| {
        let stag = bench.side.stag.to_bits();
        bench.hand_in(&request(1, stag, VA, 1));
        bench.hand_in(&request(1, stag, VA, 1));
    });
    row(requirement!("VERBS-9.5.3-31"), EventId::IrrqInvalidStag, |bench| bench.hand_in(&request(1, 0x7700, VA, 1)));
    row(requirement!("VERBS-9.5.3-32"), EventId::IrrqBaseAndBounds, |bench| {
        bench.hand_in(&request(1, bench.side.stag.to_bits(), VA + LENGTH, 1));
    });
    row(requirement!("VERBS-9.5.3-33"), EventId::IrrqAccessRights, |bench| {
        let stag = other(bench, Access { remote_read: false, ..Access::ALL }, false);
        bench.hand_in(&request(1, stag, VA, 1));
    });
    row(requirement!("VERBS-9.5.3-34"), EventId::IrrqInvalidPd, |bench| {
        let stag = other(bench, Access::ALL, true);
        bench.hand_in(&request(1, stag, VA, 1));
    });
    row(requirement!("VERBS-9.5.3-35"), EventId::IrrqWrap, |bench| {
        bench.hand_in(&request(1, bench.side.stag.to_bits(), u64::MAX, 9));
    });
}

#[test]
fn events_of_disabled_operations() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let events_for = |inbound_read: bool, inbound_write: bool, ulpdu: fn(&Bench) -> Vec<u8>| {
        let mut bench = Bench::with(|init| (init.inbound_read, init.inbound_write) = (inbound_read, inbound_write));
        let ulpdu = ulpdu(&bench);
        bench.hand_in(&ulpdu);
        let own = bench.side.events.iter().all(|raised| raised.resource == Resource::Qp(bench.side.qp, bench.side.id));
        (own, bench.side.event_ids())
    };
    let a_write: fn(&Bench) -> Vec<u8> = |bench| tagged(Opcode::WRITE, bench.side.stag.to_bits(), VA, b"x");
    let a_read: fn(&Bench) -> Vec<u8> = |bench| request(1, bench.side.stag.to_bits(), VA, 1);
    shows! { proof:
        "VERBS-9.5.3-15" => events_for(false, true, a_read) == (true, vec![EventId::ReadNotEnabled]);
        "VERBS-9.5.3-16" => events_for(true, false, a_write) == (true, vec![EventId::WriteNotEnabled]);
        "VERBS-9.2.5.1-11" => events_for(true, false, a_read).1.is_empty() && events_for(false, false, a_read).1.len() == 1;
        "VERBS-9.2.5.1-12" => events_for(false, true, a_write).1.is_empty() && events_for(false, false, a_write).1.len() == 1;
    }
}

/// Checks the errors of the LLP (lower layer: MPA on TCP) in draft Figure 24.
#[test]
fn integrity_of_the_stream() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bad_crc = framed(false, true);
    bad_crc.hand_in(&send(|_| ()));
    let crc_events = bad_crc.side.event_ids();
    let mut marked = framed(true, false);
    // The first octets are a marker, which belongs to the FPDU after it. A correct marker here has
    // the value 0, but this marker has the value 16.
    let octets = [&[0, 0, 0, 16][..], &crate::verbs::peers::fpdu(&send(|_| ()))].concat();
    marked.side.rnic.handle_octets(Instant::ORIGIN, marked.side.llp, &octets);
    let marker_events = marked.side.event_ids();
    let record = marked.side.rnic.query_qp(marked.side.qp).unwrap().terminate.unwrap();
    shows! { proof:
        "VERBS-9.5.3-9" => crc_events == [EventId::LlpIntegrityCrc];
        "VERBS-9.5.3-10" => marker_events == [EventId::LlpIntegrityBadFpdu];
        "VERBS-8.3.3-13" => number(record.terminate.error) == 0x2003 && marked.side.state() == QpState::Terminate;
        "VERBS-6.2.2.4-19" => bad_crc.side.state() == QpState::Terminate
            && bad_crc.side.transmit(Instant::ORIGIN, usize::MAX).0[3] & 0xf == 7;
    }
    let mut lost = Bench::new();
    lost.side.rnic.handle_lost(Instant::ORIGIN, lost.side.llp);
    shows! { proof:
        "VERBS-8.3.3-9" => lost.side.event_ids() == [EventId::LlpConnectionLost] && lost.side.state() == QpState::Error
            && lost.side.rnic.query_qp(lost.side.qp).unwrap().terminate.is_none();
        "VERBS-8.3.3-25" => {
            let mut bench = Bench::new();
            bench.side.to(QpState::Closing).unwrap();
            bench.hand_in(&send(|_| ()));
            (bench.side.event_ids(), bench.side.state(), bench.sent().0) == (vec![EventId::BadClose], QpState::Error, Vec::new())
        };
        "VERBS-8.3.3-44" => {
            let mut bench = Bench::new();
            bench.hand_in(&request(1, bench.side.stag.to_bits(), VA, 9));
            bench.side.rnic.handle_fin(Instant::ORIGIN, bench.side.llp);
            bench.code() == Some(0x0207)
        };
    }
}
