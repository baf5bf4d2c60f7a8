//! Start-up of a connection on which the tester is the Responder.

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_core::wire::rdmap::Opcode;

use super::{Operation, RdmaSide, StartUpResult, TaggedBuffer, ulpdu, unexpected};
use crate::correct::{self, StartupFields};
use crate::stage::{Attempt, Expectation, Message, ReplyFields, Stop};

/// Seconds to wait for the Request.
const ANSWER_SECONDS: f64 = 5.0;

/// The result of start-up with a target that connects.
pub(crate) struct AcceptedStartUp {
    pub(in crate::stage) started: StartUpResult,
    /// The tagged buffer that rping's client advertised.
    pub(in crate::stage) buffer: Option<TaggedBuffer>,
}

impl RdmaSide<'_> {
    /// Returns the last received Request on a connection. If no Request was received, the script
    /// has an error.
    pub(crate) fn request(&mut self) -> Result<Vec<u8>, Stop> {
        const MISSING: &str =
            "a Reply answers a Request, and the script has not waited for a Request on this connection";
        let request = self.connections.get(self.number)?.request.clone();
        request.ok_or_else(|| self.recorder().harness(MISSING))
    }

    /// Returns the fields of a correct Reply to the last Request.
    pub(crate) fn correct_reply(&mut self) -> Result<StartupFields, Stop> {
        let request = self.request()?;
        Ok(correct::reply_to(&request, &self.connections.target.description.request))
    }

    /// Waits for the Request. If it does not arrive, the case is inconclusive.
    pub(crate) async fn await_request(&mut self) -> Result<Vec<u8>, Stop> {
        let expectation = Expectation::preparation(self.connections.target.scaled(ANSWER_SECONDS));
        self.expect_frame(&expectation, StartupKind::Request, &ReplyFields::default()).await
    }

    /// Sends the Reply, and waits until the tester may send. If the peers have agreed on a
    /// ready-to-receive message, the tester waits for this message. After that, if the target's
    /// service begins with a Send, the tester also waits for this Send.
    pub(in crate::stage) async fn accept(
        &mut self,
        reply: &Message,
        expectation: &Expectation,
    ) -> Attempt<AcceptedStartUp> {
        let request = self.request()?;
        self.connections.put(self.number, reply).await?;
        let (requested, replied) = (Startup::parse(&request).ok(), Startup::parse(&reply.octets).ok());
        let crc = |frame: Option<Startup<'_>>| frame.is_some_and(|frame| frame.crc);
        let ird = requested.and_then(|requested| requested.enhanced).map(|words| words.ird);
        let started = StartUpResult { crc: crc(requested) || crc(replied), rtr: None, ird };
        let mut exchange = self.connections.exchange(self.number, started, expectation);
        let agreed = replied.and_then(|replied| replied.enhanced).filter(|words| words.peer_to_peer);
        if let Some(words) = agreed {
            let due = "its ready-to-receive message";
            let fpdu = exchange.answer(due).await?;
            match Segment::parse(ulpdu(&fpdu)) {
                Ok(Segment::Tagged(header, [])) if words.rtr_write && header.ulp_control.opcode() == Opcode::WRITE => {}
                Ok(Segment::Untagged(header, [])) if words.rtr_send && header.ulp_control.opcode() == Opcode::SEND => {}
                Ok(Segment::Untagged(header, payload))
                    if words.rtr_read && header.ulp_control.opcode() == Opcode::READ_REQUEST =>
                {
                    let Ok(read) = weft_core::wire::rdmap::ReadRequest::parse(payload) else {
                        return Err("its ready-to-receive Read Request is wrong".into());
                    };
                    for segment in correct::read_response(read.sink_stag, read.sink_to, &[], 1) {
                        exchange.send("Read Response", &segment).await?;
                    }
                }
                _ => return Err(unexpected(&fpdu, due)),
            }
        }
        let service = exchange.connections.target.service().driver();
        if !service.facts().opens_with_send {
            return Ok(AcceptedStartUp { started, buffer: None });
        }
        let due = "its first Send";
        let fpdu = exchange.answer(due).await?;
        let payload = match Segment::parse(ulpdu(&fpdu)) {
            Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() => payload,
            _ => return Err(unexpected(&fpdu, due)),
        };
        let buffer = service.buffer_of(payload)?;
        self.connections.get(self.number)?.progress.buffer = buffer;
        self.connections.log.answered();
        Ok(AcceptedStartUp { started, buffer })
    }

    /// Does start-up with a target that connects. The tester answers with `reply`. If start-up
    /// fails, the case is inconclusive.
    pub(crate) async fn operate_as_responder(
        &mut self,
        reply: &Message,
        expectation: &Expectation,
    ) -> Result<Operation, Stop> {
        match self.accept(reply, expectation).await {
            Ok(opened) => Ok(Operation { msn: 1, buffer: opened.buffer, ird: opened.started.ird }),
            Err(failure) => Err(self.recorder().failed(failure, expectation, "Full Operation")),
        }
    }
}
