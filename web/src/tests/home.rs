//! Tests of the home page, and of the verdicts, ages and trends of targets.

use weft_suites::clock;
use weft_suites::store::{RunsPage, VerdictChange};

use super::pages::passing_run;
use super::*;
use crate::view::{ComparedTarget, HomePage};

/// A day, in milliseconds.
const DAY: u64 = 86_400_000;

/// Stores `report` as a complete run that started `days` days ago.
async fn days_ago(site: &Site, report: &RunReport, target: &str, days: u64) -> String {
    labelled(site, report, target, days, None).await
}

/// Like [`days_ago`], with a label for the firmware.
async fn labelled(site: &Site, report: &RunReport, target: &str, days: u64, firmware: Option<&str>) -> String {
    let mut run = report.run.clone();
    run.labels.extend(firmware.map(|version| ("firmware".to_owned(), version.to_owned())));
    run.is_selection = false;
    store(site, report, target, days, run).await
}

/// Like [`days_ago`], for a run of selected cases.
async fn selection(site: &Site, report: &RunReport, target: &str, days: u64) -> String {
    store(site, report, target, days, RunInfo { is_selection: true, ..report.run.clone() }).await
}

async fn store(site: &Site, report: &RunReport, target: &str, days: u64, mut run: RunInfo) -> String {
    let number = site.store.runs_of(RunsPage { limit: 100, ..RunsPage::default() }).await.unwrap().len();
    run.id = format!("run-{number}");
    run.target.name = target.to_owned();
    run.started_unix_ms = clock::unix_ns() / 1_000_000 - days * DAY;
    let keys: Vec<CaseKey> = report.results.iter().map(|result| result.key.clone()).collect();
    site.store.begin(&run, &report.cases, &keys).await.unwrap();
    for result in &report.results {
        site.store.finish_case(&run.id, result).await.unwrap();
    }
    site.store.finish(&run.id, &report.summary).await.unwrap();
    run.id
}

/// A store without runs, and the reports of a run that fails and of a run that passes.
async fn lab(folder: &Path) -> (Site, RunReport, RunReport) {
    let elsewhere = tempfile::tempdir().unwrap();
    let (bad, good) = (failing_run(elsewhere.path()).await, passing_run(elsewhere.path()).await);
    (site(folder).await, bad, good)
}

/// Returns a section of a page.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<h2 id=\"{id}\">")).unwrap_or_else(|| panic!("no {id} in {page}"));
    rest.split_once("</section>").unwrap().0
}

#[tokio::test]
async fn names_the_targets_that_are_not_as_expected() {
    let folder = tempfile::tempdir().unwrap();
    let (site, bad, good) = lab(folder.path()).await;
    days_ago(&site, &good, "good", 0).await;
    let page = site.text("/").await;
    assert!(page.contains("<p class=\"line pass\">The only target is as expected.</p>"), "{page}");
    assert!(!page.contains("id=\"red\""), "{page}");
    days_ago(&site, &good, "bad", 5).await;
    let run = days_ago(&site, &bad, "bad", 3).await;
    let page = site.text("/").await;
    assert!(page.contains("<p class=\"line fail\">1 of 2 targets is not as expected.</p>"), "{page}");
    let red = section(&page, "red");
    assert!(red.contains("href=\"/targets/bad\"") && !red.contains("href=\"/targets/good\""), "{red}");
    assert!(red.contains(&format!("href=\"/runs/{run}\"")) && red.contains(">3 days ago</a>"), "{red}");
    assert!(red.contains("16 fail</span>") && red.contains("the target fails 16 cases"), "{red}");
    // The run is older than a day, so nothing changed since yesterday.
    let changed = section(&page, "changed");
    assert!(changed.contains("1 target without a finished run in the last 24 hours"), "{changed}");
    assert!(!changed.contains("newly failing"), "{changed}");
}

/// A nightly run of the tier smoke is partial. Its failures must not hide after a complete run.
#[tokio::test]
async fn a_later_partial_failure_makes_a_target_red() {
    let folder = tempfile::tempdir().unwrap();
    let (site, bad, good) = lab(folder.path()).await;
    days_ago(&site, &good, "nic", 2).await;
    let failed = selection(&site, &bad, "nic", 1).await;
    let page = site.text("/").await;
    assert!(page.contains("<p class=\"line fail\">The only target is not as expected.</p>"), "{page}");
    assert!(section(&page, "red").contains(&format!("href=\"/runs/{failed}\"")), "{page}");
    let exit_code = |code: u8| format!("weft_last_run_exit_code{{target=\"nic\"}} {code}\n");
    assert!(site.text("/metrics").await.contains(&exit_code(1)));
    assert!(site.text("/targets").await.contains(&format!("href=\"/runs/{failed}\"")));
    // A later run of as many cases is as expected again.
    selection(&site, &good, "nic", 0).await;
    let page = site.text("/").await;
    assert!(page.contains("<p class=\"line pass\">The only target is as expected.</p>"), "{page}");
    assert!(site.text("/metrics").await.contains(&exit_code(0)));
}

