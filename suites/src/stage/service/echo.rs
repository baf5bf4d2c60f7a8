//! A service that returns each Send. The good exchange is one Send and its echo.

use weft_core::wire::ddp::Segment;

use super::{Expectation, Operation, Outcome, RdmaSide, ServiceDriver, Stage, StartUpResult, Stop};
use crate::correct::{self, Rtr};
use crate::model::Capability;
use crate::stage::deviation::{UNTAGGED, pattern, payload_len};
use crate::stage::{describe, ulpdu};

/// The payload of the good exchange.
const PAYLOAD: &[u8] = b"weft good exchange";

pub(crate) struct Echo;

impl ServiceDriver for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn capability(&self) -> Option<Capability> {
        Some(Capability::Echo)
    }

    fn good_exchange_text(&self) -> &'static str {
        "a good exchange: start-up, and a Send that returns the tester's bytes"
    }

    fn operates(&self) -> bool {
        true
    }

    fn work<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        started: &'s StartUpResult,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        Box::pin(async move { stage.rdma().echo(number, started, expectation).await })
    }

    fn operate<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        started: &'s StartUpResult,
        expectation: &'s Expectation,
    ) -> Outcome<'s, Operation> {
        Box::pin(async move {
            let msn = if started.rtr == Some(Rtr::Send) { 3 } else { 2 };
            let done = stage.rdma().echo(number, started, expectation).await?;
            Ok(done.map(|()| Operation { msn, buffer: None, ird: started.ird }))
        })
    }

    fn plain_exchange<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        length: u16,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        Box::pin(async move {
            let (started, progress) = stage.rdma().progress(number, expectation)?;
            let payload = pattern(payload_len(usize::from(length), UNTAGGED));
            let send = correct::send(progress.send_msn, &payload);
            stage.rdma().send_ulpdu(number, "Send", &send, &started, expectation).await?;
            let echo = stage.rdma().collect(number, &started, "the echo of its Send", expectation).await?;
            Ok(echo.and_then(|echo| match echo == payload {
                true => stage.rdma().check_first_msn(number),
                false => Err(format!("it answered {} bytes with different bytes", payload.len())),
            }))
        })
    }
}

impl RdmaSide<'_> {
    /// Sends a Send with this MSN, and expects the same bytes back. This exchange is for a target
    /// that has already sent a message.
    pub(in crate::stage) async fn echo_at(
        &mut self,
        number: u32,
        started: &StartUpResult,
        msn: u32,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        self.send_ulpdu(number, "Send", &correct::send(msn, PAYLOAD), started, expectation).await?;
        let echo = self.answer(number, started, "the echo of its Send", expectation).await?;
        Ok(echo.and_then(|fpdu| judge_echo(&fpdu)))
    }

    /// Sends the first Send of a connection, and expects the same bytes back.
    async fn echo(
        &mut self,
        number: u32,
        started: &StartUpResult,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        if let Err(why) = self.first_send(number, started, PAYLOAD, expectation).await? {
            return Ok(Err(why));
        }
        let echo = self.answer(number, started, "the echo of its Send", expectation).await?;
        Ok(echo.and_then(|fpdu| judge_echo(&fpdu)))
    }
}

/// Checks that the FPDU is the echo of the Send.
fn judge_echo(fpdu: &[u8]) -> Result<(), String> {
    match Segment::parse(ulpdu(fpdu)) {
        Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() && payload == PAYLOAD => Ok(()),
        _ => Err(format!("it answered the Send with {}", describe::stream(fpdu))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_octets_are_an_echo() {
        assert_eq!(judge_echo(&correct::fpdu(&correct::send(1, PAYLOAD), true)), Ok(()));
        let other = correct::fpdu(&correct::send(1, b"other"), true);
        assert!(judge_echo(&other).unwrap_err().contains("Send"));
        assert!(judge_echo(&correct::fpdu(b"", true)).is_err());
    }
}
