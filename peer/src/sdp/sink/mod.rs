//! The half-connection on which this side is the Data Sink: what the user waits for, and what has
//! arrived for it.
//!
//! Receives are filled in the order in which they were posted. The next bytes of the stream are, in
//! this order: those in Private Buffers (`held`), those that a SendSm requested (`owed`), and those
//! of the peer's SrcAvails (`sources`). Receives that are advertised by a SinkAvail come before all
//! others, and are filled by the peer, or by exactly one message (section 9.5.1).
//!
//! `read_zcopy` answers SrcAvails, `write_zcopy` has the SinkAvails.

mod read_zcopy;
mod write_zcopy;

use std::collections::VecDeque;

use weft_core::wire::sdp::Mode;

pub(super) use read_zcopy::Answer;
use read_zcopy::{Reading, RemoteSource};
pub(super) use write_zcopy::Revoke;

use super::pool::Pool;
use super::{Event, Output, PrivateBuffer, ReceiveEnd, ReceiveId};
use crate::hostile::SdpConduct;

/// A receive of the user.
#[derive(Debug, Clone, Copy)]
struct Receive {
    receive: ReceiveId,
    len: u64,
    filled: u64,
    /// It ends only when it is full (MSG_WAITALL).
    wait_all: bool,
    /// STag of its SinkAvail.
    advertised: Option<u32>,
    canceled: bool,
}

impl Receive {
    /// Octets that a SinkAvail advertises of it.
    fn advertised_len(&self) -> u32 {
        u32::try_from(self.len).unwrap_or(u32::MAX).min(1 << 31)
    }
}

/// Octets in a Private Buffer that no receive has taken.
#[derive(Debug, Clone, Copy)]
struct Held {
    buffer: PrivateBuffer,
    /// First octet of the message that is not taken.
    from: u32,
    len: u32,
    /// The last one is Out-Of-Band data.
    urgent: bool,
}

/// This side as Data Sink.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) mode: Mode,
    /// The user wants Combined Mode, and this side is Master of Buffered.
    pub(super) wants_combined: bool,
    receives: VecDeque<Receive>,
    /// Receives that have ended.
    pub(super) ends: u64,
    held: VecDeque<Held>,
    sources: VecDeque<RemoteSource>,
    /// Octets that are to come as Data because of SendSms.
    owed: u64,
    reading: Option<Reading>,
    /// NonDiscards (section 6.3.3.4).
    pub(super) non_discards: u32,
    /// The peer revoked its SrcAvails; the message is not through yet.
    pub(super) src_cancel: bool,
    /// The user revoked what is advertised.
    pub(super) revoke: Revoke,
    /// SinkAvailCancel was sent at some time.
    has_revoked: bool,
    /// The peer sends no more.
    pub(super) ended: bool,
    /// No Read is begun.
    pub(super) halted: bool,
    pub(super) conduct: SdpConduct,
}

impl Sink {
    pub(super) fn new() -> Self {
        Sink {
            mode: Mode::Combined,
            wants_combined: false,
            receives: VecDeque::new(),
            ends: 0,
            held: VecDeque::new(),
            sources: VecDeque::new(),
            owed: 0,
            reading: None,
            non_discards: 0,
            src_cancel: false,
            revoke: Revoke::No,
            has_revoked: false,
            ended: false,
            halted: false,
            conduct: SdpConduct::default(),
        }
    }

    pub(super) fn post(&mut self, receive: ReceiveId, len: u64, wait_all: bool) {
        let (filled, advertised, canceled) = (0, None, false);
        self.receives.push_back(Receive { receive, len, filled, wait_all, advertised, canceled });
    }

    /// Receives that have not ended.
    pub(super) fn receives(&self) -> usize {
        self.receives.len()
    }

    /// Payload that no SendSm requested, after a SrcAvail that is not Processed: octets that the
    /// SrcAvail advertises are missing in front of it (sections 11.2 and 11.3).
    pub(super) fn comes_too_early(&self, payload: u32) -> bool {
        !self.sources.is_empty() && u64::from(payload) > self.owed
    }

    /// Payload arrived in a Private Buffer, `len` octets from `from` on.
    pub(super) fn arrived(
        &mut self,
        (buffer, from, len): (PrivateBuffer, u32, u32),
        urgent: bool,
        out: &mut VecDeque<Output>,
    ) {
        self.owed = self.owed.saturating_sub(u64::from(len));
        self.held.push_back(Held { buffer, from, len, urgent });
        let Some(front) = self.receives.front_mut().filter(|receive| receive.advertised.is_some()) else {
            self.non_discards = self.non_discards.wrapping_add(1);
            return;
        };
        // The oldest SinkAvail is stale: its buffer takes this one message and goes back to the
        // user.
        let stag = front.advertised.take();
        out.extend(stag.map(|stag| Output::Withdraw { stag }));
        self.pour(out);
        if self.receives.front().is_some_and(|receive| receive.filled > 0) {
            self.end_front(false, ReceiveEnd::More, out);
        }
        self.settle_revocation();
    }

