//! Tests of pages about several runs: the list, comparisons, the matrix, the history of a case.

use weft_suites::model::{Direction, DroppedTraffic, ExpectedResult, Summary};
use weft_suites::store::PlannedCase;

use super::*;
use crate::view::{Column, Show};

/// A run like that of [`failing_run`], but against the correct target.
pub(super) async fn passing_run(out: &Path) -> RunReport {
    let options = RunOptions {
        target: Target::builtin(),
        suites: Suites::embedded().unwrap(),
        filter: Filter::of(["mpa/7.1.1-key"]),
        out: out.to_owned(),
        seed: Some(1),
        cancel: None,
    };
    weft_suites::run(options, Arc::new(|_: &Event| {})).await.unwrap()
}

/// Stores `report` again, as a run against another target.
async fn as_other(site: &Site, report: &RunReport, id: &str, target: &str) {
    let mut run = report.run.clone();
    (run.id, run.target.name) = (id.into(), target.into());
    let keys: Vec<CaseKey> = report.results.iter().map(|result| result.key.clone()).collect();
    site.store.begin(&run, &report.cases, &keys).await.unwrap();
    for result in &report.results {
        site.store.finish_case(id, result).await.unwrap();
    }
    site.store.finish(id, &report.summary).await.unwrap();
}

/// The links on a page that begin with `begin`.
fn links(html: &str, begin: &str) -> Vec<String> {
    let all = html.split("href=\"").skip(1).filter_map(|part| part.split('"').next());
    all.filter(|href| href.starts_with(begin)).map(|href| href.replace("&#38;", "&")).collect()
}

#[tokio::test]
async fn the_list_of_runs_has_pages() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    for number in 0..60u64 {
        let mut run = report.run.clone();
        (run.id, run.started_unix_ms) = (format!("r{number:02}"), report.run.started_unix_ms + 1 + number);
        run.target.name = ["odd & \"so\"", "even"][usize::from(number % 2 == 0)].into();
        site.store.begin(&run, &[], &[]).await.unwrap();
    }
    let (mut ids, mut next) = (Vec::new(), Some("/runs".to_owned()));
    while let Some(address) = next {
        let page = site.text(&address).await;
        let runs = links(&page, "/runs/");
        assert!(runs.len() <= 50);
        ids.extend(runs);
        next = links(&page, "/runs?before=").pop();
    }
    assert_eq!((ids.len(), ids[0].as_str(), ids[59].as_str()), (61, "/runs/r59", "/runs/r00"));
    assert!(!site.text("/runs").await.contains("16 fail</span>"), "that run is on the second page");
    let odd = site.text("/runs?target=odd+%26+%22so%22&before=").await;
    assert_eq!(links(&odd, "/runs/").len(), 30);
    assert!(site.text("/runs?target=none").await.contains("There is no such run."));
}

#[tokio::test]
async fn counts_violated_requirements_by_level() {
    let folder = tempfile::tempdir().unwrap();
    failing_run(folder.path()).await;
    // MPA-7.1.1-2 is the violated requirement.
    let level = weft_core::requirement!("MPA-7.1.1-2").row().level;
    assert!(site(folder.path()).await.text("/runs").await.contains(&format!("<td>1 {level}</td>")));
}

#[tokio::test]
async fn compares_two_runs_in_both_orders() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, good) = (failing_run(folder.path()).await, passing_run(folder.path()).await);
    let site = site(folder.path()).await;
    let page = site.text(&format!("/compare?before={}&after={}", bad.run.id, good.run.id)).await;
    let same = bad.results.len() - 16;
    assert!(
        page.contains("<h2>fixed (16)</h2>") && page.contains(&format!("{same} cases have the same outcome")),
        "{page}"
    );
    let failed = bad.results.iter().find(|result| result.verdict == Verdict::Fail).unwrap();
    for run in [&bad, &good] {
        assert!(links(&page, "/runs/").contains(&case_page(&run.run.id, &failed.key)));
    }
    let turned = site.text(&links(&page, "/compare?").pop().unwrap()).await;
    assert!(turned.contains("<h2>newly failing (16)</h2>") && !turned.contains("<h2>fixed"), "{turned}");
    assert!(turned.contains("MPA-7.1.1-2"), "the reason of the later run");
    for nothing in ["", "?before=x", "?before=x&after=y", "?after=%00&before=%00"] {
        assert_eq!(site.get(&format!("/compare{nothing}")).await.status(), StatusCode::NOT_FOUND, "{nothing}");
    }
}

