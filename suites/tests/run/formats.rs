//! Tests the report formats TAP, SARIF, Markdown and HTML, which show the result of the run. Other
//! tests are about the baseline of a target file, which lists results that are expected.

use std::path::Path;

use crate::common::{CASE, key_case};
use serde_json::Value;
use weft_suites::baseline::BaselineEntry;
use weft_suites::diff::{Diff, ObservedViolation};
use weft_suites::model::{EventSink as _, ExitCode, RequirementVerdict, RunReport, Tier, Verdict};
use weft_suites::report;
use weft_suites::script::Suites;
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions, Schedule};

async fn failing(baseline: Vec<BaselineEntry>) -> RunReport {
    let out = tempfile::tempdir().unwrap();
    key_case(crate::common::deviating().with_baseline(baseline), out.path()).await
}

fn entry(case: &str, outcome: Verdict, signature: &str) -> BaselineEntry {
    BaselineEntry {
        case: case.into(),
        outcome,
        signature: signature.into(),
        reason: "known # since spring".into(),
        link: Some("https://example.org/7".into()),
    }
}

/// A minimal reader of TAP. For each test point, returns whether the line begins with `ok`, and the
/// rest of the line.
fn points(tap: &str) -> Vec<(bool, String)> {
    let mut lines = tap.lines();
    assert_eq!(lines.next(), Some("TAP version 13"));
    let count: usize = lines.next().unwrap().strip_prefix("1..").unwrap().parse().unwrap();
    let mut found = Vec::new();
    for line in lines.filter(|line| !line.starts_with("  ") && !line.starts_with('#')) {
        let (ok, rest) = match line.strip_prefix("not ok ") {
            Some(rest) => (false, rest),
            None => (true, line.strip_prefix("ok ").unwrap()),
        };
        let (number, rest) = rest.split_once(" - ").unwrap();
        assert_eq!(number.parse::<usize>().unwrap(), found.len() + 1);
        found.push((ok, rest.to_owned()));
    }
    assert_eq!(found.len(), count);
    found
}

#[tokio::test]
async fn tap_has_a_point_a_result() {
    let found = points(&report::tap(&failing(Vec::new()).await).unwrap());
    assert_eq!(found.len(), 16);
    assert!(found.iter().all(|(ok, text)| !ok && text.starts_with(CASE) && !text.contains('#')));
    let expected = failing(vec![entry(CASE, Verdict::Fail, "MPA-7.1.1-2")]).await;
    let found = points(&report::tap(&expected).unwrap());
    assert!(found.iter().all(|(ok, text)| !ok && text.ends_with(" # TODO known \\# since spring")), "{found:?}");
    let out = tempfile::tempdir().unwrap();
    let passed = points(&report::tap(&key_case(Target::builtin(), out.path()).await).unwrap());
    assert!(passed.iter().all(|(ok, _)| *ok));
}

/// All cases pass, but the run fails because of other violations. Each report file alone must
/// explain the exit code. It must also have the same counts as all other reports.
#[tokio::test]
async fn violations_beside_the_cases_are_marked_at_a_case_that_shows_them() {
    let out = tempfile::tempdir().unwrap();
    let target = Target::builtin().with_deviations(["mpa.pad-not-zero"]).unwrap();
    let target = target.with_baseline(vec![entry("no/such/case", Verdict::Fail, "x")]);
    let report = key_case(target, out.path()).await;
    assert_eq!((report.summary.counts.pass, report.summary.exit_code), (16, ExitCode::Unexpected));
    let tap = report::tap(&report).unwrap();
    let found = points(&tap);
    let wrong: Vec<&str> = found.iter().filter(|(ok, _)| !ok).map(|(_, text)| text.as_str()).collect();
    assert_eq!((found.len(), &wrong[..]), (16, &[&*report.results[0].key.to_string()][..]));
    let junit = report::junit(&report).unwrap();
    assert!(junit.contains("tests=\"16\" failures=\"0\" errors=\"1\""), "{junit}");
    let (_, error) = junit.split_once("<error ").unwrap();
    let (error, _) = error.split_once("</error>").unwrap();
    assert!(error.contains("type=\"also-observed\""), "{error}");
    for text in [
        "this case does not fail, but the run fails",
        "MPA-2-5 is violated in 16 cases",
        "MPA-4.1-3 is violated in 16 cases",
        "stale entry of the baseline: no/such/case",
    ] {
        assert!(tap.contains(text) && error.contains(text), "{text} in {tap} or {error}");
    }
    crate::reports::is_valid(&junit);
}

