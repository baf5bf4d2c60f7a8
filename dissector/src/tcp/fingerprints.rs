//! Stores fingerprints of the segments of a direction. Fingerprints distinguish a copy of a segment
//! from a segment of another connection.
//!
//! A fingerprint is a CRC of the first octets of a segment. The octets themselves are no longer in
//! memory when a copy arrives.

use weft_core::crc::crc32c;

use crate::ip::Segment;

/// Number of segments at the start of a direction whose fingerprints are always stored. A user can
/// append a second capture of the same connection to the first capture. These fingerprints then
/// show that the segments are copies.
const FIRST: usize = 4;
/// Number of latest segments whose fingerprints are stored in addition.
const LATEST: usize = 16;
/// Maximum number of octets of a segment in its fingerprint.
const MAX_COMPARED_OCTETS: usize = 64;

#[derive(Debug, Clone, Copy, Default)]
struct Fingerprint {
    seq: u32,
    /// Number of octets in the fingerprint; 0 for an unused element.
    len: u8,
    crc: u32,
}

impl Fingerprint {
    /// The fingerprint of a segment. Returns `None` for a segment without octets, and for a segment
    /// of one octet, because such a segment can be a keep-alive.
    fn of(segment: &Segment<'_>) -> Option<Self> {
        let octets = &segment.octets[..segment.octets.len().min(MAX_COMPARED_OCTETS)];
        let seq = segment.seq.wrapping_add(u32::from(segment.syn));
        (segment.wire_len > 1 && !octets.is_empty()).then(|| Fingerprint {
            seq,
            len: octets.len() as u8,
            crc: crc32c(octets),
        })
    }
}

/// The stored fingerprints of a direction.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    first: [Fingerprint; FIRST],
    latest: [Fingerprint; LATEST],
    count: usize,
}

impl Fingerprints {
    /// Adds a segment.
    pub(crate) fn add(&mut self, segment: &Segment<'_>) {
        let Some(fingerprint) = Fingerprint::of(segment) else { return };
        match self.first.get_mut(self.count) {
            Some(free) => *free = fingerprint,
            None => self.latest[self.count % LATEST] = fingerprint,
        }
        self.count += 1;
    }

    /// Compares the first octets of a segment with a stored segment that has the same sequence
    /// number and length. Returns whether they are equal; `None` if there is no such stored
    /// segment.
    pub(crate) fn compare(&self, segment: &Segment<'_>) -> Option<bool> {
        let fingerprint = Fingerprint::of(segment)?;
        let known = self.first.iter().chain(&self.latest);
        let mut same = known.filter(|known| (known.seq, known.len) == (fingerprint.seq, fingerprint.len)).peekable();
        same.peek()?;
        Some(same.any(|known| known.crc == fingerprint.crc))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::segment;
    use super::*;

    #[test]
    fn compares_a_copy_with_what_the_first_and_the_latest_segments_began() {
        let mut fingerprints = Fingerprints::default();
        let octets = |n: u32| [&n.to_be_bytes()[..], &[7; 100]].concat();
        (0..30).for_each(|n| fingerprints.add(&segment(n * 104, &octets(n))));
        let copy = |n: u32, content: u32| fingerprints.compare(&segment(n * 104, &octets(content)));
        assert_eq!((copy(0, 0), copy(3, 3), copy(29, 29)), (Some(true), Some(true), Some(true)));
        assert_eq!((copy(0, 1), copy(29, 1)), (Some(false), Some(false)));
        assert_eq!((copy(10, 10), copy(30, 30)), (None, None));
    }

    #[test]
    fn what_may_be_a_keep_alive_or_is_cut_otherwise_is_not_compared() {
        let mut fingerprints = Fingerprints::default();
        fingerprints.add(&segment(5, &[0]));
        fingerprints.add(&segment(6, &[1, 2, 3]));
        assert_eq!(fingerprints.compare(&segment(5, &[1])), None);
        assert_eq!(fingerprints.compare(&segment(6, &[1, 2])), None);
        assert_eq!(fingerprints.compare(&segment(6, &[])), None);
        assert_eq!(fingerprints.compare(&segment(6, &[1, 2, 4])), Some(false));
    }
}
