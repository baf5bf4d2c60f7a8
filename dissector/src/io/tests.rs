//! Tests with synthetic connections of NVMe over RDMA. Each frame is one millisecond after the
//! previous frame. Frames 1 to 4 are SYN, SYN-ACK, Request and Reply.

use super::command::{CommandState, DataFlow, IoCommand, IoOperation, Latency, NoteKind, OperationKind};
use super::text::command_line;
use super::tracker::IoTracker;
use crate::testing::{Wire, fpdu, hex, reply_frame, startup_frame};

const STAG: u32 = 0x1122_3344;
const ADDRESS: u64 = 0x5600_1000;

/// A connection for I/O Queue 1. Direction 0 is the host.
struct Queue {
    wire: Wire,
    /// The last MSN of the Sends of each direction.
    msn: [u32; 2],
    reads: u32,
}

impl Queue {
    fn new() -> Self {
        let (mut request, mut accept) = (hex("0000 0100 2000 1f00"), hex("0000 2000"));
        request.resize(32, 0);
        accept.resize(32, 0);
        let wire = Wire::started_as(&startup_frame(0x40, 1, &request), &reply_frame(0x40, 1, &accept));
        Queue { wire, msn: [0; 2], reads: 0 }
    }

    fn send_fpdu(&mut self, direction: usize, payload: &[u8]) -> Vec<u8> {
        self.msn[direction] += 1;
        let head = hex(&format!("4143 00000000 00000000 {:08x} 00000000", self.msn[direction]));
        fpdu(&[head, payload.to_vec()].concat())
    }

    /// The host sends a command for block 8 with this CID, opcode and SGL descriptor.
    fn command(&mut self, id: u16, opcode: u8, sgl: &[u8], data: &[u8]) {
        let octets = self.command_fpdu(id, opcode, sgl, data);
        self.wire.send(0, &octets);
    }

    fn command_fpdu(&mut self, id: u16, opcode: u8, sgl: &[u8], data: &[u8]) -> Vec<u8> {
        let mut entry = vec![opcode, 0x40];
        entry.extend(id.to_le_bytes());
        entry.extend(1_u32.to_le_bytes());
        entry.resize(24, 0);
        entry.extend(sgl);
        entry.push(8);
        entry.resize(64, 0);
        entry.extend(data);
        self.send_fpdu(0, &entry)
    }

    /// The host sends a Read of one block, with a buffer of `len` octets.
    fn read(&mut self, id: u16, len: u8) {
        self.command(id, 0x02, &keyed(len), &[]);
    }

    /// The host sends a Write of one block, with a buffer of `len` octets.
    fn write(&mut self, id: u16, len: u8) {
        self.command(id, 0x01, &keyed(len), &[]);
    }

    /// The controller sends the response to the command with this CID.
    fn respond(&mut self, id: u16, status: u16) {
        let octets = self.response_fpdu(id, status);
        self.wire.send(1, &octets);
    }

    fn response_fpdu(&mut self, id: u16, status: u16) -> Vec<u8> {
        let entry = [&[0_u8; 12][..], &id.to_le_bytes(), &status.to_le_bytes()].concat();
        self.send_fpdu(1, &entry)
    }

    /// The controller sends a segment of a Write to the buffer, at this offset in the buffer.
    fn place(&mut self, at: u64, len: usize, is_last: bool) {
        let control = if is_last { "c140" } else { "8140" };
        let head = format!("{control} {STAG:08x} {:016x}", ADDRESS + at);
        self.wire.send_ulpdu(1, &format!("{head} {}", "5a".repeat(len)));
    }

    /// The controller requests octets of the buffer.
    fn request(&mut self, at: u64, len: u32) {
        self.reads += 1;
        let sink = format!("00000900 0000000000003000 {len:08x} {STAG:08x} {:016x}", ADDRESS + at);
        self.wire.send_ulpdu(1, &format!("4141 00000000 00000001 {:08x} 00000000 {sink}", self.reads));
    }

    /// The host sends the Read Response.
    fn supply(&mut self, len: usize) {
        self.wire.send_ulpdu(0, &format!("c142 00000900 0000000000003000 {}", "5a".repeat(len)));
    }

    /// The commands in the order in which the tracker returns them.
    fn commands(&self) -> Vec<IoCommand> {
        let mut tracker = IoTracker::default();
        self.wire.feed(&mut tracker);
        tracker.take_finished().collect()
    }

