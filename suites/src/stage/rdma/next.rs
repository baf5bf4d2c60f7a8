//! The next event on a connection, for a script whose steps depend on this event. The event does
//! not decide the case.

use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{REPLY_KEY, REQUEST_KEY};

use super::RdmaSide;
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
    pub(crate) async fn next(&mut self, expectation: &Expectation) -> Result<NextEvent, Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        let kind = loop {
            let unread = self.connections.get(self.number)?.fpdus();
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
            match self.connections.receive(self.number, deadline).await? {
                Arrival::Octets => {}
                _ if partial => return Ok(NextEvent::Octets),
                Arrival::Fin | Arrival::Reset => return Ok(NextEvent::Close),
                Arrival::TimedOut => {
                    self.recorder().silence(expectation);
                    return Ok(NextEvent::Nothing);
                }
            }
        };
        let complete = match kind {
            Some(kind) => {
                let frame = self.connections.startup_frame(self.number, expectation, kind).await?;
                frame.map(|octets| NextEvent::Frame(kind, octets))
            }
            None => self.connections.fpdu(self.number, deadline).await?.map(NextEvent::Fpdu),
        };
        if complete.is_ok() {
            self.connections.log.answered();
        }
        // Bytes have arrived, so this is not a close, even if a close follows.
        Ok(complete.unwrap_or(NextEvent::Octets))
    }
}
