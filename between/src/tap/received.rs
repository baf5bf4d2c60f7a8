//! Which bytes of a direction of a connection have already arrived.
//!
//! TCP drops the bytes of a segment that it already has (RFC 9293 section 3.10.7.4). So a corrupted
//! byte in a superfluous retransmission has no effect.

/// Maximum number of separate ranges after missing bytes. The bytes of further ranges count as not
/// arrived.
const MAX_RANGES: usize = 64;

/// The bytes that have arrived, by sequence number. The first byte is the first one that was
/// recorded.
#[derive(Debug, Default)]
pub(super) struct ReceivedBytes {
    /// The first byte that is missing; `None` before the first byte.
    next: Option<u32>,
    /// Ranges after missing bytes, in any order: their first bytes, and the bytes after them.
    later: Vec<(u32, u32)>,
}

impl ReceivedBytes {
    /// Records `len` bytes from sequence number `start` on.
    pub(super) fn add(&mut self, start: u32, len: u32) {
        if len == 0 {
            return;
        }
        let end = start.wrapping_add(len);
        let mut next = self.next.unwrap_or(start);
        if is_before(next, start) {
            if self.later.len() < MAX_RANGES {
                self.later.push((start, end));
            }
            return;
        }
        next = later_of(next, end);
        while let Some(at) = self.later.iter().position(|(start, _)| !is_before(next, *start)) {
            let (_, end) = self.later.swap_remove(at);
            next = later_of(next, end);
        }
        self.next = Some(next);
    }

    /// Whether the byte with sequence number `at` has arrived.
    pub(super) fn contains(&self, at: u32) -> bool {
        let is_within = |(start, end): &(u32, u32)| !is_before(at, *start) && is_before(at, *end);
        self.next.is_some_and(|next| is_before(at, next)) || self.later.iter().any(is_within)
    }
}

/// Whether a sequence number is before another one. Sequence numbers wrap (RFC 9293 section 3.4).
fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() < 0
}

fn later_of(one: u32, other: u32) -> u32 {
    if is_before(one, other) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_from_their_arrival_on() {
        // The sequence numbers wrap after 5 bytes.
        let first = u32::MAX - 4;
        let mut received = ReceivedBytes::default();
        assert!(!received.contains(first));
        received.add(first, 10);
        assert!(received.contains(first) && received.contains(4) && !received.contains(5));
        received.add(2, 6);
        assert!(received.contains(7) && !received.contains(8));
    }

    #[test]
    fn bytes_after_a_hole_count_and_join_when_the_hole_is_filled() {
        let mut received = ReceivedBytes::default();
        received.add(100, 10);
        received.add(130, 10);
        received.add(120, 10);
        let contained = |received: &ReceivedBytes| [109, 110, 119, 120, 139, 140].map(|at| received.contains(at));
        assert_eq!(contained(&received), [true, false, false, true, true, false]);
        received.add(110, 10);
        assert_eq!(contained(&received), [true, true, true, true, true, false]);
        assert_eq!((received.next, received.later.len()), (Some(140), 0));
    }

    #[test]
    fn the_number_of_ranges_is_limited() {
        let mut received = ReceivedBytes::default();
        (0..1000).for_each(|index| received.add(index * 10, 5));
        assert!(received.later.len() == MAX_RANGES && !received.contains(9990));
    }
}
