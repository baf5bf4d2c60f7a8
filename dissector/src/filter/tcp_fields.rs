//! The fields of TCP whose values depend on earlier segments of the connection: relative sequence
//! numbers, scaled windows and `tcp.analysis.*`.
//!
//! `tcp.analysis.*` shows what [`SequenceTrack`] shows. `weft why` counts retransmissions with the
//! same module. A segment that was captured twice, at two points of the network, is not a
//! retransmission.
//!
//! **Memory.** The state of at most [`MAX_CONNECTIONS`] connections is kept. The state of a
//! connection has a fixed size, except for the holes of its two tracks.

use std::net::SocketAddr;

use super::header_field::TcpField;
use super::recently_used::RecentlyUsed;
use super::values::FieldValue;
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::ip::Segment;
use crate::stream_id::StreamId;
use crate::tcp::{Relation, SegmentShape, SequenceTrack, before};

/// Maximum number of connections whose state is kept. Closed connections are dropped first, and
/// then the connections that were idle for the longest time.
const MAX_CONNECTIONS: usize = 1 << 16;
/// The largest shift count of the window scale option (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;

/// The header of a TCP segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct TcpHeader {
    /// The header without options.
    pub(super) fixed: [u8; 20],
    src: SocketAddr,
    frame: FrameNumber,
    shape: SegmentShape,
    rst: bool,
    ack: u32,
    window: u16,
    /// The window scale option of a SYN. The outer `None` means that the segment is not a SYN, or
    /// that not all options were captured.
    scale: Option<Option<u8>>,
}

impl TcpHeader {
    /// The header of `segment`.
    pub(super) fn of(segment: &Segment<'_>) -> Option<Self> {
        let Segment { src, frame, rst, ack, window, .. } = *segment;
        let scale = (segment.syn && !segment.options_cut).then(|| scale_option(segment.options));
        let (fixed, shape) = (*segment.packet.first_chunk()?, segment.into());
        Some(TcpHeader { fixed, src, frame, shape, rst, ack, window, scale })
    }
}

/// The shift count of the window scale option.
fn scale_option(mut options: &[u8]) -> Option<u8> {
    loop {
        options = match options {
            [1, rest @ ..] => rest,
            [3, 3, shift, ..] => return Some((*shift).min(MAX_SCALE)),
            [2..=u8::MAX, length @ 2..=40, ..] => options.get(usize::from(*length)..)?,
            _ => return None,
        };
    }
}

/// The state of one endpoint.
#[derive(Debug, Default)]
struct Side {
    /// The sequence number that counts as 0.
    base: Option<u32>,
    sequence: SequenceTrack,
    /// As [`TcpHeader::scale`], for the SYN of the endpoint.
    scale: Option<Option<u8>>,
    /// The last segment with an acknowledgement.
    last: Option<LastSegment>,
    /// The frame whose acknowledgement later duplicates repeat, and the number of duplicates.
    acked_in: FrameNumber,
    duplicates: u64,
    /// The highest acknowledgement number of octets that were not captured.
    acked_uncaptured: Option<u32>,
    has_fin: bool,
}

#[derive(Debug, Clone, Copy)]
struct LastSegment {
    ack: u32,
    window: u16,
    is_keep_alive: bool,
}

/// The values of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SegmentValues {
    seq: u32,
    next_seq: u32,
    ack: u32,
    window_size: u64,
    relation: Option<Relation>,
    acks_uncaptured: bool,
    keep_alive_ack: bool,
    zero_window: bool,
    window_update: bool,
    /// Number of the duplicate, and the frame whose acknowledgement it repeats.
    duplicate: Option<(u64, FrameNumber)>,
}

impl SegmentValues {
    fn is_retransmission(&self) -> bool {
        matches!(self.relation, Some(Relation::RepeatedSyn | Relation::Refills | Relation::Repeats))
    }

