//! Records the first DDP segments of each direction. Rules use these segments to find a
//! ready-to-receive message (RFC 6581).

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::rdmap::{Opcode, ReadRequest};

use super::stream::TerminateSummary;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;
use crate::parse::Unit;

/// One of the first segments of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstSegment {
    /// The frame of the segment.
    pub frame: FrameNumber,
    /// RDMAP's opcode.
    pub opcode: Opcode,
    /// Whether the L bit is set. The L bit means that this is the last segment of its message.
    pub last: bool,
    /// Length of the payload after the DDP header, in octets.
    pub payload_len: u32,
    /// MSN of an untagged segment; `None` for a tagged segment.
    pub msn: Option<Msn>,
    /// For a tagged segment, STag and TO. For a Read Request, STag and TO of the sink. For all
    /// other segments, zeros.
    pub stag_and_to: (u32, u64),
    /// RDMARDSZ of a Read Request; `None` for other segments, and if octets of the Read Request
    /// were not captured.
    pub read_size: Option<u32>,
    /// Layer, type and code of a Terminate.
    pub terminate: Option<TerminateSummary>,
}

impl FirstSegment {
    /// Reads a segment.
    pub(crate) fn read(unit: &Unit<'_>, view: &SegmentView<'_>) -> Self {
        let mut segment = FirstSegment {
            frame: unit.frame,
            opcode: view.opcode(),
            last: view.last(),
            payload_len: view.payload_len,
            msn: None,
            stag_and_to: (0, 0),
            read_size: None,
            terminate: TerminateSummary::read(unit, view),
        };
        match &view.segment {
            Segment::Tagged(header, _) => segment.stag_and_to = (header.stag.get(), header.tagged_offset.get()),
            Segment::Untagged(header, _) => {
                segment.msn = Some(header.msn());
                if segment.opcode == Opcode::READ_REQUEST
                    && let Some(request) = view.payload.get(0..28).and_then(|octets| ReadRequest::parse(octets).ok())
                {
                    segment.stag_and_to = (request.sink_stag, request.sink_to);
                    segment.read_size = Some(request.rdmardsz);
                }
            }
        }
        segment
    }

    /// Returns `false` if the segment is a Terminate, or a Read Request whose RDMARDSZ was not
    /// captured.
    pub(crate) fn is_known(&self) -> bool {
        self.opcode != Opcode::TERMINATE && (self.opcode != Opcode::READ_REQUEST || self.read_size.is_some())
    }

    /// Returns whether the segment is a zero-length RDMA Write.
    pub(crate) fn is_empty_write(&self) -> bool {
        self.opcode == Opcode::WRITE && self.payload_len == 0
    }

    /// Returns whether the segment requests a zero-length RDMA Read.
    pub(crate) fn is_empty_read(&self) -> bool {
        self.opcode == Opcode::READ_REQUEST && self.read_size == Some(0)
    }

    /// Returns whether the segment is a zero-length Send.
    pub(crate) fn is_empty_send(&self) -> bool {
        self.opcode == Opcode::SEND && self.payload_len == 0
    }
}

/// The first segments of one direction. If octets before a segment are missing, the segment is not
/// recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FirstSegments {
    /// The first segment.
    pub first: Option<FirstSegment>,
    /// The second segment.
    pub second: Option<FirstSegment>,
    /// The first segment of the first Read Response.
    pub response: Option<FirstSegment>,
}

impl FirstSegments {
    /// Records segment number `index` of the direction; the first segment has number 0. If `broken`
    /// is set, earlier octets are missing or could not be parsed, and the segment is ignored.
    pub(crate) fn record_segment(&mut self, index: u64, unit: &Unit<'_>, view: &SegmentView<'_>, broken: bool) {
        if broken {
            return;
        }
        match index {
            0 => self.first = Some(FirstSegment::read(unit, view)),
            1 => self.second = Some(FirstSegment::read(unit, view)),
            _ => {}
        }
        if self.response.is_none() && view.opcode() == Opcode::READ_RESPONSE {
            self.response = Some(FirstSegment::read(unit, view));
        }
    }
}
