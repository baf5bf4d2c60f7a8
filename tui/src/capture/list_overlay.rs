//! A list that covers the panels. Its lines link to frames. There are lists of findings,
//! connections, statistics, operations, storage commands, messages and payload, and ladder
//! diagrams.
//!
//! The list of findings grows while the capture is read. The other lists need another pass over
//! the capture ([`list_pass`]).

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use weft_dissector::browse::packed::ListedFinding;
use weft_dissector::io::IoCommand;
use weft_dissector::output::ladder::Ladder;
use weft_dissector::output::text::counted;
use weft_dissector::{FrameNumber, StreamId};

use super::io_lines;
use super::lines::{Kind, Line};
use super::list_pass::{self, ListResult};
use super::problems::Problems;
use super::queue::FAILED;
use super::recording::Recording;
use crate::list::List;

/// The minimum time between the starts of two passes for the list of a growing capture.
const MIN_PASS_INTERVAL: Duration = Duration::from_secs(1);

/// The list.
#[derive(Debug)]
pub(crate) struct ListOverlay {
    pub(crate) kind: Kind,
    pub(crate) lines: Vec<Line>,
    pub(crate) list: List,
    /// Why there are no lines.
    pub(crate) note: String,
    /// The frame that was selected when the list was opened. The list selects the first line that
    /// links to this frame or to a later frame.
    frame: FrameNumber,
    stream: StreamId,
    /// The number of findings that are not listed.
    left_out: u64,
    /// The findings. Empty in other lists.
    problems: Problems,
    /// For each line, the problem that the line folds or unfolds.
    folds: Vec<Option<usize>>,
    /// Whether there are findings that are not in `lines` yet.
    is_stale: bool,
    ladder: Option<Ladder>,
    /// The storage commands of the first lines. Empty in other lists.
    commands: Vec<IoCommand>,
    /// The width for which the ladder was drawn, in columns. 0 if it was not drawn.
    width: usize,
    /// Receives the results of the running pass.
    results: Option<Receiver<ListResult>>,
    /// Whether the running pass has sent lines, a ladder or an error.
    has_answer: bool,
    /// The capture. `None` for the list of findings, which needs no pass.
    recording: Option<Recording>,
    /// The start of the last pass.
    pass_started: Instant,
    /// The duration of the last finished pass.
    pass_duration: Duration,
    /// How far the capture could be read when the last pass started.
    extent: (u64, u64),
}

impl ListOverlay {
    /// Makes the list of the findings so far. Selects the first finding in `frame` or in a later
    /// frame.
    pub(crate) fn findings(findings: &[ListedFinding], all: u64, frame: FrameNumber) -> Self {
        let mut overlay = ListOverlay::empty(Kind::Findings, StreamId::FIRST, frame, "no findings so far");
        overlay.grow(findings, all);
        overlay.fold();
        overlay.list.selected = overlay.problems.near(frame);
        overlay
    }

    /// Makes a list that needs a pass. `stream` is the connection for a ladder diagram, for
    /// messages or for payload.
    pub(crate) fn from_pass(recording: &Recording, kind: Kind, stream: StreamId, frame: FrameNumber) -> Self {
        let mut overlay = ListOverlay::empty(kind, stream, frame, "reading");
        overlay.recording = Some(recording.clone());
        overlay.read();
        overlay
    }

    fn read(&mut self) {
        let Some(recording) = &self.recording else { return };
        (self.extent, self.pass_started) = (recording.extent(), Instant::now());
        (self.results, self.has_answer) = (Some(list_pass::start(recording, self.kind, self.stream)), false);
    }

    /// Starts another pass if the capture has grown, and if enough time has passed since the start
    /// of the last pass. Passes therefore run for at most a fifth of the time.
    fn read_again_if_grown(&mut self) {
        let has_more = self.recording.as_ref().is_some_and(|recording| recording.extent() != self.extent);
        if has_more && self.pass_started.elapsed() >= MIN_PASS_INTERVAL.max(5 * self.pass_duration) {
            self.read();
        }
    }

    fn empty(kind: Kind, stream: StreamId, frame: FrameNumber, note: &str) -> Self {
        ListOverlay {
            kind,
            lines: Vec::new(),
            list: List::default(),
            note: note.to_owned(),
            frame,
            stream,
            left_out: 0,
            problems: Problems::default(),
            folds: Vec::new(),
            is_stale: false,
            ladder: None,
            commands: Vec::new(),
            width: 0,
            results: None,
            has_answer: false,
            recording: None,
            pass_started: Instant::now(),
            pass_duration: Duration::ZERO,
            extent: (0, 0),
        }
    }

    fn select_near(&mut self) {
        self.list.selected = self.lines.iter().position(|line| line.frame >= Some(self.frame)).unwrap_or(0);
    }

    /// Returns whether a pass is running.
    #[cfg(test)]
    pub(crate) fn is_reading(&self) -> bool {
        self.results.is_some()
    }

