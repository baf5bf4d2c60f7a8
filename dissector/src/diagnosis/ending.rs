//! Determines how a connection ended, and which endpoint ended it.

use serde::Serialize;

use crate::direction::Direction;
use crate::exchange::CapturePoint;
use crate::frame_number::FrameNumber;

use super::terminate::TerminateReport;
use super::track::Track;
use super::transport::Probes;

/// Minimum number of probes without an answer before the peer counts as silent.
const SILENT_PROBES: u64 = 3;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    /// Both endpoints sent a FIN.
    Closed,
    /// Only one endpoint sent a FIN.
    HalfClosed,
    /// An endpoint sent a RST.
    Reset,
    /// An endpoint sent a Terminate.
    Terminated,
    /// The MPA Reply rejects the connection.
    Rejected,
    /// A RST answers the SYN.
    Refused,
    /// Nothing answers the SYN.
    Unanswered,
    /// An endpoint no longer answers its peer.
    Silent,
    /// The capture ends before the connection.
    Open,
}

/// The end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// How the connection ended.
    pub kind: EndKind,
    /// Number of the direction of the endpoint that ended the connection: 0 or 1. For
    /// [`EndKind::Silent`] and [`EndKind::Unanswered`], the endpoint that gets no answer. `None` if
    /// the connection is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<u8>,
    /// The frame that ended the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameNumber>,
    /// Time from the first segment to this frame, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<u64>,
}

/// An event that ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndEvent {
    Fin,
    Reset,
    Terminate,
}

impl Ending {
    fn new(track: &Track, kind: EndKind, direction: Direction, at: CapturePoint) -> Self {
        Ending {
            kind,
            direction: Some(u8::from(direction)),
            frame: Some(at.frame),
            after_ns: Some(at.time.saturating_sub(track.began.time)),
        }
    }

    /// Determines the end of a connection.
    pub(super) fn of(track: &Track) -> Self {
        let [first, other] = &track.transport.sides;
        if let Some(syn) = first.syn.filter(|_| first.has_only_syns()) {
            if other.segments == 0 {
                return Ending::new(track, EndKind::Unanswered, Direction::Forward, first.last.unwrap_or(syn));
            }
            if let Some(rst) = other.rst.filter(|rst| rst.is_first_segment) {
                return Ending::new(track, EndKind::Refused, Direction::Reverse, rst.at);
            }
        }
        if let Some(reply) = track.startup.reply().filter(|reply| reply.rejected) {
            let at = CapturePoint { frame: reply.frame, time: track.began.time };
            let ending = Ending::new(track, EndKind::Rejected, Direction::from(reply.direction), at);
            return Ending { after_ns: None, ..ending };
        }
        if let Some((direction, terminate)) = first_terminate(track) {
            let at = CapturePoint { frame: terminate.frame, time: terminate.time };
            return Ending::new(track, EndKind::Terminated, direction, at);
        }
        let fins = [first.fin, other.fin];
        let both = fins.into_iter().flatten().map(|fin| fin.frame).max().filter(|_| fins.iter().all(Option::is_some));
        // A RST after both FINs changes nothing.
        if let Some((direction, rst)) = first_reset(track).filter(|(_, rst)| both.is_none_or(|fin| rst.frame < fin)) {
            return Ending::new(track, EndKind::Reset, direction, rst);
        }
        if let Some((direction, fin)) = first_fin(track) {
            let kind = if both.is_some() { EndKind::Closed } else { EndKind::HalfClosed };
            return Ending::new(track, kind, direction, fin);
        }
        if let Some((direction, probes)) = silence(track)
            && let Some(last) = probes.last
        {
            return Ending::new(track, EndKind::Silent, direction, last);
        }
        Ending { kind: EndKind::Open, direction: None, frame: None, after_ns: None }
    }
}

/// The first Terminate of the connection.
pub(super) fn first_terminate(track: &Track) -> Option<(Direction, &TerminateReport)> {
    let all = Direction::BOTH.into_iter();
    let all = all.filter_map(|direction| Some((direction, track.terminates[direction].as_ref()?)));
    all.min_by_key(|(_, terminate)| terminate.frame)
}

/// The first RST of the connection.
pub(super) fn first_reset(track: &Track) -> Option<(Direction, CapturePoint)> {
    let all = Direction::BOTH.into_iter();
    let all = all.filter_map(|direction| Some((direction, track.transport.sides[direction].rst?.at)));
    all.min_by_key(|(_, at)| at.frame)
}

/// The first FIN of the connection.
pub(super) fn first_fin(track: &Track) -> Option<(Direction, CapturePoint)> {
    let all = Direction::BOTH.into_iter();
    let all = all.filter_map(|direction| Some((direction, track.transport.sides[direction].fin?)));
    all.min_by_key(|(_, at)| at.frame)
}

/// The first FIN, RST or Terminate after frame `after`.
pub(super) fn next_event(track: &Track, after: FrameNumber) -> Option<(EndEvent, Direction, FrameNumber)> {
    let mut events = Vec::new();
    for direction in Direction::BOTH {
        let side = &track.transport.sides[direction];
        events.extend(side.fin.map(|fin| (EndEvent::Fin, direction, fin.frame)));
        events.extend(side.rst.map(|rst| (EndEvent::Reset, direction, rst.at.frame)));
        let terminate = track.terminates[direction].as_ref();
        events.extend(terminate.map(|terminate| (EndEvent::Terminate, direction, terminate.frame)));
    }
    events.into_iter().filter(|(_, _, frame)| *frame > after).min_by_key(|(_, _, frame)| *frame)
}

/// The endpoint whose last segments got no answer, with these segments.
pub(super) fn silence(track: &Track) -> Option<(Direction, Probes)> {
    if track.transport.is_one_sided() {
        return None;
    }
    let all = Direction::BOTH.into_iter().map(|direction| (direction, track.transport.sides[direction].unanswered));
    all.filter(|(_, probes)| probes.count >= SILENT_PROBES).max_by_key(|(_, probes)| probes.count)
}
