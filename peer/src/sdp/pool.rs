//! The receive Private Buffers: which are posted, with which size, and what a change of size leaves
//! to be done (section 10.6).

use std::collections::VecDeque;

use super::{Output, PrivateBuffer};
use crate::hostile::SdpConduct;

/// The Private Buffers of one connection.
#[derive(Debug)]
pub(super) struct Pool {
    /// Octets of the buffers that are posted from now on.
    size: u32,
    /// How many there shall be.
    target: u16,
    /// Posted ones, in the order in which messages fill them.
    posted: VecDeque<Slot>,
    /// Filled ones whose octets the user has not got.
    kept: Vec<Slot>,
    next: u32,
    /// Those that there are above `target` while MSeqAck is held back.
    extra: u16,
    pub(super) conduct: SdpConduct,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    buffer: PrivateBuffer,
    size: u32,
}

impl Pool {
    pub(super) fn new(size: u32, target: u16) -> Self {
        let (posted, kept, conduct) = (VecDeque::new(), Vec::new(), SdpConduct::default());
        Pool { size, target, posted, kept, next: 0, extra: 0, conduct }
    }

    /// Posted buffers.
    pub(super) fn posted(&self) -> u16 {
        u16::try_from(self.posted.len()).unwrap_or(u16::MAX)
    }

    /// A message came while MSeqAck is held back (section 9.5.4): to the peer it looks as if its
    /// buffer were in use for ever. One more is posted in its place, so that the window stays as it
    /// was; with three buffers the peer would soon be mute. A peer that never answers a read must
    /// not get buffers without end: there are never more than four times as many as otherwise.
    pub(super) fn make_up(&mut self, out: &mut VecDeque<Output>) {
        let most = usize::from(self.target).saturating_mul(4).min(usize::from(u16::MAX));
        if self.wanted().max(self.posted.len() + self.kept.len()) < most {
            self.extra += 1;
            self.post_new(out);
        }
    }

    /// MSeqAck is not held back any more: credit above the target is reduced as it is used up.
    pub(super) fn thaw(&mut self) {
        self.extra = 0;
    }

    fn wanted(&self) -> usize {
        usize::from(self.target) + usize::from(self.extra)
    }

    /// How many there shall be.
    pub(super) fn target(&self) -> u16 {
        self.target
    }

    /// Octets of the buffers that are posted from now on.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Sets the size and the number of all buffers; none is posted. Octets that filled ones hold
    /// stay.
    pub(super) fn restart(&mut self, size: u32, target: u16) {
        (self.size, self.target, self.extra) = (size, target, 0);
    }

    /// The connection that they were posted to is gone.
    pub(super) fn suspend(&mut self, out: &mut VecDeque<Output>) {
        self.close();
        out.extend(self.posted.drain(..).map(|slot| Output::Release(slot.buffer)));
    }

    /// Posts all of them for the first time.
    pub(super) fn fill(&mut self, out: &mut VecDeque<Output>) {
        while self.posted.len() < usize::from(self.target) {
            self.post_new(out);
        }
    }

    /// Nothing is posted any more.
    pub(super) fn close(&mut self) {
        (self.target, self.extra) = (0, 0);
    }

    /// A message filled the oldest posted buffer; `false` when that is not `buffer`.
    pub(super) fn filled(&mut self, buffer: PrivateBuffer) -> bool {
        match self.posted.pop_front() {
            Some(slot) => {
                self.kept.push(slot);
                slot.buffer == buffer
            }
            None => false,
        }
    }

    /// The octets of a filled buffer are not needed any more: it is posted again, unless it is too
    /// small or one too many. Gives whether one more is posted.
    pub(super) fn free(&mut self, buffer: PrivateBuffer, out: &mut VecDeque<Output>) -> bool {
        let Some(at) = self.kept.iter().position(|slot| slot.buffer == buffer) else { return false };
        let slot = self.kept.swap_remove(at);
        if slot.size != self.size || self.posted.len() + self.kept.len() >= self.wanted() {
            out.push_back(Output::Release(buffer));
            if self.posted.len() + self.kept.len() < self.wanted() {
                self.post_new(out);
                return true;
            }
            return false;
        }
        self.post(slot, out);
        true
    }

    /// From now on buffers have this size. When it grows, new ones are posted at once beside the
    /// old ones: the peer's messages have to use those up (section 10.6.2). However often it grows,
    /// there are no more than twice as many as there shall be.
    pub(super) fn resize(&mut self, size: u32, out: &mut VecDeque<Output>) {
        let grows = size > self.size && !self.conduct.renews_late;
        self.size = size;
        let most = usize::from(self.target).saturating_mul(2).min(usize::from(u16::MAX));
        let missing = most.saturating_sub(self.posted.len() + self.kept.len());
        for _ in 0..if grows { missing } else { 0 } {
            self.post_new(out);
        }
    }

    /// Are posted ones smaller than those that are posted now?
    pub(super) fn has_smaller(&self) -> bool {
        self.posted.iter().any(|slot| slot.size < self.size)
    }

    fn post_new(&mut self, out: &mut VecDeque<Output>) {
        let slot = Slot { buffer: PrivateBuffer(self.next), size: self.size };
        self.next = self.next.wrapping_add(1);
        self.post(slot, out);
    }

    fn post(&mut self, slot: Slot, out: &mut VecDeque<Output>) {
        self.posted.push_back(slot);
        out.push_back(Output::Receive { buffer: slot.buffer, octets: slot.size });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{By, Proof};
    use weft_core::requirement;

    #[test]
    fn growing_posts_new_ones_before_the_old_ones_are_used_up() {
        let mut proof = Proof::new(By::Test);
        let (mut pool, mut out) = (Pool::new(100, 3), VecDeque::new());
        pool.fill(&mut out);
        assert_eq!(out.len(), 3);
        out.clear();
        pool.resize(200, &mut out);
        proof.shows(requirement!("SDP-10.6.2-1"), || {
            assert!(out.iter().all(|output| matches!(output, Output::Receive { octets: 200, .. })));
            assert_eq!(out.len(), 3);
        });
        proof.shows(requirement!("SDP-10.6.2-2"), || assert!(pool.has_smaller() && pool.posted() == 6));
        out.clear();
        for old in 0..3 {
            assert!(pool.filled(PrivateBuffer(old)));
            assert!(!pool.free(PrivateBuffer(old), &mut out));
            assert_eq!(out.pop_front(), Some(Output::Release(PrivateBuffer(old))));
        }
        assert!(!pool.has_smaller());
        assert_eq!(pool.posted(), 3);
        // From here on the new ones go round.
        assert!(pool.filled(PrivateBuffer(3)) && pool.free(PrivateBuffer(3), &mut out));
        assert_eq!(out.pop_front(), Some(Output::Receive { buffer: PrivateBuffer(3), octets: 200 }));
    }

    #[test]
    fn growing_again_posts_what_is_missing() {
        let (mut pool, mut out) = (Pool::new(100, 3), VecDeque::new());
        pool.fill(&mut out);
        pool.resize(200, &mut out);
        assert!(pool.filled(PrivateBuffer(0)) && !pool.free(PrivateBuffer(0), &mut out));
        for size in 201..300 {
            pool.resize(size, &mut out);
            assert_eq!(pool.posted(), 6);
        }
    }

    #[test]
    fn a_buffer_comes_once() {
        let (mut pool, mut out) = (Pool::new(100, 3), VecDeque::new());
        pool.fill(&mut out);
        assert!(!pool.filled(PrivateBuffer(1)), "0 is filled first");
        assert!(!pool.free(PrivateBuffer(7), &mut out));
    }
}
