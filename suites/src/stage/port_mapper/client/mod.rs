//! A target that is a client of a port mapper. The tester starts the client. The tester is also the
//! PM Server and the service of this client.
//!
//! Datagrams and connections are in separate queues, so that an expectation of a datagram skips
//! connections, and an expectation of a connection skips datagrams. If the target repeats an
//! answered PMReq, the tester repeats the answer, as a PM Server has to
//! (draft-pinkerton-iwarp-sdp-01 section 7.5.2). The tester hides the repetition from expectations,
//! because the answer may be lost, or still in flight. The tester assumes that an answer is in
//! flight for at most 1 s. Of the repetitions that arrive later, the tester hides at most two.

mod correct_exchange;
mod expect;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use weft_core::wire::portmap::{MessageType, RawMessage};
use weft_peer::Instant;
use weft_peer::driver::Call;

use super::raw_message;
use super::server::MapperFields;
use crate::model::Direction;
use crate::stage::{Connections, Message, Recorder, Stop};

/// Maximum number of TCP addresses of one case.
const MAX_ADDRESSES: usize = 64;
/// Packet loss can explain this number of repetitions of an answered PMReq. Repetitions within
/// `CROSSING` after the answer are not counted, because the answer may still be in flight.
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
    /// Number of repetitions that arrived at least `CROSSING` after the first answer, and were
    /// answered again.
    again: u32,
}

/// A received datagram.
#[derive(Debug, Clone)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    /// Whether the datagram arrived at a port that is not the port mapper's first port.
    pub(crate) other_port: bool,
    pub(crate) octets: Vec<u8>,
}

/// How the port mapper sends a datagram.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SendOptions {
    /// Whether the datagram is sent from the port mapper's second port.
    pub(crate) other_port: bool,
    /// Whether this step deviates from a plain exchange. In a control, a plain exchange replaces
    /// the step.
    pub(crate) deviates: bool,
}

/// The expected fields of a datagram.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatagramFields {
    pub(crate) message: MapperFields,
    /// Whether the datagram arrives at the port mapper's second port. With the option `aside`, the
    /// tester's answers come from this port.
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
    /// The requested number of datagrams has arrived.
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

    /// Returns the Conventional Address of a service. It is an address of the tester, reserved for
    /// this service.
    pub(crate) fn service(&mut self, number: u32, v6: bool) -> Result<SocketAddr, Stop> {
        if let Some(service) = self.state.services.get(&(number, v6)) {
            return Ok(*service);
        }
        let service = self.address(v6, false, true)?;
        self.state.services.insert((number, v6), service);
        Ok(service)
    }

    /// Reserves a TCP address of the tester.
    pub(crate) fn address(&mut self, v6: bool, other: bool, listens: bool) -> Result<SocketAddr, Stop> {
        if self.state.addresses >= MAX_ADDRESSES {
            return Err(self.recorder().harness(&format!("the case uses more than {MAX_ADDRESSES} addresses")));
        }
        self.state.addresses += 1;
        self.connections
            .link
            .reserve_address(v6, other, listens)
            .map_err(|error| self.recorder().harness(&error.to_string()))
    }

    /// Starts the target for a service, and waits until a datagram or a connection arrives. Drops
    /// earlier connections that no expectation has used.
    pub(crate) async fn start(&mut self, service: SocketAddr) -> Result<(), Stop> {
        let Some(start) = self.connections.start.clone() else {
            return Err(self.recorder().harness("the target is a responder, so it does not query a port mapper"));
        };
        self.connections.link.query(service).map_err(|error| self.recorder().harness(&error.to_string()))?;
        let mapper = self.connections.link.mapper_address(service.is_ipv6());
        let what = ("a datagram or a connection from the target", "no datagram and no connection");
        let mut wait = self.connections.start_target(&start, service, Some(mapper), what).await?;
        self.state.connections.clear();
        let before = self.state.waiting();
        while self.state.waiting() == before {
            let until = self.connections.next_check(&mut wait);
            if !self.receive(until).await? {
                self.connections.check_target(&mut wait)?;
            }
        }
        Ok(())
    }

    /// Receives the next datagram or connection. Returns false if nothing arrives until `deadline`.
    async fn receive(&mut self, deadline: Instant) -> Result<bool, Stop> {
        match self.connections.link.next_call(deadline).await {
            Ok(None) => return Ok(false),
            Ok(Some(Call::Connection { to, connection })) => {
                self.connections.check_limit()?;
                self.connections.has_responded = true;
                let number = self.connections.connected(*connection, Direction::Received);
                self.state.connections.push_back((to, number));
            }
            Ok(Some(Call::Datagram { to, from, octets })) => {
                self.connections.has_responded = true;
                self.connections.check_received(size_of::<Datagram>() + octets.len())?;
                self.connections.received_datagram(&octets);
                let known = self.state.answers.iter_mut().find(|known| known.request == octets);
                let now = self.connections.link.now();
                let again = known.filter(|known| known.again < MAX_EXPLAINED_REPETITIONS).map(|known| {
                    known.again += u32::from(now >= known.since + CROSSING);
                    (Message::new("the answer again", known.answer.clone()), known.other_port)
                });
                if let Some((answer, other_port)) = again {
                    self.put(&answer, from, other_port).await?;
                    return Ok(true);
                }
                let other_port = to != self.connections.link.mapper_address(to.is_ipv6());
                self.state.datagrams.push_back(Datagram { from, other_port, octets: octets.to_vec() });
            }
            Err(error) => return Err(self.recorder().harness(&error.to_string())),
        }
        Ok(true)
    }

    async fn put(&mut self, message: &Message, to: SocketAddr, other_port: bool) -> Result<(), Stop> {
        self.connections.check_sent(message)?;
        let sent = self.connections.link.answer(other_port, to, &message.octets).await;
        self.connections.sent_datagram(message);
        sent.map_err(|error| self.recorder().harness(&error.to_string()))
    }

    /// Sends a datagram. If `request` is set, the datagram is the answer to `request` and to its
    /// repetitions.
    pub(crate) async fn send(
        &mut self,
        message: &Message,
        to: SocketAddr,
        other_port: bool,
        request: Option<Vec<u8>>,
    ) -> Result<(), Stop> {
        self.connections.stimulate_last();
        // If the bytes after an IPv4 address are not zero, the target may reflect them with the
        // address (section 7.3.1.9). So the requirement about these bytes is exempt.
        if raw_message(&message.octets).is_some_and(|sent| {
            sent.ipv() == 4 && [sent.cp_ip_addr, sent.ap_ip_addr].iter().any(|field| field[4..] != [0; 12])
        }) {
            self.connections.log.exempt.push(weft_core::requirement!("PM-7.3.1.3-2"));
        }
        if let Some(request) = request {
            self.state.answers.retain(|known| known.request != request);
            let (answer, since) = (message.octets.clone(), self.connections.link.now());
            self.state.answers.push(Answer { request, answer, other_port, since, again: 0 });
        }
        self.put(message, to, other_port).await
    }
}

impl Datagram {
    fn message(&self) -> Option<RawMessage> {
        raw_message(&self.octets)
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
