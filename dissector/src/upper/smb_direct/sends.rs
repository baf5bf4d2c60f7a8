//! [`PartialSend`]: the first bytes of a Send whose last segment has not arrived.

use weft_core::wire::ddp::Msn;

/// Maximum number of stored bytes of a Send. Further bytes are only counted. The limit is far above
/// the MaxReceiveSize of known implementations (1364 to 8192 bytes).
pub const MAX_SEND_BYTES: usize = 1 << 16;

/// A Send whose segments arrived in order so far.
#[derive(Debug, Clone)]
pub(super) struct PartialSend {
    pub(super) msn: Msn,
    /// The first bytes. The bytes after a missing byte are not stored.
    pub(super) octets: Vec<u8>,
    /// Number of bytes of all segments.
    pub(super) len: u64,
}

impl PartialSend {
    pub(super) fn new(msn: Msn) -> Self {
        PartialSend { msn, octets: Vec::new(), len: 0 }
    }

    /// Adds the payload of the next segment. The payload has `len` bytes, and `captured` are those
    /// before the first missing byte.
    pub(super) fn add(&mut self, captured: &[u8], len: u32) {
        // If a byte is missing, the stored bytes are fewer than the counted bytes.
        if self.octets.len() as u64 == self.len {
            let free = MAX_SEND_BYTES.saturating_sub(self.octets.len());
            self.octets.extend_from_slice(&captured[..captured.len().min(free)]);
        }
        self.len += u64::from(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_after_a_missing_byte_are_only_counted() {
        let mut send = PartialSend::new(Msn::FIRST);
        send.add(b"abcd", 4);
        send.add(b"e", 4);
        send.add(b"ijkl", 4);
        assert_eq!((send.octets.as_slice(), send.len), (&b"abcde"[..], 12));
    }

    #[test]
    fn the_number_of_stored_bytes_has_a_limit() {
        let mut send = PartialSend::new(Msn::FIRST);
        let segment = vec![0; 40_000];
        (0..3).for_each(|_| send.add(&segment, 40_000));
        assert_eq!((send.octets.len(), send.len), (MAX_SEND_BYTES, 120_000));
    }
}
