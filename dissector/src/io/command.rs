//! [`IoCommand`]: a command of a storage protocol, with everything that served it.

use std::net::SocketAddr;

use serde::{Serialize, Serializer};
use weft_core::RequirementId;
use weft_core::requirement::Severity;

use crate::format::named;
use crate::frame_number::FrameNumber;
use crate::stream_id::StreamId;
use crate::upper::Ulp;

/// Maximum number of operations that an [`IoCommand`] lists. Further operations are only counted.
pub const MAX_OPERATIONS: usize = 16;
/// Maximum number of findings that an [`IoCommand`] lists. Further findings are only counted.
pub const MAX_FINDINGS: usize = 8;

named! {
    /// The direction of the data of a command.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum DataFlow {
        /// The command has no data.
        None = "none",
        /// From the sender of the command to its peer, for example a write to a disk.
        ToTarget = "to_target",
        /// From the peer to the sender of the command, for example a read from a disk.
        FromTarget = "from_target",
        /// Both directions.
        Both = "both",
    }
}

named! {
    /// How a command ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum CommandState {
        /// The capture has the response.
        Answered = "answered",
        /// The connection ended before a response, or the number of the command was used again. No
        /// bytes are missing in the capture.
        NotAnswered = "not_answered",
        /// The capture has no response. But bytes of the connection are missing or damaged while
        /// the command was in flight, so the response can be among them.
        Gap = "gap",
        /// Too many commands were in flight, so weft stopped following this one.
        Dropped = "dropped",
        /// A response without a command.
        NoCommand = "no_command",
    }
}

named! {
    /// A kind of operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum OperationKind {
        /// An RDMA Write.
        Write = "write",
        /// An RDMA Read.
        Read = "read",
    }
}

named! {
    /// A contradiction between a command and the operations that serve it, or a cancellation. It is
    /// not a violated requirement.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum NoteKind {
        /// A Write with the STag of the command, but not inside its buffer.
        OutsideBuffer = "outside_buffer",
        /// A Read Request with the STag of the command for bytes outside its buffer.
        ReadTooLong = "read_too_long",
        /// Data of the command after its status.
        DataAfterStatus = "data_after_status",
        /// A Read Request with the STag of the command after its status.
        StagAfterStatus = "stag_after_status",
        /// More data than the command describes.
        TooMuchData = "too_much_data",
        /// The sender used the number of the command again before it got a response.
        IdUsedAgain = "id_used_again",
        /// A response to nothing.
        ResponseToNothing = "response_to_nothing",
        /// The sender of the command cancelled it while it was in flight.
        Cancelled = "cancelled",
    }
}

impl NoteKind {
    /// The note as text.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            NoteKind::OutsideBuffer => "a Write with the command's STag, but outside its buffer",
            NoteKind::ReadTooLong => "a Read of bytes outside the command's buffer",
            NoteKind::DataAfterStatus => "data after the status",
            NoteKind::StagAfterStatus => "a Read Request with the command's STag after the status",
            NoteKind::TooMuchData => "more data than the command describes",
            NoteKind::IdUsedAgain => "a new command with the same id before a response",
            NoteKind::ResponseToNothing => "a response without a command",
            NoteKind::Cancelled => "cancelled by its sender",
        }
    }
}

/// A note about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IoNote {
    /// The kind of note.
    #[serde(serialize_with = "note_name")]
    pub kind: NoteKind,
    /// The first frame that shows it.
    pub frame: FrameNumber,
    /// How often it happened. Consecutive segments of one message can count as one.
    pub count: u64,
}

/// A finding about the connection while the command was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CommandFinding {
    /// The violated requirement.
    pub requirement: RequirementId,
    /// The severity of the finding.
    pub severity: Severity,
    /// The frame that shows the violation.
    pub frame: FrameNumber,
}

/// An operation that served a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IoOperation {
    /// The kind of operation.
    #[serde(serialize_with = "operation_name")]
    pub kind: OperationKind,
    /// The frame of the first segment of the Write, or of the Read Request.
    pub frame: FrameNumber,
    /// STag of the command's buffer.
    pub stag: u32,
    /// Tagged Offset in this buffer.
    pub offset: u64,
    /// Number of written or requested bytes.
    pub bytes: u64,
}