/// If cases fail, the report files count only these cases as failures, and not the other
/// violations. So the files have the same counts as the terminal.
#[tokio::test]
async fn violations_beside_failing_cases_are_not_counted() {
    let out = tempfile::tempdir().unwrap();
    let target = Target::builtin().with_deviations(["mpa.accepts-wrong-key", "mpa.pad-not-zero"]).unwrap();
    let target = target.with_baseline(vec![entry("no/such/case", Verdict::Fail, "x")]);
    let report = key_case(target, out.path()).await;
    assert_eq!(report.summary.counts.fail, 16);
    let tap = report::tap(&report).unwrap();
    assert_eq!(points(&tap).len(), 16);
    assert!(tap.contains("\n# also observed: MPA-4.1-3 is violated in 16 cases"), "{tap}");
    let junit = report::junit(&report).unwrap();
    assert!(junit.contains("tests=\"16\" failures=\"16\""), "{junit}");
    let (_, beside) = junit.split_once("<testsuite name=\"beside the cases\" tests=\"0\"").unwrap();
    for text in ["also-observed: ", "MPA-4.1-3 ", "no/such/case: there is no such case"] {
        assert!(beside.contains(text), "{text} in {beside}");
    }
    crate::reports::is_valid(&junit);
}

#[tokio::test]
async fn junit_skips_what_the_baseline_expects() {
    let report = failing(vec![entry(&format!("{CASE}[octet=3]"), Verdict::Fail, "")]).await;
    let junit = report::junit(&report).unwrap();
    assert_eq!((junit.matches("<failure ").count(), junit.matches("<skipped ").count()), (15, 1));
    assert!(
        junit.contains("<skipped message=\"expected fail: known # since spring: MPA-7.1.1-2 is violated"),
        "{junit}"
    );
}

/// Runs [`CASE`] against an address that refuses connections.
async fn down(baseline: Vec<BaselineEntry>) -> RunReport {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!("name = \"gone\"\nkind = \"tcp\"\naddress = \"{address}\"\n");
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::from_toml("t.toml", &text).unwrap().with_baseline(baseline), out.path()).await;
    assert!(report.summary.target_down.is_some() && report.summary.stale.is_empty(), "{:?}", report.summary);
    report
}

/// The headline of a target that is down replaces only results that the baseline does not expect.
#[tokio::test]
async fn expected_results_of_a_target_that_is_down_are_marked_as_expected() {
    let known = format!("{CASE}[octet=0]");
    let report = down(vec![entry(&known, Verdict::Inconclusive, "")]).await;
    let found = points(&report::tap(&report).unwrap());
    assert_eq!(found[0], (false, format!("{known} # TODO known \\# since spring")));
    assert_eq!(found[1], (false, report.results[1].key.to_string()));
    assert!(found[2..].iter().all(|(ok, text)| *ok && text.contains(" # SKIP target is down: ")), "{found:?}");
    let junit = report::junit(&report).unwrap();
    assert_eq!((junit.matches("<error ").count(), junit.matches("<skipped ").count()), (1, 15));
    assert!(junit.contains("<skipped message=\"expected inconclusive: known # since spring: "), "{junit}");
    let sarif: serde_json::Value = serde_json::from_str(&report::sarif(&report).unwrap()).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let down: Vec<_> = results.iter().filter(|result| result["ruleId"] == "target-down").collect();
    assert_eq!((down.len(), &down[0]["level"]), (1, &serde_json::Value::from("error")), "{sarif}");
    let markdown = report::markdown(&report).unwrap();
    assert!(markdown.contains(&format!("| inconclusive (expected) | `{known}` |")), "{markdown}");
    assert_eq!(markdown.matches("\n| inconclusive").count(), 1, "{markdown}");
}

/// The baseline expects all results, but the exit code is not 0. So one case shows the headline.
#[tokio::test]
async fn a_target_that_is_down_is_marked_if_all_results_are_expected() {
    let report = down(vec![entry(CASE, Verdict::Inconclusive, "")]).await;
    assert_eq!((report.summary.expected.len(), report.summary.exit_code), (16, ExitCode::Inconclusive));
    let tap = report::tap(&report).unwrap();
    let found = points(&tap);
    assert_eq!(found[0], (false, report.results[0].key.to_string()));
    assert!(found[1..].iter().all(|(ok, text)| !ok && text.contains(" # TODO known ")), "{found:?}");
    assert_eq!(tap.matches("\n# target is down: ").count(), 1, "{tap}");
    let junit = report::junit(&report).unwrap();
    assert!(junit.contains("tests=\"16\" failures=\"0\" errors=\"1\""), "{junit}");
    assert!(junit.contains("type=\"target-down\""), "{junit}");
    crate::reports::is_valid(&junit);
}

