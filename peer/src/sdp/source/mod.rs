//! The half-connection on which this side is the Data Source: the posted sends, and the mechanism
//! that transfers each byte. Section numbers are those of the SDP draft.
//!
//! A position counts the bytes of the stream from 0. `next` is the first position that is not yet
//! assigned to a mechanism. A byte before `next` is in one of these states:
//! - it has been transferred,
//! - an open SrcAvail advertises it (`open`),
//! - a SendSm has requested it, so it must be sent as Data (`owed`),
//! - an RDMA Write into the buffer of a SinkAvail transfers it (`writing`).
//!
//! If advertisements become void, `next` moves back to the first advertised byte.
//!
//! `read_zcopy` handles this side's SrcAvails. `write_zcopy` handles the peer's SinkAvails, and
//! drops those that are stale. Before a SinkAvail arrives, this side can send a message with
//! payload that fills the buffer of the SinkAvail. Such a SinkAvail is stale. `plan` selects the
//! mechanism.

mod plan;
mod read_zcopy;
mod write_zcopy;

use std::collections::VecDeque;

use weft_core::wire::sdp::Mode;

pub(super) use plan::{Plan, Room, payload_room};
use read_zcopy::OpenSrcAvail;
use write_zcopy::OpenSinkAvail;
pub(super) use write_zcopy::Writing;

use super::{Event, Output, Piece, SendId, SendOutcome};
use crate::hostile::SdpConduct;

/// A send of the user. `start` is the position of its first byte, and `end` is the position after
/// its last byte.
#[derive(Debug, Clone, Copy)]
struct Item {
    send: SendId,
    start: u64,
    end: u64,
    /// The last byte is Out-Of-Band data.
    urgent: bool,
}

/// State of this side in its role as Data Source.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) mode: Mode,
    /// The Mode that the user, or a hint of the peer, requests.
    pub(super) wanted: Option<Mode>,
    /// MSeq of the ModeChange that left Pipelined Mode, and the value of PotentialNonDiscards at
    /// that time. Set until the peer acknowledges the ModeChange.
    pub(super) left_pipelined: Option<(u32, u32)>,
    items: VecDeque<Item>,
    end: u64,
    next: u64,
    pub(super) open: VecDeque<OpenSrcAvail>,
    owed: VecDeque<(u64, u64)>,
    usable: VecDeque<OpenSinkAvail>,
    pub(super) writing: VecDeque<Writing>,
    /// PotentialNonDiscards: counts messages with payload that this side sent (section 9.5.1).
    pub(super) potential_non_discards: u32,
    /// The peer revoked its SinkAvails while this side still had some of these SinkAvails.
    /// SinkCancelAck is due when the writes in progress are complete.
    pub(super) sink_cancel: bool,
    cancel: Option<Cancel>,
    /// First position of each message with payload that the RNIC has not completed.
    in_flight: VecDeque<u64>,
    pub(super) conduct: SdpConduct,
}

/// The user canceled the sends. Before position `upto`, this side sends only the bytes that are
/// already assigned to a mechanism.
#[derive(Debug, Clone, Copy)]
struct Cancel {
    upto: u64,
    /// MSeq of the SrcAvailCancel. `None` until the SrcAvailCancel is sent.
    mseq: Option<u32>,
}

impl Source {
    /// Adds a send. Returns the position of its last byte.
    pub(super) fn post(&mut self, send: SendId, len: u64, urgent: bool) -> u64 {
        let start = self.end;
        self.end += len;
        self.items.push_back(Item { send, start, end: self.end, urgent });
        self.end - 1
    }

    /// Returns the first position whose byte has not been transferred.
    pub(super) fn settled(&self) -> u64 {
        let owed = self.owed.front().map(|(start, _)| *start);
        let open = self.open.front().map(|advert| advert.start);
        let writing = self.writing.front().map(|writing| writing.start);
        [owed, open, writing].into_iter().flatten().fold(self.next, u64::min)
    }

    /// Returns whether all posted bytes have been sent and the RNIC has completed the messages.
    pub(super) fn is_done(&self) -> bool {
        self.items.is_empty() && self.in_flight.is_empty() && self.cancel.is_none()
    }

    /// If a ModeChange towards the requested Mode may be sent now, returns the Mode of this
    /// ModeChange.
    pub(super) fn next_mode(&mut self) -> Option<Mode> {
        let (from, wanted) = (self.mode, self.wanted?);
        let to = if (from, wanted) == (Mode::Pipelined, Mode::Buffered) { Mode::Combined } else { wanted };
        // The request is dropped if this side already has the requested Mode. It is also dropped in
        // Buffered Mode, because only the peer (the Mode Master) can change this Mode.
        if to == from || from == Mode::Buffered {
            self.wanted = None;
            return None;
        }
        let waits = match (from, to) {
            _ if self.left_pipelined.is_some() => true,
            (Mode::Combined, Mode::Buffered) => !self.open.is_empty(),
            (Mode::Pipelined, _) => !self.writing.is_empty(),
            _ => false,
        };
        (!waits).then_some(to)
    }

    /// Requests Pipelined Mode if the peer prefers this Mode.
    pub(super) fn follow_hint(&mut self, req_pipe: bool) {
        if req_pipe && self.mode == Mode::Combined {
            self.wanted = Some(Mode::Pipelined);
        }
    }

