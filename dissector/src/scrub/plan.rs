//! [`Plan`]: which octets of each TCP stream stay, and which octets get a new value. All other
//! octets are replaced with [`FILL`].
//!
//! The plan counts octets by their position in the stream. So each copy of an octet gets the same
//! value, for example in a retransmission.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;

use weft_core::crc::{self, CRC_LEN};
use weft_core::wire::mpa::fpdu::{LENGTH_LEN, pad_len};

use crate::framing::crc_good;
use crate::parse::SenderError;
use crate::stream_id::StreamId;
use crate::tcp::direction_stream::ORIGIN;

use super::fill::FILL;

/// The number of octets that can stay at the start of octets in which no FPDU was found:
/// `ULPDU_Length`, and the first octets of the DDP header. They include a marker before these
/// octets.
const UNPARSED_LEN: usize = 8;

/// A direction of a connection: the number of the connection, and the sender.
pub(super) type DirectionKey = (StreamId, SocketAddr);

/// What happens to the octets of a piece.
#[derive(Debug, Clone, Copy)]
enum Action {
    /// The octets stay.
    Keep,
    /// The octets get the values at this offset in [`DirectionPlan::values`].
    Put(u32),
    /// The octets are a wrong CRC field, and get the values at the offset `values`. `covered`
    /// octets before the field belong to the FPDU. If a copy of the FPDU has a correct CRC, its
    /// field gets a correct CRC.
    WrongCrc { values: u32, covered: u32 },
    /// The octets are the start of octets in which no FPDU was found. If they look like the header
    /// of an FPDU, they stay. If an error of the sender explains the FPDU, what proves the error
    /// stays, too.
    Unparsed(Option<SenderError>),
}

/// Contiguous octets of a stream that are not filled.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    len: u32,
    action: Action,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

/// The plan of one direction of a connection.
#[derive(Debug, Default)]
pub(super) struct DirectionPlan {
    /// Sequence number at position [`ORIGIN`].
    base: Option<u32>,
    /// The pieces in stream order.
    pieces: Vec<Piece>,
    /// The values of [`Action::Put`] and [`Action::WrongCrc`].
    values: Vec<u8>,
    /// Position of the latest segment, to convert sequence numbers to positions.
    last: Option<u64>,
}

impl DirectionPlan {
    /// Records that the octet with sequence number `seq` has the position `position`.
    pub(super) fn set_base(&mut self, seq: u32, position: u64) {
        self.base = Some(seq.wrapping_sub(position.wrapping_sub(ORIGIN) as u32));
    }

    /// Keeps the octets at these positions.
    pub(super) fn keep(&mut self, positions: Range<u64>) {
        let Ok(len) = u32::try_from(positions.end.saturating_sub(positions.start)) else { return };
        if len == 0 {
            return;
        }
        if let Some(last) = self.pieces.last_mut()
            && matches!(last.action, Action::Keep)
            && last.end() == positions.start
            && let Some(sum) = last.len.checked_add(len)
        {
            last.len = sum;
            return;
        }
        self.pieces.push(Piece { start: positions.start, len, action: Action::Keep });
    }

    /// Gives the octets from position `start` on the values `octets`.
    pub(super) fn put(&mut self, start: u64, octets: &[u8]) {
        if let Some(values) = self.store(octets) {
            self.push(start, octets.len(), Action::Put(values));
        }
    }

    /// Gives the wrong CRC field at position `start` the value `field`. `covered` octets before the
    /// field belong to the FPDU.
    pub(super) fn put_wrong_crc(&mut self, start: u64, field: [u8; CRC_LEN], covered: u64) {
        if let (Some(values), Ok(covered)) = (self.store(&field), u32::try_from(covered)) {
            self.push(start, CRC_LEN, Action::WrongCrc { values, covered });
        }
    }

    /// Keeps what looks like the header of an FPDU at position `start`. The dissector found no FPDU
    /// in `len` octets, probably because of `error`.
    pub(super) fn keep_unparsed(&mut self, start: u64, len: u64, error: Option<SenderError>) {
        self.push(start, UNPARSED_LEN.min(len as usize), Action::Unparsed(error));
    }

