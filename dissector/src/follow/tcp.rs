//! Facts about each end from TCP's headers: options of the SYN, segment boundaries, octets after a
//! FIN.
//!
//! Memory: the acknowledgements of the first and last segments, and the boundaries of the last
//! [`BOUNDARIES`] segments of each direction. Congestion and windows are not followed; the next
//! segment shows whether they ended a segment.

use std::collections::VecDeque;

use crate::ip::Segment;
use crate::tcp::half::ORIGIN;
use crate::tcp::{FAR_AFTER_CLOSE, is_far};

/// Segments whose boundaries are kept to compare them with retransmissions.
const BOUNDARIES: usize = 64;
/// Segments whose acknowledgements are kept: those of the start-up.
const FIRST_ACKS: usize = 8;
/// The largest shift count (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;
/// Octets that an end may send in its start-up before the peer has acknowledged them. Octets that
/// are farther from an acknowledgement are those of another connection with the same ports.
const MOST_UNACKNOWLEDGED: u32 = 1 << 20;
/// Octets of the timestamps option with its padding, which every segment carries once negotiated
/// (RFC 7323).
const TIMESTAMPS_LEN: u32 = 12;

/// Octets that every path carries in a segment: 576 octets of an IP packet (RFC 791 section 3.1),
/// less 20 of IPv4's header and 60 of TCP's. A path may carry less than the MSS options allow, and
/// no header shows that.
pub(crate) const LEAST_SEGMENT: u32 = 496;

/// A segment with payload.
#[derive(Debug, Clone, Copy)]
struct Sent {
    start: u32,
    end: u32,
    /// Was the next one sent before the peer acknowledged anything more? Then no window ended this
    /// one.
    is_continued: bool,
}

/// Facts from the segments of one end.
#[derive(Debug, Clone, Default)]
pub(crate) struct TcpFacts {
    /// The MSS option of its SYN: what it is willing to receive.
    pub mss: Option<u16>,
    timestamps: bool,
    /// Were all options of its SYN captured, and the window scale in it, if any?
    scale: Option<Option<u8>>,
    /// The frame of a SYN that has options, but not SACK-permitted.
    pub no_sack: Option<u64>,
    /// The first frame with payload whose IPv4 packet may be fragmented.
    pub may_fragment: Option<u64>,
    /// The first frame that carries octets after its FIN.
    pub after_fin: Option<u64>,
    /// The latest frame with octets that the capture did not have before.
    pub latest_octets: Option<u64>,
    /// The first retransmission that begins or ends at no known segment boundary.
    pub resegmented: Option<u64>,
    /// Were octets of a segment cut off by the capture?
    pub cut: bool,
    /// Did octets pass that were not captured, or only captured later?
    pub missed: bool,
    /// The first frame in which the peer acknowledges octets that were not captured by then. The
    /// peer may have received anything that the capture has after that frame.
    pub acked_unseen: Option<u64>,
    /// The peer's acknowledgements before anything of this end was captured, each with its frame.
    acked_before: Vec<(u32, u64)>,
    /// Is the first RST not directly after all captured octets?
    pub reset_elsewhere: bool,
    /// The first segments with payload, the first FIN and the first RST: frame, and acknowledgement
    /// number.
    acks: Vec<(u64, u32)>,
    reset: bool,
    isn: Option<u32>,
    fin: Option<u32>,
    next: Option<u32>,
    sent: VecDeque<Sent>,
    /// The longest payload of a segment.
    pub longest: u32,
    /// The peer's last acknowledgement number, and whether it came since the last segment of
    /// `sent`.
    last_ack: Option<u32>,
    has_new_ack: bool,
}

/// Is `a` before `b`?
pub(crate) fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

