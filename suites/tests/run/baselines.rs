//! Tests entries of a baseline for several cases, and the baseline that expects the failures of a
//! run.

use crate::common::{CASE, deviating, key_case};
use weft_suites::Filter;
use weft_suites::baseline::{BaselineEntry, FailureBaseline, merged, of_failures, to_toml};
use weft_suites::model::{ExitCode, RunReport, Tier, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

fn entry(case: &str, signature: &str) -> BaselineEntry {
    BaselineEntry {
        case: case.into(),
        outcome: Verdict::Fail,
        signature: signature.into(),
        reason: "firmware 1.2".into(),
        link: Some("https://example.org/7".into()),
    }
}

/// Runs [`CASE`], all of whose variants fail.
async fn failing(baseline: Vec<BaselineEntry>) -> RunReport {
    let out = tempfile::tempdir().unwrap();
    key_case(deviating().with_baseline(baseline), out.path()).await
}

/// Runs all variants of the selected cases against a target that passes them.
async fn passing(select: &str, baseline: Vec<BaselineEntry>) -> RunReport {
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of([select]).tier(Tier::Full);
    let target = Target::builtin().with_baseline(baseline);
    crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await.0
}

#[tokio::test]
async fn one_entry_expects_the_failures_of_several_cases() {
    for case in ["mpa/*", "mpa/7.1/*", "mpa/7.1.1-key/*", "requirement:MPA-7.1.1-2"] {
        let summary = failing(vec![entry(case, "MPA-7.1.1-2")]).await.summary;
        assert_eq!((summary.expected.len(), summary.exit_code), (16, ExitCode::AsExpected), "{case}");
        assert!(summary.expected.iter().all(|one| one.entry.as_deref() == Some(case)), "{case}");
        assert!(summary.stale.is_empty() && summary.unmatched.is_empty(), "{case}");
    }
    // An entry for one case is reported as before.
    assert!(failing(vec![entry(CASE, "")]).await.summary.expected.iter().all(|one| one.entry.is_none()));
    // No result violates this requirement.
    let other = failing(vec![entry("requirement:MPA-4.4-5", "")]).await.summary;
    assert_eq!((other.expected.len(), other.exit_code), (0, ExitCode::Unexpected));
}

#[tokio::test]
async fn an_entry_that_matches_nothing_is_reported() {
    for (case, why) in [
        ("mpa/none/*", "no case has an id that begins so"),
        ("requirement:MPA-9.9-9", "there is no such requirement"),
        ("mpa/7.1.1-key/wrong-octet[octet=3]", "already expects this outcome"),
        ("mpa/7.1/*", "already expects this outcome"),
    ] {
        let summary = failing(vec![entry("mpa/7/*", "MPA-7.1.1-2"), entry(case, "MPA-7.1.1-2")]).await.summary;
        assert_eq!((summary.stale.len(), summary.exit_code), (1, ExitCode::Unexpected), "{case}");
        assert!(summary.stale[0].starts_with(&format!("{case}: ")) && summary.stale[0].contains(why), "{summary:?}");
    }
    // Not all cases of the section ran, so an entry that matches nothing can still match later.
    let unmatched = failing(vec![entry("mpa/7.1/*", "MPA-9.9")]).await.summary;
    assert!(unmatched.stale.is_empty(), "{unmatched:?}");
    let [line] = &unmatched.unmatched[..] else { panic!("{unmatched:?}") };
    assert!(line.contains("baseline entry 1 names this case") && line.ends_with("(and 15 more variants)"), "{line}");
    // All cases ran and passed.
    for (select, case) in [("mpa/7.1.1-key", "mpa/7.1.1-key/*"), ("MPA-7.1.1-2", "requirement:MPA-7.1.1-2")] {
        let summary = passing(select, vec![entry(case, "MPA-7.1.1-2")]).await.summary;
        assert_eq!((summary.stale.len(), summary.exit_code), (1, ExitCode::Unexpected), "{summary:?}");
        assert!(summary.stale[0].starts_with(&format!("{case}: the entry expects fail with ")), "{summary:?}");
    }
    let part = passing(CASE, vec![entry("mpa/7.1/*", "MPA-7.1.1-2")]).await.summary;
    assert_eq!((part.stale.len(), part.exit_code), (0, ExitCode::AsExpected));
}

#[tokio::test]
async fn the_baseline_of_a_run_expects_its_failures() {
    let report = failing(Vec::new()).await;
    let FailureBaseline { entries, already_expected, .. } = of_failures(&report, "ticket \"7\"", false);
    assert_eq!(already_expected, 0);
    let [one] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((one.case.as_str(), one.outcome, one.reason.as_str()), (CASE, Verdict::Fail, "ticket \"7\""));
    // The text is a part of a target file.
    let text = format!("name = \"b\"\nkind = \"builtin\"\n{}", to_toml(&entries));
    assert_eq!(Target::from_toml("b.toml", &text).unwrap().baseline(), entries);
    let again = failing(entries).await.summary;
    assert_eq!((again.expected.len(), again.exit_code), (16, ExitCode::AsExpected));
    // If one variant passes, no entry is about this variant.
    let mut some = report.clone();
    some.results[3].verdict = Verdict::Pass;
    some.results[3].requirements.clear();
    let of_variants = of_failures(&some, "x", false).entries;
    assert!(of_variants.len() == 15 && of_variants.iter().all(|one| one.case.starts_with(&format!("{CASE}[octet="))));
}

/// The new entries and the baseline of the run together expect all failures, and no entry is stale.
#[tokio::test]
async fn a_failure_that_is_already_expected_has_no_new_entry() {
    let all = of_failures(&failing(vec![entry("mpa/*", "MPA-7.1.1-2")]).await, "new", false);
    assert_eq!(all, FailureBaseline { entries: Vec::new(), already_expected: 16, undecided: 0 });
    let known = [3, 4].map(|octet| entry(&format!("{CASE}[octet={octet}]"), "MPA-7.1.1-2")).to_vec();
    let FailureBaseline { entries, already_expected, .. } = of_failures(&failing(known.clone()).await, "new", false);
    assert_eq!((entries.len(), already_expected), (14, 2));
    assert!(entries.iter().all(|one| one.reason == "new" && known.iter().all(|known| known.case != one.case)));
    let both = merged(&known, entries);
    assert_eq!(both.len(), 16);
    let summary = failing(both).await.summary;
    assert_eq!((summary.expected.len(), summary.exit_code), (16, ExitCode::AsExpected), "{summary:?}");
}

/// An entry that the target file already covers is left out, and the order of the others stays.
#[test]
fn merged_entries_have_no_duplicates() {
    let variant = format!("{CASE}[octet=3]");
    let own = vec![entry(CASE, "MPA-7.1.1-2"), entry("rdmap/*", "")];
    let more = vec![
        entry(CASE, "MPA-7.1.1-2"),
        entry(&variant, "MPA-7.1.1-3"),
        entry(&variant, "MPA-7.1.1-2: it sent"),
        entry("rdmap/5.2-read/size-of-request", "x"),
        entry("mpa/*", "MPA-7.1.1-2"),
    ];
    let expected = [&own[..], &[more[1].clone(), more[4].clone()]].concat();
    assert_eq!(merged(&own, more), expected);
}

/// A stale entry explains only itself. It must not hide the difference of another entry that names
/// the same case.
#[tokio::test]
async fn a_stale_entry_does_not_hide_the_difference_of_another_entry() {
    let out = tempfile::tempdir().unwrap();
    let baseline = vec![entry(CASE, "MPA-9.9"), entry(CASE, "MPA-9.9: it closed")];
    let filter = Filter::of([format!("{CASE}[octet=3]")]);
    let target = deviating().with_baseline(baseline);
    let (report, _) = crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    let [stale] = &report.summary.stale[..] else { panic!("{:?}", report.summary) };
    assert!(stale.starts_with(&format!("{CASE}: an earlier entry already expects")), "{stale}");
    let [line] = &report.summary.unmatched[..] else { panic!("{:?}", report.summary) };
    assert!(line.contains(": baseline entry 1 names this case, but its signature "), "{line}");
}

/// The cases pass, but the run fails because the target violates other requirements.
#[tokio::test]
async fn the_baseline_of_a_run_expects_what_was_also_observed() {
    let run = async |baseline| {
        let out = tempfile::tempdir().unwrap();
        let target = Target::builtin().with_deviations(["mpa.pad-not-zero"]).unwrap().with_baseline(baseline);
        key_case(target, out.path()).await
    };
    let report = run(Vec::new()).await;
    assert_eq!((report.summary.counts.fail, report.summary.exit_code), (0, ExitCode::Unexpected));
    let entries = of_failures(&report, "ticket 7", false).entries;
    assert!(!entries.is_empty() && entries.iter().all(|one| one.outcome == Verdict::Pass), "{entries:?}");
    assert_eq!(run(entries).await.summary.exit_code, ExitCode::AsExpected);
}

#[tokio::test]
async fn a_case_without_a_decision_has_an_entry_on_request() {
    let mut report = failing(Vec::new()).await;
    let first = report.results[0].key.to_string();
    report.results[0].verdict = Verdict::Inconclusive;
    report.results[0].requirements.iter_mut().for_each(|judged| judged.verdict = Verdict::Inconclusive);
    let without = of_failures(&report, "x", false);
    assert!(without.undecided == 1 && without.entries.iter().all(|entry| entry.case != first), "{without:?}");
    let with = of_failures(&report, "x", true);
    let entry = with.entries.iter().find(|entry| entry.case == first).unwrap();
    assert_eq!((with.undecided, entry.outcome), (0, Verdict::Inconclusive));
}
