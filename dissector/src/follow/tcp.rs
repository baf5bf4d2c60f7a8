//! Facts that TCP headers show about each endpoint: options of the SYN, segment boundaries, and
//! octets after a FIN.
//!
//! **Memory.** For each direction, this module stores the acknowledgements of the first and last
//! segments, and the boundaries of the last [`BOUNDARIES`] segments. It does not track congestion
//! and windows. Instead, if an endpoint sends a short segment, the next segment shows whether a
//! full window was the reason.

use std::collections::VecDeque;

use crate::frame_number::FrameNumber;
use crate::ip::Segment;
use crate::tcp::direction_stream::ORIGIN;
use crate::tcp::{FAR_AFTER_CLOSE, before, is_far};

/// Maximum number of segments whose boundaries are kept, to compare them with retransmissions.
const BOUNDARIES: usize = 64;
/// Maximum number of segments whose acknowledgements are kept. These segments cover the start-up.
const FIRST_ACKS: usize = 8;
/// The largest shift count of the window scale option (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;
/// weft assumes that an endpoint has at most this number of unacknowledged octets during its
/// start-up. If octets are farther from an acknowledgement, they belong to another connection with
/// the same ports.
const MAX_UNACKNOWLEDGED: u32 = 1 << 20;
/// Length in octets of the timestamps option with its padding. If the option was negotiated, each
/// segment has this option (RFC 7323).
const TIMESTAMPS_LEN: u32 = 12;

/// Number of payload octets that every path can carry in a segment. An IP packet of 576 octets (RFC
/// 791 section 3.1) has 496 octets after an IPv4 header of 20 octets and a TCP header of 60 octets.
/// weft assumes this number, because some paths carry less than the MSS options allow, and no
/// header shows the limit of the path.
pub(crate) const MIN_SEGMENT_LEN: u32 = 496;

/// The range of sequence numbers of a segment with payload.
#[derive(Debug, Clone, Copy)]
struct SentSegment {
    start: u32,
    end: u32,
    /// Whether the endpoint sent the next segment before a new acknowledgement arrived. If so, this
    /// segment did not end because of a full window.
    is_continued: bool,
}

/// Facts from the segments of one endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct TcpFacts {
    /// The MSS option of the endpoint's SYN: the length in octets of the largest segment that the
    /// endpoint can receive.
    pub mss: Option<u16>,
    timestamps: bool,
    /// The window scale option of the endpoint's SYN. The outer `None` means that not all options
    /// were captured. The inner `None` means that the SYN has no window scale option.
    scale: Option<Option<u8>>,
    /// The frame of the endpoint's first SYN without the SACK-permitted option. A SYN counts only
    /// if its options were captured.
    pub no_sack_frame: Option<FrameNumber>,
    /// The first frame with payload that has an IPv4 packet with Don't Fragment clear.
    pub fragmentable_frame: Option<FrameNumber>,
    /// The first frame that carries octets after the endpoint's FIN.
    pub after_fin_frame: Option<FrameNumber>,
    /// The latest frame with new octets. A frame with only retransmitted octets does not count.
    pub latest_octets: Option<FrameNumber>,
    /// The frame of the first retransmission whose start or end is not at a known segment boundary.
    pub resegmented_frame: Option<FrameNumber>,
    /// Whether the snap length of the capture cut off octets of a segment.
    pub cut: bool,
    /// Whether octets of the endpoint are missing in the capture, or were captured out of order.
    pub missed: bool,
    /// The first frame in which the peer acknowledges octets that were not captured before this
    /// frame. From this frame on, it is possible that the peer received octets before they were
    /// captured.
    pub acked_uncaptured: Option<FrameNumber>,
    /// The sequence number of the first missing octet before captured octets, and the sequence
    /// number after the last missing octet. If there are several gaps, the range goes from the
    /// first gap to the last gap, and includes the captured octets between them.
    gap: Option<(u32, u32)>,
    /// The peer's acknowledgements that were captured before the first segment of this endpoint,
    /// each with its frame.
    acked_before: Vec<(u32, FrameNumber)>,
    /// Whether the first RST has an unexpected sequence number. The expected number is the sequence
    /// number after the captured octets.
    pub has_unexpected_reset: bool,
    /// Frame and acknowledgement number of some segments: of the first segments with payload, of
    /// the first FIN, and of the first RST.
    acks: Vec<(FrameNumber, u32)>,
    reset: bool,
    isn: Option<u32>,
    fin: Option<u32>,
    next: Option<u32>,
    sent: VecDeque<SentSegment>,
    /// The longest payload of a segment, in octets.
    pub longest: u32,
    /// The peer's highest acknowledgement number.
    pub last_ack: Option<u32>,
    /// Whether the acknowledgement in `last_ack` came after the last segment of `sent`.
    has_new_ack: bool,
}

