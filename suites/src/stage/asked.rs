//! A target that asks a port mapper where to connect to: it is started, it asks, and the tester is its PM Server and the service.
//!
//! What comes is kept in the order of its kind: a connection that is not waited for yet does not get in the way of a datagram that is. A
//! PMReq that was answered is answered again alike when it comes again, as a PM Server has to (section 7.5.2), and no expectation sees it: the
//! answer may be lost, or on its way. The third that is neither is seen; nobody loses so many.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weft_core::RequirementId;
use weft_core::wire::portmap::{Message as PmMessage, MessageType, RawMessage};
use weft_peer::Instant;
use weft_peer::driver::Call;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::mapper::{MapperFields, padded};
use super::meet::{COUNTDOWN, GRACE, LOOK};
use super::{Direction, Expectation, Stage, StepKind, Stop};
use crate::model::{Event, Octets, SourceLocation};
use crate::script::message::Message;
use crate::target::{COMMAND_SECONDS, PERSON_SECONDS, Running};

/// TCP addresses that one case may tell of.
const MAX_PLACES: usize = 64;
/// Repetitions behind an answer that chance explains, and how long an answer may cross with some that do not count.
const MOST_LOST: u32 = 2;
const CROSSING: Duration = Duration::from_secs(1);
/// The number of the service that good exchanges are for.
const GOOD: u32 = 0;

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

    /// Has the target connect to a service, and waits until something comes of it. Connections that came before and were not looked at are
    /// none of it.
    pub(crate) async fn asked_start(&mut self, service: SocketAddr, at: Option<&SourceLocation>) -> Result<(), Stop> {
        const EXPECTED: &str = "a datagram or a connection from the target";
        let Some(start) = self.start.clone() else {
            return Err(self.harness(at, "the target is a responder, and does not ask"));
        };
        self.link.ask(service).map_err(|error| self.harness(at, &error.to_string()))?;
        let desk = self.link.desk(service.is_ipv6());
        match start.start(service, Some(desk)).await {
            Ok(running) => self.running.push(running),
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
            let Some((line, status)) = self.running.last_mut().and_then(Running::ended) else { continue };
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
        aside: bool,
        request: Option<Vec<u8>>,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        self.log.stimulated();
        // Who reflects the addresses that it was sent may reflect all of their fields (section 7.3.1.9).
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

    /// A datagram of these fields comes next.
    pub(crate) async fn asked_expect(
        &mut self,
        expectation: &Expectation,
        fields: &AskedFields,
    ) -> Result<Datagram, Stop> {
        let expected = fields.message.to_string();
        let deadline = self.link.now() + expectation.within;
        let at = expectation.at.as_ref();
        let datagram = loop {
            if fields.no_connection && !self.asked.connections.is_empty() && self.asked.datagrams.is_empty() {
                return Err(self.unmet(expectation, &expected, "it connected, and asked nobody"));
            }
            if let Some(datagram) = self.asked.datagrams.pop_front() {
                if fields.past.is_none_or(|past| datagram.message_type() != Some(past)) {
                    break datagram;
                }
                continue;
            }
            if !self.asked_call(deadline, at).await? {
                let text = self.silence(0, expectation);
                return Err(self.overdue(expectation, &expected, &text));
            }
        };
        let Ok((raw, _)) = RawMessage::read_from_prefix(&datagram.octets) else {
            self.mark_wrong(0);
            let actual = format!("it sent {} octets", datagram.octets.len());
            return Err(self.unmet(expectation, &expected, &actual));
        };
        let miss = match fields.message.miss(&raw, true) {
            None if fields.aside != datagram.aside => Some(", to another port of the port mapper's".to_owned()),
            other => other,
        };
        match miss {
            None => {
                self.met(0, expectation, &expected, raw.mt().name());
                Ok(datagram)
            }
            Some(what) => {
                self.mark_wrong(0);
                Err(self.unmet(expectation, &expected, &format!("it sent {}{what}", raw.mt().name())))
            }
        }
    }

    /// Counts what comes until nothing does for so long, and for four times the longest gap: timers may grow.
    pub(crate) async fn asked_repeats(
        &mut self,
        within: Duration,
        most: usize,
        at: Option<&SourceLocation>,
    ) -> Result<(usize, Ended), Stop> {
        /// A client that doubles its timer is at four times the gap before two steps later.
        const LONGER: u32 = 4;
        let (mut count, mut longest, mut last) = (0, Duration::ZERO, self.link.now());
        loop {
            while self.asked.datagrams.pop_front().is_some() {
                let now = self.link.now();
                (longest, last) = (longest.max(now.saturating_duration_since(last)), now);
                count += 1;
                if count >= most {
                    return Ok((count, Ended::Most));
                }
            }
            if !self.asked.connections.is_empty() {
                return Ok((count, Ended::Connection));
            }
            if !self.asked_call(last + within.max(longest * LONGER), at).await? {
                return Ok((count, Ended::Quiet));
            }
        }
    }

    /// Is the next thing that came, and was not looked at, a connection?
    pub(crate) fn asked_waiting(&self) -> Option<bool> {
        match (self.asked.datagrams.is_empty(), self.asked.connections.is_empty()) {
            (false, _) => Some(false),
            (true, false) => Some(true),
            (true, true) => None,
        }
    }

    /// The connection comes from this address, or this port.
    pub(crate) fn asked_from(
        &mut self,
        number: u32,
        expectation: &Expectation,
        ip: Option<IpAddr>,
        port: Option<u16>,
    ) -> Result<(), Stop> {
        let (_, target) = self.conn(number, expectation.at.as_ref())?.end.addresses();
        let wanted = SocketAddr::new(ip.unwrap_or(target.ip()), port.unwrap_or(target.port()));
        let (expected, actual) = (format!("a connection from {wanted}"), format!("one from {target}"));
        self.check(wanted == target, expectation, &expected, &actual)
    }

    /// No datagram comes; connections may.
    pub(crate) async fn asked_quiet(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        let expected = "no datagram";
        let deadline = self.link.now() + expectation.within;
        loop {
            if let Some(datagram) = self.asked.datagrams.pop_front() {
                self.mark_wrong(0);
                let name = PmMessage::parse(&datagram.octets).map_or("no message", |m| m.message_type.name());
                let actual = format!("it sent one of {} octets ({name})", datagram.octets.len());
                return Err(self.unmet(expectation, expected, &actual));
            }
            if !self.asked_call(deadline, expectation.at.as_ref()).await? {
                let text = self.silence(0, expectation);
                self.met(0, expectation, expected, &text);
                return Ok(());
            }
        }
    }

    /// The next connection goes to this place.
    pub(crate) async fn asked_connection(&mut self, expectation: &Expectation, place: SocketAddr) -> Result<u32, Stop> {
        let expected = format!("a TCP connection to {place}");
        let deadline = self.link.now() + expectation.within;
        let at = expectation.at.as_ref();
        while self.asked.connections.is_empty() {
            if !self.asked_call(deadline, at).await? {
                return Err(self.overdue(expectation, &expected, "it does not connect"));
            }
        }
        let Some((to, number)) = self.asked.connections.pop_front() else {
            return Err(self.harness(at, "there is no connection"));
        };
        let actual = format!("it connects to {to}");
        if to != place {
            return Err(self.unmet(expectation, &expected, &actual));
        }
        self.met(number, expectation, &expected, &actual);
        Ok(number)
    }

    /// No connection comes; datagrams may.
    pub(crate) async fn asked_no_connection(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        let deadline = self.link.now() + expectation.within;
        let expected = "no connection";
        loop {
            if let Some((to, _)) = self.asked.connections.pop_front() {
                return Err(self.unmet(expectation, expected, &format!("it connects to {to}")));
            }
            if !self.asked_call(deadline, expectation.at.as_ref()).await? {
                let text = format!("none within {} s", expectation.within.as_secs_f64());
                self.met(0, expectation, expected, &text);
                return Ok(());
            }
        }
    }

    /// The target asks for a service, is sent to the tester, acknowledges that, and connects if it does.
    pub(super) async fn asked_good_exchange(
        &mut self,
        shows: Vec<RequirementId>,
        within: Duration,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        let alive = self.log.alive_before;
        let v6 = self.link.desk(false).is_ipv6();
        let service = self.asked_service(GOOD, v6, at)?;
        let place = self.asked_place(v6, false, true, at)?;
        // What the case left is not looked at any more.
        self.asked.datagrams.clear();
        self.asked_start(service, at).await?;
        let preparation = Expectation::preparation(within, at);
        let deadline = self.link.now() + within;
        let asked = loop {
            match self.asked.datagrams.pop_front() {
                Some(datagram) if datagram.asks_for(service) => break datagram,
                Some(_) => {}
                None if self.asked_call(deadline, at).await? => {}
                None => return Err(self.undecided(&preparation, "a PMReq", "it does not ask")),
            }
        };
        let accept = accepting(&asked.octets, place);
        let handle = asked.message().map(|raw| raw.assoc_handle.get());
        let (answer, since) = (accept.octets.clone(), self.link.now());
        self.asked.answers.push(Answer { request: asked.octets, answer, aside: false, since, again: 0 });
        self.asked_put(&accept, asked.from, false, at).await?;
        let ack = AskedFields {
            message: MapperFields { message_type: Some(MessageType::PM_ACK), handle, ..MapperFields::default() },
            past: Some(MessageType::PM_REQ),
            ..AskedFields::default()
        };
        self.asked_expect(&Expectation { shows, ..preparation.clone() }, &ack).await?;
        while self.target.connects() {
            match self.asked.connections.pop_front() {
                Some((to, number)) if to == place => {
                    self.close(number, at).await?;
                    break;
                }
                Some(_) => {}
                None if self.asked_call(deadline, at).await? => {}
                None => {
                    let expected = format!("a TCP connection to {place}");
                    return Err(self.undecided(&preparation, &expected, "it does not connect"));
                }
            }
        }
        self.log.alive_before = alive;
        self.log.alive();
        Ok(())
    }
}

impl Datagram {
    fn message(&self) -> Option<RawMessage> {
        RawMessage::read_from_prefix(&self.octets).ok().map(|(raw, _)| raw)
    }

    fn message_type(&self) -> Option<MessageType> {
        self.message().map(|raw| raw.mt())
    }

    /// Is it a PMReq for this service?
    fn asks_for(&self, service: SocketAddr) -> bool {
        self.message().is_some_and(|raw| raw.mt() == MessageType::PM_REQ && raw.ap_port.get() == service.port())
    }
}

impl Asked {
    /// Things that came and were not looked at.
    fn waiting(&self) -> usize {
        self.datagrams.len() + self.connections.len()
    }
}

/// The right PMAccept to a PMReq, whatever that was; for one connection.
fn accepting(request: &[u8], place: SocketAddr) -> Message {
    let mut octets = request.to_vec();
    octets.resize(RawMessage::LEN, 0);
    let mut raw = RawMessage::read_from_bytes(&octets).unwrap_or_else(|_| RawMessage::new_zeroed());
    raw.ver_mt_ipv = RawMessage::first_octet(0, MessageType::PM_ACCEPT, raw.ipv());
    (raw.pm_time, raw.reserved, raw.ap_port) = (0, 0.into(), place.port().into());
    raw.ap_ip_addr = match place.ip() {
        IpAddr::V4(_) => padded(place),
        IpAddr::V6(ip) => ip.octets(),
    };
    Message::new("PMAccept", raw.as_bytes().to_vec())
}