    fn store(&mut self, octets: &[u8]) -> Option<u32> {
        let at = u32::try_from(self.values.len()).ok()?;
        self.values.extend_from_slice(octets);
        Some(at)
    }

    fn push(&mut self, start: u64, len: usize, action: Action) {
        if let Ok(len) = u32::try_from(len) {
            self.pieces.push(Piece { start, len, action });
        }
    }

    /// Converts a sequence number to a position. Of the possible positions, returns the position
    /// that is nearest to the latest segment.
    fn position(&mut self, seq: u32) -> Option<u64> {
        let base = self.base?;
        let last = self.last.unwrap_or(ORIGIN);
        let difference = seq.wrapping_sub(base).wrapping_sub(last.wrapping_sub(ORIGIN) as u32).cast_signed();
        let position = last.saturating_add_signed(i64::from(difference));
        self.last = Some(position);
        Some(position)
    }

    /// Writes the payload of a segment with sequence number `seq` to `out`. `original` is the
    /// captured payload, and `out` has the same length.
    fn apply(&mut self, seq: u32, original: &[u8], out: &mut [u8]) {
        out.fill(FILL);
        let Some(start) = self.position(seq) else { return };
        let end = start.saturating_add(original.len() as u64);
        let first = self.pieces.partition_point(|piece| piece.end() <= start);
        for piece in &self.pieces[first..] {
            if piece.start >= end {
                break;
            }
            let [from, to] = [piece.start.max(start), piece.end().min(end)].map(|at| at.saturating_sub(start) as usize);
            let (Some(to_write), Some(octets)) = (out.get_mut(from..to), original.get(from..to)) else { continue };
            match piece.action {
                Action::Keep => to_write.copy_from_slice(octets),
                Action::Unparsed(_) if start <= piece.start && has_header(octets) => to_write.copy_from_slice(octets),
                Action::Unparsed(_) => {}
                Action::Put(values) | Action::WrongCrc { values, .. } => {
                    let skip = values as usize + start.saturating_sub(piece.start) as usize;
                    if let Some(values) = self.values.get(skip..skip + to_write.len()) {
                        to_write.copy_from_slice(values);
                    }
                }
            }
            match piece.action {
                Action::WrongCrc { covered, .. } => {
                    let fpdu = piece.start.checked_sub(u64::from(covered)).and_then(|at| at.checked_sub(start));
                    if let Some(fpdu) = fpdu {
                        repair(original, out, fpdu as usize, fpdu as usize + covered as usize);
                    }
                }
                Action::Unparsed(Some(error)) if piece.start >= start => explain(original, out, from, error),
                _ => {}
            }
        }
    }
}

/// Returns whether `octets` start with `ULPDU_Length` and the first two octets of a DDP header,
/// possibly after a marker.
fn has_header(octets: &[u8]) -> bool {
    let is_header = |at: usize| {
        let header = octets.get(at..).and_then(<[u8]>::first_chunk::<4>);
        header.is_some_and(|[high, low, ddp, rdmap]| {
            // The length is not zero, the reserved bits are zero, and the versions are equal.
            high | low != 0 && ddp & 0x3c == 0 && rdmap & 0x30 == 0 && ddp & 3 == rdmap >> 6
        })
    };
    is_header(0) || is_header(4)
}

/// If the FPDU at offset `start` is complete and has a correct CRC at offset `field`, writes the
/// correct CRC of the new octets.
fn repair(original: &[u8], out: &mut [u8], start: usize, field: usize) {
    let end = field.saturating_add(CRC_LEN);
    if !original.get(start..end).is_some_and(crc_good) {
        return;
    }
    let right = out.get(start..field).map(|covered| crc::to_octets(crc::crc32c(covered)));
    if let (Some(right), Some(out)) = (right, out.get_mut(field..end)) {
        out.copy_from_slice(&right);
    }
}

