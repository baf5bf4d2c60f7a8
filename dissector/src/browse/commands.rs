//! [`Commands`] lists the storage commands of a capture.

use super::pass::Collector;
use crate::context::Context;
use crate::finding::Finding;
use crate::io::{CommandState, IoCommand, IoTotals, IoTracker, KindStatistics, OutstandingSeries};
use crate::source::Frame;
use crate::stream_id::StreamId;
use crate::unit::Unit;
use crate::{Sink, TcpSegment};

/// Maximum number of listed commands. Further commands are only counted.
pub const MAX_COMMANDS: usize = 20_000;
/// Number of places at the end of the list that only unusual commands get. Then a failure late in
/// a long capture is listed, too.
const RESERVED: usize = 2_000;

/// The storage commands, in the order in which they finish. After the first 18,000 commands, the
/// list gets only commands with an error, without a response, without a command, or with a note.
/// The statistics count all commands.
#[derive(Debug, Default)]
pub struct Commands {
    tracker: IoTracker,
    list: Vec<IoCommand>,
    /// Approximate memory of the texts and lists of the listed commands, in bytes.
    heap: usize,
    omitted: u64,
    origin: Option<u64>,
}

impl Commands {
    /// The listed commands, at most [`MAX_COMMANDS`].
    #[must_use]
    pub fn list(&self) -> &[IoCommand] {
        &self.list
    }

    /// The listed commands, at most [`MAX_COMMANDS`].
    #[must_use]
    pub fn into_list(self) -> Vec<IoCommand> {
        self.list
    }

    /// Number of further commands that are not listed.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Capture time of the first frame, in nanoseconds since 1970. 0 if there is no frame.
    #[must_use]
    pub fn origin(&self) -> u64 {
        self.origin.unwrap_or(0)
    }

    /// Statistics of each kind of command, ordered by protocol and name.
    pub fn kinds(&self) -> impl Iterator<Item = KindStatistics> + '_ {
        self.tracker.kinds()
    }

    /// The number of outstanding commands over time.
    #[must_use]
    pub fn outstanding(&self) -> &OutstandingSeries {
        self.tracker.outstanding()
    }

    /// The number of commands.
    #[must_use]
    pub fn totals(&self) -> IoTotals {
        self.tracker.totals()
    }

    /// Approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.tracker.memory() + self.list.capacity() * size_of::<IoCommand>() + self.heap
    }

    /// Adds the commands that have finished.
    fn take(&mut self) {
        let Commands { tracker, list, heap, omitted, .. } = self;
        for command in tracker.take_finished() {
            let most = if is_unusual(&command) { MAX_COMMANDS } else { MAX_COMMANDS - RESERVED };
            if list.len() < most {
                *heap += command.heap_memory();
                list.push(command);
            } else {
                *omitted += 1;
            }
        }
    }
}

/// Returns whether the command can get one of the last places of the list.
fn is_unusual(command: &IoCommand) -> bool {
    command.error || command.state != CommandState::Answered || !command.notes.is_empty()
}

impl Sink for Commands {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.tracker.unit(unit);
        self.take();
    }

    fn finding(&mut self, finding: &Finding) {
        self.tracker.finding(finding);
    }

    fn ended(&mut self, stream: StreamId, context: &Context) {
        self.tracker.ended(stream, context);
        self.take();
    }

    fn segment(&mut self, stream: StreamId, segment: &TcpSegment<'_>) {
        self.tracker.segment(stream, segment);
        self.take();
    }
}

impl Collector for Commands {
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        self.origin.get_or_insert(frame.time);
        true
    }

    fn memory(&self) -> usize {
        self.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Wire, fpdu, hex, reply_frame, startup_frame};

    /// A connection for I/O Queue 1 with `count` Flush commands. The command `failed` gets an
    /// error.
    fn flushes(count: u32, failed: u32) -> Commands {
        let (mut request, mut accept) = (hex("0000 0100 2000 1f00"), hex("0000 2000"));
        request.resize(32, 0);
        accept.resize(32, 0);
        let mut wire = Wire::started_as(&startup_frame(0x40, 1, &request), &reply_frame(0x40, 1, &accept));
        for number in 1..=count {
            let send = |payload: &[u8]| {
                let head = hex(&format!("4143 00000000 00000000 {number:08x} 00000000"));
                fpdu(&[&head[..], payload].concat())
            };
            let id = u16::try_from(number & 0xffff).unwrap().to_le_bytes();
            let mut entry = [&[0_u8, 0x40][..], &id, &1_u32.to_le_bytes()].concat();
            entry.resize(39, 0);
            entry.push(0x40);
            entry.resize(64, 0);
            wire.send(0, &send(&entry));
            let status = if number == failed { 0xc004_u16 } else { 0 };
            wire.send(1, &send(&[&[0_u8; 12][..], &id, &status.to_le_bytes()].concat()));
        }
        let mut commands = Commands::default();
        wire.feed(&mut commands);
        commands
    }

    #[test]
    fn a_late_error_is_listed_although_the_list_is_full() {
        let count = u32::try_from(MAX_COMMANDS - RESERVED).unwrap() + 3;
        let commands = flushes(count, count - 1);
        assert_eq!((commands.list().len(), commands.omitted()), (MAX_COMMANDS - RESERVED + 1, 2));
        let errors = commands.list().iter().filter(|command| command.error).count();
        assert_eq!((errors, commands.totals().commands), (1, u64::from(count)));
        assert_eq!(commands.kinds().map(|kind| kind.latency.count).sum::<u64>(), u64::from(count));
    }

    /// After the end of the connection, only the list and the statistics are left.
    #[test]
    fn the_memory_is_that_of_the_list() {
        let (few, many) = (flushes(100, 0), flushes(1100, 0));
        let list = |commands: &Commands| commands.list.capacity() * size_of::<IoCommand>() + commands.heap;
        assert!(list(&many) > 1000 * size_of::<IoCommand>());
        let rest = |commands: &Commands| commands.memory() - list(commands);
        assert!(rest(&many) < 64 * 1024 && rest(&few) <= rest(&many), "{} {}", rest(&few), rest(&many));
    }
}
