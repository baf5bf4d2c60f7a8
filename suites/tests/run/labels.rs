//! Tests labels of runs: reports show them, and the store finds runs by them.

use crate::common::key_case;
use weft_suites::model::{Event, EventSink as _};
use weft_suites::report;
use weft_suites::store::{FILE_NAME, RunsPage, Store};
use weft_suites::targets::Target;

fn labels(labels: &[(&str, &str)]) -> Vec<(String, String)> {
    labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn reports_show_the_labels_of_a_run() {
    let out = tempfile::tempdir().unwrap();
    let file = "name = \"b\"\nkind = \"builtin\"\n[labels]\nlab = \"3\"\nfirmware = \"2.0\"\n";
    let target = Target::from_toml("b.toml", file).unwrap();
    let report = key_case(target.with_labels(labels(&[("firmware", "2.1 \"b\"")])), out.path()).await;
    // The command line replaces the value of the target file.
    let own: Vec<(String, String)> = report.run.labels.clone().into_iter().collect();
    assert_eq!(own, labels(&[("firmware", "2.1 \"b\""), ("lab", "3")]));
    let json = report::json(&report).unwrap();
    assert!(json.contains("\"lab\": \"3\""), "{json}");
    let junit = report::junit(&report).unwrap();
    assert!(junit.contains("<property name=\"label.lab\" value=\"3\"/>"), "{junit}");
    crate::reports::is_valid(&junit);
    assert!(report::markdown(&report).unwrap().contains("\nLabels: firmware=2.1 \"b\", lab=3.\n"));
    let html = report::html(&report, out.path()).unwrap();
    assert!(html.contains("<dt>labels</dt><dd>firmware=2.1 &#34;b&#34;, lab=3</dd>"));
    report::allure(&report, out.path(), &out.path().join("allure")).unwrap();
    let environment = std::fs::read_to_string(out.path().join("allure/environment.properties")).unwrap();
    assert!(environment.contains("lab = 3\n"), "{environment}");
    let mut printed = Vec::new();
    let terminal = report::Terminal::new(&mut printed, false);
    terminal.event(&Event::RunStarted { run: report.run.clone(), cases: Vec::new(), planned: Vec::new() });
    terminal.event(&Event::TargetWaiting { what: "start rping".into(), seconds: 1 });
    drop(terminal);
    let printed = String::from_utf8(printed).unwrap();
    assert!(printed.contains("\nlabels: firmware=2.1 \"b\", lab=3\nwaiting"), "{printed}");
}

#[tokio::test]
async fn the_store_finds_runs_by_a_label() {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::builtin(), out.path()).await;
    let store = Store::open(&out.path().join(FILE_NAME)).await.unwrap();
    for number in 0..9 {
        let mut run = report.run.clone();
        run.id = format!("r{number}");
        // Only the last run has the label. The others have the same text as a fact about the
        // target.
        if number == 0 {
            run.labels.insert("firmware".into(), "2.1".into());
        } else {
            run.target.identity.insert("firmware".into(), "2.1".into());
        }
        store.begin(&run, &[], &[]).await.unwrap();
    }
    let found = async |label, limit| {
        let page = RunsPage { label: Some(label), limit, ..RunsPage::default() };
        let runs = store.runs_of(page).await.unwrap();
        runs.into_iter().map(|record| record.info.id).collect::<Vec<_>>()
    };
    for limit in [1, 2, 3, 50] {
        assert_eq!(found(("firmware", "2.1"), limit).await, ["r0"], "{limit}");
        assert!(found(("firmware", "2"), limit).await.is_empty() && found(("lab", "2.1"), limit).await.is_empty());
    }
}
