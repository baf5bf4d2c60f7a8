//! Defines the fields of RDMAP (RFC 5040, RFC 7306): the control octet inside the DDP header, and
//! the RDMAP headers after the DDP header.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use weft_core::wire::rdmap::{Opcode, TerminateError};

use super::field::{Base, Field, Group, Value, Visitor, fields, nth_name};
use super::reader::Reader;
use crate::part::Part;

/// A Read Request header.
pub static READ_REQUEST: Group = Group { name: "iwarp_rdma", label: "RDMAP Read Request", section: "RFC 5040 4.4" };
/// A Terminate header.
pub static TERMINATE: Group = Group { name: "iwarp_rdma", label: "RDMAP Terminate", section: "RFC 5040 4.8" };
/// Immediate Data.
pub static IMMEDIATE: Group = Group { name: "iwarp_rdma", label: "RDMAP Immediate Data", section: "RFC 7306 6" };
/// An Atomic Request header.
pub static ATOMIC_REQUEST: Group = Group { name: "iwarp_rdma", label: "RDMAP Atomic Request", section: "RFC 7306 5.2" };
/// An Atomic Response header.
pub static ATOMIC_RESPONSE: Group =
    Group { name: "iwarp_rdma", label: "RDMAP Atomic Response", section: "RFC 7306 5.2" };

