//! [`Talk`]: a connection for the tests of the adapters.

use super::super::command::IoCommand;
use super::super::tracker::IoTracker;
use crate::testing::{Wire, fpdu, hex};

/// A connection between a client (direction 0) and a server (direction 1). Each frame is one
/// millisecond after the previous frame. Frames 1 to 4 are SYN, SYN-ACK, Request and Reply.
pub(super) struct Talk {
    wire: Wire,
    /// The last MSN of the Sends of each direction, and of the Read Requests of the server.
    msn: [u32; 3],
}

/// The index of the Read Requests in [`Talk::msn`].
const READS: usize = 2;

impl Talk {
    pub(super) fn new() -> Self {
        Talk { wire: Wire::started(), msn: [0; 3] }
    }

    /// Sends a message in one segment.
    pub(super) fn send(&mut self, direction: usize, octets: &[u8]) {
        self.msn[direction] += 1;
        let head = hex(&format!("4143 00000000 00000000 {:08x} 00000000", self.msn[direction]));
        self.wire.send(direction, &fpdu(&[head, octets.to_vec()].concat()));
    }

    /// The server writes `len` octets to the tagged offset `to` of the STag `stag`.
    pub(super) fn write(&mut self, (stag, to): (u32, u64), len: usize) {
        self.wire.send_ulpdu(1, &format!("c140 {stag:08x} {to:016x} {}", "5a".repeat(len)));
    }

    /// The server reads `octets` from the tagged offset `to` of the STag `stag`.
    pub(super) fn read(&mut self, (stag, to): (u32, u64), octets: &[u8]) {
        self.msn[READS] += 1;
        let head = format!("4141 00000000 00000001 {:08x} 00000000", self.msn[READS]);
        let request = format!("{head} 00000600 0000000000070000 {:08x} {stag:08x} {to:016x}", octets.len());
        self.wire.send_ulpdu(1, &request);
        let head = hex("c142 00000600 0000000000070000");
        self.wire.send(0, &fpdu(&[head, octets.to_vec()].concat()));
    }

    /// The commands in the order in which the tracker returns them.
    pub(super) fn commands(&self) -> Vec<IoCommand> {
        let mut tracker = IoTracker::default();
        self.wire.feed(&mut tracker);
        tracker.take_finished().collect()
    }

    /// The only command. It has no notes.
    pub(super) fn only(&self) -> IoCommand {
        let mut found = self.commands();
        assert_eq!(found.len(), 1, "{found:#?}");
        let command = found.remove(0);
        assert!(command.notes.is_empty() && !command.gap, "{command:#?}");
        command
    }
}
