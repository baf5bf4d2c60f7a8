//! What each error does: draft Figures 23 and 24, and the Terminate on the wire.

use bytes::Bytes;
use weft_core::coverage::{By, Proof};
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::{RequirementId, requirement};
use weft_peer::Instant;
use weft_peer::memory::{Access, Bind, FastRegistration, PhysicalBufferList, RemoteAccess, Stag, StagKey, ToBase};
use weft_peer::verbs::{
    CompletionStatus, EventId, Operation, Payload, QpInit, QpState, ReceiveWr, RemoteAddress, SendWr, Sge,
};

use crate::world::{Bench, LENGTH, VA, World, number, register, shows, tagged, untagged};

/// What an incident came to.
struct Outcome {
    code: Option<u16>,
    events: Vec<EventId>,
    statuses: Vec<CompletionStatus>,
    state: QpState,
}

impl Bench {
    fn outcome(&mut self) -> Outcome {
        let code = self.code();
        let events = self.side.event_ids();
        let statuses = self.side.statuses().into_iter().map(|(_, status)| status).collect();
        Outcome { code, events, statuses, state: self.side.state() }
    }
}

/// An inbound ULPDU that is told by an Asynchronous Event (Figure 24).
fn told(bench: &mut Bench, ulpdu: &[u8], code: u16, event: EventId) -> bool {
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
    let mut proof = Proof::new(By::Test);
    let mut row = |id: RequirementId, code, event, ulpdu: fn(&mut Bench) -> Vec<u8>| {
        let mut bench = Bench::new();
        let ulpdu = ulpdu(&mut bench);
        proof.shows(id, || assert!(told(&mut bench, &ulpdu, code, event), "{id}"));
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
        let other = side.rnic.allocate_pd().unwrap();
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
    shows! { proof: "VERBS-8.1.2.2-18" => told(&mut disabled, &write, 0x1102, EventId::WriteNotEnabled); }
}

#[test]
fn figure_24_read_requests() {
    let mut proof = Proof::new(By::Test);
    let mut row = |id: RequirementId, code, event, ulpdu: fn(&mut Bench) -> Vec<u8>| {
        let mut bench = Bench::new();
        let ulpdu = ulpdu(&mut bench);
        proof.shows(id, || assert!(told(&mut bench, &ulpdu, code, event), "{id}"));
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
        let other = side.rnic.allocate_pd().unwrap();
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
    shows! { proof: "VERBS-8.3.3-18" => told(&mut disabled, &read, 0x1201, EventId::ReadNotEnabled); }
}

#[test]
fn figure_24_the_rest() {
    let mut proof = Proof::new(By::Test);
    let change = |at: usize, value: u8| {
        let mut ulpdu = untagged(Opcode::SEND, 0, 1, 0, true, b"x");
        ulpdu[at] = value;
        ulpdu
    };
    let check = |ulpdu: &[u8], code, event| told(&mut Bench::new(), ulpdu, code, event);
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

/// Every Terminate of a refused segment carries its header, and the Read Request its own (VERBS-6.4-20).
#[test]
fn terminates_give_the_offending_header_back() {
    let mut proof = Proof::new(By::Test);
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

/// Octets that were answered before the source went away (RFC 5040 section 4.8).
#[test]
fn a_read_that_breaks_off_tells_what_is_left() {
    let mut proof = Proof::new(By::Test);
    let mut bench = Bench::new();
    let stag = bench.side.stag;
    bench.hand_in(&read_of(stag.to_bits(), VA, 60_000));
    bench.side.rnic.deallocate_stag(stag.index).unwrap();
    let whole = bench.terminate().unwrap();
    shows! { proof:
        "VERBS-7.9-6" => number(whole.error) == 0x0100;
        "VERBS-9.2.6.4-4" => whole.read_request.unwrap().rdmardsz == 60_000;
    }
    assert_eq!(bench.side.event_ids(), [EventId::IrrqInvalidStag]);
}

/// A work request that fails locally (Figure 23, Send Queue): its completion tells, the Terminate says 0x0000, no event.
pub(crate) fn failing(
    change: impl FnOnce(&mut QpInit),
    operation: impl FnOnce(&mut Bench) -> Operation,
) -> Option<CompletionStatus> {
    let mut bench = Bench::with(change);
    let operation = operation(&mut bench);
    bench.side.post(SendWr { signaled: false, ..SendWr::new(1, operation) });
    let behind = bench.side.send_of(2, 0, 1);
    bench.side.post(behind);
    let outcome = bench.outcome();
    let as_told = (outcome.code, outcome.events.len(), outcome.state) == (Some(0), 0, QpState::Terminate)
        && outcome.statuses.len() == 2
        && outcome.statuses[1] == CompletionStatus::Flushed;
    as_told.then_some(outcome.statuses[0])
}

fn send(sge: Sge) -> Operation {
    Operation::Send { payload: Payload::Gather(vec![sge]), solicited: false, invalidate: None }
}

#[test]
fn figure_23_local_protection() {
    let mut proof = Proof::new(By::Test);
    let of = |operation: fn(&mut Bench) -> Operation| failing(|_| (), operation);
    shows! { proof:
        "VERBS-8.3.2-16" => of(|bench| send(Sge { stag: bench.side.stag.to_bits() ^ 3, ..bench.side.sge(0, 1) }))
            == Some(CompletionStatus::InvalidStag);
        "VERBS-8.3.2-17" => of(|bench| send(bench.side.sge(LENGTH - 1, 2))) == Some(CompletionStatus::BaseAndBounds);
        "VERBS-8.3.2-18" => of(|bench| {
            let access = Access { local_write: true, ..Access::default() };
            let stag = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, access);
            send(Sge { stag: stag.to_bits(), ..bench.side.sge(0, 1) })
        }) == Some(CompletionStatus::AccessViolation);
        "VERBS-8.3.2-19" => of(|bench| {
            let pd = bench.side.rnic.allocate_pd().unwrap();
            let stag = register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL);
            send(Sge { stag: stag.to_bits(), ..bench.side.sge(0, 1) })
        }) == Some(CompletionStatus::InvalidPdId);
        "VERBS-8.3.2-20" => of(|bench| send(Sge { tagged_offset: u64::MAX, ..bench.side.sge(0, 2) }))
            == Some(CompletionStatus::Wrap);
        "VERBS-8.3.2-15" => failing(|init| init.ord = 0, |bench| Operation::Read {
            local: bench.side.sge(0, 1),
            remote: RemoteAddress { stag: 1, tagged_offset: 0 },
            invalidate_local: false,
        }) == Some(CompletionStatus::ZeroReadResources);
        "VERBS-8.1.3.1-8" => of(|bench| send(bench.side.sge(LENGTH, 1))).is_some();
    }
}

pub(crate) fn bind(bench: &mut Bench, change: impl FnOnce(&mut Bind, &mut Bench)) -> Operation {
    let window = Stag { index: bench.side.rnic.allocate_window(bench.side.pd).unwrap(), key: StagKey(1) };
    let access = RemoteAccess { read: true, write: false };
    let mut bind = Bind { window, region: bench.side.stag, address: VA, length: 10, va_based: true, access };
    change(&mut bind, bench);
    Operation::Bind(bind)
}

#[test]
fn figure_23_bind() {
    let mut proof = Proof::new(By::Test);
    let of = |change: fn(&mut Bind, &mut Bench)| failing(|_| (), |bench| bind(bench, change));
    shows! { proof:
        "VERBS-8.3.2-31" => of(|bind, _| bind.region.key = StagKey(0)) == Some(CompletionStatus::InvalidRegion);
        "VERBS-8.3.2-32" => of(|bind, _| bind.window = bind.region) == Some(CompletionStatus::InvalidWindow);
        "VERBS-8.3.2-33" => of(|bind, _| bind.length = LENGTH + 1) == Some(CompletionStatus::BaseAndBounds);
        "VERBS-8.3.2-34" => of(|bind, _| bind.access = RemoteAccess::default()) == Some(CompletionStatus::AccessViolation);
        "VERBS-8.3.2-35" => of(|bind, bench| {
            bench.side.post(SendWr { signaled: false, ..SendWr::new(9, Operation::Bind(*bind)) });
        }) == Some(CompletionStatus::NotInvalid);
        "VERBS-8.3.2-36" => of(|bind, bench| {
            bind.region = bench.side.rnic.allocate_stag(bench.side.pd, 1, true).unwrap().stag;
        }) == Some(CompletionStatus::InvalidRegion);
        "VERBS-8.3.2-37" => of(|bind, bench| {
            let pd = bench.side.rnic.allocate_pd().unwrap();
            bind.window.index = bench.side.rnic.allocate_window(pd).unwrap();
        }) == Some(CompletionStatus::InvalidPdId);
        "VERBS-7.10.2-29" => of(|bind, bench| {
            let access = Access { local_read: true, bind: true, ..Access::default() };
            bind.region = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, access);
            bind.access.write = true;
        }) == Some(CompletionStatus::AccessViolation);
    }
}

pub(crate) fn fast(bench: &mut Bench, change: impl FnOnce(&mut FastRegistration, &mut Bench)) -> Operation {
    let stag = bench.side.rnic.allocate_stag(bench.side.pd, 2, false).unwrap().stag;
    let list = PhysicalBufferList::of(bench.side.buffer, 0, 4096, 4096);
    let mut new = FastRegistration { stag, list, base: ToBase::ZeroBased, access: Access::LOCAL };
    change(&mut new, bench);
    Operation::FastRegister(new)
}

#[test]
fn figure_23_fast_register() {
    let mut proof = Proof::new(By::Test);
    let of = |change: fn(&mut FastRegistration, &mut Bench)| failing(|_| (), |bench| fast(bench, change));
    shows! { proof:
        "VERBS-8.3.2-22" => of(|new, bench| new.stag.index = bench.side.rnic.allocate_window(bench.side.pd).unwrap())
            == Some(CompletionStatus::InvalidStag);
        "VERBS-8.3.2-23" => of(|new, _| new.list.entry_size = 5) == Some(CompletionStatus::InvalidPhysicalBufferSize);
        "VERBS-8.3.2-24" => of(|new, _| new.list.entries = vec![new.list.entries[0]; 3]) == Some(CompletionStatus::ListTooLong);
        "VERBS-8.3.2-25" => of(|new, bench| new.stag = bench.side.stag) == Some(CompletionStatus::NotInvalid);
        "VERBS-8.3.2-26" => of(|new, bench| {
            let pd = bench.side.rnic.allocate_pd().unwrap();
            new.stag = bench.side.rnic.allocate_stag(pd, 2, true).unwrap().stag;
        }) == Some(CompletionStatus::InvalidPdId);
        "VERBS-8.3.2-27" => of(|new, _| new.access = Access::ALL) == Some(CompletionStatus::InvalidAccessRights);
        "VERBS-8.3.2-28" => of(|new, _| new.base = ToBase::VaBased(1)) == Some(CompletionStatus::InvalidVirtualAddress);
        "VERBS-8.3.2-29" => of(|new, _| new.list.first_byte_offset = 4096) == Some(CompletionStatus::InvalidFirstByteOffset);
    }
}

#[test]
fn figure_23_fast_register_and_invalidate() {
    let mut proof = Proof::new(By::Test);
    let of = |operation: fn(&mut Bench) -> Operation| failing(|_| (), operation);
    shows! { proof:
        "VERBS-8.3.2-30" => of(|bench| fast(bench, |new, _| new.list.length = 4097)) == Some(CompletionStatus::InvalidLength);
        "VERBS-9.5.2-17" => of(|bench| fast(bench, |new, _| new.list.entries[0].0 += 1)) == Some(CompletionStatus::InvalidListEntry);
        "VERBS-8.3.2-38" => of(|bench| Operation::InvalidateLocal(Stag { key: StagKey(0), ..bench.side.stag }))
            == Some(CompletionStatus::InvalidStag);
        "VERBS-8.3.2-39" => of(|bench| {
            let pd = bench.side.rnic.allocate_pd().unwrap();
            Operation::InvalidateLocal(register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL))
        }) == Some(CompletionStatus::InvalidPdId);
        "VERBS-8.3.2-40" => of(|bench| {
            let operation = bind(bench, |_, _| ());
            bench.side.post(SendWr { signaled: false, ..SendWr::new(9, operation) });
            Operation::InvalidateLocal(bench.side.stag)
        }) == Some(CompletionStatus::AccessViolation);
    }
    let settings = weft_peer::verbs::RnicSettings::default();
    let llp = crate::world::llp_settings(crate::world::PLAIN, 1460, true);
    let mut side = crate::world::Side::with(settings, llp, |_| ());
    let init = side.rnic.query_qp(side.qp).unwrap().init;
    side.rnic.destroy_qp(side.qp).unwrap();
    side.qp = side.rnic.create_qp(init, None).unwrap().0;
    side.llp = side.rnic.attach_stream(llp).unwrap();
    let mut bench = Bench { side: side.start() };
    let operation = fast(&mut bench, |_, _| ());
    bench.side.post(SendWr::new(1, operation));
    let code = bench.code();
    shows! { proof:
        "VERBS-8.3.2-21" => code == Some(0) && bench.side.statuses() == [(1, CompletionStatus::NotPrivileged)];
        "VERBS-6.1.1-14" => !bench.side.rnic.query_qp(bench.side.qp).unwrap().privileged;
    }
}

