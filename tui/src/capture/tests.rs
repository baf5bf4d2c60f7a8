//! Tests of the capture screen with captures of the source tree.

use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use weft_dissector::FrameNumber;
use weft_dissector::browse::packed::{Entry, ListedFinding};

use super::*;
use crate::input_line::Purpose;
use crate::terminal::Screen as _;
use crate::testing::{capture_path, drawn, text};

/// A screen that has read the complete capture and the details of the selected frame.
pub(super) fn settled(name: &str) -> Screen {
    let mut screen = Screen::open(&capture_path(name)).unwrap();
    screen.theme = Theme::Dark;
    settle(&mut screen);
    screen
}

/// The number of the selected frame.
pub(super) fn selected_frame(screen: &Screen) -> u64 {
    screen.row().unwrap().number.into()
}

/// Polls until all threads are done.
fn settle(screen: &mut Screen) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_filtering = |screen: &Screen| screen.filtered.as_ref().is_some_and(|filtered| filtered.is_reading);
    let is_searching = |screen: &Screen| screen.search.is_some();
    let is_collecting = |screen: &Screen| screen.overlay.as_ref().is_some_and(ListOverlay::is_reading);
    while screen.end.is_none()
        || is_filtering(screen)
        || is_collecting(screen)
        || is_searching(screen)
        || screen.row().is_some_and(|row| !screen.is_known(&row))
    {
        assert!(Instant::now() < deadline, "the threads do not answer");
        if !screen.poll() {
            std::thread::yield_now();
        }
    }
}

pub(super) fn commands(screen: &mut Screen, commands: &[Command]) {
    for command in commands {
        assert!(screen.command(*command));
        settle(screen);
    }
}

/// The characters of the marked cells.
fn marked(buffer: &Buffer, screen: &Screen) -> String {
    let style = screen.theme.marked();
    let cells = buffer.content.iter().filter(|cell| cell.bg == style.bg.unwrap());
    cells.map(ratatui::buffer::Cell::symbol).collect()
}

/// A screen that shows the first frame whose summary begins with `words`.
pub(super) fn at(name: &str, words: &str) -> Screen {
    let mut screen = settled(name);
    let begins = |place: &usize| screen.index.row(*place).unwrap().summary.starts_with(words);
    let place = (0..screen.index.len()).find(begins).unwrap();
    screen.select_packet(place);
    settle(&mut screen);
    screen
}

pub(super) const DOWN: Command = Command::Move(Motion::Down);

#[test]
fn a_request_at_80x24_and_120x40() {
    let mut screen = at("rping-crc.pcap", "MPA Request");
    insta::assert_snapshot!(text(&drawn(&mut screen, 80, 24)));
    insta::assert_snapshot!(text(&drawn(&mut screen, 120, 40)));
}

#[test]
fn a_wide_terminal_has_sixteen_bytes_per_row() {
    let mut screen = at("rping-crc.pcap", "RDMA Write");
    commands(&mut screen, &[Command::NextPanel, Command::Move(Motion::Last)]);
    insta::assert_snapshot!(text(&drawn(&mut screen, 200, 50)));
}

#[test]
fn marks_the_bytes_of_the_selected_field() {
    let mut screen = at("rping-crc.pcap", "MPA Request");
    commands(&mut screen, &[Command::NextPanel, DOWN, DOWN]);
    let line = screen.fields.selected().unwrap();
    assert!(line.text.contains("MPA ID Req Frame"), "{line:?}");
    let buffer = drawn(&mut screen, 120, 40);
    let shown: String = marked(&buffer, &screen).chars().filter(|c| !c.is_whitespace()).collect();
    // Each row shows the bytes as numbers, then as characters.
    assert_eq!(shown, "4d504120494420526571204672 61MPAIDReqFra 6d65me".replace(' ', ""));
}

#[test]
fn a_byte_selects_its_field() {
    let mut screen = at("rping-crc.pcap", "MPA Request");
    drawn(&mut screen, 80, 24);
    let key = screen.detail().unwrap().octets.windows(3).position(|octets| octets == b"MPA").unwrap();
    commands(&mut screen, &[Command::NextPanel, Command::NextPanel]);
    assert_eq!(screen.focus, Panel::Octets);
    screen.move_cursor(key + 15);
    assert!(screen.fields.selected().unwrap().text.contains("MPA ID Req Frame"));
    commands(&mut screen, &[Command::Right]);
    assert_eq!(screen.octets.cursor, key + 16);
    let line = screen.fields.selected().unwrap();
    assert_eq!(line.place.in_frame, std::iter::once(key + 16..key + 17).collect::<Vec<_>>(), "{line:?}");
}