impl TcpFacts {
    /// Records a segment that this endpoint sent.
    pub(crate) fn record_segment(&mut self, segment: &Segment<'_>) {
        if segment.syn {
            self.read_options(segment);
        }
        let start = segment.seq.wrapping_add(u32::from(segment.syn));
        let end = start.wrapping_add(segment.wire_len);
        if let Some((_, frame)) =
            std::mem::take(&mut self.acked_before).iter().find(|(ack, _)| before(segment.seq, *ack))
        {
            self.missed = true;
            self.acked_uncaptured.get_or_insert(*frame);
        }
        if segment.syn {
            // A repeated SYN has no new information. If a SYN was captured after octets of its
            // direction, the capture is out of order.
            self.missed |= self.isn != Some(segment.seq) && self.next.is_some_and(|next| before(start, next));
            self.next = Some(self.next.filter(|next| before(start, *next)).unwrap_or(start));
            self.isn = Some(segment.seq);
        }
        self.cut |= segment.octets.len() < segment.wire_len as usize;
        if let Some(sent) = self.sent_up_to().filter(|sent| before(*sent, start) && !segment.rst) {
            self.missed = true;
            let (first, after) = self.gap.unwrap_or((sent, start));
            self.gap = Some((first, if before(after, start) { start } else { after }));
        }
        self.fill_gap(start, end);
        if segment.wire_len > 0 && !segment.rst {
            if self.next.is_none_or(|next| before(next, end)) {
                self.latest_octets = Some(segment.frame);
            }
            if segment.may_fragment {
                self.fragmentable_frame.get_or_insert(segment.frame);
            }
            // Some keep-alives carry one synthetic octet. The peer has already received the octet
            // with this sequence number (RFC 1122, section 4.2.3.6). After a FIN, a keep-alive has
            // the sequence number of the FIN. Octets far from the FIN belong to another connection
            // with the same ports.
            let is_after = |fin: u32| before(fin, end) && !is_far(start, fin, FAR_AFTER_CLOSE);
            if self.fin.is_some_and(|fin| is_after(fin) && !(start == fin && segment.wire_len == 1)) {
                self.after_fin_frame.get_or_insert(segment.frame);
            }
            self.record_boundaries(start, end, segment);
        }
        let begins = segment.wire_len > 0 && !segment.rst && self.acks.len() < FIRST_ACKS;
        let ends = segment.fin && self.fin.is_none() || segment.rst && !self.reset;
        if segment.ack_flag && (begins || ends) {
            self.acks.push((segment.frame, segment.ack));
        }
        if segment.fin {
            self.fin.get_or_insert(end);
        }
        if segment.rst && !self.reset {
            self.reset = true;
            self.has_unexpected_reset = self.sent_up_to() != Some(segment.seq);
        }
    }

    /// Records that the peer acknowledges octets up to `ack` in `frame`.
    pub(crate) fn record_ack(&mut self, ack: u32, frame: FrameNumber) {
        if self.last_ack.is_none_or(|last_ack| before(last_ack, ack)) {
            (self.last_ack, self.has_new_ack) = (Some(ack), true);
        }
        if self.next.is_none() && self.fin.is_none() {
            // It is possible that the first acknowledgement acknowledges only the SYN. Then a later
            // acknowledgement can show that octets are missing. So later acknowledgements are
            // stored, too.
            let is_new = self.acked_before.last().is_none_or(|(last, _)| before(*last, ack));
            if is_new && self.acked_before.len() < FIRST_ACKS {
                self.acked_before.push((ack, frame));
            }
        }
        let is_ahead = self.sent_up_to().is_some_and(|sent| before(sent, ack));
        if is_ahead || self.gap.is_some_and(|(first, _)| before(first, ack)) {
            self.missed = true;
            self.acked_uncaptured.get_or_insert(frame);
        }
    }

    /// Returns whether `segment` retransmits octets that the peer has not acknowledged. Call this
    /// before `segment` is recorded.
    pub(crate) fn repeats_unacknowledged(&self, segment: &Segment<'_>) -> bool {
        let end = segment.seq.wrapping_add(segment.wire_len);
        segment.wire_len > 1
            && !segment.syn
            && self.next.is_some_and(|next| before(segment.seq, next))
            && self.last_ack.is_none_or(|last_ack| before(last_ack, end))
    }

    /// Returns whether the endpoint's last octets are missing in the capture. This is the case if
    /// the endpoint's FIN, or an acknowledgement of the peer, is after the last captured octet.
    pub(crate) fn lacks_last_octets(&self) -> bool {
        let (Some(next), Some(sent)) = (self.next, self.sent_up_to()) else { return false };
        self.fin.is_some_and(|fin| before(next, fin)) || self.last_ack.is_some_and(|acked| before(sent, acked))
    }

