//! One iWARP connection as a state machine without I/O.
//!
//! The methods have four kinds:
//!
//! - **Getters** change nothing.
//! - **`handle_*`** process an input from TCP or the clock: bytes, FIN, RST, or a time-out (see
//!   `poll_timeout`).
//! - **Commands** come from the user: accept, reject, post a Send or receive, close, abort.
//! - **`poll_*`** return what the driver has to do next.
//!
//! After each `handle_*` call and each command, a driver calls
//! [`poll_event`](Connection::poll_event) until this function returns `None`. The driver polls the
//! events before the transmits, because the user can answer events with commands. Then the driver
//! calls [`poll_transmit`](Connection::poll_transmit), which can create new events. When both
//! functions return `None`, the driver waits for input, or for the time that
//! [`poll_timeout`](Connection::poll_timeout) returned. The time that the driver passes as `now`
//! must never decrease. The driver may skip `poll_transmit` while TCP accepts no more bytes. The
//! memory of the connection depends only on the settings and on what the user posts. The peer
//! cannot increase this memory.
//!
//! ```
//! use weft_peer::{Connection, Event, Instant, Settings, Transmit};
//!
//! let now = Instant::ORIGIN;
//! let mut initiator = Connection::initiate(now, Settings::default()).unwrap();
//! let mut responder = Connection::respond(now, Settings::default());
//! let Some(Transmit::Octets(request)) = initiator.poll_transmit(now) else { panic!("a Request") };
//! responder.handle_octets(now, &request);
//! let Some(Transmit::Octets(reply)) = responder.poll_transmit(now) else { panic!("a Reply") };
//! initiator.handle_octets(now, &reply);
//! assert!(matches!(initiator.poll_event(), Some(Event::Established { .. })));
//! ```

mod closing;
mod event;
pub(crate) mod settings;
mod startup;
mod stream;

pub use event::{CloseCause, Closed, ClosedBy, Event, Transmit};
pub use settings::Settings;

use core::time::Duration;
use std::collections::VecDeque;
use std::mem;

use bytes::Bytes;
use weft_core::crc::CRC_LEN;

use self::stream::{Stream, StreamEnd};
use crate::hostile::{self, Conduct};
use crate::mpa::{PrivateDataTooLong, StartupError, WaitDecision, WaitReply, WaitRequest};
use crate::rdmap::{Delivery, Outbound, SendId};
use crate::reject::reject_if;
use crate::time::Instant;

/// Longest pause in the middle of a message after which the [deviation](crate::hostile)
/// `mpa.closes-after-pause` does not close the connection.
const LONGEST_PAUSE: Duration = Duration::from_millis(1200);

/// A connection, as MPA Initiator or Responder. The [module](self) explains how to drive it.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    state: State,
    /// Start-up frames, streaming data and resets for the driver. Most FPDUs are not in this queue:
    /// they are built when the driver polls.
    outgoing: VecDeque<Transmit>,
    events: VecDeque<Event>,
    deadline: Option<Instant>,
    fin: Fin,
    peer_fin: bool,
    /// Side that ended the connection, and the first cause.
    ending: Option<Closed>,
    /// True if the peer closed or reset the connection in answer to an enhanced Request.
    refused_enhanced: bool,
    conduct: Conduct,
}

#[derive(Debug)]
enum State {
    /// Before MPA starts: bytes pass through unchanged.
    Streaming,
    /// The Responder waits for a complete Request.
    WaitRequest(WaitRequest),
    /// The Responder waits for the user to accept or reject.
    WaitDecision(WaitDecision),
    /// The Initiator waits for a complete Reply.
    WaitReply(WaitReply),
    /// After start-up: FPDUs are received and sent. A Responder possibly still waits for the first
    /// FPDU.
    Operating(Box<Stream>),
    /// After an error: the message in progress and the Terminate are still sent. Received data is
    /// dropped (DDP-7.1-18).
    Draining(Box<Outbound>),
    /// Start-up failed, or the connection no longer uses MPA. Only FIN is sent. Received data is
    /// dropped.
    Silent,
    /// The connection is closed, and sends and receives nothing.
    Closed,
}

