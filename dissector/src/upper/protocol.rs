//! [`Protocol`]: the interface between the recognition and a protocol above RDMAP.

use std::fmt;
use std::ops::Range;

use super::pdu::PduPart;
use super::startup::{Startup, StartupJudgement};
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;

/// A protocol above RDMAP. The type has the state that is needed to recognise the protocol on one
/// connection, and to explain its messages.
///
/// The state stores no payload. If it allocates memory, the memory has a limit, and
/// [`Protocol::memory`] counts it.
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

    /// Records the private data of a start-up frame.
    fn startup(&mut self, _startup: &Startup<'_>) -> StartupJudgement {
        StartupJudgement::Other
    }

    /// Records a complete message that passed the test of [`Protocol::read`]. Adds what earlier
    /// messages show about it. This method is called as long as no protocol is recognised, and for
    /// each message of the recognised protocol.
    fn message(&mut self, _send: &SendInfo, _message: &mut Self::Message) -> Judgement {
        Judgement::Open
    }

    /// Records a Read Request. This method is called as long as no protocol is recognised, and on
    /// connections with the recognised protocol.
    fn read_request(&mut self, _direction: Direction, _view: &SegmentView<'_>) {}

    /// Converts a complete Send of the protocol for Wireshark. `octets` has the first octets of the
    /// Send, up to the first octet that was not captured. `len` is the length of the Send in octets.
    /// Returns `None` if the Send has no message that Wireshark can decode without iWARP.
    fn pdu(_octets: &[u8], _len: u64) -> Option<PduPart<'_>> {
        None
    }

    /// The ranges of a Send that have headers of the protocol, in order and without overlaps. The
    /// arguments are those of [`Protocol::read`]. A range can be empty, and it can end after the
    /// end of `bytes`. If all other bytes of the Send get the value of a letter, these results stay
    /// the same: the ranges, the variant of the result of [`Protocol::read`], and whether the
    /// message proves the protocol. By default, there are no ranges.
    fn headers(_bytes: &[u8], _is_complete: bool) -> Vec<Range<usize>> {
        Vec::new()
    }

    /// The length of the data at the start of a Read Response that can prove the protocol; 0 if
    /// `data` does not start with such data.
    fn proof_len(_data: &[u8]) -> usize {
        0
    }

    /// Returns whether this segment of a Read Response proves the protocol.
    fn is_proved_by_response(&self, _direction: Direction, _view: &SegmentView<'_>) -> bool {
        false
    }

    /// Records a segment of a Read Response on a connection with the recognised protocol. Returns
    /// the message that the segment contains.
    fn read_response(&mut self, _direction: Direction, _view: &SegmentView<'_>) -> Option<Self::Message> {
        None
    }

    /// Allocated memory in bytes.
    fn memory(&self) -> usize {
        0
    }
}

/// A complete Send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SendInfo {
    pub(super) direction: Direction,
    /// Number of the frame that completed the Send.
    pub(super) frame: FrameNumber,
    /// Length in bytes.
    pub(super) len: u64,
    /// Whether the connection already has the protocol of the message.
    pub(super) is_recognised: bool,
}

/// What a message shows together with earlier messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The message neither proves nor disproves the protocol.
    Open,
    /// The message proves the protocol.
    Proves,
    /// The message cannot belong to the protocol.
    Disproves,
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

/// A list of one range, for [`Protocol::headers`].
pub(super) fn only(range: Range<usize>) -> Vec<Range<usize>> {
    std::iter::once(range).collect()
}

/// The big-endian 32-bit value at offset `at`; `None` if `bytes` are too short.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}
