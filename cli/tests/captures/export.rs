//! Tests `weft export --upper-pdu`. No capture in `captures` has RPC, so the tests make a
//! connection with a call and a reply of RPC-over-RDMA (RFC 8166 section 4).
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use etherparse::PacketBuilder;
use weft_core::crc;
use weft_dissector::link_type::{RAW_IP, WIRESHARK_UPPER_PDU};
use weft_dissector::output::pcap;
use weft_dissector::source::Capture;

/// XID, version 1, 32 credits, `RDMA_MSG` and three empty lists.
const HEAD: [u32; 7] = [0x1234_5678, 1, 32, 0, 0, 0, 0];
/// The same with a chunk of 4 bytes at position 24 in the Read list.
const CHUNKED: [u32; 13] = [0x1234_5678, 1, 32, 0, 1, 24, 10, 4, 0, 0x1000, 0, 0, 0];
/// A call of NFS version 3, and its reply.
const CALL: [u32; 6] = [0x1234_5678, 0, 2, 100_003, 3, 7];
const REPLY: [u32; 6] = [0x1234_5678, 1, 0, 0, 0, 0];

/// The tags of the call: `rpc`, the addresses, TCP, the ports, and frame 5. The numbers are those
/// of Wireshark's `exported_pdu_tlvs.h`.
const TAGS: &[u8] = b"\x00\x0c\x00\x04rpc\x00\x00\x14\x00\x04\x0a\x00\x00\x02\x00\x15\x00\x04\x0a\x00\x00\x01\
    \x00\x18\x00\x04\x00\x00\x00\x02\x00\x19\x00\x04\x00\x00\xc0\x00\x00\x1a\x00\x04\x00\x00\x4e\x51\
    \x00\x1e\x00\x04\x00\x00\x00\x05\x00\x00\x00\x00";

