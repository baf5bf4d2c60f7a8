//! The JSON report: a [`RunReport`] without changes; `schema/report.json` describes it.

use super::ReportError;
use crate::model::RunReport;

/// The report as JSON, indented.
///
/// # Errors
/// None that this model is known to have.
pub fn json(report: &RunReport) -> Result<String, ReportError> {
    let failed = |error: serde_json::Error| ReportError::Make { format: "JSON", error: error.to_string() };
    let mut text = serde_json::to_string_pretty(report).map_err(failed)?;
    text.push('\n');
    Ok(text)
}
