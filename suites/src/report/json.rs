//! The JSON report: an unchanged [`RunReport`]. `schema/report.json` describes the format.

use super::ReportError;
use crate::model::RunReport;

/// Returns the report as indented JSON.
///
/// # Errors
/// The text cannot be made. No known report causes this error.
pub fn json(report: &RunReport) -> Result<String, ReportError> {
    let failed = |error: serde_json::Error| ReportError::Make { format: "JSON", error: error.to_string() };
    let mut text = serde_json::to_string_pretty(report).map_err(failed)?;
    text.push('\n');
    Ok(text)
}