    /// Returns whether the peer, in `frame` or in an earlier frame, acknowledged octets that were
    /// not captured before this acknowledgement. If true, the order of frames does not show which
    /// octets the peer had received.
    pub(crate) fn may_be_late_at(&self, frame: FrameNumber) -> bool {
        self.acked_uncaptured.is_some_and(|unseen| unseen <= frame)
    }

    /// Returns the sequence number after all captured octets. A FIN counts as one octet.
    fn sent_up_to(&self) -> Option<u32> {
        self.next.map(|next| next.wrapping_add(u32::from(self.fin.is_some())))
    }

    /// Returns whether this endpoint had received all octets of the peer up to stream position
    /// `position` when it sent `frame`. Returns `None` if this is not known. It is known only if
    /// `frame` is one of the endpoint's first segments, its FIN or its RST.
    pub(crate) fn had_received(&self, frame: FrameNumber, peer: &TcpFacts, position: u64) -> Option<bool> {
        let (_, ack) = self.acks.iter().find(|(sent, _)| *sent == frame)?;
        let end = peer.isn?.wrapping_add(1).wrapping_add((position.checked_sub(ORIGIN)? & 0xffff_ffff) as u32);
        let unacknowledged = if before(*ack, end) { end.wrapping_sub(*ack) } else { 0 };
        (unacknowledged < MAX_UNACKNOWLEDGED).then_some(unacknowledged == 0)
    }

    /// Returns whether this endpoint had received the peer's FIN when it sent `frame`. Returns
    /// `None` if this is not known, like [`TcpFacts::had_received`].
    pub(crate) fn had_fin(&self, frame: FrameNumber, peer: &TcpFacts) -> Option<bool> {
        let (_, ack) = self.acks.iter().find(|(sent, _)| *sent == frame)?;
        Some(before(peer.fin?, *ack))
    }

    /// Records that the octets `start..end` were captured. If these octets include the first
    /// missing octet, the gap becomes shorter and begins at `end`. If they include the complete
    /// gap, the gap is removed.
    fn fill_gap(&mut self, start: u32, end: u32) {
        if let Some((first, after)) = self.gap
            && !before(first, start)
            && before(first, end)
        {
            self.gap = before(end, after).then_some((end, after));
        }
    }

    fn record_boundaries(&mut self, start: u32, end: u32, segment: &Segment<'_>) {
        if self.next.is_some_and(|next| before(start, next)) {
            // A keep-alive repeats one octet and is not a retransmission.
            if segment.wire_len > 1 && self.resegmented_frame.is_none() && self.has_new_boundaries(start, end) {
                self.resegmented_frame = Some(segment.frame);
            }
            return;
        }
        if self.sent.len() == BOUNDARIES {
            self.sent.pop_front();
        }
        if let Some(last) = self.sent.back_mut() {
            last.is_continued = last.end == start && !self.has_new_ack;
        }
        self.has_new_ack = false;
        self.longest = self.longest.max(segment.wire_len);
        self.sent.push_back(SentSegment { start, end, is_continued: false });
        self.next = Some(end);
    }

    /// Returns whether this endpoint ended a segment at stream position `position` although the
    /// segment was shorter than `emss` and the window was open. If this is not known, returns
    /// `false`.
    pub(crate) fn split_segment_early_at(&self, position: u64, emss: u32) -> bool {
        let (Some(isn), Some(position)) = (self.isn, position.checked_sub(ORIGIN)) else { return false };
        let at = isn.wrapping_add(1).wrapping_add((position & 0xffff_ffff) as u32);
        let capacity = self.longest.max(MIN_SEGMENT_LEN).min(emss);
        let is_short = |sent: &&SentSegment| sent.end == at && sent.end.wrapping_sub(sent.start) < capacity;
        self.sent.iter().rev().find(is_short).is_some_and(|sent| sent.is_continued)
    }

    /// Returns whether the boundaries of a retransmission of `start..end` differ from the
    /// boundaries of the segments that carried these octets for the first time.
    fn has_new_boundaries(&self, start: u32, end: u32) -> bool {
        let known = |at: u32| self.sent.iter().any(|sent| !before(at, sent.start) && before(at, sent.end));
        let is_known = known(start) && known(end.wrapping_sub(1));
        is_known && !(self.sent.iter().any(|sent| sent.start == start) && self.sent.iter().any(|sent| sent.end == end))
    }

