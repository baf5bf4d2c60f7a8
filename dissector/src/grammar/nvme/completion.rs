//! Defines the fields of response capsules. All fields are little-endian.

use super::command;
use crate::grammar::field::{Base, Field, Group, Visitor, fields};
use crate::grammar::output::Output;
use crate::upper::nvme::{COMPLETION_LEN, CONNECT, Completion, names};

/// A completion.
pub static COMPLETION: Group = Group { name: "nvme.cqe", label: "NVMe completion", section: "NVM Express" };

fields! { 10:
    STATUS_NAME: "weft.nvme.status", "Name of the status", Base::Text, "NVM Express";
    CMD_PKT: "nvme.cmd_pkt", "Frame of the command", Base::Dec, "NVM Express";
    DWORD0: "nvme.cqe.dword0", "Dword 0", Base::Hex(8), "NVM Express", le true;
    DWORD1: "nvme.cqe.dword1", "Dword 1", Base::Hex(8), "NVM Express", le true;
    FABRICS_RESULT: "nvme.fabrics.cqe.sts", "Result", Base::Hex(16), "NVMe over Fabrics", le true;
    CONNECT_CNTLID: "nvme.fabrics.cqe.connect.cntrlid", "CNTLID", Base::Hex(4), "NVMe over Fabrics", le true;
    CONNECT_AUTHREQ: "nvme.fabrics.cqe.connect.authreq", "AUTHREQ", Base::Hex(4), "NVMe over Fabrics", le true;
    SQHD: "nvme.cqe.sqhd", "SQHD", Base::Dec, "NVM Express", le true;
    SQID: "nvme.cqe.sqid", "SQID", Base::Dec, "NVM Express", le true;
    CID: "nvme.cqe.cid", "CID", Base::Hex(4), "NVM Express", le true;
    STATUS: "nvme.cqe.status", "Status field", Base::Hex(4), "NVM Express", le true;
    SC: "nvme.cqe.status.sc", "SC", Base::Hex(2), "NVM Express", mask 0x01fe;
    SCT: "nvme.cqe.status.sct", "SCT", Base::Hex(1), "NVM Express", mask 0x0e00, names names::status_type;
    CRD: "nvme.cqe.status.crd", "CRD", Base::Hex(1), "NVM Express", mask 0x3000;
    M: "nvme.cqe.status.m", "M (more information)", Base::Flag, "NVM Express", mask 0x4000;
    DNR: "nvme.cqe.status.dnr", "DNR (do not retry)", Base::Flag, "NVM Express", mask 0x8000;
}

/// Visits a completion.
pub(super) fn visit<V: Visitor>(completion: &Completion, output: &mut Output<'_, V>) {
    output.enter(&COMPLETION, 0..COMPLETION_LEN);
    if let Some(queue) = completion.queue {
        output.derived(&command::QID, queue);
    }
    if let Some(answered) = completion.command {
        output.name(&command::NAME, answered.code.name());
        output.derived(&CMD_PKT, answered.frame);
    }
    result(completion, output);
    output.uint(&SQHD, completion.sq_head, 8..10);
    output.uint(&SQID, completion.sq_id, 10..12);
    output.uint(&CID, completion.command_id, 12..14);
    let status = completion.status.0;
    output.uint(&STATUS, status, 14..16);
    for field in [&SC, &SCT, &CRD, &M, &DNR] {
        output.bits(field, status, 14..16);
    }
    if let Some(name) = completion.status_name() {
        output.name(&STATUS_NAME, name);
    }
    output.leave();
}

/// Visits the result, whose form depends on the command.
fn result<V: Visitor>(completion: &Completion, output: &mut Output<'_, V>) {
    let fabrics_type = completion.command.and_then(|command| command.code.fabrics_type);
    match fabrics_type {
        Some(CONNECT) if completion.status.is_success() => {
            output.uint(&CONNECT_CNTLID, completion.result & 0xffff, 0..2);
            output.uint(&CONNECT_AUTHREQ, completion.result >> 16 & 0xffff, 2..4);
        }
        Some(_) => output.uint(&FABRICS_RESULT, completion.result, 0..8),
        None => {
            output.uint(&DWORD0, completion.result & 0xffff_ffff, 0..4);
            output.uint(&DWORD1, completion.result >> 32, 4..8);
        }
    }
}
