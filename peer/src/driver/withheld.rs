//! A send whose TCP segments the tester chooses: which of its bytes have left without a gap.

use core::ops::Range;

use bytes::Bytes;

/// A send whose TCP segments the tester chooses.
///
/// The traffic log has the bytes of a stream in their order, so it has a byte only after all bytes
/// before it have left.
#[derive(Debug)]
pub(super) struct Withheld {
    pub(super) octets: Bytes,
    /// For each byte, whether a segment had it.
    sent: Vec<bool>,
    /// The number of bytes that the traffic log has.
    logged: usize,
}

impl Withheld {
    pub(super) fn new(octets: &[u8]) -> Self {
        Withheld { octets: Bytes::copy_from_slice(octets), sent: vec![false; octets.len()], logged: 0 }
    }

    /// Notes a segment of `len` bytes that begins at the offset `begin`. Returns the bytes that the
    /// traffic log must have now, and does not have yet.
    pub(super) fn sent(&mut self, begin: i64, len: usize) -> Option<Bytes> {
        let end = begin.saturating_add(i64::try_from(len).unwrap_or(i64::MAX));
        let index = |offset: i64| usize::try_from(offset.max(0)).unwrap_or(usize::MAX).min(self.octets.len());
        self.sent[index(begin)..index(end)].fill(true);
        let from = self.logged;
        self.logged += self.sent[from..].iter().take_while(|sent| **sent).count();
        (self.logged > from).then(|| self.octets.slice(from..self.logged))
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
    use super::Withheld;

    #[test]
    fn the_log_gets_each_byte_once_and_in_order() {
        let mut withheld = Withheld::new(b"abcdef");
        assert_eq!(withheld.sent(2, 2), None, "bytes 0 and 1 are missing");
        assert_eq!(withheld.sent(-4, 4), None, "a retransmission of earlier bytes");
        assert_eq!(withheld.sent(0, 2).as_deref(), Some(&b"abcd"[..]));
        assert_eq!(withheld.sent(0, 4), None, "a retransmission");
        assert_eq!(withheld.sent(0, 6).as_deref(), Some(&b"ef"[..]));
    }

    #[test]
    fn the_bytes_without_a_segment_are_missing() {
        let mut withheld = Withheld::new(b"abcdef");
        withheld.sent(1, 2);
        withheld.sent(5, 1);
        withheld.sent(-2, 2);
        assert_eq!(withheld.missing(), [0..1, 3..5]);
        withheld.sent(0, 6);
        assert!(withheld.missing().is_empty());
    }
}
