//! The half-connection on which this side is the Data Source: what was posted to be sent, and how
//! much of it is on which way.
//!
//! Octets are counted by their place in the stream. `next` is the first that no mechanism has taken
//! on; what is before it went out as Data, or is advertised by a SrcAvail (`open`), requested by a
//! SendSm (`owed`), or being written into a SinkAvail's buffer (`writing`). A mechanism that is
//! taken back moves `next` back.
//!
//! `read_zcopy` has the SrcAvails, `write_zcopy` the peer's SinkAvails and their staleness, `plan`
//! the choice between them.

mod plan;
mod read_zcopy;
mod write_zcopy;

use std::collections::VecDeque;

use weft_core::wire::sdp::Mode;

pub(super) use plan::{Plan, Room, payload_room};
use read_zcopy::OpenSrcAvail;
use write_zcopy::OpenSinkAvail;
pub(super) use write_zcopy::Writing;

use super::{Event, Output, Piece, SendEnd, SendId};
use crate::hostile::SdpConduct;

/// A send of the user.
#[derive(Debug, Clone, Copy)]
struct Item {
    send: SendId,
    start: u64,
    end: u64,
    /// Its last octet is Out-Of-Band data.
    urgent: bool,
}

/// This side as Data Source.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) mode: Mode,
    /// The Mode that the user or the peer's hint asks for.
    pub(super) wanted: Option<Mode>,
    /// MSeq of the ModeChange that left Pipelined Mode, until it is acknowledged, and
    /// PotentialNonDiscards then (C12).
    pub(super) left_pipelined: Option<(u32, u32)>,
    items: VecDeque<Item>,
    end: u64,
    next: u64,
    pub(super) open: VecDeque<OpenSrcAvail>,
    owed: VecDeque<(u64, u64)>,
    usable: VecDeque<OpenSinkAvail>,
    pub(super) writing: VecDeque<Writing>,
    /// PotentialNonDiscards (section 9.5.1).
    pub(super) potential_non_discards: u32,
    /// The peer revoked its SinkAvails, and some were left: SinkCancelAck is due when the writes
    /// are through.
    pub(super) sink_cancel: bool,
    cancel: Option<Cancel>,
    /// Sends of the RNIC that carry octets from this place on and have not completed.
    in_flight: VecDeque<u64>,
    pub(super) conduct: SdpConduct,
}

/// The user took back everything before `upto` that is not out.
#[derive(Debug, Clone, Copy)]
struct Cancel {
    upto: u64,
    /// MSeq of the SrcAvailCancel, once it is sent.
    mseq: Option<u32>,
}

impl Source {
    pub(super) fn new() -> Self {
        Source {
            mode: Mode::Combined,
            wanted: None,
            left_pipelined: None,
            items: VecDeque::new(),
            end: 0,
            next: 0,
            open: VecDeque::new(),
            owed: VecDeque::new(),
            usable: VecDeque::new(),
            writing: VecDeque::new(),
            potential_non_discards: 0,
            sink_cancel: false,
            cancel: None,
            in_flight: VecDeque::new(),
            conduct: SdpConduct::default(),
        }
    }

    /// Takes a send on; gives the place of its last octet.
    pub(super) fn post(&mut self, send: SendId, len: u64, urgent: bool) -> u64 {
        let start = self.end;
        self.end += len;
        self.items.push_back(Item { send, start, end: self.end, urgent });
        self.end - 1
    }

    /// The first octet that is not out yet.
    pub(super) fn settled(&self) -> u64 {
        let owed = self.owed.front().map(|(start, _)| *start);
        let open = self.open.front().map(|advert| advert.start);
        let writing = self.writing.front().map(|writing| writing.start);
        [owed, open, writing].into_iter().flatten().fold(self.next, u64::min)
    }

    /// All that was posted is out, and the RNIC is done with it.
    pub(super) fn is_done(&self) -> bool {
        self.items.is_empty() && self.in_flight.is_empty() && self.cancel.is_none()
    }

    /// Sends that have not ended.
    pub(super) fn sends(&self) -> usize {
        self.items.len()
    }

