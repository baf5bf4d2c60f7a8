//! Tests the output for the captures of the project: text, fields, JSON and PDML of `weft dissect`,
//! and the output of the other commands that read captures.
//!
//! The expected columns of `fields_are_tsharks` are the output of tshark 4.0.17 for the same
//! command line.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const RPING: &str = "rping-crc.pcap";
const TERMINATE: &str = "rping-size-mismatch-terminate.pcap";

/// Runs weft in the folder of the captures.
fn weft(arguments: &[&str]) -> Output {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
    Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).current_dir(captures).output().unwrap()
}

/// Runs weft, which must succeed. Returns its output.
fn printed(arguments: &[&str]) -> String {
    let output = weft(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn text_has_a_line_a_unit() {
    insta::assert_snapshot!(printed(&["dissect", RPING, "-c", "20"]));
}

#[test]
fn findings_name_stream_and_addresses() {
    let filter = "finding.requirement == \"RDMAP-4.8-6\"";
    let lines = "       frame 13 stream 0 10.1.0.1:7174 → 10.1.0.2:56391  error RDMAP-4.8-6  The 13 reserved bits are zero on \
                 transmit (MUST)\n              expected 13 reserved bits of zero; found 0x0300\n";
    for arguments in [&["-Y", filter][..], &["-T", "text", "-Y", filter], &[]] {
        let text = printed(&[&["dissect", TERMINATE], arguments].concat());
        assert!(text.contains(lines), "{arguments:?}: {text}");
    }
    // The connection has another finding at its Request. This finding is about the sender of the
    // Request, which is the other end.
    let text = printed(&["dissect", TERMINATE]);
    assert!(text.contains("       frame 6 stream 0 10.1.0.2:56391 → 10.1.0.1:7174  note MPA-4.4-4"), "{text}");
}

#[test]
fn text_of_frames_has_a_line_a_frame() {
    insta::assert_snapshot!(printed(&["dissect", "-r", RPING, "-T", "text", "-c", "14"]));
}

#[test]
fn verbose_text_has_every_field() {
    insta::assert_snapshot!(printed(&["dissect", RPING, "-V", "-x", "-Y", "frame.number in {6, 12}"]));
}

/// In the verbose text of SDP, Modes, directions and flags have names in addition to their numbers.
#[test]
fn verbose_text_of_sdp_has_names() {
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../captures/sdp/modes.pcap");
    let text = printed(&["dissect", capture, "-V", "-Y", "frame.number == 8"]);
    for field in ["MID: 0x07 (ModeChange)", "Mode: 2 (Pipelined)", "S: no (receiver's receive half)"] {
        assert!(text.contains(field), "{field}: {text}");
    }
}

/// A capture begins in the middle of a connection. weft reads the connection as SDP if the user
/// names its port.
#[test]
fn decode_as_reads_sdp_without_its_beginning() {
    let octets = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../captures/sdp/writes.pcap")).unwrap();
    // Keep the header of the file, which has 24 bytes, and all records after the ninth.
    let mut at = 24;
    for _ in 0..9 {
        at += 16 + u32::from_le_bytes(octets[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("late.pcap");
    std::fs::write(&file, [&octets[..24], &octets[at..]].concat()).unwrap();
    let file = file.to_str().unwrap();
    assert!(!printed(&["dissect", file]).contains("SDP "));
    let text = printed(&["dissect", "--decode-as", "33355=sdp", file]);
    assert!(text.contains("SDP SinkAvail") && text.contains("SDP RdmaWrCompl"), "{text}");
}

#[test]
fn fields_are_tsharks() {
    let columns = ["frame.number", "iwarp_mpa.ulpdulength", "iwarp_rdma.opcode", "iwarp_ddp.stag", "iwarp_ddp.msn"];
    let mut arguments = vec!["dissect", RPING, "-Y", "iwarp_mpa", "-T", "fields", "-E", "header=y"];
    columns.iter().for_each(|column| arguments.extend(["-e", column]));
    insta::assert_snapshot!(printed(&arguments));
}

#[test]
fn pdml_has_names_values_and_places() {
    let text = printed(&["dissect", RPING, "-T", "pdml", "-Y", "iwarp_rdma.rr", "-c", "12"]);
    insta::assert_snapshot!(text.replace(concat!("weft/", env!("CARGO_PKG_VERSION")), "weft/VERSION"));
}

#[test]
fn json_of_frames_parses_and_no_key_comes_twice() {
    let text = printed(&["dissect", RPING, "-T", "json"]);
    let frames: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(frames.len(), 52);
    let layers = &frames[11]["_source"]["layers"];
    assert_eq!(layers["frame"]["frame.number"], "12");
    assert_eq!(layers["iwarp_ddp"]["iwarp_rdma.opcode"], "0x01");
    assert_eq!(layers["iwarp_rdma"]["iwarp_rdma.rdmardsz"], "1000");

    let text = printed(&[
        "dissect",
        RPING,
        "-T",
        "json",
        "-e",
        "frame.number",
        "-e",
        "iwarp_rdma.opcode",
        "-Y",
        "iwarp_rdma.rr",
    ]);
    let frames: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(
        frames[0]["_source"]["layers"],
        serde_json::json!({"frame.number": ["12"], "iwarp_rdma.opcode": ["0x01"]})
    );
    let nothing = weft(&["dissect", RPING, "-T", "json", "-Y", "iwarp_sdp"]);
    assert_eq!((nothing.status.code(), &nothing.stdout[..]), (Some(0), &b"[]\n"[..]));
}

#[test]
fn json_lines_pass_the_filter_one_by_one() {
    let lines = printed(&["dissect", RPING, "--json", "-Y", "iwarp_rdma.opcode == \"RDMA Read Request\""]);
    let units: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(units.len(), 4);
    assert!(units.iter().all(|unit| unit["iwarp_rdma.opcode"] == 1 && unit["kind"] == "fpdu"));
    let all = printed(&["dissect", RPING, "--json"]);
    assert_eq!(all, printed(&["dissect", RPING, "--json", "-Y", "tcp.port == 7174 || finding"]));
}

#[test]
fn findings_pass_with_their_unit_or_alone() {
    let lines = printed(&["dissect", "host-matrix.pcap", "--json", "-Y", "finding.requirement == DDP-4.1-12"]);
    let kinds: Vec<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|object| (object["kind"].as_str().unwrap().to_owned(), object["frame"].as_u64().unwrap()))
        .collect();
    assert!(kinds.contains(&("finding".to_owned(), 453)), "{kinds:?}");
    assert!(kinds.contains(&("fpdu".to_owned(), 453)), "{kinds:?}");
    assert!(kinds.iter().all(|(_, frame)| *frame == 453), "{kinds:?}");
}

#[test]
fn the_summary_counts_on_standard_error() {
    let output = weft(&["dissect", RPING, "-q"]);
    assert!(output.status.success() && output.stdout.is_empty());
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}

#[test]
fn colour_needs_the_option() {
    assert!(!printed(&["dissect", RPING]).contains('\x1b'));
    assert!(printed(&["dissect", RPING, "--color", "always"]).contains("\x1b[1m"));
}

#[test]
fn all_fields_are_listed() {
    let list = printed(&["dissect", "-G", "fields"]);
    assert!(list.lines().any(|line| line == "iwarp_mpa.ulpdulength\tULPDU_Length\tRFC 5044 4.1"));
}

#[test]
fn explain_shows_every_byte() {
    insta::assert_snapshot!(printed(&["explain", RPING, "12"]));
}

#[test]
fn explain_shows_frames_without_units() {
    insta::assert_snapshot!(printed(&["explain", RPING, "3"]));
}

/// captures/causes/README.md: the client retransmits in frame 24, and resets in frame 45.
#[test]
fn explain_names_retransmissions() {
    let explained = |frame| printed(&["explain", "../causes/loss-gives-up.pcap", frame]);
    let text = explained("24");
    assert!(text.contains("\nTCP: bytes ") && text.contains(" (tcp.analysis.retransmission)\n"), "{text}");
    let text = explained("45");
    assert!(text.contains("\nTCP: no bytes (at ") && !text.contains("tcp.analysis"), "{text}");
}

#[test]
fn stats_show_settings_counts_and_latencies() {
    let text = printed(&["stats", RPING]);
    let (answer, numbers) = text.split_once("\n\n").unwrap();
    assert!(answer.starts_with("connection 0, 10.1.0.2:38499 to 10.1.0.1:7174: no violation, but TCP"), "{answer}");
    insta::assert_snapshot!(numbers);
    let lines = printed(&["stats", RPING, "--json"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [connection, total] = &lines[..] else { panic!("{} lines", lines.len()) };
    assert_eq!((&connection["kind"], &total["kind"]), (&"connection".into(), &"total".into()));
    assert_eq!(connection["directions"][1]["reads"]["count"], 4);
    assert_eq!(connection["directions"][0]["startup"]["ird_ord"], serde_json::json!([1, 1]));
    // captures/README.md lists these numbers: 4 Writes, 4 Read Requests, 4 Read Responses and 16
    // Sends, with pings of 1000 octets.
    let opcodes = serde_json::json!({"RDMA Read Request": 4, "RDMA Read Response": 4, "RDMA Write": 4, "Send": 16});
    assert_eq!((&total["fpdus"], &total["opcodes"]), (&28.into(), &opcodes));
    assert_eq!(total["opcode_octets"]["RDMA Write"], 4000);
}

/// In this capture, 16 connections have a wrong key (see captures/README.md), so weft does not
/// count them as iWARP connections. Each has two errors.
#[test]
fn stats_count_findings_that_are_about_no_connection() {
    let file = "wrong-key-16-octets.pcap";
    assert!(printed(&["stats", file]).contains("findings: 32 errors, 0 warnings, 0 notes"));
    let lines = printed(&["stats", file, "--json"]);
    let total: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&total["connections"], &total["findings"]), (&2.into(), &serde_json::json!([0, 0, 32])));
}

/// In this capture, the streams 1 to 16 have a wrong key.
#[test]
fn stats_list_each_connection_with_findings() {
    let file = "wrong-key-16-octets.pcap";
    let lines = printed(&["stats", file, "--json"]);
    let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let connections = objects.iter().filter(|object| object["kind"] == "connection");
    let streams: Vec<u64> = connections.map(|connection| connection["stream"].as_u64().unwrap()).collect();
    assert!(streams.iter().copied().eq(0..18), "{streams:?}");
    // Frame 16 has the Request of stream 1: a key of 16 octets, and 4 more octets.
    let text = printed(&["stats", file, "--stream", "1"]);
    assert!(text.starts_with("connection 1, 10.9.0.1:59056 to 10.9.0.2:7174: ") && !text.contains("connection 2"));
    let expected = "stream 1  10.9.0.1:59056 ⇄ 10.9.0.2:7174  frames 16 to 16, 0.000000 s\n  \
                    10.9.0.1:59056 → 10.9.0.2:7174\n    20 bytes outside MPA\n  \
                    10.9.0.2:7174 → 10.9.0.1:59056\n  findings: 2 errors, 0 warnings, 0 notes\n";
    assert_eq!(text.split_once("\n\n").map(|(_, numbers)| numbers), Some(expected));
}

#[test]
fn stats_of_one_connection_have_no_totals() {
    let text = printed(&["stats", RPING, "--stream", "0"]);
    assert!(text.contains("\n\nstream 0 ") && text.ends_with("  findings: 0 errors, 0 warnings, 0 notes\n"), "{text}");
    assert_eq!(text.matches("findings: ").count(), 1, "{text}");
    let text = printed(&["stats", RPING, "--stream", "0", "--json"]);
    assert!(text.lines().count() == 1 && text.contains("\"kind\":\"connection\""), "{text}");
}

/// The rejected connection has no FPDUs.
#[test]
fn stats_without_fpdus_have_a_heading_for_the_totals() {
    let text = printed(&["stats", "reject-mpa1.pcap"]);
    assert!(text.contains("\n\ntotal  FPDUs: 0\n  findings: "), "{text}");
}

#[test]
fn ladder_draws_the_connection() {
    insta::assert_snapshot!(printed(&["ladder", RPING, "--rows", "12", "--width", "90"]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ladder.svg");
    assert_eq!(printed(&["ladder", RPING, "-o", file.to_str().unwrap()]), "");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg "));
}

/// The ladder shows the same error as `weft dissect` shows for frame 13. tshark prints the same
/// three names.
#[test]
fn ladder_names_the_error_of_a_terminate() {
    let ladder = printed(&["ladder", TERMINATE]);
    let row = ladder.lines().find(|line| line.contains("Terminate")).unwrap();
    assert!(row.contains(" Terminate  DDP / Tagged Buffer Error / Base or bounds violation ─┤"), "{ladder}");
}

/// In the ladder, a note has the time of its frame. The units (FPDUs and start-up frames) of a
/// frame come before the FIN of this frame.
#[test]
fn ladder_has_the_order_of_the_wire() {
    for capture in ["abort-after-write.pcap", "probe-ops.pcap", TERMINATE] {
        let times = printed(&["dissect", capture, "-T", "fields", "-e", "frame.number", "-e", "frame.time_relative"]);
        let times: std::collections::BTreeMap<&str, f64> = times
            .lines()
            .map(|line| line.split_once('\t').unwrap())
            .map(|(frame, time)| (frame, time.parse().unwrap()))
            .collect();
        let ladder = printed(&["ladder", capture]);
        let rows: Vec<(&str, &str, &str)> = ladder
            .lines()
            .skip(2)
            .filter_map(|line| {
                let (time, rest) = line.trim_start().split_once(' ')?;
                let (frame, rest) = rest.trim_start().split_once(' ')?;
                Some((time, frame, rest))
            })
            .collect();
        let begin = times[rows[0].1];
        let mut notes = 0;
        for (at, (time, frame, rest)) in rows.iter().enumerate() {
            if rest.contains('▌') {
                let expected = (times[frame] - begin) * 1e3;
                assert!((time.parse::<f64>().unwrap() - expected).abs() < 0.001, "{capture}: {time} {frame} {rest}");
                notes += 1;
            }
            if rest.contains(" FIN ") {
                assert!(rows.iter().skip(at + 1).all(|(_, other, _)| other != frame), "{capture}: {frame}");
            }
        }
        assert!(notes > 0, "{capture}");
    }
}

#[test]
fn follow_shows_messages_and_gives_octets() {
    insta::assert_snapshot!(printed(&["follow", TERMINATE]));
    let payload = weft(&["follow", TERMINATE, "--direction", "0", "--what", "payload", "--raw"]).stdout;
    assert_eq!(payload.len(), 16 + 200);
    assert!(payload[16..].starts_with(b"rdma-ping-0: ABC"));
    let octets = weft(&["follow", TERMINATE, "--direction", "1", "--what", "octets", "--raw"]).stdout;
    assert!(octets.starts_with(b"MPA ID Rep Frame"));
}

#[test]
fn lint_groups_findings_and_sets_its_exit_code() {
    let output = weft(&["lint", "host-matrix.pcap", "--level", "error"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("error DDP-4.1-12  MUST (ddp 4.1)  1 finding\n  DV is 01b for the IETF version\n    frame 453, "),
        "{text}"
    );
    let line = text.lines().find(|line| line.starts_with("    frame 453, ")).unwrap();
    let fields = printed(&[
        "dissect",
        "host-matrix.pcap",
        "-Y",
        "frame.number == 453",
        "-T",
        "fields",
        "-e",
        "tcp.stream",
        "-e",
        "ip.src",
        "-e",
        "tcp.srcport",
        "-e",
        "ip.dst",
        "-e",
        "tcp.dstport",
    ]);
    let [stream, src, src_port, dst, dst_port] = fields.trim_end().split('\t').collect::<Vec<_>>()[..] else {
        panic!("{fields}")
    };
    let begin =
        format!("    frame 453, byte 56, stream {stream}, sent by {src}:{src_port} to {dst}:{dst_port}: expected ");
    assert!(line.starts_with(&begin), "{line}");
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("host-matrix.pcap: ") && last.ends_with(" notes not shown: use --level note)"), "{last}");

    let output = weft(&["lint", RPING]);
    assert_eq!(output.status.code(), Some(0));
    let last = String::from_utf8(output.stdout).unwrap().lines().last().unwrap().to_owned();
    assert!(last.starts_with("rping-crc.pcap: 0 errors, 0 warnings, "), "{last}");

    let output = weft(&["lint", "host-matrix.pcap", "--json"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, findings) = objects.split_last().unwrap();
    let errors = findings.iter().filter(|finding| finding["severity"] == "error").count();
    assert!(findings.iter().all(|finding| finding["src"].is_string() && finding["dst"].is_string()), "{findings:?}");
    assert_eq!((summary["kind"].as_str(), summary["error"].as_u64()), (Some("summary"), Some(errors as u64)));
}

#[test]
fn a_capture_goes_to_standard_output() {
    let output = weft(&["dissect", RPING, "-Y", "iwarp_rdma.rr", "-w", "-"]);
    assert!(output.status.success() && output.stdout.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, format!("weft: {RPING}: 50 frames of 1 TCP connection written, 0 with findings as comments\n"));
}

#[test]
fn text_is_in_the_order_of_frames_and_findings_name_theirs() {
    let text = printed(&["dissect", "host-matrix.pcap"]);
    let (mut newest, mut findings) = (0, 0);
    for line in text.lines() {
        if let Some(finding) = line.strip_prefix("       frame ") {
            let frame: u64 = finding.split(' ').next().unwrap().parse().unwrap();
            assert!(finding.contains(" stream ") && frame >= newest, "{line}");
            newest = frame;
            findings += 1;
        } else if !line.starts_with("              ") {
            let frame: u64 = line.trim_start().split(' ').next().unwrap().parse().unwrap();
            assert!(frame >= newest, "{line}");
            newest = frame;
        }
    }
    assert!(findings > 0);
}

#[test]
fn a_terminate_shows_its_error() {
    let text = printed(&["dissect", TERMINATE]);
    assert!(text.contains("Terminate  DDP / Tagged Buffer Error / Base or bounds violation"), "{text}");
    assert!(text.contains("TCP connection begun by 10.1.0.2 with SYN"), "{text}");
    assert!(text.contains("TCP closed by 10.1.0.2 with FIN"), "{text}");
    let text = printed(&["dissect", TERMINATE, "-V", "-Y", "iwarp_rdma.terminate"]);
    assert!(text.contains("EType: 1 (Tagged Buffer Error)"), "{text}");
    assert!(text.contains("Error Code: 0x01 (Base or bounds violation)"), "{text}");
    assert!(text.contains("bytes after the Terminate header (not announced by HdrCt): 16 bytes"), "{text}");
    assert!(!text.contains("ULP payload:") && !text.contains("Marker status"), "{text}");
}

#[test]
fn findings_and_counts_go_with_the_filter() {
    let text = printed(&["dissect", TERMINATE, "-Y", "iwarp_rdma.opcode == Send"]);
    assert!(!text.contains("RDMAP-4.8"), "{text}");
    let message = String::from_utf8(weft(&["dissect", TERMINATE, "-Y", "mpa_request", "-q"]).stderr).unwrap();
    assert!(message.contains("mpa_request is not a field"), "{message}");
    for arguments in [
        vec!["dissect", RPING, "-Y", "iwarp_rdma.rr", "-q"],
        vec!["dissect", RPING, "-Y", "iwarp_rdma.rr", "-T", "text", "--summary"],
    ] {
        let message = String::from_utf8(weft(&arguments).stderr).unwrap();
        assert!(message.contains("; passing the filter: 0 start-up frames, 4 FPDUs: CRC 4 good"), "{message}");
    }
}

/// Columns show fields that only the monitor knows. If a column shows findings, the summary counts
/// them.
#[test]
fn columns_have_the_fields_of_the_monitor() {
    let ulp = printed(&["dissect", RPING, "-Y", "weft.ulp", "-T", "fields", "-e", "weft.ulp"]);
    assert!(!ulp.is_empty() && ulp.lines().all(|line| line == "rping"), "{ulp}");
    for (field, counted) in [("iwarp_mpa.crc", false), ("finding.requirement", true)] {
        let output = weft(&["dissect", "host-matrix.pcap", "-T", "fields", "-e", field, "--summary"]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("FPDUs: CRC "), "{message}");
        assert_eq!(message.contains("findings: "), counted, "{message}");
    }
}

#[test]
fn json_has_times_and_directions() {
    let text = printed(&["dissect", TERMINATE, "--json"]);
    let mut kinds = Vec::new();
    for line in text.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        kinds.push(object["kind"].as_str().unwrap().to_owned());
        assert!(object["time"].as_u64().is_some_and(|time| time > 1 << 60), "{line}");
        assert!(object["direction"].as_u64().is_some_and(|direction| direction < 2), "{line}");
    }
    // tshark lists these MPA frames for the capture. In weft's output, there are findings between
    // them.
    let is_finding = |kind: &String| kind == "finding";
    assert!(kinds.iter().any(is_finding), "{text}");
    kinds.retain(|kind| !is_finding(kind));
    assert_eq!(kinds, ["mpa_request", "mpa_reply", "fpdu", "fpdu", "fpdu", "fpdu"]);
}

#[test]
fn lint_takes_several_captures_and_the_worst_counts() {
    let output = weft(&["lint", RPING, "host-matrix.pcap"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("rping-crc.pcap:\n") && text.contains("\nhost-matrix.pcap:\n"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    let output = weft(&["lint", "none.pcap", "host-matrix.pcap", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let lines = String::from_utf8(output.stdout).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["requirements"]["DDP-4.1-12"], 1);
    assert!(lines.lines().all(|line| line.contains("\"file\":\"host-matrix.pcap\"")), "{lines}");
}
