//! A target that asks a port mapper where to connect to: it is started, it asks, and the tester is
//! its PM Server and the service.
//!
//! What comes is kept in the order of its kind: a connection that is not waited for yet does not
//! get in the way of a datagram that is. A PMReq that was answered is answered again alike when it
//! comes again, as a PM Server has to (section 7.5.2), and no expectation sees it: the answer may
//! be lost, or on its way. The third that is neither is seen; nobody loses so many.

mod expect;
mod good;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use weft_core::wire::portmap::{Message as PmMessage, MessageType, RawMessage};
use weft_peer::Instant;
use weft_peer::driver::Call;
use zerocopy::FromBytes;

use super::mapper::MapperFields;
use super::meet::{COUNTDOWN, GRACE, LOOK};
use super::{Direction, Stage, StepKind, Stop};
use crate::model::{Event, Octets, SourceLocation};
use crate::script::message::Message;
use crate::targets::{COMMAND_SECONDS, PERSON_SECONDS};

/// TCP addresses that one case may tell of.
const MAX_PLACES: usize = 64;
/// Repetitions behind an answer that chance explains, and how long an answer may cross with some
/// that do not count.
const MOST_LOST: u32 = 2;
const CROSSING: Duration = Duration::from_secs(1);

/// What a case knows of a target that asks.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Conventional Addresses, by number and family.
    services: BTreeMap<(u32, bool), SocketAddr>,
    places: usize,
    datagrams: VecDeque<Datagram>,
    /// Connections that nobody has waited for yet: where to, and their numbers.
    connections: VecDeque<(SocketAddr, u32)>,
    answers: Vec<Answer>,
}

/// A PMReq that was answered, and by what.
#[derive(Debug)]
struct Answer {
    request: Vec<u8>,
    answer: Vec<u8>,
    aside: bool,
    /// When it was first sent.
    since: Instant,
    /// Repetitions that were answered, too, when it should have been there.
    again: u32,
}

/// A datagram that came.
#[derive(Debug, Clone)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    /// To another port of the tester's than the one that is asked.
    pub(crate) aside: bool,
    pub(crate) octets: Vec<u8>,
}

/// How the port mapper sends a datagram.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SendOptions {
    /// From its second port.
    pub(crate) aside: bool,
    /// This is the step that deviates: in a control, a plain exchange takes its place.
    pub(crate) deviates: bool,
}

/// What a datagram must be, or what must not come.
#[derive(Debug, Clone, Default)]
pub(crate) struct AskedFields {
    pub(crate) message: MapperFields,
    /// It comes to the port that answers `aside` come from.
    pub(crate) aside: bool,
    /// A connection that comes first is not as expected.
    pub(crate) no_connection: bool,
    /// Messages of this type may come before.
    pub(crate) past: Option<MessageType>,
}

/// What ended the repetitions of a PMReq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The target connected.
    Connection,
    /// As many as were asked for.
    Most,
    /// Nothing came for long.
    Quiet,
}

impl Stage {
    /// The Conventional Address of a service: nobody else listens there.
    pub(crate) fn asked_service(
        &mut self,
        number: u32,
        v6: bool,
        at: Option<&SourceLocation>,
    ) -> Result<SocketAddr, Stop> {
        if let Some(service) = self.asked.services.get(&(number, v6)) {
            return Ok(*service);
        }
        let service = self.asked_place(v6, false, true, at)?;
        self.asked.services.insert((number, v6), service);
        Ok(service)
    }

    /// A TCP address of the tester's, of its own.
    pub(crate) fn asked_place(
        &mut self,
        v6: bool,
        other: bool,
        listens: bool,
        at: Option<&SourceLocation>,
    ) -> Result<SocketAddr, Stop> {
        if self.asked.places >= MAX_PLACES {
            return Err(self.harness(at, &format!("a case may have {MAX_PLACES} addresses")));
        }
        self.asked.places += 1;
        self.link.place(v6, other, listens).map_err(|error| self.harness(at, &error.to_string()))
    }

