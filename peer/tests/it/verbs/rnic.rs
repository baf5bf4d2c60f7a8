//! Tests the verbs that open, query and close an RNIC (draft-hilland-rddp-verbs, sections 5.1 and
//! 9.2.1, Figure 28).

use weft_core::coverage::{Coverage, CoverageKind};
use weft_peer::memory::{
    BLOCK_SIZES, ListMode, MemoryError, MemorySettings, PAGE_SIZES, PhysicalAddress, PhysicalBufferList,
};
use weft_peer::verbs::{
    CqError, DequeueModel, HandlerAddress, HandlerOperation, Node, NodeLimits, QpError, QpInit, Rnic, RnicError,
    RnicSettings, SrqInit,
};

use crate::verbs::peers::{Side, llp_settings, open, shows};

fn status(result: Result<(Rnic, weft_peer::verbs::Privileged), RnicError>) -> RnicError {
    result.map(|_| ()).unwrap_err()
}

fn block() -> RnicSettings {
    RnicSettings { memory: MemorySettings { mode: ListMode::Block, ..MemorySettings::default() }, ..Default::default() }
}

#[test]
fn an_rnic_is_open_once() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let node = Node::new(["weft0", "weft1"]);
    let settings = RnicSettings::default();
    let (mut rnic, _) = node.open("weft0", settings).unwrap();
    shows! { proof:
        "VERBS-9.5.1.1-3" => status(node.open("weft9", settings)) == RnicError::InvalidName;
        "VERBS-9.5.1.1-5" => status(node.open("weft0", settings)) == RnicError::InUse;
        "VERBS-5.1.2-5" => status(node.clone().open("weft0", settings)) == RnicError::InUse;
        "VERBS-9.2.1.3-3" => rnic.close() == Ok(());
        "VERBS-9.5.1.1-7" => rnic.close() == Err(RnicError::InvalidRnicHandle);
        "VERBS-9.5.1.1-6" => rnic.query() == Err(RnicError::InvalidRnicHandle);
        "VERBS-9.2.1.3-1" => node.open("weft0", settings).is_ok();
    }
}

#[test]
fn a_node_may_lack_features() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let limits = NodeLimits { max_open: 1, block_lists: false };
    let node = Node::with(["weft0", "weft1"], limits);
    shows! { proof:
        "VERBS-9.5.1.1-4" => status(node.open("weft0", block())) == RnicError::BlockModeNotSupported;
        "VERBS-7.6.2-4" => {
            let rnic = node.open("weft0", RnicSettings::default()).unwrap().0;
            !rnic.query().unwrap().block_lists && open(RnicSettings::default()).query().unwrap().block_lists
        };
        "VERBS-7.6.2-2" => node.open("weft0", RnicSettings::default()).unwrap().0.memory().list_mode() == ListMode::Page;
    }
    let held = node.open("weft1", RnicSettings::default()).unwrap();
    shows! { proof:
        "VERBS-9.5.1.1-1" => status(node.open("weft0", RnicSettings::default())) == RnicError::InsufficientResources;
        "VERBS-8.3.1-2" => held.0.query().unwrap().settings == RnicSettings::default();
    }
}

#[test]
fn open_rnic() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let node = Node::with(["a", "b", "c"], NodeLimits { max_open: 2, block_lists: false });
    let other = Node::new(["x", "y"]);
    let settings = RnicSettings::default();
    let (mut x, mut y) = (other.open("x", settings).unwrap().0, other.open("y", block()).unwrap().0);
    shows! { proof:
        "VERBS-9.2.1.1-1" => node.open("a", settings).is_ok();
        "VERBS-9.2.1.1-2" => (x.memory().list_mode(), y.memory().list_mode()) == (ListMode::Page, ListMode::Block);
        "VERBS-9.2.1.1-4" => other.open("y", settings).is_err() && other.open("Y", settings).is_err();
        "VERBS-9.2.1.1-5" => x.query().is_ok();
        "VERBS-9.2.1.1-6" => {
            let open = [node.open("a", settings).unwrap(), node.open("b", settings).unwrap()];
            let failed = [("c", settings), ("z", settings), ("c", block()), ("a", settings)];
            let failed = failed.map(|(name, settings)| status(node.open(name, settings)));
            use RnicError::{BlockModeNotSupported, InUse, InsufficientResources, InvalidName};
            open.len() == 2 && failed == [InsufficientResources, InvalidName, BlockModeNotSupported, InUse]
        };
        "VERBS-5.1.2-6" => {
            let cq = x.create_cq(1, None).unwrap().0;
            y.query_cq(cq) == Err(CqError::InvalidCqHandle) && x.query_cq(cq).is_ok()
        };
        "VERBS-5.1-2" => {
            // Each RNIC returns its first handle. The two handles can have the same number, but
            // each handle is valid for its own RNIC.
            let (p, q) = (x.memory_mut().allocate_pd().unwrap(), y.memory_mut().allocate_pd().unwrap());
            x.memory_mut().deallocate_pd(p) == Ok(()) && y.memory_mut().allocate_window(q).is_ok()
        };
    }
}

