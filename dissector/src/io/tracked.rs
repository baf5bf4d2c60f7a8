//! [`TrackedCommand`]: a command that has not been returned yet: it is in flight, or its response
//! is recent.

use std::net::SocketAddr;

use super::access::Access;
use super::command::{
    CommandFinding, CommandState, DataFlow, IoCommand, IoOperation, Latency, MAX_FINDINGS, MAX_OPERATIONS, NoteKind,
    OperationKind,
};
use super::event::{Begin, Buffer, End};
use crate::direction::Direction;
use crate::exchange::CapturePoint;
use crate::finding::Finding;
use crate::frame_number::FrameNumber;
use crate::stream_id::StreamId;
use crate::upper::Ulp;

/// Maximum number of buffers of a command. Further buffers are ignored.
pub(super) const MAX_BUFFERS: usize = 64;

/// The properties of the connection that each of its commands has.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandOrigin {
    pub(super) stream: StreamId,
    pub(super) protocol: Ulp,
    pub(super) initiator: SocketAddr,
    pub(super) target: SocketAddr,
}

impl CommandOrigin {
    /// A command without its parameters and without an end.
    fn line(&self, id: u64, queue: Option<u64>, at: CapturePoint) -> IoCommand {
        IoCommand {
            stream: self.stream,
            protocol: self.protocol,
            initiator: self.initiator,
            target: self.target,
            queue,
            id,
            command: "Response",
            parameters: String::new(),
            data: DataFlow::None,
            frame: at.frame,
            time: at.time,
            state: CommandState::NoCommand,
            status_frame: None,
            status: None,
            error: false,
            bytes: 0,
            expected_bytes: 0,
            latency: None,
            writes: 0,
            reads: 0,
            stags: Vec::new(),
            operations: Vec::new(),
            retransmissions: 0,
            finding_count: 0,
            findings: Vec::new(),
            notes: Vec::new(),
            gap: false,
        }
    }

    /// The line of a response without a command. `gap` is set if the capture can lack the command.
    pub(super) fn response(&self, end: End, at: CapturePoint, gap: bool) -> IoCommand {
        let mut line = self.line(end.id, end.queue, at);
        line.status_frame = Some(at.frame);
        (line.status, line.error, line.gap) = (Some(end.status), end.is_error, gap);
        if !gap {
            line.note(NoteKind::ResponseToNothing, at.frame);
        }
        line
    }
}

/// A command that has not been returned yet.
#[derive(Debug)]
pub(super) struct TrackedCommand {
    /// Number of the command on its connection.
    pub(super) serial: u64,
    /// The direction of the command.
    pub(super) direction: Direction,
    /// The first segment of the command.
    pub(super) began: CapturePoint,
    /// The last segment of the response.
    pub(super) answered: Option<CapturePoint>,
    /// The second number of the command, from its interim response.
    pub(super) async_id: Option<u64>,
    /// The advertised buffers.
    buffers: Vec<Buffer>,
    /// Number of retransmissions on the connection before the command.
    retransmissions_before: u64,
    /// Times of the first and the last data before the status, in nanoseconds since 1970.
    data: Option<(u64, u64)>,
    /// STag and offset of the next segment of an incomplete Write.
    open_write: Option<(u32, u64)>,
    line: IoCommand,
}

impl TrackedCommand {
    /// A command whose message was captured from `began` to `ended`.
    pub(super) fn new(
        (serial, direction): (u64, Direction),
        origin: &CommandOrigin,
        begin: Begin,
        (began, ended): (CapturePoint, CapturePoint),
        retransmissions_before: u64,
    ) -> Self {
        let Begin { id, queue, kind, parameters, flow, expected_bytes, inline_bytes, mut buffers, .. } = begin;
        buffers.truncate(MAX_BUFFERS);
        let mut line = origin.line(id, queue, began);
        (line.command, line.parameters, line.data) = (kind, parameters, flow);
        (line.expected_bytes, line.bytes) = (expected_bytes, inline_bytes);
        for buffer in &buffers {
            if !line.stags.contains(&buffer.stag) {
                line.stags.push(buffer.stag);
            }
        }
        let data = (inline_bytes > 0).then_some((began.time, ended.time));
        TrackedCommand {
            serial,
            direction,
            began,
            answered: None,
            async_id: None,
            buffers,
            retransmissions_before,
            data,
            open_write: None,
            line,
        }
    }

    /// The number by which the response names the command.
    pub(super) fn id(&self) -> u64 {
        self.line.id
    }

    /// Returns whether a buffer contains the complete access.
    pub(super) fn contains(&self, access: &Access) -> bool {
        self.buffers.iter().any(|buffer| access.is_inside(buffer))
    }

    /// Returns whether a buffer has the STag of the access.
    pub(super) fn has_stag_of(&self, access: &Access) -> bool {
        self.buffers.iter().any(|buffer| buffer.stag == access.stag)
    }

    /// Returns whether the command was in flight in frame `frame`.
    pub(super) fn is_in_flight_at(&self, frame: FrameNumber) -> bool {
        self.began.frame <= frame && self.answered.is_none_or(|answered| frame <= answered.frame)
    }

    /// Adds a note about the command.
    pub(super) fn note(&mut self, kind: NoteKind, frame: FrameNumber) {
        self.line.note(kind, frame);
    }

