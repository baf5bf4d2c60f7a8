//! Tests `weft extcap`: the sentences that Wireshark reads, and a capture in a new network
//! namespace. If libpcap or the needed rights are missing, a test prints the reason and skips
//! itself.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::process::Command;

use weft_dissector::source::Capture;

use crate::live::{built_with_libpcap, has_namespaces, started, wait_for, weft};
use crate::skip::skip;

#[test]
fn wireshark_lists_interfaces_link_types_and_options() {
    if !built_with_libpcap() {
        return;
    }
    // Wireshark does not add the word `extcap`.
    let (code, text) = weft(&["--extcap-interfaces", "--extcap-version=4.2"]);
    let mut lines = text.lines();
    let version = format!("extcap {{version={}}}{{display=weft}}", env!("CARGO_PKG_VERSION"));
    assert_eq!((code, lines.next()), (0, Some(&*version)), "{text}");
    assert!(lines.all(|line| line.starts_with("interface {value=weft-") && line.ends_with('}')), "{text}");
    assert_eq!(weft(&["extcap", "--extcap-interfaces"]), (0, text));
    let dlts = weft(&["--extcap-dlts", "--extcap-interface", "weft-lo"]);
    assert_eq!(dlts, (0, "dlt {number=147}{name=weft}{display=Link type of the interface}\n".to_owned()));
    let (code, text) = weft(&["--extcap-config", "--extcap-interface", "weft-lo"]);
    assert!(code == 0 && text.starts_with("arg {number=0}{call=--level}"), "{text}");
    assert!(text.lines().all(|line| line.starts_with("arg {") || line.starts_with("value {arg=0}")), "{text}");
}

#[test]
fn a_valid_filter_has_no_output() {
    if !built_with_libpcap() {
        return;
    }
    let check = |filter| weft(&["--extcap-capture-filter", filter, "--extcap-interface", "weft-lo"]);
    assert_eq!(check("tcp port 7174"), (0, String::new()));
    let (code, text) = check("tcp and (");
    assert!(code == 0 && text.contains("is not valid"), "{text}");
}

#[test]
fn wrong_requests_are_errors() {
    for (arguments, wanted) in [
        (&["extcap"][..], "docs/wireshark.md"),
        (&["--extcap-dlts", "--extcap-interface", "eth0"], "is not an interface of weft"),
        (&["--extcap-dlts"], "--extcap-interface"),
        (&["--capture", "--extcap-interface", "weft-lo"], "--fifo"),
        (&["--extcap-no-such-option"], "--extcap-no-such-option"),
        (&["--capture", "--extcap-interface", "weft-lo", "--fifo", "/weft-no-such-folder/f"], "does not exist"),
    ] {
        let (code, text) = weft(arguments);
        assert!(code == 2 && text.contains(wanted), "{arguments:?}: {code} {text}");
    }
}

/// The responder violates RDMAP-4.1-3 in each message.
#[test]
fn a_capture_is_written_to_the_pipe_with_findings() {
    if !built_with_libpcap() {
        return;
    }
    if !has_namespaces() {
        return skip("no network namespace for this user, or no nsenter or ip (Debian: util-linux, iproute2)");
    }
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let name = pipe.display().to_string();
    let filter = ["--extcap-capture-filter", "tcp port 7174"];
    let line = [&["--capture", "--extcap-interface", "weft-lo"][..], &filter, &["--fifo", &name]].concat();
    let mut capture = started(None, &line);
    // weft writes the header of the pcapng when the capture has begun.
    let mut reader = File::open(&pipe).unwrap();
    let mut written = vec![0; 12];
    reader.read_exact(&mut written).unwrap();
    assert_eq!(written[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let beside = Some(capture.0.id());
    let serve = ["serve", "--listen", "127.0.0.1:0", "--workloads", "127.0.0.1:7174", "--deviate", "rdmap.version-0"];
    let mut server = started(beside, &serve);
    let mut printed = BufReader::new(server.0.stdout.take().unwrap());
    wait_for(&mut printed, "serving ping");
    let mut client = started(beside, &["ping", "-c", "-a", "127.0.0.1", "-C", "1"]);
    client.0.wait().unwrap();
    // Wireshark stops a capture with SIGTERM.
    assert!(Command::new("kill").args(["-TERM", &capture.0.id().to_string()]).status().unwrap().success());
    reader.read_to_end(&mut written).unwrap();
    let mut errors = String::new();
    capture.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    // Wireshark shows each line on standard error as an error.
    assert_eq!((capture.0.wait().unwrap().code(), &*errors), (Some(0), ""));
    let file = folder.path().join("written.pcapng");
    fs::write(&file, written).unwrap();
    let (code, findings) = weft(&["lint", &file.display().to_string()]);
    assert!(code == 1 && findings.contains("RDMAP-4.1-3 "), "{findings}");
    let mut capture = Capture::open(&file).unwrap();
    let comments = capture.comments();
    let mut found = Vec::new();
    while let Some(frame) = capture.next_frame() {
        found.extend(comments.of(frame.number));
    }
    assert_eq!(capture.note(), None);
    assert!(found.iter().any(|comment| comment.contains("RDMAP-4.1-3 ")), "{found:?}");
}