    fn has_analysis(&self) -> bool {
        let relations = [Relation::OutOfOrder, Relation::SkipsOctets, Relation::KeepAlive];
        self.is_retransmission()
            || relations.map(Some).contains(&self.relation)
            || self.acks_uncaptured
            || self.keep_alive_ack
            || self.zero_window
            || self.window_update
            || self.duplicate.is_some()
    }

    /// The value of a field.
    pub(super) fn value(&self, field: TcpField) -> Option<FieldValue> {
        let present = |is_present: bool| is_present.then_some(FieldValue::Present);
        match field {
            TcpField::Seq => Some(FieldValue::Number(self.seq.into())),
            TcpField::NextSeq => Some(FieldValue::Number(self.next_seq.into())),
            TcpField::Ack => Some(FieldValue::Number(self.ack.into())),
            TcpField::WindowSize => Some(FieldValue::Number(self.window_size)),
            TcpField::Flags => present(self.has_analysis()),
            TcpField::Retransmission => present(self.is_retransmission()),
            TcpField::OutOfOrder => present(self.relation == Some(Relation::OutOfOrder)),
            TcpField::LostSegment => present(self.relation == Some(Relation::SkipsOctets)),
            TcpField::AckLostSegment => present(self.acks_uncaptured),
            TcpField::KeepAlive => present(self.relation == Some(Relation::KeepAlive)),
            TcpField::KeepAliveAck => present(self.keep_alive_ack),
            TcpField::ZeroWindow => present(self.zero_window),
            TcpField::WindowUpdate => present(self.window_update),
            TcpField::DuplicateAck => present(self.duplicate.is_some()),
            TcpField::DuplicateAckNumber => self.duplicate.map(|(number, _)| FieldValue::Number(number)),
            TcpField::DuplicateAckFrame => self.duplicate.map(|(_, frame)| FieldValue::Number(frame.into())),
        }
    }
}

/// The state of one connection.
#[derive(Debug)]
struct TcpConnection {
    /// The sender of the first segment.
    first: SocketAddr,
    sides: [Side; 2],
    is_reset: bool,
}

impl TcpConnection {
    fn new(first: SocketAddr) -> Self {
        TcpConnection { first, sides: Default::default(), is_reset: false }
    }

    /// Returns whether both endpoints sent a FIN, or one of them sent a RST.
    fn is_closed(&self) -> bool {
        self.is_reset || self.sides.iter().all(|side| side.has_fin)
    }

    /// Records a segment. If `is_absolute`, sequence numbers stay as they are.
    fn record(&mut self, header: &TcpHeader, is_absolute: bool) -> SegmentValues {
        let direction = Direction::sent_by(header.src, self.first);
        let (own_base, peer_base) = self.bases(direction, header, is_absolute);
        let SegmentShape { seq, len, syn, fin, has_ack, .. } = header.shape;
        let end = seq.wrapping_add(len).wrapping_add(u32::from(syn || fin));
        self.sides[direction].has_fin |= fin;
        self.is_reset |= header.rst;
        if syn {
            self.sides[direction].scale = header.scale;
        }
        let shift = if syn { 0 } else { self.window_shift(direction) };
        SegmentValues {
            seq: seq.wrapping_sub(own_base),
            next_seq: end.wrapping_sub(own_base),
            ack: if has_ack { header.ack.wrapping_sub(peer_base) } else { header.ack },
            window_size: u64::from(header.window) << shift,
            ..self.analyse(direction, header)
        }
    }

    /// The sequence numbers of both endpoints that count as 0. If no SYN was captured, the first
    /// octet has number 1.
    fn bases(&mut self, direction: Direction, header: &TcpHeader, is_absolute: bool) -> (u32, u32) {
        if is_absolute {
            return (0, 0);
        }
        let SegmentShape { seq, syn, has_ack, .. } = header.shape;
        let first = if syn { seq } else { seq.wrapping_sub(1) };
        let own = *self.sides[direction].base.get_or_insert(first);
        let peer = &mut self.sides[direction.peer()].base;
        let peer = if has_ack { *peer.get_or_insert(header.ack.wrapping_sub(1)) } else { 0 };
        (own, peer)
    }

