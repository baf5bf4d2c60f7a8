//! One iWARP connection, sans IO.
//!
//! Methods come in four kinds:
//!
//! - **getters** change nothing;
//! - **`handle_*`**: something arrived from below: octets, FIN, RST, or the time named by `poll_timeout`;
//! - **commands** of the user: accept, reject, post a send or receive, close, abort;
//! - **`poll_*`**: what to do next.
//!
//! After each call of the second or third kind, a driver polls until it gets `None`: first
//! [`poll_event`](Connection::poll_event) (handling an event may cause commands), then
//! [`poll_transmit`](Connection::poll_transmit) (which may cause events again). Then it waits for
//! input or until [`poll_timeout`](Connection::poll_timeout). Time never runs backwards between
//! calls. Transmits may be left unpolled while TCP accepts no more: the memory of the connection is
//! bounded by its settings and its user's posts, not by the peer.
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

mod event;
pub(crate) mod settings;
mod startup;
mod stream;

pub use event::{By, Closed, Event, Transmit, Why};
pub use settings::Settings;

use std::collections::VecDeque;
use std::mem;

use bytes::Bytes;

use self::stream::{Stream, StreamEnd};
use crate::hostile::{self, Conduct};
use crate::mpa::{PrivateDataTooLong, StartupError, WaitDecision, WaitReply, WaitRequest};
use crate::rdmap::{Delivery, Outbound, SendId, StreamError};
use crate::time::Instant;

/// A connection, as MPA Initiator or Responder. See the [module](self) for how to drive it.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    state: State,
    /// Frames and resets that wait for the driver. FPDUs are made when polled.
    outgoing: VecDeque<Transmit>,
    events: VecDeque<Event>,
    deadline: Option<Instant>,
    fin: Fin,
    peer_fin: bool,
    /// The first cause of the end.
    ending: Option<Closed>,
    /// The peer closed, or reset, in answer to an enhanced Request.
    refused_enhanced: bool,
    conduct: Conduct,
}

#[derive(Debug)]
enum State {
    /// Before MPA: octets pass as they are.
    Streaming,
    /// Responder, before a complete Request.
    WaitRequest(WaitRequest),
    /// Responder, before the user's answer.
    WaitDecision(WaitDecision),
    /// Initiator, before a complete Reply.
    WaitReply(WaitReply),
    /// Full Operation, and a Responder that waits for the first FPDU.
    Operating(Box<Stream>),
    /// In error: a begun message and the Terminate are still sent; arriving data is dropped
    /// (DDP-7.1-18).
    Draining(Box<Outbound>),
    /// Only FIN is sent, and arriving data is dropped: start-up failed, or MPA was left.
    Silent,
    /// Nothing more happens.
    Over,
}

/// The state of this side's half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fin {
    Open,
    /// Goes out after everything that is queued.
    Wanted,
    Sent,
}

/// A command that the connection cannot follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No Request waits for an answer.
    #[error("no Request waits for an answer")]
    NoRequest,
    /// MPA was started, or the connection is closing.
    #[error("the connection is not in streaming mode")]
    NotStreaming,
    /// An enhanced frame carries less of it.
    #[error(transparent)]
    PrivateData(PrivateDataTooLong),
    /// Start-up is not over, or the connection is closing (DDP-6.2.1-4).
    #[error("the connection is not in Full Operation")]
    NotOperating,
    /// As many are posted as the settings allow.
    #[error("{0} are already posted")]
    QueueFull(usize),
    /// A message has at most 2^32 - 1 octets (DDP-5.2-2).
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
    /// Nothing more happens and everything was polled.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over) && self.outgoing.is_empty() && self.events.is_empty()
    }

    /// The next transmit is a reset: octets that TCP has not taken need not be sent.
    #[must_use]
    pub fn is_aborting(&self) -> bool {
        matches!(self.outgoing.front(), Some(Transmit::Reset))
    }

    /// Sends can be posted.
    #[must_use]
    pub fn is_operating(&self) -> bool {
        matches!(self.state, State::Operating(_)) && self.fin == Fin::Open
    }

    /// The peer closed or reset the connection in answer to an enhanced Request: a new connection
    /// may come with [`Settings::unenhanced`], if that is compatible with what its user wants
    /// (P2P-10-5).
    #[must_use]
    pub fn may_fall_back(&self) -> bool {
        self.refused_enhanced
    }

    /// Sends that are posted and not complete.
    #[must_use]
    pub fn outstanding_sends(&self) -> usize {
        match &self.state {
            State::Operating(stream) => stream.outbound.outstanding(),
            _ => 0,
        }
    }

    /// Octets of the Sends that are posted and not complete, of which some may have gone out.
    #[must_use]
    pub fn outstanding_octets(&self) -> usize {
        match &self.state {
            State::Operating(stream) => stream.outbound.outstanding_octets(),
            _ => 0,
        }
    }

    /// Receives that are posted and not used up.
    #[must_use]
    pub fn posted_receives(&self) -> usize {
        match &self.state {
            State::Operating(stream) => stream.inbound.posted_receives(),
            _ => 0,
        }
    }
}

