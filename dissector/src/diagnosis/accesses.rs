//! The latest accesses of an endpoint to the memory of its peer, and its latest Sends.
//!
//! **Memory.** For each endpoint, at most [`MAX_ACCESSES`] accesses and [`MAX_SENDS`] Sends are
//! kept.

use std::collections::VecDeque;

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::rdmap::{Opcode, RawAtomicRequest, ReadRequest};
use zerocopy::FromBytes;

use crate::fact::Message;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;

use super::buffers::Span;

/// Maximum number of accesses that are kept.
const MAX_ACCESSES: usize = 32;
/// Maximum number of Sends that are kept.
const MAX_SENDS: usize = 32;

/// A message that accesses the memory of the peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) opcode: Opcode,
    /// The octets of the complete message.
    pub(super) span: Span,
    /// The frame of the first segment.
    pub(super) first: FrameNumber,
    /// The frame of the last segment.
    pub(super) last: FrameNumber,
    /// Whether further segments of the message follow.
    is_open: bool,
}

impl Access {
    /// Returns whether the access contains `span`. If the length of `span` is not known (0), only
    /// its start counts.
    fn contains(&self, span: Span) -> bool {
        let offset = span.to.wrapping_sub(self.span.to);
        let is_start = self.span.stag == span.stag && offset < self.span.len.max(1);
        is_start && span.len <= self.span.len - offset.min(self.span.len)
    }
}

/// A Send.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentMessage {
    pub(super) opcode: Opcode,
    /// Queue number and message sequence number.
    queue: Option<(u32, Msn)>,
    /// Length in octets.
    pub(super) len: u64,
    /// The frame of the first segment.
    pub(super) first: FrameNumber,
    /// The frame of the last segment.
    pub(super) last: FrameNumber,
}

/// The latest accesses and Sends of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    kept: VecDeque<Access>,
    sends: VecDeque<SentMessage>,
}

impl Accesses {
    /// Records a segment of this endpoint.
    pub(super) fn record(&mut self, view: &SegmentView<'_>, frame: FrameNumber) {
        let opcode = view.opcode();
        match view.segment {
            Segment::Tagged(header, _) => {
                let (stag, to, len) = (header.stag.get(), header.tagged_offset.get(), u64::from(view.payload_len));
                let latest = self.kept.back_mut().filter(|access| {
                    let next = access.span.to.wrapping_add(access.span.len);
                    access.is_open && (access.opcode, access.span.stag, next) == (opcode, stag, to)
                });
                if let Some(access) = latest {
                    access.span.len += len;
                    access.last = frame;
                    access.is_open = !view.last();
                    return;
                }
                self.add(opcode, Span { stag, to, len }, frame, !view.last());
            }
            Segment::Untagged(..) if opcode == Opcode::READ_REQUEST => {
                if let Some(read) = view.payload.all().and_then(|octets| ReadRequest::parse(octets).ok()) {
                    let span = Span { stag: read.src_stag, to: read.src_to, len: u64::from(read.rdmardsz) };
                    self.add(opcode, span, frame, false);
                }
            }
            Segment::Untagged(..) if opcode == Opcode::ATOMIC_REQUEST => {
                let octets = view.payload.all();
                if let Some(raw) = octets.and_then(|octets| RawAtomicRequest::ref_from_bytes(octets).ok()) {
                    let span = Span { stag: raw.remote_stag.get(), to: raw.remote_tagged_offset.get(), len: 8 };
                    self.add(opcode, span, frame, false);
                }
            }
            Segment::Untagged(..) => {}
        }
    }

    fn add(&mut self, opcode: Opcode, span: Span, frame: FrameNumber, is_open: bool) {
        if self.kept.len() >= MAX_ACCESSES {
            self.kept.pop_front();
        }
        self.kept.push_back(Access { opcode, span, first: frame, last: frame, is_open });
    }

    /// Records a complete message of this endpoint.
    pub(super) fn message(&mut self, message: &Message) {
        if !message.opcode.is_send() {
            return;
        }
        if self.sends.len() >= MAX_SENDS {
            self.sends.pop_front();
        }
        let Message { opcode, queue, len, frames: (first, last), .. } = *message;
        self.sends.push_back(SentMessage { opcode, queue, len, first, last });
    }

    /// The access with a segment in frame `frame` that contains `span`.
    pub(super) fn in_frame(&self, opcode: Opcode, frame: FrameNumber, span: Span) -> Option<&Access> {
        let is_in = |access: &&Access| access.opcode == opcode && access.first <= frame && frame <= access.last;
        self.kept.iter().rev().filter(is_in).find(|access| access.contains(span))
    }

    /// The latest access before frame `before` that contains `span`.
    pub(super) fn containing(&self, opcode: Opcode, span: Span, before: FrameNumber) -> Option<&Access> {
        let is_earlier = |access: &&Access| access.opcode == opcode && access.first < before;
        self.kept.iter().rev().filter(is_earlier).find(|access| access.contains(span))
    }

    /// The accesses that ended before frame `before`, the latest first.
    pub(super) fn before(&self, before: FrameNumber) -> impl Iterator<Item = &Access> {
        self.kept.iter().rev().filter(move |access| access.last < before)
    }

    /// The latest Send with this queue number and message sequence number.
    pub(super) fn send_with(&self, queue: u32, msn: Msn) -> Option<&SentMessage> {
        self.sends.iter().rev().find(|send| send.queue == Some((queue, msn)))
    }

    /// The Send with a segment in frame `frame`.
    pub(super) fn send_in(&self, frame: FrameNumber) -> Option<&SentMessage> {
        self.sends.iter().rev().find(|send| send.first <= frame && frame <= send.last)
    }

    /// The length in octets of the longest kept Send that ended before frame `before`.
    pub(super) fn longest_send_before(&self, before: FrameNumber) -> Option<u64> {
        self.sends.iter().filter(|send| send.last < before).map(|send| send.len).max()
    }
}
