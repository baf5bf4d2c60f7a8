//! The oldest octets that the peer did not acknowledge, and their retransmissions. They show
//! whether the segments of an endpoint still reach its peer.
//!
//! **Memory.** At most [`MAX_SENT`] segments are kept.

use std::collections::VecDeque;

use crate::exchange::CapturePoint;
use crate::frame_number::FrameNumber;
use crate::packet::TcpSegment;
use crate::tcp::before;

/// Maximum number of segments without an acknowledgement that are kept.
const MAX_SENT: usize = 32;
/// Minimum number of retransmissions of the same octets that show a failure.
const MIN_RETRANSMISSIONS: u64 = 3;
/// Minimum number of segments with payload that show that the peer is alive.
const MIN_ANSWERS: u64 = 2;

/// How the segments of an endpoint fail to reach its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// All segments.
    All,
    /// Segments with this number of payload octets. The peer receives shorter ones.
    Long(u32),
}

/// The oldest octets of one endpoint without an acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Stall {
    /// The highest acknowledgement number of the peer.
    acked: Option<u32>,
    /// The first segments without an acknowledgement: the sequence number after the segment, and
    /// its frame.
    sent: VecDeque<(u32, FrameNumber)>,
    /// The longest payload of a segment that the peer acknowledged.
    longest_acked: u32,
    /// The longest payload that was sent.
    longest_sent: u32,
    /// Number of retransmissions that begin with the oldest octets.
    pub(super) retransmissions: u64,
    /// The first of these retransmissions.
    pub(super) first: Option<CapturePoint>,
    /// Payload length of the shortest of these retransmissions.
    shortest: u32,
    /// Number of the peer's segments with payload after the first of these retransmissions.
    pub(super) answers: u64,
    /// The last of these segments.
    pub(super) last_answer: Option<CapturePoint>,
    /// Whether the peer selectively acknowledged later octets.
    has_sack: bool,
}

impl Stall {
    /// Records a segment of the endpoint. `repeats` is set if its octets were sent before.
    pub(super) fn sent(&mut self, segment: &TcpSegment<'_>, repeats: bool, at: CapturePoint) {
        let len = segment.payload_len();
        self.longest_sent = self.longest_sent.max(len);
        if !repeats && len > 0 && self.sent.len() < MAX_SENT {
            self.sent.push_back((segment.seq().wrapping_add(len), at.frame));
        }
        if !repeats || len == 0 || self.acked != Some(segment.seq()) {
            return;
        }
        self.shortest = if self.retransmissions == 0 { len } else { self.shortest.min(len) };
        self.retransmissions += 1;
        self.first.get_or_insert(at);
    }

    /// Records a segment of the peer. `next` is the sequence number after the endpoint's last
    /// octet.
    pub(super) fn received(&mut self, segment: &TcpSegment<'_>, next: Option<u32>, at: CapturePoint) {
        let Some(ack) = segment.ack().filter(|_| !segment.rst()) else { return };
        if self.acked.is_none_or(|acked| before(acked, ack)) {
            let longest_sent = self.longest_sent;
            let longest_acked = if next == Some(ack) { longest_sent } else { self.longest_acked };
            let mut sent = std::mem::take(&mut self.sent);
            sent.retain(|(end, _)| before(ack, *end));
            *self = Stall { acked: Some(ack), sent, longest_acked, longest_sent, ..Stall::default() };
            return;
        }
        self.has_sack |= segment.has_sack();
        if self.retransmissions > 0 && segment.payload_len() > 0 {
            self.answers += 1;
            self.last_answer = Some(at);
        }
    }

    /// The frame of the oldest octets without an acknowledgement.
    pub(super) fn oldest(&self) -> Option<FrameNumber> {
        self.sent.front().map(|(_, frame)| *frame)
    }

    /// The failure of the path to the peer, if the segments show that the peer is alive.
    pub(super) fn failure(&self) -> Option<Failure> {
        let is_long = self.shortest > self.longest_acked;
        match self.retransmissions {
            0..MIN_RETRANSMISSIONS => None,
            _ if self.has_sack => is_long.then_some(Failure::Long(self.shortest)),
            _ => (self.answers >= MIN_ANSWERS).then_some(Failure::All),
        }
    }

    /// Returns whether the peer acknowledged all octets before `next`, except at most a FIN.
    pub(super) fn is_all_acked(&self, next: Option<u32>) -> bool {
        self.acked.zip(next).is_some_and(|(acked, next)| next.wrapping_sub(acked) <= 1)
    }
}
