//! Formats units, findings, frames and exchanges as text lines, and the fields of a unit as a tree.

mod sdp;

use std::fmt::{self, Write as _};
use std::net::SocketAddr;

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::startup::{
    ENHANCED_LEN, FLAG_C, FLAG_M, FLAG_R, FLAG_S, HEADER_LEN, KEY_LEN, REPLY_KEY, REQUEST_KEY,
};
use weft_core::wire::mpa::{RawStartup, StartupKind};
use weft_core::wire::rdmap::{Opcode, TerminateError};
use zerocopy::FromBytes;

use self::sdp::{portmap_summary, sdp_summary};
use crate::exchange::Exchange;
use crate::finding::Finding;
pub use crate::format::counted;
use crate::frame_number::FrameNumber;
use crate::grammar::rdmap::error_name;
use crate::output::record::Record;
use crate::output::senders::Senders;
use crate::packet::{Packet, TransportKind};
use crate::part::Part;
use crate::source::Names;
use crate::stream_id::StreamId;
use crate::tree::Node;
use crate::unit::{CrcStatus, Fpdu, Kind, MarkerStatus, Unit};
use crate::upper::nvme::PrivateData;
use crate::upper::{Startup, Ulp, UlpMessage, rsockets, smb2};

/// Number of the queue for Terminates (RFC 5040 section 5.4).
const TERMINATE_QUEUE: u32 = 2;

/// A short summary of a unit. It does not contain the addresses.
#[must_use]
pub fn summary(unit: &Unit<'_>) -> String {
    let mut line = match &unit.kind {
        Kind::Startup(kind, part) => {
            let name = if *kind == StartupKind::Request { "MPA Request" } else { "MPA Reply" };
            let mut line = name.to_owned();
            if let Ok((raw, _)) = RawStartup::ref_from_prefix(part.beginning()) {
                let _ = write!(line, "  Rev {}", raw.revision);
                for (flag, letter) in [(FLAG_M, 'M'), (FLAG_C, 'C'), (FLAG_R, 'R'), (FLAG_S, 'S')] {
                    if raw.flags & flag != 0 {
                        let _ = write!(line, " {letter}");
                    }
                }
                let _ = write!(line, "  PD_Length {}", raw.pd_length.get());
                line.push_str(&enhanced(raw, part));
            }
            line.push_str(&ulp_private_data(unit, *kind, *part));
            line
        }
        Kind::Fpdu(fpdu) => {
            let mut line = fpdu_summary(fpdu);
            if let Some(message) = ulp_message(unit) {
                let _ = write!(line, "  {message}");
            }
            if let Some(message) = smb_message(unit) {
                let _ = write!(line, "  {message}");
            }
            if let Some(rpc) = unit.context.and_then(|context| context.rpc.as_ref()).filter(|rpc| rpc.has_summary()) {
                let _ = write!(line, "  {rpc}");
            }
            line
        }
        Kind::Sdp(carrier, order, part) => sdp_summary(*carrier, *order, part),
        Kind::PortMapper(part) => {
            let mut line = portmap_summary(part);
            if let Some(exchange) = unit.context.and_then(|context| context.exchange.as_ref()) {
                let _ = write!(line, "  exchange {}", exchange.exchange);
                if exchange.repeated {
                    line.push_str(", repeated");
                }
            }
            line
        }
        Kind::Streaming { len, .. } => format!("streaming data  {}{}", counted(*len, "byte"), near_key(unit)),
        Kind::Gap { len } => format!("not captured  {len} bytes"),
        Kind::Unparsed { len } => format!("no FPDU found  {len} bytes"),
    };
    if unit.incomplete {
        line.push_str("  [incomplete]");
    }
    line
}

/// Returns the message of the protocol above RDMAP that `unit` completes; `None` if `unit` does not
/// complete such a message.
pub(super) fn ulp_message<'a>(unit: &Unit<'a>) -> Option<&'a UlpMessage> {
    let context = unit.context.filter(|_| matches!(unit.kind, Kind::Fpdu(_)))?;
    context.ulp_message.as_ref()
}

