//! Counts of an RNIC's objects. A test or a long-running program can use the counts to detect
//! leaks.

use super::Rnic;

/// Number of objects of an RNIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InUse {
    /// Protection Domains.
    pub pds: usize,
    /// Completion Queues.
    pub cqs: usize,
    /// Queue Pairs.
    pub qps: usize,
    /// Attached LLP streams.
    pub streams: usize,
    /// Memory Regions.
    pub regions: usize,
    /// Total length of all buffers in bytes.
    pub octets: u64,
}

impl Rnic {
    /// The current counts. After [`close`](Rnic::close), only the count of streams can be above 0.
    #[must_use]
    pub fn in_use(&self) -> InUse {
        let memory = &self.shared.memory;
        InUse {
            pds: memory.pds(),
            cqs: self.shared.cqs.len(),
            qps: self.qps.len(),
            streams: self.llps.len(),
            regions: memory.regions(),
            octets: memory.octets(),
        }
    }
}
