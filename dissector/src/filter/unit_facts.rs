//! Wireshark's fields of start-up frames and FPDUs that are no fields of weft's grammar.

use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::KEY_LEN;

use super::known::Fact;
use super::values::{FieldValue, Slot, Values};
use crate::part::Part;
use crate::unit::{Kind, Unit};

/// Maximum length of private data (RFC 5044 section 7.1.1).
const LONGEST_PRIVATE_DATA: u16 = 512;

/// Adds the values of one of these fields.
pub(super) fn add(fact: Fact, unit: &Unit<'_>, slot: Slot, values: &mut Values) {
    match &unit.kind {
        Kind::Startup(kind, part) if has_remark(fact, *kind, *part) => values.add(slot, FieldValue::Present),
        Kind::Fpdu(fpdu) if fact == Fact::MarkerRes => {
            for [high, low, _, _] in fpdu.markers.iter().flatten() {
                values.add(slot, FieldValue::Number(u64::from(u16::from_be_bytes([*high, *low]))));
            }
        }
        Kind::Fpdu(fpdu) if fact == Fact::RsvdUlp => {
            // An untagged header reserves octets 1 to 5 for the protocol above DDP (RFC 5041
            // section 4.3).
            let ulpdu = fpdu.ulpdu();
            let is_untagged = ulpdu.get(0..1).is_some_and(|control| control[0] & 0x80 == 0);
            if let Some(octets) = ulpdu.get(1..6).filter(|_| is_untagged) {
                values.add_octets(slot, octets);
            }
        }
        _ => {}
    }
}

/// Returns whether Wireshark adds the remark `fact` to a start-up frame. The remarks follow RFC
/// 5044 only: a Request of RFC 6581 has them, too.
fn has_remark(fact: Fact, kind: StartupKind, part: Part<'_>) -> bool {
    let Some(&[flags, revision, high, low]) = part.get(KEY_LEN..KEY_LEN + 4) else { return false };
    let is_request = kind == StartupKind::Request;
    match fact {
        Fact::ResNotSet0 => is_request && flags & 0x1f != 0,
        Fact::RevNotSet1 => is_request && revision != 1,
        Fact::RejectBitResponder => !is_request && flags & 0x20 != 0,
        Fact::BadLength => u16::from_be_bytes([high, low]) > LONGEST_PRIVATE_DATA,
        _ => false,
    }
}
