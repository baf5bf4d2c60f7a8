//! Change of the Private Buffer size with ChRcvBuf and ChRcvBufAck, as requester and as responder
//! (section 10.6 of the SDP draft). Sizes are in bytes.

use super::credits::reached;
use super::{Role, Violation};
use crate::hostile::SdpConduct;
use crate::reject::reject_if;

/// State of size changes. This side can change the size of the peer's Private Buffers, and the peer
/// can change the size of this side's Private Buffers.
#[derive(Debug)]
pub(super) struct Resize {
    /// Maximum length of a message from this side.
    pub(super) limit: u32,
    /// Last known size of the peer's Private Buffers.
    peer: u32,
    /// Size that the user wants and that this side has not requested yet.
    wanted: Option<u32>,
    /// The requested size, and MSeq of the ChRcvBuf. They are set until the answer arrives.
    requested: Option<(u32, u32)>,
    /// The peer refused an increase.
    no_increase: bool,
    /// The peer refused a decrease.
    no_decrease: bool,
    /// ChRcvBufAck with this size is due as soon as all smaller buffers are used up.
    pub(super) answer: Option<u32>,
    pub(super) conduct: SdpConduct,
}

impl Resize {
    pub(super) fn new(peer: u32) -> Self {
        let (no_increase, no_decrease, conduct) = (false, false, SdpConduct::default());
        Resize { limit: peer, peer, wanted: None, requested: None, no_increase, no_decrease, answer: None, conduct }
    }

    /// Suspends the connection. After the suspension, this side repeats a request that got no
    /// answer.
    pub(super) fn suspend(&mut self) {
        let requested = self.requested.take().map(|(size, _)| size);
        self.wanted = self.wanted.or(requested);
        self.answer = None;
    }

    /// Starts a connection on which the peer's Private Buffers have the size `peer`.
    pub(super) fn begin(&mut self, peer: u32) {
        *self = Resize { wanted: self.wanted, conduct: self.conduct, ..Resize::new(peer) };
    }

    /// Stores the size that the user wants for the peer's Private Buffers.
    pub(super) fn want(&mut self, size: u32) {
        self.wanted = Some(size);
    }

    /// If a ChRcvBuf may be sent now, returns its size.
    pub(super) fn request(&self) -> Option<u32> {
        // While this side owes an answer, it sends no request. Otherwise the peer could not decide
        // whether the two requests crossed.
        let size = self.wanted.filter(|_| self.requested.is_none() && self.answer.is_none())?;
        let barred = size == self.peer || size > self.peer && self.no_increase || size < self.peer && self.no_decrease;
        (!barred).then_some(size)
    }

    /// Notes that the ChRcvBuf was sent. A smaller size applies at once (SDP-10.6-2). A larger size
    /// applies only after the answer (SDP-10.6-3).
    pub(super) fn requested(&mut self, size: u32, mseq: u32) {
        self.wanted = None;
        self.requested = Some((size, mseq));
        if !self.conduct.keeps_size {
            self.limit = self.limit.min(size);
        }
    }

    /// Processes a ChRcvBufAck. Returns the new size of the peer's Private Buffers.
    pub(super) fn acknowledged(&mut self, size: u32) -> Result<u32, Violation> {
        let violation = |expected| Violation::Resize { found: size, expected };
        let (requested, _) = self.requested.take().ok_or(violation("no change"))?;
        if requested > self.peer {
            reject_if(size < self.peer, violation("a larger size"))?;
            self.no_increase |= size == self.peer && !self.conduct.repeats_request;
        } else {
            reject_if(size > self.peer || size < requested, violation("a smaller size"))?;
            self.no_decrease |= size == self.peer && !self.conduct.repeats_request;
        }
        (self.peer, self.limit) = (size, size);
        Ok(size)
    }

    /// Returns whether this side answers the ChRcvBuf that arrived. If both sides requested a size
    /// at the same time, the Connecting Peer answers, and its own request is void (section 10.6.1).
    /// If `mseq_ack` acknowledges this side's request, the requests did not cross.
    pub(super) fn answers(&mut self, role: Role, mseq_ack: u32) -> bool {
        match (role, self.requested) {
            (Role::Accepting, Some(_)) => false,
            (Role::Connecting, Some((size, mseq))) if !reached(mseq_ack, mseq) => {
                self.requested = None;
                self.wanted = self.wanted.or(Some(size));
                true
            }
            _ => true,
        }
    }
}

/// Returns the new size of this side's Private Buffers when the peer requests `wanted` and the
/// current size is `now`. If the peer requests a smaller size, the result is at least `wanted`. If
/// the peer requests a larger size, the result is at most `most`, but not less than `now`.
pub(super) fn granted(wanted: u32, now: u32, most: u32) -> u32 {
    use weft_core::wire::sdp::MIN_PRIVATE_BUFFER;
    if wanted < now { wanted.max(MIN_PRIVATE_BUFFER).min(now) } else { wanted.min(most).max(now) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;

    #[test]
    fn a_requester_waits_for_more_and_takes_less_at_once() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut resize = Resize::new(1000);
        resize.want(2000);
        assert_eq!(resize.request(), Some(2000));
        resize.requested(2000, 1);
        proof.verify(requirement!("SDP-10.6-3"), || assert_eq!(resize.limit, 1000));
        resize.want(3000);
        proof.verify(requirement!("SDP-10.6-19"), || assert_eq!(resize.request(), None));
        proof.verify(requirement!("SDP-10.6-4"), || {
            assert_eq!(resize.acknowledged(1500), Ok(1500));
            assert_eq!(resize.limit, 1500);
        });
        resize.want(500);
        resize.requested(500, 2);
        proof.verify(requirement!("SDP-10.6-2"), || assert_eq!(resize.limit, 500));
        resize.acknowledged(1500).unwrap();
        resize.want(400);
        proof.verify(requirement!("SDP-10.6-18"), || assert_eq!(resize.request(), None));
        resize.want(1600);
        resize.requested(1600, 3);
        resize.acknowledged(1500).unwrap();
        resize.want(1700);
        proof.verify(requirement!("SDP-10.6-17"), || assert_eq!(resize.request(), None));
        assert!(resize.acknowledged(1500).is_err(), "no size was requested");
    }

    #[test]
    fn a_responder_keeps_to_the_requested_direction() {
        let mut proof = Coverage::new(CoverageKind::Test);
        proof.verify(requirement!("SDP-10.6-8"), || assert_eq!(granted(100, 1000, 4000), 100));
        proof.verify(requirement!("SDP-10.6-9"), || assert_eq!(granted(10, 1000, 4000), 37));
        proof.verify(requirement!("SDP-10.6-5"), || assert_eq!(granted(2000, 1000, 4000), 2000));
        proof.verify(requirement!("SDP-10.6-7"), || assert_eq!(granted(9000, 1000, 4000), 4000));
        proof.verify(requirement!("SDP-10.6-10"), || assert_eq!(granted(9000, 5000, 4000), 5000));
    }

    #[test]
    fn of_crossed_requests_the_connecting_peer_answers() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let (mut accepting, mut connecting) = (Resize::new(1000), Resize::new(1000));
        for side in [&mut accepting, &mut connecting] {
            side.want(2000);
            side.requested(2000, 5);
        }
        proof.verify(requirement!("SDP-10.6.1-1"), || assert!(!accepting.answers(Role::Accepting, 4)));
        proof.verify(requirement!("SDP-10.6.1-2"), || assert!(connecting.answers(Role::Connecting, 4)));
        proof.verify(requirement!("SDP-10.6.1-3"), || assert_eq!(connecting.request(), Some(2000)));
    }
}
