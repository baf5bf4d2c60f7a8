//! [`Transport`]: what TCP shows about a connection: retransmissions of both directions, and bytes
//! that were not captured.

use std::collections::VecDeque;

use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::packet::TcpSegment;
use crate::tcp::{Relation, SequenceTrack, before};

/// Maximum number of retransmissions whose frames are kept.
const MAX_FRAMES: usize = 64;

/// The segments of a connection so far.
#[derive(Debug, Default)]
pub(super) struct Transport {
    sequences: [SequenceTrack; 2],
    /// For each direction, the largest acknowledgement number of the peer.
    acknowledged: [Option<u32>; 2],
    /// Whether a segment of the direction ever skipped bytes. From then on, the frames of its units
    /// do not always increase.
    has_holes: [bool; 2],
    /// Number of retransmissions.
    total: u64,
    /// The frames of the latest retransmissions.
    frames: VecDeque<FrameNumber>,
}

impl Transport {
    /// Records a segment.
    pub(super) fn record(&mut self, direction: Direction, segment: &TcpSegment<'_>) {
        let shape = segment.shape();
        let sequence = &mut self.sequences[direction];
        if sequence.is_copy(&shape) || segment.rst() {
            return;
        }
        let acknowledged = &mut self.acknowledged[direction.peer()];
        if let Some(ack) = segment.ack()
            && acknowledged.is_none_or(|latest| before(latest, ack))
        {
            *acknowledged = Some(ack);
        }
        match sequence.record(&shape) {
            Relation::Repeats | Relation::Refills => self.add(segment.frame()),
            Relation::SkipsOctets => self.has_holes[direction] = true,
            _ => {}
        }
    }

    fn add(&mut self, frame: FrameNumber) {
        self.total += 1;
        if self.frames.len() >= MAX_FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back(frame);
    }

    /// Returns whether the peer acknowledged bytes of the direction that are after all captured
    /// bytes.
    pub(super) fn lacks_last_bytes(&self, direction: Direction) -> bool {
        let next = self.sequences[direction].next();
        self.acknowledged[direction].is_some_and(|ack| next.is_some_and(|next| before(next, ack)))
    }

    /// Number of retransmissions so far.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Number of retransmissions up to and including frame `frame`. If more than 64 retransmissions
    /// followed it, the number is too large.
    pub(super) fn until(&self, frame: FrameNumber) -> u64 {
        let later = self.frames.iter().rev().take_while(|later| **later > frame).count();
        self.total - later as u64
    }

    /// Returns whether a segment of the direction ever skipped bytes.
    pub(super) fn has_holes(&self, direction: Direction) -> bool {
        self.has_holes[direction]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_until_a_frame_has_no_later_retransmissions() {
        let mut counted = Transport::default();
        [5_u64, 9, 9, 20].into_iter().for_each(|frame| counted.add(frame.into()));
        let until = |frame: u64| counted.until(frame.into());
        assert_eq!([4, 5, 8, 9, 19, 20, 99].map(until), [0, 1, 1, 3, 3, 4, 4]);
        assert_eq!(counted.total(), 4);
    }

    #[test]
    fn only_the_latest_frames_are_kept() {
        let mut counted = Transport::default();
        (1..=1000_u64).for_each(|frame| counted.add(frame.into()));
        assert_eq!((counted.frames.len(), counted.until(990.into())), (MAX_FRAMES, 990));
        assert_eq!(counted.until(1.into()), 1000 - MAX_FRAMES as u64);
    }
}
