//! Tests of the export of a run, also with clients that do not read the response.

use std::io::{Cursor, Read};

use sha2::{Digest, Sha256};
use tokio::time::timeout;
use zip::ZipArchive;

use super::*;

#[tokio::test]
async fn exports_a_run_with_hashes_of_all_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "what nobody may read").unwrap();
    let run_folder = folder.path().join("run");
    let report = failing_run(&run_folder).await;
    let site = site(&run_folder).await;
    // With a manipulated store, the zip has no other file.
    let mut result = report.results[0].clone();
    result.evidence.files[0].path = "../secret".into();
    site.store.finish_case(&report.run.id, &result).await.unwrap();
    let answer = site.get(&format!("/runs/{}/export.zip", report.run.id)).await;
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/zip");
    let mut zip = ZipArchive::new(Cursor::new(octets(answer).await)).unwrap();
    let mut read = |name: &str| {
        let mut octets = Vec::new();
        zip.by_name(name).unwrap().read_to_end(&mut octets).unwrap();
        octets
    };
    let sums = String::from_utf8(read("SHA256SUMS")).unwrap();
    let mut files = 0;
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let octets = read(name);
        let known: String = Sha256::digest(&octets).iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(known, sum, "{name}");
        assert!(!String::from_utf8_lossy(&octets).contains("nobody may read"), "{name}");
        if name.starts_with("cases/") {
            assert_eq!(std::fs::read(run_folder.join(name)).unwrap(), octets, "{name}");
        }
        files += 1;
    }
    assert_eq!(files + 1, zip.len());
    let evidence: usize = report.results.iter().map(|result| result.evidence.files.len()).sum();
    assert_eq!(files, 2 + evidence - 1, "report.html, report.json, and all evidence except a file outside the folder");
    assert_eq!(site.get("/runs/none/export.zip").await.status(), StatusCode::NOT_FOUND);
}

/// Returns the address of the zip of a run. The zip is longer than all queues together.
async fn long_run(folder: &Path) -> String {
    let report = failing_run(folder).await;
    let file = report.results.iter().flat_map(|result| &result.evidence.files).next().unwrap();
    // These bytes are not compressible.
    let octets: Vec<u8> = (0..1u32 << 16).flat_map(|number| Sha256::digest(number.to_be_bytes())).collect();
    std::fs::write(folder.join(&file.path), octets).unwrap();
    format!("/runs/{}/export.zip", report.run.id)
}

/// Limits with one permit.
fn exports(wait: Duration, piece_timeout: Duration) -> Exports {
    Exports { permits: Arc::new(Semaphore::new(1)), wait, piece_timeout }
}

const SHORT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn a_client_that_reads_nothing_loses_its_permit() {
    let folder = tempfile::tempdir().unwrap();
    let address = long_run(folder.path()).await;
    let exports = exports(LONG, SHORT);
    // Only the server of `idle` has a short time limit, because this test sometimes reads slowly.
    let other = site_exporting(folder.path(), Exports { piece_timeout: LONG, ..exports.clone() }).await;
    let idle = site_exporting(folder.path(), exports).await.get(&address).await;
    assert_eq!(idle.status(), StatusCode::OK);
    let answer = other.get(&address).await;
    assert_eq!(answer.status(), StatusCode::OK, "the permit is free again");
    assert!(ZipArchive::new(Cursor::new(octets(answer).await)).unwrap().len() > 3);
    let left = timeout(LONG, idle.into_body().collect()).await.expect("it ends");
    let came = left.map(|came| came.to_bytes().len());
    assert!(came.is_err(), "{came:?}: the client must notice that the zip is incomplete");
}

#[tokio::test]
async fn without_a_free_permit_the_answer_is_503() {
    let folder = tempfile::tempdir().unwrap();
    let address = long_run(folder.path()).await;
    let site = site_exporting(folder.path(), exports(SHORT, LONG)).await;
    let idle = site.get(&address).await;
    let refused = site.get(&address).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
    drop(idle);
    // If a client disconnects, its permit is free as soon as the server notices.
    let again = async {
        loop {
            let answer = site.get(&address).await;
            if answer.status() == StatusCode::OK {
                return answer;
            }
        }
    };
    let answer = timeout(LONG, again).await.expect("the permit is free again");
    assert!(ZipArchive::new(Cursor::new(octets(answer).await)).is_ok());
}