    /// The only command, and the kinds and frames of its notes.
    fn only(&self) -> (IoCommand, Vec<(NoteKind, u64)>) {
        let mut found = self.commands();
        assert_eq!(found.len(), 1, "{found:#?}");
        let command = found.remove(0);
        let notes = command.notes.iter().map(|note| (note.kind, note.frame.into())).collect();
        (command, notes)
    }
}

/// A keyed SGL descriptor for the buffer.
fn keyed(len: u8) -> Vec<u8> {
    [&ADDRESS.to_le_bytes()[..], &[len, 0, 0], &STAG.to_le_bytes(), &[0x40]].concat()
}

fn parts(total_ns: u64, to_data: u64, data: u64, to_status: u64) -> Option<Latency> {
    let [to_data_ns, data_ns, to_status_ns] = [to_data, data, to_status].map(Some);
    Some(Latency { total_ns, to_data_ns, data_ns, to_status_ns })
}

const MS: u64 = 1_000_000;

#[test]
fn a_read_is_served_by_writes() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    queue.place(0, 16, false);
    queue.place(16, 16, true);
    queue.respond(7, 0);
    let (command, notes) = queue.only();
    assert_eq!((command.command, &command.parameters[..], command.id), ("Read", "nsid 1 lba 8 blocks 1", 7));
    assert_eq!((command.queue, command.data, command.state), (Some(1), DataFlow::FromTarget, CommandState::Answered));
    assert_eq!((command.frame, command.status_frame), (5.into(), Some(8.into())));
    assert_eq!((command.bytes, command.expected_bytes, command.writes, command.reads), (32, 32, 1, 0));
    assert_eq!(command.latency, parts(3 * MS, MS, MS, MS));
    let write = IoOperation { kind: OperationKind::Write, frame: 6.into(), stag: STAG, offset: ADDRESS, bytes: 32 };
    assert_eq!((command.operations, command.stags), (vec![write], vec![STAG]));
    assert_eq!((notes, command.retransmissions, command.gap), (Vec::new(), 0, false));
    assert_eq!((command.initiator.to_string(), command.target.port()), ("10.0.0.2:49152".to_owned(), 4210));
}

#[test]
fn a_write_is_served_by_a_read() {
    let mut queue = Queue::new();
    queue.write(7, 32);
    queue.request(0, 32);
    queue.supply(32);
    queue.respond(7, 0);
    let (command, notes) = queue.only();
    assert_eq!((command.bytes, command.writes, command.reads, command.data), (32, 0, 1, DataFlow::ToTarget));
    assert_eq!(command.latency, parts(3 * MS, 2 * MS, 0, MS));
    let read = IoOperation { kind: OperationKind::Read, frame: 6.into(), stag: STAG, offset: ADDRESS, bytes: 32 };
    assert_eq!((command.operations, notes), (vec![read], Vec::new()));
}

#[test]
fn data_in_the_capsule_counts_as_data() {
    let mut queue = Queue::new();
    let in_capsule = [&[0_u8; 8][..], &32_u32.to_le_bytes(), &[0, 0, 0, 1]].concat();
    queue.command(7, 0x01, &in_capsule, &[0x5a; 32]);
    queue.respond(7, 0);
    let (command, _) = queue.only();
    assert_eq!((command.bytes, command.expected_bytes, command.reads), (32, 32, 0));
    assert_eq!(command.latency, parts(MS, 0, 0, MS));
}

#[test]
fn a_command_without_data_has_only_a_total() {
    let mut queue = Queue::new();
    queue.command(7, 0x00, &hex("0000000000000000 000000 00000000 40"), &[]);
    queue.respond(7, 0xc004);
    let (command, _) = queue.only();
    let latency = Latency { total_ns: MS, to_data_ns: None, data_ns: None, to_status_ns: None };
    assert_eq!((command.latency, command.error, command.command), (Some(latency), true, "Flush"));
    assert_eq!(command.status.as_deref(), Some("Invalid Field in Command, do not retry"));
}

#[test]
fn a_write_outside_the_buffer_is_noted() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    queue.place(16, 17, true);
    queue.respond(7, 0);
    let (command, notes) = queue.only();
    assert_eq!((notes, command.bytes), (vec![(NoteKind::OutsideBuffer, 6)], 0));
}

