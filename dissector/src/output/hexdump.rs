//! Formats octets as a hex dump: lines of sixteen octets with offset, hexadecimal digits and ASCII.

use std::fmt::Write as _;

const WIDTH: usize = 16;

/// Returns the hex dump of `octets`. The first octet has offset `base`, and each line starts with
/// `indent` blanks.
#[must_use]
pub fn hexdump(octets: &[u8], base: usize, indent: usize) -> String {
    let mut out = String::with_capacity(octets.len() * 5);
    for (row, line) in octets.chunks(WIDTH).enumerate() {
        let _ = write!(out, "{:indent$}{:04x} ", "", base + row * WIDTH);
        for at in 0..WIDTH {
            if at % 8 == 0 {
                out.push(' ');
            }
            let _ = match line.get(at) {
                Some(octet) => write!(out, "{octet:02x} "),
                None => write!(out, "   "),
            };
        }
        out.push(' ');
        out.extend(line.iter().map(|o| if (0x20..0x7f).contains(o) { char::from(*o) } else { '.' }));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::hexdump;

    #[test]
    fn lines_have_sixteen_octets_and_the_last_keeps_its_columns() {
        let octets: Vec<u8> = (b'A'..=b'R').collect();
        let expected = "0010  41 42 43 44 45 46 47 48  49 4a 4b 4c 4d 4e 4f 50  ABCDEFGHIJKLMNOP\n\
                        0020  51 52                                             QR\n";
        assert_eq!(hexdump(&octets, 16, 0), expected);
        assert_eq!(hexdump(&[], 0, 2), "");
    }
}
