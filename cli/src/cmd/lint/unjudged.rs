//! The parts of a capture that lint could not judge because it lacks bytes. Without this line, an
//! incomplete capture looks like a correct implementation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;

use weft_dissector::StreamId;
use weft_dissector::output::text::counted;
use weft_dissector::source::Frame;
use weft_dissector::unit::{Kind, Unit};
use weft_dissector::{Packet, TransportKind};

/// Connections that are remembered, of each kind.
const MOST: usize = 1 << 16;

/// Counts of missing bytes, and of connections with one direction.
#[derive(Default)]
pub(super) struct Unjudged {
    /// The sender of connections that have only one so far.
    one_sided: BTreeMap<StreamId, SocketAddr>,
    /// Connections with iWARP or SDP; those with the smallest numbers are forgotten first.
    judged: BTreeSet<StreamId>,
    /// Connections with smaller numbers were observed.
    next: StreamId,
    incomplete: u64,
    missing: u64,
    /// Frames that the snap length cut.
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
            if self.one_sided.len() < MOST {
                self.one_sided.insert(stream, packet.src);
            }
        } else if self.one_sided.get(&stream).is_some_and(|sender| *sender != packet.src) {
            self.one_sided.remove(&stream);
        }
    }

    pub(super) fn unit(&mut self, unit: &Unit<'_>) {
        match unit.kind {
            // Bytes of other protocols are not judged anyway.
            Kind::Gap { len } if unit.stream.is_some_and(|stream| self.judged.contains(&stream)) => {
                self.missing += len;
            }
            Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. } => {}
            Kind::Startup(..) | Kind::Fpdu(_) | Kind::Sdp(..) | Kind::PortMapper(_) => {
                self.incomplete += u64::from(unit.incomplete);
                if let Some(stream) = unit.stream.filter(|stream| !self.judged.contains(stream)) {
                    if self.judged.len() == MOST {
                        self.judged.pop_first();
                    }
                    self.judged.insert(stream);
                }
            }
        }
    }

    /// Was everything in the capture?
    pub(super) fn is_empty(&self) -> bool {
        self.incomplete == 0 && self.missing == 0 && self.connections() == 0
    }

    fn connections(&self) -> u64 {
        self.one_sided.keys().filter(|stream| self.judged.contains(*stream)).count() as u64
    }
}

/// For example "not judged completely: 1 connection with one direction, 28 incomplete units (the
/// snap length cut 52 frames)".
impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let connections = self.connections();
        if connections > 0 {
            parts.push(format!("{} with one direction", counted(connections, "connection")));
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
