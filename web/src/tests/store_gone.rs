//! Tests of pages and the health check while the results store is locked or gone.

use std::str::FromStr;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Executor};
use tokio::time::Instant;

use super::captures::capture_path;
use super::*;

/// Pages and resources that need the store.
pub(super) const OF_STORE: [&str; 8] =
    ["/", "/runs", "/runs/x", "/runs/x/export.zip", "/metrics", "/captures/x~0", "/api/runs", "/api/captures/x~0"];

/// Checks that each of `paths` answers 503 within the promised time. The clock is paused and
/// advances only while the test waits.
pub(super) async fn answers_soon(site: &Site, paths: &[&str]) {
    tokio::time::pause();
    for path in paths {
        let begun = Instant::now();
        let answer = site.get(path).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(answer.headers()[header::RETRY_AFTER], "2", "{path}");
        assert!(begun.elapsed() <= Duration::from_secs(2), "{path}: {:?}", begun.elapsed());
        let is_json = answer.headers()[header::CONTENT_TYPE] == "application/json";
        assert_eq!(is_json, path.starts_with("/api/"), "{path}");
    }
    let begun = Instant::now();
    assert_eq!(site.get("/healthz").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(begun.elapsed() <= Duration::from_secs(1), "{:?}", begun.elapsed());
    tokio::time::resume();
}

#[tokio::test]
async fn a_locked_store_is_reported_soon_and_used_again_later() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("capture_folder")).unwrap();
    std::fs::copy(capture_path("siw/rping-crc.pcap"), folder.path().join("capture_folder/a.pcap")).unwrap();
    // In this locking mode there is no write-ahead log, so a writer locks out readers.
    let url = format!("{}?mode=rwc&vfs=unix-dotfile", Store::url(&folder.path().join(FILE_NAME)).unwrap());
    let captures = CaptureOptions { folder: Some(folder.path().join("capture_folder")), ..CaptureOptions::default() };
    let site = site_on(&url, folder.path(), Access::default(), None, captures, Exports::default()).await;
    site.text("/").await;
    let mut other = SqliteConnectOptions::from_str(&url).unwrap().connect().await.unwrap();
    other.execute("BEGIN EXCLUSIVE").await.unwrap();
    answers_soon(&site, &OF_STORE).await;
    // Pages that need no store still work.
    for path in ["/captures", "/assets/style.css", "/login"] {
        site.text(path).await;
    }
    other.execute("ROLLBACK").await.unwrap();
    for path in ["/", "/healthz"] {
        let is_back = async {
            while site.get(path).await.status() != StatusCode::OK {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, is_back).await.expect(path);
    }
}