/// Keeps what proves the error `error` of the FPDU at offset `start`: its CRC, or the header of the
/// next FPDU.
fn explain(original: &[u8], out: &mut [u8], start: usize, error: SenderError) {
    let Some(&[high, low]) = original.get(start..).and_then(<[u8]>::first_chunk::<2>) else { return };
    let ulpdu_length = u16::from_be_bytes([high, low]);
    let with_pad = |ulpdu_length: u16| LENGTH_LEN + usize::from(ulpdu_length) + pad_len(ulpdu_length);
    let (covered, field) = match error {
        SenderError::LengthSwapped => (with_pad(ulpdu_length.swap_bytes()), CRC_LEN),
        SenderError::LengthCounts(counted) => match ulpdu_length.checked_sub(u16::from(counted)) {
            Some(real) => (with_pad(real), CRC_LEN),
            None => return,
        },
        SenderError::Pad(pad) => (LENGTH_LEN + usize::from(ulpdu_length) + usize::from(pad), CRC_LEN),
        SenderError::NoCrcField => (with_pad(ulpdu_length), 0),
        SenderError::UnrequestedMarker | SenderError::Unexplained => return,
    };
    let at = start.saturating_add(covered);
    if field > 0 {
        repair(original, out, start, at);
    }
    let next = at + field..at + field + 4;
    if let (Some(header), Some(out)) = (original.get(next.clone()), out.get_mut(next))
        && has_header(header)
    {
        out.copy_from_slice(header);
    }
}

/// The plans of all directions.
#[derive(Debug, Default)]
pub(super) struct Plan(HashMap<DirectionKey, DirectionPlan>);

impl Plan {
    /// The plan of a direction.
    pub(super) fn direction(&mut self, key: DirectionKey) -> &mut DirectionPlan {
        self.0.entry(key).or_default()
    }

    /// Sorts the pieces. Call this after the last piece, and before [`Plan::apply`].
    pub(super) fn sort(&mut self) {
        self.0.values_mut().for_each(|direction| direction.pieces.sort_by_key(|piece| piece.start));
    }

    /// Writes the payload of a segment with sequence number `seq` to `out`. `original` is the
    /// captured payload, and `out` has the same length.
    pub(super) fn apply(&mut self, key: DirectionKey, seq: u32, original: &[u8], out: &mut [u8]) {
        match self.0.get_mut(&key) {
            Some(direction) => direction.apply(seq, original, out),
            None => out.fill(FILL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> DirectionKey {
        (StreamId::FIRST, "10.0.0.1:5".parse().unwrap())
    }

    fn applied(plan: &mut Plan, seq: u32, original: &[u8]) -> Vec<u8> {
        let mut out = vec![0; original.len()];
        plan.apply(key(), seq, original, &mut out);
        out
    }

    #[test]
    fn each_copy_of_an_octet_gets_the_same_value() {
        let mut plan = Plan::default();
        let direction = plan.direction(key());
        direction.set_base(u32::MAX - 1, ORIGIN);
        direction.keep(ORIGIN..ORIGIN + 2);
        direction.put(ORIGIN + 4, b"new");
        plan.sort();
        assert_eq!(applied(&mut plan, u32::MAX - 1, b"abcdefgh"), b"abVVnewV");
        assert_eq!(applied(&mut plan, u32::MAX, b"bcd"), b"bVV");
        assert_eq!(applied(&mut plan, 3, b"fgh"), b"ewV");
        // Octets before the first position are filled.
        assert_eq!(applied(&mut plan, u32::MAX - 3, b"xyab"), b"VVab");
    }

    #[test]
    fn a_connection_without_units_is_filled() {
        assert_eq!(applied(&mut Plan::default(), 7, b"abc"), b"VVV");
    }

    #[test]
    fn a_copy_with_a_correct_crc_keeps_a_correct_crc() {
        let good = [&b"headpayload!"[..], &crc::to_octets(crc::crc32c(b"headpayload!"))].concat();
        let mut bad = good.clone();
        bad[6] ^= 1;
        let mut plan = Plan::default();
        let direction = plan.direction(key());
        direction.set_base(0, ORIGIN);
        direction.keep(ORIGIN..ORIGIN + 4);
        direction.put_wrong_crc(ORIGIN + 12, *b"!!!!", 12);
        plan.sort();
        let mut expected = b"headVVVVVVVV!!!!".to_vec();
        assert_eq!(applied(&mut plan, 0, &bad), expected);
        expected[12..].copy_from_slice(&crc::to_octets(crc::crc32c(b"headVVVVVVVV")));
        assert_eq!(applied(&mut plan, 0, &good), expected);
    }
}
