//! Tests of the dashboard through its router. Only a few tests need a socket.

mod access;
mod api;
mod captures;
mod crowd;
mod events;
mod export;
mod home;
mod logs;
mod pages;
mod retention;
mod runs;
mod schedule;
mod sites;
mod store_gone;
mod store_server;
mod streams;
mod uploads;
mod webhook;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_stream::StreamExt;
use tower::ServiceExt;
use weft_suites::model::{CaseKey, Event, EventSink, RunInfo, RunReport, RunStatus, Verdict};
use weft_suites::script::Suites;
use weft_suites::store::{FILE_NAME, Store};
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions};

use self::events::{Events, recorded_run};
use crate::access::{Access, AccessControl, STREAMS, Slots};
use crate::app::App;
use crate::captures::{CaptureOptions, Captures};
use crate::clock::Clock;
use crate::exports::Exports;
use crate::starter::Starter;
use crate::store_watch::StoreWatch;
use crate::webhook::RunEnds;
use crate::{Live, Retention, RunSchedule, Start, WebError, WebOptions, routes, serve};

/// Ends a test that would wait forever.
const LONG: Duration = Duration::from_secs(60);

/// A run against the builtin target that accepts wrong keys.
async fn failing_run_to(out: &Path, sink: Arc<dyn EventSink>) -> RunReport {
    let options = RunOptions {
        target: Target::builtin().with_deviations(["mpa.accepts-wrong-key"]).unwrap(),
        suites: Suites::embedded().unwrap(),
        filter: Filter::of(["mpa/7.1.1-key"]),
        out: out.to_owned(),
        seed: Some(1),
        cancel: None,
    };
    weft_suites::run(options, sink).await.unwrap()
}

async fn failing_run(out: &Path) -> RunReport {
    failing_run_to(out, Arc::new(|_: &Event| {})).await
}

struct Site {
    store: Store,
    live: Live,
    starter: Starter,
    router: Router,
    stop: watch::Sender<bool>,
}

async fn site(folder: &Path) -> Site {
    site_for(folder, Access::default(), None).await
}

async fn site_for(folder: &Path, access: Access, start: Option<Start>) -> Site {
    site_with(folder, access, start, CaptureOptions::default()).await
}

async fn site_with(folder: &Path, access: Access, start: Option<Start>, captures: CaptureOptions) -> Site {
    site_on(&Store::url(&folder.join(FILE_NAME)).unwrap(), folder, access, start, captures, Exports::default()).await
}

async fn site_exporting(folder: &Path, exports: Exports) -> Site {
    let url = Store::url(&folder.join(FILE_NAME)).unwrap();
    site_on(&url, folder, Access::default(), None, CaptureOptions::default(), exports).await
}

async fn site_on(
    url: &str,
    folder: &Path,
    access: Access,
    start: Option<Start>,
    captures: CaptureOptions,
    exports: Exports,
) -> Site {
    let (app, stop) = app_on(url, folder, access, start, captures, exports).await;
    site_of(app, stop)
}

/// Returns the state of a server, and the sender that stops it.
async fn app_on(
    url: &str,
    folder: &Path,
    access: Access,
    start: Option<Start>,
    captures: CaptureOptions,
    exports: Exports,
) -> (App, watch::Sender<bool>) {
    let store = Store::connect(url).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let access = Arc::new(AccessControl::new(access).unwrap());
    let live = Live::default();
    let starter = Starter::new(start, folder, url, &live, &RunEnds::default()).unwrap();
    let app = App {
        watch: StoreWatch::new(store.clone()),
        store,
        folder: folder.to_owned(),
        live,
        starter,
        schedule: RunSchedule::default(),
        clock: Clock::default(),
        access,
        captures: Captures::new(captures, stopped.clone()),
        exports,
        streams: Slots::new(STREAMS),
        readers: Arc::new(Semaphore::new(routes::READERS)),
        stopped,
    };
    (app, stop)
}

fn site_of(app: App, stop: watch::Sender<bool>) -> Site {
    let (store, live, starter) = (app.store.clone(), app.live.clone(), app.starter.clone());
    Site { store, live, starter, router: routes::router(app), stop }
}

