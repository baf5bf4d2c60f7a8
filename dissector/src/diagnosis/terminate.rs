//! The Terminate of an endpoint: the reported error, and the message that it reports.

use weft_core::wire::ddp::RawHeader;
use weft_core::wire::rdmap::{Opcode, RawTerminate, ReadRequest, Terminate, TerminateError};
use zerocopy::FromBytes;

use crate::fact;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;

use super::buffers::Span;

/// A Terminate.
#[derive(Debug, Clone, Copy)]
pub(super) struct TerminateReport {
    /// The frame of the Terminate.
    pub(super) frame: FrameNumber,
    /// Capture time of this frame, in nanoseconds since 1970.
    pub(super) time: u64,
    pub(super) error: TerminateError,
    /// The frame of the reported segment, if it is known.
    pub(super) target: Option<FrameNumber>,
    /// The copied header of the reported segment.
    header: Option<RawHeader>,
    /// The field DDP Segment Length.
    segment_length: Option<u16>,
    /// The copied header of the reported Read Request.
    read: Option<ReadRequest>,
}

impl TerminateReport {
    /// Reads the Terminate in `view`; `None` if its fixed part is missing.
    pub(super) fn read(view: &SegmentView<'_>, frame: FrameNumber, time: u64) -> Option<Self> {
        let (fixed, _) = RawTerminate::read_from_prefix(view.payload.get(0..RawTerminate::LEN)?).ok()?;
        let parsed = view.payload.all().and_then(|octets| Terminate::parse(octets).ok());
        Some(TerminateReport {
            frame,
            time,
            error: fixed.error(),
            target: None,
            header: parsed.and_then(|parsed| parsed.ddp_header),
            segment_length: parsed.and_then(|parsed| parsed.segment_length),
            read: parsed.and_then(|parsed| parsed.read_request),
        })
    }

    /// Adds the facts of the monitor about this Terminate.
    pub(super) fn complete(&mut self, fact: &fact::Terminate) {
        if fact.frame == self.frame {
            self.target = fact.target;
        }
    }

    /// RDMAP's opcode in the copied header.
    pub(super) fn opcode(&self) -> Option<Opcode> {
        self.header.map(|header| header.ulp_control().opcode())
    }

    /// The queue number in the copied header; `None` for a tagged segment.
    pub(super) fn queue(&self) -> Option<u32> {
        match self.header? {
            RawHeader::Untagged(header) => Some(header.qn.get()),
            RawHeader::Tagged(_) => None,
        }
    }

    /// The message sequence number in the copied header; `None` for a tagged segment.
    pub(super) fn msn(&self) -> Option<u32> {
        match self.header? {
            RawHeader::Untagged(header) => Some(header.msn.get()),
            RawHeader::Tagged(_) => None,
        }
    }

    /// The STag that the reported Send with Invalidate names.
    pub(super) fn invalidated_stag(&self) -> Option<u32> {
        match self.header? {
            RawHeader::Untagged(header) if header.ulp_control.opcode().invalidates() => Some(header.ulp_word.get()),
            _ => None,
        }
    }

    /// The range that the reported segment accesses in the memory of the Terminate's sender. The
    /// length is 0 if it is not known.
    pub(super) fn span(&self) -> Option<Span> {
        match self.header? {
            RawHeader::Tagged(header) => {
                let len = self.segment_length.map_or(0, |len| u64::from(len.saturating_sub(14)));
                Some(Span { stag: header.stag.get(), to: header.tagged_offset.get(), len })
            }
            RawHeader::Untagged(_) => {
                let read = self.read?;
                Some(Span { stag: read.src_stag, to: read.src_to, len: u64::from(read.rdmardsz) })
            }
        }
    }
}
