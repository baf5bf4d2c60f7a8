//! A service that returns each Send. The good exchange is one Send and its echo.

use weft_core::wire::ddp::Segment;

use super::{Attempt, Exchange, Expectation, Operation, Outcome, ServiceDriver, ServiceFacts, Stage};
use crate::correct::{self, Rtr};
use crate::model::Capability;
use crate::stage::deviation::{UNTAGGED, pattern, payload_len};
use crate::stage::{describe, ulpdu};

/// The payload of the good exchange.
const PAYLOAD: &[u8] = b"weft good exchange";

pub(crate) struct Echo;

impl ServiceDriver for Echo {
    fn facts(&self) -> ServiceFacts {
        let text = "a good exchange: start-up, and a Send that returns the tester's bytes";
        ServiceFacts { operates: true, ..ServiceFacts::new("echo", Some(Capability::Echo), text) }
    }

    fn work<'s>(&'s self, mut exchange: Exchange<'s>) -> Outcome<'s> {
        Box::pin(async move { exchange.echo().await })
    }

    fn operate<'s>(&'s self, mut exchange: Exchange<'s>) -> Outcome<'s, Operation> {
        Box::pin(async move {
            let started = exchange.started;
            let msn = if started.rtr == Some(Rtr::Send) { 3 } else { 2 };
            exchange.echo().await?;
            Ok(Operation { msn, buffer: None, ird: started.ird })
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
            let (started, progress) = stage.rdma(number).progress()?;
            let mut exchange = stage.connections.exchange(number, started, expectation);
            let payload = pattern(payload_len(usize::from(length), UNTAGGED));
            exchange.send("Send", &correct::send(progress.send_msn, &payload)).await?;
            if exchange.collect("the echo of the tester's Send").await? != payload {
                return Err(format!("it answered {} bytes with different bytes", payload.len()).into());
            }
            stage.rdma(number).check_first_msn()
        })
    }
}

impl Exchange<'_> {
    /// Sends a Send with this MSN, and expects the same bytes back. This exchange is for a target
    /// that has already sent a message.
    pub(in crate::stage) async fn echo_at(&mut self, msn: u32) -> Attempt {
        self.send("Send", &correct::send(msn, PAYLOAD)).await?;
        judge_echo(&self.answer("the echo of the tester's Send").await?)
    }

    /// Sends the first Send of a connection, and expects the same bytes back.
    async fn echo(&mut self) -> Attempt {
        self.first_send(PAYLOAD).await?;
        judge_echo(&self.answer("the echo of the tester's Send").await?)
    }
}

/// Checks that the FPDU is the echo of the Send.
fn judge_echo(fpdu: &[u8]) -> Attempt {
    match Segment::parse(ulpdu(fpdu)) {
        Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() && payload == PAYLOAD => Ok(()),
        _ => Err(format!("it answered the Send with {}", describe::stream(fpdu)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::StepFailure;

    #[test]
    fn only_the_same_octets_are_an_echo() {
        assert_eq!(judge_echo(&correct::fpdu(&correct::send(1, PAYLOAD), true)), Ok(()));
        let other = correct::fpdu(&correct::send(1, b"other"), true);
        assert!(matches!(judge_echo(&other), Err(StepFailure::Reason(why)) if why.contains("Send")));
        assert!(judge_echo(&correct::fpdu(b"", true)).is_err());
    }
}
