//! Tests the number and the traffic of connections that are not stored because of the limit.

use std::path::Path;

use super::{MAX_CONNECTIONS, Stats, Totals};
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
    let all = read(MAX_CONNECTIONS);
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
