//! [`Output`]: passes the fields of a Send to a visitor.

use std::ops::Range;

use crate::grammar::field::{Base, Field, Group, Value, Visitor};

/// A field, its offset in a Send, and its length. Offset and length are in octets.
pub(super) type Row = (&'static Field, usize, usize);

/// A visitor, and the location of a Send in the unit.
pub(super) struct Output<'v, V> {
    visitor: &'v mut V,
    /// Offset of the Send in the unit; `None` if octets of the Send are in other units.
    start: Option<usize>,
    /// Offset after the last octet of the Send in the unit.
    end: usize,
}

impl<'v, V: Visitor> Output<'v, V> {
    pub(super) fn new(visitor: &'v mut V, start: Option<usize>, end: usize) -> Self {
        Output { visitor, start, end }
    }

    /// Converts offsets in the Send to offsets in the unit. If the octets are in another unit, the
    /// range is empty.
    fn range(&self, at: Range<usize>) -> Range<usize> {
        let range = self.start.and_then(|start| Some(start.checked_add(at.start)?..start.checked_add(at.end)?));
        range.filter(|range| range.end <= self.end).unwrap_or(self.end..self.end)
    }

    /// Reports the start of a group with the octets `at` of the Send.
    pub(super) fn enter(&mut self, group: &'static Group, at: Range<usize>) {
        let at = self.range(at);
        self.visitor.enter(group, at);
    }

    /// Reports the end of the group.
    pub(super) fn leave(&mut self) {
        self.visitor.leave();
    }

    /// Reports a field with the octets `at` of the Send.
    pub(super) fn value(&mut self, field: &'static Field, value: Value<'_>, at: Range<usize>) {
        let at = self.range(at);
        self.visitor.field(field, value, at);
    }

    /// Reports a number.
    pub(super) fn uint(&mut self, field: &'static Field, value: impl Into<u64>, at: Range<usize>) {
        self.value(field, Value::Uint(value.into()), at);
    }

    /// Reports the fields of `rows`. `send` has the first octets of the Send.
    pub(super) fn rows(&mut self, rows: &[Row], send: &[u8]) {
        for &(field, at, len) in rows {
            let Some(octets) = send.get(at..at + len) else { continue };
            let number = octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet));
            let value = match (field.base, field.mask) {
                (Base::Octets, _) => Value::Octets(octets),
                (_, 0) => Value::Uint(number),
                (_, mask) => Value::Uint((number & mask) >> mask.trailing_zeros().min(63)),
            };
            self.value(field, value, at..at + len);
        }
    }

    /// Reports a number that weft derives. It has no octets.
    pub(super) fn derived(&mut self, field: &'static Field, value: impl Into<u64>) {
        self.uint(field, value, usize::MAX..usize::MAX);
    }

    /// Reports a name that weft derives. It has no octets.
    pub(super) fn name(&mut self, field: &'static Field, name: &'static str) {
        self.value(field, Value::Text(name), usize::MAX..usize::MAX);
    }
}
