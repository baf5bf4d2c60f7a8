//! Tests `weft why` with captures of the project, and its answers in `weft lint` and `weft stats`.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const TERMINATE: &str = "rping-size-mismatch-terminate.pcap";

/// Runs weft in the folder of the captures. Returns its exit code and its output.
fn weft(arguments: &[&str]) -> (i32, String) {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = command.args(arguments).current_dir(captures).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// Runs `weft why` with these arguments.
fn why(arguments: &[&str]) -> (i32, String) {
    weft(&[&["why"], arguments].concat())
}

#[test]
fn the_first_line_is_the_answer() {
    let (code, text) = why(&[TERMINATE]);
    assert_eq!(code, 1, "{text}");
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("connection 0, 10.1.0.2:"), "{text}");
    assert!(text.contains("(frame 13)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    assert!(text.lines().last().unwrap().starts_with(&format!("{TERMINATE}: 1 connection, 1 problem")), "{text}");
}

#[test]
fn json_has_an_object_per_connection_and_the_counts() {
    let (code, text) = why(&["--json", TERMINATE, "refused-no-listener.pcap"]);
    assert_eq!(code, 1, "{text}");
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["connection", "summary", "connection", "summary"]);
    assert_eq!((&objects[0]["cause"], &objects[2]["cause"]), (&"own_read_request".into(), &"refused".into()));
}

#[test]
fn options_select_connections() {
    assert_eq!(why(&["--stream", "0", TERMINATE]).0, 1);
    assert_eq!(why(&["--connection", "9", TERMINATE]).0, 2);
    assert_eq!(why(&["-Y", "ip.src == 10.1.0.1", TERMINATE]).0, 1);
    assert_eq!(why(&["-Y", "ip.src == 10.9.9.9", TERMINATE]).0, 2);
}

#[test]
fn lint_and_stats_begin_with_the_answer() {
    let text = why(&[TERMINATE]).1;
    let (paragraph, _) = text.split_once("\n\n").unwrap();
    for (command, next) in [("lint", "error "), ("stats", "stream 0 ")] {
        let text = weft(&[command, TERMINATE]).1;
        assert!(text.starts_with(&format!("{paragraph}\n\n{next}")), "{command}: {text}");
    }
    assert!(!weft(&["stats", TERMINATE, "--json"]).1.contains(paragraph.lines().next().unwrap()));
}

/// Only the Terminate has findings. The connection with the Terminate failed.
#[test]
fn lint_has_the_answers_about_its_selection() {
    let begins = |arguments: &[&str]| weft(&[&["lint", TERMINATE], arguments].concat()).1.starts_with("connection 0, ");
    assert!(begins(&["--stream", "0"]) && begins(&["-Y", "ip.src == 10.1.0.1"]));
    assert!(!begins(&["--stream", "9"]) && !begins(&["-Y", "ip.src == 10.9.9.9"]) && !begins(&["--json"]));
    // This connection has no problem.
    assert_eq!(weft(&["lint", "rping-crc.pcap"]).1.lines().count(), 1);
}

/// The malformed Terminate in frame 13 violates several requirements.
#[test]
fn lint_names_the_problem_of_each_finding() {
    let (_, text) = weft(&["lint", "--json", "--level", "warning", TERMINATE]);
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, findings) = objects.split_last().unwrap();
    let of_frame: Vec<&Value> = findings.iter().filter(|finding| finding["frame"] == 13).collect();
    assert!(of_frame.len() > 1, "{text}");
    let number = &of_frame[0]["problem"];
    assert!(number.is_u64() && of_frame.iter().all(|finding| finding["problem"] == *number), "{text}");
    let problems = summary["problems"].as_array().unwrap();
    let problem = problems.iter().find(|problem| problem["problem"] == *number).unwrap();
    let listed = problem["requirements"].as_array().unwrap();
    assert!(of_frame.iter().all(|finding| listed.contains(&finding["requirement"])), "{text}");
    assert_eq!(summary["further_problems"], 0);
}

/// Runs `weft why --report` with a name in `folder`. Returns the exit code and the page, if weft
/// wrote one.
fn report(folder: &Path, name: &str, arguments: &[&str]) -> (i32, Option<String>) {
    let page = folder.join(name);
    let (code, _) = why(&[&["--report", page.to_str().unwrap()], arguments].concat());
    (code, fs::read_to_string(page).ok())
}