/// Formats the private data of a start-up frame, if it belongs to a protocol that weft knows.
fn ulp_private_data(unit: &Unit<'_>, kind: StartupKind, part: Part<'_>) -> String {
    let ulp = unit.context.and_then(|context| context.ulp_startup);
    let startup = ulp.and_then(|_| Startup::read(kind, unit.direction.into(), part));
    let private = startup.and_then(|startup| match ulp {
        Some(Ulp::Nvme) => PrivateData::of(&startup).map(|private| private.to_string()),
        Some(Ulp::Rsockets) => rsockets::PrivateData::parse(startup.private).map(|private| private.to_string()),
        _ => None,
    });
    ulp.zip(private).map_or_else(String::new, |(ulp, private)| format!("  {ulp} {private}"))
}

/// Returns the message of SMB 2 or 3 that `unit` completes.
fn smb_message<'a>(unit: &Unit<'a>) -> Option<&'a smb2::Message> {
    let context = unit.context.filter(|_| matches!(unit.kind, Kind::Fpdu(_)))?;
    context.smb.as_ref()?.latest()?.message.as_ref()
}

/// Formats the two words that RFC 6581 adds to a start-up frame. The first word has IRD and the
/// flags A and B. The second word has ORD and the flags C and D.
fn enhanced(raw: &RawStartup, part: &Part<'_>) -> String {
    let length = usize::from(raw.pd_length.get());
    if raw.revision < 2 || raw.flags & FLAG_S == 0 || length < ENHANCED_LEN {
        return String::new();
    }
    let Some(&[a, b, c, d]) = part.get(HEADER_LEN..HEADER_LEN + ENHANCED_LEN) else { return String::new() };
    let word = |octets: [u8; 2], high: char, low: char| {
        let word = u16::from_be_bytes(octets);
        let mut text = (word & 0x3fff).to_string();
        for (mask, letter) in [(0x8000, high), (0x4000, low)] {
            if word & mask != 0 {
                text.push(' ');
                text.push(letter);
            }
        }
        text
    };
    let (ird, ord) = (word([a, b], 'A', 'B'), word([c, d], 'C', 'D'));
    let private = match length - ENHANCED_LEN {
        0 => String::new(),
        private => format!("  private data {}", counted(private as u64, "byte")),
    };
    format!("  IRD {ird}  ORD {ord}{private}")
}

/// A key with at most this number of wrong octets is still recognised as a key.
const MAX_WRONG_OCTETS: usize = 6;

/// If a direction starts with octets that are similar to the key of a start-up frame, returns a
/// remark about this.
fn near_key(unit: &Unit<'_>) -> String {
    let Kind::Streaming { head, .. } = &unit.kind else { return String::new() };
    let Some(key) = head.get(..KEY_LEN) else { return String::new() };
    let wrong = |of: [u8; KEY_LEN]| -> Vec<String> {
        (0..KEY_LEN).filter(|at| key[*at] != of[*at]).map(|at| at.to_string()).collect()
    };
    let (request, reply) = (wrong(REQUEST_KEY), wrong(REPLY_KEY));
    let as_request = match request.len().cmp(&reply.len()) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => unit.direction == 0,
        std::cmp::Ordering::Greater => false,
    };
    let (name, wrong) = if as_request { ("Request", request) } else { ("Reply", reply) };
    match wrong.len() {
        1..=MAX_WRONG_OCTETS => {
            let (s, verb) = if wrong.len() == 1 { ("", "is") } else { ("s", "are") };
            format!(", begins like an MPA {name}, but key byte{s} {} {verb} wrong", wrong.join(", "))
        }
        _ => String::new(),
    }
}

/// A header field for display, or `?` if octets of the field were not captured.
struct Field<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("?"),
        }
    }
}

impl<T: fmt::LowerHex> fmt::LowerHex for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("?"),
        }
    }
}

