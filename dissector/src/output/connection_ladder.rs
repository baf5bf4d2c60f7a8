//! Collects the sequence diagram ([`Ladder`]) of a connection, or of an exchange with a port
//! mapper. The diagram of a connection shows its opening and closing, start-up frames, messages and
//! findings.

use std::collections::VecDeque;

use crate::exchange::Exchange;
use crate::finding::Finding;
use crate::frame_number::FrameNumber;
use crate::packet::{Packet, TransportKind};
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::unit::{Carrier, CrcStatus, Kind, Unit};
use weft_core::requirement::Severity;

use super::ladder::{Ladder, Row, RowKind, Tone};
use super::ladder_rows::Rows;
use super::messages::Messages;
use super::text::{exchange_line, summary};

/// The subject of a diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The connection with this number.
    Stream(StreamId),
    /// The exchange with this number. An exchange is a sequence of messages with a port mapper.
    Exchange(u64),
}

/// A sink that collects the rows of the diagram of one connection or exchange.
#[derive(Debug)]
pub struct Timeline {
    subject: Subject,
    ends: Option<[String; 2]>,
    first: Option<std::net::SocketAddr>,
    origin: u64,
    now: u64,
    messages: Messages,
    rows: Rows,
    seen: [Option<u32>; 2],
    /// Numbers and capture times of the latest frames of the connection.
    times: VecDeque<(FrameNumber, u64)>,
}

/// Maximum length of [`Timeline::times`]. The times are needed for findings, because a finding can
/// arrive after later frames.
const MAX_FRAME_TIMES: usize = 1 << 16;

/// Returns whether a row shows a FIN or RST. The diagram shows such a row after the other rows of
/// the same frame.
fn is_closing(row: &Row) -> bool {
    matches!(row.kind, RowKind::Arrow { dashed: true, .. }) && (row.label == FIN || row.label == RST)
}

const FIN: &str = "FIN";
const RST: &str = "RST";

impl Timeline {
    /// Collects the diagram of `subject` with at most `most` rows.
    #[must_use]
    pub fn new(subject: Subject, most: usize) -> Self {
        Timeline {
            subject,
            ends: None,
            first: None,
            origin: 0,
            now: 0,
            messages: Messages::default(),
            rows: Rows::new(most),
            seen: [None; 2],
            times: VecDeque::new(),
        }
    }

    /// Limits the diagram to the start of the connection, to the rows of `frames`, and to `context`
    /// rows before and after each of these rows. Notes in the diagram count the other rows.
    #[must_use]
    pub fn near(mut self, frames: Vec<FrameNumber>, context: usize) -> Self {
        self.rows.focus(frames, context);
        self
    }

    /// Returns the diagram; `None` if the capture does not contain the subject.
    #[must_use]
    pub fn ladder(self) -> Option<Ladder> {
        let participants = self.ends?;
        let (mut rows, more) = self.rows.into_stored();
        rows.sort_by_key(|row| (row.time, row.frame, is_closing(row)));
        // Some diagrams start with port mapper messages. These messages are older than the
        // connection.
        let origin = rows.first().map_or(self.origin, |row| row.time.min(self.origin));
        rows.iter_mut().for_each(|row| row.time = row.time.saturating_sub(origin));
        let title = format!("What {} and {} sent, in order", participants[0], participants[1]);
        Some(Ladder { title, participants, rows, more })
    }

    /// Sets the capture time of the current frame, in nanoseconds since 1970. Call this method
    /// before the dissector reads the frame.
    pub fn at(&mut self, time: u64) {
        self.now = time;
    }

    fn is_stream(&self, stream: Option<StreamId>) -> bool {
        stream.is_some_and(|stream| self.subject == Subject::Stream(stream))
    }

    /// Adds a datagram of the exchange.
    fn datagram(&mut self, unit: &Unit<'_>) {
        if self.ends.is_none() {
            self.ends = Some([unit.ends.src_text.clone(), unit.ends.dst_text.clone()]);
            self.first = Some(unit.ends.src);
            self.origin = unit.time;
        }
        let from = u8::from(self.first != Some(unit.ends.src));
        self.row(unit.time, unit.frame, RowKind::Arrow { from, dashed: false }, summary(unit), Tone::Plain);
    }

    fn row(&mut self, time: u64, frame: FrameNumber, kind: RowKind, label: String, tone: Tone) {
        self.rows.push(Row { time, frame: (frame != FrameNumber::NONE).then_some(frame), kind, label, tone });
    }
}

