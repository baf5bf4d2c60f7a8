//! Start-up of a connection: streaming mode, Request and Reply, the user's decision, and the
//! transition to FPDUs.

use bytes::Bytes;
use weft_core::wire::mpa::{Framing, mulpdu};

use super::{CloseCause, Closed, ClosedBy, CommandError, Connection, Event, Fin, Settings, State, Transmit, mem};
use crate::connection::stream::Stream;
use crate::hostile::{self, Deviations};
use crate::mpa::{
    AfterReply, AfterRequest, FpduSender, Negotiated, PeerFrame, PrivateData, PrivateDataTooLong, Role, Rtr,
    SetupError, StartupError, WaitDecision, WaitReply, WaitRequest, plain_reply,
};
use crate::rdmap::{Outbound, StreamError};
use crate::reject::reject_if;
use crate::time::Instant;

/// Construction.
impl Connection {
    /// Creates an MPA Initiator on an established TCP connection. The Request is ready to be
    /// polled.
    ///
    /// # Errors
    /// The settings request the enhanced set-up, and the private data is too long for an enhanced
    /// Request.
    pub fn initiate(now: Instant, settings: Settings) -> Result<Self, PrivateDataTooLong> {
        let mut connection = Connection::new(settings, State::Silent);
        connection.begin(now, Role::Initiator)?;
        Ok(connection)
    }

    /// Creates an MPA Responder on an established TCP connection.
    #[must_use]
    pub fn respond(now: Instant, settings: Settings) -> Self {
        let mut connection = Connection::new(settings, State::Silent);
        // `begin` can fail only for an Initiator's private data.
        let _ = connection.begin(now, Role::Responder);
        connection
    }

    /// Creates a connection in streaming mode on an established TCP connection. Bytes pass through
    /// unchanged until a call of [`start_initiator`](Self::start_initiator) or
    /// [`start_responder`](Self::start_responder) ("delayed start", RFC 5044 section 7.1.3).
    #[must_use]
    pub fn stream(settings: Settings) -> Self {
        Connection::new(settings, State::Streaming)
    }

    fn begin(&mut self, now: Instant, role: Role) -> Result<(), PrivateDataTooLong> {
        let (mpa, deviations) = (self.settings.mpa, self.settings.deviations.clone());
        self.state = match role {
            Role::Initiator => {
                let mut request = Vec::new();
                let state = WaitReply::start(mpa, &self.settings.private_data, deviations, &mut request)?;
                self.outgoing.push_back(Transmit::Octets(request.into()));
                if self.conduct.begins_without_reply {
                    self.send_stray_fpdu();
                }
                State::WaitReply(state)
            }
            Role::Responder => {
                if self.conduct.replies_unrequested {
                    self.outgoing.push_back(Transmit::Octets(plain_reply(&mpa).into()));
                }
                State::WaitRequest(WaitRequest::start(mpa, deviations))
            }
        };
        self.deadline = Some(now + self.settings.startup_timeout);
        Ok(())
    }
}

/// Commands of streaming mode and of start-up.
impl Connection {
    /// Sends bytes in streaming mode.
    ///
    /// # Errors
    /// The connection is not in streaming mode, or is closing. Too many transmits wait for the
    /// driver.
    pub fn post_streaming(&mut self, octets: impl Into<Bytes>) -> Result<(), CommandError> {
        self.check_streaming()?;
        reject_if(self.outgoing.len() >= self.settings.max_sends, CommandError::QueueFull(self.settings.max_sends))?;
        self.outgoing.push_back(Transmit::Octets(octets.into()));
        Ok(())
    }

    /// Leaves streaming mode as MPA Initiator. The Request is sent after all posted bytes. Call
    /// this function when the peer's last streaming message has arrived (MPA-7.1.5-1). `unread` has
    /// the bytes that arrived after that message. A Responder must not send before it has the
    /// Request. If `unread` is not empty, the connection therefore closes with an error.
    ///
    /// # Errors
    /// The connection is not in streaming mode, or is closing. The private data is too long for an
    /// enhanced Request.
    pub fn start_initiator(&mut self, now: Instant, unread: &[u8]) -> Result<(), CommandError> {
        self.check_streaming()?;
        self.begin(now, Role::Initiator).map_err(CommandError::PrivateData)?;
        if !unread.is_empty() {
            let error = StartupError::Surplus { octets: unread.len() };
            self.end(now, ClosedBy::Library, CloseCause::Startup(error));
        }
        Ok(())
    }

