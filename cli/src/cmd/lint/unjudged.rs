//! Reports the parts of a capture that lint could not judge, because the capture lacks bytes.
//! Without this report, an incomplete capture would look like a correct implementation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;

use serde_json::{Value, json};
use weft_dissector::output::text::counted;
use weft_dissector::source::Frame;
use weft_dissector::unit::{Carrier, CrcStatus, Kind, Unit};
use weft_dissector::{FrameNumber, Packet, StreamId, TransportKind};

use crate::input::Damage;

/// Maximum number of connections in each of the collections of [`Unjudged`].
const MAX_CONNECTIONS: usize = 1 << 16;

/// Collects what the capture lacks.
#[derive(Default)]
pub(super) struct Unjudged {
    /// Connections with frames of only one sender so far, each with the address of this sender.
    one_sided: BTreeMap<StreamId, SocketAddr>,
    /// Connections without a SYN so far.
    without_syn: BTreeSet<StreamId>,
    /// The smallest number that no connection has had so far.
    next: StreamId,
    /// What weft has read of each connection. If there are too many connections, those with the
    /// smallest numbers are added to `counts` and removed.
    connections: BTreeMap<StreamId, Reading>,
    /// The counts that do not depend on a connection, and those of removed connections.
    counts: UnjudgedCounts,
}

/// What weft has read of one connection. Arrays have one element for each direction.
#[derive(Default)]
struct Reading {
    /// Whether a selected unit of the connection has iWARP or SDP.
    is_judged: bool,
    /// Whether the direction has a start-up frame. After an SDP Hello outside FPDUs, no direction
    /// needs one.
    has_start: [bool; 2],
    has_fpdus: [bool; 2],
    /// Whether bytes of the direction are missing.
    is_lossy: [bool; 2],
    /// Number of bytes outside MPA.
    outside_mpa: [u64; 2],
    /// Number of incomplete units outside MPA.
    incomplete_outside_mpa: [u64; 2],
    /// Number of bytes that are missing, and that belong to no other unit.
    missing: u64,
    /// Number of bytes without an FPDU, after missing bytes.
    without_fpdu: u64,
}

/// The counts of the parts that were not judged.
#[derive(Default)]
pub(super) struct UnjudgedCounts {
    /// Connections with only one direction.
    one_direction: u64,
    /// Connections without start-up frames, because the capture begins later or lacks bytes.
    without_start: u64,
    /// Connections with start-up frames, but without the SYNs.
    without_syn: u64,
    /// Directions without a start-up frame, although the other direction has one.
    directions_without_start: u64,
    /// Number of bytes in these directions that were not read.
    unread_octets: u64,
    /// Incomplete units, without the damaged units.
    incomplete: u64,
    /// Units with a wrong TCP checksum: the network damaged them.
    damaged: u64,
    /// The frame of the first damaged unit.
    first_damaged: FrameNumber,
    /// Number of missing bytes that belong to no unit.
    gap_octets: u64,
    /// Number of bytes without an FPDU, after missing bytes.
    unparsed_octets: u64,
    /// Frames that the snap length cut.
    cut_frames: u64,
    /// TCP connections without a SYN, also without iWARP and SDP.
    tcp_without_syn: u64,
    /// Files that weft could not read to their end.
    damaged_files: u64,
    /// Whether a file ends within a frame.
    has_partial_frame: bool,
}

impl Unjudged {
    pub(super) fn frame(&mut self, frame: &Frame<'_>) {
        self.counts.cut_frames += u64::from((frame.octets.len() as u64) < u64::from(frame.wire_len));
    }

    pub(super) fn packet(&mut self, packet: &Packet) {
        let TransportKind::Tcp { stream, syn, .. } = packet.transport else { return };
        if stream >= self.next {
            self.next = stream.next();
            if self.one_sided.len() < MAX_CONNECTIONS {
                self.one_sided.insert(stream, packet.src);
            }
            if !syn && self.without_syn.len() < MAX_CONNECTIONS {
                self.without_syn.insert(stream);
            }
            return;
        }
        if self.one_sided.get(&stream).is_some_and(|sender| *sender != packet.src) {
            self.one_sided.remove(&stream);
        }
        if syn {
            self.without_syn.remove(&stream);
        }
    }

