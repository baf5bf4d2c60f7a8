//! Expectations of a close, of start-up frames, and of silence.

use std::time::Duration;

use weft_core::wire::mpa::fpdu::len_without_markers;
use weft_core::wire::mpa::startup::{FLAG_R, HEADER_LEN, REPLY_KEY};
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_core::wire::rdmap::Opcode;

use super::{NoFrame, RdmaSide};
use crate::stage::{Arrival, Expectation, Stop, describe};

/// Messages that the target may send before a close.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AllowedBeforeClose {
    /// An MPA Reply with R=1 also meets the expectation, with or without a close.
    pub(crate) reject: bool,
    /// One Terminate may precede the close.
    pub(crate) terminate: bool,
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Close {
    /// FIN or reset.
    #[default]
    Any,
    /// FIN.
    Graceful,
}

/// The expected fields of a start-up frame.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplyFields {
    pub(crate) reject: Option<bool>,
    pub(crate) revision: Option<u8>,
    pub(crate) crc: Option<bool>,
    pub(crate) markers: Option<bool>,
    pub(crate) enhanced: Option<bool>,
}

impl RdmaSide<'_> {
    /// Expects that the target closes the connection (FIN or reset). Before the close, the target
    /// may send only what `before` allows. Returns the time until the close.
    pub(crate) async fn expect_close(
        &mut self,
        expectation: &Expectation,
        before: AllowedBeforeClose,
        close: Close,
    ) -> Result<Duration, Stop> {
        let expected = match (before.terminate, close) {
            (true, _) => "the target closes the connection and sends no byte before the close, except a Terminate",
            (false, Close::Any) => "the target closes the connection and sends no byte before the close",
            (false, Close::Graceful) => "the target closes the connection by FIN and sends no byte before the close",
        };
        let mut sent = "no byte before";
        let began = self.connections.link.now();
        let deadline = began + expectation.within;
        let closed = loop {
            let unread = self.connections.get(self.number)?.fpdus();
            if before.terminate && sent == "no byte before" && begins_terminate(unread) {
                // Judge the Terminate when it is complete.
                if let Some(len) = complete_fpdu_len(unread) {
                    unread.drain(..len);
                    sent = "a Terminate before";
                }
            } else if !unread.is_empty() {
                let answer = std::mem::take(self.connections.get(self.number)?.fpdus());
                if before.reject && rejects(&answer) {
                    let reply = "a close, or an MPA Reply with R=1";
                    self.recorder().met(expectation, reply, &describe::stream(&answer));
                    return Ok(self.connections.link.now().saturating_duration_since(began));
                }
                return Err(self.recorder().wrong(expectation, expected, &describe::stream(&answer)));
            }
            match self.connections.receive(self.number, deadline).await? {
                Arrival::Octets => {}
                Arrival::Fin => break "FIN",
                Arrival::Reset => break "reset",
                Arrival::TimedOut => {
                    let text = self.recorder().silence(expectation) + ", and the connection stays open";
                    return Err(self.recorder().overdue(expectation, expected, &text));
                }
            }
        };
        let took = self.connections.link.now().saturating_duration_since(began);
        self.connections.finish(self.number).await?;
        let actual = format!("{closed} after {} ms, {sent}", milliseconds(took));
        if close == Close::Graceful && closed != "FIN" {
            return Err(self.recorder().unmet(expectation, expected, &actual));
        }
        self.recorder().met(expectation, expected, &actual);
        Ok(took)
    }

    /// Expects a start-up frame of this kind with these fields. Returns the frame.
    pub(crate) async fn expect_frame(
        &mut self,
        expectation: &Expectation,
        kind: StartupKind,
        fields: &ReplyFields,
    ) -> Result<Vec<u8>, Stop> {
        let name = if kind == StartupKind::Reply { "an MPA Reply" } else { "an MPA Request" };
        let expected = format!("{name}{fields}");
        match self.connections.startup_frame(self.number, expectation, kind).await? {
            Ok(frame) => {
                let text = describe::stream(&frame);
                if !Startup::parse(&frame).is_ok_and(|frame| fields.are_those_of(&frame)) {
                    return Err(self.recorder().wrong(expectation, &expected, &text));
                }
                self.connections.log.answered();
                self.recorder().met(expectation, &expected, &text);
                Ok(frame)
            }
            Err(NoFrame::TimedOut) => Err(self.recorder().timed_out(expectation, &expected)),
            Err(NoFrame::Other(what)) => Err(self.recorder().wrong(expectation, &expected, &what)),
            Err(none) => Err(self.recorder().unmet(expectation, &expected, &format!("it {none}"))),
        }
    }

    /// Expects that the target sends nothing until the time is over. The target may close the
    /// connection, except if `open` is set.
    pub(crate) async fn expect_silence(&mut self, expectation: &Expectation, open: bool) -> Result<(), Stop> {
        let expected = match open {
            true => "the target sends no byte, and keeps the connection open",
            false => "the target sends no byte",
        };
        let deadline = self.connections.link.now() + expectation.within;
        let arrival = match self.connections.get(self.number)?.fpdus().is_empty() {
            true => self.connections.receive(self.number, deadline).await?,
            false => Arrival::Octets,
        };
        let actual = match arrival {
            Arrival::Octets => {
                let answer = std::mem::take(self.connections.get(self.number)?.fpdus());
                return Err(self.recorder().wrong(expectation, expected, &describe::stream(&answer)));
            }
            Arrival::Fin | Arrival::Reset if open => {
                let what = if arrival == Arrival::Fin { NoFrame::Fin } else { NoFrame::Reset };
                return Err(self.recorder().unmet(expectation, expected, &format!("it {what}")));
            }
            Arrival::Fin => "it sent no byte before it closed the connection".to_owned(),
            Arrival::Reset => "it sent no byte before it reset the connection".to_owned(),
            Arrival::TimedOut => self.recorder().silence(expectation),
        };
        self.recorder().met(expectation, expected, &actual);
        Ok(())
    }
}

