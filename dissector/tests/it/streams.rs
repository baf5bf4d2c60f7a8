//! Tests the monitor (the dissector with its rules) with the streams of `interop/streams`, which
//! were written only from the specifications. Some streams are legal but unusual. Each of the other
//! streams has one fault: it violates one requirement in one place. The monitor must report nothing
//! about a legal stream. It must find the fault of each other stream. It must find the fault even
//! in an incomplete capture, if the capture still contains the evidence.
//!
//! Each capture has the streams of one set and mode, each on its own interface. The table with the
//! same name has a row for each stream, in the order of the interfaces.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use weft_core::requirement::Severity;
use weft_dissector::unit::Unit;
use weft_dissector::{Finding, FrameNumber, Sink};

use crate::habits::{CapturedFrame, Dice, Effect, Frames, HABITS, Habit, Sent, dissect, read, sent};

/// The modes: `crc` has CRC and no markers, `plain` has neither CRC nor markers, and `markers` has
/// both.
const MODES: [&str; 3] = ["crc", "plain", "markers"];

/// Sets of streams with a fault.
const FAULTY: [&str; 3] = ["illegal", "harder", "more"];

/// Streams whose fault the monitor misses in every mode. A fault also counts as missed if the
/// finding names other octets than the table of the streams. If the monitor finds the fault of a
/// stream, remove the stream from this list.
const MISSED: &[&str] = &[
    "H17-atomic-before-read",
    "H30-mode-too-early",
    "H32-rd-compl-early",
    "H44-resize-again",
    "I57-immediate-7",
    "I64-payload-on-2-credits",
    "M01-reply-surplus",
    "M14-response-long",
    "M16-read-request-short",
    "M37-write-after-cancel",
    "M38-buffered-too-early",
    "M42-oob-pend-twice",
];

/// Legal streams that violate a SHOULD or RECOMMENDED on purpose, each with the requirement. The
/// monitor is right to report a warning for this requirement.
const SHOULD: &[(&str, &str)] = &[
    ("L70", "DDP-5.3-2"),
    ("L71", "DDP-5.3-2"),
    ("L73", "MPA-4.5-6"),
    ("L76", "MPA-4.5-6"),
    ("L101", "SDP-9.2-26"),
    ("L107", "SDP-9.3-9"),
    ("L159", "RDMAP-6.2.1-8"),
    ("L11", "MPA-7.1.2-5"),
    ("L160", "RDMAP-4.8-39"),
];

/// Legal streams about which the monitor has false or disputed findings, each with the reason. If a
/// stream has no findings any more, remove the stream from this list.
const OPEN: &[(&str, &str)] =
    &[("L83", "disputed: the STag in the Send belongs to a different stream, which only the receiver can know")];

/// Streams with a fault that the monitor no longer finds after a habit (an effect of capturing).
/// Each entry has the stream, the beginning of the habit's name, and the reason why the changed
/// capture does not prove the fault.
const SILENT: &[(&str, &str, &str)] = &[("M23", "one frame with payload lost", ANOTHER_REQUEST)];

/// RFC 5040, section 5.2.2: "The Data Source RDMAP layer MUST pass RDMA Read Response Messages to
/// the DDP layer, in the order that the RDMA Read Request Messages were received by the RDMAP
/// layer". In each direction, octets before the evidence are missing. Of two segments of a
/// Response, the segment with L=1 comes first. It is possible that this segment is the end of the
/// Response to a missing Request, and that the other segment is the start of the Response to the
/// next Request.
const ANOTHER_REQUEST: &str =
    "the segments can belong to the Responses to two Requests, and these Requests can be in the missing octets";

/// The ordinary test applies every `SHARE`th habit to each stream, beginning with a different habit
/// for each stream. The long test applies all habits.
const SHARE: usize = 12;
/// Number of seeds for each habit in the long test.
const SEEDS: u64 = 1;

