//! Flags for the TCP of a target on the virtual link.

/// Flags that change how the target's TCP passes the bytes of TCP segments to the endpoint, which
/// bytes it sends if the tester's window is small, and which connections it serves. For the correct
/// endpoint, all flags are false. The virtual link reads the flags. Over real TCP they have no
/// effect, because the operating system reassembles the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReassemblyConduct {
    /// The first TCP segment that arrives is passed, even if earlier bytes of the stream are
    /// missing.
    pub(crate) begins_with_first_arrival: bool,
    /// While the tester does not read what one connection has sent, the target uses no other
    /// connection.
    pub(crate) blocks_others: bool,
    /// A byte changes if the tester reads only a part of what the target has sent, so that its
    /// window opens by a few bytes.
    pub(crate) changes_rest: bool,
    /// All bytes that arrive on a connection are lost, if the target has had
    /// [`SERVED`](ReassemblyConduct::SERVED) connections before.
    pub(crate) loses_later_connections: bool,
    /// The bytes after a wrap of the sequence number are lost.
    pub(crate) loses_after_wrap: bool,
    /// A TCP segment that IP fragments carry is lost.
    pub(crate) loses_fragments: bool,
    /// A retransmitted TCP segment whose bytes were already passed is passed again.
    pub(crate) passes_duplicates: bool,
    /// A TCP segment is passed when it arrives, even if earlier bytes of the stream are missing.
    pub(crate) passes_over_gap: bool,
}

impl ReassemblyConduct {
    /// Number of connections that a target with `loses_later_connections` serves.
    pub(crate) const SERVED: u32 = 100;
}
