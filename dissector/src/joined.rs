//! Counts connections that were captured in several networks (VLANs, tunnels or interfaces).

use std::fmt;

use crate::format::counted;
use crate::frame_number::FrameNumber;
use crate::stream_id::StreamId;

/// Counts connections whose segments came from several networks (VLANs, tunnels or interfaces). The
/// dissector reads all segments of such a connection as one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinedConnections {
    /// A sum over all connections. Each connection adds the number of its networks minus 1.
    pub count: u64,
    /// The first connection that was captured in several networks, and its first frame from a
    /// second network.
    pub first: Option<(StreamId, FrameNumber)>,
}

impl JoinedConnections {
    /// Returns whether every connection was captured in a single network.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Formats the counts, for example "a connection appeared in another VLAN, tunnel or interface 2
/// times (first: stream 0, frame 9); weft read each such connection as one connection".
impl fmt::Display for JoinedConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = counted(self.count, "time");
        write!(f, "a connection appeared in another VLAN, tunnel or interface {times}")?;
        if let Some((stream, frame)) = self.first {
            write!(f, " (first: stream {stream}, frame {frame})")?;
        }
        f.write_str("; weft read each such connection as one connection")
    }
}
