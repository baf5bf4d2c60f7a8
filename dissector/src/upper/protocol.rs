//! A protocol above RDMAP, as the recognition sees it.

use std::fmt;

use crate::direction::Direction;
use crate::parse::SegmentView;

/// A protocol above RDMAP, with what it remembers of one connection.
///
/// Only the parsed beginning of a message is kept; nothing is allocated.
pub(super) trait Protocol: fmt::Debug + Clone + Default {
    /// The name in JSON and in filters.
    const NAME: &'static str;
    /// The name in text.
    const TITLE: &'static str;
    /// A parsed message.
    type Message: Message;

    /// Tests the bytes at the beginning of a Send. `is_complete`: nothing follows them.
    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Self::Message>;

    /// Notes a complete message that passed the test, on a connection without a name.
    fn message(&mut self, _direction: Direction, _message: &Self::Message) {}

    /// Notes a Read Request on a connection without a name.
    fn read_request(&mut self, _direction: Direction, _view: &SegmentView<'_>) {}

    /// Does this segment of a Read Response prove the protocol?
    fn is_proved_by_response(&self, _direction: Direction, _view: &SegmentView<'_>) -> bool {
        false
    }
}

/// A parsed message of a protocol.
pub(super) trait Message {
    /// The protocol's name for such a message.
    fn name(&self) -> &'static str;

    /// Writes the values of its fields, each after a space.
    ///
    /// # Errors
    ///
    /// If writing fails.
    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The test result for the beginning of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict<M> {
    /// A message of the protocol, if its length fits.
    Is {
        parsed: M,
        len: Len,
        /// Does it prove the protocol by itself?
        proves: bool,
    },
    /// Too few bytes are known.
    Open,
    /// Not a message of the protocol.
    Not,
}

impl<M> Verdict<M> {
    /// The same for a message of any protocol.
    pub(super) fn map<N>(self, to: impl FnOnce(M) -> N) -> Verdict<N> {
        match self {
            Verdict::Is { parsed, len, proves } => Verdict::Is { parsed: to(parsed), len, proves },
            Verdict::Open => Verdict::Open,
            Verdict::Not => Verdict::Not,
        }
    }
}

/// The length in bytes that a message must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Len {
    Exactly(u64),
    AtLeast(u64),
}

impl Len {
    pub(super) fn fits(self, len: u64) -> bool {
        match self {
            Len::Exactly(exactly) => len == exactly,
            Len::AtLeast(least) => len >= least,
        }
    }
}

/// The big-endian 32-bit value at `at`.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}
