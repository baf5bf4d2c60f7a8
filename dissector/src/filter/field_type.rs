//! The types of values, and their output formats.

/// The type of values. The type determines how the values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Numbers.
    Number,
    /// Bytes.
    Octets,
    /// Texts.
    Text,
    /// IPv4 addresses.
    Ipv4,
    /// IPv6 addresses.
    Ipv6,
    /// IPv4 or IPv6 addresses.
    Address,
    /// Seconds with a fraction.
    Time,
    /// Dates with the time of day, in UTC.
    Date,
    /// No values: only the presence can be tested.
    Presence,
}

/// The output format of values. If tshark knows the field, this is the format of tshark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Decimal.
    Dec,
    /// `0x` and this number of hexadecimal digits.
    Hex(u8),
    /// A number in hexadecimal, padded to this many octets, without `0x`.
    HexOctets(u8),
    /// The name of the value, instead of its number.
    Name,
    /// The plain value: octets in hexadecimal, text, addresses, seconds.
    Plain,
    /// Octets in hexadecimal, with colons.
    Mac,
}
