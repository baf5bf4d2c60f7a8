//! The tester's TCP connections to the target.
//!
//! | file | content |
//! | --- | --- |
//! | `accept` | connections that the target opens |
//! | `connection` | one connection: unread bytes, position, markers |
//! | `markers` | markers in a stream of FPDUs |
//! | `programs` | the programs that were started as the target |
//! | `segments` | messages in TCP segments that the script chooses |
//! | `stream` | start-up frames and FPDUs in the received stream |
//! | `unsent` | bytes that TCP has not accepted yet |

mod accept;
mod connection;
mod markers;
mod programs;
mod segments;
mod stream;
mod unsent;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weft_core::requirement;
use weft_peer::Instant;
use weft_peer::driver::{EventContent, Link, LinkError, Received, RecordedTraffic, TesterConnection};

pub(in crate::stage) use connection::Connection;
use markers::MarkedStream;
pub(crate) use programs::EndedProgram;
use programs::Programs;
use unsent::Unsent;

use super::rdma::{Exchange, Progress, RdmaSide, StartUpResult};
use super::{Expectation, Log, Recorder, Stop, describe};
use crate::model::{CaseKey, Direction, EventSink, SourceLocation, StepKind};
use crate::stage::Message;
use crate::targets::{Service, Start, Target, down};

/// Time limit in seconds for the target to close its direction after the tester's FIN. After this
/// time, the tester resets the connection.
const CLOSING_SECONDS: f64 = 2.0;

/// The event on the receiving side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stage) enum Arrival {
    Octets,
    Fin,
    Reset,
    TimedOut,
}

/// The connections of one case, and the log of what happens on them.
pub(crate) struct Connections {
    pub(in crate::stage) target: Arc<Target>,
    pub(in crate::stage) link: Link,
    /// How to start an initiator. `None` for a responder.
    pub(in crate::stage) start: Option<Start>,
    pub(in crate::stage) programs: Programs,
    list: Vec<Connection>,
    received: usize,
    sent: usize,
    /// Whether the target has sent something or closed a connection. Otherwise, the tester may have
    /// reached only an open port.
    pub(crate) has_responded: bool,
    key: CaseKey,
    pub(in crate::stage) sink: Arc<dyn EventSink>,
    pub(in crate::stage) log: Log,
    /// The current line of the script.
    pub(crate) at: Option<SourceLocation>,
}

impl Connections {
    pub(in crate::stage) fn new(
        target: Arc<Target>,
        link: Link,
        start: Option<Start>,
        key: CaseKey,
        sink: Arc<dyn EventSink>,
        log: Log,
    ) -> Self {
        Connections {
            target,
            link,
            start,
            programs: Programs::default(),
            list: Vec::new(),
            received: 0,
            sent: 0,
            has_responded: false,
            key,
            sink,
            log,
            at: None,
        }
    }

    /// Returns the current time of the link.
    pub(crate) fn now(&self) -> Instant {
        self.link.now()
    }

