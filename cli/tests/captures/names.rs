//! Tests the names that `weft dissect -V` shows in messages of SDP and of its port mapper. The
//! tests check the names of types, flags, Modes, times, buffer lengths, and of the fields of
//! advertised buffers.
//!
//! The numbers of messages come from `captures/README.md`. The names come from the figures of
//! draft-pinkerton-iwarp-sdp-01. All section numbers refer to this draft.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Figure 3: the messages of SDP. weft uses the draft's names.
const MESSAGES: [(u8, &str); 18] = [
    (0x00, "Hello"),
    (0x01, "HelloAck"),
    (0x02, "DisConn"),
    (0x03, "AbortConn"),
    (0x04, "SendSm"),
    (0x05, "RdmaWrCompl"),
    (0x06, "RdmaRdCompl"),
    (0x07, "ModeChange"),
    (0x08, "SrcAvailCancel"),
    (0x09, "SinkAvailCancel"),
    (0x0a, "SinkCancelAck"),
    (0x0b, "ChRcvBuf"),
    (0x0c, "ChRcvBufAck"),
    (0x0d, "SuspComm"),
    (0x0e, "SuspCommAck"),
    (0xfd, "SinkAvail"),
    (0xfe, "SrcAvail"),
    (0xff, "Data"),
];

/// A folder with captures of synthetic streams. Other authors made them.
const STREAMS: &str = "dissector/tests/captures/streams";

/// The lines with fields in the output for a capture, each with the number of its occurrences.
type Lines = BTreeMap<String, usize>;

/// Returns the output of `weft dissect -V` for a capture in `folder`.
fn output(folder: &str, capture: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder).join(capture);
    let output = Command::new(env!("CARGO_BIN_EXE_weft")).args(["dissect", "-V"]).arg(&file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{capture}: {}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Returns the lines with fields of a capture in `folder`.
fn verbose(folder: &str, capture: &str) -> Lines {
    let mut lines = Lines::new();
    for line in output(folder, capture).lines() {
        *lines.entry(line.trim().to_owned()).or_default() += 1;
    }
    lines
}

/// Returns the values of a field, each with the number of its occurrences.
fn values<'l>(lines: &'l Lines, label: &str) -> BTreeMap<&'l str, usize> {
    let start = format!("{label}: ");
    lines.iter().filter_map(|(line, count)| Some((line.strip_prefix(&start)?, *count))).collect()
}

/// Asserts that each value of the field is one of these.
fn all_of(lines: &Lines, label: &str, known: &[String], capture: &str) {
    for (value, _) in values(lines, label) {
        assert!(known.iter().any(|known| known == value), "{capture}: {label}: {value}");
    }
}

/// Returns the message types as `-V` shows them: the number, and then the name in parentheses. 0x40
/// is an experimental type.
fn message_types() -> Vec<String> {
    MESSAGES.iter().chain(&[(0x40, "experimental")]).map(|(mid, name)| format!("{mid:#04x} ({name})")).collect()
}

/// Figure 4: the flags are in bits 0 to 2. A message without flags shows no name.
fn flags() -> Vec<String> {
    let names = |flags: u8| {
        let bits = [(1, "OOB_PRES"), (2, "OOB_PEND"), (4, "REQ_PIPE")];
        bits.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name).collect::<Vec<_>>().join(", ")
    };
    [String::from("0x00")].into_iter().chain((1..8).map(|flags| format!("{flags:#04x} ({})", names(flags)))).collect()
}

/// Figure 12 and section 6.3.8.1: the names of the Modes, and of the S flag.
fn modes() -> [Vec<String>; 2] {
    [
        &["0 (Buffered)", "1 (Combined)", "2 (Pipelined)"][..],
        &["no (receiver's receive half)", "yes (receiver's send half)"],
    ]
    .map(|names| names.iter().map(ToString::to_string).collect())
}

/// Sections 6.2.1, 6.2.2, 6.4.1 and 6.4.2: the lengths of receive buffers.
const LENGTHS: [&str; 5] = ["DesRemRcvSz", "LocalRcvSz", "ActRcvSz", "DesSz", "ActSz"];

/// Asserts that each type, flag, Mode, half of a connection and buffer length has a name.
fn has_names(lines: &Lines, capture: &str) {
    all_of(lines, "MID", &message_types(), capture);
    all_of(lines, "Flags", &flags(), capture);
    let [modes, halves] = modes();
    all_of(lines, "Mode", &modes, capture);
    all_of(lines, "S", &halves, capture);
    let count = |label: &str| values(lines, label).values().sum::<usize>();
    let messages = count("MID");
    assert!(messages > 0 && count("Flags") == messages && count("Bufs") == messages, "{capture}");
    let of = |name: &str| {
        let mids = values(lines, "MID");
        mids.iter().find(|(value, _)| value.ends_with(&format!("({name})"))).map_or(0, |(_, count)| *count)
    };
    for (label, message) in LENGTHS.into_iter().zip(["Hello", "Hello", "HelloAck", "ChRcvBuf", "ChRcvBufAck"]) {
        assert_eq!(count(label), of(message), "{capture}: a {message} has a {label}");
    }
    assert_eq!((count("Mode"), count("S")), (of("ModeChange"), of("ModeChange")), "{capture}");
}

