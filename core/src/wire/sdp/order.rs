//! The two field orders of SDP's 32-bit words, and the raw views that can be read and written in
//! either.
//!
//! The draft's figures, read from left to right as RFC figures are, give the **figure order**: `Bufs | Flags | MID`. It is the
//! default. Other places of the draft number bits from the least significant one, which turns a
//! word's fields around:
//! `MID | Flags | Bufs`, as InfiniBand's SDP has them. That is the **mirrored order**. Each field stays big endian; words with one
//! field, and the 64-bit VA, are the same in both.
//!
//! Where a nibble or bit of a word is meant the mirror turns it around too: `MinV | MajV` becomes `MajV | MinV`, and the S bit of
//! a ModeChange goes from the lowest to the highest place.

use std::ops::Range;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The order of the fields of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FieldOrder {
    /// As the draft's figures show them, leftmost first.
    #[default]
    Figure,
    /// Turned around within each 32-bit word, as in InfiniBand.
    Mirrored,
}

impl FieldOrder {
    /// The order in which a Hello was written, by its first four octets: `Bufs` is never zero
    /// there, Flags and MID are. `None` where they fit neither order.
    #[must_use]
    pub fn of_hello(octets: &[u8]) -> Option<Self> {
        match octets.first_chunk()? {
            [0, 0, 0, 0] => None,
            [_, _, 0, 0] => Some(FieldOrder::Figure),
            [0, 0, _, _] => Some(FieldOrder::Mirrored),
            _ => None,
        }
    }

    /// The order in which a HelloAck was written, by its first four octets. Octets `01 00 00 01`
    /// fit both; they are taken for the figure order, since a mirrored `Bufs` of 1 would be too
    /// small.
    #[must_use]
    pub fn of_hello_ack(octets: &[u8]) -> Option<Self> {
        match octets.first_chunk()? {
            [_, _, 0, 1] => Some(FieldOrder::Figure),
            [1, 0, _, _] => Some(FieldOrder::Mirrored),
            _ => None,
        }
    }

    /// The place of a field in this order, given its octets in the figures, counted from the start
    /// of the message.
    ///
    /// A field that does not lie within one 32-bit word (the VA, a payload) is in the same place in
    /// both orders.
    #[must_use]
    pub fn place(self, figure: Range<usize>) -> Range<usize> {
        let word = figure.start & !3;
        if self == FieldOrder::Figure || figure.end > word + 4 || figure.is_empty() {
            return figure;
        }
        2 * word + 4 - figure.end..2 * word + 4 - figure.start
    }
}

/// A raw SDP header: its struct is laid out in figure order; both orders can be read and written.
/// Nothing is judged, and every octet string of its length can be expressed.
pub trait RawHeader: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned {
    /// Octets of the header.
    const LEN: usize = size_of::<Self>();

    /// `self` was filled from octets in mirrored order as if they were in figure order: puts the
    /// fields right.
    #[must_use]
    fn unmirrored(self) -> Self {
        self
    }

    /// The reverse: a value whose memory is the mirrored order of `self`.
    #[must_use]
    fn mirrored(self) -> Self {
        self
    }

    /// The header that `octets` begin with, and what follows it; `None` when they are too few.
    #[must_use]
    fn read(octets: &[u8], order: FieldOrder) -> Option<(Self, &[u8])> {
        let (raw, rest) = Self::read_from_prefix(octets).ok()?;
        Some((if order == FieldOrder::Mirrored { raw.unmirrored() } else { raw }, rest))
    }

    /// Appends the header to `out`.
    fn append(self, order: FieldOrder, out: &mut Vec<u8>) {
        let raw = if order == FieldOrder::Mirrored { self.mirrored() } else { self };
        out.extend_from_slice(raw.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RawBsdh, RawHello, RawHelloAck, RawModeChange, RawSinkAvail, RawSrcAvail, RawSuspComm};
    use super::*;

    /// `octets` read as a `T` and written again, in one order.
    fn again<T: RawHeader>(octets: &[u8], order: FieldOrder) -> Vec<u8> {
        let mut out = Vec::new();
        let (raw, rest) = T::read(octets, order).unwrap();
        raw.append(order, &mut out);
        assert_eq!((out.len(), rest.len()), (T::LEN, octets.len() - T::LEN));
        out.extend_from_slice(rest);
        out
    }

    proptest::proptest! {
        #[test]
        fn either_order_expresses_every_octet(octets: [u8; 32], mirrored: bool) {
            let order = if mirrored { FieldOrder::Mirrored } else { FieldOrder::Figure };
            for out in [
                again::<RawBsdh>(&octets, order),
                again::<RawHello>(&octets, order),
                again::<RawHelloAck>(&octets, order),
                again::<RawModeChange>(&octets, order),
                again::<RawSinkAvail>(&octets, order),
                again::<RawSrcAvail>(&octets, order),
                again::<RawSuspComm>(&octets, order),
            ] {
                proptest::prop_assert_eq!(out, octets);
            }
        }
    }

    #[test]
    fn a_hello_shows_its_order() {
        assert_eq!(FieldOrder::of_hello(&[0, 3, 0, 0]), Some(FieldOrder::Figure));
        assert_eq!(FieldOrder::of_hello(&[3, 0, 0, 0, 9]), Some(FieldOrder::Figure));
        assert_eq!(FieldOrder::of_hello(&[0, 0, 0, 3]), Some(FieldOrder::Mirrored));
        assert_eq!(FieldOrder::of_hello(&[0, 0, 3, 0]), Some(FieldOrder::Mirrored));
        for unclear in [&[0, 0, 0, 0][..], &[0, 3, 0, 1], &[0, 3, 0]] {
            assert_eq!(FieldOrder::of_hello(unclear), None);
        }
    }

    #[test]
    fn a_hello_ack_shows_its_order() {
        assert_eq!(FieldOrder::of_hello_ack(&[0, 3, 0, 1]), Some(FieldOrder::Figure));
        assert_eq!(FieldOrder::of_hello_ack(&[1, 0, 0, 3]), Some(FieldOrder::Mirrored));
        assert_eq!(FieldOrder::of_hello_ack(&[1, 0, 0, 1]), Some(FieldOrder::Figure));
        assert_eq!(FieldOrder::of_hello_ack(&[0, 3, 0, 0]), None);
    }

    /// Bufs, Flags and MID of the first word; LocIRD and LocORD of a Hello; a VA.
    #[test]
    fn places_turn_around_within_their_word() {
        let mirrored = |figure| FieldOrder::Mirrored.place(figure);
        assert_eq!([mirrored(0..2), mirrored(2..3), mirrored(3..4)], [2..4, 1..2, 0..1]);
        assert_eq!([mirrored(28..30), mirrored(30..32)], [30..32, 28..30]);
        assert_eq!([mirrored(4..8), mirrored(24..32), mirrored(16..16)], [4..8, 24..32, 16..16]);
        assert_eq!(FieldOrder::Figure.place(0..2), 0..2);
    }
}