#[test]
fn a_field_stays_selected_from_frame_to_frame() {
    let mut screen = at("rping-crc.pcap", "MPA Request");
    commands(&mut screen, &[Command::NextPanel, DOWN, DOWN, Command::PreviousPanel]);
    let key = screen.fields.selected().unwrap().key.clone();
    while !screen.row().unwrap().summary.starts_with("MPA Reply") {
        commands(&mut screen, &[DOWN]);
    }
    let line = screen.fields.selected().unwrap();
    assert_eq!(line.key, key);
    assert!(line.text.contains("MPA ID Rep Frame"), "{line:?}");
}

#[test]
fn frames_show_their_findings_and_keys_jump_to_them() {
    let mut screen = settled("rping-crc.pcap");
    commands(&mut screen, &[Command::NextMarked]);
    assert_eq!(screen.packets.selected, 0);
    let place = 10;
    let number = screen.index.row(place).unwrap().number;
    let severity = weft_core::requirement::Severity::Error;
    let requirement = "MPA-7.1.1-2".parse().unwrap();
    let finding = ListedFinding { frame: number, stream: Some(0.into()), requirement, severity };
    screen.index.add(Entry::Finding { finding, at: FrameNumber::NONE });
    screen.command(Command::NextMarked);
    assert_eq!(screen.packets.selected, place);
    let shown = text(&drawn(&mut screen, 80, 24));
    assert!(shown.contains("[error]") && shown.contains("findings 1"), "{shown}");
}

#[test]
fn branches_close_and_open() {
    let mut screen = at("rping-crc.pcap", "MPA Request");
    commands(&mut screen, &[Command::NextPanel, Command::Move(Motion::First)]);
    let closed = screen.fields.shown().len();
    commands(&mut screen, &[Command::Right]);
    assert!(screen.fields.shown().len() > closed);
    assert!(screen.fields.shown().any(|line| line.text.starts_with("TCP flags: ACK")));
    commands(&mut screen, &[DOWN, Command::Left, Command::Left]);
    assert_eq!((screen.fields.shown().len(), screen.fields.list.selected), (closed, 0));
}

#[test]
fn draws_every_size_and_the_help() {
    let mut screen = settled("violations-6-kinds-crc.pcap");
    for (width, height) in [(1, 1), (2, 5), (30, 6), (79, 23), (80, 24), (200, 50)] {
        drawn(&mut screen, width, height);
        commands(&mut screen, &[Command::NextPanel, Command::Move(Motion::Last), Command::Right]);
        drawn(&mut screen, width, height);
    }
    // Use a capture without findings, so that new rules do not change the snapshot.
    let mut screen = settled("rping-crc.pcap");
    commands(&mut screen, &[Command::Help]);
    insta::assert_snapshot!(text(&drawn(&mut screen, 80, 24)));
    commands(&mut screen, &[Command::Quit]);
    assert!(!screen.help);
    assert!(!screen.command(Command::Quit));
}

#[test]
fn escape_goes_back_and_never_quits() {
    let mut screen = settled("rping-crc.pcap");
    type_in(&mut screen, Purpose::Filter, "frame.number > 40");
    commands(&mut screen, &[Command::Help, Command::Back, Command::Open(lines::Kind::Findings), Command::Back]);
    assert!(!screen.help && screen.overlay.is_none() && screen.filtered.is_some());
    let number = selected_frame(&screen);
    commands(&mut screen, &[Command::Back]);
    assert_eq!((screen.filtered.is_none(), selected_frame(&screen)), (true, number));
    commands(&mut screen, &[Command::Back]);
    assert!(screen.notice.as_deref().unwrap().contains("q quits"));
}

#[test]
fn reports_a_capture_without_frames() {
    let file = std::fs::read(crate::testing::capture_path("rping-crc.pcap")).unwrap();
    // The header of a pcap has 24 bytes (pcap-savefile(5)).
    let header = file[..24].to_vec();
    let recording = Recording::made(move || Box::new(std::io::Cursor::new(header.clone())));
    let mut screen = Screen::of(recording, "bare.pcap".to_owned());
    settle(&mut screen);
    assert!(text(&drawn(&mut screen, 80, 24)).contains("the capture has a header but no frames"));
}

