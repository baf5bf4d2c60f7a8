//! [`Diagnosis`]: the result for one connection.

use std::net::SocketAddr;

use serde::Serialize;

use crate::direction::Direction;
use crate::exchange::State;
use crate::frame_number::FrameNumber;
use crate::io::is_followed;
use crate::stream_id::StreamId;
use crate::upper::Ulp;

use super::carried::{Carried, Counters};
use super::cause::decide;
use super::ending::Ending;
use super::exchanges::ExchangeReport;
use super::problems::Problem;
use super::startup::StartupReport;
use super::track::{SdpEnd, Track};
use super::transport::TransportSide;
use super::verdict::{Cause, Culprit, Link};

/// TCP's share in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TcpShare {
    /// Number of segments, without copies from other capture points.
    pub segments: u64,
    /// Number of segments with only octets that were sent before.
    pub retransmissions: u64,
    /// The first retransmission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_retransmission: Option<FrameNumber>,
    /// Number of retransmissions of octets that were lost before the capture point.
    pub refills: u64,
    /// Number of segments out of order.
    pub out_of_order: u64,
    /// How often the endpoint closed its receive window.
    pub zero_windows: u64,
    /// The first segment with a closed window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_zero_window: Option<FrameNumber>,
    /// Time with a closed window, in nanoseconds.
    pub zero_window_ns: u64,
    /// Number of keep-alives and window probes.
    pub keep_alives: u64,
    /// Number of retransmissions, keep-alives and SYNs at the end without an answer.
    pub unanswered: u64,
    /// Number of octets that are not in the capture.
    pub missing_octets: u64,
}

impl TcpShare {
    fn of(side: &TransportSide, carried: &Counters, end: u64) -> Self {
        TcpShare {
            segments: side.segments,
            retransmissions: side.retransmissions,
            first_retransmission: side.first_retransmission,
            refills: side.refills,
            out_of_order: side.out_of_order,
            zero_windows: side.zero_windows,
            first_zero_window: side.first_zero_window,
            zero_window_ns: side.closed_window_until(end),
            keep_alives: side.keep_alives,
            unanswered: side.unanswered.count,
            missing_octets: carried.other.missing_octets,
        }
    }
}

/// SDP on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SdpReport {
    /// Number of the direction in which the Connecting Peer sends.
    pub connecting: u8,
    /// The start-up sequence, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<&'static str>,
    /// The final state, as in `weft stats`.
    pub state: &'static str,
    /// Whether the HelloAck was captured.
    pub has_hello_ack: bool,
}

impl SdpReport {
    fn of(sdp: &SdpEnd) -> Self {
        let state = sdp.closing.state().name();
        let has_hello_ack = sdp.closing.hello_ack.is_some();
        SdpReport { connecting: u8::from(sdp.connecting), profile: sdp.profile, state, has_hello_ack }
    }
}