#[test]
fn a_report_has_the_answer_the_bytes_and_the_packets() {
    let folder = tempfile::tempdir().unwrap();
    let (code, page) = report(folder.path(), "ticket.html", &[TERMINATE]);
    let page = page.unwrap();
    let packets = folder.path().join("ticket.packets.pcapng");
    assert_eq!(code, 1, "{page}");
    for part in ["<svg ", "class=\"wrong\"", "RDMAP-4.8-37", "frame 13: Terminate", "base64,"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let findings = |file: &str| weft(&["lint", "--json", "--level", "note", file]).1.lines().count();
    let packets = packets.to_str().unwrap();
    assert_eq!(findings(packets), findings(TERMINATE));
    let sentence = |file: &str| why(&["--json", file]).1.split("\"headline\":").nth(1).unwrap()[..40].to_owned();
    assert_eq!(sentence(packets), sentence(TERMINATE));
}

#[test]
fn a_report_replaces_no_capture_with_the_name_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("ticket.pcapng");
    fs::write(&capture, "of the user").unwrap();
    assert_eq!(report(folder.path(), "ticket.html", &[TERMINATE]).0, 1);
    assert_eq!(fs::read(&capture).unwrap(), b"of the user");
}

#[test]
fn a_report_replaces_existing_packets_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let packets = folder.path().join("ticket.packets.pcapng");
    fs::write(&packets, "of the user").unwrap();
    assert_eq!(report(folder.path(), "ticket.html", &[TERMINATE]), (2, None));
    assert_eq!(fs::read(&packets).unwrap(), b"of the user");
    let (code, page) = report(folder.path(), "ticket.html", &["--force", TERMINATE]);
    assert!(code == 1 && page.is_some());
    assert_ne!(fs::read(&packets).unwrap(), b"of the user");
    // The report in the other format has the same packets.
    let written = fs::read(&packets).unwrap();
    assert_eq!(report(folder.path(), "ticket.md", &[TERMINATE]).0, 1);
    assert_eq!(fs::read(&packets).unwrap(), written);
    assert_eq!(report(folder.path(), "ticket.htm", &["reject-mpa1.pcap"]), (2, None));
    assert_eq!(why(&["--force", TERMINATE]).0, 2);
}

#[test]
fn a_report_in_markdown_has_the_same_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (code, page) = report(folder.path(), "ticket.md", &[TERMINATE]);
    let page = page.unwrap();
    assert_eq!(code, 1, "{page}");
    for part in ["## Connection 0: ", "◀", "- RDMAP-4.8-37 (MUST", "are wrong: RDMAP-4.8-37", "`ticket.packets.pcapng`"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(folder.path().join("ticket.packets.pcapng").is_file());
}

/// 16 connections of this capture have a wrong key.
#[test]
fn a_report_of_many_connections_counts_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let page = report(folder.path(), "many.md", &["wrong-key-16-octets.pcap"]).1.unwrap();
    assert_eq!(page.matches("\n## Connection ").count(), 8, "{page}");
    assert!(page.contains("The capture has 8 more connections with a problem."), "{page}");
    let page = report(folder.path(), "one.md", &["wrong-key-16-octets.pcap", "--connection", "5"]).1.unwrap();
    assert_eq!(page.matches("\n## Connection 5: ").count(), 1, "{page}");
    assert!(!page.contains("more connections"), "{page}");
}

#[test]
fn a_report_needs_a_problem_and_a_known_format() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(report(folder.path(), "none.html", &["rping-p2p-crc.pcap"]), (0, None));
    let (code, page) = report(folder.path(), "one.html", &["rping-p2p-crc.pcap", "--connection", "0"]);
    assert!(code == 0 && page.unwrap().contains("no problem"));
    assert_eq!(report(folder.path(), "ticket.pdf", &[TERMINATE]), (2, None));
    assert_eq!(report(folder.path(), "ticket.html", &[TERMINATE, "rping-crc.pcap"]), (2, None));
    // The packets would replace the capture.
    let capture = folder.path().join("copy.packets.pcapng");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw").join(TERMINATE), &capture).unwrap();
    assert_eq!(report(folder.path(), "copy.html", &[capture.to_str().unwrap()]), (2, None));
}
