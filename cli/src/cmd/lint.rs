//! `weft lint`: lists the requirements that a capture violates.

mod bytes;
pub(super) mod select;
mod unjudged;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_dissector::contents::Contents;
use weft_dissector::diagnosis::{Diagnosis, NumberedProblem, Problem, ProblemGroups};
use weft_dissector::output::json::{FindingKeys, JsonWriter};
use weft_dissector::output::senders::Senders;
use weft_dissector::output::text::counted;
use weft_dissector::source::Comments;
use weft_dissector::unit::{Kind, Unit};
use weft_dissector::{Dissector, Finding, Packet, Sink};

use super::answers::{Answers, SelectedConnections, brief_diagnoses, write_comments};
use super::captures::{NamedCaptures, Out, for_each};
use crate::colour::ColourChoice;
use crate::exit::{UNEXPECTED, USAGE, note};
use crate::input::{DecodeAs, FrameFiles, Input, LiveArguments, Next, remark};
use crate::one_of::one_of;
use crate::spool::Spool;

use bytes::bytes;
use select::{SelectArguments, Selection};
use unjudged::Unjudged;

/// Maximum number of findings that are printed for each requirement, without --all.
const SHOWN: u64 = 5;
/// Maximum number of problems in the object with the counts.
const MAX_PROBLEMS: usize = 1000;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Exit codes:\n  \
    0  no findings with at least the severity in --level\n  \
    1  findings with at least the severity in --level\n  \
    2  a capture cannot be read, or has nothing to judge (no iWARP, SDP or port mapper)\n\
    If there are several captures, weft exits with the highest of their codes. The code does not\n\
    change if a reader such as `| head` closes the output early, or if a capture is incomplete.\n\
    If weft could not judge all of a capture, it prints the reasons on standard error. With --json,\n\
    the object with the counts also has them, in \"unjudged\".\n\n\
    Examples:\n  \
    weft lint capture.pcap                            check one capture\n  \
    weft lint --level error --json capture.pcap.gz    print violated MUSTs as JSON\n  \
    weft lint captures                                check each capture in a folder\n  \
    weft lint --merge ring_*.pcapng                   check the files of a ring as one capture\n  \
    weft lint --stream 3 capture.pcap                 check one connection\n  \
    weft lint -Y 'ip.src == 10.1.0.1' capture.pcap    check one sender\n  \
    weft lint -i eth0 -a duration:60                  check an interface for a minute")]
pub(crate) struct Arguments {
    /// Check these captures, or all captures in these folders; use - for standard input
    ///
    /// docs/captures.md lists the formats.
    #[arg(value_name = "FILE", required_unless_present_any = ["read", "interface"], conflicts_with = "interface")]
    files: Vec<PathBuf>,
    /// Check this capture (same as FILE, for users of tshark)
    #[arg(short = 'r', long = "read-file", value_name = "FILE", conflicts_with = "files", id = "read")]
    read: Option<PathBuf>,
    #[command(flatten)]
    decode: DecodeAs,
    /// Judge all captures as one, sorted by the times of the frames
    ///
    /// Use this option for the files of a ring buffer, or for captures of the same traffic by
    /// several taps. Each finding names the file of its frame, and the frame's number in that file.
    ///
    /// Without --merge, weft judges each capture alone, because unrelated captures can have
    /// connections with the same addresses and ports. If a capture starts within a connection, weft
    /// cannot check the rules that depend on earlier frames.
    #[arg(long, conflicts_with = "interface")]
    merge: bool,
    #[command(flatten)]
    select: SelectArguments,
    /// Print findings of this severity or above, and exit with 1 if there are any
    #[arg(long, default_value = "warning", value_parser = one_of([
        ("error", "A violated MUST", Severity::Error),
        ("warning", "A violated SHOULD", Severity::Warning),
        ("note", "Unusual behaviour that is worth knowing", Severity::Note),
    ]))]
    level: Severity,
    /// Print one JSON object per finding, and one with the counts
    ///
    /// The object with the counts has the kind "summary".
    #[arg(long)]
    json: bool,
    /// Print all findings, not only the first 5 of each requirement (implies -v)
    #[arg(long)]
    all: bool,
    /// Also print the findings of requirements that are a part of another problem
    ///
    /// All findings about one frame and one endpoint are one problem. For example, a malformed
    /// Terminate can violate ten requirements. Without this option, weft prints the findings of one
    /// of these requirements, and lists the others below it.
    #[arg(short, long)]
    verbose: bool,
    /// Choose when to use colour
    #[arg(long, value_enum, default_value_t)]
    color: ColourChoice,
    // These options come last, because their heading "Live capture" applies to all later options.
    #[command(flatten)]
    live: LiveArguments,
}

