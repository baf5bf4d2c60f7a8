//! Reports the parts of a capture that lint could not judge, because the capture lacks bytes.
//! Without this report, an incomplete capture would look like a correct implementation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;

use weft_dissector::StreamId;
use weft_dissector::output::text::counted;
use weft_dissector::source::Frame;
use weft_dissector::unit::{Kind, Unit};
use weft_dissector::{Packet, TransportKind};

/// Maximum number of connections in `one_sided`, and in `judged`.
const MAX_CONNECTIONS: usize = 1 << 16;

/// Counts the missing bytes, and the connections with only one direction.
#[derive(Default)]
pub(super) struct Unjudged {
    /// Connections with frames of only one sender so far, each with the address of this sender.
    one_sided: BTreeMap<StreamId, SocketAddr>,
    /// Connections with iWARP or SDP. If there are too many, those with the smallest numbers are
    /// dropped.
    judged: BTreeSet<StreamId>,
    /// The smallest number that no connection has had so far.
    next: StreamId,
    /// Number of incomplete units.
    incomplete: u64,
    /// Number of missing bytes.
    missing: u64,
    /// Number of frames that the snap length cut.
    cut: u64,
}

impl Unjudged {
    pub(super) fn frame(&mut self, frame: &Frame<'_>) {
        self.cut += u64::from((frame.octets.len() as u64) < u64::from(frame.wire_len));
    }

    pub(super) fn packet(&mut self, packet: &Packet) {
        let TransportKind::Tcp { stream, .. } = packet.transport else { return };
        if stream >= self.next {
            self.next = stream.next();
            if self.one_sided.len() < MAX_CONNECTIONS {
                self.one_sided.insert(stream, packet.src);
            }
        } else if self.one_sided.get(&stream).is_some_and(|sender| *sender != packet.src) {
            self.one_sided.remove(&stream);
        }
    }

    pub(super) fn unit(&mut self, unit: &Unit<'_>) {
        match unit.kind {
            // Missing bytes count only in connections with iWARP or SDP.
            Kind::Gap { len } if unit.stream.is_some_and(|stream| self.judged.contains(&stream)) => {
                self.missing += len;
            }
            Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. } => {}
            Kind::Startup(..) | Kind::Fpdu(_) | Kind::Sdp(..) | Kind::PortMapper(_) => {
                self.incomplete += u64::from(unit.incomplete);
                if let Some(stream) = unit.stream.filter(|stream| !self.judged.contains(stream)) {
                    if self.judged.len() == MAX_CONNECTIONS {
                        self.judged.pop_first();
                    }
                    self.judged.insert(stream);
                }
            }
        }
    }

    /// Returns whether there is nothing to report.
    pub(super) fn is_empty(&self) -> bool {
        self.incomplete == 0 && self.missing == 0 && self.connections() == 0
    }

    /// Number of connections with iWARP or SDP and only one direction.
    fn connections(&self) -> u64 {
        self.one_sided.keys().filter(|stream| self.judged.contains(*stream)).count() as u64
    }
}

/// Prints, for example, "not judged completely: 1 connection with only one direction, 28
/// incomplete units (the snap length cut 52 frames)".
impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let connections = self.connections();
        if connections > 0 {
            parts.push(format!("{} with only one direction", counted(connections, "connection")));
        }
        if self.incomplete > 0 {
            let why = match self.cut {
                0 => String::new(),
                cut => format!(" (the snap length cut {})", counted(cut, "frame")),
            };
            parts.push(format!("{}{why}", counted(self.incomplete, "incomplete unit")));
        }
        if self.missing > 0 {
            parts.push(format!("{} not captured", counted(self.missing, "byte")));
        }
        write!(f, "not judged completely: {}", parts.join(", "))
    }
}
