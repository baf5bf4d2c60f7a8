//! [`Reader`]: parses fields of a unit with nom, and passes them to a visitor.

use std::ops::Range;

use nom::IResult;
use nom::bytes::complete::take;
use nom::number::complete::{be_u8, be_u16, be_u32, be_u64};

use crate::part::Part;

use super::field::{Field, Group, Value, Visitor};

/// A position in the octets of a unit.
pub struct Reader<'a, 'v, V> {
    part: Part<'a>,
    /// Offset of the part's first octet in the unit.
    base: usize,
    at: usize,
    visitor: &'v mut V,
}

impl<'a, 'v, V: Visitor> Reader<'a, 'v, V> {
    /// A reader at the first octet of `part`. `base` is the offset of this octet in the unit.
    pub fn new(part: Part<'a>, base: usize, visitor: &'v mut V) -> Self {
        Reader { part, base, at: 0, visitor }
    }

    /// The octets that are not read yet.
    #[inline]
    pub fn rest(&self) -> Part<'a> {
        self.part.from(self.at)
    }

    /// The visitor that receives the fields.
    pub fn visitor(&mut self) -> &mut V {
        self.visitor
    }

    /// Number of octets that are not read yet.
    pub fn left(&self) -> usize {
        self.part.len() - self.at.min(self.part.len())
    }

    /// Offset of the next octet in the unit.
    #[inline]
    pub fn position(&self) -> usize {
        self.base + self.at
    }

    /// Reports that a header of `len` octets starts at the next octet.
    pub fn enter(&mut self, group: &'static Group, len: usize) {
        let at = self.position();
        self.visitor.enter(group, at..at + len.min(self.left()));
    }

    /// Reports that the header ends.
    pub fn leave(&mut self) {
        self.visitor.leave();
    }

    /// Applies a parser to the next `len` octets, and moves the reader past these octets. Returns
    /// the value and the range of the octets in the unit. The value is `None` if some of the octets
    /// were not captured.
    #[inline]
    fn parse<O>(
        &mut self,
        len: usize,
        parser: impl FnOnce(&'a [u8]) -> IResult<&'a [u8], O, nom::error::Error<&'a [u8]>>,
    ) -> (Option<O>, Range<usize>) {
        let range = self.at..self.at + len;
        self.at += len;
        let value = self.part.get(range.clone()).and_then(|octets| parser(octets).ok()).map(|(_, value)| value);
        (value, self.base + range.start..self.base + range.end)
    }

    #[inline]
    fn report(&mut self, field: &'static Field, (value, at): (Option<u64>, Range<usize>)) -> Option<u64> {
        if let Some(value) = value {
            self.visitor.field(field, Value::Uint(value), at);
        }
        value
    }

    /// Reads a field of one octet. This method and the next methods return `None` if an octet of
    /// the field was not captured.
    #[inline]
    pub fn u8(&mut self, field: &'static Field) -> Option<u64> {
        let (value, at) = self.parse(1, be_u8);
        self.report(field, (value.map(u64::from), at))
    }

    /// Reads a field of two octets.
    #[inline]
    pub fn u16(&mut self, field: &'static Field) -> Option<u64> {
        let (value, at) = self.parse(2, be_u16);
        self.report(field, (value.map(u64::from), at))
    }

    /// Reads a field of four octets.
    #[inline]
    pub fn u32(&mut self, field: &'static Field) -> Option<u64> {
        let (value, at) = self.parse(4, be_u32);
        self.report(field, (value.map(u64::from), at))
    }

    /// Reads a field of eight octets.
    #[inline]
    pub fn u64(&mut self, field: &'static Field) -> Option<u64> {
        let (value, at) = self.parse(8, be_u64);
        self.report(field, (value, at))
    }

    /// Reads a field of `len` octets.
    pub fn octets(&mut self, field: &'static Field, len: usize) -> Option<&'a [u8]> {
        let (value, at) = self.parse(len, take(len));
        if let Some(octets) = value {
            self.visitor.field(field, Value::Octets(octets), at);
        }
        value
    }

    /// Reads several fields that share `len` (1, 2 or 4) octets. Each field has the bits of its
    /// mask.
    #[inline(always)] // for a visitor with a fixed set of fields, the compiler drops all other fields
    pub fn bits(&mut self, len: usize, fields: &[&'static Field]) -> Option<u64> {
        let (value, at) = match len {
            1 => widen(self.parse(1, be_u8)),
            2 => widen(self.parse(2, be_u16)),
            _ => widen(self.parse(4, be_u32)),
        };
        let word = value?;
        for field in fields {
            let value = (word & field.mask) >> field.mask.trailing_zeros().min(63);
            self.visitor.field(field, Value::Uint(value), at.clone());
        }
        Some(word)
    }

    /// Reports a field. The grammar derived its value from the next `len` octets.
    pub fn derived(&mut self, field: &'static Field, value: Value<'_>, len: usize) {
        let at = self.position();
        self.visitor.field(field, value, at..at + len);
    }

    /// Reports a number of at most eight octets. `range` is the range of these octets, counted from
    /// the next octet. The reader does not move.
    pub fn uint_at(&mut self, field: &'static Field, range: Range<usize>) -> Option<u64> {
        let octets = self.rest().get(range.clone())?;
        let value = octets.iter().fold(0, |value, octet| value << 8 | u64::from(*octet));
        self.report_at(field, Value::Uint(value), range);
        Some(value)
    }

    /// Reports a field with the octets `range`, counted from the next octet. The reader does not
    /// move.
    pub fn report_at(&mut self, field: &'static Field, value: Value<'_>, range: Range<usize>) {
        let at = self.position();
        self.visitor.field(field, value, at + range.start..at + range.end);
    }

    /// Skips octets that belong to no field.
    pub fn skip(&mut self, len: usize) {
        self.at += len;
    }
}

fn widen<T: Into<u64>>((value, at): (Option<T>, Range<usize>)) -> (Option<u64>, Range<usize>) {
    (value.map(Into::into), at)
}
