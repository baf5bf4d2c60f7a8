//! Defines the fields of Fabrics commands and of their data. All fields are little-endian.

use super::command;
use crate::grammar::field::{Base, Field, Group, Value, Visitor, fields};
use crate::grammar::output::Output;
use crate::upper::nvme::{
    AUTHENTICATION_RECEIVE, AUTHENTICATION_SEND, CONNECT, CONNECT_DATA_LEN, Command, ConnectData, DISCONNECT, HOST_AT,
    PROPERTY_GET, PROPERTY_SET, SUBSYSTEM_AT, names,
};

/// The data of a Connect command.
pub static CONNECT_DATA: Group =
    Group { name: "nvme.fabrics.cmd.connect.data", label: "NVMe Connect data", section: "NVMe over Fabrics" };

fields! { 9:
    OPC: "nvme.fabrics.cmd.opc", "OPC", Base::Octets, "NVMe over Fabrics";
    CID: "nvme.fabrics.cmd.cid", "CID", Base::Hex(4), "NVMe over Fabrics", le true;
    FCTYPE: "nvme.fabrics.cmd.fctype", "FCTYPE", Base::Hex(2), "NVMe over Fabrics", names names::fabrics_type;
    CONNECT_RECFMT: "nvme.fabrics.cmd.connect.recfmt", "RECFMT", Base::Dec, "NVMe over Fabrics", le true;
    CONNECT_QID: "nvme.fabrics.cmd.connect.qid", "QID", Base::Dec, "NVMe over Fabrics", le true;
    CONNECT_SQSIZE: "nvme.fabrics.cmd.connect.sqsize", "SQSIZE", Base::Dec, "NVMe over Fabrics", le true;
    CONNECT_CATTR: "nvme.fabrics.cmd.connect.cattr", "CATTR", Base::Hex(2), "NVMe over Fabrics";
    CONNECT_KATO: "nvme.fabrics.cmd.connect.kato", "KATO in ms", Base::Dec, "NVMe over Fabrics", le true;
    HOSTID: "nvme.fabrics.cmd.connect.data.hostid", "HOSTID", Base::Octets, "NVMe over Fabrics";
    CNTLID: "nvme.fabrics.cmd.connect.data.cntrlid", "CNTLID", Base::Hex(4), "NVMe over Fabrics", le true;
    SUBNQN: "nvme.fabrics.cmd.connect.data.subnqn", "SUBNQN", Base::Text, "NVMe over Fabrics";
    HOSTNQN: "nvme.fabrics.cmd.connect.data.hostnqn", "HOSTNQN", Base::Text, "NVMe over Fabrics";
    DISCONNECT_RECFMT: "nvme.fabrics.cmd.disconnect.recfmt", "RECFMT", Base::Dec, "NVMe over Fabrics", le true;
    PROPERTY_SIZE: "nvme.fabrics.cmd.prop_get_set.attrib.size", "Property size", Base::Hex(1), "NVMe over Fabrics", mask 0x07, names names::property_size;
    PROPERTY_OFFSET: "nvme.fabrics.cmd.prop_get_set.offset", "OFST", Base::Hex(8), "NVMe over Fabrics", names names::property, le true;
    PROPERTY_4B: "nvme.fabrics.prop_get_set.data.4B", "Value", Base::Hex(8), "NVMe over Fabrics", le true;
    PROPERTY_8B: "nvme.fabrics.prop_get_set.data.8B", "Value", Base::Hex(16), "NVMe over Fabrics", le true;
    AUTH_SPSP0: "nvme.fabrics.cmd.auth.spsp0", "SPSP0", Base::Hex(2), "NVMe over Fabrics";
    AUTH_SPSP1: "nvme.fabrics.cmd.auth.spsp1", "SPSP1", Base::Hex(2), "NVMe over Fabrics";
    AUTH_SECP: "nvme.fabrics.cmd.auth.secp", "SECP", Base::Hex(2), "NVMe over Fabrics";
    AUTH_AL: "nvme.fabrics.cmd.auth.al", "TL or AL", Base::Dec, "NVMe over Fabrics", le true;
}

/// Visits a Fabrics command of the type `kind`, without the name of the command.
pub(super) fn visit<V: Visitor>(command: &Command, kind: u8, output: &mut Output<'_, V>) {
    output.value(&OPC, Value::Octets(&[command.opcode]), 0..1);
    command::flags(command, output);
    output.uint(&CID, command.command_id, 2..4);
    output.uint(&FCTYPE, kind, 4..5);
    let [first, second, low, high, ..] = command.dwords;
    match kind {
        CONNECT => {
            command::sgl(command, output);
            output.uint(&CONNECT_RECFMT, first & 0xffff, 40..42);
            output.uint(&CONNECT_QID, first >> 16, 42..44);
            output.uint(&CONNECT_SQSIZE, second & 0xffff, 44..46);
            output.uint(&CONNECT_CATTR, second >> 16 & 0xff, 46..47);
            output.uint(&CONNECT_KATO, low, 48..52);
        }
        PROPERTY_SET | PROPERTY_GET => {
            output.bits(&PROPERTY_SIZE, first, 40..41);
            output.uint(&PROPERTY_OFFSET, second, 44..48);
            if kind == PROPERTY_SET && first & 0x7 == 1 {
                output.uint(&PROPERTY_8B, u64::from(high) << 32 | u64::from(low), 48..56);
            } else if kind == PROPERTY_SET {
                output.uint(&PROPERTY_4B, low, 48..52);
            }
        }
        AUTHENTICATION_SEND | AUTHENTICATION_RECEIVE => {
            command::sgl(command, output);
            let [_, spsp0, spsp1, secp] = first.to_le_bytes();
            output.uint(&AUTH_SPSP0, spsp0, 41..42);
            output.uint(&AUTH_SPSP1, spsp1, 42..43);
            output.uint(&AUTH_SECP, secp, 43..44);
            output.uint(&AUTH_AL, second, 44..48);
        }
        DISCONNECT => output.uint(&DISCONNECT_RECFMT, first & 0xffff, 40..42),
        _ => {
            command::sgl(command, output);
            command::dwords(command, 0, output);
        }
    }
}

/// Visits the data of a Connect command, which starts at offset `start` of the capsule.
pub(super) fn visit_connect_data<V: Visitor>(data: &[u8], start: usize, output: &mut Output<'_, V>) {
    let Some(connect) = ConnectData::parse(data) else { return };
    output.enter(&CONNECT_DATA, start..start + CONNECT_DATA_LEN);
    output.value(&HOSTID, Value::Octets(connect.host_id), start..start + connect.host_id.len());
    output.uint(&CNTLID, connect.controller_id, start + 16..start + 18);
    for (field, name, at) in [(&SUBNQN, connect.subsystem, SUBSYSTEM_AT), (&HOSTNQN, connect.host, HOST_AT)] {
        if let Some(name) = name {
            output.value(field, Value::PeerText(name), start + at..start + at + name.len());
        }
    }
    output.leave();
}
