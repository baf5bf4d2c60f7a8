//! The state of a peer in its role as Data Sink, and how single messages change this state.
//!
//! `sdp_peer` decides which messages apply. The octets that the peer reads by RDMA are not recorded
//! here, but in `moved_octets`.

use std::collections::VecDeque;

use weft_core::wire::sdp::Mode;

use super::advert::{Advert, Adverts, AffectedAdvert, EndReason, affected_advert, requested};
use super::rdma_use::EndedAdverts;

/// The state of a peer in its role as Data Sink. A Data Sink receives the payload of a
/// half-connection.
#[derive(Debug, Clone, Default)]
pub struct Sink {
    /// The Mode of the half-connection; `None` if it is not known.
    pub mode: Option<Mode>,
    /// NonDiscards (section 6.3.3.4).
    pub non_discards: u32,
    /// Number of SinkAvails whose NonDiscards differed from the monitor's count.
    pub non_discards_differ: u64,
    /// The SinkAvails that this peer sent.
    pub adverts: Adverts,
    /// Number of octets that this peer requested as Data by SendSm messages, and that have not
    /// arrived.
    pub awaited: u64,
    /// The received SrcAvails that this peer has not completely processed, oldest first.
    pub sources: VecDeque<Advert>,
    /// Number of messages with payload that this peer received.
    pub(crate) payloads: u64,
    /// Whether this peer received a SrcAvailCancel that is not settled.
    pub(super) canceled: bool,
    /// The value of `canceled` just after this peer's last message.
    pub(super) was_canceled: bool,
    /// Whether this peer received a SrcAvailCancel after its last message, at a time when no
    /// SrcAvail was open.
    pub(super) idle_cancel: bool,
    /// Whether this peer sent a SinkAvailCancel that is not settled.
    pub(super) cancel: bool,
    /// Whether a ModeChange of the Data Source left Pipelined Mode.
    pub(super) left_pipelined: bool,
    /// Set if this peer sent an RdmaRdCompl after its last Read Request. The value is 1 if the
    /// oldest SrcAvail is the one that the RdmaRdCompl reported, and 0 if that SrcAvail has ended.
    pub(super) last_rd_compl: Option<usize>,
    /// The received SrcAvails that this peer no longer processes.
    pub(super) ended_adverts: EndedAdverts,
}

impl Sink {
    /// Processes a received message with payload (section 9.5.1, step 1).
    pub(super) fn record_payload_received(&mut self, octets: u32) {
        self.payloads += 1;
        self.awaited = self.awaited.saturating_sub(u64::from(octets));
        if self.adverts.end_oldest(EndReason::Stale).is_none() {
            self.non_discards = self.non_discards.wrapping_add(1);
        }
    }

    pub(super) fn apply_sent_send_sm(&mut self) -> Option<AffectedAdvert> {
        let oldest = self.sources.pop_front()?;
        if std::mem::take(&mut self.canceled) {
            self.sources.clear();
        } else {
            self.awaited = self.awaited.saturating_add(requested(&oldest));
        }
        Some(affected_advert(&oldest, oldest.left))
    }
}