    /// Takes a message of the thread. Returns whether there was a message.
    pub(crate) fn poll(&mut self) -> bool {
        let Some(results) = &self.results else {
            self.read_again_if_grown();
            return false;
        };
        match results.try_recv() {
            Ok(ListResult::Frames(frames)) => self.note = format!("reading, {frames} frames"),
            Ok(ListResult::Nothing(why)) => (self.note, self.has_answer) = (why, true),
            Ok(ListResult::Ladder(ladder)) => (self.ladder, self.width, self.has_answer) = (Some(ladder), 0, true),
            Ok(ListResult::Lines(lines)) => {
                self.has_answer = true;
                "this list is empty".clone_into(&mut self.note);
                self.renew(lines);
            }
            Ok(ListResult::Commands { lines, commands }) => {
                (self.commands, self.has_answer) = (commands, true);
                self.renew(lines);
            }
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => {
                (self.results, self.pass_duration) = (None, self.pass_started.elapsed());
                if !self.has_answer {
                    FAILED.clone_into(&mut self.note);
                }
            }
        }
        true
    }

    /// Makes the lines of the findings, and those of a ladder diagram for a panel of this width.
    pub(crate) fn fit(&mut self, width: usize) {
        if self.is_stale {
            self.fold();
        }
        let Some(ladder) = self.ladder.as_ref().filter(|_| self.width != width) else { return };
        let lines = list_pass::ladder_lines(ladder, width);
        self.width = width;
        self.renew(lines);
    }

    /// Shows new lines. If the last line was selected and there are more lines now, selects the new
    /// last line.
    fn renew(&mut self, lines: Vec<Line>) {
        let was_empty = self.lines.is_empty();
        let at_end = self.list.selected + 1 == self.lines.len() && lines.len() > self.lines.len();
        self.lines = lines;
        if was_empty {
            self.select_near();
        } else if at_end {
            self.list.selected = self.lines.len() - 1;
        }
    }

    /// Adds new findings to the list of findings. `findings` are the findings that can be listed.
    /// `all` is the number of all findings.
    pub(crate) fn grow(&mut self, findings: &[ListedFinding], all: u64) {
        if self.kind == Kind::Findings {
            self.left_out = all.saturating_sub(findings.len() as u64);
            let new = findings.get(self.problems.findings()..).unwrap_or_default();
            self.is_stale |= !new.is_empty();
            new.iter().for_each(|finding| self.problems.add(*finding));
        }
    }

    /// Makes the lines of the findings.
    fn fold(&mut self) {
        (self.lines, self.folds) = self.problems.lines().unzip();
        self.is_stale = false;
    }

    /// Unfolds (`Some(true)`), folds (`Some(false)`) or toggles the problem of the selected line.
    /// Returns `false` if the line does not fold.
    pub(crate) fn turn(&mut self, unfold: Option<bool>) -> bool {
        let Some(Some(problem)) = self.folds.get(self.list.selected).copied() else { return false };
        self.problems.turn(problem, unfold);
        self.fold();
        true
    }

    /// Returns the title and the lines of the panel with the details. `None` if the list has no
    /// such panel.
    pub(crate) fn details(&self) -> Option<(String, Vec<String>)> {
        if self.commands.is_empty() {
            return None;
        }
        Some(match self.commands.get(self.list.selected) {
            Some(command) => (format!("Command of frame {}", command.frame), io_lines::details(command)),
            None => ("Details".to_owned(), Vec::new()),
        })
    }

    /// Returns the effect of the keys in this list.
    pub(crate) fn keys(&self) -> &'static str {
        match self.kind {
            Kind::Findings => "Enter: unfold, or go to frame   q: back",
            _ => "Enter: go to frame   q: back",
        }
    }

    pub(crate) fn title(&self) -> String {
        let place = if self.lines.is_empty() { 0 } else { self.list.selected + 1 };
        let name = match self.kind {
            Kind::Findings => "Findings".to_owned(),
            Kind::Connections => "Connections".to_owned(),
            Kind::Ladder => format!("Ladder of connection {}", self.stream),
            Kind::Operations => "Operations".to_owned(),
            Kind::Commands => "Commands".to_owned(),
            Kind::Statistics => "Statistics".to_owned(),
            Kind::Messages => format!("Messages of connection {}", self.stream),
            Kind::Payload => format!("Payload of connection {}", self.stream),
        };
        let more = match self.left_out {
            0 => String::new(),
            more => format!(" ({more} more are not listed; n goes to their frames)"),
        };
        let groups = match (self.kind, self.problems.len() as u64) {
            (Kind::Findings, 1..) => {
                let findings = counted(self.problems.findings() as u64, "finding");
                format!(", {findings} in {}", counted(self.problems.len() as u64, "problem"))
            }
            _ => String::new(),
        };
        format!("{name} {place}/{}{groups}{more}", self.lines.len())
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement::Severity;
    use weft_dissector::browse::index::MAX_FINDINGS;

    use super::*;

    #[test]
    fn reports_findings_that_are_not_listed() {
        let requirement = "MPA-7.1.1-2".parse().unwrap();
        let finding = ListedFinding { frame: FrameNumber::FIRST, stream: None, requirement, severity: Severity::Note };
        let findings = vec![finding; MAX_FINDINGS];
        let title = ListOverlay::findings(&findings, MAX_FINDINGS as u64 + 3, FrameNumber::FIRST).title();
        let words = "Findings 1/1, 100000 findings in 1 problem (3 more are not listed; n goes to their frames)";
        assert_eq!(title, words);
    }
}
