//! The reassembly of a virtual connection: brings the bytes of the tester's TCP segments into their
//! order, as the target's TCP does.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::hostile::ReassemblyConduct;

/// The value of a byte that the target's TCP has changed.
const CHANGED: u8 = 0xe7;

/// The bytes of the tester's stream that have arrived at the target's TCP. If two TCP segments have
/// the same byte of the stream, the first segment counts.
///
/// Without segments that arrive early, the held pieces are empty and allocate no memory.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    conduct: ReassemblyConduct,
    /// Whether a deviation loses all bytes of this connection.
    loses_all: bool,
    /// Offset in the stream of the byte with the sequence number 0, after the wrap.
    wrap: Option<u64>,
    /// Offset in the stream of the next byte to pass.
    next: u64,
    /// Bytes that arrived before an earlier byte, by the offset of their first byte. The pieces do
    /// not overlap, and each begins after `next`.
    held: BTreeMap<u64, Bytes>,
}

impl Reassembly {
    /// Creates the reassembly of a new connection. `first_sequence` is the sequence number of the
    /// stream's first byte. `earlier` is the number of connections before this one.
    pub(super) fn new(conduct: ReassemblyConduct, first_sequence: Option<u32>, earlier: u32) -> Self {
        let wrap = first_sequence.map(|first| (1 << 32) - u64::from(first));
        let loses_all = conduct.loses_later_connections && earlier >= ReassemblyConduct::SERVED;
        Reassembly { conduct, loses_all, wrap, ..Reassembly::default() }
    }

    /// Handles a TCP segment whose first byte has the offset `begin` in the stream. Calls `pass`
    /// with the bytes that the endpoint gets now, in their order.
    pub(super) fn handle_segment(&mut self, begin: u64, octets: Bytes, mut pass: impl FnMut(Bytes)) {
        if begin == self.next && self.held.is_empty() {
            self.advance(octets, &mut pass);
        } else if end_of(begin, &octets) <= self.next {
            if self.conduct.passes_duplicates {
                pass(octets);
            }
        } else if begin > self.next && self.passes_early() {
            pass(octets);
        } else {
            self.hold(begin, &octets);
            while let Some(piece) = self.held.remove(&self.next) {
                self.advance(piece, &mut pass);
            }
        }
    }

    /// Returns whether a deviation passes bytes although earlier bytes are missing.
    fn passes_early(&self) -> bool {
        self.conduct.passes_over_gap || self.conduct.begins_with_first_arrival && self.next == 0
    }

    /// Returns whether the target accepts a TCP segment that IP fragments carry.
    pub(super) fn accepts_fragments(&self) -> bool {
        !self.conduct.loses_fragments
    }

    /// Returns whether the target serves no other connection while the tester does not read.
    pub(super) fn blocks_others(&self) -> bool {
        self.conduct.blocks_others
    }

    /// Returns the bytes that the target still sends after the tester has read only a part of them.
    pub(super) fn rest(&self, octets: Bytes) -> Bytes {
        if !self.conduct.changes_rest {
            return octets;
        }
        let mut changed = octets.to_vec();
        let middle = changed.len() / 2;
        if let Some(octet) = changed.get_mut(middle) {
            *octet = CHANGED;
        }
        Bytes::from(changed)
    }

    /// Passes the next bytes of the stream.
    fn advance(&mut self, octets: Bytes, pass: &mut impl FnMut(Bytes)) {
        let begin = self.next;
        self.next = end_of(begin, &octets);
        if self.loses_all {
            return;
        }
        match self.wrap.filter(|_| self.conduct.loses_after_wrap) {
            None => pass(octets),
            Some(wrap) if begin < wrap => {
                let kept = usize::try_from(wrap - begin).unwrap_or(usize::MAX).min(octets.len());
                pass(octets.slice(..kept));
            }
            Some(_) => {}
        }
    }

    /// Holds those bytes of a segment that were not passed and are not held yet.
    fn hold(&mut self, begin: u64, octets: &Bytes) {
        let end = end_of(begin, octets);
        let mut at = begin.max(self.next);
        let mut gaps = Vec::new();
        for (first, piece) in &self.held {
            if at < end && at < *first {
                gaps.push((at, end.min(*first)));
            }
            at = at.max(end_of(*first, piece));
        }
        if at < end {
            gaps.push((at, end));
        }
        for (from, to) in gaps {
            let index = |offset: u64| usize::try_from(offset - begin).unwrap_or(usize::MAX).min(octets.len());
            self.held.insert(from, octets.slice(index(from)..index(to)));
        }
    }
}

