//! Defines the fields of Admin and I/O commands. The module `fabrics` defines the fields of Fabrics
//! commands. All fields are little-endian.

use crate::grammar::field::{Base, Field, Group, Visitor, fields};
use crate::grammar::output::Output;
use crate::upper::nvme::{Command, GET_FEATURES, GET_LOG_PAGE, IDENTIFY, SET_FEATURES, names};

/// A command.
pub static COMMAND: Group = Group { name: "nvme.cmd", label: "NVMe command", section: "NVM Express" };

fields! { 8:
    QID: "nvme-rdma.cmd.qid", "Queue of the command", Base::Hex(4), "NVMe over RDMA";
    NAME: "weft.nvme.command", "Name of the command", Base::Text, "NVM Express";
    DATA_LEN: "weft.nvme.data_len", "Bytes of in-capsule data", Base::Dec, "NVMe over Fabrics";
    OPC: "nvme.cmd.opc", "OPC", Base::Hex(2), "NVM Express";
    FUSE: "nvme.cmd.fuse_op", "FUSE", Base::Hex(1), "NVM Express", mask 0x03;
    PSDT: "nvme.cmd.psdt", "PSDT", Base::Hex(1), "NVM Express", mask 0xc0;
    CID: "nvme.cmd.cid", "CID", Base::Hex(4), "NVM Express", le true;
    NSID: "nvme.cmd.nsid", "NSID", Base::Hex(8), "NVM Express", le true;
    MPTR: "nvme.cmd.mptr", "MPTR", Base::Hex(16), "NVM Express", le true;
    SGL_TYPE: "nvme.cmd.sgl.type", "SGL1 type", Base::Hex(1), "NVM Express", mask 0xf0, names names::sgl_type;
    SGL_SUBTYPE: "nvme.cmd.sgl.subtype", "SGL1 subtype", Base::Hex(1), "NVM Express", mask 0x0f, names names::sgl_subtype;
    SGL_ADDR: "nvme.cmd.sgl1.addr", "SGL1 address or offset", Base::Hex(16), "NVM Express", le true;
    SGL_LEN: "nvme.cmd.sgl1.len", "SGL1 length", Base::Dec, "NVM Express", le true;
    SGL_KEY: "nvme.cmd.sgl1.key", "SGL1 key", Base::Hex(8), "NVM Express", le true;
    DWORD10: "nvme.cmd.dword10", "Command Dword 10", Base::Hex(8), "NVM Express", le true;
    DWORD11: "nvme.cmd.dword11", "Command Dword 11", Base::Hex(8), "NVM Express", le true;
    DWORD12: "nvme.cmd.dword12", "Command Dword 12", Base::Hex(8), "NVM Express", le true;
    DWORD13: "nvme.cmd.dword13", "Command Dword 13", Base::Hex(8), "NVM Express", le true;
    DWORD14: "nvme.cmd.dword14", "Command Dword 14", Base::Hex(8), "NVM Express", le true;
    DWORD15: "nvme.cmd.dword15", "Command Dword 15", Base::Hex(8), "NVM Express", le true;
    SLBA: "nvme.cmd.slba", "SLBA", Base::Hex(16), "NVM Express", le true;
    NLB: "nvme.cmd.nlb", "Number of logical blocks", Base::Dec, "NVM Express", mask 0xffff;
    FUA: "nvme.cmd.fua", "FUA", Base::Flag, "NVM Express", mask 0x4000;
    LR: "nvme.cmd.lr", "LR", Base::Flag, "NVM Express", mask 0x8000;
    CNS: "nvme.cmd.identify.dword10.cns", "CNS", Base::Hex(2), "NVM Express", mask 0xff, names names::cns;
    CNTID: "nvme.cmd.identify.dword10.cntid", "CNTID", Base::Hex(4), "NVM Express", mask 0xffff_0000;
    LID: "nvme.cmd.get_logpage.dword10.id", "LID", Base::Hex(2), "NVM Express", mask 0xff, names names::log_page;
    LSP: "nvme.cmd.get_logpage.dword10.lsp", "LSP", Base::Hex(2), "NVM Express", mask 0x1f00;
    RAE: "nvme.cmd.get_logpage.dword10.rae", "RAE", Base::Flag, "NVM Express", mask 0x8000;
    NUMD: "nvme.cmd.get_logpage.numd", "Number of dwords", Base::Dec, "NVM Express", mask 0xffff_ffff;
    LPO: "nvme.cmd.get_logpage.lpo", "LPO", Base::Dec, "NVM Express", le true;
    SET_FID: "nvme.cmd.set_features.dword10.fid", "FID", Base::Hex(2), "NVM Express", mask 0xff, names names::feature;
    SET_SV: "nvme.cmd.set_features.dword10.sv", "SV", Base::Flag, "NVM Express", mask 0x8000_0000;
    GET_FID: "nvme.cmd.get_features.dword10.fid", "FID", Base::Hex(2), "NVM Express", mask 0xff, names names::feature;
}

