//! Connections that are not stored because of the limit: their number and their traffic.

use super::connection::DirectionStats;
use crate::stream_id::{StreamId, StreamSet};
use crate::unit::Unit;

/// The connections that are not stored.
#[derive(Debug, Default)]
pub(super) struct UnstoredConnections {
    members: StreamSet,
    sum: DirectionStats,
}

impl UnstoredConnections {
    /// Adds a unit of a connection that is not stored.
    pub(super) fn unit(&mut self, stream: StreamId, unit: &Unit<'_>) {
        self.members.insert(stream);
        self.sum.unit(unit);
    }

    /// Number of these connections.
    pub(super) fn count(&self) -> u64 {
        self.members.count()
    }

    /// The traffic of these connections, summed over both directions.
    pub(super) fn sum(&self) -> &DirectionStats {
        &self.sum
    }

    /// Memory in bytes that grows with the capture.
    pub(super) fn memory(&self) -> usize {
        self.members.memory()
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
        let all = read(super::super::MAX_CONNECTIONS);
        let total = all.connections().count();
        assert!(total > 3, "{total}");
        for most in [0, 1, total - 1] {
            let part = read(most);
            assert_eq!((part.connections().count(), part.unstored_connections()), (most, (total - most) as u64));
            assert_eq!(part.others(), all.others());
            assert_eq!(part.totals(), Totals { further_connections: (total - most) as u64, ..all.totals() });
            assert!(part.memory() < all.memory());
        }
    }
}