impl Sink for Timeline {
    fn packet(&mut self, packet: &Packet) {
        let TransportKind::Tcp { stream, seq, syn, fin, rst, ack } = packet.transport else { return };
        if !self.is_stream(Some(stream)) {
            return;
        }
        if self.ends.is_none() {
            self.ends = Some([packet.src.to_string(), packet.dst.to_string()]);
            self.first = Some(packet.src);
            self.origin = self.now;
        }
        if self.times.len() == MAX_FRAME_TIMES {
            self.times.pop_front();
        }
        self.times.push_back((packet.frame, self.now));
        let from = u8::from(self.first != Some(packet.src));
        let label = match (syn, fin, rst) {
            (_, _, true) => RST,
            (true, _, _) if ack => "SYN ACK",
            (true, _, _) => "SYN",
            (_, true, _) => FIN,
            _ => return,
        };
        // A retransmitted SYN or FIN has no new information.
        let key = seq ^ u32::from(syn);
        if self.seen[usize::from(from)].replace(key) == Some(key) {
            return;
        }
        let tone = if rst { Tone::Notable } else { Tone::Faint };
        self.row(self.now, packet.frame, RowKind::Arrow { from, dashed: true }, label.to_owned(), tone);
    }

    fn unit(&mut self, unit: &Unit<'_>) {
        let exchange = unit.context.and_then(|context| context.exchange.as_ref()).map(|exchange| exchange.exchange);
        if unit.stream.is_none() && exchange.is_some_and(|number| self.subject == Subject::Exchange(number)) {
            return self.datagram(unit);
        }
        if !self.is_stream(unit.stream) {
            return;
        }
        let arrow = RowKind::Arrow { from: unit.direction, dashed: false };
        match &unit.kind {
            Kind::Fpdu(fpdu) => {
                if fpdu.crc_status == CrcStatus::Bad {
                    self.row(unit.time, unit.frame, arrow, summary(unit), Tone::Wrong);
                }
                if let Some(message) = self.messages.unit(unit) {
                    let tone = if message.bad_crc > 0 || message.incomplete > 0 { Tone::Wrong } else { Tone::Plain };
                    let tone = if message.opcode.name() == "Terminate" { Tone::Notable } else { tone };
                    // If the message has only one segment, and this segment has a bad CRC, the code
                    // above has already added a row for the segment.
                    if message.frames.0 != message.frames.1 || fpdu.crc_status != CrcStatus::Bad {
                        self.row(message.time, message.frames.1, arrow, message.to_string(), tone);
                    }
                }
            }
            Kind::Gap { .. } | Kind::Unparsed { .. } => {
                let note = format!("from {}: {}", unit.ends.src_text, summary(unit));
                let time = if unit.frame == FrameNumber::NONE { self.now } else { unit.time };
                self.row(time, unit.frame, RowKind::Note, note, Tone::Notable);
            }
            Kind::Sdp(carrier, ..) => {
                // A Send carries the SDP message. The row of the SDP message has more details than
                // the row of the Send, and so replaces it.
                let sent = self.rows.last().is_some_and(|row| row.kind == arrow && row.frame == Some(unit.frame));
                if *carrier == Carrier::Send && sent {
                    self.rows.pop();
                }
                self.row(unit.time, unit.frame, arrow, summary(unit), Tone::Plain);
            }
            Kind::Startup(..) | Kind::PortMapper(_) | Kind::Streaming { .. } => {
                self.row(unit.time, unit.frame, arrow, summary(unit), Tone::Plain);
            }
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        let client = match &self.first {
            Some(first) if !over && self.is_stream(exchange.streams.last().copied()) => *first,
            _ => return,
        };
        let from = u8::from(exchange.mapped == Some(client));
        let answers =
            [(exchange.request, "PMReq", from), (exchange.accept, "PMAccept", 1 - from), (exchange.ack, "PMAck", from)];
        for (seen, name, from) in answers {
            if let Some(seen) = seen {
                let kind = RowKind::Arrow { from, dashed: false };
                self.row(seen.time, seen.frame, kind, format!("SDP port mapper {name}"), Tone::Plain);
            }
        }
        self.row(
            self.now,
            FrameNumber::NONE,
            RowKind::Note,
            format!("the connection was prepared by {}", exchange_line(exchange)),
            Tone::Faint,
        );
    }

    fn finding(&mut self, finding: &Finding) {
        let of_datagram = matches!(self.subject, Subject::Exchange(_))
            && finding.stream.is_none()
            && self.rows.last().is_some_and(|row| row.frame == Some(finding.frame));
        if !of_datagram && !self.is_stream(finding.stream) {
            return;
        }
        let tone = match finding.severity {
            Severity::Error => Tone::Wrong,
            Severity::Warning => Tone::Notable,
            Severity::Note => Tone::Faint,
        };
        let label = format!("{} {}: {}", finding.severity, finding.requirement, finding.found);
        let known = self.times.binary_search_by_key(&finding.frame, |(frame, _)| *frame).ok();
        let of_packet = known.and_then(|at| self.times.get(at)).map(|(_, time)| *time);
        // `times` has only frames of TCP connections. A finding about a datagram gets the time of
        // the row that shows the datagram.
        let of_row = || self.rows.latest().find(|row| row.frame == Some(finding.frame)).map(|row| row.time);
        let time = of_packet.or_else(of_row).unwrap_or(self.now);
        self.row(time, finding.frame, RowKind::Note, label, tone);
    }
}
