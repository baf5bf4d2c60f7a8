//! The tester while one case runs: its connections to the target, and the record of what it did,
//! saw and decided.
//!
//! Scripts act through a [`Stage`]. An expectation that is not met ends the case: it decides the
//! record and returns [`Stop`], which no script can catch. Which verdict the whole record deserves
//! is judged elsewhere ([`crate::run`]).

mod agent;
mod asked;
mod begins;
mod control;
mod decide;
mod describe;
mod exchange;
mod expect;
mod fpdu;
mod log;
mod mapper;
mod meet;
mod next;
mod programs;
mod sdp;
pub(crate) mod service;
mod terminate;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weft_core::wire::mpa::startup::{HEADER_LEN, REPLY_KEY, REQUEST_KEY};
use weft_core::{RequirementId, requirement};
use weft_peer::Instant;
use weft_peer::driver::{DatagramSocket, Link, LinkError, Received, TapeEvent, TesterConnection, What};

pub(crate) use agent::{CompletionFields, EventFields, PairOptions, event_name, parameters};
pub(crate) use asked::{AskedFields, Ended, SendOptions};
pub(crate) use control::Deviation;
pub(crate) use exchange::Operation;
pub(crate) use expect::{Before, Close, Expectation, ReplyFields};
pub(crate) use fpdu::{FpduFields, HeaderFields, crc_is_right, ulpdu};
pub(crate) use log::{Decision, Log, Met};
pub(crate) use mapper::MapperFields;
pub(crate) use next::Next;
pub(crate) use programs::EndedProgram;
pub use sdp::SdpStart;
pub(crate) use sdp::{Carrier, Ending, Item, Talk, Value, Wanted, hello};
pub(crate) use terminate::TerminateFields;

use crate::model::{Capability, CaseKey, Direction, Event, EventSink, Octets, SourceLocation, Step, StepKind, Verdict};
use crate::script::message::Message;
use crate::targets::{Reached, Service, Start, Target};

/// The case is decided; the record says how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the case is decided")]
pub(crate) struct Stop;

/// Most connections of one case.
const MAX_CONNECTIONS: usize = 1000;
/// Most steps that a transcript holds.
const MAX_STEPS: usize = 10_000;
/// Most octets that a case receives; a target that sends more is cut off.
const MAX_RECEIVED: usize = 16 << 20;
/// Most octets that a case sends over TCP: all of it is kept as evidence.
const MAX_SENT: usize = 64 << 20;

/// One connection of the case.
struct Conn {
    end: TesterConnection,
    /// Received, and not yet looked at by an expectation.
    unread: Vec<u8>,
    /// Octets that the tester sent behind its start-up frame: where its next FPDU begins.
    position: u64,
    finished: bool,
    /// The target has sent its Reply, and is busy with the new connection until then.
    settled: Option<Instant>,
    /// For a plain exchange that is to continue here.
    place: control::Place,
    /// The Request of a target that is the Initiator, once it is here.
    request: Option<Vec<u8>>,
}

/// What a receiving end came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Octets,
    Fin,
    Reset,
    TimedOut,
}

/// What RFC 6581 asks of an enhanced Responder alone. One without the enhanced set-up closes on an
/// enhanced Request (P2P-10-4); on the wire, a wrong Reply of one looks like that of the other.
const OF_ENHANCED_RESPONDERS: [RequirementId; 3] =
    [requirement!("P2P-5-2"), requirement!("P2P-10-2"), requirement!("P2P-10-9")];

/// The tester of one case.
pub(crate) struct Stage {
    target: Arc<Target>,
    link: Link,
    /// What makes an initiator connect.
    start: Option<Start>,
    programs: Vec<programs::Program>,
    key: CaseKey,
    sink: Arc<dyn EventSink>,
    connections: Vec<Conn>,
    /// Those of them that speak SDP, by number.
    talks: BTreeMap<u32, Talk>,
    /// For datagrams to a port mapper.
    sockets: Vec<DatagramSocket>,
    /// Of a target that asks one.
    asked: asked::Asked,
    agent: agent::AgentSide,
    /// Of a control: the lengths of ULPDUs that it tries in place of the step that deviates.
    control: Option<Vec<u16>>,
    received: usize,
    sent: usize,
    /// The target sent something, or closed: it is not merely a port.
    pub(crate) heard: bool,
    pub(crate) log: Log,
}

