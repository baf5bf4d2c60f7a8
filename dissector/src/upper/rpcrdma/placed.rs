//! [`PlacedBytes`]: the bytes that RDMA Writes or Read Responses transferred to or from a chunk.

use crate::part::Part;

/// Maximum number of bytes that are stored of one chunk. weft stores only chunks with an RPC
/// message. The longest of them are the replies to READDIR: Linux requests at most 64 KiB of
/// entries.
pub(super) const MAX_CHUNK_BYTES: usize = 68 << 10;

/// The first bytes of a chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct PlacedBytes {
    bytes: Vec<u8>,
    /// For each byte, 1 if it is known.
    known: Vec<u8>,
}

impl PlacedBytes {
    /// Stores `part`, whose first byte has the offset `at` in the chunk. `room` is the number of
    /// bytes that all chunks of the connection may still use. Bytes beyond the limits are dropped.
    pub(super) fn place(&mut self, at: u64, part: Part<'_>, room: usize) {
        let Ok(at) = usize::try_from(at) else { return };
        let most = MAX_CHUNK_BYTES.min(self.bytes.len() + room);
        if at >= most {
            return;
        }
        let part = part.up_to(most - at);
        let end = at + part.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
            self.known.resize(end, 0);
        }
        let (bytes, known) = part.raw();
        if known.is_empty() {
            self.bytes[at..end].copy_from_slice(bytes);
            self.known[at..end].fill(1);
            return;
        }
        for (offset, (byte, _)) in bytes.iter().zip(known).enumerate().filter(|(_, (_, known))| **known != 0) {
            self.bytes[at + offset] = *byte;
            self.known[at + offset] = 1;
        }
    }

    /// The bytes before the first unknown byte.
    pub(super) fn beginning(&self) -> &[u8] {
        Part::with_known(&self.bytes, &self.known).beginning()
    }

    /// Number of stored bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_before_a_hole_are_returned() {
        let mut placed = PlacedBytes::default();
        placed.place(4, Part::complete(b"efgh"), 100);
        assert_eq!(placed.beginning(), b"");
        placed.place(0, Part::with_known(b"abcd", &[1, 1, 0, 1]), 100);
        assert_eq!(placed.beginning(), b"ab");
        placed.place(2, Part::complete(b"c"), 100);
        assert_eq!(placed.beginning(), b"abcdefgh");
    }

    #[test]
    fn bytes_beyond_the_limits_are_dropped() {
        let mut placed = PlacedBytes::default();
        placed.place(0, Part::complete(b"abcd"), 2);
        assert_eq!((placed.beginning(), placed.len()), (&b"ab"[..], 2));
        placed.place(u64::MAX, Part::complete(b"abcd"), 100);
        placed.place(MAX_CHUNK_BYTES as u64, Part::complete(b"abcd"), 100);
        assert_eq!(placed.len(), 2);
        placed.place(MAX_CHUNK_BYTES as u64 - 1, Part::complete(b"abcd"), MAX_CHUNK_BYTES);
        assert_eq!(placed.len(), MAX_CHUNK_BYTES);
    }
}