    /// Records a unit. `is_selected` is false if the user did not select this unit.
    pub(super) fn unit(&mut self, unit: &Unit<'_>, is_selected: bool) {
        let has_protocol = !matches!(unit.kind, Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. });
        if has_protocol && is_selected && unit.incomplete {
            // weft computes a CRC only if it has all bytes of the FPDU. If such an FPDU is
            // incomplete, its segment has a wrong TCP checksum.
            if matches!(&unit.kind, Kind::Fpdu(fpdu) if fpdu.crc_status == CrcStatus::Bad) {
                if self.counts.damaged == 0 {
                    self.counts.first_damaged = unit.frame;
                }
                self.counts.damaged += 1;
            } else {
                self.counts.incomplete += 1;
            }
        }
        let Some(stream) = unit.stream else { return };
        if self.connections.len() == MAX_CONNECTIONS && !self.connections.contains_key(&stream) {
            self.remove_first();
        }
        let connection = self.connections.entry(stream).or_default();
        connection.is_judged |= has_protocol && is_selected;
        connection.unit(unit, is_selected);
    }

    fn remove_first(&mut self) {
        if let Some((stream, connection)) = self.connections.pop_first() {
            let (one_sided, without_syn) = (self.one_sided.remove(&stream), self.without_syn.remove(&stream));
            connection.add_to(one_sided.is_some(), without_syn, &mut self.counts);
        }
    }

    /// Returns the counts at the end of the capture.
    pub(super) fn counts(mut self, damage: &Damage) -> UnjudgedCounts {
        self.counts.tcp_without_syn = self.without_syn.len() as u64;
        while !self.connections.is_empty() {
            self.remove_first();
        }
        let partial = damage.partial_frames.len() as u64;
        let mut counts = self.counts;
        counts.cut_frames = counts.cut_frames.saturating_sub(partial);
        counts.damaged_files = damage.files;
        counts.has_partial_frame = partial > 0;
        counts
    }
}

impl Reading {
    fn unit(&mut self, unit: &Unit<'_>, is_selected: bool) {
        let direction = usize::from(unit.direction.min(1));
        let selected = u64::from(is_selected);
        match &unit.kind {
            Kind::Startup(..) => self.has_start[direction] = true,
            Kind::Sdp(Carrier::Streaming | Carrier::PrivateData, ..) => self.has_start = [true; 2],
            Kind::Fpdu(_) => self.has_fpdus[direction] = true,
            Kind::Sdp(Carrier::Send, ..) | Kind::PortMapper(_) => {}
            Kind::Streaming { len, .. } => {
                self.outside_mpa[direction] += len * selected;
                self.incomplete_outside_mpa[direction] += u64::from(unit.incomplete) * selected;
            }
            Kind::Gap { len } => {
                self.is_lossy[direction] = true;
                self.missing += len * selected;
            }
            // Without missing bytes, the octets have a finding.
            Kind::Unparsed { len } if unit.incomplete || self.is_lossy[direction] => {
                self.without_fpdu += len * selected;
            }
            Kind::Unparsed { .. } => {}
        }
        self.is_lossy[direction] |= unit.incomplete;
    }

    /// Adds what weft could not judge of the connection to `counts`.
    fn add_to(&self, is_one_sided: bool, is_without_syn: bool, counts: &mut UnjudgedCounts) {
        if !self.is_judged {
            return;
        }
        counts.one_direction += u64::from(is_one_sided);
        counts.gap_octets += self.missing;
        counts.unparsed_octets += self.without_fpdu;
        if self.has_start == [false; 2] {
            // If the capture is complete, the endpoints did not send start-up frames.
            let lacks_start = is_without_syn || self.is_lossy.contains(&true);
            counts.without_start += u64::from(lacks_start);
            counts.incomplete += self.incomplete_outside_mpa.iter().sum::<u64>();
            return;
        }
        for direction in [0, 1] {
            let is_unread = self.outside_mpa[direction] > 0;
            let lacks_start = is_without_syn || self.is_lossy[direction] || is_unread;
            if !self.has_start[direction] && lacks_start && (self.has_fpdus[direction] || is_unread) {
                counts.directions_without_start += 1;
                counts.unread_octets += self.outside_mpa[direction];
            } else {
                counts.incomplete += self.incomplete_outside_mpa[direction];
            }
        }
        counts.without_syn += u64::from(is_without_syn && !is_one_sided);
    }
}

