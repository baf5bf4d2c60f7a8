//! Recognises iSER (RFC 7145), and reads its messages. iSER carries iSCSI (RFC 7143). Each Send has
//! an iSER header and then an iSCSI PDU, or it is an iSER Hello or HelloReply. The data of commands
//! moves in the PDUs of commands, or by Writes and Reads of the target. So iSER has no Data-In and
//! no Ready To Transfer.
//!
//! **Proof**: One of three things proves the protocol:
//!
//! - a Login Request or a Login Response with text keys,
//! - a request and then, from the peer, the response of this kind with the same Initiator Task Tag,
//! - a Hello and then, from the peer, a HelloReply.
//!
//! In these PDUs, reserved fields must be zero, and the lengths must fit the length of the Send. A
//! port number proves nothing. A Send disproves the protocol if it does not start with an iSER
//! header and the BHS of a PDU with an assigned opcode. A Send without bytes neither proves nor
//! disproves the protocol, because such a Send can end the MPA start-up (RFC 6581 section 9).
//!
//! For each connection, weft stores at most 1024 requests that have no response yet. If there are
//! more, it removes the oldest request. If a Send has several segments, weft reads only the first
//! segment.

mod cdb;
mod content;
mod header;
pub(crate) mod names;
mod opcode;
mod pdu;
mod sense;
mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use std::fmt;
use std::ops::Range;

use super::pdu::{DissectorName, PduPart};
use super::protocol::{self, Judgement, Len, Protocol, SendInfo, Verdict, only};
use crate::direction::Direction;
pub use cdb::{Blocks, Cdb, Lun};
pub use content::{Content, LoginStages, RequestNumbers, Residual, ResponseNumbers, ScsiCommand, ScsiResponse};
pub(crate) use header::HEADER_LEN;
pub use header::{Buffer, ControlHeader, Hello, HelloReply};
use header::{CONTROL, HELLO, HELLO_REPLY};
pub use opcode::Opcode;
pub(crate) use pdu::HEAD_LEN;
use pdu::NO_TAG;
pub use pdu::{Pdu, RejectedPdu};
pub use sense::{Sense, Status};
pub use tasks::Task;
use tasks::Tasks;

/// Wireshark's dissector for iSCSI PDUs.
const DISSECTOR: DissectorName = DissectorName::Registered("iscsi");

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// An iSCSI PDU.
    Pdu(Pdu),
    /// An iSER Hello.
    Hello(Hello),
    /// An iSER HelloReply.
    HelloReply(HelloReply),
}

impl protocol::Message for Message {
    fn name(&self) -> &'static str {
        match self {
            Message::Pdu(pdu) => pdu.opcode().name(),
            Message::Hello(_) => "Hello",
            Message::HelloReply(_) => "HelloReply",
        }
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Pdu(pdu) => details(pdu, f),
            Message::Hello(hello) => {
                write!(f, " versions {} to {} IRD {}", hello.min_version, hello.max_version, hello.ird)
            }
            Message::HelloReply(reply) => {
                write!(f, " version {} ORD {}", reply.current_version, reply.ord)?;
                if reply.rejects() { f.write_str(" rejects the connection") } else { Ok(()) }
            }
        }
    }
}

/// Writes the fields of a PDU, each after a space.
fn details(pdu: &Pdu, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}", pdu.content())?;
    if pdu.task_tag() != NO_TAG {
        write!(f, " ITT {:#010x}", pdu.task_tag())?;
    }
    if pdu.data_len() > 0 {
        write!(f, " data {}", pdu.data_len())?;
    }
    let header = pdu.header();
    for (name, buffer) in [("write", header.write()), ("read", header.read())] {
        if let Some(Buffer { stag, base_offset }) = buffer {
            write!(f, " {name} STag {stag:#010x} offset {base_offset:#x}")?;
        }
    }
    if let Some(request) = pdu.request {
        write!(f, " to {} in frame {}", request.name(), request.frame)?;
    }
    if let Some(sense) = pdu.sense {
        write!(f, " ({sense})")?;
    }
    if pdu.opcode().is_forbidden() {
        f.write_str(" (not allowed in iSER)")?;
    }
    if pdu.fits() { Ok(()) } else { write!(f, " (lengths do not fit the {} bytes of the Send)", pdu.len) }
}