    fn read_options(&mut self, segment: &Segment<'_>) {
        let mut options = segment.options;
        let (mut sack, mut scale) = (false, None);
        while let [kind, rest @ ..] = options {
            options = match (kind, rest) {
                (0, _) => break,
                (1, rest) => rest,
                (kind, [length, ..]) if *length >= 2 => {
                    let Some(value) = rest.get(1..usize::from(*length) - 1) else { break };
                    match (kind, value) {
                        (2, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
                        (3, &[shift]) => scale = Some(shift.min(MAX_SCALE)),
                        (4, []) => sack = true,
                        (8, value) if value.len() == 8 => self.timestamps = true,
                        _ => {}
                    }
                    &rest[usize::from(*length) - 1..]
                }
                _ => break,
            };
        }
        self.scale = (!segment.options_cut).then_some(scale);
        // If the MSS option is present, the options were captured.
        if self.mss.is_some() && !sack {
            self.no_sack_frame.get_or_insert(segment.frame);
        }
    }
}

/// Returns the shift count of an endpoint's windows. If one of the two SYNs has no window scale
/// option, the shift count is 0 (RFC 7323 section 2.2). Returns `None` if the options of a SYN were
/// not captured.
pub(super) fn window_scale(own: &TcpFacts, peer: &TcpFacts) -> Option<u8> {
    let (own, peer) = (own.scale?, peer.scale?);
    Some(if peer.is_some() { own.unwrap_or(0) } else { 0 })
}

/// Returns the length in octets of the payload of a full segment from `sender`. This length is
/// derived from the options of both SYNs. Returns `None` if the receiver's MSS option was not
/// captured.
pub(crate) fn emss(sender: &TcpFacts, receiver: &TcpFacts) -> Option<u32> {
    let timestamps = if sender.timestamps && receiver.timestamps { TIMESTAMPS_LEN } else { 0 };
    u32::from(receiver.mss?).checked_sub(timestamps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::testing::segment;

    #[test]
    fn octets_far_from_an_acknowledgement_belong_to_another_connection() {
        let had_received = |octets: u32| {
            let mut peer = TcpFacts::default();
            peer.record_segment(&Segment { syn: true, ..segment(100, b"") });
            let mut facts = TcpFacts::default();
            facts.record_segment(&Segment { ack: 101, ..segment(7, b"abc") });
            facts.had_received(FrameNumber::FIRST, &peer, ORIGIN + u64::from(octets))
        };
        let most = MAX_UNACKNOWLEDGED;
        let expected = [Some(true), Some(false), Some(false), None, None];
        assert_eq!([0, 1, most - 1, most, 1 << 29].map(had_received), expected);
    }

    #[test]
    fn octets_far_from_a_fin_belong_to_another_connection() {
        let is_after_fin = |seq: u32| {
            let mut facts = TcpFacts::default();
            facts.record_segment(&segment(100, b"abc"));
            facts.record_segment(&Segment { fin: true, ..segment(103, b"") });
            facts.record_segment(&segment(seq, b"abc"));
            facts.after_fin_frame.is_some()
        };
        let near = [100, 101, 103, 104, 103 + FAR_AFTER_CLOSE].map(is_after_fin);
        assert_eq!(near, [false, true, true, true, true]);
        assert_eq!([104 + FAR_AFTER_CLOSE, 103 + (1 << 30), 90].map(is_after_fin), [false; 3]);
    }

    /// Returns whether an acknowledgement up to `ack` covers octets that were not captured. At
    /// first, `abc` and `ghi` are captured, and the octets 103 to 105 between them are missing.
    fn acknowledges_uncaptured(later: &[(u32, &str)], ack: u32) -> bool {
        let mut facts = TcpFacts::default();
        for (seq, octets) in [(100, "abc"), (106, "ghi")].iter().chain(later) {
            facts.record_segment(&segment(*seq, octets.as_bytes()));
        }
        facts.record_ack(ack, FrameNumber::FIRST);
        facts.acked_uncaptured.is_some()
    }

    #[test]
    fn an_acknowledgement_covers_a_gap_until_the_gap_is_filled() {
        assert_eq!([103, 104, 109, 110].map(|ack| acknowledges_uncaptured(&[], ack)), [false, true, true, true]);
        for later in [&[(103, "def")][..], &[(103, "d"), (104, "ef")], &[(102, "cdefg")]] {
            assert!(!acknowledges_uncaptured(later, 109), "{later:?}");
        }
        for later in [&[(103, "de")][..], &[(104, "ef")]] {
            assert!(acknowledges_uncaptured(later, 109), "{later:?}");
        }
        // The first gap is filled, and another gap follows.
        assert!(acknowledges_uncaptured(&[(103, "def"), (110, "kl")], 112));
    }

    /// Two gaps count as one gap. Therefore octets of both gaps have to be captured.
    #[test]
    fn a_second_gap_extends_the_first_gap() {
        assert!(acknowledges_uncaptured(&[(112, "mno"), (103, "def")], 115));
        assert!(!acknowledges_uncaptured(&[(112, "mno"), (103, "def"), (106, "ghi"), (109, "jkl")], 115));
    }
}
