//! Checks the start-up in the RDMA Consortium's variant. This variant has Rev 0, markers and CRC in
//! both directions, and version 0 of DDP and RDMAP. Appendix C of RFC 5044 is informative, so
//! findings are notes.

use weft_core::requirement;
use weft_core::wire::mpa::StartupKind;

use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static CONSORTIUM_FRAMES: Rule =
    Check::Startup(consortium_frames).covers(requirements!["MPA-C.1-1", "MPA-C.2.4-1"]);

pub(super) static CONSORTIUM_ANSWERS: Rule =
    Check::Startup(consortium_answers).covers(requirements!["MPA-C.2.3-2", "MPA-C.2.4-2", "MPA-C.2.5-1"]);

/// Formats M and C of a start-up frame.
fn flags(markers: bool, crc: bool) -> String {
    format!("M = {}, C = {}", u8::from(markers), u8::from(crc))
}

fn consortium_frames(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(frame) = &state.connection.startup[unit.direction()] else { return };
    if frame.revision != 0 || frame.wants_markers() && frame.wants_crc() {
        return;
    }
    let found = || format!("Rev = 0, {}", flags(frame.wants_markers(), frame.wants_crc()));
    let mut notes = findings.as_note();
    notes.report(requirement!("MPA-C.1-1"), unit, 16..18, "M = 1 and C = 1 with Rev 0", found());
    if frame.kind == StartupKind::Request {
        notes.report(requirement!("MPA-C.2.4-1"), unit, 16..18, "M = 1 and C = 1 in a Request of Rev 0", found());
    }
}

fn consortium_answers(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(pair) = state.connection.startup_pair() else { return };
    let reply = pair.reply;
    let right = reply.revision == 0 && reply.wants_markers() && reply.wants_crc();
    if right || unit.frame < reply.frame || reply.rejects() {
        return;
    }
    let found = || format!("a Reply of Rev {}, {}", reply.revision, flags(reply.wants_markers(), reply.wants_crc()));
    let mut notes = findings.as_note();
    let mut note = |id, expected: &str| notes.report_in_frame(id, pair.responder, reply.frame, expected, found());
    if pair.request.revision == 0 {
        if !reply.wants_markers() {
            note(requirement!("MPA-C.2.3-2"), "M = 1 in the Reply to a Request of Rev 0");
        }
        if reply.revision == 0 {
            note(requirement!("MPA-C.2.4-2"), "Rev 0, M = 1 and C = 1 in the Reply to a Request of Rev 0");
        }
    } else if reply.revision == 0 {
        note(requirement!("MPA-C.2.5-1"), "M = 1 in a Reply of Rev 0");
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, proves};

    fn pair(request: (u8, u8), reply: (u8, u8)) -> Wire {
        let request = testing::startup_frame(request.0, request.1, &[]);
        Wire::started_as(&request, &testing::reply_frame(reply.0, reply.1, &[]))
    }

    #[test]
    fn the_consortium_wants_markers_and_crc() {
        let good = pair((0xc0, 0), (0xc0, 0));
        proves(requirement!("MPA-C.1-1"), &pair((0xc0, 0), (0x80, 0)), &good);
        proves(requirement!("MPA-C.2.4-1"), &pair((0x40, 0), (0xc0, 0)), &good);
        proves(requirement!("MPA-C.2.3-2"), &pair((0xc0, 0), (0x40, 1)), &pair((0xc0, 0), (0xc0, 1)));
        proves(requirement!("MPA-C.2.4-2"), &pair((0xc0, 0), (0x80, 0)), &good);
        proves(requirement!("MPA-C.2.5-1"), &pair((0x40, 1), (0x40, 0)), &pair((0x40, 1), (0xc0, 0)));
    }
}