#[tokio::test]
async fn the_matrix_shows_targets_against_cases() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, good) = (failing_run(folder.path()).await, passing_run(folder.path()).await);
    let site = site(folder.path()).await;
    as_other(&site, &bad, "other-run", "nic <b>").await;
    let rows = |page: &str| page.matches("<tr><th scope=\"row\">").count();
    let sections = site.text("/matrix").await;
    assert_eq!(rows(&sections), 1, "the cases are in one section");
    let section = "/matrix?case=mpa/7.1.1-key/";
    assert_eq!(links(&sections, "/matrix?"), [section]);
    assert!(
        sections.contains("<td class=\"cell fail\" title=\"16 fail") && sections.contains("cell pass"),
        "{sections}"
    );
    let all = site.text(section).await;
    assert_eq!(rows(&all), good.results.len());
    let failed = bad.results.iter().find(|result| result.verdict == Verdict::Fail).unwrap();
    // The newest run represents its target, not the failing run before it.
    let cells = links(&all, "/runs/");
    assert!(
        cells.contains(&case_page(&good.run.id, &failed.key)) && cells.contains(&case_page("other-run", &failed.key))
    );
    assert!(!cells.contains(&case_page(&bad.run.id, &failed.key)));
    assert!(all.contains("nic &#60;b&#62;") && !all.contains("<b>"), "names are text");
    for (filter, number) in [
        ("show=differing", 16),
        ("show=failing", 16),
        ("show=failing&target=builtin", 0),
        ("show=all&case=octet%3D3%5D&target=", 1),
        ("case=no+such+case", 0),
    ] {
        assert_eq!(rows(&site.text(&format!("/matrix?{filter}")).await), number, "{filter}");
    }
    let unclear = site.get("/matrix?show=none").await;
    assert_eq!(unclear.status(), StatusCode::BAD_REQUEST);
    assert!(octets(unclear).await.starts_with(b"<!doctype html>"), "a refusal is a page, too");
}