    /// Returns the recorder, which adds to the log of the case.
    pub(in crate::stage) fn recorder(&mut self) -> Recorder<'_> {
        self.recorder_of(0)
    }

    /// Returns the recorder for what happens on a connection.
    pub(in crate::stage) fn recorder_of(&mut self, number: u32) -> Recorder<'_> {
        let (now, at) = (self.link.now(), self.at.as_ref());
        Recorder { now, key: &self.key, sink: &*self.sink, log: &mut self.log, number, at }
    }

    /// Returns the operations for MPA, DDP and RDMAP on a connection.
    pub(in crate::stage) fn rdma(&mut self, number: u32) -> RdmaSide<'_> {
        RdmaSide { connections: self, number }
    }

    /// Returns the operations of an exchange on a connection, after start-up.
    pub(in crate::stage) fn exchange<'c>(
        &'c mut self,
        number: u32,
        started: StartUpResult,
        expectation: &'c Expectation,
    ) -> Exchange<'c> {
        Exchange { connections: self, number, started, expectation }
    }

    /// Sets the size in bytes of TCP's receive buffer for the connections that the tester opens
    /// after this call.
    pub(crate) fn set_receive_buffer(&mut self, octets: u32) {
        self.recorder().note(&format!("a receive buffer of {octets} bytes"));
        self.link.set_receive_buffer(octets);
    }

    /// Sets the TCP sequence number of the tester's first byte, for the connections that are opened
    /// after this call.
    pub(crate) fn set_first_sequence(&mut self, number: u32) -> Result<(), Stop> {
        self.recorder().note(&format!("TCP's sequence numbers begin with {number}"));
        let set = self.link.set_first_sequence(number);
        self.check_result(set)
    }

    /// Returns how to start an initiator. `None` for a responder.
    pub(crate) fn start(&self) -> Option<&Start> {
        self.start.as_ref()
    }

    /// Returns what crossed the wire.
    pub(crate) fn traffic(&self) -> RecordedTraffic {
        self.link.traffic().recorded()
    }

    /// Returns the target's address on the last connection, or in the last datagram.
    pub(crate) fn target_address(&self) -> Option<SocketAddr> {
        self.link.traffic().events().iter().rev().find_map(|event| match event.content {
            EventContent::Connected { target, .. } | EventContent::Datagram { target, .. } => Some(target),
            _ => None,
        })
    }

    pub(in crate::stage) fn check_limit(&mut self) -> Result<(), Stop> {
        let limit = self.target.options.limits.connections;
        if self.list.len() >= limit {
            return Err(self.recorder().harness(&format!("the case opens more than {limit} connections")));
        }
        Ok(())
    }

    /// Adds a connection. `direction` is `Sent` if the tester opened it.
    pub(in crate::stage) fn connected(&mut self, end: TesterConnection, direction: Direction) -> u32 {
        self.list.push(Connection {
            end,
            unsent: Unsent::default(),
            unread: Vec::new(),
            unmarked: Vec::new(),
            sending: None,
            receiving: None,
            requests_markers: false,
            has_frame: false,
            sent: VecDeque::new(),
            withheld: None,
            position: 0,
            finished: false,
            settled: None,
            progress: Progress::default(),
            request: None,
        });
        self.log.connections += 1;
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        if direction == Direction::Received {
            self.programs.assign(number);
        }
        self.recorder().step(number, direction, StepKind::Connected, "TCP connection".into(), None);
        number
    }

    /// Sends a message of a script as a stimulus.
    pub(crate) async fn send(&mut self, number: u32, message: &Message) -> Result<(), Stop> {
        self.stimulate(number);
        self.put(number, message).await
    }

    /// Sends a message of a script as a stimulus. Does not wait until TCP has accepted all bytes: the
    /// next calls that receive send the rest.
    pub(crate) async fn send_queued(&mut self, number: u32, message: &Message) -> Result<(), Stop> {
        self.stimulate(number);
        self.put_with(number, message, true).await
    }

    /// Sends bytes in pieces that end at the offsets `cuts`, with `pause` in between. Each piece is
    /// a separate write. If TCP does not join the writes, each piece is a separate segment.
    pub(crate) async fn send_cut(
        &mut self,
        number: u32,
        message: &Message,
        cuts: &[usize],
        pause: Duration,
    ) -> Result<(), Stop> {
        self.stimulate(number);
        let mut begin = 0;
        let ends = cuts.iter().copied().chain([message.octets.len()]);
        for (piece, end) in (1..).zip(ends) {
            if piece > 1 && !pause.is_zero() {
                self.link.pause(self.link.now() + pause).await;
            }
            self.put(number, &message.piece(piece, begin, end)).await?;
            begin = end;
        }
        Ok(())
    }

    /// Waits for this time. The target continues meanwhile.
    pub(crate) async fn pause(&mut self, time: Duration) {
        self.recorder().note(&format!("a pause of {} s", time.as_secs_f64()));
        self.link.pause(self.link.now() + time).await;
    }

    /// Closes only the tester's direction with FIN. The target may continue to send.
    pub(crate) async fn half_close(&mut self, number: u32) -> Result<(), Stop> {
        self.stimulate(number);
        self.finish(number).await
    }

    /// Closes the tester's direction, and waits a short time for the target to close its direction.
    pub(crate) async fn close(&mut self, number: u32) -> Result<(), Stop> {
        self.await_settled(number).await?;
        self.finish(number).await?;
        let deadline = self.link.now() + self.target.scaled(CLOSING_SECONDS);
        loop {
            match self.receive(number, deadline).await? {
                Arrival::Octets => {}
                Arrival::Fin | Arrival::Reset => return self.release(number),
                Arrival::TimedOut => {
                    let text =
                        format!("the target keeps its direction open for {CLOSING_SECONDS} s after the tester's FIN");
                    self.recorder().step(number, Direction::Observed, StepKind::Silence, text, None);
                    return self.abort(number).await;
                }
            }
        }
    }

    /// Waits until `settle_ms` after the Reply. Some implementations fail if a connection ends
    /// immediately after their Reply. For example, a bug in Linux's module `iwcm` sometimes stops
    /// the kernel. If the close is a stimulus, the tester does not wait.
    pub(in crate::stage) async fn await_settled(&mut self, number: u32) -> Result<(), Stop> {
        if let Some(settled) = self.get(number)?.settled.take().filter(|settled| *settled > self.link.now()) {
            self.link.pause(settled).await;
        }
        Ok(())
    }

    /// Resets a connection.
    pub(crate) async fn reset(&mut self, number: u32) -> Result<(), Stop> {
        self.stimulate(number);
        self.abort(number).await
    }

    pub(in crate::stage) async fn abort(&mut self, number: u32) -> Result<(), Stop> {
        let conn = self.get(number)?;
        conn.finished = true;
        let reset = conn.end.reset().await;
        self.recorder().step(number, Direction::Sent, StepKind::Reset, "reset".into(), None);
        reset.map_err(|error| self.recorder().harness(&error.to_string()))?;
        self.release(number)
    }

    /// Releases a connection that is over, because a case can have more connections than the tester
    /// can have sockets.
    fn release(&mut self, number: u32) -> Result<(), Stop> {
        // On the virtual link, this destroys the agent's end of the connection, and the script may
        // still use that end.
        if self.target.service() != Service::Agent {
            self.get(number)?.end.release();
        }
        Ok(())
    }

    /// Counts bytes before they are sent over TCP or UDP. Ends the case if it sends too many bytes.
    pub(in crate::stage) fn check_sent(&mut self, message: &Message) -> Result<(), Stop> {
        self.sent += message.octets.len();
        let limit = self.target.options.limits.sent;
        if self.sent > limit {
            return Err(self.recorder().harness(&format!("the case sends more than {limit} bytes")));
        }
        Ok(())
    }

    pub(in crate::stage) async fn put(&mut self, number: u32, message: &Message) -> Result<(), Stop> {
        self.put_with(number, message, false).await
    }

    /// Sends a message. With `queued`, does not wait until TCP has accepted all bytes.
    async fn put_with(&mut self, number: u32, message: &Message, queued: bool) -> Result<(), Stop> {
        self.check_sent(message)?;
        self.check_not_withheld(number)?;
        let octets = self.framed(number, message)?;
        let conn = self.get(number)?;
        let sent = match queued || !conn.unsent.is_empty() {
            true => conn.unsent.send(&mut conn.end, &octets).await,
            false => conn.end.send(&octets).await,
        };
        // If the tester has inserted markers, the positions of the changed bytes are unknown.
        let marks = if octets.len() == message.octets.len() { &message.marks[..] } else { &[] };
        let octets = describe::octets(&octets, marks);
        self.recorder().step(number, Direction::Sent, StepKind::Octets, message.name.clone(), Some(octets));
        self.check_result(sent)
    }

    /// Returns the bytes that the tester sends for a message.
    fn framed<'m>(&mut self, number: u32, message: &'m Message) -> Result<Cow<'m, [u8]>, Stop> {
        let (octets, is_bad) = self.get(number)?.framed(message);
        if is_bad {
            // A Responder must not send before a correct FPDU arrives. But here the first FPDU has
            // a wrong CRC. Cases about CRCs judge whether the target checks the CRC, so this
            // requirement does not count.
            self.log.exempt.push(requirement!("MPA-7.1.2-17"));
        }
        Ok(octets)
    }

    /// Ends the case if the link could not do what the script requested.
    fn check_result(&mut self, result: Result<(), LinkError>) -> Result<(), Stop> {
        match result {
            Ok(()) => Ok(()),
            // The next receive on the connection reports the reset.
            Err(LinkError::Reset) => Ok(()),
            Err(error @ LinkError::SendTimeout { .. }) => {
                let expectation = Expectation::preparation(Duration::ZERO);
                Err(self.recorder().undecided(&expectation, "the target accepts the bytes", &error.to_string()))
            }
            Err(error @ LinkError::NoSegments) => {
                let why = format!("{error}; the case has to declare capabilities = {{ \"segments\" }}");
                Err(self.recorder().harness(&why))
            }
            Err(error) => Err(self.recorder().harness(&error.to_string())),
        }
    }

    /// Returns the position of the tester's next FPDU in the tester's stream. The position is the
    /// number of bytes after the tester's start-up frame.
    pub(crate) fn position(&mut self, number: u32) -> Result<u64, Stop> {
        Ok(self.get(number)?.position)
    }

    /// Returns the position of the next FPDU in the tester's stream or, with `by_target`, in the
    /// target's stream. If a part of an FPDU of the target was received, returns the position of
    /// its rest. `None` if the stream has no markers.
    pub(crate) fn marked_position(&mut self, number: u32, by_target: bool) -> Result<Option<u64>, Stop> {
        let conn = self.get(number)?;
        // This call counts the received bytes.
        conn.fpdus();
        let stream = if by_target { &conn.receiving } else { &conn.sending };
        Ok(stream.as_ref().map(MarkedStream::position))
    }

    pub(in crate::stage) async fn finish(&mut self, number: u32) -> Result<(), Stop> {
        if self.get(number)?.finished {
            return Ok(());
        }
        self.check_not_withheld(number)?;
        if !self.get(number)?.unsent.is_empty() {
            return Err(self.recorder().harness("the script sends a FIN before TCP has accepted all bytes"));
        }
        let conn = self.get(number)?;
        conn.finished = true;
        match conn.end.finish().await {
            Ok(()) => self.recorder().step(number, Direction::Sent, StepKind::Fin, "close".into(), None),
            Err(LinkError::Reset | LinkError::Finished) => {}
            Err(error) => return Err(self.recorder().harness(&error.to_string())),
        }
        Ok(())
    }

    /// Waits for one event from the target and records it. Appends received bytes, at most `most`, to
    /// the unread bytes.
    async fn receive_at_most(&mut self, number: u32, deadline: Instant, most: usize) -> Result<Arrival, Stop> {
        let conn = self.get(number)?;
        let received = conn.unsent.receive(&mut conn.end, deadline, most).await;
        let (kind, arrival) = match received {
            Ok(Received::Octets(octets)) => {
                self.has_responded = true;
                self.check_received(octets.len())?;
                let text = describe::name(&octets).unwrap_or_else(|| "octets".into());
                let shown = describe::octets(&octets, &[]);
                self.recorder().step(number, Direction::Received, StepKind::Octets, text, Some(shown));
                self.get(number)?.unread.extend_from_slice(&octets);
                return Ok(Arrival::Octets);
            }
            Ok(Received::Fin) => (StepKind::Fin, Arrival::Fin),
            Ok(Received::Reset) => (StepKind::Reset, Arrival::Reset),
            Ok(Received::TimedOut) => return Ok(Arrival::TimedOut),
            Err(error) => return Err(self.recorder().harness(&error.to_string())),
        };
        self.has_responded = true;
        let text = if arrival == Arrival::Fin { "close" } else { "reset" };
        self.recorder().step(number, Direction::Received, kind, text.into(), None);
        if arrival == Arrival::Reset {
            self.get(number)?.finished = true;
        }
        Ok(arrival)
    }

    /// Counts received bytes. Ends the case if the target sends too many.
    pub(in crate::stage) fn check_received(&mut self, octets: usize) -> Result<(), Stop> {
        self.received += octets;
        let limit = self.target.options.limits.received;
        if self.received > limit {
            let expectation = Expectation::preparation(Duration::ZERO);
            let actual = format!("it sent more than {limit} bytes");
            return Err(self.recorder().undecided(&expectation, "the target sends only the requested bytes", &actual));
        }
        Ok(())
    }

    pub(in crate::stage) fn get(&mut self, number: u32) -> Result<&mut Connection, Stop> {
        let index = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
        if index >= self.list.len() {
            return Err(self.recorder().harness(&format!("there is no connection {number}")));
        }
        Ok(&mut self.list[index])
    }

    /// Notes a stimulus on this connection.
    pub(in crate::stage) fn stimulate(&mut self, number: u32) {
        self.log.stimulated();
        self.programs.stimulate(number);
    }

    /// Notes a stimulus without a connection.
    pub(in crate::stage) fn stimulate_last(&mut self) {
        self.log.stimulated();
        self.programs.stimulate_last();
    }

    /// Opens a TCP connection to a responder, or starts an initiator and waits for its connection.
    pub(in crate::stage) async fn open(&mut self) -> Result<u32, Stop> {
        if self.start.is_some() {
            return self.accept().await;
        }
        self.check_limit()?;
        let connected = self.link.connect().await;
        self.opened(connected)
    }

    /// Adds a connection that the tester opened, or ends the case.
    pub(in crate::stage) fn opened(&mut self, connected: Result<TesterConnection, LinkError>) -> Result<u32, Stop> {
        match connected {
            Ok(end) => Ok(self.connected(end, Direction::Sent)),
            Err(error @ (LinkError::Connect { .. } | LinkError::ConnectTimeout { .. })) => {
                self.log.down.get_or_insert_with(|| down::reason(&error));
                Err(self.recorder().unreached("a TCP connection to the target", &error.to_string()))
            }
            Err(error) => Err(self.recorder().harness(&error.to_string())),
        }
    }

    /// Resets the connections that the case left open.
    pub(in crate::stage) async fn leave(&mut self) {
        for index in 0..self.list.len() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            if !self.list[index].finished {
                // This cannot fail, because the connection exists.
                let _ = self.await_settled(number).await;
            }
            if !self.list[index].finished && self.list[index].end.reset().await.is_ok() {
                let text = "reset, because the case is over".to_owned();
                self.recorder().step(number, Direction::Sent, StepKind::Reset, text, None);
            }
        }
        self.list.clear();
        self.programs.clear();
    }
}
