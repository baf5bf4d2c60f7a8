//! Tests with incomplete captures. weft reports what is missing, because a user could otherwise
//! conclude that the traffic is correct.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Lengths of the header of a pcap file, and of the header of each record.
const FILE: usize = 24;
const RECORD: usize = 16;

fn weft(arguments: &[&str]) -> Output {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
    Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).current_dir(captures).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

/// A changed copy of one of the project's captures. Dropping it removes its folder.
struct Changed {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Changed {
    /// Makes a copy with the records that `change` returns. The arguments of `change` are the
    /// number of a record, from 1, and the record with its header.
    fn new(name: &str, change: impl Fn(usize, &[u8]) -> Option<Vec<u8>>) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw").join(name);
        let octets = std::fs::read(path).unwrap();
        let (mut changed, mut at, mut number) = (octets[..FILE].to_vec(), FILE, 1);
        while at < octets.len() {
            let len = u32::from_le_bytes(octets[at + 8..at + 12].try_into().unwrap()) as usize;
            let end = at + RECORD + len;
            changed.extend(change(number, &octets[at..end]).unwrap_or_default());
            (at, number) = (end, number + 1);
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changed.pcap");
        std::fs::write(&file, changed).unwrap();
        Changed { _folder: folder, file }
    }

    fn without(name: &str, missing: usize) -> Self {
        Self::new(name, |number, record| (number != missing).then(|| record.to_vec()))
    }

    fn weft(&self, arguments: &[&str]) -> Output {
        weft(&[arguments, &[self.file.to_str().unwrap()]].concat())
    }
}

/// The capture lacks the segment with the Terminate. Without a remark about this, the FIN would
/// look like the answer to the Write. tshark shows "Previous segment not captured" at this
/// position.
#[test]
fn octets_missing_before_a_fin_are_reported() {
    let capture = Changed::without("violations-6-kinds-crc.pcap", 12);
    let lines = text(&capture.weft(&["dissect"]).stdout);
    let fin = lines.lines().position(|line| line.contains("TCP closed by 10.1.0.1 with FIN")).unwrap();
    let before = lines.lines().nth(fin - 1).unwrap();
    assert!(before.starts_with("    12 ") && before.ends_with("  not captured  44 bytes"), "{lines}");
    let summary = text(&capture.weft(&["dissect", "-q"]).stderr);
    assert!(summary.contains("; 44 bytes not captured"), "{summary}");
    let lint = text(&capture.weft(&["lint"]).stderr);
    assert!(lint.ends_with("changed.pcap: not judged completely: 44 bytes not captured\n"), "{lint}");
}

#[test]
fn lint_names_what_the_snap_length_cut() {
    let capture = Changed::new("rping-crc.pcap", |_, record| {
        let len = (record.len() - RECORD).min(96);
        let mut cut = record[..RECORD + len].to_vec();
        cut[8..12].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
        Some(cut)
    });
    let lint = text(&capture.weft(&["lint"]).stderr);
    assert!(
        lint.contains(": not judged completely: ") && lint.contains("incomplete units (the snap length cut "),
        "{lint}"
    );
}

#[test]
fn lint_names_connections_with_one_direction() {
    // The position of the source address in the IPv4 header, which follows an Ethernet header.
    let sender = RECORD + 14 + 12;
    let capture = Changed::new("violations-6-kinds-crc.pcap", |_, record| {
        (record[sender..sender + 4] == [10, 1, 0, 2]).then(|| record.to_vec())
    });
    let lint = text(&capture.weft(&["lint"]).stderr);
    assert!(lint.contains(": not judged completely: ") && lint.contains(" with only one direction"), "{lint}");
}

#[test]
fn lint_of_a_complete_capture_has_no_remark() {
    for name in ["rping-crc.pcap", "violations-6-kinds-crc.pcap"] {
        assert_eq!(text(&weft(&["lint", name]).stderr), "", "{name}");
    }
}
