//! The panel with the selected case: requirements, expected and actual behaviour, transcript,
//! evidence.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use weft_core::RequirementId;
use weft_suites::model::{CaseResult, Direction, MarkKind, Octets, Step, StepKind, Verdict};

use super::{line, panel};
use crate::run::progress::{PlannedCase, State, UserInstruction};
use crate::run::tree::Kind;
use crate::run::{Panel, Screen};
use crate::theme::Theme;
use crate::wrap::wrap;

/// The maximum number of bytes to show for a step.
const MAX_OCTETS: usize = 64;

/// Lines with their styles.
struct Text {
    width: usize,
    theme: Theme,
    lines: Vec<(String, Style)>,
}

impl Text {
    fn heading(&mut self, words: &str) {
        if !self.lines.is_empty() {
            self.lines.push((String::new(), Style::new()));
        }
        self.styled(words, 0, self.theme.heading());
    }

    fn add(&mut self, words: &str, indent: usize) {
        self.styled(words, indent, Style::new());
    }

    fn styled(&mut self, words: &str, indent: usize, style: Style) {
        for line in wrap(words, self.width.saturating_sub(indent)) {
            self.lines.push((format!(" {:indent$}{line}", ""), style));
        }
    }
}

pub(super) fn draw(screen: &mut Screen, area: Rect, buf: &mut Buffer) {
    let focused = screen.focus == Panel::Case;
    let title = match screen.tree.selected() {
        Some(node) if matches!(node.kind, Kind::Case(_)) => "Case".to_owned(),
        Some(node) => format!("Branch {}", node.label),
        None => "Case".to_owned(),
    };
    let inside = panel(&title, "", focused, screen.theme, area, buf);
    let mut text = Text { width: usize::from(inside.width).saturating_sub(2), theme: screen.theme, lines: Vec::new() };
    if let Some(waits) = &screen.progress.waits_for {
        waiting(screen, waits, &mut text);
    }
    match screen.planned() {
        Some(planned) => about(screen, planned, &mut text),
        None => failing(screen, &mut text),
    }
    // The list only stores the scroll position: its selected line is at the top of the panel.
    let height = usize::from(inside.height);
    screen.case.selected = screen.case.selected.min(text.lines.len().saturating_sub(height));
    let top = screen.case.selected;
    screen.case.place(inside);
    screen.case.window(text.lines.len(), height);
    for (row, (words, style)) in text.lines.iter().skip(top).take(height).enumerate() {
        line(&Line::from(words.as_str()), row, *style, inside, buf);
    }
}

/// Adds the complete instruction for the user.
fn waiting(screen: &Screen, waits: &UserInstruction, text: &mut Text) {
    let left = waits.until.saturating_sub(screen.now).as_secs();
    text.heading(&format!("Waiting for the target, {left} s left"));
    text.styled(&waits.what, 0, text.theme.verdict(Verdict::Inconclusive));
    text.add("The run then continues by itself.", 0);
    text.heading("Selected");
}

fn about(screen: &Screen, planned: &PlannedCase, text: &mut Text) {
    text.styled(&planned.key.to_string(), 0, text.theme.heading());
    let case = screen.progress.case(&planned.key);
    if let Some(case) = case {
        text.add(&case.title, 0);
    }
    match &planned.state {
        State::Waiting => text.styled("planned", 0, text.theme.faint()),
        State::Running(steps) => {
            text.styled("running", 0, text.theme.heading());
            transcript(steps, text);
        }
        State::Done(result) => {
            let verdict = format!("{}: {}", result.verdict, result.explanation);
            text.styled(&verdict, 0, text.theme.verdict(result.verdict));
        }
    }
    if planned.runs.total() > 1 {
        let counts = Verdict::ALL.map(|verdict| (verdict, planned.runs.of(verdict)));
        let counts: Vec<String> =
            counts.iter().filter(|(_, count)| *count > 0).map(|(v, n)| format!("{v} {n}")).collect();
        text.add(&format!("{} runs: {}", planned.runs.total(), counts.join(", ")), 0);
    }
    text.heading("Requirements");
    match (&planned.state, case) {
        (State::Done(result), _) => {
            for judged in &result.requirements {
                let way = if judged.also_observed { ", also observed" } else { "" };
                let head = format!("{}: {}{way}", judged.requirement, judged.verdict);
                text.styled(&head, 0, text.theme.verdict(judged.verdict));
                requirement(judged.requirement, text);
            }
        }
        (_, Some(case)) => {
            for id in &case.requirements {
                text.add(id.as_str(), 0);
                requirement(*id, text);
            }
        }
        (_, None) => {}
    }
    if let State::Done(result) = &planned.state {
        finished(result, text);
        if let Some(starter) = screen.starter.as_ref().filter(|_| planned.runs.total() > 1) {
            text.add(&format!("this result is from the last run, in the folder {}", starter.folder), 0);
        }
    }
}