/// A target that accepts connections is not down. So the headline explains no case that did not run
/// because the target sends nothing.
#[tokio::test]
async fn the_headline_does_not_replace_results_of_a_silent_target() {
    let mut report = down(Vec::new()).await;
    let why = "The target accepts connections and sends nothing: 3 cases waited in vain for an answer.";
    report.results[5].explanation = why.into();
    let tap = report::tap(&report).unwrap();
    let found = points(&tap);
    assert_eq!(found[5], (false, report.results[5].key.to_string()));
    assert!(tap.contains(&format!("message: \"{why}\"")), "{tap}");
    assert_eq!(found.iter().filter(|(ok, _)| !ok).count(), 2);
    assert_eq!(report::junit(&report).unwrap().matches("<error ").count(), 2);
    let markdown = report::markdown(&report).unwrap();
    assert!(markdown.contains(&format!("| `{}` |  | {why} |", report.results[5].key)), "{markdown}");
}

/// Returns the path of a file of a result in the folder of the run.
fn attachment(value: &Value) -> &str {
    assert_eq!(value["artifactLocation"]["uriBaseId"], "RUN");
    value["artifactLocation"]["uri"].as_str().unwrap()
}

#[tokio::test]
async fn sarif_has_a_rule_a_requirement() {
    let of = |report: &RunReport| serde_json::from_str::<Value>(&report::sarif(report).unwrap()).unwrap();
    let document = of(&failing(Vec::new()).await);
    assert_eq!(document["version"], "2.1.0");
    let run = &document["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= 16);
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert_eq!((&result["kind"], &result["level"]), (&Value::from("fail"), &Value::from("error")));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "mpa/7.1.1-key.lua");
        assert!(place["region"]["startLine"].as_u64().unwrap() > 1);
        assert!(result.get("suppressions").is_none());
        // SARIF 2.1.0 section 3.21.2: an attachment has an artifactLocation.
        let attached: Vec<&str> = result["attachments"].as_array().unwrap().iter().map(attachment).collect();
        let [pcapng, transcript] = attached[..] else { panic!("{attached:?}") };
        assert!(pcapng.ends_with("/evidence.pcapng") && transcript.ends_with("/transcript.json"), "{attached:?}");
    }
    let expected = of(&failing(vec![entry(CASE, Verdict::Fail, "MPA-7.1.1-2")]).await);
    for result in expected["runs"][0]["results"].as_array().unwrap() {
        let why = result["suppressions"][0]["justification"].as_str().unwrap();
        assert_eq!(why, "known # since spring (https://example.org/7)");
    }
    // SARIF suppresses expected results. It does not suppress a stale entry of the baseline,
    // because the entry makes the run fail.
    let entries = vec![entry(CASE, Verdict::Fail, "MPA-7.1.1-2"), entry("no/such/case", Verdict::Fail, "x")];
    let run = &of(&failing(entries).await)["runs"][0];
    let open = |result: &&Value| result.get("suppressions").is_none();
    let open: Vec<&Value> = run["results"].as_array().unwrap().iter().filter(open).collect();
    let [stale] = open[..] else { panic!("{open:?}") };
    assert_eq!((&stale["kind"], &stale["level"]), (&Value::from("fail"), &Value::from("error")));
    assert_eq!(stale["message"]["text"], "no/such/case: there is no such case");
    let rule = usize::try_from(stale["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(
        (&run["tool"]["driver"]["rules"][rule]["id"], run["invocations"][0]["exitCode"].as_u64()),
        (&stale["ruleId"], Some(1))
    );
}

