//! Tests the storage commands of captures of iSER, of NFS over RDMA, and of SMB Direct. The module
//! `io` tests those of NVMe over RDMA. `captures/README.md` describes the captures. An independent
//! program read the frames and the bytes from the captures, and the kernels recorded the commands.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::path::Path;

use weft_dissector::Dissector;
use weft_dissector::io::{CommandState, DataFlow, IoCommand, IoTotals, IoTracker, OperationKind};
use weft_dissector::source::Capture;

/// The commands of a capture that lacks frame `lost`, in the order of their frames, and the totals.
fn read_without(name: &str, lost: u64) -> (Vec<IoCommand>, IoTotals) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/storage").join(name);
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
    found.sort_by_key(|command| (command.frame, command.id));
    (found, tracker.totals())
}

/// The same for the complete capture. Each command is answered, and has no notes.
fn read(name: &str) -> (Vec<IoCommand>, IoTotals) {
    let (found, totals) = read_without(name, 0);
    for command in &found {
        assert_eq!((command.state, command.gap), (CommandState::Answered, false), "{command:#?}");
        assert!(command.notes.is_empty() && command.latency.is_some(), "{command:#?}");
    }
    (found, totals)
}

fn frames(command: &IoCommand) -> (u64, u64) {
    (command.frame.into(), command.status_frame.unwrap().into())
}

/// The name and the parameters.
fn text(command: &IoCommand) -> String {
    format!("{} {}", command.command, command.parameters).trim_end().to_owned()
}

fn status(command: &IoCommand) -> &str {
    command.status.as_deref().unwrap()
}

/// If a frame is missing, weft does not accuse an endpoint.
fn assert_no_notes(name: &str, frames: impl Iterator<Item = u64>) {
    for lost in frames {
        for command in read_without(name, lost).0 {
            assert!(command.notes.is_empty(), "{name} without frame {lost}: {command:#?}");
        }
    }
}

const ISER: &str = "iser-session.pcap";
const NFS: &str = "nfs3-session.pcap";
const SMB: &str = "smb-ops.pcap";

/// The frames of each command and of its status, the text, and the number of bytes.
const SCSI_COMMANDS: [(u64, u64, &str, u64); 50] = [
    (8, 10, "Login Request LoginOperationalNegotiation to FullFeaturePhase", 0),
    (12, 14, "Text Request", 0),
    (26, 28, "Login Request LoginOperationalNegotiation to FullFeaturePhase", 0),
    (30, 33, "INQUIRY lun 0", 36),
    (38, 40, "INQUIRY lun 0", 96),
    (43, 45, "INQUIRY lun 0", 4),
    (47, 49, "INQUIRY lun 0", 12),
    (51, 54, "INQUIRY lun 0", 4),
    (58, 60, "INQUIRY lun 0", 12),
    (63, 65, "INQUIRY lun 0", 36),
    (68, 71, "INQUIRY lun 0", 4),
    (73, 75, "INQUIRY lun 0", 16),
    (77, 79, "INQUIRY lun 0", 36),
    (82, 84, "INQUIRY lun 0", 4),
    (87, 89, "INQUIRY lun 0", 160),
    (92, 94, "INQUIRY lun 0", 36),
    (96, 98, "INQUIRY lun 0", 4),
    (100, 102, "INQUIRY lun 0", 20),
    (104, 106, "INQUIRY lun 0", 36),
    (108, 110, "INQUIRY lun 0", 4),
    (113, 115, "INQUIRY lun 0", 64),
    (118, 120, "INQUIRY lun 0", 36),
    (122, 124, "INQUIRY lun 0", 4),
    (126, 128, "INQUIRY lun 0", 8),
    (130, 135, "REPORT LUNS lun 0", 4096),
    (138, 139, "TEST UNIT READY lun 0", 0),
    (140, 142, "READ CAPACITY(16) lun 0", 32),
    (145, 147, "MODE SENSE(6) lun 0", 4),
    (149, 151, "MODE SENSE(6) lun 0", 4),
    (153, 155, "MODE SENSE(6) lun 0", 32),
    (158, 159, "REPORT SUPPORTED OPERATION CODES lun 0", 0),
    (161, 162, "TEST UNIT READY lun 0", 0),
    (164, 166, "READ CAPACITY(16) lun 0", 32),
    (169, 171, "INQUIRY lun 0", 36),
    (174, 177, "MODE SENSE(6) lun 0", 4),
    (179, 181, "MODE SENSE(6) lun 0", 4),
    (182, 184, "MODE SENSE(6) lun 0", 32),
    (186, 192, "READ(10) lun 0 lba 0 blocks 8", 4096),
    (196, 201, "READ(10) lun 0 lba 8 blocks 8", 4096),
    (204, 210, "READ(10) lun 0 lba 24 blocks 8", 4096),
    (215, 218, "INQUIRY lun 0", 36),
    (220, 222, "INQUIRY lun 0", 96),
    (224, 226, "INQUIRY lun 0", 252),
    (229, 231, "INQUIRY lun 0", 252),
    (233, 235, "READ CAPACITY(10) lun 0", 8),
    (238, 241, "READ CAPACITY(16) lun 0", 32),
    (243, 253, "REPORT LUNS lun 0", 8192),
    (255, 256, "TEST UNIT READY lun 0", 0),
    (258, 259, "WRITE(10) lun 0 lba 8 blocks 1", 512),
    (261, 265, "WRITE(10) lun 0 lba 16 blocks 8", 4096),
];

