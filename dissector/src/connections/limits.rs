//! Limits on connections and their memory.

/// Number of closed connections that keep their slot, for octets that were captured late.
pub(super) const LINGERING: usize = 1024;
/// Maximum number of open connections.
pub(super) const MOST_OPEN: usize = 8_192;
/// Fixed memory of an open connection in bytes. It does not include the memory that [`MOST_OCTETS`]
/// limits.
pub(super) const CONNECTION: usize = 8 << 10;
/// Maximum memory of all open connections together for octets and state, in bytes.
pub(super) const MOST_OCTETS: usize = 64 << 20;
/// If sequence numbers in two networks differ by more than this distance, they belong to two
/// connections. Random sequence numbers are nearer once in 2,048 times. weft requires that both
/// directions are near.
pub(super) const NEAR: u32 = 1 << 20;
/// Maximum number of remembered suspended SDP connections.
pub(super) const MOST_SUSPENDED: usize = 64;
