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
//! If D is set, DDP Segment Length is present even without M (RFC 5040 4.8, RDMAP-4.8-9); it then
//! has no meaning. The monitor, not this file, judges which header an error should copy (Figure
//! 10). Octets after the last part that the header control bits announce are left alone: real
//! senders fill parts that they do not announce.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{RawReadRequest, ReadRequest, TerminateError};
use crate::RequirementId;
use crate::error::{Found, Layer, WireError};
use crate::requirement;
use crate::wire::ddp::{Control, RawHeader};

/// Octets of DDP Segment Length.
pub const SEGMENT_LENGTH_LEN: usize = 2;

/// HdrCt and the five reserved bits after it: octet 2 of the header, raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct HeaderControl(pub u8);

impl HeaderControl {
    /// The three bits, reserved bits zero.
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

/// The fixed part, raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawTerminate {
    /// Octet 0: Layer in the high, EType in the low nibble.
    pub layer_etype: u8,
    /// Octet 1.
    pub error_code: u8,
    /// Octet 2: M, D, R and five reserved bits.
    pub header_control: HeaderControl,
    /// Octet 3: reserved.
    pub reserved: u8,
}

impl RawTerminate {
    /// Octets of the fixed part.
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

/// The variable parts, raw: each slice holds what is there of the part, which may be less than all
/// of it, or nothing.
///
/// A sender of illegal messages may fill them with anything, whatever the bits announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawTerminateParts<'a> {
    /// DDP Segment Length: two octets.
    pub segment_length: &'a [u8],
    /// Terminated DDP header: 14 or 18 octets.
    pub ddp_header: &'a [u8],
    /// Terminated RDMA header: 28 octets.
    pub rdma_header: &'a [u8],
    /// What no bit announces.
    pub rest: &'a [u8],
}

impl<'a> RawTerminateParts<'a> {
    /// Cuts the octets after the fixed part as `bits` announce them; a part that is cut short takes
    /// what is left.
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

    /// Appends the parts to `out`, in order, just as they are.
    pub fn emit(&self, out: &mut Vec<u8>) {
        for part in [self.segment_length, self.ddp_header, self.rdma_header, self.rest] {
            out.extend_from_slice(part);
        }
    }
}

/// A Terminate whose parts are all there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminate {
    /// What is complained of.
    pub error: TerminateError,
    /// DDP Segment Length (M): octets of the offending segment, its DDP header included.
    pub segment_length: Option<u16>,
    /// The DDP header of the offending segment (D), as it came, whatever is wrong with it.
    pub ddp_header: Option<RawHeader>,
    /// The Read Request that could not be served (R), advanced by the octets already answered.
    pub read_request: Option<ReadRequest>,
}

impl Terminate {
    /// Reads the payload of a Terminate message. Reserved bits, and octets that no bit announces,
    /// are ignored.
    ///
    /// # Errors
    /// The fixed part, or a part that M, D or R announces, is not all there.
    pub fn parse(octets: &[u8]) -> Result<Self, WireError> {
        let missing = |field, offset, expected, have, requirement: RequirementId| WireError {
            layer: Layer::Rdmap,
            field,
            offset,
            expected,
            found: Found::Octets(have),
            requirement: Some(requirement),
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
                let expected = "14 octets of a tagged or 18 of an untagged header";
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

    /// M, D and R as the parts that are there ask for them.
    #[must_use]
    pub const fn header_control(&self) -> HeaderControl {
        HeaderControl::new(self.segment_length.is_some(), self.ddp_header.is_some(), self.read_request.is_some())
    }

    /// The fixed part, raw.
    #[must_use]
    pub const fn to_raw(&self) -> RawTerminate {
        RawTerminate {
            layer_etype: self.error.layer.0 << 4 | self.error.error_type & 0xf,
            error_code: self.error.code,
            header_control: self.header_control(),
            reserved: 0,
        }
    }

    /// Appends the header to `out`. A DDP header without a segment length gets length zero, and M
    /// stays clear.
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
