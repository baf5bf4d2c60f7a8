//! Writes the checksums of a changed frame (RFC 1071). A correct checksum stays correct, and a
//! wrong checksum stays wrong. A checksum that the network card had to insert stays absent.

use std::ops::Range;

/// The difference between a wrong checksum and the correct checksum, after the change of the frame.
/// The original difference would depend on the replaced bytes.
const WRONG: u16 = 0x5a5a;

/// The pseudo-header of a TCP or UDP checksum, or of an ICMPv6 checksum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pseudo {
    /// Sum of the two addresses before the change.
    pub(super) before: u64,
    /// Sum of the two addresses after the change.
    pub(super) after: u64,
    /// The number of the protocol.
    pub(super) protocol: u8,
}

impl Pseudo {
    /// The sums that a network card expects in the field if it has to insert the checksum: without
    /// and with the length.
    fn partial(addresses: u64, protocol: u8, len: usize) -> [u16; 2] {
        let without_length = addresses + u64::from(protocol);
        [fold(without_length), fold(without_length + len as u64)]
    }
}

/// A checksum field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// The bytes of the frame that the checksum covers.
    pub(super) covered: Range<usize>,
    /// Offset of the field in the frame.
    pub(super) at: usize,
    /// The pseudo-header; `None` for an IPv4 header and for ICMP.
    pub(super) pseudo: Option<Pseudo>,
    /// Whether all covered bytes were captured.
    pub(super) is_complete: bool,
}

impl Field {
    /// Writes the field in the changed frame `after`. `before` is the original frame.
    pub(super) fn write(&self, before: &[u8], after: &mut [u8]) {
        let Some(&[high, low]) = before.get(self.at..).and_then(<[u8]>::first_chunk::<2>) else { return };
        let (Some(old), Some(new)) = (before.get(self.covered.clone()), after.get(self.covered.clone())) else {
            return;
        };
        let field = u16::from_be_bytes([high, low]);
        let len = self.covered.len();
        let (mut partial, mut new_partial) = ([0; 2], [0; 2]);
        let (mut old_sum, mut new_sum) = (sum(old), sum(new));
        if let Some(Pseudo { before, after, protocol }) = self.pseudo {
            partial = Pseudo::partial(before, protocol, len);
            new_partial = Pseudo::partial(after, protocol, len);
            old_sum += u64::from(partial[1]);
            new_sum += u64::from(new_partial[1]);
        }
        // The field of the changed frame is not a part of its own checksum.
        let within = self.at.saturating_sub(self.covered.start);
        new_sum += u64::from(!stored(new, within));
        let right = match !fold(new_sum) {
            // In one's complement, 0 and 0xffff are the same number, but a field of 0 means that
            // there is no checksum.
            0 => 0xffff,
            right => right,
        };
        let value = if field == 0 {
            0
        } else if self.pseudo.is_some() && field == partial[0] {
            new_partial[0]
        } else if self.pseudo.is_some() && field == partial[1] {
            new_partial[1]
        } else if !self.is_complete || fold(old_sum) == 0xffff {
            right
        } else {
            wrong(right, new_partial)
        };
        if let Some(out) = after.get_mut(self.at..).and_then(<[u8]>::first_chunk_mut::<2>) {
            *out = value.to_be_bytes();
        }
    }
}

/// The number at offset `at`.
fn stored(octets: &[u8], at: usize) -> u16 {
    octets.get(at..).and_then(<[u8]>::first_chunk::<2>).map_or(0, |field| u16::from_be_bytes(*field))
}

/// A wrong checksum: not `right`, and none of the values that mean that there is no checksum.
fn wrong(right: u16, partial: [u16; 2]) -> u16 {
    let mut value = right.wrapping_add(WRONG);
    while [0, 0xffff, right, partial[0], partial[1]].contains(&value) {
        value = value.wrapping_add(WRONG);
    }
    value
}

/// The sum of the 16-bit numbers in `octets`. If there is a single byte at the end, a zero byte
/// follows it.
pub(super) fn sum(octets: &[u8]) -> u64 {
    let pairs = octets.chunks_exact(2);
    let last = pairs.remainder().first().map_or(0, |last| u64::from(*last) << 8);
    pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u64>() + last
}

/// The one's complement sum as a number of 16 bits.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The IPv4 header of the example in many texts about RFC 1071. Its checksum is 0xb861.
    const HEADER: [u8; 20] =
        [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];

    fn written(before: &[u8], pseudo: Option<Pseudo>, is_complete: bool) -> u16 {
        let mut after = before.to_vec();
        after[19] = 0x56;
        let field = Field { covered: 0..20, at: 10, pseudo, is_complete };
        field.write(before, &mut after);
        // A second change does not change the result.
        let mut again = after.clone();
        field.write(&after, &mut again);
        assert_eq!(again, after);
        u16::from_be_bytes([after[10], after[11]])
    }

    #[test]
    fn a_correct_checksum_stays_correct() {
        // The changed byte is smaller by 0x71, so the checksum is larger by 0x71.
        assert_eq!(written(&HEADER, None, true), 0xb861 + 0x71);
        assert_eq!(written(&HEADER, None, false), 0xb861 + 0x71);
    }

    #[test]
    fn a_wrong_checksum_stays_wrong_and_an_absent_checksum_stays_absent() {
        let mut header = HEADER;
        header[11] ^= 1;
        let found = written(&header, None, true);
        assert!(![0, 0xffff, 0xb861 + 0x71].contains(&found), "{found:#x}");
        header[10..12].fill(0);
        assert_eq!(written(&header, None, true), 0);
        // The field has the sum of the pseudo-header with the addresses 1 and protocol 6.
        let pseudo = Pseudo { before: 1, after: 1, protocol: 6 };
        for partial in [7_u16, 27] {
            header[10..12].copy_from_slice(&partial.to_be_bytes());
            assert_eq!(written(&header, Some(pseudo), true), partial);
        }
    }
}
