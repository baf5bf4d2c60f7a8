//! CRC32c as MPA uses it (RFC 5044 section 4.4; RFC 3385 Appendix B defines the polynomial).
//!
//! The CRC field is the only little-endian field of the stack: the least significant octet comes
//! first. The module [`crate::wire::mpa::fpdu`] defines which octets the CRC covers.
//!
//! This module uses two crates. To continue a CRC with fewer than 256 more octets, this module uses
//! crc32c, which is faster for short input. For all other input, this module uses crc-fast. For 700
//! octets, crc-fast needs half of the time that crc32c needs. For 1,400 octets, crc-fast needs a
//! quarter of the time of crc32c. To continue a CRC with 32,748 more octets, crc-fast needs an
//! eighth of the time of crc32c.

use crc_fast::{CrcAlgorithm, Digest};

/// Length in octets of the CRC field at the end of an FPDU.
pub const CRC_LEN: usize = 4;

/// Returns the CRC32c of `octets` as a number (0xE3069283 for "123456789").
#[must_use]
pub fn crc32c(octets: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(octets)
}

/// Minimum number of octets for which [`append`] uses crc-fast. For long input, crc-fast is faster
/// than crc32c.
const LONG: usize = 256;

/// Continues a CRC. If `crc` is the CRC32c of some octets, returns the CRC32c of those octets
/// followed by `octets`.
#[must_use]
pub fn append(crc: u32, octets: &[u8]) -> u32 {
    if octets.len() < LONG {
        return ::crc32c::crc32c_append(crc, octets);
    }
    // The internal state of crc-fast is the complement of the CRC.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(octets);
    u32::try_from(digest.finalize()).unwrap_or_default()
}

/// Returns the four octets of the CRC field in transmission order (little endian).
#[must_use]
pub fn to_octets(crc: u32) -> [u8; CRC_LEN] {
    crc.to_le_bytes()
}

/// Returns the CRC32c that the four octets of a CRC field express (little endian).
#[must_use]
pub fn from_octets(octets: [u8; CRC_LEN]) -> u32 {
    u32::from_le_bytes(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected CRC fields are in transmission order. They are from RFC 3720 appendix B.4.
    #[test]
    fn rfc3720_vectors() {
        let mut iscsi_read = [0u8; 48];
        iscsi_read[0] = 0x01;
        iscsi_read[1] = 0xc0;
        iscsi_read[16] = 0x14;
        iscsi_read[22] = 0x04;
        iscsi_read[27] = 0x14;
        iscsi_read[31] = 0x18;
        iscsi_read[32] = 0x28;
        iscsi_read[40] = 0x02;
        let up: Vec<u8> = (0..32).collect();
        let down: Vec<u8> = (0..32).rev().collect();
        for (octets, field) in [
            (&b"123456789"[..], [0x83, 0x92, 0x06, 0xe3]),
            (&[0; 32], [0xaa, 0x36, 0x91, 0x8a]),
            (&[0xff; 32], [0x43, 0xab, 0xa8, 0x62]),
            (&up, [0x4e, 0x79, 0xdd, 0x46]),
            (&down, [0x5c, 0xdb, 0x3f, 0x11]),
            (&iscsi_read, [0x56, 0x3a, 0x96, 0xd9]),
        ] {
            assert_eq!(to_octets(crc32c(octets)), field);
        }
    }

    #[test]
    fn agrees_with_a_slow_twin_in_any_split() {
        let slow = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
        // The lengths include those near `LONG`, and those near the lengths at which the crates
        // start to use SIMD instructions.
        let any = proptest::collection::vec(proptest::num::u8::ANY, 0..4 * LONG);
        proptest::proptest!(|(octets in any, at: usize)| {
            let (a, b) = octets.split_at(at % (octets.len() + 1));
            proptest::prop_assert_eq!(append(crc32c(a), b), slow.checksum(&octets));
        });
    }
}
