//! SDP sockets of the tester: weft's own SDP, driven by a script. By itself, a socket sends only
//! what the draft allows. A script can send large amounts of data in every Mode without a step for
//! each message. It can also send single messages that violate the draft. The monitor judges what
//! the target sends.
//!
//! A socket is the Connecting Peer. If the target connects, the socket is the Accepting Peer. All
//! sockets of a case run while the script waits for one of them.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_core::wire::sdp::Mid;
use weft_peer::Instant;
use weft_peer::connection::Transmit;
use weft_peer::hostile::Deviations;
use weft_peer::sdp::{Event, Profile, ReceiveOutcome, Refusal, Role, SendId, SendOutcome, Settings};
use weft_peer::sdp_rnic::{Endpoint, Progress, Queues};
use weft_peer::verbs::LateSegment;

use super::connection::is_solicited;
use super::cut::{CUT_PAUSE, Cut, MAX_CUTS, fpdu_len};
use crate::sdp::Counters;
use crate::stage::{Arrival, Expectation, Message, Stage, Stop};
use crate::targets::{SdpStart, Service};

/// While several sockets are open, weft waits this long for the bytes of one of them.
const SLICE: Duration = Duration::from_millis(2);
/// Maximum time to wait for a condition while bytes arrive, in seconds.
const MAX_WAIT_SECONDS: f64 = 60.0;
/// Maximum number of bytes that a socket sends in one write.
const MAX_WRITE: usize = 1 << 18;

/// Settings of a socket that a script can choose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SocketSettings {
    pub(crate) sdp: Settings,
    /// Size in bytes of each posted receive, and number of receives that stay posted.
    pub(crate) receive: u64,
    pub(crate) receives: usize,
    /// After this number of received bytes, the socket posts no more receives until it closes its
    /// own half. So a target that sends without end has to wait.
    pub(crate) max_received: u64,
    /// Virtual address of the buffers that the target may read or write. `None`: weft chooses the
    /// address.
    pub(crate) buffers_at: Option<u64>,
    pub(crate) cut: Cut,
}

/// How a connection of a socket ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SocketEnd {
    /// Both sides sent DisConn, and neither side sent AbortConn.
    pub(crate) graceful: bool,
    /// The connection is suspended: one side sent SuspComm, and the other side SuspCommAck.
    pub(crate) suspended: bool,
    /// Why weft's SDP ended the connection. `None` if the target ended it.
    pub(crate) reason: Option<String>,
}

/// What a script waits for. The end of the connection ends each wait except `Time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketWait {
    /// The HelloAck.
    Open,
    /// The end of the connection.
    End,
    /// This number of received bytes that the script has not taken yet.
    Octets(usize),
    /// All sends have ended.
    Sent,
    /// No event: the script waits until the time is over.
    Time,
}

/// One socket.
pub(crate) struct SdpSocket {
    endpoint: Endpoint,
    receive: u64,
    receives: usize,
    /// Number of bytes that the socket may still receive before it closes its own half.
    receivable: u64,
    cut: Cut,
    /// Number of pauses that the socket may still make between TCP segments.
    cuts_left: usize,
    /// Until this time, the socket leaves the target's bytes unread. It still sends.
    unread_until: Option<Instant>,
    /// Until this time, the socket posts no receives.
    held_until: Option<Instant>,
    /// Received bytes that the script has not taken yet.
    received: Vec<u8>,
    /// Number of sends that have not ended.
    open_sends: usize,
    /// Number of bytes that each ended send has sent, in the order of the sends.
    sent: BTreeMap<SendId, u64>,
    end: Option<SocketEnd>,
    /// The target sends no more data.
    has_peer_closed: bool,
    /// The target has sent DisConn.
    has_dis_conn: bool,
    /// A script has ended the direction to the target with a FIN. The socket sends nothing more.
    is_finished: bool,
    /// The TCP connection has no more bytes to receive.
    is_tcp_over: bool,
}

