//! The sizes of receive Private Buffers that one end knows: its peer's size, its own request, and
//! the peer's request (section 10.6).

use super::credits::reached;
use super::message::{Extension, Message};
use weft_core::wire::sdp::Mid;

/// An own ChRcvBuf without answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnRequest {
    /// Its MSeq.
    pub mseq: u32,
    /// Octets that it requests.
    pub wanted: u32,
    /// Octets of the peer's buffers when it was sent.
    pub old: u32,
}

/// A ChRcvBuf of the peer that is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// Octets that it requests.
    pub wanted: u32,
    /// The highest MSeq for which a buffer was announced before it arrived: those buffers have the
    /// old size (reading C44).
    pub edge: u32,
}

/// Own buffers that were posted before the end agreed to a smaller size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Larger {
    /// Octets of each, or more.
    pub octets: u32,
    /// The highest MSeq for which one was announced.
    pub edge: u32,
}

/// The sizes that one end knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sizes {
    /// Octets of the peer's receive Private Buffers.
    pub peer: Option<u32>,
    /// Its own request.
    pub own_request: Option<OwnRequest>,
    /// The peer's request.
    pub due: Option<Due>,
    /// Did the peer's last request cross its own request, so that it has to disregard the peer's?
    pub disregards: bool,
    /// Was a request for less answered with the old size?
    pub no_less: bool,
    /// Was a request for more answered with the old size?
    pub no_more: bool,
    /// Number of ChRcvBufs that it received from the peer.
    pub received: u32,
    /// The buffers that were posted when it last reduced the size.
    pub larger: Option<Larger>,
}

impl Sizes {
    /// The MSeq up to which buffers have to be used up before the end may report a larger `size`
    /// (SDP-10.6-13). `None` if all buffers posted before the peer's request are already as large.
    pub(crate) fn used_up(&self, due: Due, size: u32) -> Option<u32> {
        let large = self.larger.is_some_and(|larger| larger.octets >= size && reached(larger.edge, due.edge));
        (!large).then_some(due.edge)
    }

    /// It sends `message`.
    pub(super) fn sends(&mut self, message: &Message) {
        match (message.mid, message.extension) {
            (Mid::CH_RCV_BUF, Extension::Size(wanted)) => {
                self.own_request = self.peer.map(|old| OwnRequest { mseq: message.mseq, wanted, old });
            }
            (Mid::CH_RCV_BUF_ACK, _) => {
                self.due = None;
                self.disregards = false;
            }
            _ => {}
        }
    }

    /// It receives `message`. `edge` is the highest MSeq for which it has announced a buffer.
    /// `accepting`: it is the Accepting Peer.
    pub(super) fn receives(&mut self, message: &Message, edge: u32, accepting: bool) {
        match (message.mid, message.extension) {
            (Mid::CH_RCV_BUF, Extension::Size(wanted)) => {
                self.received += 1;
                let crosses = self.own_request.is_some_and(|own| !reached(message.mseq_ack, own.mseq));
                self.disregards = crosses && accepting;
                self.due = (!self.disregards).then_some(Due { wanted, edge });
                if crosses && !accepting {
                    // The Accepting Peer drops its own request (section 10.6.1, reading C28).
                    self.own_request = None;
                }
            }
            (Mid::CH_RCV_BUF_ACK, Extension::Size(size)) => {
                if let Some(own) = self.own_request.take().filter(|own| own.old == size) {
                    self.no_less |= own.wanted < own.old;
                    self.no_more |= own.wanted > own.old;
                }
                self.peer = Some(size);
            }
            _ => {}
        }
    }
}
