//! Checks the version of DDP and RDMAP. The version is 1, or 0 in the RDMA Consortium's variant.
//! Both directions have the same version.

use weft_core::requirement;

use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static AS_NEGOTIATED: Rule = Check::Segment(as_negotiated).covers(requirements![
    "MPA-3-14",
    "MPA-3-15",
    "MPA-C.1-2",
    "MPA-C.1-5",
    "MPA-C.2-2",
    "MPA-C.2.3-1",
    "MPA-C.2.5-2",
    "MPA-C.3-1"
]);

pub(super) static SAME_BOTH_WAYS: Rule = Check::Segment(same_both_ways).covers(requirements!["MPA-C.1-7"]);

/// Reports the first segment with wrong versions in each direction. The start-up frames determine
/// the right versions.
fn as_negotiated(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let direction = unit.direction();
    if state.mpa.streams[direction].wrong_versions != 1 || !state.mpa.streams[direction].has_wrong_version {
        return;
    }
    let Some(pair) = state.connection.startup_pair() else { return };
    let (ddp, rdmap) = (view.segment.control().version(), view.segment.ulp_control().version());
    let at = ULPDU_AT..ULPDU_AT + 2;
    let due = u8::from(!pair.is_rdmac());
    let expected = format!("DDP and RDMAP version {due}, as negotiated by the start-up frames");
    let found = || format!("DDP version {ddp}, RDMAP version {rdmap}");
    // MPA gives the version only to DDP. A wrong version of RDMAP alone is RDMAP's error.
    if ddp != due {
        findings.report_each(requirements!["MPA-3-14", "MPA-3-15"], unit, at.clone(), &expected, &found());
    }
    let mut notes = findings.as_note();
    if ddp != rdmap || ddp <= 1 {
        let expected = "versions of MPA, DDP and RDMAP that belong together";
        notes.report(requirement!("MPA-C.1-5"), unit, at.clone(), expected, found());
    }
    if pair.is_rdmac() {
        notes.report(requirement!("MPA-C.2.3-1"), unit, at.clone(), &expected, found());
        if pair.initiator == direction && pair.request.revision > 0 {
            notes.report(requirement!("MPA-C.2.5-2"), unit, at, &expected, found());
        }
        return;
    }
    notes.report_each(requirements!["MPA-C.2-2", "MPA-C.3-1"], unit, at.clone(), &expected, &found());
    if state.connection.startup[direction].is_some_and(|frame| frame.revision == 1) {
        notes.report(requirement!("MPA-C.1-2"), unit, at, &expected, found());
    }
}

fn same_both_ways(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let direction = unit.direction();
    let (own, other) = (&state.mpa.streams[direction], &state.mpa.streams[direction.peer()]);
    let version = view.segment.control().version();
    // Report only the endpoint that sends its first segment after the first segment of its peer.
    if own.fpdus != 1 || other.version.is_none_or(|other| other == version) {
        return;
    }
    let expected = format!("DDP version {} in both directions", other.version.unwrap_or(version));
    let found = format!("DDP version {version}");
    findings.as_note().report(requirement!("MPA-C.1-7"), unit, ULPDU_AT..ULPDU_AT + 1, &expected, found);
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Marked, Wire, fpdu, proves};

    /// Plays a Send in each direction. `reply` has the flags and the revision of the Reply.
    /// `controls` has the control octets of the two Sends.
    fn sends(reply: (u8, u8), controls: [[u8; 2]; 2]) -> Wire {
        let mut wire =
            Wire::started_as(&testing::startup_frame(0x40, 1, &[]), &testing::reply_frame(reply.0, reply.1, &[]));
        for (direction, [ddp, rdmap]) in controls.into_iter().enumerate() {
            let mut ulpdu = testing::send_of(1, 30);
            (ulpdu[0], ulpdu[1]) = (ddp, rdmap);
            let marked = reply.1 == 0;
            wire.send(direction, &if marked { Marked::default().fpdu(&ulpdu) } else { fpdu(&ulpdu) });
        }
        wire
    }

    const ONE: [u8; 2] = [0x41, 0x43];
    const ZERO: [u8; 2] = [0x40, 0x03];

    #[test]
    fn revision_1_means_version_1() {
        let good = sends((0x40, 1), [ONE, ONE]);
        let of_ddp = sends((0x40, 1), [[0x40, 0x43], ONE]);
        proves(requirement!("MPA-3-14"), &of_ddp, &good);
        proves(requirement!("MPA-3-14"), &of_ddp, &sends((0x40, 1), [[0x41, 0x03], ONE]));
        let zero = sends((0x40, 1), [ZERO, ZERO]);
        proves(requirement!("MPA-3-15"), &zero, &good);
        proves(requirement!("MPA-C.1-2"), &zero, &good);
        proves(requirement!("MPA-C.2-2"), &zero, &good);
        proves(requirement!("MPA-C.3-1"), &zero, &good);
    }

    #[test]
    fn the_rdma_consortium_means_version_0() {
        let good = sends((0xc0, 0), [ZERO, ZERO]);
        let mixed = sends((0xc0, 0), [ONE, ZERO]);
        proves(requirement!("MPA-C.1-5"), &mixed, &good);
        proves(requirement!("MPA-C.1-7"), &mixed, &good);
        proves(requirement!("MPA-C.2.3-1"), &mixed, &good);
        proves(requirement!("MPA-C.2.5-2"), &mixed, &good);
        proves(requirement!("MPA-3-15"), &mixed, &good);
    }
}
