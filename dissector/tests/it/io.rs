//! Tests the storage commands of a capture of NVMe over RDMA: the host of Linux requests the
//! discovery log of the target of Linux. An independent program read the frames, the bytes and the
//! times from the capture, and the kernels recorded the commands.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::path::Path;

use weft_dissector::Dissector;
use weft_dissector::io::{CommandState, DataFlow, IoCommand, IoTracker, Latency};
use weft_dissector::source::Capture;

/// The tracker at the end of the capture, and the commands in the order in which they finish.
fn read() -> (IoTracker, Vec<IoCommand>) {
    read_without(0)
}

/// The same for a capture that lacks frame `lost`.
fn read_without(lost: u64) -> (IoTracker, Vec<IoCommand>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/storage/nvme-discover.pcap");
    let mut capture = Capture::open(&path).unwrap();
    let (mut tracker, mut dissector, mut found) = (IoTracker::default(), Dissector::default(), Vec::new());
    while let Some(frame) = capture.next_frame() {
        if frame.number != lost.into() {
            dissector.frame(&frame, &mut tracker);
            found.extend(tracker.take_finished());
        }
    }
    dissector.finish(&mut tracker);
    found.extend(tracker.take_finished());
    (tracker, found)
}

/// A command: the frames of the command and its status, text, CID, and the numbers of bytes, Writes
/// and Reads.
type Expected = (u64, Option<u64>, &'static str, u64, (u64, u64, u64));

const COMMANDS: [Expected; 16] = [
    (8, Some(11), "Connect qid 0 sqsize 31", 0, (1024, 0, 1)),
    (12, Some(13), "Property Get property Controller Capabilities", 1, (0, 0, 0)),
    (14, Some(15), "Property Set property Controller Configuration value 0x460060", 0x1000, (0, 0, 0)),
    (16, Some(17), "Property Get property Controller Configuration", 0x1001, (0, 0, 0)),
    (18, Some(19), "Property Get property Controller Capabilities", 0x2000, (0, 0, 0)),
    (20, Some(21), "Property Set property Controller Configuration value 0x460061", 0x2001, (0, 0, 0)),
    (22, Some(23), "Property Get property Controller Status", 0x3000, (0, 0, 0)),
    (24, Some(25), "Property Get property Version", 0x3001, (0, 0, 0)),
    (26, Some(32), "Identify cns Controller", 2, (4096, 1, 0)),
    (39, Some(40), "Set Features feature Asynchronous Event Configuration", 3, (0, 0, 0)),
    (42, Some(48), "Identify cns Controller", 4, (4096, 1, 0)),
    (51, Some(54), "Get Log Page page Discovery", 5, (1024, 1, 0)),
    (56, Some(60), "Get Log Page page Discovery", 0x1002, (3072, 1, 0)),
    (63, Some(64), "Property Set property Controller Configuration value 0x464061", 0x4000, (0, 0, 0)),
    (65, Some(66), "Property Get property Controller Status", 0x4001, (0, 0, 0)),
    // The connection ends before an event.
    (41, None, "Asynchronous Event Request", 0x1f, (0, 0, 0)),
];

#[test]
fn commands_have_their_frames_and_their_operations() {
    let (_, found) = read();
    assert_eq!(found.len(), COMMANDS.len(), "{found:#?}");
    for (command, (frame, status_frame, text, id, served)) in found.iter().zip(COMMANDS) {
        assert_eq!((command.frame, command.status_frame), (frame.into(), status_frame.map(Into::into)), "{text}");
        assert_eq!(format!("{} {}", command.command, command.parameters).trim_end(), text);
        assert_eq!((command.id, command.queue), (id, Some(0)), "{text}");
        assert_eq!((command.bytes, command.writes, command.reads), served, "{text}");
        assert_eq!(command.bytes, command.expected_bytes, "{text}");
        let state = if status_frame.is_some() { CommandState::Answered } else { CommandState::NotAnswered };
        assert_eq!((command.state, command.error, command.gap), (state, false, false), "{text}");
        assert!(command.notes.is_empty(), "{text}: {:?}", command.notes);
        // The only retransmission is in frame 33, directly after the status in frame 32.
        assert_eq!(command.retransmissions, 0, "{text}");
        assert_eq!((command.initiator.to_string(), command.target.port()), ("10.1.0.2:43780".to_owned(), 4420));
    }
}

#[test]
fn latencies_have_their_parts() {
    let (_, found) = read();
    let latency = |frame: u64| found.iter().find(|command| command.frame == frame.into()).unwrap().latency;
    let parts = |[total_ns, to_data, data, to_status]: [u64; 4]| {
        let [to_data_ns, data_ns, to_status_ns] = [to_data, data, to_status].map(Some);
        Some(Latency { total_ns, to_data_ns, data_ns, to_status_ns })
    };
    assert_eq!(latency(8), parts([19_638_000, 17_766_000, 0, 1_872_000]));
    assert_eq!(latency(26), parts([44_874_000, 44_854_000, 10_000, 10_000]));
    assert_eq!(latency(56), parts([49_265_000, 5_065_000, 44_198_000, 2_000]));
    let without_data = Latency { total_ns: 6_138_000, to_data_ns: None, data_ns: None, to_status_ns: None };
    assert_eq!(latency(12), Some(without_data));
    assert_eq!(latency(41), None);
    let flow = |frame: u64| found.iter().find(|command| command.frame == frame.into()).unwrap().data;
    assert_eq!([8, 26, 12].map(flow), [DataFlow::ToTarget, DataFlow::FromTarget, DataFlow::None]);
}

#[test]
fn operations_name_the_stags_of_the_commands() {
    let (_, found) = read();
    let stags: Vec<u32> = found.iter().flat_map(|command| command.stags.clone()).collect();
    assert_eq!(stags, [0x18ad_2001, 0x18ad_2002, 0x18ad_2003, 0x18ad_2004, 0x18ad_2005]);
    let operations: Vec<_> = found.iter().flat_map(|command| command.operations.clone()).collect();
    assert!(operations.iter().map(|operation| operation.stag).eq(stags));
    let frames: Vec<u64> = operations.iter().map(|operation| operation.frame.into()).collect();
    assert_eq!(frames, [9, 29, 45, 52, 57]);
}

#[test]
fn totals_and_kinds_count_the_commands() {
    let (tracker, _) = read();
    let totals = tracker.totals();
    assert_eq!((totals.commands, totals.answered, totals.not_answered, totals.errors), (16, 15, 1, 0));
    assert_eq!((totals.bytes, totals.with_notes, totals.with_gaps), (1024 + 2 * 4096 + 1024 + 3072, 0, 0));
    let kinds: Vec<(&str, u64)> = tracker.kinds().map(|kind| (kind.command, kind.latency.count)).collect();
    let admin = [("Get Log Page", 2), ("Identify", 2), ("Property Get", 6), ("Property Set", 3), ("Set Features", 1)];
    assert_eq!(kinds, [&[("Connect", 1)][..], &admin].concat());
    // The Asynchronous Event Request and one other command.
    assert_eq!(tracker.outstanding().most, 2);
}

/// The capture has 69 frames. If one of them is missing, weft neither accuses an endpoint nor
/// guesses an end.
#[test]
fn a_lost_frame_causes_no_notes() {
    for lost in 1..=69 {
        let (_, found) = read_without(lost);
        for command in found {
            assert!(command.notes.is_empty(), "without frame {lost}: {command:#?}");
            let is_event = command.frame == 41.into();
            assert!(command.state != CommandState::NotAnswered || is_event, "without frame {lost}: {command:#?}");
        }
    }
}
