//! Tests captures in several files, captures from several networks, and frames that weft does not
//! read. weft prints notes about such captures and frames on standard error.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::crowd;

/// A capture in the classic pcap format, split into the header of the file and the records. Each
/// record includes its own header.
struct Records {
    header: Vec<u8>,
    records: Vec<Vec<u8>>,
}

/// Length of a record's header in bytes. The header has the time, the captured length and the
/// length on the wire.
const HEAD: usize = 16;

impl Records {
    fn read() -> Self {
        Self::of("rping-crc.pcap")
    }

    fn of(capture: &str) -> Self {
        let octets = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw").join(capture)).unwrap();
        let (header, mut rest) = octets.split_at(24);
        let mut records = Vec::new();
        while !rest.is_empty() {
            let captured = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
            let (record, next) = rest.split_at(HEAD + captured);
            records.push(record.to_vec());
            rest = next;
        }
        Records { header: header.to_vec(), records }
    }

    fn write(&self, path: &Path, records: &[Vec<u8>]) {
        fs::write(path, [&self.header[..], &records.concat()].concat()).unwrap();
    }
}

/// Makes a record that has the time of `record` and contains `frame`.
fn changed(record: &[u8], frame: &[u8]) -> Vec<u8> {
    let length = u32::try_from(frame.len()).unwrap().to_le_bytes();
    [&record[..8], &length, &length, frame].concat()
}

fn weft(arguments: &[&str], files: &[PathBuf]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).args(files).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

#[test]
fn files_of_a_ring_are_read_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let capture = Records::read();
    let parts: Vec<&[Vec<u8>]> = capture.records.chunks(capture.records.len().div_ceil(3)).collect();
    for (part, name) in parts.iter().zip(["a", "b", "c"]) {
        capture.write(&path(name), part);
    }
    capture.write(&path("all"), &capture.records);
    let ring = |names: &[&str]| names.iter().map(|name| path(name)).collect::<Vec<_>>();
    for command in [&["dissect"][..], &["dissect", "-T", "text"], &["follow"], &["ladder"]] {
        let expected = weft(command, &[path("all")]);
        let in_order = weft(command, &ring(&["a", "b", "c"]));
        assert_eq!(text(&in_order.stdout), text(&expected.stdout), "{command:?}");
        assert_eq!(text(&in_order.stderr), "", "{command:?}");
        let mixed = weft(command, &ring(&["b", "c", "a"]));
        assert_eq!(text(&mixed.stdout), text(&expected.stdout), "{command:?}");
        let order = ["a", "b", "c"].map(|name| path(name).display().to_string()).join(", ");
        let note = format!("weft: reading 3 captures in the order of their first frames: {order}\n");
        assert_eq!(text(&mixed.stderr), note, "{command:?}");
    }
    let mixed = text(&weft(&["stats"], &ring(&["c", "a", "b"])).stdout);
    assert!(!mixed.contains("not captured"), "{mixed}");
    assert!(mixed.ends_with("c and 2 others: 1 connection with iWARP, 0 other TCP connections\n"), "{mixed}");
}

/// Two taps record one direction each, in two files. weft merges the frames of both files by time.
#[test]
fn files_of_two_taps_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["forth", "back", "all"].map(|name| folder.path().join(name));
    let capture = Records::read();
    let source = |record: &Vec<u8>| record[HEAD + 6..HEAD + 12].to_vec();
    let first = source(&capture.records[0]);
    let (forth, back): (Vec<_>, Vec<_>) = capture.records.iter().cloned().partition(|record| source(record) == first);
    assert!(!forth.is_empty() && !back.is_empty());
    capture.write(&paths[0], &forth);
    capture.write(&paths[1], &back);
    capture.write(&paths[2], &capture.records);
    let expected = text(&weft(&["dissect"], &paths[2..]).stdout);
    assert_eq!(text(&weft(&["dissect"], &paths[..2]).stdout), expected);
}

/// The second file begins after the start-up frames, with the FPDU that causes the Terminate.
#[test]
fn lint_judges_the_files_of_a_ring_as_one_with_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, all] = ["a.pcap", "b.pcap", "all.pcap"].map(|name| folder.path().join(name));
    let records = Records::of("rping-size-mismatch-terminate.pcap");
    let (first, second) = records.records.split_at(9);
    records.write(&a, first);
    records.write(&b, second);
    records.write(&all, &records.records);
    let findings = |arguments: &[&str], files: &[PathBuf]| -> Vec<serde_json::Value> {
        let output = text(&weft(&[&["lint", "--json", "--level", "note"], arguments].concat(), files).stdout);
        let lines = output.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.filter(|line: &serde_json::Value| line["kind"] == "finding").collect()
    };
    let ring = [b.clone(), a.clone()];
    let expected = findings(&[], &[all]);
    let mut merged = findings(&["--merge"], &ring);
    for finding in &mut merged {
        let frame = finding["frame"].as_u64().unwrap();
        let (file, number) = if frame <= 9 { (&a, frame) } else { (&b, frame - 9) };
        assert_eq!(finding["file"], file.display().to_string());
        assert_eq!(finding["frame_in_file"], number);
        finding.as_object_mut().unwrap().retain(|key, _| key != "file" && key != "frame_in_file");
    }
    assert!(expected.len() > 10);
    assert_eq!(merged, expected);
    // Without `--merge`, weft judges each file alone. The second file then lacks the Reply that
    // disables CRC, and its frames begin with number 1.
    assert_ne!(findings(&[], &ring).len(), expected.len());
    let output = weft(&["lint", "--merge"], &ring);
    assert_eq!(output.status.code(), Some(1));
    let place = format!(
        "    frame 13 (frame 4 of {}), bytes 86 to 88, stream 0, sent by 10.1.0.1:7174 to 10.1.0.2:56391: expected ",
        b.display()
    );
    assert!(text(&output.stdout).contains(&place), "{}", text(&output.stdout));
    let total = "b.pcap and 1 other: 5 errors, 4 warnings, 6 notes (6 notes not shown: use --level note)\n";
    assert!(text(&output.stdout).ends_with(total), "{}", text(&output.stdout));
}

