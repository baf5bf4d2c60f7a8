//! Data of the `Segment` hooks: DDP segments that are about to be sent.
//!
//! A hook receives the bytes of one correct segment. The hook replaces this segment by a changed
//! segment, by several segments, or by no segment. It can also send the segment later.
//! [`DeviationState`] stores data between segments, separately for each stream.

use weft_core::wire::rdmap::Opcode;

/// The data that the deviations of one stream keep between segments.
#[derive(Debug, Default)]
pub(crate) struct DeviationState {
    /// Segments to send later.
    pub(in crate::hostile) held: Vec<Vec<u8>>,
    /// A counter for any purpose, initially 0.
    pub(in crate::hostile) count: u32,
    /// Further counters for any purpose, initially 0.
    pub(in crate::hostile) numbers: [u32; 3],
    /// Lengths of received segments, in bytes.
    pub(in crate::hostile) lengths: Vec<usize>,
}

/// One correct segment, and the segments that replace it.
#[derive(Debug)]
pub(crate) struct SentSegment<'a> {
    pub(in crate::hostile) out: Vec<Vec<u8>>,
    pub(in crate::hostile) state: &'a mut DeviationState,
}

impl<'a> SentSegment<'a> {
    pub(in crate::hostile) fn right(octets: Vec<u8>, state: &'a mut DeviationState) -> Self {
        SentSegment { out: vec![octets], state }
    }

    /// Returns whether the segment continues the message of the previous segment. Call this
    /// function for each segment.
    pub(in crate::hostile) fn continues_message(&mut self) -> bool {
        let open = self.out.first().is_some_and(|octets| !is_last(octets));
        std::mem::replace(&mut self.state.count, u32::from(open)) != 0
    }

    /// Applies a change to each segment.
    pub(in crate::hostile) fn each(&mut self, change: impl Fn(&mut Vec<u8>)) {
        self.out.iter_mut().for_each(change);
    }

    /// Applies a change to each segment that `selected` selects.
    pub(in crate::hostile) fn each_if(&mut self, selected: impl Fn(&[u8]) -> bool, change: impl Fn(&mut Vec<u8>)) {
        self.out.iter_mut().filter(|octets| selected(octets)).for_each(change);
    }

    /// Applies a change to each segment with one of these opcodes.
    pub(in crate::hostile) fn of(&mut self, opcodes: &[Opcode], change: impl Fn(&mut Vec<u8>)) {
        self.out.iter_mut().filter(|octets| opcodes.contains(&opcode(octets))).for_each(change);
    }

    /// Drops the segments that `lost` selects.
    pub(in crate::hostile) fn suppress(&mut self, lost: impl Fn(&[u8]) -> bool) {
        self.out.retain(|octets| !lost(octets));
    }

    /// Groups successive segments that `swapped` selects into pairs. Sends the second segment of
    /// each pair before the first segment of the pair. If another segment follows the first, both
    /// keep their order.
    pub(in crate::hostile) fn swap(&mut self, swapped: impl Fn(&[u8]) -> bool) {
        for octets in std::mem::take(&mut self.out) {
            if swapped(&octets) && self.state.held.is_empty() {
                self.state.held.push(octets);
            } else if swapped(&octets) {
                self.out.push(octets);
                self.out.append(&mut self.state.held);
            } else {
                self.out.append(&mut self.state.held);
                self.out.push(octets);
            }
        }
    }

    /// Before each segment, sends the result of `before`, if there is one.
    pub(in crate::hostile) fn precede(&mut self, before: impl Fn(&[u8]) -> Option<Vec<u8>>) {
        for octets in std::mem::take(&mut self.out) {
            self.out.extend(before(&octets));
            self.out.push(octets);
        }
    }

    /// After each segment, sends the result of `next`, if there is one.
    pub(in crate::hostile) fn follow(&mut self, next: impl Fn(&[u8]) -> Option<Vec<u8>>) {
        for octets in std::mem::take(&mut self.out) {
            let more = next(&octets);
            self.out.push(octets);
            self.out.extend(more);
        }
    }
}

/// Returns the RDMAP opcode.
pub(in crate::hostile) fn opcode(octets: &[u8]) -> Opcode {
    Opcode(octets.get(1).copied().unwrap_or_default() & 0xf)
}

/// Returns whether the T bit is set.
pub(in crate::hostile) fn is_tagged(octets: &[u8]) -> bool {
    octets.first().is_some_and(|octet| octet & 0x80 != 0)
}

