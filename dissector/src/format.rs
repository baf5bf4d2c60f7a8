//! Formats numbers and octets as text. Most functions append to a buffer that the caller reuses,
//! because `format!` is too slow for every field of every unit.

/// Defines an enum with a method `name`. The name of each variant is after the sign `=`.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        pub enum $type {
            $($(#[$doc])* $variant,)+
        }

        impl $type {
            /// The name in JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }
    };
}
pub(crate) use named;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The numbers 0 to 99 as two decimal digits each.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The octets 0 to 255 as two hexadecimal digits each.
static HEX_PAIRS: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let mut octet = 0;
    while octet < 256 {
        pairs[octet] = [HEX[octet >> 4], HEX[octet & 15]];
        octet += 1;
    }
    pairs
};

/// Appends a number in decimal.
#[inline]
pub(crate) fn decimal(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let count = value.checked_ilog10().map_or(1, |log| log as usize + 1);
    let (mut at, mut left) = (count, value);
    while at >= 2 {
        at -= 2;
        [digits[at], digits[at + 1]] = PAIRS[(left % 100) as usize];
        left /= 100;
    }
    if at == 1 {
        digits[0] = b'0' + left as u8;
    }
    append(&digits, count, out);
}

/// Appends a number in hexadecimal, with at least `least` digits. The largest number of digits is
/// 16.
#[inline]
pub(crate) fn hex_number(value: u64, least: u8, out: &mut Vec<u8>) {
    let needed = (64 - value.leading_zeros()).div_ceil(4) as usize;
    let count = needed.max(usize::from(least)).clamp(1, 16);
    // Move the first digit to the highest bits. Then each octet has the next two digits.
    let octets = (value << (64 - 4 * count)).to_be_bytes();
    let mut digits = [0u8; 16];
    for (pair, octet) in digits.as_chunks_mut::<2>().0.iter_mut().zip(octets) {
        *pair = HEX_PAIRS[usize::from(octet)];
    }
    append(&digits, count, out);
}

/// Appends the first `count` octets of `digits`. Copying all `LEN` octets and truncating is faster
/// than copying `count` octets, because `LEN` is known at compile time.
#[inline]
fn append<const LEN: usize>(digits: &[u8; LEN], count: usize, out: &mut Vec<u8>) {
    let before = out.len();
    out.extend_from_slice(digits);
    out.truncate(before + count);
}

/// Appends octets in hexadecimal, without separators.
pub(crate) fn hex_octets(octets: &[u8], out: &mut Vec<u8>) {
    out.extend(octets.iter().flat_map(|octet| [HEX[usize::from(octet >> 4)], HEX[usize::from(octet & 15)]]));
}

/// Returns the octets that `write` appends, as a string; an empty string if they are not UTF-8.
pub(crate) fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Formats a count with its noun in the singular or plural, for example `2 frames`.
#[must_use]
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_the_standard_library_writes_them() {
        for value in [0, 1, 9, 10, 15, 16, 99, 100, 101, 255, 999, 1000, 0xfff_ffff, 1 << 60, u64::MAX] {
            assert_eq!(text(|out| decimal(value, out)), value.to_string());
            assert_eq!(text(|out| hex_number(value, 0, out)), format!("{value:x}"));
            assert_eq!(text(|out| hex_number(value, 4, out)), format!("{value:04x}"));
            assert_eq!(text(|out| hex_number(value, 16, out)), format!("{value:016x}"));
        }
        assert_eq!(text(|out| hex_octets(&[0, 0x9a, 0xff], out)), "009aff");
    }
}
