//! Checks the CRC32c of FPDUs. If a CRC is wrong, the findings also name a probable cause. For
//! example, the value is the correct CRC of other octets, or the result of another algorithm.

use weft_core::requirement;
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::fpdu::Piece;
use weft_core::{RequirementId, crc};

use crate::follow::{ConnectionState, StartupFrame, StartupPair};
use crate::parse::{CrcStatus, Fpdu, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static CRC_IS_RIGHT: Rule = Check::Fpdu(crc_is_right).covers(requirements![
    "MPA-4.1-6",
    "MPA-4.3-1",
    "MPA-4.3-8",
    "MPA-4.4-1",
    "MPA-4.4-9",
    "MPA-4.4-14",
    "MPA-4.4-15",
    "MPA-4.4-16",
    "MPA-4.4-17",
    "MPA-4.4-18",
    "MPA-4.4-21",
    "MPA-4.4-22",
    "MPA-7.1.1-12",
    "MPA-B.1-1",
    "MPA-C.1-8",
    "MPA-C.2.5-2"
]);

/// RFC 5044 Figure 5 up to the CRC field: a Send of 24 zero octets after the first marker.
const FIGURE_5: [u8; 48] = figure(&[0, 0, 0, 0, 0, 0x2a, 0x41, 0x43], 19, 1, None);
/// RFC 5044 Figure 6 up to the CRC field: the same Send with MSN 2, and a marker inside the FPDU.
const FIGURE_6: [u8; 48] = figure(&[0, 0x2a, 0x41, 0x43], 15, 2, Some((20, 0x14)));

const fn figure(head: &[u8], msn_at: usize, msn: u8, marker: Option<(usize, u8)>) -> [u8; 48] {
    let mut octets = [0; 48];
    let mut i = 0;
    while i < head.len() {
        octets[i] = head[i];
        i += 1;
    }
    octets[msn_at] = msn;
    if let Some((at, pointer)) = marker {
        octets[at + 3] = pointer;
    }
    octets
}

fn crc_is_right(state: &ConnectionState, unit: &Unit<'_>, fpdu: &Fpdu<'_>, findings: &mut Findings<'_>) {
    if fpdu.crc_status != CrcStatus::Bad {
        return;
    }
    let layout = &fpdu.layout;
    let (Some(octets), Some(field)) = (unit.stream_octets(layout.start, layout.crc), fpdu.crc) else { return };
    let direction = unit.direction();
    // If both start-up frames are Requests, the endpoints have agreed on nothing. A later message
    // (a Terminate) does not need a CRC, even if one of the Requests requires CRC.
    let requests = |seen: &&StartupFrame| seen.kind == StartupKind::Request;
    if field == [0; 4] && state.connection.startup.iter().flatten().filter(requests).count() == 2 {
        return;
    }
    let at = fpdu.body.len()..fpdu.body.len() + crc::CRC_LEN;
    let right = crc::to_octets(crc::crc32c(octets));
    let expected = format!("CRC32c {}", hex(right));
    if unit.incomplete {
        let found = format!("{}, but the network damaged the segment (the TCP checksum is wrong, too)", hex(field));
        return findings.as_note().report(requirement!("MPA-4.1-6"), unit, at, &expected, found);
    }
    findings.report(requirement!("MPA-4.1-6"), unit, at.clone(), &expected, hex(field));
    let mut also = |id: RequirementId, found: &str| {
        findings.report(id, unit, at.clone(), &expected, format!("{}, {found}", hex(field)));
    };
    for (id, cause) in explain(fpdu, octets, field) {
        also(id, cause);
    }
    match octets {
        octets if *octets == FIGURE_5 => also(requirement!("MPA-4.4-21"), "which is not the CRC in RFC 5044 Figure 5"),
        octets if *octets == FIGURE_6 => also(requirement!("MPA-4.4-22"), "which is not the CRC in RFC 5044 Figure 6"),
        _ => {}
    }
    let none = field == [0; 4];
    if none {
        also(requirement!("MPA-4.4-1"), "because no CRC was generated");
        if state.connection.startup.iter().flatten().any(StartupFrame::wants_crc) {
            also(requirement!("MPA-7.1.1-12"), "because no CRC was generated, although a start-up frame has C=1");
        }
        if state.connection.peer_startup(direction).is_some_and(StartupFrame::wants_crc) {
            also(requirement!("MPA-4.4-9"), "because no CRC was generated, although the peer sent C=1");
        }
    }
    if state.mpa.streams[direction].bad_crcs == 1 {
        let mut notes = findings.as_note();
        notes.report(requirement!("MPA-B.1-1"), unit, at.clone(), "a correct CRC32c for each FPDU", hex(field));
        if let Some(pair) = state.connection.startup_pair().filter(StartupPair::is_rdmac) {
            let found = || format!("{}, sent to a peer that uses the RDMA Consortium's variant of MPA", hex(field));
            notes.report(requirement!("MPA-C.1-8"), unit, at.clone(), &expected, found());
            if pair.initiator == direction && pair.request.revision > 0 {
                notes.report(requirement!("MPA-C.2.5-2"), unit, at.clone(), &expected, found());
            }
        }
    }
}

/// Finds out for which octets and which algorithm `field` would be the correct CRC. Returns the
/// violated requirements, each with a description.
fn explain(fpdu: &Fpdu<'_>, octets: &[u8], field: [u8; 4]) -> Vec<(RequirementId, &'static str)> {
    let is = |octets: &[u8]| crc::to_octets(crc::crc32c(octets)) == field;
    let mut swapped = field;
    swapped.reverse();
    let mut found = Vec::new();
    if crc::to_octets(crc::crc32c(octets)) == swapped {
        found.push((requirement!("MPA-4.4-18"), "which is the right value with the most significant byte first"));
    }
    let (other, plain) = (crc32fast::hash(octets), !crc::crc32c(octets));
    if [other.to_le_bytes(), other.to_be_bytes()].contains(&field) {
        found.push((requirement!("MPA-4.4-14"), "which is the CRC-32 of Ethernet"));
    } else if plain.to_le_bytes() == field {
        found.push((requirement!("MPA-4.4-14"), "which is the CRC32c without the final complement"));
    }
    let leading = fpdu.layout.has_leading_marker();
    if leading && is(&octets[4..]) {
        found.push((requirement!("MPA-4.4-17"), "computed without the leading marker"));
        found.push((requirement!("MPA-4.3-8"), "computed without the leading marker"));
    }
    let last_is_marker = fpdu.layout.pieces().last().is_some_and(|piece| matches!(piece, Piece::Marker { .. }));
    if last_is_marker && !octets.is_empty() && is(&octets[..octets.len() - 4]) {
        found.push((requirement!("MPA-4.4-16"), "computed without the marker after PAD"));
    }
    if let Some(body) = fpdu.body.all() {
        let within = fpdu.markers.len() > usize::from(leading);
        if within && is(body) {
            found.push((requirement!("MPA-4.3-1"), "computed without the markers"));
        }
        let front = if leading { &octets[4..] } else { octets };
        let pad = fpdu.pad().len();
        if front.len() > 2 + pad && (is(&front[2..]) || pad > 0 && is(&octets[..octets.len() - pad])) {
            found.push((requirement!("MPA-4.4-15"), "computed without ULPDU_Length or PAD"));
        } else if within && is(body) {
            found.push((requirement!("MPA-4.4-15"), "computed without embedded markers"));
        }
    }
    found
}

fn hex(octets: [u8; 4]) -> String {
    octets.map(|octet| format!("{octet:02x}")).join(" ")
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Marked, Wire, proves};

    const SEND: &str = "0013 4143 00000000 00000000 00000001 00000000 2a 000000";

    /// Plays a Send. `field` computes its CRC field from the octets before the CRC field.
    fn send(field: impl Fn(&[u8]) -> [u8; 4]) -> Wire {
        let mut wire = Wire::started();
        append(&mut wire, 0, &testing::hex(SEND), field);
        wire
    }

    /// Sends an FPDU with the octets `covered`, and then a valid FPDU. `field` computes the CRC
    /// field of the first FPDU.
    fn append(wire: &mut Wire, direction: usize, covered: &[u8], field: impl Fn(&[u8]) -> [u8; 4]) {
        wire.send(direction, &[covered, &field(covered)].concat());
        wire.send(direction, &testing::fpdu(&testing::hex("4143 00000000 00000000 00000002 00000000")));
    }

    fn right(octets: &[u8]) -> [u8; 4] {
        *testing::with_crc(octets.to_vec()).last_chunk().unwrap()
    }

    fn reversed(octets: &[u8]) -> [u8; 4] {
        let mut field = right(octets);
        field.reverse();
        field
    }

    #[test]
    fn a_wrong_crc_is_found() {
        proves(requirement!("MPA-4.1-6"), &send(|_| [1, 2, 3, 4]), &send(right));
        proves(requirement!("MPA-B.1-1"), &send(|_| [1, 2, 3, 4]), &send(right));
    }

    #[test]
    fn reports_what_the_field_has_instead() {
        proves(requirement!("MPA-4.4-18"), &send(reversed), &send(right));
        let ethernet = send(|octets| crc32fast::hash(octets).to_le_bytes());
        proves(requirement!("MPA-4.4-14"), &ethernet, &send(right));
        proves(requirement!("MPA-4.4-15"), &send(|octets| right(&octets[2..])), &send(right));
        proves(requirement!("MPA-4.4-15"), &send(|octets| right(&octets[..octets.len() - 3])), &send(right));
    }

    #[test]
    fn a_sender_without_crc_is_found() {
        let zero = send(|_| [0; 4]);
        proves(requirement!("MPA-4.4-1"), &zero, &send(right));
        proves(requirement!("MPA-4.4-9"), &zero, &send(right));
        let only_own_c = |field: fn(&[u8]) -> [u8; 4]| {
            let mut wire = Wire::started_as(&testing::startup_frame(0x40, 1, &[]), &testing::reply_frame(0, 1, &[]));
            append(&mut wire, 0, &testing::hex(SEND), field);
            wire
        };
        proves(requirement!("MPA-7.1.1-12"), &only_own_c(|_| [0; 4]), &only_own_c(right));
        proves(requirement!("MPA-4.4-9"), &zero, &only_own_c(|_| [0; 4]));
    }

    #[test]
    fn two_requests_do_not_require_crc() {
        let found = |second: &[u8]| {
            let mut wire = Wire::started_as(&testing::startup_frame(0, 1, &[]), second);
            append(&mut wire, 0, &testing::hex(SEND), |_| [0; 4]);
            wire.errors().iter().any(|finding| finding.requirement == requirement!("MPA-4.1-6"))
        };
        assert!(found(&testing::reply_frame(0x40, 1, &[])));
        assert!(!found(&testing::startup_frame(0x40, 1, &[])));
    }

    /// Plays Sends with markers. `ulpdus` has the lengths of their ULPDUs. `field` computes the CRC
    /// of FPDU `index`.
    fn marked(ulpdus: &[usize], index: usize, field: impl Fn(&[u8]) -> [u8; 4]) -> Wire {
        let mut wire = Wire::started_with_markers();
        let mut sender = Marked::default();
        for (i, len) in ulpdus.iter().enumerate() {
            let mut octets = sender.fpdu(&testing::send_of(u32::try_from(i + 1).unwrap(), *len));
            if i == index {
                let (covered, _) = octets.split_at(octets.len() - 4);
                octets = [covered, &field(covered)].concat();
            }
            wire.send(0, &octets);
        }
        wire
    }

    /// Returns the octets without the markers at these offsets.
    fn without(octets: &[u8], markers: &[usize]) -> Vec<u8> {
        let mut kept = octets.to_vec();
        for at in markers.iter().rev() {
            kept.drain(*at..at + 4);
        }
        kept
    }

    #[test]
    fn markers_are_covered() {
        let ulpdus = [600, 30];
        let good = marked(&ulpdus, 9, right);
        proves(requirement!("MPA-4.3-1"), &marked(&ulpdus, 0, |o| right(&without(o, &[0, 512]))), &good);
        proves(requirement!("MPA-4.4-17"), &marked(&ulpdus, 0, |o| right(&o[4..])), &good);
        // The first FPDU has 478 octets of ULPDU and ends at octet 488. The second FPDU has 19
        // octets of ULPDU, so the marker at octet 512 is between PAD and CRC of the second FPDU.
        let ulpdus = [478, 19, 30];
        let good = marked(&ulpdus, 9, right);
        proves(requirement!("MPA-4.4-16"), &marked(&ulpdus, 1, |o| right(&o[..o.len() - 4])), &good);
        // An FPDU with 502 octets of ULPDU ends at octet 512, so the next FPDU begins with a
        // marker.
        let ulpdus = [502, 30, 30];
        let good = marked(&ulpdus, 9, right);
        proves(requirement!("MPA-4.3-8"), &marked(&ulpdus, 1, |o| right(&o[4..])), &good);
    }

    #[test]
    fn figures_5_and_6() {
        let figure_5 = |field: &str| {
            let mut wire = Wire::started_with_markers();
            let head = "00000000 002a 4143 00000000 00000000 00000001 00000000";
            wire.send(0, &[testing::hex(head), vec![0; 24], testing::hex(field)].concat());
            wire
        };
        proves(requirement!("MPA-4.4-21"), &figure_5("52239984"), &figure_5("52239983"));
        let figure_6 = |field: &str| {
            let mut wire = Wire::started_with_markers();
            // This FPDU ends at octet 0x1EC.
            wire.send(0, &Marked::default().fpdu(&testing::send_of(1, 0x1ec - 10)));
            let head = "002a 4143 00000000 00000000 00000002 00000000 00000014";
            wire.send(0, &[testing::hex(head), vec![0; 24], testing::hex(field)].concat());
            wire.send(0, &testing::fpdu(&testing::send_of(3, 30)));
            wire
        };
        proves(requirement!("MPA-4.4-22"), &figure_6("84925899"), &figure_6("84925898"));
    }

    #[test]
    fn a_peer_of_the_rdma_consortium_wants_crc() {
        let rdmac = |field: fn(&[u8]) -> [u8; 4]| {
            let mut wire = Wire::started_as(&testing::startup_frame(0x40, 1, &[]), &testing::reply_frame(0xc0, 0, &[]));
            let octets = Marked::default().fpdu(&testing::hex("4003 00000000 00000000 00000001 00000000 2a2b"));
            let covered = octets[..octets.len() - 4].to_vec();
            wire.send(0, &[covered.as_slice(), &field(&covered)].concat());
            wire
        };
        proves(requirement!("MPA-C.1-8"), &rdmac(|_| [9; 4]), &rdmac(right));
        proves(requirement!("MPA-C.2.5-2"), &rdmac(|_| [9; 4]), &rdmac(right));
    }
}
