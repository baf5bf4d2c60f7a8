//! Send credit in both directions (sections 10.2 to 10.5 of the SDP draft): the credit that the
//! peer grants this side, and the credit that this side grants the peer.

use super::Violation;
use crate::hostile::SdpConduct;
use crate::reject::reject_if;

/// Returns whether `a` is equal to `b` or after `b`, modulo 2^32.
pub(super) fn reached(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

/// Credit of one connection. Sequence numbers are MSeq values, modulo 2^32.
#[derive(Debug, Default)]
pub(super) struct Credits {
    /// LSSeq of section 10.2: MSeq of the last message that this side sent. If the hostile endpoint
    /// adds or drops messages, it also changes this value.
    pub(super) sent: u32,
    /// Bufs and MSeqAck of the last header from the peer.
    window: (u16, u32),
    /// Number of credits that the formula of section 10.2 grants but this side does not use.
    pub(super) kept_back: u16,
    /// MSeq of the last message that this side received.
    received: u32,
    /// Whether a message after Hello and HelloAck was received.
    has_received: bool,
    /// Whether this side has sent a message after Hello and HelloAck.
    has_sent: bool,
    /// MSeq of a SrcAvailCancel whose processing is not complete. MSeqAck of this side stays below
    /// this value (section 9.5.4).
    pub(super) ack_limit: Option<u32>,
    /// Number of posted Private Buffers.
    pub(super) posted: u16,
    /// The highest sum MSeqAck + Bufs that this side has sent.
    announced: u32,
    /// True if, after this side's last message, a message with news arrived or a buffer with user
    /// data became free. Each message except an update has news. An update is Data without payload.
    pub(super) news: bool,
    pub(super) conduct: SdpConduct,
}

impl Credits {
    /// Sets the credit after Hello and HelloAck. `announced` is Bufs of this side, `window` is Bufs
    /// of the peer.
    /// `first_mseq` is the MSeq of this side's first message.
    pub(super) fn begin(&mut self, announced: u16, window: u16, first_mseq: u32) {
        self.announced = u32::from(announced);
        let acknowledged = first_mseq.wrapping_sub(1);
        if first_mseq == 0 {
            self.sent = acknowledged;
        }
        self.window = (window, acknowledged);
    }

    /// Returns the send credit: Bufs - (LSSeq - MSeqAck), at least 0.
    pub(super) fn available(&self) -> u16 {
        let (bufs, ack) = self.window;
        let used = self.sent.wrapping_sub(ack);
        let credit = u32::from(bufs).saturating_sub(used).saturating_sub(u32::from(self.kept_back));
        u16::try_from(credit).unwrap_or(u16::MAX)
    }

    /// Returns how many messages the peer may still send with the credit that this side has
    /// announced.
    pub(super) fn given(&self) -> u16 {
        let left = self.announced.wrapping_sub(self.received);
        if left < 1 << 31 { u16::try_from(left).unwrap_or(u16::MAX) } else { 0 }
    }

    fn ack(&self) -> u32 {
        match self.ack_limit {
            Some(cancel) if reached(self.received, cancel) && !self.conduct.never_holds_back => cancel.wrapping_sub(1),
            _ => self.received,
        }
    }

    fn edge(&self) -> u32 {
        self.ack().wrapping_add(u32::from(self.posted))
    }

    /// Returns whether a message that is sent now allows the peer to send more messages than this
    /// side's earlier messages allow.
    fn widens(&self) -> bool {
        self.edge() != self.announced && reached(self.edge(), self.announced)
    }

    /// Returns whether section 10.5 allows this side to send a message now. `payload` is true for a
    /// message with payload.
    pub(super) fn allow(&self, payload: bool) -> bool {
        match self.available().saturating_add(self.conduct.overdraws) {
            0 => false,
            1 => !payload && self.widens(),
            2 => !payload,
            _ => true,
        }
    }

    /// Returns Bufs, MSeq and MSeqAck of the message that is sent now.
    pub(super) fn stamp(&mut self) -> (u16, u32, u32) {
        self.sent = self.sent.wrapping_add(1);
        self.has_sent = true;
        if self.widens() {
            self.announced = self.edge();
        }
        self.news = false;
        (self.posted, self.sent, self.ack())
    }

    /// Checks and stores the header of a received message. `update` is true for Data without
    /// payload.
    pub(super) fn header(&mut self, bufs: u16, mseq: u32, mseq_ack: u32, update: bool) -> Result<(), Violation> {
        let mut expected = self.received.wrapping_add(1);
        if mseq == 0 && !self.has_received {
            // After Hello and HelloAck, the peer begins with 0. Section 6.1.5 allows this reading.
            expected = 0;
            if !self.has_sent {
                self.begin(u16::try_from(self.announced).unwrap_or(u16::MAX), bufs, 0);
            }
        }
        self.has_received = true;
        // Until this side has sent a message, the peer acknowledges 0, the MSeq of Hello and
        // HelloAck.
        let mseq_ack = if mseq_ack == 0 && !self.has_sent { self.sent } else { mseq_ack };
        reject_if(mseq != expected, Violation::Sequence { expected, found: mseq })?;
        reject_if(!reached(self.sent, mseq_ack), Violation::AheadOfSent { found: mseq_ack, sent: self.sent })?;
        self.received = mseq;
        self.window = (bufs, mseq_ack);
        self.kept_back = 0;
        self.news |= !update;
        Ok(())
    }

    /// Returns whether to send an update: a message whose only purpose is to give the peer more
    /// credit. The draft requires an update when the peer has one credit left (SDP-10.5-9). If
    /// `news` is set, this side sends an update earlier: when the peer has at most `pool / 2`
    /// credits left, or at most two. With two credits, the peer must not send payload. `pool` is
    /// the number of Private Buffers.
    pub(super) fn wants_update(&self, pool: u16) -> bool {
        let left = self.announced.wrapping_sub(self.received);
        self.widens() && (left <= 1 || self.news && left <= u32::from(pool / 2).max(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;

    fn credits(window: u16) -> Credits {
        let mut credits = Credits { posted: 8, ..Credits::default() };
        credits.begin(8, window, 1);
        credits
    }

    /// Sections 10.2 and 10.5 of the draft, for each number of credits.
    #[test]
    fn each_level_of_credit_allows_what_section_10_5_allows() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut four = credits(4);
        proof.verify(requirement!("SDP-10.3-4"), || assert_eq!(four.available(), 4));
        four.stamp();
        proof.verify(requirement!("SDP-10.2-1"), || assert_eq!(four.available(), 3));
        proof.verify(requirement!("SDP-10.5-11"), || assert!(four.allow(true) && four.allow(false)));
        four.stamp();
        proof.verify(requirement!("SDP-10.5-8"), || assert!(!four.allow(true) && four.allow(false)));
        four.stamp();
        proof.verify(requirement!("SDP-10.5-7"), || {
            assert_eq!(four.available(), 1);
            assert!(!four.allow(false), "the message would not allow the peer to send more messages");
            four.posted += 1;
            assert!(four.allow(false) && !four.allow(true));
        });
        four.stamp();
        four.posted += 1;
        proof.verify(requirement!("SDP-10.5-6"), || assert!(!four.allow(false) && !four.allow(true)));
        proof.verify(requirement!("SDP-10.2-2"), || {
            four.header(6, 1, 4, true).unwrap();
            assert_eq!(four.available(), 6);
        });
    }

    #[test]
    fn numbers_roll_over() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut near = credits(4);
        (near.sent, near.window, near.received, near.announced) = (u32::MAX - 1, (4, u32::MAX - 1), u32::MAX, 7);
        proof.verify(requirement!("SDP-6.1.5-3"), || {
            assert_eq!((near.stamp().1, near.stamp().1), (u32::MAX, 0));
        });
        proof.verify(requirement!("SDP-5-7"), || assert_eq!(near.available(), 2));
        assert_eq!(near.header(4, 0, 0, true), Ok(()), "MSeq 0 follows 2^32 - 1");
        assert_eq!(near.header(4, 2, 0, true), Err(Violation::Sequence { expected: 1, found: 2 }));
        let ahead = Violation::AheadOfSent { found: 1, sent: 0 };
        assert_eq!(near.header(4, 1, 1, true), Err(ahead));
    }

    /// By section 6.1.5, the first message after Hello and HelloAck can have MSeq 0 or 1.
    #[test]
    fn the_first_message_may_have_the_number_0() {
        let mut answers = credits(4);
        answers.header(4, 0, 0, true).unwrap();
        assert_eq!((answers.available(), answers.stamp(), answers.available()), (4, (8, 0, 0), 3));
        answers.header(5, 1, 0, true).unwrap();
        assert_eq!((answers.available(), answers.stamp()), (5, (8, 1, 1)));

        let mut begins = Credits { posted: 8, ..Credits::default() };
        begins.begin(8, 4, 0);
        begins.header(4, 1, 0, true).unwrap();
        assert_eq!((begins.available(), begins.stamp(), begins.available()), (4, (8, 0, 1), 3));
        let sequence = Violation::Sequence { expected: 2, found: 0 };
        assert_eq!(begins.header(4, 0, 0, true), Err(sequence), "only the first message may have MSeq 0");
    }

    #[test]
    fn an_update_is_due_at_one_credit_and_none_answers_an_update() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut three = Credits { posted: 3, ..Credits::default() };
        three.begin(3, 3, 1);
        for mseq in 1..=2 {
            three.header(3, mseq, 0, true).unwrap();
        }
        proof.verify(requirement!("SDP-10.5-9"), || assert!(three.wants_update(3)));
        three.stamp();
        assert!(!three.wants_update(3), "an earlier message announced the credit");
        three.header(3, 3, 0, true).unwrap();
        assert!(!three.wants_update(3), "two credits are left, and the message was an update");
        three.header(3, 4, 0, false).unwrap();
        assert!(three.wants_update(3));
    }

    #[test]
    fn mseq_ack_stays_below_a_src_avail_cancel() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut credits = credits(8);
        credits.header(8, 1, 0, false).unwrap();
        credits.ack_limit = Some(2);
        credits.header(8, 2, 0, false).unwrap();
        credits.header(8, 3, 0, false).unwrap();
        proof.verify(requirement!("SDP-6.1.6-3"), || assert_eq!(credits.stamp().2, 1));
        credits.ack_limit = None;
        proof.verify(requirement!("SDP-6.1.6-1"), || assert_eq!(credits.stamp().2, 3));
    }
}