#[test]
fn scsi_commands_have_their_frames_and_their_bytes() {
    let (found, totals) = read(ISER);
    let rows: Vec<_> = found
        .iter()
        .map(|command| {
            let (frame, status_frame) = frames(command);
            (frame, status_frame, text(command), command.bytes)
        })
        .collect();
    let expected =
        SCSI_COMMANDS.map(|(frame, status_frame, text, bytes)| (frame, status_frame, text.to_owned(), bytes));
    assert_eq!(rows, expected);
    assert_eq!((totals.commands, totals.answered, totals.errors, totals.bytes), (50, 50, 1, 30_672));
    assert_eq!(found.iter().map(|command| (command.writes, command.reads)).fold((0, 0), add), (41, 0));
}

fn add(sum: (u64, u64), next: (u64, u64)) -> (u64, u64) {
    (sum.0 + next.0, sum.1 + next.1)
}

#[test]
fn scsi_commands_have_their_buffers_and_their_statuses() {
    let (found, _) = read(ISER);
    for command in &found {
        let expected = match command.command {
            "Login Request" => "Success",
            "Text Request" => "Text Response",
            "REPORT SUPPORTED OPERATION CODES" => "CHECK CONDITION, Illegal Request: Invalid command operation code",
            _ => "GOOD",
        };
        assert_eq!((status(command), command.error), (expected, expected.starts_with("CHECK")), "{command:#?}");
        // The command that failed moves none of its 10 bytes.
        let is_short = command.bytes != command.expected_bytes;
        assert_eq!((is_short, command.expected_bytes), (command.error, command.bytes + 10 * u64::from(command.error)));
    }
    // READ(10) of 8 blocks: the target writes to the buffer of the command. WRITE(10) has its data.
    let of = |frame: u64| found.iter().find(|command| command.frame == frame.into()).unwrap();
    let (read, write) = (of(196), of(261));
    assert_eq!((read.id, read.data, &read.stags[..]), (0x0500_0000, DataFlow::FromTarget, &[0xdf37_9022][..]));
    let [operation] = read.operations[..] else { panic!("{read:#?}") };
    assert_eq!((operation.kind, operation.stag, operation.bytes), (OperationKind::Write, 0xdf37_9022, 4096));
    assert_eq!(operation.offset, 0xffff_8880_0a57_0000);
    assert_eq!((write.data, write.stags.len(), write.writes, write.reads), (DataFlow::ToTarget, 0, 0, 0));
    assert_eq!((read.initiator.to_string().starts_with("10.1.0.2:"), read.target.port()), (true, 3260));
}

