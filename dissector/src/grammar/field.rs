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

    /// A field. `at` is empty for what is derived and has no octets of its own.
    fn field(&mut self, field: &'static Field, value: Value<'_>, at: Range<usize>);
}

/// Declares the fields of a protocol as statics, and the list of them all.
macro_rules! fields {
    ($($(#[$doc:meta])* $id:ident: $name:literal, $label:literal, $base:expr, $section:literal $(, mask $mask:literal)? $(, names $names:expr)?;)*) => {
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
