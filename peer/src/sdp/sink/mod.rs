//! The half-connection on which this side is the Data Sink: the receives that the user posted, and
//! the bytes that have arrived for them.
//!
//! Receives are filled in the order in which they were posted. The next bytes of the stream come
//! from these sources, in this order:
//! 1. bytes in Private Buffers (`buffered`),
//! 2. bytes that a SendSm requested as Data (`owed`),
//! 3. bytes that the peer's SrcAvails advertise (`sources`).
//!
//! The receives that SinkAvails advertise precede all other receives. There are two ways to fill an
//! advertised receive: the peer writes into it, or exactly one message fills it (section 9.5.1 of
//! the SDP draft).
//!
//! `read_zcopy` answers the peer's SrcAvails, and `write_zcopy` handles this side's own SinkAvails.

mod read_zcopy;
mod write_zcopy;

use std::collections::VecDeque;

use weft_core::wire::sdp::Mode;

pub(super) use read_zcopy::Answer;
use read_zcopy::{Reading, RemoteSource};
pub(super) use write_zcopy::Revoke;

use super::pool::Pool;
use super::{Event, Output, PrivateBuffer, ReceiveId, ReceiveOutcome};
use crate::hostile::SdpConduct;

/// A receive of the user.
#[derive(Debug, Clone, Copy)]
struct Receive {
    receive: ReceiveId,
    len: u64,
    filled: u64,
    /// The receive waits until it is full (MSG_WAITALL).
    wait_all: bool,
    /// STag of the SinkAvail for this receive.
    advertised: Option<u32>,
    canceled: bool,
}

impl Receive {
    /// Number of bytes that a SinkAvail for this receive advertises, at most 2^31.
    fn advertised_len(&self) -> u32 {
        u32::try_from(self.len).unwrap_or(u32::MAX).min(1 << 31)
    }
}

/// Bytes in a Private Buffer that no receive has taken yet.
#[derive(Debug, Clone, Copy)]
struct BufferedData {
    buffer: PrivateBuffer,
    /// Offset of the first byte that no receive has taken, from the start of the message.
    from: u32,
    len: u32,
    /// The last byte is Out-Of-Band data.
    urgent: bool,
}

/// State of this side in its role as Data Sink.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) mode: Mode,
    /// The user requests Combined Mode, and this side is Mode Master because the Mode is Buffered.
    pub(super) wants_combined: bool,
    receives: VecDeque<Receive>,
    /// Number of receives that have ended.
    pub(super) ends: u64,
    buffered: VecDeque<BufferedData>,
    pub(super) sources: VecDeque<RemoteSource>,
    /// Number of bytes that the peer has to send as Data, because this side requested them by
    /// SendSm messages.
    owed: u64,
    reading: Option<Reading>,
    /// NonDiscards: counts messages with payload that made no SinkAvail stale (section 6.3.3.4).
    pub(super) non_discards: u32,
    /// The peer sent a SrcAvailCancel, and this side has not completed it yet.
    pub(super) src_cancel: bool,
    /// State of the revocation of SinkAvails. The user's cancellation of receives requires a
    /// revocation.
    pub(super) revoke: Revoke,
    /// This side has sent a SinkAvailCancel on this connection.
    has_revoked: bool,
    /// The peer has ended its half-connection and sends no more data.
    pub(super) ended: bool,
    /// This side starts no new Reads.
    pub(super) halted: bool,
    pub(super) conduct: SdpConduct,
}

impl Sink {
    pub(super) fn post(&mut self, receive: ReceiveId, len: u64, wait_all: bool) {
        let (filled, advertised, canceled) = (0, None, false);
        self.receives.push_back(Receive { receive, len, filled, wait_all, advertised, canceled });
    }

    /// Number of receives that have not ended.
    pub(super) fn receives(&self) -> usize {
        self.receives.len()
    }

    /// Returns whether payload arrived too early: a SrcAvail is not Processed, and no SendSm
    /// requested the payload. In this case, bytes that the SrcAvail advertises are missing before
    /// the payload (sections 11.2 and 11.3).
    pub(super) fn comes_too_early(&self, payload: u32) -> bool {
        !self.sources.is_empty() && u64::from(payload) > self.owed
    }

    /// Stores payload that arrived in a Private Buffer: `len` bytes from offset `from`.
    pub(super) fn arrived(
        &mut self,
        (buffer, from, len): (PrivateBuffer, u32, u32),
        urgent: bool,
        out: &mut VecDeque<Output>,
    ) {
        self.owed = self.owed.saturating_sub(u64::from(len));
        self.buffered.push_back(BufferedData { buffer, from, len, urgent });
        let Some(front) = self.receives.front_mut().filter(|receive| receive.advertised.is_some()) else {
            self.non_discards = self.non_discards.wrapping_add(1);
            return;
        };
        // The message makes the oldest SinkAvail stale. The receive of this SinkAvail takes only
        // this message, and then ends.
        let stag = front.advertised.take();
        out.extend(stag.map(|stag| Output::Withdraw { stag }));
        self.fill_front(out);
        if self.receives.front().is_some_and(|receive| receive.filled > 0) {
            self.end_front(false, ReceiveOutcome::More, out);
        }
        self.settle_revocation();
    }