fields! { 2:
    VERSION: "iwarp_rdma.version", "RV (version)", Base::Dec, "RFC 5040 4.1", mask 0xc0;
    RSV: "iwarp_rdma.rsv", "Rsv", Base::Hex(1), "RFC 5040 4.1", mask 0x30;
    OPCODE: "iwarp_rdma.opcode", "OpCode", Base::Dec, "RFC 5040 4.1", mask 0x0f, names opcode_name;
    INVAL_STAG: "iwarp_rdma.inval_stag", "Invalidate STag", Base::Hex(8), "RFC 5040 4.1";
    RESERVED: "iwarp_rdma.reserved", "Reserved", Base::Octets, "RFC 5040 4.1";
    SINKSTAG: "iwarp_rdma.sinkstag", "Data Sink STag", Base::Hex(8), "RFC 5040 4.4";
    SINKTO: "iwarp_rdma.sinkto", "Data Sink TO", Base::Hex(16), "RFC 5040 4.4";
    RDMARDSZ: "iwarp_rdma.rdmardsz", "RDMARDSZ", Base::Dec, "RFC 5040 4.4";
    SRCSTAG: "iwarp_rdma.srcstag", "Data Source STag", Base::Hex(8), "RFC 5040 4.4";
    SRCTO: "iwarp_rdma.srcto", "Data Source TO", Base::Hex(16), "RFC 5040 4.4";
    TERM_LAYER: "iwarp_rdma.term_layer", "Layer", Base::Dec, "RFC 5040 4.8", mask 0xf0, names layer_name;
    TERM_ETYPE: "iwarp_rdma.term_etype", "EType", Base::Dec, "RFC 5040 4.8", mask 0x0f;
    TERM_ERRCODE: "iwarp_rdma.term_errcode", "Error Code", Base::Hex(2), "RFC 5040 4.8";
    TERM_ERROR: "iwarp_rdma.term_error", "Error", Base::Text, "RFC 5040 4.8";
    TERM_HDRCT_M: "iwarp_rdma.term_hdrct_m", "HdrCt M (segment length present)", Base::Flag, "RFC 5040 4.8", mask 0x8000;
    HDRCT_D: "iwarp_rdma.hdrct_d", "HdrCt D (DDP header present)", Base::Flag, "RFC 5040 4.8", mask 0x4000;
    HDRCT_R: "iwarp_rdma.hdrct_r", "HdrCt R (RDMAP header present)", Base::Flag, "RFC 5040 4.8", mask 0x2000;
    TERM_RSVD: "iwarp_rdma.term_rsvd", "Reserved", Base::Hex(4), "RFC 5040 4.8", mask 0x1fff;
    TERM_DDP_SEG_LEN: "iwarp_rdma.term_ddp_seg_len", "DDP Segment Length", Base::Dec, "RFC 5040 4.8";
    TERM_DDP_H: "iwarp_rdma.term_ddp_h", "Terminated DDP Header", Base::Octets, "RFC 5040 4.8";
    TERM_RDMA_H: "iwarp_rdma.term_rdma_h", "Terminated RDMA Header", Base::Octets, "RFC 5040 4.8";
    IMM_DATA: "iwarp_rdma.imm_data", "Immediate Data", Base::Octets, "RFC 7306 6";
    ATOMIC_RESERVED: "iwarp_rdma.atomic.reserved", "Reserved", Base::Hex(7), "RFC 7306 5.2.1", mask 0xffff_fff0;
    ATOMIC_OPCODE: "iwarp_rdma.atomic.opcode", "AOpCode", Base::Dec, "RFC 7306 5.2.1", mask 0x0f, names atomic_name;
    REQUEST_IDENTIFIER: "iwarp_rdma.atomic.request_identifier", "Request Identifier", Base::Dec, "RFC 7306 5.2.1";
    REMOTE_STAG: "iwarp_rdma.atomic.remote_stag", "Remote STag", Base::Hex(8), "RFC 7306 5.2.1";
    REMOTE_TAGGED_OFFSET: "iwarp_rdma.atomic.remote_tagged_offset", "Remote TO", Base::Hex(16), "RFC 7306 5.2.1";
    ADD_DATA: "iwarp_rdma.atomic.add_data", "Add Data", Base::Hex(16), "RFC 7306 5.2.1";
    ADD_MASK: "iwarp_rdma.atomic.add_mask", "Add Mask", Base::Hex(16), "RFC 7306 5.2.1";
    SWAP_DATA: "iwarp_rdma.atomic.swap_data", "Swap Data", Base::Hex(16), "RFC 7306 5.2.1";
    SWAP_MASK: "iwarp_rdma.atomic.swap_mask", "Swap Mask", Base::Hex(16), "RFC 7306 5.2.1";
    COMPARE_DATA: "iwarp_rdma.atomic.compare_data", "Compare Data", Base::Hex(16), "RFC 7306 5.2.1";
    COMPARE_MASK: "iwarp_rdma.atomic.compare_mask", "Compare Mask", Base::Hex(16), "RFC 7306 5.2.1";
    ORIGINAL_REQUEST_IDENTIFIER: "iwarp_rdma.atomic.original_request_identifier", "Original Request Identifier", Base::Dec, "RFC 7306 5.2.2";
    ORIGINAL_REMOTE_DATA_VALUE: "iwarp_rdma.atomic.original_remote_data_value", "Original Remote Data Value", Base::Hex(16), "RFC 7306 5.2.2";
    TERMINATED_OPCODE: "weft.terminated.opcode", "Terminated message", Base::Dec, "RFC 5040 4.8", names opcode_name;
    TERMINATED_STAG: "weft.terminated.stag", "Terminated STag", Base::Hex(8), "RFC 5040 4.8";
    TERMINATED_TO: "weft.terminated.to", "Terminated TO", Base::Hex(16), "RFC 5040 4.8";
    TERMINATED_QN: "weft.terminated.qn", "Terminated QN", Base::Dec, "RFC 5040 4.8";
    TERMINATED_MSN: "weft.terminated.msn", "Terminated MSN", Base::Dec, "RFC 5040 4.8";
    TERMINATED_MO: "weft.terminated.mo", "Terminated MO", Base::Dec, "RFC 5040 4.8";
    TERMINATED_READ_SIZE: "weft.terminated.read_size", "Terminated Read of", Base::Dec, "RFC 5040 4.8";
    TERMINATED_READ_STAG: "weft.terminated.read_stag", "Terminated Data Source STag", Base::Hex(8), "RFC 5040 4.8";
    TERMINATED_READ_TO: "weft.terminated.read_to", "Terminated Data Source TO", Base::Hex(16), "RFC 5040 4.8";
}

fn opcode_name(opcode: u64) -> Option<&'static str> {
    u8::try_from(opcode).ok().map(|opcode| Opcode(opcode).name())
}

fn layer_name(layer: u64) -> Option<&'static str> {
    nth_name(&["RDMAP", "DDP", "MPA"], layer)
}

fn atomic_name(code: u64) -> Option<&'static str> {
    match code {
        0 => Some("FetchAdd"),
        2 => Some("CmpSwap"),
        _ => Some("reserved"),
    }
}

