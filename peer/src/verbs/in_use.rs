//! What of an RNIC is in use: how a program that runs for long, or a test, sees that no resource
//! leaks.

use super::Rnic;

/// What there is of an RNIC's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InUse {
    /// Protection Domains.
    pub pds: usize,
    /// Completion Queues.
    pub cqs: usize,
    /// Queue Pairs.
    pub qps: usize,
    /// Streams of the LLP that are not over.
    pub streams: usize,
    /// Memory Regions.
    pub regions: usize,
    /// Octets of all buffers.
    pub octets: u64,
}

impl Rnic {
    /// What is in use now; after [`close`](Rnic::close) only streams.
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
