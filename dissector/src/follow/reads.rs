//! Counts the unanswered Read Requests of each endpoint. Rules compare the counts with the
//! negotiated limits (RFC 6581 section 9.1).
//!
//! The monitor does not always process the FPDUs of both directions in the order of the capture. If
//! octets are lost in the network, the monitor processes later responses of the same direction only
//! when these octets are retransmitted. Therefore the monitor at first only suspects that a limit
//! was exceeded. If it later processes a response from an earlier frame, it corrects the count. If
//! the corrected count is within the limit, the monitor drops the suspicion. If octets of a
//! direction are missing in the capture, the count is invalid until the connection ends.

use weft_core::wire::rdmap::Opcode;

use crate::frame_number::FrameNumber;
use crate::parse::{Kind, Location, Unit};
use crate::parse::{SegmentView, ULPDU_AT};

/// The excess: the first moment at which more requests were unanswered than the limit allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    /// The frame of the first request over the limit.
    pub frame: FrameNumber,
    /// Header of the request in `frame`.
    pub header: Location,
    /// Number of unanswered requests at that time.
    pub outstanding: u32,
}

/// A limit on unanswered requests, and a suspected excess.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limit {
    /// The highest allowed number; `None` if it was not negotiated or is not known yet.
    pub max: Option<u32>,
    excess: Option<Excess>,
}

impl Limit {
    fn record_request(&mut self, unit: &Unit<'_>, outstanding: u32) {
        if self.excess.is_none() && self.max.is_some_and(|max| outstanding > max) {
            let header = unit.locate_first(ULPDU_AT..unit.octets_len());
            self.excess = Some(Excess { frame: unit.frame, header, outstanding });
        }
    }

    fn record_response(&mut self, frame: FrameNumber) {
        if let (Some(excess), Some(max)) = (&mut self.excess, self.max)
            && frame < excess.frame
        {
            excess.outstanding -= 1;
            if excess.outstanding <= max {
                self.excess = None;
            }
        }
    }
}

/// The Read Requests of one endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    /// Number of requests minus number of responses. The value is negative if responses were
    /// processed before their requests.
    outstanding: i64,
    lost: bool,
    /// The requester's ORD, from the requester's start-up frame.
    pub ord: Limit,
    /// The peer's IRD, from the peer's start-up frame.
    pub ird: Limit,
    /// The requester's LocORD, from its SDP Hello or HelloAck.
    pub loc_ord: Limit,
    /// The peer's LocIRD, from the peer's SDP Hello or HelloAck.
    pub loc_ird: Limit,
}

impl Reads {
    /// Returns whether the peer's IRD is known and was never exceeded.
    pub(crate) fn is_within_ird(&self) -> bool {
        !self.lost && self.ird.max.is_some() && self.ird.excess.is_none()
    }

    /// Returns the excess over the requester's ORD, and the excess over the peer's IRD. If octets
    /// were missing, both values are `None`.
    pub(crate) fn excess(&self) -> [Option<Excess>; 2] {
        if self.lost { [None, None] } else { [self.ord.excess, self.ird.excess] }
    }

    /// Returns the excess over the requester's LocORD, and the excess over the peer's LocIRD. If
    /// octets were missing, both values are `None`.
    pub(crate) fn sdp_excess(&self) -> [Option<Excess>; 2] {
        if self.lost { [None, None] } else { [self.loc_ord.excess, self.loc_ird.excess] }
    }

    fn limits(&mut self) -> [&mut Limit; 4] {
        [&mut self.ord, &mut self.ird, &mut self.loc_ord, &mut self.loc_ird]
    }
}

/// Records a unit (FPDU, gap, or unparsed octets). `reads` has one element for each direction. If
/// `is_ready_to_receive` is set, the unit is the ready-to-receive Read, and is not recorded as a
/// Read.
pub(super) fn record_unit(
    reads: &mut [Reads; 2],
    unit: &Unit<'_>,
    view: Option<&SegmentView<'_>>,
    is_ready_to_receive: bool,
) {
    let direction = unit.direction();
    let lost = matches!(unit.kind, Kind::Gap { .. } | Kind::Unparsed { .. }) || unit.incomplete;
    let Some(view) = view.filter(|_| !lost) else {
        if lost || matches!(unit.kind, Kind::Fpdu(_)) {
            reads.iter_mut().for_each(|reads| reads.lost = true);
        }
        return;
    };
    match view.opcode() {
        // If a request has several segments, it counts once.
        Opcode::READ_REQUEST if view.last() && !is_ready_to_receive => {
            let own = &mut reads[direction];
            own.outstanding += 1;
            let outstanding = u32::try_from(own.outstanding).unwrap_or(0);
            own.limits().into_iter().for_each(|limit| limit.record_request(unit, outstanding));
        }
        Opcode::READ_RESPONSE if view.last() => {
            let other = &mut reads[direction.peer()];
            other.outstanding -= 1;
            other.limits().into_iter().for_each(|limit| limit.record_response(unit.frame));
        }
        _ => {}
    }
}
