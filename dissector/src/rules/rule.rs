//! Defines a rule: its requirements, its function, and the event that calls the function.

use weft_core::RequirementId;

pub(super) use super::findings::Findings;
use super::portmap::view::PmView;
use super::sdp::view::SdpView;
use crate::follow::{ConnectionState, Remark};
use crate::parse::{Fpdu, SegmentView, Unit};

/// A rule of the monitor.
pub struct Rule {
    /// The requirements whose violations the rule reports.
    pub requirements: &'static [RequirementId],
    /// The event that calls the rule, and the rule's function.
    pub(crate) check: Check,
}

/// The event that calls a rule, and the rule's function. When the function runs, the connection's
/// state already includes the current unit (FPDU, start-up frame, SDP message, or other piece of
/// the capture).
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// At each start-up frame.
    Startup(fn(&ConnectionState, &Unit<'_>, &mut Findings<'_>)),
    /// At each FPDU, including FPDUs with a bad CRC or missing octets.
    Fpdu(fn(&ConnectionState, &Unit<'_>, &Fpdu<'_>, &mut Findings<'_>)),
    /// At each DDP segment with a completely captured header, in a trusted FPDU (see
    /// [`SegmentView`]).
    Segment(fn(&ConnectionState, &Unit<'_>, &SegmentView<'_>, &mut Findings<'_>)),
    /// At each segment for which `Segment` rules run, if a fixed field of its header has an unusual
    /// value (see [`SegmentView::is_ordinary`]).
    Header(fn(&ConnectionState, &Unit<'_>, &SegmentView<'_>, &mut Findings<'_>)),
    /// At each segment for which `Segment` rules run, if the mask selects its opcode. Bit N of the
    /// mask selects opcode N. For example, bit 0 selects opcode 0 (RDMA Write).
    Opcode(u16, fn(&ConnectionState, &Unit<'_>, &SegmentView<'_>, &mut Findings<'_>)),
    /// At each remark. A remark reports that a unit does not fit earlier units.
    Remark(fn(&ConnectionState, &Unit<'_>, &Remark, &mut Findings<'_>)),
    /// At each unit with streaming octets, missing octets, or octets in which no FPDU was found.
    Other(fn(&ConnectionState, &Unit<'_>, &mut Findings<'_>)),
    /// At each SDP message with a completely captured BSDH and trustworthy octets (see
    /// [`SdpView`]).
    Sdp(fn(&ConnectionState, &Unit<'_>, &SdpView<'_>, &mut Findings<'_>)),
    /// At each datagram from or to a port mapper.
    PortMapper(fn(&PmView<'_>, &Unit<'_>, &mut Findings<'_>)),
    /// When the connection or the capture ends.
    End(fn(&ConnectionState, &mut Findings<'_>)),
}

impl Check {
    /// Returns a rule that reports violations of `requirements`, with this event and this function.
    pub(super) const fn covers(self, requirements: &'static [RequirementId]) -> Rule {
        Rule { requirements, check: self }
    }
}
