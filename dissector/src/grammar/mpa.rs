//! Defines the fields of MPA: start-up frames and FPDUs (RFC 5044, RFC 6581).

use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{ENHANCED_LEN, FLAG_S, HEADER_LEN, KEY_LEN};

use super::reader::Reader;
use crate::part::Part;
use crate::unit::Fpdu;

use super::ddp;
use super::field::{Base, Field, Group, Value, Visitor, fields, nth_name};

/// An MPA Request frame.
pub static REQUEST: Group = Group { name: "iwarp_mpa.req", label: "MPA Request Frame", section: "RFC 5044 7.1.1" };
/// An MPA Reply frame.
pub static REPLY: Group = Group { name: "iwarp_mpa.rep", label: "MPA Reply Frame", section: "RFC 5044 7.1.1" };
/// An FPDU.
pub static FPDU: Group = Group { name: "iwarp_mpa", label: "MPA FPDU", section: "RFC 5044 4.1" };

fields! { 0:
    KEY: "iwarp_mpa.key", "Key", Base::Octets, "RFC 5044 7.1.1";
    MARKER_FLAG: "iwarp_mpa.marker_flag", "M (markers)", Base::Flag, "RFC 5044 7.1.1", mask 0x80;
    CRC_FLAG: "iwarp_mpa.crc_flag", "C (CRC)", Base::Flag, "RFC 5044 7.1.1", mask 0x40;
    REJ_FLAG: "iwarp_mpa.rej_flag", "R (rejected)", Base::Flag, "RFC 5044 7.1.1", mask 0x20;
    RES: "iwarp_mpa.res", "Res", Base::Hex(2), "RFC 5044 7.1.1", mask 0x1f;
    S_FLAG: "iwarp_mpa.s_flag", "S (enhanced)", Base::Flag, "RFC 6581 9", mask 0x10;
    REV: "iwarp_mpa.rev", "Rev", Base::Dec, "RFC 5044 7.1.1", names revision_name;
    PDLENGTH: "iwarp_mpa.pdlength", "PD_Length", Base::Dec, "RFC 5044 7.1.1";
    A_FLAG: "iwarp_mpa.a_flag", "A (peer-to-peer)", Base::Flag, "RFC 6581 9", mask 0x8000;
    B_FLAG: "iwarp_mpa.b_flag", "B (zero-length Send RTR)", Base::Flag, "RFC 6581 9", mask 0x4000;
    IRD: "iwarp_mpa.ird", "IRD", Base::Dec, "RFC 6581 9", mask 0x3fff;
    C_FLAG: "iwarp_mpa.c_flag", "C (zero-length Write RTR)", Base::Flag, "RFC 6581 9", mask 0x8000;
    D_FLAG: "iwarp_mpa.d_flag", "D (zero-length Read RTR)", Base::Flag, "RFC 6581 9", mask 0x4000;
    ORD: "iwarp_mpa.ord", "ORD", Base::Dec, "RFC 6581 9", mask 0x3fff;
    PRIVATEDATA: "iwarp_mpa.privatedata", "Private Data", Base::Octets, "RFC 5044 7.1.1";
    ULPDULENGTH: "iwarp_mpa.ulpdulength", "ULPDU_Length", Base::Dec, "RFC 5044 4.1";
    PAD: "iwarp_mpa.pad", "PAD", Base::Octets, "RFC 5044 4.1";
    CRC: "iwarp_mpa.crc", "CRC", Base::Hex(8), "RFC 5044 4.4";
    CRC_STATUS: "crc_status", "CRC status", Base::Text, "RFC 5044 4.4";
    MARKER_FPDUPTR: "iwarp_mpa.marker_fpduptr", "FPDUPTR of each marker", Base::Dec, "RFC 5044 4.3";
    MARKER_STATUS: "marker_status", "Marker status", Base::Text, "RFC 5044 4.3";
}

fn revision_name(revision: u64) -> Option<&'static str> {
    nth_name(&["RDMA Consortium", "RFC 5044", "RFC 6581"], revision)
}

/// Reads a Request or Reply frame. The reader must be at the key.
pub(super) fn startup<V: Visitor>(kind: StartupKind, reader: &mut Reader<'_, '_, V>) {
    let all = reader.left();
    let octets = reader.rest();
    reader.enter(if kind == StartupKind::Request { &REQUEST } else { &REPLY }, all);
    reader.octets(&KEY, KEY_LEN);
    let revision = octets.get(17..18).map_or(0, |octet| octet[0]);
    let flags: &[&'static Field] = &[&MARKER_FLAG, &CRC_FLAG, &REJ_FLAG, &RES, &S_FLAG];
    let flags = reader.bits(1, if revision >= 2 { flags } else { &flags[..4] }).unwrap_or(0);
    reader.u8(&REV);
    let length = usize::try_from(reader.u16(&PDLENGTH).unwrap_or(0)).unwrap_or(0);
    if revision >= 2 && flags & u64::from(FLAG_S) != 0 && length >= ENHANCED_LEN {
        // The two words of RFC 6581 contain IRD and ORD. One word alone is not useful. Therefore
        // report the words only if both were captured.
        if octets.get(HEADER_LEN..HEADER_LEN + ENHANCED_LEN).is_some() {
            let at = reader.position();
            let mut words = Reader::new(octets.from(HEADER_LEN), at, reader.visitor());
            words.bits(2, &[&A_FLAG, &B_FLAG, &IRD]);
            words.bits(2, &[&C_FLAG, &D_FLAG, &ORD]);
        }
    }
    reader.octets(&PRIVATEDATA, length);
    reader.leave();
}

/// Reads an FPDU. Returns the upper-layer payload of its DDP segment.
pub(super) fn fpdu<'a, V: Visitor>(fpdu: &Fpdu<'a>, visitor: &mut V) -> Option<Part<'a>> {
    let ulpdu_length = usize::from(fpdu.layout.ulpdu_length);
    let body = fpdu.body.len();
    let has_field = fpdu.layout.end > fpdu.layout.crc;
    visitor.enter(&FPDU, 0..body + if has_field { 4 } else { 0 });
    visitor.field(&ULPDULENGTH, Value::Uint(u64::from(fpdu.layout.ulpdu_length)), 0..2);
    if let Some(pad) = fpdu.pad().all() {
        visitor.field(&PAD, Value::Octets(pad), (2 + ulpdu_length).min(body)..body);
    }
    if let Some(crc) = fpdu.crc {
        visitor.field(&CRC, Value::Uint(u64::from(u32::from_be_bytes(crc))), body..body + 4);
    }
    visitor.field(&CRC_STATUS, Value::Text(fpdu.crc_status.name()), body..body);
    let after_crc = body + 4;
    visitor.field(&MARKER_FPDUPTR, Value::Pointers(fpdu.markers), after_crc..after_crc + 4 * fpdu.markers.len());
    visitor.field(&MARKER_STATUS, Value::Text(fpdu.marker_status.name()), after_crc..after_crc);
    visitor.leave();
    if visitor.is_satisfied() {
        return None;
    }
    ddp::segment(&mut Reader::new(fpdu.ulpdu(), 2, visitor))
}
