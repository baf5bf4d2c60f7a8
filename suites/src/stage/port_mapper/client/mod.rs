//! A target that is a client of a port mapper. The tester starts the client. The tester is also the
//! PM Server and the service of this client.
//!
//! Datagrams and connections are in separate queues, so that an expectation of one kind skips the
//! other. If the target repeats an answered PMReq, the tester repeats the answer, as a PM Server
//! has to (section 7.5.2). It hides the repetition from expectations, because the answer may be
//! lost, or still in flight. It hides at most two repetitions that an answer in flight does not
//! explain.

mod correct_exchange;
mod expect;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use weft_core::wire::portmap::{Message as PmMessage, MessageType, RawMessage};
use weft_peer::Instant;
use weft_peer::driver::Call;
use zerocopy::FromBytes;

use super::server::MapperFields;
use crate::model::{Direction, Event, Octets, SourceLocation, StepKind};
use crate::stage::Message;
use crate::stage::connections::{COUNTDOWN, GRACE, LOOK};
use crate::stage::{Connections, Recorder, Stop};
use crate::targets::{COMMAND_SECONDS, MANUAL_SECONDS};

/// Maximum number of TCP addresses of one case.
const MAX_ADDRESSES: usize = 64;
/// Number of repetitions after an answer that packet loss can explain. For the time `CROSSING`
/// after the answer, repetitions are not counted, because the answer may still be in flight.
const MAX_EXPLAINED_REPETITIONS: u32 = 2;
const CROSSING: Duration = Duration::from_secs(1);

/// The addresses of a case, and the target's messages.
#[derive(Debug, Default)]
pub(in crate::stage) struct State {
    /// Conventional Addresses, by number and family (`true` for IPv6).
    services: BTreeMap<(u32, bool), SocketAddr>,
    addresses: usize,
    datagrams: VecDeque<Datagram>,
    /// Connections that no expectation has used yet: their destinations and numbers.
    connections: VecDeque<(SocketAddr, u32)>,
    answers: Vec<Answer>,
}

/// A PMReq that was answered, and the answer.
#[derive(Debug)]
struct Answer {
    request: Vec<u8>,
    answer: Vec<u8>,
    other_port: bool,
    /// Time when the answer was first sent.
    since: Instant,
    /// Number of repetitions that were answered after the answer should have arrived.
    again: u32,
}

/// A received datagram.
#[derive(Debug, Clone)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    /// Whether the datagram arrived at another port of the tester than the port mapper's port.
    pub(crate) other_port: bool,
    pub(crate) octets: Vec<u8>,
}

/// How the port mapper sends a datagram.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SendOptions {
    /// Whether the datagram is sent from the port mapper's second port.
    pub(crate) other_port: bool,
    /// Whether this is the step that deviates. In a control, a plain exchange replaces it.
    pub(crate) deviates: bool,
}

/// The expected fields of a datagram.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatagramFields {
    pub(crate) message: MapperFields,
    /// Whether the datagram arrives at the second port, from which answers with `aside` are sent.
    pub(crate) other_port: bool,
    /// Whether a connection that arrives first violates the expectation.
    pub(crate) no_connection: bool,
    /// The expectation skips messages of this type.
    pub(crate) past: Option<MessageType>,
}

/// The reason why the repetitions of a PMReq ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepetitionEnd {
    /// The target connected.
    Connection,
    /// As many datagrams as requested have arrived.
    Most,
    /// No more datagrams arrived.
    Quiet,
}

/// The operations of the tester with a target that is a client of a port mapper.
pub(crate) struct MapperClientSide<'a> {
    pub(in crate::stage) connections: &'a mut Connections,
    pub(in crate::stage) state: &'a mut State,
}

