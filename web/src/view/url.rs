//! Addresses of pages.

use std::fmt::Write as _;

use weft_core::requirement::Severity;
use weft_dissector::{FrameNumber, StreamId};
use weft_suites::model::CaseKey;

/// The page of a run.
pub(crate) fn run(id: &str) -> String {
    format!("/runs/{}", escaped(id, false))
}

/// The page of a run, with the list of its cases from index `from` on.
pub(super) fn run_part(id: &str, from: usize) -> String {
    format!("{}?from={from}#cases", run(id))
}

/// The form that deletes a run.
pub(super) fn delete(id: &str) -> String {
    format!("{}/delete", run(id))
}

/// The list of runs. `label` has the form `KEY=VALUE`.
pub(super) fn runs(target: Option<&str>, label: Option<&str>, before: Option<&str>) -> String {
    let query = [("target", target), ("label", label), ("before", before)];
    let query = query.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value?, false))));
    let query: Vec<String> = query.collect();
    if query.is_empty() { "/runs".to_owned() } else { format!("/runs?{}", query.join("&")) }
}

/// The matrix: the cases of a section, or all sections if `section` is empty. `target` is the
/// filter of targets.
pub(super) fn matrix(section: &str, target: &str) -> String {
    let case =
        if section.is_empty() { String::new() } else { format!("case={}", escaped(&format!("{section}/"), true)) };
    let target = if target.is_empty() { String::new() } else { format!("target={}", escaped(target, false)) };
    let query: Vec<&str> = [case.as_str(), target.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
    if query.is_empty() { "/matrix".to_owned() } else { format!("/matrix?{}", query.join("&")) }
}

/// The page of a target.
pub(crate) fn target(name: &str) -> String {
    format!("/targets/{}", escaped(name, false))
}

/// The page of a target, with the charts over a label or a fact about the target.
pub(super) fn trend(name: &str, axis: &str) -> String {
    format!("{}?axis={}", target(name), escaped(axis, false))
}

/// The baseline of a target.
pub(super) fn baseline(name: &str) -> String {
    format!("{}/baseline", target(name))
}

/// The comparison of two runs.
pub(super) fn compare(before: &str, after: &str) -> String {
    format!("/compare?before={}&after={}", escaped(before, false), escaped(after, false))
}

/// The page of a case.
pub(crate) fn case(run_id: &str, key: &CaseKey) -> String {
    format!("{}/cases/{}", run(run_id), escaped(&key.path(), true))
}

/// A file of evidence of a case. `kind` is `pcapng` or `transcript`.
pub(super) fn evidence(run_id: &str, kind: &str, key: &CaseKey) -> String {
    format!("{}/evidence/{kind}/{}", run(run_id), escaped(&key.path(), true))
}

/// The first page of a capture. [`evidence_capture`] makes the id of the capture of a case.
pub(crate) fn capture(id: &str) -> String {
    format!("/captures/{}", escaped(id, false))
}

/// The id of the capture of a case. `place` is the index of the case in the plan of the run.
pub(crate) fn evidence_capture(run_id: &str, place: usize) -> String {
    format!("{run_id}~{place}")
}

/// A part of the list of packets, from index `from` on. `base` is the address of the capture.
pub(super) fn packets(base: &str, filter: &str, from: usize) -> String {
    match (filter, from) {
        ("", 0) => base.to_owned(),
        ("", _) => format!("{base}?from={from}"),
        (_, 0) => format!("{base}?filter={}", escaped(filter, false)),
        _ => format!("{base}?filter={}&from={from}", escaped(filter, false)),
    }
}

/// The page of a packet. Its links to other packets lead to packets that match the filter.
pub(crate) fn packet(base: &str, number: FrameNumber, filter: &str) -> String {
    match filter {
        "" => format!("{base}/packets/{number}"),
        _ => format!("{base}/packets/{number}?filter={}", escaped(filter, false)),
    }
}

/// A connection of a capture.
pub(super) fn connection(base: &str, stream: StreamId) -> String {
    format!("{base}/connections/{stream}")
}

/// A part of the findings of a capture, from index `from` on.
pub(super) fn findings(base: &str, severity: Option<Severity>, from: usize) -> String {
    let severity = severity.map(|severity| format!("severity={severity}&")).unwrap_or_default();
    format!("{base}/findings?{severity}from={from}")
}

/// A part of the storage commands of a capture, from index `from` on. The parameters of the query
/// are the name of the commands, the filter and the order.
pub(super) fn commands(base: &str, [kind, show, sort]: [&str; 3], from: usize) -> String {
    let kind = escaped(kind, false);
    format!("{base}/io?kind={kind}&show={show}&sort={sort}&from={from}")
}

/// A part of another list of a capture, from index `from` on.
pub(super) fn part(base: &str, list: &str, from: usize) -> String {
    format!("{base}/{list}?from={from}")
}

/// Percent-encodes all bytes that are not letters, digits, `-`, `.`, `_` or `~`. If `keeps_slashes`
/// is `true`, slashes also stay.
fn escaped(text: &str, keeps_slashes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for octet in text.bytes() {
        match octet {
            b'/' if keeps_slashes => out.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(octet)),
            _ => {
                let _ = write!(out, "%{octet:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_the_ends_of_attributes_and_paths() {
        assert_eq!(run("a/b?c#\"<"), "/runs/a%2Fb%3Fc%23%22%3C");
        let key: CaseKey = "mpa/key/wrong[octet=3]".parse().unwrap();
        assert_eq!(case("r", &key), "/runs/r/cases/mpa/key/wrong/octet%3D3");
        // The path of a key is already escaped once.
        assert_eq!(evidence("r", "pcapng", &CaseKey::new("a b/c")), "/runs/r/evidence/pcapng/a%2520b/c/default");
    }
}
