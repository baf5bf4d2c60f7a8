//! A target that is the Initiator: it is started, it connects, and the tester is its Responder.

use std::time::Duration;

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_core::wire::rdmap::Opcode;

use super::exchange::{MARKERS_ASKED, Operation, Started, TaggedBuffer};
use super::fpdu::ulpdu;
use super::{Direction, Expectation, Stage, Stop, describe};
use crate::correct::{self, StartupFields};
use crate::model::{Event, SourceLocation};
use crate::script::message::Message;
use crate::targets::{COMMAND_SECONDS, PERSON_SECONDS};

/// How often the end of a command is looked for while its connection is waited for.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// How long a command that has ended may still have a connection under way: ssh ends before what it
/// started has.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// Between two lines of a countdown.
pub(super) const COUNTDOWN: Duration = Duration::from_secs(10);
/// Seconds for the Request and for each FPDU that a right start-up leads to.
const ANSWER_SECONDS: f64 = 5.0;

/// What a start-up of the target led to.
pub(crate) struct Opened {
    pub(super) started: Started,
    /// The tagged buffer that rping advertised.
    pub(super) buffer: Option<TaggedBuffer>,
}

impl Stage {
    /// Starts the target, and waits for its connection.
    pub(super) async fn meet(&mut self, at: Option<&SourceLocation>) -> Result<u32, Stop> {
        self.check_room(at)?;
        let Some(start) = self.start.clone() else {
            return Err(self.harness(at, "the target is a responder, and does not connect"));
        };
        let there = self.link.target();
        match start.start(there, None).await {
            Ok(running) => self.started(running),
            Err(why) => {
                let actual = format!("its command does not start: {why}");
                return Err(self.unreached("a TCP connection from the target", actual, at));
            }
        }
        let person = start.person(there, None);
        let seconds = if person.is_some() { PERSON_SECONDS } else { COMMAND_SECONDS };
        self.await_target(self.target.scaled(seconds), person.as_deref(), at).await
    }

    async fn await_target(
        &mut self,
        within: Duration,
        person: Option<&str>,
        at: Option<&SourceLocation>,
    ) -> Result<u32, Stop> {
        const EXPECTED: &str = "a TCP connection from the target";
        let end = self.link.now() + within;
        let mut ended_since = None;
        let mut told = None;
        loop {
            let now = self.link.now();
            if let Some(what) = person.filter(|_| told.is_none_or(|told| now >= told + COUNTDOWN)) {
                let seconds = end.saturating_duration_since(now).as_secs_f64().round() as u64;
                self.sink.event(&Event::TargetWaiting { what: what.to_owned(), seconds });
                told = Some(now);
            }
            let slice = if self.link.is_virtual() { within } else { LOOK };
            match self.link.accept((now + slice).min(end)).await {
                Ok(Some(connection)) => return Ok(self.connected(connection, Direction::Received)),
                Ok(None) if self.link.now() >= end => {
                    let actual = format!("none within {} s", within.as_secs_f64());
                    return Err(self.unreached(EXPECTED, actual, at));
                }
                Ok(None) => {}
                Err(error) => return Err(self.harness(at, &error.to_string())),
            }
            let Some((line, status)) = self.last_end() else { continue };
            let since = *ended_since.get_or_insert(now);
            if now >= since + GRACE {
                return Err(self.unreached(EXPECTED, format!("none: {line} ended, {status}"), at));
            }
        }
    }

    /// Waits for the connection by which the target goes on with one that was suspended.
    pub(super) async fn reconnected(&mut self, port: u16, expectation: &Expectation) -> Result<u32, Stop> {
        let at = expectation.at.as_ref();
        self.check_room(at)?;
        let deadline = self.link.now() + expectation.within;
        match self.link.await_reconnection(port, deadline).await {
            Ok(Some(connection)) => Ok(self.connected(connection, Direction::Received)),
            Ok(None) => {
                let expected = format!("a TCP connection to port {port}");
                let actual = format!("none within {} s", expectation.within.as_secs_f64());
                Err(self.overdue(expectation, &expected, &actual))
            }
            Err(error) => Err(self.harness(at, &error.to_string())),
        }
    }