#[test]
fn the_mode_lasts_as_long_as_the_rnic_is_open() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let registers = |settings: RnicSettings, size: u32, misaligned: u64| {
        let mut rnic = open(settings);
        let pd = rnic.memory_mut().allocate_pd().unwrap();
        let buffer = rnic.memory_mut().allocate_buffer(8192).unwrap();
        let entries = vec![PhysicalAddress(buffer.address().0 + misaligned)];
        let list = PhysicalBufferList { entry_size: size, entries, first_byte_offset: 0, length: u64::from(size) };
        let registration = weft_peer::memory::Registration {
            pd,
            key: weft_peer::memory::StagKey(0),
            list,
            base: weft_peer::memory::ToBase::ZeroBased,
            remote: false,
            access: weft_peer::memory::Access::LOCAL,
        };
        // Register twice. The first registration must not limit the mode or the block size of later
        // registrations.
        rnic.memory_mut().register(&registration).is_ok() && rnic.memory_mut().register(&registration).is_ok()
    };
    let pages = RnicSettings::default();
    shows! { proof:
        "VERBS-5.1.2-3" => open(pages).memory().list_mode() == ListMode::Page;
        "VERBS-7.6.2-3" => registers(block(), 1000, 24);
        "VERBS-9.2.1.2-25" => open(block()).query().unwrap().settings.memory.mode == ListMode::Block;
        "VERBS-5.1.2-2" => !registers(pages, 1000, 24) && registers(block(), 4096, 0);
        "VERBS-7.6.2-1" => registers(pages, 4096, 0);
        "VERBS-9.2.1.2-4" => open(pages).query().unwrap().settings.memory.mode == ListMode::Page
            && open(block()).query().unwrap().settings.memory.mode != ListMode::Page;
        "VERBS-9.2.1.1-3" => [ListMode::Page, ListMode::Block].into_iter().all(|mode| {
            let memory = MemorySettings { mode, ..MemorySettings::default() };
            open(RnicSettings { memory, ..pages }).query().unwrap().settings.memory.mode == mode
        });
    }
}

#[test]
fn query_returns_limits() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let settings = RnicSettings {
        max_qps: 3,
        max_wrs: 5,
        max_srq_wrs: 7,
        max_srqs: 2,
        max_sges: 6,
        max_cqs: 4,
        max_cqes: 9,
        ..RnicSettings::default()
    };
    let queried = open(settings).query().unwrap();
    shows! { proof:
        "VERBS-9.2.1.2-6" => queried.settings.max_qps == 3;
        "VERBS-9.2.1.2-7" => queried.settings.max_wrs == 5;
        "VERBS-9.2.1.2-8" => queried.settings.max_srq_wrs == 7;
        "VERBS-9.2.1.2-9" => queried.settings.max_sges == 6;
        "VERBS-9.2.1.2-11" => queried.settings.max_cqs == 4;
        "VERBS-9.2.1.2-12" => queried.settings.max_cqes == 9;
        "VERBS-9.2.1.2-30" => queried.settings.max_srqs == 2;
    }
}

#[test]
fn query_returns_read_resources_and_abilities() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut rnic = open(RnicSettings::default());
    let queried = rnic.query().unwrap();
    let (pd, cq) = (rnic.memory_mut().allocate_pd().unwrap(), rnic.create_cq(9, None).unwrap().0);
    let mut granted_ird = || {
        let init = QpInit { ird: queried.settings.max_ird, ..QpInit::new(pd, cq, cq) };
        rnic.create_qp(init, None).map(|(_, _, allocated)| allocated.ird)
    };
    let of_two = [granted_ird(), granted_ird()];
    let less = RnicSettings { modifies_ird: false, raises_ord: false, resizes_queues: false, ..queried.settings };
    let less = open(less).query().unwrap();
    shows! { proof:
        // Two Queue Pairs get the maximum each, so they do not share their resources.
        "VERBS-9.2.1.2-3" => queried.settings.rnic_ird == 0 && of_two == [Ok(queried.settings.max_ird); 2];
        "VERBS-9.2.1.2-18" => queried.settings.rnic_ord == 0;
        "VERBS-9.2.1.2-19" => queried.settings.max_ird == 128;
        "VERBS-9.2.1.2-20" => queried.settings.max_ord == 128;
        "VERBS-9.2.1.2-21" => queried.settings.modifies_ird && !less.settings.modifies_ird;
        "VERBS-9.2.1.2-22" => queried.settings.raises_ord && !less.settings.raises_ord;
        "VERBS-9.2.1.2-24" => queried.settings.resizes_queues && !less.settings.resizes_queues;
        "VERBS-9.2.1.2-29" => queried.detects_cq_overflow;
    }
}