impl Site {
    async fn get(&self, path: &str) -> Response<Body> {
        let request = Request::get(path).header(header::HOST, "localhost:1").body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn text(&self, path: &str) -> String {
        let response = self.get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        String::from_utf8(octets(response).await).unwrap()
    }
}

async fn octets(response: Response<Body>) -> Vec<u8> {
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

/// The address of a case's page. Its path needs no escape except for `=`.
fn case_page(run: &str, key: &CaseKey) -> String {
    format!("/runs/{run}/cases/{}", key.path().replace('=', "%3D"))
}

#[tokio::test]
async fn links_lead_from_the_list_to_the_pcapng_of_a_failed_case() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let (id, failed) = (&report.run.id, report.results.iter().find(|result| result.verdict == Verdict::Fail).unwrap());

    let list = site.text("/runs").await;
    assert!(list.contains(&format!("href=\"/runs/{id}\"")) && list.contains("mpa.accepts-wrong-key"), "{list}");

    let run = site.text(&format!("/runs/{id}")).await;
    let page = case_page(id, &failed.key);
    assert!(run.contains(&format!("href=\"{page}\"")), "{run}");
    assert!(run.contains("<code>MPA-7.1.1-2</code>") && run.contains("exit code 1"), "{run}");
    // The page has the same reasons as the summary in a terminal.
    let why = report.summary.reasons.join("; ");
    assert!(why.starts_with("the target fails 16 cases") && run.contains(&format!("<dd>{why}</dd>")), "{run}");
    // A run with failures has no green bar.
    assert!(run.contains("<progress id=\"bar\" class=\"fail\""), "{run}");
    // The verdict and the cause of the failures are at the top.
    let (head, causes) = run.split_once("<h2 id=\"fail\">Failures by cause</h2>").unwrap();
    let line = "<p class=\"line fail\">The target fails 16 of 16 cases and violates 1 requirement.</p>";
    assert!(head.contains(line) && head.contains("aria-label=\"MUST: 0 met, 1 violated, 0 undecided\""), "{head}");
    let causes = causes.split("</section>").next().unwrap();
    assert!(causes.contains("<strong>16 cases</strong> <code>MPA-7.1.1-2</code> MUST: "), "{causes}");
    assert!(causes.contains(&format!("href=\"{page}\"")) && causes.contains("and 13 more"), "{causes}");
    assert_eq!(causes.matches("<li>").count(), 1, "{causes}");
    // The cases are folded.
    assert!(run.contains("<details class=\"part\"><summary>Cases that did not pass (1)</summary>"), "{run}");
    // The run is over: no script, no event stream.
    assert!(!run.contains("data-events") && !run.contains("/assets/run.js"), "{run}");

    let case = site.text(&page).await;
    assert!(case.contains("Responder checks the received key") && case.contains("<svg class=\"ladder\""), "{case}");
    assert!(case.contains("class=\"stimulus\"") && case.contains("rel=\"next\""), "{case}");
    for words in [failed.expected.as_ref().unwrap(), failed.actual.as_ref().unwrap()] {
        let escaped = words.replace('&', "&#38;").replace('"', "&#34;").replace('\'', "&#39;").replace('<', "&#60;");
        assert!(case.contains(&escaped), "{escaped} in {case}");
    }

    for (kind, begin) in [("pcapng", &b"\x0a\x0d\x0d\x0a"[..]), ("transcript", b"{")] {
        let path = page.replace("/cases/", &format!("/evidence/{kind}/"));
        assert!(case.contains(&format!("href=\"{path}\"")), "{path}");
        let response = site.get(&path).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.headers()[header::CONTENT_DISPOSITION].to_str().unwrap().starts_with("attachment"));
        assert!(octets(response).await.starts_with(begin), "{kind}");
    }
}

#[tokio::test]
async fn every_answer_has_the_headers_and_no_page_has_inline_code() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let id = &report.run.id;
    let case = case_page(id, &report.results[0].key);
    let pages = [
        "/".to_owned(),
        "/runs".into(),
        "/targets".into(),
        "/targets/builtin".into(),
        "/matrix".into(),
        format!("/runs/{id}"),
        case.clone(),
        "/none".into(),
        "/runs/none".into(),
    ];
    let others = ["/healthz".into(), "/assets/style.css".into(), case.replace("/cases/", "/evidence/pcapng/")];
    for path in pages.iter().chain(&others) {
        let response = site.get(path).await;
        let headers = response.headers();
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
        assert_eq!(headers[header::REFERRER_POLICY], "same-origin", "{path}");
        assert!(headers.contains_key(header::CACHE_CONTROL), "{path}");
        if pages.contains(path) {
            let html = String::from_utf8(octets(response).await).unwrap();
            for inline in
                [" style=", "<style", "<script>", "javascript:", " onclick=", " onload=", "http://", "https://"]
            {
                // The namespace of SVG is a name, not a link.
                let html = html.replace("http://www.w3.org/2000/svg", "");
                assert!(!html.contains(inline), "{path} has {inline}");
            }
        }
    }
}

