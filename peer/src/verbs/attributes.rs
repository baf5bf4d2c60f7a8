//! What an RNIC can do (draft section 9.2.1.2), and what it is set to.

use core::time::Duration;

use crate::memory::MemorySettings;

/// Settings of an RNIC. Each number is a limit of its resource alone, and protects this side from its peers and Consumers
/// (RFC 5042 sections 6.3 and 6.4).
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
    /// Elements of a scatter/gather list. Default 16, at least 4 (VERBS-8.1.3.2-12).
    pub max_sges: u32,
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
    /// A Queue Pair that closes or terminates resets its connection when nothing moved for so long. Default 10 s.
    pub close_timeout: Duration,
    /// RFC 7306 is spoken with peers: Atomic Operations and Immediate Data. Default true.
    pub extensions: bool,
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
            max_cqs: 1 << 16,
            max_cqes: 1 << 20,
            max_handlers: 1 << 10,
            max_ird: 128,
            max_ord: 128,
            close_timeout: Duration::from_secs(10),
            extensions: true,
        }
    }
}

/// What Query RNIC tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RnicAttributes {
    /// Limits and modes.
    pub settings: RnicSettings,
    /// Vendor specific: who made it.
    pub vendor: &'static str,
    /// IRD of all Queue Pairs together; 0: not pooled.
    pub rnic_ird: u32,
    /// ORD of all Queue Pairs together; 0: not pooled.
    pub rnic_ord: u32,
    /// IRD can be changed after creation.
    pub modifies_ird: bool,
    /// ORD can be raised after creation.
    pub raises_ord: bool,
    /// Queue sizes can be changed after creation.
    pub resizes_queues: bool,
    /// S-RQs are supported.
    pub srqs: bool,
    /// S-RQs are emptied in the order in which messages arrive.
    pub srq_by_arrival: bool,
    /// CQ overflow is detected.
    pub detects_cq_overflow: bool,
}

impl RnicAttributes {
    pub(super) const fn new(settings: RnicSettings) -> Self {
        RnicAttributes {
            settings,
            vendor: concat!("weft ", env!("CARGO_PKG_VERSION")),
            rnic_ird: 0,
            rnic_ord: 0,
            modifies_ird: true,
            raises_ord: true,
            resizes_queues: true,
            srqs: true,
            srq_by_arrival: true,
            detects_cq_overflow: true,
        }
    }
}