/// A receive that fails (Figure 23, upper part): its completion tells, with a Terminate for the peer.
pub(crate) fn failing_receive(
    scatter: impl FnOnce(&mut Bench) -> Sge,
    payload: &[u8],
) -> (Vec<CompletionStatus>, Option<u16>) {
    let mut bench = Bench::new();
    let sge = scatter(&mut bench);
    let list = vec![ReceiveWr { wr_id: 1, scatter: vec![sge] }, ReceiveWr { wr_id: 2, scatter: Vec::new() }];
    bench.side.rnic.post_receive(bench.side.qp, list).unwrap();
    bench.hand_in(&untagged(Opcode::SEND, 0, 1, 0, true, payload));
    let outcome = bench.outcome();
    assert!(outcome.events.is_empty() && outcome.state == QpState::Terminate);
    (outcome.statuses, outcome.code)
}

#[test]
fn figure_23_receives() {
    use CompletionStatus::{AccessViolation, BaseAndBounds, Flushed, InvalidPdId, InvalidStag, Wrap};
    let mut proof = Proof::new(By::Test);
    let of = |scatter: fn(&mut Bench) -> Sge| failing_receive(scatter, b"xy");
    shows! { proof:
        "VERBS-8.3.2-5" => of(|bench| Sge { stag: 0x7700, ..bench.side.sge(0, 9) }) == (vec![InvalidStag, Flushed], Some(0));
        "VERBS-8.3.2-6" => of(|bench| bench.side.sge(0, 1)) == (vec![BaseAndBounds, Flushed], Some(0x1205));
        "VERBS-8.3.2-7" => of(|bench| {
            let access = Access { local_read: true, ..Access::default() };
            let stag = register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, access);
            Sge { stag: stag.to_bits(), ..bench.side.sge(0, 9) }
        }) == (vec![AccessViolation, Flushed], Some(0));
        "VERBS-8.3.2-8" => of(|bench| {
            let pd = bench.side.rnic.allocate_pd().unwrap();
            let stag = register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL);
            Sge { stag: stag.to_bits(), ..bench.side.sge(0, 9) }
        }) == (vec![InvalidPdId, Flushed], Some(0));
        "VERBS-8.3.2-9" => of(|bench| Sge { tagged_offset: u64::MAX, ..bench.side.sge(0, 9) })
            == (vec![Wrap, Flushed], Some(0));
        "VERBS-8.1.2.1-6" => of(|bench| bench.side.sge(LENGTH - 1, 9)) == (vec![BaseAndBounds, Flushed], Some(0));
        "DDP-1.2-4" => of(|bench| bench.side.sge(0, 1)).1 == Some(0x1205);
    }
}

