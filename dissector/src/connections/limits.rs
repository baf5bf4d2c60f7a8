//! Limits on connections and their memory.

/// Number of closed connections that keep their slot, for octets that were captured late.
pub(super) const MAX_LINGERING: usize = 1024;
/// Maximum number of open connections.
pub(super) const MAX_OPEN: usize = 8_192;
/// Fixed memory of an open connection in bytes. It does not include the memory that [`MAX_MEMORY`]
/// limits.
pub(super) const CONNECTION_MEMORY: usize = 8 << 10;
/// Maximum memory of all open connections together for octets and state, in bytes.
pub(super) const MAX_MEMORY: usize = 64 << 20;
/// If sequence numbers in two networks differ by more than this distance, they belong to two
/// connections. Of 2,048 pairs of random sequence numbers, one pair on average is nearer than this.
/// weft therefore compares the sequence numbers of both directions.
pub(super) const NEAR: u32 = 1 << 20;
/// Maximum number of remembered suspended SDP connections.
pub(super) const MAX_SUSPENDED: usize = 64;
