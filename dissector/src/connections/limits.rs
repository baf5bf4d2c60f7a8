//! Limits of the connections.

/// Closed connections that are kept for octets which were captured late.
pub(super) const LINGERING: usize = 1024;
/// Connections that are read at the same time.
pub(super) const MOST_OPEN: usize = 8_192;
/// Bytes of a connection that is being read, without the octets and state that [`MOST_OCTETS`]
/// limits.
pub(super) const CONNECTION: usize = 8 << 10;
/// Octets that they may keep together.
pub(super) const MOST_OCTETS: usize = 64 << 20;
/// Sequence numbers with a greater distance in two networks belong to two connections. Random ones
/// are nearer once in 2,048 times, and both directions have to be near.
pub(super) const NEAR: u32 = 1 << 20;
/// Suspended SDP connections that may be resumed by another connection.
pub(super) const MOST_SUSPENDED: usize = 64;
