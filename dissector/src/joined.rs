//! Connections that were captured in several networks.

use std::fmt;

use crate::digits::counted;
use crate::stream_id::StreamId;

/// Connections whose segments came from several VLANs, tunnels or interfaces, and which are read as
/// one each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joined {
    /// The number of VLANs, tunnels and interfaces that were joined to that of a connection's first
    /// frame, over all connections.
    pub count: u64,
    /// The first such connection, and its first frame from another network.
    pub first: Option<(StreamId, u64)>,
}

impl Joined {
    /// Was nothing joined?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// As in "the same connection is in several VLANs, tunnels or interfaces 2 times (first: stream 0,
/// frame 9), and is read as one".
impl fmt::Display for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = counted(self.count, "time");
        write!(f, "the same connection is in several VLANs, tunnels or interfaces {times}")?;
        if let Some((stream, frame)) = self.first {
            write!(f, " (first: stream {stream}, frame {frame})")?;
        }
        f.write_str(", and is read as one")
    }
}
