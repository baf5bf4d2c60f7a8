//! Totals over all connections of a capture.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::connection::DirectionStats;
use super::text::{findings, list};
use crate::format::counted;

/// Totals over all connections with iWARP or SDP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Number of connections with iWARP or SDP.
    pub connections: u64,
    /// Number of connections with iWARP or SDP that are not listed because of the limit.
    #[serde(skip_serializing_if = "is_none")]
    pub further_connections: u64,
    /// Number of TCP connections without iWARP or SDP.
    pub other_connections: u64,
    /// Number of SDP port mapper datagrams.
    pub port_mapper: u64,
    /// Number of port mapper exchanges that are not listed, because only the first
    /// [`MAX_EXCHANGES`](super::MAX_EXCHANGES) exchanges are listed.
    #[serde(skip_serializing_if = "is_none")]
    pub further_exchanges: u64,
    /// Number of FPDUs.
    pub fpdus: u64,
    /// Number of octets of all ULPDUs.
    pub ulpdu_octets: u64,
    /// Number of octets after the DDP headers.
    pub payload_octets: u64,
    /// Number of FPDUs with each opcode.
    pub opcodes: BTreeMap<String, u64>,
    /// Number of octets after the DDP headers, for each opcode.
    pub opcode_octets: BTreeMap<String, u64>,
    /// Number of FPDUs with each CRC status.
    pub crc: BTreeMap<&'static str, u64>,
    /// Number of FPDUs with each marker status.
    pub markers: BTreeMap<&'static str, u64>,
    /// Number of findings of each severity: notes, warnings, errors. Findings about datagrams are
    /// included.
    pub findings: [u64; 3],
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Totals {
    /// Returns whether there are no connections with iWARP or SDP, and no findings.
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
        if self.fpdus == 0 {
            writeln!(f, "total  FPDUs: 0")?;
        } else {
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
