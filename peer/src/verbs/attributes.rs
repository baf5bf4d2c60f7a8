//! The capabilities of an RNIC (draft section 9.2.1.2), and its settings.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::memory::{BLOCK_SIZES, MemorySettings, PAGE_SIZES};

/// Settings of an RNIC. Each number is a limit of its resource alone, and protects this side from
/// its peers and Consumers (RFC 5042 sections 6.3 and 6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RnicSettings {
    /// Memory, and the buffer list mode.
    pub memory: MemorySettings,
    /// Queue Pairs. Default 65,536.
    pub max_qps: usize,
    /// Outstanding work requests of a Send or Receive Queue. Default 16,384.
    pub max_wrs: u32,
    /// Outstanding work requests of an S-RQ. Default 65,536.
    pub max_srq_wrs: u32,
    /// S-RQs. Default 4096.
    pub max_srqs: usize,
    /// Elements of a Send's or a receive's list. Default 16, at least 4 (VERBS-8.1.3.2-12).
    pub max_sges: u32,
    /// Elements of a Write's list, at least 1. Default 16.
    pub max_write_sges: u32,
    /// Octets of a Send, Write or Read of this side; longer ones fail with Invalid Length. Default
    /// 2^32 - 1.
    pub max_message: u32,
    /// CQs. Default 65,536.
    pub max_cqs: usize,
    /// Entries of a CQ. Default 2^20.
    pub max_cqes: u32,
    /// Completion Event Handlers. Default 1024.
    pub max_handlers: usize,
    /// IRD of a Queue Pair. Default 128.
    pub max_ird: u32,
    /// ORD of a Queue Pair. Default 128.
    pub max_ord: u32,
    /// IRD of all Queue Pairs together; 0, the default, when it is no common pool. A pool limits
    /// Queue Pairs to as many as can have one each (VERBS-6.5-17).
    pub rnic_ird: u32,
    /// ORD of all Queue Pairs together; as `rnic_ird`.
    pub rnic_ord: u32,
    /// IRD can be changed after creation. Default true.
    pub modifies_ird: bool,
    /// ORD can be raised after creation. Default true.
    pub raises_ord: bool,
    /// Sizes of SQ, RQ and S-RQ can be changed after creation. Default true.
    pub resizes_queues: bool,
    /// A Queue Pair that closes or terminates resets its connection when nothing moved for so long.
    /// Default 10 s.
    pub close_timeout: Duration,
    /// RFC 7306 is spoken with peers: Atomic Operations and Immediate Data. Default true.
    pub extensions: bool,
    /// How an S-RQ is emptied. The models differ only if messages of a stream arrive out of order,
    /// which TCP prevents. The model is reported, and otherwise changes nothing (VERBS-6.3.5-19 to
    /// -21). Default arrival.
    pub dequeue: DequeueModel,
}

impl Default for RnicSettings {
    fn default() -> Self {
        RnicSettings {
            memory: MemorySettings::default(),
            max_qps: 1 << 16,
            max_wrs: 1 << 14,
            max_srq_wrs: 1 << 16,
            max_srqs: 1 << 12,
            max_sges: 16,
            max_write_sges: 16,
            max_message: u32::MAX,
            max_cqs: 1 << 16,
            max_cqes: 1 << 20,
            max_handlers: 1 << 10,
            max_ird: 128,
            max_ord: 128,
            rnic_ird: 0,
            rnic_ord: 0,
            modifies_ird: true,
            raises_ord: true,
            resizes_queues: true,
            close_timeout: Duration::from_secs(10),
            extensions: true,
            dequeue: DequeueModel::Arrival,
        }
    }
}

/// In which order messages take receives from an S-RQ (draft section 6.3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DequeueModel {
    /// By their MSN: a message takes receives for those missing before it, too.
    Sequential,
    /// In the order of arrival. Over TCP, which keeps the order, both are the same.
    Arrival,
}

/// The result of Query RNIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RnicAttributes {
    /// Limits, abilities and modes. Zero S-RQs and zero WRs of one when S-RQs are not supported; no
    /// more Queue Pairs than a pool of IRD or ORD has for.
    pub settings: RnicSettings,
    /// Vendor specific: who made it.
    pub vendor: &'static str,
    /// S-RQs are supported.
    pub srqs: bool,
    /// CQ overflow is detected.
    pub detects_cq_overflow: bool,
    /// It could be opened in Block Mode.
    pub block_lists: bool,
    /// Octets that a page may have, in Page Mode.
    pub page_sizes: &'static [u32],
    /// Octets that a block may have, in Block Mode.
    pub block_sizes: RangeInclusive<u32>,
}

impl RnicAttributes {
    pub(super) const fn new(settings: RnicSettings, block_lists: bool) -> Self {
        RnicAttributes {
            settings: settings.honest(),
            vendor: concat!("weft ", env!("CARGO_PKG_VERSION")),
            srqs: settings.max_srqs > 0,
            detects_cq_overflow: true,
            block_lists,
            page_sizes: &PAGE_SIZES,
            block_sizes: BLOCK_SIZES,
        }
    }
}

impl RnicSettings {
    /// The limits as they come out when they are taken together (VERBS-6.3-7, VERBS-6.5-15).
    pub(super) const fn honest(mut self) -> Self {
        if self.max_srqs == 0 {
            self.max_srq_wrs = 0;
        }
        let pools = [self.rnic_ird, self.rnic_ord];
        let mut n = 0;
        while n < pools.len() {
            if pools[n] > 0 && self.max_qps > pools[n] as usize {
                self.max_qps = pools[n] as usize;
            }
            n += 1;
        }
        self
    }
}
