//! The good exchange: what shows that the target is alive and does its work.
//!
//! With the echo service: Request, Reply with R=0, a Send, the same octets back in a Send, an
//! orderly close. With rping, its ritual in place of the Send. Where nothing is known above MPA:
//! Request, Reply with R=0, an orderly close.

use std::time::Duration;

use weft_core::RequirementId;
use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_core::wire::rdmap::Opcode;

use super::fpdu::{crc_is_right, ulpdu};
use super::{Arrival, Expectation, Stage, Stop};
use crate::correct::{self, Rtr, StartupFields};
use crate::model::SourceLocation;
use crate::script::message::Message;

/// Seconds that the target has for its Reply, and again for its echo.
const ANSWER_SECONDS: f64 = 5.0;

/// Why an exchange with a target that has M=1 does not go on.
pub(super) const MARKERS_ASKED: &str = "it asks for markers, which this exchange does not send";

/// What start-up came to.
pub(crate) struct Started {
    /// CRCs are in use.
    pub(super) crc: bool,
    /// The target asked for markers.
    pub(super) markers: bool,
    /// What the tester sent to show that it is ready.
    pub(super) rtr: Option<Rtr>,
    /// IRD of an enhanced Reply, or of an initiator's Request.
    pub(super) ird: Option<u16>,
}

/// What a script goes on with in Full Operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    /// MSN of the tester's next Send.
    pub(crate) msn: u32,
    /// A tagged buffer of the target: the sink of rping's Read.
    pub(crate) buffer: Option<TaggedBuffer>,
    /// Reads that the target holds at a time, as its enhanced Reply tells.
    pub(crate) ird: Option<u16>,
}

/// Octets of the target that a tagged segment can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaggedBuffer {
    pub(crate) stag: u32,
    /// TO of its first octet.
    pub(crate) tagged_offset: u64,
    /// As many as its server was given.
    pub(crate) length: u32,
}

impl Stage {
    /// A good exchange on a connection of its own; without one the case is inconclusive. It is
    /// evidence for `shows`.
    pub(crate) async fn good_exchange(
        &mut self,
        shows: Vec<RequirementId>,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        let done = self.exchange(shows, at).await;
        if done.is_err() {
            self.log.dead();
        }
        done
    }

    async fn exchange(&mut self, shows: Vec<RequirementId>, at: Option<&SourceLocation>) -> Result<(), Stop> {
        let within = self.target.scaled(ANSWER_SECONDS);
        let expectation = Expectation { shows, ..Expectation::preparation(within, at) };
        self.target.service().driver().good_exchange(self, &expectation).await
    }

    /// Ends the connection of a good exchange that worked, and decides the case if it did not.
    pub(super) async fn conclude(
        &mut self,
        done: Result<u32, String>,
        expected: &str,
        expectation: &Expectation,
    ) -> Result<(), Stop> {
        match done {
            Ok(number) => {
                self.close(number, expectation.at.as_ref()).await?;
                self.log.alive();
                self.met(number, expectation, expected, "a good exchange");
                Ok(())
            }
            Err(why) => Err(self.undecided(expectation, expected, &format!("in the good exchange, {why}"))),
        }
    }

    /// Start-up in either role, and the work of the target's service.
    pub(super) async fn iwarp_exchange(
        &mut self,
        number: u32,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        if self.start.is_some() {
            return self.exchange_as_responder(number, expectation).await;
        }
        let request = Message::new("MPA Request", correct::startup(&self.target.description.request));
        match self.start_up(number, &request, expectation).await? {
            Ok(started) => self.target.service().driver().work(self, number, &started, expectation).await,
            Err(why) => Ok(Err(why)),
        }
    }

    /// Request and Reply, and then what brings the target's service into Full Operation: it has
    /// sent FPDUs, and so may send more.
    pub(crate) async fn operate(
        &mut self,
        number: u32,
        request: &Message,
        expectation: &Expectation,
    ) -> Result<Operation, Stop> {
        let begun = match self.start_up(number, request, expectation).await? {
            Ok(started) => self.target.service().driver().operate(self, number, &started, expectation).await?,
            Err(why) => Err(why),
        };
        if let Ok(operation) = &begun {
            self.conn(number, expectation.at.as_ref())?.place.buffer = operation.buffer;
            self.log.operates();
            // siw loses what arrives right behind its first echo, too: about one time in twenty.
            let settled = self.link.now() + self.target.options.settle;
            self.link.pause(settled).await;
        }
        begun.map_err(|why| self.undecided(expectation, "Full Operation", &why))
    }

    /// Sends a Request on a connection of its own. Gives the Reply, or what came instead.
    pub(crate) async fn probe(
        &mut self,
        request: &StartupFields,
        within: Duration,
    ) -> Result<Result<Vec<u8>, String>, Stop> {
        let number = self.connect(None).await?;
        let expectation = Expectation::preparation(within, None);
        self.put(number, &Message::new("MPA Request", correct::startup(request)), None).await?;
        let reply = self.frame(number, &expectation, StartupKind::Reply).await?;
        self.abort(number, None).await?;
        Ok(reply.map_err(|none| none.to_string()))
    }

