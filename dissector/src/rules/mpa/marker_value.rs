//! Checks the values of markers: RESERVED must be zero, and FPDUPTR must be the distance back to
//! `ULPDU_Length` of the FPDU that contains the marker.

use weft_core::wire::mpa::fpdu::Piece;
use weft_core::{RequirementId, requirement};

use crate::follow::ConnectionState;
use crate::parse::{CrcStatus, Fpdu, MarkerStatus, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static POINTS_TO_HEADER: Rule = Check::Fpdu(points_to_header).covers(requirements![
    "MPA-4.2-1",
    "MPA-4.2-2",
    "MPA-4.2-4",
    "MPA-4.2-5",
    "MPA-4.3-5",
    "MPA-4.3-7",
    "MPA-4.3-11",
    "MPA-4.3-13",
    "MPA-4.3-14",
    "MPA-4.3-15",
    "MPA-4.3-16"
]);

/// The correct and the actual value of a marker.
struct Marker {
    /// The correct FPDUPTR, in octets.
    due: u16,
    reserved: u16,
    /// The actual FPDUPTR, in octets. The field is read in little-endian order if only the
    /// little-endian value is plausible.
    value: u16,
    little_endian: bool,
}

impl Marker {
    fn new(octets: [u8; 4], due: u16, from_leading: Option<u16>) -> Self {
        let [a, b, c, d] = octets;
        let (big, little) = (u16::from_be_bytes([c, d]), u16::from_le_bytes([c, d]));
        let sensible = |value: u16| value == due || Some(value) == from_leading;
        let little_endian = !sensible(big) && sensible(little);
        let value = if little_endian { little } else { big };
        Marker { due, reserved: u16::from_be_bytes([a, b]), value, little_endian }
    }

    /// Returns the requirements that the marker violates. `leading` is true if the marker is in
    /// front of the FPDU. `first` is true if the marker is the first marker of its direction.
    fn violated(&self, leading: bool, first: bool) -> Vec<RequirementId> {
        let mut ids = Vec::new();
        let mut add = |is: bool, id: RequirementId| {
            if is {
                ids.push(id);
            }
        };
        let wrong = self.value != self.due;
        let low_bits = wrong && self.value & 3 != 0;
        add(self.little_endian, requirement!("MPA-4.2-1"));
        add(self.reserved != 0, requirement!("MPA-4.2-2"));
        add(low_bits, requirement!("MPA-4.2-5"));
        // The two low bits are compared separately, because a receiver treats them as zero.
        let wrong = self.value & !3 != self.due & !3;
        add(wrong && leading, requirement!("MPA-4.3-15"));
        add(wrong && leading && first, requirement!("MPA-4.3-11"));
        add(wrong && !leading && self.value == 0, requirement!("MPA-4.3-7"));
        let distance = wrong && !leading && self.value != 0;
        add(distance, requirement!("MPA-4.2-4"));
        add(distance, requirement!("MPA-4.3-5"));
        add(distance && self.value > self.due + 4, requirement!("MPA-4.3-14"));
        add((wrong || self.little_endian) && self.due == 12, requirement!("MPA-4.3-16"));
        ids
    }
}

fn points_to_header(state: &ConnectionState, unit: &Unit<'_>, fpdu: &Fpdu<'_>, findings: &mut Findings<'_>) {
    if !matches!(fpdu.marker_status, MarkerStatus::BadValue | MarkerStatus::Misplaced) || fpdu.layout.phase().is_none()
    {
        return;
    }
    let direction = unit.direction();
    if fpdu.crc_status != CrcStatus::Good && !state.markers_are_certain(direction) {
        return;
    }
    let stream = &state.mpa.streams[direction];
    let layout = &fpdu.layout;
    let after_crc = fpdu.body.len() + 4;
    let mut inner: Option<u16> = None;
    let mut differ = false;
    let due = layout.pieces().filter_map(|piece| match piece {
        Piece::Marker { position, fpduptr } => Some((position, fpduptr)),
        Piece::Body(_) => None,
    });
    for (index, (position, fpduptr)) in due.enumerate() {
        let Some(octets) = fpdu.markers.get(index).copied().flatten() else { continue };
        let leading = position < layout.header;
        let from_leading = (layout.has_leading_marker() && !leading).then_some(fpduptr.wrapping_add(4));
        let marker = Marker::new(octets, fpduptr, from_leading);
        let first = leading && stream.fpdus == 1 && !stream.broken;
        let at = after_crc + 4 * index..after_crc + 4 * index + 4;
        for id in marker.violated(leading, first) {
            let expected = format!("00 00 {:02x} {:02x} (FPDUPTR {fpduptr})", fpduptr >> 8, fpduptr & 0xff);
            let order = if marker.little_endian { ", little-endian" } else { "" };
            let [a, b, c, d] = octets;
            let found = format!("{a:02x} {b:02x} {c:02x} {d:02x} (FPDUPTR {}{order})", marker.value);
            findings.report(id, unit, at.clone(), &expected, found);
        }
        if !leading {
            let origin = marker.value.wrapping_sub(fpduptr);
            differ |= inner.is_some_and(|before| before != origin);
            inner = Some(origin);
        }
    }
    if differ {
        let at = after_crc..after_crc + 4 * fpdu.markers.len();
        let found = "markers that point to different positions";
        let expected = "markers that all point to the ULPDU_Length of the FPDU";
        findings.report(requirement!("MPA-4.3-13"), unit, at, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Marked, Wire, proves};

    /// Plays Sends with markers. `ulpdus` has the lengths of their ULPDUs. `change` receives the
    /// index and the correct value of a marker, and returns the value to send.
    fn sends(ulpdus: &[usize], change: impl Fn(usize, [u8; 4]) -> [u8; 4]) -> Wire {
        let mut wire = Wire::started_with_markers();
        let mut sender = Marked::default();
        for (msn, len) in (1..).zip(ulpdus) {
            wire.send(0, &sender.fpdu_with(&testing::send_of(msn, *len), &change));
        }
        wire
    }

    fn right(_: usize, marker: [u8; 4]) -> [u8; 4] {
        marker
    }

    /// Returns a change that sets the pointer of marker `index` to the result of `to`.
    fn pointer(index: usize, to: impl Fn(u16) -> u16) -> impl Fn(usize, [u8; 4]) -> [u8; 4] {
        move |i, marker| {
            if i != index {
                return marker;
            }
            let [high, low] = to(u16::from_be_bytes([marker[2], marker[3]])).to_be_bytes();
            [marker[0], marker[1], high, low]
        }
    }

    #[test]
    fn the_two_halves_of_a_marker() {
        let good = sends(&[600, 30], right);
        let swapped = sends(&[600, 30], |_, [a, b, c, d]| [a, b, d, c]);
        proves(requirement!("MPA-4.2-1"), &swapped, &good);
        proves(requirement!("MPA-4.2-2"), &sends(&[600, 30], |_, m| [0, 1, m[2], m[3]]), &good);
        proves(requirement!("MPA-4.2-5"), &sends(&[600, 30], pointer(1, |p| p | 1)), &good);
    }

    #[test]
    fn a_marker_points_to_its_fpdu() {
        let good = sends(&[600, 30], right);
        // The sender counts from the leading marker, so FPDUPTR is 512 instead of 508.
        let from_marker = sends(&[600, 30], pointer(1, |p| p + 4));
        proves(requirement!("MPA-4.2-4"), &from_marker, &good);
        proves(requirement!("MPA-4.3-5"), &from_marker, &good);
        proves(requirement!("MPA-4.3-7"), &sends(&[600, 30], pointer(1, |_| 0)), &good);
        // The marker is in the second of two small FPDUs, but points to the first FPDU.
        let small = sends(&[470, 40, 30], right);
        proves(requirement!("MPA-4.3-14"), &sends(&[470, 40, 30], pointer(1, |p| p + 480)), &small);
        let long = sends(&[1300, 30], right);
        proves(requirement!("MPA-4.3-13"), &sends(&[1300, 30], pointer(2, |p| p - 512)), &long);
    }

    #[test]
    fn a_marker_between_fpdus_is_zero() {
        let good = sends(&[502, 30, 30], right);
        proves(requirement!("MPA-4.3-15"), &sends(&[502, 30, 30], pointer(1, |_| 508)), &good);
        proves(requirement!("MPA-4.3-11"), &sends(&[502, 30, 30], pointer(0, |_| 4)), &good);
        proves(
            requirement!("MPA-4.3-11"),
            &sends(&[502, 30, 30], pointer(0, |_| 4)),
            &sends(&[502, 30, 30], pointer(1, |_| 508)),
        );
    }

    /// A real implementation sends markers as in this test. The markers are in the byte order of
    /// the host, and the sender does not count CRC fields when it computes the positions of
    /// markers. The sender sends sixteen FPDUs of 1052 octets.
    #[test]
    fn drifting_little_endian_markers() {
        let sends = |crc_counts: bool, swap: bool| {
            let frame = testing::startup_frame(0x80, 1, &[]);
            let mut wire = Wire::started_as(&frame, &testing::reply_frame(0x80, 1, &[]));
            let mut sender = Marked { crc_counts, ..Marked::default() };
            for msn in 1..17 {
                let ulpdu = testing::send_of(msn, 1036);
                wire.send(
                    0,
                    &sender.fpdu_with(&ulpdu, |_, [a, b, c, d]| if swap { [a, b, d, c] } else { [a, b, c, d] }),
                );
            }
            wire
        };
        let (both, good) = (sends(false, true), sends(true, false));
        proves(requirement!("MPA-4.2-1"), &both, &good);
        proves(requirement!("MPA-4.3-4"), &both, &good);
        proves(requirement!("MPA-4.3-12"), &both, &good);
        proves(requirement!("MPA-2-3"), &both, &good);
        proves(requirement!("MPA-4.2-1"), &sends(true, true), &sends(false, false));
    }

    /// In RFC 5044 Figure 4, the header is at octet 500, and the marker is at octet 512.
    #[test]
    fn figure_4() {
        // The first FPDU has 500 octets: marker (4), `ULPDU_Length` (2), ULPDU (490) and CRC (4).
        let good = sends(&[490, 40, 30], right);
        proves(requirement!("MPA-4.3-16"), &sends(&[490, 40, 30], pointer(1, |_| 8)), &good);
    }
}
