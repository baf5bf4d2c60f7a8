//! Tests the reassembly with synthetic streams. Another test compares the reassembly of random
//! segments with a simple model that stores every octet.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::testing::{segment, syn};
use super::*;
use crate::frame_number::FrameNumber;
use crate::location::StreamLocation;

impl DirectionStream {
    fn add(&mut self, segment: &Segment<'_>) {
        if let Some(arrived) = self.arrive(segment) {
            self.keep(&arrived, segment);
        }
    }
}

fn at(offset: u64) -> u64 {
    ORIGIN + offset
}

fn from_frame(frame: u64, seq: u32, octets: &[u8]) -> Segment<'_> {
    Segment { frame: frame.into(), ..segment(seq, octets) }
}

/// Returns a direction with a SYN of sequence number `isn`.
fn opened(isn: u32) -> DirectionStream {
    let mut half = DirectionStream::default();
    half.add(&syn(isn));
    half.begin();
    half
}

#[test]
fn octets_out_of_order_wait_for_the_hole() {
    let mut half = opened(99);
    half.add(&from_frame(2, 103, b"def"));
    assert!(half.octets(at(0), at(1)).is_err());
    assert!(half.octets(at(3), at(6)).is_err(), "octets after a hole are not settled");
    half.add(&from_frame(3, 100, b"abc"));
    assert_eq!(half.octets(at(0), at(6)), Ok(Some(&b"abcdef"[..])));
    let frame_of = |from, to| u64::from(half.frame_of(at(from), at(to)).0);
    assert_eq!((frame_of(0, 3), frame_of(0, 4), frame_of(3, 6)), (3, 3, 2));
    let located: Vec<_> = half
        .locate(at(2), at(5))
        .map(|StreamLocation { location: l, .. }| (u64::from(l.frame), l.offset, l.len))
        .collect();
    assert_eq!(located, [(3, Some(56), 1), (2, Some(54), 2)]);
}

#[test]
fn the_first_capture_of_an_octet_wins() {
    let mut half = opened(99);
    half.add(&segment(102, b"CD"));
    half.add(&segment(100, b"abxxef"));
    half.add(&segment(100, b"......"));
    assert_eq!(half.octets(at(0), at(6)), Ok(Some(&b"abCDef"[..])));
}

/// A keep-alive is allowed to have an arbitrary octet (RFC 1122 section 4.2.3.6).
#[test]
fn the_octet_of_a_keep_alive_gives_way_to_the_one_that_was_sent() {
    let mut half = opened(99);
    half.add(&segment(103, b"?"));
    half.add(&segment(100, b"abcd"));
    assert_eq!(half.octets(at(0), at(4)), Ok(Some(&b"abcd"[..])));
    // The octet that was sent is not in the capture. So this octet counts as missing.
    half.add(&segment(107, b"?"));
    half.add(&segment(108, b"ijkl"));
    half.finish();
    assert_eq!(half.octets(at(7), at(8)), Ok(None));
    assert_eq!(half.octets(at(8), at(12)), Ok(Some(&b"ijkl"[..])));
}

#[test]
fn an_octet_after_a_filled_hole_counts() {
    let mut half = opened(99);
    half.add(&segment(103, b"d"));
    half.add(&segment(100, b"abc"));
    assert_eq!(half.octets(at(0), at(4)), Ok(Some(&b"abcd"[..])));
}

#[test]
fn sequence_numbers_wrap() {
    let mut half = opened(u32::MAX - 2);
    half.add(&segment(u32::MAX - 1, b"ab"));
    half.add(&segment(0, b"cd"));
    half.add(&segment(2, b"ef"));
    assert_eq!(half.octets(at(0), at(6)), Ok(Some(&b"abcdef"[..])));
}

