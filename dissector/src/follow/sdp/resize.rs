//! This module stores what one endpoint knows about the sizes of receive Private Buffers (section
//! 10.6 of the SDP draft). An endpoint knows the size of the peer's buffers, its own open request,
//! and the peer's open request.

use super::credits::reached;
use super::message::{Extension, Message};
use weft_core::wire::sdp::Mid;

/// A ChRcvBuf that the endpoint sent, and that the peer has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnRequest {
    /// MSeq of the ChRcvBuf.
    pub mseq: u32,
    /// The requested size in octets.
    pub wanted: u32,
    /// Size of the peer's buffers when the ChRcvBuf was sent, in octets.
    pub old: u32,
}

/// A ChRcvBuf that the endpoint received, and that it has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerRequest {
    /// The requested size in octets.
    pub wanted: u32,
    /// The highest MSeq for which the endpoint had announced a buffer before the ChRcvBuf arrived.
    /// Buffers up to this MSeq have the old size (weft's interpretation of the draft).
    pub edge: u32,
}

/// Buffers that the endpoint posted before it agreed to a smaller size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LargerBuffers {
    /// Minimum size of each of these buffers, in octets.
    pub octets: u32,
    /// The highest MSeq for which one of these buffers was announced.
    pub edge: u32,
}

/// The buffer sizes and open requests that one endpoint knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sizes {
    /// Size of the peer's receive Private Buffers, in octets.
    pub peer: Option<u32>,
    /// The endpoint's own request, if it is not answered.
    pub own_request: Option<OwnRequest>,
    /// The peer's request, if it is not answered.
    pub peer_request: Option<PeerRequest>,
    /// Whether the peer's last request crossed the endpoint's own request. If so, the endpoint must
    /// disregard the peer's request.
    pub disregards: bool,
    /// Whether the peer answered a request for a smaller size with the old size.
    pub refused_smaller: bool,
    /// Whether the peer answered a request for a larger size with the old size.
    pub refused_larger: bool,
    /// Number of ChRcvBufs that the endpoint received.
    pub received: u32,
    /// The buffers that were posted when the endpoint reduced the size for the last time.
    pub larger: Option<LargerBuffers>,
}

impl Sizes {
    /// All buffers up to a certain MSeq must be used up before the endpoint may answer
    /// `peer_request` with the larger size `size` (SDP-10.6-13). Returns this MSeq. Returns `None`
    /// if all buffers that were posted before the peer's request already have at least the size
    /// `size`.
    pub(crate) fn used_up(&self, peer_request: PeerRequest, size: u32) -> Option<u32> {
        let large = self.larger.is_some_and(|larger| larger.octets >= size && reached(larger.edge, peer_request.edge));
        (!large).then_some(peer_request.edge)
    }

    /// Records that the endpoint sends `message`.
    pub(super) fn record_sent(&mut self, message: &Message) {
        match (message.mid, message.extension) {
            (Mid::CH_RCV_BUF, Extension::Size(wanted)) => {
                self.own_request = self.peer.map(|old| OwnRequest { mseq: message.mseq, wanted, old });
            }
            (Mid::CH_RCV_BUF_ACK, _) => {
                self.peer_request = None;
                self.disregards = false;
            }
            _ => {}
        }
    }

    /// Records that the endpoint receives `message`. `edge` is the highest MSeq for which the
    /// endpoint has announced a buffer. `accepting` is set if the endpoint is the Accepting Peer.
    pub(super) fn record_received(&mut self, message: &Message, edge: u32, accepting: bool) {
        match (message.mid, message.extension) {
            (Mid::CH_RCV_BUF, Extension::Size(wanted)) => {
                self.received += 1;
                let crosses = self.own_request.is_some_and(|own| !reached(message.mseq_ack, own.mseq));
                self.disregards = crosses && accepting;
                self.peer_request = (!self.disregards).then_some(PeerRequest { wanted, edge });
                if crosses && !accepting {
                    // The Accepting Peer disregards this endpoint's request (weft's interpretation
                    // of section 10.6.1).
                    self.own_request = None;
                }
            }
            (Mid::CH_RCV_BUF_ACK, Extension::Size(size)) => {
                if let Some(own) = self.own_request.take().filter(|own| own.old == size) {
                    self.refused_smaller |= own.wanted < own.old;
                    self.refused_larger |= own.wanted > own.old;
                }
                self.peer = Some(size);
            }
            _ => {}
        }
    }
}
