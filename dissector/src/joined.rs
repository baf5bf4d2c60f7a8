//! Counts connections that were captured in several networks (VLANs, tunnels or interfaces).

use std::fmt;

use crate::digits::counted;
use crate::stream_id::StreamId;

/// Connections whose segments came from several VLANs, tunnels or interfaces. The dissector reads
/// these segments as one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joined {
    /// Number of further networks per connection, besides the network of its first frame, summed
    /// over all connections.
    pub count: u64,
    /// The first connection in several networks, and its first frame from a further network.
    pub first: Option<(StreamId, u64)>,
}

impl Joined {
    /// Returns whether every connection was captured in a single network.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// For example "the same connection is in several VLANs, tunnels or interfaces 2 times (first:
/// stream 0, frame 9), and is read as one".
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