    /// The shift count of the windows of an endpoint (RFC 7323 section 2.2). It is 0 if it is
    /// unknown.
    fn window_shift(&self, direction: Direction) -> u8 {
        match (self.sides[direction].scale, self.sides[direction.peer()].scale) {
            (Some(Some(shift)), Some(Some(_))) => shift,
            _ => 0,
        }
    }

    fn analyse(&mut self, direction: Direction, header: &TcpHeader) -> SegmentValues {
        let peer = &self.sides[direction.peer()];
        let (sent, is_probed) = (peer.sequence.next(), peer.last.is_some_and(|last| last.is_keep_alive));
        let own = &mut self.sides[direction];
        let mut values = SegmentValues::default();
        if own.sequence.is_copy(&header.shape) || header.rst {
            return values;
        }
        let relation = own.sequence.record(&header.shape);
        values.relation = Some(relation);
        if header.shape.has_ack {
            own.acknowledge(header, sent, is_probed, &mut values);
            let (ack, window, is_keep_alive) = (header.ack, header.window, relation == Relation::KeepAlive);
            own.last = Some(LastSegment { ack, window, is_keep_alive });
        }
        values
    }
}

impl Side {
    /// Compares an acknowledgement with the previous one. `sent` is the sequence number after the
    /// octets of the peer. `is_probed` means that the peer's last segment is a keep-alive.
    fn acknowledge(&mut self, header: &TcpHeader, sent: Option<u32>, is_probed: bool, values: &mut SegmentValues) {
        let SegmentShape { seq, len, syn, fin, .. } = header.shape;
        values.zero_window = header.window == 0 && !syn && !fin;
        let is_plain = len == 0 && !syn && !fin && self.sequence.next() == Some(seq);
        let mut is_duplicate = false;
        if let Some(last) = self.last.filter(|last| is_plain && last.ack == header.ack) {
            let has_same_window = last.window == header.window;
            values.keep_alive_ack = has_same_window && is_probed;
            values.window_update = !has_same_window && header.window != 0;
            // The receiver waits for octets that were sent (RFC 5681 section 2).
            let is_outstanding = sent.is_some_and(|sent| before(header.ack, sent));
            is_duplicate = has_same_window && !is_probed && is_outstanding;
        }
        if is_duplicate {
            self.duplicates += 1;
            values.duplicate = Some((self.duplicates, self.acked_in));
        } else {
            (self.duplicates, self.acked_in) = (0, header.frame);
        }
        let is_new = self.acked_uncaptured.is_none_or(|highest| before(highest, header.ack));
        if is_new && sent.is_some_and(|sent| before(sent, header.ack)) {
            self.acked_uncaptured = Some(header.ack);
            values.acks_uncaptured = true;
        }
    }
}

/// The state of all connections.
#[derive(Debug)]
pub(super) struct TcpConnections {
    connections: RecentlyUsed<TcpConnection>,
    /// Whether sequence numbers stay as they are.
    pub(super) is_absolute: bool,
}

impl Default for TcpConnections {
    fn default() -> Self {
        TcpConnections::with_limit(MAX_CONNECTIONS)
    }
}

impl TcpConnections {
    /// Keeps the state of at most `most` connections.
    fn with_limit(most: usize) -> Self {
        TcpConnections { connections: RecentlyUsed::with_limit(most), is_absolute: false }
    }

