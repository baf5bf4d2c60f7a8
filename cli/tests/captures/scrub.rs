//! `weft scrub` writes a copy of a capture without payload and addresses. The copy has the same
//! units and findings as the capture.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use etherparse::PacketBuilder;
use serde_json::Value;
use weft_dissector::link_type::ETHERNET;
use weft_dissector::output::pcapng::{Interface, PacketBlock, Writer};

fn weft(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Writes the copy of `from` to `to`. Returns the text on standard error.
#[track_caller]
fn scrub(from: &Path, to: &Path) -> String {
    let output = weft(&["scrub", text(from), text(to), "--force"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{}: {message}", from.display());
    message
}

/// The captures in the folder `captures`.
fn captures() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for kind in ["causes", "osc", "portmap", "sdp", "siw", "storage"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures").join(kind);
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        found.extend(files.filter(|file| file.extension().is_some_and(|it| it == "pcap" || it == "pcapng")));
    }
    found.sort();
    assert!(found.len() > 100, "{}", found.len());
    found
}

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures").join(name)
}

/// The JSON objects that the command prints, without the values that the copy changes.
fn objects(arguments: &[&str], capture: &Path, changed: &[&str]) -> Vec<Value> {
    let output = weft(&[arguments, &[text(capture)]].concat());
    let parse = |line: &str| {
        let mut object: Value = serde_json::from_str(line).unwrap();
        changed.iter().for_each(|key| {
            object.as_object_mut().unwrap().remove(*key);
        });
        object
    };
    String::from_utf8(output.stdout).unwrap().lines().map(parse).collect()
}

/// The findings. Their texts can contain addresses, CRCs and keys.
fn findings(capture: &Path) -> Vec<Value> {
    objects(&["lint", "--json", "--level", "note"], capture, &["src", "dst", "expected", "found", "file"])
}

/// What stays the same of each unit.
fn units(capture: &Path) -> Vec<Vec<Value>> {
    let kept = |unit: &Value| {
        let keys = [
            "kind",
            "stream",
            "direction",
            "frame",
            "time",
            "incomplete",
            "crc_status",
            "marker_status",
            "iwarp_mpa.ulpdulength",
            "iwarp_mpa.pdlength",
            "iwarp_rdma.opcode",
            "iwarp_ddp.stag",
            "iwarp_ddp.tagged_offset",
            "iwarp_ddp.msn",
            "weft.ulp",
            "weft.ulp.message",
        ];
        keys.iter().map(|key| unit[*key].clone()).collect::<Vec<_>>()
    };
    objects(&["dissect", "--json"], capture, &[]).iter().map(kept).collect()
}

#[test]
fn the_copy_has_the_units_and_findings_of_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.pcapng");
    for capture in captures() {
        scrub(&capture, &copy);
        // In this capture, a retransmission repairs damaged payload. The copy has the same payload
        // in both frames, so the FPDU is complete one frame earlier.
        if !capture.ends_with("causes/corruption-repaired.pcap") {
            assert_eq!(units(&copy), units(&capture), "{}", capture.display());
        }
        assert_eq!(findings(&copy), findings(&capture), "{}", capture.display());
    }
}

#[test]
fn a_copy_of_the_copy_is_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one.pcapng", "other.pcapng"].map(|name| folder.path().join(name));
    for capture in captures() {
        scrub(&capture, &one);
        let message = scrub(&one, &other);
        assert!(message.contains(" 0 bytes replaced;"), "{message}");
        assert!(fs::read(&one).unwrap() == fs::read(&other).unwrap(), "{}", capture.display());
    }
}

fn contains(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}

/// The captures of siw have the addresses 10.1.0.1 and 10.1.0.2, and rping sends a text.
#[test]
fn the_copy_has_neither_addresses_nor_payload() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.pcapng");
    let capture = capture("siw/rping-crc.pcap");
    let message = scrub(&capture, &copy);
    assert!(message.contains("addresses: 2 IPv4, 0 IPv6, "), "{message}");
    let (before, after) = (fs::read(&capture).unwrap(), fs::read(&copy).unwrap());
    for part in [&b"rdma-ping-0: A"[..], &[10, 1, 0, 1], &[10, 1, 0, 2]] {
        assert!(contains(&before, part) && !contains(&after, part), "{part:?}");
    }
    assert!(contains(&after, &[198, 18, 0, 1]) && contains(&after, &[198, 18, 0, 2]));
}