impl SdpSocket {
    fn is_met(&self, wait: SocketWait) -> bool {
        match wait {
            SocketWait::Open => self.endpoint.machine().is_open() || self.end.is_some(),
            SocketWait::End => self.end.is_some() && (self.endpoint.is_over() || self.endpoint.awaits_reconnect()),
            SocketWait::Octets(octets) => self.received.len() >= octets || self.end.is_some(),
            SocketWait::Sent => self.open_sends == 0 || self.end.is_some(),
            SocketWait::Time => false,
        }
    }

    /// Returns the next deadline. `None` if the socket has nothing more to do.
    fn deadline(&self) -> Option<Instant> {
        let is_over = self.endpoint.has_reset() || self.endpoint.is_over();
        if is_over { None } else { self.endpoint.poll_timeout() }
    }

    /// Returns whether the socket reads the target's bytes now.
    fn is_reading(&self, now: Instant) -> bool {
        !self.is_tcp_over && self.unread_until.is_none_or(|until| until <= now)
    }

    /// Posts receives until `receives` of them are posted.
    fn post(&mut self, now: Instant) {
        let is_held = self.held_until.is_some_and(|until| until > now);
        let may_post = self.end.is_none() && !self.has_peer_closed && self.receivable > 0 && !is_held;
        while may_post && self.endpoint.receives() < self.receives {
            if !self.endpoint.receive(self.receive, false) {
                return;
            }
        }
    }

    fn event(&mut self, event: &Event, octets: Vec<u8>) {
        match event {
            Event::Received { end, .. } => {
                self.receivable = self.receivable.saturating_sub(octets.len() as u64);
                self.received.extend(octets);
                self.has_peer_closed |= matches!(end, ReceiveOutcome::EndOfStream | ReceiveOutcome::Aborted);
            }
            Event::Sent { send, octets, end } => {
                self.open_sends = self.open_sends.saturating_sub(1);
                if *end != SendOutcome::Aborted {
                    self.sent.insert(*send, *octets);
                }
            }
            Event::PeerClosed => {
                self.has_peer_closed = true;
                self.has_dis_conn = true;
            }
            Event::Refused(refusal) => {
                let reason = (*refusal != Refusal::Rejected).then(|| refusal.to_string());
                self.end = Some(SocketEnd { graceful: false, suspended: false, reason });
            }
            Event::Suspended { .. } => {
                self.end = Some(SocketEnd { graceful: false, suspended: true, reason: None });
            }
            Event::Closed { graceful, violation } => {
                let reason = violation.map(|violation| violation.to_string());
                self.end = Some(SocketEnd { graceful: *graceful, suspended: false, reason });
            }
            _ => {}
        }
    }
}

impl Stage {
    /// Opens a TCP connection and a socket on it. Sends the Hello, but waits for no answer. If the
    /// target connects, waits for its TCP connection, but not for its Hello.
    pub(crate) async fn open_sdp_socket(&mut self, settings: SocketSettings) -> Result<u32, Stop> {
        let number = self.connect().await?;
        self.connections.stimulate(number);
        let is_accepting = self.connections.target.service() == Service::SdpConnect;
        let role = if is_accepting { Role::Accepting } else { Role::Connecting };
        let facts = self.connections.target.description.sdp;
        let profile = match facts.start {
            SdpStart::Swapped => Profile::Swapped,
            SdpStart::Bare => Profile::Bare,
            SdpStart::Natural => Profile::Natural,
            SdpStart::Enhanced => Profile::Enhanced,
            SdpStart::PrivateData => Profile::PrivateData,
        };
        let sdp = Settings { profile, order: facts.order, first_mseq: facts.first_mseq, ..settings.sdp };
        let queues = Queues { sends: 256, receives: 1024, late: LateSegment::Drop };
        let now = self.connections.link.now();
        let mut endpoint = Endpoint::new(now, role, sdp, queues, &Deviations::NONE)
            .map_err(|error| self.recorder().harness(&error.to_string()))?;
        if let Some(va) = settings.buffers_at {
            endpoint.place_buffers_at(va);
        }
        let socket = SdpSocket {
            endpoint,
            receive: settings.receive,
            receives: settings.receives,
            receivable: settings.max_received,
            cut: settings.cut,
            cuts_left: MAX_CUTS,
            unread_until: None,
            held_until: None,
            received: Vec::new(),
            open_sends: 0,
            sent: BTreeMap::new(),
            end: None,
            has_peer_closed: false,
            has_dis_conn: false,
            is_finished: false,
            is_tcp_over: false,
        };
        self.sdp_sockets.insert(number, socket);
        Ok(number)
    }

