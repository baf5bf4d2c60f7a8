//! Chooses the mechanism for the next bytes (sections 11.1 to 11.3).

use weft_core::wire::sdp::{Mid, Mode, RawBsdh, RawHeader};

use super::super::{Policy, SendId};
use super::Source;

/// What the Data Source would do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Plan {
    /// Nothing.
    Nothing,
    /// A Data message with octets; `urgent`: the last one is Out-Of-Band.
    Data { start: u64, len: u64, urgent: bool },
    /// A SrcAvail for `len` octets, the first `payload` of them in the message.
    SrcAvail { start: u64, len: u32, payload: u32 },
    /// An RDMA Write into the oldest SinkAvail.
    Write { start: u64, len: u32, stag: u32, va: u64 },
}

/// What the connection leaves room for.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Room {
    /// Octets of a message that the peer's Private Buffers hold.
    pub(in super::super) message: u32,
    /// Advertisements that may still be made.
    pub(in super::super) adverts: usize,
}

impl Source {
    /// The next thing to do. `refused`: a send that could not be registered; it goes by Bcopy.
    pub(in super::super) fn plan(&self, policy: &Policy, room: Room, refused: Option<SendId>) -> Plan {
        if let Some((start, left)) = self.owed.front().copied() {
            return self.data(start, left, room);
        }
        if self.cancel.is_some() {
            return Plan::Nothing;
        }
        let Some(item) = self.item(self.next) else { return Plan::Nothing };
        let start = self.next;
        // The Out-Of-Band octet itself can only be Data.
        let ordinary = item.end - u64::from(item.urgent) - start;
        let suits = ordinary > policy.source_threshold && refused != Some(item.send);
        if suits && self.mode == Mode::Pipelined {
            // RdmaWrCompl goes before everything after it, other writes too: an observer concludes
            // from it what was written where.
            if !self.writing.is_empty() {
                return Plan::Nothing;
            }
            if let Some(sink) = self.usable() {
                let len = u32::try_from(ordinary).unwrap_or(u32::MAX).min(sink.len);
                return Plan::Write { start, len, stag: sink.stag, va: sink.va };
            }
            if room.adverts > 0 && self.open.len() < policy.src_avails {
                return Plan::SrcAvail { start, len: src_avail_len(ordinary, policy), payload: 0 };
            }
        }
        // After a SrcAvail no payload until all are Processed (sections 11.2 and 11.3).
        if !self.open.is_empty() || !self.writing.is_empty() {
            return Plan::Nothing;
        }
        if suits && self.mode == Mode::Combined {
            let len = src_avail_len(ordinary, policy);
            let fits = payload_room(Mid::SRC_AVAIL, room);
            // Something has to be left to be read.
            let payload = policy.src_avail_payload.max(1).min(fits).min(len - 1);
            if payload > 0 && room.adverts > 0 {
                return Plan::SrcAvail { start, len, payload };
            }
        }
        // Bcopy suits always, and is all there is where this side's SinkAvails are as many as the
        // peer keeps.
        self.data(start, item.end - start, room)
    }

    fn data(&self, start: u64, left: u64, room: Room) -> Plan {
        let Some(item) = self.item(start) else { return Plan::Nothing };
        let len = left.min(item.end - start).min(u64::from(payload_room(Mid::DATA, room)));
        Plan::Data { start, len, urgent: item.urgent && start + len == item.end }
    }
}

fn src_avail_len(ordinary: u64, policy: &Policy) -> u32 {
    u32::try_from(ordinary).unwrap_or(u32::MAX).min(policy.max_src_avail.clamp(1, 1 << 31))
}

/// Octets of payload that fit after the headers of such a message.
pub(in super::super) fn payload_room(mid: Mid, room: Room) -> u32 {
    let headers = RawBsdh::LEN + mid.extension_len().unwrap_or(0);
    room.message.saturating_sub(u32::try_from(headers).unwrap_or(u32::MAX))
}
