//! Order of the segments in one untagged queue of the Data Sink (RFC 5041 sections 4.1, 5.3, 5.4,
//! 7.1). Checks message sequence number (MSN) and message offset (MO) of each segment.
//!
//! The Data Source should send the segments of a message in the order of their offsets (DDP-5.3-2),
//! but section 5.3 does not require this order. So the segments of a message may arrive in any
//! order, except for the last segment: it has L=1, arrives after all other segments, and has the
//! highest MO (DDP-4.1-6, DDP-4.1-7). A segment is rejected, and not placed, in these cases:
//!
//! - It does not belong to the current message. MPA delivers segments in the order of the Data
//!   Source, so the Data Source has violated DDP-5.3-1.
//! - It has L=1, and a part of the message before it is missing.
//! - It overlaps earlier segments of the message. No Data Source needs to send such a segment.
//!
//! This module does not contain the buffers. It needs only their lengths.

use weft_core::wire::ddp::{Msn, RawUntagged};

use crate::reject::reject_if;

/// Maximum number of separate parts of a message that wait for the bytes before them.
const MAX_PARTS: usize = 1024;

/// The expected MSN of the next segment in a queue, and the placed parts of the current message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntaggedQueue {
    /// MSN of the current message, or of the next message if no message is in progress.
    msn: Msn,
    /// Number of bytes from the start of the current message that are placed without a gap.
    mo: u32,
    /// Placed parts after a gap: begin and end in bytes, in ascending order. Parts do not touch.
    ahead: Vec<(u32, u32)>,
    open: bool,
}

/// Reason why a segment is not valid as the next segment of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum QueueError {
    /// The segment begins the next message, but the last segment of the current message has not
    /// arrived.
    #[error("a new message started before the last segment of the current message")]
    MissingLast,
    /// The MO is outside the buffer, overlaps an earlier segment, or leaves a gap before the last
    /// segment. Or too many separate parts of the message already wait.
    #[error("invalid MO")]
    MessageOffset,
    /// The MSN is too high: at least one message before this message has not arrived.
    #[error("MSN gap")]
    MsnGap,
    /// The MSN is too low: this message was already delivered.
    #[error("MSN range not valid")]
    MsnRange,
    /// The payload does not fit into the buffer.
    #[error("message too long for the buffer")]
    TooLong,
}

impl Default for UntaggedQueue {
    /// The first message of a queue has MSN 1 (DDP-4.3-7).
    fn default() -> Self {
        UntaggedQueue { msn: Msn::FIRST, mo: 0, ahead: Vec::new(), open: false }
    }
}

impl UntaggedQueue {
    /// Returns whether a message has begun and its last segment has not arrived.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// Counts a message that uses no buffer.
    pub const fn skip(&mut self) {
        self.msn = self.msn.next();
    }

    /// Continues after a faulty segment, because a deviation ignores the fault.
    pub(crate) fn skip_to(&mut self, header: &RawUntagged) {
        let msn = if header.control.last() { header.msn().next() } else { header.msn() };
        self.begin(msn);
    }

    /// Drops the current message, because a deviation continues with the message that has this MSN.
    pub(crate) fn begin(&mut self, msn: Msn) {
        *self = UntaggedQueue { msn, ..UntaggedQueue::default() };
    }

    /// Checks whether the MSN is the expected MSN.
    ///
    /// # Errors
    /// `MissingLast`, `MsnGap` or `MsnRange`.
    pub fn check_msn(&self, header: &RawUntagged) -> Result<(), QueueError> {
        match header.msn().messages_since(self.msn) {
            0 => Ok(()),
            1 if self.open && header.mo.get() == 0 => Err(QueueError::MissingLast),
            1..=0x7fff_ffff => Err(QueueError::MsnGap),
            _ => Err(QueueError::MsnRange),
        }
    }

    /// Checks the MO, and whether the payload fits into the message's buffer of `buffer` bytes.
    ///
    /// # Errors
    /// `MessageOffset` or `TooLong`.
    pub fn check_offset(&self, header: &RawUntagged, payload_len: usize, buffer: u64) -> Result<(), QueueError> {
        let (begin, buffer) = (header.mo.get(), buffer.min(u64::from(u32::MAX)));
        let end = u64::from(begin) + payload_len as u64;
        let continues = begin == self.mo && self.ahead.is_empty();
        reject_if(!continues && (header.control.last() || u64::from(begin) >= buffer), QueueError::MessageOffset)?;
        reject_if(end > buffer, QueueError::TooLong)?;
        if continues {
            return Ok(());
        }
        let next = self.ahead.partition_point(|part| part.1 <= begin);
        let overlaps = begin < self.mo || self.ahead.get(next).is_some_and(|part| u64::from(part.0) < end);
        reject_if(overlaps || self.ahead.len() >= MAX_PARTS, QueueError::MessageOffset)
    }

    /// Counts a valid segment as placed. Returns the length of the message in bytes if the segment
    /// is the last segment, and `None` otherwise.
    pub fn advance(&mut self, header: &RawUntagged, payload_len: usize) -> Option<u32> {
        let begin = header.mo.get();
        let end = begin.saturating_add(u32::try_from(payload_len).unwrap_or(u32::MAX));
        if header.control.last() {
            *self = UntaggedQueue { msn: self.msn.next(), ..UntaggedQueue::default() };
            return Some(end);
        }
        self.open = true;
        if begin > self.mo && end > begin {
            self.add_part(begin, end);
        } else if begin == self.mo {
            self.mo = end;
        }
        if self.ahead.first().is_some_and(|part| part.0 == self.mo) {
            self.mo = self.ahead.remove(0).1;
        }
        None
    }

