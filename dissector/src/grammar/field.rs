//! Defines what a field is. Each field has a name for JSON and filters, a label, a display format,
//! and a section of the specification.

use std::net::IpAddr;
use std::ops::Range;

/// The display format of a value. JSON always has plain numbers and hexadecimal strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Decimal.
    Dec,
    /// Hexadecimal with this number of digits.
    Hex(u8),
    /// A flag, 0 or 1.
    Flag,
    /// Octets, in hexadecimal.
    Octets,
    /// A name, a sentence or an address.
    Text,
}

/// A field of a header.
#[derive(Debug)]
pub struct Field {
    /// Name in JSON and filters.
    pub name: &'static str,
    /// Name in the specification.
    pub label: &'static str,
    /// Display format of the value.
    pub base: Base,
    /// The bits of this field, if the field shares its octets with other fields. 0 means that the
    /// field has all bits of its octets.
    pub mask: u64,
    /// Section of the specification.
    pub section: &'static str,
    /// Function that returns the name of a value, for fields with named values.
    pub names: Option<fn(u64) -> Option<&'static str>>,
    /// Whether the octets of a number are in little-endian order.
    pub little_endian: bool,
    /// Number of the protocol, and the bit of the field in a [`FieldSet`]. A [`FieldSet`] has one
    /// integer for each protocol.
    pub(crate) bit: (usize, u64),
}

/// A set of fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FieldSet([u64; PROTOCOLS]);

/// Number of protocols that declare fields.
const PROTOCOLS: usize = 20;

impl FieldSet {
    /// Adds a field.
    pub(crate) fn add(&mut self, field: &Field) {
        self.0[field.bit.0] |= field.bit.1;
    }

    /// Removes a field.
    pub(crate) fn remove(&mut self, field: &Field) {
        self.0[field.bit.0] &= !field.bit.1;
    }

    /// Returns whether the set contains the field.
    #[inline(always)] // for a field that is known at compile time, this becomes a bit test
    pub(crate) fn has(&self, field: &Field) -> bool {
        self.0[field.bit.0] & field.bit.1 != 0
    }

    /// Returns whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }
}

/// A header or frame: a group of fields.
#[derive(Debug)]
pub struct Group {
    /// Name in filters.
    pub name: &'static str,
    /// Label for display.
    pub label: &'static str,
    /// Section of the specification.
    pub section: &'static str,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A number.
    Uint(u64),
    /// Octets.
    Octets(&'a [u8]),
    /// A name.
    Text(&'static str),
    /// Text from a peer. It has no control characters.
    PeerText(&'a str),
    /// Several texts from a peer. They have no control characters.
    PeerTexts(&'a [String]),
    /// An address.
    Address(IpAddr),
    /// The four octets of each marker; `None` for a marker that was not captured.
    Pointers(&'a [Option<[u8; 4]>]),
}

/// Receives the fields that a grammar finds, in the order of the octets.
pub trait Visitor {
    /// A header starts. `at` is the range of the header's octets in the unit.
    fn enter(&mut self, group: &'static Group, at: Range<usize>) {
        let _ = (group, at);
    }

    /// The innermost open header ends.
    fn leave(&mut self) {}

    /// A list starts. It has any number of headers of the group `group`.
    fn begin_list(&mut self, group: &'static Group) {
        let _ = group;
    }

    /// The innermost open list ends.
    fn end_list(&mut self) {}

    /// Returns whether the visitor needs no further fields of this unit. If so, the grammar can
    /// skip the rest of the unit.
    fn is_satisfied(&self) -> bool {
        false
    }

    /// Receives a field. `at` is the range of the field's octets in the unit. If the value is
    /// derived and has no octets, `at` is empty.
    fn field(&mut self, field: &'static Field, value: Value<'_>, at: Range<usize>);
}

/// The name at the position `value` of `names`.
pub(crate) fn nth_name(names: &[&'static str], value: u64) -> Option<&'static str> {
    names.get(usize::try_from(value).ok()?).copied()
}

/// Declares each field of a protocol as a static, and declares a list of these fields. Each
/// protocol must pass a different number to the macro.
macro_rules! fields {
    ($protocol:literal: $($(#[$doc:meta])* $id:ident: $name:literal, $label:literal, $base:expr, $section:literal $(, mask $mask:literal)? $(, names $names:expr)? $(, le $le:literal)?;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Bit { $($id),* }
        $(
            $(#[$doc])*
            #[doc = concat!("`", $name, "`, ", $section, ".")]
            pub static $id: Field = Field {
                name: $name,
                label: $label,
                base: $base,
                mask: fields!(@mask $($mask)?),
                section: $section,
                names: fields!(@names $($names)?),
                little_endian: fields!(@le $($le)?),
                bit: ($protocol, 1 << Bit::$id as u64),
            };
        )*
        /// Every field of this protocol.
        pub static FIELDS: &[&Field] = &[$(&$id),*];
    };
    (@mask) => { 0 };
    (@mask $mask:literal) => { $mask };
    (@names) => { None };
    (@names $names:expr) => { Some($names) };
    (@le) => { false };
    (@le $le:literal) => { $le };
}
pub(super) use fields;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::grammar;

    #[test]
    fn every_field_has_its_own_bit() {
        let bits: BTreeSet<_> = grammar::fields().map(|field| field.bit).collect();
        assert_eq!(bits.len(), grammar::fields().count());
    }

    #[test]
    fn a_set_has_what_was_added_and_not_removed() {
        let mut set = FieldSet::default();
        set.add(&grammar::mpa::PAD);
        set.add(&grammar::ddp::STAG);
        set.remove(&grammar::mpa::PAD);
        assert!(set.has(&grammar::ddp::STAG) && !set.has(&grammar::mpa::PAD) && !set.has(&grammar::ddp::QN));
        set.remove(&grammar::ddp::STAG);
        assert!(set.is_empty());
    }
}