impl TcpFacts {
    /// Records a segment that this end sent.
    pub(crate) fn segment(&mut self, segment: &Segment<'_>) {
        if segment.syn {
            self.options(segment);
        }
        let start = segment.seq.wrapping_add(u32::from(segment.syn));
        let end = start.wrapping_add(segment.wire_len);
        if let Some((_, frame)) =
            std::mem::take(&mut self.acked_before).iter().find(|(ack, _)| before(segment.seq, *ack))
        {
            self.missed = true;
            self.acked_unseen.get_or_insert(*frame);
        }
        if segment.syn {
            // A repeated SYN has no new information. A SYN after its octets shows that the capture
            // is out of order.
            self.missed |= self.isn != Some(segment.seq) && self.next.is_some_and(|next| before(start, next));
            self.next = Some(self.next.filter(|next| before(start, *next)).unwrap_or(start));
            self.isn = Some(segment.seq);
        }
        self.cut |= segment.octets.len() < segment.wire_len as usize;
        self.missed |= self.sent_up_to().is_some_and(|sent| before(sent, start)) && !segment.rst;
        if segment.wire_len > 0 && !segment.rst {
            if self.next.is_none_or(|next| before(next, end)) {
                self.latest_octets = Some(segment.frame);
            }
            if segment.may_fragment {
                self.may_fragment.get_or_insert(segment.frame);
            }
            // The one octet of a keep-alive may be synthetic. It repeats the last position that the
            // peer had (RFC 1122, section 4.2.3.6). After a FIN, that position is the FIN itself.
            // Octets far from the FIN are those of another connection with these ports.
            let is_after = |fin: u32| before(fin, end) && !is_far(start, fin, FAR_AFTER_CLOSE);
            if self.fin.is_some_and(|fin| is_after(fin) && !(start == fin && segment.wire_len == 1)) {
                self.after_fin.get_or_insert(segment.frame);
            }
            self.boundaries(start, end, segment);
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
            self.reset_elsewhere = self.sent_up_to() != Some(segment.seq);
        }
    }

    /// Records that the peer acknowledges octets up to `ack` in `frame`.
    pub(crate) fn acknowledged(&mut self, ack: u32, frame: u64) {
        if self.last_ack.is_none_or(|last_ack| before(last_ack, ack)) {
            (self.last_ack, self.has_new_ack) = (Some(ack), true);
        }
        if self.next.is_none() && self.fin.is_none() {
            // The first one may acknowledge the SYN alone.
            let is_new = self.acked_before.last().is_none_or(|(last, _)| before(*last, ack));
            if is_new && self.acked_before.len() < FIRST_ACKS {
                self.acked_before.push((ack, frame));
            }
        }
        if self.sent_up_to().is_some_and(|sent| before(sent, ack)) {
            self.missed = true;
            self.acked_unseen.get_or_insert(frame);
        }
    }

    /// Does `segment`, which is not recorded yet, repeat octets that the peer has not acknowledged?
    pub(crate) fn repeats_unacknowledged(&self, segment: &Segment<'_>) -> bool {
        let end = segment.seq.wrapping_add(segment.wire_len);
        segment.wire_len > 1
            && !segment.syn
            && self.next.is_some_and(|next| before(segment.seq, next))
            && self.last_ack.is_none_or(|last_ack| before(last_ack, end))
    }

    /// The peer's last acknowledgement number.
    pub(crate) fn acknowledged_up_to(&self) -> Option<u32> {
        self.last_ack
    }

    /// Is the FIN or the peer's acknowledgement after the last captured octet?
    pub(crate) fn lacks_its_end(&self) -> bool {
        let (Some(next), Some(sent)) = (self.next, self.sent_up_to()) else { return false };
        self.fin.is_some_and(|fin| before(next, fin)) || self.last_ack.is_some_and(|acked| before(sent, acked))
    }

    /// Did the peer acknowledge octets, in `frame` or earlier, that the capture has later or not at
    /// all? The order of frames then does not show what the peer knew.
    pub(crate) fn may_be_late_at(&self, frame: u64) -> bool {
        self.acked_unseen.is_some_and(|unseen| unseen <= frame)
    }

    /// The sequence number after all captured octets; a FIN has its own.
    fn sent_up_to(&self) -> Option<u32> {
        self.next.map(|next| next.wrapping_add(u32::from(self.fin.is_some())))
    }

    /// Did this end have the peer's octets before stream position `position` when it sent `frame`?
    /// `frame` is one of its first segments, its FIN or its RST. `None`: not known.
    pub(crate) fn had_received(&self, frame: u64, peer: &TcpFacts, position: u64) -> Option<bool> {
        let (_, ack) = self.acks.iter().find(|(sent, _)| *sent == frame)?;
        let end = peer.isn?.wrapping_add(1).wrapping_add((position.checked_sub(ORIGIN)? & 0xffff_ffff) as u32);
        let unacknowledged = if before(*ack, end) { end.wrapping_sub(*ack) } else { 0 };
        (unacknowledged < MOST_UNACKNOWLEDGED).then_some(unacknowledged == 0)
    }

