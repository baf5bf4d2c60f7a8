//! Bytes as hexadecimal text, with marked ranges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes that were sent or received in one step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Octets {
    /// Number of bytes.
    pub len: u64,
    /// The first [`Octets::MAX_SHOWN`] bytes, two lower-case digits for each byte, without spaces.
    pub hex: String,
    /// Marked ranges, sorted by their start.
    pub marks: Vec<Mark>,
}

/// A range of bytes with its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// Offset of the first byte of the range in the [`Octets`].
    pub start: u64,
    /// Offset of the first byte after the range.
    pub end: u64,
    /// Meaning of the range.
    pub label: String,
    /// Reason for the mark.
    pub kind: MarkKind,
}

impl Mark {
    /// Returns the range as text: `byte 7` or `bytes 7 to 9`.
    #[must_use]
    pub fn range_text(&self) -> String {
        match self.end.saturating_sub(1) {
            last if last > self.start => format!("bytes {} to {last}", self.start),
            _ => format!("byte {}", self.start),
        }
    }

    /// Returns whether the range has several bytes.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.end.saturating_sub(1) > self.start
    }
}

/// The reason why a range is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// A field or a message. The label names it for the reader.
    Field,
    /// The stimulus: the tester deviates from the correct bytes here.
    Stimulus,
    /// The target violated a requirement here.
    Wrong,
}

impl Octets {
    /// Maximum number of bytes in [`Octets::hex`]. The pcapng file has all bytes.
    pub const MAX_SHOWN: usize = 4096;

    /// Creates an [`Octets`] without marks.
    #[must_use]
    pub fn new(octets: &[u8]) -> Self {
        let shown = &octets[..octets.len().min(Self::MAX_SHOWN)];
        let mut hex = String::with_capacity(shown.len() * 2);
        for octet in shown {
            for digit in [octet >> 4, octet & 15] {
                hex.push(char::from_digit(u32::from(digit), 16).unwrap_or('?'));
            }
        }
        Octets { len: octets.len() as u64, hex, marks: Vec::new() }
    }

    /// Decodes [`Octets::hex`]. Stops at the first text that is not hexadecimal.
    pub fn shown(&self) -> impl Iterator<Item = u8> + '_ {
        self.hex.as_bytes().chunks_exact(2).map_while(|pair| {
            let digit = |c: u8| char::from(c).to_digit(16);
            u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_back() {
        let octets: Vec<u8> = (0..=255).collect();
        let shown = Octets::new(&octets);
        assert!(shown.hex.starts_with("000102") && shown.hex.ends_with("feff"));
        assert_eq!(shown.shown().collect::<Vec<_>>(), octets);
    }

    #[test]
    fn only_so_many_are_shown() {
        let shown = Octets::new(&vec![7; Octets::MAX_SHOWN + 1]);
        assert_eq!((shown.len, shown.hex.len()), (4097, 8192));
    }
}
