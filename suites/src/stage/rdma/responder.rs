//! Start-up of the tester as Responder.

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_core::wire::rdmap::Opcode;

use super::{MARKERS_REQUESTED, Operation, RdmaSide, StartUpResult, TaggedBuffer, ulpdu};
use crate::correct::{self, StartupFields};
use crate::model::SourceLocation;
use crate::stage::Message;
use crate::stage::{Expectation, ReplyFields, Stop, describe};

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
    pub(crate) fn request(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<Vec<u8>, Stop> {
        match self.connections.get(number, at)?.request.clone() {
            Some(request) => Ok(request),
            None => Err(self.recorder().harness(
                at,
                "a Reply answers a Request, and the script has not waited for a Request on this connection",
            )),
        }
    }

    /// Returns the fields of a correct Reply to the last Request.
    pub(crate) fn correct_reply(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<StartupFields, Stop> {
        let request = self.request(number, at)?;
        Ok(correct::reply_to(&request, &self.connections.target.description.request))
    }

    /// Waits for the Request. If it does not arrive, the case is inconclusive.
    pub(crate) async fn await_request(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<Vec<u8>, Stop> {
        let expectation = Expectation::preparation(self.connections.target.scaled(ANSWER_SECONDS), at);
        self.expect_frame(number, &expectation, StartupKind::Request, &ReplyFields::default()).await
    }

    /// Sends the Reply, and waits until the tester may send. It waits for the ready-to-receive
    /// message, if the peers have agreed on one, and for the first message of the target's service.
    pub(in crate::stage) async fn accept(
        &mut self,
        number: u32,
        reply: &Message,
        expectation: &Expectation,
    ) -> Result<Result<AcceptedStartUp, String>, Stop> {
        let at = expectation.at.as_ref();
        let request = self.request(number, at)?;
        self.connections.put(number, reply, at).await?;
        let (requested, replied) = (Startup::parse(&request).ok(), Startup::parse(&reply.octets).ok());
        let crc = |frame: Option<Startup<'_>>| frame.is_some_and(|frame| frame.crc);
        let markers = requested.is_some_and(|requested| requested.markers);
        if markers && !self.sends_markers() {
            return Ok(Err(MARKERS_REQUESTED.into()));
        }
        let ird = requested.and_then(|requested| requested.enhanced).map(|words| words.ird);
        let started = StartUpResult { crc: crc(requested) || crc(replied), markers, rtr: None, ird };
        let mut opened = AcceptedStartUp { started, buffer: None };
        let agreed = replied.and_then(|replied| replied.enhanced).filter(|words| words.peer_to_peer);
        if let Some(words) = agreed {
            let fpdu = match self.answer(number, &opened.started, "its ready-to-receive message", expectation).await? {
                Ok(fpdu) => fpdu,
                Err(why) => return Ok(Err(why)),
            };
            match Segment::parse(ulpdu(&fpdu)) {
                Ok(Segment::Tagged(header, [])) if words.rtr_write && header.ulp_control.opcode() == Opcode::WRITE => {}
                Ok(Segment::Untagged(header, [])) if words.rtr_send && header.ulp_control.opcode() == Opcode::SEND => {}
                Ok(Segment::Untagged(header, payload))
                    if words.rtr_read && header.ulp_control.opcode() == Opcode::READ_REQUEST =>
                {
                    let Ok(read) = weft_core::wire::rdmap::ReadRequest::parse(payload) else {
                        return Ok(Err("its ready-to-receive Read Request is wrong".into()));
                    };
                    for segment in correct::read_response(read.sink_stag, read.sink_to, &[], 1) {
                        self.send_ulpdu(number, "Read Response", &segment, &opened.started, expectation).await?;
                    }
                }
                _ => {
                    let what = describe::stream(&fpdu);
                    return Ok(Err(format!("it sent {what} where its ready-to-receive message was expected")));
                }
            }
        }
        let service = self.connections.target.service().driver();
        if !service.opens_with_send() {
            return Ok(Ok(opened));
        }
        let fpdu = match self.answer(number, &opened.started, "its first Send", expectation).await? {
            Ok(fpdu) => fpdu,
            Err(why) => return Ok(Err(why)),
        };
        let payload = match Segment::parse(ulpdu(&fpdu)) {
            Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() => payload,
            _ => return Ok(Err(format!("it sent {} where its first Send was expected", describe::stream(&fpdu)))),
        };
        match service.buffer_of(payload) {
            Ok(buffer) => opened.buffer = buffer,
            Err(why) => return Ok(Err(why)),
        }
        self.connections.get(number, at)?.progress.buffer = opened.buffer;
        self.connections.log.answered();
        Ok(Ok(opened))
    }

    /// Does start-up with a target that connects, and answers with `reply`. If start-up fails, the
    /// case is inconclusive.
    pub(crate) async fn operate_as_responder(
        &mut self,
        number: u32,
        reply: &Message,
        expectation: &Expectation,
    ) -> Result<Operation, Stop> {
        match self.accept(number, reply, expectation).await? {
            Ok(opened) => Ok(Operation { msn: 1, buffer: opened.buffer, ird: opened.started.ird }),
            Err(why) => Err(self.recorder().undecided(expectation, "Full Operation", &why)),
        }
    }
}
