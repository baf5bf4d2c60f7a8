//! Tests a capture of iSER: the initiator of Linux logs in to the target of Linux, and executes
//! SCSI commands. `captures/README.md` describes the capture. An independent program read the
//! expected commands, and the kernels recorded the same commands.

use serde_json::Value;

use crate::common::storage_units;

fn units() -> Vec<Value> {
    storage_units("iser-session.pcap")
}

/// The values of a key in the units that the initiator or the target sent.
fn values(units: &[Value], from_target: bool, key: &str) -> Vec<Value> {
    let is_sent = |unit: &&Value| unit["src"].as_str().is_some_and(|src| src.ends_with(":3260") == from_target);
    units.iter().filter(is_sent).map(|unit| unit[key].clone()).filter(|value| !value.is_null()).collect()
}

/// The commands in their order: the frame that completes the command, its name, and its Expected
/// Data Transfer Length.
const COMMANDS: [(u64, &str, u64); 47] = [
    (30, "INQUIRY", 36),
    (38, "INQUIRY", 96),
    (43, "INQUIRY", 4),
    (47, "INQUIRY", 12),
    (51, "INQUIRY", 4),
    (58, "INQUIRY", 12),
    (63, "INQUIRY", 36),
    (68, "INQUIRY", 4),
    (73, "INQUIRY", 16),
    (77, "INQUIRY", 36),
    (82, "INQUIRY", 4),
    (87, "INQUIRY", 160),
    (92, "INQUIRY", 36),
    (96, "INQUIRY", 4),
    (100, "INQUIRY", 20),
    (104, "INQUIRY", 36),
    (108, "INQUIRY", 4),
    (113, "INQUIRY", 64),
    (118, "INQUIRY", 36),
    (122, "INQUIRY", 4),
    (126, "INQUIRY", 8),
    (130, "REPORT LUNS", 4096),
    (138, "TEST UNIT READY", 0),
    (140, "READ CAPACITY(16)", 32),
    (145, "MODE SENSE(6)", 4),
    (149, "MODE SENSE(6)", 4),
    (153, "MODE SENSE(6)", 32),
    (158, "REPORT SUPPORTED OPERATION CODES", 10),
    (161, "TEST UNIT READY", 0),
    (164, "READ CAPACITY(16)", 32),
    (169, "INQUIRY", 36),
    (174, "MODE SENSE(6)", 4),
    (179, "MODE SENSE(6)", 4),
    (182, "MODE SENSE(6)", 32),
    (186, "READ(10)", 4096),
    (196, "READ(10)", 4096),
    (204, "READ(10)", 4096),
    (215, "INQUIRY", 36),
    (220, "INQUIRY", 96),
    (224, "INQUIRY", 252),
    (229, "INQUIRY", 252),
    (233, "READ CAPACITY(10)", 8),
    (238, "READ CAPACITY(16)", 32),
    (243, "REPORT LUNS", 8192),
    (255, "TEST UNIT READY", 0),
    (258, "WRITE(10)", 512),
    (263, "WRITE(10)", 4096),
];

/// The frames that complete the responses, in the order of the commands.
const RESPONSES: [u64; 47] = [
    33, 40, 45, 49, 54, 60, 65, 71, 75, 79, 84, 89, 94, 98, 102, 106, 110, 115, 120, 124, 128, 135, 139, 142, 147, 151,
    155, 159, 162, 166, 171, 177, 181, 184, 192, 201, 210, 218, 222, 226, 231, 235, 241, 253, 256, 259, 265,
];

/// The commands whose response reports an underflow, and the residual count.
const UNDERFLOWS: [(u64, u64); 10] =
    [(63, 24), (77, 24), (92, 24), (104, 24), (118, 24), (130, 4080), (169, 24), (224, 240), (229, 236), (243, 8176)];