#[test]
fn standard_input_is_not_one_of_several() {
    let files = [PathBuf::from("-"), PathBuf::from("b.pcap")];
    let output = weft(&["dissect"], &files);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), "weft: standard input cannot be read together with other captures\n");
}

/// The capture has each frame twice: first as it was, and then in VLAN 7. One more frame is
/// encrypted.
#[test]
fn joined_networks_and_unread_frames_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (path, plain) = (folder.path().join("copies.pcap"), folder.path().join("plain.pcap"));
    let capture = Records::read();
    let in_vlan = |record: &Vec<u8>| {
        let frame = &record[HEAD..];
        [record.clone(), changed(record, &[&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat())]
    };
    let mut records: Vec<Vec<u8>> = capture.records.iter().flat_map(in_vlan).collect();
    let last = records.last().unwrap().clone();
    // An IPv4 packet with ESP, which is protocol 50.
    let first = capture.records.iter().position(|record| record[HEAD + 12..HEAD + 14] == [8, 0]).unwrap();
    let mut esp = capture.records[first][HEAD..HEAD + 34].to_vec();
    esp[23] = 50;
    records.push(changed(&last, &esp));
    capture.write(&path, &records);
    capture.write(&plain, &capture.records);
    let fpdus = |path: &PathBuf| {
        let output = text(&weft(&["dissect", "--json"], std::slice::from_ref(path)).stdout);
        output.lines().filter(|line| line.contains("\"kind\":\"fpdu\"")).count()
    };
    assert_eq!(fpdus(&path), fpdus(&plain));
    let name = path.display();
    let joined = format!(
        "weft: {name}: a connection appeared in another VLAN, tunnel or interface 1 time \
         (first: stream 0, frame {}); weft read each such connection as one connection\n",
        2 * first + 2
    );
    let unread = format!("weft: {name}: weft did not read 1 frame of IPsec ESP (encrypted)\n");
    for command in ["dissect", "stats", "lint", "follow"] {
        let output = weft(&[command], std::slice::from_ref(&path));
        assert_eq!(text(&output.stderr), format!("{joined}{unread}"), "{command}");
    }
    let filtered = weft(&["dissect", "-T", "text"], std::slice::from_ref(&path));
    assert_eq!(text(&filtered.stderr), format!("{joined}{unread}"));
}

/// A snoop file (RFC 1761) of datalink type 10. pcap has no link type for this datalink type.
#[test]
fn a_media_type_without_a_link_type_has_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.snoop");
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let octets = [&b"snoop\0\0\0"[..], &words(&[2, 10]), &words(&[60, 60, 84, 0, 1_600_000_000, 0]), &[0; 60]].concat();
    fs::write(&path, octets).unwrap();
    let output = weft(&["dissect"], std::slice::from_ref(&path));
    assert_eq!(output.status.code(), Some(2));
    let why = "cannot read any frame: snoop datalink type 10 is not supported; docs/captures.md \
               lists the supported link types";
    assert_eq!(text(&output.stderr), format!("weft: {}: {why}\n", path.display()));
}

#[test]
fn connections_that_were_put_aside_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crowd.pcap");
    fs::write(&path, crowd::crowd()).unwrap();
    let name = path.display();
    let expected = format!(
        "weft: {name}: there were too many connections or waiting bytes at the same time, so weft dropped state: \
         weft interrupted its reading 10 times on connections with iWARP or SDP\n\
         weft: {name}: weft did not read 1 frame of IPsec ESP (encrypted)\n"
    );
    for command in [&["dissect"][..], &["dissect", "-T", "text"], &["stats"], &["lint"], &["follow"]] {
        let output = weft(command, std::slice::from_ref(&path));
        // `weft lint` also reports which connections it could not judge.
        let judged = match command {
            ["lint"] => format!("weft: {name}: not judged completely: 8300 connections with only one direction\n"),
            _ => String::new(),
        };
        assert_eq!(text(&output.stderr), format!("{expected}{judged}"), "{command:?}");
    }
}