    /// Moves on everything that can move: fills receives, and ends those that are done. `freed`
    /// gets the Private Buffers that hold nothing any more.
    pub(super) fn advance(&mut self, pool: &mut Pool, out: &mut VecDeque<Output>) -> bool {
        loop {
            let ended = self.pour(out);
            if !ended && !self.end_short(out) {
                break;
            }
        }
        self.free(pool, out)
    }

    /// Gives the Private Buffers back that are empty; `true` when one was posted again.
    fn free(&mut self, pool: &mut Pool, out: &mut VecDeque<Output>) -> bool {
        let mut any = false;
        while self.held.front().is_some_and(|held| held.len == 0) {
            if let Some(held) = self.held.pop_front() {
                any |= pool.free(held.buffer, out);
            }
        }
        any
    }

    /// Fills the oldest receive from Private Buffers; `true` when it ended.
    fn pour(&mut self, out: &mut VecDeque<Output>) -> bool {
        if self.reading.is_some() {
            return false;
        }
        for held in self.held.iter_mut().filter(|held| held.len > 0) {
            let Some(front) = self.receives.front_mut().filter(|front| front.advertised.is_none()) else {
                return false;
            };
            let len = u32::try_from(front.len - front.filled).unwrap_or(u32::MAX).min(held.len);
            let (buffer, from, receive, at) = (held.buffer, held.from, front.receive, front.filled);
            out.push_back(Output::Place { buffer, from, len, receive, at });
            held.from += len;
            held.len -= len;
            front.filled += u64::from(len);
            let urgent = held.urgent && held.len == 0;
            if urgent || front.filled == front.len {
                self.end_front(urgent, ReceiveEnd::More, out);
                return true;
            }
        }
        false
    }

    /// Ends the oldest receive where it has octets and nothing more is there for it; `true` when it
    /// did.
    fn end_short(&mut self, out: &mut VecDeque<Output>) -> bool {
        let busy = self.reading.is_some() || self.held.iter().any(|held| held.len > 0);
        let Some(front) = self.receives.front().copied().filter(|_| !busy) else { return false };
        if front.canceled && front.advertised.is_none() {
            self.end_front(false, ReceiveEnd::Canceled, out);
            return true;
        }
        if front.advertised.is_some() {
            return false;
        }
        // More of the stream is known of, and will be read into it or come as Data.
        let more = !self.sources.is_empty() || self.owed > 0;
        if self.ended && !more {
            self.end_front(false, ReceiveEnd::EndOfStream, out);
            return true;
        }
        if front.filled > 0 && !front.wait_all && !more {
            self.end_front(false, ReceiveEnd::More, out);
            return true;
        }
        false
    }

    fn end_front(&mut self, urgent: bool, end: ReceiveEnd, out: &mut VecDeque<Output>) {
        if let Some(Receive { receive, filled, .. }) = self.receives.pop_front() {
            self.ends += 1;
            out.push_back(Output::Event(Event::Received { receive, octets: filled, urgent, end }));
        }
    }

    /// The user takes back all receives.
    pub(super) fn cancel(&mut self) {
        for receive in &mut self.receives {
            receive.canceled = true;
        }
        self.revoke_advertised();
    }

    /// Octets that the peer owes: advertised by SrcAvails and not read, or requested by SendSms.
    /// `None` when it owes nothing, not even a report that everything was read.
    pub(super) fn due(&self) -> Option<u64> {
        let unread: u64 = self.sources.iter().map(RemoteSource::left).sum();
        (self.owed > 0 || !self.sources.is_empty()).then_some(self.owed + unread)
    }

    /// Is an advertisement being revoked, by this side or the peer?
    pub(super) fn is_revoking(&self) -> bool {
        self.src_cancel || self.revoke != Revoke::No
    }

    /// Suspends the connection: advertisements of both sides become void; data that has arrived
    /// stays.
    pub(super) fn suspend(&mut self, out: &mut VecDeque<Output>) {
        self.void(out);
        self.sources.clear();
        self.owed = 0;
        self.non_discards = 0;
        (self.src_cancel, self.has_revoked, self.wants_combined) = (false, false, false);
        self.mode = Mode::Combined;
    }

    /// A Read is in progress.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// The peer's DisConn: no more will come, and SinkAvails are canceled (section 8.2.1).
    pub(super) fn end(&mut self, out: &mut VecDeque<Output>) {
        self.ended = true;
        self.void(out);
    }

    /// The connection is over.
    pub(super) fn abort(&mut self, end: ReceiveEnd, out: &mut VecDeque<Output>) {
        self.void(out);
        self.reading = None;
        self.sources.clear();
        self.owed = 0;
        if end == ReceiveEnd::Aborted {
            self.held.clear();
        }
        while self.pour(out) {}
        while !self.receives.is_empty() {
            self.end_front(false, end, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{By, Proof};
    use weft_core::requirement;

    #[test]
    fn non_discards_rolls_over() {
        let mut proof = Proof::new(By::Test);
        let mut sink = Sink::new();
        sink.non_discards = u32::MAX;
        sink.arrived((PrivateBuffer(0), 16, 1), false, &mut VecDeque::new());
        proof.shows(requirement!("SDP-6.3.3.4-3"), || assert_eq!(sink.non_discards, 0));
    }
}
