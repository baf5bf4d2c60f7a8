//! Tests packet comments. weft prints them as text and as a field, and uses them to explain a
//! finding.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use weft_dissector::link_type::ETHERNET;
use weft_dissector::output::pcapng::{Interface, PacketBlock, Writer};
use weft_dissector::source::Capture;

/// In the evidence of a case, one packet has this comment: the packet with the stimulus. With the
/// stimulus, the tester provokes the target.
const STIMULUS: &str = "stimulus, bytes 27 to 27: octet 27 changed";

/// Makes a capture with these comments at frame 13.
fn commented(folder: &Path, comments: &[&str]) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/rping-size-mismatch-terminate.pcap");
    let mut capture = Capture::open(&from).unwrap();
    let path = folder.join("commented.pcapng");
    let mut writer = Writer::new(File::create(&path).unwrap(), None).unwrap();
    let interface = writer.interface(&Interface { link_type: ETHERNET, ..Interface::default() }).unwrap();
    let comments: Vec<String> = comments.iter().map(|comment| (*comment).to_owned()).collect();
    while let Some(frame) = capture.next_frame() {
        let comments = if frame.number == 13.into() { &comments[..] } else { &[] };
        let (time, octets, wire_len) = (frame.time, frame.octets, frame.wire_len);
        writer.packet(&PacketBlock { interface, time, octets, wire_len, direction: None, comments }).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn weft(arguments: &[&str], file: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).arg(file).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn comments_are_text_and_a_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = commented(folder.path(), &[STIMULUS, "two\nlines"]);
    let lines = format!("        Packet comment: {STIMULUS}\n        Packet comment: two\\x0alines\n");
    for arguments in [&["dissect", "-V"][..], &["dissect", "-V", "-T", "text"]] {
        let text = weft(arguments, &file);
        assert_eq!(text.matches("Packet comment").count(), 2, "{text}");
        assert!(text.contains(&lines), "{text}");
    }
    assert!(!weft(&["dissect"], &file).contains("Packet comment"));
    let fields = ["dissect", "-T", "fields", "-e", "frame.number", "-e", "frame.comment"];
    let found =
        weft(&[&fields[..], &["-Y", "frame.comment contains \"octet 27\"", "-E", "occurrence=f"]].concat(), &file);
    assert_eq!(found, format!("13\t{STIMULUS}\n"));
}

/// The evidence of a case has the verdict in the comment about the capture.
#[test]
fn comments_about_the_capture_come_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evidence.pcapng");
    let mut capture = Capture::open(&commented(folder.path(), &[])).unwrap();
    let mut writer =
        Writer::new(File::create(&path).unwrap(), Some("mpa/x/y: fail\nactual: \u{1b}[1mnothing")).unwrap();
    let interface = writer.interface(&Interface { link_type: ETHERNET, ..Interface::default() }).unwrap();
    while let Some(frame) = capture.next_frame() {
        let (time, octets, wire_len) = (frame.time, frame.octets, frame.wire_len);
        writer.packet(&PacketBlock { interface, time, octets, wire_len, direction: None, comments: &[] }).unwrap();
    }
    writer.finish().unwrap();
    for command in ["why", "lint"] {
        let text = weft(&[command], &path);
        assert!(text.starts_with("Comment of the capture:\n  mpa/x/y: fail\n  actual: \\x1b[1mnothing\n\n"), "{text}");
    }
}

#[test]
fn lint_names_the_stimulus_of_the_tester() {
    let folder = tempfile::tempdir().unwrap();
    let text = weft(&["lint"], &commented(folder.path(), &[STIMULUS]));
    let sender = "sent by 10.1.0.1:7174 to 10.1.0.2:56391 (stimulus of the tester): expected ";
    assert!(text.contains(sender), "{text}");
    let text = weft(&["lint"], &commented(folder.path(), &["pass: a Terminate, no stimulus"]));
    assert!(!text.contains("(stimulus of the tester)"), "{text}");
}