fn fpdu_summary(fpdu: &Fpdu<'_>) -> String {
    let ulpdu = fpdu.ulpdu();
    let word = |at: usize, value: u32| Field(ulpdu.get(at..at + 4).map(|_| value));
    let mut line = match Segment::parse(ulpdu.raw().0) {
        Ok(_) if ulpdu.get(0..2).is_none() => {
            format!("FPDU of {} bytes, header not captured", fpdu.layout.ulpdu_length)
        }
        Ok(Segment::Tagged(header, payload)) => format!(
            "{}  STag {:#010x} TO {:#x}  {} bytes{}",
            header.ulp_control.opcode(),
            word(2, header.stag.get()),
            Field(ulpdu.get(6..14).map(|_| header.tagged_offset.get())),
            payload.len(),
            if header.control.last() { "" } else { "  more segments follow" }
        ),
        Ok(Segment::Untagged(header, _)) if header.ulp_control.opcode() == Opcode::TERMINATE => {
            let queue = ulpdu.get(6..10).map_or(TERMINATE_QUEUE, |_| header.qn.get());
            terminate(queue, ulpdu.from(18).beginning())
        }
        Ok(Segment::Untagged(header, payload)) => format!(
            "{}  QN {} MSN {} MO {}  {} bytes{}",
            header.ulp_control.opcode(),
            word(6, header.qn.get()),
            word(10, header.msn.get()),
            word(14, header.mo.get()),
            payload.len(),
            if header.control.last() { "" } else { "  more segments follow" }
        ),
        Err(_) => format!("FPDU of {} bytes, too short for a DDP segment", fpdu.layout.ulpdu_length),
    };
    match fpdu.crc_status {
        CrcStatus::Good | CrcStatus::Unchecked => {}
        CrcStatus::Bad => line.push_str("  CRC BAD"),
        CrcStatus::Truncated => line.push_str("  CRC not checked, because bytes are missing"),
        CrcStatus::Absent => line.push_str("  CRC field absent"),
    }
    match fpdu.marker_status {
        MarkerStatus::None | MarkerStatus::Good => {}
        MarkerStatus::BadValue => line.push_str("  MARKER WRONG"),
        MarkerStatus::Misplaced => line.push_str("  MARKERS MISPLACED"),
    }
    line
}

/// Formats a Terminate with its error. If the queue number is wrong, adds the queue number.
pub(super) fn terminate(queue: u32, payload: &[u8]) -> String {
    let mut line = String::from("Terminate");
    if let Some(&[kind, code]) = payload.get(..2) {
        let _ = write!(line, "  {}", error_name(TerminateError::new(kind >> 4, kind, code)));
    }
    if queue != TERMINATE_QUEUE {
        let _ = write!(line, "  QN {queue}");
    }
    line
}

/// Formats a unit as one line: frame, time since `origin`, stream, addresses and summary. `origin`
/// is in nanoseconds since 1970.
#[must_use]
pub fn unit_line(unit: &Unit<'_>, origin: u64) -> String {
    let since = unit.time.saturating_sub(origin);
    let (seconds, microseconds) = (since / 1_000_000_000, since % 1_000_000_000 / 1_000);
    let ends = (&unit.ends.src_text, &unit.ends.dst_text);
    line(unit.frame, format_args!("{seconds:>6}.{microseconds:06}"), unit.stream, ends, &summary(unit))
}

/// Like [`unit_line`], with any form of the time, and with names in place of addresses.
#[must_use]
pub fn unit_line_at(unit: &Unit<'_>, time: &str, names: Option<&Names>) -> String {
    let ends = (endpoint(unit.ends.src, names), endpoint(unit.ends.dst, names));
    line(unit.frame, format_args!("{time:>13}"), unit.stream, ends, &summary(unit))
}

/// Formats a transport event, for example a SYN, as a line in the format of [`unit_line_at`].
#[must_use]
pub fn event_line(packet: &Packet, time: &str, names: Option<&Names>, what: &str) -> String {
    let ends = (endpoint(packet.src, names), endpoint(packet.dst, names));
    line(packet.frame, format_args!("{time:>13}"), packet.transport.stream(), ends, what)
}

/// The name of an address, if it has one, and the port.
fn endpoint(end: SocketAddr, names: Option<&Names>) -> String {
    names.map_or_else(|| end.to_string(), |names| names.endpoint(end))
}