#[test]
fn query_returns_the_remaining_attributes() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let memory = MemorySettings {
        max_regions: 11,
        max_pbl_entries: 12,
        max_pds: 13,
        max_windows: 14,
        ..MemorySettings::default()
    };
    let settings = RnicSettings { memory, max_write_sges: 3, max_handlers: 10, rnic_ird: 70, ..Default::default() };
    let queried = open(settings).query().unwrap();
    shows! { proof:
        "VERBS-9.2.1.2-5" => queried.vendor.starts_with("weft ");
        "VERBS-9.2.1.2-10" => queried.settings.max_write_sges == 3;
        "VERBS-9.2.1.2-13" => queried.settings.max_handlers == 10;
        "VERBS-9.2.1.2-14" => queried.settings.memory.max_regions == 11;
        "VERBS-9.2.1.2-15" => queried.settings.memory.max_pbl_entries == 12;
        "VERBS-9.2.1.2-16" => queried.settings.memory.max_pds == 13;
        "VERBS-9.2.1.2-17" => queried.settings.rnic_ird == 70;
        "VERBS-9.2.1.2-23" => queried.settings.memory.max_windows == 14;
    }
}

#[test]
fn query_returns_buffer_sizes_and_the_order_of_receives() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let queried = open(block()).query().unwrap();
    let without = open(RnicSettings { max_srqs: 0, ..Default::default() }).query().unwrap();
    let other = open(RnicSettings { dequeue: DequeueModel::Sequential, ..Default::default() }).query().unwrap();
    let mut closed = open(RnicSettings::default());
    closed.close().unwrap();
    shows! { proof:
        "VERBS-9.2.1.2-26" => queried.block_sizes == BLOCK_SIZES && queried.block_sizes.contains(&1);
        "VERBS-9.2.1.2-27" => queried.page_sizes == PAGE_SIZES && queried.page_sizes.contains(&4096);
        "VERBS-9.2.1.2-31" => queried.settings.dequeue == DequeueModel::Arrival;
        "VERBS-9.2.1.2-28" => queried.srqs && !without.srqs;
        "VERBS-9.2.1.2-32" => (queried.srqs, closed.query()) == (true, Err(RnicError::InvalidRnicHandle));
        "VERBS-6.3.5-19" => (queried.settings.dequeue, other.settings.dequeue) == (DequeueModel::Arrival, DequeueModel::Sequential);
    }
}

/// Draft section 5.1.1: each limit applies to its resource alone.
#[test]
fn limits_are_enforced() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let memory = MemorySettings { max_pds: 2, max_windows: 3, max_regions: 4, ..MemorySettings::default() };
    let settings = RnicSettings { memory, max_cqs: 1, max_qps: 2, rnic_ord: 5, max_handlers: 1, ..Default::default() };
    let mut rnic = open(settings);
    let count = |mut make: Box<dyn FnMut() -> bool + '_>| (0..10).filter(|_| make()).count();
    let pd = rnic.memory_mut().allocate_pd().unwrap();
    let cq = rnic.create_cq(1, None).unwrap().0;
    shows! { proof:
        "VERBS-5.1.3-2" => (
            count(Box::new(|| rnic.memory_mut().allocate_pd().is_ok())),
            count(Box::new(|| rnic.memory_mut().allocate_window(pd).is_ok())),
            count(Box::new(|| rnic.memory_mut().allocate_stag(pd, 1, false).is_ok())),
            count(Box::new(|| rnic.create_cq(1, None).is_ok())),
        ) == (1, 3, 4, 0);
        // The limits allow ORD 5 for each of two Queue Pairs, but the pool of ORD has only five.
        "VERBS-5.1.1-1" => {
            let init = QpInit { ord: 5, ..QpInit::new(pd, cq, cq) };
            rnic.create_qp(init, None).is_ok() && rnic.create_qp(init, None).unwrap_err() == QpError::InsufficientResources
        };
        "VERBS-9.4.1-4" => count(Box::new(|| {
            rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(1))).is_ok()
        })) == 1;
        "VERBS-9.4.1-3" => rnic.query().unwrap().settings.max_handlers >= 1;
    }
}

