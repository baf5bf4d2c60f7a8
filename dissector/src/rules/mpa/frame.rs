//! Checks the fields of start-up frames (RFC 5044 section 7.1.1).

use weft_core::requirement;
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{HEADER_LEN, KEY_LEN, MAX_PD_LENGTH, MAX_REVISION};

use crate::follow::ConnectionState;
use crate::parse::{SegmentView, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static FIELDS: Rule = Check::Startup(fields).covers(requirements![
    "MPA-7.1.1-15",
    "MPA-7.1.1-18",
    "MPA-7.1.1-20",
    "MPA-7.1.1-28",
    "MPA-7.1.1-29",
    "MPA-7.1.2-1"
]);

pub(super) static CRC_BY_DEFAULT: Rule =
    Check::Startup(crc_by_default).covers(requirements!["MPA-1.2-3", "MPA-4.4-4", "MPA-4.4-5"]);

pub(super) static REVISION_FITS_VERSION: Rule =
    Check::Segment(revision_fits_version).covers(requirements!["MPA-7.1.1-20"]);

const FLAGS_AT: usize = KEY_LEN;
const REVISION_AT: usize = KEY_LEN + 1;
const PD_LENGTH_AT: usize = KEY_LEN + 2;

fn fields(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(frame) = &state.connection.startup[unit.direction()] else { return };
    let (flags, revision) = (frame.flags, frame.revision);
    let is_request = frame.kind == StartupKind::Request;
    let mut at = |id, from: usize, to: usize, expected: &str, found: String| {
        findings.report(id, unit, from..to, expected, found);
    };
    if is_request && frame.rejects() {
        at(requirement!("MPA-7.1.1-15"), FLAGS_AT, FLAGS_AT + 1, "R = 0 in a Request", "R = 1".to_owned());
    }
    if revision < 2 && flags & 0x1f != 0 {
        let found = format!("Res = {:#04x}", flags & 0x1f);
        at(requirement!("MPA-7.1.1-18"), FLAGS_AT, FLAGS_AT + 1, "Res = 0", found);
    }
    let consortium = revision == 0 && frame.wants_markers() && frame.wants_crc();
    let revision_wrong = revision > MAX_REVISION || revision == 0 && !consortium;
    if revision_wrong {
        let found = format!("Rev = {revision}");
        at(requirement!("MPA-7.1.1-20"), REVISION_AT, REVISION_AT + 1, "Rev = 1, or 2 with RFC 6581", found);
    }
    let length = frame.pd_length;
    let swapped = length.swap_bytes();
    let too_long = length > MAX_PD_LENGTH;
    if too_long {
        let found = format!("PD_Length = {length}");
        at(requirement!("MPA-7.1.1-28"), PD_LENGTH_AT, HEADER_LEN, "at most 512 bytes of Private Data", found);
        if usize::from(swapped) == frame.private_len() {
            let found = format!("PD_Length = {length}, but {swapped} bytes follow (PD_Length in little-endian order)");
            at(requirement!("MPA-7.1.1-29"), PD_LENGTH_AT, HEADER_LEN, "PD_Length in network byte order", found);
        }
    }
    // Check whether the octets of the flags and of Rev are swapped. If so, the first octet is a
    // valid revision, and the second octet has flags, with reserved bits of zero.
    if revision > MAX_REVISION && revision & 0x0f == 0 && flags <= MAX_REVISION {
        let found = format!("byte 16 is {flags:#04x}, byte 17 is {revision:#04x}");
        at(requirement!("MPA-7.1.1-29"), FLAGS_AT, PD_LENGTH_AT, "flags in byte 16, Rev in byte 17", found);
    }
    if is_request && (revision > MAX_REVISION || too_long) {
        let found = format!("Rev = {revision}, PD_Length = {length}");
        at(requirement!("MPA-7.1.2-1"), FLAGS_AT, HEADER_LEN, "a valid Request", found);
    }
}

/// Reports C=0. A start-up frame does not show whether an administrator disabled CRC, so the
/// findings are notes.
fn crc_by_default(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(frame) = &state.connection.startup[unit.direction()] else { return };
    if frame.wants_crc() || frame.rejects() {
        return;
    }
    let mut notes = findings.as_note();
    let at = FLAGS_AT..FLAGS_AT + 1;
    let expected = "C = 1, unless an administrator disabled CRC";
    notes.report(requirement!("MPA-4.4-4"), unit, at.clone(), expected, "C = 0");
    let is_off =
        state.connection.startup_pair().is_some_and(|pair| !pair.request.wants_crc() && !pair.reply.wants_crc());
    if is_off {
        let found = "C = 0 in Request and Reply";
        notes.report(requirement!("MPA-4.4-5"), unit, at.clone(), "CRC in use by default", found);
        let expected = "CRC in use, unless the path is known to protect data equally well";
        notes.report(requirement!("MPA-1.2-3"), unit, at, expected, found);
    }
}

/// Reports Rev 0 from a sender that uses version 1 of DDP after the start-up. Rev 0 announces
/// version 0 of DDP and RDMAP.
fn revision_fits_version(
    state: &ConnectionState,
    unit: &Unit<'_>,
    view: &SegmentView<'_>,
    findings: &mut Findings<'_>,
) {
    let direction = unit.direction();
    if state.mpa.streams[direction].fpdus != 1 {
        return;
    }
    let own = state.connection.startup[direction].filter(|frame| frame.revision == 0 && frame.wants_markers());
    let Some(frame) = own.filter(|frame| frame.wants_crc() && view.segment.control().version() == 1) else { return };
    let found = format!("Rev = 0, then DDP version 1 in frame {}", unit.frame);
    let expected = "Rev = 1, or 2 with RFC 6581";
    findings.report_in_frame(requirement!("MPA-7.1.1-20"), direction, frame.header.part(17..18), expected, found);
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, fpdu, proves};

    /// Plays a Request and a Reply. `flags` and `revision` are the octets 16 and 17 of the Request.
    fn request(flags: u8, revision: u8) -> Wire {
        Wire::started_as(&testing::startup_frame(flags, revision, &[]), &testing::reply_frame(0x40, 1, &[]))
    }

    fn private_data(length: [u8; 2], octets: usize) -> Wire {
        let mut wire = Wire::connected();
        let mut frame = testing::startup_frame(0x40, 1, &[]);
        frame[18..20].copy_from_slice(&length);
        frame.resize(20 + octets, 7);
        wire.send(0, &frame);
        wire.fin(0);
        wire
    }

    #[test]
    fn flags_and_revision() {
        let good = request(0x40, 1);
        proves(requirement!("MPA-7.1.1-15"), &request(0x60, 1), &good);
        proves(requirement!("MPA-7.1.1-18"), &request(0x44, 1), &good);
        proves(requirement!("MPA-7.1.1-20"), &request(0x40, 3), &good);
        proves(requirement!("MPA-7.1.1-20"), &request(0x40, 0), &request(0xc0, 0));
        proves(requirement!("MPA-7.1.1-29"), &request(0x01, 0x40), &good);
        proves(requirement!("MPA-7.1.1-29"), &request(0x00, 0x40), &request(0x00, 0x03));
        proves(requirement!("MPA-7.1.2-1"), &request(0x40, 3), &good);
    }

    #[test]
    fn private_data_has_at_most_512_octets() {
        proves(requirement!("MPA-7.1.1-28"), &private_data([2, 1], 513), &private_data([2, 0], 512));
        proves(requirement!("MPA-7.1.1-29"), &private_data([4, 0], 4), &private_data([0, 4], 4));
    }

    #[test]
    fn revision_0_means_version_0() {
        let sends = |revision: u8| {
            let mut wire = request(0xc0, revision);
            wire.send(0, &fpdu(&testing::send_of(1, 30)));
            wire
        };
        proves(requirement!("MPA-7.1.1-20"), &sends(0), &sends(1));
    }

    #[test]
    fn crc_is_the_default() {
        let pair = |request: u8, reply: u8| {
            Wire::started_as(&testing::startup_frame(request, 1, &[]), &testing::reply_frame(reply, 1, &[]))
        };
        proves(requirement!("MPA-4.4-4"), &pair(0, 0x40), &pair(0x40, 0x40));
        proves(requirement!("MPA-4.4-5"), &pair(0, 0), &pair(0, 0x40));
        proves(requirement!("MPA-1.2-3"), &pair(0, 0), &pair(0x40, 0));
        assert_eq!(pair(0, 0).errors(), []);
    }
}
