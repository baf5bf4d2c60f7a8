//! The monitor's rules. A rule compares a unit, or a complete connection, with requirements of the
//! catalogue. A unit is one item that the parser reads from the capture, for example an FPDU, a
//! start-up frame, an SDP message or a datagram.
//!
//! A rule is a small function in `rules/<protocol>/<topic>.rs` and a line in the table `RULES` of
//! its protocol. Octets that are missing in the capture (not captured, or cut off by the snap
//! length) cause no finding. The content of an FPDU with a bad CRC causes no finding either. Each
//! requirement id of a rule has a test with two similar streams: one stream violates the
//! requirement, and the other stream meets the requirement (`testing::proves`).

/// Returns a slice of the requirements with these ids. Code with an id that is in no catalogue does
/// not compile.
macro_rules! requirements {
    ($($id:literal),+ $(,)?) => {
        const { &[$(weft_core::requirement!($id)),+] as &[weft_core::RequirementId] }
    };
}

mod ddp;
mod findings;
mod iser;
mod mpa;
#[cfg(test)]
mod octets_tests;
mod p2p;
mod portmap;
mod rdmap;
mod rpcrdma;
mod rule;
mod sdp;
#[cfg(test)]
mod unusual_tests;

pub(crate) use findings::Findings;
pub(crate) use portmap::{PendingFindings, PmView, UncertainMatch};
pub use rule::Rule;

use std::sync::LazyLock;

use crate::follow::{ConnectionState, Remark};
use crate::parse::{Fpdu, Kind, SegmentView, Unit};
use rule::Check;
use sdp::SdpView;

/// Returns all rules.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [mpa::RULES, p2p::RULES, ddp::RULES, rdmap::RULES, sdp::RULES, portmap::RULES, iser::RULES, rpcrdma::RULES]
        .into_iter()
        .flatten()
        .copied()
}

type UnitCheck = fn(&ConnectionState, &Unit<'_>, &mut Findings<'_>);
type FpduCheck = fn(&ConnectionState, &Unit<'_>, &Fpdu<'_>, &mut Findings<'_>);
type SegmentCheck = fn(&ConnectionState, &Unit<'_>, &SegmentView<'_>, &mut Findings<'_>);
type SdpCheck = fn(&ConnectionState, &Unit<'_>, &SdpView<'_>, &mut Findings<'_>);
type DatagramCheck = fn(&PmView<'_>, &Unit<'_>, &mut Findings<'_>);
type RemarkCheck = fn(&ConnectionState, &Unit<'_>, &Remark, &mut Findings<'_>);

/// The functions of all rules: one list for each event of [`Check`]. For a unit, the monitor calls
/// only the functions in the lists that concern this unit.
#[derive(Default)]
struct Tables {
    startup: Vec<UnitCheck>,
    fpdu: Vec<FpduCheck>,
    segment: Vec<SegmentCheck>,
    header: Vec<SegmentCheck>,
    opcode: [Vec<SegmentCheck>; 16],
    remark: Vec<RemarkCheck>,
    other: Vec<UnitCheck>,
    sdp: Vec<SdpCheck>,
    port_mapper: Vec<DatagramCheck>,
    end: Vec<fn(&ConnectionState, &mut Findings<'_>)>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables::default();
    for rule in rules() {
        match rule.check {
            Check::Startup(check) => tables.startup.push(check),
            Check::Fpdu(check) => tables.fpdu.push(check),
            Check::Segment(check) => tables.segment.push(check),
            Check::Header(check) => tables.header.push(check),
            Check::Opcode(mask, check) => {
                let concerned = tables.opcode.iter_mut().enumerate().filter(|(opcode, _)| mask >> opcode & 1 == 1);
                concerned.for_each(|(_, table)| table.push(check));
            }
            Check::Remark(check) => tables.remark.push(check),
            Check::Other(check) => tables.other.push(check),
            Check::Sdp(check) => tables.sdp.push(check),
            Check::PortMapper(check) => tables.port_mapper.push(check),
            Check::End(check) => tables.end.push(check),
        }
    }
    tables
});

/// Calls all rules that concern `unit`. If `unit` is an FPDU, `view` is its DDP segment. `view` is
/// `None` if it is possible that the captured octets differ from the octets that were sent. The
/// rules about segments do not run for an FPDU without a DDP header.
pub(crate) fn check_unit(
    state: &ConnectionState,
    unit: &Unit<'_>,
    view: Option<&SegmentView<'_>>,
    findings: &mut Findings<'_>,
) {
    let tables = &*TABLES;
    match &unit.kind {
        Kind::Startup(..) => tables.startup.iter().for_each(|check| check(state, unit, findings)),
        Kind::Fpdu(fpdu) => {
            tables.fpdu.iter().for_each(|check| check(state, unit, fpdu, findings));
            if let Some(view) = view.filter(|_| !state.traffic.directions[unit.direction()].lacks_header()) {
                tables.segment.iter().for_each(|check| check(state, unit, view, findings));
                if !view.is_ordinary() {
                    tables.header.iter().for_each(|check| check(state, unit, view, findings));
                }
                let concerned = &tables.opcode[usize::from(view.opcode().0 & 0xf)];
                concerned.iter().for_each(|check| check(state, unit, view, findings));
            }
        }
        Kind::Sdp(..) => {
            if let Some(view) = SdpView::of(state, unit) {
                tables.sdp.iter().for_each(|check| check(state, unit, &view, findings));
            }
        }
        _ => tables.other.iter().for_each(|check| check(state, unit, findings)),
    }
    for remark in state.remarks() {
        tables.remark.iter().for_each(|check| check(state, unit, remark, findings));
    }
}

/// Calls all rules of the port mapper for a datagram.
pub(crate) fn check_datagram(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    TABLES.port_mapper.iter().for_each(|check| check(view, unit, findings));
}

/// Calls the rules that check a complete connection, when the connection or the capture ends.
pub(crate) fn check_end(state: &ConnectionState, findings: &mut Findings<'_>) {
    TABLES.end.iter().for_each(|check| check(state, findings));
}
