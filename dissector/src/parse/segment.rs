//! [`SegmentView`] is a DDP segment whose captured octets are probably the octets that the endpoint
//! sent. Rules check only such segments.

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use super::unit::{CrcStatus, Fpdu, Kind, MarkerStatus, Unit};
use crate::part::Part;

/// Offset of the ULPDU within the unit in octets: the length of `ULPDU_Length`.
pub(crate) const ULPDU_AT: usize = 2;

/// A DDP segment with a completely captured header, in a trusted FPDU (see [`is_trusted`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentView<'a> {
    /// The raw segment. Its T bit determines whether it is tagged or untagged. If octets of its
    /// payload are missing in the capture, [`SegmentView::payload`] has a flag for each missing
    /// octet.
    pub(crate) segment: Segment<'a>,
    /// The octets after the DDP header, with a flag for each octet that was not captured.
    pub(crate) payload: Part<'a>,
    /// Number of octets after the DDP header. Counts octets that were not captured, too.
    pub(crate) payload_len: u32,
    /// Length of the DDP header in octets: 14 (tagged) or 18 (untagged).
    pub(crate) header_len: usize,
    /// The octets of the DDP header.
    pub(crate) header: &'a [u8],
}

impl<'a> SegmentView<'a> {
    /// The segment in the FPDU `unit`. Returns `None` if `unit` is not an FPDU, or if
    /// [`SegmentView::new`] returns `None`.
    pub(crate) fn of(unit: &Unit<'a>) -> Option<Self> {
        match &unit.kind {
            Kind::Fpdu(fpdu) => Self::new(fpdu),
            _ => None,
        }
    }

    /// The segment of `fpdu`. Returns `None` if the FPDU is not trusted, if octets of the DDP
    /// header were not captured, or if the ULPDU is shorter than the DDP header.
    pub(crate) fn new(fpdu: &Fpdu<'a>) -> Option<Self> {
        if !is_trusted(fpdu) {
            return None;
        }
        let ulpdu = fpdu.ulpdu();
        let segment = Segment::parse(ulpdu.raw().0).ok()?;
        let header_len = if segment.control().tagged() { 14 } else { 18 };
        let header = ulpdu.get(0..header_len)?;
        let payload_len = u32::from(fpdu.layout.ulpdu_length).saturating_sub(u32::try_from(header_len).ok()?);
        Some(SegmentView { segment, payload: ulpdu.from(header_len), payload_len, header_len, header })
    }

    /// RDMAP's opcode.
    pub(crate) fn opcode(&self) -> Opcode {
        self.segment.ulp_control().opcode()
    }

    /// Returns whether the segment is the last segment of its message.
    pub(crate) fn last(&self) -> bool {
        self.segment.control().last()
    }

    /// Returns whether the fixed fields of the header have the usual values. If true, the rules
    /// about these fields need not check the segment.
    ///
    /// The usual values are: DDP and RDMAP have version 1, reserved bits are zero, and T and QN
    /// match the opcode. If an untagged message invalidates no STag, the STag field is zero.
    pub(crate) fn is_ordinary(&self) -> bool {
        let opcode = self.opcode();
        if self.header[0] & 0x3f != 1 || self.header[1] & 0xf0 != 0x40 {
            return false;
        }
        match &self.segment {
            Segment::Tagged(..) => opcode.is_tagged() == Some(true),
            Segment::Untagged(header, _) => {
                queue_of(opcode) == Some(header.qn.get()) && (opcode.invalidates() || header.ulp_word.get() == 0)
            }
        }
    }
}

/// Returns whether the octets of `fpdu` are probably the octets that the endpoint sent. A good CRC
/// proves this, and a bad CRC disproves this. If the CRC was not checked, returns whether the
/// markers are correct or absent.
pub(crate) fn is_trusted(fpdu: &Fpdu<'_>) -> bool {
    match fpdu.crc_status {
        CrcStatus::Good => true,
        CrcStatus::Bad => false,
        CrcStatus::Unchecked | CrcStatus::Truncated | CrcStatus::Absent => {
            !matches!(fpdu.marker_status, MarkerStatus::BadValue | MarkerStatus::Misplaced)
        }
    }
}

/// The queue number of an untagged message with opcode `opcode` (RFC 5040 section 4.1, Figure 4;
/// RFC 7306 section 4.1, Figure 2). Returns `None` for tagged messages and unassigned opcodes.
pub(crate) fn queue_of(opcode: Opcode) -> Option<u32> {
    match opcode {
        Opcode::SEND
        | Opcode::SEND_INVALIDATE
        | Opcode::SEND_SE
        | Opcode::SEND_SE_INVALIDATE
        | Opcode::IMMEDIATE
        | Opcode::IMMEDIATE_SE => Some(0),
        Opcode::READ_REQUEST | Opcode::ATOMIC_REQUEST => Some(1),
        Opcode::TERMINATE => Some(2),
        Opcode::ATOMIC_RESPONSE => Some(3),
        _ => None,
    }
}
