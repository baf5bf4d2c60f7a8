//! A list over the panels, whose lines lead to frames: the findings.
//!
//! The list of findings grows while the capture is read.

use weft_core::requirement::Severity;

use super::index::Told;
use crate::list::List;

/// What a sheet lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every finding.
    Findings,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Where it leads.
    pub(crate) frame: Option<u64>,
    pub(crate) severity: Option<Severity>,
}

/// The list.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) kind: Kind,
    pub(crate) lines: Vec<Line>,
    pub(crate) list: List,
}

impl Sheet {
    /// The findings so far; the one at `frame`, or the next behind it, is selected.
    pub(crate) fn findings(told: &[Told], frame: u64) -> Self {
        let mut sheet = Sheet { kind: Kind::Findings, lines: Vec::new(), list: List::default() };
        sheet.grow(told);
        sheet.list.selected = sheet.lines.iter().position(|line| line.frame >= Some(frame)).unwrap_or(0);
        sheet
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
        match self.kind {
            Kind::Findings => format!("Findings {place}/{}", self.lines.len()),
        }
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
        severity: Some(told.severity),
    }
}