/// The time from a command to its status, in nanoseconds of capture time, and its parts. The parts
/// are absent if the command moved no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// From the first segment of the command to the last segment of its response.
    pub total_ns: u64,
    /// From the command to the first data. It is 0 if the command itself has the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_data_ns: Option<u64>,
    /// From the first to the last data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_ns: Option<u64>,
    /// From the last data to the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_status_ns: Option<u64>,
}

/// A command of a storage protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IoCommand {
    /// Number of the connection.
    pub stream: StreamId,
    /// The storage protocol.
    #[serde(serialize_with = "protocol_name")]
    pub protocol: Ulp,
    /// The sender of the command.
    pub initiator: SocketAddr,
    /// The receiver of the command.
    pub target: SocketAddr,
    /// Number of the queue or of the session, if the protocol has one and it is known.
    pub queue: Option<u64>,
    /// The number by which the response names the command, for example the CID of NVMe.
    pub id: u64,
    /// The name of the command. For [`CommandState::NoCommand`], this is `Response`.
    pub command: &'static str,
    /// The parameters as text; can be empty.
    pub parameters: String,
    /// The direction of the data.
    #[serde(serialize_with = "flow_name")]
    pub data: DataFlow,
    /// The frame of the first segment of the command. For [`CommandState::NoCommand`], of the
    /// response.
    pub frame: FrameNumber,
    /// Capture time of this frame, in nanoseconds since 1970.
    pub time: u64,
    /// How the command ended.
    #[serde(serialize_with = "state_name")]
    pub state: CommandState,
    /// The frame of the last segment of the response.
    pub status_frame: Option<FrameNumber>,
    /// The status as text.
    pub status: Option<String>,
    /// Whether the status is an error.
    pub error: bool,
    /// Number of captured bytes of data that the command moved.
    pub bytes: u64,
    /// Number of bytes that the command describes.
    pub expected_bytes: u64,
    /// The latency, if the capture has the response.
    pub latency: Option<Latency>,
    /// Number of RDMA Writes that served the command.
    pub writes: u64,
    /// Number of RDMA Reads that served the command.
    pub reads: u64,
    /// The STags of the command's buffers, without repetitions.
    pub stags: Vec<u32>,
    /// The first [`MAX_OPERATIONS`] operations that served the command.
    pub operations: Vec<IoOperation>,
    /// Number of retransmissions on the connection while the command was in flight, in both
    /// directions.
    pub retransmissions: u64,
    /// Number of findings about the connection while the command was in flight.
    pub finding_count: u64,
    /// The first [`MAX_FINDINGS`] of these findings.
    pub findings: Vec<CommandFinding>,
    /// Contradictions between the command and the operations, and a cancellation. Each kind is
    /// listed once.
    pub notes: Vec<IoNote>,
    /// Whether bytes of the connection are missing in the capture, or damaged, while the command
    /// was in flight. Then bytes and operations can be too few. For [`CommandState::NoCommand`],
    /// whether the capture can lack the command.
    pub gap: bool,
}

impl IoCommand {
    /// Approximate memory of the texts and lists of the command, in bytes.
    pub(crate) fn heap_memory(&self) -> usize {
        let texts = self.parameters.capacity() + self.status.as_ref().map_or(0, String::capacity);
        let served = self.stags.capacity() * size_of::<u32>() + self.operations.capacity() * size_of::<IoOperation>();
        let found = self.findings.capacity() * size_of::<CommandFinding>();
        texts + served + found + self.notes.capacity() * size_of::<IoNote>()
    }

    /// Adds a note, or counts it if there is already one of its kind.
    pub(super) fn note(&mut self, kind: NoteKind, frame: FrameNumber) {
        match self.notes.iter_mut().find(|note| note.kind == kind) {
            Some(note) => note.count += 1,
            None => self.notes.push(IoNote { kind, frame, count: 1 }),
        }
    }
}

fn note_name<S: Serializer>(kind: &NoteKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

fn operation_name<S: Serializer>(kind: &OperationKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

fn protocol_name<S: Serializer>(protocol: &Ulp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(protocol.name())
}

fn flow_name<S: Serializer>(flow: &DataFlow, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(flow.name())
}

fn state_name<S: Serializer>(state: &CommandState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.name())
}
