//! Tests with a very long capture, and with a growing capture.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::recording::Part;
use super::tests::selected_frame;
use super::*;
use crate::terminal::Screen as _;
use crate::testing::{capture_path, drawn, text};

/// The number of bytes after which the first screen must be complete.
const EARLY: u64 = 16 << 20;
/// The length of the capture in bytes.
const LEN: u64 = 1 << 30;
/// The length of each frame in bytes. Frames are long. A small number of frames therefore uses up
/// the bytes that the readers are allowed to read.
const FRAME: usize = 64 << 10;

/// The number of bytes that all readers together have read, and the number that they are allowed to
/// read.
#[derive(Default)]
struct Gate {
    state: Mutex<(u64, u64)>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self, octets: u64) {
        let mut state = self.state.lock().unwrap();
        while state.0 + octets > state.1 {
            state = self.opened.wait(state).unwrap();
        }
        state.0 += octets;
    }

    fn open(&self, until: u64) {
        self.state.lock().unwrap().1 = until;
        self.opened.notify_all();
    }
}

/// A synthetic pcap of empty frames, generated while it is read.
struct Made {
    at: u64,
    record: Vec<u8>,
    gate: Arc<Gate>,
}

impl Made {
    fn new(gate: &Arc<Gate>) -> Self {
        let mut record = vec![0; 8];
        record.extend([u32::try_from(FRAME).unwrap().to_le_bytes(); 2].concat());
        record.resize(16 + FRAME, 0);
        Made { at: 0, record, gate: Arc::clone(gate) }
    }
}

impl Read for Made {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        // pcap-savefile(5): the header has the magic number, version 2.4, no time zone, a snap
        // length, and the link type Ethernet.
        const HEADER: [u8; 24] = *b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0\x01\0\0\0";
        let octets = match usize::try_from(self.at).unwrap() {
            at if at < HEADER.len() => &HEADER[at..],
            at if self.at < LEN => &self.record[(at - HEADER.len()) % self.record.len()..],
            _ => &[],
        };
        let count = octets.len().min(out.len());
        self.gate.pass(count as u64);
        out[..count].copy_from_slice(&octets[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

fn wait(screen: &mut Screen, is_so: impl Fn(&Screen) -> bool) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !is_so(screen) {
        assert!(Instant::now() < deadline, "timeout after {} frames", screen.index.len());
        if !screen.poll() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_huge_capture_shows_its_first_screen_early_and_scrolling_does_not_wait() {
    let gate = Arc::new(Gate::default());
    gate.open(EARLY);
    let opener = Arc::clone(&gate);
    let mut screen = Screen::of(Recording::made(move || Box::new(Made::new(&opener))), "huge.pcap".to_owned());
    // Wait for more rows than a terminal of 50 lines shows.
    wait(&mut screen, |screen| screen.index.len() >= 50);
    let shown = text(&drawn(&mut screen, 200, 50));
    assert!(shown.contains("reading, ") && shown.contains("     15 "), "{shown}");
    // The readers are blocked now, but the list still scrolls.
    let mut places = Vec::new();
    for motion in [Motion::Down, Motion::PageDown, Motion::Last, Motion::First] {
        screen.command(Command::Move(motion));
        drawn(&mut screen, 200, 50);
        places.push(screen.packets.selected);
    }
    assert!(places[0] == 1 && places[1] > 10 && places[2] >= 49 && places[3] == 0, "{places:?}");
    gate.open(u64::MAX);
    wait(&mut screen, |screen| screen.end.is_some());
    let frames = LEN as usize / (FRAME + 16);
    assert!((frames..=frames + 1).contains(&screen.index.len()), "{}", screen.index.len());
}

/// Allows readers to read `octets` bytes of the last file in `paths`.
fn grown(recording: &Recording, paths: &[(&Path, u64)], octets: u64) {
    let part = |(path, before): &(&Path, u64)| Part { path: path.to_path_buf(), before: *before };
    let live = Live { what: "eth0".to_owned(), files: paths.len() as u64, dropped_by_kernel: 7, ..Live::default() };
    recording.update(paths.iter().map(part), octets, live);
}

#[test]
fn shows_a_live_capture_while_it_grows() {
    let recording = Recording::live("eth0");
    let mut screen = Screen::live(recording.clone());
    screen.theme = Theme::Dark;
    assert!(!screen.poll() && text(&drawn(&mut screen, 100, 24)).contains("live  frames 0"));
    // Compute the length of the first eight records. The capture has a header of 24 bytes. Each
    // record has a header of 16 bytes and a frame.
    let path = capture_path("rping-crc.pcap");
    let mut capture = weft_dissector::source::Capture::open(&path).unwrap();
    let mut octets = 24;
    for _ in 0..8 {
        octets += 16 + capture.next_frame().unwrap().octets.len() as u64;
    }
    grown(&recording, &[(&path, 0)], octets);
    wait(&mut screen, |screen| screen.index.len() == 8);
    assert_eq!((selected_frame(&screen), screen.end.is_none()), (8, true), "the newest is selected");
    let shown = text(&drawn(&mut screen, 100, 24));
    assert!(shown.contains("eth0") && shown.contains("dropped 7 + 0  files 1"), "{shown}");
    let narrow = text(&drawn(&mut screen, 60, 24));
    assert!(narrow.contains(" weft  eth0 ") && narrow.contains("dropped 7 + 0"), "{narrow}");
    // While the list is paused, it does not change, although the capture grows.
    screen.command(Command::Pause);
    grown(&recording, &[(&path, 0)], path.metadata().unwrap().len());
    wait(&mut screen, |screen| screen.index.len() == 52);
    assert_eq!((screen.listed(), selected_frame(&screen)), (8, 8));
    assert!(text(&drawn(&mut screen, 100, 24)).contains("PAUSED"));
    screen.command(Command::Pause);
    assert_eq!((screen.listed(), selected_frame(&screen)), (52, 52));
    screen.filtered = Some(PacketFilter::start(&recording, "frame.number > 50", None).unwrap());
    wait(&mut screen, |screen| screen.listed() == 2);
    // There is a second file, and the capturing code has deleted the first file.
    grown(&recording, &[(&path, 52)], path.metadata().unwrap().len());
    wait(&mut screen, |screen| screen.index.len() == 104 && screen.listed() == 54);
    assert_eq!(selected_frame(&screen), 104);
    recording.end();
    wait(&mut screen, |screen| screen.end.is_some() && screen.detail().is_some());
    assert!(!recording.is_left());
    drop(screen);
    assert!(recording.is_left());
    recording.wait_until_left();
}
