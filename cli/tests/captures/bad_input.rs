//! If weft cannot use its input, it prints one line with the remedy on standard error, and exits
//! with the documented exit code.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn weft(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Returns the exit code and the lines on standard error.
fn outcome(arguments: &[&str]) -> (i32, Vec<String>) {
    let output = weft(arguments).output().unwrap();
    let lines = String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    (output.status.code().unwrap(), lines)
}

fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/rping-crc.pcap")
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, octets: &[u8]) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, octets).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Runs each command that reads captures on `file`. Checks that the command exits with code 2 and
/// prints one line, which ends with `ending`.
#[track_caller]
fn refused(file: &str, ending: &str) {
    for command in ["dissect", "lint", "stats", "ladder", "follow"] {
        assert_eq!(outcome(&[command, file]), (2, vec![format!("weft: {file}: {ending}")]), "{command}");
    }
    assert_eq!(outcome(&["explain", file, "1"]), (2, vec![format!("weft: {file}: {ending}")]));
}

#[test]
fn an_empty_file() {
    let folder = Folder::new();
    refused(&folder.file("empty.pcap", b""), "is empty; a capture file has at least a header");
}

#[test]
fn a_text_file() {
    let folder = Folder::new();
    let ending = "is not a capture that weft reads (first bytes: 48 65 6c 6c 6f 2c 20 77); weft reads pcap, pcapng, \
                  snoop, netmon and ERF, plain or compressed with gzip, zstd, xz, bzip2 or lz4";
    refused(&folder.file("notes.txt", b"Hello, world, this is no capture.\n"), ending);
}

#[test]
fn a_missing_file() {
    refused("no/such/file.pcap", "there is no such file");
}

#[test]
fn a_directory() {
    let folder = Folder::new();
    let path = folder.0.path().to_str().unwrap();
    for command in ["dissect", "stats", "ladder", "follow"] {
        let line = format!("weft: {path}: is a directory; pass the path of a capture file");
        assert_eq!(outcome(&[command, path]), (2, vec![line]), "{command}");
    }
}

/// `weft lint` accepts folders.
#[test]
fn lint_of_a_folder_without_captures() {
    let folder = Folder::new();
    let path = folder.0.path().to_str().unwrap();
    folder.file("notes.txt", b"no capture");
    let why = "the folder contains no capture (no file with one of the endings .pcap, .pcapng, .cap, .snoop, .erf)";
    let line = format!("weft: {path}: {why}");
    assert_eq!(outcome(&["lint", path]), (2, vec![line.clone()]));
    assert_eq!(outcome(&["lint", "--merge", path, capture().to_str().unwrap()]), (2, vec![line]));
}

