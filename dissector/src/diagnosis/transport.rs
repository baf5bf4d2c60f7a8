//! TCP's share in a connection: retransmissions, reordering, closed windows, probes without an
//! answer, FINs and RSTs.
//!
//! **Memory.** The state of a direction has a fixed size, except for the holes of its
//! [`SequenceTrack`].

use crate::direction::Direction;
use crate::exchange::CapturePoint;
use crate::frame_number::FrameNumber;
use crate::packet::TcpSegment;
use crate::tcp::{Relation, SequenceTrack};

use super::recent::Recent;
use super::stall::Stall;

/// An endpoint needs at least this number of segments with one TTL. Otherwise the TTL of its RST is
/// not compared with them.
const MIN_SEGMENTS: u64 = 3;

/// Segments that need an answer: SYNs, retransmissions, keep-alives and window probes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Probes {
    /// Number of all these segments.
    pub(super) count: u64,
    /// Number of keep-alives and window probes among them.
    pub(super) keep_alives: u64,
    /// The first of these segments.
    pub(super) first: Option<CapturePoint>,
    /// The last of these segments.
    pub(super) last: Option<CapturePoint>,
}

impl Probes {
    fn add(&mut self, at: CapturePoint, is_keep_alive: bool) {
        self.count += 1;
        self.keep_alives += u64::from(is_keep_alive);
        self.first.get_or_insert(at);
        self.last = Some(at);
    }
}

/// The first RST of a direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reset {
    pub(super) at: CapturePoint,
    /// Number of routers that the RST passed, and the number that all earlier segments of this
    /// endpoint passed. `None` if the earlier segments do not agree, or are too few.
    pub(super) hops: Option<(u8, u8)>,
    /// Whether the RST is the first segment of this endpoint.
    pub(super) is_first_segment: bool,
    /// Number of probes of the peer directly before the RST.
    pub(super) peer_probes: u64,
    /// Number of this endpoint's segments after the RST, without RSTs.
    pub(super) segments_after: u64,
    /// Whether the TTL differs from the TTL of all earlier segments of this endpoint.
    pub(super) has_other_ttl: bool,
    /// Whether ACK is set. A TCP that does not know the connection answers a segment with a RST
    /// without ACK (RFC 9293 section 3.10.7.1).
    pub(super) has_ack: bool,
}

/// The meaning of a segment for its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// A SYN.
    Syn,
    /// Octets that were sent before.
    Repeats,
    /// A keep-alive or a window probe.
    KeepAlive,
    /// Everything else.
    Other,
}

/// TCP's facts about one endpoint.
#[derive(Debug, Default)]
pub(super) struct TransportSide {
    /// Number of segments, without copies.
    pub(super) segments: u64,
    /// The first SYN.
    pub(super) syn: Option<CapturePoint>,
    /// Number of SYNs.
    pub(super) syns: u64,
    /// Whether the first SYN is a SYN-ACK.
    pub(super) syn_is_answer: bool,
    /// Number of segments with only octets that were sent before, or that fill an old hole.
    pub(super) retransmissions: u64,
    /// The first of these segments.
    pub(super) first_retransmission: Option<FrameNumber>,
    /// Number of retransmissions that fill an old hole: the octets were lost before the capture
    /// point.
    pub(super) refills: u64,
    /// Number of segments that fill a hole shortly after it appeared.
    pub(super) out_of_order: u64,
    /// How often the endpoint closed its receive window.
    pub(super) zero_windows: u64,
    /// The first segment with a closed window.
    pub(super) first_zero_window: Option<FrameNumber>,
    /// Time with a closed window, in nanoseconds.
    pub(super) zero_window_ns: u64,
    /// The time since which the window is closed.
    pub(super) zero_since: Option<u64>,
    /// The frame that closed the window the last time.
    pub(super) zero_frame: Option<FrameNumber>,
    /// Number of keep-alives and window probes.
    pub(super) keep_alives: u64,
    /// The first FIN.
    pub(super) fin: Option<CapturePoint>,
    /// The first RST.
    pub(super) rst: Option<Reset>,
    /// The last segment.
    pub(super) last: Option<CapturePoint>,
    /// The probes since the last segment of the peer.
    pub(super) unanswered: Probes,
    /// The oldest octets without an acknowledgement.
    pub(super) stall: Stall,
    sequence: SequenceTrack,
    ttl: Option<u8>,
    has_several_ttls: bool,
    segments_with_ttl: u64,
}

/// TCP's facts about both endpoints. The index is the direction in which the endpoint sends.
#[derive(Debug, Default)]
pub(super) struct Transport {
    pub(super) sides: [TransportSide; 2],
    /// The segments before the end of the connection.
    pub(super) recent: Recent,
}

impl Transport {
    /// Returns whether the connection has only SYNs of its first endpoint.
    pub(super) fn is_unanswered(&self) -> bool {
        let [first, other] = &self.sides;
        first.syn.is_some() && first.has_only_syns() && other.segments == 0
    }

