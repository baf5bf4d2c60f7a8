//! Send credit (section 10): the receive Private Buffers that a peer announces, and the messages
//! that use them.

/// Is `a` equal to or before `b`, both counted modulo 2^32 (reading C10 of section 12.4's "with
/// wrap")?
pub(crate) fn reached(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

/// The credit of one end: how much its peer allows it to send.
#[derive(Debug, Clone, Default)]
pub struct Credits {
    /// Bufs and MSeqAck of the peer's newest header.
    window: Option<(u16, u32)>,
    /// The highest MSeqAck + Bufs of the peer.
    edge: Option<u32>,
    /// The last MSeq sent.
    mseq: u32,
    /// Buffers announced: the first Bufs, and all later growth of the window.
    pub advertised: u64,
    /// Buffers used: messages sent after Hello and HelloAck.
    pub consumed: u64,
    /// Data without payload from the peer: gratuitous updates (section 10.4).
    pub gratuitous: u64,
    /// The minimum credit that was left after a message.
    pub least: Option<u32>,
}

impl Credits {
    /// A header of the peer: its buffers, and the messages that it had received.
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

    /// A message was sent.
    pub(super) fn sent(&mut self, mseq: u32) {
        self.mseq = mseq;
        self.consumed += 1;
        self.least = match (self.left(), self.least) {
            (Some(left), Some(least)) => Some(left.min(least)),
            (left, least) => left.or(least),
        };
    }

    /// The credit left by section 10.2, from the peer's newest header in the capture; 0 if more is
    /// used than announced.
    #[must_use]
    pub fn left(&self) -> Option<u32> {
        let (bufs, mseq_ack) = self.window?;
        let used = self.mseq.wrapping_sub(mseq_ack);
        // An acknowledgement of an unsent message (reading C7) leaves nothing used.
        Some(u32::from(bufs).saturating_sub(if used < 1 << 31 { used } else { 0 }))
    }
}