    /// Did this end have the peer's FIN when it sent `frame`, which is of the same kind as above?
    /// `None`: not known.
    pub(crate) fn had_fin(&self, frame: u64, peer: &TcpFacts) -> Option<bool> {
        let (_, ack) = self.acks.iter().find(|(sent, _)| *sent == frame)?;
        Some(before(peer.fin?, *ack))
    }

    fn boundaries(&mut self, start: u32, end: u32, segment: &Segment<'_>) {
        if self.next.is_some_and(|next| before(start, next)) {
            // A keep-alive repeats one octet.
            if segment.wire_len > 1 && self.resegmented.is_none() && self.is_cut_anew(start, end) {
                self.resegmented = Some(segment.frame);
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
        self.sent.push_back(Sent { start, end, is_continued: false });
        self.next = Some(end);
    }

    /// Did this end cut its octets at stream position `position` although the segment had room by
    /// `emss`, and no window ended it? `false`: not known.
    pub(crate) fn chose_to_cut_at(&self, position: u64, emss: u32) -> bool {
        let (Some(isn), Some(position)) = (self.isn, position.checked_sub(ORIGIN)) else { return false };
        let at = isn.wrapping_add(1).wrapping_add((position & 0xffff_ffff) as u32);
        let room = self.longest.max(LEAST_SEGMENT).min(emss);
        let is_short = |sent: &&Sent| sent.end == at && sent.end.wrapping_sub(sent.start) < room;
        self.sent.iter().rev().find(is_short).is_some_and(|sent| sent.is_continued)
    }

    /// Do `start..end` repeat octets of known segments with other boundaries?
    fn is_cut_anew(&self, start: u32, end: u32) -> bool {
        let known = |at: u32| self.sent.iter().any(|sent| !before(at, sent.start) && before(at, sent.end));
        let is_known = known(start) && known(end.wrapping_sub(1));
        is_known && !(self.sent.iter().any(|sent| sent.start == start) && self.sent.iter().any(|sent| sent.end == end))
    }

    fn options(&mut self, segment: &Segment<'_>) {
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
        // An MSS option that was read shows that the capture has the options.
        if self.mss.is_some() && !sack {
            self.no_sack.get_or_insert(segment.frame);
        }
    }
}

/// The shift count of an end's windows, by the options of both SYNs: 0 unless both have the option
/// (RFC 7323 section 2.2). `None` if they were not captured.
pub(super) fn window_scale(own: &TcpFacts, peer: &TcpFacts) -> Option<u8> {
    let (own, peer) = (own.scale?, peer.scale?);
    Some(if peer.is_some() { own.unwrap_or(0) } else { 0 })
}

/// The payload of a full segment from one end, by the options of both SYNs; `None` if they do not
/// show it. `facts` are those of the sender and of the receiver.
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
            peer.segment(&Segment { syn: true, ..segment(100, b"") });
            let mut facts = TcpFacts::default();
            facts.segment(&Segment { ack: 101, ..segment(7, b"abc") });
            facts.had_received(1, &peer, ORIGIN + u64::from(octets))
        };
        let most = MOST_UNACKNOWLEDGED;
        let expected = [Some(true), Some(false), Some(false), None, None];
        assert_eq!([0, 1, most - 1, most, 1 << 29].map(had_received), expected);
    }

    #[test]
    fn octets_far_from_a_fin_belong_to_another_connection() {
        let after_fin = |seq: u32| {
            let mut facts = TcpFacts::default();
            facts.segment(&segment(100, b"abc"));
            facts.segment(&Segment { fin: true, ..segment(103, b"") });
            facts.segment(&segment(seq, b"abc"));
            facts.after_fin.is_some()
        };
        let near = [100, 101, 103, 104, 103 + FAR_AFTER_CLOSE].map(after_fin);
        assert_eq!(near, [false, true, true, true, true]);
        assert_eq!([104 + FAR_AFTER_CLOSE, 103 + (1 << 30), 90].map(after_fin), [false; 3]);
    }
}
