//! [`Output`]: passes the fields of a message of a protocol above RDMAP to a visitor.

use std::ops::Range;

use super::field::{Base, Field, Group, Value, Visitor};

/// A field, its offset in a message, and its length. Offset and length are in octets.
pub(super) type Row = (&'static Field, usize, usize);

/// A visitor, and the location of a message in the unit.
pub(super) struct Output<'v, V> {
    visitor: &'v mut V,
    /// Offset of the message in the unit; `None` if octets of the message are in other units.
    start: Option<usize>,
    /// Offset after the last octet of the unit.
    end: usize,
}

impl<'v, V: Visitor> Output<'v, V> {
    pub(super) fn new(visitor: &'v mut V, start: Option<usize>, end: usize) -> Self {
        Output { visitor, start, end }
    }

    /// Converts offsets in the message to offsets in the unit. If the octets are in another unit,
    /// the range is empty.
    fn range(&self, at: Range<usize>) -> Range<usize> {
        let range = self.start.and_then(|start| Some(start.checked_add(at.start)?..start.checked_add(at.end)?));
        range.filter(|range| range.end <= self.end).unwrap_or(self.end..self.end)
    }

    /// Reports the start of a group with the octets `at` of the message.
    pub(super) fn enter(&mut self, group: &'static Group, at: Range<usize>) {
        let at = self.range(at);
        self.visitor.enter(group, at);
    }

    /// Reports the end of the group.
    pub(super) fn leave(&mut self) {
        self.visitor.leave();
    }

    /// Reports a group for each item. `visit` reports the fields of an item.
    pub(super) fn list<T>(
        &mut self,
        group: &'static Group,
        items: impl IntoIterator<Item = T>,
        mut visit: impl FnMut(T, &mut Self),
    ) {
        self.visitor.begin_list(group);
        for item in items {
            let end = self.end;
            self.visitor.enter(group, end..end);
            visit(item, self);
            self.visitor.leave();
        }
        self.visitor.end_list();
    }

    /// Reports a field with the octets `at` of the message.
    pub(super) fn value(&mut self, field: &'static Field, value: Value<'_>, at: Range<usize>) {
        let at = self.range(at);
        self.visitor.field(field, value, at);
    }

    /// Reports a number with the octets `at` of the message.
    pub(super) fn uint(&mut self, field: &'static Field, value: impl Into<u64>, at: Range<usize>) {
        self.value(field, Value::Uint(value.into()), at);
    }

    /// Reports the bits of `word` that the mask of the field selects.
    pub(super) fn bits(&mut self, field: &'static Field, word: impl Into<u64>, at: Range<usize>) {
        self.uint(field, masked(field, word.into()), at);
    }

    /// Reports the octets `at` of the message. `octets` are these octets.
    pub(super) fn octets(&mut self, field: &'static Field, octets: &[u8], at: Range<usize>) {
        self.value(field, Value::Octets(octets), at);
    }

    /// Reports the fields of `rows`. `message` has the first octets of the message.
    pub(super) fn rows(&mut self, rows: &[Row], message: &[u8]) {
        for &(field, at, len) in rows {
            let Some(octets) = message.get(at..at + len) else { continue };
            let number = octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet));
            let value = match (field.base, field.mask) {
                (Base::Octets, _) => Value::Octets(octets),
                (_, 0) => Value::Uint(number),
                _ => Value::Uint(masked(field, number)),
            };
            self.value(field, value, at..at + len);
        }
    }

    /// Reports a value without octets.
    fn without_octets(&mut self, field: &'static Field, value: Value<'_>) {
        let end = self.end;
        self.visitor.field(field, value, end..end);
    }

    /// Reports a name of a peer. The field has no octets, because they are UTF-16 on the wire.
    pub(super) fn peer_text(&mut self, field: &'static Field, text: &str) {
        self.without_octets(field, Value::PeerText(text));
    }

    /// Reports a name that weft derives. It has no octets.
    pub(super) fn name(&mut self, field: &'static Field, name: &'static str) {
        self.without_octets(field, Value::Text(name));
    }

    /// Reports a number that weft derives. It has no octets.
    pub(super) fn derived(&mut self, field: &'static Field, value: impl Into<u64>) {
        self.without_octets(field, Value::Uint(value.into()));
    }
}

/// The bits of `word` that the mask of the field selects.
fn masked(field: &Field, word: u64) -> u64 {
    (word & field.mask) >> field.mask.trailing_zeros().min(63)
}