/// If weft can read nothing of a capture, the screen shows the reason.
#[test]
fn frames_that_are_not_read_are_reported() {
    let mut octets = std::fs::read(capture_path("rping-crc.pcap")).unwrap();
    // Change each IPv4 packet to an ESP packet. The Ethernet header has 14 bytes. Byte 9 of the
    // IPv4 header is the protocol (RFC 791, 3.1).
    let (mut at, mut packets) = (24, 0);
    while at < octets.len() {
        let length = u32::from_le_bytes(octets[at + 8..at + 12].try_into().unwrap()) as usize;
        if octets[at + 28..at + 30] == [8, 0] {
            octets[at + 39] = 50;
            packets += 1;
        }
        at += 16 + length;
    }
    let recording = Recording::made(move || Box::new(std::io::Cursor::new(octets.clone())));
    let mut screen = Screen::of(recording, "esp.pcap".to_owned());
    settle(&mut screen);
    let remark = format!("weft did not read {packets} frames of IPsec ESP (encrypted)");
    let shown = text(&drawn(&mut screen, 80, 24));
    assert!(shown.lines().last().unwrap().contains(&remark), "{shown}");
    commands(&mut screen, &[Command::Open(lines::Kind::Statistics)]);
    assert!(screen.overlay.as_ref().unwrap().lines.iter().any(|line| line.text == remark));
}

/// A reader that panics after the last byte of a capture.
struct Broken(std::io::Cursor<Vec<u8>>);

impl std::io::Read for Broken {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(out)? {
            0 => panic!("on purpose"),
            count => Ok(count),
        }
    }
}

#[test]
fn a_thread_that_fails_is_reported_and_blocks_nothing() {
    let octets = std::fs::read(capture_path("rping-crc.pcap")).unwrap();
    let recording = Recording::made(move || Box::new(Broken(std::io::Cursor::new(octets.clone()))));
    let mut screen = Screen::of(recording, "broken.pcap".to_owned());
    let wait = |screen: &mut Screen, is_so: &dyn Fn(&Screen) -> bool| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so(screen) {
            assert!(Instant::now() < deadline, "the screen does not notice that a thread failed");
            if !screen.poll() {
                std::thread::yield_now();
            }
        }
    };
    wait(&mut screen, &|screen| screen.end.is_some());
    assert!(text_of(&mut screen).contains("weft failed") && screen.index.len() == 52);
    let last = Command::Move(Motion::Last);
    assert!(screen.command(last));
    wait(&mut screen, &|screen| screen.trouble.is_some());
    assert!(screen.command(Command::Type(Purpose::Filter)));
    let input_line = screen.input_line.take().unwrap();
    screen.apply_input(crate::input_line::InputLine { text: "frame.number < 3".to_owned(), ..input_line });
    wait(&mut screen, &|screen| screen.filtered.as_ref().is_some_and(|filtered| !filtered.is_reading));
    assert_eq!((screen.listed(), screen.notice.as_deref()), (2, Some(FAILED)));
    screen.command(Command::Open(lines::Kind::Statistics));
    wait(&mut screen, &|screen| !screen.overlay.as_ref().unwrap().is_reading());
    assert_eq!(screen.overlay.as_ref().unwrap().note, FAILED);
}

#[test]
fn rejects_paths_that_are_not_captures() {
    assert!(matches!(Screen::open(Path::new("-")), Err(Error::NotAFile(_))));
    assert!(matches!(Screen::open(Path::new("/dev/null")), Err(Error::NotAFile(_))));
    for path in ["no-such-file", "Cargo.toml", "src"] {
        let error = Screen::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).err().unwrap();
        assert!(matches!(error, Error::Capture { .. }) && error.to_string().contains(path), "{error}");
    }
}

/// Opens an input line, and types `text` and Enter.
fn type_in(screen: &mut Screen, purpose: Purpose, text: &str) {
    use ratatui::crossterm::event::KeyCode;
    assert!(screen.command(Command::Type(purpose)));
    for code in text.chars().map(KeyCode::Char).chain([KeyCode::Enter]) {
        assert!(screen.key(KeyEvent::from(code)));
    }
    settle(screen);
}

#[test]
fn a_search_goes_from_row_to_row_and_wraps_around() {
    let mut screen = settled("rping-crc.pcap");
    // Search for the frames of RDMA Writes. In tshark, their filter is iwarp_rdma.opcode == 0.
    let mut found = Vec::new();
    for text in ["rdma write", "", "", "", ""] {
        type_in(&mut screen, Purpose::Search, text);
        found.push(selected_frame(&screen));
    }
    assert_eq!(found, [16, 26, 36, 47, 16]);
    type_in(&mut screen, Purpose::Search, "no such words");
    let shown = text(&drawn(&mut screen, 80, 24));
    assert!(selected_frame(&screen) == 16 && shown.contains("no packet has \"no such words\""), "{shown}");
}