/// If an earlier run of all cases has a failure, a later run of selected cases does not hide this
/// failure.
#[tokio::test]
async fn a_complete_run_represents_its_target_until_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let (mut bad, mut good) = (failing_run(folder.path()).await, passing_run(folder.path()).await);
    let site = site(folder.path()).await;
    let failed = bad.results.iter().find(|result| result.verdict == Verdict::Fail).unwrap().key.clone();
    good.results.retain(|result| result.key == failed);
    good.summary = Summary::of(RunStatus::Done, 1, &good.results, 1);
    as_other(&site, &good, "selected", "nic").await;
    let pairs = site.text("/pairs").await;
    assert!(
        pairs.contains(
            "as expected</a> <span class=\"faint\">partial: lacks variants of the default tier</span><br>1 of 1 MUST"
        ),
        "{pairs}"
    );
    assert!(!pairs.contains("verdict pass"), "a run of selected cases makes no target green: {pairs}");
    assert!(site.text("/metrics").await.contains("weft_last_run_partial{target=\"nic\"} 1\n"));
    bad.run.is_selection = false;
    as_other(&site, &bad, "complete", "nic").await;
    as_other(&site, &good, "selected-again", "nic").await;

    let matrix = site.text("/matrix?target=nic&case=mpa").await;
    assert!(matrix.contains(&case_page("complete", &failed)) && !matrix.contains("/runs/selected"), "{matrix}");
    assert!(!matrix.contains("partial:"), "{matrix}");
    let pairs = site.text("/pairs").await;
    let cell = pairs.split("href=\"/runs/complete\"").nth(1).unwrap().split("</td>").next().unwrap();
    assert!(cell.contains(">fails</a><br>0 of 1 MUST"), "{cell}");
    let metrics = site.text("/metrics").await;
    for line in [
        "weft_last_run_exit_code{target=\"nic\"} 1",
        "weft_last_run_partial{target=\"nic\"} 0",
        "weft_last_run_cases{target=\"nic\",verdict=\"fail\"} 16",
        "weft_last_run_requirements{target=\"nic\",level=\"MUST\",result=\"broken\"} 1",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line} in\n{metrics}");
    }
    // Each list marks runs of selected cases.
    for page in ["/runs?target=nic", "/targets/nic"] {
        assert_eq!(site.text(page).await.matches("partial: lacks variants of the default tier").count(), 2, "{page}");
    }
    assert!(site.text("/runs/selected").await.contains("<dd>partial: lacks variants of the default tier</dd>"));

    // Store a rerun of the failed case. The new result of this case counts, together with the other
    // results of the first run.
    good.run.rerun_of = Some("complete".into());
    good.run.target.deviations.clone_from(&bad.run.target.deviations);
    as_other(&site, &good, "again", "nic").await;
    let matrix = site.text("/matrix?target=nic&case=mpa").await;
    assert!(matrix.contains(&case_page("again", &failed)) && matrix.contains("/runs/complete/cases/"), "{matrix}");
    assert!(site.text("/metrics").await.contains("weft_last_run_cases{target=\"nic\",verdict=\"fail\"} 15\n"));
    assert!(
        site.text("/runs/again").await.contains("partial: a rerun of <a href=\"/runs/complete\">an earlier run</a>")
    );
}

#[tokio::test]
async fn a_case_that_does_not_apply_to_a_target_makes_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = passing_run(folder.path()).await;
    let site = site(folder.path()).await;
    for result in &mut report.results {
        result.verdict = Verdict::NotApplicable;
    }
    as_other(&site, &report, "other-run", "client").await;
    let differing = site.text("/matrix?show=differing").await;
    assert!(differing.contains("No case matches.") && !differing.contains("<table"), "{differing}");
    let sections = site.text("/matrix").await;
    assert!(sections.contains("<td class=\"cell not-applicable\"") && sections.contains(">not run</td>"), "{sections}");
}

/// The limit of 200 kB is a goal of the project.
#[tokio::test]
async fn the_cases_of_a_long_run_have_pages() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let result = |number: usize| {
        let mut result = report.results[0].clone();
        result.key.case = format!("mpa/7.1-a-section-with-a-name/a-case-with-a-name-{number}");
        result.verdict = if number < 120 { Verdict::Fail } else { Verdict::Pass };
        result.steps.clear();
        result
    };
    let results: Vec<_> = (0..130).map(result).collect();
    let keys: Vec<CaseKey> = results.iter().map(|result| result.key.clone()).collect();
    for id in ["long", "live"] {
        let mut run = report.run.clone();
        run.id = id.into();
        site.store.begin(&run, &report.cases, &keys).await.unwrap();
        for result in &results {
            site.store.finish_case(id, result).await.unwrap();
        }
    }
    let summary = Summary::of(RunStatus::Done, 130, &results, 1);
    site.store.finish("long", &summary).await.unwrap();
    let listed = |page: &str| -> Vec<String> {
        page.split("<tr data-key=\"").skip(1).filter_map(|row| Some(row.split_once('"')?.0.to_owned())).collect()
    };
    let first = site.text("/runs/long").await;
    assert!(first.contains("Cases 1 to 100 of 130") && first.len() < 200_000, "{} bytes: {first}", first.len());
    assert!(first.contains("<details class=\"part\"><summary>Cases that did not pass (120)</summary>"), "{first}");
    let passed = "<p><a href=\"/runs/long?from=120#cases\">Cases that passed (10)</a></p>";
    assert!(first.contains(passed) && !first.contains("<summary>Cases that passed"), "{first}");
    assert!(first.contains("<a rel=\"next\" href=\"/runs/long?from=100#cases\">Next</a>"), "{first}");
    let second = site.text("/runs/long?from=100").await;
    let both: Vec<String> = [first, second].iter().flat_map(|page| listed(page)).collect();
    assert_eq!(both, keys.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(listed(&site.text("/runs/long?from=120").await).len(), 10);
    // The script of a live page needs all cases.
    site.store.set_status("live", RunStatus::Running).await.unwrap();
    let live = site.text("/runs/live").await;
    assert!(listed(&live).len() == 130 && !live.contains("rel=\"next\""), "{live}");
}

