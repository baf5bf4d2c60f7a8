//! The end of a connection, and its cause.

use std::io::ErrorKind;

use super::Engine;
use crate::driver::sdp::SdpError;
use crate::time::Instant;
use crate::verbs::{QpState, TerminateRecord};

impl Engine {
    /// Reports the end of the Queue Pair's connection to the state machine. Before that, reports
    /// all messages that have arrived.
    pub(in crate::driver::sdp) fn ended(&mut self, now: Instant) {
        while self.take_completions(now) {
            self.run(now);
        }
        self.machine.handle_disconnected(now);
    }

    /// Returns the cause of the connection's end that the Queue Pair reported. Returns `None` if
    /// SDP ended the connection.
    pub(super) fn cause_of_end(&self) -> Option<String> {
        let qp = self.device.verbs(|rnic| rnic.query_qp(self.qp)).ok()?;
        match (qp.state, qp.terminate) {
            (QpState::Rts, _) => None,
            (_, Some(TerminateRecord { terminate, local: false })) => {
                Some(format!("the peer sent a Terminate: {}", terminate.error))
            }
            (_, Some(TerminateRecord { terminate, local: true })) => {
                Some(format!("this side sent a Terminate: {}", terminate.error))
            }
            (QpState::Idle | QpState::Closing, None) => Some("the peer ended TCP (FIN) without a DisConn".to_owned()),
            (QpState::Terminate | QpState::Error, None) => Some("TCP was reset or timed out".to_owned()),
        }
    }

    /// Returns why the connection ended, if it did not end with a graceful close.
    pub(in crate::driver::sdp) fn end_error(&self) -> SdpError {
        let cause = self.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        let reset = || SdpError::Io(ErrorKind::ConnectionReset, format!("the connection was reset{cause}"));
        self.error.clone().unwrap_or_else(reset)
    }

    /// Returns whether the connection ended without a graceful close.
    pub(in crate::driver::sdp) fn is_broken(&self) -> bool {
        self.gone && (self.error.is_some() || self.graceful != Some(true))
    }
}