#[tokio::test]
async fn escapes_hostile_text() {
    const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> style=\"x\"";
    let folder = tempfile::tempdir().unwrap();
    let mut report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    report.run.id = "20990101T000000.000Z-<b>\"".into();
    report.run.target.name = HOSTILE.into();
    report.run.target.reached_by = HOSTILE.into();
    report.run.target.deviations = vec![HOSTILE.into()];
    let mut result = report.results.swap_remove(0);
    result.key = CaseKey::new("a\"b/<script>/../c");
    for text in [&mut result.expected, &mut result.actual] {
        *text = Some(HOSTILE.into());
    }
    result.explanation = HOSTILE.into();
    for step in &mut result.steps {
        step.text = HOSTILE.into();
        for mark in step.octets.iter_mut().flat_map(|octets| &mut octets.marks) {
            mark.label = HOSTILE.into();
        }
    }
    let mut case = report.cases.swap_remove(0);
    (case.id, case.title) = (result.key.case.clone(), HOSTILE.into());
    site.store.begin(&report.run, &[case], std::slice::from_ref(&result.key)).await.unwrap();
    site.store.finish_case(&report.run.id, &result).await.unwrap();

    let list = site.text("/runs").await;
    let run_page = list.split("href=\"").find(|part| part.starts_with("/runs/20990101")).unwrap();
    let run_page = run_page.split('"').next().unwrap().to_owned();
    let run = site.text(&run_page).await;
    let case_page = run.split("href=\"").find(|part| part.contains("/cases/")).unwrap().split('"').next().unwrap();
    let case = site.text(case_page).await;
    let (home, targets, matrix) = (site.text("/").await, site.text("/targets").await, site.text("/matrix").await);
    for html in [&list, &run, &case, &home, &targets, &matrix] {
        assert!(html.contains("alert(1)"), "the text is shown: {html}");
        for markup in ["<script>alert", "<img", "<b>", "style=\"x"] {
            assert!(!html.contains(markup), "{markup} in {html}");
        }
    }
}

#[tokio::test]
async fn serves_no_file_outside_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = folder.path().join("run");
    std::fs::create_dir(&run_folder).unwrap();
    std::fs::write(folder.path().join("secret"), "what nobody may read").unwrap();
    let report = failing_run(&run_folder).await;
    let site = site(&run_folder).await;
    let id = &report.run.id;
    for path in [
        "..%2F..%2Fsecret",
        "../../secret",
        "%2e%2e/%2e%2e/secret",
        "..%5C..%5Csecret",
        "%2Fetc%2Fpasswd",
        "/etc/passwd",
        "mpa/7.1.1-key/wrong-octet/octet%3D3/../../../../../../secret",
        "results.sqlite",
        "%00",
        "%FF",
    ] {
        for address in [format!("/runs/{id}/evidence/pcapng/{path}"), format!("/runs/{id}/cases/{path}")] {
            let status = site.get(&address).await.status();
            assert!(status.is_client_error(), "{address}: {status}");
        }
        for address in [format!("/assets/{path}"), format!("/runs/{path}"), format!("/runs/{id}/evidence/{path}/x")] {
            let status = site.get(&address).await.status();
            assert!(status.is_client_error(), "{address}: {status}");
        }
    }

    // A manipulated store gives access to no other file.
    for (number, stored) in
        ["../../../secret", "/etc/passwd", "cases/../../../../secret", "run.json", "results.sqlite"].iter().enumerate()
    {
        let (mut run, mut result) = (report.run.clone(), report.results[0].clone());
        run.id = format!("29990101-{number}");
        let earlier = run_folder.join("earlier").join(&run.id);
        std::fs::create_dir_all(earlier.join("cases")).unwrap();
        for name in ["run.json", "results.sqlite"] {
            std::fs::write(earlier.join(name), "what nobody may read").unwrap();
        }
        for file in &mut result.evidence.files {
            file.path = (*stored).to_owned();
        }
        site.store.begin(&run, &report.cases, std::slice::from_ref(&result.key)).await.unwrap();
        site.store.finish_case(&run.id, &result).await.unwrap();
        let address = case_page(&run.id, &result.key).replace("/cases/", "/evidence/pcapng/");
        let response = site.get(&address).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{stored}");
        assert!(!String::from_utf8(octets(response).await).unwrap().contains("nobody may read"), "{stored}");
    }
}