#[test]
fn closing_leaves_nothing() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let node = Node::new(["weft0"]);
    let (mut rnic, token) = node.open("weft0", RnicSettings::default()).unwrap();
    let pd = rnic.memory_mut().allocate_pd().unwrap();
    let cq = rnic.create_cq(1, None).unwrap().0;
    let (qp, _, _) = rnic.create_qp(QpInit::new(pd, cq, cq), Some(&token)).unwrap();
    let window = rnic.memory_mut().allocate_window(pd).unwrap();
    let buffer = rnic.memory_mut().allocate_buffer(10).unwrap();
    rnic.set_async_event_handler(Some(HandlerAddress(1))).unwrap();
    let first = rnic.close();
    let second = rnic.close();
    let mut again = node.open("weft0", RnicSettings::default()).unwrap().0;
    shows! { proof:
        "VERBS-5.1.1.2-6" => first == Ok(()) && rnic.memory().buffer(buffer).is_err();
        "VERBS-9.2.1.3-2" => rnic.query() == Err(RnicError::InvalidRnicHandle);
        "VERBS-9.2.1.3-4" => (first, second) == (Ok(()), Err(RnicError::InvalidRnicHandle));
        "VERBS-5.1.4-3" => again.query_qp(qp).unwrap_err() == QpError::InvalidQpHandle
            && again.memory().query_window(window) == Err(MemoryError::InvalidStagIndex)
            && again.query_cq(cq) == Err(CqError::InvalidCqHandle)
            && again.poll_notification().is_none()
            && again.memory_mut().deallocate_pd(pd) == Err(MemoryError::InvalidPdId);
        "VERBS-5.1.4-2" => rnic.memory_mut().buffer_mut(buffer).is_err();
    }
    // The token of privileged Consumers from the first opening is invalid for the second opening.
    let pd = again.memory_mut().allocate_pd().unwrap();
    let cq = again.create_cq(1, None).unwrap().0;
    let qp = again.create_qp(QpInit::new(pd, cq, cq), Some(&token)).unwrap().0;
    shows! { proof: "VERBS-5.1-3" => !again.query_qp(qp).unwrap().privileged; }
}

/// Draft Figure 2: each object needs other objects that must exist before.
#[test]
fn objects_are_created_in_order() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut closed = open(RnicSettings::default());
    closed.close().unwrap();
    let mut side = Side::new(|_| ());
    let init = QpInit::new(side.pd, side.cq, side.cq);
    let rnic = &mut side.rnic;
    let dead = rnic.memory_mut().allocate_pd().unwrap();
    rnic.memory_mut().deallocate_pd(dead).unwrap();
    let (gone, _) = rnic.create_cq(1, None).unwrap();
    rnic.destroy_cq(gone).unwrap();
    let (srq, _) = rnic.create_srq(SrqInit { pd: side.pd, max_wrs: 1, max_sges: 1, limit: 0 }).unwrap();
    rnic.destroy_srq(srq).unwrap();
    let handler = rnic.set_completion_event_handler(HandlerOperation::Register(HandlerAddress(1))).unwrap();
    rnic.set_completion_event_handler(HandlerOperation::Clear(handler)).unwrap();
    shows! { proof:
        "VERBS-5.1.1.1-1" => closed.memory_mut().allocate_pd() == Err(MemoryError::InvalidRnicHandle)
            && closed.create_cq(1, None) == Err(CqError::InvalidRnicHandle)
            && closed.attach_stream(llp_settings(crate::verbs::peers::PLAIN, 1460, true)) == Err(QpError::InvalidRnicHandle);
        "VERBS-5.1.1.1-2" => rnic.create_qp(QpInit { pd: dead, ..init }, None).unwrap_err() == QpError::InvalidPdId
            && rnic.memory_mut().allocate_stag(dead, 1, false) == Err(MemoryError::InvalidPdId)
            && rnic.memory_mut().allocate_window(dead) == Err(MemoryError::InvalidPdId);
        "VERBS-5.1.1.1-3" => [QpInit { sq_cq: gone, ..init }, QpInit { rq_cq: gone, ..init }].into_iter()
            .all(|init| rnic.create_qp(init, None).unwrap_err() == QpError::InvalidCqHandle);
        "VERBS-5.1.1.1-4" => rnic.create_cq(2, Some(handler)) == Err(CqError::InvalidHandler);
        "VERBS-5.1.1.1-5" => rnic.create_qp(QpInit { srq: Some(srq), ..init }, None).unwrap_err()
            == QpError::InvalidSrqHandle;
        "VERBS-7.5-5" => {
            // Each of these verbs requires the PD to which the new object will belong.
            let (pd, other) = (side.pd, rnic.memory_mut().allocate_pd().unwrap());
            let windows = [pd, other].map(|pd| rnic.memory_mut().allocate_window(pd).unwrap());
            let stags = [pd, other].map(|pd| rnic.memory_mut().allocate_stag(pd, 1, true).unwrap().stag.index);
            windows.map(|window| rnic.memory().query_window(window).unwrap().pd) == [pd, other]
                && stags.map(|stag| rnic.memory().query_region(stag).unwrap().pd) == [pd, other]
        };
    }
}
