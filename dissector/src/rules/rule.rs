//! A rule: the requirements that it judges, its function, and when that is called.

use weft_core::RequirementId;

use super::findings::Findings;
use super::portmap::view::PmView;
use super::sdp::view::SdpView;
use crate::follow::{ConnectionState, Remark};
use crate::parse::{Fpdu, SegmentView, Unit};

/// One rule.
pub struct Rule {
    /// The requirements that the rule judges.
    pub requirements: &'static [RequirementId],
    /// When it is called, and its function.
    pub(crate) judge: Judge,
}

/// When a rule is called, and with what. The connection's state already includes the unit.
#[derive(Clone, Copy)]
pub(crate) enum Judge {
    /// At each start-up frame.
    Startup(fn(&ConnectionState, &Unit<'_>, &mut Findings<'_>)),
    /// At each FPDU, in any state.
    Fpdu(fn(&ConnectionState, &Unit<'_>, &Fpdu<'_>, &mut Findings<'_>)),
    /// At each DDP segment whose header was captured and whose FPDU can be trusted.
    Segment(fn(&ConnectionState, &Unit<'_>, &SegmentView<'_>, &mut Findings<'_>)),
    /// At each such segment with an unusual bit or field, apart from STag, TO, MSN, MO and payload
    /// ([`SegmentView::is_ordinary`]).
    Header(fn(&ConnectionState, &Unit<'_>, &SegmentView<'_>, &mut Findings<'_>)),
    /// At each such segment whose opcode has its bit in the mask (bit 0: RDMA Write).
    Opcode(u16, fn(&ConnectionState, &Unit<'_>, &SegmentView<'_>, &mut Findings<'_>)),
    /// At each remark that the connection's state makes while it takes a unit in.
    Remark(fn(&ConnectionState, &Unit<'_>, &Remark, &mut Findings<'_>)),
    /// At every other unit.
    Other(fn(&ConnectionState, &Unit<'_>, &mut Findings<'_>)),
    /// At each SDP message whose BSDH was captured and whose octets can be trusted.
    Sdp(fn(&ConnectionState, &Unit<'_>, &SdpView<'_>, &mut Findings<'_>)),
    /// At each datagram from or to a port mapper.
    PortMapper(fn(&PmView<'_>, &Unit<'_>, &mut Findings<'_>)),
    /// When the connection or the capture ends.
    End(fn(&ConnectionState, &mut Findings<'_>)),
}