fn requirement(id: RequirementId, text: &mut Text) {
    let row = id.row();
    text.add(&format!("{} ({}, {} section {})", row.summary, row.level, row.catalogue, row.section), 2);
}

fn finished(result: &CaseResult, text: &mut Text) {
    for (name, words) in [("Expected", &result.expected), ("Actual", &result.actual)] {
        if let Some(words) = words {
            text.heading(name);
            text.add(words, 0);
        }
    }
    if !result.findings.is_empty() {
        text.heading("Findings of the monitor");
        for finding in &result.findings {
            let who = if finding.by_target { "target" } else { "tester" };
            let words = format!("{} {} by the {who}: {}", finding.severity, finding.requirement, finding.text);
            text.styled(&words, 0, text.theme.severity(finding.severity));
        }
    }
    transcript(&result.steps, text);
    text.heading("Evidence");
    for file in &result.evidence.files {
        text.add(&file.path, 0);
    }
    for dropped in &result.evidence.dropped {
        text.add(&dropped.sentence(), 0);
    }
    if let Some(at) = &result.decided_at {
        text.add(&format!("decided at {at}"), 0);
    }
    if let Some(decision) = result.decision() {
        text.add(&format!("decided at {decision}"), 0);
    }
    text.add(&format!("seed {}", result.seed), 0);
}

fn transcript(steps: &[Step], text: &mut Text) {
    text.heading("Transcript");
    for step in steps {
        let arrow = match step.direction {
            Direction::Sent => "→",
            Direction::Received => "←",
            Direction::Observed => "·",
        };
        let (seconds, microseconds) = (step.at_ns / 1_000_000_000, step.at_ns % 1_000_000_000 / 1_000);
        let connection = if step.connection == 0 { String::new() } else { format!("[{}] ", step.connection) };
        let words = format!("{seconds}.{microseconds:06} {arrow} {connection}{}", step.text);
        let style = match step.kind {
            StepKind::Unmet => text.theme.verdict(Verdict::Fail),
            StepKind::Met => text.theme.verdict(Verdict::Pass),
            StepKind::Agent | StepKind::Note => text.theme.faint(),
            _ => Style::new(),
        };
        text.styled(&words, 0, style);
        if let Some(octets) = &step.octets {
            hex(octets, text);
        }
    }
}

fn hex(octets: &Octets, text: &mut Text) {
    let shown: Vec<String> = octets.shown().take(MAX_OCTETS).map(|octet| format!("{octet:02x}")).collect();
    let more = if octets.len > shown.len() as u64 { format!(" ... ({} bytes)", octets.len) } else { String::new() };
    text.styled(&format!("{}{more}", shown.join(" ")), 4, text.theme.faint());
    for mark in octets.marks.iter().filter(|mark| mark.kind != MarkKind::Field) {
        let why = if mark.kind == MarkKind::Stimulus { "changed on purpose" } else { "wrong" };
        let at = match mark.end.saturating_sub(1) {
            last if last > mark.start => format!("bytes {}..{last}", mark.start),
            _ => format!("byte {}", mark.start),
        };
        text.styled(&format!("{at}: {} ({why})", mark.label), 4, text.theme.marked());
    }
}

/// Adds the finished cases of the selected branch: failures first, and only the number of the cases
/// that passed.
fn failing(screen: &Screen, text: &mut Text) {
    let Some(Kind::Branch { first, end }) = screen.tree.selected().map(|node| node.kind.clone()) else { return };
    let done = screen.progress.planned[first..end].iter().filter_map(|planned| match &planned.state {
        State::Done(result) => Some(&**result),
        State::Waiting | State::Running(_) => None,
    });
    let (passed, mut others): (Vec<_>, Vec<_>) = done.partition(|result| result.verdict == Verdict::Pass);
    others.sort_by_key(|result| std::cmp::Reverse(result.verdict));
    for result in &others {
        let words = format!("{} {}: {}", result.verdict, result.key, result.explanation);
        text.styled(&words, 0, text.theme.verdict(result.verdict));
    }
    if text.lines.is_empty() {
        text.add("No failures so far.", 0);
    }
    if !passed.is_empty() {
        text.styled(&format!("{} passed.", passed.len()), 0, text.theme.verdict(Verdict::Pass));
    }
}