/// A capture, the numbers of messages with some names, and pairs of a field and one of its values.
type Named<'a> = (&'a str, &'a [(&'a str, usize)], &'a [(&'a str, &'a str)]);

/// The captures are of an SDP peer that other authors wrote.
#[test]
fn sdp_messages_flags_modes_and_lengths_have_names() {
    // For each capture: the messages except Hello and HelloAck, and some fields, among them each
    // buffer length of the start-up.
    let captures: [Named; 5] = [
        (
            "cancel.pcap",
            &[("Data", 6), ("DisConn", 2), ("ModeChange", 1), ("SrcAvail", 1), ("SrcAvailCancel", 1), ("SendSm", 1)],
            &[("Mode", "2 (Pipelined)"), ("S", "no (receiver's receive half)"), ("LocalRcvSz", "4096")],
        ),
        ("mirrored.pcap", &[("Data", 5), ("DisConn", 2)], &[("Bufs", "3"), ("DesRemRcvSz", "4096")]),
        (
            "modes.pcap",
            &[("Data", 20), ("DisConn", 2), ("ModeChange", 4), ("SinkAvail", 13), ("SrcAvail", 1), ("RdmaRdCompl", 1)],
            // This capture passes through Combined, Pipelined, Combined and Buffered Mode, and has
            // one Out-Of-Band byte.
            &[
                ("Mode", "0 (Buffered)"),
                ("Mode", "1 (Combined)"),
                ("Mode", "2 (Pipelined)"),
                ("Flags", "0x01 (OOB_PRES)"),
                ("Flags", "0x02 (OOB_PEND)"),
                ("ActRcvSz", "4096"),
            ],
        ),
        (
            "suspend.pcap",
            &[("Data", 2), ("DisConn", 2), ("SuspComm", 1), ("SuspCommAck", 1)],
            &[("Constant2", "1"), ("ActRcvSz", "4096")],
        ),
        (
            "writes.pcap",
            &[("Data", 3), ("DisConn", 2), ("ModeChange", 1), ("RdmaWrCompl", 2), ("SinkAvail", 6)],
            &[("Mode", "2 (Pipelined)"), ("LocalRcvSz", "4096")],
        ),
    ];
    for (capture, messages, fields) in captures {
        let lines = verbose("captures/sdp", capture);
        has_names(&lines, capture);
        let mids = values(&lines, "MID");
        for (name, count) in messages {
            let found = mids.iter().find(|(value, _)| value.ends_with(&format!("({name})")));
            assert_eq!(found.map(|(_, count)| *count), Some(*count), "{capture}: {name}");
        }
        for (label, value) in fields {
            assert!(values(&lines, label).contains_key(value), "{capture}: {label}: {value}");
        }
    }
}

/// The synthetic streams contain features that the captures of the SDP peer do not have: every
/// message and flag, buffers that change their length, and Modes of both halves.
#[test]
fn rare_sdp_messages_have_names() {
    let capture = "legal-crc.pcapng.xz";
    let lines = verbose(STREAMS, capture);
    has_names(&lines, capture);
    let mids = values(&lines, "MID");
    for known in message_types() {
        assert!(mids.contains_key(known.as_str()), "{known} in {capture}: {mids:?}");
    }
    for label in LENGTHS {
        assert!(!values(&lines, label).is_empty(), "{label} in {capture}");
    }
    for (label, value) in [
        ("Flags", "0x03 (OOB_PRES, OOB_PEND)"),
        ("Flags", "0x04 (REQ_PIPE)"),
        ("Mode", "0 (Buffered)"),
        ("S", "yes (receiver's send half)"),
        ("DesSz", "50"),
        ("ActSz", "100"),
    ] {
        assert!(values(&lines, label).contains_key(value), "{label}: {value} in {capture}");
    }
}

/// Returns the extended headers of all messages of one type. An extended header is the fields after
/// the BSDH, which is the header of every SDP message.
fn extended_headers<'t>(text: &'t str, message: &str) -> BTreeSet<Vec<&'t str>> {
    let name = format!("({message})");
    let mut headers = BTreeSet::new();
    for rest in text.split("\n        SDP\n").skip(1) {
        let fields: Vec<&str> = rest.lines().map_while(|line| line.strip_prefix("            ")).collect();
        if fields.iter().any(|field| field.starts_with("MID: ") && field.ends_with(&name)) {
            headers.insert(fields.into_iter().skip_while(|field| !field.starts_with("MSeqAck: ")).skip(1).collect());
        }
    }
    headers
}

