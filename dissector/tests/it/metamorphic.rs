//! What is missing from a capture accuses nobody: a capture as other habits of capturing would have
//! it shows no error and no warning of a requirement that the complete capture keeps.
//!
//! The ordinary test takes each habit and some compositions of two or three. `.ci/checks/habits`
//! runs more of both:
//!
//! ```text
//! cargo test --workspace --test it -- --ignored --nocapture metamorphic::every_habit
//! ```
//!
//! `WEFT_HABITS=FOLDER` adds the captures of a folder. Each line of the output names capture,
//! habits and seed; `WEFT_HABITS_ONLY=LINE` tries that line alone, and keeps the changed capture.
//! `WEFT_HABITS_COMPOSITIONS=N` tries N compositions.
#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint's own exception covers test functions only")]

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use weft_core::requirement::Severity;

use weft_dissector::unit::Unit;
use weft_dissector::{Finding, Sink};

use crate::habits::{CapturedFrame, Dice, Effect, Frames, HABITS, Habit, dissect, read};

/// Compositions of two or three habits, in the ordinary test and in the long one.
const COMPOSITIONS: [usize; 2] = [300, 1500];
/// Seeds that each single habit is tried with.
const SEEDS: [u64; 2] = [2, 8];
/// Captures with more frames are left to the long test.
const SHORT: usize = 400;
/// A capture that violates more requirements as it is cannot show what a habit adds.
const MOST_VIOLATED: usize = 4;

/// The requirements of errors and warnings, each with its first frame.
#[derive(Default)]
struct Alarms(BTreeMap<String, u64>);

impl Sink for Alarms {
    fn unit(&mut self, _: &Unit<'_>) {}

    fn finding(&mut self, finding: &Finding) {
        if finding.severity > Severity::Note {
            self.0.entry(finding.requirement.to_string()).or_insert(finding.frame);
        }
    }
}

fn alarms(frames: &[CapturedFrame]) -> BTreeMap<String, u64> {
    let mut alarms = Alarms::default();
    dissect(frames, &mut alarms);
    alarms.0
}

/// A capture, and which requirements it violates as it is.
struct Original {
    name: String,
    frames: Frames,
    violated: BTreeMap<String, u64>,
}

impl Original {
    fn new(path: &Path) -> Self {
        let frames = read(path);
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        Original { name, violated: alarms(&frames), frames }
    }

    /// What the `changed` capture accuses of and the original does not; `how` it was changed.
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

/// The captures of the project and of `further` folders that violate few requirements; equal files
/// once.
fn captures(further: Option<&Path>) -> Vec<Original> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    let mut paths = files(&own);
    paths.extend(further.into_iter().flat_map(files));
    let mut known = HashSet::new();
    paths.retain(|path| known.insert(fs::read(path).unwrap()));
    let count = paths.len();
    let mut captures: Vec<Original> = paths.iter().map(|path| Original::new(path)).collect();
    captures.retain(|original| original.violated.len() <= MOST_VIOLATED);
    println!("{} of {count} captures violate few requirements", captures.len());
    captures
}

/// A capture, and habits by their numbers.
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

/// Each habit that loses a direction with each that cuts the frames. Both are common: a tap of one
/// fibre, and a capture of headers alone.
fn sides_of_cut_frames() -> impl Iterator<Item = [&'static Habit; 2]> {
    let named = |part| HABITS.iter().filter(move |habit| habit.effect == Effect::Loses && habit.name.contains(part));
    named(" direction ").flat_map(move |side| named(" of each frame").map(move |cut| [side, cut]))
}

/// Each habit on each capture, then the pairs of [`sides_of_cut_frames`], then compositions.
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
        // The ends leave CRCs out. All other habits are those of the tap, so they come later.
        habits.sort_by_key(|habit| !habit.name.starts_with("CRC off"));
        trials.push(Trial { original: &captures[dice.below(captures.len())], habits, seed });
    }
    trials
}

fn quiet(accused: impl Iterator<Item = String>) {
    let lines: Vec<String> = accused.collect();
    assert!(lines.is_empty(), "{} false accusations:\n{}", lines.len(), lines.join("\n"));
}

/// Each beginning and each end of a capture.
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
        "{} captures through {} habits with {} seeds each and {pairs} pairs, {compositions} compositions of two or three, {cut} cuts",
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

/// A classic pcap file, in nanoseconds, of the frames with the first one's link type.
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
