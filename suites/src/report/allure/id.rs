//! The ids of results. They depend only on the given texts, so that the same result always has the
//! same id.

/// The variant of RFC 9562 section 4.1, in the two highest bits of the second half of a UUID.
const VARIANT: u128 = 0b10 << 62;
/// Version 8 (RFC 9562 section 5.8): the other bits have a meaning that only weft knows.
const VERSION: u128 = 8 << 76;
/// The bits that come from the hash.
const HASHED: u128 = !((0b11 << 62) | (0xf << 76));

/// Returns a UUID.
pub(super) fn uuid(parts: &[&str]) -> String {
    let bits = (hash(parts) & HASHED) | VARIANT | VERSION;
    let digits = format!("{bits:032x}");
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

/// Returns an id of 32 hexadecimal digits.
pub(super) fn hexadecimal(parts: &[&str]) -> String {
    format!("{:032x}", hash(parts))
}

/// Returns the hash of the parts, each followed by a byte that UTF-8 does not have.
fn hash(parts: &[&str]) -> u128 {
    let octets: Vec<u8> = parts.iter().flat_map(|part| part.bytes().chain([0xff])).collect();
    fnv1a(&octets)
}

/// FNV-1a with 128 bits.
fn fnv1a(octets: &[u8]) -> u128 {
    octets.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, octet| {
        (hash ^ u128::from(*octet)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are from the test suite of FNV by Landon Curt Noll.
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fnv1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv1a(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        for part in ["a", "b", "foobar", ""] {
            let uuid = uuid(&["run", part]);
            let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
            assert!(uuid.chars().nth(14) == Some('8') && "89ab".contains(&uuid[19..20]), "{uuid}");
        }
        assert_ne!(uuid(&["ab", "c"]), uuid(&["a", "bc"]));
    }
}
