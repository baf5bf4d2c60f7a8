//! [`Output`]: passes the fields of a message to a visitor.

use std::ops::Range;

use crate::grammar::field::{Field, Group, Value, Visitor};

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

    /// Converts offsets in the message to offsets in the unit.
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

    /// Reports a number with the octets `at` of the message.
    pub(super) fn uint(&mut self, field: &'static Field, value: impl Into<u64>, at: Range<usize>) {
        let at = self.range(at);
        self.visitor.field(field, Value::Uint(value.into()), at);
    }

    /// Reports the bits of `word` that the mask of the field selects.
    pub(super) fn bits(&mut self, field: &'static Field, word: impl Into<u64>, at: Range<usize>) {
        let value = (word.into() & field.mask) >> field.mask.trailing_zeros().min(63);
        self.uint(field, value, at);
    }

    /// Reports the octets `at` of the message. `octets` are these octets.
    pub(super) fn octets(&mut self, field: &'static Field, octets: &[u8], at: Range<usize>) {
        let at = self.range(at);
        self.visitor.field(field, Value::Octets(octets), at);
    }

    /// Reports a name of a peer. The field has no octets, because they are UTF-16 on the wire.
    pub(super) fn peer_text(&mut self, field: &'static Field, text: &str) {
        let end = self.end;
        self.visitor.field(field, Value::PeerText(text), end..end);
    }

    /// Reports a text that weft derives.
    pub(super) fn text(&mut self, field: &'static Field, text: &'static str) {
        let end = self.end;
        self.visitor.field(field, Value::Text(text), end..end);
    }

    /// Reports a number that weft derives.
    pub(super) fn derived(&mut self, field: &'static Field, value: impl Into<u64>) {
        let end = self.end;
        self.visitor.field(field, Value::Uint(value.into()), end..end);
    }
}