impl Stage {
    pub(crate) fn new(
        target: Arc<Target>,
        Reached { link, start, agent }: Reached,
        key: CaseKey,
        sink: Arc<dyn EventSink>,
    ) -> Self {
        let mut log = Log::default();
        if !target.capabilities().contains(&Capability::Revision2) {
            log.invited.extend(OF_ENHANCED_RESPONDERS);
        }
        Stage {
            target,
            link,
            start,
            programs: Vec::new(),
            key,
            sink,
            connections: Vec::new(),
            talks: BTreeMap::new(),
            sockets: Vec::new(),
            asked: asked::Asked::default(),
            agent: agent::AgentSide::new(agent),
            control: None,
            received: 0,
            sent: 0,
            heard: false,
            log,
        }
    }

    /// What makes an initiator connect.
    pub(crate) fn start(&self) -> Option<&Start> {
        self.start.as_ref()
    }

    /// Everything that crossed the wire, and how many events and steps the record had no room for.
    pub(crate) fn tape(&self) -> (Vec<TapeEvent>, u64) {
        (self.link.tape().events(), self.link.tape().lost() + self.log.lost)
    }

    /// Where the target's end of the last connection is, or was.
    pub(crate) fn target_address(&self) -> Option<SocketAddr> {
        self.link.tape().events().iter().rev().find_map(|event| match event.what {
            What::Connected { target, .. } | What::Datagram { target, .. } => Some(target),
            _ => None,
        })
    }

    /// A TCP connection and no more: to a responder, or from an initiator, which is started for it.
    /// Gives its number, from 1.
    pub(crate) async fn connect(&mut self, at: Option<&SourceLocation>) -> Result<u32, Stop> {
        if self.target.service() == Service::Agent {
            return self.agent_connection(at).await;
        }
        if self.start.is_some() {
            return self.meet(at).await;
        }
        self.check_room(at)?;
        match self.link.connect().await {
            Ok(end) => Ok(self.connected(end, Direction::Sent)),
            Err(error @ (LinkError::Connect { .. } | LinkError::ConnectTimeout { .. })) => {
                Err(self.unreached("a TCP connection to the target", error.to_string(), at))
            }
            Err(error) => Err(self.harness(at, &error.to_string())),
        }
    }

    fn check_room(&mut self, at: Option<&SourceLocation>) -> Result<(), Stop> {
        match self.connections.len() < MAX_CONNECTIONS {
            true => Ok(()),
            false => Err(self.harness(at, &format!("a case may have {MAX_CONNECTIONS} connections"))),
        }
    }

    /// A connection came about; `direction` says who opened it.
    fn connected(&mut self, end: TesterConnection, direction: Direction) -> u32 {
        self.connections.push(Conn {
            end,
            unread: Vec::new(),
            position: 0,
            finished: false,
            settled: None,
            place: control::Place::default(),
            request: None,
        });
        self.log.connections += 1;
        let number = u32::try_from(self.connections.len()).unwrap_or(u32::MAX);
        if direction == Direction::Received {
            self.opened(number);
        }
        self.step(number, direction, StepKind::Connected, "TCP connection".into(), None);
        number
    }

    /// No connection came about.
    fn unreached(&mut self, expected: &str, actual: String, at: Option<&SourceLocation>) -> Stop {
        self.step(0, Direction::Observed, StepKind::Refused, actual.clone(), None);
        self.log.refused.get_or_insert(actual.clone());
        self.decide(Decision {
            verdict: Verdict::Inconclusive,
            requirements: Vec::new(),
            expected: Some(expected.into()),
            actual: Some(actual),
            explanation: "The target was not reached.".into(),
            at: at.cloned(),
        })
    }

    /// Sends octets as a script wants them.
    pub(crate) async fn send(
        &mut self,
        number: u32,
        message: &Message,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        self.stimulates(number);
        self.put(number, message, at).await
    }

    /// Sends octets in pieces, cut behind these counts of them, with `pause` in between. Each piece
    /// is a write of its own, and so, where TCP does not join them, a segment of its own.
    pub(crate) async fn send_cut(
        &mut self,
        number: u32,
        message: &Message,
        cuts: &[usize],
        pause: Duration,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        self.stimulates(number);
        let mut begin = 0;
        let ends = cuts.iter().copied().chain([message.octets.len()]);
        for (piece, end) in (1..).zip(ends) {
            if piece > 1 && !pause.is_zero() {
                self.link.pause(self.link.now() + pause).await;
            }
            self.put(number, &message.piece(piece, begin, end), at).await?;
            begin = end;
        }
        Ok(())
    }

    /// Lets time pass; the target goes on meanwhile.
    pub(crate) async fn pause(&mut self, time: Duration) {
        self.step(0, Direction::Observed, StepKind::Note, format!("a pause of {} s", time.as_secs_f64()), None);
        self.link.pause(self.link.now() + time).await;
    }

