//! Order of the segments in one untagged queue of the Data Sink (RFC 5041 sections 5.3, 5.4, 7.1).
//! Checks message sequence number (MSN) and message offset (MO) of each segment.
//!
//! MPA delivers the segments in the order in which the Data Source sent them. A segment that does
//! not continue its message is rejected, and not placed. Over one TCP stream, such a segment has
//! one of two causes. Either the Data Source violates DDP-5.3-1, which requires messages in the
//! order of submission. Or the Data Source does not follow DDP-5.3-2, which recommends (SHOULD)
//! segments in the order of their offsets. This module does not contain the buffers. It needs only
//! their lengths.

use weft_core::wire::ddp::{Msn, RawUntagged};

use crate::reject::reject_if;

/// The expected MSN and MO of the next segment in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntaggedQueue {
    /// MSN of the current message, or of the next message if no message is in progress.
    msn: Msn,
    /// Number of placed bytes of the current message.
    mo: u32,
    open: bool,
}

/// Reason why a segment is not valid as the next segment of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum QueueError {
    /// The segment begins the next message, but the last segment of the current message has not
    /// arrived.
    #[error("a new message started before the last segment of the current message")]
    MissingLast,
    /// The MO is not the offset at which the message continues.
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
        UntaggedQueue { msn: Msn::FIRST, mo: 0, open: false }
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

    /// Continues after a segment whose fault a deviation ignores.
    pub(crate) const fn skip_to(&mut self, header: &RawUntagged) {
        let msn = if header.control.last() { header.msn().next() } else { header.msn() };
        *self = UntaggedQueue { msn, mo: 0, open: false };
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
        reject_if(header.mo.get() != self.mo, QueueError::MessageOffset)?;
        reject_if(u64::from(self.mo) + payload_len as u64 > buffer.min(u64::from(u32::MAX)), QueueError::TooLong)
    }

    /// Counts a valid segment as placed. Returns the length of the message in bytes if the segment
    /// is the last segment, and `None` otherwise.
    pub fn advance(&mut self, header: &RawUntagged, payload_len: usize) -> Option<u32> {
        let length = self.mo.saturating_add(u32::try_from(payload_len).unwrap_or(u32::MAX));
        if header.control.last() {
            *self = UntaggedQueue { msn: self.msn.next(), mo: 0, open: false };
            return Some(length);
        }
        (self.mo, self.open) = (length, true);
        None
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
        });
        proof.verify(requirement!("DDP-7.1-8"), || {
            assert_eq!(queue.check_offset(&header(true, 1, 0), 5, 4), Err(QueueError::TooLong));
            assert_eq!(queue.check_offset(&header(true, 1, 0), 4, 4), Ok(()));
        });
        queue.advance(&header(false, 1, 0), 4);
        assert_eq!(queue.check_msn(&header(true, 2, 0)), Err(QueueError::MissingLast));
    }

    #[test]
    fn msn_wraps() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut queue = UntaggedQueue { msn: Msn::new(u32::MAX), ..UntaggedQueue::default() };
        queue.advance(&header(true, u32::MAX, 0), 0);
        proof.verify(requirement!("DDP-4.3-8"), || assert_eq!(queue.check_msn(&header(true, 0, 0)), Ok(())));
    }
}