#[test]
fn a_folder_of_captures_is_linted_by_name() {
    let folder = Folder::new();
    let octets = fs::read(capture()).unwrap();
    for name in ["b.pcap", "a.pcap", "c.cap.xz", "notes.txt"] {
        folder.file(name, &octets);
    }
    let output = weft(&["lint", folder.0.path().to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // The line before the findings of a capture is its path and a colon.
    let heads = text.lines().filter_map(|line| line.strip_suffix(':')).filter_map(|path| path.rsplit('/').next());
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(heads.collect::<Vec<&str>>(), ["a.pcap", "b.pcap", "c.cap.xz"], "{text}");
    assert!(!text.contains("notes.txt"), "{text}");
}

/// A file name can contain control characters, and a terminal would execute them.
#[test]
fn control_characters_of_a_file_name_are_shown() {
    let folder = Folder::new();
    let file = folder.file("a\u{1b}[2J.pcap", &fs::read(capture()).unwrap());
    for arguments in [&["lint", &file][..], &["stats", &file], &["dissect", &file, "-q"], &["lint", "no\u{1b}[2Jfile"]]
    {
        let output = weft(arguments).stderr(Stdio::piped()).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!text.contains('\u{1b}'), "{arguments:?}: {text:?}");
    }
    let (_, lines) = outcome(&["lint", "no\u{1b}[2Jfile"]);
    assert_eq!(lines, ["weft: no\\x1b[2Jfile: there is no such file"]);
}

#[test]
fn a_filter_that_nothing_passes_is_reported() {
    let file = capture();
    let file = file.to_str().unwrap();
    let line = format!("weft: {file}: no unit or frame passes the filter");
    for more in [&[][..], &["--json"], &["-T", "fields", "-e", "frame.number"], &["-x", "-T", "text"]] {
        let arguments = [&["dissect", file, "-Y", "frame.number == 9999"], more].concat();
        assert_eq!(outcome(&arguments), (0, vec![line.clone()]), "{arguments:?}");
    }
    assert_eq!(outcome(&["dissect", file, "-Y", "frame.number == 6"]), (0, Vec::new()));
}

/// `/proc` exists, but nobody can create a file in it.
#[test]
fn a_folder_that_takes_no_files_is_not_called_missing() {
    let file = capture();
    let file = file.to_str().unwrap();
    let write = |path: &str| outcome(&["dissect", file, "-w", path]);
    assert_eq!(
        write("/proc/x"),
        (2, vec!["weft: /proc/x: cannot be written: its folder does not accept files".to_owned()])
    );
    assert_eq!(write("/no/x"), (2, vec!["weft: /no/x: cannot be written: its folder does not exist".to_owned()]));
}

/// `weft follow -` reads a capture that never ends. The command stops when the reader of its output
/// goes away, as in `weft follow - | head`.
#[test]
fn follow_stops_when_its_reader_goes_away() {
    let octets = fs::read(capture()).unwrap();
    let (head, frames) = octets.split_at(24);
    let mut command = weft(&["follow", "-"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut follow = command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    let mut input = follow.stdin.take().unwrap();
    input.write_all(head).unwrap();
    // Write the capture until its reader ends.
    while input.write_all(frames).is_ok() {}
    assert_eq!(follow.wait().unwrap().code(), Some(0));
}

#[test]
fn a_link_type_that_is_not_known() {
    let folder = Folder::new();
    let mut octets = fs::read(capture()).unwrap();
    octets[20] = 147;
    let ending =
        "cannot read any frame: link type 147 is not supported; docs/captures.md lists the supported link types";
    let file = folder.file("user0.pcap", &octets);
    assert_eq!(outcome(&["dissect", &file]), (2, vec![format!("weft: {file}: {ending}")]));
}

#[test]
fn a_damaged_tail_is_a_note() {
    let folder = Folder::new();
    let octets = fs::read(capture()).unwrap();
    let file = folder.file("cut.pcap", &octets[..octets.len() - 10]);
    let (code, lines) = outcome(&["dissect", &file]);
    assert_eq!((code, lines.len()), (0, 1), "{lines:?}");
    assert!(lines[0].contains("the capture is truncated: the record at byte"), "{lines:?}");
}

#[test]
fn a_truncated_pcapng_block_is_a_note_and_a_capture_of_nothing_else_is_refused() {
    let folder = Folder::new();
    let full = folder.0.path().join("full.pcapng");
    let made = weft(&["dissect", capture().to_str().unwrap(), "-w", full.to_str().unwrap()]).status().unwrap();
    assert!(made.success());
    let octets = fs::read(&full).unwrap();

    let file = folder.file("cut.pcapng", &octets[..octets.len() - 10]);
    let (code, lines) = outcome(&["dissect", &file]);
    assert_eq!((code, lines.len()), (0, 1), "{lines:?}");
    assert!(lines[0].contains("truncated") && lines[0].contains("after frame 51"), "{lines:?}");

    let file = folder.file("head.pcapng", &octets[..20]);
    let (code, lines) = outcome(&["dissect", &file]);
    assert_eq!((code, lines.len()), (2, 1), "{lines:?}");
    assert!(lines[0].contains("truncated"), "{lines:?}");
}

#[test]
fn a_filter_with_a_typo() {
    let file = capture();
    let file = file.to_str().unwrap();
    let message = "weft: filter, column 1: iwarp_mpa.ulpdulenght is not a field or protocol; did you mean \
                   iwarp_mpa.ulpdulength?";
    assert_eq!(outcome(&["dissect", file, "-Y", "iwarp_mpa.ulpdulenght > 3"]), (2, vec![message.to_owned()]));
    let message = "weft: -e: iwarp_rdma.opcod is not a field or protocol; did you mean iwarp_rdma.opcode?";
    assert_eq!(outcome(&["dissect", file, "-T", "fields", "-e", "iwarp_rdma.opcod"]), (2, vec![message.to_owned()]));
}

#[test]
fn options_that_do_not_go_together() {
    let file = capture();
    let file = file.to_str().unwrap();
    for (arguments, message) in [
        (vec!["-e", "frame.number"], "-e needs -T fields, -T json or -T ek"),
        (vec!["-E", "header=y"], "-E needs -T fields"),
        (vec!["-T", "fields"], "-T fields needs -e FIELD for each column; -G fields lists all fields"),
        (vec!["-T", "fields", "-e", "frame.number", "-E", "header=x"], "-E: header must be y or n, not \"x\""),
    ] {
        let mut all = vec!["dissect", file];
        all.extend(arguments);
        assert_eq!(outcome(&all), (2, vec![format!("weft: {message}")]));
    }
}

#[test]
fn a_frame_or_connection_that_is_not_there() {
    let file = capture();
    let file = file.to_str().unwrap();
    let (code, lines) = outcome(&["explain", file, "99"]);
    assert_eq!((code, lines), (2, vec![format!("weft: {file}: there is no frame 99; the last frame is 52")]));
    let (code, lines) = outcome(&["explain", file, "x"]);
    assert_eq!(code, 2);
    assert_eq!(lines[0], "error: invalid value 'x' for '<FRAME>': not the number of a frame, such as 12");
    for command in ["follow", "ladder", "stats"] {
        let (code, lines) = outcome(&[command, file, "--stream", "7"]);
        assert_eq!((code, lines), (2, vec![format!("weft: {file}: there is no TCP connection 7")]));
    }
}

#[test]
fn a_capture_that_would_be_written_over_itself() {
    let folder = Folder::new();
    let octets = fs::read(capture()).unwrap();
    let file = folder.file("own.pcap", &octets);
    let line = format!("weft: {file}: this file is the capture that weft reads; use another output file");
    assert_eq!(outcome(&["dissect", &file, "-w", &file]), (2, vec![line]));
    // This is a second name of the same file.
    let other = format!("{file}.too");
    fs::hard_link(&file, &other).unwrap();
    assert_eq!(outcome(&["dissect", &file, "-w", &other]).0, 2);
    let given = weft(&["dissect", "-", "-w", &file]).stdin(fs::File::open(&file).unwrap()).output().unwrap();
    assert_eq!(given.status.code(), Some(2), "{given:?}");
    assert_eq!(fs::read(&file).unwrap(), octets);
}

#[test]
fn a_capture_with_nothing_to_judge_is_not_called_clean() {
    let file = capture().with_file_name("refused-no-listener.pcap");
    let file = file.to_str().unwrap();
    let line = format!(
        "weft: {file}: nothing to judge, because the capture has no iWARP, SDP or port mapper; it has \
         1 TCP connection, 2 other frames (2 ARP)"
    );
    assert_eq!(outcome(&["lint", file]), (2, vec![line]));
    let json = weft(&["lint", "--json", file]).output().unwrap();
    assert_eq!(json.status.code(), Some(2));
    assert!(String::from_utf8(json.stdout).unwrap().contains("\"judged\":false"));
}

/// Makes a capture of IP packets (link type 101). Each item of `packets` has the IP protocol and
/// the payload.
fn of_packets(packets: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut octets = [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 10], &[1, 0, 101, 0, 0, 0]].concat();
    for (protocol, payload) in packets {
        let length = u8::try_from(20 + payload.len()).unwrap();
        let ip = [0x45, 0, 0, length, 0, 0, 0x40, 0, 64, *protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        let lengths = [length, 0, 0, 0, length, 0, 0, 0];
        octets.extend([&[0; 8][..], &lengths, &ip, payload].concat());
    }
    octets
}

/// Returns two segments of a connection to this port: the SYN, and a segment with `octets`.
fn to_port(port: u16, octets: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let [high, low] = port.to_be_bytes();
    let head = |seq: u8, flags: u8| [0xc3, 0x50, high, low, 0, 0, 0, seq, 0, 0, 0, 0, 0x50, flags, 4, 0, 0, 0, 0, 0];
    vec![(6, head(0, 2).to_vec()), (6, [&head(1, 0x18)[..], octets].concat())]
}

/// Captures of other protocols that users confuse with iWARP.
#[test]
fn other_protocols_are_named_and_not_called_clean() {
    // An RDMA Write of RoCE v2. It has a UDP header with port 4791, the headers BTH and RETH, and
    // data.
    let roce = [&[0xc0, 0x00, 0x12, 0xb7, 0, 56, 0, 0, 10, 0x40, 0xff, 0xff, 0, 0, 0, 7][..], &[0; 40]].concat();
    // RFC 8446, B.3: a TLS handshake record with a ClientHello.
    let tls = [&[22, 3, 1, 0, 44, 1, 0, 0, 40, 3, 3][..], &[7; 38]].concat();
    // RFC 7143, 11.12: an iSCSI Login Request.
    let iscsi = [&[0x43, 0x87, 0, 0][..], &[0; 44]].concat();
    // RFC 1035, 4.1: a DNS query. Its source port, 3935, is the port of SDP's port mapper.
    let dns =
        [&[0x0f, 0x5f, 0, 53, 0, 37, 0, 0, 0x3f, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\x07example\0\0\x01\0\x01"];
    let folder = Folder::new();
    for (name, packets, has) in [
        ("dns.pcap", vec![(17, dns.concat())], "1 UDP datagram (1 DNS)"),
        ("roce.pcap", vec![(17, roce)], "1 UDP datagram (1 RoCE v2)"),
        ("tls.pcap", to_port(7174, &tls), "1 TCP connection (1 TLS)"),
        ("iscsi.pcap", to_port(3260, &iscsi), "1 TCP connection (1 iSCSI)"),
        ("none.pcap", Vec::new(), "nothing"),
    ] {
        let file = folder.file(name, &of_packets(&packets));
        let none = format!("weft: {file}: the file ends after its header, without any frame");
        let none = packets.is_empty().then_some(none);
        let why = "nothing to judge, because the capture has no iWARP, SDP or port mapper";
        let line = format!("weft: {file}: {why}; it has {has}");
        let lines: Vec<String> = none.into_iter().chain([line]).collect();
        assert_eq!(outcome(&["lint", &file]), (2, lines), "{name}");
    }
}

/// A capture has one start-up frame with a wrong key. weft does not read this frame as iWARP, but
/// reports a finding. So the capture counts as judged.
#[test]
fn a_capture_with_a_finding_has_been_judged() {
    let octets = fs::read(capture().with_file_name("rping-crc.pcap")).unwrap();
    let key = octets.windows(16).position(|octets| octets == b"MPA ID Req Frame").unwrap();
    // Keep the header of the file and the records up to the record of the Request.
    let mut end = 24;
    while end <= key {
        end += 16 + u32::from_le_bytes(octets[end + 8..end + 12].try_into().unwrap()) as usize;
    }
    let mut changed = octets[..end].to_vec();
    changed[key + 7] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.pcap");
    fs::write(&file, changed).unwrap();
    assert_eq!(outcome(&["lint", file.to_str().unwrap()]), (1, vec![]));
}

#[test]
fn a_reader_that_goes_away() {
    let file = capture();
    // The test closes the reading end of the pipe before weft writes the first byte. So the result
    // does not depend on the buffer of the pipe.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = weft(&["dissect", "-V", file.to_str().unwrap()]).stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let lines = String::from_utf8(output.stderr).unwrap();
    assert_eq!(lines, "weft: stopped, because the reader closed the output\n");
}

/// The exit code of `lint` depends on the captures only, even if nobody reads its output.
#[test]
fn a_reader_that_goes_away_does_not_change_the_verdict() {
    let file = capture().with_file_name("host-matrix.pcap");
    for more in [&[][..], &["--json"], &["--all", "--level", "note"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let arguments = [&["lint", file.to_str().unwrap()], more].concat();
        let output = weft(&arguments).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{more:?}");
    }
}

/// Some characters change the direction of later text in a terminal. weft escapes them in every
/// message.
#[test]
fn bidirectional_controls_are_escapes() {
    let name = "a\u{202e}b";
    for arguments in [&["lint", name][..], &["dissect", "--color", name, "x"], &[name], &["explain", "x", name]] {
        let output = weft(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains("\\u{202e}") && !text.contains('\u{202e}'), "{text}");
    }
}

/// `WEFT_LOG` has an invalid level. The log library would treat this level as the name of a module,
/// and disable the log of all other modules.
#[test]
fn a_log_level_that_is_none_is_refused() {
    let file = capture();
    let lint = |level: &str| {
        let output = weft(&["lint", file.to_str().unwrap()]).env("WEFT_LOG", level).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let expected = "weft: WEFT_LOG: \"warning\" is not a level; use one of off, error, warn, info, debug, trace, or \
                    MODULE=LEVEL\n";
    assert_eq!(lint("warning"), (Some(2), expected.to_owned()));
    assert_eq!(lint("warn"), (Some(0), String::new()));
}

/// A user types the beginning of a name. weft suggests the complete name, even if the typed text is
/// more similar to another, shorter name.
#[test]
fn the_beginning_of_a_name_is_likened_to_it() {
    let file = capture();
    let (code, lines) = outcome(&["dissect", file.to_str().unwrap(), "-Y", "iwarp_rdma.opcode == Term"]);
    assert!(code == 2 && lines[0].ends_with("the nearest name of a value is \"Terminate\""), "{lines:?}");
}

#[test]
fn a_capture_without_frames_or_with_half_a_header() {
    let folder = Folder::new();
    let octets = fs::read(capture()).unwrap();
    let file = folder.file("header.pcap", &octets[..24]);
    let line = format!("weft: {file}: the file ends after its header, without any frame");
    assert_eq!(outcome(&["dissect", &file]), (0, vec![line]));
    refused(&folder.file("half.pcap", &octets[..12]), "ends inside the pcap header, which has 24 bytes");
}

#[test]
fn a_capture_without_iwarp_is_reported_at_the_end() {
    let file = capture().with_file_name("refused-no-listener.pcap");
    let file = file.to_str().unwrap();
    let line = format!("weft: {file}: the capture has no iWARP or SDP: 4 frames, 1 TCP connection, which was reset");
    assert_eq!(outcome(&["dissect", file]), (0, vec![line]));
}

#[test]
fn options_that_contradict_each_other_name_the_way_out() {
    let file = capture();
    let file = file.to_str().unwrap();
    for (arguments, words) in [
        (&["--json", "-V"][..], "omit -V"),
        (&["--json", "-x"], "omit --json"),
        (&["--json", "-T", "json"], "use only one option"),
        (&["-w", "-", "--json"], "to print, run weft a second time without -w"),
        (&["-w", "-", "-V"], "omit them"),
        (&["-q", "--json"], "use --summary"),
    ] {
        let (code, lines) = outcome(&[&["dissect", file], arguments].concat());
        assert!(code == 2 && lines.len() == 1 && lines[0].contains(words), "{lines:?}");
    }
}

#[test]
fn words_that_a_field_never_is() {
    let file = capture();
    let message = "weft: filter, column 15: crc_status is never \"goood\"; it is one of good, bad, unchecked, truncated, \
                   absent";
    let arguments = ["dissect", file.to_str().unwrap(), "-Y", "crc_status == goood"];
    assert_eq!(outcome(&arguments), (2, vec![message.to_owned()]));
}

/// `/dev/full` of Linux is a device without free space.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_line_and_no_panic() {
    let file = capture();
    let file = file.to_str().unwrap();
    let folder = Folder::new();
    let out = folder.0.path().to_str().unwrap();
    for arguments in [
        &["dissect", file][..],
        &["dissect", file, "--json"],
        &["dissect", file, "-T", "pdml"],
        &["dissect", file, "-w", "-"],
        &["lint", file],
        &["stats", file],
        &["follow", file],
        &["ladder", file],
        &["explain", file, "12"],
        &["--help"],
        &["dissect", "--help"],
        &["--version"],
        &["soak", "--over", "virtual", "--runs", "1"],
        &["test", "builtin", "mpa/7.1", "--tier", "smoke", "--out", out],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = weft(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), message.lines().count()), (Some(4), 1), "{arguments:?}: {message}");
        assert!(message.starts_with("weft: ") && message.contains("the disk is full"), "{message}");
    }
}
