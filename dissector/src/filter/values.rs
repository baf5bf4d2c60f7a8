//! [`Values`]: the values of requested fields for one unit or frame. The next unit or frame reuses
//! the memory of [`Values`].

use std::io::Write as _;
use std::net::IpAddr;
use std::ops::Range;

use crate::calendar::{CalendarTime, seconds};
use crate::format::{decimal, hex_number, hex_octets};
use crate::grammar::Value;

use super::known::{Kind, KnownField, Show};

/// The index of a requested field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub(super) u16);

/// One value. Octets and variable text are ranges of `arena` in [`Values`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldValue {
    Number(u64),
    Octets(Range<usize>),
    StaticText(&'static str),
    Address(IpAddr),
    /// Time in nanoseconds.
    Time(u64),
    /// Difference of two times in nanoseconds.
    Difference(i64),
    Present,
}

impl FieldValue {
    /// The number or time; `None` for other values.
    pub(super) fn number(&self) -> Option<i128> {
        match self {
            FieldValue::Number(value) | FieldValue::Time(value) => Some((*value).into()),
            FieldValue::Difference(value) => Some((*value).into()),
            FieldValue::Octets(_) | FieldValue::StaticText(_) | FieldValue::Address(_) | FieldValue::Present => None,
        }
    }
}

/// Values of requested fields, in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct Values {
    entries: Vec<(Slot, FieldValue)>,
    arena: Vec<u8>,
}

impl Values {
    /// Removes all values.
    #[inline]
    pub fn clear(&mut self) {
        self.entries.clear();
        self.arena.clear();
    }

    /// Approximate memory of the values in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.entries.len() * size_of::<(Slot, FieldValue)>() + self.arena.len()
    }

    #[inline]
    pub(crate) fn add(&mut self, slot: Slot, value: FieldValue) {
        self.entries.push((slot, value));
    }

    pub(super) fn add_octets(&mut self, slot: Slot, octets: &[u8]) {
        let start = self.arena.len();
        self.arena.extend_from_slice(octets);
        self.entries.push((slot, FieldValue::Octets(start..start + octets.len())));
    }

    /// Adds a value from the grammar. As in tshark, an empty sequence of octets is not a value.
    /// Each marker is a separate value, and so is each of several texts.
    #[inline]
    pub(super) fn add_value(&mut self, slot: Slot, value: Value<'_>) {
        match value {
            Value::Uint(value) => self.add(slot, FieldValue::Number(value)),
            Value::Octets([]) => {}
            Value::Octets(octets) => self.add_octets(slot, octets),
            Value::Text(word) => self.add(slot, FieldValue::StaticText(word)),
            Value::PeerText(text) => self.add_octets(slot, text.as_bytes()),
            Value::PeerTexts(texts) => {
                for text in texts {
                    self.add_octets(slot, text.as_bytes());
                }
            }
            Value::Address(address) => self.add(slot, FieldValue::Address(address)),
            Value::Pointers(markers) => {
                for [_, _, high, low] in markers.iter().flatten() {
                    self.add(slot, FieldValue::Number(u64::from(u16::from_be_bytes([*high, *low]))));
                }
            }
        }
    }

    /// Appends all values of `other`.
    pub fn append(&mut self, other: &Values) {
        let base = self.arena.len();
        self.arena.extend_from_slice(&other.arena);
        self.entries.extend(other.entries.iter().map(|(slot, value)| {
            let value = match value {
                FieldValue::Octets(range) => FieldValue::Octets(range.start + base..range.end + base),
                other => other.clone(),
            };
            (*slot, value)
        }));
    }

    #[inline]
    pub(crate) fn of(&self, slot: Slot) -> impl Iterator<Item = &FieldValue> {
        self.entries.iter().filter(move |(at, _)| *at == slot).map(|(_, value)| value)
    }

    pub(super) fn octets(&self, range: &Range<usize>) -> &[u8] {
        self.arena.get(range.clone()).unwrap_or(&[])
    }

    /// The numbers of the field `slot`, and its times in nanoseconds. Other values are omitted.
    pub fn numbers(&self, slot: Slot) -> impl Iterator<Item = i128> {
        self.of(slot).filter_map(FieldValue::number)
    }

    /// Number of values of the field `slot`.
    #[must_use]
    pub fn count(&self, slot: Slot) -> usize {
        self.of(slot).count()
    }

    /// Appends each value of the field `slot` to `out`, in the format of tshark. `between` appends
    /// the separator between two values. Returns the number of values.
    #[inline]
    pub fn write(
        &self,
        slot: Slot,
        known: &KnownField,
        out: &mut Vec<u8>,
        mut between: impl FnMut(&mut Vec<u8>),
    ) -> usize {
        let mut count = 0;
        for value in self.of(slot) {
            if count > 0 {
                between(out);
            }
            self.write_one(value, known, out);
            count += 1;
        }
        count
    }

    /// Appends the first value of the field `slot` to `out`, or the last value if `last` is set.
    /// Returns whether the field has a value.
    pub fn write_first_or_last(&self, slot: Slot, known: &KnownField, last: bool, out: &mut Vec<u8>) -> bool {
        let value = if last { self.of(slot).last() } else { self.of(slot).next() };
        if let Some(value) = value {
            self.write_one(value, known, out);
        }
        value.is_some()
    }

    #[inline]
    fn write_one(&self, value: &FieldValue, known: &KnownField, out: &mut Vec<u8>) {
        if let FieldValue::Number(value) = value {
            write_number(*value, known, out);
        } else {
            self.write_other(value, known, out);
        }
    }

    fn write_other(&self, value: &FieldValue, known: &KnownField, out: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        match value {
            FieldValue::Number(value) => write_number(*value, known, out),
            FieldValue::Octets(range) => {
                let octets = self.octets(range);
                if known.show == Show::Mac {
                    for (index, octet) in octets.iter().enumerate() {
                        let _ = write!(out, "{}{octet:02x}", if index > 0 { ":" } else { "" });
                    }
                } else if known.kind == Kind::Text && std::str::from_utf8(octets).is_ok() {
                    out.extend_from_slice(octets);
                } else {
                    hex_octets(octets, out);
                }
            }
            FieldValue::StaticText(word) => out.extend_from_slice(word.as_bytes()),
            FieldValue::Address(address) => {
                let _ = write!(out, "{address}");
            }
            FieldValue::Time(time) if known.kind == Kind::Date => {
                out.extend_from_slice(CalendarTime::of(*time).in_words().as_bytes());
            }
            FieldValue::Difference(difference) => out.extend_from_slice(seconds(*difference, 9).as_bytes()),
            FieldValue::Time(time) => {
                let _ = write!(out, "{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
            }
            // tshark prints 1 for a part of a header without a value.
            FieldValue::Present if known.show == Show::Dec => out.push(b'1'),
            FieldValue::Present => out.extend_from_slice(known.name.as_bytes()),
        }
    }
}

/// Appends a number in the format of tshark.
#[inline]
pub(crate) fn write_number(value: u64, known: &KnownField, out: &mut Vec<u8>) {
    match known.show {
        Show::Dec | Show::Plain | Show::Mac => decimal(value, out),
        Show::Hex(digits) => {
            out.extend_from_slice(b"0x");
            hex_number(value, digits, out);
        }
        Show::HexOctets(octets) => hex_number(value, 2 * octets, out),
        Show::Name => match known.names.and_then(|names| names(value)) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => decimal(value, out),
        },
    }
}
