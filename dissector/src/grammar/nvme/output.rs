//! [`Output`]: passes the fields of a capsule to a visitor.

use std::ops::Range;

use crate::grammar::field::{Field, Group, Value, Visitor};

/// A visitor, and the location of a capsule in the unit.
pub(super) struct Output<'v, V> {
    visitor: &'v mut V,
    /// Offset of the capsule in the unit; `None` if octets of the capsule are in other units.
    start: Option<usize>,
    /// Offset after the last octet of the unit.
    end: usize,
}

impl<'v, V: Visitor> Output<'v, V> {
    pub(super) fn new(visitor: &'v mut V, start: Option<usize>, end: usize) -> Self {
        Output { visitor, start, end }
    }

    /// Converts offsets in the capsule to offsets in the unit.
    fn range(&self, at: Range<usize>) -> Range<usize> {
        let start = self.start.and_then(|start| Some(start.checked_add(at.start)?..start.checked_add(at.end)?));
        start.filter(|range| range.end <= self.end).unwrap_or(self.end..self.end)
    }

    /// Reports the start of a group with the octets `at` of the capsule.
    pub(super) fn enter(&mut self, group: &'static Group, at: Range<usize>) {
        let at = self.range(at);
        self.visitor.enter(group, at);
    }

    /// Reports the end of the group.
    pub(super) fn leave(&mut self) {
        self.visitor.leave();
    }

    /// Reports a field with the octets `at` of the capsule. This method and the next methods report
    /// a field that has no octets of its own with an empty range.
    pub(super) fn value(&mut self, field: &'static Field, value: Value<'_>, at: Range<usize>) {
        let at = self.range(at);
        self.visitor.field(field, value, at);
    }

    /// Reports a number.
    pub(super) fn uint(&mut self, field: &'static Field, value: impl Into<u64>, at: Range<usize>) {
        self.value(field, Value::Uint(value.into()), at);
    }

    /// Reports the bits of `octets` that the mask of the field selects.
    pub(super) fn bits(&mut self, field: &'static Field, octets: impl Into<u64>, at: Range<usize>) {
        let value = (octets.into() & field.mask) >> field.mask.trailing_zeros().min(63);
        self.value(field, Value::Uint(value), at);
    }

    /// Reports a name that weft derives.
    pub(super) fn name(&mut self, field: &'static Field, name: &'static str) {
        let end = self.end;
        self.visitor.field(field, Value::Text(name), end..end);
    }

    /// Reports a number that weft derives.
    pub(super) fn derived(&mut self, field: &'static Field, value: impl Into<u64>) {
        let end = self.end;
        self.visitor.field(field, Value::Uint(value.into()), end..end);
    }
}
