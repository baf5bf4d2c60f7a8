//! The state machine: its state, getters and outputs. The user's commands are in `command`, and
//! other inputs are in `arrive`. Section numbers are those of the SDP draft.

use std::collections::VecDeque;

use weft_core::wire::sdp::{FieldOrder, Mode};

use super::closing::Closing;
use super::control::{Control, queue_answers};
use super::credit_request::CreditRequest;
use super::credits::Credits;
use super::next::Producer;
use super::op::{Op, Ops};
use super::phase::Phase;
use super::pool::Pool;
use super::resize::Resize;
use super::sink::Sink;
use super::source::Source;
use super::startup::Startup;
use super::suspension::Suspension;
use super::urgent::Urgent;
use super::{Event, Exposed, Half, Output, ReceiveOutcome, Region, Role, SendId, Settings, TransferCounts, Violation};
use crate::hostile::{Deviations, SdpHostile, hook};
use crate::time::Instant;

/// Information about a message, from the Work Completion of the receive that the message used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// STag that the message invalidated.
    pub invalidated: Option<u32>,
}

/// One SDP connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) role: Role,
    pub(super) settings: Settings,
    pub(super) order: FieldOrder,
    pub(super) phase: Phase,
    pub(super) out: VecDeque<Output>,
    pub(super) control: VecDeque<Control>,
    pub(super) credits: Credits,
    pub(super) pool: Pool,
    pub(super) source: Source,
    pub(super) sink: Sink,
    pub(super) urgent: Urgent,
    pub(super) resize: Resize,
    pub(super) close: Closing,
    pub(super) suspension: Suspension,
    pub(super) peer_max_adverts: u16,
    /// The RNIC could not register the memory of this send.
    pub(super) unregistered: Option<SendId>,
    /// Number of receives that had ended when the RNIC failed to register a receive. `None` if no
    /// registration has failed. After the failure, this side advertises receives again only when
    /// another receive has ended.
    pub(super) sinks_refused: Option<u64>,
    pub(super) credit_request: CreditRequest,
    /// Timer for updates (Data without payload) that only answer an update of the peer.
    pub(super) echo: CreditRequest,
    /// True after this side has sent an update that only answers an update of the peer. While this
    /// field is true, each update of this kind waits for the timer `echo`. The field becomes false
    /// when this side sends a message while `credits.news` is set.
    pub(super) echoed: bool,
    pub(super) moved_out: TransferCounts,
    pub(super) moved_in: TransferCounts,
    pub(super) ops: Ops,
    pub(super) startup_deadline: Option<Instant>,
    pub(super) credit_deadline: Option<Instant>,
    pub(super) deadlock_deadline: Option<Instant>,
    /// State of the hostile endpoint. `None` for the correct endpoint.
    pub(super) hostile: Option<Box<SdpHostile>>,
}

/// Construction.
impl Connection {
    /// Starts as Connecting Peer on an established TCP connection.
    #[must_use]
    pub fn connect(now: Instant, settings: Settings) -> Self {
        Connection::deviating(now, Role::Connecting, settings, Deviations::NONE)
    }

    /// Starts as Accepting Peer on an established TCP connection.
    #[must_use]
    pub fn accept(now: Instant, settings: Settings) -> Self {
        Connection::deviating(now, Role::Accepting, settings, Deviations::NONE)
    }

