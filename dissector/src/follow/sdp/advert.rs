//! Tracks advertisements: the SrcAvails of a Data Source and the SinkAvails of a Data Sink. The
//! monitor keeps two states of each advertisement: the state that its sender (the owner) knows, and
//! the state that the owner's peer knows.

use crate::frame_number::FrameNumber;
use std::collections::VecDeque;

/// Maximum number of open advertisements of one kind that the monitor tracks. The draft limits the
/// number of open advertisements to MaxAdverts. MaxAdverts is at most 65535.
pub(super) const MAX_OPEN: usize = 1024;
/// The largest allowed Len of an advertisement, in octets.
pub(crate) const MAX_LEN: u32 = 1 << 31;

/// An advertised RDMA Buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advert {
    /// MSeq of the message that advertised the buffer.
    pub mseq: u32,
    /// The frame of the message that advertised the buffer.
    pub frame: FrameNumber,
    /// STag of the buffer.
    pub stag: u32,
    /// VA (tagged offset) of the buffer's first octet.
    pub va: u64,
    /// Length of the buffer in octets.
    pub len: u32,
    /// Number of octets of the buffer that the SrcAvail message carried as payload.
    pub payload: u32,
    /// Number of octets that were neither moved by RDMA nor sent as payload.
    pub left: u64,
    /// The field NonDiscards of a SinkAvail; 0 for a SrcAvail.
    pub non_discards: u32,
}

impl Advert {
    /// Returns how many octets of a SrcAvail the RdmaRdCompl messages so far have reported.
    pub(crate) fn reported(&self) -> u64 {
        u64::from(self.len.saturating_sub(self.payload)).saturating_sub(self.left)
    }
}

/// The advertisement that a message completes or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffectedAdvert {
    /// The frame of the advertisement.
    pub frame: FrameNumber,
    /// MSeq of the advertisement.
    pub(crate) mseq: u32,
    /// Number of octets of the advertised buffer that are left after the message.
    pub left: u64,
}

/// Why an advertisement is no longer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// RdmaRdCompl or RdmaWrCompl reported the transfer.
    Completed,
    /// A SendSm requested the remaining octets as Data.
    ByData,
    /// A message with payload made the SinkAvail stale (section 9.5.1 of the SDP draft).
    Stale,
    /// SrcAvailCancel or SinkAvailCancel canceled the advertisement.
    Revoked,
    /// A crossing SinkAvail, a change of Mode or a DisConn made the advertisement void.
    Void,
}

/// The advertisements of one kind that one endpoint sent.
#[derive(Debug, Clone, Default)]
pub struct Adverts {
    open: VecDeque<Advert>,
    /// Number of all advertisements.
    pub made: u64,
    /// Number of advertisements that RdmaRdCompl or RdmaWrCompl completed.
    pub completed: u64,
    /// Number of SrcAvails that ended because a SendSm requested their remaining octets as Data.
    pub by_data: u64,
    /// Number of SinkAvails that a message with payload made stale.
    pub stale: u64,
    /// Number of advertisements that were canceled.
    pub revoked: u64,
    /// Number of advertisements that a crossing SinkAvail, a change of Mode or a DisConn made void.
    pub void: u64,
    /// The maximum number of advertisements open at the same time.
    pub max_open: u64,
}

impl Adverts {
    /// Returns the advertisements that their owner considers open, oldest first.
    #[must_use]
    pub fn open(&self) -> &VecDeque<Advert> {
        &self.open
    }

    /// Returns how many octets of all open advertisements together were neither moved by RDMA nor
    /// sent as payload.
    pub(super) fn octets(&self) -> u64 {
        self.open.iter().fold(0, |sum, advert| sum.saturating_add(advert.left))
    }

    /// Adds an advertisement. Returns `false` if too many advertisements are open.
    pub(super) fn add(&mut self, advert: Advert) -> bool {
        self.made += 1;
        if self.open.len() >= MAX_OPEN {
            return false;
        }
        self.open.push_back(advert);
        self.max_open = self.max_open.max(self.open.len() as u64);
        true
    }

    /// Records an RdmaRdCompl: RDMA moved `len` octets of an advertisement. The advertisement is
    /// completed when all its octets are moved. `invalidates` is the STag that the RdmaRdCompl
    /// invalidates.
    pub(super) fn record_moved(&mut self, len: u32, invalidates: Option<u32>) {
        let at = reported(&self.open, invalidates);
        if take_octets(&mut self.open, at, len) {
            self.completed += 1;
        }
    }

    /// Ends and returns the oldest advertisement.
    pub(super) fn end_oldest(&mut self, reason: EndReason) -> Option<Advert> {
        let advert = self.open.pop_front()?;
        *self.count(reason) += 1;
        Some(advert)
    }

    /// Ends all advertisements that match `which`.
    pub(super) fn end_matching(&mut self, reason: EndReason, which: impl Fn(&Advert) -> bool) {
        let before = self.open.len();
        self.open.retain(|advert| !which(advert));
        *self.count(reason) += (before - self.open.len()) as u64;
    }

    /// Drops the open advertisements, because they are no longer known.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    fn count(&mut self, reason: EndReason) -> &mut u64 {
        match reason {
            EndReason::Completed => &mut self.completed,
            EndReason::ByData => &mut self.by_data,
            EndReason::Stale => &mut self.stale,
            EndReason::Revoked => &mut self.revoked,
            EndReason::Void => &mut self.void,
        }
    }

    /// Memory in use, in octets.
    pub(super) fn memory(&self) -> usize {
        self.open.capacity() * size_of::<Advert>()
    }
}

/// Returns the position of the advertisement that an RdmaRdCompl reports. This is the oldest
/// advertisement, unless the RdmaRdCompl invalidates the STag of a newer one.
pub(super) fn reported(adverts: &VecDeque<Advert>, invalidates: Option<u32>) -> usize {
    adverts.iter().position(|advert| Some(advert.stag) == invalidates).unwrap_or(0)
}

/// Records that RDMA moved `len` octets of the advertisement at position `at`. If none of its octets
/// are left, removes the advertisement and returns `true`.
pub(super) fn take_octets(adverts: &mut VecDeque<Advert>, at: usize, len: u32) -> bool {
    let Some(advert) = adverts.get_mut(at) else { return false };
    advert.left = advert.left.saturating_sub(u64::from(len));
    advert.left == 0 && adverts.remove(at).is_some()
}

/// Returns the number of octets that a SendSm for this SrcAvail requests as Data. If Len is larger
/// than the draft allows, the number is not known, and the result is 0.
pub(super) fn requested(advert: &Advert) -> u64 {
    if advert.len > MAX_LEN { 0 } else { advert.left }
}

pub(super) fn affected_advert(advert: &Advert, left: u64) -> AffectedAdvert {
    AffectedAdvert { frame: advert.frame, mseq: advert.mseq, left }
}
