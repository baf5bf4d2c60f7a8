//! The capabilities of an RNIC (draft-hilland-rddp-verbs section 9.2.1.2), and its settings.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::memory::{BLOCK_SIZES, MemorySettings, PAGE_SIZES};

/// Settings of an RNIC. Each kind of object has its own limit. The limits protect the RNIC from its
/// peers and Consumers (RFC 5042 sections 6.3 and 6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RnicSettings {
    /// Memory settings, including the buffer list mode.
    pub memory: MemorySettings,
    /// Greatest number of Queue Pairs. Default 65,536.
    pub max_qps: usize,
    /// Greatest number of outstanding Work Requests of a Send Queue or Receive Queue. Default
    /// 16,384.
    pub max_wrs: u32,
    /// Greatest number of outstanding Work Requests of an S-RQ. Default 65,536.
    pub max_srq_wrs: u32,
    /// Greatest number of S-RQs. Default 4096.
    pub max_srqs: usize,
    /// Greatest number of scatter/gather elements of a Send or a receive. The setting must be at
    /// least 4 (VERBS-8.1.3.2-12). Default 16.
    pub max_sges: u32,
    /// Greatest number of gather elements of a Write, at least 1. Default 16.
    pub max_write_sges: u32,
    /// Greatest length in bytes of a Send, Write or Read of this endpoint. Longer operations fail
    /// with Invalid Length. Default 2^32 - 1.
    pub max_message: u32,
    /// Greatest number of CQs. Default 65,536.
    pub max_cqs: usize,
    /// Greatest number of entries of a CQ. Default 2^20.
    pub max_cqes: u32,
    /// Greatest number of Completion Event Handlers. Default 1024.
    pub max_handlers: usize,
    /// Greatest IRD of a Queue Pair. Default 128.
    pub max_ird: u32,
    /// Greatest ORD of a Queue Pair. Default 128.
    pub max_ord: u32,
    /// Size of a common pool for the IRD of all Queue Pairs. The default 0 means that there is no
    /// common pool. If there is a pool, the number of Queue Pairs is at most the size of the pool.
    /// Each Queue Pair can therefore have an IRD of at least 1 (VERBS-6.5-17).
    pub rnic_ird: u32,
    /// Size of a common pool for the ORD of all Queue Pairs. The rules of `rnic_ird` apply.
    pub rnic_ord: u32,
    /// The IRD of a Queue Pair can be changed after its creation. Default true.
    pub modifies_ird: bool,
    /// The ORD of a Queue Pair can be raised after its creation. Default true.
    pub raises_ord: bool,
    /// The sizes of SQ, RQ and S-RQ can be changed after creation. Default true.
    pub resizes_queues: bool,
    /// Time-out of a Queue Pair that closes or terminates. If nothing is sent for this time, the
    /// Queue Pair resets its connection. Default 10 s.
    pub close_timeout: Duration,
    /// The RNIC supports RFC 7306: Atomic Operations and Immediate Data. Default true.
    pub extensions: bool,
    /// Order in which messages take the posted receives from an S-RQ. The models differ only if
    /// messages of a stream arrive out of order, and TCP prevents this. The RNIC reports this
    /// setting, but the setting has no other effect (VERBS-6.3.5-19 to -21). Default arrival.
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

/// Order in which messages take the posted receives from an S-RQ (draft section 6.3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DequeueModel {
    /// In the order of the MSNs. A message also reserves receives for missing messages with lower
    /// MSNs.
    Sequential,
    /// In the order of arrival. TCP keeps the order, so over TCP this model has the same effect as
    /// `Sequential`.
    Arrival,
}

/// The result of Query RNIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RnicAttributes {
    /// The settings of the RNIC. If S-RQs are not supported, `max_srqs` and `max_srq_wrs` are 0. If
    /// there is a pool for IRD or ORD, `max_qps` is at most the size of the pool.
    pub settings: RnicSettings,
    /// Vendor-specific: name and version of the software.
    pub vendor: &'static str,
    /// S-RQs are supported.
    pub srqs: bool,
    /// The RNIC detects an overflow of a CQ.
    pub detects_cq_overflow: bool,
    /// The RNIC can be opened in Block Mode.
    pub block_lists: bool,
    /// Page sizes in bytes that are possible in Page Mode.
    pub page_sizes: &'static [u32],
    /// Block sizes in bytes that are possible in Block Mode.
    pub block_sizes: RangeInclusive<u32>,
}

impl RnicAttributes {
    pub(super) fn new(settings: RnicSettings, block_lists: bool) -> Self {
        RnicAttributes {
            settings: settings.effective(),
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
    /// Reduces each limit to the greatest value that the other limits allow (VERBS-6.3-7,
    /// VERBS-6.5-15).
    pub(super) fn effective(mut self) -> Self {
        if self.max_srqs == 0 {
            self.max_srq_wrs = 0;
        }
        for pool in [self.rnic_ird, self.rnic_ord].into_iter().filter(|pool| *pool > 0) {
            self.max_qps = self.max_qps.min(pool as usize);
        }
        self
    }
}
