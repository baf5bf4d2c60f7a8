//! `-z conv,TYPE`: counts the frames and bytes between each pair of ends, in both directions.
//!
//! Only frames with a TCP segment or a UDP datagram count.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::SocketAddr;

use weft_dissector::output::frames::Record;
use weft_dissector::source::Names;
use weft_dissector::{Packet, StreamId, TransportKind};

use super::OwnFilter;

/// Maximum number of conversations that are stored. Frames of further conversations are only
/// counted.
const MAX_CONVERSATIONS: usize = 1 << 20;

/// The heads of the columns after the two ends.
const HEADS: [&str; 2] = [
    "|         <-         | |         ->         | |        Total       |    Relative    |   Duration   |",
    "| Frames       Bytes | | Frames       Bytes | | Frames       Bytes |      Start     |              |",
];
const RULE: &str = "================================================================================";

/// The frames that make a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    /// The segments of a TCP connection.
    Tcp,
    /// The datagrams between two UDP ports.
    Udp,
    /// The packets between two IPv4 addresses.
    Ipv4,
    /// The packets between two IPv6 addresses.
    Ipv6,
}

impl Grouping {
    /// The grouping with this name in tshark.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "tcp" => Some(Grouping::Tcp),
            "udp" => Some(Grouping::Udp),
            "ip" => Some(Grouping::Ipv4),
            "ipv6" => Some(Grouping::Ipv6),
            _ => None,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Grouping::Tcp => "TCP",
            Grouping::Udp => "UDP",
            Grouping::Ipv4 => "IPv4",
            Grouping::Ipv6 => "IPv6",
        }
    }

    fn has_ports(self) -> bool {
        matches!(self, Grouping::Tcp | Grouping::Udp)
    }

    /// The conversation of a packet; `None` if the packet does not belong to this grouping.
    fn key(self, packet: &Packet) -> Option<Key> {
        let without_port = |end: SocketAddr| SocketAddr::new(end.ip(), 0);
        let (src, dst, stream) = match (self, packet.transport) {
            (Grouping::Tcp, TransportKind::Tcp { stream, .. }) => (packet.src, packet.dst, Some(stream)),
            (Grouping::Udp, TransportKind::Udp) => (packet.src, packet.dst, None),
            (Grouping::Ipv4, _) if packet.src.is_ipv4() => (without_port(packet.src), without_port(packet.dst), None),
            (Grouping::Ipv6, _) if packet.src.is_ipv6() => (without_port(packet.src), without_port(packet.dst), None),
            _ => return None,
        };
        Some((src.min(dst), src.max(dst), stream))
    }
}

/// Both ends, the smaller one first, and the TCP connection.
type Key = (SocketAddr, SocketAddr, Option<StreamId>);

/// The counts of one conversation.
struct Conversation {
    /// Sender and receiver of the first frame.
    ends: [SocketAddr; 2],
    /// Frames and bytes of each end of `ends`.
    sent: [(u64, u64); 2],
    /// Times of the first and the last frame, in nanoseconds since 1970.
    first: u64,
    last: u64,
}

impl Conversation {
    fn frames(&self) -> u64 {
        self.sent[0].0 + self.sent[1].0
    }

    fn octets(&self) -> u64 {
        self.sent[0].1 + self.sent[1].1
    }
}

/// The conversations of one grouping.
pub(super) struct Conversations {
    grouping: Grouping,
    filter: OwnFilter,
    /// The index of each conversation in `list`.
    numbers: HashMap<Key, usize>,
    list: Vec<Conversation>,
    /// Time of the first frame of the capture.
    origin: u64,
    /// Number of frames of conversations that are not stored.
    omitted: u64,
}

impl Conversations {
    pub(super) fn new(grouping: Grouping, filter: OwnFilter) -> Self {
        Conversations { grouping, filter, numbers: HashMap::new(), list: Vec::new(), origin: 0, omitted: 0 }
    }

    /// Counts a frame.
    pub(super) fn record(&mut self, record: &Record) {
        let (Some(packet), Some((octets, _))) = (&record.facts.packet, record.facts.len) else { return };
        let Some(key) = self.grouping.key(packet).filter(|_| self.filter.matches(record)) else { return };
        self.origin = record.facts.origin;
        if self.list.len() == MAX_CONVERSATIONS && !self.numbers.contains_key(&key) {
            self.omitted += 1;
            return;
        }
        let (time, list) = (record.facts.time, &mut self.list);
        let index = *self.numbers.entry(key).or_insert_with(|| {
            let ends = [packet.src, packet.dst];
            list.push(Conversation { ends, sent: [(0, 0); 2], first: time, last: time });
            list.len() - 1
        });
        let Some(conversation) = self.list.get_mut(index) else { return };
        // Two packets of one IP conversation can have different ports.
        let is_first_end = if self.grouping.has_ports() {
            conversation.ends[0] == packet.src
        } else {
            conversation.ends[0].ip() == packet.src.ip()
        };
        let (frames, bytes) = &mut conversation.sent[usize::from(!is_first_end)];
        *frames += 1;
        *bytes += u64::from(octets);
        conversation.last = conversation.last.max(time);
    }

    /// Prints the conversations, those with the most frames first.
    pub(super) fn print(&self, names: Option<&Names>, out: &mut dyn Write) -> io::Result<()> {
        let filter = if self.filter.text.is_empty() { "<No Filter>" } else { self.filter.text.as_str() };
        writeln!(out, "{RULE}\n{} Conversations\nFilter:{filter}", self.grouping.title())?;
        let width = if self.grouping.has_ports() { 26 } else { 20 };
        let blank = " ".repeat(2 * width + 6);
        for heads in HEADS {
            writeln!(out, "{blank}{heads}")?;
        }
        let mut sorted: Vec<&Conversation> = self.list.iter().collect();
        sorted.sort_by_key(|conversation| std::cmp::Reverse(conversation.frames()));
        for conversation in sorted {
            let [src, dst] = conversation.ends.map(|end| self.shown(end, names));
            let [there, back] = conversation.sent;
            write!(out, "{src:<width$} <-> {dst:<width$} ")?;
            for (frames, bytes) in [back, there, (conversation.frames(), conversation.octets())] {
                let counts = format!("{frames:>7} {bytes:>6} bytes");
                write!(out, "{counts:<23}")?;
            }
            let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
            let start = seconds(self.origin, conversation.first);
            let duration = seconds(conversation.first, conversation.last);
            writeln!(out, "{start:>14.9}   {duration:>12.4}")?;
        }
        if self.omitted > 0 {
            writeln!(out, "{} frames of further conversations", self.omitted)?;
        }
        writeln!(out, "{RULE}")
    }

    fn shown(&self, end: SocketAddr, names: Option<&Names>) -> String {
        match (self.grouping.has_ports(), names) {
            (true, Some(names)) => names.endpoint(end),
            (true, None) => end.to_string(),
            (false, Some(names)) => names.address(end.ip()),
            (false, None) => end.ip().to_string(),
        }
    }
}
