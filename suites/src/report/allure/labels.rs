//! The labels and links of a result, and the environment of a run.

use serde_json::{Value, json};

use crate::model::{CaseResult, RunReport, Strength};

/// Returns the labels, which group and filter the results. Suites are the protocol and the script
/// of the case. Features are its requirements. The labels of the run are the last.
pub(super) fn labels(report: &RunReport, result: &CaseResult) -> Vec<Value> {
    let case = result.key.case.as_str();
    let protocol = case.split('/').next().unwrap_or_default();
    let script = case.rsplit_once('/').map_or(case, |(script, _)| script);
    let mut labels = vec![
        ("framework", "weft"),
        ("host", report.run.target.name.as_str()),
        ("parentSuite", protocol),
        ("suite", script),
    ];
    if let Some(first) = result.requirements.first() {
        let row = first.requirement.row();
        labels.push(("severity", severity(Strength::of(row))));
        labels.push(("epic", row.catalogue.specification()));
    }
    labels.extend(result.requirements.iter().map(|judged| ("feature", judged.requirement.as_str())));
    labels.extend(report.case(result).into_iter().flat_map(|case| &case.tags).map(|tag| ("tag", tag.as_str())));
    labels.extend(report.run.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    labels.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

/// Returns Allure's word for the level of a requirement.
fn severity(strength: Strength) -> &'static str {
    match strength {
        Strength::Must => "critical",
        Strength::Should => "normal",
        Strength::May => "minor",
    }
}

/// Returns links to the sections of the requirements, and the link of the baseline's entry that
/// expects the result.
pub(super) fn links(report: &RunReport, result: &CaseResult) -> Vec<Value> {
    let mut links: Vec<(String, String, &str)> = Vec::new();
    for row in result.requirements.iter().map(|judged| judged.requirement.row()) {
        if let Some(link) = row.link()
            && !links.iter().any(|(_, known, _)| *known == link)
        {
            links.push((row.citation(), link, "link"));
        }
    }
    if let Some(known) = report.summary.expects(result)
        // Another scheme, such as `javascript:`, must not become a link.
        && let Some(link) = known.link.as_ref().filter(|link| link.starts_with("https://") || link.starts_with("http://"))
    {
        links.push((known.reason.clone(), link.clone(), "issue"));
    }
    links.into_iter().map(|(name, url, kind)| json!({ "name": name, "url": url, "type": kind })).collect()
}

/// Returns the facts of the run, as a file of Java properties.
pub(super) fn environment(report: &RunReport) -> String {
    let (run, target) = (&report.run, &report.run.target);
    let mut facts = vec![
        ("target".to_owned(), target.name.clone()),
        ("reached by".to_owned(), target.reached_by.clone()),
        ("role".to_owned(), target.role.to_string()),
        ("service".to_owned(), target.service.clone()),
        ("weft".to_owned(), run.weft_version.clone()),
        ("run".to_owned(), run.id.clone()),
        ("seed".to_owned(), run.seed.to_string()),
    ];
    if !target.deviations.is_empty() {
        facts.push(("deviations".to_owned(), target.deviations.join(", ")));
    }
    facts.extend(run.labels.iter().map(|(name, value)| (name.clone(), value.clone())));
    facts.extend(target.facts().into_iter().map(|(name, value)| (name, value.to_owned())));
    facts.into_iter().map(|(name, value)| format!("{} = {}\n", escaped(&name, true), escaped(&value, false))).collect()
}

/// Escapes a name or a value of a Java property. Such a file has only characters of ISO 8859-1.
fn escaped(text: &str, is_name: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for unit in text.encode_utf16() {
        match char::from_u32(unit.into()) {
            Some(c) if is_name && matches!(c, ' ' | ':' | '=' | '#' | '!') => out.extend(['\\', c]),
            Some('\\') => out.push_str("\\\\"),
            Some(c) if c == ' ' || c.is_ascii_graphic() => out.push(c),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_escaped() {
        assert_eq!(escaped("firmware (agent)", true), "firmware\\ (agent)");
        assert_eq!(escaped("a=b\\c\nd ü", false), "a=b\\\\c\\u000ad \\u00fc");
        assert_eq!(escaped("a=b:c", true), "a\\=b\\:c");
    }
}
