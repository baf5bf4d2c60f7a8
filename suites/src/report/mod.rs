//! Reports. [`Terminal`] prints the event stream. [`write_all`] writes one file per format for a
//! finished run.
//!
//! The HTML report and the web pages use [`ladder`](fn@ladder) (a sequence diagram), [`hex`] (bytes
//! with marks), and charts ([`LineChart`], [`sparkline`]). Reports show verdicts, but do not compute them.

mod allure;
mod capture_ticket;
mod cause_list;
mod causes;
mod chart;
mod command;
mod details;
mod evidence;
pub mod hex;
mod html;
mod json;
mod junit;
mod known;
mod ladder;
mod markdown;
mod other_causes;
mod overview;
mod pack;
mod probable;
mod sarif;
mod sections;
mod tap;
mod terminal;
mod ticket;
mod violations;

use std::fs;
use std::path::{Path, PathBuf};

pub use allure::allure;
pub use capture_ticket::{CaptureTicket, ConnectionEvidence};
pub use cause_list::{CauseLine, CauseList};
pub use causes::Cause;
pub use chart::{ChartPoint, LineChart, sparkline};
pub use html::html;
pub use json::json;
pub use junit::junit;
pub use ladder::ladder;
pub use markdown::markdown;
pub use overview::{Bar, BarPart, Overview, SkippedCases};
pub use sarif::sarif;
pub use sections::{Section, sections_of};
pub use tap::tap;
pub use terminal::Terminal;
pub use ticket::ticket;

use crate::file;
use crate::model::RunReport;

/// The style sheet with the design tokens of all pages: type, spacing and colours.
pub const TOKENS: &str = include_str!("../../templates/tokens.css");

/// A report that was not written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The text of the report could not be made.
    #[error("cannot make the {format} report: {error}")]
    Make {
        /// The format.
        format: &'static str,
        /// The reason.
        error: String,
    },
    /// The file of the report could not be written.
    #[error("cannot write {path}: {error}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
}

/// Writes a run's reports into its folder `out`, which also has the evidence that the reports link
/// to. The files are `report.html`, `report.json`, `junit.xml`, `report.tap`, `report.sarif` and
/// `summary.md`. Each file is either complete or unchanged.
///
/// # Errors
/// A report cannot be made or written. `report.html` is written last, and other reports may already
/// be written.
pub fn write_all(report: &RunReport, out: &Path) -> Result<(), ReportError> {
    for (name, make) in FORMATS {
        let (path, text) = (out.join(name), make(report, out)?);
        file::replace(&path, text.as_bytes()).map_err(|error| ReportError::Write { path, error })?;
    }
    Ok(())
}

/// Returns whether the folder `out` has all reports of the run, as [`write_all`] writes them.
///
/// # Errors
/// A report cannot be made.
pub fn are_written(report: &RunReport, out: &Path) -> Result<bool, ReportError> {
    for (name, make) in FORMATS {
        let text = make(report, out)?;
        if !fs::read(out.join(name)).is_ok_and(|written| written == text.as_bytes()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the names of the report files.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|(name, _)| *name)
}

/// Makes the text of a report. The path is the run's folder.
type Renderer = fn(&RunReport, &Path) -> Result<String, ReportError>;

/// The files, in the order in which they are written.
const FORMATS: &[(&str, Renderer)] = &[
    ("report.json", |report, _| json(report)),
    ("junit.xml", |report, _| junit(report)),
    ("report.tap", |report, _| tap(report)),
    ("report.sarif", |report, _| sarif(report)),
    ("summary.md", |report, _| markdown(report)),
    ("report.html", html),
];

/// Returns a number of cases as text: `1 case`, `2 cases`.
fn cases(count: u64) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}
