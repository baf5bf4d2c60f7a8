//! [`Outstanding`]: the commands of a connection that have no completion yet.

use std::collections::VecDeque;

use super::completion::AnsweredCommand;
use crate::direction::Direction;

/// Maximum number of outstanding commands that are stored for a connection. If there are more, the
/// oldest command is removed.
pub(super) const MAX_OUTSTANDING: usize = 1024;

/// An outstanding command.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The direction of the command.
    direction: Direction,
    command_id: u16,
    command: AnsweredCommand,
}

/// The outstanding commands, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Outstanding(VecDeque<Entry>);

impl Outstanding {
    /// Adds a command. A command with the same CID in the same direction is replaced: its
    /// completion is missing in the capture.
    pub(super) fn add(&mut self, direction: Direction, command_id: u16, command: AnsweredCommand) {
        self.take(direction, command_id);
        if self.0.len() == MAX_OUTSTANDING {
            self.0.pop_front();
        }
        self.0.push_back(Entry { direction, command_id, command });
    }

    /// Removes and returns the command with this CID.
    pub(super) fn take(&mut self, direction: Direction, command_id: u16) -> Option<AnsweredCommand> {
        let is_it = |entry: &Entry| (entry.direction, entry.command_id) == (direction, command_id);
        let at = self.0.iter().position(is_it)?;
        self.0.remove(at).map(|entry| entry.command)
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::CommandCode;
    use super::*;

    fn command(frame: u64) -> AnsweredCommand {
        let code = CommandCode { opcode: 2, fabrics_type: None, queue_kind: None };
        AnsweredCommand { code, frame: frame.into() }
    }

    #[test]
    fn a_command_is_found_once_and_in_its_direction() {
        let mut outstanding = Outstanding::default();
        outstanding.add(Direction::Forward, 7, command(1));
        outstanding.add(Direction::Forward, 8, command(2));
        assert_eq!(outstanding.take(Direction::Reverse, 7), None);
        assert_eq!(outstanding.take(Direction::Forward, 7), Some(command(1)));
        assert_eq!(outstanding.take(Direction::Forward, 7), None);
        outstanding.add(Direction::Forward, 8, command(3));
        assert_eq!(outstanding.take(Direction::Forward, 8), Some(command(3)));
        assert_eq!(outstanding.take(Direction::Forward, 8), None);
    }

    #[test]
    fn the_oldest_of_too_many_commands_is_removed() {
        let mut outstanding = Outstanding::default();
        for id in 0..=u16::try_from(MAX_OUTSTANDING).unwrap() {
            outstanding.add(Direction::Forward, id, command(id.into()));
        }
        assert_eq!(outstanding.0.len(), MAX_OUTSTANDING);
        assert_eq!(outstanding.take(Direction::Forward, 0), None);
        assert_eq!(outstanding.take(Direction::Forward, 1), Some(command(1)));
        assert!(outstanding.memory() <= 4 * MAX_OUTSTANDING * size_of::<Entry>());
    }
}