#[tokio::test]
async fn each_run_of_a_folder_shows_its_own_files_while_they_exist() {
    const NO_FILES: &str = "This dashboard has no files of this run in its folder.";
    let folder = tempfile::tempdir().unwrap();
    let first = failing_run(folder.path()).await;
    let second = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let key = &first.results[0].key;
    for id in [&first.run.id, &second.run.id] {
        let page = case_page(id, key);
        let response = site.get(&page.replace("/cases/", "/evidence/pcapng/")).await;
        assert_eq!(response.status(), StatusCode::OK);
        // The comment of the section names the run.
        assert!(String::from_utf8_lossy(&octets(response).await).contains(&format!("run {id}")));
        assert!(!site.text(&page).await.contains(NO_FILES));
    }
    std::fs::remove_dir_all(folder.path().join("earlier")).unwrap();
    let page = case_page(&first.run.id, key);
    assert_eq!(site.get(&page.replace("/cases/", "/evidence/pcapng/")).await.status(), StatusCode::NOT_FOUND);
    assert!(site.text(&page).await.contains(NO_FILES));
    // A run of another host with the same store: its files were never in this folder.
    let (mut run, result) = (first.run.clone(), &first.results[0]);
    run.id = "29990101".into();
    site.store.begin(&run, &first.cases, std::slice::from_ref(key)).await.unwrap();
    site.store.finish_case(&run.id, result).await.unwrap();
    let page = site.text(&case_page(&run.id, key)).await;
    assert!(
        page.contains(NO_FILES) && page.contains("recorded into another folder, or the files of the run were removed"),
        "{page}"
    );
}

#[tokio::test]
async fn rejects_other_names_and_methods() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let send = |request: Request<Body>| site.router.clone().oneshot(request);
    let foreign = Request::get("/").header(header::HOST, "rebound.example:80").body(Body::empty()).unwrap();
    assert_eq!(send(foreign).await.unwrap().status(), StatusCode::MISDIRECTED_REQUEST);
    // A request for a page needs the key of a form if the method is not GET or HEAD. This is also
    // true if the page has no form.
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let request = Request::builder().method(method).uri("/").header(header::HOST, "localhost");
        let status = send(request.body(Body::empty()).unwrap()).await.unwrap().status();
        assert_eq!(status, StatusCode::FORBIDDEN, "{method}");
    }
}

#[tokio::test]
async fn serves_an_empty_store_health_and_assets() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    assert!(site.text("/").await.contains("no run in this store yet"));
    assert_eq!(site.text("/healthz").await, "{\"status\":\"ok\"}\n");
    for (name, mime) in [
        ("style.css", "text/css"),
        ("tokens.css", "text/css"),
        ("run.js", "text/javascript"),
        ("home.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let response = site.get(&format!("/assets/{name}")).await;
        assert!(response.headers()[header::CONTENT_TYPE].to_str().unwrap().starts_with(mime), "{name}");
        let tag = response.headers()[header::ETAG].clone();
        let again = Request::get(format!("/assets/{name}")).header(header::HOST, "[::1]:1");
        let again = again.header(header::IF_NONE_MATCH, tag).body(Body::empty()).unwrap();
        let again = site.router.clone().oneshot(again).await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{name}");
    }
    site.store.close().await;
    assert_eq!(site.get("/healthz").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(site.get("/").await.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn without_tokens_listens_on_loopback_only() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let store = folder.path().join("none.sqlite");
        let listen = address.parse().unwrap();
        let options = WebOptions {
            listen,
            store: Store::url(&store).unwrap(),
            folder: folder.path().to_owned(),
            access: Access::default(),
            live: Live::default(),
            start: None,
            captures: CaptureOptions::default(),
            retention: Retention::default(),
            schedule: RunSchedule::default(),
            webhook: None,
        };
        let error = serve(options, |_| panic!("nothing is bound"), async {}).await.unwrap_err();
        assert!(matches!(error, WebError::NotLoopback(_)) && error.to_string().contains("token"), "{error}");
        assert!(!store.exists(), "nothing is created");
    }
}

#[tokio::test]
async fn serves_a_page_and_stops_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let options = WebOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        store: Store::url(&folder.path().join(FILE_NAME)).unwrap(),
        folder: folder.path().to_owned(),
        access: Access::default(),
        live: Live::default(),
        start: None,
        captures: CaptureOptions::default(),
        retention: Retention::default(),
        schedule: RunSchedule::default(),
        webhook: None,
    };
    let (ready, bound) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(options, move |address| ready.send(address).unwrap(), async move {
        let _ = stopped.await;
    }));
    let address = bound.await.unwrap();
    let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("<h1>Overview</h1>"), "{answer}");
    stop.send(()).unwrap();
    tokio::time::timeout(LONG, server).await.expect("the server ends").unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the port is free again");
}