/// The frames of each call and of its reply, the text, and the numbers of bytes and of Writes.
const NFS_COMMANDS: [(u64, u64, &str, (u64, u64)); 18] = [
    (20, 21, "NULL NFS V3", (0, 0)),
    (22, 23, "FSINFO NFS V3", (0, 0)),
    (24, 25, "PATHCONF NFS V3", (0, 0)),
    (26, 27, "GETATTR NFS V3", (0, 0)),
    (28, 29, "NULL NFSACL V3", (0, 0)),
    (30, 31, "FSINFO NFS V3", (0, 0)),
    (32, 33, "GETATTR NFS V3", (0, 0)),
    (34, 36, "GETATTR NFS V3", (0, 0)),
    (37, 39, "ACCESS NFS V3", (0, 0)),
    (40, 43, "READDIRPLUS NFS V3", (1028, 3)),
    (45, 46, "GETATTR NFS V3", (0, 0)),
    (47, 48, "ACCESS NFS V3", (0, 0)),
    (49, 51, "READ NFS V3 offset 0 count 4096", (700, 1)),
    (53, 54, "GETATTR NFS V3", (0, 0)),
    (55, 56, "ACCESS NFS V3", (0, 0)),
    (57, 61, "READ NFS V3 offset 0 count 4096", (4096, 1)),
    (66, 67, "GETATTR NFS V3", (0, 0)),
    (69, 70, "ACCESS NFS V3", (0, 0)),
];

#[test]
fn calls_of_nfs_have_their_frames_and_their_chunks() {
    let (found, totals) = read(NFS);
    assert_eq!(found.len(), NFS_COMMANDS.len(), "{found:#?}");
    for ((number, command), (frame, status_frame, expected, served)) in (0..).zip(&found).zip(NFS_COMMANDS) {
        assert_eq!((frames(command), text(command)), ((frame, status_frame), expected.to_owned()));
        assert_eq!((command.bytes, command.writes), served, "{expected}");
        // The client adds one to the first byte of the XID.
        assert_eq!(command.id, 0x6ba3_94ae + (number << 24), "{expected}");
        assert_eq!(status(command), if command.command == "NULL" { "SUCCESS" } else { "NFS3_OK" });
        assert_eq!((command.queue, command.reads, command.error), (None, 0, false), "{expected}");
    }
    assert_eq!((totals.commands, totals.errors, totals.bytes), (18, 0, 1028 + 700 + 4096));
    let stags: Vec<&[u32]> = found.iter().map(|command| &command.stags[..]).filter(|stags| !stags.is_empty()).collect();
    // The Reply chunk of READDIRPLUS, and the Write chunks of both READs.
    assert_eq!(stags, [&[0x382b_d001, 0xf862_8501, 0x2342_3401][..], &[0x417e_3e01], &[0x9be6_0001]]);
    let expected: Vec<u64> = found.iter().map(|command| command.expected_bytes).filter(|bytes| *bytes > 0).collect();
    assert_eq!(expected, [4096, 4096]);
}