    /// Starts in this role on an established TCP connection, with these deviations.
    #[must_use]
    pub fn deviating(now: Instant, role: Role, settings: Settings, deviations: Deviations) -> Self {
        let settings = settings.clamped();
        let conduct = hook::sdp_conduct(&deviations);
        let mut connection = Connection {
            role,
            settings,
            order: settings.order,
            phase: Phase::Closed,
            out: VecDeque::new(),
            control: VecDeque::new(),
            credits: Credits::default(),
            pool: Pool::new(settings.recv_size, settings.bufs),
            source: Source::default(),
            sink: Sink::default(),
            urgent: Urgent::default(),
            resize: Resize::new(0),
            close: Closing::default(),
            suspension: Suspension::default(),
            peer_max_adverts: 1,
            unregistered: None,
            sinks_refused: None,
            credit_request: CreditRequest::new(role),
            echo: CreditRequest::new(role),
            echoed: false,
            moved_out: TransferCounts::default(),
            moved_in: TransferCounts::default(),
            ops: Ops::default(),
            startup_deadline: Some(now + settings.startup_timeout),
            credit_deadline: None,
            deadlock_deadline: None,
            hostile: SdpHostile::of(deviations),
        };
        connection.credits.conduct = conduct;
        connection.source.conduct = conduct;
        connection.sink.conduct = conduct;
        connection.pool.conduct = conduct;
        connection.resize.conduct = conduct;
        connection.start_up(settings);
        connection
    }

    /// Begins start-up on a new TCP connection.
    pub(super) fn start_up(&mut self, settings: Settings) {
        let startup = match self.role {
            Role::Connecting => {
                let mut hello = Vec::new();
                let startup = Startup::connect(settings, &mut hello);
                // Private Buffers are posted before the Hello is sent (section 8.1.1, step 1c).
                self.post_buffers(settings.recv_size);
                self.out.push_back(Output::Streaming(hello));
                startup
            }
            Role::Accepting => Startup::accept(settings),
        };
        self.phase = Phase::Starting(Box::new(startup));
    }

    pub(super) fn post_buffers(&mut self, size: u32) {
        self.pool.restart(size, self.settings.bufs);
        self.pool.fill(&mut self.out);
        self.credits.posted = self.pool.announced();
    }
}

/// Getters.
impl Connection {
    /// The Mode of a half-connection.
    #[must_use]
    pub fn mode(&self, half: Half) -> Mode {
        if half == Half::Out { self.source.mode } else { self.sink.mode }
    }

    /// Number of messages that this side may send now (section 10.2).
    #[must_use]
    pub fn credit(&self) -> u16 {
        self.credits.available()
    }

    /// Number of messages that the peer may send now, according to the credit that this side has
    /// announced.
    #[must_use]
    pub fn credit_given(&self) -> u16 {
        self.credits.given()
    }

    /// Counters of the bytes that have moved on a half-connection since start-up.
    #[must_use]
    pub fn moved(&self, half: Half) -> TransferCounts {
        if half == Half::Out { self.moved_out } else { self.moved_in }
    }

    /// Number of open advertisements of this side: SrcAvails of the sending half-connection,
    /// SinkAvails of the receiving half-connection.
    #[must_use]
    pub fn adverts(&self, half: Half) -> usize {
        if half == Half::Out { self.source.open.len() } else { self.sink.adverts() }
    }

    /// Maximum length in bytes of a message that this side may send now. The limit is the size of
    /// the peer's Private Buffers.
    #[must_use]
    pub fn message_limit(&self) -> u32 {
        self.resize.limit
    }

    /// Size in bytes of the Private Buffers that are posted from now on.
    #[must_use]
    pub fn recv_size(&self) -> u32 {
        self.pool.size
    }

    /// Data Sink Bcopy Threshold in bytes (section 9.3): a receive of at most this length is not
    /// advertised. The threshold is at least the size of a Private Buffer.
    #[must_use]
    pub fn sink_threshold(&self) -> u64 {
        let first = self.sink.conduct.sinks_by_first_size.then_some(self.settings.recv_size);
        self.settings.policy.sink_threshold.max(u64::from(first.unwrap_or(self.pool.size)))
    }

    /// Returns whether the connection has ended: the LLP connection has ended, or
    /// [`Output::Disconnect`] ends it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Returns whether start-up has succeeded and the connection has not ended. False while the
    /// connection is suspended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }
}