/// Reads the captures and prints their findings.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // Report a wrong filter once, not for each capture.
    arguments.select.selection()?;
    let Arguments { files, read, merge, live, json, .. } = arguments;
    let named = NamedCaptures { files, read: read.as_ref(), merge: *merge, live, json: *json };
    for_each(&named, |input, several, out| one(arguments, input, several, out))
}

/// Checks one input and prints its findings. Returns the exit code for this input. If `several` is
/// set, the output names the capture.
fn one(arguments: &Arguments, mut input: Input, several: bool, out: &mut Out) -> anyhow::Result<u8> {
    let name = input.name().to_owned();
    if several && !arguments.json {
        writeln!(out, "{name}:")?;
    }
    let least = arguments.level;
    let mut lint = Lint {
        least,
        most: if arguments.all { u64::MAX } else { SHOWN },
        json: arguments.json.then(JsonWriter::default),
        file: several.then(|| name.clone()),
        frame_files: input.frame_files(),
        out,
        failed: Ok(()),
        counts: BTreeMap::new(),
        by_requirement: BTreeMap::new(),
        problems: ProblemGroups::default(),
        groups: BTreeMap::new(),
        judged: false,
        contents: Contents::default(),
        senders: Senders::default(),
        unjudged: Unjudged::default(),
        selection: arguments.select.selection()?,
        comments: input.comments(),
        selected: SelectedConnections::default(),
    };
    if let Some(selection) = &mut lint.selection {
        selection.set_comments(lint.comments.clone());
        lint.selected = SelectedConnections::one_by_one();
    }
    // The text output begins with answers. The cause of a connection's end can be a finding that
    // the selection does not have, so the diagnoses receive all results.
    let mut sinks = ((!arguments.json).then(brief_diagnoses), lint);
    let mut dissector = arguments.decode.apply(Dissector::default());
    loop {
        let lint = &mut sinks.1;
        match input.next() {
            Next::Frame(frame) => {
                lint.unjudged.frame(&frame);
                if let Some(selection) = &mut lint.selection {
                    selection.frame(&frame);
                }
                if let Some(writer) = &mut lint.json {
                    writer.frame(frame.number, frame.time);
                }
                dissector.frame(&frame, &mut sinks);
            }
            Next::Idle => lint.out.flush()?,
            Next::End => break,
        }
        // A live capture can be endless, so it stops when the reader closes the output.
        if sinks.1.out.get_ref().is_unread && arguments.live.interface().is_some() {
            break;
        }
    }
    dissector.finish(&mut sinks);
    let (diagnoses, lint) = sinks;
    lint.out.flush()?;
    let damage = input.damage();
    input.ignore_partial_frames(&mut dissector);
    input.close()?;
    let Lint {
        failed,
        counts,
        by_requirement,
        problems,
        groups,
        judged,
        mut contents,
        unjudged,
        selection,
        comments,
        out,
        selected,
        ..
    } = lint;
    failed?;
    let unjudged = unjudged.counts(&damage);
    contents.unread = dissector.unread();
    if judged {
        remark(&name, &dissector);
        if !unjudged.is_empty() {
            note(&format!("{name}: {unjudged}"));
        }
    } else if selection.is_some() {
        note(&format!("{name}: nothing to judge, because the selection has no iWARP, SDP or port mapper messages"));
    } else {
        let why = "nothing to judge, because the capture has no iWARP, SDP or port mapper";
        let remedy = unjudged.remedy().map_or_else(String::new, |remedy| format!("; {remedy}"));
        note(&format!("{name}: {why}; it has {contents}{remedy}"));
    }
    let count = |severity| counts.get(&severity).copied().unwrap_or(0);
    let (errors, warnings, notes) = (count(Severity::Error), count(Severity::Warning), count(Severity::Note));
    if arguments.json {
        let by: BTreeMap<&str, u64> = by_requirement.iter().map(|(id, count)| (id.as_str(), *count)).collect();
        let hidden = contents.unread.iter().filter(|(why, _)| why.may_hide_connections());
        let unread: u64 = hidden.map(|(_, count)| count).sum();
        let summary = serde_json::json!({
            "kind": "summary", "file": name, "error": errors, "warning": warnings, "note": notes, "requirements": by, "judged": judged,
            "problems": json_problems(&problems), "further_problems": problems.count().saturating_sub(MAX_PROBLEMS as u64),
            "unjudged": unjudged.json(unread),
        });
        writeln!(out, "{summary}")?;
    } else {
        write_comments(&comments, out)?;
        if let Some(diagnoses) = diagnoses {
            Answers::of(diagnoses, selected).write(|diagnosis| is_notable(diagnosis, least), out)?;
        }
        let colour = arguments.color.decide();
        let is_grouped = !arguments.all && !arguments.verbose;
        let roots = if is_grouped { problems.roots() } else { BTreeMap::new() };
        let mut parts: BTreeMap<RequirementId, Vec<String>> = BTreeMap::new();
        for ((_, id), group) in &groups {
            if let Some(root) = roots.get(id) {
                let line = format!("{}: {}", colour.severity(group.severity, &group.head(*id)), id.row().summary);
                parts.entry(*root).or_default().push(line);
            }
        }
        for ((_, id), group) in groups.into_iter().filter(|((_, id), _)| !roots.contains_key(id)) {
            let head = colour.severity(group.severity, &group.head(id));
            writeln!(out, "{head}\n  {}", id.row().summary)?;
            let more = group.count - group.lines.count();
            group.lines.write("    ", out)?;
            if more > 0 {
                writeln!(out, "    {}", colour.faint(&format!("and {more} more; --all prints them")))?;
            }
            if let Some(parts) = parts.remove(&id) {
                writeln!(out, "  {}", colour.faint("the same messages also violate (-v prints the bytes):"))?;
                parts.iter().try_for_each(|line| writeln!(out, "    {line}"))?;
            }
            writeln!(out)?;
        }
        let hidden = hint_of_hidden(least, warnings, notes);
        let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
        writeln!(out, "{name}: {errors}, {warnings}, {}{hidden}", counted(notes, "note"))?;
    }
    let found = counts.iter().any(|(severity, count)| *severity >= least && *count > 0);
    Ok(match (judged, found) {
        (false, _) => USAGE,
        (true, true) => UNEXPECTED,
        (true, false) => 0,
    })
}