    fn sdp_socket(&mut self, number: u32) -> Result<&mut SdpSocket, Stop> {
        if self.sdp_sockets.contains_key(&number) {
            // The socket is looked up twice, because the error below borrows the stage.
            return self.sdp_sockets.get_mut(&number).ok_or(Stop);
        }
        Err(self.recorder().harness(&format!("connection {number} has no SDP socket")))
    }

    /// The endpoint of a socket, for commands.
    pub(crate) fn sdp_endpoint(&mut self, number: u32) -> Result<&mut Endpoint, Stop> {
        Ok(&mut self.sdp_socket(number)?.endpoint)
    }

    /// Queues bytes to send. Returns `false` if the connection does not accept them any more.
    pub(crate) fn sdp_socket_send(&mut self, number: u32, octets: Vec<u8>, urgent: bool) -> Result<bool, Stop> {
        let socket = self.sdp_socket(number)?;
        let accepted = socket.endpoint.send(octets, urgent);
        socket.open_sends += usize::from(accepted);
        Ok(accepted)
    }

    /// Queues a line of commands for a driven socket. Returns `false` if the connection does not
    /// accept it any more.
    pub(crate) fn sdp_socket_command(&mut self, number: u32, line: &[u8]) -> Result<bool, Stop> {
        self.connections.check_commands(line)?;
        let text = String::from_utf8_lossy(line);
        self.recorder().note(&format!("connection {number}: the command `{text}`"));
        self.sdp_socket_send(number, [line, b"\n"].concat(), false)
    }

    /// Sends messages of a script on a socket. The socket counts them, and they have no other
    /// effect on the socket. Returns `false`, and sends nothing, if the send credit does not
    /// suffice for all of them, or if answers of the socket wait for credit.
    pub(crate) fn inject_sdp_messages(&mut self, number: u32, messages: &[Message]) -> Result<bool, Stop> {
        let machine = self.sdp_socket(number)?.endpoint.machine_mut();
        if usize::from(machine.credit()) < messages.len() {
            return Ok(false);
        }
        for message in messages {
            let solicited = message.draft.as_ref().is_some_and(|draft| is_solicited(Mid(draft.mid)));
            let is_sent = machine.send_composed(solicited, |order, (bufs, mseq, mseq_ack)| {
                message.filled(Counters { bufs, mseq, mseq_ack, order }).octets
            });
            if !is_sent {
                return Ok(false);
            }
        }
        let names: Vec<&str> = messages.iter().map(|message| message.name.as_str()).collect();
        self.recorder().note(&format!("connection {number}: the script sends {}", names.join(", ")));
        self.connections.stimulate(number);
        Ok(true)
    }

    /// For this time, the socket only sends, and leaves the target's bytes unread.
    pub(crate) fn sdp_socket_stop_reading(&mut self, number: u32, time: Duration) -> Result<(), Stop> {
        let until = self.connections.link.now() + time;
        self.sdp_socket(number)?.unread_until = Some(until);
        Ok(())
    }

    /// For this time, the socket has no receive: it cancels its receives and posts no others. It
    /// still reads the target's messages.
    pub(crate) fn sdp_socket_hold(&mut self, number: u32, time: Duration) -> Result<(), Stop> {
        let until = self.connections.link.now() + time;
        let socket = self.sdp_socket(number)?;
        socket.held_until = Some(until);
        socket.endpoint.machine_mut().cancel_receives();
        Ok(())
    }

    /// Returns the received bytes that the script has not taken yet.
    pub(crate) fn sdp_socket_received(&mut self, number: u32) -> Result<Vec<u8>, Stop> {
        Ok(std::mem::take(&mut self.sdp_socket(number)?.received))
    }

    /// Returns the number of sent bytes for each send that has ended since the last call.
    pub(crate) fn sdp_socket_sent(&mut self, number: u32) -> Result<Vec<u64>, Stop> {
        Ok(std::mem::take(&mut self.sdp_socket(number)?.sent).into_values().collect())
    }