    /// Adds a part after a gap, and joins it with the parts that it touches.
    fn add_part(&mut self, begin: u32, end: u32) {
        let at = self.ahead.partition_point(|part| part.1 < begin);
        match self.ahead.get_mut(at) {
            Some(before) if before.1 == begin => before.1 = end,
            _ => self.ahead.insert(at, (begin, end)),
        }
        if self.ahead.get(at + 1).is_some_and(|after| after.0 == end) {
            self.ahead[at].1 = self.ahead.remove(at + 1).1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;
    use weft_core::wire::{ddp, rdmap};

    fn header(last: bool, msn: u32, mo: u32) -> RawUntagged {
        ddp::Untagged { last, qn: 0, msn: Msn::new(msn), mo }
            .to_raw(1, ddp::UntaggedUlp { control: rdmap::Control::new(rdmap::Opcode::SEND, 1), word: 0 })
    }

    #[test]
    fn a_message_of_two_segments_and_then_the_next() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut queue = UntaggedQueue::default();
        proof.verify(requirement!("DDP-4.3-7"), || assert_eq!(queue.check_msn(&header(true, 1, 0)), Ok(())));
        assert_eq!(queue.advance(&header(false, 1, 0), 3), None);
        assert!(queue.is_open());
        assert_eq!(queue.check_offset(&header(true, 1, 3), 2, 5), Ok(()));
        proof.verify(requirement!("DDP-5.4-6"), || assert_eq!(queue.advance(&header(true, 1, 3), 2), Some(5)));
        assert_eq!((queue.is_open(), queue.msn, queue.mo), (false, Msn::new(2), 0));
        proof.verify(requirement!("DDP-5.3-5"), || {
            assert_eq!(queue.check_msn(&header(true, 1, 0)), Err(QueueError::MsnRange));
        });
    }

    #[test]
    fn each_fault_is_distinguished() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut queue = UntaggedQueue::default();
        proof.verify(requirement!("DDP-7.1-9"), || {
            assert_eq!(queue.check_msn(&header(true, 2, 0)), Err(QueueError::MsnGap));
            assert_eq!(queue.check_msn(&header(true, 0, 0)), Err(QueueError::MsnRange));
        });
        proof.verify(requirement!("DDP-7.1-7"), || {
            assert_eq!(queue.check_offset(&header(true, 1, 1), 1, 4), Err(QueueError::MessageOffset));
            assert_eq!(queue.check_offset(&header(true, 1, u32::MAX), 1, 4), Err(QueueError::MessageOffset));
            assert_eq!(queue.check_offset(&header(false, 1, 4), 1, 4), Err(QueueError::MessageOffset));
        });
        proof.verify(requirement!("DDP-7.1-8"), || {
            assert_eq!(queue.check_offset(&header(true, 1, 0), 5, 4), Err(QueueError::TooLong));
            assert_eq!(queue.check_offset(&header(true, 1, 0), 4, 4), Ok(()));
        });
        queue.advance(&header(false, 1, 0), 4);
        assert_eq!(queue.check_msn(&header(true, 2, 0)), Err(QueueError::MissingLast));
    }

    /// Places a segment that is not the last, if it is valid.
    fn place(queue: &mut UntaggedQueue, mo: u32, len: usize) -> Result<(), QueueError> {
        queue.check_offset(&header(false, 1, mo), len, 100)?;
        assert_eq!(queue.advance(&header(false, 1, mo), len), None);
        Ok(())
    }

    #[test]
    fn segments_before_the_last_may_arrive_in_any_order() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut queue = UntaggedQueue::default();
        proof.verify(requirement!("DDP-5.3-3"), || {
            for mo in [40, 10, 60, 0, 30, 50, 20] {
                assert_eq!(place(&mut queue, mo, 10), Ok(()), "MO {mo}");
            }
            assert_eq!(queue.check_offset(&header(true, 1, 70), 5, 100), Ok(()));
            assert_eq!(queue.advance(&header(true, 1, 70), 5), Some(75));
        });
    }

    #[test]
    fn a_gap_or_an_overlap_is_rejected() {
        let mut queue = UntaggedQueue::default();
        place(&mut queue, 10, 10).unwrap();
        let last = |queue: &UntaggedQueue, mo| queue.check_offset(&header(true, 1, mo), 1, 100);
        assert_eq!(last(&queue, 20), Err(QueueError::MessageOffset), "the first ten bytes are missing");
        for (mo, len) in [(10, 10), (5, 6), (19, 1), (5, 20)] {
            assert_eq!(place(&mut queue, mo, len), Err(QueueError::MessageOffset), "MO {mo}");
        }
        place(&mut queue, 0, 10).unwrap();
        assert_eq!(place(&mut queue, 19, 1), Err(QueueError::MessageOffset));
        assert_eq!(last(&queue, 20), Ok(()));
    }

    #[test]
    fn the_number_of_gaps_is_limited() {
        let mut queue = UntaggedQueue::default();
        let at = |number: usize| u32::try_from(2 * number + 1).unwrap();
        for number in 0..MAX_PARTS {
            queue.advance(&header(false, 1, at(number)), 1);
        }
        let next = header(false, 1, at(MAX_PARTS));
        assert_eq!(queue.check_offset(&next, 1, u64::MAX), Err(QueueError::MessageOffset));
    }

    #[test]
    fn msn_wraps() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut queue = UntaggedQueue { msn: Msn::new(u32::MAX), ..UntaggedQueue::default() };
        queue.advance(&header(true, u32::MAX, 0), 0);
        proof.verify(requirement!("DDP-4.3-8"), || assert_eq!(queue.check_msn(&header(true, 0, 0)), Ok(())));
    }
}