/// A keep-alive probe repeats an octet below the window (RFC 9293 section 3.8.4). The octet of the
/// first keep-alive probe has a sequence number below ISN+1.
#[test]
fn octets_below_the_first_are_ignored() {
    let mut half = opened(99);
    half.add(&segment(99, b"?"));
    half.add(&segment(99, b"?ab"));
    assert_eq!(half.contiguous(at(0)), b"ab");
    half.consume(at(2));
    half.add(&segment(101, b"b"));
    assert_eq!((half.consumed(), half.end(), half.weight()), (at(2), at(2), 0));
}

#[test]
fn octets_of_a_reset_are_no_stream() {
    let mut half = opened(99);
    half.add(&Segment { rst: true, ..segment(100, b"why") });
    assert!(!half.has_octets());
}

#[test]
fn without_syn_lower_octets_may_come_until_reading_begins() {
    let mut half = DirectionStream::default();
    half.add(&Segment { wire_len: 0, ..segment(90, &[]) });
    half.add(&from_frame(2, 100, b"cd"));
    assert_eq!(half.consumed(), at(0), "an acknowledgement adds no octet");
    half.add(&from_frame(3, 104, b"gh"));
    half.add(&from_frame(4, 102, b"ef"));
    half.add(&from_frame(5, 98, b"ab"));
    let first = half.consumed();
    assert_eq!((first, half.contiguous(first)), (ORIGIN - 2, &b"abcdefgh"[..]));
    assert_eq!((half.frame_of(first, at(1)).0, half.frame_of(at(0), at(1)).0), (5.into(), 2.into()));
    half.begin();
    half.add(&segment(90, b"no"));
    assert_eq!(half.consumed(), first);
}

#[test]
fn what_the_snap_length_cut_is_missing_until_a_repetition_has_it() {
    let mut half = opened(99);
    half.add(&Segment { octets: b"ab", ..segment(100, b"abcd") });
    assert_eq!(half.end(), at(4));
    let pending = half.octets(at(0), at(4)).unwrap_err();
    assert!(half.still_awaits(&pending));
    half.add(&segment(100, b"abcd"));
    assert!(!half.still_awaits(&pending));
    assert_eq!(half.octets(at(0), at(4)), Ok(Some(&b"abcd"[..])));
}

#[test]
fn at_the_end_of_the_capture_holes_are_lost() {
    let mut half = opened(99);
    half.add(&segment(102, b"cd"));
    half.add(&Segment { wire_len: 4, ..segment(106, b"gh") });
    half.finish();
    let pieces: Vec<_> =
        half.spans(at(0), half.end()).map(|s| (s.start - ORIGIN, s.end - ORIGIN, s.captured)).collect();
    assert_eq!(pieces, [(0, 2, false), (2, 4, true), (4, 6, false), (6, 8, true), (8, 10, false)]);
    assert_eq!((half.octets(at(0), at(2)), half.is_end(at(9)), half.is_end(at(10))), (Ok(None), Ok(false), Ok(true)));
}

#[test]
fn gives_up_a_hole_when_too_much_waits_after_it() {
    let mut half = opened(99);
    let octets = [7; 1000];
    let mut seq = 101;
    // Each segment counts as 1064 octets, and the limit is 2^20. So 985 segments can wait, but 986
    // segments cannot.
    for _ in 0..985 {
        half.add(&segment(seq, &octets));
        seq += 1000;
    }
    let pending = half.octets(at(0), at(1)).unwrap_err();
    assert!(half.still_awaits(&pending));
    half.add(&segment(seq, &octets));
    assert!(!half.still_awaits(&pending));
    assert_eq!((half.octets(at(0), at(1)), half.settled()), (Ok(None), at(986_001)));
    half.add(&segment(100, b"x"));
    assert_eq!(half.octets(at(0), at(1)), Ok(None), "a settled octet stays settled");
}