/// The fields of the dwords, in their order.
static DWORDS: [&Field; 6] = [&DWORD10, &DWORD11, &DWORD12, &DWORD13, &DWORD14, &DWORD15];

/// Visits an Admin or I/O command, without its name.
pub(super) fn visit<V: Visitor>(command: &Command, output: &mut Output<'_, V>) {
    output.uint(&OPC, command.opcode, 0..1);
    flags(command, output);
    output.uint(&CID, command.command_id, 2..4);
    output.uint(&NSID, command.namespace, 4..8);
    output.uint(&MPTR, command.metadata, 16..24);
    sgl(command, output);
    parameters(command, output);
}

/// Visits FUSE and PSDT.
pub(super) fn flags<V: Visitor>(command: &Command, output: &mut Output<'_, V>) {
    output.bits(&FUSE, command.flags, 1..2);
    output.bits(&PSDT, command.flags, 1..2);
}

/// Visits the SGL descriptor.
pub(super) fn sgl<V: Visitor>(command: &Command, output: &mut Output<'_, V>) {
    let sgl = &command.sgl;
    output.uint(&SGL_ADDR, sgl.address, 24..32);
    output.uint(&SGL_LEN, sgl.len, if sgl.key.is_some() { 32..35 } else { 32..36 });
    if let Some(key) = sgl.key {
        output.uint(&SGL_KEY, key, 35..39);
    }
    output.bits(&SGL_TYPE, sgl.identifier, 39..40);
    output.bits(&SGL_SUBTYPE, sgl.identifier, 39..40);
}

/// Visits the parameters. A command without known parameters has six dwords.
fn parameters<V: Visitor>(command: &Command, output: &mut Output<'_, V>) {
    let [dword10, _, dword12, dword13, ..] = command.dwords;
    if let Some((first, count)) = command.blocks() {
        output.uint(&SLBA, first, 40..48);
        output.uint(&NLB, count, 48..50);
        output.bits(&FUA, dword12 >> 16, 50..52);
        output.bits(&LR, dword12 >> 16, 50..52);
    } else if command.is_admin(IDENTIFY) {
        output.bits(&CNS, dword10, 40..41);
        output.bits(&CNTID, dword10, 42..44);
    } else if command.is_admin(GET_LOG_PAGE) {
        output.bits(&LID, dword10, 40..41);
        output.bits(&LSP, dword10, 41..42);
        output.bits(&RAE, dword10, 41..42);
        output.uint(&NUMD, command.log_page_dwords(), 42..46);
        output.uint(&LPO, u64::from(dword13) << 32 | u64::from(dword12), 48..56);
    } else if command.is_admin(SET_FEATURES) {
        output.bits(&SET_FID, dword10, 40..41);
        output.bits(&SET_SV, dword10, 43..44);
        dwords(command, 1, output);
    } else if command.is_admin(GET_FEATURES) {
        output.bits(&GET_FID, dword10, 40..41);
        dwords(command, 1, output);
    } else {
        dwords(command, 0, output);
    }
}

/// Visits the dwords from the dword with index `from` on.
pub(super) fn dwords<V: Visitor>(command: &Command, from: usize, output: &mut Output<'_, V>) {
    for (index, (field, value)) in DWORDS.into_iter().zip(command.dwords).enumerate().skip(from) {
        let at = 40 + 4 * index;
        output.uint(field, value, at..at + 4);
    }
}
