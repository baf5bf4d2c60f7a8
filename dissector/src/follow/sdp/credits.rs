//! Counts send credit (section 10 of the SDP draft). A peer announces receive Private Buffers, and
//! each message uses one of these buffers.

/// Returns whether `a` is equal to `b` or after `b`. Both numbers count modulo 2^32. This is weft's
/// interpretation of the words "with wrap" in section 12.4.
pub(crate) fn reached(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

/// The credit of one endpoint: the number of messages that its peer allows it to send.
#[derive(Debug, Clone, Default)]
pub struct Credits {
    /// Bufs and MSeqAck in the peer's latest header.
    window: Option<(u16, u32)>,
    /// The highest MSeqAck + Bufs of the peer.
    edge: Option<u32>,
    /// The last MSeq that the endpoint sent.
    mseq: u32,
    /// Number of buffers that the peer announced: the first Bufs, plus each increase of MSeqAck +
    /// Bufs.
    pub advertised: u64,
    /// Number of buffers that the endpoint used. Each message of the endpoint after Hello and
    /// HelloAck uses one buffer.
    pub consumed: u64,
    /// Number of the peer's Data messages without payload: gratuitous updates (section 10.4).
    pub gratuitous: u64,
    /// The lowest credit that was left after any message of the endpoint.
    pub min_left: Option<u32>,
}

impl Credits {
    /// Records a header of the peer. The header announces buffers, and acknowledges messages up to
    /// an MSeq.
    pub(super) fn header(&mut self, bufs: u16, mseq_ack: u32) {
        self.window = Some((bufs, mseq_ack));
        let edge = mseq_ack.wrapping_add(u32::from(bufs));
        match self.edge {
            None => self.advertised = u64::from(bufs),
            Some(before) if reached(edge, before) => self.advertised += u64::from(edge.wrapping_sub(before)),
            Some(_) => return,
        }
        self.edge = Some(edge);
    }

    /// Records that the endpoint sent a message.
    pub(super) fn sent(&mut self, mseq: u32) {
        self.mseq = mseq;
        self.consumed += 1;
        self.min_left = match (self.left(), self.min_left) {
            (Some(left), Some(least)) => Some(left.min(least)),
            (left, least) => left.or(least),
        };
    }

    /// Returns the credit that is left (section 10.2), computed from the peer's latest captured
    /// header. Returns 0 if the endpoint used more buffers than the peer announced. Returns `None`
    /// if no header of the peer was captured.
    #[must_use]
    pub fn left(&self) -> Option<u32> {
        let (bufs, mseq_ack) = self.window?;
        let used = self.mseq.wrapping_sub(mseq_ack);
        // If the peer acknowledges a message that was not sent, no buffer counts as used (weft's
        // interpretation of the draft).
        Some(u32::from(bufs).saturating_sub(if used < 1 << 31 { used } else { 0 }))
    }
}