fn line<E: std::fmt::Display>(
    frame: FrameNumber,
    time: fmt::Arguments<'_>,
    stream: Option<StreamId>,
    (src, dst): (E, E),
    what: &str,
) -> String {
    let stream = stream.map_or_else(|| "-".to_owned(), |stream| stream.to_string());
    format!("{frame:>6} {time} {stream:>3} {src} → {dst}  {what}")
}

/// Formats a frame as one line: number, time, addresses, and the summaries of its units. If the
/// frame has no units, the line has the TCP or UDP header.
#[must_use]
pub fn frame_line(record: &Record, time: &str, names: Option<&Names>) -> String {
    let facts = &record.facts;
    let mut line = format!("{:>6} {time:>13}", facts.number);
    if let Some(Packet { src, dst, .. }) = facts.packet {
        let _ = write!(line, " {} → {} ", endpoint(src, names), endpoint(dst, names));
    }
    if record.units.is_empty() {
        line.push(' ');
        line.push_str(&facts.packet.as_ref().map_or_else(|| "neither TCP nor UDP".to_owned(), packet_summary));
    }
    for (index, unit) in record.units.iter().enumerate() {
        line.push_str(if index == 0 { " " } else { " | " });
        line.push_str(&unit.summary);
    }
    line
}

/// A short summary of a TCP segment or UDP datagram: its flags and its number of payload octets.
#[must_use]
pub fn packet_summary(packet: &Packet) -> String {
    let octets = packet.payload_len;
    match packet.transport {
        TransportKind::Tcp { .. } => format!("TCP {}  {octets} bytes", packet.transport.tcp_flags()),
        TransportKind::Udp => format!("UDP  {octets} bytes"),
    }
}

/// Formats a finding as two lines. The first line has frame, stream, addresses and requirement. The
/// second line has the texts `expected` and `found`. If `senders` does not have the addresses, they
/// are omitted.
#[must_use]
pub fn finding_lines(finding: &Finding, senders: &Senders) -> String {
    finding_lines_with(finding, senders, None)
}

/// Like [`finding_lines`], with names in place of addresses.
#[must_use]
pub fn finding_lines_with(finding: &Finding, senders: &Senders, names: Option<&Names>) -> String {
    let row = finding.requirement.row();
    let stream = finding.stream.map_or_else(|| "-".to_owned(), |stream| stream.to_string());
    let arrow = |(src, dst)| format!(" {} → {}", endpoint(src, names), endpoint(dst, names));
    let ends = senders.of(finding).map_or_else(String::new, arrow);
    format!(
        "       frame {} stream {stream}{ends}  {} {}  {} ({})\n              expected {}; found {}",
        finding.frame, finding.severity, finding.requirement, row.summary, row.level, finding.expected, finding.found
    )
}

/// Formats an exchange with a port mapper as one line.
#[must_use]
pub fn exchange_line(exchange: &Exchange) -> String {
    let address = |address: Option<std::net::SocketAddr>| address.map_or("unknown".to_owned(), |it| it.to_string());
    let mut line = format!(
        "port mapper exchange {}: {} requests {}, {}",
        exchange.exchange,
        exchange.connecting,
        address(exchange.requested),
        exchange.state().name()
    );
    if exchange.mapped.is_some() {
        let _ = write!(line, ", mapped to {}", address(exchange.mapped));
    }
    let repeats: u64 = exchange.repeats.iter().sum();
    if repeats > 0 {
        let _ = write!(line, ", {}", counted(repeats, "repetition"));
    }
    if exchange.followers > 0 {
        let streams: Vec<_> = exchange.streams.iter().map(ToString::to_string).collect();
        let more = exchange.followers - exchange.streams.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = write!(line, ", followed by stream {}{more}", streams.join(", "));
    }
    line
}

