//! Octets for people: hexadecimal, with marked ranges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Octets that were sent or received in one go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Octets {
    /// How many there were.
    pub len: u64,
    /// The first [`Octets::MAX_SHOWN`] of them, two lower-case digits each, without spaces.
    pub hex: String,
    /// Ranges worth looking at, by start.
    pub marks: Vec<Mark>,
}

/// A range of octets with its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// First octet, from the start of the [`Octets`].
    pub start: u64,
    /// First octet after the range.
    pub end: u64,
    /// What it is.
    pub label: String,
    /// Why it is marked.
    pub kind: MarkKind,
}

/// Why a range is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// A field or message, named for the reader.
    Field,
    /// The tester deviates from the correct octets here: the stimulus.
    Stimulus,
    /// The target broke a requirement here.
    Wrong,
}

impl Octets {
    /// Octets that are kept in hexadecimal; the pcapng holds all.
    pub const MAX_SHOWN: usize = 4096;

    /// Unmarked octets.
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

    /// The shown octets, decoded; stops at the first thing that is not hexadecimal.
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