#[test]
fn selects_a_frame_by_its_number() {
    let mut screen = settled("rping-crc.pcap");
    screen.command(Command::Type(Purpose::Frame));
    assert!(text(&drawn(&mut screen, 80, 24)).contains("frame :"));
    screen.key(KeyEvent::from(ratatui::crossterm::event::KeyCode::Esc));
    type_in(&mut screen, Purpose::Frame, "44");
    assert_eq!(selected_frame(&screen), 44);
    for none in ["53", "x", ""] {
        type_in(&mut screen, Purpose::Frame, none);
        assert_eq!(selected_frame(&screen), 44);
        assert!(screen.notice.as_deref().unwrap().ends_with("the last frame is 52"), "{:?}", screen.notice);
    }
}

#[test]
fn a_filter_lists_what_passes_and_jumps_leave_it() {
    let mut screen = settled("rping-crc.pcap");
    type_in(&mut screen, Purpose::Frame, "20");
    type_in(&mut screen, Purpose::Filter, "iwarp_rdma.opcode == 0");
    // The selected frame is the first frame after 20 that matches.
    assert_eq!((selected_frame(&screen), screen.listed()), (26, 4));
    commands(&mut screen, &[DOWN, DOWN, DOWN]);
    assert_eq!(selected_frame(&screen), 47);
    insta::assert_snapshot!(text(&drawn(&mut screen, 100, 24)));
    type_in(&mut screen, Purpose::Frame, "36");
    assert!(selected_frame(&screen) == 36 && screen.filtered.is_some());
    type_in(&mut screen, Purpose::Frame, "35");
    assert!(selected_frame(&screen) == 35 && screen.filtered.is_none());
    assert!(screen.notice.as_deref().unwrap().contains("is removed"), "{:?}", screen.notice);
    // Another filter keeps the selection. Its input line starts with the current filter.
    type_in(&mut screen, Purpose::Filter, "frame.number > 40");
    assert_eq!(screen.listed(), 12);
    screen.command(Command::Type(Purpose::Filter));
    assert_eq!(screen.input_line.take().unwrap().text, "frame.number > 40");
    type_in(&mut screen, Purpose::Filter, "no");
    assert!(
        screen.notice.is_some() && screen.input_line.take().is_some_and(|input_line| input_line.text.ends_with("no"))
    );
}

#[test]
fn checks_and_completes_a_filter() {
    use ratatui::crossterm::event::KeyCode;
    let mut screen = settled("rping-crc.pcap");
    screen.command(Command::Type(Purpose::Filter));
    let mut give = |text: &str, last: KeyCode| {
        for code in text.chars().map(KeyCode::Char).chain([last]) {
            assert!(screen.key(KeyEvent::from(code)));
        }
        text_of(&mut screen)
    };
    insta::assert_snapshot!(give("iwarp_rdma.t", KeyCode::Null));
    let shown = give("", KeyCode::Tab);
    assert!(shown.contains("filter: iwarp_rdma.t"), "{shown}");
    let shown = give(" &&", KeyCode::Null);
    assert!(shown.contains("Filter: not valid") && shown.contains("column"), "{shown}");
}

pub(super) fn text_of(screen: &mut Screen) -> String {
    text(&drawn(screen, 80, 24))
}