/// Returns the offset after the last byte of a piece that begins at `begin`.
fn end_of(begin: u64, octets: &Bytes) -> u64 {
    begin.saturating_add(octets.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"abcdefghij";

    /// Passes segments to a reassembly, each with its offset and its bytes. Returns the bytes that
    /// the endpoint gets.
    fn passed_by(mut reassembly: Reassembly, segments: &[(u64, &[u8])]) -> Vec<u8> {
        let mut passed = Vec::new();
        for (begin, octets) in segments {
            reassembly.handle_segment(*begin, Bytes::copy_from_slice(octets), |octets| passed.extend(octets));
        }
        passed
    }

    fn passed(segments: &[(u64, &[u8])]) -> Vec<u8> {
        passed_by(Reassembly::default(), segments)
    }

    #[test]
    fn bytes_are_passed_in_order_and_once() {
        assert_eq!(passed(&[(0, b"abc"), (3, b"defghij")]), STREAM);
        assert_eq!(passed(&[(3, b"defghij"), (0, b"abc")]), STREAM);
        assert_eq!(passed(&[(6, b"ghij"), (3, b"def"), (6, b"ghij"), (0, b"abc"), (0, b"abc")]), STREAM);
        // Segments that overlap each other in all ways.
        assert_eq!(passed(&[(2, b"cd"), (6, b"gh"), (1, b"bcdefghi"), (0, b"ab"), (4, b"efghij")]), STREAM);
    }

    #[test]
    fn bytes_after_a_gap_wait() {
        let mut reassembly = Reassembly::default();
        let mut passed = Vec::new();
        let mut arrive =
            |begin, octets: &[u8]| reassembly.handle_segment(begin, Bytes::copy_from_slice(octets), |o| passed.push(o));
        arrive(1, b"b");
        arrive(3, b"d");
        arrive(0, b"a");
        arrive(2, b"c");
        assert_eq!(passed, [&b"a"[..], b"b", b"c", b"d"]);
    }

    #[test]
    fn the_first_copy_of_a_byte_counts() {
        assert_eq!(passed(&[(2, b"cd"), (1, b"zzz"), (0, b"aY")]), b"azcd");
        assert_eq!(passed(&[(0, b"abcd"), (1, b"XX"), (3, b"Xe")]), b"abcde");
    }

    /// Returns what the endpoint gets with one deviation.
    fn with(change: impl FnOnce(&mut ReassemblyConduct), segments: &[(u64, &[u8])]) -> Vec<u8> {
        let mut conduct = ReassemblyConduct::default();
        change(&mut conduct);
        // The byte with the offset 4 has the sequence number 0.
        passed_by(Reassembly::new(conduct, Some(u32::MAX - 3), 0), segments)
    }

    #[test]
    fn each_deviation_has_its_effect() {
        assert_eq!(with(|_| (), &[(0, b"abcdef"), (6, b"gh")]), b"abcdefgh");
        assert_eq!(with(|conduct| conduct.loses_after_wrap = true, &[(0, b"abcdef"), (6, b"gh")]), b"abcd");
        assert_eq!(with(|conduct| conduct.passes_duplicates = true, &[(0, b"ab"), (0, b"ab")]), b"abab");
        assert_eq!(with(|conduct| conduct.passes_over_gap = true, &[(2, b"cd"), (0, b"ab")]), b"cdab");
        let begins = |conduct: &mut ReassemblyConduct| conduct.begins_with_first_arrival = true;
        assert_eq!(with(begins, &[(2, b"cd"), (0, b"ab")]), b"cdab");
        assert_eq!(with(begins, &[(0, b"ab"), (3, b"d"), (2, b"c")]), b"abcd");
        let later = |earlier| {
            let conduct = ReassemblyConduct { loses_later_connections: true, ..ReassemblyConduct::default() };
            passed_by(Reassembly::new(conduct, None, earlier), &[(0, b"ab")])
        };
        assert_eq!((&later(99)[..], &later(100)[..]), (&b"ab"[..], &b""[..]));
        let rest = |changes_rest| {
            let conduct = ReassemblyConduct { changes_rest, ..ReassemblyConduct::default() };
            Reassembly::new(conduct, None, 0).rest(Bytes::from_static(b"abcde"))
        };
        assert_eq!((&rest(false)[..], &rest(true)[..]), (&b"abcde"[..], &[b'a', b'b', CHANGED, b'd', b'e'][..]));
    }
}