/// Each report has the frame of the wrong Reply. A ticket and the HTML report have the facts of the
/// target file and of the agent.
#[tokio::test]
async fn reports_have_the_deciding_frame_and_the_device() {
    let mut report = failing(Vec::new()).await;
    report.run.target.identity.insert("firmware".into(), "2.1".into());
    report.run.target.device.insert("firmware".into(), "2.2".into());
    let frame = report.results[0].decided_packet.unwrap();
    let [begin, end] = report.results[0].decided_sequence.unwrap();
    let ticket = report::ticket(&report, CASE).unwrap();
    for line in [
        "| firmware | 2.1 |\n",
        "| firmware (agent) | 2.2 |\n",
        &format!("\n- decided at frame {frame} of the capture\n"),
        &format!("\n- bytes in this frame: relative TCP sequence numbers {begin} to {end}\n"),
    ] {
        assert!(ticket.contains(line), "{line} in {ticket}");
    }
    let decision = format!("packet {frame}, relative TCP sequence numbers {begin} to {end}");
    assert!(report::junit(&report).unwrap().contains(&format!("\ndecided at: {decision}\n")));
    let document: Value = serde_json::from_str(&report::sarif(&report).unwrap()).unwrap();
    let message = document["runs"][0]["results"][0]["message"]["text"].as_str().unwrap();
    assert!(message.ends_with(&format!("\nDecided at: {decision}")), "{message}");
    let html = report::html(&report, Path::new("/nowhere")).unwrap();
    for text in [
        "<dt>firmware</dt><dd>2.1</dd>",
        "<dt>firmware (agent)</dt><dd>2.2</dd>",
        &format!("<dt>decided at</dt><dd>{decision}</dd>"),
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[tokio::test]
async fn the_summary_names_what_fails() {
    let text = report::markdown(&failing(Vec::new()).await).unwrap();
    assert!(text.contains("**16** fail") && text.contains("| MPA-7.1.1-2 | MUST |"), "{text}");
    assert!(text.contains("| mpa 7.1.1 | 0 | 1 | 0 |"), "{text}");
    assert_eq!(text.matches(&format!("| fail | `{CASE}[octet=")).count(), 16);
    // Every table is well-formed: each of its lines has the same number of bars.
    for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        assert!(table.trim().lines().all(|line| bars(line) == bars(table.lines().next().unwrap())), "{table}");
    }
}

#[tokio::test]
async fn the_html_report_counts_by_section() {
    let text =
        report::html(&failing(vec![entry("no/such/case", Verdict::Fail, "x")]).await, Path::new("/nowhere")).unwrap();
    assert!(text.contains("<td>mpa 7.1.1</td><td class=\"pass\">0</td><td class=\"fail\">1</td>"));
    assert!(text.contains("no/such/case: there is no such case"));
    // The violated requirements come first, with links to the results that show them.
    let (_, rest) = text.split_once("<h2>Violated requirements</h2>").unwrap();
    let (table, _) = rest.split_once("<h2>Requirements</h2>").unwrap();
    assert!(table.contains("<code>MPA-7.1.1-2</code>") && table.contains("and 13 more"), "{table}");
    let place = "mpa/7.1.1-key/wrong-octet/octet=0";
    assert!(table.contains(&format!("<a href=\"#{place}\">")) && text.contains(&format!("<details id=\"{place}\"")));
}

#[tokio::test]
async fn results_of_the_baseline_are_as_expected() {
    let all = failing(vec![entry(CASE, Verdict::Fail, "MPA-7.1.1-2: it sent an MPA Reply")]).await;
    assert_eq!((all.summary.expected.len(), all.summary.stale.len()), (16, 0));
    assert_eq!((all.summary.exit_code, all.summary.counts.fail), (ExitCode::AsExpected, 16));
    // One variant is expected to fail, and fifteen are not.
    let one = failing(vec![entry(&format!("{CASE}[octet=3]"), Verdict::Fail, "")]).await;
    assert_eq!((one.summary.expected.len(), one.summary.exit_code), (1, ExitCode::Unexpected));
}

/// An entry with another signature expects nothing. If variants of its case were not run, the entry
/// is not stale. The reports then explain why the failure is not expected.
#[tokio::test]
async fn an_entry_with_another_signature_is_reported() {
    let out = tempfile::tempdir().unwrap();
    let target = crate::common::deviating().with_baseline(vec![entry(CASE, Verdict::Fail, "MPA-9.9")]);
    let filter = Filter::of([format!("{CASE}[octet=3]")]);
    let (report, events) = crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    assert!(report.summary.expected.is_empty() && report.summary.stale.is_empty(), "{:?}", report.summary);
    let line = format!(
        "{CASE}[octet=3]: baseline entry 1 names this case, but its signature \"MPA-9.9\" differs from this result's: \"MPA-7.1.1-2: it sent an MPA Reply, "
    );
    assert!(report.summary.unmatched[0].starts_with(&line), "{:?}", report.summary.unmatched);
    let mut printed = Vec::new();
    let terminal = report::Terminal::new(&mut printed, false);
    events.iter().for_each(|event| terminal.event(event));
    drop(terminal);
    let printed = String::from_utf8(printed).unwrap();
    assert!(printed.contains(&format!("\nnot expected by the baseline: {line}")), "{printed}");
    // The entry of a ticket expects the failure.
    let ticket = report::ticket(&report, CASE).unwrap();
    let (_, block) = ticket.split_once("```toml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let text = format!("name = \"b\"\nkind = \"builtin\"\n{block}");
    let target = Target::from_toml("b.toml", &text).unwrap();
    let target = crate::common::deviating().with_baseline(target.baseline().to_vec());
    let report = key_case(target, out.path()).await;
    assert_eq!((report.summary.expected.len(), report.summary.exit_code), (16, ExitCode::AsExpected));
}

/// A target file from another person can contain anything. No report is allowed to contain its
/// control characters.
#[tokio::test]
async fn control_characters_of_a_baseline_are_shown() {
    let hostile = BaselineEntry {
        reason: "\u{1b}[2J\u{1b}]0;title\u{7}\u{0}\u{9b}31m\u{202e}known".into(),
        link: Some("\u{1b}[31m".into()),
        ..entry(CASE, Verdict::Fail, "MPA-7.1.1-2")
    };
    let stale = entry("no/such\u{1b}[2Jcase", Verdict::Fail, "x");
    let out = tempfile::tempdir().unwrap();
    let target = crate::common::deviating().with_baseline(vec![hostile, stale]);
    let (report, events) =
        crate::common::run(target, Suites::embedded().unwrap(), Filter::of([CASE]), out.path()).await;
    let mut printed = Vec::new();
    let terminal = report::Terminal::new(&mut printed, false);
    events.iter().for_each(|event| terminal.event(event));
    drop(terminal);
    let texts = [
        ("terminal", String::from_utf8(printed).unwrap()),
        ("TAP", report::tap(&report).unwrap()),
        ("Markdown", report::markdown(&report).unwrap()),
        ("HTML", report::html(&report, out.path()).unwrap()),
        ("JUnit", report::junit(&report).unwrap()),
    ];
    for (name, text) in texts {
        let control = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t') || *c == '\u{202e}');
        assert_eq!(control, None, "{name}");
        assert!(text.contains("no/such"), "{name} has no stale entry");
    }
}

#[tokio::test]
async fn a_stale_entry_fails_the_run() {
    for stale in [
        entry(CASE, Verdict::Fail, "it sent an FPDU"),
        entry(CASE, Verdict::Inconclusive, ""),
        entry("mpa/7.1.1-key/no-such-case", Verdict::Fail, ""),
    ] {
        let report = failing(vec![entry(CASE, Verdict::Fail, "MPA-7.1.1-2"), stale.clone()]).await;
        assert_eq!((report.summary.stale.len(), report.summary.exit_code), (1, ExitCode::Unexpected), "{stale:?}");
        assert!(report.summary.stale[0].starts_with(&stale.case));
    }
    // An entry is stale if an earlier entry already expects the same outcome, or if its variant
    // does not exist.
    let earlier = entry(CASE, Verdict::Fail, "MPA-7.1.1-2");
    for (case, why) in
        [(format!("{CASE}[octet=3]"), "already expects this outcome"), (format!("{CASE}[octet=16]"), "no such variant")]
    {
        let report = failing(vec![earlier.clone(), entry(&case, Verdict::Fail, "MPA-7.1.1-2")]).await;
        let [stale] = &report.summary.stale[..] else { panic!("{:?}", report.summary.stale) };
        assert!(stale.starts_with(&case) && stale.contains(why), "{stale}");
    }
    // If the entry for one variant comes before the entry for all variants, neither is stale. The
    // second entry is for the other fifteen variants.
    let both = vec![entry(&format!("{CASE}[octet=3]"), Verdict::Fail, "MPA-7.1.1-2"), earlier];
    assert_eq!(failing(both).await.summary.exit_code, ExitCode::AsExpected);
    // The case passes now, so the entry is stale.
    let out = tempfile::tempdir().unwrap();
    let target = Target::builtin().with_baseline(vec![entry(CASE, Verdict::Fail, "MPA-7.1.1-2")]);
    let fixed = key_case(target, out.path()).await;
    assert_eq!((fixed.summary.counts.pass, fixed.summary.exit_code), (16, ExitCode::Unexpected));
    // If the case of an entry does not apply to the target, the entry is not stale.
    let enhanced = vec![entry("mpa-p2p/6-frames/reply", Verdict::Fail, "P2P-10-2")];
    let target = Target::builtin_plain().with_baseline(enhanced);
    let filter = Filter::of(["mpa-p2p/6-frames/reply", CASE]);
    let (report, _) = crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    assert!(report.summary.counts.not_applicable > 0 && report.summary.stale.is_empty(), "{:?}", report.summary.stale);
    assert_eq!(report.summary.exit_code, ExitCode::AsExpected);
    // An entry is not stale if the seed selected only some variants, because the other variants
    // could match it.
    let target = Target::builtin().with_baseline(vec![entry(CASE, Verdict::Fail, "MPA-7.1.1-2")]);
    let filter = Filter::of([CASE]).tier(Tier::Smoke);
    let (report, _) = crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    assert_eq!(
        (report.results.len(), report.summary.exit_code),
        (2, ExitCode::AsExpected),
        "{:?}",
        report.summary.stale
    );
    // An inconclusive case proves nothing about its entry, so the entry is not stale.
    let folder = crate::common::one_case(out.path(), "local c = t:connect() c:expect_close { within = 1 }");
    let target = Target::builtin().with_baseline(vec![entry("mpa/x/one", Verdict::Fail, "MPA-7.1.1-2")]);
    let suites = Suites::from_folder(&folder).unwrap();
    let (report, _) = crate::common::run(target, suites, Filter::everything(), out.path()).await;
    assert_eq!(report.summary.exit_code, ExitCode::Inconclusive, "{:?}", report.summary.stale);
    // An entry for a case that was not selected is not stale.
    let target = Target::builtin().with_baseline(vec![entry(&format!("{CASE}[octet=3]"), Verdict::Fail, "x")]);
    let filter = Filter::of([format!("{CASE}[octet=4]")]);
    let (report, _) = crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
    assert_eq!(report.summary.exit_code, ExitCode::AsExpected);
}

#[tokio::test]
async fn a_difference_is_in_its_list() {
    let out = tempfile::tempdir().unwrap();
    let good = key_case(Target::builtin(), out.path()).await;
    let bad = failing(Vec::new()).await;
    let none = Diff::of(&bad, &bad);
    assert_eq!((none.same, none.exit_code()), (16, ExitCode::AsExpected));
    assert_eq!(Diff::of(&good, &bad).newly_failing.len(), 16);
    assert_eq!(Diff::of(&good, &bad).exit_code(), ExitCode::Unexpected);
    assert_eq!(Diff::of(&bad, &good).fixed.len(), 16);
    assert_eq!(Diff::of(&bad, &good).exit_code(), ExitCode::AsExpected);
    let mut less = good.clone();
    less.results.remove(0);
    less.results[0].verdict = Verdict::NotApplicable;
    less.results[1].verdict = Verdict::Inconclusive;
    let diff = Diff::of(&good, &less);
    assert_eq!((diff.not_run.len(), diff.newly_not_applicable.len(), diff.newly_undecided.len()), (1, 1, 1));
    assert_eq!((diff.same, diff.exit_code()), (13, ExitCode::Inconclusive));
    assert_eq!(Diff::of(&less, &good).added.len() + Diff::of(&less, &good).decided.len(), 3);
    let mut otherwise = bad.clone();
    otherwise.results[2].actual = Some("it sent something else".into());
    assert_eq!(Diff::of(&bad, &otherwise).failing_otherwise.len(), 1);
}

/// Two versions of a firmware both violate one rule in all cases.
#[tokio::test]
async fn a_finding_that_both_runs_share_is_no_difference() {
    let out = tempfile::tempdir().unwrap();
    let good = key_case(Target::builtin(), out.path()).await;
    let failing = failing(Vec::new()).await;
    let shared = RequirementVerdict {
        requirement: weft_core::requirement!("MPA-4.1-3"),
        verdict: Verdict::Fail,
        also_observed: true,
    };
    let version = |failures: std::ops::Range<usize>, finding: Option<&RequirementVerdict>| {
        let mut report = good.clone();
        report.results[failures.clone()].clone_from_slice(&failing.results[failures]);
        report.results.iter_mut().for_each(|result| result.requirements.extend(finding.cloned()));
        report
    };
    let (before, after) = (version(0..3, Some(&shared)), version(3..8, Some(&shared)));
    let diff = Diff::of(&before, &after);
    assert_eq!((diff.newly_failing.len(), diff.fixed.len(), diff.same), (5, 3, 8));
    assert_eq!((diff.failing_otherwise.len(), diff.newly_observed.len(), diff.no_longer_observed.len()), (0, 0, 0));
    // If only one version has the finding, the difference lists it once, separately from the cases.
    let clean = version(0..3, None);
    let worse = Diff::of(&clean, &before);
    assert_eq!((worse.same, worse.newly_failing.len(), worse.exit_code()), (16, 0, ExitCode::Unexpected));
    assert_eq!(worse.newly_observed, [ObservedViolation { requirement: shared.requirement, cases: 16 }]);
    let better = Diff::of(&before, &clean);
    assert_eq!((better.same, better.exit_code()), (16, ExitCode::AsExpected));
    assert_eq!(better.no_longer_observed, worse.newly_observed);
    // The second run has no results, so it is unknown whether the violation still occurs.
    let mut less = clean.clone();
    less.results.clear();
    assert!(Diff::of(&before, &less).no_longer_observed.is_empty());
}

/// The STags of the target are different in each run, so the text of its failure is also different.
/// The signature, which identifies the failure, stays the same.
#[tokio::test]
async fn a_signature_is_the_same_in_each_run() {
    let failure = async |seed| {
        let out = tempfile::tempdir().unwrap();
        let options = RunOptions {
            target: Target::builtin_tcp().with_deviations(["rdmap.numbers-stags"]).unwrap(),
            suites: Suites::embedded().unwrap(),
            filter: Filter::of(["rdmap/6.1-mode/stags"]),
            out: out.path().to_owned(),
            seed: Some(seed),
            cancel: None,
        };
        let report = weft_suites::run(options, std::sync::Arc::new(|_: &weft_suites::model::Event| {})).await.unwrap();
        assert_eq!((report.results.len(), report.results[0].verdict), (1, Verdict::Fail));
        report
    };
    let (one, other) = (failure(1).await, failure(2).await);
    let signature = one.results[0].signature();
    assert_eq!(signature, other.results[0].signature());
    assert!(signature.ends_with(": … … … … … … … …"), "{signature}");
    assert_eq!(Diff::of(&one, &other).same, 1);
    // A baseline entry with the text of one run matches the next run.
    let words = one.results[0].actual.clone().unwrap();
    assert!(words.contains("00"), "{words}");
    // First use the complete text, and then only the beginning of an STag.
    for words in [&words[..], "0000"] {
        let out = tempfile::tempdir().unwrap();
        let target = Target::builtin_tcp().with_deviations(["rdmap.numbers-stags"]).unwrap();
        let target = target.with_baseline(vec![entry("rdmap/6.1-mode/stags", Verdict::Fail, words)]);
        let filter = Filter::of(["rdmap/6.1-mode/stags"]);
        let (report, _) = crate::common::run(target, Suites::embedded().unwrap(), filter, out.path()).await;
        assert_eq!(report.summary.exit_code, ExitCode::AsExpected, "{words}: {:?}", report.summary.stale);
    }
}

/// Cases that run in parallel change only the duration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_give_the_same_results_in_the_same_order() {
    let run = async |jobs| {
        let out = tempfile::tempdir().unwrap();
        let options = RunOptions {
            target: crate::common::deviating(),
            suites: Suites::embedded().unwrap(),
            filter: Filter::of(["mpa/7.1.1-key"]).tier(Tier::Full),
            out: out.path().to_owned(),
            seed: Some(7),
            cancel: None,
        };
        let schedule = Schedule { jobs, ..Schedule::default() };
        let sink = std::sync::Arc::new(|_: &weft_suites::model::Event| {});
        let report = weft_suites::run_with(options, schedule, sink).await.unwrap();
        assert!(out.path().join(&report.results[15].evidence.files[0].path).is_file());
        report
            .results
            .iter()
            .map(|result| (result.key.clone(), result.signature(), result.steps.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(1).await, run(4).await);
}
