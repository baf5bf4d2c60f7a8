//! Start-up frames and FPDUs in the received stream.

use std::time::Duration;

use weft_core::wire::mpa::fpdu::len_without_markers;
use weft_core::wire::mpa::startup::HEADER_LEN;
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_peer::Instant;

use super::{Arrival, Connections};
use crate::stage::{Expectation, NoFrame, Stop, describe};

impl Connections {
    /// Waits for one event from the target and records it. Appends received bytes to the unread
    /// bytes.
    pub(in crate::stage) async fn receive(&mut self, number: u32, deadline: Instant) -> Result<Arrival, Stop> {
        self.receive_at_most(number, deadline, usize::MAX).await
    }

    /// Waits for bytes from the target, and reads at most `most` of them, but at least one. Returns
    /// whether a byte has arrived. The bytes that are not read keep TCP's window small.
    pub(crate) async fn read_part(&mut self, number: u32, most: usize, within: Duration) -> Result<bool, Stop> {
        let deadline = self.link.now() + within;
        Ok(self.receive_at_most(number, deadline, most.max(1)).await? == Arrival::Octets)
    }

    /// Reads one complete start-up frame of this kind from the stream.
    pub(in crate::stage) async fn startup_frame(
        &mut self,
        number: u32,
        expectation: &Expectation,
        kind: StartupKind,
    ) -> Result<Result<Vec<u8>, NoFrame>, Stop> {
        let deadline = self.link.now() + expectation.within;
        loop {
            let unread = &mut self.get(number)?.unread;
            let len =
                unread.get(18..HEADER_LEN).map(|len| HEADER_LEN + usize::from(u16::from_be_bytes([len[0], len[1]])));
            if let Some(len) = len.filter(|len| unread.len() >= *len) {
                let rest = unread.split_off(len);
                let frame = std::mem::replace(unread, rest);
                let settled = self.link.now() + self.target.options.settle_time;
                let conn = self.get(number)?;
                conn.settled = Some(settled);
                conn.started(&frame);
                if kind == StartupKind::Request {
                    self.get(number)?.request = Some(frame.clone());
                }
                let is_wanted = Startup::parse(&frame).is_ok_and(|frame| frame.kind == kind);
                return Ok(if is_wanted { Ok(frame) } else { Err(NoFrame::Other(describe::stream(&frame))) });
            }
            let partial = (!unread.is_empty()).then(|| describe::stream(unread));
            if let Err(missing) = self.receive_more(number, deadline, partial).await? {
                return Ok(Err(missing));
            }
        }
    }

    /// Waits for more bytes of an incomplete frame. `partial` describes the bytes so far.
    async fn receive_more(
        &mut self,
        number: u32,
        deadline: Instant,
        partial: Option<String>,
    ) -> Result<Result<(), NoFrame>, Stop> {
        Ok(match (self.receive(number, deadline).await?, partial) {
            (Arrival::Octets, _) => Ok(()),
            (_, Some(partial)) => Err(NoFrame::Other(partial)),
            (Arrival::Fin, None) => Err(NoFrame::Fin),
            (Arrival::Reset, None) => Err(NoFrame::Reset),
            (Arrival::TimedOut, None) => Err(NoFrame::TimedOut),
        })
    }

    /// Reads one complete FPDU from the stream. Returns it without markers.
    pub(in crate::stage) async fn fpdu(
        &mut self,
        number: u32,
        deadline: Instant,
    ) -> Result<Result<Vec<u8>, NoFrame>, Stop> {
        loop {
            let unread = self.get(number)?.fpdus();
            if let Some(len) = unread.first_chunk().map(|len| len_without_markers(u16::from_be_bytes(*len)))
                && unread.len() >= len
            {
                let fpdu: Vec<u8> = unread.drain(..len).collect();
                self.get(number)?.progress.receives(&fpdu);
                return Ok(Ok(fpdu));
            }
            let partial = (!unread.is_empty()).then(|| describe::stream(unread));
            if let Err(missing) = self.receive_more(number, deadline, partial).await? {
                return Ok(Err(missing));
            }
        }
    }
}
