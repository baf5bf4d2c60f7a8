//! `weft dissect -w` writes an excerpt of a capture. The excerpt has the same findings as the
//! capture.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures")
}

/// Writes the frames of `capture` that pass `filter` to `excerpt`. Returns the text on standard
/// error.
fn write(capture: &Path, filter: &str, excerpt: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["dissect", capture.to_str().unwrap(), "-Y", filter, "-w", excerpt.to_str().unwrap()])
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{filter}: {message}");
    message
}

/// For each connection, the number of findings for each requirement and severity.
type Findings = BTreeMap<Option<u64>, BTreeMap<(String, String), usize>>;

fn lint(capture: &Path) -> Findings {
    let output = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["lint", "--json", "--level", "note", capture.to_str().unwrap()])
        .output()
        .unwrap();
    let mut findings = Findings::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        if object["kind"] == "finding" {
            let text = |name: &str| object[name].as_str().unwrap().to_owned();
            let key = (text("requirement"), text("severity"));
            *findings.entry(object["stream"].as_u64()).or_default().entry(key).or_default() += 1;
        }
    }
    findings
}

/// The findings of all connections together.
fn total(findings: &Findings) -> BTreeMap<(String, String), usize> {
    let mut total = BTreeMap::new();
    for (key, count) in findings.values().flatten() {
        *total.entry(key.clone()).or_default() += count;
    }
    total
}

#[test]
fn an_excerpt_has_the_findings_of_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one.pcapng", "other.pcapng"].map(|name| folder.path().join(name));
    let mut with_findings = 0;
    for kind in ["siw", "osc", "sdp", "portmap"] {
        for entry in fs::read_dir(captures().join(kind)).unwrap() {
            let capture = entry.unwrap().path();
            let expected = lint(&capture);
            if capture.extension().is_none_or(|extension| extension != "pcap") || expected.is_empty() {
                continue;
            }
            with_findings += 1;
            write(&capture, "finding", &one);
            assert_eq!(total(&lint(&one)), total(&expected), "{}", capture.display());
            // An excerpt of the excerpt also has these findings. Its input is a pcapng file, so
            // weft copies the input block by block.
            write(&one, "finding", &other);
            assert_eq!(total(&lint(&other)), total(&expected), "{}", capture.display());
        }
    }
    assert!(with_findings > 10, "{with_findings}");
}

/// weft writes an excerpt of an excerpt. All frames and comments are kept, and no comment is
/// repeated.
#[test]
fn an_excerpt_of_an_excerpt_is_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one.pcapng", "other.pcapng"].map(|name| folder.path().join(name));
    write(&captures().join("siw/rping-size-mismatch-terminate.pcap"), "finding", &one);
    write(&one, "finding", &other);
    assert!(fs::read(&one).unwrap() == fs::read(&other).unwrap());
}

#[test]
fn a_connection_alone_has_its_findings() {
    let folder = tempfile::tempdir().unwrap();
    let excerpt = folder.path().join("one.pcapng");
    for name in ["siw/host-matrix.pcap", "siw/violations-6-kinds-crc.pcap", "siw/wrong-key-16-octets.pcap"] {
        let capture = captures().join(name);
        for (stream, expected) in lint(&capture).into_iter().take(8) {
            let stream = stream.unwrap();
            // The filter passes only the frames with findings. weft nevertheless writes all frames
            // of the connection.
            write(&capture, &format!("tcp.stream == {stream} && finding"), &excerpt);
            assert_eq!(total(&lint(&excerpt)), expected, "{name}, connection {stream}");
        }
    }
}

#[test]
fn an_excerpt_reports_its_frames_and_its_findings_are_comments() {
    let folder = tempfile::tempdir().unwrap();
    let excerpt = folder.path().join("out.pcapng");
    let capture = captures().join("siw/host-matrix.pcap");
    let message = write(&capture, "finding.requirement == DDP-4.1-12", &excerpt);
    let rest = message.strip_prefix(&format!("weft: {}: ", capture.display())).unwrap();
    let (frames, rest) = rest.split_once(" frames of 1 TCP connection written, ").unwrap();
    assert!(rest.ends_with(" with findings as comments\n"), "{rest}");
    let octets = fs::read(&excerpt).unwrap();
    assert!(String::from_utf8_lossy(&octets).contains("error DDP-4.1-12 (MUST)"));

    let output = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["dissect", excerpt.to_str().unwrap(), "-T", "fields", "-e", "tcp.stream"])
        .output()
        .unwrap();
    let streams = String::from_utf8(output.stdout).unwrap();
    assert_eq!(streams.lines().count().to_string(), frames);
    assert!(streams.lines().all(|stream| stream == "0"), "{streams}");
}

#[test]
fn an_excerpt_of_standard_input_is_that_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one.pcapng", "other.pcapng"].map(|name| folder.path().join(name));
    let capture = captures().join("siw/violations-6-kinds-crc.pcap");
    write(&capture, "finding", &one);
    let status = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["dissect", "-", "-Y", "finding", "-w", other.to_str().unwrap()])
        .stdin(File::open(capture).unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert!(fs::read(one).unwrap() == fs::read(other).unwrap());
}

/// Returns a gzip file with one stored (uncompressed) block. Only the first `left` bytes of the
/// block are present.
fn cut_gzip(octets: &[u8], left: usize) -> Vec<u8> {
    let len = u16::try_from(octets.len()).unwrap();
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    file.extend(len.to_le_bytes());
    file.extend((!len).to_le_bytes());
    file.extend(&octets[..left]);
    file
}

#[test]
fn an_excerpt_of_a_cut_compressed_pcapng_has_all_frames_before_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, cut, excerpt] = ["plain.pcapng", "cut.pcapng.gz", "out.pcapng"].map(|name| folder.path().join(name));
    write(&captures().join("siw/rping-crc.pcap"), "tcp", &plain);
    let octets = fs::read(&plain).unwrap();
    fs::write(&cut, cut_gzip(&octets, octets.len() / 2)).unwrap();
    let message = write(&cut, "tcp", &excerpt);
    assert!(
        message.contains(" frames of 1 TCP connection written") && message.contains("reading stopped"),
        "{message}"
    );
    let written = fs::read(&excerpt).unwrap();
    assert!(written.len() > 1000 && octets.starts_with(&written), "{}", written.len());
}
