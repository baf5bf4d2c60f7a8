//! The good exchange: what shows that the target is alive and does its work.
//!
//! With the echo service: Request, Reply with R=0, a Send, the same octets back in a Send, an orderly close. Where nothing
//! is known above MPA: Request, Reply with R=0, an orderly close.

use weft_core::RequirementId;
use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::Startup;
use weft_core::wire::rdmap::Opcode;

use super::expect::NoFrame;
use super::fpdu::{crc_is_right, ulpdu};
use super::{Arrival, Expectation, Stage, Stop, describe};
use crate::correct::{self, Rtr, StartupFields};
use crate::model::SourceLocation;
use crate::script::message::Message;
use crate::target::Service;

/// What the good exchange sends.
const PAYLOAD: &[u8] = b"weft good exchange";
/// Seconds that the target has for its Reply, and again for its echo.
const ANSWER_SECONDS: f64 = 5.0;

/// What start-up came to.
struct Started {
    /// CRCs are in use.
    crc: bool,
    /// What the tester sent to show that it is ready.
    rtr: Option<Rtr>,
}

impl Stage {
    /// A good exchange on a connection of its own; without one the case is inconclusive. It is evidence for `shows`.
    pub(crate) async fn good_exchange(
        &mut self,
        shows: Vec<RequirementId>,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        let number = self.connect(at).await?;
        let within = self.target.scaled(ANSWER_SECONDS);
        let expectation = Expectation { shows, ..Expectation::preparation(within, at) };
        let done = match self.start_up(number, &expectation).await? {
            Ok(started) if self.target.service == Service::Echo => self.echo(number, &started, &expectation).await?,
            Ok(_) => Ok(()),
            Err(why) => Err(why),
        };
        let expected = match self.target.service {
            Service::Echo => "a good exchange: Reply with R=0, and the Send's octets back",
            Service::Rping | Service::None => "a good exchange: Reply with R=0",
        };
        match done {
            Ok(()) => {
                self.close(number, at).await?;
                self.log.alive();
                self.met(number, &expectation, expected, "a good exchange");
                Ok(())
            }
            Err(why) => Err(self.undecided(&expectation, expected, &format!("in the good exchange, {why}"))),
        }
    }

    /// Sends a Request on a connection of its own. Gives the Reply, or what came instead.
    pub(crate) async fn probe(&mut self, request: &StartupFields) -> Result<Result<Vec<u8>, String>, Stop> {
        let number = self.connect(None).await?;
        let expectation = Expectation::preparation(self.target.scaled(ANSWER_SECONDS), None);
        self.put(number, &Message::new("MPA Request", correct::startup(request)), None).await?;
        let reply = self.reply(number, &expectation).await?;
        self.abort(number, None).await?;
        Ok(reply.map_err(|none| match none {
            NoFrame::Fin => "closed the connection".to_owned(),
            NoFrame::Reset => "reset the connection".to_owned(),
            NoFrame::TimedOut => "did not answer".to_owned(),
            NoFrame::Other(what) => format!("sent {what}"),
        }))
    }

