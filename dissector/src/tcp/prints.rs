//! Fingerprints of the segments of a direction. They distinguish a copy of a segment from a segment
//! of another connection.
//!
//! A fingerprint is a CRC of the first octets of a segment. The octets themselves are no longer in
//! memory when a copy arrives.

use weft_core::crc::crc32c;

use crate::ip::Segment;

/// Number of first segments with stored fingerprints. They detect a second capture of the same
/// connection that is appended to the first capture.
const FIRST: usize = 4;
/// Number of latest segments with stored fingerprints.
const LATEST: usize = 16;
/// Maximum number of octets of a segment in its fingerprint.
const COMPARED: usize = 64;

#[derive(Debug, Clone, Copy, Default)]
struct Print {
    seq: u32,
    /// Number of octets in the fingerprint; 0 for an unused element.
    len: u8,
    crc: u32,
}

impl Print {
    /// The fingerprint of a segment. Returns `None` for a segment without octets, and for a segment
    /// of one octet, which may be a keep-alive.
    fn of(segment: &Segment<'_>) -> Option<Self> {
        let octets = &segment.octets[..segment.octets.len().min(COMPARED)];
        let seq = segment.seq.wrapping_add(u32::from(segment.syn));
        (segment.wire_len > 1 && !octets.is_empty()).then(|| Print {
            seq,
            len: octets.len() as u8,
            crc: crc32c(octets),
        })
    }
}

/// The stored fingerprints of a direction.
#[derive(Debug, Default)]
pub(crate) struct Prints {
    first: [Print; FIRST],
    latest: [Print; LATEST],
    count: usize,
}

impl Prints {
    /// Adds a segment.
    pub(crate) fn note(&mut self, segment: &Segment<'_>) {
        let Some(print) = Print::of(segment) else { return };
        match self.first.get_mut(self.count) {
            Some(free) => *free = print,
            None => self.latest[self.count % LATEST] = print,
        }
        self.count += 1;
    }

    /// Returns whether the first octets of a segment equal those of a stored segment with the same
    /// sequence number and length; `None` if there is no such stored segment.
    pub(crate) fn compare(&self, segment: &Segment<'_>) -> Option<bool> {
        let print = Print::of(segment)?;
        let known = self.first.iter().chain(&self.latest);
        let mut same = known.filter(|known| (known.seq, known.len) == (print.seq, print.len)).peekable();
        same.peek()?;
        Some(same.any(|known| known.crc == print.crc))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::segment;
    use super::*;

    #[test]
    fn compares_a_copy_with_what_the_first_and_the_latest_segments_began() {
        let mut prints = Prints::default();
        let octets = |n: u32| [&n.to_be_bytes()[..], &[7; 100]].concat();
        (0..30).for_each(|n| prints.note(&segment(n * 104, &octets(n))));
        let copy = |n: u32, content: u32| prints.compare(&segment(n * 104, &octets(content)));
        assert_eq!((copy(0, 0), copy(3, 3), copy(29, 29)), (Some(true), Some(true), Some(true)));
        assert_eq!((copy(0, 1), copy(29, 1)), (Some(false), Some(false)));
        assert_eq!((copy(10, 10), copy(30, 30)), (None, None));
    }

    #[test]
    fn what_may_be_a_keep_alive_or_is_cut_otherwise_is_not_compared() {
        let mut prints = Prints::default();
        prints.note(&segment(5, &[0]));
        prints.note(&segment(6, &[1, 2, 3]));
        assert_eq!(prints.compare(&segment(5, &[1])), None);
        assert_eq!(prints.compare(&segment(6, &[1, 2])), None);
        assert_eq!(prints.compare(&segment(6, &[])), None);
        assert_eq!(prints.compare(&segment(6, &[1, 2, 4])), Some(false));
    }
}