/// Arriving bytes.
impl Connection {
    /// Octets came in, cut in any way.
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
            // An Initiator sends nothing before it has the Reply.
            State::WaitDecision(_) if !octets.is_empty() => {
                let error = StartupError::Surplus { octets: octets.len() };
                self.end(now, By::Library, Why::Startup(error));
            }
            State::Operating(stream) => self.handle_fpdus(now, stream, &mut octets),
            state => self.state = state,
        }
    }

    /// The peer closed its half.
    pub fn handle_fin(&mut self, now: Instant) {
        self.peer_fin = true;
        self.note_refusal();
        match &self.state {
            State::WaitRequest(_) | State::WaitReply(_) => {
                let why = match self.startup_octets() {
                    0 => Why::Fin,
                    received => {
                        self.answer_malformed();
                        Why::Startup(StartupError::CutShort { received })
                    }
                };
                self.end(now, By::Peer, why);
            }
            State::WaitDecision(_) => self.end(now, By::Peer, Why::Fin),
            State::Operating(stream) => {
                let (at_boundary, may_send) = (stream.is_at_boundary(), stream.may_send);
                if !at_boundary {
                    self.end(now, By::Peer, Why::CutShort);
                } else if may_send && !self.conduct.stops_at_fin {
                    self.ending.get_or_insert(Closed { by: By::Peer, why: Why::Fin });
                    self.events.push_back(Event::HalfClosed);
                } else {
                    // No FPDU can come any more that would give the permission to send one.
                    self.events.push_back(Event::HalfClosed);
                    self.end(now, By::Peer, Why::Fin);
                }
            }
            State::Streaming | State::Silent if self.fin == Fin::Open => {
                self.ending.get_or_insert(Closed { by: By::Peer, why: Why::Fin });
                self.events.push_back(Event::HalfClosed);
            }
            State::Streaming | State::Draining(_) | State::Silent | State::Over => {}
        }
        self.finish_when_closed();
    }

    /// The connection was reset.
    pub fn handle_reset(&mut self, _now: Instant) {
        self.note_refusal();
        self.ending.get_or_insert(Closed { by: By::Peer, why: Why::Reset });
        self.outgoing.clear();
        self.finish();
    }

    /// Time has come to `now`; nothing happens before the deadline that
    /// [`poll_timeout`](Self::poll_timeout) names.
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
            State::WaitRequest(state) if state.received() == 0 => self.end(now, By::Library, Why::NoRequest),
            State::WaitRequest(_) | State::WaitReply(_) => self.end(now, By::Library, Why::StartupTimeout),
            State::Operating(_) => self.end(now, By::Library, Why::FirstFpduTimeout),
            State::Silent if self.conduct.closes_late => self.end(now, By::Library, Why::StartupTimeout),
            State::Streaming | State::WaitDecision(_) | State::Draining(_) | State::Silent | State::Over => {}
        }
    }
}

/// Commands.
impl Connection {
    /// Posts a Send. A Responder's waits until the first valid FPDU arrived.
    ///
    /// # Errors
    /// Start-up is not over or the connection is closing; too many are outstanding; the message is
    /// too long.
    pub fn post_send(&mut self, payload: impl Into<Bytes>) -> Result<SendId, Refused> {
        let payload = payload.into();
        let max = self.settings.max_sends;
        let (State::Operating(stream), Fin::Open) = (&mut self.state, self.fin) else {
            return Err(Refused::NotOperating);
        };
        if stream.outbound.outstanding() >= max {
            return Err(Refused::QueueFull(max));
        }
        if u32::try_from(payload.len()).is_err() {
            return Err(Refused::TooLong(payload.len()));
        }
        Ok(stream.outbound.post_send(payload))
    }

    /// Posts a receive of `length` octets, for one Send. Memory is taken as octets arrive.
    ///
    /// # Errors
    /// Start-up is not over or the connection is in error; too many are posted.
    pub fn post_receive(&mut self, length: u32) -> Result<(), Refused> {
        let max = self.settings.max_receives;
        let State::Operating(stream) = &mut self.state else { return Err(Refused::NotOperating) };
        if stream.inbound.posted_receives() >= max {
            return Err(Refused::QueueFull(max));
        }
        stream.inbound.post_receive(length);
        Ok(())
    }

