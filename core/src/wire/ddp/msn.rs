//! The message sequence number (MSN) of an untagged message.

use std::fmt;

use zerocopy::network_endian::U32;

/// A message sequence number, modulo 2^32 (RFC 5041 section 4.3). Each queue counts its messages
/// separately. The first message of a queue has number 1 (DDP-4.3-7), and the message after number
/// 2^32 - 1 has number 0 (DDP-4.3-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Msn(u32);

impl Msn {
    /// The number of the first message of a queue.
    pub const FIRST: Msn = Msn(1);

    /// The number with these 32 bits.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Msn(number)
    }

    /// The 32 bits of the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number of the next message.
    #[must_use]
    pub const fn next(self) -> Self {
        Msn(self.0.wrapping_add(1))
    }

    /// Number of messages from the message with number `earlier` to this message, modulo 2^32. If
    /// this message is before `earlier`, the result is 2^31 or more.
    #[must_use]
    pub const fn messages_since(self, earlier: Msn) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns whether this number is `other`, or one of the 2^31 - 1 numbers after `other`.
    #[must_use]
    pub const fn is_at_or_after(self, other: Msn) -> bool {
        self.messages_since(other) < 1 << 31
    }
}

impl From<Msn> for U32 {
    fn from(msn: Msn) -> U32 {
        U32::new(msn.0)
    }
}

impl fmt::Display for Msn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_follows_the_largest_number() {
        let last = Msn::new(u32::MAX);
        assert_eq!((last.next(), Msn::FIRST.messages_since(last)), (Msn::new(0), 2));
        assert!(Msn::FIRST.is_at_or_after(last) && last.is_at_or_after(last));
        assert!(!last.is_at_or_after(Msn::FIRST));
    }
}
