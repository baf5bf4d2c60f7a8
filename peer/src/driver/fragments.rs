//! The IP fragments that carry a TCP segment of the tester.

/// The IP fragments that carry a TCP segment (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragments {
    /// Maximum number of payload bytes in a fragment. It is rounded down to a multiple of 8, and is
    /// at least 8.
    pub most: u16,
    /// Whether the fragments leave in the reverse order, the last fragment first.
    pub last_first: bool,
}
