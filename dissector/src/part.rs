//! [`Part`]: octets of a unit. Some of these octets may be missing in the capture.

use std::ops::Range;

/// Contiguous octets of one unit. If an octet was not captured, it has the value zero and a flag
/// that marks it as missing.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    octets: &'a [u8],
    /// A flag for each octet: the flag is 0 if the octet is missing. `None` if no octet is missing.
    known: Option<&'a [u8]>,
}

impl<'a> Part<'a> {
    /// A part without missing octets.
    #[must_use]
    #[inline]
    pub fn complete(octets: &'a [u8]) -> Self {
        Part { octets, known: None }
    }

    /// A part with a flag for each octet. `known` has the same length as `octets`, and has 0 at the
    /// offset of each missing octet.
    #[must_use]
    pub fn with_known(octets: &'a [u8], known: &'a [u8]) -> Self {
        debug_assert_eq!(octets.len(), known.len());
        Part { octets, known: known.contains(&0).then_some(known) }
    }

    /// Number of octets, including missing octets.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.octets.len()
    }

    /// Returns whether the part has no octets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Returns whether no octet is missing.
    #[must_use]
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.known.is_none()
    }

    /// All octets; `None` if an octet is missing.
    #[must_use]
    #[inline]
    pub fn all(&self) -> Option<&'a [u8]> {
        self.is_complete().then_some(self.octets)
    }

    /// The octets in `range`; `None` if `range` exceeds the part, or if an octet in `range` is
    /// missing.
    #[must_use]
    #[inline]
    pub fn get(&self, range: Range<usize>) -> Option<&'a [u8]> {
        let octets = self.octets.get(range.clone())?;
        match self.known {
            Some(known) if known[range].contains(&0) => None,
            _ => Some(octets),
        }
    }

    /// The octets from offset `start` on; empty if `start` is at or after the end of the part.
    #[must_use]
    #[inline]
    pub fn from(&self, start: usize) -> Part<'a> {
        let start = start.min(self.octets.len());
        Part { octets: &self.octets[start..], known: self.known.map(|k| &k[start..]).filter(|k| k.contains(&0)) }
    }

    /// The octets before offset `end`; the complete part if `end` exceeds the length of the part.
    #[must_use]
    #[inline]
    pub fn up_to(&self, end: usize) -> Part<'a> {
        let end = end.min(self.octets.len());
        Part { octets: &self.octets[..end], known: self.known.map(|k| &k[..end]).filter(|k| k.contains(&0)) }
    }

    /// The octets before the first missing octet.
    #[must_use]
    pub fn beginning(&self) -> &'a [u8] {
        let end = self.known.and_then(|known| known.iter().position(|is_known| *is_known == 0));
        &self.octets[..end.unwrap_or(self.octets.len())]
    }

    /// The octets, with zero for each missing octet, and the flags that [`Part::with_known`] got.
    /// If no octet is missing, the flags are empty.
    #[must_use]
    pub fn raw(&self) -> (&'a [u8], &'a [u8]) {
        (self.octets, self.known.unwrap_or(&[]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_missing_octet_shows_only_where_it_is() {
        let part = Part::with_known(b"ab\0d", &[1, 1, 0, 1]);
        assert_eq!((part.len(), part.is_complete(), part.all()), (4, false, None));
        assert_eq!(
            (part.get(0..2), part.get(1..3), part.get(3..4), part.get(3..5)),
            (Some(&b"ab"[..]), None, Some(&b"d"[..]), None)
        );
        assert_eq!(part.up_to(2).all(), Some(&b"ab"[..]));
        assert_eq!(part.from(3).all(), Some(&b"d"[..]));
        assert_eq!((part.beginning(), part.from(3).beginning()), (&b"ab"[..], &b"d"[..]));
        assert_eq!(part.raw(), (&b"ab\0d"[..], &[1, 1, 0, 1][..]));
    }

    #[test]
    fn is_complete_if_nothing_is_missing() {
        let part = Part::with_known(b"ab", &[1, 1]);
        assert_eq!((part.all(), part.raw()), (Some(&b"ab"[..]), (&b"ab"[..], &[][..])));
        assert!(part.from(9).is_empty() && !part.up_to(9).is_empty());
    }

    proptest! {
        #[test]
        fn parts_of_parts_agree_with_slices(octets: Vec<(u8, bool)>, a in 0usize..40, b in 0usize..40, c in 0usize..40) {
            let (values, known): (Vec<u8>, Vec<u8>) = octets.iter().map(|(octet, there)| (*octet, u8::from(*there))).unzip();
            let part = Part::with_known(&values, &known);
            let (from, to) = (a.min(values.len()), (a + b).min(values.len()).max(a.min(values.len())));
            let inner = part.up_to(a + b).from(a);
            prop_assert_eq!(inner.len(), to - from);
            prop_assert_eq!(inner.is_complete(), !known[from..to].contains(&0));
            let expected = (c <= inner.len()).then(|| &values[from..from + c]).filter(|_| !known[from..from + c].contains(&0));
            prop_assert_eq!(inner.get(0..c), expected);
        }
    }
}
