//! Checks that the MSeq, the MSeqAck and the Bufs of a message fit the earlier messages.

use weft_core::wire::sdp::Mid;

use super::message::Message;
use super::unexplained::{CreditDecrease, UnsentAck};
use super::{SdpState, reached};
use crate::direction::Direction;

impl SdpState {
    /// Checks that the MSeq of the message is the MSeq of the previous message of its direction
    /// plus one. The first message has MSeq 1; with another interpretation of the draft, it has
    /// MSeq 0.
    pub(super) fn check_numbers(&mut self, direction: Direction, message: &Message) {
        let before = self.numbers[direction].replace((message.mseq, message.mseq_ack));
        let known = &mut self.latest.sender_state;
        known.record_numbers(before);
        known.edge = self.edges[direction];
        let follows = match known.mseq {
            Some(before) => message.mseq == before.wrapping_add(1),
            None => message.mseq <= 1,
        };
        if known.mseq.is_none() && message.mseq == 0 {
            self.counts_from_zero[direction] = true;
            self.unexplained[direction.peer()].record_zero_start();
        }
        // If MSeqAck decreases, it does not show which messages the sender has received.
        let decreases = known.mseq_ack.is_some_and(|before| !reached(message.mseq_ack, before));
        if !follows || decreases {
            self.drop_uncertain_state();
        }
        let peer = direction.peer();
        self.unexplained[peer].record_message(message.mseq);
        let sent = self.numbers[peer].map(|(mseq, _)| mseq);
        if !reached(sent.unwrap_or(0), message.mseq_ack) {
            let Message { header, mseq_ack, .. } = *message;
            self.unexplained[direction].unsent_ack.get_or_insert(UnsentAck {
                octets: header.part(12..16),
                mseq_ack,
                sent,
            });
            // Messages of the peer are missing, or will be processed later. So the sender's state
            // is not known.
            self.drop_uncertain_state();
        }
        self.latest.sender_state.held_back =
            self.canceled[peer].is_some_and(|cancel| !reached(message.mseq_ack, cancel));
        self.record_edge(direction, message);
    }

    /// Records MSeqAck + Bufs, which must not decrease (section 6.1.3 of the SDP draft).
    fn record_edge(&mut self, direction: Direction, message: &Message) {
        let peer = direction.peer();
        if message.mid == Mid::SRC_AVAIL_CANCEL {
            self.unexplained[peer].record_cancel(message.mseq);
            self.canceled[direction] = Some(message.mseq);
        }
        let to = message.mseq_ack.wrapping_add(u32::from(message.bufs));
        // If the peer counts MSeq from 0, its first message has MSeq 0. This message uses a buffer,
        // but MSeqAck stays 0 when it arrives (section 6.1.6).
        let first_arrived = self.edges_at_zero[direction] && self.counts_from_zero[peer];
        match self.edges[direction] {
            Some(from) if !(reached(to, from) || first_arrived && from.wrapping_sub(to) == 1) => {
                if self.canceled[peer] != Some(message.mseq_ack.wrapping_add(1)) {
                    let Message { header, mseq_ack, .. } = *message;
                    self.unexplained[direction].record_credit_decrease(CreditDecrease { header, mseq_ack, from, to });
                }
            }
            from => {
                self.edges[direction] = Some(to);
                self.edges_at_zero[direction] = message.mseq_ack == 0 && from.is_none_or(|from| reached(to, from));
            }
        }
    }
}
