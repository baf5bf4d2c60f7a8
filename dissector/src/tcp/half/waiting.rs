//! Octets that are not settled: those after a hole, and doubted ones. Decides which copy of an
//! octet counts.

use super::super::run::Source;
use super::Half;

impl Half {
    /// The receiver has all octets before this sequence number: doubted ones count. Returns whether
    /// there are any.
    pub(crate) fn acknowledge(&mut self, ack: u32) -> bool {
        let Some(base) = self.base.filter(|_| self.doubted > 0) else { return false };
        let (acknowledged, before) = (self.position(ack, base), self.doubted);
        for (position, (octets, source)) in &mut self.waiting {
            if source.is_doubted && position + octets.len() as u64 <= acknowledged {
                source.is_doubted = false;
                self.doubted -= 1;
            }
        }
        let any = self.doubted < before;
        if any {
            self.settle();
        }
        any
    }

    /// Keeps those of `octets` that are not waiting already. Pieces that give way to them fill the
    /// remaining positions.
    pub(super) fn wait(&mut self, octets: &[u8], source: Source) {
        let (start, end) = (source.position, source.position + octets.len() as u64);
        if self.probes > 0 && !source.is_probe {
            self.replace_probes(start, end);
        }
        let doubted = if self.doubted > 0 && !source.is_doubted { self.take_doubted(start, end) } else { Vec::new() };
        self.fill(octets, source);
        doubted.iter().for_each(|(octets, source)| self.fill(octets, *source));
    }

    /// Keeps those of `octets` that are not waiting already.
    fn fill(&mut self, octets: &[u8], source: Source) {
        let (start, end) = (source.position, source.position + octets.len() as u64);
        let mut fresh = Vec::new();
        let before = self.waiting.range(..start).next_back();
        let mut at = before.map_or(start, |(at, (piece, _))| start.max(at + piece.len() as u64));
        for (from, (piece, _)) in self.waiting.range(start..end) {
            if at < *from {
                fresh.push((at, *from));
            }
            at = at.max(from + piece.len() as u64);
        }
        if at < end {
            fresh.push((at, end));
        }
        for (from, to) in fresh {
            let (skip, until) = ((from - start) as usize, (to - start) as usize);
            self.waiting.insert(from, (octets[skip..until].to_vec(), source.after(skip as u64)));
            self.waiting_octets += until - skip;
            self.buffered += until - skip;
            self.sources += 1;
            self.probes += usize::from(source.is_probe);
            self.doubted += usize::from(source.is_doubted);
        }
    }

    /// Removes and returns doubted pieces with octets of `start..end`.
    fn take_doubted(&mut self, start: u64, end: u64) -> Vec<(Vec<u8>, Source)> {
        let overlapping =
            self.waiting.range(..end).rev().take_while(|(at, (octets, _))| *at + octets.len() as u64 > start);
        let doubted = overlapping.filter(|(_, (_, source))| source.is_doubted);
        let positions: Vec<u64> = doubted.map(|(position, _)| *position).collect();
        positions.into_iter().filter_map(|position| self.take(position)).collect()
    }

    /// Octets that may belong to keep-alives give way to those of a longer segment, `start..end`.
    fn replace_probes(&mut self, start: u64, end: u64) {
        let waiting = self.waiting.range(start..end);
        let probes: Vec<u64> =
            waiting.filter(|(_, (_, source))| source.is_probe).map(|(position, _)| *position).collect();
        for position in probes {
            self.take(position);
        }
    }

    /// Removes and returns the waiting piece at `position`.
    pub(super) fn take(&mut self, position: u64) -> Option<(Vec<u8>, Source)> {
        let (octets, source) = self.waiting.remove(&position)?;
        self.waiting_octets -= octets.len();
        self.buffered -= octets.len();
        self.sources -= 1;
        self.probes -= usize::from(source.is_probe);
        self.doubted -= usize::from(source.is_doubted);
        Some((octets, source))
    }
}
