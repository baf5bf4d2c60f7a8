//! The start-up frames of a connection: what the endpoints offered and agreed on.

use serde::Serialize;
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{
    Enhanced, FLAG_C, FLAG_M, FLAG_R, FLAG_S, HEADER_LEN, NOT_NEGOTIATED, RawEnhanced, RawStartup,
};
use zerocopy::FromBytes;

use crate::direction::Direction;
use crate::format::counted;
use crate::frame_number::FrameNumber;
use crate::part::Part;

/// A start-up frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StartupReport {
    /// Number of the direction: 0 or 1.
    pub direction: u8,
    /// Whether the frame is a Reply. Otherwise it is a Request.
    pub reply: bool,
    /// Number of the frame that completed the start-up frame.
    pub frame: FrameNumber,
    /// Rev.
    pub revision: u8,
    /// Whether the sender wants to receive markers (M).
    pub markers: bool,
    /// Whether the sender wants CRCs in both directions (C).
    pub crc: bool,
    /// Whether the sender rejects the connection (R in a Reply).
    pub rejected: bool,
    /// Number of octets after the header (`PD_Length`).
    pub pd_length: u16,
    /// IRD of RFC 6581, if the frame has it and it is negotiated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ird: Option<u16>,
    /// ORD of RFC 6581, if the frame has it and it is negotiated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ord: Option<u16>,
}

impl StartupReport {
    /// Reads a start-up frame; `None` if its header was not captured.
    pub(super) fn read(kind: StartupKind, part: Part<'_>, direction: Direction, frame: FrameNumber) -> Option<Self> {
        let (raw, _) = RawStartup::read_from_prefix(part.get(0..HEADER_LEN)?).ok()?;
        let words = part.get(HEADER_LEN..HEADER_LEN + 4).filter(|_| raw.revision >= 2 && raw.flags & FLAG_S != 0);
        let words = words.and_then(|octets| RawEnhanced::read_from_bytes(octets).ok()).map(Enhanced::from_raw);
        let depth = |depth: u16| Some(depth).filter(|depth| *depth != NOT_NEGOTIATED);
        let reply = kind == StartupKind::Reply;
        Some(StartupReport {
            direction: u8::from(direction),
            reply,
            frame,
            revision: raw.revision,
            markers: raw.flags & FLAG_M != 0,
            crc: raw.flags & FLAG_C != 0,
            rejected: reply && raw.flags & FLAG_R != 0,
            pd_length: raw.pd_length.get(),
            ird: words.and_then(|words| depth(words.ird)),
            ord: words.and_then(|words| depth(words.ord)),
        })
    }
}

impl StartupReport {
    /// Length in octets of the private data, without IRD and ORD.
    pub(super) fn private_len(&self) -> u16 {
        let words = if self.ird.is_some() || self.ord.is_some() { 4 } else { 0 };
        self.pd_length.saturating_sub(words)
    }
}

/// The start-up frames of both directions.
#[derive(Debug, Default)]
pub(super) struct Startup {
    frames: [Option<StartupReport>; 2],
}

impl Startup {
    /// Records a start-up frame. A frame after a rejection begins a second start-up.
    pub(super) fn record(&mut self, report: StartupReport) {
        if self.frames.iter().flatten().any(|frame| frame.rejected) {
            self.frames = [None; 2];
        }
        self.frames[Direction::from(report.direction)] = Some(report);
    }

    /// The start-up frame of a direction.
    pub(super) fn of(&self, direction: Direction) -> Option<&StartupReport> {
        self.frames[direction].as_ref()
    }

    /// The Request, if it was captured.
    pub(super) fn request(&self) -> Option<&StartupReport> {
        self.all().find(|frame| !frame.reply)
    }

    /// The Reply, if it was captured.
    pub(super) fn reply(&self) -> Option<&StartupReport> {
        self.all().find(|frame| frame.reply)
    }

    /// The captured start-up frames.
    pub(super) fn all(&self) -> impl Iterator<Item = &StartupReport> {
        self.frames.iter().flatten()
    }

    /// The IRD that limits the Read Requests of `requester`, if both start-up frames have one.
    pub(super) fn read_limit(&self, requester: Direction) -> Option<u16> {
        self.of(requester)?.ird?;
        self.of(requester.peer())?.ird
    }

    /// Describes the result of the start-up in a sentence; `None` if the capture has no start-up
    /// frame.
    pub(super) fn sentence(&self) -> Option<String> {
        let (request, reply) = (self.request(), self.reply());
        let frame = reply.or(request)?;
        let mut text = match (request, reply) {
            (Some(_), Some(reply)) if reply.rejected => {
                format!("The Reply (frame {}) rejects the Request", reply.frame)
            }
            (Some(_), Some(reply)) => {
                let crc = if self.all().any(|frame| frame.crc) { "with CRC" } else { "without CRC" };
                let markers = match [0, 1].map(|direction| self.wants_markers(direction)) {
                    [false, false] => "without markers",
                    [true, true] => "with markers in both directions",
                    _ => "with markers in one direction",
                };
                format!("The endpoints negotiated MPA revision {}, {crc} and {markers}", reply.revision)
            }
            _ => {
                let (own, other) = if frame.reply { ("Reply", "Request") } else { ("Request", "Reply") };
                let StartupReport { frame, revision, .. } = frame;
                format!("The {own} (frame {frame}, revision {revision}) has no {other} in this capture")
            }
        };
        let depths: Vec<String> = self.all().filter_map(depths).collect();
        if !depths.is_empty() {
            text.push_str(&format!("; {}", depths.join(", ")));
        }
        let private: Vec<String> = self.all().filter_map(private_data).collect();
        if !private.is_empty() {
            text.push_str(&format!("; private data: {}", private.join(", ")));
        }
        text.push('.');
        Some(text)
    }

    fn wants_markers(&self, direction: u8) -> bool {
        self.of(Direction::from(direction)).is_some_and(|frame| frame.markers)
    }
}

fn name(frame: &StartupReport) -> &'static str {
    if frame.reply { "Reply" } else { "Request" }
}

fn depths(frame: &StartupReport) -> Option<String> {
    let number = |depth: Option<u16>| depth.map_or_else(|| "not negotiated".to_owned(), |depth| depth.to_string());
    let has_depths = frame.ird.is_some() || frame.ord.is_some();
    has_depths.then(|| format!("{} IRD {} ORD {}", name(frame), number(frame.ird), number(frame.ord)))
}

fn private_data(frame: &StartupReport) -> Option<String> {
    let len = frame.private_len();
    (len > 0).then(|| format!("{} {}", name(frame), counted(len.into(), "byte")))
}
