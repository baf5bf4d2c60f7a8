//! Streams that `interop/streams` writes from the specifications alone: legal ones that are odd,
//! and ones that break one requirement in one place. Nobody is accused of a legal stream; faults of
//! the illegal ones are found, and are still found in captures that keep the evidence.
//!
//! A capture has the streams of one set and mode, each on an interface of its own. The table beside
//! it has a row for each stream, in the order of the interfaces.
#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint's own exception covers test functions only")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use weft_core::requirement::Severity;
use weft_dissector::unit::Unit;
use weft_dissector::{Finding, Sink};

use crate::habits::{CapturedFrame, Dice, Effect, Frames, HABITS, Habit, Sent, dissect, read, sent};

/// CRC, neither CRC nor markers, both.
const MODES: [&str; 3] = ["crc", "plain", "markers"];

/// Sets of streams with a fault.
const FAULTY: [&str; 3] = ["illegal", "harder", "more"];

/// Streams whose fault is missed in every mode. A fault counts as missed, too, if its requirement
/// is named with other octets than the author of the stream chose. A stream whose fault is found
/// must leave the list.
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

/// Streams that leave a SHOULD or RECOMMENDED unkept on purpose, and the row whose warning is
/// right.
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

/// Legal streams that are still accused, and why that is wrong or disputed. A stream that is
/// accused no longer must leave the list.
const OPEN: &[(&str, &str)] =
    &[("L83", "disputed: the Send names an STag; that it is not of this stream the receiver alone can know")];

/// Streams with a fault that is no longer found after a habit, by the beginning of the habit's
/// name; and why the rest of the capture proves no fault.
const SILENT: &[(&str, &str, &str)] = &[("M23", "one frame with payload lost", ANOTHER_REQUEST)];

/// RFC 5040, section 5.2.2: "The Data Source RDMAP layer MUST pass RDMA Read Response Messages to
/// the DDP layer, in the order that the RDMA Read Request Messages were received by the RDMAP
/// layer". Each direction lacks octets before the evidence: there may be a Request of the Response
/// whose last segment comes first, and the other segment then begins the Response to the next
/// Request.
const ANOTHER_REQUEST: &str = "the segments may be of Responses to two Requests, which are among the missing octets";

/// The ordinary test tries one habit in `SHARE` with each stream, the long one all.
const SHARE: usize = 12;
/// Seeds of the long test.
const SEEDS: u64 = 1;

/// One stream of a capture.
struct Stream {
    /// Its name, which begins with its number, and what it shows.
    name: String,
    frames: Frames,
    /// The requirements of which any one names the fault; none for a legal stream.
    accepted: BTreeSet<String>,
    /// The frame of the fault, from 1, and the octet in it.
    fault: Option<(u64, u32)>,
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

/// Streams of a set and mode: columns are name, requirements, frame, octet and description, apart
/// by tabs.
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
    /// The number with its letter, `L70` of `L70-untagged-segments-out-of-mo-order`.
    fn number(&self) -> &str {
        self.name.split('-').next().unwrap()
    }

    /// Those of the accepted requirements of which `findings` has one.
    fn named(&self, findings: &[Finding]) -> BTreeSet<String> {
        let named = findings.iter().map(|finding| finding.requirement.to_string());
        named.filter(|id| self.accepted.contains(id)).collect()
    }

    /// Does a finding name the fault and its octet?
    fn is_found(&self) -> bool {
        let (frame, octet) = self.fault.unwrap();
        let covers = |finding: &Finding| {
            finding.located.iter().any(|at| {
                let start = at.offset.map(u64::from);
                at.frame == frame && start.is_some_and(|start| (start..start + at.len).contains(&u64::from(octet)))
            })
        };
        let is_accepted = |finding: &&Finding| self.accepted.contains(&finding.requirement.to_string());
        findings(&self.frames).iter().filter(is_accepted).any(covers)
    }

    /// Frames without any one of which the dissector no longer names `id`: what it needs as
    /// evidence.
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

    /// The requirements that are no longer named in a capture with a habit, although it keeps the
    /// evidence.
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

/// Does a capture keep the evidence?
///
/// A habit that loses or changes frames keeps it if each frame of it is still there as it was sent.
/// Where frames are in another order, or some seem to be missing, the capture no longer shows which
/// end sent first, or what it had received: then only what one end sent is evidence, in the order
/// of TCP. Datagrams have no numbers, so their evidence is in their order.
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

/// Are any frames in another order?
fn is_reordered(original: &[Sent], captured: &[Sent]) -> bool {
    let place = |frame| captured.iter().position(|other| other == frame);
    !original.iter().map(place).is_sorted()
}

fn none(wrong: &[String], what: &str) {
    assert!(wrong.is_empty(), "{} {what}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Tries habits on the streams with a fault, each by `is_tried` of their places in the lists.
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
    println!("{} of {tried} findings lost with their evidence captured", silenced.len());
    none(&silenced, "findings lost with their evidence captured");
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
    none(&accused.into_values().collect::<Vec<_>>(), "legal streams accused");
    assert!(closed.is_empty(), "accused no longer, so to be removed from OPEN: {}", closed.join(" "));
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
    assert!(found.is_empty(), "found in at least one mode, so to be removed from MISSED: {}", found.join(" "));
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