/// Returns whether the output begins with the answer about this connection: the connection failed,
/// or has findings with at least this severity.
fn is_notable(diagnosis: &Diagnosis, least: Severity) -> bool {
    diagnosis.is_failure() || diagnosis.problems.iter().any(|problem| problem.severity >= least)
}

/// If `--level` hides warnings or notes, returns a hint with the level that shows them.
fn hint_of_hidden(least: Severity, warnings: u64, notes: u64) -> String {
    let hides_warnings = least > Severity::Warning && warnings > 0;
    let hides_notes = least > Severity::Note && notes > 0;
    let (level, what) = match (hides_warnings, hides_notes) {
        (false, false) => return String::new(),
        (true, false) => (Severity::Warning, counted(warnings, "warning")),
        (false, true) => (Severity::Note, counted(notes, "note")),
        (true, true) => (Severity::Note, format!("{} and {}", counted(warnings, "warning"), counted(notes, "note"))),
    };
    format!(" ({what} not shown: use --level {level})")
}

/// The first problems as JSON, with their numbers and the numbers of their connections.
fn json_problems(problems: &ProblemGroups) -> Vec<serde_json::Value> {
    let json = |NumberedProblem { number, stream, problem }: NumberedProblem<'_>| {
        let Problem { direction, severity, requirement, requirements, frames, count, .. } = problem;
        serde_json::json!({
            "problem": number, "stream": stream, "direction": direction, "severity": severity, "requirement": requirement,
            "requirements": requirements, "frames": frames, "count": count,
        })
    };
    problems.problems().take(MAX_PROBLEMS).map(json).collect()
}

/// The findings about one requirement.
struct Group {
    severity: Severity,
    lines: Spool,
    count: u64,
}

impl Group {
    /// The first line: the requirement, and the number of findings.
    fn head(&self, id: RequirementId) -> String {
        let (row, count) = (id.row(), counted(self.count, "finding"));
        let (level, catalogue, section) = (row.level, row.catalogue, row.section);
        format!("{} {}  {level} ({catalogue} {section})  {count}", self.severity, row.id)
    }
}

