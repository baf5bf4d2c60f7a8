//! A list over the panels, whose lines lead to frames: findings, connections, statistics, operations, a ladder.
//!
//! The list of findings grows while the capture is read; for the others it is read again ([`study`]).

use weft_core::requirement::Severity;

use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError};

use weft_dissector::output::ladder::Ladder;

use super::index::Told;
use super::study::{self, Studied};
use crate::list::List;

/// What a sheet lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every finding.
    Findings,
    /// Connections with their findings.
    Connections,
    /// What one connection's ends sent, in order.
    Ladder,
    /// Reads and atomic operations, and how long they took.
    Operations,
    /// What `weft stats` prints.
    Statistics,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Where it leads.
    pub(crate) frame: Option<u64>,
    /// The connection it is about.
    pub(crate) stream: Option<u32>,
    pub(crate) severity: Option<Severity>,
}

/// The list.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) kind: Kind,
    pub(crate) lines: Vec<Line>,
    pub(crate) list: List,
    /// Why there are no lines, or not yet.
    pub(crate) note: String,
    /// The frame that was selected when the list came: its line is.
    frame: u64,
    stream: u32,
    ladder: Option<Ladder>,
    /// Columns that the ladder was drawn for.
    width: usize,
    studied: Option<Receiver<Studied>>,
}

impl Sheet {
    /// The findings so far; the one at `frame`, or the next behind it, is selected.
    pub(crate) fn findings(told: &[Told], frame: u64) -> Self {
        let mut sheet = Sheet::empty(Kind::Findings, 0, frame, "none so far");
        sheet.grow(told);
        sheet.select_near();
        sheet
    }

    /// A list for which the capture at `path` is read; a ladder is one of `stream`.
    pub(crate) fn study(path: &Path, kind: Kind, stream: u32, frame: u64) -> Self {
        let studied = Some(study::start(path, kind, stream));
        Sheet { studied, ..Sheet::empty(kind, stream, frame, "being read") }
    }

    fn empty(kind: Kind, stream: u32, frame: u64, note: &str) -> Self {
        Sheet {
            kind,
            lines: Vec::new(),
            list: List::default(),
            note: note.to_owned(),
            frame,
            stream,
            ladder: None,
            width: 0,
            studied: None,
        }
    }

    fn select_near(&mut self) {
        self.list.selected = self.lines.iter().position(|line| line.frame >= Some(self.frame)).unwrap_or(0);
    }

    /// Is it still being made?
    #[cfg(test)]
    pub(crate) fn is_reading(&self) -> bool {
        self.studied.is_some()
    }

    /// Takes what the thread tells; `true` when there was something.
    pub(crate) fn poll(&mut self) -> bool {
        let Some(studied) = &self.studied else { return false };
        match studied.try_recv() {
            Ok(Studied::Frames(frames)) => self.note = format!("being read, {frames} frames"),
            Ok(Studied::Nothing(why)) => self.note = why,
            Ok(Studied::Ladder(ladder)) => self.ladder = Some(ladder),
            Ok(Studied::Lines(lines)) => {
                self.lines = lines;
                "none".clone_into(&mut self.note);
                self.select_near();
            }
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => self.studied = None,
        }
        true
    }

    /// Draws a ladder for a panel of that width.
    pub(crate) fn fit(&mut self, width: usize) {
        let Some(ladder) = self.ladder.as_ref().filter(|_| self.width != width) else { return };
        let is_new = self.lines.is_empty();
        self.lines = study::ladder_lines(ladder, width);
        self.width = width;
        if is_new {
            self.select_near();
        }
    }

    /// Takes in the findings that came since.
    pub(crate) fn grow(&mut self, told: &[Told]) {
        if self.kind == Kind::Findings {
            self.lines.extend(told.iter().skip(self.lines.len()).map(finding));
        }
    }

    /// What it is called.
    pub(crate) fn title(&self) -> String {
        let place = if self.lines.is_empty() { 0 } else { self.list.selected + 1 };
        let name = match self.kind {
            Kind::Findings => "Findings".to_owned(),
            Kind::Connections => "Connections".to_owned(),
            Kind::Ladder => format!("Ladder of connection {}", self.stream),
            Kind::Operations => "Operations".to_owned(),
            Kind::Statistics => "Statistics".to_owned(),
        };
        format!("{name} {place}/{}", self.lines.len())
    }
}

fn finding(told: &Told) -> Line {
    let requirement = told.requirement.row();
    let stream = told.stream.map_or_else(|| "-".to_owned(), |stream| stream.to_string());
    Line {
        text: format!(
            "{:>7} {stream:>4}  {:<8}{:<14}{}",
            told.frame,
            told.severity.to_string(),
            requirement.id,
            requirement.summary
        ),
        frame: Some(told.frame),
        stream: told.stream,
        severity: Some(told.severity),
    }
}
