//! Addresses of pages.

use std::fmt::Write as _;

use weft_core::requirement::Severity;
use weft_suites::model::CaseKey;

/// The page of a run.
pub(crate) fn run(id: &str) -> String {
    format!("/runs/{}", escaped(id, false))
}

/// The list of runs; what is not asked for is left out.
pub(super) fn runs(target: Option<&str>, before: Option<&str>) -> String {
    let asked = [("target", target), ("before", before)];
    let asked = asked.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value?, false))));
    let asked: Vec<String> = asked.collect();
    if asked.is_empty() { "/".to_owned() } else { format!("/?{}", asked.join("&")) }
}

/// The page of a target.
pub(crate) fn target(name: &str) -> String {
    format!("/targets/{}", escaped(name, false))
}

/// The baseline of a target.
pub(super) fn baseline(name: &str) -> String {
    format!("{}/baseline", target(name))
}

/// Two runs compared.
pub(super) fn compare(before: &str, after: &str) -> String {
    format!("/compare?before={}&after={}", escaped(before, false), escaped(after, false))
}

/// The page of a case.
pub(crate) fn case(run_id: &str, key: &CaseKey) -> String {
    format!("{}/cases/{}", run(run_id), escaped(&key.path(), true))
}

/// A file of a case; `kind` as the route names it.
pub(super) fn evidence(run_id: &str, kind: &str, key: &CaseKey) -> String {
    format!("{}/evidence/{kind}/{}", run(run_id), escaped(&key.path(), true))
}

/// A capture: of the folder by its id, of a case by that of [`evidence_capture`].
pub(crate) fn capture(id: &str) -> String {
    format!("/captures/{}", escaped(id, false))
}

/// The id of what a case recorded; `place` is that of the case in the plan of the run.
pub(crate) fn evidence_capture(run_id: &str, place: usize) -> String {
    format!("{run_id}~{place}")
}

/// Part of a list of packets; `base` is the address of the capture.
pub(super) fn packets(base: &str, filter: &str, from: usize) -> String {
    match (filter, from) {
        ("", 0) => base.to_owned(),
        ("", _) => format!("{base}?from={from}"),
        (_, 0) => format!("{base}?filter={}", escaped(filter, false)),
        _ => format!("{base}?filter={}&from={from}", escaped(filter, false)),
    }
}

/// A packet, among those that pass the filter.
pub(crate) fn packet(base: &str, number: u64, filter: &str) -> String {
    match filter {
        "" => format!("{base}/packets/{number}"),
        _ => format!("{base}/packets/{number}?filter={}", escaped(filter, false)),
    }
}

/// A connection of a capture.
pub(super) fn connection(base: &str, stream: u32) -> String {
    format!("{base}/connections/{stream}")
}

/// Part of a capture's findings.
pub(super) fn findings(base: &str, severity: Option<Severity>, from: usize) -> String {
    let severity = severity.map(|severity| format!("severity={severity}&")).unwrap_or_default();
    format!("{base}/findings?{severity}from={from}")
}

/// Part of another of its lists.
pub(super) fn part(base: &str, list: &str, from: usize) -> String {
    format!("{base}/{list}?from={from}")
}

/// `%` and two digits for all that could mean something in an address; slashes stay where they part a path.
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
    fn what_could_end_an_attribute_or_a_path_is_escaped() {
        assert_eq!(run("a/b?c#\"<"), "/runs/a%2Fb%3Fc%23%22%3C");
        let key: CaseKey = "mpa/key/wrong[octet=3]".parse().unwrap();
        assert_eq!(case("r", &key), "/runs/r/cases/mpa/key/wrong/octet%3D3");
        // The path of a key has escapes of its own.
        assert_eq!(evidence("r", "pcapng", &CaseKey::new("a b/c")), "/runs/r/evidence/pcapng/a%2520b/c/default");
    }
}
