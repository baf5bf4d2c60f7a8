//! [`Tasks`]: the requests of a connection that have no response yet.

use std::collections::VecDeque;

use super::cdb::{Cdb, Lun};
use super::header::ControlHeader;
use super::opcode::Opcode;
use crate::direction::Direction;
use crate::frame_number::FrameNumber;

/// Maximum number of outstanding requests that are stored for a connection. If there are more, the
/// oldest request is removed.
pub(super) const MAX_TASKS: usize = 1024;

/// A request that has a response, or that waits for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Opcode of the request.
    pub opcode: Opcode,
    /// Number of the frame that completed the request.
    pub frame: FrameNumber,
    /// The iSER header, with the advertised buffers.
    pub header: ControlHeader,
    /// The CDB, if the request is a SCSI Command.
    pub cdb: Option<Cdb>,
    /// LUN; zero if the request has none.
    pub lun: Lun,
    /// Expected Data Transfer Length of a SCSI Command in bytes; 0 for other requests.
    pub expected_len: u32,
    /// Length in bytes of the data in the request: the immediate data of a SCSI Command.
    pub data_len: u32,
}

impl Task {
    /// The name of the SCSI command, or of the PDU for other requests.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.cdb.map_or_else(|| self.opcode.name(), |cdb| cdb.name())
    }
}

/// An outstanding request.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The direction of the request.
    direction: Direction,
    /// Initiator Task Tag.
    tag: u32,
    task: Task,
}

/// The outstanding requests, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Tasks(VecDeque<Entry>);

impl Tasks {
    fn position(&self, direction: Direction, tag: u32) -> Option<usize> {
        self.0.iter().position(|entry| (entry.direction, entry.tag) == (direction, tag))
    }

    /// Adds a request. A request with the same tag in the same direction is replaced: it is a part
    /// of the same exchange, or its response is missing in the capture.
    pub(super) fn add(&mut self, direction: Direction, tag: u32, task: Task) {
        if let Some(at) = self.position(direction, tag) {
            self.0.remove(at);
        }
        if self.0.len() == MAX_TASKS {
            self.0.pop_front();
        }
        self.0.push_back(Entry { direction, tag, task });
    }

    /// Removes and returns the request with this tag, if it has the opcode `opcode`.
    pub(super) fn take(&mut self, direction: Direction, tag: u32, opcode: Opcode) -> Option<Task> {
        let at = self.position(direction, tag).filter(|at| self.0[*at].task.opcode == opcode)?;
        self.0.remove(at).map(|entry| entry.task)
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::HEADER_LEN;
    use super::*;

    fn task(opcode: Opcode, frame: u64) -> Task {
        let header = ControlHeader::new([0; HEADER_LEN]);
        Task { opcode, frame: frame.into(), header, cdb: None, lun: Lun([0; 8]), expected_len: 0, data_len: 0 }
    }

    #[test]
    fn a_request_is_found_once_with_its_direction_tag_and_opcode() {
        let mut tasks = Tasks::default();
        let (nop, text) = (task(Opcode::NOP_OUT, 1), task(Opcode::TEXT_REQUEST, 2));
        tasks.add(Direction::Forward, 7, nop);
        tasks.add(Direction::Forward, 8, text);
        assert_eq!(tasks.take(Direction::Reverse, 7, Opcode::NOP_OUT), None);
        assert_eq!(tasks.take(Direction::Forward, 7, Opcode::TEXT_REQUEST), None);
        assert_eq!(tasks.take(Direction::Forward, 7, Opcode::NOP_OUT), Some(nop));
        assert_eq!(tasks.take(Direction::Forward, 7, Opcode::NOP_OUT), None);
        tasks.add(Direction::Forward, 8, task(Opcode::TEXT_REQUEST, 3));
        assert_eq!(tasks.take(Direction::Forward, 8, Opcode::TEXT_REQUEST), Some(task(Opcode::TEXT_REQUEST, 3)));
        assert_eq!(tasks.take(Direction::Forward, 8, Opcode::TEXT_REQUEST), None);
    }

    #[test]
    fn the_oldest_of_too_many_requests_is_removed() {
        let mut tasks = Tasks::default();
        for tag in 0..=u32::try_from(MAX_TASKS).unwrap() {
            tasks.add(Direction::Forward, tag, task(Opcode::NOP_OUT, tag.into()));
        }
        assert_eq!(tasks.0.len(), MAX_TASKS);
        assert_eq!(tasks.take(Direction::Forward, 0, Opcode::NOP_OUT), None);
        assert_eq!(tasks.take(Direction::Forward, 1, Opcode::NOP_OUT), Some(task(Opcode::NOP_OUT, 1)));
        assert!(tasks.memory() <= 4 * MAX_TASKS * size_of::<Entry>());
    }
}
