//! Segmentation of one message (RFC 5041 sections 4.1 to 4.3, 5.2). Each segment has a header and a
//! range of the message as payload.
//!
//! The segmenter does not hold the message. The owner of the message copies the payload when the
//! segment is sent.

use core::ops::Range;

use weft_core::wire::ddp::{self, Msn, RawHeader, RawTagged, RawUntagged};
use weft_core::wire::rdmap;

/// Destination of a message at the Data Sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// A Tagged Buffer.
    Tagged {
        /// STag of the Tagged Buffer.
        stag: u32,
        /// TO of the first byte of the message.
        tagged_offset: u64,
    },
    /// The next buffer of a queue.
    Untagged {
        /// Queue number (QN).
        qn: u32,
        /// Message sequence number (MSN).
        msn: Msn,
        /// The four bytes after RDMAP's control byte: the STag to invalidate, or 0.
        word: u32,
    },
}

/// Cuts a message into segments, in order of message offset (MO) or tagged offset (TO). A message
/// without payload has one segment (DDP-5.2-8).
#[derive(Debug, Clone)]
pub struct Segmenter {
    destination: Destination,
    /// RDMAP control byte of each segment. The DDP header has the same version as this byte.
    control: rdmap::Control,
    length: u32,
    done: u32,
    finished: bool,
}

/// One segment of an outbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutSegment {
    /// DDP and RDMAP header of the segment.
    pub header: RawHeader,
    /// Payload of this segment, as a range of bytes in the message.
    pub payload: Range<u32>,
}

impl Segmenter {
    /// Creates a segmenter for a message of `length` bytes.
    #[must_use]
    pub fn new(destination: Destination, control: rdmap::Control, length: u32) -> Self {
        Segmenter { destination, control, length, done: 0, finished: false }
    }

    /// Returns the next segment, or `None` after the last segment. Header and payload together have
    /// at most `mulpdu` bytes, with one exception: if `mulpdu` leaves no space for payload, the
    /// segment has its header and one byte of payload (no payload if the message is empty).
    pub fn next_segment(&mut self, mulpdu: u16) -> Option<OutSegment> {
        if self.finished {
            return None;
        }
        let header_len = match self.destination {
            Destination::Tagged { .. } => RawTagged::LEN,
            Destination::Untagged { .. } => RawUntagged::LEN,
        };
        let room = u32::try_from(usize::from(mulpdu).saturating_sub(header_len).max(1)).unwrap_or(1);
        let start = self.done;
        self.done = start.saturating_add(room).min(self.length);
        let last = self.done == self.length;
        self.finished = last;
        let version = self.control.version();
        let header = match self.destination {
            Destination::Tagged { stag, tagged_offset } => {
                let tagged_offset = tagged_offset.wrapping_add(u64::from(start));
                RawHeader::Tagged(ddp::Tagged { last, stag, tagged_offset }.to_raw(version, self.control))
            }
            Destination::Untagged { qn, msn, word } => {
                let ulp = ddp::UntaggedUlp { control: self.control, word };
                RawHeader::Untagged(ddp::Untagged { last, qn, msn, mo: start }.to_raw(version, ulp))
            }
        };
        Some(OutSegment { header, payload: start..self.done })
    }

    /// Returns whether `next_segment` has returned the last segment.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Number of bytes of the message in the segments that `next_segment` has returned.
    #[must_use]
    pub fn done(&self) -> u32 {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;
    use weft_core::wire::rdmap::{Control, Opcode};

    fn cut(destination: Destination, opcode: Opcode, length: u32, mulpdu: u16) -> Vec<OutSegment> {
        let mut segmenter = Segmenter::new(destination, Control::new(opcode, 1), length);
        std::iter::from_fn(|| segmenter.next_segment(mulpdu)).collect()
    }

    /// Example of RFC 5041 5.2: 2048 bytes at MULPDU 1500. The segments have MO 0 and 1482, or TO
    /// and TO + 1486.
    #[test]
    fn the_examples_of_the_rfc() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let untagged = Destination::Untagged { qn: 0, msn: Msn::new(7), word: 0 };
        let segments = cut(untagged, Opcode::SEND, 2048, 1500);
        let offsets: Vec<u32> = segments
            .iter()
            .map(|segment| if let RawHeader::Untagged(header) = segment.header { header.mo.get() } else { u32::MAX })
            .collect();
        proof.verify(requirement!("DDP-5.2-5"), || assert_eq!(offsets, [0, 1482]));
        let tagged = Destination::Tagged { stag: 5, tagged_offset: 1000 };
        let segments = cut(tagged, Opcode::WRITE, 2048, 1500);
        let offsets: Vec<u64> = segments
            .iter()
            .map(|segment| if let RawHeader::Tagged(header) = segment.header { header.tagged_offset.get() } else { 0 })
            .collect();
        proof.verify(requirement!("DDP-5.2-6"), || assert_eq!(offsets, [1000, 2486]));
        let empty = cut(untagged, Opcode::SEND, 0, 128);
        proof.verify(requirement!("DDP-5.2-8"), || {
            assert_eq!(empty.len(), 1);
            assert!(empty[0].payload.is_empty() && empty[0].header.control().last());
        });
    }

    #[test]
    fn the_longest_message_is_cut_to_its_end() {
        let mut segmenter = Segmenter::new(
            Destination::Untagged { qn: 0, msn: Msn::FIRST, word: 0 },
            Control::new(Opcode::SEND, 1),
            u32::MAX,
        );
        let (mut octets, mut segments) = (0u64, 0u64);
        while let Some(segment) = segmenter.next_segment(64_768) {
            octets += segment.payload.len() as u64;
            segments += 1;
        }
        assert_eq!((octets, segments), (u64::from(u32::MAX), u64::from(u32::MAX).div_ceil(64_750)));
    }

    proptest! {
        /// The payloads together are the message. No segment exceeds MULPDU. Only the last segment
        /// has the L flag. All segments have the same STag, or the same QN and MSN.
        #[test]
        fn segments_make_the_message(tagged: bool, length in 0u32..200_000, mulpdu in 128u16..=64_768, version in 0u8..2) {
            let destination = if tagged {
                Destination::Tagged { stag: 9, tagged_offset: u64::MAX - 50_000 }
            } else {
                Destination::Untagged { qn: 0, msn: Msn::new(3), word: 77 }
            };
            let mut segmenter = Segmenter::new(destination, Control::new(Opcode::SEND, version), length);
            let mut next = 0;
            while let Some(OutSegment { header, payload }) = segmenter.next_segment(mulpdu) {
                prop_assert_eq!(payload.start, next);
                next = payload.end;
                prop_assert!(header.as_octets().len() + payload.len() <= usize::from(mulpdu));
                prop_assert_eq!(header.control().last(), payload.end == length);
                prop_assert_eq!((header.control().version(), header.control().reserved()), (version, 0));
                prop_assert_eq!(header.ulp_control(), Control::new(Opcode::SEND, version));
                match header {
                    RawHeader::Tagged(header) => prop_assert_eq!(
                        (header.stag.get(), header.tagged_offset.get()),
                        (9, (u64::MAX - 50_000).wrapping_add(u64::from(payload.start)))
                    ),
                    RawHeader::Untagged(header) => prop_assert_eq!(
                        (header.qn.get(), header.msn.get(), header.mo.get(), header.ulp_word.get()),
                        (0, 3, payload.start, 77)
                    ),
                }
            }
            prop_assert_eq!(next, length);
            prop_assert!(segmenter.is_finished());
        }
    }
}
