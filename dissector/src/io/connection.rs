//! [`IoConnection`]: the commands of one connection.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::rdmap::{Opcode, ReadRequest};

use super::access::{Access, AccessKind};
use super::adapters;
use super::command::{IoCommand, NoteKind};
use super::early::{Early, EarlyEnd};
use super::event::{Begin, Buffer, CancelledCommand, Data, Describe, IoEvent};
use super::tracked::{CommandOrigin, MAX_BUFFERS, TrackedCommand};
use super::transport::Transport;
use crate::context::Context;
use crate::direction::Direction;
use crate::exchange::CapturePoint;
use crate::finding::Finding;
use crate::frame_number::FrameNumber;
use crate::packet::TcpSegment;
use crate::parse::SegmentView;
use crate::stream_id::StreamId;
use crate::unit::{Kind, Unit};
use crate::upper::Ulp;

/// Maximum number of commands of a connection that are followed at a time. If there are more, the
/// oldest command is returned with the state [`Dropped`](super::CommandState::Dropped).
pub const MAX_OUTSTANDING: usize = 1024;
/// Maximum number of answered commands that a connection keeps, because a late access can concern
/// them.
pub const MAX_RECENT: usize = 64;
/// Maximum number of Reads of a connection whose responses are awaited.
const MAX_READS: usize = 256;
/// Time in nanoseconds for which an answered command is kept, and for which an access or a response
/// waits for its command.
const SETTLING: u64 = 1_000_000_000;

/// A Read without its complete response.
#[derive(Debug, Clone, Copy)]
struct PendingRead {
    /// The number of the command that the Read serves.
    serial: u64,
    /// The direction of the Read Request.
    requester: Direction,
    /// The frame of the Read Request.
    frame: FrameNumber,
    /// The Data Sink.
    sink: Buffer,
}

impl PendingRead {
    /// Returns whether the part of a Read Response belongs to the Read.
    fn contains(&self, response: &Access) -> bool {
        let is_later = response.direction == self.requester.peer() && response.first.frame >= self.frame;
        is_later && response.is_inside(&self.sink)
    }
}

/// The commands of one connection.
#[derive(Debug)]
pub(super) struct IoConnection {
    stream: StreamId,
    /// The sender of each direction.
    ends: [SocketAddr; 2],
    /// The commands without a response, in the order in which they were read.
    in_flight: VecDeque<TrackedCommand>,
    /// The latest answered commands.
    recent: VecDeque<TrackedCommand>,
    reads: VecDeque<PendingRead>,
    early: Early,
    /// Number of commands so far.
    serials: u64,
    /// The value of `serials` when bytes were missing for the last time. All earlier commands have
    /// their mark.
    marked: u64,
    transport: Transport,
    /// For each direction, the latest Send and its first segment.
    sends: [Option<(Msn, CapturePoint)>; 2],
    /// Whether all messages from the start-up on were captured and read.
    is_complete: bool,
    /// Whether a command advertised buffers that are not known. Then an access outside the known
    /// buffers can be correct.
    has_unknown_buffers: bool,
    /// Whether a protocol without an adapter uses the connection.
    is_other: bool,
    /// Buffer for events. It is empty between messages. It is a field only to reuse its memory.
    events: Vec<IoEvent>,
    done: Vec<IoCommand>,
    /// Whether the tracker will call [`IoConnection::settle`].
    pub(super) is_scheduled: bool,
}

impl IoConnection {
    /// A connection whose first unit is `unit`.
    pub(super) fn new(stream: StreamId, unit: &Unit<'_>) -> Self {
        let (src, dst) = (unit.ends.src, unit.ends.dst);
        let ends = if unit.direction() == Direction::Forward { [src, dst] } else { [dst, src] };
        IoConnection::between(stream, ends, matches!(unit.kind, Kind::Startup(StartupKind::Request, _)))
    }

