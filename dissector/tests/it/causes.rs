//! Compares the diagnosis with the captures of `captures/causes`, whose causes are known. The
//! author of these captures did not know the code of the diagnosis.
//!
//! A diagnosis is *right* if the party at fault and the kind of the cause agree with `truth.json`.
//! It is *silent* if it names no party although `truth.json` names one. Otherwise it is *wrong*. A
//! diagnosis that makes a statement of `must_not` is wrong, too.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weft_dissector::diagnosis::{Cause, Culprit, Diagnosis, EndKind};

use crate::diagnosis::{Collected, read, read_some};

/// The causes that agree with the first words of `cause` in `truth.json`. The first row that fits
/// counts.
const CAUSES: &[(&str, &[Cause])] = &[
    ("No fault", &[Cause::None, Cause::Loss, Cause::Violations, Cause::OneDirection]),
    ("The server's buffer is smaller than the server advertised", &[Cause::OwnBuffer]),
    ("The client aborts the connection while", &[Cause::Reset]),
    ("The client sends no CRC", &[Cause::BadCrc]),
    ("The path changed the bytes", &[Cause::Damaged]),
    ("The client sends an FPDU with a wrong CRC", &[Cause::BadCrc]),
    ("A device in the network reset", &[Cause::ForeignReset]),
    ("RDMA Write with an STag", &[Cause::InvalidStag]),
    ("RDMA Read with an STag", &[Cause::InvalidStag]),
    ("Send with Invalidate of an STag", &[Cause::InvalidStag]),
    ("The server no longer answers", &[Cause::Silence]),
    ("The server's host or the path failed", &[Cause::Silence]),
    ("All segments from the client to the server are lost", &[Cause::PathLoss]),
    ("The path drops packets of 1500 bytes", &[Cause::MtuBlackHole]),
    ("A marker of the client has a wrong FPDUPTR", &[Cause::Markers]),
    ("The client sends no markers", &[Cause::Markers]),
    ("The server's application rejects", &[Cause::Rejected]),
    ("The client skips MSN", &[Cause::Message]),
    ("The client starts MPA on a port", &[Cause::PortDenied]),
    ("The port mapper denies SDP for port 5001", &[Cause::PortDenied]),
    ("The server never answers an RDMA Read Request", &[Cause::NoResponse]),
    ("The RDMA Read Response is longer", &[Cause::BeyondBuffer]),
    ("The server reads more bytes than its own", &[Cause::OwnReadRequest]),
    ("RDMA Read from a buffer without the right", &[Cause::AccessRights]),
    ("More outstanding RDMA Reads", &[Cause::ReadDepth]),
    ("The server does not answer the MPA Request", &[Cause::NoResponse]),
    ("The MPA Reply has revision 2", &[Cause::Startup]),
    ("The client's application aborts", &[Cause::Aborted]),
    ("The HelloAck of the server has MaxAdverts 0", &[Cause::Sdp]),
    ("SDP message of 1120 bytes", &[Cause::TooLong, Cause::Sdp]),
    ("Send of 1424 bytes to a peer", &[Cause::TooLong]),
    ("The Send is longer than the receive buffer", &[Cause::TooLong]),
    ("The server's host has lost the connection", &[Cause::LostState]),
    ("No answer to SYN", &[Cause::NoAnswer]),
    ("The server does not take data from TCP", &[Cause::ClosedWindow]),
    ("RDMA Write", &[Cause::BeyondBuffer]),
    ("RDMA Read", &[Cause::BeyondBuffer]),
];

/// Captures in which the diagnosis does not agree with `truth.json`, and the reason.
const DISAGREEMENTS: &[(&str, &str)] = &[
    ("fpdus-unaligned-healthy.pcap", "MPA-4.5-3 is a MUST: the FPDUs are a violation, although the end is orderly"),
    ("write-beyond-read-shows-size.pcap", "an earlier Read of 4096 bytes does not show that the buffer is not longer"),
];

/// The agreement of a diagnosis with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    Right,
    Silent,
    Wrong,
    /// The capture is in [`DISAGREEMENTS`].
    Disagreement,
}