/// Receives findings from the dissector, counts them, and stores or prints them.
struct Lint<'o> {
    /// The lowest severity of the findings that are printed and counted (`--level`).
    least: Severity,
    /// Maximum number of findings to print for each requirement.
    most: u64,
    json: Option<JsonWriter>,
    /// The name of the capture, if there are several captures.
    file: Option<String>,
    /// The table of frames and files, if several captures are read as one.
    frame_files: Option<FrameFiles>,
    out: &'o mut Out,
    failed: io::Result<()>,
    counts: BTreeMap<Severity, u64>,
    /// For each requirement, the number of findings that have at least the severity in `--level`.
    by_requirement: BTreeMap<RequirementId, u64>,
    /// The same findings, grouped by frame and endpoint.
    problems: ProblemGroups,
    /// The findings for the text output, the highest severity first.
    groups: BTreeMap<(std::cmp::Reverse<Severity>, RequirementId), Group>,
    /// Whether the capture has anything to judge.
    judged: bool,
    contents: Contents,
    senders: Senders,
    unjudged: Unjudged,
    /// Selects the judged units. `None` selects all units.
    selection: Option<Selection>,
    comments: Comments,
    /// The connections whose answers begin the text output.
    selected: SelectedConnections,
}

impl Sink for Lint<'_> {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.contents.unit(unit);
        let is_selected = self.selection.as_mut().is_none_or(|selection| selection.unit(unit));
        if is_selected && self.selection.as_ref().is_some_and(|selection| !selection.uses_findings()) {
            self.selected.add(unit.stream);
        }
        self.unjudged.unit(unit, is_selected);
        self.judged |=
            is_selected && !matches!(unit.kind, Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. });
    }

    fn packet(&mut self, packet: &Packet) {
        self.contents.packet(packet);
        self.unjudged.packet(packet);
        if let Some(selection) = &mut self.selection {
            selection.packet(packet);
        }
        match &mut self.json {
            Some(writer) => writer.packet(packet),
            None => self.senders.packet(packet),
        }
    }

    fn finding(&mut self, finding: &Finding) {
        if self.selection.as_mut().is_some_and(|selection| !selection.finding(finding)) {
            return;
        }
        self.selected.add(finding.stream);
        // Some findings, such as a wrong MPA key, are about bytes that belong to no unit.
        self.judged = true;
        *self.counts.entry(finding.severity).or_default() += 1;
        if finding.severity < self.least {
            return;
        }
        *self.by_requirement.entry(finding.requirement).or_default() += 1;
        let problem = self.problems.add(finding).map(|problem| problem.number);
        let place = self.frame_files.as_ref().and_then(|frame_files| frame_files.of(finding.frame));
        if let Some(writer) = &mut self.json {
            if self.failed.is_ok() {
                let (file, frame_in_file) = match &place {
                    Some((file, number)) => (Some(&**file), Some(*number)),
                    None => (self.file.as_deref(), None),
                };
                let keys = FindingKeys { file, frame_in_file, problem };
                self.failed = writer.finding_of(keys, finding, self.out);
            }
            return;
        }
        let key = (std::cmp::Reverse(finding.severity), finding.requirement);
        let group = self.groups.entry(key).or_insert_with(|| Group {
            severity: finding.severity,
            lines: Spool::default(),
            count: 0,
        });
        group.count += 1;
        if group.lines.count() < self.most && self.failed.is_ok() {
            let stream = finding.stream.map_or_else(String::new, |stream| format!(", stream {stream}"));
            let sender = match self.senders.of(finding) {
                Some((src, dst)) => format!(", sent by {src} to {dst}"),
                None => String::new(),
            };
            let is_stimulus = |comment: &String| comment.starts_with("stimulus");
            let is_stimulus = self.comments.of(finding.frame).iter().any(is_stimulus);
            let stimulus = if is_stimulus { " (stimulus of the tester)" } else { "" };
            let place = place.map_or_else(String::new, |(file, number)| format!(" (frame {number} of {file})"));
            self.failed = group.lines.push(&format!(
                "frame {}{place}{}{stream}{sender}{stimulus}: expected {}; found {}",
                finding.frame,
                bytes(finding),
                finding.expected,
                finding.found
            ));
        }
    }
}