    /// Closes the tester's half alone: FIN. The target may go on sending.
    pub(crate) async fn half_close(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<(), Stop> {
        self.stimulates(number);
        self.finish(number, at).await
    }

    /// Closes the tester's half, and waits a while for the target to do the same.
    pub(crate) async fn close(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<(), Stop> {
        self.leave_time(number, at).await?;
        self.finish(number, at).await?;
        let deadline = self.link.now() + self.target.scaled(CLOSING_SECONDS);
        loop {
            match self.receive(number, deadline, at).await? {
                Arrival::Octets => {}
                Arrival::Fin | Arrival::Reset => return Ok(()),
                Arrival::TimedOut => {
                    let text = format!("the target keeps its half open for {CLOSING_SECONDS} s after the tester's FIN");
                    self.step(number, Direction::Observed, StepKind::Silence, text, None);
                    return self.abort(number, at).await;
                }
            }
        }
    }

    /// Right behind its Reply some implementations do not bear an end: Linux's `iwcm` stops with a
    /// bug now and then. An end that is no stimulus comes `settle_ms` behind it.
    async fn leave_time(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<(), Stop> {
        if let Some(settled) = self.conn(number, at)?.settled.take().filter(|settled| *settled > self.link.now()) {
            self.link.pause(settled).await;
        }
        Ok(())
    }

    /// Resets a connection.
    pub(crate) async fn reset(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<(), Stop> {
        self.stimulates(number);
        self.abort(number, at).await
    }

    async fn abort(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<(), Stop> {
        let conn = self.conn(number, at)?;
        conn.finished = true;
        let reset = conn.end.reset().await;
        self.step(number, Direction::Sent, StepKind::Reset, "reset".into(), None);
        reset.map_err(|error| self.harness(at, &error.to_string()))
    }

    /// Ends what the case left open, so that the evidence is whole and the target free.
    pub(crate) async fn leave(&mut self) {
        self.agent_leave().await;
        for index in 0..self.connections.len() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            if !self.connections[index].finished {
                // There is such a connection.
                let _ = self.leave_time(number, None).await;
            }
            if !self.connections[index].finished && self.connections[index].end.reset().await.is_ok() {
                self.step(number, Direction::Sent, StepKind::Reset, "reset, the case is over".into(), None);
            }
        }
        self.connections.clear();
        self.programs.clear();
    }

    /// Notes something for people.
    pub(crate) fn note(&mut self, text: &str) {
        const MOST: usize = 1000;
        let text = text.chars().take(MOST).collect();
        self.step(0, Direction::Observed, StepKind::Note, text, None);
    }

    /// Counts what is about to be sent against what a case may send, by whatever way.
    fn may_send(&mut self, message: &Message, at: Option<&SourceLocation>) -> Result<(), Stop> {
        self.sent += message.octets.len();
        // A write that the transcript has no room for would cost memory all the same.
        if self.sent > MAX_SENT || self.log.steps.len() >= MAX_STEPS {
            let why = format!("a case may send {MAX_SENT} octets, and have {MAX_STEPS} events");
            return Err(self.harness(at, &why));
        }
        Ok(())
    }

    async fn put(&mut self, number: u32, message: &Message, at: Option<&SourceLocation>) -> Result<(), Stop> {
        self.may_send(message, at)?;
        let conn = self.conn(number, at)?;
        let begin = conn.position;
        let startup = behind_startup(&message.octets);
        conn.position = match startup {
            Some(behind) => behind as u64,
            None => begin + message.octets.len() as u64,
        };
        let is_bad = match startup.is_none() && conn.place.has_markers() {
            true => conn.place.sends(&control::without_markers(begin, &message.octets)),
            false => conn.place.sends(&message.octets),
        };
        let sent = conn.end.send(&message.octets).await;
        if is_bad {
            // It gives no leave to send; whether the target sees that is for the rules about CRCs.
            self.log.invited.push(requirement!("MPA-7.1.2-17"));
        }
        let octets = describe::octets(&message.octets, &message.marks);
        self.step(number, Direction::Sent, StepKind::Octets, message.name.clone(), Some(octets));
        match sent {
            Ok(()) => Ok(()),
            // The next look at the connection tells it.
            Err(LinkError::Reset) => Ok(()),
            Err(error @ LinkError::SendTimeout { .. }) => {
                let expectation = Expectation::preparation(Duration::ZERO, at);
                Err(self.undecided(&expectation, "the target takes the octets", &error.to_string()))
            }
            Err(error) => Err(self.harness(at, &error.to_string())),
        }
    }

    /// Where the tester's next FPDU begins in its stream: octets sent behind its start-up frame.
    pub(crate) fn position(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<u64, Stop> {
        Ok(self.conn(number, at)?.position)
    }

    async fn finish(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<(), Stop> {
        let conn = self.conn(number, at)?;
        if conn.finished {
            return Ok(());
        }
        conn.finished = true;
        match conn.end.finish().await {
            Ok(()) => self.step(number, Direction::Sent, StepKind::Fin, "close".into(), None),
            Err(LinkError::Reset | LinkError::Finished) => {}
            Err(error) => return Err(self.harness(at, &error.to_string())),
        }
        Ok(())
    }

    /// Waits for one thing from the target and writes it down. Octets go behind the unread ones.
    async fn receive(&mut self, number: u32, deadline: Instant, at: Option<&SourceLocation>) -> Result<Arrival, Stop> {
        let received = self.conn(number, at)?.end.receive(deadline).await;
        let (kind, arrival) = match received {
            Ok(Received::Octets(octets)) => {
                self.heard = true;
                self.has_room(octets.len(), at)?;
                let text = describe::name(&octets).unwrap_or_else(|| "octets".into());
                let shown = describe::octets(&octets, &[]);
                self.step(number, Direction::Received, StepKind::Octets, text, Some(shown));
                self.conn(number, at)?.unread.extend_from_slice(&octets);
                return Ok(Arrival::Octets);
            }
            Ok(Received::Fin) => (StepKind::Fin, Arrival::Fin),
            Ok(Received::Reset) => (StepKind::Reset, Arrival::Reset),
            Ok(Received::TimedOut) => return Ok(Arrival::TimedOut),
            Err(error) => return Err(self.harness(at, &error.to_string())),
        };
        self.heard = true;
        let text = if arrival == Arrival::Fin { "close" } else { "reset" };
        self.step(number, Direction::Received, kind, text.into(), None);
        if arrival == Arrival::Reset {
            self.conn(number, at)?.finished = true;
        }
        Ok(arrival)
    }

    /// So many octets of the target's are to be kept. One that floods ends its case.
    fn has_room(&mut self, octets: usize, at: Option<&SourceLocation>) -> Result<(), Stop> {
        self.received += octets;
        if self.received > MAX_RECEIVED {
            let expectation = Expectation::preparation(Duration::ZERO, at);
            let actual = format!("more than {MAX_RECEIVED} octets");
            return Err(self.undecided(&expectation, "a target that sends what is asked of it", &actual));
        }
        Ok(())
    }

    fn conn(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<&mut Conn, Stop> {
        let index = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
        if index >= self.connections.len() {
            return Err(self.harness(at, &format!("there is no connection {number}")));
        }
        Ok(&mut self.connections[index])
    }

    fn step(&mut self, connection: u32, direction: Direction, kind: StepKind, text: String, octets: Option<Octets>) {
        if self.log.steps.len() >= MAX_STEPS {
            self.log.lost += 1;
            return;
        }
        let at_ns = self.link.now().as_nanos();
        let step = Step { at_ns, connection, direction, kind, text, octets };
        self.sink.event(&Event::CaseStep { key: self.key.clone(), step: step.clone() });
        self.log.steps.push(step);
    }
}

/// Octets behind the start-up frame that a message begins with; `None`: it begins with none.
fn behind_startup(octets: &[u8]) -> Option<usize> {
    let is_frame = octets.starts_with(&REQUEST_KEY) || octets.starts_with(&REPLY_KEY);
    let pd_length = octets.get(..HEADER_LEN).filter(|_| is_frame)?.last_chunk()?;
    Some(octets.len().saturating_sub(HEADER_LEN + usize::from(u16::from_be_bytes(*pd_length))))
}

/// Seconds that a target has for closing its half after the tester's FIN, before the tester resets.
const CLOSING_SECONDS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_begins_behind_the_start_up_frame() {
        assert_eq!(behind_startup(b"MPA ID Req Frame\x40\x01\0\x02hi"), Some(0));
        assert_eq!(behind_startup(b"MPA ID Rep Frame\x40\x01\0\x02hi1234"), Some(4));
        assert_eq!(behind_startup(b"MPA ID Rep Frame\x40\x01\0\x02h"), Some(0));
        assert_eq!(behind_startup(b"MPA ID Rep Frame"), None);
        assert_eq!(behind_startup(&[0; 40]), None);
    }
}
