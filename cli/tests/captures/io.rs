//! Tests `weft io` with captures of storage protocols. `io.rs` and `io_protocols.rs` in
//! `dissector/tests/it` test the values of all commands.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const CAPTURE: &str = "storage/nvme-discover.pcap";

/// Runs `weft io` in the folder of the captures. Returns its exit code and its output.
fn io(arguments: &[&str]) -> (i32, String) {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = command.arg("io").args(arguments).current_dir(captures).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// The frame numbers at the start of the lines before the first empty line.
fn frames(text: &str) -> Vec<u64> {
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

#[test]
fn each_command_has_a_line() {
    let (code, text) = io(&[CAPTURE]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(frames(&text), [8, 12, 14, 16, 18, 20, 22, 24, 26, 39, 42, 51, 56, 63, 65]);
    let connect = "     8      0.058281   0 10.1.0.2:43780 → 10.1.0.1:4420  queue 0  id 0x0  Connect qid 0 sqsize 31  \
                   1024 bytes  Successful Completion  19.638 ms (17.766 to data, 0.000 data, 1.872 to status)  \
                   1 Read, STag 0x18ad2001";
    assert!(text.starts_with(connect), "{text}");
    let (_, rest) = text.split_once("\nNot answered before the connection or the capture ended:\n").unwrap();
    assert!(rest.starts_with("    41      0.262539   0 "), "{text}");
    assert!(rest.lines().next().unwrap().contains("Asynchronous Event Request  not answered"), "{text}");
    assert!(text.contains("  nvme_rdma Identify\n"), "{text}");
    assert!(text.contains("\nOutstanding commands, at most 2; "), "{text}");
    assert_eq!(text.lines().last().unwrap(), format!("{CAPTURE}: 16 commands, 1 not answered"));
}

#[test]
fn the_slowest_and_the_largest_commands_come_first() {
    let (code, text) = io(&["--sort", "latency", "--top", "3", CAPTURE]);
    assert_eq!((code, frames(&text)), (0, vec![56, 42, 51]), "{text}");
    // Of two commands with 4096 bytes, the earlier one comes first.
    let (_, text) = io(&["--sort", "bytes", "--top", "4", CAPTURE]);
    assert_eq!(frames(&text), [26, 42, 56, 8], "{text}");
    let (_, text) = io(&["--top", "2", CAPTURE]);
    assert_eq!(frames(&text), [8, 12], "{text}");
    assert!(text.ends_with(": 16 commands, 1 not answered\n"), "{text}");
}

#[test]
fn json_has_an_object_per_command_and_the_statistics() {
    let (code, text) = io(&["--json", CAPTURE]);
    assert_eq!(code, 0, "{text}");
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    let expected = [&["command"; 16][..], &["statistics"; 6], &["outstanding", "summary"]].concat();
    assert_eq!(kinds, expected);
    let identify = objects.iter().find(|object| object["frame"] == 26).unwrap();
    for (key, value) in [("protocol", "nvme_rdma"), ("command", "Identify"), ("data", "from_target")] {
        assert_eq!(identify[key], value);
    }
    assert_eq!((&identify["bytes"], &identify["latency"]["total_ns"]), (&4096.into(), &44_874_000.into()));
    let write = &identify["operations"][0];
    assert_eq!((&write["kind"], &write["frame"], &write["stag"]), (&"write".into(), &29.into(), &0x18ad_2002.into()));
    let event = objects.iter().find(|object| object["frame"] == 41).unwrap();
    assert_eq!((&event["state"], &event["status"]), (&"not_answered".into(), &Value::Null));
    let summary = objects.last().unwrap();
    assert_eq!((&summary["commands"], &summary["file"]), (&16.into(), &CAPTURE.into()));
}

#[test]
fn each_protocol_has_its_commands() {
    for (capture, count, line) in [
        (
            "storage/iser-session.pcap",
            50,
            "  id 0x5000000  READ(10) lun 0 lba 8 blocks 8  4096 bytes  GOOD  46.039 ms (45.999 to data, 0.039 data, \
             0.001 to status)  1 Write, STag 0xdf379022\n",
        ),
        (
            "storage/nfs3-session.pcap",
            18,
            "  id 0x77a394ae  READ NFS V3 offset 0 count 4096  700 of 4096 bytes  NFS3_OK  65.795 ms (16.841 to data, \
             0.000 data, 48.954 to status)  1 Write, STag 0x417e3e01  1 finding (RPCRDMA-8797.4.1-2)\n",
        ),
        (
            "storage/smb-ops.pcap",
            61,
            "  id 0x22  WRITE file 0x1b:0x8 offset 0 length 300  300 bytes  STATUS_SUCCESS  53.319 ms (0.000 to data, ",
        ),
    ] {
        let (code, text) = io(&[capture]);
        assert_eq!((code, frames(&text).len()), (0, count), "{text}");
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_capture_without_storage_commands_is_an_error() {
    assert_eq!(io(&["siw/rping-crc.pcap"]), (2, String::new()));
    assert_eq!(io(&["--stream", "9", CAPTURE]), (2, String::new()));
    assert_eq!(io(&["--top", "0", CAPTURE]).0, 2);
}
