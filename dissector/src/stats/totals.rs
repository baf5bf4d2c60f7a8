//! Statistics of all connections of a capture together.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::connection::DirectionStats;
use super::text::{findings, list};
use crate::digits::counted;

/// The sum over the connections with iWARP or SDP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Connections with iWARP or SDP.
    pub connections: u64,
    /// Connections with iWARP or SDP that are not listed, because there are too many.
    #[serde(skip_serializing_if = "is_none")]
    pub further_connections: u64,
    /// TCP connections without iWARP or SDP.
    pub other_connections: u64,
    /// Datagrams of the SDP port mapper.
    pub port_mapper: u64,
    /// Exchanges of the port mapper that are not listed: those after the first
    /// [`MOST_EXCHANGES`](super::MOST_EXCHANGES).
    #[serde(skip_serializing_if = "is_none")]
    pub further_exchanges: u64,
    /// FPDUs.
    pub fpdus: u64,
    /// Octets of their ULPDUs.
    pub ulpdu_octets: u64,
    /// Octets after their DDP headers.
    pub payload_octets: u64,
    /// FPDUs by opcode.
    pub opcodes: BTreeMap<String, u64>,
    /// Octets after the DDP headers, by opcode.
    pub opcode_octets: BTreeMap<String, u64>,
    /// FPDUs by the state of their CRC.
    pub crc: BTreeMap<&'static str, u64>,
    /// FPDUs by the state of their markers.
    pub markers: BTreeMap<&'static str, u64>,
    /// Findings by severity: notes, warnings, errors. Findings that concern none of the connections
    /// count, too.
    pub findings: [u64; 3],
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Totals {
    /// Is there neither a connection nor a finding to report?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections == 0 && self.findings == [0; 3]
    }

    pub(super) fn add(&mut self, side: &DirectionStats) {
        self.fpdus += side.fpdus;
        self.ulpdu_octets += side.ulpdu_octets;
        self.payload_octets += side.payload_octets;
        add(&mut self.opcodes, &side.opcodes);
        add(&mut self.opcode_octets, &side.opcode_octets);
        add(&mut self.crc, &side.crc);
        add(&mut self.markers, &side.markers);
    }
}

fn add<K: Ord + Clone>(sums: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (name, count) in counts {
        *sums.entry(name.clone()).or_default() += count;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fpdus > 0 {
            let Totals { fpdus, ulpdu_octets, payload_octets, .. } = self;
            writeln!(f, "total  FPDUs: {fpdus}, ULPDU bytes {ulpdu_octets}, payload bytes {payload_octets}")?;
            writeln!(f, "  {:<40} {:>10} {:>7} {:>16}", "opcode", "FPDUs", "%", "payload bytes")?;
            for (name, count) in &self.opcodes {
                let octets = self.opcode_octets.get(name).copied().unwrap_or(0);
                let share = *count as f64 * 100.0 / *fpdus as f64;
                writeln!(f, "  {name:<40} {count:>10} {share:>7.2} {octets:>16}")?;
            }
            writeln!(f, "  CRC: {}", list(self.crc.iter().map(|(name, count)| (*name, *count))))?;
            writeln!(f, "  markers: {}", list(self.markers.iter().map(|(name, count)| (*name, *count))))?;
        }
        if self.further_connections > 0 {
            let further = counted(self.further_connections, "further connection");
            writeln!(f, "  {further}, counted in these totals and not shown")?;
        }
        findings(self.findings, f)
    }
}
