//! A list over the panels whose lines link to frames: findings, connections, statistics,
//! operations, a ladder.
//!
//! The list of findings grows while the capture is read. The others need another pass ([`study`]).

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use weft_dissector::StreamId;
use weft_dissector::browse::packed::ListedFinding;
use weft_dissector::output::ladder::Ladder;

use super::feed::FAILED;
use super::lines::{Kind, Line};
use super::recording::Recording;
use super::study::{self, Studied};
use crate::list::List;

/// The minimum time between two passes for the list of a growing capture.
const ANEW: Duration = Duration::from_secs(1);

/// The list.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) kind: Kind,
    pub(crate) lines: Vec<Line>,
    pub(crate) list: List,
    /// Why there are no lines.
    pub(crate) note: String,
    /// The frame that was selected when the list was opened: the list selects its line.
    frame: u64,
    stream: StreamId,
    /// The number of findings that are not listed.
    left_out: u64,
    ladder: Option<Ladder>,
    /// The width that the ladder was drawn for.
    width: usize,
    studied: Option<Receiver<Studied>>,
    /// Did the running pass send its lines, its ladder or an error?
    has_answer: bool,
    /// The capture, the start of the last pass, and the extent of the capture at that time.
    recording: Option<Recording>,
    begun: Instant,
    took: Duration,
    extent: (u64, u64),
}

impl Sheet {
    /// The findings so far; selects the one at `frame`, or the next one.
    pub(crate) fn findings(findings: &[ListedFinding], all: u64, frame: u64) -> Self {
        let mut sheet = Sheet::empty(Kind::Findings, StreamId::FIRST, frame, "none so far");
        sheet.grow(findings, all);
        sheet.select_near();
        sheet
    }

    /// A list that needs a pass; `stream` is the connection of a ladder, of messages or of payload.
    pub(crate) fn study(recording: &Recording, kind: Kind, stream: StreamId, frame: u64) -> Self {
        let mut sheet = Sheet::empty(kind, stream, frame, "reading");
        sheet.recording = Some(recording.clone());
        sheet.read();
        sheet
    }

    fn read(&mut self) {
        let Some(recording) = &self.recording else { return };
        (self.extent, self.begun) = (recording.extent(), Instant::now());
        (self.studied, self.has_answer) = (Some(study::start(recording, self.kind, self.stream)), false);
    }

    /// Starts another pass if the capture has grown. Passes take at most a part of the time.
    fn read_anew(&mut self) {
        let has_more = self.recording.as_ref().is_some_and(|recording| recording.extent() != self.extent);
        if has_more && self.begun.elapsed() >= ANEW.max(5 * self.took) {
            self.read();
        }
    }

    fn empty(kind: Kind, stream: StreamId, frame: u64, note: &str) -> Self {
        Sheet {
            kind,
            lines: Vec::new(),
            list: List::default(),
            note: note.to_owned(),
            frame,
            stream,
            left_out: 0,
            ladder: None,
            width: 0,
            studied: None,
            has_answer: false,
            recording: None,
            begun: Instant::now(),
            took: Duration::ZERO,
            extent: (0, 0),
        }
    }

    fn select_near(&mut self) {
        self.list.selected = self.lines.iter().position(|line| line.frame >= Some(self.frame)).unwrap_or(0);
    }

    /// Is a pass running?
    #[cfg(test)]
    pub(crate) fn is_reading(&self) -> bool {
        self.studied.is_some()
    }

    /// Takes a message of the thread; `true` if there was one.
    pub(crate) fn poll(&mut self) -> bool {
        let Some(studied) = &self.studied else {
            self.read_anew();
            return false;
        };
        match studied.try_recv() {
            Ok(Studied::Frames(frames)) => self.note = format!("reading, {frames} frames"),
            Ok(Studied::Nothing(why)) => (self.note, self.has_answer) = (why, true),
            Ok(Studied::Ladder(ladder)) => (self.ladder, self.width, self.has_answer) = (Some(ladder), 0, true),
            Ok(Studied::Lines(lines)) => {
                self.has_answer = true;
                "none".clone_into(&mut self.note);
                self.renew(lines);
            }
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => {
                (self.studied, self.took) = (None, self.begun.elapsed());
                if !self.has_answer {
                    FAILED.clone_into(&mut self.note);
                }
            }
        }
        true
    }

    /// Draws a ladder for a panel of this width.
    pub(crate) fn fit(&mut self, width: usize) {
        let Some(ladder) = self.ladder.as_ref().filter(|_| self.width != width) else { return };
        let lines = study::ladder_lines(ladder, width);
        self.width = width;
        self.renew(lines);
    }

    /// Shows new lines. If the last line was selected, the new last line is.
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

    /// Adds new findings; `all` is the number of all findings, listed or not.
    pub(crate) fn grow(&mut self, findings: &[ListedFinding], all: u64) {
        if self.kind == Kind::Findings {
            self.left_out = all.saturating_sub(findings.len() as u64);
            self.lines.extend(findings.iter().skip(self.lines.len()).map(finding_line));
        }
    }

    pub(crate) fn title(&self) -> String {
        let place = if self.lines.is_empty() { 0 } else { self.list.selected + 1 };
        let name = match self.kind {
            Kind::Findings => "Findings".to_owned(),
            Kind::Connections => "Connections".to_owned(),
            Kind::Ladder => format!("Ladder of connection {}", self.stream),
            Kind::Operations => "Operations".to_owned(),
            Kind::Statistics => "Statistics".to_owned(),
            Kind::Messages => format!("Messages of connection {}", self.stream),
            Kind::Payload => format!("Payload of connection {}", self.stream),
        };
        let more = match self.left_out {
            0 => String::new(),
            more => format!(": the first ones; n goes to frames with the other {more}"),
        };
        format!("{name} {place}/{}{more}", self.lines.len())
    }
}

fn finding_line(finding: &ListedFinding) -> Line {
    let requirement = finding.requirement.row();
    let stream = finding.stream.map_or_else(|| "-".to_owned(), |stream| stream.to_string());
    Line {
        text: format!(
            "{:>7} {stream:>4}  {:<8}{:<14}{}",
            finding.frame,
            finding.severity.to_string(),
            requirement.id,
            requirement.summary
        ),
        frame: Some(finding.frame),
        stream: finding.stream,
        severity: Some(finding.severity),
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement::Severity;
    use weft_dissector::browse::index::MOST_FINDINGS;

    use super::*;

    #[test]
    fn reports_findings_that_are_not_listed() {
        let requirement = "MPA-7.1.1-2".parse().unwrap();
        let finding = ListedFinding { frame: 1, stream: None, requirement, severity: Severity::Note };
        let title = Sheet::findings(&vec![finding; MOST_FINDINGS], MOST_FINDINGS as u64 + 3, 1).title();
        assert_eq!(title, "Findings 1/100000: the first ones; n goes to frames with the other 3");
    }
}
