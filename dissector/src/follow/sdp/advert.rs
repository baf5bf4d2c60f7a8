//! Advertisements: SrcAvails of a Data Source, SinkAvails of a Data Sink, each from the view of its
//! owner and of its peer.

use std::collections::VecDeque;

/// Open advertisements of one kind that are followed; the draft's own limit is MaxAdverts, up to
/// 65535.
pub(super) const MOST_OPEN: usize = 1024;

/// An advertised RDMA Buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advert {
    /// MSeq of the message that advertised it.
    pub mseq: u32,
    /// The frame of that message.
    pub frame: u64,
    /// STag of the buffer.
    pub stag: u32,
    /// VA of the buffer.
    pub va: u64,
    /// Octets of the buffer.
    pub len: u32,
    /// Octets of a SrcAvail that came as its payload.
    pub payload: u32,
    /// Octets that are neither moved nor in transit as Data.
    pub left: u64,
    /// NonDiscards of a SinkAvail.
    pub non_discards: u32,
}

impl Advert {
    /// Octets of a SrcAvail that RdmaRdCompls reported.
    pub(crate) fn reported(&self) -> u64 {
        u64::from(self.len.saturating_sub(self.payload)).saturating_sub(self.left)
    }
}

/// Why an advertisement is no longer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// RdmaRdCompl or RdmaWrCompl.
    Completed,
    /// SendSm: the rest goes as Data.
    ByData,
    /// A message with payload came first (section 9.5.1).
    Stale,
    /// Canceled by SrcAvailCancel or SinkAvailCancel.
    Revoked,
    /// Overtaken by a SinkAvail, a change of Mode or a DisConn.
    Void,
}

/// The advertisements of one end, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Adverts {
    open: VecDeque<Advert>,
    /// Total number.
    pub made: u64,
    /// Those that RdmaRdCompl or RdmaWrCompl completed.
    pub completed: u64,
    /// SrcAvails whose rest a SendSm requested as Data.
    pub by_data: u64,
    /// SinkAvails that Data made stale.
    pub stale: u64,
    /// Those that were canceled.
    pub revoked: u64,
    /// Those that a crossing SinkAvail, a change of Mode or a DisConn made void.
    pub void: u64,
    /// The maximum number open at a time.
    pub most_open: u64,
}

impl Adverts {
    /// Advertisements that their owner considers open, oldest first.
    #[must_use]
    pub fn open(&self) -> &VecDeque<Advert> {
        &self.open
    }

    /// Octets of the open advertisements that are neither moved nor in transit as Data.
    pub(super) fn octets(&self) -> u64 {
        self.open.iter().fold(0, |sum, advert| sum.saturating_add(advert.left))
    }

    /// Adds an advertisement; `false` if there are too many to follow.
    pub(super) fn make(&mut self, advert: Advert) -> bool {
        self.made += 1;
        if self.open.len() >= MOST_OPEN {
            return false;
        }
        self.open.push_back(advert);
        self.most_open = self.most_open.max(self.open.len() as u64);
        true
    }

    /// `len` octets of the oldest were moved. It ends when all its octets are moved.
    pub(super) fn moved(&mut self, len: u32) {
        if take(&mut self.open, len) {
            self.completed += 1;
        }
    }

    /// Ends the oldest, and returns it.
    pub(super) fn end_oldest(&mut self, end: End) -> Option<Advert> {
        let advert = self.open.pop_front()?;
        *self.count(end) += 1;
        Some(advert)
    }

    /// Ends all that match `which`.
    pub(super) fn end_those(&mut self, end: End, which: impl Fn(&Advert) -> bool) {
        let before = self.open.len();
        self.open.retain(|advert| !which(advert));
        *self.count(end) += (before - self.open.len()) as u64;
    }

    /// The open advertisements are no longer known.
    pub(super) fn forget(&mut self) {
        self.open.clear();
    }

    fn count(&mut self, end: End) -> &mut u64 {
        match end {
            End::Completed => &mut self.completed,
            End::ByData => &mut self.by_data,
            End::Stale => &mut self.stale,
            End::Revoked => &mut self.revoked,
            End::Void => &mut self.void,
        }
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.open.capacity() * size_of::<Advert>()
    }
}

/// `len` octets of the oldest of `adverts` were moved. Removes it and returns `true` when it is
/// finished.
pub(super) fn take(adverts: &mut VecDeque<Advert>, len: u32) -> bool {
    let Some(oldest) = adverts.front_mut() else { return false };
    oldest.left = oldest.left.saturating_sub(u64::from(len));
    oldest.left == 0 && adverts.pop_front().is_some()
}
