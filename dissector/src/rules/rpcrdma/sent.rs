//! [`Sent`]: a message of RPC-over-RDMA for a rule, and the place of its findings.

use std::ops::Range;

use weft_core::RequirementId;

use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::Findings;
use crate::upper::rpcrdma::decoded::{CallReference, Carrier, Decoded};
use crate::upper::rpcrdma::header::{Header, MAX_SEGMENTS, Procedure};
use crate::upper::rpcrdma::message::RpcMessage;

/// Mask of the opcodes of all four types of Send.
pub(super) const SENDS: u16 = 0b0111_1000;

/// A complete message with a transport header.
pub(super) struct Sent<'a, 'u> {
    pub(super) decoded: &'a Decoded,
    pub(super) header: &'a Header,
    state: &'a ConnectionState,
    unit: &'a Unit<'u>,
    /// Offset of the payload of the segment in the unit.
    payload_at: usize,
}

impl<'a, 'u> Sent<'a, 'u> {
    /// The message that ends with the segment `view`. Returns `None` if the segment ends no message,
    /// or if the connection does not carry RPC-over-RDMA.
    pub(super) fn of(state: &'a ConnectionState, unit: &'a Unit<'u>, view: &SegmentView<'_>) -> Option<Self> {
        let decoded = state.context().rpc.as_deref()?;
        let header = decoded.header.as_ref()?;
        Some(Sent { decoded, header, state, unit, payload_at: ULPDU_AT + view.header_len })
    }

    /// Returns whether the message is a reply. The RPC message of a reply is not always readable, but
    /// then its call can be known.
    pub(super) fn is_reply(&self) -> bool {
        match self.header.procedure {
            Procedure::NoMsg => self.decoded.carrier == Carrier::ReplyChunk,
            Procedure::Msg | Procedure::Msgp => {
                self.decoded.call.is_some() || matches!(self.decoded.message, Some(RpcMessage::Reply(_)))
            }
            Procedure::Done | Procedure::Error => false,
        }
    }

    /// The call of a reply with chunk lists. Returns `None` if the call is not certain: if the
    /// capture lacks bytes or order, the known call can be an older call with the same XID.
    pub(super) fn call(&self) -> Option<&'a CallReference> {
        let is_certain =
            self.state.is_in_send_order() && !(self.state.peer_has_unread && self.state.traffic.crc_is_off());
        let call = self.decoded.call.as_ref().filter(|_| is_certain && self.is_reply() && self.header.has_lists())?;
        // Not all segments of a large list are stored.
        let segments = |chunks: usize| chunks < MAX_SEGMENTS;
        let stored = |lists: &crate::upper::rpcrdma::header::Lists| {
            lists.writes.iter().chain(&lists.reply).map(|chunk| chunk.count as usize).sum::<usize>()
        };
        (segments(stored(&call.lists)) && segments(stored(&self.header.lists))).then_some(call)
    }

    /// Reports that the octets `range` of the message violate `requirement`. If these octets are in
    /// an earlier segment, the finding names only the frame.
    pub(super) fn report(
        &self,
        findings: &mut Findings<'_>,
        requirement: RequirementId,
        range: Range<u32>,
        expected: &str,
        found: impl Into<String>,
    ) {
        match range.start.checked_sub(self.decoded.segment_at) {
            Some(start) => {
                let at = self.payload_at + start as usize;
                let len = range.end.saturating_sub(range.start) as usize;
                findings.report(requirement, self.unit, at..at + len, expected, found);
            }
            None => findings.report_in_frame(requirement, self.unit.direction(), self.unit.frame, expected, found),
        }
    }
}