/// Figures 7 to 10 show the fields of messages that advertise a buffer, and of messages that report
/// a completed transfer. The expected values were read from the bytes of the captures without weft.
#[test]
fn advertised_buffers_have_their_length_stag_and_address() {
    /// The number of bytes, the STag, the address, and for a SinkAvail also NonDiscards.
    type Advert = (u32, u32, u64, Option<u32>);
    let captures: [(&str, &str, &[Advert]); 4] = [
        ("cancel.pcap", "SrcAvail", &[(9000, 0x003e_8200, 0x95_9434_e8ac, None)]),
        ("modes.pcap", "SrcAvail", &[(9000, 0x00d7_9900, 0xf3_a34a_a151, None)]),
        // One of the SinkAvails of each side.
        (
            "modes.pcap",
            "SinkAvail",
            &[(13_464, 0x00d7_a200, 0xa7_62a5_8ff6, Some(7)), (12_455, 0x0009_fd00, 0xd8_0a37_d5c6, Some(1))],
        ),
        (
            "writes.pcap",
            "SinkAvail",
            &[
                (8499, 0x00f2_f600, 0xa1_2eef_0dee, Some(0)),
                (22_748, 0x00f2_f700, 0xa0_65ff_a9d4, Some(0)),
                (6164, 0x00f2_f800, 0xbc_4e9e_fdef, Some(0)),
                (12_455, 0x00f2_f900, 0x51_9e5a_decf, Some(0)),
                (7960, 0x00f2_fa00, 0x1e_999a_c1af, Some(0)),
                (20_331, 0x00f2_fb00, 0x0f_9a18_a31e, Some(0)),
            ],
        ),
    ];
    for (capture, message, adverts) in captures {
        let text = output("captures/sdp", capture);
        let headers = extended_headers(&text, message);
        for (len, stag, va, non_discards) in adverts {
            let mut expected = vec![format!("Len: {len}"), format!("STag: {stag:#010x}"), format!("VA: {va:#018x}")];
            expected.extend(non_discards.map(|count| format!("NonDiscards: {count}")));
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            assert!(headers.contains(&expected), "{capture}: {message} {expected:?} in {headers:?}");
        }
    }
    // The lengths of the completed transfers equal the lengths of the buffers in the list above.
    for (capture, message, lengths) in
        [("writes.pcap", "RdmaWrCompl", &["Len: 8499", "Len: 6164"][..]), ("modes.pcap", "RdmaRdCompl", &["Len: 9000"])]
    {
        let text = output("captures/sdp", capture);
        let expected: BTreeSet<Vec<&str>> = lengths.iter().map(|len| vec![*len]).collect();
        assert_eq!(extended_headers(&text, message), expected, "{capture}: {message}");
    }
}

/// Section 7.3.1: the four types of messages have names, and PmTime is also shown as a time.
#[test]
fn port_mapper_messages_have_types_and_times_by_name() {
    let types: Vec<String> = ["0 (PMReq)", "1 (PMAccept)", "2 (PMAck)", "3 (PMDeny)"].map(String::from).to_vec();
    let iwpmd = verbose("captures/portmap", "iwpmd-two-daemons.pcap");
    all_of(&iwpmd, "MT", &types, "iwpmd");
    assert_eq!(values(&iwpmd, "MT").len(), 4, "iwpmd");
    assert_eq!(
        values(&iwpmd, "PmTime").into_iter().collect::<Vec<_>>(),
        [("0 (for one connection)", values(&iwpmd, "MT").values().sum())]
    );
    // Section 7.3.1.4: a PmTime up to 127 is in units of 250 ms, and a PmTime from 128 to 254 is in
    // seconds.
    let times = ["1: 250", "3: 750", "8: 2000", "9: 2250", "20: 5000", "40: 10000", "127: 31750", "254: 254000"];
    let streams = verbose(STREAMS, "legal-crc.pcapng.xz");
    all_of(&streams, "MT", &types, "streams");
    let mut numbers = BTreeMap::new();
    for (value, count) in values(&streams, "PmTime") {
        match value.parse::<u8>() {
            Ok(number) => assert_eq!(numbers.insert(number, count), None, "{number}"),
            Err(_) => assert!(["0 (for one connection)", "255 (permanently)"].contains(&value), "{value}"),
        }
    }
    assert!(values(&streams, "PmTime").contains_key("255 (permanently)"));
    let known: Vec<(u8, &str)> = times
        .iter()
        .map(|time| time.split_once(": ").map(|(number, time)| (number.parse().unwrap(), time)).unwrap())
        .collect();
    assert_eq!(
        numbers.keys().copied().collect::<Vec<_>>(),
        known.iter().map(|(number, _)| *number).collect::<Vec<_>>()
    );
    // weft shows each of these numbers with its time.
    let milliseconds = values(&streams, "PmTime in milliseconds");
    for (number, time) in known {
        assert_eq!(milliseconds.get(time), numbers.get(&number), "PmTime {number} is {time} ms");
    }
    assert_eq!(milliseconds.len(), numbers.len(), "{milliseconds:?}");
}