/// State of this endpoint's direction of the TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fin {
    Open,
    /// FIN will be sent after all queued bytes.
    Wanted,
    Sent,
}

/// Reason why a command is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No Request waits for the user's answer.
    #[error("there is no Request to answer")]
    NoRequest,
    /// MPA has started, or the connection is closing.
    #[error("the connection is not in streaming mode")]
    NotStreaming,
    /// The private data is too long for an enhanced frame.
    #[error(transparent)]
    PrivateData(PrivateDataTooLong),
    /// Start-up is not complete, or the connection is closing (DDP-6.2.1-4).
    #[error("the connection is not in Full Operation")]
    NotOperating,
    /// The number of posted Sends or receives has reached the limit of the settings.
    #[error("the queue is full: {0} items are already posted")]
    QueueFull(usize),
    /// The message is longer than 2^32 - 1 bytes (DDP-5.2-2).
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
}

impl Connection {
    fn new(mut settings: Settings, state: State) -> Self {
        hostile::hook::settings(&mut settings);
        let conduct = hostile::hook::conduct(&settings.deviations);
        Connection {
            conduct,
            settings,
            state,
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
            deadline: None,
            fin: Fin::Open,
            peer_fin: false,
            ending: None,
            refused_enhanced: false,
        }
    }
}

/// Getters.
impl Connection {
    /// Returns whether the connection is closed and the driver has polled everything.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Closed) && self.outgoing.is_empty() && self.events.is_empty()
    }

    /// Returns whether the next transmit is a reset. If so, the driver can drop bytes that TCP has
    /// not accepted.
    #[must_use]
    pub fn is_aborting(&self) -> bool {
        matches!(self.outgoing.front(), Some(Transmit::Reset))
    }

    /// Returns whether Sends can be posted.
    #[must_use]
    pub fn is_operating(&self) -> bool {
        self.operating().is_some() && self.fin == Fin::Open
    }

    /// Returns whether the peer closed or reset the connection in answer to an enhanced Request. If
    /// the user can work without the enhanced set-up, the user may then open a new connection with
    /// [`Settings::unenhanced`] (P2P-10-5).
    #[must_use]
    pub fn may_fall_back(&self) -> bool {
        self.refused_enhanced
    }

    /// Number of posted Sends that are incomplete.
    #[must_use]
    pub fn outstanding_sends(&self) -> usize {
        self.operating().map_or(0, |stream| stream.outbound.outstanding())
    }

    /// Number of payload bytes of all incomplete Sends. Some of these bytes were possibly sent
    /// already.
    #[must_use]
    pub fn outstanding_octets(&self) -> usize {
        self.operating().map_or(0, |stream| stream.outbound.outstanding_octets())
    }

    /// Number of posted receives that are unused.
    #[must_use]
    pub fn posted_receives(&self) -> usize {
        self.operating().map_or(0, |stream| stream.inbound.posted_receives())
    }

    fn operating(&self) -> Option<&Stream> {
        if let State::Operating(stream) = &self.state { Some(stream) } else { None }
    }
}

/// Inputs from TCP and the clock.
impl Connection {
    /// Processes received bytes. TCP can split the bytes at any position.
    pub fn handle_octets(&mut self, now: Instant, mut octets: &[u8]) {
        match mem::replace(&mut self.state, State::Silent) {
            State::Streaming => {
                if !octets.is_empty() {
                    self.events.push_back(Event::Streamed(Bytes::copy_from_slice(octets)));
                }
                self.state = State::Streaming;
            }
            State::WaitRequest(state) => self.handle_request(now, state, octets),
            State::WaitReply(state) => self.handle_reply(now, state, octets),
            // An Initiator must not send before it has the Reply.
            State::WaitDecision(_) if !octets.is_empty() => {
                let error = StartupError::Surplus { octets: octets.len() };
                self.end(now, ClosedBy::Library, CloseCause::Startup(error));
            }
            State::Operating(stream) => self.handle_fpdus(now, stream, &mut octets),
            state => self.state = state,
        }
    }

