//! The Markdown summary: one page for a merge request or the summary of a CI job.

use weft_core::text::visible;

use super::ReportError;
use super::causes::failures;
use super::command::command;
use super::evidence::Sources;
use super::known::expected_text;
use super::overview::Overview;
use super::sections::sections;
use crate::clock;
use crate::model::{CaseResult, RunReport, Verdict, labels_text};
use crate::stage::DIED;

/// Maximum number of probable causes that are listed.
const MAX_CAUSES: usize = 12;
/// Maximum number of results that are listed.
const MAX_RESULTS: usize = 50;

/// Returns the summary as Markdown.
///
/// # Errors
/// The text cannot be made. No known report causes this error.
pub fn markdown(report: &RunReport) -> Result<String, ReportError> {
    let (run, summary) = (&report.run, &report.summary);
    let mut text = format!("# weft: {}\n\n", escaped(&run.target.name));
    let overview = Overview::of(summary, &run.target.service, report.results.iter());
    text.push_str(&format!("**{}**\n\n", escaped(&overview.line)));
    let counts = Verdict::ALL.into_iter().rev().filter(|verdict| summary.counts.of(*verdict) > 0);
    let counts: Vec<String> = counts.map(|verdict| format!("**{}** {verdict}", summary.counts.of(verdict))).collect();
    let counts = if counts.is_empty() { "nothing was run".to_owned() } else { counts.join(", ") };
    let expected = expected_text(summary, report.results.iter()).map_or_else(String::new, |text| format!("; {text}"));
    text.push_str(&format!(
        "{counts}{expected}; {} of {} planned, {}.\n\n",
        report.results.len(),
        summary.planned,
        summary.status
    ));
    text.push_str(&format!(
        "{}, {}, service {}; {}, {}; weft {}, seed {}, run `{}`, exit code {}.\n",
        escaped(&run.target.reached_by),
        run.target.role,
        escaped(&run.target.service),
        clock::rfc3339(run.started_unix_ms),
        clock::duration(summary.duration_us),
        run.weft_version,
        run.seed,
        run.id,
        summary.exit_code.code(),
    ));
    if let Some(score) = summary.score.map(|score| score.to_string()).filter(|score| !score.is_empty()) {
        text.push_str(&format!("\nRequirements met: {score}.\n"));
    }
    if let Some(probed) = &run.target.probed {
        text.push_str(&format!("\nProbed, because the target file has no `capabilities`: {}.\n", escaped(probed)));
    }
    if !run.labels.is_empty() {
        text.push_str(&format!("\nLabels: {}.\n", escaped(&labels_text(&run.labels))));
    }
    if run.is_selection {
        text.push_str("\nThis run is partial: it lacks variants of the default tier.\n");
    }
    if !summary.reasons.is_empty() {
        let reasons = escaped(&summary.reasons.join("; "));
        text.push_str(&format!("\nExit code {}: {reasons}.\n", summary.exit_code.code()));
    }
    for line in Sources::of(report.results.iter().map(|result| &result.evidence)).lines() {
        text.push_str(&format!("\nEvidence {}.\n", escaped(&line)));
    }
    text.push_str(&probable_causes(report));
    if !summary.failing.is_empty() {
        text.push_str("\n## Violated requirements\n\n| requirement | level | statement |\n| --- | --- | --- |\n");
        for requirement in &summary.failing {
            let row = requirement.row();
            text.push_str(&format!("| {} | {} | {} |\n", row.id, row.level, cell(row.summary)));
        }
    }
    let is_listed = |result: &&CaseResult| result.verdict > Verdict::Pass && !report.is_down_for(result);
    let wrong: Vec<&CaseResult> = report.results.iter().filter(is_listed).collect();
    if !wrong.is_empty() {
        text.push_str("\n## Cases\n\n| verdict | case | expected | actual |\n| --- | --- | --- | --- |\n");
        for result in wrong.iter().take(MAX_RESULTS) {
            let mark = if summary.expects(result).is_some() { " (expected)" } else { "" };
            let expected = result.expected.as_deref().unwrap_or_default();
            let actual = match &result.actual {
                Some(actual) if result.explanation.starts_with(DIED) => format!("{DIED}: {actual}"),
                Some(actual) => actual.clone(),
                None => result.explanation.clone(),
            };
            text.push_str(&format!(
                "| {}{mark} | `{}` | {} | {} |\n",
                result.verdict,
                result.key,
                cell(expected),
                cell(&actual)
            ));
        }
        if wrong.len() > MAX_RESULTS {
            text.push_str(&format!("\nand {} more in the report.\n", wrong.len() - MAX_RESULTS));
        }
    }
    if !summary.boundaries.is_empty() {
        text.push_str("\n## Boundaries\n\n");
        for boundary in &summary.boundaries {
            text.push_str(&format!("- {}\n", escaped(&boundary.to_string())));
        }
    }
    if !summary.declared_otherwise.is_empty() {
        text.push_str("\n## Differences between the target file and the device\n\n");
        for line in &summary.declared_otherwise {
            text.push_str(&format!("- {}\n", escaped(line)));
        }
    }
    if !summary.stale.is_empty() {
        text.push_str("\n## Stale entries of the baseline\n\n");
        for entry in &summary.stale {
            text.push_str(&format!("- {}\n", escaped(entry)));
        }
    }
    if !summary.unmatched.is_empty() {
        text.push_str("\n## Results that the baseline does not expect\n\n");
        for entry in &summary.unmatched {
            text.push_str(&format!("- {}\n", escaped(entry)));
        }
    }
    let sections = sections(report);
    if !sections.is_empty() {
        text.push_str(
            "\n## By section\n\n| section | pass | fail | undecided | observable |\n| --- | --- | --- | --- | --- |\n",
        );
        for section in sections {
            text.push_str(&format!(
                "| {} {} | {} | {} | {} | {} |\n",
                section.catalogue, section.section, section.pass, section.fail, section.undecided, section.observable
            ));
        }
    }
    Ok(visible(&text).into_owned())
}

/// The probable causes of the failures, each with the command that runs its first case again. Empty
/// if there is no unexpected failure.
fn probable_causes(report: &RunReport) -> String {
    let causes = failures(&report.summary, report.results.iter());
    if causes.is_empty() {
        return String::new();
    }
    let mut text = "\n## Probable causes\n\nAn estimate from what the failures have in common.\n\n\
                    | cases | violated | actual | to reproduce |\n| --- | --- | --- | --- |\n"
        .to_owned();
    for cause in causes.iter().take(MAX_CAUSES) {
        let ids: Vec<&str> = cause.requirements.iter().map(|id| id.as_str()).collect();
        let again = cause.named.first().map(|key| format!("`{}`", command(&report.run, key).replace('|', "\\|")));
        let (ids, actual, again) = (ids.join(" "), cell(&cause.text), again.unwrap_or_default());
        text.push_str(&format!("| {} | {ids} | {actual} | {again} |\n", cause.results));
    }
    if causes.len() > MAX_CAUSES {
        text.push_str(&format!("\nand {} more in the report.\n", causes.len() - MAX_CAUSES));
    }
    text
}

/// Escapes text within a cell of a table.
fn cell(text: &str) -> String {
    escaped(text).replace('|', "\\|")
}

pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
