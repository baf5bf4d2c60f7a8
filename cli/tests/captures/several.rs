//! Captures from several networks, and with frames that are not read: what standard error says of them.
#![allow(clippy::unwrap_used, reason = "a helper of a test may stop it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A classic pcap: its header, and each record with its header.
struct Records {
    header: Vec<u8>,
    records: Vec<Vec<u8>>,
}

/// Octets of a record's header: time, length in the file and on the wire.
const HEAD: usize = 16;

impl Records {
    fn read() -> Self {
        let octets = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/rping-crc.pcap")).unwrap();
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

/// A record of another frame at the same time.
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

/// Each frame is there twice, the second time in VLAN 7; and one is encrypted.
#[test]
fn joined_networks_and_unread_frames_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (path, plain) = (folder.path().join("copies.pcap"), folder.path().join("plain.pcap"));
    let whole = Records::read();
    let in_vlan = |record: &Vec<u8>| {
        let frame = &record[HEAD..];
        [record.clone(), changed(record, &[&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat())]
    };
    let mut records: Vec<Vec<u8>> = whole.records.iter().flat_map(in_vlan).collect();
    let last = records.last().unwrap().clone();
    // IPv4 with ESP, protocol 50.
    let first = whole.records.iter().position(|record| record[HEAD + 12..HEAD + 14] == [8, 0]).unwrap();
    let mut esp = whole.records[first][HEAD..HEAD + 34].to_vec();
    esp[23] = 50;
    records.push(changed(&last, &esp));
    whole.write(&path, &records);
    whole.write(&plain, &whole.records);
    let fpdus = |path: &PathBuf| {
        let output = text(&weft(&["dissect", "--json"], &[path.clone()]).stdout);
        output.lines().filter(|line| line.contains("\"kind\":\"fpdu\"")).count()
    };
    assert_eq!(fpdus(&path), fpdus(&plain));
    let name = path.display();
    let joined = format!(
        "weft: {name}: the same connection is in several VLANs, tunnels or interfaces 1 time (first: stream 0, frame {}), \
         and is read as one\n",
        2 * first + 2
    );
    let unread = format!("weft: {name}: not read: 1 frame of IPsec ESP (encrypted)\n");
    for command in ["dissect", "stats", "lint", "follow"] {
        let output = weft(&[command], &[path.clone()]);
        assert_eq!(text(&output.stderr), format!("{joined}{unread}"), "{command}");
    }
    let filtered = weft(&["dissect", "-T", "text"], &[path.clone()]);
    assert_eq!(text(&filtered.stderr), format!("{joined}{unread}"));
}

/// A snoop file (RFC 1761) of datalink type 10, which no link type stands for.
#[test]
fn a_media_type_without_a_link_type_has_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.snoop");
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let octets = [&b"snoop\0\0\0"[..], &words(&[2, 10]), &words(&[60, 60, 84, 0, 1_600_000_000, 0]), &[0; 60]].concat();
    fs::write(&path, octets).unwrap();
    let output = weft(&["dissect"], &[path.clone()]);
    assert_eq!(output.status.code(), Some(2));
    let why = "no frame can be read: snoop datalink type 10 is not supported; docs/captures.md lists those that are";
    assert_eq!(text(&output.stderr), format!("weft: {}: {why}\n", path.display()));
}
