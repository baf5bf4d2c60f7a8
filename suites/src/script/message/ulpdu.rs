//! Parts that the constructors of ULPDUs share: control bytes and headers of one DDP segment. A
//! script may set every field.

use weft_core::wire::ddp::RawUntagged;
use weft_core::wire::rdmap::Opcode;
use weft_core::wire::{ddp, rdmap};
use zerocopy::{Immutable, IntoBytes};

use crate::script::fields::Fields;
use crate::stage::Message;

/// Reads the two control bytes. Fields: `opcode`, `last`, `ddp_version`, `rdmap_version`.
pub(super) fn control(
    fields: &mut Fields<'_>,
    tagged: bool,
    opcode: Opcode,
) -> mlua::Result<(ddp::Control, rdmap::Control)> {
    let opcode = Opcode(fields.or("opcode", opcode.0)?);
    let last = fields.or("last", true)?;
    let ddp = ddp::Control::new(tagged, last, fields.or("ddp_version", ddp::Control::VERSION)?);
    Ok((ddp, rdmap::Control::new(opcode, fields.or("rdmap_version", rdmap::Control::VERSION)?)))
}

/// Reads the header of an untagged segment. Fields: the fields of [`control`], `invalidate_stag`,
/// `qn`, `msn` (from 1), `mo`.
pub(super) fn untagged(fields: &mut Fields<'_>, opcode: Opcode, qn: u32) -> mlua::Result<RawUntagged> {
    let (control, ulp_control) = control(fields, false, opcode)?;
    Ok(RawUntagged {
        control,
        ulp_control,
        ulp_word: fields.or("invalidate_stag", 0u32)?.into(),
        qn: fields.or("qn", qn)?.into(),
        msn: fields.or("msn", 1u32)?.into(),
        mo: fields.or("mo", 0u32)?.into(),
    })
}

/// Returns a message of a header and the bytes after it. The message has the name of the opcode.
pub(super) fn message(opcode: Opcode, header: &(impl IntoBytes + Immutable), rest: &[u8]) -> Message {
    Message::new(opcode.name(), [header.as_bytes(), rest].concat())
}
