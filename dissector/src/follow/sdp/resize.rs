//! The sizes of receive Private Buffers as one end knows them: that of its peer, what it asked for, what it is asked for
//! (section 10.6).

use super::credits::reached;
use super::message::{Extension, Message};
use weft_core::wire::sdp::Mid;

/// An own ChRcvBuf without answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Its MSeq.
    pub mseq: u32,
    /// Octets that it asks for.
    pub wanted: u32,
    /// Octets of the peer's buffers when it was sent.
    pub old: u32,
}

/// A ChRcvBuf of the peer that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// Octets that it asks for.
    pub wanted: u32,
    /// The highest MSeq for which a buffer was announced before it arrived: those are of the old size (reading C44).
    pub edge: u32,
}

/// Its own buffers that were posted before it answered with a smaller size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Larger {
    /// Octets of each, or more.
    pub octets: u32,
    /// The highest MSeq for which one was announced.
    pub edge: u32,
}

/// What one end knows of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sizes {
    /// Octets of the peer's receive Private Buffers.
    pub peer: Option<u32>,
    /// Its own request.
    pub asked: Option<Asked>,
    /// The peer's request.
    pub due: Option<Due>,
    /// Was the peer's last request one that crossed the own one and that it has to disregard?
    pub disregards: bool,
    /// Was a request for less answered with the size of before?
    pub no_less: bool,
    /// Was a request for more?
    pub no_more: bool,
    /// ChRcvBufs of the peer that it received.
    pub heard: u32,
    /// What it had posted when it last made its buffers smaller.
    pub larger: Option<Larger>,
}

impl Sizes {
    /// The MSeq up to which buffers have to be used up before a larger `size` may be told (SDP-10.6-13); `None` where all that were posted
    /// when the peer asked are as large already.
    pub(crate) fn used_up(&self, due: Due, size: u32) -> Option<u32> {
        let large = self.larger.is_some_and(|larger| larger.octets >= size && reached(larger.edge, due.edge));
        (!large).then_some(due.edge)
    }

    /// It sends `message`.
    pub(super) fn sends(&mut self, message: &Message) {
        match (message.mid, message.extension) {
            (Mid::CH_RCV_BUF, Extension::Size(wanted)) => {
                self.asked = self.peer.map(|old| Asked { mseq: message.mseq, wanted, old });
            }
            (Mid::CH_RCV_BUF_ACK, _) => {
                self.due = None;
                self.disregards = false;
            }
            _ => {}
        }
    }

    /// It receives `message`; `edge` is the highest MSeq for which it has announced a buffer; the Accepting Peer is it, or not.
    pub(super) fn receives(&mut self, message: &Message, edge: u32, accepting: bool) {
        match (message.mid, message.extension) {
            (Mid::CH_RCV_BUF, Extension::Size(wanted)) => {
                self.heard += 1;
                let crosses = self.asked.is_some_and(|asked| !reached(message.mseq_ack, asked.mseq));
                self.disregards = crosses && accepting;
                self.due = (!self.disregards).then_some(Due { wanted, edge });
                if crosses && !accepting {
                    // The Accepting Peer drops the own one (section 10.6.1, reading C28).
                    self.asked = None;
                }
            }
            (Mid::CH_RCV_BUF_ACK, Extension::Size(size)) => {
                if let Some(asked) = self.asked.take().filter(|asked| asked.old == size) {
                    self.no_less |= asked.wanted < asked.old;
                    self.no_more |= asked.wanted > asked.old;
                }
                self.peer = Some(size);
            }
            _ => {}
        }
    }
}