#[test]
fn the_list_of_findings_leads_to_their_frames() {
    let mut screen = settled("rping-crc.pcap");
    commands(&mut screen, &[Command::Open(lines::Kind::Findings)]);
    assert!(text_of(&mut screen).contains("no findings so far"));
    commands(&mut screen, &[Command::Quit]);
    let severity = weft_core::requirement::Severity::Error;
    let requirement = "MPA-7.1.1-2".parse().unwrap();
    for frame in [8, 16, 26].map(FrameNumber::from) {
        let finding = ListedFinding { frame, stream: Some(0.into()), requirement, severity };
        screen.index.add(Entry::Finding { finding, at: frame });
    }
    type_in(&mut screen, Purpose::Frame, "9");
    // The findings are only in the index and not in the file, so do not wait for the threads.
    screen.command(Command::Open(lines::Kind::Findings));
    let lines = |screen: &Screen| screen.overlay.as_ref().unwrap().lines.len();
    assert_eq!(lines(&screen), 1, "a requirement that is violated again is one problem");
    insta::assert_snapshot!(text_of(&mut screen));
    screen.command(Command::Toggle);
    assert_eq!(lines(&screen), 4);
    screen.command(Command::Left);
    assert_eq!(lines(&screen), 1);
    for command in [Command::Right, DOWN, DOWN, DOWN, Command::Toggle] {
        screen.command(command);
    }
    assert!(selected_frame(&screen) == 26 && screen.overlay.is_none());
    screen.filtered = Some(PacketFilter::start(&screen.recording, "frame.number in {8, 9}", None).unwrap());
    let deadline = Instant::now() + Duration::from_secs(60);
    while screen.filtered.as_ref().unwrap().is_reading {
        assert!(Instant::now() < deadline, "the filter does not end");
        screen.poll();
    }
    screen.packets.selected = 1;
    screen.command(Command::NextMarked);
    assert_eq!(selected_frame(&screen), 8, "findings that the filter hides are skipped");
}

#[test]
fn a_ladder_begins_at_the_frame_and_leads_to_others() {
    let mut screen = settled("rping-crc.pcap");
    commands(&mut screen, &[Command::Open(lines::Kind::Ladder)]);
    assert!(screen.overlay.is_none() && screen.notice.is_some(), "frame 1 is an ARP request");
    type_in(&mut screen, Purpose::Frame, "16");
    commands(&mut screen, &[Command::Open(lines::Kind::Ladder)]);
    insta::assert_snapshot!(text_of(&mut screen));
    let (before, wide) = (screen.overlay.as_ref().unwrap().lines.clone(), text(&drawn(&mut screen, 120, 24)));
    let drawn_anew = &screen.overlay.as_ref().unwrap().lines;
    assert!(drawn_anew.len() == before.len() && *drawn_anew != before, "{wide}");
    commands(&mut screen, &[DOWN, Command::Toggle]);
    assert!(selected_frame(&screen) > 16 && screen.overlay.is_none());
}

#[test]
fn connections_operations_and_statistics() {
    let mut screen = settled("rping-crc.pcap");
    commands(&mut screen, &[Command::Open(lines::Kind::Connections)]);
    insta::assert_snapshot!(text(&drawn(&mut screen, 120, 6)));
    // The ladder is for the connection of the selected line.
    commands(&mut screen, &[Command::Open(lines::Kind::Ladder)]);
    assert!(text_of(&mut screen).contains("Ladder of connection 0"));
    commands(&mut screen, &[Command::Open(lines::Kind::Operations)]);
    insta::assert_snapshot!(text(&drawn(&mut screen, 120, 10)));
    commands(&mut screen, &[Command::Open(lines::Kind::Statistics)]);
    insta::assert_snapshot!(text(&drawn(&mut screen, 120, 24)));
    commands(&mut screen, &[Command::Open(lines::Kind::Statistics)]);
    assert!(screen.overlay.is_none());
}

/// `cli/tests/captures/io.rs` expects the same frames and values of `weft io`.
#[test]
fn storage_commands_have_details() {
    let mut screen = settled("../storage/nvme-discover.pcap");
    type_in(&mut screen, Purpose::Frame, "25");
    commands(&mut screen, &[Command::Open(lines::Kind::Commands)]);
    let listed = screen.overlay.as_ref().unwrap().lines.clone();
    let frames: Vec<u64> = listed.iter().filter_map(|line| line.frame.map(u64::from)).collect();
    assert_eq!(frames, [8, 12, 14, 16, 18, 20, 22, 24, 26, 39, 41, 42, 51, 56, 63, 65]);
    let event = &listed[10];
    assert!(event.text.ends_with("Asynchronous Event Request  not answered"), "{event:?}");
    assert_eq!(event.severity, Some(weft_core::requirement::Severity::Warning));
    assert_eq!(listed[16].text, "16 commands, 1 not answered");
    let shown = text(&drawn(&mut screen, 100, 30));
    for words in [
        "Commands 9/",
        "44.874 ms  Identify  Successful Completion  4096 bytes  cns Controller",
        " Command of frame 26 ",
        "Identify cns Controller: Successful Completion, frame ",
        "10.1.0.2:43780 → 10.1.0.1:4420, connection 0, queue 0, id 0x2",
        "Latency 44.874 ms: 44.854 to data, 0.010 data, 0.010 to status",
        "Write of 4096 bytes, frame 29, STag 0x18ad2002, offset ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    for (width, height) in [(1, 1), (30, 6), (80, 10), (200, 50)] {
        drawn(&mut screen, width, height);
    }
    commands(&mut screen, &[Command::Move(Motion::Last)]);
    assert!(!text_of(&mut screen).contains("Command of frame"), "the statistics have no details");
    commands(&mut screen, &[Command::Move(Motion::First), Command::Toggle]);
    assert!(selected_frame(&screen) == 8 && screen.overlay.is_none());

    let mut screen = settled("rping-crc.pcap");
    commands(&mut screen, &[Command::Open(lines::Kind::Commands)]);
    assert!(text_of(&mut screen).contains("no storage commands so far"));
}

