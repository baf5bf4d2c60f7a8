//! [`Beginning`]: the first octets of a message, and the length of the message.

use crate::part::Part;

/// Maximum number of stored octets of a message.
///
/// Wireshark rejects a file with a packet of this link type that has more than 262,144 octets. The
/// difference leaves room for the tags.
pub(super) const MAX_OCTETS: usize = 262_144 - 256;

/// The first octets of a message, and the length of the message. The stored octets end before the
/// first octet that was not captured, or at [`MAX_OCTETS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Beginning {
    octets: Vec<u8>,
    len: u64,
}

impl Beginning {
    /// The stored octets.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The stored octets.
    pub(super) fn into_octets(self) -> Vec<u8> {
        self.octets
    }

    /// Length of the message in octets.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Allocated memory in octets.
    pub(super) fn memory(&self) -> usize {
        self.octets.capacity()
    }

    /// Returns whether all octets of the message are stored.
    pub(super) fn is_complete(&self) -> bool {
        self.octets.len() as u64 == self.len
    }

    /// Appends `len` octets. `known` has the first of these octets. The others were not captured.
    pub(super) fn push(&mut self, known: &[u8], len: u64) {
        if self.is_complete() {
            let room = MAX_OCTETS.saturating_sub(self.octets.len());
            self.octets.extend_from_slice(&known[..known.len().min(room)]);
        }
        self.len = self.len.saturating_add(len);
    }

    /// Appends the octets of a part.
    pub(super) fn push_part(&mut self, part: Part<'_>) {
        self.push(part.beginning(), part.len() as u64);
    }

    /// Appends the octets at the offsets `start..end` of `from`.
    pub(super) fn copy(&mut self, from: &Beginning, start: u64, end: u64) {
        let stored = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(from.octets.len());
        let known = from.octets.get(stored(start)..stored(end)).unwrap_or_default();
        self.push(known, end.saturating_sub(start));
    }

    /// Appends zeros up to a multiple of four octets.
    pub(super) fn pad(&mut self) {
        let missing = (4 - self.len % 4) % 4;
        self.push(&[0; 4][..missing as usize], missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_the_octets_before_the_first_missing_octet() {
        let mut message = Beginning::default();
        message.push_part(Part::complete(b"abcd"));
        message.push_part(Part::with_known(b"ef\0h", &[1, 1, 0, 1]));
        message.push_part(Part::complete(b"ijk"));
        message.pad();
        assert_eq!((message.octets(), message.len(), message.is_complete()), (&b"abcdef"[..], 12, false));
        let mut copy = Beginning::default();
        copy.copy(&message, 1, 3);
        assert_eq!((copy.octets(), copy.len(), copy.is_complete()), (&b"bc"[..], 2, true));
        copy.pad();
        assert_eq!(copy.octets(), b"bc\0\0");
        copy.copy(&message, 5, 8);
        assert_eq!((copy.octets(), copy.len(), copy.is_complete()), (&b"bc\0\0f"[..], 7, false));
    }

    #[test]
    fn stores_no_more_octets_than_wireshark_reads() {
        let mut message = Beginning::default();
        message.push(&vec![7; MAX_OCTETS], MAX_OCTETS as u64);
        message.push(&[8; 100], 100);
        assert_eq!((message.octets().len(), message.len()), (MAX_OCTETS, MAX_OCTETS as u64 + 100));
        assert!(!message.is_complete());
    }
}