/// The descriptor of the first command is a Last Segment: a list of descriptors in the capsule.
#[test]
fn a_write_can_be_inside_an_unknown_buffer() {
    let mut queue = Queue::new();
    let list = [&[0_u8; 8][..], &16_u32.to_le_bytes(), &[0, 0, 0, 0x31]].concat();
    queue.command(6, 0x02, &list, &[0; 16]);
    queue.read(7, 32);
    queue.place(16, 17, true);
    queue.respond(7, 0);
    queue.respond(6, 0);
    let found = queue.commands();
    assert_eq!(found.iter().map(|command| command.id).collect::<Vec<_>>(), [7, 6]);
    assert!(found.iter().all(|command| command.notes.is_empty() && command.bytes == 0), "{found:#?}");
}

#[test]
fn a_read_outside_the_buffer_is_noted() {
    let mut queue = Queue::new();
    queue.write(7, 32);
    queue.request(0, 33);
    queue.supply(33);
    queue.respond(7, 0);
    let (command, notes) = queue.only();
    assert!(notes.contains(&(NoteKind::ReadTooLong, 6)), "{notes:?}");
    assert_eq!(command.reads, 1);
}

#[test]
fn use_after_the_status_is_noted() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    queue.respond(7, 0);
    queue.place(0, 32, true);
    assert_eq!(queue.only().1, [(NoteKind::DataAfterStatus, 7)]);
    let mut queue = Queue::new();
    queue.write(7, 32);
    queue.respond(7, 0);
    queue.request(0, 32);
    assert_eq!(queue.only().1, [(NoteKind::StagAfterStatus, 7)]);
    // The status precedes the data that the controller has already requested.
    let mut queue = Queue::new();
    queue.write(7, 32);
    queue.request(0, 32);
    queue.respond(7, 0);
    queue.supply(32);
    assert_eq!(queue.only().1, [(NoteKind::DataAfterStatus, 8)]);
}

#[test]
fn more_data_than_described_is_noted() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    queue.place(0, 32, true);
    queue.place(0, 32, true);
    queue.respond(7, 0);
    let (command, notes) = queue.only();
    assert_eq!((notes, command.bytes, command.writes), (vec![(NoteKind::TooMuchData, 8)], 64, 2));
}

/// The lost message can be a command whose data the second Write carries.
#[test]
fn data_after_a_gap_is_not_too_much() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    queue.place(0, 32, true);
    let lost = queue.response_fpdu(6, 0);
    queue.wire.lose(1, &lost);
    queue.place(0, 32, true);
    queue.respond(7, 0);
    let found = queue.commands();
    let command = found.iter().find(|command| command.id == 7).unwrap();
    assert_eq!((command.bytes, command.gap, command.notes.len()), (64, true, 0), "{command:#?}");
}

#[test]
fn a_response_to_nothing_has_a_line() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    queue.place(0, 32, true);
    queue.respond(7, 0);
    queue.respond(9, 0);
    let found = queue.commands();
    let states: Vec<_> = found.iter().map(|command| (command.id, command.state)).collect();
    assert!(states.contains(&(7, CommandState::Answered)), "{states:?}");
    assert!(states.contains(&(9, CommandState::NoCommand)), "{states:?}");
    let nothing = found.iter().find(|command| command.id == 9).unwrap();
    assert_eq!((nothing.frame, nothing.notes[0].kind), (8.into(), NoteKind::ResponseToNothing));
    assert!(command_line(nothing, 0).contains("  id 0x9  Response  Successful Completion  note: a response without"));
}

#[test]
fn an_id_that_is_used_again_ends_the_earlier_command() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    queue.read(7, 32);
    queue.respond(7, 0);
    let found = queue.commands();
    let [first, second] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((first.frame, first.state), (5.into(), CommandState::NotAnswered));
    assert_eq!((first.notes[0].kind, first.notes[0].frame), (NoteKind::IdUsedAgain, 6.into()));
    assert_eq!((second.frame, second.state, second.notes.len()), (6.into(), CommandState::Answered, 0));
}

#[test]
fn commands_in_flight_at_the_end_are_not_answered() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    queue.wire.fin(0);
    queue.wire.fin(1);
    let (command, notes) = queue.only();
    assert_eq!((command.state, command.latency, notes), (CommandState::NotAnswered, None, Vec::new()));
    assert!(command_line(&command, 0).contains("  0 of 32 bytes  not answered  STag 0x11223344"));
}

#[test]
fn a_gap_is_reported_and_not_guessed() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    let lost = queue.response_fpdu(7, 0);
    queue.wire.lose(1, &lost);
    queue.read(8, 32);
    queue.place(0, 32, true);
    queue.respond(8, 0);
    let found = queue.commands();
    let state = |id: u64| found.iter().find(|command| command.id == id).map(|command| (command.state, command.gap));
    assert_eq!(state(7), Some((CommandState::Gap, true)));
    assert_eq!(state(8).map(|(state, _)| state), Some(CommandState::Answered));
    assert!(found.iter().all(|command| command.notes.is_empty()), "{found:#?}");
}

