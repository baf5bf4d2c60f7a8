//! Stores waiting octets: octets after a gap, and doubted octets. This module decides which copy of
//! an octet counts. The parent module [`super`] defines the terms.

use super::super::run::Source;
use super::DirectionStream;

impl DirectionStream {
    /// Accepts doubted octets before the acknowledgement number `ack`, because the receiver has
    /// accepted these octets. Returns whether there were such octets.
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

    /// Stores `octets` at positions where no octets wait. Octets of a longer segment replace
    /// waiting keep-alive octets, and octets that are not doubted replace doubted octets.
    pub(super) fn wait(&mut self, octets: &[u8], source: Source) {
        let (start, end) = (source.position, source.position + octets.len() as u64);
        if self.probes > 0 && !source.is_probe {
            self.replace_probes(start, end);
        }
        let doubted = if self.doubted > 0 && !source.is_doubted { self.take_doubted(start, end) } else { Vec::new() };
        self.fill(octets, source);
        doubted.iter().for_each(|(octets, source)| self.fill(octets, *source));
    }

    /// Stores `octets` at positions where no octets wait.
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

    /// Removes and returns the doubted pieces with octets at positions `start..end`.
    fn take_doubted(&mut self, start: u64, end: u64) -> Vec<(Vec<u8>, Source)> {
        let overlapping =
            self.waiting.range(..end).rev().take_while(|(at, (octets, _))| *at + octets.len() as u64 > start);
        let doubted = overlapping.filter(|(_, (_, source))| source.is_doubted);
        let positions: Vec<u64> = doubted.map(|(position, _)| *position).collect();
        positions.into_iter().filter_map(|position| self.take(position)).collect()
    }

    /// Removes waiting octets at positions `start..end` that possibly belong to keep-alives. A
    /// longer segment has octets at these positions.
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
