//! These tests check that all reports and pages of one run show the same counts.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use weft_core::RequirementId;
use weft_suites::model::{RunReport, Strength, Verdict};

use crate::test_resume::text;
use crate::web::{Server, weft};

/// The counts in a report of a run. A field is `None` if the report does not show this count.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Count {
    cases: Option<usize>,
    variants: usize,
    passed: u64,
    failed: u64,
    /// The number of variants whose verdict is "not applicable" or "unimplemented".
    skipped: u64,
    /// The number of variants that are inconclusive or ended with an error of the tester.
    undecided: u64,
    /// The number of MUST requirements that are met, and the number of tested ones.
    must: Option<(u64, u64)>,
}

/// Writes cases whose variants pass, fail, are inconclusive or do not apply. If `all_pass` is true,
/// each variant either passes or does not apply. The target commits a deviation (a named fault). So
/// in each variant, the target also violates two requirements that the case does not test.
fn scripts(folder: &Path, all_pass: bool) {
    let close = "
case { id = 'mpa/x/close', version = 1, title = 'Close', requirements = { 'MPA-7.1.1-2' }, roles = { 'responder' },
    parameters = { n = range(1, 5) },
    run = function(t, p)
        t:good_exchange()
        local c = t:connect()
        if p.n > 3 then c:send(t:request()) else c:send(t:request():flip(0)) end
        c:expect_close { requirement = 'MPA-7.1.1-2' }
        t:liveness()
    end }
";
    let quiet = "
case { id = 'mpa/x/quiet', version = 1, title = 'Quiet', requirements = { 'MPA-7.1.2-4' }, roles = { 'responder' },
    run = function(t) local c = t:connect() c:expect_close { within = 1 } end }
";
    let initiator = "
case { id = 'mpa/x/initiator', version = 1, title = 'Initiator', requirements = { 'MPA-7.1.1-2' }, roles = { 'initiator' },
    parameters = { n = range(1, 3) }, run = function(t) t:good_exchange() end }
";
    let script = match all_pass {
        true => close.replace("p.n > 3", "p.n > 5") + initiator,
        false => [close, quiet, initiator].concat(),
    };
    fs::create_dir_all(folder.join("mpa")).unwrap();
    fs::write(folder.join("mpa/x.lua"), script).unwrap();
}

/// Returns the text between two other texts.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}"));
    rest.split_once(after).unwrap().0
}

/// Parses texts with a number and a verdict, such as `2 fail`.
fn by_verdict<'a>(words: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let pair =
        |words: &str| words.split_once(' ').map(|(number, verdict)| (verdict.to_owned(), number.parse().unwrap()));
    words.into_iter().map(|words| pair(words.trim()).unwrap_or_else(|| panic!("{words}"))).collect()
}

/// Parses a text such as `4 of 5 MUST, 1 of 1 SHOULD`. Returns the two numbers before MUST.
fn must(words: &str) -> Option<(u64, u64)> {
    let part = words.split(", ").find_map(|part| part.trim().strip_suffix(" MUST")).unwrap();
    let (held, tried) = part.split_once(" of ").unwrap();
    Some((held.parse().unwrap(), tried.parse().unwrap()))
}

fn count(cases: Option<usize>, variants: usize, by: &BTreeMap<String, u64>, must: Option<(u64, u64)>) -> Count {
    let of = |verdicts: &[Verdict]| verdicts.iter().filter_map(|verdict| by.get(verdict.as_str())).sum();
    Count {
        cases,
        variants,
        passed: of(&[Verdict::Pass]),
        failed: of(&[Verdict::Fail]),
        skipped: of(&[Verdict::NotApplicable, Verdict::Unimplemented]),
        undecided: of(&[Verdict::Inconclusive, Verdict::Error]),
        must,
    }
}

/// Computes the counts from the results in `report`. All reports and pages must show these counts.
fn of_results(report: &RunReport) -> Count {
    let mut by: BTreeMap<String, u64> = BTreeMap::new();
    let mut worst: BTreeMap<RequirementId, Verdict> = BTreeMap::new();
    for result in &report.results {
        *by.entry(result.verdict.to_string()).or_default() += 1;
        for judged in &result.requirements {
            let verdict = worst.entry(judged.requirement).or_insert(judged.verdict);
            *verdict = (*verdict).max(judged.verdict);
        }
    }
    worst.retain(|id, verdict| Strength::of(id.row()) == Strength::Must && *verdict >= Verdict::Pass);
    let held = worst.values().filter(|verdict| **verdict == Verdict::Pass).count();
    let must = (held as u64, worst.len() as u64);
    count(Some(report.cases.len()), report.results.len(), &by, Some(must))
}