#[tokio::test]
async fn a_stopped_run_replaces_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let (site, bad, mut good) = lab(folder.path()).await;
    let failed = selection(&site, &bad, "nic", 1).await;
    good.summary.status = RunStatus::Cancelled;
    selection(&site, &good, "nic", 0).await;
    let page = site.text("/").await;
    assert!(page.contains("<p class=\"line fail\">The only target is not as expected.</p>"), "{page}");
    assert!(section(&page, "red").contains(&format!("href=\"/runs/{failed}\"")), "{page}");
}

#[tokio::test]
async fn old_results_are_not_green() {
    let folder = tempfile::tempdir().unwrap();
    let (site, _, good) = lab(folder.path()).await;
    days_ago(&site, &good, "nic", 9).await;
    let page = site.text("/").await;
    let line =
        "<p class=\"line inconclusive\">The only target is as expected. The oldest result is from 9 days ago.</p>";
    assert!(page.contains(line), "{page}");
}

#[tokio::test]
async fn shows_changes_since_yesterday() {
    let folder = tempfile::tempdir().unwrap();
    let (site, bad, good) = lab(folder.path()).await;
    // The first run of today already fails. The last run before yesterday passes.
    let before = days_ago(&site, &good, "nic", 2).await;
    days_ago(&site, &bad, "nic", 0).await;
    let after = days_ago(&site, &bad, "nic", 0).await;
    let page = site.text("/").await;
    let changed = section(&page, "changed");
    let fails = bad.results.iter().filter(|result| result.verdict == Verdict::Fail);
    let first = fails.map(|result| &result.key).min().unwrap();
    assert!(changed.contains("<strong class=\"fail\">16 cases newly failing</strong>"), "{changed}");
    assert!(changed.contains(&case_page(&after, first)) && changed.contains("and 11 more"), "{changed}");
    assert!(changed.contains(&format!("/compare?before={before}&#38;after={after}")), "{changed}");
    assert!(changed.contains("compared with the run 2 days ago"), "{changed}");
    days_ago(&site, &good, "nic", 0).await;
    let page = site.text("/").await;
    assert!(section(&page, "changed").contains("1 target with a new run and the same verdicts"), "{page}");
    // Without a run of more than a day ago, the previous run counts.
    days_ago(&site, &bad, "new", 0).await;
    days_ago(&site, &good, "new", 0).await;
    let page = site.text("/").await;
    assert!(section(&page, "changed").contains("<strong class=\"pass\">16 cases fixed</strong>"), "{page}");
}

/// The limit of 200 kB is a goal of the project.
#[tokio::test]
async fn lists_of_changes_are_short_if_many_targets_changed() {
    let folder = tempfile::tempdir().unwrap();
    passing_run(folder.path()).await;
    let latest = site(folder.path()).await.store.latest("builtin").await.unwrap().unwrap();
    let verdicts =
        [(Verdict::Pass, Verdict::Fail), (Verdict::Fail, Verdict::Pass), (Verdict::Pass, Verdict::Inconclusive)];
    let change = |number: usize| {
        let key = CaseKey::new(&format!("mpa/7.1-a-section-with-a-name/a-case-with-a-name-{number}"));
        let (before, after) = verdicts[number % verdicts.len()];
        VerdictChange { key, before, after }
    };
    let changes: Vec<_> = (0..30).map(change).collect();
    for (targets, listed) in [(1, 5), (64, 1)] {
        let newest = vec![latest.clone(); targets];
        let compared = |latest| ComparedTarget { latest, before: None, changes: changes.clone() };
        let compared: Vec<_> = newest.iter().map(compared).collect();
        let shown =
            HomePage { now_ms: 0, newest: &newest, left_out: 0, compared: &compared, active: &[], configured: &[] };
        let page = crate::view::home(&shown).unwrap();
        assert!(page.len() < 200_000, "{targets}: {} bytes", page.len());
        let more = format!("and {} more", 10 - listed);
        assert_eq!(page.matches(&more).count(), 3 * targets, "{targets}: {page}");
    }
}