/// The limit of 200 kB is a goal of the project.
#[tokio::test]
async fn a_long_list_of_cases_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    passing_run(folder.path()).await;
    let latest = site(folder.path()).await.store.latest("builtin").await.unwrap().unwrap();
    let planned = |number: usize| PlannedCase {
        key: CaseKey::new(&format!("mpa/7.1-a-section-with-a-name-{}/a-case-with-a-name-{number}", number % 150)),
        verdict: Some(Verdict::Inconclusive),
        duration_us: Some(1),
    };
    let planned: Vec<_> = (0..3000).map(planned).collect();
    let column = |_| Column { latest: latest.clone(), planned: planned.clone() };
    for targets in [1, 4, 16] {
        let columns: Vec<Column> = (0..targets).map(column).collect();
        for (case, rows) in [("", 150), ("mpa", 900 / (targets + 1))] {
            let filter = crate::view::Filter { target: "", case, show: Show::All };
            let page = crate::view::matrix(&columns, 0, &filter).unwrap();
            assert_eq!(page.matches("<tr><th scope=\"row\">").count(), rows, "{targets} {case}");
            assert!(page.len() < 200_000, "{targets} {case}: {} bytes", page.len());
            let cut = format!("{} more match; narrow the filter.", 3000 - rows);
            assert_eq!(page.contains(&cut), !case.is_empty(), "{targets} {case}");
        }
    }
}

#[tokio::test]
async fn a_case_shows_its_history_on_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, good) = (failing_run(folder.path()).await, passing_run(folder.path()).await);
    let site = site(folder.path()).await;
    as_other(&site, &bad, "other-run", "another").await;
    let key = &bad.results.iter().find(|result| result.verdict == Verdict::Fail).unwrap().key;
    let page = site.text(&case_page(&good.run.id, key)).await;
    let history = page.split("aria-label=\"History\"").nth(1).unwrap().split("</table>").next().unwrap();
    assert_eq!(links(history, "/runs/"), [case_page(&bad.run.id, key)], "only the other run of the same target");
    assert!(history.contains("verdict fail") && history.contains("verdict pass") && history.contains("this run"));
    assert!(!site.text(&case_page("other-run", key)).await.contains("aria-label=\"History\""), "it has one result");
}

#[tokio::test]
async fn a_case_shows_what_its_capture_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let failed = report.results.iter_mut().find(|result| result.verdict == Verdict::Fail).unwrap();
    let page = case_page(&report.run.id, &failed.key);
    assert!(!site.text(&page).await.contains("the capture lacks "));
    failed.evidence.dropped.push(DroppedTraffic {
        connection: 1,
        direction: Direction::Received,
        events: 3,
        octets: 3072,
        crc32c: "0a1b2c3d".into(),
        first_ns: 0,
        last_ns: 1_000_000,
    });
    let (key, lacks, decision) =
        (failed.key.clone(), failed.evidence.dropped[0].sentence(), failed.decision().unwrap());
    as_other(&site, &report, "other-run", "nic").await;
    let page = site.text(&case_page("other-run", &key)).await;
    assert!(page.contains(&format!("<li>{lacks}</li>")) && page.contains(&format!("Decided at {decision}.")), "{page}");
}