    /// Returns how the connection of a socket ended.
    pub(crate) fn sdp_socket_end(&mut self, number: u32) -> Result<Option<SocketEnd>, Stop> {
        Ok(self.sdp_socket(number)?.end.clone())
    }

    /// Returns whether the target has sent DisConn on a socket's connection.
    pub(crate) fn has_sdp_dis_conn(&mut self, number: u32) -> Result<bool, Stop> {
        Ok(self.sdp_socket(number)?.has_dis_conn)
    }

    /// Closes the sending half-connection of a socket after all queued bytes.
    pub(crate) fn shut_sdp_socket(&mut self, number: u32) -> Result<(), Stop> {
        let socket = self.sdp_socket(number)?;
        socket.receivable = u64::MAX;
        socket.endpoint.machine_mut().shut_down();
        Ok(())
    }

    /// Ends the direction to the target with a FIN. The socket sends nothing more, but still
    /// receives.
    pub(crate) async fn finish_sdp_socket(&mut self, number: u32) -> Result<(), Stop> {
        self.sdp_socket(number)?.is_finished = true;
        self.connections.half_close(number).await
    }

    /// Waits until the target connects to this TCP port of the tester, to resume the suspended
    /// connection of a socket. Continues the socket on the new connection, and returns the number of
    /// this connection.
    pub(crate) async fn resume_sdp_socket(
        &mut self,
        number: u32,
        port: u16,
        expectation: &Expectation,
    ) -> Result<u32, Stop> {
        if !self.sdp_socket(number)?.endpoint.awaits_reconnect() {
            return Err(self.recorder().harness(&format!("connection {number} is not suspended")));
        }
        let resumed = self.connections.await_reconnection(port, expectation).await?;
        let now = self.connections.link.now();
        let mut socket = self.sdp_sockets.remove(&number).ok_or(Stop)?;
        socket.endpoint.reconnect(now);
        (socket.end, socket.is_tcp_over) = (None, false);
        self.sdp_sockets.insert(resumed, socket);
        Ok(resumed)
    }

    /// Resets the connection of a socket.
    pub(crate) async fn reset_sdp_socket(&mut self, number: u32) -> Result<(), Stop> {
        self.sdp_sockets.remove(&number);
        self.connections.reset(number).await
    }

    /// Runs all sockets until the condition `wait` of this socket is met, or until the socket
    /// receives no byte for `within`. For [`SocketWait::Time`], `within` is the time to wait.
    /// Returns whether the condition is met.
    pub(crate) async fn sdp_socket_wait(
        &mut self,
        number: u32,
        wait: SocketWait,
        within: Duration,
    ) -> Result<bool, Stop> {
        let mut deadline = self.connections.link.now() + within;
        let last = deadline + self.connections.target.scaled(MAX_WAIT_SECONDS);
        let is_condition = wait != SocketWait::Time;
        let mut has_tried = false;
        loop {
            let open: Vec<u32> = self.sdp_sockets.keys().copied().collect();
            for number in &open {
                self.run_sdp_socket(*number).await?;
            }
            if self.sdp_socket(number)?.is_met(wait) {
                return Ok(true);
            }
            let now = self.connections.link.now();
            // Bytes that have arrived are handled even if there is no time to wait for more.
            if now >= deadline && has_tried {
                return Ok(false);
            }
            has_tried = true;
            let ends_of_pauses = self.sdp_sockets.values().flat_map(|socket| [socket.unread_until, socket.held_until]);
            let ends_of_pauses = ends_of_pauses.flatten().filter(|until| *until > now);
            let next = self.sdp_sockets.values().filter_map(SdpSocket::deadline).chain(ends_of_pauses).min();
            let until = next.map_or(deadline, |next| next.min(deadline));
            let waiting: Vec<u32> =
                open.into_iter().filter(|number| self.sdp_sockets[number].is_reading(now)).collect();
            let mut arrived = Vec::new();
            for number in &waiting {
                let until = if waiting.len() > 1 { now } else { until };
                if self.receive_for_sdp_socket(*number, until).await? {
                    arrived.push(*number);
                }
            }
            match waiting.first() {
                None => self.connections.link.pause(until).await,
                Some(first) if waiting.len() > 1 && arrived.is_empty() => {
                    let first = if waiting.contains(&number) { number } else { *first };
                    if self.receive_for_sdp_socket(first, until.min(now + SLICE)).await? {
                        arrived.push(first);
                    }
                }
                Some(_) => {}
            }
            if is_condition && arrived.contains(&number) {
                deadline = last.min(self.connections.link.now() + within);
            }
        }
    }