    /// The last Request on a connection; none came yet, and a script asks too early.
    pub(crate) fn request_on(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<Vec<u8>, Stop> {
        match self.conn(number, at)?.request.clone() {
            Some(request) => Ok(request),
            None => Err(self.harness(at, "a Reply answers a Request, and none was waited for on this connection")),
        }
    }

    /// What a right Reply to the last Request holds.
    pub(crate) fn right_reply(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<StartupFields, Stop> {
        let request = self.request_on(number, at)?;
        Ok(correct::reply_to(&request, &self.target.description.request))
    }

    /// Waits for the Request of the target's next connection.
    pub(crate) async fn request_of_target(&mut self) -> Result<Vec<u8>, Stop> {
        let number = self.connect(None).await?;
        self.await_request(number, None).await
    }

    /// Waits for the Request, as a preparation.
    pub(crate) async fn await_request(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<Vec<u8>, Stop> {
        let expectation = Expectation::preparation(self.target.scaled(ANSWER_SECONDS), at);
        self.expect_frame(number, &expectation, StartupKind::Request, &super::ReplyFields::default()).await
    }

    /// Sends the Reply and waits for what lets the tester speak: the ready-to-receive message where
    /// one is agreed, and the first message of the target's service.
    pub(super) async fn welcome(
        &mut self,
        number: u32,
        reply: &Message,
        expectation: &Expectation,
    ) -> Result<Result<Opened, String>, Stop> {
        let at = expectation.at.as_ref();
        let request = self.request_on(number, at)?;
        self.put(number, reply, at).await?;
        let (asked, told) = (Startup::parse(&request).ok(), Startup::parse(&reply.octets).ok());
        let crc = |frame: Option<Startup<'_>>| frame.is_some_and(|frame| frame.crc);
        let markers = asked.is_some_and(|asked| asked.markers);
        if markers && !self.sends_markers() {
            return Ok(Err(MARKERS_ASKED.into()));
        }
        let ird = asked.and_then(|asked| asked.enhanced).map(|words| words.ird);
        let started = Started { crc: crc(asked) || crc(told), markers, rtr: None, ird };
        let mut opened = Opened { started, buffer: None };
        let agreed = told.and_then(|told| told.enhanced).filter(|words| words.peer_to_peer);
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
                        self.put_ulpdu(number, "Read Response", &segment, &opened.started, expectation).await?;
                    }
                }
                _ => {
                    let what = describe::stream(&fpdu);
                    return Ok(Err(format!("it sent {what} where its ready-to-receive message was due")));
                }
            }
        }
        let service = self.target.service().driver();
        if !service.opens_with_send() {
            return Ok(Ok(opened));
        }
        let fpdu = match self.answer(number, &opened.started, "its first Send", expectation).await? {
            Ok(fpdu) => fpdu,
            Err(why) => return Ok(Err(why)),
        };
        let payload = match Segment::parse(ulpdu(&fpdu)) {
            Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() => payload,
            _ => return Ok(Err(format!("it sent {} where its first Send was due", describe::stream(&fpdu)))),
        };
        match service.buffer_of(payload) {
            Ok(buffer) => opened.buffer = buffer,
            Err(why) => return Ok(Err(why)),
        }
        self.conn(number, at)?.place.buffer = opened.buffer;
        self.log.answered();
        Ok(Ok(opened))
    }

    /// Right start-up with a target that connects; `reply` makes the Reply of what a right one
    /// holds.
    pub(crate) async fn welcomed(
        &mut self,
        number: u32,
        reply: &Message,
        expectation: &Expectation,
    ) -> Result<Operation, Stop> {
        match self.welcome(number, reply, expectation).await? {
            Ok(opened) => Ok(Operation { msn: 1, buffer: opened.buffer, ird: opened.started.ird }),
            Err(why) => Err(self.undecided(expectation, "Full Operation", &why)),
        }
    }

    /// The good exchange of a target that connects: start-up, and what its service is for, once.
    pub(super) async fn exchange_as_responder(
        &mut self,
        number: u32,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        let at = expectation.at.as_ref();
        self.await_request(number, at).await?;
        let reply = Message::new("MPA Reply", correct::startup(&self.right_reply(number, at)?));
        let opened = match self.welcome(number, &reply, expectation).await? {
            Ok(opened) => opened,
            Err(why) => return Ok(Err(why)),
        };
        self.target.service().driver().serve(self, number, &opened, expectation).await
    }
}
