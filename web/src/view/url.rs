//! Addresses of pages.

use std::fmt::Write as _;

use weft_suites::model::CaseKey;

/// The page of a run.
pub(super) fn run(id: &str) -> String {
    format!("/runs/{}", escaped(id, false))
}

/// The list of runs; what is not asked for is left out.
pub(super) fn runs(target: Option<&str>, before: Option<&str>) -> String {
    let asked = [("target", target), ("before", before)];
    let asked = asked.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value?, false))));
    let asked: Vec<String> = asked.collect();
    if asked.is_empty() { "/".to_owned() } else { format!("/?{}", asked.join("&")) }
}

/// Two runs compared.
pub(super) fn compare(before: &str, after: &str) -> String {
    format!("/compare?before={}&after={}", escaped(before, false), escaped(after, false))
}

/// The page of a case.
pub(super) fn case(run_id: &str, key: &CaseKey) -> String {
    format!("{}/cases/{}", run(run_id), escaped(&key.path(), true))
}

/// A file of a case; `kind` as the route names it.
pub(super) fn evidence(run_id: &str, kind: &str, key: &CaseKey) -> String {
    format!("{}/evidence/{kind}/{}", run(run_id), escaped(&key.path(), true))
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
