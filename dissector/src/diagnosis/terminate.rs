//! The Terminate of an endpoint: the reported error, and the message that it reports.
//!
//! Some implementations, for example Linux siw, exchange Layer and EType, or have M, D and R in the
//! low bits of their octet. [`TerminateReport::read`] accepts these layouts, but only if the
//! standard layout gives no assigned error, or an error that contradicts the copied header, and the
//! other layout gives an error that fits. If both fit, the standard layout counts, unless it
//! reports a local error and the other one names the error of the message directly before.

use weft_core::wire::ddp::{self, Msn, RawHeader};
use weft_core::wire::rdmap::{
    self, ErrorLayer, HeaderControl, Opcode, RawTerminate, RawTerminateParts, ReadRequest, Terminate, TerminateError,
};
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
    /// The error with Layer and EType exchanged, if this reading is possible, too.
    pub(super) other_error: Option<TerminateError>,
    /// Whether Layer and EType are exchanged in `error`.
    is_exchanged: bool,
    /// Whether M, D and R are in the low bits of their octet.
    has_low_flags: bool,
    copied: Copied,
}

/// The headers that a Terminate copies.
#[derive(Debug, Clone, Copy, Default)]
struct Copied {
    /// The header of the reported segment.
    header: Option<RawHeader>,
    /// The field DDP Segment Length.
    segment_length: Option<u16>,
    /// The header of the reported Read Request.
    read: Option<ReadRequest>,
}

impl Copied {
    /// Reads the headers in the standard layout.
    fn standard(octets: &[u8]) -> Option<Self> {
        let parsed = Terminate::parse(octets).ok()?;
        let Terminate { ddp_header: header, segment_length, read_request: read, .. } = parsed;
        Some(Copied { header, segment_length, read })
    }

    /// Reads the headers of a Terminate with M, D and R in the low bits. Returns `None` if the
    /// Terminate does not have this layout: no other bit may be set, and the copied header must
    /// have the versions of DDP and RDMAP.
    fn with_low_flags(fixed: &RawTerminate, rest: &[u8]) -> Option<Self> {
        let HeaderControl(flags) = fixed.header_control;
        if flags & !0b111 != 0 || flags & 0b010 == 0 || fixed.reserved != 0 {
            return None;
        }
        let control = HeaderControl::new(flags & 0b001 != 0, true, flags & 0b100 != 0);
        let parts = RawTerminateParts::split(control, rest);
        let (header, _) = RawHeader::from_prefix(parts.ddp_header)?;
        let versions = (header.control().version(), header.ulp_control().version());
        let has_versions = versions == (ddp::Control::VERSION, rdmap::Control::VERSION);
        let read = || ReadRequest::parse(parts.rdma_header).ok();
        // The implementations with this layout do not count the header in DDP Segment Length.
        has_versions.then(|| Copied { header: Some(header), segment_length: None, read: read() })
    }
}

impl TerminateReport {
    /// Reads the Terminate in `view`; `None` if its fixed part is missing.
    pub(super) fn read(view: &SegmentView<'_>, frame: FrameNumber, time: u64) -> Option<Self> {
        let (fixed, _) = RawTerminate::read_from_prefix(view.payload.get(0..RawTerminate::LEN)?).ok()?;
        let octets = view.payload.all();
        let standard = octets.and_then(Copied::standard).unwrap_or_default();
        let rest = octets.and_then(|octets| octets.get(RawTerminate::LEN..));
        let low = rest.and_then(|rest| Copied::with_low_flags(&fixed, rest));
        let (copied, has_low_flags) = low.map_or((standard, false), |low| (low, true));
        let error = fixed.error();
        let exchanged = TerminateError::new(error.error_type, error.layer.0, error.code);
        // Without its variable parts, a Terminate that was not captured completely contradicts
        // nothing.
        let is_known = octets.is_some();
        let is_possible = is_known && exchanged != error && fits(exchanged, copied.header);
        let is_exchanged = is_possible && !fits(error, copied.header);
        let other_error = Some(exchanged).filter(|_| is_possible && !is_exchanged);
        let error = if is_exchanged { exchanged } else { error };
        Some(TerminateReport { frame, time, error, target: None, other_error, is_exchanged, has_low_flags, copied })
    }

    /// The Terminate with the other possible reading of Layer and EType.
    pub(super) fn with_other_error(&self) -> Option<Self> {
        let error = self.other_error?;
        Some(TerminateReport { error, other_error: None, is_exchanged: true, ..*self })
    }

    /// Describes the layout of the Terminate, if it is not the standard one.
    pub(super) fn layout(&self) -> Option<&'static str> {
        match (self.is_exchanged, self.has_low_flags) {
            (false, false) => None,
            (true, false) => Some("read with Layer and EType exchanged"),
            (false, true) => Some("read with M, D and R in the low bits"),
            (true, true) => Some("read with Layer and EType exchanged, and with M, D and R in the low bits"),
        }
    }

    /// Adds the facts of the monitor about this Terminate.
    pub(super) fn complete(&mut self, fact: &fact::Terminate) {
        if fact.frame == self.frame {
            self.target = fact.target.or(self.target);
        }
    }

    /// RDMAP's opcode in the copied header.
    pub(super) fn opcode(&self) -> Option<Opcode> {
        self.copied.header.map(|header| header.ulp_control().opcode())
    }

    /// The queue number in the copied header; `None` for a tagged segment.
    pub(super) fn queue(&self) -> Option<u32> {
        match self.copied.header? {
            RawHeader::Untagged(header) => Some(header.qn.get()),
            RawHeader::Tagged(_) => None,
        }
    }

    /// The message sequence number in the copied header; `None` for a tagged segment.
    pub(super) fn msn(&self) -> Option<Msn> {
        match self.copied.header? {
            RawHeader::Untagged(header) => Some(header.msn()),
            RawHeader::Tagged(_) => None,
        }
    }

    /// The STag that the reported Send with Invalidate names.
    pub(super) fn invalidated_stag(&self) -> Option<u32> {
        match self.copied.header? {
            RawHeader::Untagged(header) if header.ulp_control.opcode().invalidates() => Some(header.ulp_word.get()),
            _ => None,
        }
    }

    /// The range that the reported segment accesses in the memory of the Terminate's sender. The
    /// length is 0 if it is not known.
    pub(super) fn span(&self) -> Option<Span> {
        match self.copied.header? {
            RawHeader::Tagged(header) => {
                let len = self.copied.segment_length.map_or(0, |len| u64::from(len.saturating_sub(14)));
                Some(Span { stag: header.stag.get(), to: header.tagged_offset.get(), len })
            }
            RawHeader::Untagged(_) => {
                let read = self.copied.read?;
                Some(Span { stag: read.src_stag, to: read.src_to, len: u64::from(read.rdmardsz) })
            }
        }
    }
}

/// Returns whether `error` is assigned, and is about a segment with the copied header `header`.
/// Errors of MPA and local errors have no copied header (RFC 5040 Figure 10).
fn fits(error: TerminateError, header: Option<RawHeader>) -> bool {
    let is_tagged = header.map(|header| matches!(header, RawHeader::Tagged(_)));
    error.is_assigned()
        && match (error.layer, error.error_type) {
            (ErrorLayer::LLP, _) | (ErrorLayer::DDP | ErrorLayer::RDMAP, 0) => is_tagged.is_none(),
            (ErrorLayer::DDP, 1) => is_tagged != Some(false),
            (ErrorLayer::DDP, 2) => is_tagged != Some(true),
            _ => true,
        }
}
