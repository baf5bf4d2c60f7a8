//! These tests check that an incomplete or changed capture causes no false findings. A *habit* is a
//! way in which the method of capturing changes a capture. After any habit, the monitor (the
//! dissector with its rules) must report errors and warnings only for requirements that the
//! original capture violates as well.
//!
//! The ordinary test applies each habit alone, and some combinations of two or three habits.
//! `.ci/checks/habits` tests more captures and more combinations:
//!
//! ```text
//! cargo test --workspace --test it -- --ignored --nocapture metamorphic::every_habit
//! ```
//!
//! With `WEFT_HABITS=FOLDER`, the test also uses the captures in a folder. Each line of the output
//! has a capture, the habits that were applied to this capture, and the seed. With
//! `WEFT_HABITS_ONLY=LINE`, the test applies only the habits of this line, and keeps the changed
//! capture. With `WEFT_HABITS_COMPOSITIONS=N`, the test applies N combinations.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use weft_core::requirement::Severity;

use weft_dissector::unit::Unit;
use weft_dissector::{Finding, FrameNumber, Sink};

use crate::habits::{CapturedFrame, Dice, Effect, Frames, HABITS, Habit, dissect, read};

/// Number of combinations of two or three habits, in the ordinary test and in the long test.
const COMPOSITIONS: [usize; 2] = [300, 1500];
/// Number of seeds for each single habit, in the ordinary test and in the long test.
const SEEDS: [u64; 2] = [2, 8];
/// Maximum number of frames of a capture in the ordinary test. The long test uses longer captures
/// as well.
const SHORT: usize = 400;
/// The test uses a capture only if it violates at most this number of requirements. For a
/// requirement that the capture violates, the test cannot notice false findings.
const MAX_VIOLATED: usize = 4;

/// The requirements for which errors or warnings were reported, each with the frame of its first
/// error or warning.
#[derive(Default)]
struct Alarms(BTreeMap<String, FrameNumber>);

impl Sink for Alarms {
    fn unit(&mut self, _: &Unit<'_>) {}

    fn finding(&mut self, finding: &Finding) {
        if finding.severity > Severity::Note {
            self.0.entry(finding.requirement.to_string()).or_insert(finding.frame);
        }
    }
}

fn alarms(frames: &[CapturedFrame]) -> BTreeMap<String, FrameNumber> {
    let mut alarms = Alarms::default();
    dissect(frames, &mut alarms);
    alarms.0
}

/// A capture, and the requirements that the unchanged capture violates.
struct Original {
    name: String,
    frames: Frames,
    violated: BTreeMap<String, FrameNumber>,
}

impl Original {
    fn new(path: &Path) -> Self {
        let frames = read(path);
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        Original { name, violated: alarms(&frames), frames }
    }

    /// Returns the findings that only the capture `changed` has, as a line of text. Returns `None`
    /// if it has no such findings. `how` describes the change.
    fn accused(&self, changed: &[CapturedFrame], how: &str) -> Option<String> {
        let found = alarms(changed).into_iter().filter(|(id, _)| !self.violated.contains_key(id));
        let found: Vec<String> = found.map(|(id, frame)| format!("{id} in frame {frame}")).collect();
        (!found.is_empty()).then(|| format!("{}, {how}: {}", self.name, found.join(", ")))
    }
}

/// The capture files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "pcap") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths
}

/// The captures of the project and of the folder `further` that violate at most [`MAX_VIOLATED`]
/// requirements. If several files have equal content, only one of them is used.
fn captures(further: Option<&Path>) -> Vec<Original> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    let mut paths = files(&own);
    paths.extend(further.into_iter().flat_map(files));
    let mut known = HashSet::new();
    paths.retain(|path| known.insert(fs::read(path).unwrap()));
    let count = paths.len();
    let mut captures: Vec<Original> = paths.iter().map(|path| Original::new(path)).collect();
    captures.retain(|original| original.violated.len() <= MAX_VIOLATED);
    println!("{} of {count} captures violate few requirements", captures.len());
    captures
}

/// A capture, and the habits to apply to it.
struct Trial<'c> {
    original: &'c Original,
    habits: Vec<&'static Habit>,
    seed: u64,
}

impl Trial<'_> {
    fn how(&self) -> String {
        let habits: Vec<&str> = self.habits.iter().map(|habit| habit.name).collect();
        format!("{}, seed {}", habits.join(" + "), self.seed)
    }

    fn frames(&self) -> Frames {
        let mut frames = self.original.frames.clone();
        let mut dice = Dice::new(self.seed);
        self.habits.iter().for_each(|habit| (habit.change)(&mut frames, &mut dice));
        frames
    }

    fn accused(&self) -> Option<String> {
        self.original.accused(&self.frames(), &self.how())
    }
}

