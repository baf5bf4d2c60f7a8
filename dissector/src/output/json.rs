//! Writes JSON Lines: one object for each unit, finding and exchange with a port mapper.
//!
//! Every unit has these keys:
//!
//! - `stream`: number of the connection, or null for a datagram
//! - `direction`: 0 if the sender of the unit also sent the first frame of the connection,
//!   otherwise 1
//! - `src` and `dst`: addresses and ports of sender and receiver
//! - `frame`: number of the frame that completed the unit
//! - `time`: capture time of this frame in nanoseconds since 1970
//! - `kind`: type of the unit
//!
//! `incomplete` is 1 if octets of the unit are missing. Units of one direction are in stream order.
//! The order of two units of different directions has no meaning.
//!
//! A finding also has `stream`, `direction`, `frame` and `time`. If the finding arrives
//! [`MAX_FRAME_TIMES`] or more frames after its frame, its `time` is null. If [`Senders`] still has
//! the addresses, the finding has `src` and `dst`. An exchange is written when the dissector drops
//! the exchange, or at the end of the capture.
//!
//! Numbers are JSON integers up to 2^64-1, flags are 0 or 1, and octets are lower-case hexadecimal
//! strings. A field that a unit can have several times is a list of its values. A list of headers,
//! such as the requests in a message of SMB, is an array of objects. If Wireshark has the same
//! field, weft uses Wireshark's name for it. Later versions may add keys, but the meaning of a key
//! never changes.

use std::io::{self, Write};
use std::ops::Range;

use crate::exchange::Exchange;
use crate::finding::Finding;
use crate::format;
use crate::frame_number::FrameNumber;
use crate::grammar::{self, Field, Group, Value, Visitor};
use crate::packet::Packet;
use crate::unit::{Kind, Unit};

use super::senders::Senders;

/// Maximum number of stored frame times. Findings need the times of the latest frames.
pub const MAX_FRAME_TIMES: usize = 1 << 16;

/// Writes units, findings and exchanges.
#[derive(Default)]
pub struct JsonWriter {
    line: Vec<u8>,
    /// The number and the capture time of each of the latest frames. The index is the frame number
    /// modulo [`MAX_FRAME_TIMES`].
    times: Vec<(FrameNumber, u64)>,
    senders: Senders,
    /// The fields of the current unit that can have several values: name, and values with commas
    /// between them.
    lists: Vec<(&'static str, Vec<u8>)>,
    /// The open headers and lists of the unit, the innermost last.
    open: Vec<Level>,
}

/// A level of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// A header whose fields are keys of the object around it.
    Header,
    /// A list. It is an array of objects.
    List,
    /// A header in a list. It is an object.
    Item,
}

/// The keys of a finding that the finding itself does not determine. `None` omits a key.
#[derive(Debug, Clone, Copy, Default)]
pub struct FindingKeys<'a> {
    /// If there are several captures, the name of the capture.
    pub file: Option<&'a str>,
    /// If several captures are read as one capture, the number that the frame has in its own file.
    pub frame_in_file: Option<FrameNumber>,
    /// The number of the problem that the finding belongs to.
    pub problem: Option<u64>,
}

impl JsonWriter {
    /// Records the capture time of a frame. Findings about the frame need this time.
    pub fn frame(&mut self, number: FrameNumber, time: u64) {
        let at = (u64::from(number) % MAX_FRAME_TIMES as u64) as usize;
        if self.times.len() <= at {
            self.times.resize(at + 1, (FrameNumber::NONE, 0));
        }
        self.times[at] = (number, time);
    }

    /// Records the addresses of a packet. Findings about the connection or the datagram need these
    /// addresses.
    pub fn packet(&mut self, packet: &Packet) {
        self.senders.packet(packet);
    }

    fn time_of(&self, number: FrameNumber) -> Option<u64> {
        let (there, time) = self.times.get((u64::from(number) % MAX_FRAME_TIMES as u64) as usize)?;
        (*there == number && number != FrameNumber::NONE).then_some(*time)
    }

