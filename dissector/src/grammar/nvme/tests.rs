//! Tests the values and the octets of fields. The entries are from Linux (nvme-rdma, kernel 6.1).

use std::ops::Range;

use super::*;
use crate::grammar::field::{Group, Value};
use crate::testing::hex;
use crate::upper::nvme::{Completion, QueueKind};

/// Collects each field as `name = value @ range`, and the groups as `name @ range`.
#[derive(Default)]
struct Reported(Vec<String>);

impl Visitor for Reported {
    fn enter(&mut self, group: &'static Group, at: Range<usize>) {
        self.0.push(format!("{} @ {}..{}", group.name, at.start, at.end));
    }

    fn field(&mut self, field: &'static Field, value: Value<'_>, at: Range<usize>) {
        let value = match value {
            Value::Uint(value) => format!("{value:#x}"),
            Value::Text(text) | Value::PeerText(text) => text.to_owned(),
            Value::Octets(octets) => octets.iter().map(|octet| format!("{octet:02x}")).collect(),
            other => format!("{other:?}"),
        };
        self.0.push(format!("{} = {value} @ {}..{}", field.name, at.start, at.end));
    }
}

/// Visits a message whose payload starts at offset 20 of the unit.
fn report(message: &Message, payload: &[u8]) -> Vec<String> {
    let mut reported = Reported::default();
    visit_message(message, Some(Part::complete(payload)), 20 + payload.len(), &mut reported);
    reported.0
}

fn assert_has(found: &[String], expected: &[&str]) {
    for line in expected {
        assert!(found.iter().any(|found| found == line), "{line}: {found:#?}");
    }
}

/// A command from frame 397 of a capture: a Read of 8 blocks.
fn read() -> (Command, Vec<u8>) {
    let octets = hex("02401600 01000000 0000000000000000 0000000000000000 0080fa018088ffff 001000 0766a36b 4f
         1000000000000000 07000000 00000000 00000000 00000000");
    let mut command = Command::parse(&octets).unwrap();
    (command.queue, command.queue_kind) = (Some(1), Some(QueueKind::Io));
    (command, octets)
}

#[test]
fn fields_of_a_command_have_their_octets() {
    let (command, octets) = read();
    let found = report(&Message::Command(command), &octets);
    assert_has(
        &found,
        &[
            "nvme.cmd @ 20..84",
            "nvme-rdma.cmd.qid = 0x1 @ 84..84",
            "weft.nvme.command = Read @ 84..84",
            "nvme.cmd.opc = 0x2 @ 20..21",
            "nvme.cmd.psdt = 0x1 @ 21..22",
            "nvme.cmd.fuse_op = 0x0 @ 21..22",
            "nvme.cmd.cid = 0x16 @ 22..24",
            "nvme.cmd.nsid = 0x1 @ 24..28",
            "nvme.cmd.sgl1.addr = 0xffff888001fa8000 @ 44..52",
            "nvme.cmd.sgl1.len = 0x1000 @ 52..55",
            "nvme.cmd.sgl1.key = 0x6ba36607 @ 55..59",
            "nvme.cmd.sgl.type = 0x4 @ 59..60",
            "nvme.cmd.sgl.subtype = 0xf @ 59..60",
            "nvme.cmd.slba = 0x10 @ 60..68",
            "nvme.cmd.nlb = 0x8 @ 68..70",
        ],
    );
    assert!(!found.iter().any(|line| line.contains("dword10")), "{found:#?}");
}

/// The last segment of the capsule has 100 octets.
#[test]
fn fields_of_a_capsule_in_several_segments_have_no_octets() {
    let (mut command, _) = read();
    command.len = 164;
    let found = report(&Message::Command(command), &[0; 100]);
    let expected = ["nvme.cmd @ 120..120", "nvme.cmd.cid = 0x16 @ 120..120", "weft.nvme.data_len = 0x64 @ 120..120"];
    assert_has(&found, &expected);
}

#[test]
fn fields_of_a_completion_have_their_octets() {
    let octets = hex("0000000000000000 1100 0100 0a00 0cc0");
    let found = report(&Message::Response(Completion::parse(&octets).unwrap()), &octets);
    assert_has(
        &found,
        &[
            "nvme.cqe @ 20..36",
            "nvme.cqe.dword0 = 0x0 @ 20..24",
            "nvme.cqe.sqhd = 0x11 @ 28..30",
            "nvme.cqe.sqid = 0x1 @ 30..32",
            "nvme.cqe.cid = 0xa @ 32..34",
            "nvme.cqe.status = 0xc00c @ 34..36",
            "nvme.cqe.status.sc = 0x6 @ 34..36",
            "nvme.cqe.status.sct = 0x0 @ 34..36",
            "nvme.cqe.status.crd = 0x0 @ 34..36",
            "nvme.cqe.status.m = 0x1 @ 34..36",
            "nvme.cqe.status.dnr = 0x1 @ 34..36",
            "weft.nvme.status = Internal Error @ 36..36",
        ],
    );
}

/// An offset in the descriptor is outside of the capsule.
#[test]
fn data_outside_of_the_capsule_is_not_read() {
    let mut octets = hex("7f400000 01");
    octets.resize(24, 0);
    octets.extend(hex("ffffffffffffffff 00040000 000000 01"));
    octets.resize(64 + 1024, 0);
    let found = report(&Message::Command(Command::parse(&octets).unwrap()), &octets);
    assert_has(&found, &["nvme.fabrics.cmd.cid = 0x0 @ 22..24", "nvme.cmd.sgl1.addr = 0xffffffffffffffff @ 44..52"]);
    assert!(!found.iter().any(|line| line.contains("subnqn")), "{found:#?}");
    // Without the offset, the data is in the capsule, but has no names.
    octets[24..32].fill(0);
    let found = report(&Message::Command(Command::parse(&octets).unwrap()), &octets);
    assert_has(&found, &["nvme.fabrics.cmd.connect.data @ 84..1108"]);
    assert!(!found.iter().any(|line| line.contains("subnqn")), "{found:#?}");
}