    /// Leaves streaming mode as MPA Responder, and then sends `last`, the last streaming message.
    /// MPA starts before the message is sent, because the peer can send its Request as soon as it
    /// has this message (MPA-7.1.5-2). `unread` has the received bytes that the user's streaming
    /// protocol has not used.
    ///
    /// # Errors
    /// The connection is not in streaming mode, or is closing.
    pub fn start_responder(&mut self, now: Instant, last: impl Into<Bytes>, unread: &[u8]) -> Result<(), CommandError> {
        self.check_streaming()?;
        // `begin` can fail only for an Initiator's private data.
        let _ = self.begin(now, Role::Responder);
        let last = last.into();
        if !last.is_empty() {
            self.outgoing.push_back(Transmit::Octets(last));
        }
        self.handle_octets(now, unread);
        Ok(())
    }

    /// Accepts the waiting Request. `private_data` is for the Reply.
    ///
    /// # Errors
    /// No Request waits. The private data is too long for an enhanced Reply.
    pub fn accept(&mut self, now: Instant, private_data: &PrivateData) -> Result<(), CommandError> {
        let decision = self.take_decision(private_data)?;
        let peer = decision.request().clone();
        let mut reply = Vec::new();
        let negotiated = decision.accept(private_data, &mut reply);
        self.outgoing.push_back(Transmit::Octets(reply.into()));
        self.establish(negotiated, peer);
        self.deadline = Some(now + self.settings.first_fpdu_timeout);
        Ok(())
    }

    /// Rejects the waiting Request with a Reply that has R=1. After this Reply, the connection does
    /// not use MPA. TCP stays open until [`close`](Self::close) is called (MPA-7.1.2-7). Data that
    /// arrives during this time is dropped.
    ///
    /// # Errors
    /// No Request waits. The private data is too long for an enhanced Reply.
    pub fn reject(&mut self, private_data: &PrivateData) -> Result<(), CommandError> {
        let decision = self.take_decision(private_data)?;
        self.send_rejection(decision, private_data);
        self.leave_mpa(None);
        Ok(())
    }

    /// Closes the connection because of a local error that has no code of its own (P2P-9.3-4). If
    /// this endpoint may send FPDUs, it sends a Terminate with the code 20 05, and then FIN.
    /// Otherwise it sends only FIN. Does nothing if the connection is already closing.
    pub fn fail(&mut self, now: Instant) {
        if self.fin != Fin::Open || matches!(self.state, State::Closed) {
            return;
        }
        let error = StreamError::Setup(SetupError::LocalCatastrophic);
        match mem::replace(&mut self.state, State::Silent) {
            State::Operating(stream) if stream.may_send => self.terminate(now, ClosedBy::User, stream.outbound, error),
            _ => self.end(now, ClosedBy::User, CloseCause::Fault(error)),
        }
    }

    fn check_streaming(&self) -> Result<(), CommandError> {
        let open = matches!(self.state, State::Streaming) && self.fin == Fin::Open && !self.peer_fin;
        reject_if(!open, CommandError::NotStreaming)
    }

    fn take_decision(&mut self, private_data: &PrivateData) -> Result<WaitDecision, CommandError> {
        let State::WaitDecision(decision) = &self.state else { return Err(CommandError::NoRequest) };
        decision.check(private_data).map_err(CommandError::PrivateData)?;
        let decision = decision.clone();
        self.state = State::Silent;
        Ok(decision)
    }
}

/// Received bytes.
impl Connection {
    pub(super) fn handle_request(&mut self, now: Instant, state: WaitRequest, octets: &[u8]) {
        match state.handle_octets(octets) {
            Ok(AfterRequest::Waiting(state)) => self.state = State::WaitRequest(state),
            Ok(AfterRequest::Arrived(state)) => self.request_arrived(now, state),
            Err(error) => {
                let tolerated = self.settings.mpa.answer_revision_0;
                if tolerated && matches!(error, StartupError::UnsupportedRevision { revision: 0, .. }) {
                    self.send_plain_reply();
                } else {
                    self.answer_malformed();
                }
                self.refuse(now, error);
            }
        }
    }

    fn send_plain_reply(&mut self) {
        self.outgoing.push_back(Transmit::Octets(plain_reply(&self.settings.mpa).into()));
    }

    /// Answers a malformed or incomplete Request, if a deviation requires this.
    pub(super) fn answer_malformed(&mut self) {
        if self.conduct.answers_malformed && matches!(self.state, State::WaitRequest(_) | State::Silent) {
            self.send_plain_reply();
        }
    }