/// Every error that a specification assigns, with its name for display.
static ERRORS: LazyLock<BTreeMap<TerminateError, String>> = LazyLock::new(|| {
    let named =
        |error: &TerminateError| (*error, format!("{} / {} / {}", error.layer, error.type_name(), error.name()));
    TerminateError::ALL.iter().map(named).collect()
});

/// The name of a Terminate error. It consists of the names of layer, type and code. If no
/// specification assigns the error, the name is "reserved".
#[must_use]
pub fn error_name(error: TerminateError) -> &'static str {
    // For a Local Catastrophic Error, any code is acceptable (RFC 5040 Figure 9).
    let key = if error.is_assigned() && error.error_type == 0 && !ERRORS.contains_key(&error) {
        TerminateError { code: 0, ..error }
    } else {
        error
    };
    ERRORS.get(&key).map_or("reserved", String::as_str)
}

/// Finds the names of the values of EType and Error Code. These names depend on earlier fields of
/// the Terminate.
#[derive(Debug, Default)]
pub struct TerminateNames {
    layer: u8,
    error_type: u8,
}

impl TerminateNames {
    /// Records the value of a field. If the field is EType or Error Code, returns the name of the
    /// value. Call this method for each field of a Terminate, in the order of the fields.
    pub fn name(&mut self, field: &'static Field, value: Value<'_>) -> Option<&'static str> {
        let Value::Uint(value) = value else { return None };
        let value = u8::try_from(value).ok()?;
        if std::ptr::eq(field, &TERM_LAYER) {
            self.layer = value;
            return None;
        }
        if std::ptr::eq(field, &TERM_ETYPE) {
            self.error_type = value;
            return Some(TerminateError::new(self.layer, value, 0).type_name());
        }
        std::ptr::eq(field, &TERM_ERRCODE).then(|| TerminateError::new(self.layer, self.error_type, value).name())
    }
}

/// Reads the control octet. Returns the opcode.
pub(super) fn control<V: Visitor>(reader: &mut Reader<'_, '_, V>) -> Option<u8> {
    let octet = reader.bits(1, &[&VERSION, &RSV, &OPCODE])?;
    Some((octet & 0xf) as u8)
}

/// Reads the four octets that an untagged DDP header reserves for the protocol above DDP. These
/// octets follow the control octet.
pub(super) fn ulp_word<V: Visitor>(opcode: u8, reader: &mut Reader<'_, '_, V>) {
    if Opcode(opcode).invalidates() {
        reader.u32(&INVAL_STAG);
    } else {
        reader.octets(&RESERVED, 4);
    }
}

/// Reads the RDMAP header after an untagged DDP header. Returns `false` if the start of the payload
/// is unknown because octets are missing.
pub(super) fn message<V: Visitor>(opcode: Opcode, reader: &mut Reader<'_, '_, V>) -> bool {
    match opcode {
        Opcode::READ_REQUEST => {
            reader.enter(&READ_REQUEST, 28);
            reader.u32(&SINKSTAG);
            reader.u64(&SINKTO);
            reader.u32(&RDMARDSZ);
            reader.u32(&SRCSTAG);
            reader.u64(&SRCTO);
        }
        Opcode::TERMINATE => return terminate(reader),
        Opcode::IMMEDIATE | Opcode::IMMEDIATE_SE => {
            reader.enter(&IMMEDIATE, 8);
            reader.octets(&IMM_DATA, 8);
        }
        Opcode::ATOMIC_REQUEST => atomic_request(reader),
        Opcode::ATOMIC_RESPONSE => {
            reader.enter(&ATOMIC_RESPONSE, 12);
            reader.u32(&ORIGINAL_REQUEST_IDENTIFIER);
            reader.u64(&ORIGINAL_REMOTE_DATA_VALUE);
        }
        _ => return true,
    }
    reader.leave();
    true
}

/// Reads a Terminate header. HdrCt announces the parts that follow the control word (RFC 5040 4.8).
fn terminate<V: Visitor>(reader: &mut Reader<'_, '_, V>) -> bool {
    let all = reader.left();
    reader.enter(&TERMINATE, all);
    let known = terminate_fields(reader);
    reader.leave();
    known
}