/// One stream of a capture.
struct Stream {
    /// Name, mode and description of the stream. The name begins with the stream's number.
    name: String,
    frames: Frames,
    /// The requirements that describe the fault. The monitor must report one of them. The set is
    /// empty for a legal stream.
    accepted: BTreeSet<String>,
    /// The number of the frame with the fault (the first frame has number 1), and the offset of the
    /// wrong octet in this frame.
    fault: Option<(FrameNumber, u32)>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Sink for Findings {
    fn unit(&mut self, _: &Unit<'_>) {}

    fn finding(&mut self, finding: &Finding) {
        self.0.push(finding.clone());
    }
}

fn findings<'f>(frames: impl IntoIterator<Item = &'f CapturedFrame>) -> Vec<Finding> {
    let mut findings = Findings::default();
    dissect(frames, &mut findings);
    findings.0
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/streams")
}

/// Reads the streams of a set and mode. The columns of the table are name, requirements, frame,
/// octet and description, separated by tabs.
fn streams(set: &str, mode: &str) -> Vec<Stream> {
    let table = fs::read_to_string(folder().join(format!("{set}-{mode}.tsv"))).unwrap();
    let row = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, accepted, frame, octet, description] = columns[..] else { panic!("five columns: {line}") };
        let fault = frame.parse().ok().map(|frame| (frame, octet.parse().unwrap()));
        let accepted = accepted.split(' ').filter(|id| !id.is_empty()).map(str::to_owned).collect();
        Stream { name: format!("{name}, {mode} ({description})"), frames: Vec::new(), accepted, fault }
    };
    let mut streams: Vec<Stream> = table.lines().skip(1).map(row).collect();
    for mut frame in read(&folder().join(format!("{set}-{mode}.pcapng.xz"))) {
        let stream = std::mem::take(&mut frame.interface);
        streams[stream as usize].frames.push(frame);
    }
    assert!(streams.iter().all(|stream| !stream.frames.is_empty()), "each stream of {set}-{mode} has frames");
    streams
}

fn faulty() -> impl Iterator<Item = Stream> {
    FAULTY.iter().flat_map(|set| MODES.iter().flat_map(|mode| streams(set, mode)))
}

impl Stream {
    /// Returns the number of the stream with its letter, for example `L70` for
    /// `L70-untagged-segments-out-of-mo-order`.
    fn number(&self) -> &str {
        self.name.split('-').next().unwrap()
    }

    /// Returns the accepted requirements for which `findings` has a finding.
    fn named(&self, findings: &[Finding]) -> BTreeSet<String> {
        let named = findings.iter().map(|finding| finding.requirement.to_string());
        named.filter(|id| self.accepted.contains(id)).collect()
    }

    /// Returns whether a finding is about the fault and names its octet.
    fn is_found(&self) -> bool {
        let (frame, octet) = self.fault.unwrap();
        let covers = |finding: &Finding| {
            finding.locations.iter().any(|at| {
                let start = at.offset.map(u64::from);
                at.frame == frame && start.is_some_and(|start| (start..start + at.len).contains(&u64::from(octet)))
            })
        };
        let is_accepted = |finding: &&Finding| self.accepted.contains(&finding.requirement.to_string());
        findings(&self.frames).iter().filter(is_accepted).any(covers)
    }

    /// Returns the frames that the dissector needs as evidence for `id`. If one of these frames is
    /// missing, the dissector does not report `id`.
    fn evidence(&self, id: &str) -> Vec<Sent> {
        let mut needed: Vec<&CapturedFrame> = self.frames.iter().collect();
        let mut at = 0;
        while at < needed.len() {
            let removed = needed.remove(at);
            if !findings(needed.iter().copied()).iter().any(|finding| finding.requirement.to_string() == id) {
                needed.insert(at, removed);
                at += 1;
            }
        }
        needed.into_iter().map(sent).collect()
    }

    /// Returns the requirements that the dissector no longer reports after a habit, although the
    /// changed capture has the evidence.
    fn silenced(&self, named: &BTreeSet<String>, habit: &Habit, seed: u64) -> Vec<String> {
        let mut frames = self.frames.clone();
        (habit.change)(&mut frames, &mut Dice::new(seed));
        let still = self.named(&findings(&frames));
        let missing: Vec<&String> = named.difference(&still).collect();
        if missing.is_empty() {
            return Vec::new();
        }
        let original: Vec<Sent> = self.frames.iter().map(sent).collect();
        let captured: Vec<Sent> = frames.iter().map(sent).collect();
        let is_open = SILENT.iter().any(|(number, name, _)| self.number() == *number && habit.name.starts_with(name));
        let is_silenced = |id: &&String| !is_open && is_kept(&self.evidence(id), &original, &captured, habit.effect);
        let silenced = missing.into_iter().filter(is_silenced);
        silenced.map(|id| format!("{}: {}, seed {seed}: {id}", self.name, habit.name)).collect()
    }
}

