//! The Terminate header (RFC 5040 section 4.8), right after the untagged DDP header.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-------+---------------+-+-+-+-------------------------+
//! | Layer | EType |   Error Code  |M|D|R|         Reserved        |
//! +-------+-------+---------------+-+-+-+-------------------------+
//! |       DDP Segment Length      |                               |  length: with M or D
//! +-------------------------------+                               +
//! //    Terminated DDP Header (14 octets tagged, 18 untagged)     //  with D
//! +---------------------------------------------------------------+
//! //    Terminated RDMA Header (28 octets of a Read Request)      //  with R
//! +---------------------------------------------------------------+
//! ```
//!
//! The bits M, D and R announce the variable parts. If D is set and M is clear, DDP Segment Length
//! is present (RFC 5040 4.8, RDMAP-4.8-9), but has no meaning. For each error, Figure 10 requires
//! certain copied headers. Only the monitor checks that these headers are present. Octets after the
//! last announced part are ignored, because some implementations send parts without announcing
//! them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{RawReadRequest, ReadRequest, TerminateError};
use crate::error::{Layer, WireError};
use crate::requirement;
use crate::wire::ddp::{Control, RawHeader};

/// Length of the DDP Segment Length field in octets.
pub const SEGMENT_LENGTH_LEN: usize = 2;

/// Raw view of octet 2 of the header: HdrCt (M, D and R) and five reserved bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct HeaderControl(pub u8);

impl HeaderControl {
    /// The octet with these three bits and zero reserved bits.
    #[must_use]
    pub const fn new(m: bool, d: bool, r: bool) -> Self {
        HeaderControl((m as u8) << 7 | (d as u8) << 6 | (r as u8) << 5)
    }

    /// M: DDP Segment Length is valid.
    #[must_use]
    pub const fn m(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// D: the terminated DDP header is included.
    #[must_use]
    pub const fn d(self) -> bool {
        self.0 & 0x40 != 0
    }

    /// R: the terminated RDMA header is included.
    #[must_use]
    pub const fn r(self) -> bool {
        self.0 & 0x20 != 0
    }
}

/// Raw view of the fixed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawTerminate {
    /// Octet 0: Layer in the high four bits, EType in the low four bits.
    pub layer_etype: u8,
    /// Octet 1: Error Code.
    pub error_code: u8,
    /// Octet 2: M, D, R and five reserved bits.
    pub header_control: HeaderControl,
    /// Octet 3: reserved.
    pub reserved: u8,
}

impl RawTerminate {
    /// Length of the fixed part in octets.
    pub const LEN: usize = 4;

    /// Layer, EType and Error Code.
    #[must_use]
    pub const fn error(&self) -> TerminateError {
        TerminateError::new(self.layer_etype >> 4, self.layer_etype, self.error_code)
    }

    /// The 13 reserved bits: zero when sent, ignored when received.
    #[must_use]
    pub fn reserved_bits(&self) -> u16 {
        u16::from(self.header_control.0 & 0x1f) << 8 | u16::from(self.reserved)
    }
}

/// Raw view of the variable parts. If the message is too short, a slice is shorter than its part,
/// or empty.
///
/// A sender of illegal messages can put any octets into the slices, whatever the values of M, D and
/// R are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawTerminateParts<'a> {
    /// DDP Segment Length: two octets.
    pub segment_length: &'a [u8],
    /// Terminated DDP header: 14 or 18 octets.
    pub ddp_header: &'a [u8],
    /// Terminated RDMA header: 28 octets.
    pub rdma_header: &'a [u8],
    /// Octets after the announced parts.
    pub rest: &'a [u8],
}

impl<'a> RawTerminateParts<'a> {
    /// Splits `octets`, which follow the fixed part, into the parts that `bits` announce. If
    /// `octets` end within a part, the slice of this part has only the remaining octets.
    #[must_use]
    pub fn split(bits: HeaderControl, octets: &'a [u8]) -> Self {
        let mut rest = octets;
        let mut take = |announced: bool, length: usize| {
            let (part, remainder) = rest.split_at(if announced { length.min(rest.len()) } else { 0 });
            rest = remainder;
            part
        };
        let segment_length = take(bits.m() || bits.d(), SEGMENT_LENGTH_LEN);
        let control = octets.get(segment_length.len()).copied().map_or(Control(0), Control);
        let ddp_header = take(bits.d(), RawHeader::len_of(control));
        let rdma_header = take(bits.r(), RawReadRequest::LEN);
        RawTerminateParts { segment_length, ddp_header, rdma_header, rest }
    }