/// Each of the six connections ends with a Terminate.
#[test]
fn connections_with_a_problem_have_an_answer() {
    let mut screen = settled("violations-6-kinds-crc.pcap");
    commands(&mut screen, &[Command::Open(lines::Kind::Connections)]);
    let listed = &screen.overlay.as_ref().unwrap().lines;
    let (heads, answers): (Vec<&lines::Line>, Vec<_>) = listed.iter().partition(|line| line.text.contains(" ⇄ "));
    assert!(heads.len() == 6 && answers.len() >= 12, "{listed:?}");
    assert!(answers.iter().all(|line| line.text.starts_with("      ") && line.text.chars().count() <= 78));
    assert!(answers.iter().any(|line| line.text.contains("(frame")), "{answers:?}");
}

#[test]
fn a_connection_is_followed() {
    let mut screen = settled("rping-crc.pcap");
    type_in(&mut screen, Purpose::Frame, "16");
    commands(&mut screen, &[Command::Open(lines::Kind::Messages)]);
    insta::assert_snapshot!(text_of(&mut screen));
    commands(&mut screen, &[Command::Move(Motion::First)]);
    commands(&mut screen, &[Command::Open(lines::Kind::Payload)]);
    assert!(text_of(&mut screen).contains("Payload of connection 0"));
    commands(&mut screen, &[Command::Move(Motion::Last), Command::Toggle]);
    // Frame 48 ends the last message with payload. In tshark, the filter for these messages is
    // iwarp_rdma.opcode in {0, 2..6}.
    assert_eq!((selected_frame(&screen), screen.overlay.is_none()), (48, true));
}

/// Clicks on the first occurrence of `words`.
pub(super) fn click(screen: &mut Screen, words: &str) {
    let shown = text_of(screen);
    let found = shown.lines().enumerate().find_map(|(row, line)| Some((row, line.find(words)?, line)));
    let (row, at, line) = found.unwrap_or_else(|| panic!("no {words:?}: {shown}"));
    let column = line[..at].chars().count();
    let at = ratatui::layout::Position::new(u16::try_from(column).unwrap(), u16::try_from(row).unwrap());
    screen.mouse(Mouse::Click(at));
    settle(screen);
}

#[test]
fn the_mouse_selects_and_opens() {
    let mut screen = at("rping-crc.pcap", "MPA Request");
    let number = selected_frame(&screen);
    click(&mut screen, "TCP SYN ACK");
    assert_eq!((selected_frame(&screen), screen.focus), (number - 2, Panel::Packets));
    click(&mut screen, "MPA Request  Rev");
    // A click on a field marks the bytes of the field. A click on a byte selects its field.
    click(&mut screen, "Key: ");
    assert!(screen.focus == Panel::Fields && screen.fields.selected().unwrap().text.contains("MPA ID Req Frame"));
    click(&mut screen, "4d 50 41 20");
    assert_eq!(screen.focus, Panel::Octets);
    assert!(screen.fields.selected().unwrap().text.contains("MPA ID Req Frame"));
    click(&mut screen, "▸ Frame");
    let lines = screen.fields.shown().len();
    click(&mut screen, "▸ Frame");
    assert!(screen.fields.shown().len() > lines);
    commands(&mut screen, &[Command::Open(lines::Kind::Ladder)]);
    text_of(&mut screen);
    let first = screen.overlay.as_ref().unwrap().list.selected;
    screen.mouse(Mouse::Scroll(ratatui::layout::Position::new(5, 5), Motion::Down));
    assert_eq!(screen.overlay.as_ref().unwrap().list.selected, first + 3);
    click(&mut screen, "RDMA Read Request");
    click(&mut screen, "RDMA Read Request");
    assert!(screen.overlay.is_none() && screen.row().unwrap().summary.starts_with("RDMA Read Request"));
}
