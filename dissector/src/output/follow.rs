//! The traffic of one connection, piece by piece in the order of the capture: its messages, their
//! payload, or the octets of its FPDUs.
//!
//! The caller decides how pieces are shown: `weft follow` prints them, the terminal screen makes
//! lines of them.

use crate::exchange::Exchange;
use crate::packet::{Packet, TransportKind};
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::unit::{Kind, Unit};

use super::messages::{Message, Messages};
use super::text::{exchange_line, summary};

/// The kind of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Reassembled RDMAP messages, SDP messages, start-up frames.
    Messages,
    /// Payload of Sends, Writes and Read Responses, and the shown part of octets outside MPA.
    Payload,
    /// The octets of start-up frames and FPDUs, without markers and CRC fields.
    Octets,
}

/// A piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The frame in which it ended; `None` if it concerns several connections.
    pub frame: Option<u64>,
    /// Its sender: 0 the end that sent the first frame, 1 the other.
    pub direction: u8,
    /// A line about it, for [`Subject::Messages`].
    pub head: Option<String>,
    /// Its octets.
    pub octets: &'a [u8],
    /// Number of further octets that are not shown.
    pub more: u64,
}

/// Calls `each` with the pieces of one connection.
pub struct Follow<F> {
    stream: StreamId,
    direction: Option<u8>,
    what: Subject,
    each: F,
    messages: Messages,
    seen: bool,
}

impl<F: FnMut(&Piece<'_>)> Follow<F> {
    /// Follows connection `stream`; `direction`: only the traffic that this end sends.
    pub fn new(stream: StreamId, direction: Option<u8>, what: Subject, each: F) -> Self {
        Follow { stream, direction, what, each, messages: Messages::default(), seen: false }
    }

    /// Does the capture have the connection?
    pub fn is_seen(&self) -> bool {
        self.seen
    }

    fn show(&mut self, unit: &Unit<'_>) {
        let message = self.messages.unit(unit);
        let octets = match &unit.kind {
            Kind::Startup(_, part) | Kind::Sdp(_, _, part) => part.raw().0,
            Kind::Fpdu(fpdu) => fpdu.body.raw().0,
            Kind::Streaming { head, .. } => head,
            Kind::PortMapper(_) | Kind::Gap { .. } | Kind::Unparsed { .. } => &[],
        };
        match (self.what, &unit.kind) {
            (Subject::Octets, Kind::Sdp(..)) | (Subject::Payload, Kind::Startup(..) | Kind::Sdp(..)) => {}
            (Subject::Payload, Kind::PortMapper(_) | Kind::Gap { .. } | Kind::Unparsed { .. }) => {}
            (Subject::Octets, _) | (Subject::Payload, Kind::Streaming { .. }) => self.octets(unit, unit.frame, octets),
            (Subject::Messages, Kind::Fpdu(_)) => {
                if let Some(message) = message {
                    self.message(unit, &message);
                }
            }
            (Subject::Messages, _) => {
                let head = Some(head(unit, unit.frame, &summary(unit)));
                (self.each)(&Piece { frame: Some(unit.frame), direction: unit.direction, head, octets, more: 0 });
            }
            (Subject::Payload, Kind::Fpdu(_)) => {
                if let Some(message) = message.filter(carries) {
                    self.octets(unit, message.frames.1, &message.octets);
                }
            }
        }
    }

    fn octets(&mut self, unit: &Unit<'_>, frame: u64, octets: &[u8]) {
        (self.each)(&Piece { frame: Some(frame), direction: unit.direction, head: None, octets, more: 0 });
    }

    fn message(&mut self, unit: &Unit<'_>, message: &Message) {
        let frames = match message.frames {
            (first, last) if first == last => String::new(),
            (first, _) => format!("  from frame {first}"),
        };
        let frame = message.frames.1;
        (self.each)(&Piece {
            frame: Some(frame),
            direction: unit.direction,
            head: Some(head(unit, frame, &format!("{message}{frames}"))),
            octets: &message.octets,
            more: message.len - message.octets.len() as u64,
        });
    }
}

fn head(unit: &Unit<'_>, frame: u64, what: &str) -> String {
    format!("frame {frame}  {} → {}  {what}", unit.ends.src_text, unit.ends.dst_text)
}

/// Does a message carry octets of the ULP, and not of RDMAP itself?
fn carries(message: &Message) -> bool {
    // RFC 5040: Write 0, Read Response 2, Sends 3 to 6; RFC 7306: Immediate Data 8 and 9.
    matches!(message.opcode.0, 0 | 2..=6 | 8 | 9)
}

impl<F: FnMut(&Piece<'_>)> Sink for Follow<F> {
    fn unit(&mut self, unit: &Unit<'_>) {
        if unit.stream == Some(self.stream) && self.direction.is_none_or(|one| one == unit.direction) {
            self.show(unit);
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        if !over && exchange.streams.last() == Some(&self.stream) && self.what == Subject::Messages {
            let head = Some(exchange_line(exchange));
            (self.each)(&Piece { frame: None, direction: 0, head, octets: &[], more: 0 });
        }
    }

    fn packet(&mut self, packet: &Packet) {
        self.seen |= matches!(packet.transport, TransportKind::Tcp { stream, .. } if stream == self.stream);
    }
}
