//! CRC32c as MPA uses it (RFC 5044 section 4.4, Appendix B of RFC 3385 for the polynomial).
//!
//! The only little-endian item of the stack: the value is stored least significant octet first. The
//! layout of FPDUs defines the octets that it covers ([`crate::wire::mpa::fpdu`]).
//!
//! Two packages take it: crc-fast where all octets lie in one piece (half the time of the other at
//! 700 octets, a quarter at 1,400) or the piece to go on with is long (an eighth at 32,748), crc32c
//! to go on with a few octets.

use crc_fast::{CrcAlgorithm, Digest};

/// Octets of the CRC field at the end of an FPDU.
pub const CRC_LEN: usize = 4;

/// The CRC32c of `octets`, as the number that the register holds (0xE3069283 for "123456789").
#[must_use]
pub fn crc32c(octets: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(octets)
}

/// Octets of a piece from which on crc-fast is the faster one to go on with.
const LONG: usize = 256;

/// Goes on where `crc` stopped: the CRC32c of all octets so far followed by `octets`.
#[must_use]
pub fn append(crc: u32, octets: &[u8]) -> u32 {
    if octets.len() < LONG {
        return ::crc32c::crc32c_append(crc, octets);
    }
    // The register holds the complement of the field's value.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(octets);
    u32::try_from(digest.finalize()).unwrap_or_default()
}

/// The four octets of the CRC field, in transmission order.
#[must_use]
pub fn to_octets(crc: u32) -> [u8; CRC_LEN] {
    crc.to_le_bytes()
}

/// The register value that a CRC field holds.
#[must_use]
pub fn from_octets(octets: [u8; CRC_LEN]) -> u32 {
    u32::from_le_bytes(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720 B.4, in transmission order.
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
        // On both sides of what is long, and of what either package takes with wide instructions.
        let any = proptest::collection::vec(proptest::num::u8::ANY, 0..4 * LONG);
        proptest::proptest!(|(octets in any, at: usize)| {
            let (a, b) = octets.split_at(at % (octets.len() + 1));
            proptest::prop_assert_eq!(append(crc32c(a), b), slow.checksum(&octets));
        });
    }
}