/// If the snap length cuts off all payload, only [`SEGMENT_WEIGHT`] counts for each segment.
#[test]
fn segments_without_captured_octets_are_given_up_too() {
    let mut half = opened(99);
    let cut = |seq: u32| Segment { octets: &[], wire_len: 100, ..segment(seq, &[]) };
    for n in 0..16_384u32 {
        half.add(&cut(100 + 100 * n));
    }
    assert!(half.octets(at(0), at(1)).is_err());
    half.add(&cut(100 + 100 * 16_384));
    assert_eq!((half.octets(at(0), at(1)), half.settled()), (Ok(None), half.end()));
    half.consume(half.end());
    assert_eq!(half.memory(), 0);
}

#[test]
fn consumed_octets_give_their_memory_back() {
    let mut half = opened(99);
    let octets = vec![1; 60_000];
    for n in 0..100u32 {
        half.add(&segment(100 + 60_000 * n, &octets));
        half.consume(half.settled() - 10);
        assert!(half.weight() < 200 && half.memory() < 300_000, "{} {}", half.weight(), half.memory());
    }
}

#[test]
fn beginnings_and_ends_of_segments_are_known_as_long_as_they_lie_ahead() {
    let mut half = opened(99);
    half.add(&segment(104, b"ef"));
    half.add(&segment(100, b"abcd"));
    half.add(&segment(104, b"ef"));
    half.add(&segment(102, b"cdefgh"));
    let starts: Vec<u64> = (0..9).filter(|n| half.segment_starts_at(at(*n))).collect();
    let ends: Vec<u64> = (0..9).filter(|n| half.segment_ends_at(at(*n))).collect();
    assert_eq!((starts, ends), (vec![0, 2, 4], vec![4, 6, 8]));
    half.consume(at(4));
    assert!(!half.segment_starts_at(at(2)) && half.segment_starts_at(at(4)) && !half.segment_ends_at(at(4)));
}

/// The model stores all captured octets by their position.
#[derive(Default)]
struct Model {
    octets: BTreeMap<u64, (u8, FrameNumber)>,
    end: u64,
}

impl Model {
    fn add(&mut self, offset: u64, captured: &[u8], wire_len: u64, frame: FrameNumber) {
        for (n, octet) in captured.iter().enumerate() {
            self.octets.entry(offset + n as u64).or_insert((*octet, frame));
        }
        self.end = self.end.max(offset + wire_len);
    }

    fn octets(&self, from: u64, to: u64) -> Option<Vec<u8>> {
        (from..to).map(|n| self.octets.get(&n).map(|(octet, _)| *octet)).collect()
    }

    fn frame_of(&self, from: u64, to: u64) -> FrameNumber {
        self.octets.range(from..to).map(|(_, (_, frame))| *frame).max().unwrap_or_default()
    }
}

/// Generates random segments as triples of offset, length, and number of octets that the snap
/// length cuts off. There are no segments of one octet, because a later segment can replace the
/// octet of such a segment.
fn segments() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    proptest::collection::vec((0u64..300, 2u64..60, prop_oneof![3 => Just(0u64), 1 => 0u64..60]), 1..60)
}

