//! The state of a peer in its role as Data Source, and how single messages change this state.
//!
//! `sdp_peer` decides which messages apply. The state of the peer's Out-Of-Band octets is in `oob`.

use std::collections::VecDeque;

use weft_core::wire::sdp::Mode;

use super::advert::{Advert, Adverts, EndReason, MAX_OPEN, requested};
use super::credits::reached;
use super::message::Message;
use super::rdma_use::EndedAdverts;

/// The state of a peer in its role as Data Source. A Data Source sends the payload of a
/// half-connection.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The Mode of the half-connection; `None` if it is not known.
    pub mode: Option<Mode>,
    /// PotentialNonDiscards (section 9.5.1 of the SDP draft).
    pub potential_non_discards: u32,
    /// The SrcAvails that this peer sent.
    pub adverts: Adverts,
    /// Number of octets that this peer still has to send as Data, because the other peer requested
    /// them by SendSm messages.
    pub owed: u64,
    /// The received SinkAvails that this peer may use, oldest first.
    pub usable: VecDeque<Advert>,
    /// The MSeq of this peer's SrcAvailCancel, if this SrcAvailCancel is not settled.
    pub(super) cancel: Option<u32>,
    /// Whether this peer received a SinkAvailCancel that it has not answered.
    pub(super) cancel_due: bool,
    /// The value of `cancel_due` just after this peer's last message.
    pub(super) cancel_was_due: bool,
    /// Whether this peer received a SinkAvailCancel after its last message, at a time when it had
    /// no usable SinkAvail.
    pub(super) idle_cancel: bool,
    /// The MSeq of the last ModeChange that left Pipelined Mode, and the value of
    /// PotentialNonDiscards at that time. `None` if no ModeChange left Pipelined Mode.
    pub(super) left_pipelined: Option<(u32, u32)>,
    /// Whether the ModeChange in `left_pipelined` is not acknowledged yet.
    pub(super) leaves_pipelined: bool,
    /// Number of SinkAvails that arrived after the ModeChange in `left_pipelined`. This peer must
    /// not use these SinkAvails any more.
    pub(super) late: u32,
    /// The Mode before this peer's last ModeChange. `None` if the other peer changed the Mode after
    /// this peer's last ModeChange.
    pub(super) previous_mode: Option<Mode>,
    /// Whether this peer sent an RdmaWrCompl after its last RDMA Write.
    pub(super) wr_compl_follows: bool,
    /// The received SinkAvails that this peer must not use any more.
    pub(super) ended_adverts: EndedAdverts,
}

impl Source {
    /// Records that this peer sends a message with payload. Messages of all types count (weft's
    /// interpretation of the draft).
    pub(super) fn record_payload_sent(&mut self, octets: u32) {
        self.owed = self.owed.saturating_sub(u64::from(octets));
        self.potential_non_discards = self.potential_non_discards.wrapping_add(1);
        self.drop_stale();
    }

    /// Drops the oldest SinkAvails that are stale (section 9.5.1, step 4).
    fn drop_stale(&mut self) {
        while let Some(oldest) = self.usable.front().copied()
            && oldest.non_discards != self.potential_non_discards
        {
            self.usable.pop_front();
            self.ended_adverts.add(&oldest, EndReason::Stale);
            self.potential_non_discards = self.potential_non_discards.wrapping_sub(1);
        }
    }

    /// Returns whether an RdmaWrCompl about the RDMA Writes to this STag is still due.
    pub(super) fn expects_completion(&self, stag: u32) -> bool {
        let is_usable = self.usable.iter().any(|advert| advert.stag == stag);
        is_usable
            || match self.ended_adverts.reason_of(stag) {
                Some(EndReason::Completed) => false,
                Some(_) => true,
                // The STag is wrong, or the SinkAvail is not acknowledged yet.
                None => !self.wr_compl_follows,
            }
    }

    /// Processes a received SinkAvail. Returns an error if there are too many SinkAvails, or if its
    /// effect is not known because no ModeChange ended Pipelined Mode.
    pub(super) fn apply_received_sink_avail(&mut self, advert: Advert) -> Result<(), ()> {
        if self.mode == Some(Mode::Pipelined) {
            if self.usable.len() >= MAX_OPEN {
                return Err(());
            }
            self.usable.push_back(advert);
            self.drop_stale();
            if !self.usable.is_empty() {
                self.adverts.end_matching(EndReason::Void, |_| true);
            }
            return Ok(());
        }
        let Some((change, known)) = &mut self.left_pipelined else { return Err(()) };
        self.late = self.late.saturating_add(1);
        self.ended_adverts.add(&advert, EndReason::Void);
        // The SinkAvail was in transit when this peer left Pipelined Mode. The monitor compares the
        // NonDiscards of the SinkAvail with the PotentialNonDiscards of that time, and drops the
        // SinkAvail (weft's interpretation of the draft).
        if advert.non_discards == *known {
            let change = *change;
            self.adverts.end_matching(EndReason::Void, |own| !reached(own.mseq, change));
        } else {
            *known = known.wrapping_sub(1);
            self.potential_non_discards = self.potential_non_discards.wrapping_sub(1);
        }
        Ok(())
    }

    pub(super) fn leave_pipelined(&mut self, message: &Message) {
        self.left_pipelined = Some((message.mseq, self.potential_non_discards));
        self.leaves_pipelined = true;
        self.late = 0;
        self.ended_adverts.add_all(&self.usable, EndReason::Void);
        self.usable.clear();
    }

    pub(super) fn apply_received_send_sm(&mut self, message: &Message) {
        if self.cancel.is_some_and(|cancel| reached(message.mseq_ack, cancel)) {
            // The SendSm settles the SrcAvailCancel. It does not request Data (weft's
            // interpretation of the draft).
            self.adverts.end_matching(EndReason::Revoked, |_| true);
            self.cancel = None;
        } else if let Some(oldest) = self.adverts.end_oldest(EndReason::ByData) {
            self.owed = self.owed.saturating_add(requested(&oldest));
        }
    }
}
