//! Recognises NVMe over RDMA (NVM Express over Fabrics), and reads its capsules. The host opens a
//! connection for each queue: the Admin Queue, or an I/O Queue. It sends command capsules, and the
//! controller sends response capsules. Data moves in command capsules, or by Writes and Reads of
//! the controller.
//!
//! **Proof**: One of three things proves the protocol:
//!
//! - the private data of both start-up frames (see [`PrivateData`]),
//! - a Connect command with in-capsule data that has the names of the host and of the subsystem,
//! - an ordinary command (see [`Command`]) and then, from the peer, a response capsule with the
//!   same CID and with a known status.
//!
//! A port number proves nothing. A Send of the host that is shorter than a command disproves the
//! protocol. So does a Send of the controller that does not have 16 bytes. A Send without bytes
//! neither proves nor disproves the protocol, because such a Send can end the MPA start-up (RFC
//! 6581 section 9).
//!
//! For each connection, weft stores the queue and at most 1024 outstanding commands. If there are
//! more, it removes the oldest command.

mod command;
mod completion;
mod connect_data;
pub(crate) mod names;
mod outstanding;
mod private_data;
mod tcp_pdu;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::rdmap::ReadRequest;

use super::pdu::PduPart;
use super::protocol::{self, Judgement, Len, Protocol, SendInfo, Verdict, only};
use super::startup::{Startup, StartupJudgement};
use crate::direction::Direction;
use crate::parse::SegmentView;
pub(crate) use command::{
    AUTHENTICATION_RECEIVE, AUTHENTICATION_SEND, COMMAND_LEN, CONNECT, DISCONNECT, GET_FEATURES, GET_LOG_PAGE,
    IDENTIFY, PROPERTY_GET, PROPERTY_SET, SET_FEATURES,
};
pub use command::{Command, CommandCode, QueueKind, SglDescriptor};
pub(crate) use completion::COMPLETION_LEN;
pub use completion::{AnsweredCommand, Completion, Status};
pub use connect_data::ConnectData;
pub(crate) use connect_data::{CONNECT_DATA_LEN, HOST_AT, SUBSYSTEM_AT};
use outstanding::Outstanding;
pub use private_data::PrivateData;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// A command capsule.
    Command(Command),
    /// A response capsule.
    Response(Completion),
    /// A Read Response with the data of a Connect command (see [`ConnectData`]).
    ConnectData,
}

impl protocol::Message for Message {
    fn name(&self) -> &'static str {
        match self {
            Message::Command(command) => command.code().name(),
            Message::Response(_) => "Response",
            Message::ConnectData => "Connect data",
        }
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Command(command) => write!(f, " {command}"),
            Message::Response(completion) => write!(f, " {completion}"),
            Message::ConnectData => Ok(()),
        }
    }
}

/// A buffer with the data of a Connect command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Buffer {
    stag: u32,
    offset: u64,
}

/// The state of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// The direction of the host's messages, if it is known.
    host: Option<Direction>,
    /// The queue, from the private data or from a Connect command.
    queue: Option<u16>,
    queue_kind: Option<QueueKind>,
    outstanding: Outstanding,
    /// The buffer of the latest Connect command, if the controller has not read it yet.
    connect_source: Option<Buffer>,
    /// The sink of the controller's Read of this buffer.
    connect_sink: Option<Buffer>,
}