    /// Closes gracefully: sends everything that is posted, then FIN (DDP-6.2.1-1). Data that
    /// arrives before the peer's FIN is still delivered. Before Full Operation, only FIN is sent.
    /// Does nothing if the connection is already closing.
    pub fn close(&mut self, now: Instant) {
        if self.fin != Fin::Open || matches!(self.state, State::Over) {
            return;
        }
        if let State::Operating(stream) = &mut self.state {
            if !stream.may_send || self.conduct.drops_posted {
                stream.outbound.drop_posted();
            }
            if self.conduct.drops_posted {
                stream.outbound.drop_begun();
            }
            self.ending.get_or_insert(Closed { by: By::User, why: Why::Requested });
            self.want_fin(now);
        } else {
            self.end(now, By::User, Why::Requested);
        }
    }

    /// Resets the connection.
    pub fn abort(&mut self) {
        if !matches!(self.state, State::Over) {
            self.ending.get_or_insert(Closed { by: By::User, why: Why::Requested });
            self.abort_now();
        }
    }
}

/// What to do next.
impl Connection {
    /// The next thing for the driver to send. Call it when TCP can take more: SendCompleted means
    /// that the driver took it.
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
            if fpdu.octets.is_empty() {
                // A deviation holds it back.
                self.events.extend(fpdu.completes.map(Event::SendCompleted));
                return self.poll_transmit(now);
            }
            self.misdeliver(&mut fpdu.octets);
            self.events.extend(fpdu.completes.map(Event::SendCompleted));
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

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called, if nothing else happens.
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
        loop {
            match stream.read(octets) {
                None => break,
                Some(Ok(Delivery::Message { octets, solicited })) => {
                    self.events.push_back(Event::Received { octets, solicited });
                }
                Some(Ok(Delivery::Terminate(terminate))) => {
                    self.events.push_back(Event::TerminateReceived(terminate.error));
                    return self.end(now, By::Peer, Why::TerminateReceived(terminate.error));
                }
                Some(Err(StreamEnd::FirstFpdu(error))) => return self.end(now, By::Library, Why::FirstFpdu(error)),
                Some(Err(StreamEnd::Fault(error))) => return self.terminate(now, By::Library, stream.outbound, error),
            }
        }
        if waited && !stream.awaits_first && self.fin == Fin::Open {
            self.deadline = None;
        }
        self.state = State::Operating(stream);
    }

    /// Sends a Terminate as the last message, if this half is open, and closes it.
    fn terminate(&mut self, now: Instant, by: By, mut outbound: Outbound, error: StreamError) {
        if self.fin != Fin::Sent && !self.conduct.skips_terminate {
            let mut message = error.terminate();
            hostile::hook::terminate(&self.settings.deviations, &mut message);
            outbound.terminate(message);
            self.events.push_back(Event::TerminateSent(error));
        }
        if self.conduct.keeps_open {
            self.ending.get_or_insert(Closed { by, why: Why::Fault(error) });
        } else {
            self.end(now, by, Why::Fault(error));
        }
        self.state = State::Draining(Box::new(outbound));
    }

    /// The deviations of where TCP segments end.
    fn misdeliver(&mut self, fpdu: &mut Vec<u8>) {
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

    /// Stops listening and closes this half; `by` and `why` count if nothing ended the connection
    /// before.
    fn end(&mut self, now: Instant, by: By, why: Why) {
        self.ending.get_or_insert(Closed { by, why });
        self.state = State::Silent;
        self.want_fin(now);
    }

    fn want_fin(&mut self, now: Instant) {
        if self.fin == Fin::Open {
            self.fin = Fin::Wanted;
        }
        self.deadline = Some(now + self.settings.close_timeout);
    }

    fn abort_now(&mut self) {
        self.outgoing.clear();
        self.outgoing.push_back(Transmit::Reset);
        self.finish();
    }

    fn finish_when_closed(&mut self) {
        if self.peer_fin && self.fin == Fin::Sent {
            self.finish();
        }
    }

    fn finish(&mut self) {
        if !matches!(self.state, State::Over) {
            self.state = State::Over;
            self.deadline = None;
            let closed = self.ending.unwrap_or(Closed { by: By::Peer, why: Why::Fin });
            self.events.push_back(Event::Closed(closed));
        }
    }
}