    /// A message took octets from `start` on.
    pub(super) fn took(&mut self, start: u64, len: u64) {
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

    /// The RNIC has sent the oldest message that carried octets.
    pub(super) fn flown(&mut self) {
        self.in_flight.pop_front();
    }

    /// Octets still to be sent because of SendSms.
    pub(super) fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Reports which sends are over.
    pub(super) fn finish(&mut self, out: &mut VecDeque<Output>) {
        let settled = self.settled();
        while let Some(item) = self.items.front().copied() {
            if item.end > settled || self.in_flight.front().is_some_and(|start| *start < item.end) {
                break;
            }
            self.items.pop_front();
            out.push_back(sent(&item, item.end - item.start, SendEnd::Complete));
        }
        self.finish_cancel(out);
    }

    /// The user takes back all that was posted.
    pub(super) fn cancel(&mut self) {
        match &mut self.cancel {
            Some(cancel) => cancel.upto = self.end,
            None if self.items.is_empty() => {}
            None => self.cancel = Some(Cancel { upto: self.end, mseq: None }),
        }
    }

    /// What was posted is being taken back.
    pub(super) fn is_revoking(&self) -> bool {
        self.cancel.is_some() || self.sink_cancel
    }

    /// Suspends the connection: advertised and requested bytes are unassigned again; the peer has
    /// everything before them.
    pub(super) fn suspend(&mut self, out: &mut VecDeque<Output>) {
        self.next = self.settled();
        out.extend(self.open.drain(..).map(|advert| Output::Withdraw { stag: advert.stag }));
        // The Mode comes back when it can be had.
        self.wanted = self.wanted.or(Some(self.mode)).filter(|mode| *mode != Mode::Combined);
        self.mode = Mode::Combined;
        self.left_pipelined = None;
        self.owed.clear();
        self.usable.clear();
        self.writing.clear();
        self.in_flight.clear();
        self.potential_non_discards = 0;
        self.sink_cancel = false;
        if let Some(cancel) = &mut self.cancel {
            cancel.mseq = None;
        }
    }

    /// SrcAvailCancel is to be sent.
    pub(super) fn wants_cancel(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.mseq.is_none()) && !self.open.is_empty()
    }

    /// It is sent.
    pub(super) fn sent_cancel(&mut self, mseq: u32) {
        if let Some(cancel) = &mut self.cancel {
            cancel.mseq = Some(mseq);
        }
    }

    /// Ends what was taken back, once nothing of it is on its way.
    fn finish_cancel(&mut self, out: &mut VecDeque<Output>) {
        let Some(Cancel { upto, .. }) = self.cancel else { return };
        let busy = !self.open.is_empty() || self.owes() || !self.writing.is_empty() || !self.in_flight.is_empty();
        if busy {
            return;
        }
        self.cancel = None;
        let settled = self.next;
        while let Some(item) = self.items.front().copied().filter(|item| item.end <= upto) {
            self.items.pop_front();
            out.push_back(sent(&item, settled.saturating_sub(item.start), SendEnd::Canceled));
        }
        // What was posted after it continues; places between are nobody's.
        self.next = self.next.max(upto);
    }

    /// The connection is over.
    pub(super) fn abort(&mut self, out: &mut VecDeque<Output>) {
        let settled = self.settled();
        for advert in std::mem::take(&mut self.open) {
            out.push_back(Output::Withdraw { stag: advert.stag });
        }
        for item in std::mem::take(&mut self.items) {
            let octets = settled.clamp(item.start, item.end) - item.start;
            out.push_back(sent(&item, octets, SendEnd::Aborted));
        }
        self.owed.clear();
        self.usable.clear();
        self.writing.clear();
        self.in_flight.clear();
        self.cancel = None;
    }

    /// The part of a send that has these `len` bytes from `start` on, if one send has them all.
    pub(super) fn piece(&self, start: u64, len: u64) -> Option<Piece> {
        let item = self.item(start)?;
        Some(Piece { send: item.send, from: start - item.start, len: u32::try_from(len).ok()? })
    }

    fn item(&self, position: u64) -> Option<&Item> {
        let at = self.items.partition_point(|item| item.end <= position);
        self.items.get(at).filter(|item| item.start <= position)
    }
}

fn sent(item: &Item, octets: u64, end: SendEnd) -> Output {
    Output::Event(Event::Sent { send: item.send, octets, end })
}
