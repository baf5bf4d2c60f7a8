//! Flags for the TCP of a target on the virtual link.

/// Flags that change how the target's TCP passes the bytes of TCP segments to the endpoint. For the
/// correct endpoint, all flags are false. The virtual link reads the flags. Over real TCP they have
/// no effect, because the operating system reassembles the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReassemblyConduct {
    /// The first TCP segment that arrives is passed, even if earlier bytes of the stream are
    /// missing.
    pub(crate) begins_with_first_arrival: bool,
    /// The bytes after a wrap of the sequence number are lost.
    pub(crate) loses_after_wrap: bool,
    /// A retransmitted TCP segment whose bytes were already passed is passed again.
    pub(crate) passes_duplicates: bool,
    /// A TCP segment is passed when it arrives, even if earlier bytes of the stream are missing.
    pub(crate) passes_over_gap: bool,
}
