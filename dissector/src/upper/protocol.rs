//! [`Protocol`]: the interface between the recognition and a protocol above RDMAP.

use std::fmt;

use crate::direction::Direction;
use crate::parse::SegmentView;

/// A protocol above RDMAP. The type has the state that is needed to recognise the protocol on one
/// connection.
///
/// The state stores only the parsed start of a message, and allocates no memory.
pub(super) trait Protocol: fmt::Debug + Clone + Default {
    /// The name in JSON and in filters.
    const NAME: &'static str;
    /// The name in text.
    const TITLE: &'static str;
    /// A parsed message.
    type Message: Message;

    /// Tests whether the first bytes of a Send belong to the protocol. `is_complete` is set if
    /// `bytes` are the complete Send.
    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Self::Message>;

    /// Records a complete message that passed the test of [`Protocol::read`]. This method is called
    /// as long as no protocol is recognised.
    fn message(&mut self, _direction: Direction, _message: &Self::Message) {}

    /// Records a Read Request. This method is called as long as no protocol is recognised.
    fn read_request(&mut self, _direction: Direction, _view: &SegmentView<'_>) {}

    /// Returns whether this segment of a Read Response proves the protocol.
    fn is_proved_by_response(&self, _direction: Direction, _view: &SegmentView<'_>) -> bool {
        false
    }
}

/// A parsed message of a protocol.
pub(super) trait Message {
    /// The name of the message in the specification of the protocol.
    fn name(&self) -> &'static str;

    /// Writes the fields of the message, each after a space.
    ///
    /// # Errors
    ///
    /// Writing to `f` fails.
    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The result of a test of the first bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict<M> {
    /// The bytes are the start of a message of the protocol, if the length of the message fits
    /// `len`.
    Is {
        parsed: M,
        len: Len,
        /// Whether the message alone proves the protocol.
        proves: bool,
    },
    /// The known bytes are too few for a decision.
    Open,
    /// The bytes are not a message of the protocol.
    Not,
}

impl<M> Verdict<M> {
    /// Applies `to` to the parsed message.
    pub(super) fn map<N>(self, to: impl FnOnce(M) -> N) -> Verdict<N> {
        match self {
            Verdict::Is { parsed, len, proves } => Verdict::Is { parsed: to(parsed), len, proves },
            Verdict::Open => Verdict::Open,
            Verdict::Not => Verdict::Not,
        }
    }
}

/// A condition for the length of a message in bytes. Each message of the protocol meets this
/// condition.
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

/// The big-endian 32-bit value at offset `at`; `None` if `bytes` are too short.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}