    /// Has the target connect to a service, and waits until something comes of it. Connections that
    /// came before and were not looked at are none of it.
    pub(crate) async fn asked_start(&mut self, service: SocketAddr, at: Option<&SourceLocation>) -> Result<(), Stop> {
        const EXPECTED: &str = "a datagram or a connection from the target";
        let Some(start) = self.start.clone() else {
            return Err(self.harness(at, "the target is a responder, and does not ask"));
        };
        self.link.ask(service).map_err(|error| self.harness(at, &error.to_string()))?;
        let desk = self.link.desk(service.is_ipv6());
        match start.start(service, Some(desk)).await {
            Ok(running) => self.started(running),
            Err(why) => {
                return Err(self.unreached(EXPECTED, format!("its command does not start: {why}"), at));
            }
        }
        let person = start.person(service, Some(desk));
        let seconds = if person.is_some() { PERSON_SECONDS } else { COMMAND_SECONDS };
        let within = self.target.scaled(seconds);
        let (end, mut told, mut ended_since) = (self.link.now() + within, None, None);
        self.asked.connections.clear();
        let before = self.asked.waiting();
        while self.asked.waiting() == before {
            let now = self.link.now();
            if let Some(what) = person.as_deref().filter(|_| told.is_none_or(|told| now >= told + COUNTDOWN)) {
                let seconds = end.saturating_duration_since(now).as_secs_f64().round() as u64;
                self.sink.event(&Event::TargetWaiting { what: what.to_owned(), seconds });
                told = Some(now);
            }
            let slice = if self.link.is_virtual() { within } else { LOOK };
            if self.asked_call((now + slice).min(end), at).await? {
                continue;
            }
            if self.link.now() >= end {
                return Err(self.unreached(EXPECTED, format!("none within {} s", within.as_secs_f64()), at));
            }
            let Some((line, status)) = self.last_end() else { continue };
            let since = *ended_since.get_or_insert(now);
            if now >= since + GRACE {
                return Err(self.unreached(EXPECTED, format!("none: {line} ended, {status}"), at));
            }
        }
        Ok(())
    }

    /// Takes the next thing that comes; nothing does until `deadline`: false.
    async fn asked_call(&mut self, deadline: Instant, at: Option<&SourceLocation>) -> Result<bool, Stop> {
        match self.link.next_call(deadline).await {
            Ok(None) => return Ok(false),
            Ok(Some(Call::Connection { to, connection })) => {
                self.check_room(at)?;
                self.heard = true;
                let number = self.connected(*connection, Direction::Received);
                self.asked.connections.push_back((to, number));
            }
            Ok(Some(Call::Datagram { to, from, octets })) => {
                self.heard = true;
                self.has_room(size_of::<Datagram>() + octets.len(), at)?;
                self.log.answered();
                let name = PmMessage::parse(&octets).map_or("no port mapper message", |m| m.message_type.name());
                let text = format!("datagram: {name}");
                self.step(0, Direction::Received, StepKind::Octets, text, Some(Octets::new(&octets)));
                let known = self.asked.answers.iter_mut().find(|known| known.request == octets);
                let now = self.link.now();
                let again = known.filter(|known| known.again < MOST_LOST).map(|known| {
                    known.again += u32::from(now >= known.since + CROSSING);
                    (Message::new("the answer again", known.answer.clone()), known.aside)
                });
                if let Some((answer, aside)) = again {
                    self.asked_put(&answer, from, aside, at).await?;
                    return Ok(true);
                }
                let aside = to != self.link.desk(to.is_ipv6());
                self.asked.datagrams.push_back(Datagram { from, aside, octets: octets.to_vec() });
            }
            Err(error) => return Err(self.harness(at, &error.to_string())),
        }
        Ok(true)
    }

    async fn asked_put(
        &mut self,
        message: &Message,
        to: SocketAddr,
        aside: bool,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        self.may_send(message, at)?;
        let sent = self.link.answer(aside, to, &message.octets).await;
        let octets = Octets::new(&message.octets);
        self.step(0, Direction::Sent, StepKind::Octets, format!("datagram: {}", message.name), Some(octets));
        sent.map_err(|error| self.harness(at, &error.to_string()))
    }

    /// Sends a datagram; one that answers `request` answers its repetitions, too.
    pub(crate) async fn asked_send(
        &mut self,
        message: &Message,
        to: SocketAddr,
        SendOptions { aside, deviates }: SendOptions,
        request: Option<Vec<u8>>,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        if deviates {
            self.mapper_deviates(at).await?;
        }
        self.stimulates_last();
        // Who reflects the addresses that it was sent may reflect all of their fields (section
        // 7.3.1.9).
        if RawMessage::read_from_prefix(&message.octets).is_ok_and(|(sent, _)| {
            sent.ipv() == 4 && [sent.cp_ip_addr, sent.ap_ip_addr].iter().any(|field| field[4..] != [0; 12])
        }) {
            self.log.invited.push(weft_core::requirement!("PM-7.3.1.3-2"));
        }
        if let Some(request) = request {
            self.asked.answers.retain(|known| known.request != request);
            let (answer, since) = (message.octets.clone(), self.link.now());
            self.asked.answers.push(Answer { request, answer, aside, since, again: 0 });
        }
        self.asked_put(message, to, aside, at).await
    }
}

impl Datagram {
    fn message(&self) -> Option<RawMessage> {
        RawMessage::read_from_prefix(&self.octets).ok().map(|(raw, _)| raw)
    }

    fn message_type(&self) -> Option<MessageType> {
        self.message().map(|raw| raw.mt())
    }
}

impl Asked {
    /// Things that came and were not looked at.
    fn waiting(&self) -> usize {
        self.datagrams.len() + self.connections.len()
    }
}
