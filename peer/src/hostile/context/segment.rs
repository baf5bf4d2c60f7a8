//! DDP segments on their way out: what the hooks of `Segment` work on.
//!
//! A hook gets the bytes of one correct segment and decides what is sent instead: a changed
//! segment, several, or none for now. A deviation's state between segments is [`Kept`], one for
//! each stream.

use weft_core::wire::rdmap::Opcode;

/// What a stream's deviations remember.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Segments that were held back.
    pub(in crate::hostile) held: Vec<Vec<u8>>,
    /// A number, from 0 on.
    pub(in crate::hostile) count: u32,
    /// Further counters.
    pub(in crate::hostile) numbers: [u32; 3],
}

/// One right segment, and what goes out in its place.
#[derive(Debug)]
pub(crate) struct SentSegment<'a> {
    pub(in crate::hostile) out: Vec<Vec<u8>>,
    pub(in crate::hostile) kept: &'a mut Kept,
}

impl<'a> SentSegment<'a> {
    pub(in crate::hostile) fn right(octets: Vec<u8>, kept: &'a mut Kept) -> Self {
        SentSegment { out: vec![octets], kept }
    }

    /// Does the segment continue the message of the previous one?
    pub(in crate::hostile) fn goes_on(&mut self) -> bool {
        let open = self.out.first().is_some_and(|octets| !is_last(octets));
        std::mem::replace(&mut self.kept.count, u32::from(open)) != 0
    }

    /// Changes each segment.
    pub(in crate::hostile) fn each(&mut self, change: impl Fn(&mut Vec<u8>)) {
        self.out.iter_mut().for_each(change);
    }

    /// Changes each segment of these opcodes.
    pub(in crate::hostile) fn of(&mut self, opcodes: &[Opcode], change: impl Fn(&mut Vec<u8>)) {
        self.out.iter_mut().filter(|octets| opcodes.contains(&opcode(octets))).for_each(change);
    }

    /// Does not send the segments that `lost` picks.
    pub(in crate::hostile) fn lose(&mut self, lost: impl Fn(&[u8]) -> bool) {
        self.out.retain(|octets| !lost(octets));
    }

    /// Sends the segments that `swapped` selects in pairs, the second one first.
    pub(in crate::hostile) fn swap(&mut self, swapped: impl Fn(&[u8]) -> bool) {
        for octets in std::mem::take(&mut self.out) {
            match self.kept.held.pop() {
                _ if !swapped(&octets) => self.out.push(octets),
                None => self.kept.held.push(octets),
                Some(first) => self.out.extend([octets, first]),
            }
        }
    }

    /// Sends this before each segment for which there is something.
    pub(in crate::hostile) fn precede(&mut self, before: impl Fn(&[u8]) -> Option<Vec<u8>>) {
        for octets in std::mem::take(&mut self.out) {
            self.out.extend(before(&octets));
            self.out.push(octets);
        }
    }

    /// Sends the result of `next`, if any, after each segment.
    pub(in crate::hostile) fn follow(&mut self, next: impl Fn(&[u8]) -> Option<Vec<u8>>) {
        for octets in std::mem::take(&mut self.out) {
            let more = next(&octets);
            self.out.push(octets);
            self.out.extend(more);
        }
    }
}

/// RDMAP's opcode.
pub(in crate::hostile) fn opcode(octets: &[u8]) -> Opcode {
    Opcode(octets.get(1).copied().unwrap_or_default() & 0xf)
}

/// The T bit.
pub(in crate::hostile) fn is_tagged(octets: &[u8]) -> bool {
    octets.first().is_some_and(|octet| octet & 0x80 != 0)
}

/// The L bit.
pub(in crate::hostile) fn is_last(octets: &[u8]) -> bool {
    octets.first().is_some_and(|octet| octet & 0x40 != 0)
}

/// Octets of the DDP header.
pub(in crate::hostile) fn header_len(octets: &[u8]) -> usize {
    if is_tagged(octets) { 14 } else { 18 }.min(octets.len())
}

/// Does payload follow its header?
pub(in crate::hostile) fn has_payload(octets: &[u8]) -> bool {
    octets.len() > header_len(octets)
}

/// The opcodes of Sends.
pub(in crate::hostile) const SENDS: &[Opcode] =
    &[Opcode::SEND, Opcode::SEND_INVALIDATE, Opcode::SEND_SE, Opcode::SEND_SE_INVALIDATE];
/// Those of RFC 7306.
pub(in crate::hostile) const EXTENSIONS: &[Opcode] =
    &[Opcode::IMMEDIATE, Opcode::IMMEDIATE_SE, Opcode::ATOMIC_REQUEST, Opcode::ATOMIC_RESPONSE];

/// Offsets of the fields of an untagged header.
pub(in crate::hostile) const WORD: usize = 2;
pub(in crate::hostile) const QN: usize = 6;
pub(in crate::hostile) const MSN: usize = 10;
pub(in crate::hostile) const MO: usize = 14;
/// Offsets of those of a tagged one.
pub(in crate::hostile) const STAG: usize = 2;
pub(in crate::hostile) const TO: usize = 6;
/// Offset of the payload of an untagged segment.
pub(in crate::hostile) const PAYLOAD: usize = 18;

/// The 32 bits at `at`; 0 where there are none.
pub(in crate::hostile) fn word(octets: &[u8], at: usize) -> u32 {
    octets.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}

/// Puts 32 bits at `at`, where there are any.
pub(in crate::hostile) fn set_word(octets: &mut [u8], at: usize, value: u32) {
    if let Some(word) = octets.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *word = value.to_be_bytes();
    }
}

/// Changes the 32 bits at `at`, where there are any.
pub(in crate::hostile) fn change_word(octets: &mut [u8], at: usize, change: impl FnOnce(u32) -> u32) {
    let right = word(octets, at);
    set_word(octets, at, change(right));
}

/// Changes the octet at `at`, where there is one.
pub(in crate::hostile) fn octet(octets: &mut [u8], at: usize, change: impl FnOnce(&mut u8)) {
    if let Some(octet) = octets.get_mut(at) {
        change(octet);
    }
}

/// An untagged segment as a tagged one of the same opcode, of STag 0 and TO 0.
pub(in crate::hostile) fn make_tagged(octets: &mut Vec<u8>) {
    if !is_tagged(octets) && octets.len() >= PAYLOAD {
        octet(octets, 0, |control| *control |= 0x80);
        octets.splice(2..PAYLOAD, [0; 12]);
    }
}

/// A tagged segment as an untagged one of the same opcode, the first of queue 0.
pub(in crate::hostile) fn make_untagged(octets: &mut Vec<u8>) {
    if is_tagged(octets) && octets.len() >= 14 {
        octet(octets, 0, |control| *control &= !0x80);
        octets.splice(2..14, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    }
}