fn octets(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The FPDU of the first Send of a direction.
fn send(content: &[u8]) -> Vec<u8> {
    let header = [0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let length = u16::try_from(header.len() + content.len()).unwrap();
    let mut fpdu = [&length.to_be_bytes()[..], &header, content].concat();
    fpdu.resize(fpdu.len().next_multiple_of(4), 0);
    let crc = crc::to_octets(crc::crc32c(&fpdu));
    fpdu.extend_from_slice(&crc);
    fpdu
}

/// Writes a connection with a call after the header `head`, and its reply. Frame N has the time N
/// seconds.
fn capture(folder: &Path, head: &[u32]) -> PathBuf {
    let startup = |kind: &str| [format!("MPA ID {kind} Frame").as_bytes(), &[0x40, 1, 0, 0]].concat();
    let call = send(&octets(&[head, &CALL[..]].concat()));
    let reply = send(&octets(&[&HEAD[..], &REPLY].concat()));
    let segments = [
        (0, true, Vec::new()),
        (1, true, Vec::new()),
        (0, false, startup("Req")),
        (1, false, startup("Rep")),
        (0, false, call),
        (1, false, reply),
    ];
    let path = folder.join("rpc.pcap");
    let mut writer = pcap::Writer::new(File::create(&path).unwrap(), RAW_IP).unwrap();
    let (addresses, ports, mut next) = ([[10, 0, 0, 2], [10, 0, 0, 1]], [49152, 20049], [1000_u32, 5000]);
    for (number, (from, is_syn, payload)) in (1..).zip(&segments) {
        let (from, to) = (*from, 1 - *from);
        let builder = PacketBuilder::ipv4(addresses[from], addresses[to], 64);
        let tcp = builder.tcp(ports[from], ports[to], next[from], 65535);
        let tcp = if *is_syn { tcp.syn() } else { tcp };
        let tcp = if number == 1 { tcp } else { tcp.ack(next[to]) };
        let mut frame = Vec::new();
        tcp.write(&mut frame, payload).unwrap();
        next[from] += u32::try_from(payload.len()).unwrap() + u32::from(*is_syn);
        writer.packet(number * 1_000_000_000, &frame, u32::try_from(frame.len()).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// Runs `weft export`. Returns the exit code and standard error.
fn export(from: &Path, to: &Path) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(["export", "--upper-pdu"]).arg(from).arg(to).stdin(Stdio::null());
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(stdout.is_empty(), "{}", String::from_utf8_lossy(&stdout));
    (status.code().unwrap(), String::from_utf8_lossy(&stderr).into_owned())
}

/// The time, the link type, the bytes, the length on the wire and the comments of each frame.
type Frames = Vec<(u64, u16, Vec<u8>, u32, Vec<String>)>;

fn frames(path: &Path) -> Frames {
    let mut capture = Capture::open(path).unwrap();
    let comments = capture.comments();
    let mut found = Vec::new();
    while let Some(frame) = capture.next_frame() {
        let comments = comments.of(frame.number);
        found.push((frame.time, frame.link_type, frame.octets.to_vec(), frame.wire_len, comments));
    }
    assert_eq!(capture.note(), None);
    found
}

#[test]
fn a_packet_has_tags_and_the_rpc_message() {
    let folder = tempfile::tempdir().unwrap();
    let from = capture(folder.path(), &HEAD);
    let to = folder.path().join("out.pcapng");
    let (code, notes) = export(&from, &to);
    assert!(code == 0 && notes.contains("2 messages written to "), "{notes}");
    assert!(notes.contains("(2 rpc), 0 incomplete"), "{notes}");
    let found = frames(&to);
    assert_eq!(found.len(), 2);
    let call = [TAGS, &octets(&CALL)].concat();
    let len = u32::try_from(call.len()).unwrap();
    assert_eq!(found[0], (5_000_000_000, WIRESHARK_UPPER_PDU, call, len, vec![]));
    assert!(found[1].0 == 6_000_000_000 && found[1].2.ends_with(&octets(&REPLY)), "{found:?}");
}

#[test]
fn missing_data_is_a_comment() {
    let folder = tempfile::tempdir().unwrap();
    let from = capture(folder.path(), &CHUNKED);
    let to = folder.path().join("out.pcapng");
    let (code, notes) = export(&from, &to);
    assert!(code == 0 && notes.contains(", 1 incomplete"), "{notes}");
    let (_, _, octets, wire_len, comments) = &frames(&to)[0];
    assert_eq!((octets.len(), *wire_len as usize), (TAGS.len() + 24, TAGS.len() + 28));
    let expected = "this packet has only the first 24 of 28 bytes, because the next bytes were not captured";
    assert!(comments.iter().any(|comment| comment == expected), "{comments:?}");
}

#[test]
fn a_pcap_has_no_comments() {
    let folder = tempfile::tempdir().unwrap();
    let from = capture(folder.path(), &CHUNKED);
    let to = folder.path().join("out.pcap");
    let (code, notes) = export(&from, &to);
    assert!(code == 0 && notes.contains("pcap has no comments for 1 message with remarks"), "{notes}");
    let written = fs::read(&to).unwrap();
    // The magic number of nanoseconds, version 2.4, the snap length and the link type.
    let header = b"\x4d\x3c\xb2\xa1\x02\x00\x04\x00\0\0\0\0\0\0\0\0\x00\x00\x04\x00\xfc\x00\x00\x00";
    assert_eq!(written[..24], header[..]);
    // The header of the first packet: 5 seconds, 0 nanoseconds, and both lengths.
    let lengths = [TAGS.len() + 24, TAGS.len() + 28].map(|len| u32::try_from(len).unwrap().to_le_bytes());
    assert_eq!(written[24..40], [[5, 0, 0, 0], [0; 4], lengths[0], lengths[1]].concat());
    assert_eq!(written[40..40 + TAGS.len()], TAGS[..]);
}

#[test]
fn messages_of_storage_protocols_are_exported() {
    let folder = tempfile::tempdir().unwrap();
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/storage");
    for (name, dissector) in [("nvme-discover.pcap", "nvme-tcp"), ("iser-session.pcap", "iscsi")] {
        let to = folder.path().join(format!("{dissector}.pcapng"));
        let (code, notes) = export(&captures.join(name), &to);
        assert!(code == 0 && notes.contains(&format!(" {dissector}), 0 incomplete")), "{notes}");
        let found = frames(&to);
        assert!(!found.is_empty());
        // The first tag has the name of the dissector.
        let is_named = |octets: &[u8]| octets[4..].starts_with(dissector.as_bytes());
        assert!(found.iter().all(|(_, _, octets, ..)| is_named(octets)), "{found:?}");
    }
}

#[test]
fn a_capture_without_such_messages_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let rping = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/rping-crc.pcap");
    let to = folder.path().join("out.pcapng");
    let (code, notes) = export(&rping, &to);
    assert!(code == 0 && notes.contains("no message to export; weft exports RPC-over-RDMA"), "{notes}");
    assert!(frames(&to).is_empty());
}

#[test]
fn does_not_replace_a_file_without_force_and_never_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let from = capture(folder.path(), &HEAD);
    let to = folder.path().join("out.pcapng");
    fs::write(&to, "other").unwrap();
    let (code, notes) = export(&from, &to);
    assert!(code == 2 && notes.ends_with("the file exists; to replace it, add --force\n"), "{notes}");
    assert_eq!(fs::read(&to).unwrap(), b"other");
    let force = |to: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(["export", "--upper-pdu", "--force"]).arg(&from).arg(to).output().unwrap()
    };
    assert!(force(&to).status.success());
    assert_eq!(frames(&to).len(), 2);
    assert_eq!(force(&from).status.code(), Some(2));
}

#[test]
fn wrong_command_lines_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let from = capture(folder.path(), &HEAD);
    let (code, notes) = export(&from, &from);
    assert!(code == 2 && notes.contains("this file is the capture that weft reads"), "{notes}");
    let (code, notes) = export(&from, Path::new("/weft-no-such-folder/x.pcapng"));
    assert!(code == 2 && notes.contains("its folder does not exist"), "{notes}");
    let output = Command::new(env!("CARGO_BIN_EXE_weft")).arg("export").arg(&from).arg("x.pcapng").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && text.contains("--upper-pdu"), "{text}");
}
