//! [`Fragments`]: reassembles the upper-layer messages of one direction from the data of Data
//! Transfers (MS-SMBD section 3.1.5.8).
//!
//! RemainingDataLength is the number of bytes of the message that follow in the next Data
//! Transfers. If these numbers contradict each other, Data Transfers are missing in the capture.
//! Then the message is dropped.

use super::message::is_smb;
use crate::frame_number::FrameNumber;

/// Maximum number of stored bytes of an upper-layer message. Further bytes are only counted.
pub const MAX_MESSAGE_BYTES: usize = 1 << 18;

/// The data of one Data Transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fragment<'a> {
    /// The first bytes of the data, as far as they were captured and stored.
    pub(super) octets: &'a [u8],
    /// DataLength.
    pub(super) len: u32,
    /// RemainingDataLength.
    pub(super) remaining: u32,
    /// Number of the frame that completed the Data Transfer, and its time in nanoseconds since
    /// 1970.
    pub(super) at: (FrameNumber, u64),
}

/// A message that has more than one fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reassembled {
    /// The first bytes. The bytes after a missing byte are not stored.
    pub(super) octets: Vec<u8>,
    /// Length of the message.
    pub(super) len: u64,
    /// Number of fragments.
    pub(super) fragments: u32,
    /// Frame of the first fragment, and its time in nanoseconds since 1970.
    pub(super) first: (FrameNumber, u64),
}

/// What a fragment completes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Completed {
    /// The fragment is a complete message.
    Alone,
    /// The fragment is the last one of a message.
    Message(Reassembled),
}

/// The incomplete message of a direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Fragments {
    /// The fragments so far, and the number of bytes that must follow.
    open: Option<(Reassembled, u64)>,
}

impl Fragments {
    /// Adds a fragment. Returns what the fragment completes.
    pub(super) fn add(&mut self, fragment: Fragment<'_>) -> Option<Completed> {
        let promised = u64::from(fragment.len) + u64::from(fragment.remaining);
        match self.open.take().filter(|(_, left)| *left == promised) {
            Some((mut message, _)) => {
                append(&mut message, fragment);
                if fragment.remaining == 0 {
                    return Some(Completed::Message(message));
                }
                self.open = Some((message, fragment.remaining.into()));
                None
            }
            // The data does not continue the open message. So it must be the start of a message.
            None if !is_smb(fragment.octets) => None,
            None if fragment.remaining == 0 => Some(Completed::Alone),
            None => {
                let mut message = Reassembled { octets: Vec::new(), len: 0, fragments: 0, first: fragment.at };
                append(&mut message, fragment);
                self.open = Some((message, fragment.remaining.into()));
                None
            }
        }
    }

    /// Drops the open message, because bytes of the direction are missing.
    pub(super) fn drop_open(&mut self) {
        self.open = None;
    }

    /// Allocated memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.open.as_ref().map_or(0, |(message, _)| message.octets.capacity())
    }
}

fn append(message: &mut Reassembled, fragment: Fragment<'_>) {
    if message.octets.len() as u64 == message.len {
        let free = MAX_MESSAGE_BYTES.saturating_sub(message.octets.len());
        message.octets.extend_from_slice(&fragment.octets[..fragment.octets.len().min(free)]);
    }
    message.len += u64::from(fragment.len);
    message.fragments = message.fragments.saturating_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(octets: &[u8], remaining: u32, frame: u64) -> Fragment<'_> {
        Fragment { octets, len: u32::try_from(octets.len()).unwrap(), remaining, at: (frame.into(), frame) }
    }

    /// The lengths of frames 95 to 97 of `smb-ops.pcap`: 160 + 104 + 88 bytes.
    #[test]
    fn three_fragments_are_a_message() {
        let mut fragments = Fragments::default();
        let start = [b"\xfeSMB".to_vec(), vec![1; 156]].concat();
        assert_eq!(fragments.add(fragment(&start, 192, 95)), None);
        assert_eq!(fragments.add(fragment(&[2; 104], 88, 96)), None);
        let Some(Completed::Message(message)) = fragments.add(fragment(&[3; 88], 0, 97)) else { panic!() };
        assert_eq!((message.len, message.fragments, message.first), (352, 3, (95.into(), 95)));
        assert_eq!(message.octets, [start, vec![2; 104], vec![3; 88]].concat());
        assert_eq!(fragments.add(fragment(b"\xfeSMB", 0, 98)), Some(Completed::Alone));
    }

    #[test]
    fn a_contradiction_drops_the_message() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.add(fragment(b"\xfeSMB1234", 16, 1)), None);
        // The second fragment of 8 bytes is missing. The third fragment is no start of a message.
        assert_eq!(fragments.add(fragment(&[3; 8], 0, 3)), None);
        // A new message starts while a message is open.
        assert_eq!(fragments.add(fragment(b"\xfeSMB1234", 16, 4)), None);
        assert_eq!(fragments.add(fragment(b"\xfeSMB", 0, 5)), Some(Completed::Alone));
        assert_eq!(fragments.add(fragment(b"\xfeSMB1234", 8, 6)), None);
        fragments.drop_open();
        assert_eq!(fragments.add(fragment(&[3; 8], 0, 7)), None);
        assert_eq!(fragments.memory(), 0);
    }

    #[test]
    fn the_number_of_stored_bytes_has_a_limit() {
        let mut fragments = Fragments::default();
        // The sender promises the largest possible message.
        let start = [b"\xfeSMB".to_vec(), vec![0; 65_532]].concat();
        let mut remaining = u32::MAX;
        for frame in 0..8 {
            assert_eq!(fragments.add(fragment(&start, remaining, frame)), None);
            remaining -= 65_536;
        }
        assert_eq!(fragments.open.as_ref().map(|(message, _)| message.octets.len()), Some(MAX_MESSAGE_BYTES));
        assert!(fragments.memory() < 2 * MAX_MESSAGE_BYTES);
    }
}