#[tokio::test]
async fn shows_expected_results_and_stale_entries() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let key = report.results.iter().find(|result| result.verdict == Verdict::Fail).unwrap().key.clone();
    let expected = |reason: &str, link: &str| ExpectedResult {
        key: key.clone(),
        reason: reason.into(),
        link: Some(link.into()),
        entry: None,
    };
    report.summary.expected =
        vec![expected("firmware 1.2 <knows>", "https://bugs.example/1"), expected("no link", "javascript:alert(1)")];
    report.summary.stale = vec!["mpa/x: there is no such case".into()];
    as_other(&site, &report, "other-run", "nic").await;
    let page = site.text("/runs/other-run").await;
    assert!(page.contains("firmware 1.2 &#60;knows&#62; <a href=\"https://bugs.example/1\""), "{page}");
    assert!(page.contains("no link javascript:alert(1)") && !page.contains("href=\"javascript"), "{page}");
    assert!(page.contains("<li class=\"fail\">mpa/x: there is no such case</li>"), "{page}");
    let plain = site.text(&format!("/runs/{}", report.run.id)).await;
    assert!(!plain.contains("baseline"), "{plain}");
}

#[tokio::test]
async fn shows_a_run_by_sections_of_the_specifications() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let page = site.text(&format!("/runs/{}/sections", report.run.id)).await;
    let section = weft_core::requirement!("MPA-7.1.1-2").row().section;
    assert!(page.contains("RFC 5044 (mpa)") && page.contains(&format!("<th scope=\"row\">{section}</th>")), "{page}");
    assert!(page.contains("<code>MPA-7.1.1-2</code> <span class=\"verdict fail\">"), "{page}");
    assert_eq!(site.get("/runs/none/sections").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn shows_and_filters_the_labels_of_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    report.run.labels.insert("firmware".into(), "2.1 <b>".into());
    as_other(&site, &report, "labelled", "nic").await;
    let address = "/runs?label=firmware%3D2.1%20%3Cb%3E";
    let list = site.text("/runs").await;
    assert!(list.contains(&format!("<a href=\"{address}\"><code>firmware=2.1 &#60;b&#62;</code></a>")), "{list}");
    assert_eq!(links(&list, "/runs/").len(), 2);
    assert_eq!(links(&site.text(address).await, "/runs/"), ["/runs/labelled"]);
    assert!(site.text("/runs?label=firmware%3D2.2").await.contains("There is no such run."));
    assert_eq!(site.get("/runs?label=firmware").await.status(), StatusCode::BAD_REQUEST);
    let page = site.text("/runs/labelled").await;
    assert!(page.contains(&format!("<dt>Labels</dt><dd><a href=\"{address}\"><code>firmware=2.1 &#60;b")), "{page}");
}

#[tokio::test]
async fn shows_initiators_against_responders() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let mut initiator = report.clone();
    initiator.run.target.role = weft_suites::model::Role::Initiator;
    as_other(&site, &initiator, "other-run", "nic").await;
    let page = site.text("/pairs").await;
    let (head, body) = page.split_once("<tbody>").unwrap();
    assert!(head.contains("href=\"/targets/builtin\"") && !head.contains("href=\"/targets/nic\""), "{page}");
    assert!(body.contains("href=\"/targets/nic\"") && body.contains("href=\"/runs/other-run\""), "{page}");
    assert_eq!(body.matches("verdict fail").count(), 2, "{page}");
}