impl UnjudgedCounts {
    /// Returns whether there is nothing to report in addition to the notes about the files.
    pub(super) fn is_empty(&self) -> bool {
        self.parts().is_empty()
    }

    /// If weft found nothing to judge, perhaps because the capture begins too late, returns the
    /// reason and what to do.
    pub(super) fn remedy(&self) -> Option<String> {
        let connections = counted(self.tcp_without_syn, "connection");
        (self.tcp_without_syn > 0).then(|| {
            format!(
                "the capture lacks the SYN of {connections}, and without CRCs, weft needs the start-up frames: start \
                 the capture before the connections"
            )
        })
    }

    /// The counts for the JSON output. `unread_frames` is the number of frames that weft could not
    /// read.
    pub(super) fn json(&self, unread_frames: u64) -> Value {
        json!({
            "one_direction": self.one_direction,
            "without_start": self.without_start,
            "without_syn": self.without_syn,
            "directions_without_start": self.directions_without_start,
            "unread_octets": self.unread_octets,
            "incomplete": self.incomplete,
            "damaged": self.damaged,
            "gap_octets": self.gap_octets,
            "unparsed_octets": self.unparsed_octets,
            "cut_frames": self.cut_frames,
            "damaged_files": self.damaged_files,
            "unread_frames": unread_frames,
        })
    }

    fn parts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let mut add = |count: u64, what: &str, more: &str| {
            if count > 0 {
                parts.push(format!("{}{more}", counted(count, what)));
            }
        };
        add(self.one_direction, "connection", " with only one direction");
        let [it, they] = ["its", "their"].map(|whose| format!(" without {whose} start (settings unknown)"));
        add(self.without_start, "connection", if self.without_start == 1 { it.as_str() } else { they.as_str() });
        let [it, they] = ["its", "their"].map(|whose| format!(" without {whose} SYNs (MSS and windows unknown)"));
        add(self.without_syn, "connection", if self.without_syn == 1 { it.as_str() } else { they.as_str() });
        let unread = match self.unread_octets {
            0 => String::new(),
            octets => format!(" ({} not read)", counted(octets, "byte")),
        };
        let whose = if self.directions_without_start == 1 { "its start-up frame" } else { "their start-up frames" };
        add(self.directions_without_start, "direction", &format!(" without {whose}{unread}"));
        let cut = counted(self.cut_frames, "frame");
        let why = match (self.cut_frames, self.has_partial_frame) {
            (0, false) => String::new(),
            (0, true) => " (the file ends within a frame)".to_owned(),
            (_, false) => format!(" (the snap length cut {cut})"),
            (_, true) => format!(" (the snap length cut {cut}, and the file ends within a frame)"),
        };
        add(self.incomplete, "incomplete unit", &why);
        let first = match self.damaged {
            1 => format!("frame {}", self.first_damaged),
            _ => format!("first: frame {}", self.first_damaged),
        };
        add(self.damaged, "unit", &format!(" that the network damaged ({first}: the TCP checksum is wrong)"));
        add(self.gap_octets, "byte", " not captured");
        add(self.unparsed_octets, "byte", " without an FPDU after missing bytes");
        parts
    }
}

/// Prints, for example, "not judged completely: 1 connection with only one direction, 28
/// incomplete units (the snap length cut 52 frames)".
impl fmt::Display for UnjudgedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not judged completely: {}", self.parts().join(", "))
    }
}
