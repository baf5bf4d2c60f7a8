//! Computes the CRC field of an FPDU whose payload was replaced. A correct CRC stays correct. If a
//! wrong CRC is the result of a known mistake, the new value is the result of the same mistake.

use weft_core::crc;
use weft_core::wire::mpa::fpdu::Piece;

use crate::parse::Fpdu;

/// The difference between a wrong CRC without a known cause, and the correct CRC.
const WRONG: [u8; crc::CRC_LEN] = [0xa5; crc::CRC_LEN];

/// The new CRC field of `fpdu`. `old` are the octets that the CRC covers, and `new` are the same
/// octets after the replacement. `field` is the old field.
pub(super) fn new_field(fpdu: &Fpdu<'_>, old: &[u8], new: &[u8], field: [u8; crc::CRC_LEN]) -> [u8; crc::CRC_LEN] {
    // A sender that generates no CRC sends zeros.
    if field == [0; crc::CRC_LEN] {
        return field;
    }
    let right = |octets: &[u8]| crc::to_octets(crc::crc32c(octets));
    if right(old) == field {
        return right(new);
    }
    let same = values(fpdu, old).into_iter().zip(values(fpdu, new)).find(|(before, _)| *before == field);
    match same {
        Some((_, after)) => after,
        None => {
            let mut value = right(new);
            value.iter_mut().zip(WRONG).for_each(|(octet, difference)| *octet ^= difference);
            value
        }
    }
}

/// The correct CRC of the octets `covered`, and then the results of the mistakes that the monitor
/// recognises.
fn values(fpdu: &Fpdu<'_>, covered: &[u8]) -> Vec<[u8; crc::CRC_LEN]> {
    let of = |octets: &[u8]| crc::to_octets(crc::crc32c(octets));
    let right = of(covered);
    let mut swapped = right;
    swapped.reverse();
    let ethernet = crc32fast::hash(covered);
    let plain = !crc::crc32c(covered);
    let mut values = vec![right, swapped, ethernet.to_le_bytes(), ethernet.to_be_bytes(), plain.to_le_bytes()];
    // Without some of the octets: the leading marker, the marker after PAD, all markers,
    // ULPDU_Length, PAD.
    let front = if fpdu.layout.has_leading_marker() { covered.get(4..) } else { Some(covered) };
    let front = front.unwrap_or_default();
    let without_last = covered.len().saturating_sub(4);
    let without_pad = covered.len().saturating_sub(fpdu.pad().len());
    let body = body(fpdu, covered);
    let without_length = front.get(2..).unwrap_or_default();
    let parts = [front, &covered[..without_last], &body[..], without_length, &covered[..without_pad]];
    values.extend(parts.map(of));
    values
}

/// The octets of `covered` that do not belong to a marker.
fn body(fpdu: &Fpdu<'_>, covered: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(covered.len());
    for piece in fpdu.layout.pieces() {
        if let Piece::Body(positions) = piece {
            let [from, to] = [positions.start, positions.end].map(|at| (at - fpdu.layout.start) as usize);
            body.extend_from_slice(covered.get(from..to).unwrap_or_default());
        }
    }
    body
}
