//! Statistics of each kind of command.

use std::collections::BTreeMap;

use serde::Serialize;

use super::command::{CommandState, IoCommand};
use super::histogram::Histogram;
use crate::stats::Percentiles;

/// Maximum number of kinds with statistics. Commands of further kinds are not in these statistics.
pub const MAX_KINDS: usize = 256;

/// Statistics of one kind of command, for example of all Reads of NVMe. Only answered commands
/// count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KindStatistics {
    /// [`Name`](crate::upper::Ulp::name) of the protocol.
    pub protocol: &'static str,
    /// The name of the command.
    pub command: &'static str,
    /// Number of commands whose status is an error.
    pub errors: u64,
    /// Number of bytes that the commands moved.
    pub bytes: u64,
    /// Number of commands, and the percentiles of their latencies. A percentile is at most 1.6 %
    /// larger than the exact value. Minimum and maximum are exact.
    #[serde(flatten)]
    pub latency: Percentiles,
}

#[derive(Debug, Clone, Default)]
struct Kind {
    errors: u64,
    bytes: u64,
    latencies: Histogram,
}

/// Statistics of all kinds.
#[derive(Debug, Clone, Default)]
pub(super) struct Kinds(BTreeMap<(&'static str, &'static str), Kind>);

impl Kinds {
    /// Adds a command, if it has its response.
    pub(super) fn add(&mut self, command: &IoCommand) {
        let Some(latency) = command.latency.filter(|_| command.state == CommandState::Answered) else { return };
        let key = (command.protocol.name(), command.command);
        if self.0.len() >= MAX_KINDS && !self.0.contains_key(&key) {
            return;
        }
        let kind = self.0.entry(key).or_default();
        kind.errors += u64::from(command.error);
        kind.bytes += command.bytes;
        kind.latencies.add(latency.total_ns);
    }

    /// Approximate memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.0.values().map(|kind| size_of::<Kind>() + kind.latencies.memory()).sum()
    }

    /// The statistics, ordered by protocol and name.
    pub(super) fn all(&self) -> impl Iterator<Item = KindStatistics> + '_ {
        self.0.iter().filter_map(|(key, kind)| {
            let ((protocol, command), errors, bytes) = (*key, kind.errors, kind.bytes);
            kind.latencies.percentiles().map(|latency| KindStatistics { protocol, command, errors, bytes, latency })
        })
    }
}
