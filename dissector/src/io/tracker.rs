//! [`IoTracker`]: a sink that follows the storage commands of all connections.

use std::collections::VecDeque;

use foldhash::HashMap;
use serde::Serialize;

use super::command::{CommandState, IoCommand};
use super::connection::IoConnection;
use super::kinds::{KindStatistics, Kinds};
use super::series::OutstandingSeries;
use crate::context::Context;
use crate::finding::Finding;
use crate::packet::TcpSegment;
use crate::sink::Sink;
use crate::stream_id::{StreamId, StreamSet};
use crate::unit::{Kind, Unit};

/// Maximum number of connections that are followed at a time. Commands of further connections are
/// ignored, and [`IoTotals::untracked_connections`] counts these connections.
pub const MAX_CONNECTIONS: usize = 16_384;
/// Maximum number of commands in flight that are followed at a time. If there are more, a
/// connection with a new command stops following its oldest command.
pub const MAX_ALL_OUTSTANDING: usize = 65_536;

/// The number of commands so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct IoTotals {
    /// Number of returned commands. The following five numbers are parts of it.
    pub commands: u64,
    /// Number of commands in the state [`CommandState::Answered`].
    pub answered: u64,
    /// In the state [`CommandState::NotAnswered`].
    pub not_answered: u64,
    /// In the state [`CommandState::Gap`].
    pub gap: u64,
    /// In the state [`CommandState::Dropped`].
    pub dropped: u64,
    /// In the state [`CommandState::NoCommand`].
    pub no_command: u64,
    /// Number of commands whose status is an error.
    pub errors: u64,
    /// Number of bytes that all commands moved.
    pub bytes: u64,
    /// Number of commands with a note.
    pub with_notes: u64,
    /// Number of commands with missing bytes while they were in flight.
    pub with_gaps: u64,
    /// Number of connections whose commands were ignored because of a limit.
    pub untracked_connections: u64,
}

impl IoTotals {
    fn add(&mut self, command: &IoCommand) {
        self.commands += 1;
        let state = match command.state {
            CommandState::Answered => &mut self.answered,
            CommandState::NotAnswered => &mut self.not_answered,
            CommandState::Gap => &mut self.gap,
            CommandState::Dropped => &mut self.dropped,
            CommandState::NoCommand => &mut self.no_command,
        };
        *state += 1;
        self.errors += u64::from(command.error);
        self.bytes += command.bytes;
        self.with_notes += u64::from(!command.notes.is_empty());
        self.with_gaps += u64::from(command.gap);
    }
}

/// Follows the storage commands of all connections. Call [`IoTracker::take_finished`] after each
/// frame, and after [`Dissector::finish`](crate::Dissector::finish).
#[derive(Debug, Default)]
pub struct IoTracker {
    /// The only connection to follow; `None` for all connections.
    only: Option<StreamId>,
    connections: HashMap<StreamId, IoConnection>,
    untracked: StreamSet,
    /// Number of commands in flight on all connections.
    outstanding: usize,
    /// [`IoConnection::memory`] of all connections.
    memory: usize,
    /// The connections with recent commands, and the time at which they need attention. Each
    /// connection is listed at most once.
    due: VecDeque<(u64, StreamId)>,
    finished: VecDeque<IoCommand>,
    kinds: Kinds,
    series: OutstandingSeries,
    totals: IoTotals,
    /// Capture time of the latest segment, in nanoseconds since 1970.
    now: u64,
}

impl IoTracker {
    /// Creates a tracker for one connection.
    #[must_use]
    pub fn of_stream(stream: StreamId) -> Self {
        IoTracker { only: Some(stream), ..IoTracker::default() }
    }

