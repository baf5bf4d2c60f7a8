//! Tests the Allure results: each result has a file, with the evidence and the words by which
//! Allure groups results.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{CASE, deviating, key_case, one_case, run};
use serde_json::Value;
use weft_suites::Filter;
use weft_suites::baseline::BaselineEntry;
use weft_suites::model::{RunReport, Verdict};
use weft_suites::report;
use weft_suites::script::Suites;
use weft_suites::targets::Target;

/// Writes the results of a run, and returns the contents of the result files, sorted by name.
fn written(report: &RunReport, out: &Path, folder: &Path) -> Vec<Value> {
    report::allure(report, out, folder).unwrap();
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let results: BTreeSet<String> = names.filter(|name| name.ends_with("-result.json")).collect();
    let read = |name: &String| serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap();
    results.iter().map(read).collect()
}

/// Returns the values of the labels with this name.
fn labels<'a>(result: &'a Value, name: &str) -> Vec<&'a str> {
    let labels = result["labels"].as_array().unwrap().iter().filter(|label| label["name"] == name);
    labels.map(|label| label["value"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_result_has_a_file_with_its_evidence() {
    let (out, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut report = key_case(deviating(), out.path()).await;
    report.run.target.identity.insert("firmware".into(), "2.1 (ü)".into());
    let folder = folder.path().join("allure-results");
    let results = written(&report, out.path(), &folder);
    assert_eq!(results.len(), 16);
    let one = results.iter().find(|result| result["fullName"] == format!("{CASE}[octet=3]")).unwrap();
    assert_eq!((one["status"].as_str(), one["stage"].as_str()), (Some("failed"), Some("finished")));
    assert!(one["name"].as_str().unwrap().ends_with("of the Request is wrong [octet=3]"), "{one}");
    let details = &one["statusDetails"];
    assert!(details["message"].as_str().unwrap().starts_with("MPA-7.1.1-2 is violated"), "{one}");
    let trace = details["trace"].as_str().unwrap();
    for line in
        ["MPA-7.1.1-2 MUST", "\nactual: it sent an MPA Reply", "\nagain: weft test builtin ", "\nevidence: cases/"]
    {
        assert!(trace.contains(line), "{line} in {trace}");
    }
    for (name, value) in [
        ("parentSuite", "mpa"),
        ("suite", "mpa/7.1.1-key"),
        ("severity", "critical"),
        ("tag", "startup"),
        ("host", "builtin"),
        ("feature", "MPA-7.1.1-2"),
    ] {
        assert!(labels(one, name).contains(&value), "{name}: {one}");
    }
    assert_eq!(one["links"][0]["url"], "https://www.rfc-editor.org/rfc/rfc5044#section-7.1.1");
    let parameters = one["parameters"].as_array().unwrap();
    let of = |name: &str| parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["value"].clone();
    assert_eq!((of("octet"), of("target"), of("seed")), ("3".into(), "builtin".into(), "7".into()));
    // Each attachment is a copy of a file of the case.
    let case = report.results.iter().find(|result| one["fullName"] == result.key.to_string()).unwrap();
    let attachments = one["attachments"].as_array().unwrap();
    assert_eq!(attachments.len(), case.evidence.files.len());
    for (attachment, file) in attachments.iter().zip(&case.evidence.files) {
        let copy = fs::read(folder.join(attachment["source"].as_str().unwrap())).unwrap();
        assert_eq!(copy, fs::read(out.path().join(&file.path)).unwrap(), "{attachment}");
    }
    // The times of the steps are within those of the result, and in order.
    let mut last = one["start"].as_u64().unwrap();
    let steps = one["steps"].as_array().unwrap();
    assert_eq!(steps.len(), case.steps.len());
    for step in steps {
        let (start, stop) = (step["start"].as_u64().unwrap(), step["stop"].as_u64().unwrap());
        assert!(last <= start && start <= stop && stop <= one["stop"].as_u64().unwrap(), "{step}");
        last = start;
    }
    assert!(steps.iter().any(|step| step["status"] == "failed"), "{steps:?}");
    let environment = fs::read_to_string(folder.join("environment.properties")).unwrap();
    assert!(environment.contains("seed = 7\n") && environment.contains("firmware = 2.1 (\\u00fc)\n"), "{environment}");
    assert!(serde_json::from_slice::<Value>(&fs::read(folder.join("categories.json")).unwrap()).unwrap().is_array());
}

#[tokio::test]
async fn ids_depend_only_on_the_run_and_the_variant() {
    let (out, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut report = key_case(Target::builtin(), out.path()).await;
    let first = written(&report, out.path(), folder.path());
    assert_eq!(first, written(&report, out.path(), folder.path()));
    let uuids: BTreeSet<&str> = first.iter().map(|result| result["uuid"].as_str().unwrap()).collect();
    assert_eq!(uuids.len(), 16);
    // Another run has other files in the same folder, but the same history.
    report.run.id.push('x');
    let both = written(&report, out.path(), folder.path());
    let histories: BTreeSet<&str> = both.iter().map(|result| result["historyId"].as_str().unwrap()).collect();
    assert_eq!((both.len(), histories.len()), (32, 16));
}

#[tokio::test]
async fn each_verdict_has_a_status() {
    let (out, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let entry = BaselineEntry {
        case: format!("{CASE}[octet=3]"),
        outcome: Verdict::Fail,
        signature: String::new(),
        reason: "ticket 7".into(),
        link: Some("https://example.org/7".into()),
    };
    let mut report = key_case(deviating().with_baseline(vec![entry]), out.path()).await;
    let verdicts =
        [Verdict::Pass, Verdict::Inconclusive, Verdict::Error, Verdict::NotApplicable, Verdict::Unimplemented];
    for (result, verdict) in report.results.iter_mut().skip(4).zip(verdicts) {
        result.verdict = verdict;
    }
    let results = written(&report, out.path(), folder.path());
    let of = |octet: usize| results.iter().find(|one| one["fullName"] == format!("{CASE}[octet={octet}]")).unwrap();
    for (octet, status, begin) in [
        (2, "failed", "MPA-7.1.1-2 is violated"),
        (3, "failed", "expected fail: ticket 7: "),
        (4, "passed", "MPA-7.1.1-2"),
        (5, "broken", "inconclusive: "),
        (6, "broken", "error: "),
        (7, "skipped", "not-applicable: "),
        (8, "skipped", "unimplemented: "),
    ] {
        let (result, known) = (of(octet), octet == 3);
        let message = result["statusDetails"]["message"].as_str().unwrap();
        assert!(result["status"] == status && message.starts_with(begin), "{result}");
        assert_eq!(
            (&result["statusDetails"]["known"], &result["statusDetails"]["muted"]),
            (&known.into(), &known.into())
        );
    }
    let is_issue = |link: &Value| link["type"] == "issue" && link["url"] == "https://example.org/7";
    assert!(of(3)["links"].as_array().unwrap().iter().any(is_issue));
}

/// All cases pass, but the target violates other requirements. One result shows that the run fails.
#[tokio::test]
async fn a_run_without_failures_that_fails_has_a_broken_result() {
    let (out, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let report = key_case(Target::builtin().with_deviations(["mpa.pad-not-zero"]).unwrap(), out.path()).await;
    let results = written(&report, out.path(), folder.path());
    let broken: Vec<&Value> = results.iter().filter(|result| result["status"] == "broken").collect();
    let [one] = broken[..] else { panic!("{broken:?}") };
    let details = &one["statusDetails"];
    assert!(details["message"].as_str().unwrap().starts_with("this case does not fail, but the run fails: "), "{one}");
    assert!(details["trace"].as_str().unwrap().contains("MPA-4.1-3"), "{one}");
}

/// A report of another host can name any file. Only files of the cases are copied.
#[tokio::test]
async fn only_files_of_the_cases_are_attached() {
    let (out, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let scripts = one_case(out.path(), "t:good_exchange()");
    let suites = Suites::from_folder(&scripts).unwrap();
    let (mut report, _) = run(Target::builtin(), suites, Filter::everything(), out.path()).await;
    fs::write(out.path().join("secret"), "a secret").unwrap();
    for path in ["secret", "cases/../secret", "/etc/hostname"] {
        for file in &mut report.results[0].evidence.files {
            path.clone_into(&mut file.path);
        }
        let results = written(&report, out.path(), folder.path());
        assert_eq!(results[0]["attachments"], serde_json::json!([]), "{path}");
    }
}
