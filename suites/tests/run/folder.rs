//! Tests several runs that write into the same folder, one after the other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{deviating, key_case};
use weft_suites::folder::of_run;
use weft_suites::report;
use weft_suites::targets::Target;

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_later_run_keeps_all_files_of_an_earlier_one() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    let first = key_case(Target::builtin(), out).await;
    report::write_all(&first, out).unwrap();
    let before = names(out);
    let second = key_case(deviating(), out).await;

    // All runs share the results store. No other file of the first run remains at the top.
    let (top, moved) = (names(out), names(&out.join("earlier").join(&first.run.id)));
    assert_eq!(before.difference(&moved).collect::<Vec<_>>(), ["results.sqlite"]);
    assert_eq!(top.into_iter().collect::<Vec<_>>(), ["cases", "earlier", "results.sqlite", "run.json"]);
    for report in [&first, &second] {
        for result in &report.results {
            for file in &result.evidence.files {
                let octets = fs::read(out.join(of_run(out, &report.run.id)).join(&file.path)).unwrap();
                // The transcript equals the result, and the capture contains the id of its run.
                let own = match file.path.ends_with(".json") {
                    true => serde_json::from_slice::<weft_suites::model::CaseResult>(&octets).unwrap() == *result,
                    false => String::from_utf8_lossy(&octets).contains(&report.run.id),
                };
                assert!(own, "{} of {}", file.path, report.run.id);
            }
        }
    }
}