impl Protocol for Connection {
    const NAME: &'static str = "nvme_rdma";
    const TITLE: &'static str = "NVMe/RDMA";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
        if let Some(command) = Command::parse(bytes) {
            let data = bytes.get(COMMAND_LEN..).filter(|_| is_complete).and_then(ConnectData::parse);
            let is_connect = command.fabrics_type() == Some(CONNECT) && command.is_plausible();
            let proves = is_connect && data.is_some_and(|data| data.has_names());
            return Verdict::Is { parsed: Message::Command(command), len: Len::AtLeast(COMMAND_LEN as u64), proves };
        }
        if !is_complete || bytes.is_empty() {
            return Verdict::Open;
        }
        Completion::parse(bytes).map_or(Verdict::Not, |completion| Verdict::Is {
            parsed: Message::Response(completion),
            len: Len::Exactly(COMPLETION_LEN as u64),
            proves: false,
        })
    }

    fn startup(&mut self, startup: &Startup<'_>) -> StartupJudgement {
        if startup.kind == StartupKind::Request {
            let Some(PrivateData::Request { queue, .. }) = PrivateData::of(startup) else {
                return StartupJudgement::Other;
            };
            self.host = Some(startup.direction);
            self.set_queue(queue);
            return StartupJudgement::Belongs;
        }
        if self.host != Some(startup.direction.peer()) {
            return StartupJudgement::Other;
        }
        match PrivateData::of(startup) {
            Some(PrivateData::Accept { .. }) => StartupJudgement::Proves,
            Some(_) => StartupJudgement::Belongs,
            None => {
                // The Request only looked like one of this protocol.
                *self = Connection::default();
                StartupJudgement::Other
            }
        }
    }

    fn message(&mut self, send: &SendInfo, message: &mut Message) -> Judgement {
        match message {
            Message::Command(command) => self.command(send, command),
            Message::Response(completion) => self.response(send, completion),
            Message::ConnectData => Judgement::Open,
        }
    }

    fn read_request(&mut self, direction: Direction, view: &SegmentView<'_>) {
        let (Some(source), Some(host)) = (self.connect_source, self.host) else { return };
        let request = view.payload.get(0..28).and_then(|bytes| ReadRequest::parse(bytes).ok());
        let is_of_connect = |read: &ReadRequest| {
            let is_source = (read.src_stag, read.src_to) == (source.stag, source.offset);
            is_source && read.rdmardsz as usize == CONNECT_DATA_LEN
        };
        if let Some(read) = request.filter(|read| direction != host && is_of_connect(read)) {
            self.connect_sink = Some(Buffer { stag: read.sink_stag, offset: read.sink_to });
            self.connect_source = None;
        }
    }

    fn pdu(octets: &[u8], len: u64) -> Option<PduPart<'_>> {
        tcp_pdu::pdu(octets, len)
    }

    fn headers(bytes: &[u8], is_complete: bool) -> Vec<Range<usize>> {
        match Self::read(bytes, is_complete) {
            Verdict::Is { parsed: Message::Command(command), .. } => {
                let mut ranges = command.headers();
                // Only the names in a complete capsule can prove the protocol.
                let data = bytes.get(COMMAND_LEN..).filter(|_| is_complete && command.fabrics_type() == Some(CONNECT));
                let within = data.map_or_else(Vec::new, connect_data::headers);
                ranges.extend(within.into_iter().map(|range| COMMAND_LEN + range.start..COMMAND_LEN + range.end));
                ranges
            }
            Verdict::Is { .. } => only(0..COMPLETION_LEN),
            // The entry does not end within these bytes.
            Verdict::Open => only(0..bytes.len().min(COMMAND_LEN)),
            Verdict::Not => Vec::new(),
        }
    }

    /// Recognises the Read Response with the data of a Connect command, if the response has only
    /// one segment.
    fn read_response(&mut self, direction: Direction, view: &SegmentView<'_>) -> Option<Message> {
        let Segment::Tagged(header, _) = view.segment else { return None };
        let place = Buffer { stag: header.stag.get(), offset: header.tagged_offset.get() };
        if self.connect_sink != Some(place) || self.host != Some(direction) {
            return None;
        }
        self.connect_sink = None;
        (view.last() && view.payload_len as usize == CONNECT_DATA_LEN).then_some(Message::ConnectData)
    }

    fn memory(&self) -> usize {
        self.outstanding.memory()
    }
}

impl Connection {
    fn set_queue(&mut self, queue: u16) {
        self.queue = Some(queue);
        self.queue_kind = Some(QueueKind::of(queue));
    }

    /// Records a command, and adds its queue and its length.
    fn command(&mut self, send: &SendInfo, command: &mut Command) -> Judgement {
        command.len = u32::try_from(send.len).unwrap_or(u32::MAX);
        if send.is_recognised && self.host == Some(send.direction.peer()) {
            return Judgement::Disproves;
        }
        let is_plausible = command.is_plausible();
        if !send.is_recognised && !is_plausible {
            return Judgement::Open;
        }
        if send.is_recognised {
            self.host.get_or_insert(send.direction);
        }
        if let Some(queue) = command.connected_queue() {
            self.set_queue(queue);
            self.connect_source =
                command.sgl.key.map(|stag| Buffer { stag, offset: command.sgl.address }).filter(|_| is_plausible);
        }
        if self.queue_kind.is_none() {
            self.queue_kind = command.inferred_kind();
        }
        (command.queue, command.queue_kind) = (self.queue, self.queue_kind);
        let answered = AnsweredCommand { code: command.code(), frame: send.frame };
        self.outstanding.add(send.direction, command.command_id, answered);
        Judgement::Open
    }

    /// Adds the command that a completion answers.
    fn response(&mut self, send: &SendInfo, completion: &mut Completion) -> Judgement {
        if send.is_recognised && self.host == Some(send.direction) {
            return Judgement::Disproves;
        }
        let host = send.direction.peer();
        completion.command = self.outstanding.take(host, completion.command_id);
        completion.queue = self.queue;
        if send.is_recognised {
            self.host.get_or_insert(host);
            return Judgement::Open;
        }
        if completion.command.is_none() || completion.status_name().is_none() {
            return Judgement::Open;
        }
        self.host = Some(host);
        Judgement::Proves
    }
}