/// The frame of the first Data Transfer of each message, the frame of the last one of its response,
/// and the commands.
const SMB_MESSAGES: [(u64, u64, &str); 36] = [
    (11, 13, "NEGOTIATE"),
    (14, 15, "SESSION_SETUP"),
    (17, 19, "SESSION_SETUP"),
    (20, 21, "TREE_CONNECT"),
    (23, 25, "TREE_CONNECT"),
    (26, 27, "CREATE"),
    (28, 29, "IOCTL"),
    (30, 31, "QUERY_INFO"),
    (32, 33, "QUERY_INFO"),
    (35, 37, "QUERY_INFO"),
    (38, 39, "QUERY_INFO"),
    (40, 41, "CLOSE"),
    (42, 43, "IOCTL"),
    (44, 45, "CREATE"),
    (47, 49, "CLOSE"),
    (50, 51, "CREATE"),
    (52, 53, "CLOSE"),
    (54, 58, "CREATE QUERY_INFO CLOSE"),
    (60, 64, "CREATE QUERY_INFO CLOSE"),
    (66, 70, "CREATE QUERY_INFO CLOSE"),
    (72, 75, "CREATE QUERY_DIRECTORY"),
    (76, 77, "QUERY_DIRECTORY"),
    (78, 79, "CLOSE"),
    (80, 84, "CREATE QUERY_INFO CLOSE"),
    (86, 87, "CREATE"),
    (89, 92, "WRITE"),
    (93, 94, "CLOSE"),
    (95, 99, "CREATE QUERY_INFO CLOSE"),
    (100, 104, "CREATE QUERY_INFO CLOSE"),
    (105, 109, "CREATE QUERY_INFO CLOSE"),
    (110, 114, "CREATE QUERY_INFO CLOSE"),
    (115, 118, "CREATE CLOSE"),
    (119, 123, "CREATE QUERY_INFO CLOSE"),
    (124, 127, "CREATE CLOSE"),
    (129, 133, "CREATE QUERY_INFO CLOSE"),
    (135, 139, "CREATE QUERY_INFO CLOSE"),
];

#[test]
fn each_smb_request_is_a_command() {
    let (found, totals) = read(SMB);
    let expected: Vec<_> = SMB_MESSAGES
        .iter()
        .flat_map(|(frame, status_frame, names)| names.split(' ').map(move |name| (*frame, *status_frame, name)))
        .collect();
    let rows: Vec<_> = found
        .iter()
        .map(|command| {
            let (frame, status_frame) = frames(command);
            (frame, status_frame, command.command)
        })
        .collect();
    assert_eq!(rows, expected);
    assert!(found.iter().map(|command| command.id).eq(0..61));
    // The SESSION_SETUP with STATUS_MORE_PROCESSING_REQUIRED is no error, and the QUERY_DIRECTORY
    // with STATUS_NO_MORE_FILES is no error.
    let failed: Vec<_> = found.iter().filter(|command| command.error).map(|it| (it.id, status(it))).collect();
    let expected = [
        (12, "STATUS_FS_DRIVER_REQUIRED"),
        (30, "STATUS_OBJECT_NAME_NOT_FOUND"),
        (31, "STATUS_FILE_CLOSED"),
        (32, "STATUS_INVALID_PARAMETER"),
        (50, "STATUS_OBJECT_NAME_NOT_FOUND"),
        (51, "STATUS_FILE_CLOSED"),
        (52, "STATUS_INVALID_PARAMETER"),
    ];
    assert_eq!(failed, expected);
    assert_eq!((totals.commands, totals.errors, totals.bytes), (61, 7, 300));
    assert!(found.iter().all(|command| command.stags.is_empty() && command.operations.is_empty()));
}

#[test]
fn smb_requests_have_their_parameters() {
    let (found, _) = read(SMB);
    let of = |id: u64| found.iter().find(|command| command.id == id).unwrap();
    for (id, expected) in [
        (0, "NEGOTIATE"),
        (3, r"TREE_CONNECT \\10.1.0.1\IPC$"),
        (6, "IOCTL FSCTL_QUERY_NETWORK_INTERFACE_INFO"),
        (15, "CREATE"),
        (18, "QUERY_INFO file previous FileAllInformation"),
        (19, "CLOSE file previous"),
        (33, "CREATE new3"),
        (34, "WRITE file 0x1b:0x8 offset 0 length 300"),
        (35, "CLOSE file 0x1b:0x8"),
    ] {
        assert_eq!(text(of(id)), expected);
    }
    let write = of(34);
    assert_eq!((write.bytes, write.expected_bytes, write.data), (300, 300, DataFlow::ToTarget));
}

#[test]
fn a_lost_frame_of_iser_causes_no_notes() {
    assert_no_notes(ISER, (1..=266).step_by(3));
}

#[test]
fn a_lost_frame_of_nfs_causes_no_notes() {
    assert_no_notes(NFS, 1..=70);
}

#[test]
fn a_lost_frame_of_smb_direct_causes_no_notes() {
    assert_no_notes(SMB, 1..=141);
}