    /// Records a segment. Returns whether the segment repeats octets.
    pub(super) fn record(&mut self, direction: Direction, segment: &TcpSegment<'_>) -> bool {
        let peer_probes = self.sides[direction.peer()].unanswered.count;
        let before = self.sides[direction].retransmissions;
        if self.sides[direction].record(segment, peer_probes) {
            let peer = &mut self.sides[direction.peer()];
            peer.unanswered = Probes::default();
            let at = CapturePoint { frame: segment.frame(), time: segment.time() };
            peer.stall.received(segment, peer.sequence.next(), at);
            self.recent.record(direction, segment);
        }
        self.sides[direction].retransmissions > before
    }

    /// Returns whether the capture has segments of only one endpoint, and this endpoint received
    /// answers.
    pub(super) fn is_one_sided(&self) -> bool {
        let [first, other] = &self.sides;
        other.segments == 0 && first.segments > first.syns
    }
}

impl TransportSide {
    /// Records a segment. Returns `false` if the segment is a copy of a captured segment.
    fn record(&mut self, segment: &TcpSegment<'_>, peer_probes: u64) -> bool {
        if self.sequence.is_copy(&segment.shape()) {
            return false;
        }
        let at = CapturePoint { frame: segment.frame(), time: segment.time() };
        self.segments += 1;
        self.last = Some(at);
        if segment.rst() {
            self.record_reset(segment, at, peer_probes);
            return true;
        }
        if let Some(rst) = self.rst.as_mut().filter(|_| !segment.syn()) {
            rst.segments_after += 1;
        }
        if !segment.syn() {
            self.has_several_ttls |= self.ttl.is_some_and(|ttl| ttl != segment.ttl());
            self.ttl.get_or_insert(segment.ttl());
            self.segments_with_ttl += 1;
            self.record_window(segment, at);
        }
        let meaning = self.meaning(segment, at);
        self.stall.sent(segment, meaning == Meaning::Repeats, at);
        match meaning {
            Meaning::Syn => self.unanswered.add(at, false),
            Meaning::Repeats => {
                self.retransmissions += 1;
                self.first_retransmission.get_or_insert(at.frame);
                self.unanswered.add(at, false);
            }
            Meaning::KeepAlive => {
                self.keep_alives += 1;
                self.unanswered.add(at, true);
            }
            Meaning::Other => {}
        }
        if segment.fin() {
            self.fin.get_or_insert(at);
        }
        true
    }

    fn record_reset(&mut self, segment: &TcpSegment<'_>, at: CapturePoint, peer_probes: u64) {
        let is_known = !self.has_several_ttls && self.segments_with_ttl >= MIN_SEGMENTS;
        let usual = self.ttl.filter(|_| is_known);
        self.rst.get_or_insert(Reset {
            at,
            hops: usual.map(|usual| (hops(segment.ttl()), hops(usual))),
            is_first_segment: self.segments == 1,
            peer_probes,
            segments_after: 0,
            has_other_ttl: usual.is_some_and(|usual| usual != segment.ttl()),
            has_ack: segment.ack().is_some(),
        });
    }

    fn record_window(&mut self, segment: &TcpSegment<'_>, at: CapturePoint) {
        if segment.ack().is_none() {
            return;
        }
        match (segment.window() == 0, self.zero_since) {
            (true, None) => {
                self.zero_windows += 1;
                self.first_zero_window.get_or_insert(at.frame);
                self.zero_since = Some(at.time);
                self.zero_frame = Some(at.frame);
            }
            (false, Some(since)) => {
                self.zero_window_ns += at.time.saturating_sub(since);
                self.zero_since = None;
            }
            _ => {}
        }
    }

    /// Compares the sequence numbers of a segment with the octets so far.
    fn meaning(&mut self, segment: &TcpSegment<'_>, at: CapturePoint) -> Meaning {
        match self.sequence.record(&segment.shape()) {
            Relation::Syn | Relation::RepeatedSyn => {
                self.syn_is_answer |= self.syn.is_none() && segment.ack().is_some();
                self.syn.get_or_insert(at);
                self.syns += 1;
                if segment.ack().is_none() || self.syns > 1 { Meaning::Syn } else { Meaning::Other }
            }
            Relation::KeepAlive => Meaning::KeepAlive,
            Relation::OutOfOrder => {
                self.out_of_order += 1;
                Meaning::Other
            }
            Relation::Refills => {
                self.refills += 1;
                Meaning::Repeats
            }
            Relation::Repeats => Meaning::Repeats,
            Relation::Follows | Relation::SkipsOctets | Relation::Empty => Meaning::Other,
        }
    }

    /// Returns whether the endpoint sent nothing except SYNs that open a connection.
    pub(super) fn has_only_syns(&self) -> bool {
        self.segments == self.syns && !self.syn_is_answer
    }

    /// Returns whether the peer acknowledged all octets of this endpoint.
    pub(super) fn is_all_acked(&self) -> bool {
        self.stall.is_all_acked(self.sequence.next())
    }

    /// Time with a closed window until `end`, in nanoseconds.
    pub(super) fn closed_window_until(&self, end: u64) -> u64 {
        self.zero_window_ns + self.zero_since.map_or(0, |since| end.saturating_sub(since))
    }
}

/// Number of routers that a packet with this TTL passed. The usual initial values are 64, 128 and
/// 255.
fn hops(ttl: u8) -> u8 {
    match ttl {
        0..=64 => 64 - ttl,
        65..=128 => 128 - ttl,
        129.. => 255 - ttl,
    }
}
