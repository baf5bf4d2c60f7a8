//! Limits on connections and their memory.

/// Number of closed connections that keep their slot, because octets of these connections may be
/// captured late.
pub(super) const MAX_LINGERING: usize = 1024;
/// Maximum number of open connections.
pub(super) const MAX_OPEN: usize = 8_192;
/// Fixed memory of each open connection in bytes. The limit [`MAX_MEMORY`] does not count this
/// memory.
pub(super) const CONNECTION_MEMORY: usize = 8 << 10;
/// Maximum memory, in bytes, for the octets and the state of all open connections together.
pub(super) const MAX_MEMORY: usize = 64 << 20;
/// If sequence numbers in two networks differ by more than this distance, they belong to two
/// connections. In one of 2,048 cases, the sequence numbers of two unrelated connections also
/// differ by less. Therefore weft compares the sequence numbers of both directions.
pub(super) const NEAR: u32 = 1 << 20;
/// Maximum number of remembered suspended SDP connections.
pub(super) const MAX_SUSPENDED: usize = 64;
