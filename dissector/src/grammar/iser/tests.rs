//! Tests the values and the octets of fields. The PDUs are from Linux (ib_iser and ib_isert, kernel
//! 6.1).

use std::ops::Range;

use super::*;
use crate::testing::hex;
use crate::upper::iser::message_of;

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
            Value::Text(text) => text.to_owned(),
            Value::PeerTexts(texts) => texts.join(" "),
            Value::Octets(octets) => octets.iter().map(|octet| format!("{octet:02x}")).collect(),
            other => format!("{other:?}"),
        };
        self.0.push(format!("{} = {value} @ {}..{}", field.name, at.start, at.end));
    }
}

/// Visits the message in `send`, whose last `here` octets start at offset 20 of the unit.
fn report(send: &str, here: usize) -> Vec<String> {
    let octets = hex(send);
    let message = message_of(&octets);
    let payload = &octets[octets.len() - here..];
    let mut reported = Reported::default();
    visit(&message, Some(Part::complete(payload)), 20 + here, &mut reported);
    reported.0
}

fn assert_has(found: &[String], expected: &[&str]) {
    for line in expected {
        assert!(found.iter().any(|found| found == line), "{line}: {found:#?}");
    }
}

/// A READ(10) of 8 blocks.
const READ: &str = "14000000 00000000 0000000000000000 df379021 ffff88800a59e000
    01c10000 00000000 0000000000000000 04000000 00001000 00000022 02ff1fe1 28000000001800000800 000000000000";

#[test]
fn fields_of_a_command_have_their_octets() {
    let found = report(READ, 76);
    assert_has(
        &found,
        &[
            "iser @ 20..48",
            "iser.flags = 0x14 @ 20..21",
            "iser.flags.opcode = 0x1 @ 20..21",
            "iser.flags.wsv = 0x0 @ 20..21",
            "iser.flags.rsv = 0x1 @ 20..21",
            "iser.write_stag = 0x0 @ 24..28",
            "iser.read_stag = 0xdf379021 @ 36..40",
            "iser.read_base_offset = 0xffff88800a59e000 @ 40..48",
            "iscsi @ 48..96",
            "iscsi.opcode = 0x1 @ 48..49",
            "iscsi.I = 0x0 @ 48..49",
            "iscsi.scsicommand.R = 0x1 @ 49..50",
            "iscsi.scsicommand.attr = 0x1 @ 49..50",
            "iscsi.datasegmentlength = 0x0 @ 53..56",
            "iscsi.lun = 0000000000000000 @ 56..64",
            "iscsi.initiatortasktag = 0x4000000 @ 64..68",
            "iscsi.scsicommand.expecteddatatransferlength = 0x1000 @ 68..72",
            "iscsi.cmdsn = 0x22 @ 72..76",
            "iscsi.expstatsn = 0x2ff1fe1 @ 76..80",
            "scsi @ 80..96",
            "weft.scsi.command = READ(10) @ 96..96",
            "weft.scsi.cdb = 28000000001800000800000000000000 @ 80..96",
            "weft.scsi.opcode = 0x28 @ 80..81",
            "weft.scsi.lba = 0x18 @ 96..96",
            "weft.scsi.blocks = 0x8 @ 96..96",
        ],
    );
    assert!(!found.iter().any(|line| line.starts_with("iscsi.statsn")), "{found:#?}");
}

/// The last segment of the Send has 40 octets.
#[test]
fn fields_of_a_send_in_several_segments_have_no_octets() {
    let expected = ["iser @ 60..60", "iscsi.cmdsn = 0x22 @ 60..60", "scsi @ 60..60", "weft.scsi.lba = 0x18 @ 60..60"];
    assert_has(&report(READ, 40), &expected);
}

/// The response to an unknown operation code. The capture has 96 octets of sense data, and this
/// text has 18.
#[test]
fn sense_data_have_their_octets() {
    let response = "10000000 00000000 0000000000000000 00000000 0000000000000000
        21800002 00000014 0000000000000000 1e000000 00000000 02ff1ffb 0000003a 00000079 00000000 00000000 00000000
        0060 70000500 0000000a 00000000 20000000 0000";
    assert_has(
        &report(response, 96),
        &[
            "iscsi.scsiresponse.response = 0x0 @ 50..51",
            "iscsi.scsiresponse.status = 0x2 @ 51..52",
            "iscsi.statsn = 0x2ff1ffb @ 72..76",
            "iscsi.maxcmdsn = 0x79 @ 80..84",
            "iscsi.scsiresponse.senselength = 0x60 @ 96..98",
            "scsi.sns @ 98..112",
            "scsi.sns.errtype = 0x70 @ 98..99",
            "scsi.sns.key = 0x5 @ 100..101",
            "scsi.sns.asc = 0x20 @ 110..111",
            "scsi.sns.ascq = 0x0 @ 111..112",
            "scsi.sns.ascascq = 0x2000 @ 110..112",
        ],
    );
}

/// A Text Response. Its text has a control character.
#[test]
fn text_keys_are_separate_texts() {
    let response = "10000000 00000000 0000000000000000 00000000 0000000000000000
        24800000 0000000b 0000000000000000 00000000 ffffffff ecc6c67d 00000002 00000002 00000000 00000000 00000000
        413d3100 42433d1b 781b00 00";
    let expected = ["iscsi.text.F = 0x1 @ 49..50", "iscsi.keyvalue = A=1 BC=\\x1bx\\x1b @ 96..107"];
    assert_has(&report(response, 88), &expected);
    // The data segment is longer than the Send.
    let found = report(&response.replace("0000000b", "00ffffff"), 88);
    assert!(!found.iter().any(|line| line.contains("keyvalue")), "{found:#?}");
}
