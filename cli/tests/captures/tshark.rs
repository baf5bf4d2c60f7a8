//! Tests the options and fields of tshark in `weft dissect`: times, names, statistics, formats, and
//! the fields of headers.
//!
//! The expected values are read from the bytes of the captures, and from the stories of
//! `captures/causes/README.md`.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

const RPING: &str = "siw/rping-crc.pcap";
/// The server's window closes. Frames 31 to 52 are the client's probes, and the answers.
const ZERO_WINDOW: &str = "causes/zero-window.pcap";
/// From one frame on, no segment of the client arrives. Both endpoints retransmit.
const LOSS: &str = "causes/loss-gives-up.pcap";
const VLAN: &str = "causes/write-wrong-stag-vlan.pcap";

/// Runs `weft dissect` in the folder of the captures.
fn dissect(arguments: &[&str]) -> Output {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.arg("dissect").args(arguments).current_dir(captures).output().unwrap()
}

/// Runs `weft dissect`, which must succeed without a message. Returns its output.
fn printed(arguments: &[&str]) -> String {
    let output = dissect(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the message on standard error of a command that must fail.
fn refused(arguments: &[&str]) -> String {
    let output = dissect(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Prints fields of the frames that pass the filter. Returns one line for each frame, with blanks
/// between the fields.
fn fields(capture: &str, filter: &str, names: &[&str]) -> Vec<String> {
    let mut arguments = vec![capture, "-Y", filter, "-T", "fields", "-E", "separator=/s"];
    names.iter().for_each(|name| arguments.extend(["-e", name]));
    printed(&arguments).lines().map(str::to_owned).collect()
}

/// Returns the numbers of the frames that pass the filter.
fn frames(capture: &str, filter: &str) -> Vec<u64> {
    fields(capture, filter, &["frame.number"]).iter().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn link_and_ip_headers_have_fields() {
    let names = ["eth.src", "eth.dst", "eth.type", "ip.ttl", "ip.id", "ip.len", "ip.flags", "ip.checksum", "ip.proto"];
    let line = "52:54:00:00:00:02 52:54:00:00:00:01 0x0800 64 0x074c 76 0x02 0x1f5c 6";
    assert_eq!(fields(RPING, "frame.number == 6", &names), [line]);
    let vlan = ["vlan.id", "vlan.etype", "eth.type", "ip.ttl"];
    assert_eq!(fields(VLAN, "frame.number in {1, 3}", &vlan), ["230 0x0806 0x8100 ", "230 0x0800 0x8100 64"]);
    assert_eq!(frames(VLAN, "vlan.id == 230 && eth.dst == ff:ff:ff:ff:ff:ff"), [1]);
    assert_eq!(frames(RPING, "ip.ttl == 64 && ip.len == 76"), [6, 8]);
}

#[test]
fn tcp_headers_have_relative_numbers_and_scaled_windows() {
    let names = ["tcp.seq", "tcp.ack", "tcp.nxtseq", "tcp.flags", "tcp.window_size_value", "tcp.window_size"];
    // Both SYNs have the window scale option 7, and 501 * 128 is 64128.
    let opening = ["0 0 1 0x0002 64128 64128", "0 1 1 0x0012 11776 11776"];
    assert_eq!(fields(ZERO_WINDOW, "frame.number <= 2", &names), opening);
    let scaled = ["1 1 1 0x0010 501 64128", "1 1 25 0x0018 501 64128"];
    assert_eq!(fields(ZERO_WINDOW, "frame.number in {3, 4}", &names), scaled);
    let last = fields(ZERO_WINDOW, "frame.number == 53", &["tcp.seq", "tcp.ack", "tcp.flags.push", "tcp.flags.reset"]);
    assert_eq!(last, ["12945 1197 0 1"]);
    let absolute = ["-o", "tcp.relative_sequence_numbers:FALSE", "-T", "fields", "-e", "tcp.seq", "-e", "tcp.seq_raw"];
    let text = printed(&[&[ZERO_WINDOW, "-c", "1"][..], &absolute].concat());
    let (seq, raw) = text.trim_end().split_once('\t').unwrap();
    // The SYN has the sequence number 0x7f85c1c2.
    assert_eq!((seq, raw), ("2139472322", "2139472322"));
}

/// `captures/causes/README.md`: the client of `loss-gives-up` retransmits seven times. The server
/// sends its last message again, too.
#[test]
fn tcp_analysis_names_retransmissions_windows_and_probes() {
    assert_eq!(frames(LOSS, "tcp.analysis.retransmission && ip.src == 10.20.89.11"), [24, 27, 32, 35, 38, 41, 44]);
    assert_eq!(frames(LOSS, "tcp.analysis.retransmission && ip.src == 10.20.89.21"), [28, 30, 33, 36, 39, 42]);
    assert_eq!(frames(LOSS, "tcp.analysis.flags"), [24, 27, 28, 30, 32, 33, 35, 36, 38, 39, 41, 42, 44]);
    let odd: Vec<u64> = (31..=51).step_by(2).collect();
    let even: Vec<u64> = (30..=52).step_by(2).collect();
    assert_eq!(frames(ZERO_WINDOW, "tcp.analysis.keep_alive"), odd);
    assert_eq!(frames(ZERO_WINDOW, "tcp.analysis.zero_window"), even);
    assert_eq!(frames(ZERO_WINDOW, "tcp.analysis.keep_alive_ack"), even[1..]);
    assert_eq!(fields(ZERO_WINDOW, "frame.number == 30", &["tcp.analysis.zero_window"]), ["1"]);
}

/// Returns the numbers of the frames that have a line in the output without -T.
fn frames_of_lines(capture: &str, filter: &str) -> Vec<u64> {
    let text = printed(&[capture, "-Y", filter]);
    let mut numbers: Vec<u64> = text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    numbers.dedup();
    numbers
}

/// These frames have no message of iWARP, and still have a line.
#[test]
fn filters_about_headers_select_segments_without_units() {
    for (capture, filter) in [
        (LOSS, "tcp.analysis.retransmission"),
        (LOSS, "tcp.analysis.flags && ip.src == 10.20.89.21"),
        (ZERO_WINDOW, "tcp.analysis.zero_window"),
        (ZERO_WINDOW, "tcp.analysis.keep_alive"),
    ] {
        assert_eq!(frames_of_lines(capture, filter), frames(capture, filter), "{filter}");
    }
    // Frame 5 acknowledges the SYN-ACK. Frame 6 has the MPA Request, and no second line.
    let text = printed(&[RPING, "-Y", "frame.number in {5, 6}"]);
    assert!(text.contains("10.1.0.2:38499 → 10.1.0.1:7174  TCP ACK  0 bytes\n"), "{text}");
    assert!(text.contains("  MPA Request  Rev") && text.matches("TCP ACK").count() == 1, "{text}");
    // Filters that only select a connection show its units.
    assert!(!printed(&[RPING, "-Y", "tcp.port == 7174"]).contains("TCP ACK"));
    let output = dissect(&[ZERO_WINDOW, "--json", "-Y", "tcp.analysis.keep_alive"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{message}");
    assert!(message.contains("no unit passes the filter, but frames do; print frames with -T"), "{message}");
}

#[test]
fn times_are_dates_and_differences() {
    let names = ["frame.number", "frame.time_delta", "frame.time_delta_displayed"];
    let lines = ["4 0.010987000 0.000000000", "6 0.021464000 0.029439000", "7 0.011505000 0.011505000"];
    assert_eq!(fields(RPING, "frame.number in {4, 6, 7}", &names), lines);
    let time = fields(RPING, "frame.number == 6", &["frame.time"]);
    assert_eq!(time, ["Nov 21, 2026 21:41:58.907202000 UTC"]);
    let between = "frame.time > \"2026-11-21 21:41:58.9\" && frame.time < \"2026-11-21 21:41:58.95\"";
    assert_eq!(frames(RPING, between), [6, 7]);
    assert_eq!(frames(RPING, "frame.time_delta > 1"), [3]);
    assert!(refused(&[RPING, "-Y", "frame.time_delta_displayed > 1"]).contains("is a field of frames"));
}

#[test]
fn lines_have_the_form_of_time_that_t_names() {
    let filter = ["-Y", "frame.number in {6, 12}"];
    for (form, first, second) in [
        ("r", "2.141146", "2.248339"),
        ("ud", "2026-11-21 21:41:58.907202Z", "2026-11-21 21:41:59.014395Z"),
        ("u.3", "21:41:58.907Z", "21:41:59.014Z"),
        ("adoy", "2026/325 21:41:58.907202Z", "2026/325 21:41:59.014395Z"),
        ("e", "1795297318.907202", "1795297319.014395"),
        ("d", "0.021464", "0.041154"),
    ] {
        for format in [&[][..], &["-T", "text"]] {
            let text = printed(&[&[RPING, "-t", form], &filter[..], format].concat());
            let line = |what: &str| text.lines().find(|line| line.contains(what)).unwrap_or_default();
            for (line, time) in [(line("  MPA Request  Rev"), first), (line("  RDMA Read Request  QN"), second)] {
                assert!(line.contains(&format!(" {time} ")), "{form}: {text}");
            }
        }
    }
    let text = printed(&[&[RPING, "-t", "dd", "-T", "tabs"], &filter[..]].concat());
    let times: Vec<&str> = text.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert_eq!(times, ["0.000000", "0.107193"]);
    assert!(refused(&[RPING, "-t", "dd"]).contains("add -T text"));
    assert!(refused(&[RPING, "-t", "x"]).contains("use a, ad, adoy, d, dd, e, r, u, ud or udoy"));
}

/// Returns a copy of a pcap with microseconds as a pcap with nanoseconds. Each time is 7 ns later.
fn with_nanoseconds(capture: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures").join(capture);
    let mut octets = std::fs::read(path).unwrap();
    assert_eq!(octets[..4], 0xa1b2_c3d4_u32.to_le_bytes());
    octets[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    let mut at = 24;
    while at < octets.len() {
        let field = |at: usize| u32::from_le_bytes(*octets[at..].first_chunk().unwrap());
        let (microseconds, len) = (field(at + 4), field(at + 8) as usize);
        octets[at + 4..at + 8].copy_from_slice(&(microseconds * 1000 + 7).to_le_bytes());
        at += 16 + len;
    }
    octets
}

#[test]
fn times_have_the_decimals_of_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nanoseconds.pcap");
    std::fs::write(&path, with_nanoseconds(RPING)).unwrap();
    let capture = path.to_str().unwrap();
    let filter = ["-Y", "frame.number == 6"];
    for (form, time) in [
        ("r", "2.141146000"),
        ("ud", "2026-11-21 21:41:58.907202007Z"),
        ("a", "21:41:58.907202007Z"),
        ("e", "1795297318.907202007"),
        ("d", "0.021464000"),
        ("e.3", "1795297318.907"),
    ] {
        for format in [&[][..], &["-T", "text"], &["-T", "tabs"]] {
            let text = printed(&[&[capture, "-t", form], &filter[..], format].concat());
            let is_time = |part: &str| part == time || part.contains(&format!(" {time} "));
            assert!(text.split('\t').any(is_time), "{form}: {text}");
        }
    }
    // Without -t, the column has the decimals of the capture, and weft's own lines have 6.
    let column = ["-T", "fields", "-e", "_ws.col.Time"];
    assert_eq!(printed(&[&[capture], &filter[..], &column].concat()), "2.141146000\n");
    let line = printed(&[&[capture], &filter[..]].concat());
    assert!(line.contains(" 2.141146 "), "{line}");
    // In captures with several resolutions, each frame has its own.
    let several = printed(&[&[RPING, capture, "-c", "2"], &column[..]].concat());
    assert_eq!(several, "0.000000\n0.000000007\n");
}

#[test]
fn columns_are_fields_tabs_and_psml() {
    let lines = [
        "1\t0.000000\t52:54:00:00:00:02\tff:ff:ff:ff:ff:ff\tARP\t42\t",
        "3\t2.100720\t10.1.0.2\t10.1.0.1\tTCP\t74\tTCP SYN  0 bytes",
        "6\t2.141146\t10.1.0.2\t10.1.0.1\tMPA\t90\tMPA Request  Rev 2 C S  PD_Length 4  IRD 1  ORD 1",
        "10\t2.204608\t10.1.0.2\t10.1.0.1\tDDP/RDMA\t106\tSend  QN 0 MSN 1 MO 0  16 bytes",
    ];
    let filter = ["-Y", "frame.number in {1, 3, 6, 10}"];
    let text = printed(&[&[RPING, "-T", "tabs"], &filter[..]].concat());
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    let names = ["_ws.col.No.", "_ws.col.Source", "_ws.col.Protocol", "_ws.col.def_dst", "_ws.col.packet_length"];
    let startup = fields(RPING, "_ws.col.Info contains \"IRD 1\" && _ws.col.protocol == MPA", &names);
    assert_eq!(startup, ["6 10.1.0.2 MPA 10.1.0.1 90", "8 10.1.0.1 MPA 10.1.0.2 90"]);
    // A unit has columns, too.
    let unit = printed(&[RPING, "-Y", "_ws.col.Info contains \"MPA Request\""]);
    assert!(unit.contains("MPA Request  Rev") && !unit.contains("MPA Reply  Rev"), "{unit}");
    let xml = printed(&[RPING, "-T", "psml", "-Y", "frame.number == 6"]);
    assert!(xml.contains("<section>No.</section>\n<section>Time</section>\n<section>Source</section>"), "{xml}");
    assert!(xml.contains("<packet>\n<section>6</section>\n<section>2.141146</section>"), "{xml}");
    assert!(xml.ends_with("</packet>\n\n</psml>\n"), "{xml}");
}

#[test]
fn ek_has_two_lines_for_each_frame() {
    let filter = ["-T", "ek", "-Y", "frame.number == 6"];
    let chosen = ["-e", "frame.number", "-e", "ip.src", "-e", "tcp.seq", "-e", "tcp.urgent_pointer"];
    let text = printed(&[&[RPING], &filter[..], &chosen].concat());
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let layers = json!({"frame_number": ["6"], "ip_src": ["10.1.0.2"], "tcp_seq": ["1"], "tcp_urgent_pointer": ["0"]});
    let index = json!({"index": {"_index": "packets-2026-11-21"}});
    assert_eq!(lines, [index, json!({"timestamp": "1795297318907", "layers": layers})]);
    let text = printed(&[&[RPING], &filter[..]].concat());
    let all: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(all["layers"]["tcp"]["tcp_tcp_srcport"], "38499");
    assert_eq!(all["layers"]["iwarp_mpa_req"]["iwarp_mpa_req_iwarp_mpa_rev"], "2");
}

/// tshark's dissector follows RFC 5044, so it has remarks about a Request of RFC 6581.
#[test]
fn remarks_of_the_mpa_dissector_are_fields() {
    let names = ["frame.number", "iwarp_mpa.res.not_set0", "iwarp_mpa.rev.not_set1", "iwarp_mpa.reject_bit_responder"];
    assert_eq!(fields(RPING, "iwarp_mpa.req || iwarp_mpa.rep", &names), ["6 1 1 ", "8   "]);
    let rejected = fields("siw/reject-mpa1.pcap", "iwarp_mpa.rep", &["iwarp_mpa.reject_bit_responder"]);
    assert_eq!(rejected, ["1"]);
    // Frame 12 has a Read Request: the RDMAP control octet 0x41, and four reserved octets.
    let names = ["iwarp_ddp.rsvdulp", "iwarp_ddp.control_field", "iwarp_rdma.control_field", "iwarp_rdma.term_ctrl"];
    assert_eq!(fields(RPING, "frame.number == 12", &names), ["4100000000 1 1 "]);
    let terminate = "siw/rping-size-mismatch-terminate.pcap";
    assert_eq!(frames(terminate, "iwarp_rdma.term_ctrl && iwarp_rdma.term_hdrct"), [13]);
}

/// The markers of this capture are right, so RESERVED of each is 0 (RFC 5044 section 4.3).
#[test]
fn reserved_octets_of_markers_are_a_field() {
    let capture = "osc/rfc-mix-m1c1-mtu1500.pcap";
    let lines = fields(capture, "marker_status == good && iwarp_mpa.markers", &["iwarp_mpa.marker_res"]);
    assert!(!lines.is_empty() && lines.iter().all(|line| line.split(',').all(|value| value == "0x0000")), "{lines:?}");
}

/// Returns the lines of a statistic with `mark`, with one blank between two words.
fn lines_with(text: &str, mark: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(mark));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn conversations_count_both_directions() {
    let text = printed(&[LOSS, "-q", "-z", "conv,tcp"]);
    assert!(text.contains("TCP Conversations\nFilter:<No Filter>\n"), "{text}");
    // The server sends 15 frames with 2394 bytes, and the client 30 frames with 17176 bytes.
    let ends = "10.20.89.11:60244 <-> 10.20.89.21:7174";
    let line = format!("{ends} 15 2394 bytes 30 17176 bytes 45 19570 bytes 0.000000000 41.3097");
    assert_eq!(lines_with(&text, "<->"), [line]);
    // The client sends the frames 20 and 21 with 1514 bytes each.
    let text = printed(&[LOSS, "-q", "-z", "conv,ip,tcp.len > 0 && frame.number in {20, 21}"]);
    let line = "10.20.89.11 <-> 10.20.89.21 0 0 bytes 2 3028 bytes 2 3028 bytes 2.401632000 0.0000";
    assert_eq!(lines_with(&text, "<->"), [line]);
    assert!(printed(&[LOSS, "-z", "conv,tcp", "-Y", "frame.number == 1"]).starts_with("     1      0.000000 "));
}

#[test]
fn intervals_have_counts_and_calculations() {
    let text = printed(&[ZERO_WINDOW, "-q", "-z", "io,stat,100,,SUM(tcp.len)tcp.len,MAX(frame.time_delta)frame"]);
    // The last five frames have 54 bytes each. The client sends 12944 bytes of payload, the server
    // 1196. The longest pauses are before the frames 47 and 51.
    let rows = ["| 0 <> 100 | 48 | 16756 | 14140 | 29.724941000 |", "| 100 <> 200 | 5 | 270 | 0 | 29.999944000 |"];
    assert_eq!(lines_with(&text, "<>"), rows);
    let text = printed(&[ZERO_WINDOW, "-Q", "-z", "io,stat,0,COUNT(tcp.port)frame.number == 1"]);
    assert_eq!(lines_with(&text, "<>"), ["| 0.000000 <> 170.006311 | 2 |"]);
    assert!(refused(&[LOSS, "-z", "io,stat,x"]).contains("use seconds, such as io,stat,0.5"));
    assert!(refused(&[LOSS, "-z", "io,stat,1,SUM(payload)payload"]).contains("needs a field with numbers or times"));
    assert!(refused(&[LOSS, "-z", "follow,tcp,ascii,0"]).contains("`weft follow FILE`"));
}

/// The capture has more than 40 frames, each in another microsecond. So the limit of 1,000,000 cells
/// is reached with 30,000 columns.
#[test]
fn a_statistic_with_too_many_cells_is_refused() {
    let statistic = format!("io,stat,0.000001{}", ",".repeat(30_000));
    let message = refused(&[LOSS, "-q", "-z", &statistic]);
    assert!(message.contains("more than 1000000 cells (33 intervals x 30000 columns in "), "{message}");
    assert!(message.contains("use a longer interval or fewer filters"), "{message}");
}

#[test]
fn names_come_from_a_hosts_file() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, "# lab\n10.1.0.1 server\n10.1.0.2\tclient other\n").unwrap();
    let hosts = hosts.to_str().unwrap();
    for format in [&[][..], &["-T", "text"]] {
        let text = printed(&[&[RPING, "-c", "6", "-N", "n", "-H", hosts], format].concat());
        assert!(text.contains("client:38499 → server:7174  MPA Request"), "{text}");
    }
    let text = printed(&[RPING, "-N", "n", "-H", hosts, "-q", "-z", "conv,tcp"]);
    assert!(lines_with(&text, "<->")[0].starts_with("client:38499 <-> server:7174 "), "{text}");
    let columns = ["-T", "fields", "-e", "_ws.col.Source", "-e", "ip.src", "-Y", "frame.number == 6"];
    assert_eq!(printed(&[&[RPING, "-N", "n", "-H", hosts], &columns[..]].concat()), "client\t10.1.0.2\n");
    assert!(refused(&[RPING, "-N", "n", "-H", RPING]).contains("-H siw/rping-crc.pcap: "));
    assert!(refused(&[RPING, "-N", "nN"]).contains("weft sends no DNS requests"));
}

#[test]
fn both_filters_of_two_passes_apply() {
    let lines = ["-T", "fields", "-e", "frame.number"];
    let text = printed(&[&[RPING, "-2", "-R", "frame.number < 20", "-Y", "iwarp_rdma.rr"], &lines[..]].concat());
    assert_eq!(text, "12\n");
    let counted = printed(&[RPING, "-2", "-R", "frame.number < 20", "-q", "-z", "io,stat,0"]);
    assert!(lines_with(&counted, "<>")[0].contains("| 19 |"), "{counted}");
    assert!(refused(&[RPING, "-R", "frame"]).contains("-2"));
}

#[test]
fn options_without_a_meaning_change_nothing() {
    let usual = printed(&[RPING, "-T", "text"]);
    for options in [
        &["-n", "-l"][..],
        &["-2"],
        &["--disable-protocol", "rpcordma", "--enable-protocol", "iwarp_mpa"],
        &["--disable-heuristic", "smb_direct_iwarp"],
        &["-o", "tcp.desegment_tcp_streams:TRUE", "-o", "ip.check_checksum:FALSE"],
        &["-u", "s", "--no-duplicate-keys"],
        &["--color", "never"],
    ] {
        assert_eq!(printed(&[&[RPING, "-T", "text"], options].concat()), usual, "{options:?}");
    }
    assert!(printed(&["-T", "text", "--color", "-r", "siw/host-matrix.pcap"]).contains('\x1b'));
    assert!(refused(&[RPING, "--disable-protocol", "iwarp_mpa"]).contains("weft always decodes this protocol"));
    assert!(refused(&[RPING, "-o", "gui.column.format:x"]).contains("weft cannot set gui.column.format"));
    let output = dissect(&[RPING, "-q", "-z", "io,stat,0", "-d", "tcp.port==7174,iwarp_mpa"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("weft detects MPA, DDP and RDMAP on any port"), "{message}");
}