    /// Processes the peer's FIN.
    pub fn handle_fin(&mut self, now: Instant) {
        if self.conduct.completes_cut_crc {
            self.complete_cut_crc(now);
        }
        self.peer_fin = true;
        self.note_refusal();
        match &self.state {
            State::WaitRequest(_) | State::WaitReply(_) => {
                let why = match self.startup_octets() {
                    0 => CloseCause::Fin,
                    received => {
                        self.answer_malformed();
                        CloseCause::Startup(StartupError::CutShort { received })
                    }
                };
                self.end(now, ClosedBy::Peer, why);
            }
            State::WaitDecision(_) => self.end(now, ClosedBy::Peer, CloseCause::Fin),
            State::Operating(stream) if self.conduct.ignores_fin_in_message && !stream.is_at_boundary() => {}
            State::Operating(stream) => {
                let (at_boundary, may_send) = (stream.is_at_boundary(), stream.may_send);
                if !at_boundary {
                    self.end(now, ClosedBy::Peer, CloseCause::CutShort);
                } else {
                    self.half_close();
                    if !may_send || self.conduct.stops_at_fin {
                        // A Responder may send only after a valid FPDU has arrived, but no FPDU can
                        // arrive after FIN.
                        self.end(now, ClosedBy::Peer, CloseCause::Fin);
                    }
                }
            }
            State::Streaming | State::Silent if self.fin == Fin::Open => self.half_close(),
            State::Streaming | State::Draining(_) | State::Silent | State::Closed => {}
        }
        self.finish_when_closed();
    }

    /// Processes the last FPDU if the FIN has cut its CRC field.
    fn complete_cut_crc(&mut self, now: Instant) {
        let State::Operating(stream) = &mut self.state else { return };
        if let Some(missing) = stream.ignore_missing_crc() {
            self.handle_octets(now, &[0; CRC_LEN][..missing]);
        }
    }

    /// Processes a reset of the connection.
    pub fn handle_reset(&mut self, _now: Instant) {
        self.note_refusal();
        self.ending.get_or_insert(Closed { by: ClosedBy::Peer, why: CloseCause::Reset });
        self.outgoing.clear();
        self.finish();
    }

    /// Processes the time `now`. Does nothing before the time that
    /// [`poll_timeout`](Self::poll_timeout) returned.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.deadline = None;
        if self.fin != Fin::Open {
            self.abort_now();
            return;
        }
        match &self.state {
            State::WaitRequest(state) if state.received() == 0 => {
                self.end(now, ClosedBy::Library, CloseCause::NoRequest);
            }
            State::WaitRequest(_) | State::WaitReply(_) => self.end(now, ClosedBy::Library, CloseCause::StartupTimeout),
            State::Operating(_) => self.end(now, ClosedBy::Library, CloseCause::FirstFpduTimeout),
            State::Silent if self.conduct.closes_late => self.end(now, ClosedBy::Library, CloseCause::StartupTimeout),
            State::Streaming | State::WaitDecision(_) | State::Draining(_) | State::Silent | State::Closed => {}
        }
    }
}

/// Commands.
impl Connection {
    /// Posts a Send. A Responder sends the message only after the first valid FPDU has arrived.
    ///
    /// # Errors
    /// Start-up is not complete or the connection is closing. Too many Sends are outstanding. The
    /// message is too long.
    pub fn post_send(&mut self, payload: impl Into<Bytes>) -> Result<SendId, CommandError> {
        let payload = payload.into();
        let max = self.settings.max_sends;
        let (State::Operating(stream), Fin::Open) = (&mut self.state, self.fin) else {
            return Err(CommandError::NotOperating);
        };
        reject_if(stream.outbound.outstanding() >= max, CommandError::QueueFull(max))?;
        reject_if(u32::try_from(payload.len()).is_err(), CommandError::TooLong(payload.len()))?;
        Ok(stream.outbound.post_send(payload))
    }

    /// Posts a receive of `length` bytes, for one Send. Memory is allocated when payload arrives.
    ///
    /// # Errors
    /// Start-up is not complete or the connection has an error. Too many receives are posted.
    pub fn post_receive(&mut self, length: u32) -> Result<(), CommandError> {
        let max = self.settings.max_receives;
        let State::Operating(stream) = &mut self.state else { return Err(CommandError::NotOperating) };
        reject_if(stream.inbound.posted_receives() >= max, CommandError::QueueFull(max))?;
        stream.inbound.post_receive(length);
        Ok(())
    }
}