/// Combines each habit that loses a direction with each habit that cuts frames. Both kinds of
/// habits are common: some taps are on only one fibre, and some captures have only headers.
fn sides_of_cut_frames() -> impl Iterator<Item = [&'static Habit; 2]> {
    let named = |part| HABITS.iter().filter(move |habit| habit.effect == Effect::Loses && habit.name.contains(part));
    named(" direction ").flat_map(move |side| named(" of each frame").map(move |cut| [side, cut]))
}

/// Applies each habit to each capture, then the pairs of [`sides_of_cut_frames`], then
/// combinations.
fn trials(captures: &[Original], seeds: u64, compositions: usize) -> Vec<Trial<'_>> {
    let mut dice = Dice::new(0);
    let mut trials = Vec::new();
    for original in captures {
        for seed in 0..seeds {
            trials.extend(HABITS.iter().map(|habit| Trial { original, habits: vec![habit], seed }));
        }
        trials.extend(sides_of_cut_frames().map(|pair| Trial { original, habits: pair.to_vec(), seed: 0 }));
    }
    for seed in 0..compositions as u64 {
        let count = 2 + dice.below(2);
        let mut habits: Vec<&Habit> = (0..count).map(|_| &HABITS[dice.below(HABITS.len())]).collect();
        // First apply the habits that turn CRC off. These habits change what the endpoints send.
        // All other habits change frames after the endpoints have sent them.
        habits.sort_by_key(|habit| !habit.name.starts_with("CRC off"));
        trials.push(Trial { original: &captures[dice.below(captures.len())], habits, seed });
    }
    trials
}

fn quiet(accused: impl Iterator<Item = String>) {
    let lines: Vec<String> = accused.collect();
    assert!(lines.is_empty(), "{} changed captures have false findings:\n{}", lines.len(), lines.join("\n"));
}

/// Cuts a capture before each frame. Returns the findings that one of the two parts has, but that
/// the complete capture does not have.
fn cuts(original: &Original) -> impl Iterator<Item = String> {
    let ends = |at| original.accused(&original.frames[..at], &format!("the first {at} frames"));
    let begins = |at| original.accused(&original.frames[at..], &format!("without the first {at} frames"));
    (0..original.frames.len()).flat_map(move |at| [ends(at), begins(at)]).flatten()
}

fn short_captures() -> Vec<Original> {
    let mut captures = captures(None);
    captures.retain(|original| original.frames.len() <= SHORT);
    assert!(captures.len() >= 30, "{} captures violate few requirements", captures.len());
    captures
}

#[test]
fn habits_of_capturing_accuse_nobody() {
    let captures = short_captures();
    quiet(trials(&captures, SEEDS[0], COMPOSITIONS[0]).iter().filter_map(Trial::accused));
}

#[test]
fn cuts_at_any_frame_accuse_nobody() {
    quiet(short_captures().iter().flat_map(cuts));
}

#[test]
#[ignore = "minutes; see the head of this file"]
fn every_habit() {
    let further = env::var_os("WEFT_HABITS").map(PathBuf::from);
    let captures = captures(further.as_deref());
    let compositions = env::var("WEFT_HABITS_COMPOSITIONS").map_or(COMPOSITIONS[1], |count| count.parse().unwrap());
    let trials = trials(&captures, SEEDS[1], compositions);
    let pairs = sides_of_cut_frames().count();
    assert!(pairs >= 60, "{pairs} pairs");
    let cut: usize = captures.iter().map(|original| 2 * original.frames.len()).sum();
    println!(
        "{} captures, {} habits with {} seeds each, {pairs} pairs of habits, {compositions} other combinations, {cut} cuts",
        captures.len(),
        HABITS.len(),
        SEEDS[1]
    );
    if let Ok(line) = env::var("WEFT_HABITS_ONLY") {
        let named = |trial: &&Trial<'_>| line.starts_with(&format!("{}, {}:", trial.original.name, trial.how()));
        let trial = trials.iter().find(named).unwrap();
        let path = env::temp_dir().join("weft-habits.pcap");
        fs::write(&path, pcap(&trial.frames())).unwrap();
        println!("the changed capture: {}", path.display());
        return quiet(trial.accused().into_iter());
    }
    quiet(captures.iter().flat_map(cuts).chain(trials.iter().filter_map(Trial::accused)));
}

/// Returns a classic pcap file with times in nanoseconds. The file contains only the frames that
/// have the same link type as the first frame.
fn pcap(frames: &Frames) -> Vec<u8> {
    let word = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
    let link_type = frames.first().map_or(1, |frame| frame.link_type);
    let mut file = Vec::new();
    for value in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 0x0004_0000, usize::from(link_type)] {
        file.extend(word(value));
    }
    for frame in frames.iter().filter(|frame| frame.link_type == link_type) {
        let (seconds, rest) = (frame.time / 1_000_000_000, frame.time % 1_000_000_000);
        for value in [seconds as usize, rest as usize, frame.octets.len(), frame.wire_len as usize] {
            file.extend(word(value));
        }
        file.extend(&frame.octets);
    }
    file
}
