//! [`Sent`]: an iSER message for a rule, and the place of its findings.

use std::ops::Range;

use weft_core::RequirementId;
use weft_core::wire::ddp::Segment;

use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::Findings;
use crate::upper::UlpMessage;
use crate::upper::iser::{HEADER_LEN, Message, Opcode, Pdu};

/// Mask of the opcodes of all four types of Send.
pub(super) const SENDS: u16 = 0b0111_1000;

/// A complete iSER message.
pub(super) struct Sent<'a, 'u> {
    pub(super) message: &'a Message,
    unit: &'a Unit<'u>,
    /// Offset of the message in the unit; `None` if the message has several segments.
    at: Option<usize>,
}

impl<'a, 'u> Sent<'a, 'u> {
    /// The message that ends with the segment `view`. Returns `None` if the segment ends no message,
    /// or if the connection does not carry iSER.
    pub(super) fn of(state: &'a ConnectionState, unit: &'a Unit<'u>, view: &SegmentView<'_>) -> Option<Self> {
        let Some(UlpMessage::Iser(message)) = &state.context().ulp_message else { return None };
        let Segment::Untagged(header, _) = view.segment else { return None };
        let at = (header.mo.get() == 0).then_some(ULPDU_AT + view.header_len);
        Some(Sent { message, unit, at })
    }

    /// The message, if it is an iSCSI PDU with this opcode.
    pub(super) fn pdu(&self, opcode: Opcode) -> Option<&'a Pdu> {
        match self.message {
            Message::Pdu(pdu) if pdu.opcode() == opcode => Some(pdu),
            _ => None,
        }
    }

    /// Reports that the octets `range` of the message violate `requirement`. If the message has
    /// several segments, the finding names only the frame.
    pub(super) fn report(
        &self,
        findings: &mut Findings<'_>,
        requirement: RequirementId,
        range: Range<usize>,
        expected: &str,
        found: impl Into<String>,
    ) {
        match self.at {
            Some(at) => findings.report(requirement, self.unit, at + range.start..at + range.end, expected, found),
            None => findings.report_in_frame(requirement, self.unit.direction(), self.unit.frame, expected, found),
        }
    }

    /// Like [`Sent::report`]. `range` is a range of the BHS.
    pub(super) fn report_bhs(
        &self,
        findings: &mut Findings<'_>,
        requirement: RequirementId,
        range: Range<usize>,
        expected: &str,
        found: impl Into<String>,
    ) {
        let range = HEADER_LEN + range.start..HEADER_LEN + range.end;
        self.report(findings, requirement, range, expected, found);
    }
}

/// The octet at offset `at` of the BHS of `pdu`.
pub(super) fn octet(pdu: &Pdu, at: usize) -> u8 {
    pdu.head().get(HEADER_LEN + at).copied().unwrap_or(0)
}
