//! Reports: readers of the event stream ([`Terminal`]) and of a finished run ([`write_all`]), one file a format.
//!
//! [`ladder`](fn@ladder) (a sequence diagram) and [`hex`] (octets with marks) are what the HTML report is made of; pages use
//! them too. Nothing here judges.

mod broken;
mod evidence;
pub mod hex;
mod html;
mod json;
mod junit;
mod ladder;
mod markdown;
mod pack;
mod sarif;
mod sections;
mod tap;
mod terminal;

use std::fs;
use std::path::{Path, PathBuf};

pub use html::html;
pub use json::json;
pub use junit::junit;
pub use ladder::ladder;
pub use markdown::markdown;
pub use sarif::sarif;
pub use sections::{Section, sections_of};
pub use tap::tap;
pub use terminal::Terminal;

use crate::model::RunReport;

/// A report that was not written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Its text could not be made.
    #[error("{format} report: {error}")]
    Make {
        /// Which.
        format: &'static str,
        /// Why.
        error: String,
    },
    /// Its file could not be written.
    #[error("{path}: {error}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// Writes a run's reports into its folder `out`, where the evidence is that they link to: `report.html`, `report.json`, `junit.xml`,
/// `report.tap`, `report.sarif`, `summary.md`.
///
/// # Errors
/// One of them cannot be made or written; those before it are there.
pub fn write_all(report: &RunReport, out: &Path) -> Result<(), ReportError> {
    let put = |name: &str, text: String| {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| ReportError::Write { path, error })
    };
    put("report.json", json(report)?)?;
    put("junit.xml", junit(report)?)?;
    put("report.tap", tap(report)?)?;
    put("report.sarif", sarif(report)?)?;
    put("summary.md", markdown(report)?)?;
    put("report.html", html(report, out)?)
}

/// `1 case`, `2 cases`.
fn cases(count: u64) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}
