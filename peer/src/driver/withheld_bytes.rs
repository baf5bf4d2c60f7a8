//! A send whose TCP segments the tester chooses: which of its bytes have left. The virtual link and
//! the tester's own TCP use it.

use core::ops::Range;

use bytes::Bytes;

/// A send whose TCP segments the tester chooses.
#[derive(Debug)]
pub(super) struct WithheldBytes {
    pub(super) octets: Bytes,
    /// For each byte, whether a segment had it.
    sent: Vec<bool>,
}

impl WithheldBytes {
    pub(super) fn new(octets: &[u8]) -> Self {
        WithheldBytes { octets: Bytes::copy_from_slice(octets), sent: vec![false; octets.len()] }
    }

    /// Notes a segment of `len` bytes that begins at the offset `begin`. A negative offset is in
    /// the bytes before this send.
    pub(super) fn note_segment(&mut self, begin: i64, len: usize) {
        let end = begin.saturating_add(i64::try_from(len).unwrap_or(i64::MAX));
        let index = |offset: i64| usize::try_from(offset.max(0)).unwrap_or(usize::MAX).min(self.octets.len());
        self.sent[index(begin)..index(end)].fill(true);
    }

    /// Returns the ranges of the bytes that no segment had.
    pub(super) fn missing(&self) -> Vec<Range<usize>> {
        let mut missing: Vec<Range<usize>> = Vec::new();
        for (index, _) in self.sent.iter().enumerate().filter(|(_, sent)| !**sent) {
            match missing.last_mut() {
                Some(range) if range.end == index => range.end += 1,
                _ => missing.push(index..index + 1),
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::WithheldBytes;

    #[test]
    fn bytes_that_no_segment_had_are_missing() {
        let mut withheld = WithheldBytes::new(b"abcdef");
        // A retransmission of earlier bytes, and of the first byte.
        withheld.note_segment(-4, 5);
        withheld.note_segment(2, 2);
        assert_eq!(withheld.missing(), [1..2, 4..6]);
        withheld.note_segment(0, 100);
        assert!(withheld.missing().is_empty());
    }
}