/// Outputs for the driver and the user.
impl Connection {
    /// Returns the next item for the driver to send. The driver calls this function when TCP can
    /// accept more bytes. [`Event::SendCompleted`] means that this function has returned the last
    /// bytes of the Send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if !self.conduct.splits_fpdus
            && let Some(transmit) = self.outgoing.pop_front()
        {
            return Some(transmit);
        }
        let fpdu = match &mut self.state {
            State::Operating(stream) if stream.may_send => stream.outbound.next_fpdu(),
            State::Draining(outbound) => outbound.next_fpdu(),
            _ => None,
        };
        if let Some(mut fpdu) = fpdu {
            self.events.extend(fpdu.completes.map(Event::SendCompleted));
            if fpdu.octets.is_empty() {
                // A [deviation](crate::hostile) delays this FPDU.
                return self.poll_transmit(now);
            }
            self.split_or_cut_fpdu(&mut fpdu.octets);
            if self.fin == Fin::Wanted {
                self.deadline = Some(now + self.settings.close_timeout);
            }
            return Some(Transmit::Octets(fpdu.octets.into()));
        }
        if let Some(rest) = self.outgoing.pop_front() {
            return Some(rest);
        }
        if self.fin == Fin::Wanted {
            self.fin = Fin::Sent;
            if self.conduct.resets {
                self.finish();
                return Some(Transmit::Reset);
            }
            self.deadline = Some(now + self.settings.close_timeout);
            self.finish_when_closed();
            return Some(Transmit::Fin);
        }
        None
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Time at which the driver has to call [`handle_timeout`](Self::handle_timeout). `None` if no
    /// time-out is active.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}

impl Connection {
    fn handle_fpdus(&mut self, now: Instant, mut stream: Box<Stream>, octets: &mut &[u8]) {
        if self.fin != Fin::Open {
            self.deadline = Some(now + self.settings.close_timeout);
        }
        let waited = stream.awaits_first;
        let mut messages = 0;
        loop {
            match stream.read(octets) {
                None => break,
                Some(Ok(Delivery::Message { octets: payload, solicited })) => {
                    self.events.push_back(Event::Received { octets: payload, solicited });
                    messages += 1;
                    if messages == 64 && self.conduct.drops_after_64_sends {
                        *octets = &[];
                    }
                }
                Some(Ok(Delivery::Terminate(terminate))) => {
                    self.events.push_back(Event::TerminateReceived(terminate.error));
                    return self.end(now, ClosedBy::Peer, CloseCause::TerminateReceived(terminate.error));
                }
                Some(Err(StreamEnd::FirstFpdu(error))) => {
                    return self.end(now, ClosedBy::Library, CloseCause::FirstFpdu(error));
                }
                Some(Err(StreamEnd::Fault(error))) => {
                    return self.terminate(now, ClosedBy::Library, stream.outbound, error);
                }
            }
        }
        if waited && !stream.awaits_first && self.fin == Fin::Open {
            self.deadline = None;
        }
        if self.conduct.closes_after_pause && !stream.awaits_first && self.fin == Fin::Open {
            self.deadline = (!stream.is_at_boundary()).then_some(now + LONGEST_PAUSE);
        }
        self.state = State::Operating(stream);
    }

    /// Splits or shortens an FPDU, if a deviation requires this.
    fn split_or_cut_fpdu(&mut self, fpdu: &mut Vec<u8>) {
        if self.conduct.splits_fpdus {
            let rest = fpdu.split_off(fpdu.len() / 2);
            if let Some(Transmit::Octets(before)) = self.outgoing.pop_front() {
                fpdu.splice(..0, before);
            }
            self.outgoing.push_back(Transmit::Octets(rest.into()));
        }
        if self.conduct.cuts_last_fpdu && self.fin == Fin::Wanted {
            fpdu.truncate(fpdu.len().saturating_sub(4));
        }
    }
}