    /// Closes the connection at once after a malformed start-up frame (MPA-8-9).
    fn refuse(&mut self, now: Instant, error: StartupError) {
        if self.conduct.closes_late {
            self.ending.get_or_insert(Closed { by: ClosedBy::Library, why: CloseCause::Startup(error) });
        } else {
            self.end(now, ClosedBy::Library, CloseCause::Startup(error));
        }
    }

    pub(super) fn handle_reply(&mut self, now: Instant, state: WaitReply, octets: &[u8]) {
        match state.handle_octets(octets) {
            Ok(AfterReply::Waiting(state)) => self.state = State::WaitReply(state),
            Ok(AfterReply::Accepted(negotiated, peer)) => self.establish(negotiated, peer),
            Ok(AfterReply::Unacceptable(negotiated, peer, error)) => {
                self.events.push_back(Event::Unusable(peer));
                let outbound = self.outbound(&negotiated);
                self.terminate(now, ClosedBy::Library, outbound, StreamError::Setup(error));
            }
            Ok(AfterReply::Rejected(reply)) => self.leave_mpa(Some(Event::Rejected(reply))),
            Err(error) => self.refuse(now, error),
        }
    }

    fn request_arrived(&mut self, now: Instant, decision: WaitDecision) {
        self.deadline = None;
        let private_data = self.settings.private_data.clone();
        let automatic = self.settings.accept && decision.check(&private_data).is_ok();
        if automatic && decision.is_insufficient() {
            self.send_rejection(decision, &private_data);
            return self.end(now, ClosedBy::Library, CloseCause::PeerIrd);
        }
        let request = decision.request().clone();
        self.state = State::WaitDecision(decision);
        if automatic {
            // `accept` cannot fail: the state was set just above, and the private data fits.
            let _ = self.accept(now, &private_data);
        } else {
            self.events.push_back(Event::Request(request));
        }
    }

    fn send_rejection(&mut self, decision: WaitDecision, private_data: &PrivateData) {
        let mut reply = Vec::new();
        decision.reject(private_data, &mut reply);
        if !reply.is_empty() {
            self.outgoing.push_back(Transmit::Octets(reply.into()));
        }
    }

    fn establish(&mut self, mut negotiated: Negotiated, peer: PeerFrame) {
        self.deadline = None;
        let deviations = &self.settings.deviations;
        hostile::hook::negotiated(deviations, &mut negotiated);
        let (_, received) = framings(&negotiated, deviations);
        let stream = Stream::new(&negotiated, self.outbound(&negotiated), received, deviations);
        self.state = State::Operating(Box::new(stream));
        self.events.push_back(Event::Established { negotiated, peer });
    }

    fn outbound(&self, negotiated: &Negotiated) -> Outbound {
        let deviations = &self.settings.deviations;
        let (sent, _) = framings(negotiated, deviations);
        let mut mulpdu = mulpdu(self.settings.emss, sent.markers);
        hostile::hook::mulpdu(deviations, &mut mulpdu);
        Outbound::new(FpduSender::deviating(sent, deviations.clone()), mulpdu, negotiated.version)
    }

    /// Sends a Write of 0 bytes, although no FPDU is allowed at this time. This violation is a
    /// [deviation](crate::hostile).
    fn send_stray_fpdu(&mut self) {
        let mut sender = FpduSender::new(Framing { markers: false, crc: true });
        if let Ok(octets) = sender.fpdu(&[&Rtr::Write.ulpdu(1)]) {
            self.outgoing.push_back(Transmit::Octets(octets.into()));
        }
    }

    fn leave_mpa(&mut self, event: Option<Event>) {
        if self.conduct.sends_after_rejection {
            self.send_stray_fpdu();
        }
        self.deadline = None;
        self.state = State::Silent;
        self.events.extend(event);
    }

    /// Number of received bytes of the peer's start-up frame.
    pub(super) fn startup_octets(&self) -> usize {
        match &self.state {
            State::WaitRequest(state) => state.received(),
            State::WaitReply(state) => state.received(),
            _ => 0,
        }
    }

    /// Records whether the peer's close or reset is an answer to an enhanced Request.
    pub(super) fn note_refusal(&mut self) {
        let waits = matches!(&self.state, State::WaitReply(_)) && self.startup_octets() == 0;
        self.refused_enhanced |= waits && self.settings.mpa.requests_enhanced();
    }
}

/// Format of the sent FPDUs and format of the received FPDUs.
fn framings(negotiated: &Negotiated, deviations: &Deviations) -> (Framing, Framing) {
    let (mut sent, mut received) = (negotiated.framing_sent(), negotiated.framing_received());
    hostile::hook::framing(deviations, &mut sent, &mut received);
    (sent, received)
}