fn of_summary(document: &Value) -> Count {
    let summary = &document["summary"];
    let counts = summary["counts"].as_object().unwrap();
    let by = counts.iter().map(|(verdict, number)| (verdict.clone(), number.as_u64().unwrap())).collect();
    let of = |what: &str| summary["score"]["must"][what].as_u64().unwrap();
    let must = (of("held"), of("held") + of("broken") + of("undecided"));
    let cases = document["cases"].as_array().unwrap().len();
    count(Some(cases), summary["planned"].as_u64().unwrap() as usize, &by, Some(must))
}

fn of_terminal(printed: &str) -> Count {
    let is_sum = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit()) && line.contains(" cases: ");
    let line = printed.lines().find(is_sum).unwrap();
    let (variants, verdicts) = line.split_once(" cases: ").unwrap();
    let by = by_verdict(verdicts.split(';').next().unwrap().split(", "));
    let held = printed.lines().find_map(|line| line.strip_prefix("requirements met: ")).unwrap();
    count(None, variants.parse().unwrap(), &by, must(held))
}

fn of_junit(junit: &str) -> Count {
    let root = between(junit, "<testsuites ", ">");
    let of = |name: &str| between(root, &format!("{name}=\""), "\"").parse::<u64>().unwrap();
    let skipped = junit.matches("<skipped ").count() as u64;
    let variants = junit.matches("<testcase ").count();
    assert_eq!(of("tests"), variants as u64);
    // If a variant passed, but the target violated other requirements, JUnit counts the variant as
    // an error.
    let marked = junit.matches(" type=\"also-observed\"").count() as u64;
    // The run failed, and this file alone must show it.
    assert!(of("failures") + of("errors") > 0, "{junit}");
    Count {
        cases: Some(junit.matches("<testsuite name=\"mpa/").count()),
        variants,
        passed: of("tests") - of("failures") - of("errors") - skipped + marked,
        failed: of("failures"),
        skipped,
        undecided: of("errors") - marked,
        must: None,
    }
}

fn of_tap(tap: &str) -> Count {
    let is_point = |line: &&str| line.starts_with("ok ") || line.starts_with("not ok ");
    let variants = between(tap, "1..", "\n").parse().unwrap();
    assert_eq!(tap.lines().filter(is_point).count(), variants);
    let skipped = tap.matches(" # SKIP ").count() as u64;
    let undecided = tap.matches("\n  verdict: inconclusive\n").count() as u64;
    let marked = tap.matches("\n  verdict: pass\n").count() as u64;
    let failed = tap.matches("\nnot ok ").count() as u64;
    assert!(failed > 0, "{tap}");
    let failed = failed - undecided - marked;
    Count {
        cases: None,
        variants,
        passed: tap.matches("\nok ").count() as u64 - skipped + marked,
        failed,
        skipped,
        undecided,
        must: None,
    }
}

fn of_markdown(text: &str) -> Count {
    // The first such line is the verdict in one sentence.
    let line = text.lines().filter(|line| line.starts_with("**")).nth(1).unwrap().replace("**", "");
    let (verdicts, _) = line.split_once("; ").unwrap();
    let (_, rest) = line.rsplit_once("; ").unwrap();
    let held = between(text, "Requirements met: ", ".");
    count(None, rest.split(' ').next().unwrap().parse().unwrap(), &by_verdict(verdicts.split(", ")), must(held))
}

/// Returns the texts of the elements that begin with `begin`.
fn elements<'a>(html: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(begin).skip(1).filter_map(|rest| rest.split_once('>')?.1.split('<').next())
}

fn of_html(html: &str) -> Count {
    let by = by_verdict(elements(between(html, "<p class=\"counts\">", "</p>"), "<span"));
    let groups = html.matches("<p class=\"faint\"><code>mpa/").count();
    let variants = html.matches("<details id=").count();
    count(Some(groups), variants, &by, must(between(html, "<dt>requirements met</dt><dd>", "</dd>")))
}