/// Returns whether a changed capture still has the evidence.
///
/// If a habit loses or changes frames, the capture must still have each frame of the evidence
/// unchanged. If frames are reordered or seem to be missing, the capture no longer shows which
/// endpoint sent first, and it no longer shows what an endpoint had received. In this case, the
/// evidence counts only if one endpoint sent all of it, because the TCP sequence numbers still show
/// the order of these frames. Datagrams have no sequence numbers, so evidence in datagrams is lost.
fn is_kept(evidence: &[Sent], original: &[Sent], captured: &[Sent], effect: Effect) -> bool {
    let has_all = || evidence.iter().all(|frame| captured.contains(frame));
    let needs_order = evidence.iter().any(|frame| frame.from != evidence[0].from || frame.header.is_none());
    match effect {
        Effect::Keeps => true,
        Effect::Loses => has_all(),
        Effect::Reorders => has_all() && !(needs_order && is_reordered(original, captured)),
        Effect::Puzzles => !needs_order,
        Effect::Confuses => false,
    }
}

/// Returns whether `captured` has the frames in a different order than `original`.
fn is_reordered(original: &[Sent], captured: &[Sent]) -> bool {
    let place = |frame| captured.iter().position(|other| other == frame);
    !original.iter().map(place).is_sorted()
}

fn none(wrong: &[String], what: &str) {
    assert!(wrong.is_empty(), "{} {what}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Applies habits to the streams with a fault. `is_tried` selects the pairs by the indices of the
/// stream and of the habit.
fn hide_no_fault(is_tried: impl Fn(usize, usize) -> bool, seeds: u64) {
    let mut silenced = Vec::new();
    let mut tried = 0;
    for (number, stream) in faulty().enumerate() {
        let named = stream.named(&findings(&stream.frames));
        for (_, habit) in HABITS.iter().enumerate().filter(|(place, _)| is_tried(number, *place)) {
            for seed in 0..seeds {
                tried += named.len();
                silenced.extend(stream.silenced(&named, habit, seed));
            }
        }
    }
    println!("{} of {tried} findings lost although their evidence was captured", silenced.len());
    none(&silenced, "findings lost although their evidence was captured");
}

#[test]
fn legal_streams_are_not_accused() {
    let mut accused: BTreeMap<String, String> = BTreeMap::new();
    for stream in MODES.iter().flat_map(|mode| streams("legal", mode)) {
        let is_right = |id: &str| SHOULD.contains(&(stream.number(), id));
        let alarms = findings(&stream.frames).into_iter().filter(|finding| finding.severity > Severity::Note);
        let alarms = alarms.map(|alarm| (alarm.requirement.to_string(), alarm.frame));
        let ids: Vec<String> =
            alarms.filter(|(id, _)| !is_right(id)).map(|(id, at)| format!("{id} in frame {at}")).collect();
        if !ids.is_empty() {
            let lines = accused.entry(stream.number().to_owned()).or_default();
            lines.push_str(&format!("{}: {}\n", stream.name, ids.join(", ")));
        }
    }
    let closed: Vec<&str> = OPEN.iter().map(|(number, _)| *number).filter(|it| accused.remove(*it).is_none()).collect();
    none(&accused.into_values().collect::<Vec<_>>(), "legal streams with false findings");
    assert!(closed.is_empty(), "remove these streams from OPEN, because they have no findings: {}", closed.join(" "));
}

#[test]
fn faults_are_found_with_their_octet() {
    let missed: BTreeSet<String> = faulty().filter(|stream| !stream.is_found()).map(|stream| stream.name).collect();
    let is_known = |name: &str| MISSED.iter().any(|known| name.starts_with(&format!("{known}, ")));
    none(&missed.iter().filter(|name| !is_known(name)).cloned().collect::<Vec<_>>(), "faults missed");
    let is_found = |known: &&str| {
        MODES.iter().any(|mode| !missed.iter().any(|name| name.starts_with(&format!("{known}, {mode} "))))
    };
    let found: Vec<&str> = MISSED.iter().copied().filter(is_found).collect();
    assert!(found.is_empty(), "remove these streams from MISSED, because a mode finds them: {}", found.join(" "));
}

#[test]
fn habits_of_capturing_hide_no_fault() {
    hide_no_fault(|stream, habit| (stream + habit).is_multiple_of(SHARE), 1);
}

#[test]
#[ignore = "minutes: every habit on every stream"]
fn every_habit_hides_no_fault() {
    hide_no_fault(|_, _| true, SEEDS);
}
