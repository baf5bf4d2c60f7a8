//! What a field is: its name in JSON and filters, its label for people, how its value reads, and where it is specified.

use std::net::IpAddr;
use std::ops::Range;

/// How a value is shown to people. JSON always has plain numbers and hex strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Decimal.
    Dec,
    /// Hexadecimal of so many digits.
    Hex(u8),
    /// 0 or 1.
    Flag,
    /// Octets, in hexadecimal.
    Octets,
    /// Words or an address.
    Text,
}

/// One field of one header.
#[derive(Debug)]
pub struct Field {
    /// Its name in JSON and filters.
    pub name: &'static str,
    /// Its name in its specification.
    pub label: &'static str,
    /// How its value is shown.
    pub base: Base,
    /// The bits of the octets at its range that it has; 0: all of them.
    pub mask: u64,
    /// Where it is specified.
    pub section: &'static str,
    /// Names of its values.
    pub names: Option<fn(u64) -> Option<&'static str>>,
    /// Its protocol's number, and its bit among the fields of that.
    pub(crate) place: (usize, u64),
}

/// Some of all fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FieldSet([u64; PROTOCOLS]);

/// Protocols that declare fields.
const PROTOCOLS: usize = 7;

impl FieldSet {
    /// Adds a field.
    pub(crate) fn add(&mut self, field: &Field) {
        self.0[field.place.0] |= field.place.1;
    }

    /// Takes a field out.
    pub(crate) fn remove(&mut self, field: &Field) {
        self.0[field.place.0] &= !field.place.1;
    }

    /// Is it one of them?
    #[inline(always)] // of a field that is known when compiling little more is left than a test of a bit
    pub(crate) fn has(&self, field: &Field) -> bool {
        self.0[field.place.0] & field.place.1 != 0
    }

    /// Is there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }
}

/// A header or frame: fields that stand together.
#[derive(Debug)]
pub struct Group {
    /// Its name in filters.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// Where it is specified.
    pub section: &'static str,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A number.
    Uint(u64),
    /// Octets.
    Octets(&'a [u8]),
    /// A word.
    Text(&'static str),
    /// An address.
    Address(IpAddr),
    /// FPDUPTR of each marker; `None` where it was not captured.
    Pointers(&'a [Option<[u8; 4]>]),
}

/// Is told what a grammar meets, in the order of the octets.
pub trait Visitor {
    /// A header begins; its octets are `at`.
    fn enter(&mut self, group: &'static Group, at: Range<usize>) {
        let _ = (group, at);
    }

    /// The header that began last ends.
    fn leave(&mut self) {}

    /// Does it know all of this unit that it wants to? Then the grammar may leave the rest out.
    fn is_satisfied(&self) -> bool {
        false
    }

    /// A field. `at` is empty for what is derived and has no octets of its own.
    fn field(&mut self, field: &'static Field, value: Value<'_>, at: Range<usize>);
}

/// Declares the fields of a protocol, which has a number of its own, as statics, and the list of them all.
macro_rules! fields {
    ($protocol:literal: $($(#[$doc:meta])* $id:ident: $name:literal, $label:literal, $base:expr, $section:literal $(, mask $mask:literal)? $(, names $names:expr)?;)*) => {
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
                place: ($protocol, 1 << Bit::$id as u64),
            };
        )*
        /// Every field of this protocol.
        pub static FIELDS: &[&Field] = &[$(&$id),*];
    };
    (@mask) => { 0 };
    (@mask $mask:literal) => { $mask };
    (@names) => { None };
    (@names $names:expr) => { Some($names) };
}
pub(super) use fields;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::grammar;

    #[test]
    fn every_field_has_a_place_of_its_own() {
        let places: BTreeSet<_> = grammar::fields().map(|field| field.place).collect();
        assert_eq!(places.len(), grammar::fields().count());
    }

    #[test]
    fn a_set_holds_what_was_added_and_not_taken_out() {
        let mut set = FieldSet::default();
        set.add(&grammar::mpa::PAD);
        set.add(&grammar::ddp::STAG);
        set.remove(&grammar::mpa::PAD);
        assert!(set.has(&grammar::ddp::STAG) && !set.has(&grammar::mpa::PAD) && !set.has(&grammar::ddp::QN));
        set.remove(&grammar::ddp::STAG);
        assert!(set.is_empty());
    }
}
