//! Tests entries of a baseline for several cases, and the baseline that expects the failures of a
//! run.

use crate::common::{CASE, deviating, key_case};
use weft_suites::Filter;
use weft_suites::baseline::{BaselineEntry, of_failures, to_toml};
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
        assert!(summary.stale[0].starts_with(&format!("{case}: expected fail with ")), "{summary:?}");
    }
    let part = passing(CASE, vec![entry("mpa/7.1/*", "MPA-7.1.1-2")]).await.summary;
    assert_eq!((part.stale.len(), part.exit_code), (0, ExitCode::AsExpected));
}

#[tokio::test]
async fn the_baseline_of_a_run_expects_its_failures() {
    let report = failing(Vec::new()).await;
    let entries = of_failures(&report, "ticket \"7\"");
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
    let of_variants = of_failures(&some, "x");
    assert!(of_variants.len() == 15 && of_variants.iter().all(|one| one.case.starts_with(&format!("{CASE}[octet="))));
    // A known failure keeps its reason and its link.
    let known = failing(vec![entry("mpa/*", "MPA-7.1.1-2")]).await;
    let kept = of_failures(&known, "new");
    assert_eq!((kept.len(), kept[0].reason.as_str()), (1, "firmware 1.2"));
    assert_eq!(kept[0].link.as_deref(), Some("https://example.org/7"));
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
    let entries = of_failures(&report, "ticket 7");
    assert!(!entries.is_empty() && entries.iter().all(|one| one.outcome == Verdict::Pass), "{entries:?}");
    assert_eq!(run(entries).await.summary.exit_code, ExitCode::AsExpected);
}