#[tokio::test]
async fn shows_the_runs_of_a_target() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, good) = (failing_run(folder.path()).await, passing_run(folder.path()).await);
    let site = site(folder.path()).await;
    let page = site.text("/targets/builtin").await;
    assert!(page.contains("<svg class=\"chart\"") && page.matches("<rect class=\"fail\"").count() == 1, "{page}");
    assert!(page.contains(">Cases by verdict</text>") && page.matches("<line class=\"grid\"").count() >= 3, "{page}");
    let compare = format!("/compare?before={}&after={}", bad.run.id, good.run.id);
    assert_eq!(links(&page, "/compare"), [compare]);
    let unsteady = page.split("id=\"unsteady\"").nth(1).unwrap();
    assert_eq!(unsteady.matches("1 fail</span>").count(), 16, "{unsteady}");
    assert!(!page.contains("<form"), "this server starts nothing");
    assert!(site.text("/targets").await.contains("starts no runs"));
    assert_eq!(site.get("/targets/none").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_page_of_a_baseline_marks_what_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = failing_run(folder.path()).await;
    let key = report.results.iter().find(|result| result.verdict == Verdict::Fail).unwrap().key.clone();
    let file = format!(
        "name = \"nic\"\nkind = \"builtin\"\n\
         [[baseline]]\ncase = \"{}\"\noutcome = \"fail\"\nsignature = \"MPA\"\nreason = \"firmware 1.2\"\nlink = \"javascript:alert(1)\"\n\
         [[baseline]]\ncase = \"mpa/7.1.1-key/other\"\noutcome = \"fail\"\nsignature = \"MPA\"\nreason = \"was so\"\n\
         [[baseline]]\ncase = \"mpa/7.1/*\"\noutcome = \"fail\"\nsignature = \"MPA\"\nreason = \"all keys\"\n",
        key.case
    );
    let target = Target::from_toml("nic.toml", &file).unwrap();
    let start = Start { targets: vec![target], suites: Suites::embedded().unwrap() };
    let site = site_for(folder.path(), Access::default(), Some(start)).await;
    assert!(site.text("/targets/nic/baseline").await.contains("No run has finished yet"));
    let expected = |key: &CaseKey, reason: &str, entry: Option<&str>| ExpectedResult {
        key: key.clone(),
        reason: reason.into(),
        link: None,
        entry: entry.map(str::to_owned),
    };
    let other = report.results.iter().rfind(|result| result.verdict == Verdict::Fail).unwrap().key.clone();
    report.summary.expected =
        vec![expected(&key, "firmware 1.2", None), expected(&other, "all keys", Some("mpa/7.1/*"))];
    report.summary.stale = vec!["mpa/7.1.1-key/other: there is no such case".into(), "mpa/gone: found pass".into()];
    as_other(&site, &report, "nic-run", "nic").await;
    let page = site.text("/targets/nic/baseline").await;
    for key in [&key, &other] {
        assert_eq!(page.matches(&format!("href=\"{}\"", case_page("nic-run", key))).count(), 1, "{page}");
    }
    assert!(
        page.contains("<strong class=\"fail\">stale</strong> mpa/7.1.1-key/other: there is no such case"),
        "{page}"
    );
    assert!(page.contains("<li class=\"fail\">mpa/gone: found pass</li>"), "{page}");
    assert!(page.contains("javascript:alert(1)") && !page.contains("href=\"javascript"), "{page}");
    assert_eq!(site.get("/targets/none/baseline").await.status(), StatusCode::NOT_FOUND);
}