/// One row of the table.
struct Row {
    file: String,
    agreement: Agreement,
    text: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/causes")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns whether the diagnosis makes a statement of `must_not`. Statements that the diagnosis
/// cannot make are not checked.
fn makes(diagnosis: &Diagnosis, statement: &str, client: &str, server: &str) -> bool {
    let culprit = diagnosis.culprit_end();
    let cause = diagnosis.cause;
    let is_network = diagnosis.culprit == Culprit::Network;
    let ended_by = diagnosis.ending.direction.map(|direction| diagnosis.ends[usize::from(direction)].as_str());
    let is_reset_by = |end: &str| diagnosis.ending.kind == EndKind::Reset && ended_by == Some(end);
    match statement {
        "The client is the culprit." => culprit == Some(client),
        "The server is the culprit." => culprit == Some(server),
        "The network is the culprit." => is_network,
        "The server reset the connection." => is_reset_by(server) && cause != Cause::ForeignReset,
        "The client reset the connection." => is_reset_by(client) && cause != Cause::ForeignReset,
        "The connection failed." => {
            !matches!(cause, Cause::None | Cause::Loss | Cause::Violations | Cause::OneDirection)
        }
        "A firewall sent the RST." => cause == Cause::ForeignReset,
        "The STag is wrong." | "The key is unknown." | "The STag had been invalidated." => cause == Cause::InvalidStag,
        "A marker is wrong." => cause == Cause::Markers,
        "The server rejected the connection." => cause == Cause::Rejected,
        _ if statement.contains("CRC") => cause == Cause::BadCrc && !statement.contains("not negotiated"),
        _ if statement.contains("network") => is_network,
        "All segments of the client are lost." => cause == Cause::PathLoss,
        _ if statement.contains("segment") && statement.contains("lost") => is_network && cause != Cause::PathLoss,
        _ if statement.contains("Read Request goes beyond") => {
            cause == Cause::BeyondBuffer && diagnosis.headline.contains("Read Request")
        }
        _ if statement.contains("beyond") => cause == Cause::BeyondBuffer,
        _ => false,
    }
}

/// Returns whether the chain of the diagnosis has the frame of the cause. A healthy connection, and
/// a capture without this frame, have none.
fn has_first_frame(entry: &Value, diagnosis: &Diagnosis) -> bool {
    let also = entry["first_frame_also"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let frames: Vec<u64> = entry["first_frame"].as_u64().into_iter().chain(also).collect();
    let has = |frame: &u64| diagnosis.chain.iter().any(|link| link.frame.is_some_and(|it| it == (*frame).into()));
    frames.is_empty() || frames.iter().any(has)
}

fn judge(entry: &Value) -> Row {
    let file = text(entry, "file").to_owned();
    let connection = &entry["connection"];
    let (initiator, client) = (text(connection, "initiator"), text(connection, "tcp_client"));
    let server = if initiator == client { text(connection, "responder") } else { initiator };
    let all = read(&folder().join(&file));
    let diagnosis = all.diagnoses.connections().find(|it| it.ends.iter().any(|end| end == client));
    let Some(diagnosis) = diagnosis else {
        let is_denied = all.diagnoses.exchanges().iter().any(|exchange| exchange.state == "denied");
        let is_right = is_denied && text(entry, "culprit") == "nobody";
        let agreement = if is_right { Agreement::Right } else { Agreement::Silent };
        let exchanges: Vec<String> = all.diagnoses.exchanges().iter().map(ToString::to_string).collect();
        return Row { file, agreement, text: format!("no diagnosis\n{}", exchanges.join("\n")) };
    };
    let expected = match text(entry, "culprit") {
        "network" => Some("network"),
        "nobody" => Some("nobody"),
        "unknown" => None,
        _ => entry["culprit_address"].as_str(),
    };
    let found = match diagnosis.culprit {
        Culprit::Network => Some("network"),
        Culprit::Nobody => Some("nobody"),
        Culprit::NotInCapture => None,
        Culprit::Both => Some("both"),
        Culprit::First | Culprit::Second => diagnosis.culprit_end(),
    };
    let words = text(entry, "cause");
    let row = CAUSES.iter().find(|(start, _)| words.starts_with(start));
    let is_cause = row.is_some_and(|(_, causes)| causes.contains(&diagnosis.cause));
    let statements = entry["must_not"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let false_ones: Vec<&str> = statements.filter(|it| makes(diagnosis, it, client, server)).collect();
    let agreement = match found {
        _ if !false_ones.is_empty() => Agreement::Wrong,
        found if found == expected && is_cause && has_first_frame(entry, diagnosis) => Agreement::Right,
        None => Agreement::Silent,
        Some(_) => Agreement::Wrong,
    };
    let is_disputed = DISAGREEMENTS.iter().any(|(name, _)| *name == file);
    let is_right = agreement == Agreement::Right;
    let agreement = if is_disputed && !is_right { Agreement::Disagreement } else { agreement };
    let (cause, culprit) = (diagnosis.cause, diagnosis.culprit);
    let expected = expected.unwrap_or("unknown");
    let text = format!("{cause:?} {culprit:?}; truth: {expected}, {words}; {false_ones:?}\n{diagnosis}");
    Row { file, agreement, text }
}

#[test]
fn the_diagnosis_agrees_with_the_known_causes() {
    let truth = fs::read_to_string(folder().join("truth.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    let entries = truth["captures"].as_array().unwrap();
    assert!(entries.len() >= 53, "{}", entries.len());
    for (file, reason) in DISAGREEMENTS {
        assert!(entries.iter().any(|entry| text(entry, "file") == *file), "{file}: {reason}");
    }
    let rows: Vec<Row> = entries.iter().map(judge).collect();
    let count = |agreement: Agreement| rows.iter().filter(|row| row.agreement == agreement).count();
    for row in &rows {
        println!("{:?} {}: {}\n", row.agreement, row.file, row.text);
    }
    assert_eq!(count(Agreement::Disagreement), DISAGREEMENTS.len());
    let (right, silent, wrong) = (count(Agreement::Right), count(Agreement::Silent), count(Agreement::Wrong));
    println!("{right} right, {silent} silent, {wrong} wrong");
    assert_eq!(wrong, 0);
    assert!(right * 10 >= rows.len() * 9, "{right} of {}", rows.len());
}

/// The retransmission shows that the network changed a segment. Without it, the wrong CRC is an
/// error of the sender.
const NEEDS_ALL_FRAMES: &str = "crc-path-terminate.pcap";

/// Returns the false accusation of a capture with missing frames.
fn false_accusation(entry: &Value, collected: &Collected) -> Option<String> {
    let (client, truth) = (text(&entry["connection"], "tcp_client"), text(entry, "culprit"));
    let end = entry["culprit_address"].as_str();
    let mut own = collected.diagnoses.connections().filter(|it| it.ends.iter().any(|end| end == client));
    let accusing = own.find(|it| {
        let is_end = it.cause != Cause::Violations && it.culprit_end().is_some_and(|found| Some(found) != end);
        let is_network = it.culprit == Culprit::Network && it.cause != Cause::Loss && truth != "network";
        is_end || is_network
    });
    accusing.map(ToString::to_string)
}

/// Frames are missing at the start, at the end, or in the middle of each capture.
#[test]
fn missing_frames_accuse_nobody_else() {
    let truth = fs::read_to_string(folder().join("truth.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    for entry in truth["captures"].as_array().unwrap() {
        let file = text(entry, "file");
        if file == NEEDS_ALL_FRAMES {
            continue;
        }
        let path = folder().join(file);
        for at in 1..entry["frames"].as_u64().unwrap() {
            let cuts = [
                ("from", read_some(&path, |number| number > at)),
                ("until", read_some(&path, |number| number <= at)),
                ("without", read_some(&path, |number| number != at)),
            ];
            for (cut, collected) in cuts {
                assert_eq!(false_accusation(entry, &collected), None, "{file} {cut} frame {at}");
            }
        }
    }
}