    /// Records a segment of connection `stream`. Returns the values of its fields.
    pub(super) fn record(&mut self, stream: StreamId, header: &TcpHeader) -> SegmentValues {
        let connection = self.connections.state(stream, || TcpConnection::new(header.src));
        let values = connection.record(header, self.is_absolute);
        if connection.is_closed() {
            self.connections.close(stream);
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::testing::segment;

    /// Direction, sequence number, acknowledgement number, octets and window of a segment.
    type Sent<'a> = (usize, u32, u32, &'a str, u16);

    fn header(number: u64, time: u64, flags: &str, (direction, seq, ack, octets, window): Sent<'_>) -> TcpHeader {
        let packet = [0; 20];
        let own = Segment { packet: &packet, ..segment(seq, octets.as_bytes()) };
        let ends = [own.src, own.dst];
        let has = |flag| flags.contains(flag);
        TcpHeader::of(&Segment {
            frame: number.into(),
            time,
            src: ends[direction],
            dst: ends[1 - direction],
            syn: has('S'),
            fin: has('F'),
            rst: has('R'),
            ack_flag: has('A'),
            ack,
            window,
            ..own
        })
        .unwrap()
    }

    /// Plays segments of one connection, one each second. Returns, for each segment, its relative
    /// sequence number, its relative acknowledgement number, and the names of its analysis.
    fn analysed(segments: &[(&str, Sent<'_>)]) -> Vec<(u64, u64, Vec<&'static str>)> {
        let mut connections = TcpConnections::default();
        let named = [
            (TcpField::Retransmission, "retransmission"),
            (TcpField::LostSegment, "lost segment"),
            (TcpField::AckLostSegment, "ack lost segment"),
            (TcpField::KeepAlive, "keep-alive"),
            (TcpField::KeepAliveAck, "keep-alive ack"),
            (TcpField::ZeroWindow, "zero window"),
            (TcpField::WindowUpdate, "window update"),
            (TcpField::DuplicateAck, "duplicate ack"),
        ];
        let numbered = (1..).zip(segments);
        let play = |(number, (flags, sent)): (u64, &(&str, Sent<'_>))| {
            let values = connections.record(0.into(), &header(number, number * 1_000_000_000, flags, *sent));
            let has = |field: &TcpField| values.value(*field).is_some();
            let names: Vec<_> = named.iter().filter(|(field, _)| has(field)).map(|(_, name)| *name).collect();
            assert_eq!(has(&TcpField::Flags), !names.is_empty());
            let number = |field| match values.value(field) {
                Some(FieldValue::Number(number)) => number,
                other => panic!("{other:?}"),
            };
            (number(TcpField::Seq), number(TcpField::Ack), names)
        };
        numbered.map(play).collect()
    }

    #[test]
    fn sequence_numbers_count_from_the_syns() {
        let opening = analysed(&[
            ("S", (0, 1000, 0, "", 500)),
            ("SA", (1, 9000, 1001, "", 500)),
            ("A", (0, 1001, 9001, "abc", 500)),
            ("A", (1, 9001, 1004, "", 400)),
        ]);
        let numbers: Vec<_> = opening.iter().map(|(seq, ack, _)| (*seq, *ack)).collect();
        assert_eq!(numbers, [(0, 0), (0, 1), (1, 1), (1, 4)]);
        // Without SYNs, the first octet has number 1.
        let middle = analysed(&[("A", (0, 1001, 9001, "abc", 500)), ("A", (1, 9001, 1004, "x", 500))]);
        assert_eq!((middle[0].0, middle[0].1, middle[1].0, middle[1].1), (1, 1, 1, 4));
    }

    #[test]
    fn names_retransmissions_and_their_reasons() {
        let names: Vec<_> = analysed(&[
            ("A", (0, 100, 900, "abc", 500)),
            ("A", (1, 900, 103, "", 500)),
            // The octets 103 to 105 are lost.
            ("A", (0, 106, 900, "ghi", 500)),
            ("A", (1, 900, 103, "", 500)),
            ("A", (0, 109, 900, "jkl", 500)),
            ("A", (1, 900, 103, "", 500)),
            ("A", (0, 103, 900, "def", 500)),
            ("A", (0, 103, 900, "def", 500)),
            ("A", (1, 900, 112, "", 500)),
            ("A", (1, 900, 115, "", 500)),
        ])
        .into_iter()
        .map(|(_, _, names)| names.join(", "))
        .collect();
        let expected = [
            "",
            "",
            "lost segment",
            "duplicate ack",
            "",
            "duplicate ack",
            "retransmission",
            "retransmission",
            "",
            "ack lost segment",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn names_windows_and_probes() {
        let names: Vec<_> = analysed(&[
            ("A", (0, 100, 900, "abc", 500)),
            ("A", (1, 900, 103, "", 0)),
            ("A", (0, 102, 900, "", 500)),
            ("A", (1, 900, 103, "", 0)),
            ("A", (1, 900, 103, "", 300)),
            ("RA", (0, 103, 900, "", 0)),
        ])
        .into_iter()
        .map(|(_, _, names)| names.join(", "))
        .collect();
        assert_eq!(names, ["", "zero window", "keep-alive", "keep-alive ack, zero window", "window update", ""]);
    }

    /// Connection 0 begins before the others and stays active. Connection 2 is reset.
    #[test]
    fn an_active_connection_keeps_its_state_among_many_others() {
        let mut connections = TcpConnections::with_limit(3);
        let mut seq = |stream: u32, flags, sent| {
            let values = connections.record(stream.into(), &header(1, 0, flags, sent));
            values.value(TcpField::Seq)
        };
        seq(0, "S", (0, 1000, 0, "", 500));
        seq(1, "S", (0, 1000, 0, "", 500));
        seq(2, "RA", (0, 1000, 0, "", 500));
        for stream in 3..9 {
            // The first of these connections replaces the reset connection, and the next ones
            // replace idle connections.
            seq(stream, "S", (0, 1000, 0, "", 500));
            assert_eq!(seq(0, "A", (0, 1010, 1, "x", 500)), Some(FieldValue::Number(10)), "{stream}");
            if stream == 3 {
                assert_eq!(seq(1, "A", (0, 1005, 1, "x", 500)), Some(FieldValue::Number(5)));
            }
        }
        // The state of connection 1 was dropped, so its first octet has number 1 again.
        assert_eq!(seq(1, "A", (0, 1005, 1, "x", 500)), Some(FieldValue::Number(1)));
    }

    #[test]
    fn a_connection_is_closed_by_two_fins_or_one_rst() {
        let is_closed = |flags: [&str; 2]| {
            let mut connection = TcpConnection::new(header(1, 0, "A", (0, 1, 1, "", 1)).src);
            for (direction, flags) in flags.into_iter().enumerate() {
                connection.record(&header(1, 0, flags, (direction, 1, 1, "", 1)), false);
            }
            connection.is_closed()
        };
        assert!(is_closed(["FA", "FA"]) && is_closed(["A", "R"]));
        assert!(!is_closed(["FA", "A"]) && !is_closed(["S", "SA"]));
    }

    #[test]
    fn windows_are_scaled_if_both_syns_have_the_option() {
        let scaled = |options: [&[u8]; 2]| {
            let packet = [0; 20];
            let mut connections = TcpConnections::default();
            let syn = |direction: usize| {
                let own = Segment { packet: &packet, syn: true, options: options[direction], ..segment(1, b"") };
                let ends = [own.src, own.dst];
                TcpHeader::of(&Segment { src: ends[direction], ..own }).unwrap()
            };
            connections.record(0.into(), &syn(0));
            connections.record(0.into(), &syn(1));
            connections.record(0.into(), &header(3, 0, "A", (0, 2, 2, "", 3))).value(TcpField::WindowSize)
        };
        let (with, other) = ([2, 4, 5, 180, 1, 3, 3, 7], [2, 4, 5, 180, 3, 3, 1]);
        assert_eq!(scaled([&with, &other]), Some(FieldValue::Number(3 << 7)));
        assert_eq!(scaled([&with, &[2, 4, 5, 180]]), Some(FieldValue::Number(3)));
    }
}
