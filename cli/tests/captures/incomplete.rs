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

    /// Makes a copy that begins after `missing` records.
    fn without_first(name: &str, missing: usize) -> Self {
        Self::new(name, |number, record| (number > missing).then(|| record.to_vec()))
    }

    /// Makes a copy of the first `len` bytes of the file.
    fn cut(name: &str, len: usize) -> Self {
        let capture = Self::new(name, |_, record| Some(record.to_vec()));
        let octets = std::fs::read(&capture.file).unwrap();
        std::fs::write(&capture.file, &octets[..len]).unwrap();
        capture
    }

    /// Runs `weft lint`. Returns the lines on standard error, without the name of the file.
    fn notes(&self) -> Vec<String> {
        let begin = format!("weft: {}: ", self.file.display());
        let stderr = text(&self.weft(&["lint"]).stderr);
        stderr.lines().map(|line| line.strip_prefix(&begin).unwrap().to_owned()).collect()
    }

    /// Runs `weft lint --json`. Returns the counts of what was not judged.
    fn unjudged(&self) -> serde_json::Value {
        let stdout = text(&self.weft(&["lint", "--json"]).stdout);
        let summary: serde_json::Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
        summary["unjudged"].clone()
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

/// Record 6 is the Request. The connection has no CRCs, so weft cannot read the direction of the
/// Request.
#[test]
fn lint_names_a_direction_that_weft_could_not_read() {
    let capture = Changed::without("rping-stock.pcap", 6);
    let line = "not judged completely: 1 direction without its start-up frame (1024 bytes not read)";
    assert_eq!(capture.notes(), [line]);
    let unjudged = capture.unjudged();
    assert_eq!((&unjudged["directions_without_start"], &unjudged["unread_octets"]), (&1.into(), &1024.into()));
    assert_eq!((&unjudged["without_start"], &unjudged["incomplete"]), (&0.into(), &0.into()));
}

/// Records 1 to 5 are the SYNs and packets of other protocols. Records 6 and 8 are the start-up
/// frames.
#[test]
fn lint_names_connections_without_their_start() {
    let line = "not judged completely: 1 connection without its start (settings unknown)";
    assert_eq!(Changed::without_first("rping-crc.pcap", 15).notes(), [line]);
    let line = "not judged completely: 1 connection without its SYNs (MSS and windows unknown)";
    assert_eq!(Changed::without_first("rping-crc.pcap", 5).notes(), [line]);
    // A filter that selects no start-up frame does not make the capture incomplete.
    let output = weft(&["lint", "rping-crc.pcap", "-Y", "frame.number == 10"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn lint_without_crcs_and_start_up_frames_gives_the_next_step() {
    let capture = Changed::without_first("rping-stock.pcap", 15);
    let line = "nothing to judge, because the capture has no iWARP, SDP or port mapper; it has 1 TCP connection; the \
                capture lacks the SYN of 1 connection, and without CRCs, weft needs the start-up frames: start the \
                capture before the connections";
    assert_eq!(capture.notes(), [line]);
}

/// The file ends within frame 13 (the Response), or within the header of frame 27. No snap length
/// cut these frames.
#[test]
fn lint_names_the_end_of_the_file_as_the_cause() {
    let capture = Changed::cut("rping-crc.pcap", 1500);
    let notes = capture.notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("the capture is truncated: "), "{notes:?}");
    assert_eq!(notes[1], "not judged completely: 1 incomplete unit (the file ends within a frame)");
    let unjudged = capture.unjudged();
    let counts = ["damaged_files", "incomplete", "cut_frames"].map(|key| unjudged[key].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(0)]);

    let capture = Changed::cut("rping-crc.pcap", 6734);
    let notes = capture.notes();
    assert!(notes.len() == 1 && notes[0].starts_with("the capture is truncated: "), "{notes:?}");
    assert_eq!(capture.unjudged()["unread_frames"], 0);
    for command in [&["dissect"][..], &["dissect", "-T", "text"], &["stats"], &["ladder"]] {
        let stderr = text(&capture.weft(command).stderr);
        assert!(!stderr.contains("truncated header"), "{command:?}: {stderr}");
    }
}

/// In record 13, one bit of the data is wrong, and so is the TCP checksum.
#[test]
fn lint_names_a_segment_that_the_network_damaged() {
    let capture = Changed::new("rping-crc.pcap", |number, record| {
        let mut changed = record.to_vec();
        if number == 13 {
            let at = changed.len() - 200;
            changed[at] ^= 1;
        }
        Some(changed)
    });
    let line = "not judged completely: 1 unit that the network damaged (frame 13: the TCP checksum is wrong)";
    assert_eq!(capture.notes(), [line]);
    assert_eq!(capture.unjudged()["damaged"], 1);
    let ladder = text(&capture.weft(&["ladder"]).stdout);
    assert!(!ladder.contains("missing bytes"), "{ladder}");
}

/// The complete capture has at most one outstanding Read. The lost record 10 has a Send. It delays
/// the responses after it, so that the Reads seem to be outstanding at the same time.
#[test]
fn stats_do_not_report_too_many_outstanding_reads() {
    let capture = Changed::without("rping-crc.pcap", 10);
    let stats = text(&capture.weft(&["stats"]).stdout);
    assert!(stats.contains("    Reads: at least 4, ") && !stats.contains("outstanding"), "{stats}");
    let json = text(&capture.weft(&["stats", "--json"]).stdout);
    let connection: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(connection["partial"], true);
    assert!(connection["directions"].as_array().unwrap().iter().all(|it| it.get("most_outstanding").is_none()));
    // Without the SYNs, weft also reads the responses late.
    let stats = text(&Changed::without_first("rping-crc.pcap", 5).weft(&["stats"]).stdout);
    assert!(stats.contains("    at most 1 request outstanding, own ORD 1, peer's IRD 1\n"), "{stats}");
}

#[test]
fn lint_gives_the_level_that_shows_hidden_findings() {
    let output = text(&weft(&["lint", "rping-stock.pcap"]).stdout);
    let line = "rping-stock.pcap: 0 errors, 0 warnings, 6 notes (6 notes not shown: use --level note)\n";
    assert_eq!(output, line);
    let output = text(&weft(&["lint", "rping-stock.pcap", "--level", "note"]).stdout);
    assert!(output.ends_with("\nrping-stock.pcap: 0 errors, 0 warnings, 6 notes\n"), "{output}");
}

#[test]
fn lint_of_a_complete_capture_has_no_remark() {
    for name in ["rping-crc.pcap", "violations-6-kinds-crc.pcap"] {
        assert_eq!(text(&weft(&["lint", name]).stderr), "", "{name}");
    }
}
