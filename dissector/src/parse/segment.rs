//! A DDP segment that rules may trust.

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use super::unit::{CrcStatus, Fpdu, Kind, MarkerStatus, Unit};
use crate::part::Part;

/// Where the ULPDU begins in unit coordinates: after `ULPDU_Length`.
pub(crate) const ULPDU_AT: usize = 2;

/// A DDP segment whose header was captured, in an FPDU whose octets are those that were sent, in
/// their place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentView<'a> {
    /// Its header by T bit. The payload in it may lack octets; [`SegmentView::payload`] knows
    /// which.
    pub(crate) segment: Segment<'a>,
    /// The octets after the DDP header, as far as they were captured.
    pub(crate) payload: Part<'a>,
    /// How many octets follow the DDP header, captured or not.
    pub(crate) payload_len: u32,
    /// Octets of the DDP header: 14 or 18.
    pub(crate) header_len: usize,
    /// The octets of the DDP header.
    pub(crate) header: &'a [u8],
}

impl<'a> SegmentView<'a> {
    /// The segment of an FPDU. `None` for other units, and if the octets may differ from those that
    /// were sent.
    pub(crate) fn of(unit: &Unit<'a>) -> Option<Self> {
        match &unit.kind {
            Kind::Fpdu(fpdu) => Self::new(fpdu),
            _ => None,
        }
    }

    /// `None` if the CRC is bad, octets of the header are missing, or the ULPDU is shorter than its
    /// header. Wrong markers remove the trust unless the CRC is good.
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

    /// Is it the last segment of its message?
    pub(crate) fn last(&self) -> bool {
        self.segment.control().last()
    }

    /// Is the header as in nearly every segment? Then no rule about its fixed fields concerns it.
    ///
    /// Versions are 1, reserved bits are zero, and T and QN are as the opcode requires. The STag is
    /// zero in an untagged message that invalidates none.
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

/// Are the octets of `fpdu` those that were sent, as far as the capture shows?
pub(crate) fn is_trusted(fpdu: &Fpdu<'_>) -> bool {
    match fpdu.crc_status {
        CrcStatus::Good => true,
        CrcStatus::Bad => false,
        CrcStatus::Unchecked | CrcStatus::Truncated | CrcStatus::Absent => {
            !matches!(fpdu.marker_status, MarkerStatus::BadValue | MarkerStatus::Misplaced)
        }
    }
}

/// The queue of an untagged message (RFC 5040 section 4.1, Figure 4; RFC 7306 section 4.1, Figure
/// 2).
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
