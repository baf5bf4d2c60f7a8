//! Defines the fields of DDP segments (RFC 5041 section 4). A DDP header also reserves octets for
//! RDMAP. The module `rdmap` defines the fields of these octets.

use weft_core::wire::rdmap::Opcode;

use super::reader::Reader;
use crate::part::Part;

use super::field::{Base, Field, Group, Visitor, fields, nth_name};
use super::rdmap;

/// A tagged header.
pub static TAGGED: Group = Group { name: "iwarp_ddp", label: "DDP Tagged Segment", section: "RFC 5041 4.2" };
/// An untagged header.
pub static UNTAGGED: Group = Group { name: "iwarp_ddp", label: "DDP Untagged Segment", section: "RFC 5041 4.3" };

fields! { 1:
    TAGGED_FLAG: "iwarp_ddp.tagged_flag", "T (tagged)", Base::Flag, "RFC 5041 4.1", mask 0x80;
    LAST_FLAG: "iwarp_ddp.last_flag", "L (last)", Base::Flag, "RFC 5041 4.1", mask 0x40;
    RSVD: "iwarp_ddp.rsvd", "Rsvd", Base::Hex(1), "RFC 5041 4.1", mask 0x3c;
    DV: "iwarp_ddp.dv", "DV (version)", Base::Dec, "RFC 5041 4.1", mask 0x03;
    STAG: "iwarp_ddp.stag", "STag", Base::Hex(8), "RFC 5041 4.2";
    TAGGED_OFFSET: "iwarp_ddp.tagged_offset", "TO", Base::Hex(16), "RFC 5041 4.2";
    QN: "iwarp_ddp.qn", "QN", Base::Dec, "RFC 5041 4.3", names queue_name;
    MSN: "iwarp_ddp.msn", "MSN", Base::Dec, "RFC 5041 4.3";
    MO: "iwarp_ddp.mo", "MO", Base::Dec, "RFC 5041 4.3";
}

fn queue_name(queue: u64) -> Option<&'static str> {
    nth_name(&["Sends", "Read and Atomic Requests", "Terminate", "Atomic Responses"], queue)
}

/// Reads a ULPDU. Returns its upper-layer payload, or `None` if the start of the payload is unknown
/// because octets are missing.
pub(super) fn segment<'a, V: Visitor>(reader: &mut Reader<'a, '_, V>) -> Option<Part<'a>> {
    let first = reader.rest().get(0..1)?[0];
    let tagged = first & 0x80 != 0;
    reader.enter(if tagged { &TAGGED } else { &UNTAGGED }, if tagged { 14 } else { 18 });
    reader.bits(1, &[&TAGGED_FLAG, &LAST_FLAG, &RSVD, &DV]);
    let opcode = rdmap::control(reader).filter(|_| !reader.visitor().is_satisfied());
    let Some(opcode) = opcode else {
        reader.leave();
        return None;
    };
    if tagged {
        reader.u32(&STAG);
        reader.u64(&TAGGED_OFFSET);
        reader.leave();
        return Some(reader.rest());
    }
    rdmap::ulp_word(opcode, reader);
    reader.u32(&QN);
    reader.u32(&MSN);
    reader.u32(&MO);
    reader.leave();
    let known = rdmap::message(Opcode(opcode), reader);
    known.then(|| reader.rest())
}