/// A goal of the project: with 1,000 runs of 500 cases in the store, each page takes at most 200 ms
/// and has less than 200 kB. Answers of the API can be larger.
/// `cargo test --release -p weft-web -- --ignored --nocapture` prints the time of each page.
#[tokio::test]
#[ignore = "makes a store of 500,000 results, which takes a while; the times are meaningful only in a release build"]
async fn pages_of_a_large_store_are_fast() {
    use sqlx::{Connection, Executor};
    const CASES: usize = 500;
    let folder = tempfile::tempdir().unwrap();
    let small = tempfile::tempdir().unwrap();
    let report = failing_run(small.path()).await;
    let site = site(folder.path()).await;
    let results: Vec<_> = (0..CASES)
        .map(|number| {
            let mut result = report.results[number % report.results.len()].clone();
            result.key.case = format!("scale/case-{number}");
            result
        })
        .collect();
    let keys: Vec<CaseKey> = results.iter().map(|result| result.key.clone()).collect();
    let (id, key) = (&report.run.id, &keys[0]);
    site.store.begin(&report.run, &report.cases, &keys).await.unwrap();
    for result in &results {
        site.store.finish_case(id, result).await.unwrap();
    }
    let summary = Summary::of(RunStatus::Done, CASES as u64, &results, 1_000_000);
    site.store.finish(id, &summary).await.unwrap();

    // Add 999 copies of that run, without steps, because 500,000 results with steps would have 5
    // GB. Also add a rerun of one case of the newest copy.
    let file = format!("sqlite://{}", folder.path().join(FILE_NAME).display());
    let mut raw = sqlx::SqliteConnection::connect(&file).await.unwrap();
    raw.execute(
        "PRAGMA synchronous = OFF;
         CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) SELECT i FROM n;
         INSERT INTO runs (id, started_unix_ms, target, status, info, summary, sequence)
             SELECT 'copy-' || i, started_unix_ms - i * 1000, 'target-' || (i % 4), status,
             json_set(info, '$.id', 'copy-' || i, '$.target.name', 'target-' || (i % 4)), summary, 0 - i FROM n CROSS JOIN runs;
         INSERT INTO cases SELECT 'copy-' || i, id, info FROM n CROSS JOIN cases;
         INSERT INTO results SELECT 'copy-' || i, position, case_key, verdict, duration_us,
             CASE WHEN i = 1 THEN result ELSE json_set(result, '$.steps', json('[]')) END FROM n CROSS JOIN results;
         INSERT INTO judged SELECT 'copy-' || i, requirement, strength, verdict FROM n CROSS JOIN judged;
         INSERT INTO runs (id, started_unix_ms, target, status, info, summary, sequence, is_selection, rerun_of)
             SELECT 'rerun', started_unix_ms, target, status, json_set(info, '$.id', 'rerun', '$.rerun_of', 'copy-1'),
             summary, 0, 1, 'copy-1' FROM runs WHERE id = 'copy-1';
         INSERT INTO results SELECT 'rerun', position, case_key, verdict, duration_us, result FROM results
             WHERE run_id = 'copy-1' AND position = 0;",
    )
    .await
    .unwrap();
    raw.close().await.unwrap();

    let case = case_page("copy-4", key);
    let (mut slow, mut large) = (Vec::new(), Vec::new());
    for path in [
        "/".to_owned(),
        "/runs".to_owned(),
        "/runs?target=target-1".to_owned(),
        "/runs?before=copy-500".to_owned(),
        "/runs?label=no%3Dsuch".to_owned(),
        format!("/runs/{id}"),
        format!("/runs/{id}?from=400"),
        case_page(id, key),
        case,
        format!("/compare?before=copy-1&after={id}"),
        "/matrix".to_owned(),
        "/matrix?case=scale".to_owned(),
        "/matrix?show=differing".to_owned(),
        "/pairs".to_owned(),
        "/targets".to_owned(),
        "/targets/target-1".to_owned(),
        "/targets/target-1?axis=".to_owned(),
        "/targets/target-1/baseline".to_owned(),
        format!("/runs/{id}/sections"),
        "/api/runs".to_owned(),
        format!("/api/runs/{id}/cases"),
        "/api/targets".to_owned(),
        "/api/targets/target-1".to_owned(),
        "/api/matrix".to_owned(),
        format!("/api/compare?before=copy-1&after={id}"),
        "/metrics".to_owned(),
        "/healthz".to_owned(),
    ] {
        let (mut took, mut size) = (Vec::new(), 0);
        for _ in 0..5 {
            let begun = std::time::Instant::now();
            let page = site.text(&path).await;
            took.push(begun.elapsed());
            assert!(!page.is_empty());
            size = page.len();
        }
        took.sort_unstable();
        let [middle, slowest] = [took[2], took[4]].map(|time| time.as_secs_f64() * 1e3);
        eprintln!("{middle:>8.1} ms (slowest {slowest:.1}) {size:>8} bytes  {path}");
        if size >= 200_000 && !path.starts_with("/api/") {
            large.push(path.clone());
        }
        if took[2] >= Duration::from_millis(200) {
            slow.push(path);
        }
    }
    assert!(slow.is_empty(), "200 ms and more: {slow:?}");
    assert!(large.is_empty(), "200 kB and more: {large:?}");
}