    /// Writes the object of `unit` and a line feed.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn write(&mut self, unit: &Unit<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.line.clear();
        self.unit(unit);
        out.write_all(&self.line)
    }

    fn unit(&mut self, unit: &Unit<'_>) {
        self.open.clear();
        self.line.extend_from_slice(b"{\"stream\":");
        match unit.stream {
            Some(stream) => self.uint(u64::from(stream)),
            None => self.line.extend_from_slice(b"null"),
        }
        self.line.extend_from_slice(if unit.direction == 0 { b",\"direction\":0" } else { b",\"direction\":1" });
        self.line.extend_from_slice(b",\"src\":");
        self.quoted(&unit.ends.src_text);
        self.line.extend_from_slice(b",\"dst\":");
        self.quoted(&unit.ends.dst_text);
        self.line.extend_from_slice(b",\"frame\":");
        self.uint(unit.frame.into());
        self.number("time", unit.time);
        self.line.extend_from_slice(b",\"kind\":");
        self.quoted(unit.kind.name());
        if unit.incomplete {
            self.line.extend_from_slice(b",\"incomplete\":1");
        }
        match &unit.kind {
            Kind::Streaming { len, crc32, .. } => {
                self.number("len", *len);
                if let Some(crc32) = crc32 {
                    self.number("payload_crc32", u64::from(*crc32));
                }
            }
            Kind::Gap { len } | Kind::Unparsed { len } => self.number("len", *len),
            _ => {}
        }
        let payload = grammar::walk(unit, self);
        self.write_lists();
        if let Some(payload) = payload {
            self.number("payload_len", payload.len() as u64);
            if let Some(octets) = payload.all() {
                self.number("payload_crc32", u64::from(crc32fast::hash(octets)));
            }
        }
        self.line.extend_from_slice(b"}\n");
    }

    /// Writes the fields that can have several values.
    fn write_lists(&mut self) {
        for (name, values) in std::mem::take(&mut self.lists) {
            self.key(name);
            self.line.push(b'[');
            self.line.extend_from_slice(&values);
            self.line.push(b']');
        }
    }

    fn key(&mut self, name: &str) {
        // The first key of an object has no comma before it.
        if self.line.last() != Some(&b'{') {
            self.line.push(b',');
        }
        self.line.push(b'"');
        self.line.extend_from_slice(name.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    fn number(&mut self, name: &str, value: u64) {
        self.key(name);
        self.uint(value);
    }

    fn quoted(&mut self, text: &str) {
        self.line.push(b'"');
        self.line.extend_from_slice(text.as_bytes());
        self.line.push(b'"');
    }

    fn uint(&mut self, value: u64) {
        format::decimal(value, &mut self.line);
    }
}

impl Visitor for JsonWriter {
    fn enter(&mut self, _: &'static Group, _: Range<usize>) {
        if self.open.last() != Some(&Level::List) {
            self.open.push(Level::Header);
            return;
        }
        if self.line.last() != Some(&b'[') {
            self.line.push(b',');
        }
        self.line.push(b'{');
        self.open.push(Level::Item);
    }

    fn leave(&mut self) {
        if self.open.pop() == Some(Level::Item) {
            self.line.push(b'}');
        }
    }

    fn begin_list(&mut self, group: &'static Group) {
        self.key(group.name);
        self.line.push(b'[');
        self.open.push(Level::List);
    }

    fn end_list(&mut self) {
        self.open.pop();
        self.line.push(b']');
    }

    fn field(&mut self, field: &'static Field, value: Value<'_>, _: Range<usize>) {
        if !grammar::is_list(field) {
            self.key(field.name);
            return self.value(value);
        }
        let start = self.line.len();
        self.value(value);
        let value = self.line.split_off(start);
        match self.lists.iter_mut().find(|(name, _)| *name == field.name) {
            Some((_, values)) => {
                values.push(b',');
                values.extend_from_slice(&value);
            }
            None => self.lists.push((field.name, value)),
        }
    }
}

impl JsonWriter {
    fn value(&mut self, value: Value<'_>) {
        match value {
            Value::Uint(value) => self.uint(value),
            Value::Octets(octets) => {
                self.line.push(b'"');
                format::hex_octets(octets, &mut self.line);
                self.line.push(b'"');
            }
            Value::Text(text) => self.quoted(text),
            Value::PeerText(text) => {
                // Writing to memory cannot fail.
                let _ = serde_json::to_writer(&mut self.line, text);
            }
            Value::PeerTexts(texts) => {
                let _ = serde_json::to_writer(&mut self.line, texts);
            }
            Value::Address(address) => self.quoted(&address.to_string()),
            Value::Pointers(markers) => {
                self.line.push(b'[');
                for (i, marker) in markers.iter().enumerate() {
                    if i > 0 {
                        self.line.push(b',');
                    }
                    match marker {
                        Some([_, _, high, low]) => self.uint(u64::from(u16::from_be_bytes([*high, *low]))),
                        None => self.line.extend_from_slice(b"null"),
                    }
                }
                self.line.push(b']');
            }
        }
    }

    /// Writes the object of an exchange with a port mapper (kind `sdp_pm_exchange`) and a line
    /// feed.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn exchange(&mut self, exchange: &Exchange, out: &mut dyn Write) -> io::Result<()> {
        let mut object =
            serde_json::json!({"stream": null, "kind": "sdp_pm_exchange", "state": exchange.state().name()});
        if let (Some(object), Ok(serde_json::Value::Object(fields))) =
            (object.as_object_mut(), serde_json::to_value(exchange))
        {
            object.extend(fields);
        }
        writeln!(out, "{object}")
    }

    /// Writes the object of a finding (kind `finding`) and a line feed.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn finding(&mut self, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
        self.finding_of(FindingKeys::default(), finding, out)
    }

    /// Writes a finding like [`JsonWriter::finding`], with further keys.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn finding_of(&mut self, keys: FindingKeys<'_>, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
        let row = finding.requirement.row();
        let octets: Vec<_> = finding
            .locations
            .iter()
            .map(|l| serde_json::json!({"frame": l.frame, "offset": l.offset, "len": l.len}))
            .collect();
        let mut object = serde_json::json!({
            "stream": finding.stream, "frame": finding.frame, "time": self.time_of(finding.frame), "kind": "finding", "severity": finding.severity,
            "requirement": finding.requirement, "level": row.level.to_string(), "summary": row.summary,
            "section": row.section, "direction": finding.direction, "expected": finding.expected,
            "found": finding.found, "octets": octets,
        });
        if let Some((src, dst)) = self.senders.of(finding) {
            object["src"] = src.to_string().into();
            object["dst"] = dst.to_string().into();
        }
        if let Some(file) = keys.file {
            object["file"] = file.into();
        }
        if let Some(number) = keys.frame_in_file {
            object["frame_in_file"] = u64::from(number).into();
        }
        if let Some(number) = keys.problem {
            object["problem"] = number.into();
        }
        writeln!(out, "{object}")
    }
}