    /// Fills receives as far as possible, and ends the receives that are complete. Empty Private
    /// Buffers return to `pool`. Returns whether a Private Buffer was posted again.
    pub(super) fn advance(&mut self, pool: &mut Pool, out: &mut VecDeque<Output>) -> bool {
        loop {
            let ended = self.fill_front(out);
            if !ended && !self.end_short(out) {
                break;
            }
        }
        self.free(pool, out)
    }

    /// Returns empty Private Buffers to `pool`. Returns whether a Private Buffer was posted again.
    fn free(&mut self, pool: &mut Pool, out: &mut VecDeque<Output>) -> bool {
        let mut any = false;
        while let Some(empty) = self.buffered.pop_front_if(|buffered| buffered.len == 0) {
            any |= pool.free(empty.buffer, out);
        }
        any
    }

    /// Fills the oldest receive from Private Buffers. Returns whether the receive ended.
    fn fill_front(&mut self, out: &mut VecDeque<Output>) -> bool {
        if self.reading.is_some() {
            return false;
        }
        for buffered in self.buffered.iter_mut().filter(|buffered| buffered.len > 0) {
            let Some(front) = self.receives.front_mut().filter(|front| front.advertised.is_none()) else {
                return false;
            };
            let len = u32::try_from(front.len - front.filled).unwrap_or(u32::MAX).min(buffered.len);
            let (buffer, from, receive, at) = (buffered.buffer, buffered.from, front.receive, front.filled);
            out.push_back(Output::Place { buffer, from, len, receive, at });
            buffered.from += len;
            buffered.len -= len;
            front.filled += u64::from(len);
            let urgent = buffered.urgent && buffered.len == 0;
            if urgent || front.filled == front.len {
                self.end_front(urgent, ReceiveOutcome::More, out);
                return true;
            }
        }
        false
    }

    /// Ends the oldest receive if no more bytes are available for it now. Returns whether the
    /// receive ended.
    fn end_short(&mut self, out: &mut VecDeque<Output>) -> bool {
        let busy = self.reading.is_some() || self.buffered.iter().any(|buffered| buffered.len > 0);
        let idle = |front: &Receive| !busy && front.advertised.is_none();
        let Some(front) = self.receives.front().copied().filter(idle) else { return false };
        // If more bytes of the stream are advertised or requested, a Read or a Data message will
        // transfer them.
        let more = !self.sources.is_empty() || self.owed > 0;
        let end = match front {
            Receive { canceled: true, .. } => ReceiveOutcome::Canceled,
            _ if self.ended && !more => ReceiveOutcome::EndOfStream,
            Receive { filled: 1.., wait_all: false, .. } if !more => ReceiveOutcome::More,
            _ => return false,
        };
        self.end_front(false, end, out);
        true
    }

    fn end_front(&mut self, urgent: bool, end: ReceiveOutcome, out: &mut VecDeque<Output>) {
        if let Some(Receive { receive, filled, .. }) = self.receives.pop_front() {
            self.ends += 1;
            out.push_back(Output::Event(Event::Received { receive, octets: filled, urgent, end }));
        }
    }

    /// Cancels all receives.
    pub(super) fn cancel(&mut self) {
        for receive in &mut self.receives {
            receive.canceled = true;
        }
        self.revoke_advertised();
    }

    /// Returns the number of bytes that the peer owes. These are the bytes that the peer's
    /// SrcAvails advertise and that this side has not read, and the bytes that this side requested
    /// by SendSm messages. Returns `None` if the peer owes nothing and all SrcAvails are Processed.
    pub(super) fn due(&self) -> Option<u64> {
        let unread: u64 = self.sources.iter().map(RemoteSource::left).sum();
        (self.owed > 0 || !self.sources.is_empty()).then_some(self.owed + unread)
    }

    /// Returns whether this side or the peer is revoking advertisements.
    pub(super) fn is_revoking(&self) -> bool {
        self.src_cancel || self.revoke != Revoke::No
    }

    /// Suspends the connection. Advertisements of both sides become void. Data that has arrived
    /// remains.
    pub(super) fn suspend(&mut self, out: &mut VecDeque<Output>) {
        self.void(out);
        self.sources.clear();
        self.owed = 0;
        if !self.conduct.keeps_non_discards {
            self.non_discards = 0;
        }
        (self.src_cancel, self.has_revoked, self.wants_combined) = (false, false, false);
        self.mode = Mode::Combined;
    }

    /// Returns whether a Read is in progress.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Processes the peer's DisConn: no more data arrives, and all SinkAvails are void (section
    /// 8.2.1).
    pub(super) fn end(&mut self, out: &mut VecDeque<Output>) {
        self.ended = true;
        self.void(out);
    }

    /// Ends all receives, because the connection has ended.
    pub(super) fn abort(&mut self, end: ReceiveOutcome, out: &mut VecDeque<Output>) {
        self.void(out);
        self.reading = None;
        self.sources.clear();
        self.owed = 0;
        if end == ReceiveOutcome::Aborted {
            self.buffered.clear();
        }
        while self.fill_front(out) {}
        while !self.receives.is_empty() {
            self.end_front(false, end, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;

    #[test]
    fn non_discards_rolls_over() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut sink = Sink { non_discards: u32::MAX, ..Sink::default() };
        sink.arrived((PrivateBuffer(0), 16, 1), false, &mut VecDeque::new());
        proof.verify(requirement!("SDP-6.3.3.4-3"), || assert_eq!(sink.non_discards, 0));
    }
}
