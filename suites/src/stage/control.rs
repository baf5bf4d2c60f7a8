//! The control run of a failed case: the same script, with a legal step in place of the step that
//! deviates.
//!
//! A plain exchange is a correct exchange of the target's service on an open connection. A script
//! marks the step that deviates from a plain exchange (`conn:send(message, { deviates = true })`).
//! If the case fails, the script runs again as a control. Up to the first marked step, the control
//! does the same as the failed run. In place of the first marked step, the tester does plain
//! exchanges. Their FPDUs have the lengths of the FPDUs in the marked steps of the failed run. Then
//! the control ends. If the plain exchanges also fail, the target has a more basic fault than the
//! fault that the case is about.
//!
//! With SDP, the plain exchange is Data in both directions. With a port mapper, it is a correct
//! PMReq. With a port mapper's client, it is a correct PMAccept for another service. With an agent,
//! it is a Send in each direction on a new connection.
//!
//! A script can also mark a start-up frame (`{ deviates = t:request() }`). The value is the legal
//! frame that the control sends instead. The control sends this frame, finishes start-up, does one
//! exchange of the target's service, and ends.

use weft_core::wire::portmap::RawMessage;

use super::deviation::{Deviation, UNTAGGED};
use super::sdp::SEGMENT;
use super::{Attempt, Expectation, Message, Stage, StepFailure, Stop};
use crate::model::Verdict;

/// Seconds to wait for each answer in a plain exchange.
const ANSWER_SECONDS: f64 = 5.0;

impl Stage {
    /// Turns this stage into the stage of a control. The control tries ULPDUs of these lengths.
    pub(crate) fn into_control(mut self, lengths: Vec<u16>) -> Self {
        self.control = Some(lengths);
        self
    }

    /// Returns whether this is the stage of a control.
    pub(crate) fn is_control(&self) -> bool {
        self.control.is_some()
    }

    /// Called before a script sends a message that deviates from a plain exchange. In a control,
    /// the plain exchange replaces the message and ends the case. Otherwise, notes the lengths of
    /// the message's ULPDUs for a later control.
    pub(crate) async fn deviates(&mut self, number: u32, message: &Message, deviation: &Deviation) -> Result<(), Stop> {
        if self.is_control() {
            let Deviation::Startup(legal) = deviation else { return self.instead(number).await };
            let expectation = Expectation::preparation(self.connections.target.scaled(ANSWER_SECONDS));
            let outcome = self.exchange_after(number, legal, &expectation).await;
            let outcome = outcome.map_err(|failure| failure.in_step(&format!("after a legal {}", legal.name)));
            return Err(self.control_is_over(outcome));
        }
        match deviation {
            Deviation::Startup(_) => self.connections.log.control.has_startup = true,
            Deviation::Fpdus => {
                let octets = self.connections.get(number)?.without_markers(message);
                self.connections.log.control.note(&octets);
            }
        }
        Ok(())
    }

    /// Like [`deviates`](Self::deviates), for an SDP message.
    pub(crate) async fn sdp_deviates(&mut self, number: u32, message: &Message) -> Result<(), Stop> {
        if !self.is_control() {
            let counters = self.sdp(number).connection()?.counters();
            self.connections.log.control.note_length(UNTAGGED + message.filled(counters).octets.len().min(SEGMENT));
            return Ok(());
        }
        self.instead(number).await
    }

    /// Like [`deviates`](Self::deviates), for a datagram to or from a port mapper.
    pub(crate) async fn mapper_deviates(&mut self) -> Result<(), Stop> {
        if !self.is_control() {
            self.connections.log.control.note_length(RawMessage::LEN);
            return Ok(());
        }
        self.instead(0).await
    }

    /// Does the plain exchanges that replace a step in a control. Then ends the case.
    pub(in crate::stage) async fn instead(&mut self, number: u32) -> Result<(), Stop> {
        let expectation = Expectation::preparation(self.connections.target.scaled(ANSWER_SECONDS));
        let outcome = self.connections.target.service().driver().plain_exchanges(self, number, &expectation).await;
        Err(self.control_is_over(outcome))
    }

    pub(in crate::stage) fn control_is_over(&mut self, outcome: Attempt) -> Stop {
        self.connections.log.control.outcome = match outcome {
            Err(StepFailure::Decided) => return Stop,
            Err(StepFailure::Reason(why)) => Some(Err(why)),
            Ok(()) => Some(Ok(())),
        };
        self.recorder().decide(Verdict::Inconclusive, "The control is over.".to_owned())
    }

    /// Returns the lengths of ULPDUs that the control tries.
    pub(in crate::stage) fn control_lengths(&self) -> Vec<u16> {
        self.control.clone().unwrap_or_default()
    }
}