#[tokio::test]
async fn shows_runs_in_progress_and_next_steps() {
    let folder = tempfile::tempdir().unwrap();
    let (site, bad, _) = lab(folder.path()).await;
    let page = site.text("/").await;
    assert!(page.contains("Next step: record a run with <code>weft test</code>"), "{page}");
    assert!(section(&page, "running").contains("No run is active."), "{page}");
    let keys: Vec<CaseKey> = bad.results.iter().map(|result| result.key.clone()).collect();
    site.store.begin(&bad.run, &bad.cases, &keys).await.unwrap();
    site.store.set_status(&bad.run.id, RunStatus::Running).await.unwrap();
    site.store.finish_case(&bad.run.id, &bad.results[0]).await.unwrap();
    let page = site.text("/").await;
    let running = section(&page, "running");
    assert!(running.contains(&format!("href=\"/runs/{}\"", bad.run.id)) && running.contains(">running</a>"), "{page}");
    assert!(running.contains(&format!("1 of {} cases", bad.results.len())), "{running}");
    assert!(!page.contains("no run in this store"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let startable = super::runs::startable(folder.path()).await;
    let page = startable.text("/").await;
    assert!(page.contains("<a href=\"/targets\">choose a target and start a run</a>"), "{page}");
}

/// In weft 0.1, the list of runs was at the address of the home page.
#[tokio::test]
async fn old_addresses_of_lists_lead_to_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let answer = site.get("/?before=&target=a%26b").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert_eq!(answer.headers()[header::LOCATION], "/runs?before=&target=a%26b");
    assert_eq!(site.get("/?other=1").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_list_of_targets_has_verdicts_ages_and_trends() {
    let folder = tempfile::tempdir().unwrap();
    let (site, bad, good) = lab(folder.path()).await;
    assert!(site.text("/targets").await.contains("Next step: describe a target with <code>weft target add"));
    days_ago(&site, &good, "nic", 4).await;
    assert!(!site.text("/targets").await.contains("<svg"), "one run is no trend");
    let run = days_ago(&site, &bad, "nic", 3).await;
    let page = site.text("/targets").await;
    let (_, line) = page.split_once("href=\"/targets/nic\"").unwrap();
    assert!(line.contains("<strong class=\"verdict fail\">fails</strong>"), "{line}");
    assert!(line.contains(&format!("href=\"/runs/{run}\"")) && line.contains(">3 days ago</a>"), "{line}");
    let counts = &bad.summary.counts;
    let rate = 100.0 * counts.pass as f64 / (counts.pass + counts.fail) as f64;
    let name = format!("Pass rate of the last 2 runs: from 100 % to {rate:.1} %");
    assert!(line.contains("<svg class=\"spark\"") && line.contains(&name), "{line}");
    assert_eq!(line.matches("<td>2</td>").count() + line.matches("<td class=\"number\">2</td>").count(), 1, "{line}");
}

#[tokio::test]
async fn a_target_has_charts_over_its_firmware_versions() {
    let folder = tempfile::tempdir().unwrap();
    let (site, bad, good) = lab(folder.path()).await;
    let old = labelled(&site, &bad, "nic", 4, Some("fw 1")).await;
    assert!(!site.text("/targets/nic").await.contains("<svg class=\"trend\""), "one run is no trend");
    labelled(&site, &bad, "nic", 3, Some("fw 1")).await;
    labelled(&site, &good, "nic", 2, Some("<fw 2>")).await;
    let page = site.text("/targets/nic").await;
    assert_eq!(page.matches("<svg class=\"trend\"").count(), 2, "{page}");
    for text in
        [">Pass rate, %</text>", ">Duration, s</text>", ">fw 1</text>", ">&#60;fw 2&#62;</text>", ">firmware</text>"]
    {
        assert!(page.contains(text), "{text} in {page}");
    }
    assert!(page.contains(&format!("<a href=\"/runs/{old}\" tabindex=\"-1\"><title>")), "{page}");
    assert!(page.contains("<strong>firmware</strong>") && page.contains("href=\"/targets/nic?axis=\""), "{page}");
    let by_start = site.text("/targets/nic?axis=").await;
    assert!(by_start.contains("<strong>start of the run</strong>") && !by_start.contains(">fw 1</text>"), "{by_start}");
}