/// The captures of storage protocols have names of hosts, targets and subsystems.
#[test]
fn the_copy_has_no_names_of_storage_protocols() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.pcapng");
    for (name, part) in [("iser-session", "iqn.2026-11."), ("nvme-discover", "nqn.2014-08.")] {
        let capture = capture(&format!("storage/{name}.pcap"));
        scrub(&capture, &copy);
        let (before, after) = (fs::read(&capture).unwrap(), fs::read(&copy).unwrap());
        assert!(contains(&before, part.as_bytes()) && !contains(&after, part.as_bytes()), "{name}");
    }
}

/// A capture with planted texts: the name and the description of the interface, a comment, and the
/// payload of TCP and of UDP.
fn planted(path: &Path) {
    let mut writer = Writer::new(File::create(path).unwrap(), Some("planted section")).unwrap();
    let (name, description) = (Some("planted0"), Some("planted interface"));
    let interface = Interface { link_type: ETHERNET, name, description, ..Interface::default() };
    let interface = writer.interface(&interface).unwrap();
    let comments = ["a planted comment".to_owned()];
    let ip = || PacketBuilder::ethernet2([0xa8; 6], [0xb8; 6]).ipv4([172, 16, 5, 4], [172, 16, 5, 9], 64);
    let mut frames = [Vec::new(), Vec::new()];
    ip().tcp(5000, 80, 7, 512).ack(1).write(&mut frames[0], b"GET /planted HTTP/1.1").unwrap();
    ip().udp(5000, 53).write(&mut frames[1], b"planted name").unwrap();
    for (time, octets) in (1..).zip(&frames) {
        let wire_len = u32::try_from(octets.len()).unwrap();
        let block = PacketBlock { interface, time, octets, wire_len, direction: None, comments: &comments };
        writer.packet(&block).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn the_copy_has_no_planted_text() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from.pcapng", "to.pcapng"].map(|name| folder.path().join(name));
    planted(&from);
    let message = scrub(&from, &to);
    assert!(message.contains(": 2 frames written, 33 bytes replaced; "), "{message}");
    let copy = fs::read(&to).unwrap();
    assert!(contains(&fs::read(&from).unwrap(), b"planted"));
    for part in [&b"planted"[..], &[172, 16, 5], &[0xa8; 6], &[0xb8; 6]] {
        assert!(!contains(&copy, part), "{part:?}");
    }
}

#[test]
fn writes_to_standard_output_and_reads_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.pcapng");
    let capture = capture("siw/rping-stock.pcap");
    scrub(&capture, &copy);
    let output = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["scrub", "-", "-"])
        .stdin(File::open(&capture).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(output.stdout == fs::read(&copy).unwrap());
}

#[test]
fn reports_what_the_copy_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let (pcapng, pcap) = (folder.path().join("copy.pcapng"), folder.path().join("copy.pcap"));
    let lacks = "1 connection of NFS or SMB: in the copy, `weft io` lists no commands of them";
    assert!(scrub(&capture("storage/smb-ops.pcap"), &pcapng).contains(lacks));
    let message = scrub(&capture("storage/nvme-discover.pcap"), &pcap);
    assert!(!message.contains("NFS or SMB") && message.contains("although its name ends with .pcap"), "{message}");
}

#[test]
fn does_not_replace_a_file_without_force_and_never_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from.pcap", "to.pcapng"].map(|name| folder.path().join(name));
    fs::copy(capture("siw/reject-mpa1.pcap"), &from).unwrap();
    fs::write(&to, "other").unwrap();
    let failed = |arguments: &[&str], ending: &str| {
        let output = weft(arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.ends_with(&format!("{ending}\n")), "{message}");
    };
    failed(&["scrub", text(&from), text(&to)], "the file exists; to replace it, add --force");
    assert_eq!(fs::read(&to).unwrap(), b"other");
    let ending = "this file is the capture that weft reads; use another output file";
    failed(&["scrub", text(&from), text(&from), "--force"], ending);
    assert_eq!(fs::read(&from).unwrap(), fs::read(capture("siw/reject-mpa1.pcap")).unwrap());
}