impl MapperClientSide<'_> {
    pub(in crate::stage) fn recorder(&mut self) -> Recorder<'_> {
        self.connections.recorder()
    }

    /// Returns the Conventional Address of a service, which is reserved for the tester.
    pub(crate) fn service(&mut self, number: u32, v6: bool, at: Option<&SourceLocation>) -> Result<SocketAddr, Stop> {
        if let Some(service) = self.state.services.get(&(number, v6)) {
            return Ok(*service);
        }
        let service = self.address(v6, false, true, at)?;
        self.state.services.insert((number, v6), service);
        Ok(service)
    }

    /// Reserves a TCP address of the tester.
    pub(crate) fn address(
        &mut self,
        v6: bool,
        other: bool,
        listens: bool,
        at: Option<&SourceLocation>,
    ) -> Result<SocketAddr, Stop> {
        if self.state.addresses >= MAX_ADDRESSES {
            return Err(self.recorder().harness(at, &format!("the case uses more than {MAX_ADDRESSES} addresses")));
        }
        self.state.addresses += 1;
        self.connections
            .link
            .reserve_address(v6, other, listens)
            .map_err(|error| self.recorder().harness(at, &error.to_string()))
    }

    /// Starts the target for a service, and waits until a datagram or a connection arrives. Drops
    /// earlier connections that no expectation has used.
    pub(crate) async fn start(&mut self, service: SocketAddr, at: Option<&SourceLocation>) -> Result<(), Stop> {
        const EXPECTED: &str = "a datagram or a connection from the target";
        let Some(start) = self.connections.start.clone() else {
            return Err(self.recorder().harness(at, "the target is a responder, and does not query a port mapper"));
        };
        self.connections.link.query(service).map_err(|error| self.recorder().harness(at, &error.to_string()))?;
        let mapper = self.connections.link.mapper_address(service.is_ipv6());
        match start.start(service, Some(mapper)).await {
            Ok(running) => self.connections.programs.add(running),
            Err(why) => {
                return Err(self.recorder().unreached(EXPECTED, format!("its command does not start: {why}"), at));
            }
        }
        let instruction = start.manual_instruction(service, Some(mapper));
        let seconds = if instruction.is_some() { MANUAL_SECONDS } else { COMMAND_SECONDS };
        let within = self.connections.target.scaled(seconds);
        let (end, mut shown_at, mut ended_since) = (self.connections.link.now() + within, None, None);
        self.state.connections.clear();
        let before = self.state.waiting();
        while self.state.waiting() == before {
            let now = self.connections.link.now();
            if let Some(what) =
                instruction.as_deref().filter(|_| shown_at.is_none_or(|shown_at| now >= shown_at + COUNTDOWN))
            {
                let seconds = end.saturating_duration_since(now).as_secs_f64().round() as u64;
                self.connections.sink.event(&Event::TargetWaiting { what: what.to_owned(), seconds });
                shown_at = Some(now);
            }
            let slice = if self.connections.link.is_virtual() { within } else { LOOK };
            if self.receive((now + slice).min(end), at).await? {
                continue;
            }
            if self.connections.link.now() >= end {
                return Err(self.recorder().unreached(
                    EXPECTED,
                    format!("no datagram and no connection within {} s", within.as_secs_f64()),
                    at,
                ));
            }
            let Some((line, status)) = self.connections.programs.last_end() else { continue };
            let since = *ended_since.get_or_insert(now);
            if now >= since + GRACE {
                return Err(self.recorder().unreached(
                    EXPECTED,
                    format!("no datagram and no connection, because {line} ended, {status}"),
                    at,
                ));
            }
        }
        Ok(())
    }

    /// Receives the next datagram or connection. Returns false if nothing arrives until `deadline`.
    async fn receive(&mut self, deadline: Instant, at: Option<&SourceLocation>) -> Result<bool, Stop> {
        match self.connections.link.next_call(deadline).await {
            Ok(None) => return Ok(false),
            Ok(Some(Call::Connection { to, connection })) => {
                self.connections.check_limit(at)?;
                self.connections.has_responded = true;
                let number = self.connections.connected(*connection, Direction::Received);
                self.state.connections.push_back((to, number));
            }
            Ok(Some(Call::Datagram { to, from, octets })) => {
                self.connections.has_responded = true;
                self.connections.check_received(size_of::<Datagram>() + octets.len(), at)?;
                self.connections.log.answered();
                let name = PmMessage::parse(&octets).map_or("not a port mapper message", |m| m.message_type.name());
                let text = format!("datagram: {name}");
                self.recorder().step(0, Direction::Received, StepKind::Octets, text, Some(Octets::new(&octets)));
                let known = self.state.answers.iter_mut().find(|known| known.request == octets);
                let now = self.connections.link.now();
                let again = known.filter(|known| known.again < MAX_EXPLAINED_REPETITIONS).map(|known| {
                    known.again += u32::from(now >= known.since + CROSSING);
                    (Message::new("the answer again", known.answer.clone()), known.other_port)
                });
                if let Some((answer, other_port)) = again {
                    self.put(&answer, from, other_port, at).await?;
                    return Ok(true);
                }
                let other_port = to != self.connections.link.mapper_address(to.is_ipv6());
                self.state.datagrams.push_back(Datagram { from, other_port, octets: octets.to_vec() });
            }
            Err(error) => return Err(self.recorder().harness(at, &error.to_string())),
        }
        Ok(true)
    }

    async fn put(
        &mut self,
        message: &Message,
        to: SocketAddr,
        other_port: bool,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        self.connections.check_sent(message, at)?;
        let sent = self.connections.link.answer(other_port, to, &message.octets).await;
        let octets = Octets::new(&message.octets);
        self.recorder().step(0, Direction::Sent, StepKind::Octets, format!("datagram: {}", message.name), Some(octets));
        sent.map_err(|error| self.recorder().harness(at, &error.to_string()))
    }

    /// Sends a datagram. If it answers `request`, it is also the answer to repetitions of
    /// `request`.
    pub(crate) async fn send(
        &mut self,
        message: &Message,
        to: SocketAddr,
        other_port: bool,
        request: Option<Vec<u8>>,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        self.connections.stimulate_last();
        // A target that reflects the received addresses may reflect their complete fields (section
        // 7.3.1.9).
        if RawMessage::read_from_prefix(&message.octets).is_ok_and(|(sent, _)| {
            sent.ipv() == 4 && [sent.cp_ip_addr, sent.ap_ip_addr].iter().any(|field| field[4..] != [0; 12])
        }) {
            self.connections.log.exempt.push(weft_core::requirement!("PM-7.3.1.3-2"));
        }
        if let Some(request) = request {
            self.state.answers.retain(|known| known.request != request);
            let (answer, since) = (message.octets.clone(), self.connections.link.now());
            self.state.answers.push(Answer { request, answer, other_port, since, again: 0 });
        }
        self.put(message, to, other_port, at).await
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

impl State {
    /// Number of events that no expectation has used.
    fn waiting(&self) -> usize {
        self.datagrams.len() + self.connections.len()
    }
}