/// Formats a field tree as indented lines, one field per line.
#[must_use]
pub fn tree_lines(nodes: &[Node]) -> String {
    fn add(nodes: &[Node], depth: usize, out: &mut String) {
        for node in nodes {
            let _ = match node.value.as_str() {
                "" => writeln!(out, "{:indent$}{}", "", node.label, indent = 8 + 4 * depth),
                value => writeln!(out, "{:indent$}{}: {value}", "", node.label, indent = 8 + 4 * depth),
            };
            add(&node.children, depth + 1, out);
        }
    }
    let mut out = String::new();
    add(nodes, 0, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sink;
    use crate::testing::{self, Wire, exchange};

    /// Returns the summary line of each unit.
    fn lines(wire: &Wire) -> Vec<String> {
        struct Lines(Vec<String>);
        impl Sink for Lines {
            fn unit(&mut self, unit: &Unit<'_>) {
                self.0.push(summary(unit));
            }
        }
        let mut lines = Lines(Vec::new());
        wire.feed(&mut lines);
        lines.0
    }

    #[test]
    fn a_terminate_names_its_error() {
        let wire = exchange(&[(1, "4147 00000000 00000002 00000001 00000000 11000000")]);
        assert_eq!(lines(&wire).last().unwrap(), "Terminate  DDP / Tagged Buffer Error / Invalid STag");
        let wire = exchange(&[(1, "4147 00000000 00000001 00000001 00000000 f1770000")]);
        assert_eq!(lines(&wire).last().unwrap(), "Terminate  reserved  QN 1");
    }

    #[test]
    fn a_field_that_was_not_captured_has_no_value() {
        let mut wire = Wire::started();
        for (direction, ulpdu) in [
            (0, "4143 00000000 00000000 00000002 00000000 2a2b2c2d"),
            (0, "c140 0000002a 0000000012345678 2a2b2c2d"),
            (1, "4147 00000000 00000002 00000001 00000000 11000000"),
        ] {
            // The first FPDU makes the frame long. So a snap length that cuts the header of the
            // second FPDU does not cut the start-up frames.
            let first = testing::fpdu(&testing::hex("c140 0000002a 0000000012345678 2a2b2c2d"));
            wire.send(direction, &[first, testing::fpdu(&testing::hex(ulpdu))].concat());
        }
        let complete = lines(&wire);
        let mut partial = std::collections::BTreeSet::new();
        for snap_length in 74..=130 {
            for line in lines(&wire.cut_to(snap_length)) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let name = line.split("  ").next();
                let alike = |full: &&String| full.split("  ").next() == name;
                let Some(full) = complete.iter().find(alike) else { continue };
                let is_right = |(word, full): (&&str, &str)| *word == full || *word == "?" || full == "DDP";
                let fields = words.iter().take_while(|word| !matches!(**word, "CRC" | "[incomplete]"));
                assert!(fields.zip(full.split_whitespace()).all(is_right), "{line}, not {full}");
                partial.insert(words.join(" "));
            }
        }
        let shown = |line: &str| partial.iter().any(|partial| partial.starts_with(line));
        assert!(shown("Send QN 0 MSN ? MO ? 4 bytes"), "{partial:?}");
        assert!(shown("RDMA Write STag 0x0000002a TO ? 4 bytes"), "{partial:?}");
        assert!(shown("Terminate CRC"), "{partial:?}");
    }

    #[test]
    fn a_wrong_key_is_likened_to_the_right_one() {
        let mut wire = Wire::connected();
        let mut request = testing::request();
        request[3] ^= 0x20;
        wire.send(0, &request);
        wire.fin(0);
        let expected =
            format!("streaming data  {} bytes, begins like an MPA Request, but key byte 3 is wrong", request.len());
        assert_eq!(lines(&wire), [expected]);
    }

    #[test]
    fn shows_ird_and_ord_of_an_enhanced_request_with_their_flags() {
        let mut wire = Wire::connected();
        let mut request = b"MPA ID Req Frame\x50\x02\x00\x06".to_vec();
        request.extend_from_slice(&[0xc0, 0x04, 0x40, 0x02, 1, 2]);
        wire.send(0, &request);
        let expected = "MPA Request  Rev 2 C S  PD_Length 6  IRD 4 A B  ORD 2 D  private data 2 bytes";
        assert_eq!(lines(&wire), [expected]);
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!((counted(1, "FPDU"), counted(0, "FPDU")), ("1 FPDU".to_owned(), "0 FPDUs".to_owned()));
    }
}