#[test]
fn figure_23_invalidation_by_the_peer() {
    let mut proof = Proof::new(By::Test);
    let of = |stag: fn(&mut Bench) -> Stag| {
        let mut bench = Bench::new();
        bench.side.post_receive(1, 0, 10);
        let stag = stag(&mut bench).to_bits();
        let mut ulpdu = untagged(Opcode::SEND_INVALIDATE, 0, 1, 0, true, b"x");
        ulpdu[2..6].copy_from_slice(&stag.to_be_bytes());
        bench.hand_in(&ulpdu);
        let outcome = bench.outcome();
        assert!(outcome.events.is_empty());
        (outcome.statuses, outcome.code)
    };
    use CompletionStatus::{InvalidStag, InvalidateRefused};
    shows! { proof:
        "VERBS-8.3.2-10" => of(|bench| Stag { key: StagKey(0), ..bench.side.stag }) == (vec![InvalidStag], Some(0x0100));
        "VERBS-8.3.2-11" => of(|bench| register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::LOCAL))
            == (vec![InvalidateRefused], Some(0x0102));
        "VERBS-8.3.2-12" => of(|bench| {
            let pd = bench.side.rnic.allocate_pd().unwrap();
            register(&mut bench.side.rnic, pd, bench.side.buffer, Access::ALL)
        }) == (vec![InvalidateRefused], Some(0x0103));
        "VERBS-8.3.2-13" => of(|bench| {
            let operation = bind(bench, |_, _| ());
            bench.side.post(SendWr { signaled: false, ..SendWr::new(9, operation) });
            bench.sent();
            bench.side.stag
        }) == (vec![InvalidateRefused], Some(0x0109));
        "VERBS-9.5.2-11" => of(|bench| register(&mut bench.side.rnic, bench.side.pd, bench.side.buffer, Access::LOCAL)).0
            == [InvalidateRefused];
    }
}

#[test]
fn a_wrong_crc_is_told_without_headers() {
    let mut proof = Proof::new(By::Test);
    let mut world = World::new();
    let payload = Payload::Inline(Bytes::from_static(b"x"));
    world.a.post(SendWr::new(1, Operation::Send { payload, solicited: false, invalidate: None }));
    let (mut octets, _) = world.a.transmit(Instant::ORIGIN, usize::MAX);
    *octets.last_mut().unwrap() ^= 1;
    world.b.rnic.handle_octets(Instant::ORIGIN, world.b.llp, &octets);
    world.run();
    let terminate = world.b.rnic.query_qp(world.b.qp).unwrap().terminate.unwrap();
    shows! { proof:
        "VERBS-8.3.3-12" => world.b.events[0].event == EventId::LlpIntegrityCrc && number(terminate.terminate.error) == 0x2002;
        "VERBS-8.3.3-8" => world.a.events[0].event == EventId::TerminateReceived;
        "VERBS-6.6.2.5-3" => terminate.local;
        "VERBS-8.3.2-3" => world.a.rnic.query_qp(world.a.qp).unwrap().terminate.is_some_and(|record| !record.local
            && record.terminate == terminate.terminate);
    }
}