#[test]
fn both_connections_are_recognised_from_their_login() {
    let units = units();
    for (from_target, logins) in [(false, "Login Request"), (true, "Login Response")] {
        let names = values(&units, from_target, "weft.ulp.message");
        let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
        assert_eq!((names.len(), count(logins)), (50, 2));
        assert_eq!(count("Text Request") + count("Text Response"), 1);
        assert_eq!(count("SCSI Command") + count("SCSI Response"), 47);
        assert!(values(&units, from_target, "weft.ulp").iter().all(|ulp| ulp == "iser"));
    }
    assert_eq!(values(&units, true, "iscsi.login.status"), [0, 0]);
    assert_eq!(values(&units, true, "iscsi.tsih"), [1, 1]);
    let keys = values(&units, false, "iscsi.keyvalue");
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0][0], "InitiatorName=iqn.2026-11.lab.siw:initiator");
    assert_eq!(keys[1], serde_json::json!(["SendTargets=All"]));
    let targets = ["TargetName=iqn.2026-11.lab.siw:target0", "TargetAddress=10.1.0.1:3260,1"];
    assert_eq!(values(&units, true, "iscsi.keyvalue")[1], serde_json::json!(targets));
}

#[test]
fn commands_have_names_and_lengths() {
    let units = units();
    let commands = units.iter().filter(|unit| unit["iscsi.opcode"] == 1);
    let found: Vec<_> = commands
        .map(|unit| {
            let number = |key: &str| unit[key].as_u64().unwrap();
            let name = unit["weft.scsi.command"].as_str().unwrap();
            (number("frame"), name, number("iscsi.scsicommand.expecteddatatransferlength"))
        })
        .collect();
    assert_eq!(found, COMMANDS);
    // READ(10) of 8 blocks each, and WRITE(10) of one block and of 8 blocks.
    assert_eq!(values(&units, false, "weft.scsi.lba"), [0, 8, 24, 8, 16]);
    assert_eq!(values(&units, false, "weft.scsi.blocks"), [8, 8, 8, 1, 8]);
}

#[test]
fn each_response_names_its_command() {
    let units = units();
    let responses: Vec<_> = units.iter().filter(|unit| unit["iscsi.opcode"] == 0x21).collect();
    assert_eq!(responses.len(), COMMANDS.len());
    for ((response, (frame, name, _)), answered) in responses.iter().zip(COMMANDS).zip(RESPONSES) {
        assert_eq!(response["frame"], answered);
        assert_eq!(response["iscsi.request_frame"], frame);
        assert_eq!(response["weft.scsi.command"], name);
        let underflow = UNDERFLOWS.iter().find(|(of, _)| *of == frame).map_or(0, |(_, count)| *count);
        assert_eq!(response["iscsi.scsiresponse.residualcount"], underflow);
        // The target does not support one command.
        let is_unsupported = name == "REPORT SUPPORTED OPERATION CODES";
        assert_eq!(response["iscsi.scsiresponse.status"], if is_unsupported { 2 } else { 0 });
        assert_eq!(response["scsi.sns.ascascq"].as_u64(), is_unsupported.then_some(0x2000));
    }
}

/// Each Write of the target is in the buffer of a command. With its response, the target
/// invalidates the STag of the buffer.
#[test]
fn writes_are_in_the_buffers_of_commands() {
    let units = units();
    let number = |unit: &Value, key: &str| unit[key].as_u64();
    let buffers: Vec<(u64, u64, u64)> = units
        .iter()
        .filter(|unit| unit["iser.flags.rsv"] == 1)
        .filter_map(|unit| {
            let [stag, offset, len] =
                ["iser.read_stag", "iser.read_base_offset", "iscsi.scsicommand.expecteddatatransferlength"]
                    .map(|key| number(unit, key));
            Some((stag?, offset?, len?))
        })
        .collect();
    assert_eq!(buffers.len(), 42);
    let writes: Vec<_> = units.iter().filter(|unit| unit["iwarp_rdma.opcode"] == 0).collect();
    assert_eq!(writes.len(), 54);
    for write in writes {
        let [stag, offset, len] =
            ["iwarp_ddp.stag", "iwarp_ddp.tagged_offset", "payload_len"].map(|key| number(write, key).unwrap());
        let is_inside = |(tag, base, expected): &(u64, u64, u64)| {
            stag == *tag && offset >= *base && offset + len <= base + expected
        };
        assert!(buffers.iter().any(is_inside), "{write}");
    }
    let invalidated = values(&units, true, "iwarp_rdma.inval_stag");
    assert_eq!(invalidated, buffers.iter().map(|(stag, ..)| *stag).collect::<Vec<_>>());
}
