//! Tests `weft dissect --until finding` with captures of the project.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// One connection, in the frames 3 to 16. Frame 13 has a malformed Terminate.
const TERMINATE: &str = "rping-size-mismatch-terminate.pcap";

/// Runs weft in the folder of the captures. Returns its exit code, its output and its notes.
fn weft(arguments: &[&str]) -> (i32, String, String) {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let Output { status, stdout, stderr } = command.args(arguments).current_dir(captures).output().unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Runs `weft dissect --until finding` on the capture `name`.
fn until(name: &str, to: &str, arguments: &[&str]) -> (i32, String, String) {
    weft(&[&["dissect", "-r", name, "--until", "finding", "-w", to], arguments].concat())
}

#[test]
fn saves_the_connection_of_the_first_finding() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("fault.pcapng").display().to_string();
    let (code, text, notes) = until(TERMINATE, &to, &[]);
    assert_eq!(code, 1, "{text}{notes}");
    assert!(text.contains("frame 13 stream 0 ") && text.lines().count() == 2, "{text}");
    assert!(notes.contains(&format!("14 frames of TCP connection 0 written to {to}")), "{notes}");
    let findings = |file: &str| weft(&["lint", "--json", "--level", "note", file]).1.lines().count();
    assert_eq!(findings(&to), findings(TERMINATE));
    let comments = weft(&["dissect", &to, "-T", "fields", "-e", "frame.comment"]).1;
    assert!(comments.contains("RDMAP-4.8-37 (MUST)"), "{comments}");
}

/// The input stays open after its last frame, like a capture that continues. The last frame is the
/// end of the connection.
#[test]
fn the_file_is_complete_while_the_input_continues() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("fault.pcapng").display().to_string();
    let arguments = ["dissect", "-", "--until", "finding", "--keep", "60s", "-w", &to];
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw").join(TERMINATE);
    input.write_all(&fs::read(capture).unwrap()).unwrap();
    let (sender, ended) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        let _ = sender.send(());
        text
    });
    // If weft waits for the end of the input, this limit ends the test.
    let has_ended = ended.recv_timeout(Duration::from_secs(60)).is_ok();
    drop(input);
    let (text, status) = (reader.join().unwrap(), child.wait().unwrap());
    assert!(has_ended && status.code() == Some(1), "{status}: {text}");
    assert!(text.contains("frame 13 stream 0 "), "{text}");
    let fields = ["-Y", "tcp", "-T", "fields", "-e", "frame.len", "-e", "ip.src"];
    let frames = |file: &str| weft(&[&["dissect", file][..], &fields].concat()).1;
    assert_eq!(frames(&to), frames(TERMINATE));
    assert_eq!(frames(&to).lines().count(), 14);
}

/// This capture has 55 connections (captures/README.md).
#[test]
fn saves_no_other_connection() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("fault.pcapng").display().to_string();
    let (code, text, _) = until("host-matrix.pcap", &to, &[]);
    assert_eq!(code, 1, "{text}");
    let stats = weft(&["stats", "--json", &to]).1;
    let total = stats.lines().last().unwrap();
    assert!(total.contains("\"kind\":\"total\""), "{stats}");
    let streams = weft(&["dissect", &to, "-T", "fields", "-e", "tcp.stream"]).1;
    assert!(streams.lines().count() > 4 && streams.lines().all(|stream| stream == "0"), "{streams}");
    assert_eq!(weft(&["lint", &to]).0, 1);
}

#[test]
fn a_filter_selects_the_finding() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("fault.pcapng").display().to_string();
    let (code, text, _) = until(TERMINATE, &to, &["-Y", "finding.requirement == \"RDMAP-4.8-37\""]);
    assert!(code == 1 && text.contains(" RDMAP-4.8-37 "), "{text}");
    let (code, text, _) = until(TERMINATE, &to, &["-Y", "finding.requirement == \"MPA-7.1.1-1\""]);
    assert_eq!((code, text.as_str()), (0, ""));
}

#[test]
fn without_a_finding_no_file_remains() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("fault.pcapng");
    let (code, text, notes) = until("rping-crc.pcap", to.to_str().unwrap(), &["--keep", "5m", "--after", "1s"]);
    assert_eq!((code, text.as_str()), (0, ""));
    assert!(notes.contains("no finding, so no file was written"), "{notes}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // A file of an earlier wait stays.
    fs::write(&to, "earlier").unwrap();
    let (code, ..) = until("rping-crc.pcap", to.to_str().unwrap(), &[]);
    assert_eq!((code, fs::read_to_string(&to).unwrap()), (0, "earlier".to_owned()));
}

#[test]
fn contradictions_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("fault.pcapng").display().to_string();
    let copy = folder.path().join("copy.pcap").display().to_string();
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw").join(TERMINATE), &copy).unwrap();
    for arguments in [
        &["dissect", TERMINATE, "--until", "finding"][..],
        &["dissect", TERMINATE, "--until", "finding", "-w", "-"],
        &["dissect", TERMINATE, "--until", "finding", "-w", &to, "--json"],
        &["dissect", TERMINATE, "-w", &to, "--keep", "5s"],
        &["dissect", TERMINATE, "--until", "finding", "-w", &to, "--keep", "5"],
        &["dissect", &copy, "--until", "finding", "-w", &copy],
        &["dissect", TERMINATE, "--until", "finding", "-w", "/weft-no-such-folder/x"],
    ] {
        let (code, _, notes) = weft(arguments);
        assert_eq!(code, 2, "{arguments:?}: {notes}");
    }
}