    /// Request and Reply, and in the peer-to-peer model the ready-to-receive message.
    async fn start_up(&mut self, number: u32, expectation: &Expectation) -> Result<Result<Started, String>, Stop> {
        let request = self.target.request.clone();
        let message = Message::new("MPA Request", correct::startup(&request));
        self.put(number, &message, expectation.at.as_ref()).await?;
        let reply = match self.reply(number, expectation).await? {
            Ok(reply) => reply,
            Err(NoFrame::Fin) => return Ok(Err("it closed the connection instead of a Reply".into())),
            Err(NoFrame::Reset) => return Ok(Err("it reset the connection instead of a Reply".into())),
            Err(NoFrame::TimedOut) => return Ok(Err("it did not answer the Request".into())),
            Err(NoFrame::Other(what)) => return Ok(Err(format!("it answered the Request with {what}"))),
        };
        let frame = match Startup::parse(&reply) {
            Ok(frame) => frame,
            Err(error) => return Ok(Err(format!("its Reply is wrong: {error}"))),
        };
        if frame.reject {
            return Ok(Err("it rejected the connection".into()));
        }
        if frame.markers && self.target.service == Service::Echo {
            return Ok(Err("it asks for markers, which this exchange does not send".into()));
        }
        if request.enhanced.is_some() && frame.enhanced.is_none() {
            return Ok(Err("its Reply to an enhanced Request is not enhanced".into()));
        }
        let mut started = Started { crc: frame.crc || request.crc, rtr: None };
        if let Some(agreed) = frame.enhanced.filter(|agreed| agreed.peer_to_peer) {
            let Some((kind, ulpdu)) = correct::ready_to_receive(&agreed) else {
                return Ok(Err("its Reply agrees to no ready-to-receive message".into()));
            };
            self.settle(number, expectation).await?;
            let message =
                Message::new(format!("FPDU, ready to receive ({kind:?})"), correct::fpdu(&ulpdu, started.crc));
            self.put(number, &message, expectation.at.as_ref()).await?;
            started.rtr = Some(kind);
        }
        Ok(Ok(started))
    }

    /// Some implementations lose what arrives right behind their Reply until more arrives; see `settle_ms`. Nothing may come
    /// meanwhile.
    async fn settle(&mut self, number: u32, expectation: &Expectation) -> Result<bool, Stop> {
        let settled = self.link.now() + self.target.settle;
        Ok(self.receive(number, settled, expectation.at.as_ref()).await? == Arrival::TimedOut)
    }

    /// A Send there, and the same octets back.
    async fn echo(
        &mut self,
        number: u32,
        started: &Started,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        let at = expectation.at.as_ref();
        if started.rtr.is_none() && !self.settle(number, expectation).await? {
            return Ok(Err("it did not wait for the first FPDU behind its Reply".into()));
        }
        // A ready-to-receive Send uses up the first number (RFC 5040 section 5.3).
        let msn = if started.rtr == Some(Rtr::Send) { 2 } else { 1 };
        let message = Message::new("FPDU with Send", correct::fpdu(&correct::send(msn, PAYLOAD), started.crc));
        self.put(number, &message, at).await?;
        let deadline = self.link.now() + expectation.within;
        loop {
            match self.fpdu(number, deadline, at).await? {
                // The answer to a ready-to-receive Read.
                Ok(fpdu) if started.rtr == Some(Rtr::Read) && is_read_response(&fpdu) => {}
                Ok(fpdu) => return Ok(judge_echo(&fpdu, started.crc)),
                Err(NoFrame::Fin) => return Ok(Err("it closed the connection instead of echoing the Send".into())),
                Err(NoFrame::Reset) => return Ok(Err("it reset the connection instead of echoing the Send".into())),
                Err(NoFrame::TimedOut) => return Ok(Err("it did not echo the Send".into())),
                Err(NoFrame::Other(what)) => return Ok(Err(format!("it answered the Send with {what}"))),
            }
        }
    }
}

fn is_read_response(fpdu: &[u8]) -> bool {
    Segment::parse(ulpdu(fpdu)).is_ok_and(|segment| segment.ulp_control().opcode() == Opcode::READ_RESPONSE)
}

/// Does a whole FPDU hold the Send that was to come back?
fn judge_echo(fpdu: &[u8], crc: bool) -> Result<(), String> {
    if crc && !crc_is_right(fpdu) {
        return Err("the CRC of its FPDU is wrong".into());
    }
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
        let good = correct::fpdu(&correct::send(1, PAYLOAD), true);
        assert_eq!(judge_echo(&good, true), Ok(()));
        let other = correct::fpdu(&correct::send(1, b"other"), true);
        assert!(judge_echo(&other, true).unwrap_err().contains("Send"));
        let mut damaged = good.clone();
        damaged[25] ^= 1;
        assert!(judge_echo(&damaged, true).unwrap_err().contains("CRC"));
        let without = correct::fpdu(&correct::send(1, PAYLOAD), false);
        assert_eq!(judge_echo(&without, false), Ok(()));
        assert!(judge_echo(&correct::fpdu(b"", true), true).is_err());
    }
}