/// The next FPDU of the direction of the lost command arrives more than a second later.
#[test]
fn a_response_to_a_lost_command_is_no_contradiction() {
    let mut queue = Queue::new();
    queue.read(6, 32);
    queue.respond(6, 0);
    let lost = queue.command_fpdu(7, 0x02, &keyed(32), &[]);
    queue.wire.lose(0, &lost);
    queue.respond(7, 0);
    queue.wire.wait(2_000 * MS);
    queue.read(8, 32);
    queue.respond(8, 0);
    let found = queue.commands();
    let nothing = found.iter().find(|command| command.id == 7).unwrap();
    assert_eq!((nothing.state, nothing.gap, nothing.notes.len()), (CommandState::NoCommand, true, 0));
}

#[test]
fn each_gap_marks_the_commands_in_flight() {
    let mut queue = Queue::new();
    for id in 7..10 {
        queue.read(id, 32);
        let lost = queue.response_fpdu(id, 0);
        queue.wire.lose(1, &lost);
        queue.place(0, 16, true);
    }
    // This command acknowledges the octets after the last gap.
    queue.read(10, 32);
    let found = queue.commands();
    let states: Vec<_> = found.iter().take(3).map(|command| (command.id, command.state, command.gap)).collect();
    assert_eq!(states, [7, 8, 9].map(|id| (id, CommandState::Gap, true)));
}

#[test]
fn retransmissions_count_while_the_command_is_in_flight() {
    let mut queue = Queue::new();
    let octets = queue.command_fpdu(7, 0x02, &keyed(32), &[]);
    queue.wire.send(0, &octets);
    queue.wire.send_again(0, u32::try_from(octets.len()).unwrap(), &octets);
    queue.place(0, 32, true);
    queue.respond(7, 0);
    queue.wire.send_again(0, u32::try_from(octets.len()).unwrap(), &octets);
    let (command, notes) = queue.only();
    assert_eq!((command.retransmissions, notes), (1, Vec::new()));
}

#[test]
fn findings_belong_to_the_commands_in_flight() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    // A Write with a reserved DDP bit.
    queue.wire.send_ulpdu(1, &format!("c540 {STAG:08x} {ADDRESS:016x} {}", "5a".repeat(32)));
    queue.respond(7, 0);
    queue.read(8, 32);
    queue.respond(8, 0);
    let found = queue.commands();
    let has_finding = |command: &IoCommand| command.findings.iter().any(|finding| finding.frame == 6.into());
    let found: Vec<_> = found.iter().map(|command| (command.id, has_finding(command))).collect();
    assert_eq!(found, [(7, true), (8, false)]);
}

#[test]
fn statistics_of_kinds_and_the_series_count_all_commands() {
    let mut queue = Queue::new();
    for id in 0..3 {
        queue.read(id, 32);
    }
    for id in 0..3 {
        queue.place(0, 32, true);
        queue.respond(id, 0);
    }
    let mut tracker = IoTracker::default();
    queue.wire.feed(&mut tracker);
    assert_eq!(tracker.take_finished().count(), 3);
    let kinds: Vec<_> = tracker.kinds().collect();
    let [reads] = &kinds[..] else { panic!("{kinds:#?}") };
    assert_eq!((reads.protocol, reads.command, reads.latency.count, reads.errors), ("nvme_rdma", "Read", 3, 0));
    // Frames 5, 6, 7 have the commands, and 9, 11, 13 the responses.
    assert_eq!((reads.latency.min_ns, reads.latency.max_ns), (4 * MS, 6 * MS));
    let totals = tracker.totals();
    assert_eq!((totals.commands, totals.answered, totals.bytes), (3, 3, reads.bytes));
    assert_eq!(tracker.outstanding().most, 3);
    assert_eq!(tracker.outstanding().start, 5 * MS);
}

#[test]
fn only_the_selected_connection_is_followed() {
    let mut queue = Queue::new();
    queue.read(7, 32);
    let count = |stream: u32| {
        let mut tracker = IoTracker::of_stream(stream.into());
        queue.wire.feed(&mut tracker);
        tracker.take_finished().count()
    };
    assert_eq!((count(0), count(1)), (1, 0));
}