fn of_run_page(page: &str) -> Count {
    let by = by_verdict(elements(between(page, "<p id=\"counts\"", "</p>"), "<span"));
    let groups = page.matches("<section aria-label=\"mpa/").count();
    let variants = page.matches("<tr data-key=").count();
    count(Some(groups), variants, &by, must(between(page, "<dt>Requirements met</dt><dd>", "</dd>")))
}

fn of_list(page: &str) -> Count {
    let line = between(page, "<tbody>", "</tr>");
    let (finished, planned) = elements(line, "<td class=\"number\"").find_map(|text| text.split_once('/')).unwrap();
    assert_eq!(finished, planned);
    let held = elements(line, "<td").find(|text| text.contains(" MUST")).unwrap();
    count(None, planned.parse().unwrap(), &by_verdict(elements(line, "<span class=\"verdict")), must(held))
}

fn of_metrics(text: &str) -> Count {
    let of = |family: &str, label: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{family}{{")) && line.contains(label));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
    };
    let verdicts = Verdict::ALL.map(|verdict| (verdict.to_string(), format!("verdict=\"{verdict}\"")));
    let by: BTreeMap<String, u64> =
        verdicts.map(|(verdict, label)| (verdict, of("weft_last_run_cases", &label))).into_iter().collect();
    let rows = |result: &str| of("weft_last_run_requirements", &format!("level=\"MUST\",result=\"{result}\""));
    let tried = rows("held") + rows("broken") + rows("undecided");
    count(None, by.values().sum::<u64>() as usize, &by, Some((rows("held"), tried)))
}

#[test]
fn every_report_and_page_counts_the_same() {
    let report = all_count_the_same(false);
    let wanted = of_results(&report);
    assert_eq!((wanted.cases, wanted.variants), (Some(3), 9));
    assert_eq!((wanted.passed, wanted.failed, wanted.skipped, wanted.undecided), (3, 2, 3, 1));
}

/// All cases pass, but the target violates requirements that the cases do not test.
#[test]
fn every_report_and_page_counts_the_same_where_no_case_fails() {
    let report = all_count_the_same(true);
    let wanted = of_results(&report);
    assert_eq!((wanted.cases, wanted.variants), (Some(2), 8));
    assert_eq!((wanted.passed, wanted.failed, wanted.skipped, wanted.undecided), (5, 0, 3, 0));
}

/// Performs a run, compares the counts of its reports and pages, and returns its report. The run
/// fails even if `all_pass` is true, because the target violates other requirements.
fn all_count_the_same(all_pass: bool) -> RunReport {
    let folder = tempfile::tempdir().unwrap();
    let (out, suites) = (folder.path().join("out"), folder.path().join("suites"));
    scripts(&suites, all_pass);
    let suites = suites.display().to_string();
    let arguments = ["test", "builtin", "--deviate", "mpa.pad-not-zero", "--seed", "1", "--suites", &suites];
    let output = weft(&arguments, &out).output().unwrap();
    let printed = text(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let report: RunReport = serde_json::from_str(&read("report.json")).unwrap();

    let wanted = of_results(&report);
    // The target also violates two requirements that no case tests.
    let (held, tried) = wanted.must.unwrap();
    assert!(held < tried && printed.contains("also observed: the target violates MPA-2-5 in "), "{printed}");

    let server = Server::of(&mut weft(&["web", "--listen", "127.0.0.1:0"], &out));
    for (name, counted) in [
        ("terminal", of_terminal(&printed)),
        ("JSON", of_summary(&serde_json::from_str(&read("report.json")).unwrap())),
        ("JUnit", of_junit(&read("junit.xml"))),
        ("TAP", of_tap(&read("report.tap"))),
        ("Markdown", of_markdown(&read("summary.md"))),
        ("HTML", of_html(&read("report.html"))),
        ("run page", of_run_page(&server.text(&format!("/runs/{}", report.run.id)))),
        ("list of runs", of_list(&server.text("/runs"))),
        ("metrics", of_metrics(&server.text("/metrics"))),
    ] {
        let wanted =
            Count { cases: counted.cases.and(wanted.cases), must: counted.must.and(wanted.must), ..wanted.clone() };
        assert_eq!(counted, wanted, "{name}");
    }
    let pairs = server.text("/pairs");
    assert!(pairs.contains(&format!("{held} of {tried} MUST")) && !pairs.contains("partial:"), "{pairs}");
    report
}
