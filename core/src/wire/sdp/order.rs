//! The two field orders of SDP's 32-bit words, and the trait of raw headers that supports both.
//!
//! The draft is ambiguous. If its figures are read from left to right, as in an RFC, they give the
//! **figure order**, for example `Bufs | Flags | MID`. Other parts of the draft number the bits of
//! a word from the least significant bit. That numbering reverses the fields: `MID | Flags | Bufs`,
//! as in the SDP of InfiniBand. This is the **mirrored order**. The figure order is the default. In
//! both orders each field is big endian. Words with a single field and the 64-bit VA are the same
//! in both orders.
//!
//! The mirrored order also reverses fields that are smaller than an octet: `MinV | MajV` becomes
//! `MajV | MinV`, and the S bit of a ModeChange moves from the lowest to the highest bit.

use std::ops::Range;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The order of the fields of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FieldOrder {
    /// As in the draft's figures, with the leftmost field first.
    #[default]
    Figure,
    /// Reversed within each 32-bit word, as in InfiniBand.
    Mirrored,
}

impl FieldOrder {
    /// Detects the field order of a Hello from its first four octets: in a Hello, Flags and MID are
    /// zero, and `Bufs` is not. Returns `None` if the octets match neither order.
    #[must_use]
    pub fn of_hello(octets: &[u8]) -> Option<Self> {
        match octets.first_chunk()? {
            [0, 0, 0, 0] => None,
            [_, _, 0, 0] => Some(FieldOrder::Figure),
            [0, 0, _, _] => Some(FieldOrder::Mirrored),
            _ => None,
        }
    }

    /// Detects the field order of a HelloAck from its first four octets. Returns `None` if the
    /// octets match neither order. The octets `01 00 00 01` match both orders. They count as figure
    /// order, because a `Bufs` of 1 in mirrored order would be too small.
    #[must_use]
    pub fn of_hello_ack(octets: &[u8]) -> Option<Self> {
        match octets.first_chunk()? {
            [_, _, 0, 1] => Some(FieldOrder::Figure),
            [1, 0, _, _] => Some(FieldOrder::Mirrored),
            _ => None,
        }
    }

    /// Converts the octet range that a field has in figure order to the octet range that the same
    /// field has in this order. Ranges count from the start of the message.
    ///
    /// A field that is not within one 32-bit word (the VA, a payload) has the same range in both
    /// orders.
    #[must_use]
    pub fn wire_range(self, figure: Range<usize>) -> Range<usize> {
        let word = figure.start & !3;
        if self == FieldOrder::Figure || figure.end > word + 4 || figure.is_empty() {
            return figure;
        }
        2 * word + 4 - figure.end..2 * word + 4 - figure.start
    }
}

/// A raw SDP header. The struct has the fields in figure order, but the methods read and write both
/// orders. The methods accept all values of all fields.
pub trait RawHeader: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned {
    /// Length of the header in octets.
    const LEN: usize = size_of::<Self>();

    /// Corrects the fields of a header whose octets are in mirrored order, but were read in figure
    /// order.
    #[must_use]
    fn unmirrored(self) -> Self {
        self
    }

    /// Does the reverse of [`RawHeader::unmirrored`]. The octets of the returned value are the
    /// header `self` in mirrored order.
    #[must_use]
    fn mirrored(self) -> Self {
        self
    }

    /// Splits `octets` into the header at their start and the remaining octets. Returns `None` if
    /// `octets` are shorter than the header.
    #[must_use]
    fn read(octets: &[u8], order: FieldOrder) -> Option<(Self, &[u8])> {
        let (raw, rest) = Self::read_from_prefix(octets).ok()?;
        Some((if order == FieldOrder::Mirrored { raw.unmirrored() } else { raw }, rest))
    }

    /// Appends the header to `out` in the field order `order`.
    fn append(self, order: FieldOrder, out: &mut Vec<u8>) {
        let raw = if order == FieldOrder::Mirrored { self.mirrored() } else { self };
        out.extend_from_slice(raw.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RawBsdh, RawHello, RawHelloAck, RawModeChange, RawSinkAvail, RawSrcAvail, RawSuspComm};
    use super::*;

    /// Reads `octets` as a `T` and writes the `T` again, in the same order.
    fn round_trip<T: RawHeader>(octets: &[u8], order: FieldOrder) -> Vec<u8> {
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
                round_trip::<RawBsdh>(&octets, order),
                round_trip::<RawHello>(&octets, order),
                round_trip::<RawHelloAck>(&octets, order),
                round_trip::<RawModeChange>(&octets, order),
                round_trip::<RawSinkAvail>(&octets, order),
                round_trip::<RawSrcAvail>(&octets, order),
                round_trip::<RawSuspComm>(&octets, order),
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

    /// Mirrored order reverses the positions of the fields within a word. The examples are Bufs,
    /// Flags and MID, and LocIRD and LocORD in a Hello. Len, the VA and an empty range keep their
    /// positions.
    #[test]
    fn places_turn_around_within_their_word() {
        let mirrored = |figure| FieldOrder::Mirrored.wire_range(figure);
        assert_eq!([mirrored(0..2), mirrored(2..3), mirrored(3..4)], [2..4, 1..2, 0..1]);
        assert_eq!([mirrored(28..30), mirrored(30..32)], [30..32, 28..30]);
        assert_eq!([mirrored(4..8), mirrored(24..32), mirrored(16..16)], [4..8, 24..32, 16..16]);
        assert_eq!(FieldOrder::Figure.wire_range(0..2), 0..2);
    }
}