    /// Request and Reply, and in the peer-to-peer model the ready-to-receive message.
    pub(super) async fn start_up(
        &mut self,
        number: u32,
        request: &Message,
        expectation: &Expectation,
    ) -> Result<Result<Started, String>, Stop> {
        self.put(number, request, expectation.at.as_ref()).await?;
        self.replied(number, request, expectation).await
    }

    /// The same behind the Request.
    pub(super) async fn replied(
        &mut self,
        number: u32,
        request: &Message,
        expectation: &Expectation,
    ) -> Result<Result<Started, String>, Stop> {
        let reply = match self.frame(number, expectation, StartupKind::Reply).await? {
            Ok(reply) => reply,
            Err(none) => return Ok(Err(format!("it {none} where its Reply was due"))),
        };
        let frame = match Startup::parse(&reply) {
            Ok(frame) => frame,
            Err(error) => return Ok(Err(format!("its Reply is wrong: {error}"))),
        };
        if frame.reject {
            return Ok(Err("it rejected the connection".into()));
        }
        if frame.markers && !self.sends_markers() {
            return Ok(Err(MARKERS_ASKED.into()));
        }
        let asked = Startup::parse(&request.octets).ok();
        if asked.is_some_and(|asked| asked.enhanced.is_some()) && frame.enhanced.is_none() {
            return Ok(Err("its Reply to an enhanced Request is not enhanced".into()));
        }
        let crc = frame.crc || asked.is_some_and(|asked| asked.crc);
        let ird = frame.enhanced.map(|words| words.ird);
        let mut started = Started { crc, markers: frame.markers, rtr: None, ird };
        if let Some(agreed) = frame.enhanced.filter(|agreed| agreed.peer_to_peer) {
            let Some((kind, ulpdu)) = correct::ready_to_receive(&agreed) else {
                return Ok(Err("its Reply agrees to no ready-to-receive message".into()));
            };
            self.settle(number, expectation).await?;
            self.put_ulpdu(number, &format!("ready to receive ({kind:?})"), &ulpdu, &started, expectation).await?;
            started.rtr = Some(kind);
        }
        Ok(Ok(started))
    }

    /// Do the tester's own exchanges have markers where the target asks for them? Scripts have to
    /// place their own, so only in cases that are about that; where nothing is known above MPA no
    /// exchange has FPDUs.
    pub(super) fn sends_markers(&self) -> bool {
        self.target.options.requests_markers || !self.target.service().driver().has_fpdus()
    }

    /// Some implementations lose what arrives right behind their Reply until more arrives; see
    /// `settle_ms`. Nothing may come meanwhile.
    async fn settle(&mut self, number: u32, expectation: &Expectation) -> Result<bool, Stop> {
        let settled = self.link.now() + self.target.options.settle;
        Ok(self.receive(number, settled, expectation.at.as_ref()).await? == Arrival::TimedOut)
    }

    /// The first Send of a connection. A ready-to-receive Send has used up the first number (RFC
    /// 5040 section 5.3).
    pub(super) async fn first_send(
        &mut self,
        number: u32,
        started: &Started,
        payload: &[u8],
        expectation: &Expectation,
    ) -> Result<Result<u32, String>, Stop> {
        if started.rtr.is_none() && !self.settle(number, expectation).await? {
            return Ok(Err("it did not wait for the first FPDU behind its Reply".into()));
        }
        let msn = if started.rtr == Some(Rtr::Send) { 2 } else { 1 };
        self.put_ulpdu(number, "Send", &correct::send(msn, payload), started, expectation).await?;
        Ok(Ok(msn))
    }

    /// Sends a right FPDU, with markers where the target asked for them.
    pub(super) async fn put_ulpdu(
        &mut self,
        number: u32,
        name: &str,
        ulpdu: &[u8],
        started: &Started,
        expectation: &Expectation,
    ) -> Result<(), Stop> {
        let at = expectation.at.as_ref();
        let octets = match started.markers {
            true => correct::fpdu_with_markers(self.position(number, at)?, ulpdu, started.crc),
            false => correct::fpdu(ulpdu, started.crc),
        };
        let message = Message::new(format!("FPDU with {name}"), octets);
        self.put(number, &message, at).await
    }

    /// The target's next FPDU, but for the answer to a ready-to-receive Read; `due` says which one
    /// that should be.
    pub(super) async fn answer(
        &mut self,
        number: u32,
        started: &Started,
        due: &str,
        expectation: &Expectation,
    ) -> Result<Result<Vec<u8>, String>, Stop> {
        let deadline = self.link.now() + expectation.within;
        loop {
            match self.fpdu(number, deadline, expectation.at.as_ref()).await? {
                Ok(fpdu) if started.rtr == Some(Rtr::Read) && is_empty_response(&fpdu) => {}
                Ok(fpdu) if started.crc && !crc_is_right(&fpdu) => {
                    return Ok(Err("the CRC of its FPDU is wrong".into()));
                }
                Ok(fpdu) => return Ok(Ok(fpdu)),
                Err(none) => return Ok(Err(format!("it {none} where {due} was due"))),
            }
        }
    }
}

fn is_empty_response(fpdu: &[u8]) -> bool {
    Segment::parse(ulpdu(fpdu)).is_ok_and(|segment| {
        segment.ulp_control().opcode() == Opcode::READ_RESPONSE
            && matches!(segment, Segment::Tagged(_, payload) if payload.is_empty())
    })
}
