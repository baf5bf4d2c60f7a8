//! Selects the traffic of one connection, in capture order. A [`Subject`] selects messages,
//! their payload, or the octets of FPDUs.
//!
//! A [`Piece`] is one message, payload or FPDU. The caller displays the pieces: `weft follow`
//! prints them, and the terminal user interface converts them to lines.

use crate::exchange::Exchange;
use crate::frame_number::FrameNumber;
use crate::packet::Packet;
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::unit::{Kind, Unit};

use super::messages::{Message, Messages};
use super::text::{exchange_line, summary};

/// The kind of selected traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Reassembled RDMAP messages, SDP messages and start-up frames.
    Messages,
    /// The payload of Sends, Writes, Read Responses and Immediate Data. Also the first octets of
    /// streaming data.
    Payload,
    /// The octets of start-up frames and FPDUs, without markers and CRC fields. Also the first
    /// octets of streaming data.
    Octets,
}

/// One message, payload or FPDU of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The frame that completed the piece; `None` for an exchange with a port mapper.
    pub frame: Option<FrameNumber>,
    /// Number of the direction: 0 if the sender of the piece sent the first frame of the
    /// connection, otherwise 1.
    pub direction: u8,
    /// A line that describes the piece. Only [`Subject::Messages`] has this line.
    pub head: Option<String>,
    /// The first octets of the piece, or all octets of the piece.
    pub octets: &'a [u8],
    /// Number of octets of the piece that are not in `octets`.
    pub more: u64,
}

/// A sink that calls `each` with every piece of one connection.
pub struct Follow<F> {
    stream: StreamId,
    direction: Option<u8>,
    subject: Subject,
    each: F,
    messages: Messages,
    seen: bool,
}

impl<F: FnMut(&Piece<'_>)> Follow<F> {
    /// Selects the traffic of connection `stream`. If `direction` is set, selects only the traffic
    /// in this direction.
    pub fn new(stream: StreamId, direction: Option<u8>, subject: Subject, each: F) -> Self {
        Follow { stream, direction, subject, each, messages: Messages::default(), seen: false }
    }

    /// Returns whether the capture contains the connection.
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
        match (self.subject, &unit.kind) {
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

    fn octets(&mut self, unit: &Unit<'_>, frame: FrameNumber, octets: &[u8]) {
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

fn head(unit: &Unit<'_>, frame: FrameNumber, what: &str) -> String {
    format!("frame {frame}  {} → {}  {what}", unit.ends.src_text, unit.ends.dst_text)
}

/// Returns whether the octets of a message are payload of the upper-layer protocol.
fn carries(message: &Message) -> bool {
    // In RFC 5040, Write has opcode 0, Read Response has opcode 2, and Sends have opcodes 3 to 6.
    // In RFC 7306, Immediate Data has opcodes 8 and 9.
    matches!(message.opcode.0, 0 | 2..=6 | 8 | 9)
}

impl<F: FnMut(&Piece<'_>)> Sink for Follow<F> {
    fn unit(&mut self, unit: &Unit<'_>) {
        if unit.stream == Some(self.stream) && self.direction.is_none_or(|one| one == unit.direction) {
            self.show(unit);
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        if !over && exchange.streams.last() == Some(&self.stream) && self.subject == Subject::Messages {
            let head = Some(exchange_line(exchange));
            (self.each)(&Piece { frame: None, direction: 0, head, octets: &[], more: 0 });
        }
    }

    fn packet(&mut self, packet: &Packet) {
        self.seen |= packet.transport.stream() == Some(self.stream);
    }
}