    /// Removes and returns the commands that have finished. The order is approximately the order of
    /// their ends. A command is returned up to one second of capture time after its response,
    /// because late accesses to its buffer can concern it.
    pub fn take_finished(&mut self) -> impl Iterator<Item = IoCommand> + '_ {
        self.finished.drain(..)
    }

    /// Statistics of each kind of command, ordered by protocol and name. They count the commands
    /// that have finished.
    pub fn kinds(&self) -> impl Iterator<Item = KindStatistics> + '_ {
        self.kinds.all()
    }

    /// The number of outstanding commands of all connections over time. A command that gets no
    /// response is outstanding until the end of its connection.
    #[must_use]
    pub fn outstanding(&self) -> &OutstandingSeries {
        &self.series
    }

    /// The number of commands so far.
    #[must_use]
    pub fn totals(&self) -> IoTotals {
        IoTotals { untracked_connections: self.untracked.count(), ..self.totals }
    }

    /// Approximate memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let connections = self.connections.capacity() * size_of::<(StreamId, IoConnection)>();
        connections + self.memory + self.untracked.memory() + self.kinds.memory()
    }

    /// Calls `change` for a connection, and collects what it finished.
    fn update(&mut self, stream: StreamId, time: u64, change: impl FnOnce(&mut IoConnection)) {
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        let (before, memory_before) = (connection.outstanding(), connection.memory());
        change(connection);
        if self.outstanding.saturating_sub(before) + connection.outstanding() > MAX_ALL_OUTSTANDING {
            connection.drop_oldest();
        }
        let after = connection.outstanding();
        self.memory = self.memory.saturating_sub(memory_before) + connection.memory();
        self.outstanding = self.outstanding.saturating_sub(before) + after;
        if before != after {
            self.series.record(time, self.outstanding as u64);
        }
        for command in connection.take_done() {
            self.totals.add(&command);
            self.kinds.add(&command);
            self.finished.push_back(command);
        }
        if !connection.is_scheduled
            && let Some(due) = connection.due()
        {
            connection.is_scheduled = true;
            self.due.push_back((due, stream));
        }
    }

    /// Returns whether the connection of `unit` is followed. If it is new, begins to follow it.
    fn follows(&mut self, stream: StreamId, unit: &Unit<'_>) -> bool {
        if self.only.is_some_and(|only| only != stream) {
            return false;
        }
        if self.connections.contains_key(&stream) {
            return true;
        }
        let begins = match unit.kind {
            Kind::Startup(..) => true,
            Kind::Fpdu(_) => unit.context.is_some_and(|context| context.ulp.is_some()),
            _ => false,
        };
        if !begins {
            return false;
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            self.untracked.insert(stream);
            return false;
        }
        self.connections.insert(stream, IoConnection::new(stream, unit));
        true
    }

    /// Settles the connections whose time has come.
    fn settle(&mut self) {
        while let Some((due, stream)) = self.due.front().copied()
            && due <= self.now
        {
            self.due.pop_front();
            let now = self.now;
            self.update(stream, now, |connection| {
                connection.is_scheduled = false;
                connection.settle(now);
            });
        }
    }
}

impl Sink for IoTracker {
    fn unit(&mut self, unit: &Unit<'_>) {
        let Some(stream) = unit.stream else { return };
        if self.follows(stream, unit) {
            self.update(stream, unit.time, |connection| connection.unit(unit));
        }
    }

    fn finding(&mut self, finding: &Finding) {
        if let Some(connection) = finding.stream.and_then(|stream| self.connections.get_mut(&stream)) {
            connection.finding(finding);
        }
    }

    fn segment(&mut self, stream: StreamId, segment: &TcpSegment<'_>) {
        self.now = self.now.max(segment.time());
        // Before this segment, a connection still shows that the peer acknowledged lost bytes.
        self.settle();
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.segment(segment);
        }
    }

    fn ended(&mut self, stream: StreamId, _: &Context) {
        let now = self.now;
        self.update(stream, now, IoConnection::finish);
        if let Some(connection) = self.connections.remove(&stream) {
            self.memory = self.memory.saturating_sub(connection.memory());
        }
        if self.connections.is_empty() {
            self.connections.shrink_to_fit();
        }
    }
}