    /// Number of sends that have not ended.
    pub(super) fn sends(&self) -> usize {
        self.items.len()
    }

    /// Notes that a message carries `len` bytes from position `start`.
    pub(super) fn assign(&mut self, start: u64, len: u64) {
        self.potential_non_discards = self.potential_non_discards.wrapping_add(1);
        self.in_flight.push_back(start);
        match self.owed.front_mut() {
            Some((owed, left)) if *owed == start => {
                *owed += len;
                *left = left.saturating_sub(len);
                if *left == 0 {
                    self.owed.pop_front();
                }
            }
            _ => self.next = start + len,
        }
        self.drop_stale();
    }

    /// Notes that the RNIC has completed the oldest message with payload.
    pub(super) fn completed(&mut self) {
        self.in_flight.pop_front();
    }

    /// Returns whether bytes that a SendSm requested remain to be sent.
    pub(super) fn has_requested_data(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Reports the sends that have ended.
    pub(super) fn finish(&mut self, out: &mut VecDeque<Output>) {
        let settled = self.settled();
        let in_flight = self.in_flight.front().copied();
        let is_over = |item: &mut Item| item.end <= settled && in_flight.is_none_or(|start| start >= item.end);
        while let Some(item) = self.items.pop_front_if(is_over) {
            out.push_back(sent(&item, item.end - item.start, SendOutcome::Complete));
        }
        self.finish_cancel(out);
    }

    /// Cancels all posted sends.
    pub(super) fn cancel(&mut self) {
        match &mut self.cancel {
            Some(cancel) => cancel.upto = self.end,
            None if self.items.is_empty() => {}
            None => self.cancel = Some(Cancel { upto: self.end, mseq: None }),
        }
    }

    /// Returns whether this side's sends or the peer's SinkAvails are being canceled.
    pub(super) fn is_revoking(&self) -> bool {
        self.cancel.is_some() || self.sink_cancel
    }

    /// Suspends the connection. Bytes that were advertised or requested become unassigned. The peer
    /// has received all bytes that precede these bytes.
    pub(super) fn suspend(&mut self, out: &mut VecDeque<Output>) {
        self.next = self.settled();
        self.void_transfers(out);
        // Request the current Mode again after the suspension.
        self.wanted = self.wanted.or(Some(self.mode)).filter(|mode| *mode != Mode::Combined);
        self.mode = Mode::Combined;
        self.left_pipelined = None;
        self.potential_non_discards = 0;
        self.sink_cancel = false;
        if let Some(cancel) = &mut self.cancel {
            cancel.mseq = None;
        }
    }

    /// Returns whether SrcAvailCancel is to be sent.
    pub(super) fn wants_cancel(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.mseq.is_none()) && !self.open.is_empty()
    }

    /// Stores MSeq of the SrcAvailCancel that was sent.
    pub(super) fn sent_cancel(&mut self, mseq: u32) {
        if let Some(cancel) = &mut self.cancel {
            cancel.mseq = Some(mseq);
        }
    }

    /// Reports the canceled sends as soon as none of their bytes is in progress.
    fn finish_cancel(&mut self, out: &mut VecDeque<Output>) {
        let Some(Cancel { upto, .. }) = self.cancel else { return };
        let busy = !self.open.is_empty()
            || self.has_requested_data()
            || !self.writing.is_empty()
            || !self.in_flight.is_empty();
        if busy {
            return;
        }
        self.cancel = None;
        let settled = self.next;
        while let Some(item) = self.items.pop_front_if(|item| item.end <= upto) {
            out.push_back(sent(&item, settled.saturating_sub(item.start), SendOutcome::Canceled));
        }
        // Sends that were posted after the cancellation continue. The positions of canceled bytes
        // are skipped.
        self.next = self.next.max(upto);
    }

    /// Ends all sends, because the connection has ended.
    pub(super) fn abort(&mut self, out: &mut VecDeque<Output>) {
        let settled = self.settled();
        self.void_transfers(out);
        for item in std::mem::take(&mut self.items) {
            let octets = settled.clamp(item.start, item.end) - item.start;
            out.push_back(sent(&item, octets, SendOutcome::Aborted));
        }
        self.cancel = None;
    }

    /// Ends all transfers and advertisements, because their TCP connection has ended.
    fn void_transfers(&mut self, out: &mut VecDeque<Output>) {
        out.extend(self.open.drain(..).map(|advert| Output::Withdraw { stag: advert.stag }));
        self.owed.clear();
        self.usable.clear();
        self.writing.clear();
        self.in_flight.clear();
    }

    /// Returns the range of a send that corresponds to `len` bytes from position `start`. The
    /// caller makes sure that the bytes belong to one send. Returns `None` if no send has the first
    /// byte.
    pub(super) fn piece(&self, start: u64, len: u64) -> Option<Piece> {
        let item = self.item(start)?;
        Some(Piece { send: item.send, from: start - item.start, len: u32::try_from(len).ok()? })
    }

    fn item(&self, position: u64) -> Option<&Item> {
        let at = self.items.partition_point(|item| item.end <= position);
        self.items.get(at).filter(|item| item.start <= position)
    }
}

fn sent(item: &Item, octets: u64, end: SendOutcome) -> Output {
    Output::Event(Event::Sent { send: item.send, octets, end })
}