/// Returns whether the T bit is not set.
pub(in crate::hostile) fn is_untagged(octets: &[u8]) -> bool {
    !is_tagged(octets)
}

/// Returns whether the L bit is set.
pub(in crate::hostile) fn is_last(octets: &[u8]) -> bool {
    octets.first().is_some_and(|octet| octet & 0x40 != 0)
}

/// Returns the length of the DDP header in bytes.
pub(in crate::hostile) fn header_len(octets: &[u8]) -> usize {
    if is_tagged(octets) { 14 } else { 18 }.min(octets.len())
}

/// Returns whether payload follows the DDP header.
pub(in crate::hostile) fn has_payload(octets: &[u8]) -> bool {
    octets.len() > header_len(octets)
}

/// The opcodes of Sends.
pub(in crate::hostile) const SENDS: &[Opcode] =
    &[Opcode::SEND, Opcode::SEND_INVALIDATE, Opcode::SEND_SE, Opcode::SEND_SE_INVALIDATE];
/// The opcodes of RFC 7306.
pub(in crate::hostile) const EXTENSIONS: &[Opcode] =
    &[Opcode::IMMEDIATE, Opcode::IMMEDIATE_SE, Opcode::ATOMIC_REQUEST, Opcode::ATOMIC_RESPONSE];

/// Offsets of the fields of an untagged header. `WORD` is the offset of the four bytes before QN,
/// which can contain an Invalidate STag.
pub(in crate::hostile) const WORD: usize = 2;
pub(in crate::hostile) const QN: usize = 6;
pub(in crate::hostile) const MSN: usize = 10;
pub(in crate::hostile) const MO: usize = 14;
/// Offsets of the fields of a tagged header.
pub(in crate::hostile) const STAG: usize = 2;
pub(in crate::hostile) const TO: usize = 6;
/// Offset of the payload of an untagged segment.
pub(in crate::hostile) const PAYLOAD: usize = 18;

/// Returns the 32 bits at offset `at`, or 0 if the segment is too short.
pub(in crate::hostile) fn word(octets: &[u8], at: usize) -> u32 {
    octets.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}

/// Sets the 32 bits at offset `at`, if the segment is long enough.
pub(in crate::hostile) fn set_word(octets: &mut [u8], at: usize, value: u32) {
    if let Some(word) = octets.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *word = value.to_be_bytes();
    }
}

/// Changes the 32 bits at offset `at`, if the segment is long enough.
pub(in crate::hostile) fn change_word(octets: &mut [u8], at: usize, change: impl FnOnce(u32) -> u32) {
    let right = word(octets, at);
    set_word(octets, at, change(right));
}

/// Adds `by` to the 32 bits at offset `at`, if the segment is long enough.
pub(in crate::hostile) fn add(octets: &mut [u8], at: usize, by: u32) {
    change_word(octets, at, |word| word.wrapping_add(by));
}

/// Changes the byte at offset `at`, if the segment is long enough.
pub(in crate::hostile) fn octet(octets: &mut [u8], at: usize, change: impl FnOnce(&mut u8)) {
    if let Some(octet) = octets.get_mut(at) {
        change(octet);
    }
}

/// Converts an untagged segment to a tagged segment with the same opcode, STag 0 and TO 0.
pub(in crate::hostile) fn make_tagged(octets: &mut Vec<u8>) {
    if !is_tagged(octets) && octets.len() >= PAYLOAD {
        octet(octets, 0, |control| *control |= 0x80);
        octets.splice(2..PAYLOAD, [0; 12]);
    }
}

/// Converts a tagged segment to an untagged segment with the same opcode, queue 0, MSN 1 and MO 0.
pub(in crate::hostile) fn make_untagged(octets: &mut Vec<u8>) {
    if is_tagged(octets) && octets.len() >= 14 {
        octet(octets, 0, |control| *control &= !0x80);
        octets.splice(2..14, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first byte of each segment is 1 if the segment is selected. The second byte is the
    /// number of the segment.
    #[test]
    fn swap_drops_no_segment() {
        let (mut state, mut numbers) = (DeviationState::default(), Vec::new());
        for octets in [[1, 0], [1, 1], [1, 2], [0, 3], [1, 4], [1, 5]] {
            let mut sent = SentSegment::right(octets.to_vec(), &mut state);
            sent.swap(|octets| octets[0] == 1);
            numbers.extend(sent.out.iter().map(|octets| octets[1]));
        }
        assert_eq!(numbers, [1, 0, 2, 3, 5, 4]);
    }
}
