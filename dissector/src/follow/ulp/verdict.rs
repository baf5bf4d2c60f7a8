//! The tests of the beginning of a message.

use crate::parse::SegmentView;

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
    /// Too few octets are known.
    Open,
    /// Not a message of the protocol.
    Not,
}

impl<M> Verdict<M> {
    /// The same about a message of any protocol.
    pub(super) fn map<N>(self, to: impl FnOnce(M) -> N) -> Verdict<N> {
        match self {
            Verdict::Is { parsed, len, proves } => Verdict::Is { parsed: to(parsed), len, proves },
            Verdict::Open => Verdict::Open,
            Verdict::Not => Verdict::Not,
        }
    }
}

/// How long a message must be.
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

/// The octets after the DDP header, up to the first that was not captured.
pub(super) fn beginning<'a>(view: &SegmentView<'a>) -> &'a [u8] {
    let (octets, known) = view.payload.raw();
    let end = known.iter().position(|there| *there == 0).unwrap_or(octets.len());
    &octets[..end.min(octets.len())]
}

/// The big-endian 32-bit value at `at`.
pub(super) fn word(octets: &[u8], at: usize) -> Option<u32> {
    octets.get(at..at.checked_add(4)?)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}
