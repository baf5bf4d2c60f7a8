//! The next event on a connection, for a script whose steps depend on this event. The event does
//! not decide the case.

use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{REPLY_KEY, REQUEST_KEY};

use super::{NoFrame, RdmaSide};
use crate::stage::{Arrival, Expectation, Stop};

/// The next event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextEvent {
    /// A complete start-up frame.
    Frame(StartupKind, Vec<u8>),
    /// A complete FPDU without markers.
    Fpdu(Vec<u8>),
    /// Bytes that are neither a start-up frame nor an FPDU.
    Octets,
    /// FIN, or a reset.
    Close,
    /// Nothing arrived until the time was over.
    Nothing,
}

impl RdmaSide<'_> {
    /// Waits for the target's next action on a connection, `expectation.within` at most.
    pub(crate) async fn next(&mut self, number: u32, expectation: &Expectation) -> Result<NextEvent, Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        let at = expectation.at.as_ref();
        let kind = loop {
            let unread = &self.connections.get(number, at)?.unread;
            let begins = |key: &[u8]| !unread.is_empty() && unread.iter().zip(key).all(|(a, b)| a == b);
            match (begins(&REQUEST_KEY), begins(&REPLY_KEY)) {
                // There are too few bytes to distinguish the two keys.
                (true, true) => {}
                (true, false) => break Some(StartupKind::Request),
                (false, true) => break Some(StartupKind::Reply),
                (false, false) if !unread.is_empty() => break None,
                (false, false) => {}
            }
            let partial = !unread.is_empty();
            match self.connections.receive(number, deadline, at).await? {
                Arrival::Octets => {}
                _ if partial => return Ok(NextEvent::Octets),
                Arrival::Fin | Arrival::Reset => return Ok(NextEvent::Close),
                Arrival::TimedOut => {
                    self.recorder().silence(number, expectation);
                    return Ok(NextEvent::Nothing);
                }
            }
        };
        let complete = match kind {
            Some(kind) => self
                .connections
                .startup_frame(number, expectation, kind)
                .await?
                .map(|octets| NextEvent::Frame(kind, octets)),
            None => self.connections.fpdu(number, deadline, at).await?.map(NextEvent::Fpdu),
        };
        match complete {
            Ok(complete) => {
                self.connections.log.answered();
                Ok(complete)
            }
            // Bytes have arrived, so this is not a close, even if a close follows.
            Err(NoFrame::Other(_) | NoFrame::Fin | NoFrame::Reset | NoFrame::TimedOut) => Ok(NextEvent::Octets),
        }
    }
}