/// The state of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    tasks: Tasks,
    /// The direction of a plausible Hello.
    hello: Option<Direction>,
}

impl Protocol for Connection {
    const NAME: &'static str = "iser";
    const TITLE: &'static str = "iSER";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
        let short = if is_complete { Verdict::Not } else { Verdict::Open };
        let Some(first) = bytes.first() else { return Verdict::Open };
        let (parsed, len) = match first >> 4 {
            CONTROL if bytes.len() < HEAD_LEN => return short,
            CONTROL => {
                let Some(pdu) = Pdu::parse(bytes) else { return Verdict::Not };
                (Message::Pdu(pdu), Len::AtLeast(HEAD_LEN as u64))
            }
            HELLO | HELLO_REPLY => {
                let Some(header) = bytes.first_chunk() else { return short };
                let parsed = if first >> 4 == HELLO {
                    Message::Hello(Hello::new(header))
                } else {
                    Message::HelloReply(HelloReply::new(header))
                };
                (parsed, Len::Exactly(HEADER_LEN as u64))
            }
            _ => return Verdict::Not,
        };
        Verdict::Is { parsed, len, proves: false }
    }

    fn message(&mut self, send: &SendInfo, message: &mut Message) -> Judgement {
        match message {
            Message::Pdu(pdu) => self.record_pdu(send, pdu),
            Message::Hello(hello) => {
                self.hello = hello.is_plausible().then_some(send.direction);
                Judgement::Open
            }
            Message::HelloReply(reply) if reply.is_plausible() && self.hello == Some(send.direction.peer()) => {
                Judgement::Proves
            }
            Message::HelloReply(_) => Judgement::Open,
        }
    }

    /// Returns the iSCSI PDU after the iSER header. A Hello and a HelloReply have none.
    fn pdu(octets: &[u8], len: u64) -> Option<PduPart<'_>> {
        let (header, pdu) = octets.split_first_chunk::<HEADER_LEN>()?;
        (header[0] >> 4 == CONTROL).then(|| PduPart::new(DISSECTOR, pdu, len.saturating_sub(HEADER_LEN as u64)))
    }

    fn headers(bytes: &[u8], is_complete: bool) -> Vec<Range<usize>> {
        match Self::read(bytes, is_complete) {
            Verdict::Is { parsed: Message::Pdu(pdu), .. } => pdu.headers(bytes),
            Verdict::Is { .. } => only(0..HEADER_LEN),
            // The headers do not end within these bytes.
            Verdict::Open => only(0..bytes.len().min(HEAD_LEN)),
            Verdict::Not => Vec::new(),
        }
    }

    fn memory(&self) -> usize {
        self.tasks.memory()
    }
}

impl Connection {
    /// Records a request. Adds the request to a response. As long as the protocol is not
    /// recognised, this method ignores PDUs that are not plausible.
    fn record_pdu(&mut self, send: &SendInfo, pdu: &mut Pdu) -> Judgement {
        pdu.len = u32::try_from(send.len).unwrap_or(u32::MAX);
        if !send.is_recognised && !pdu.is_plausible() {
            return Judgement::Open;
        }
        let (opcode, tag) = (pdu.opcode(), pdu.task_tag());
        if tag != NO_TAG {
            if opcode.has_response() {
                self.tasks.add(send.direction, tag, pdu.task(send.frame));
            } else if let Some(request) = opcode.request() {
                pdu.request = self.tasks.take(send.direction.peer(), tag, request);
            }
        }
        if pdu.request.is_some() || pdu.is_proof() { Judgement::Proves } else { Judgement::Open }
    }
}

/// The message in the Send `octets`, for tests of fields.
#[cfg(test)]
pub(crate) fn message_of(octets: &[u8]) -> Message {
    let Verdict::Is { mut parsed, .. } = Connection::read(octets, true) else { panic!("not iSER: {octets:02x?}") };
    let send = SendInfo {
        direction: Direction::Forward,
        frame: crate::frame_number::FrameNumber::FIRST,
        len: octets.len() as u64,
        is_recognised: true,
    };
    Connection::default().message(&send, &mut parsed);
    parsed
}