proptest! {
    /// Reads random segments in random steps. The segments have overlaps, gaps and cuts, and their
    /// sequence numbers wrap.
    #[test]
    fn agrees_with_a_plain_model(
        isn in prop_oneof![Just(u32::MAX - 100), any::<u32>()], sent in segments(), steps in proptest::collection::vec(0u64..40, 60),
        fill: u8, has_syn: bool, straight in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let mut half = DirectionStream::default();
        let mut model = Model::default();
        if has_syn {
            half.add(&syn(isn));
        }
        half.begin();
        // If there is no SYN, the first octet of the first segment is the first octet of the
        // direction.
        let zero = if has_syn { 0 } else { sent[0].0 };
        let mut read = 0;
        for (n, (offset, len, cut)) in sent.iter().enumerate() {
            let frame = FrameNumber::from(n as u64 + 1);
            // Different segments have different values for the same octet. So the result shows
            // which copy counts.
            let octets: Vec<u8> = (0..*len).map(|k| (offset + k) as u8 ^ fill ^ (n as u8) << 3).collect();
            let kept = &octets[..(len - cut.min(len)) as usize];
            let seq = isn.wrapping_add(1).wrapping_add(u32::try_from(*offset).unwrap());
            let below = zero.saturating_sub(*offset);
            if below < *len {
                let captured = kept.get(below as usize..).unwrap_or(&[]);
                model.add(offset.max(&zero) - zero, captured, len - below, frame);
            }
            let next = Segment { frame, wire_len: u32::try_from(*len).unwrap(), ..segment(seq, kept) };
            if let Some(arrived) = half.arrive(&next) {
                // Read some of the next octets before they are stored.
                if straight[n] && half.continues_with(&arrived) {
                    let to = read + steps[n].min(arrived.from(at(read)).len() as u64);
                    prop_assert_eq!(arrived.octets(at(read), at(to)).map(<[u8]>::to_vec), model.octets(read, to));
                    prop_assert_eq!(arrived.octets(at(read), at(read) + kept.len() as u64 + 1), None);
                    prop_assert_eq!(arrived.frame().0, frame);
                    prop_assert_eq!(arrived.locate(at(read), at(to)).map_or(0, |found| found.location.len), to - read);
                    half.consume_unstored(at(to));
                    read = to;
                }
                half.keep(&arrived, &next);
            }
            // As long as no gap is given up, the settled octets are the octets of the model before
            // the first gap.
            let settled = (0..).take_while(|n| model.octets.contains_key(n)).count() as u64;
            prop_assert_eq!(half.settled(), at(settled));
            prop_assert_eq!(half.end(), at(model.end));
            let to = (read + steps[n]).min(settled);
            prop_assert_eq!(half.octets(at(read), at(to)).unwrap().map(<[u8]>::to_vec), model.octets(read, to));
            prop_assert_eq!(half.frame_of(at(read), at(to)).0, model.frame_of(read, to));
            let located: u64 = half.locate(at(read), at(to)).map(|found| found.location.len).sum();
            prop_assert_eq!(located, to - read);
            if read < to {
                half.consume(at(to));
                read = to;
            }
        }
        half.finish();
        prop_assert_eq!(half.is_end(at(model.end)), Ok(true));
        let mut at_last = read;
        for span in half.spans(at(read), at(model.end)) {
            let (from, to) = (span.start - ORIGIN, span.end - ORIGIN);
            prop_assert_eq!(from, at_last);
            at_last = to;
            let octets = half.octets(span.start, span.end).unwrap().map(<[u8]>::to_vec);
            prop_assert_eq!(octets.is_some(), span.captured);
            prop_assert_eq!(&octets, &model.octets(from, to));
            if !span.captured {
                prop_assert_eq!(model.octets.range(from..to).count(), 0);
            }
            prop_assert_eq!(half.frame_of(span.start, span.end).0, model.frame_of(from, to));
        }
        prop_assert_eq!(at_last, model.end.max(read));
        half.consume(half.end());
        prop_assert_eq!(half.weight(), 0);
    }

    /// No sequence number causes a panic or unlimited memory.
    #[test]
    fn any_sequence_numbers(sent in proptest::collection::vec((any::<u32>(), 0usize..2000, 0u32..100_000, any::<[bool; 3]>()), 0..200)) {
        let mut half = DirectionStream::default();
        for (seq, len, more, [syn, rst, consume]) in sent {
            let octets = vec![0; len];
            let wire_len = u32::try_from(len).unwrap() + more;
            half.add(&Segment { syn, rst, wire_len, ..segment(seq, &octets) });
            if consume && half.has_octets() {
                half.begin();
                half.consume(half.settled());
            }
        }
        half.finish();
        let (start, end) = (half.consumed(), half.end());
        prop_assert_eq!(half.spans(start, end).map(|s| s.end - s.start).sum::<u64>(), end - start);
    }
}
