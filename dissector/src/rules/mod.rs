//! The monitor's rules. A rule compares a unit, or a complete connection, with requirements of the
//! catalogue. A unit is what the parser reads at a time, for example an FPDU, a start-up frame, an
//! SDP message or a datagram.
//!
//! A rule is a small function in `rules/<protocol>/<topic>.rs` and a line in the table of its
//! protocol. Rules do not report octets that are missing in the capture (lost or cut off), or the
//! content of an FPDU with a bad CRC. Each requirement id of a rule has a test with two similar
//! streams: one that violates the requirement and one that meets it (`testing::proves`).

mod ddp;
mod findings;
mod mpa;
#[cfg(test)]
mod octets_tests;
#[cfg(test)]
mod odd_tests;
mod p2p;
mod portmap;
mod rdmap;
mod rule;
mod sdp;

pub(crate) use findings::Findings;
pub(crate) use portmap::{PendingFindings, PmView, Uncertain};
pub use rule::Rule;

use std::sync::LazyLock;

use crate::follow::{ConnectionState, Remark};
use crate::parse::{Fpdu, Kind, SegmentView, Unit};
use rule::Judge;
use sdp::SdpView;

/// Returns all rules.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [mpa::RULES, p2p::RULES, ddp::RULES, rdmap::RULES, sdp::RULES, portmap::RULES].into_iter().flatten().copied()
}

type OnUnit = fn(&ConnectionState, &Unit<'_>, &mut Findings<'_>);
type OnFpdu = fn(&ConnectionState, &Unit<'_>, &Fpdu<'_>, &mut Findings<'_>);
type OnSegment = fn(&ConnectionState, &Unit<'_>, &SegmentView<'_>, &mut Findings<'_>);
type OnSdp = fn(&ConnectionState, &Unit<'_>, &SdpView<'_>, &mut Findings<'_>);
type OnDatagram = fn(&PmView<'_>, &Unit<'_>, &mut Findings<'_>);
type OnRemark = fn(&ConnectionState, &Unit<'_>, &Remark, &mut Findings<'_>);

/// The rules by the event that calls them, so that only relevant rules are called for a unit.
#[derive(Default)]
struct Tables {
    startup: Vec<OnUnit>,
    fpdu: Vec<OnFpdu>,
    segment: Vec<OnSegment>,
    header: Vec<OnSegment>,
    opcode: [Vec<OnSegment>; 16],
    remark: Vec<OnRemark>,
    other: Vec<OnUnit>,
    sdp: Vec<OnSdp>,
    port_mapper: Vec<OnDatagram>,
    end: Vec<fn(&ConnectionState, &mut Findings<'_>)>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables::default();
    for rule in rules() {
        match rule.judge {
            Judge::Startup(judge) => tables.startup.push(judge),
            Judge::Fpdu(judge) => tables.fpdu.push(judge),
            Judge::Segment(judge) => tables.segment.push(judge),
            Judge::Header(judge) => tables.header.push(judge),
            Judge::Opcode(mask, judge) => {
                let concerned = tables.opcode.iter_mut().enumerate().filter(|(opcode, _)| mask >> opcode & 1 == 1);
                concerned.for_each(|(_, table)| table.push(judge));
            }
            Judge::Remark(judge) => tables.remark.push(judge),
            Judge::Other(judge) => tables.other.push(judge),
            Judge::Sdp(judge) => tables.sdp.push(judge),
            Judge::PortMapper(judge) => tables.port_mapper.push(judge),
            Judge::End(judge) => tables.end.push(judge),
        }
    }
    tables
});

/// Calls all rules that concern `unit`. `view` is the DDP segment of an FPDU; `None` if its octets
/// may differ from those sent.
pub(crate) fn judge_unit(
    state: &ConnectionState,
    unit: &Unit<'_>,
    view: Option<&SegmentView<'_>>,
    findings: &mut Findings<'_>,
) {
    let tables = &*TABLES;
    match &unit.kind {
        Kind::Startup(..) => tables.startup.iter().for_each(|judge| judge(state, unit, findings)),
        Kind::Fpdu(fpdu) => {
            tables.fpdu.iter().for_each(|judge| judge(state, unit, fpdu, findings));
            if let Some(view) = view {
                tables.segment.iter().for_each(|judge| judge(state, unit, view, findings));
                if !view.is_ordinary() {
                    tables.header.iter().for_each(|judge| judge(state, unit, view, findings));
                }
                let concerned = &tables.opcode[usize::from(view.opcode().0 & 0xf)];
                concerned.iter().for_each(|judge| judge(state, unit, view, findings));
            }
        }
        Kind::Sdp(..) => {
            if let Some(view) = SdpView::of(state, unit) {
                tables.sdp.iter().for_each(|judge| judge(state, unit, &view, findings));
            }
        }
        _ => tables.other.iter().for_each(|judge| judge(state, unit, findings)),
    }
    for remark in state.remarks() {
        tables.remark.iter().for_each(|judge| judge(state, unit, remark, findings));
    }
}

/// Calls all rules of the port mapper for a datagram.
pub(crate) fn judge_datagram(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    TABLES.port_mapper.iter().for_each(|judge| judge(view, unit, findings));
}

/// Calls the rules for a complete connection, when the connection or the capture ends.
pub(crate) fn judge_end(state: &ConnectionState, findings: &mut Findings<'_>) {
    TABLES.end.iter().for_each(|judge| judge(state, findings));
}
