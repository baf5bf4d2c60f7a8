//! What TCP does to connections, once each: opened, closed by either end, refused, reset.

use std::collections::BTreeMap;

use weft_dissector::{Packet, TransportKind};

use super::order::Rank;

/// Connections whose events are remembered; those with the smallest numbers are forgotten first.
const REMEMBERED: usize = 1 << 16;

const OPENED: u8 = 1;
const ACCEPTED: u8 = 2;
const RESET: u8 = 4;
/// Closed by the end with the lower address; [`CLOSED`] shifted by one: by the other.
const CLOSED: u8 = 8;

/// What was told of each connection.
#[derive(Default)]
pub(super) struct Events {
    told: BTreeMap<u32, u8>,
    /// Connections that were refused or reset.
    pub(super) resets: u64,
}

impl Events {
    /// What a packet does to its connection, the first time.
    pub(super) fn of(&mut self, packet: &Packet) -> Option<(Rank, String)> {
        let TransportKind::Tcp { stream, syn, fin, rst, ack, .. } = packet.transport else { return None };
        if !(syn || fin || rst) {
            return None;
        }
        if self.told.len() == REMEMBERED && !self.told.contains_key(&stream) {
            self.told.pop_first();
        }
        let told = self.told.entry(stream).or_default();
        let who = packet.src.ip();
        let mut once = |bit: u8| {
            let first = *told & bit == 0;
            *told |= bit;
            first
        };
        if rst {
            let accepted = !once(ACCEPTED);
            let refused = !accepted && !once(OPENED);
            return once(RESET).then(|| {
                self.resets += 1;
                let what = if refused { "refused" } else { "reset" };
                (Rank::Closing, format!("TCP connection {what} by {who} with RST"))
            });
        }
        if fin {
            let bit = if packet.src < packet.dst { CLOSED } else { CLOSED << 1 };
            return once(bit).then(|| (Rank::Closing, format!("TCP closed by {who} with FIN")));
        }
        if ack {
            once(ACCEPTED);
            return None;
        }
        once(OPENED).then(|| (Rank::Opening, format!("TCP connection begun by {who} with SYN")))
    }
}