/// Outputs.
impl Connection {
    /// Time of the next call of [`handle_timeout`](Self::handle_timeout). `None` if no timer runs.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let start = self.startup_deadline.into_iter().chain(self.credit_deadline);
        let waits = self.deadlock_deadline.into_iter().chain(self.credit_request.deadline).chain(self.echo.deadline);
        start.chain(waits).chain(self.close.deadline).min()
    }

    /// Returns the next output, or `None` if there is nothing to do until the next input.
    /// `register` registers memory for access by the peer. If `register` returns `None`, the
    /// machine transfers the bytes with Bcopy.
    pub fn poll(&mut self, now: Instant, register: &mut dyn FnMut(Exposed) -> Option<Region>) -> Option<Output> {
        loop {
            if let Some(output) = self.hostile.as_mut().and_then(|hostile| hostile.out.pop_front()) {
                return Some(output);
            }
            if self.out.is_empty() {
                Producer { connection: self, now, register }.produce();
            }
            let output = self.out.pop_front()?;
            let Some(hostile) = &mut self.hostile else { return Some(output) };
            hook::sdp_out(hostile, self.order, output, &mut self.credits.sent);
        }
    }
}

/// Steps that involve several parts of the state.
impl Connection {
    /// Does everything that is possible without sending a message: fills receives, starts Reads,
    /// queues answers, and reports ended sends and receives.
    pub(super) fn advance(&mut self) {
        if !self.is_over() {
            loop {
                if self.sink.advance(&mut self.pool, &mut self.out) {
                    self.credits.posted = self.pool.announced();
                    self.credits.news = true;
                }
                let next_op = || self.ops.assign(Op::Read);
                let answers = self.sink.read_on(&self.settings.policy, next_op, &mut self.out);
                if answers.is_empty() {
                    break;
                }
                queue_answers(&mut self.control, answers);
            }
            self.source.finish(&mut self.out);
            self.urgent.passed(self.source.settled());
            return;
        }
        self.sink.advance(&mut self.pool, &mut self.out);
    }

    /// Posts up to `count` Private Buffers beyond the normal number.
    pub(super) fn post_extra(&mut self, count: usize) {
        for _ in 0..count {
            self.pool.post_extra(&mut self.out);
        }
        self.credits.posted = self.pool.announced();
    }

    /// Returns whether there is a deadlock (section 9.2). In a deadlock, each side has sent a
    /// SrcAvail and waits until the other side reads the advertised bytes. This side has no receive
    /// posted.
    pub(super) fn is_deadlocked(&self) -> bool {
        self.sink.is_peer_waiting() && !self.source.open.is_empty()
    }

    /// Starts or stops the deadlock timer.
    pub(super) fn watch_for_deadlock(&mut self, now: Instant) {
        if !self.is_deadlocked() {
            self.deadlock_deadline = None;
        } else if self.deadlock_deadline.is_none() {
            self.deadlock_deadline = Some(now + self.settings.policy.deadlock_wait);
        }
    }

    /// Ends all posted sends and receives, and reports their end to the user. If `disconnect` is
    /// set, also ends TCP: by a reset if the value is true, and gracefully if it is false. The
    /// [`Output::Disconnect`] precedes the reports, because a Read can fill a receive until TCP has
    /// ended. After the report, the receive belongs to the user.
    pub(super) fn end(&mut self, abortive: bool, violation: Option<Violation>, disconnect: Option<bool>) {
        if self.is_over() {
            return;
        }
        self.out.extend(disconnect.map(|abortive| Output::Disconnect { abortive }));
        let opened = matches!(self.phase, Phase::Open | Phase::Suspended) || self.suspension.restarted;
        self.phase = Phase::Closed;
        self.control.clear();
        self.ops.clear();
        self.startup_deadline = None;
        self.credit_deadline = None;
        self.deadlock_deadline = None;
        self.credit_request.stop();
        self.echo.stop();
        self.close.deadline = None;
        self.close.graceful = !abortive;
        self.pool.close();
        self.source.abort(&mut self.out);
        let end = if abortive { ReceiveOutcome::Aborted } else { ReceiveOutcome::EndOfStream };
        self.sink.abort(end, &mut self.out);
        if opened {
            self.out.push_back(Output::Event(Event::Closed { graceful: !abortive, violation }));
        }
    }
}