impl ReplyFields {
    fn are_those_of(&self, frame: &Startup<'_>) -> bool {
        self.reject.is_none_or(|reject| frame.reject == reject)
            && self.revision.is_none_or(|revision| frame.revision == revision)
            && self.crc.is_none_or(|crc| frame.crc == crc)
            && self.markers.is_none_or(|markers| frame.markers == markers)
            && self.enhanced.is_none_or(|enhanced| frame.enhanced.is_some() == enhanced)
    }
}

impl std::fmt::Display for ReplyFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bits = [("R", self.reject), ("C", self.crc), ("M", self.markers), ("S", self.enhanced)];
        for (name, bit) in bits.into_iter().filter_map(|(name, bit)| Some((name, bit?))) {
            write!(f, ", {name}={}", u8::from(bit))?;
        }
        self.revision.map_or(Ok(()), |revision| write!(f, ", revision {revision}"))
    }
}

/// Returns whether the bytes are a Reply with R=1. Its other fields may be wrong.
fn rejects(octets: &[u8]) -> bool {
    octets.starts_with(&REPLY_KEY) && octets.len() >= HEADER_LEN && octets[16] & FLAG_R != 0
}

/// Returns whether the bytes begin an FPDU with a Terminate, which may be incomplete.
fn begins_terminate(octets: &[u8]) -> bool {
    const ULP_CONTROL: usize = 3;
    match octets.get(ULP_CONTROL) {
        Some(control) => weft_core::wire::rdmap::Control(*control).opcode() == Opcode::TERMINATE,
        None => false,
    }
}

/// Returns the length of the FPDU without markers at the start of the bytes, if it is complete.
fn complete_fpdu_len(octets: &[u8]) -> Option<usize> {
    let len = len_without_markers(u16::from_be_bytes(*octets.first_chunk()?));
    (octets.len() >= len).then_some(len)
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a Request has S=1 but no enhanced header, siw (Linux's soft-iWARP driver) answers with
    /// such a frame. The frame rejects the Request. The frame of siw also has S=1 and no enhanced
    /// header, which is a separate fault.
    #[test]
    fn a_rejection_may_be_wrong_otherwise() {
        assert!(rejects(b"MPA ID Rep Frame\x70\x02\0\0"));
        assert!(!rejects(b"MPA ID Rep Frame\x50\x02\0\0"));
        assert!(!rejects(b"MPA ID Req Frame\x70\x02\0\0"));
        assert!(!rejects(b"MPA ID Rep Frame\x70"));
    }
}