    /// Records that bytes of the connection are missing.
    pub(super) fn record_gap(&mut self) {
        self.line.gap = true;
    }

    /// Sets the name and the parameters, which were not known before.
    pub(super) fn describe(&mut self, kind: &'static str, parameters: String) {
        (self.line.command, self.line.parameters) = (kind, parameters);
    }

    /// Records data in a further message of the sender of the command. The message was captured
    /// from `span.0` to `span.1`.
    pub(super) fn add_inline_data(&mut self, bytes: u64, span: (CapturePoint, CapturePoint)) {
        if bytes > 0 {
            self.line.bytes += bytes;
            self.extend_data(span.0.time, span.1.time);
        }
    }

    /// Records a Write inside a buffer.
    pub(super) fn write(&mut self, access: &Access, is_last: bool) {
        let next = access.offset.wrapping_add(access.len);
        if self.open_write != Some((access.stag, access.offset)) {
            self.line.writes += 1;
            self.add_operation(OperationKind::Write, access);
        } else if let Some(latest) = self.line.operations.last_mut()
            && (latest.kind, latest.stag) == (OperationKind::Write, access.stag)
            && latest.offset.wrapping_add(latest.bytes) == access.offset
        {
            latest.bytes += access.len;
        }
        self.open_write = (!is_last).then_some((access.stag, next));
        // A late Write is judged by the connection, which knows whether the capture has gaps.
        self.add_data(access, false);
    }

    /// Records a Read Request for bytes of a buffer.
    pub(super) fn read_request(&mut self, access: &Access) {
        self.line.reads += 1;
        self.add_operation(OperationKind::Read, access);
    }

    /// Records data that a Write or a Read Response moves. `is_certain` is set if the data cannot
    /// belong to another command.
    pub(super) fn add_data(&mut self, access: &Access, is_certain: bool) {
        self.line.bytes += access.len;
        if self.answered.is_some_and(|answered| answered.frame < access.first.frame) {
            if is_certain {
                self.line.note(NoteKind::DataAfterStatus, access.first.frame);
            }
            return;
        }
        self.extend_data(access.first.time, access.latest.time);
    }

    fn extend_data(&mut self, first: u64, last: u64) {
        let (from, to) = self.data.unwrap_or((first, last));
        self.data = Some((from.min(first), to.max(last)));
    }

    fn add_operation(&mut self, kind: OperationKind, access: &Access) {
        if self.line.operations.len() < MAX_OPERATIONS {
            let Access { stag, offset, len: bytes, first, .. } = *access;
            self.line.operations.push(IoOperation { kind, frame: first.frame, stag, offset, bytes });
        }
    }

    /// Records a finding about the connection.
    pub(super) fn add_finding(&mut self, finding: &Finding) {
        self.line.finding_count += 1;
        if self.line.findings.len() < MAX_FINDINGS {
            let Finding { requirement, severity, frame, .. } = *finding;
            self.line.findings.push(CommandFinding { requirement, severity, frame });
        }
    }

    /// Records the response, which was captured from `began` to `ended`. `retransmissions` is the
    /// number of retransmissions on the connection up to the response.
    pub(super) fn answer(&mut self, end: End, began: CapturePoint, ended: CapturePoint, retransmissions: u64) {
        if end.inline_bytes > 0 {
            self.line.bytes += end.inline_bytes;
            self.extend_data(began.time, ended.time);
        }
        self.answered = Some(ended);
        self.line.state = CommandState::Answered;
        self.line.status_frame = Some(ended.frame);
        self.line.status = Some(end.status);
        self.line.error = end.is_error;
        self.line.retransmissions = retransmissions.saturating_sub(self.retransmissions_before);
    }

    /// Ends the command without a response. `retransmissions` is the number of retransmissions on
    /// the connection so far.
    pub(super) fn abandon(mut self, retransmissions: u64, is_dropped: bool) -> IoCommand {
        self.line.state = match (is_dropped, self.line.gap) {
            (true, _) => CommandState::Dropped,
            (false, true) => CommandState::Gap,
            (false, false) => CommandState::NotAnswered,
        };
        self.line.retransmissions = retransmissions.saturating_sub(self.retransmissions_before);
        self.line
    }

    /// The result of an answered command.
    pub(super) fn into_line(self) -> IoCommand {
        let mut line = self.line;
        line.latency = self.answered.map(|answered| latency(self.began.time, self.data, answered.time));
        // If messages are missing, some of the data can belong to another command.
        let is_too_much = line.expected_bytes > 0 && line.bytes > line.expected_bytes && !line.gap;
        if is_too_much && line.data != DataFlow::Both {
            line.note(NoteKind::TooMuchData, line.status_frame.unwrap_or(line.frame));
        }
        line
    }
}

/// The parts of the time from a command to its status. Times of a merged capture can decrease, so
/// each part is at least 0.
fn latency(began: u64, data: Option<(u64, u64)>, answered: u64) -> Latency {
    let part = |from: u64, to: u64| to.saturating_sub(from);
    Latency {
        total_ns: part(began, answered),
        to_data_ns: data.map(|(first, _)| part(began, first)),
        data_ns: data.map(|(first, last)| part(first, last)),
        to_status_ns: data.map(|(_, last)| part(last, answered)),
    }
}