fn terminate_fields<V: Visitor>(reader: &mut Reader<'_, '_, V>) -> bool {
    let octets = reader.rest();
    let kind = reader.bits(1, &[&TERM_LAYER, &TERM_ETYPE]);
    let code = reader.u8(&TERM_ERRCODE);
    if let (Some(kind), Some(code)) = (kind, code) {
        let error = TerminateError::new((kind >> 4) as u8, kind as u8, code as u8);
        reader.derived(&TERM_ERROR, Value::Text(error_name(error)), 0);
    }
    let Some(control) = octets.get(2..3) else {
        let cut_short = octets.len() < 4;
        reader.skip(2);
        return cut_short;
    };
    let flags = u64::from(control[0]) << 8;
    if octets.get(2..4).is_some() {
        reader.bits(2, &[&TERM_HDRCT_M, &HDRCT_D, &HDRCT_R, &TERM_RSVD]);
    } else {
        // The second octet was not captured. The first octet contains all flags, but only some of
        // the reserved bits.
        for field in [&TERM_HDRCT_M, &HDRCT_D, &HDRCT_R] {
            reader.derived(field, super::field::Value::Uint(u64::from(flags & field.mask != 0)), 1);
        }
        reader.skip(2);
    }
    let has = |field: &Field| flags & field.mask != 0;
    if has(&TERM_HDRCT_M) || has(&HDRCT_D) {
        reader.u16(&TERM_DDP_SEG_LEN);
    }
    if has(&HDRCT_D) {
        let left = reader.left();
        let Some(first) = reader.rest().get(0..1) else { return left == 0 };
        let size = if first[0] & 0x80 != 0 { 14 } else { 18 };
        let header = reader.rest();
        reader.octets(&TERM_DDP_H, left.min(size));
        terminated_segment(reader, header);
    }
    if has(&HDRCT_R) {
        let header = reader.rest();
        reader.octets(&TERM_RDMA_H, reader.left().min(28));
        // A Read Request is the only RDMAP header in a Terminate (RFC 5040 Figure 10).
        let fields = [(&TERMINATED_READ_SIZE, 12..16), (&TERMINATED_READ_STAG, 16..20), (&TERMINATED_READ_TO, 20..28)];
        copied_numbers(reader, header, &fields);
    }
    true
}

/// Reports the fields of the DDP header that a Terminate copies.
fn terminated_segment<V: Visitor>(reader: &mut Reader<'_, '_, V>, header: Part<'_>) {
    let Some(&[control, ulp_control]) = header.get(0..2) else { return };
    reader.derived(&TERMINATED_OPCODE, Value::Uint(u64::from(ulp_control & 0x0f)), 0);
    if control & 0x80 != 0 {
        copied_numbers(reader, header, &[(&TERMINATED_STAG, 2..6), (&TERMINATED_TO, 6..14)]);
    } else {
        let fields = [(&TERMINATED_QN, 6..10), (&TERMINATED_MSN, 10..14), (&TERMINATED_MO, 14..18)];
        copied_numbers(reader, header, &fields);
    }
}

/// Reports the numbers at these ranges of a copied header, if they were captured.
fn copied_numbers<V: Visitor>(
    reader: &mut Reader<'_, '_, V>,
    header: Part<'_>,
    fields: &[(&'static Field, Range<usize>)],
) {
    for (field, range) in fields {
        let Some(octets) = header.get(range.clone()) else { return };
        let value = octets.iter().fold(0, |value, octet| value << 8 | u64::from(*octet));
        reader.derived(field, Value::Uint(value), 0);
    }
}

fn atomic_request<V: Visitor>(reader: &mut Reader<'_, '_, V>) {
    reader.enter(&ATOMIC_REQUEST, 52);
    let code = reader.bits(4, &[&ATOMIC_RESERVED, &ATOMIC_OPCODE]).map(|word| word & 0xf);
    reader.u32(&REQUEST_IDENTIFIER);
    reader.u32(&REMOTE_STAG);
    reader.u64(&REMOTE_TAGGED_OFFSET);
    let (data, mask) = if code == Some(0) { (&ADD_DATA, &ADD_MASK) } else { (&SWAP_DATA, &SWAP_MASK) };
    reader.u64(data);
    reader.u64(mask);
    reader.u64(&COMPARE_DATA);
    reader.u64(&COMPARE_MASK);
}
