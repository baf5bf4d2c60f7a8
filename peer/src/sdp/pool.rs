//! This side's Private Buffers: which of them are posted, their sizes, and the replacement of
//! buffers when the size changes (section 10.6 of the SDP draft).

use std::collections::VecDeque;

use super::{Output, PrivateBuffer};
use crate::hostile::SdpConduct;

/// The Private Buffers of one connection.
#[derive(Debug)]
pub(super) struct Pool {
    /// Size of the buffers that are posted from now on, in bytes.
    pub(super) size: u32,
    /// Number of buffers that the connection normally has.
    pub(super) target: u16,
    /// Posted buffers, in the order in which messages fill them.
    posted: VecDeque<Slot>,
    /// Filled buffers whose bytes the user has not received yet.
    kept: Vec<Slot>,
    next: u32,
    /// Number of additional buffers beyond `target`. They are needed while MSeqAck is held back for
    /// a SrcAvailCancel, and at the start of a suspension.
    extra: u16,
    /// One of the additional buffers is not announced to the peer.
    has_unannounced: bool,
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
        Pool { size, target, posted, kept, next: 0, extra: 0, has_unannounced: false, conduct }
    }

    /// Number of posted buffers.
    pub(super) fn posted(&self) -> u16 {
        u16::try_from(self.posted.len()).unwrap_or(u16::MAX)
    }

    /// Number of posted buffers that are announced to the peer. One posted buffer can be
    /// unannounced.
    pub(super) fn announced(&self) -> u16 {
        self.posted() - u16::from(self.has_unannounced && self.extra > 0 && !self.posted.is_empty())
    }

    /// Posts one more buffer that is not announced to the peer.
    pub(super) fn post_unannounced(&mut self, out: &mut VecDeque<Output>) {
        let before = self.extra;
        self.post_extra(out);
        self.has_unannounced = self.extra > before;
    }

    /// Posts one more buffer for a message that arrived while MSeqAck is held back (section 9.5.4).
    /// The peer counts the buffer of such a message as used. If there are only three buffers and no
    /// new buffer is posted, the peer would soon be unable to send. The number of buffers is at
    /// most four times `target`. MSeqAck is held back until an RDMA Read ends. If the peer never
    /// answers this Read, the maximum limits the memory of this side.
    pub(super) fn post_extra(&mut self, out: &mut VecDeque<Output>) {
        let most = usize::from(self.target).saturating_mul(4).min(usize::from(u16::MAX));
        if self.wanted().max(self.posted.len() + self.kept.len()) < most {
            self.extra += 1;
            self.post_new(out);
        }
    }

    /// Notes that MSeqAck is not held back any more. When messages use up buffers, the number of
    /// buffers returns to `target`.
    pub(super) fn release_ack(&mut self) {
        (self.extra, self.has_unannounced) = (0, false);
    }

    fn wanted(&self) -> usize {
        usize::from(self.target) + usize::from(self.extra)
    }

    /// Sets the size and the number of all buffers. No buffer is posted at this time. Filled
    /// buffers keep their bytes.
    pub(super) fn restart(&mut self, size: u32, target: u16) {
        (self.size, self.target, self.extra) = (size, target, 0);
        self.has_unannounced = false;
    }

    /// Releases the posted buffers, because their TCP connection has ended.
    pub(super) fn suspend(&mut self, out: &mut VecDeque<Output>) {
        self.close();
        out.extend(self.posted.drain(..).map(|slot| Output::Release(slot.buffer)));
    }

    /// Posts all buffers for the first time.
    pub(super) fn fill(&mut self, out: &mut VecDeque<Output>) {
        while self.posted.len() < usize::from(self.target) {
            self.post_new(out);
        }
    }

    /// From now on, posts no buffers.
    pub(super) fn close(&mut self) {
        (self.target, self.extra) = (0, 0);
    }

    /// Notes that a message filled the oldest posted buffer. Returns false if that buffer is not
    /// `buffer`.
    pub(super) fn filled(&mut self, buffer: PrivateBuffer) -> bool {
        let Some(slot) = self.posted.pop_front() else { return false };
        self.kept.push(slot);
        slot.buffer == buffer
    }

    /// Notes that the bytes of a filled buffer are not needed any more. If the buffer has the right
    /// size and there are not too many buffers, posts the buffer again. If the buffer has the wrong
    /// size, releases the buffer, and posts a new buffer if there are too few buffers. Returns
    /// whether a buffer was posted.
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

    /// Changes the size of the buffers that are posted from now on. If the size increases, new
    /// buffers are posted at once, in addition to the old buffers. The old buffers stay posted
    /// until messages of the peer use them up (section 10.6.2). The number of buffers is at most
    /// twice `target`, even after several increases.
    pub(super) fn resize(&mut self, size: u32, out: &mut VecDeque<Output>) {
        let grows = size > self.size && !self.conduct.renews_late;
        self.size = size;
        let most = usize::from(self.target).saturating_mul(2).min(usize::from(u16::MAX));
        let missing = most.saturating_sub(self.posted.len() + self.kept.len());
        for _ in 0..if grows { missing } else { 0 } {
            self.post_new(out);
        }
    }

    /// Returns whether posted buffers are smaller than the current size.
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
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;

    #[test]
    fn growing_posts_new_ones_before_the_old_ones_are_used_up() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let (mut pool, mut out) = (Pool::new(100, 3), VecDeque::new());
        pool.fill(&mut out);
        assert_eq!(out.len(), 3);
        out.clear();
        pool.resize(200, &mut out);
        proof.verify(requirement!("SDP-10.6.2-1"), || {
            assert!(out.iter().all(|output| matches!(output, Output::Receive { octets: 200, .. })));
            assert_eq!(out.len(), 3);
        });
        proof.verify(requirement!("SDP-10.6.2-2"), || assert!(pool.has_smaller() && pool.posted() == 6));
        out.clear();
        for old in 0..3 {
            assert!(pool.filled(PrivateBuffer(old)));
            assert!(!pool.free(PrivateBuffer(old), &mut out));
            assert_eq!(out.pop_front(), Some(Output::Release(PrivateBuffer(old))));
        }
        assert!(!pool.has_smaller());
        assert_eq!(pool.posted(), 3);
        // From here on, the pool posts only buffers of the new size.
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
        assert!(!pool.filled(PrivateBuffer(1)), "Private Buffer 0 is filled first");
        assert!(!pool.free(PrivateBuffer(7), &mut out));
    }
}
