//! Connections beyond those that are kept: their number, and their part of the totals.

use super::connection::DirectionStats;
use crate::unit::Unit;

/// The sum of such connections.
#[derive(Debug, Default)]
pub(super) struct Further {
    /// A bit for each connection of the capture, set if it is one of these.
    members: Vec<u64>,
    count: u64,
    sum: DirectionStats,
}

impl Further {
    /// Adds a unit of such a connection.
    pub(super) fn unit(&mut self, stream: u32, unit: &Unit<'_>) {
        let (word, bit) = (stream as usize / 64, 1 << (stream % 64));
        if word >= self.members.len() {
            self.members.resize(word + 1, 0);
        }
        self.count += u64::from(self.members[word] & bit == 0);
        self.members[word] |= bit;
        self.sum.unit(unit);
    }

    /// How many connections.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The traffic of their ends.
    pub(super) fn sum(&self) -> &DirectionStats {
        &self.sum
    }

    /// Bytes of memory that grow with the capture.
    pub(super) fn memory(&self) -> usize {
        self.members.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Stats, Totals};
    use crate::Dissector;
    use crate::source::Capture;

    fn read(most: usize) -> Stats {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
        let mut capture = Capture::open(&folder.join("host-matrix.pcap")).unwrap();
        let (mut stats, mut dissector) = (Stats::with_room(most), Dissector::default());
        while let Some(frame) = capture.next_frame() {
            dissector.frame(&frame, &mut stats);
        }
        dissector.finish(&mut stats);
        stats
    }

    #[test]
    fn further_connections_are_counted_and_in_the_totals() {
        let all = read(super::super::MOST_CONNECTIONS);
        let total = all.connections().count();
        assert!(total > 3, "{total}");
        for most in [0, 1, total - 1] {
            let part = read(most);
            assert_eq!((part.connections().count(), part.further()), (most, (total - most) as u64));
            assert_eq!(part.others(), all.others());
            assert_eq!(part.totals(), Totals { further_connections: (total - most) as u64, ..all.totals() });
            assert!(part.memory() < all.memory());
        }
    }
}