    /// A connection between `ends`. `is_complete` is set if the capture has its MPA Request.
    fn between(stream: StreamId, ends: [SocketAddr; 2], is_complete: bool) -> Self {
        IoConnection {
            stream,
            ends,
            in_flight: VecDeque::new(),
            recent: VecDeque::new(),
            reads: VecDeque::new(),
            early: Early::default(),
            serials: 0,
            marked: 0,
            transport: Transport::default(),
            sends: [None; 2],
            is_complete,
            has_unknown_buffers: false,
            is_other: false,
            events: Vec::new(),
            done: Vec::new(),
            is_scheduled: false,
        }
    }

    /// Number of commands without a response.
    pub(super) fn outstanding(&self) -> usize {
        self.in_flight.len()
    }

    /// Approximate memory of the commands and Reads that are followed, in bytes.
    pub(super) fn memory(&self) -> usize {
        let commands = self.in_flight.capacity() + self.recent.capacity();
        commands * size_of::<TrackedCommand>() + self.reads.capacity() * size_of::<PendingRead>()
    }

    /// Removes and returns the finished commands.
    pub(super) fn take_done(&mut self) -> std::vec::Drain<'_, IoCommand> {
        self.done.drain(..)
    }

    /// Records a segment.
    pub(super) fn segment(&mut self, segment: &TcpSegment<'_>) {
        let direction = Direction::sent_by(segment.src(), self.ends[Direction::Forward]);
        self.transport.record(direction, segment);
    }

    /// Records a finding about the connection.
    pub(super) fn finding(&mut self, finding: &Finding) {
        let commands = self.recent.iter_mut().chain(&mut self.in_flight);
        let concerned = commands.filter(|command| command.is_in_flight_at(finding.frame));
        concerned.for_each(|command| command.add_finding(finding));
    }

    /// Records a unit.
    pub(super) fn unit(&mut self, unit: &Unit<'_>) {
        match &unit.kind {
            Kind::Fpdu(_) => self.fpdu(unit),
            Kind::Gap { .. } | Kind::Unparsed { .. } => self.record_gap(),
            _ => {}
        }
    }

    fn fpdu(&mut self, unit: &Unit<'_>) {
        let direction = unit.direction();
        let context = unit.context.filter(|context| context.ulp.is_some());
        let (Some(context), Some(view)) = (context, SegmentView::of(unit.parsed)) else {
            return self.record_gap();
        };
        let at = CapturePoint { frame: unit.frame, time: unit.time };
        match view.segment {
            Segment::Tagged(header, _) => {
                let is_last = view.last();
                let kind = match view.opcode() {
                    Opcode::WRITE => AccessKind::Write { is_last },
                    Opcode::READ_RESPONSE => AccessKind::ReadResponse { is_last },
                    _ => return,
                };
                let (stag, offset, len) = (header.stag.get(), header.tagged_offset.get(), view.payload_len.into());
                self.access(Access { kind, direction, stag, offset, len, first: at, latest: at });
                // A Read Response can complete a call of RPC that is in a chunk.
                if context.rpc.is_some() {
                    self.message(direction, context, (at, at));
                }
            }
            Segment::Untagged(header, _) if view.opcode().is_send() => {
                if header.mo.get() == 0 {
                    self.sends[direction] = Some((header.msn(), at));
                }
                let first = self.sends[direction].filter(|(msn, _)| *msn == header.msn());
                let began = first.map_or(at, |(_, began)| began);
                let is_empty = header.mo.get() == 0 && view.payload_len == 0;
                match &context.ulp_message {
                    _ if !view.last() => {}
                    Some(_) => self.message(direction, context, (adapters::began(context).unwrap_or(began), at)),
                    None if is_empty => {}
                    None => self.record_gap(),
                }
            }
            Segment::Untagged(..) if view.opcode() == Opcode::READ_REQUEST => {
                let request = view.payload.get(0..28).and_then(|octets| ReadRequest::parse(octets).ok());
                let Some(read) = request else { return self.record_gap() };
                let kind = AccessKind::ReadRequest { sink_stag: read.sink_stag, sink_offset: read.sink_to };
                let (stag, offset, len) = (read.src_stag, read.src_to, read.rdmardsz.into());
                self.access(Access { kind, direction, stag, offset, len, first: at, latest: at });
            }
            Segment::Untagged(..) => {}
        }
        self.judge_before(direction, unit.frame);
    }

    /// Records that bytes are missing, or that an FPDU or a message could not be read.
    fn record_gap(&mut self) {
        self.is_complete = false;
        let marked = self.marked;
        let commands = self.in_flight.iter_mut().rev().take_while(|command| command.serial >= marked);
        commands.for_each(TrackedCommand::record_gap);
        self.marked = self.serials;
    }

    /// Records that bytes are missing, if a peer acknowledged bytes that were not captured.
    fn check_last_bytes(&mut self) {
        if Direction::BOTH.into_iter().any(|direction| self.transport.lacks_last_bytes(direction)) {
            self.record_gap();
        }
    }

    /// Records the message that ends with the current FPDU. It was captured from `span.0` to
    /// `span.1`.
    fn message(&mut self, direction: Direction, context: &Context, span: (CapturePoint, CapturePoint)) {
        let Some(protocol) = context.ulp else { return };
        let mut events = std::mem::take(&mut self.events);
        self.is_other = !adapters::read(protocol, context, &mut events);
        for event in events.drain(..) {
            match event {
                IoEvent::Begin(begin) => self.begin(direction, protocol, begin, span),
                IoEvent::Describe(Describe { id, kind, parameters }) => {
                    if let Some(command) = self.latest(direction, id) {
                        command.describe(kind, parameters);
                    }
                }
                IoEvent::Data(Data { id, bytes }) => {
                    if let Some(command) = self.latest(direction, id) {
                        command.add_inline_data(bytes, span);
                    }
                }
                IoEvent::End(end) => self.end(EarlyEnd { direction, protocol, end, began: span.0, ended: span.1 }),
                IoEvent::Interim { id, async_id } => {
                    if let Some(command) = self.latest(direction.peer(), id) {
                        command.async_id = Some(async_id);
                    }
                }
                IoEvent::Cancel(cancelled) => self.cancel(direction, cancelled, span.1.frame),
                IoEvent::Unread => self.record_gap(),
            }
        }
        self.events = events;
    }

    /// The latest command in flight of `direction` with this id.
    fn latest(&mut self, direction: Direction, id: u64) -> Option<&mut TrackedCommand> {
        self.in_flight.iter_mut().rfind(|command| (command.direction, command.id()) == (direction, id))
    }

    /// Adds a note to the command that a CANCEL in frame `frame` names. The response can be
    /// delivered before the CANCEL, so an answered command can be the one.
    fn cancel(&mut self, direction: Direction, cancelled: CancelledCommand, frame: FrameNumber) {
        let is_named = |command: &&mut TrackedCommand| {
            let has_name = match cancelled {
                CancelledCommand::Id(id) => command.id() == id,
                CancelledCommand::Async(async_id) => command.async_id == Some(async_id),
            };
            command.direction == direction && has_name && command.is_in_flight_at(frame)
        };
        let commands = self.recent.iter_mut().chain(&mut self.in_flight);
        if let Some(command) = commands.filter(is_named).max_by_key(|command| command.serial) {
            command.note(NoteKind::Cancelled, frame);
        }
    }

    /// What all commands of `direction` have in common.
    fn origin(&self, direction: Direction, protocol: Ulp) -> CommandOrigin {
        let (initiator, target) = (self.ends[direction], self.ends[direction.peer()]);
        CommandOrigin { stream: self.stream, protocol, initiator, target }
    }

    fn begin(&mut self, direction: Direction, protocol: Ulp, begin: Begin, span: (CapturePoint, CapturePoint)) {
        if self.in_flight.len() >= MAX_OUTSTANDING {
            self.drop_oldest();
        }
        self.has_unknown_buffers |= begin.has_unknown_buffers || begin.buffers.len() > MAX_BUFFERS;
        let (id, first) = (begin.id, span.0.frame);
        let before = self.transport.until(first);
        let origin = self.origin(direction, protocol);
        let command = TrackedCommand::new((self.serials, direction), &origin, begin, span, before);
        self.serials += 1;
        let accesses = self.early.take_accesses(|access| {
            let is_use = !matches!(access.kind, AccessKind::ReadResponse { .. });
            is_use && access.direction == direction.peer() && access.first.frame >= first && command.contains(access)
        });
        self.in_flight.push_back(command);
        accesses.into_iter().for_each(|access| self.access(access));
        let is_answer =
            |early: &EarlyEnd| early.direction == direction.peer() && early.end.id == id && early.ended.frame >= first;
        if let Some(early) = self.early.take_end(is_answer) {
            self.end(early);
        }
    }

    /// Records a response. If the id was used again, the latest command before the response counts.
    fn end(&mut self, early: EarlyEnd) {
        let owner = early.direction.peer();
        let is_answered = |command: &TrackedCommand| {
            let is_named = (command.direction, command.id()) == (owner, early.end.id);
            is_named && command.began.frame <= early.ended.frame
        };
        let at = self.in_flight.iter().rposition(is_answered);
        let Some(mut command) = at.and_then(|at| self.in_flight.remove(at)) else {
            if let Some(oldest) = self.early.add_end(early) {
                self.respond_to_nothing(oldest);
            }
            return;
        };
        self.abandon_earlier(&command);
        let retransmissions = self.transport.until(early.ended.frame);
        command.answer(early.end, early.began, early.ended, retransmissions);
        self.recent.push_back(command);
        if self.recent.len() > MAX_RECENT {
            self.done.extend(self.recent.pop_front().map(TrackedCommand::into_line));
        }
    }

    /// Ends the commands before `command` that have the same id. They can no longer get a response.
    fn abandon_earlier(&mut self, command: &TrackedCommand) {
        let is_earlier = |other: &TrackedCommand| {
            (other.direction, other.id()) == (command.direction, command.id()) && other.serial < command.serial
        };
        while let Some(at) = self.in_flight.iter().position(is_earlier) {
            let Some(mut earlier) = self.in_flight.remove(at) else { return };
            if self.is_complete {
                earlier.note(NoteKind::IdUsedAgain, command.began.frame);
            }
            self.done.push(earlier.abandon(self.transport.total(), false));
        }
    }

    /// Stops following the oldest command in flight.
    pub(super) fn drop_oldest(&mut self) {
        let oldest = self.in_flight.pop_front();
        self.done.extend(oldest.map(|command| command.abandon(self.transport.total(), true)));
    }

    /// Returns a response without a command.
    fn respond_to_nothing(&mut self, early: EarlyEnd) {
        let origin = self.origin(early.direction.peer(), early.protocol);
        self.done.push(origin.response(early.end, early.ended, !self.is_complete));
    }

    /// The latest command in flight with a buffer that contains the access.
    fn containing(&mut self, access: &Access) -> Option<&mut TrackedCommand> {
        let owner = access.direction.peer();
        let fits = |command: &TrackedCommand| {
            command.direction == owner && command.began.frame <= access.first.frame && command.contains(access)
        };
        let at = self.in_flight.iter().rposition(fits)?;
        self.in_flight.get_mut(at)
    }

    fn by_serial(&mut self, serial: u64) -> Option<&mut TrackedCommand> {
        match self.in_flight.binary_search_by_key(&serial, |command| command.serial) {
            Ok(at) => self.in_flight.get_mut(at),
            Err(_) => self.recent.iter_mut().find(|command| command.serial == serial),
        }
    }

    fn access(&mut self, access: Access) {
        if access.len == 0 || self.is_other {
            return;
        }
        match access.kind {
            AccessKind::Write { is_last } => match self.containing(&access) {
                Some(command) => command.write(&access, is_last),
                None => self.add_early(access),
            },
            AccessKind::ReadRequest { .. } => match self.containing(&access) {
                Some(command) => {
                    command.read_request(&access);
                    let serial = command.serial;
                    self.add_read(serial, &access);
                }
                None => self.add_early(access),
            },
            AccessKind::ReadResponse { is_last } => {
                // The target can use a Data Sink again. The latest Read before the response counts.
                let at = self.reads.iter().rposition(|read| read.contains(&access));
                let Some((at, read)) = at.and_then(|at| Some((at, *self.reads.get(at)?))) else {
                    return self.add_early(access);
                };
                if is_last {
                    self.reads.remove(at);
                }
                // If messages are missing, the response can belong to another Read.
                let is_certain = self.is_complete;
                if let Some(command) = self.by_serial(read.serial) {
                    command.add_data(&access, is_certain);
                }
            }
        }
    }

    fn add_early(&mut self, access: Access) {
        if let Some(oldest) = self.early.add_access(access) {
            self.judge(&oldest);
        }
    }

    /// Awaits the response to a Read Request that serves the command `serial`.
    fn add_read(&mut self, serial: u64, request: &Access) {
        let AccessKind::ReadRequest { sink_stag, sink_offset } = request.kind else { return };
        let sink = Buffer { stag: sink_stag, offset: sink_offset, len: request.len };
        let read = PendingRead { serial, requester: request.direction, frame: request.first.frame, sink };
        if self.reads.len() >= MAX_READS {
            self.reads.pop_front();
        }
        self.reads.push_back(read);
        let responses = self
            .early
            .take_accesses(|access| matches!(access.kind, AccessKind::ReadResponse { .. }) && read.contains(access));
        responses.into_iter().for_each(|response| self.access(response));
    }

    /// All messages of `direction` before frame `frame` were read. So the accesses and responses
    /// before this frame that wait for one of these messages get no command any more.
    ///
    /// If segments of the direction were lost or out of order, the frames of its messages do not
    /// always increase. Then only time decides.
    fn judge_before(&mut self, direction: Direction, frame: FrameNumber) {
        if self.early.is_empty() || self.transport.has_holes(direction) {
            return;
        }
        let peer = direction.peer();
        self.judge_early(
            |access| access.direction == peer && access.latest.frame < frame,
            |end| end.direction == peer && end.ended.frame < frame,
        );
    }

    /// Judges the waiting accesses and responses that pass the tests.
    fn judge_early(&mut self, is_access: impl Fn(&Access) -> bool, is_end: impl Fn(&EarlyEnd) -> bool) {
        self.early.take_accesses(is_access).iter().for_each(|access| self.judge(access));
        self.early.take_ends(is_end).into_iter().for_each(|end| self.respond_to_nothing(end));
    }

    /// Adds a note about an access that is not inside a buffer of a command in flight.
    fn judge(&mut self, access: &Access) {
        let is_write = match access.kind {
            AccessKind::Write { .. } => true,
            AccessKind::ReadRequest { .. } => false,
            AccessKind::ReadResponse { .. } => return,
        };
        let (owner, frame) = (access.direction.peer(), access.first.frame);
        let is_certain = self.is_complete && !self.has_unknown_buffers;
        let is_named = |command: &&mut TrackedCommand| {
            command.direction == owner && command.began.frame <= frame && command.has_stag_of(access)
        };
        let rank = |command: &&mut TrackedCommand| {
            let is_in_flight = command.is_in_flight_at(frame);
            (command.contains(access), is_in_flight, command.serial)
        };
        let commands = self.recent.iter_mut().chain(&mut self.in_flight);
        let Some(command) = commands.filter(is_named).max_by_key(rank) else { return };
        let is_in_flight = command.is_in_flight_at(frame);
        let is_ordinary = is_in_flight && command.contains(access);
        if is_certain && !is_ordinary {
            let kind = match (is_write, is_in_flight) {
                (true, true) => NoteKind::OutsideBuffer,
                (false, true) => NoteKind::ReadTooLong,
                (true, false) => NoteKind::DataAfterStatus,
                (false, false) => NoteKind::StagAfterStatus,
            };
            command.note(kind, frame);
        }
        if is_ordinary && is_write {
            command.write(access, true);
        } else if is_in_flight && !is_write {
            command.read_request(access);
            let serial = command.serial;
            self.add_read(serial, access);
        }
    }

    /// Returns answered commands whose time has passed at `now`, and judges what waited until then.
    /// `now` is in nanoseconds since 1970.
    pub(super) fn settle(&mut self, now: u64) {
        let is_over = |time: u64| time.saturating_add(SETTLING) <= now;
        // A lost command shows a gap only when the next FPDU of its direction arrives. After skipped
        // bytes, the messages of the direction are read only later.
        if self.early.oldest().is_some_and(is_over) {
            self.check_last_bytes();
            if Direction::BOTH.into_iter().any(|direction| self.transport.has_holes(direction)) {
                self.record_gap();
            }
        }
        self.judge_early(|access| is_over(access.latest.time), |end| is_over(end.ended.time));
        while self.recent.front().and_then(|command| command.answered).is_some_and(|answered| is_over(answered.time)) {
            self.done.extend(self.recent.pop_front().map(TrackedCommand::into_line));
        }
    }

    /// The time at which [`IoConnection::settle`] has something to do, in nanoseconds since 1970.
    pub(super) fn due(&self) -> Option<u64> {
        let answered = self.recent.front().and_then(|command| command.answered);
        let oldest = answered.map(|answered| answered.time).into_iter().chain(self.early.oldest()).min();
        oldest.map(|oldest| oldest.saturating_add(SETTLING))
    }

    /// Returns all commands. Call this when the connection or the capture ends.
    pub(super) fn finish(&mut self) {
        self.check_last_bytes();
        self.judge_early(|_| true, |_| true);
        self.done.extend(self.recent.drain(..).map(TrackedCommand::into_line));
        let retransmissions = self.transport.total();
        self.done.extend(self.in_flight.drain(..).map(|command| command.abandon(retransmissions, false)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::{CommandState, DataFlow};
    use super::super::event::End;
    use super::*;

    const BUFFER: Buffer = Buffer { stag: 7, offset: 0x1000, len: 64 };

    fn at(frame: u64) -> CapturePoint {
        CapturePoint { frame: frame.into(), time: frame * 1_000_000 }
    }

    fn connection() -> IoConnection {
        let ends = [1, 2].map(|last| SocketAddr::from(([10, 0, 0, last], 4420)));
        IoConnection::between(StreamId::FIRST, ends, true)
    }

    /// A command in frame `frame`, with the buffer [`BUFFER`].
    fn begin(connection: &mut IoConnection, id: u64, frame: u64) {
        let begin = Begin {
            id,
            queue: None,
            kind: "Read",
            parameters: String::new(),
            flow: DataFlow::FromTarget,
            expected_bytes: BUFFER.len,
            inline_bytes: 0,
            buffers: vec![BUFFER],
            has_unknown_buffers: false,
        };
        connection.begin(Direction::Forward, Ulp::Nvme, begin, (at(frame), at(frame)));
    }

    fn end(connection: &mut IoConnection, id: u64, frame: u64) {
        let end = End { id, queue: None, status: "good".to_owned(), is_error: false, inline_bytes: 0 };
        let (direction, protocol) = (Direction::Reverse, Ulp::Nvme);
        connection.end(EarlyEnd { direction, protocol, end, began: at(frame), ended: at(frame) });
    }

    fn write(connection: &mut IoConnection, frame: u64) {
        let (kind, direction, first) = (AccessKind::Write { is_last: true }, Direction::Reverse, at(frame));
        let Buffer { stag, offset, len } = BUFFER;
        connection.access(Access { kind, direction, stag, offset, len, first, latest: first });
    }

    fn finish(mut connection: IoConnection) -> Vec<IoCommand> {
        connection.finish();
        connection.take_done().collect()
    }

    /// The dissector delivers the Write and the response before the command.
    #[test]
    fn a_command_gets_what_was_delivered_before_it() {
        let mut connection = connection();
        write(&mut connection, 6);
        end(&mut connection, 1, 7);
        begin(&mut connection, 1, 5);
        let found = finish(connection);
        let [command] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((command.state, command.bytes, command.writes), (CommandState::Answered, 64, 1));
        assert_eq!((command.notes.len(), command.latency.map(|it| it.total_ns)), (0, Some(2_000_000)));
    }

    /// The first response with the id is before the command.
    #[test]
    fn a_command_gets_nothing_from_before_it() {
        let mut connection = connection();
        write(&mut connection, 3);
        end(&mut connection, 1, 4);
        begin(&mut connection, 1, 5);
        let found = finish(connection);
        let states: Vec<_> = found.iter().map(|command| (command.state, command.bytes)).collect();
        assert_eq!(states, [(CommandState::NoCommand, 0), (CommandState::NotAnswered, 0)]);
        assert_eq!(found[0].notes[0].kind, NoteKind::ResponseToNothing);
        assert!(found[1].notes.is_empty());
    }

    /// Both commands have the id 1. The response to the first one is delivered late.
    #[test]
    fn a_late_response_belongs_to_the_command_before_it() {
        let mut connection = connection();
        begin(&mut connection, 1, 5);
        begin(&mut connection, 1, 8);
        end(&mut connection, 1, 6);
        end(&mut connection, 1, 9);
        let found: Vec<_> = finish(connection).iter().map(|command| (command.frame, command.status_frame)).collect();
        assert_eq!(found, [(5.into(), Some(6.into())), (8.into(), Some(9.into()))]);
    }

    /// The new command advertises the same buffer, and is delivered after the Write.
    #[test]
    fn a_buffer_can_be_advertised_again() {
        let mut connection = connection();
        begin(&mut connection, 1, 5);
        end(&mut connection, 1, 6);
        write(&mut connection, 8);
        begin(&mut connection, 2, 7);
        let found = finish(connection);
        assert_eq!(found.iter().map(|command| command.bytes).collect::<Vec<_>>(), [0, 64]);
        assert!(found.iter().all(|command| command.notes.is_empty()), "{found:#?}");
    }

    #[test]
    fn without_all_bytes_there_are_no_notes() {
        for is_complete in [true, false] {
            let mut connection = connection();
            begin(&mut connection, 1, 5);
            if !is_complete {
                connection.record_gap();
            }
            end(&mut connection, 1, 6);
            write(&mut connection, 7);
            end(&mut connection, 2, 8);
            let found = finish(connection);
            assert_eq!(found.iter().filter(|command| !command.notes.is_empty()).count(), 2 * usize::from(is_complete));
            assert!(found.iter().all(|command| command.gap != is_complete));
        }
    }

    /// Only the connection can decide whether a Write after the status is a contradiction.
    #[test]
    fn a_command_itself_does_not_judge_a_late_write() {
        let mut connection = connection();
        begin(&mut connection, 1, 5);
        end(&mut connection, 1, 6);
        let (kind, direction, first) = (AccessKind::Write { is_last: true }, Direction::Reverse, at(7));
        let Buffer { stag, offset, len } = BUFFER;
        let command = connection.recent.front_mut().unwrap();
        command.write(&Access { kind, direction, stag, offset, len, first, latest: first }, true);
        let found = finish(connection);
        assert!(found[0].notes.is_empty(), "{found:#?}");
    }

    #[test]
    fn the_memory_has_a_limit() {
        let mut connection = connection();
        for number in 0..20_000 {
            begin(&mut connection, number, 2 * number);
            end(&mut connection, number, 2 * number + 1);
            write(&mut connection, 2 * number + 1);
            connection.take_done().for_each(drop);
            assert!(connection.recent.len() <= MAX_RECENT && connection.in_flight.is_empty());
        }
        for number in 0..1500 {
            begin(&mut connection, number, 1_000_000 + number);
        }
        assert_eq!(connection.outstanding(), MAX_OUTSTANDING);
        let dropped = connection.take_done().filter(|command| command.state == CommandState::Dropped).count();
        assert_eq!(dropped, 1500 - MAX_OUTSTANDING);
    }

    #[test]
    fn an_answered_command_is_returned_after_a_second() {
        let mut connection = connection();
        assert_eq!(connection.due(), None);
        begin(&mut connection, 1, 5);
        end(&mut connection, 1, 6);
        assert_eq!(connection.due(), Some(at(6).time + SETTLING));
        connection.settle(at(6).time + SETTLING - 1);
        assert_eq!(connection.take_done().count(), 0);
        connection.settle(at(6).time + SETTLING);
        assert_eq!((connection.take_done().count(), connection.due()), (1, None));
    }
}