/// What happened on a connection, and why it ended. Arrays have one element for each direction.
///
/// Its text ([`std::fmt::Display`]) is one paragraph, or one line if there is no problem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Number of the connection.
    pub stream: StreamId,
    /// The addresses of the endpoints. The sender of the first frame comes first.
    pub ends: [String; 2],
    /// Frame numbers of the first and the last segment.
    pub frames: (FrameNumber, FrameNumber),
    /// Time of the first segment, in nanoseconds since 1970.
    pub began_ns: u64,
    /// Time from the first to the last segment, in nanoseconds.
    pub duration_ns: u64,
    /// The answer in one clause, without a period.
    pub headline: String,
    /// The cause of the end.
    pub cause: Cause,
    /// The party at fault.
    pub culprit: Culprit,
    /// The events that led to the end, in their order.
    pub chain: Vec<Link>,
    /// What the capture does not show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// A sentence for the vendor of the endpoint at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// How the connection ended.
    pub ending: Ending,
    /// The captured start-up frames of MPA.
    pub startup: Vec<StartupReport>,
    /// The result of the start-up as a sentence.
    #[serde(skip)]
    pub(super) startup_text: Option<String>,
    /// What each endpoint sent.
    pub carried: [Carried; 2],
    /// TCP's share.
    pub tcp: [TcpShare; 2],
    /// The protocol above RDMAP, if it is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ulp: Option<&'static str>,
    /// The same protocol, for the text.
    #[serde(skip)]
    pub(super) ulp_title: Option<Ulp>,
    /// SDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdp: Option<SdpReport>,
    /// Number of the port mapper exchange that prepared the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    /// The problems: findings with the same root.
    pub problems: Vec<Problem>,
    /// Number of findings that belong to no problem in `problems`, because there are too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub further_findings: u64,
    /// Whether the connection has iWARP or SDP.
    pub is_iwarp: bool,
    /// Whether weft dropped the state of the connection to save memory before the connection ended.
    /// Later events are not part of the diagnosis.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_interrupted: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Diagnosis {
    pub(super) fn of(track: Track) -> Self {
        let ending = Ending::of(&track);
        let verdict = decide(&track, &ending);
        let mut problems = track.problems.list;
        for (index, problem) in problems.iter_mut().enumerate() {
            problem.is_cause = verdict.root == Some(index) || verdict.chain.iter().any(|link| link.shows(problem));
        }
        let sides = &track.transport.sides;
        let tcp = Direction::BOTH
            .map(|direction| TcpShare::of(&sides[direction], &track.carried[direction], track.last.time));
        Diagnosis {
            stream: track.stream,
            ends: track.ends,
            frames: (track.began.frame, track.last.frame),
            began_ns: track.began.time,
            duration_ns: track.last.time.saturating_sub(track.began.time),
            headline: verdict.headline,
            cause: verdict.cause,
            culprit: verdict.culprit,
            chain: verdict.chain,
            unknown: verdict.unknown,
            advice: verdict.advice,
            ending,
            startup: track.startup.all().copied().collect(),
            startup_text: track.startup.sentence(),
            carried: track.carried.map(Counters::into_carried),
            tcp,
            ulp: track.ulp.map(Ulp::name),
            ulp_title: track.ulp,
            sdp: track.sdp.as_ref().map(SdpReport::of),
            exchange: track.exchange,
            problems,
            further_findings: track.problems.further,
            is_iwarp: track.is_iwarp,
            is_interrupted: false,
        }
    }

    /// Explains a connection without an MPA Reply by a port mapper exchange. If the port mapper
    /// denied SDP for the address, the client must not start MPA there.
    pub(super) fn apply_denial(&mut self, exchange: &ExchangeReport) {
        let request = self.startup.iter().find(|frame| !frame.reply);
        let has_reply = self.startup.iter().any(|frame| frame.reply);
        let Some(request) = request.filter(|request| !has_reply && request.frame > exchange.frame) else { return };
        let Some(address) = exchange.requested.filter(|_| exchange.state == State::Denied.name()) else { return };
        let is_client = |end: &str| end.parse().is_ok_and(|end: SocketAddr| end.ip() == exchange.connecting.ip());
        let initiator = usize::from(request.direction.min(1));
        let address = address.to_string();
        let (own, peer) = (&self.ends[initiator], &self.ends[1 - initiator]);
        if *peer != address || !is_client(own) || !matches!(self.cause, Cause::Startup | Cause::NoResponse) {
            return;
        }
        let (direction, frame) = (Direction::from(request.direction), exchange.frame);
        self.headline = format!("{own} started MPA on {peer}, although the port mapper had denied SDP for it");
        let denial = format!("the port mapper denies SDP for {peer}");
        self.chain.insert(0, Link { direction: None, ..Link::new(direction, Some(frame), denial) });
        self.advice = Some(format!("To the vendor of {own}: after a PMDeny, use the port with TCP only"));
        self.unknown = None;
        (self.cause, self.culprit) = (Cause::PortDenied, Culprit::from(direction));
        self.exchange = Some(exchange.exchange);
    }

    /// Returns whether there is nothing to report.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.cause == Cause::None
    }

    /// Returns whether the connection failed: it did not open, an error or an endpoint ended it, or
    /// it no longer works. Violations on a connection that ended normally are not a failure.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        !matches!(self.cause, Cause::None | Cause::Violations | Cause::Loss | Cause::OneDirection)
    }

    /// Returns whether the connection concerns iWARP or SDP: it has one of these protocols, or
    /// findings, or it was not opened.
    #[must_use]
    pub fn is_relevant(&self) -> bool {
        self.is_iwarp || !self.problems.is_empty() || matches!(self.cause, Cause::NoAnswer | Cause::Refused)
    }

    /// Returns whether the connection carries storage commands, which [`crate::io`] follows.
    #[must_use]
    pub fn has_storage_commands(&self) -> bool {
        self.ulp_title.is_some_and(is_followed)
    }

    /// The party at fault in words, for example its address.
    #[must_use]
    pub fn at_fault(&self) -> &str {
        match self.culprit {
            Culprit::First => &self.ends[0],
            Culprit::Second => &self.ends[1],
            Culprit::Both => "both endpoints",
            Culprit::Network => "the network",
            Culprit::Nobody => "no endpoint",
            Culprit::NotInCapture => "not in this capture",
        }
    }

    /// The address of the endpoint at fault; `None` if no single endpoint is at fault.
    #[must_use]
    pub fn culprit_end(&self) -> Option<&str> {
        match self.culprit {
            Culprit::First => Some(&self.ends[0]),
            Culprit::Second => Some(&self.ends[1]),
            Culprit::Both | Culprit::Network | Culprit::Nobody | Culprit::NotInCapture => None,
        }
    }
}
