//! Counts the unanswered Read Requests of each end, to compare with the negotiated limits (RFC 6581
//! section 9.1).
//!
//! Units of the two directions do not come in the order of the capture: octets that wait for a
//! retransmission delay responses. An excess is therefore only suspected at first, and confirmed if
//! no earlier response turns up. Missing octets in a direction end the count for good. Memory: a
//! few numbers.

use weft_core::wire::rdmap::Opcode;

use crate::parse::{Kind, Located, Unit};
use crate::parse::{SegmentView, ULPDU_AT};

/// More unanswered requests than a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    /// The frame of the first request over the limit.
    pub frame: u64,
    /// Header of that request.
    pub header: Located,
    /// How many were unanswered then.
    pub outstanding: u32,
}

/// A limit, and a suspected excess.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limit {
    /// The highest number allowed; `None`: not negotiated, or not known yet.
    pub most: Option<u32>,
    excess: Option<Excess>,
}

impl Limit {
    fn requested(&mut self, unit: &Unit<'_>, outstanding: u32) {
        if self.excess.is_none() && self.most.is_some_and(|most| outstanding > most) {
            let header = unit.locate_first(ULPDU_AT..unit.octets_len());
            self.excess = Some(Excess { frame: unit.frame, header, outstanding });
        }
    }

    fn answered(&mut self, frame: u64) {
        if let (Some(excess), Some(most)) = (&mut self.excess, self.most)
            && frame < excess.frame
        {
            excess.outstanding -= 1;
            if excess.outstanding <= most {
                self.excess = None;
            }
        }
    }
}

/// Read Requests of one end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    /// Requests less responses; negative if the responses were read first.
    outstanding: i64,
    lost: bool,
    /// Its own ORD, by its own frame.
    pub ord: Limit,
    /// The peer's IRD, by the peer's frame.
    pub ird: Limit,
    /// The same by SDP's Hello and HelloAck.
    pub loc_ord: Limit,
    /// See `loc_ord`.
    pub loc_ird: Limit,
}

impl Reads {
    /// Is the peer's IRD known, and was it never exceeded?
    pub(crate) fn is_within_ird(&self) -> bool {
        !self.lost && self.ird.most.is_some() && self.ird.excess.is_none()
    }

    /// Confirmed excess over its own ORD, and over the peer's IRD.
    pub(crate) fn excess(&self) -> [Option<Excess>; 2] {
        if self.lost { [None, None] } else { [self.ord.excess, self.ird.excess] }
    }

    /// The same over SDP's own LocORD and the peer's LocIRD.
    pub(crate) fn sdp_excess(&self) -> [Option<Excess>; 2] {
        if self.lost { [None, None] } else { [self.loc_ord.excess, self.loc_ird.excess] }
    }

    fn limits(&mut self) -> [&mut Limit; 4] {
        [&mut self.ord, &mut self.ird, &mut self.loc_ord, &mut self.loc_ird]
    }
}

/// Records a unit; `reads` are those of direction 0 and 1.
pub(super) fn unit(reads: &mut [Reads; 2], unit: &Unit<'_>, view: Option<&SegmentView<'_>>, is_ready_to_receive: bool) {
    let direction = unit.direction();
    let lost = matches!(unit.kind, Kind::Gap { .. } | Kind::Unparsed { .. }) || unit.incomplete;
    let Some(view) = view.filter(|_| !lost) else {
        if lost || matches!(unit.kind, Kind::Fpdu(_)) {
            reads.iter_mut().for_each(|reads| reads.lost = true);
        }
        return;
    };
    match view.opcode() {
        // A request in several segments counts once.
        Opcode::READ_REQUEST if view.last() && !is_ready_to_receive => {
            let own = &mut reads[direction];
            own.outstanding += 1;
            let outstanding = u32::try_from(own.outstanding).unwrap_or(0);
            own.limits().into_iter().for_each(|limit| limit.requested(unit, outstanding));
        }
        Opcode::READ_RESPONSE if view.last() => {
            let other = &mut reads[direction.peer()];
            other.outstanding -= 1;
            other.limits().into_iter().for_each(|limit| limit.answered(unit.frame));
        }
        _ => {}
    }
}
