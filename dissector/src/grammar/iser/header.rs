//! Defines the fields of the iSER header (RFC 7145 section 9).

use crate::grammar::field::{Base, Field, Group, Visitor, fields};
use crate::grammar::output::{Output, Row};
use crate::upper::iser::{ControlHeader, HEADER_LEN, Hello, HelloReply, names};

/// An iSER header.
pub static HEADER: Group = Group { name: "iser", label: "iSER header", section: "RFC 7145 9.1" };

fields! { 11:
    FLAGS: "iser.flags", "Flags", Base::Hex(2), "RFC 7145 9.1";
    OPCODE: "iser.flags.opcode", "Opcode", Base::Hex(2), "RFC 7145 9.1", mask 0xf0, names names::iser_opcode;
    WSV: "iser.flags.wsv", "WSV (Write STag valid)", Base::Flag, "RFC 7145 9.2", mask 0x08;
    RSV: "iser.flags.rsv", "RSV (Read STag valid)", Base::Flag, "RFC 7145 9.2", mask 0x04;
    REJ: "iser.flags.rej", "REJ (reject)", Base::Flag, "RFC 7145 9.4", mask 0x01;
    WRITE_STAG: "iser.write_stag", "Write STag", Base::Hex(8), "RFC 7145 9.2";
    WRITE_BASE_OFFSET: "iser.write_base_offset", "Write Base Offset", Base::Hex(16), "RFC 7145 9.2";
    READ_STAG: "iser.read_stag", "Read STag", Base::Hex(8), "RFC 7145 9.2";
    READ_BASE_OFFSET: "iser.read_base_offset", "Read Base Offset", Base::Hex(16), "RFC 7145 9.2";
    MAX_VERSION: "weft.iser.max_version", "MaxVer", Base::Dec, "RFC 7145 9.3", mask 0xf0;
    MIN_VERSION: "weft.iser.min_version", "MinVer", Base::Dec, "RFC 7145 9.3", mask 0x0f;
    CURRENT_VERSION: "weft.iser.current_version", "CurVer", Base::Dec, "RFC 7145 9.4", mask 0x0f;
    IRD: "iser.ird", "iSER-IRD", Base::Hex(4), "RFC 7145 9.3";
    ORD: "iser.ord", "iSER-ORD", Base::Hex(4), "RFC 7145 9.4";
}

static CONTROL: &[Row] = &[
    (&FLAGS, 0, 1),
    (&OPCODE, 0, 1),
    (&WSV, 0, 1),
    (&RSV, 0, 1),
    (&WRITE_STAG, 4, 4),
    (&WRITE_BASE_OFFSET, 8, 8),
    (&READ_STAG, 16, 4),
    (&READ_BASE_OFFSET, 20, 8),
];
static HELLO: &[Row] = &[(&FLAGS, 0, 1), (&OPCODE, 0, 1), (&MAX_VERSION, 1, 1), (&MIN_VERSION, 1, 1), (&IRD, 2, 2)];
static HELLO_REPLY: &[Row] =
    &[(&FLAGS, 0, 1), (&OPCODE, 0, 1), (&REJ, 0, 1), (&MAX_VERSION, 1, 1), (&CURRENT_VERSION, 1, 1), (&ORD, 2, 2)];

fn visit<V: Visitor>(rows: &[Row], octets: &[u8], output: &mut Output<'_, V>) {
    output.enter(&HEADER, 0..HEADER_LEN);
    output.rows(rows, octets);
    output.leave();
}

/// Visits the header of an iSCSI control-type PDU.
pub(super) fn visit_control<V: Visitor>(header: &ControlHeader, output: &mut Output<'_, V>) {
    visit(CONTROL, header.octets(), output);
}

/// Visits a Hello.
pub(super) fn visit_hello<V: Visitor>(hello: &Hello, output: &mut Output<'_, V>) {
    visit(HELLO, &hello.first_word(), output);
}

/// Visits a HelloReply.
pub(super) fn visit_hello_reply<V: Visitor>(reply: &HelloReply, output: &mut Output<'_, V>) {
    visit(HELLO_REPLY, &reply.first_word(), output);
}