    /// Performs everything that a socket has to do now.
    async fn run_sdp_socket(&mut self, number: u32) -> Result<(), Stop> {
        loop {
            let now = self.connections.link.now();
            let socket = self.sdp_socket(number)?;
            if socket.deadline().is_some_and(|time| time <= now) {
                socket.endpoint.handle_timeout(now);
            }
            socket.post(now);
            loop {
                match socket.endpoint.advance(now) {
                    Some(Progress::Event(event, octets)) => {
                        socket.event(&event, octets);
                        socket.post(now);
                    }
                    Some(_) => {}
                    None if socket.endpoint.settle(now) => {}
                    None => break,
                }
            }
            let is_finished = socket.is_finished;
            let cut = if socket.cuts_left > 0 && socket.endpoint.machine().is_open() { socket.cut } else { Cut::None };
            let mut octets = Vec::new();
            let mut last = None;
            while octets.len() < MAX_WRITE {
                match socket.endpoint.poll_transmit(now) {
                    Some(Transmit::Octets(more)) => octets.extend_from_slice(&more),
                    other => {
                        last = other;
                        break;
                    }
                }
            }
            if octets.is_empty() && last.is_none() {
                return Ok(());
            }
            if !octets.is_empty() && !is_finished {
                self.put_cut(number, octets, cut).await?;
            }
            match last {
                Some(Transmit::Fin) => self.connections.finish(number).await?,
                Some(Transmit::Reset) => {
                    self.connections.abort(number).await?;
                    self.sdp_socket(number)?.is_tcp_over = true;
                }
                _ => {}
            }
        }
    }

    /// Sends bytes in the TCP segments that `cut` describes.
    async fn put_cut(&mut self, number: u32, octets: Vec<u8>, cut: Cut) -> Result<(), Stop> {
        let bytes = |octets| Message::new("bytes of weft's SDP", octets);
        if cut == Cut::None {
            return self.connections.put(number, &bytes(octets)).await;
        }
        let mut rest = &octets[..];
        while !rest.is_empty() {
            let left = self.sdp_socket(number)?.cuts_left;
            let size = match cut {
                _ if left == 0 => rest.len(),
                Cut::Octets(size) => size,
                Cut::None | Cut::Fpdus => fpdu_len(rest),
            };
            let (piece, after) = rest.split_at(size.min(rest.len()));
            self.connections.put(number, &bytes(piece.to_vec())).await?;
            self.sdp_socket(number)?.cuts_left = left.saturating_sub(1);
            if left > 0 {
                let until = self.connections.link.now() + CUT_PAUSE;
                self.connections.link.pause(until).await;
            }
            rest = after;
        }
        Ok(())
    }

    /// Waits for bytes of a socket's connection. Returns whether something arrived.
    async fn receive_for_sdp_socket(&mut self, number: u32, deadline: Instant) -> Result<bool, Stop> {
        let arrival = self.connections.receive(number, deadline).await?;
        let octets = std::mem::take(&mut self.connections.get(number)?.unread);
        let now = self.connections.link.now();
        if arrival != Arrival::TimedOut {
            self.connections.log.answered();
        }
        let socket = self.sdp_socket(number)?;
        match arrival {
            Arrival::Octets => socket.endpoint.handle_octets(now, &octets),
            Arrival::Fin => socket.endpoint.handle_fin(now),
            Arrival::Reset => socket.endpoint.handle_reset(now),
            Arrival::TimedOut => return Ok(false),
        }
        socket.is_tcp_over |= arrival != Arrival::Octets;
        Ok(true)
    }
}
