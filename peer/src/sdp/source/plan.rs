//! Selects the mechanism for the next bytes (sections 11.1 to 11.3 of the SDP draft).

use weft_core::wire::sdp::{Mid, Mode, RawBsdh, RawHeader};

use super::super::{Policy, SendId};
use super::Source;

/// The next action of the Data Source. `start` is a position in the stream, and `len` a number of
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Plan {
    /// No action.
    Nothing,
    /// Send a Data message. If `urgent` is set, its last byte is the Out-Of-Band byte.
    Data { start: u64, len: u64, urgent: bool },
    /// Send a SrcAvail for `len` bytes. The message itself carries the first `payload` bytes.
    SrcAvail { start: u64, len: u32, payload: u32 },
    /// Write into the buffer of the oldest SinkAvail.
    Write { start: u64, len: u32, stag: u32, va: u64 },
}

/// The limits that the connection sets for the next message.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Room {
    /// Size of the peer's Private Buffers in bytes: the maximum length of a message.
    pub(in super::super) message: u32,
    /// Number of advertisements that this side may still open.
    pub(in super::super) adverts: usize,
}

impl Source {
    /// Returns the next action. If the RNIC could not register the memory of a send, `refused` is
    /// this send. Bcopy transfers the bytes of this send.
    pub(in super::super) fn plan(&self, policy: &Policy, room: Room, refused: Option<SendId>) -> Plan {
        if let Some((start, left)) = self.owed.front().copied() {
            return self.data(start, left, room);
        }
        if self.cancel.is_some() {
            return Plan::Nothing;
        }
        let Some(item) = self.item(self.next) else { return Plan::Nothing };
        let start = self.next;
        // The Out-Of-Band byte itself can only be sent as Data.
        let ordinary = item.end - u64::from(item.urgent) - start;
        let suits = ordinary > policy.source_threshold && refused != Some(item.send);
        if suits && self.mode == Mode::Pipelined {
            // This side sends the RdmaWrCompl before it starts another transfer, even before
            // another write. So an observer can match the written bytes with the RdmaWrCompl.
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
        // While a SrcAvail is open, no payload is allowed (sections 11.2 and 11.3).
        let waits = !self.open.is_empty() && (suits || !self.conduct.overtakes);
        if waits || !self.writing.is_empty() {
            return Plan::Nothing;
        }
        if suits && self.mode == Mode::Combined {
            let len = src_avail_len(ordinary, policy);
            let fits = payload_room(Mid::SRC_AVAIL, room);
            // At least one byte must remain for the RDMA Read.
            let payload = policy.src_avail_payload.max(1).min(fits).min(len - 1);
            if payload > 0 && room.adverts > 0 {
                return Plan::SrcAvail { start, len, payload };
            }
        }
        // Bcopy is always possible. If this side's SinkAvails already reach the MaxAdverts of the
        // peer, no other mechanism is possible.
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

/// Returns how many bytes of payload fit in a message after the headers of this message type.
pub(in super::super) fn payload_room(mid: Mid, room: Room) -> u32 {
    let headers = RawBsdh::LEN + mid.extension_len().unwrap_or(0);
    room.message.saturating_sub(u32::try_from(headers).unwrap_or(u32::MAX))
}