    /// Appends the parts to `out`, in order and unchanged.
    pub fn emit(&self, out: &mut Vec<u8>) {
        for part in [self.segment_length, self.ddp_header, self.rdma_header, self.rest] {
            out.extend_from_slice(part);
        }
    }
}

/// A Terminate with all parts that M, D and R announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminate {
    /// The reported error.
    pub error: TerminateError,
    /// DDP Segment Length (M): length in octets of the offending segment, including its DDP header.
    pub segment_length: Option<u16>,
    /// Unchanged copy of the DDP header of the offending segment (D).
    pub ddp_header: Option<RawHeader>,
    /// Header of the Read Request that failed (R). Its offsets and size describe the octets that
    /// the responder has not yet sent.
    pub read_request: Option<ReadRequest>,
}

impl Terminate {
    /// Reads the payload of a Terminate message. Reserved bits and octets after the announced parts
    /// are ignored.
    ///
    /// # Errors
    /// The fixed part, or a part that M, D or R announces, is missing or incomplete.
    pub fn parse(octets: &[u8]) -> Result<Self, WireError> {
        let missing = |field, offset, expected, have, requirement| {
            let requirement = Some(requirement);
            WireError { offset, requirement, ..WireError::too_short(Layer::Rdmap, field, expected, have) }
        };
        let (fixed, rest) = RawTerminate::ref_from_prefix(octets).map_err(|_| {
            missing("Terminate header", 0, "at least 4 octets", octets.len(), requirement!("RDMAP-4.8-1"))
        })?;
        let bits = fixed.header_control;
        let parts = RawTerminateParts::split(bits, rest);

        let mut at = RawTerminate::LEN;
        let mut segment_length = None;
        if bits.m() || bits.d() {
            let length = <[u8; SEGMENT_LENGTH_LEN]>::try_from(parts.segment_length).map_err(|_| {
                let requirement = if bits.d() { requirement!("RDMAP-4.8-9") } else { requirement!("RDMAP-4.8-8") };
                missing("DDP Segment Length", at, "2 octets", parts.segment_length.len(), requirement)
            })?;
            segment_length = bits.m().then_some(u16::from_be_bytes(length));
            at += SEGMENT_LENGTH_LEN;
        }
        let mut ddp_header = None;
        if bits.d() {
            let (header, _) = RawHeader::from_prefix(parts.ddp_header).ok_or_else(|| {
                let expected = "14 octets of a tagged header, or 18 octets of an untagged header";
                missing("Terminated DDP Header", at, expected, parts.ddp_header.len(), requirement!("RDMAP-4.8-10"))
            })?;
            ddp_header = Some(header);
            at += parts.ddp_header.len();
        }
        let mut read_request = None;
        if bits.r() {
            let raw = RawReadRequest::ref_from_bytes(parts.rdma_header).map_err(|_| {
                let expected = "28 octets of a Read Request header";
                missing("Terminated RDMA Header", at, expected, parts.rdma_header.len(), requirement!("RDMAP-4.8-12"))
            })?;
            read_request = Some(ReadRequest::from_raw(raw));
        }
        Ok(Terminate { error: fixed.error(), segment_length, ddp_header, read_request })
    }

    /// Returns M, D and R. Each of these bits is set if its part is present.
    #[must_use]
    pub const fn header_control(&self) -> HeaderControl {
        HeaderControl::new(self.segment_length.is_some(), self.ddp_header.is_some(), self.read_request.is_some())
    }

    /// The raw fixed part.
    #[must_use]
    pub const fn to_raw(&self) -> RawTerminate {
        RawTerminate {
            layer_etype: self.error.layer.0 << 4 | self.error.error_type & 0xf,
            error_code: self.error.code,
            header_control: self.header_control(),
            reserved: 0,
        }
    }

    /// Appends the header to `out`. If `ddp_header` is set but `segment_length` is not, the field
    /// DDP Segment Length is zero and M is clear.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let length = self.segment_length.unwrap_or(0).to_be_bytes();
        let read_request = self.read_request.map(ReadRequest::to_raw);
        out.extend_from_slice(self.to_raw().as_bytes());
        RawTerminateParts {
            segment_length: if self.segment_length.is_some() || self.ddp_header.is_some() { &length } else { &[] },
            ddp_header: self.ddp_header.as_ref().map_or(&[], RawHeader::as_octets),
            rdma_header: read_request.as_ref().map_or(&[], IntoBytes::as_bytes),
            rest: &[],
        }
        .emit(out);
    }
}

#[cfg(test)]
mod tests;
