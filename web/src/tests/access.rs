//! Tests of access control and of limits for clients.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::http::HeaderMap;
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::access::{Peer, Tokens};
use crate::connections::{self, Limits};

pub(super) const VIEWER: &str = "viewer-token-0123456789";
pub(super) const OPERATOR: &str = "operator-token-0123456789";

pub(super) async fn guarded(folder: &Path) -> Site {
    let tokens = Tokens::parse(&format!("viewer {VIEWER}\noperator {OPERATOR}")).unwrap();
    site_for(folder, Access { tokens, names: vec!["lab.example".into()] }, None).await
}

/// Makes a request of a client with the address `from`. `headers` have the form `name: value`.
pub(super) async fn ask(site: &Site, line: &str, headers: &[&str], form: &str, from: &str) -> Response<Body> {
    let (method, uri) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(uri).header(header::HOST, "lab.example:7171");
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    if method == "POST" {
        request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    let mut request = request.body(Body::from(form.to_owned())).unwrap();
    request.extensions_mut().insert(Peer(from.parse::<IpAddr>().unwrap()));
    site.router.clone().oneshot(request).await.unwrap()
}

async fn status(site: &Site, line: &str, headers: &[&str], form: &str) -> u16 {
    ask(site, line, headers, form, "192.0.2.9").await.status().as_u16()
}

/// Signs in. Returns the `Cookie` header, and the form key of the session.
pub(super) async fn signed_in(site: &Site, token: &str) -> (String, String) {
    let answer = ask(site, "POST /login", &[], &format!("token={token}&next=/runs/x"), "192.0.2.1").await;
    assert_eq!(
        (answer.status(), &answer.headers()[header::LOCATION]),
        (StatusCode::SEE_OTHER, &"/runs/x".parse().unwrap())
    );
    let cookie = answer.headers()[header::SET_COOKIE].to_str().unwrap();
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    let page = ask(site, "GET /login", &[&cookie], "", "192.0.2.1").await;
    let page = String::from_utf8(octets(page).await).unwrap();
    let key = page.split("name=\"key\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    (cookie, key)
}

#[tokio::test]
async fn without_a_token_shows_nothing_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = guarded(folder.path()).await;
    let run = format!("/runs/{}", report.run.id);
    let case = case_page(&report.run.id, &report.results[0].key);
    for path in [
        "/".into(),
        run.clone(),
        format!("{run}/events"),
        case.clone(),
        case.replace("/cases/", "/evidence/pcapng/"),
        "/none".into(),
    ] {
        let answer = ask(&site, &format!("GET {path}"), &[], "", "192.0.2.9").await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert!(answer.headers().contains_key(header::WWW_AUTHENTICATE), "{path}");
        assert!(!String::from_utf8(octets(answer).await).unwrap().contains(&report.run.id), "{path}");
        // A browser is redirected to the page for signing in, and later back.
        let answer = ask(&site, &format!("GET {path}"), &["accept: text/html,*/*"], "", "192.0.2.9").await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{path}");
        assert!(answer.headers()[header::LOCATION].to_str().unwrap().starts_with("/login?next=%2F"), "{path}");
    }
    for cookie in ["cookie: weft-session=", "cookie: weft-session=00", "cookie: ;;=;", "authorization: Basic YTpi"] {
        assert_eq!(status(&site, "GET /", &[cookie], "").await, 401, "{cookie}");
    }
    for path in ["/healthz", "/login", "/assets/style.css"] {
        assert_eq!(status(&site, &format!("GET {path}"), &[], "").await, 200, "{path}");
    }
}

/// All addresses for reading, with existing and missing names.
pub(super) const READ: [&str; 35] = [
    "/",
    "/runs",
    "/compare",
    "/matrix",
    "/pairs",
    "/targets",
    "/targets/builtin",
    "/targets/builtin/baseline",
    "/runs/x",
    "/runs/x/sections",
    "/runs/x/export.zip",
    "/runs/x/events",
    "/runs/x/cases/a/b/c",
    "/runs/x/evidence/pcapng/a/b/c",
    "/captures",
    "/captures/x",
    "/captures/x/packets/1",
    "/captures/x/findings",
    "/captures/x/connections",
    "/captures/x/connections/0",
    "/captures/x/operations",
    "/captures/x/io",
    "/captures/x/statistics",
    "/captures/x/live",
    "/captures/x/events",
    "/captures/x/file",
    "/metrics",
    "/api/runs",
    "/api/targets",
    "/api/matrix",
    "/api/pairs",
    "/api/compare",
    "/api/captures",
    "/api/filter",
    "/api/openapi.json",
];
/// All requests that change something.
const CHANGED: [&str; 13] = [
    "POST /targets/builtin/start",
    "POST /targets/builtin/stop",
    "POST /runs/x/again",
    "POST /runs/x/delete",
    "POST /captures",
    "POST /captures/x/delete",
    "POST /logout",
    "POST /api/captures",
    "DELETE /api/captures/x",
    "POST /api/targets/builtin/runs",
    "POST /api/runs/x/again",
    "DELETE /api/runs/x",
    "DELETE /api/targets/builtin/jobs/0",
];

#[tokio::test]
async fn every_address_requires_a_token_and_viewers_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    let viewer = format!("authorization: Bearer {VIEWER}");
    for path in READ {
        assert_eq!(status(&site, &format!("GET {path}"), &[], "").await, 401, "{path}");
        let code = status(&site, &format!("GET {path}"), &[&viewer], "").await;
        assert!(code != 401 && code != 403 && code < 500, "{path}: {code}");
    }
    let (cookie, key) = signed_in(&site, OPERATOR).await;
    for line in CHANGED {
        assert_eq!(status(&site, line, &[], "").await, 401, "{line}");
        if line != "POST /logout" {
            assert_eq!(status(&site, line, &[&viewer], "").await, 403, "{line}");
        }
        let form = format!("key={key}");
        assert_eq!(status(&site, line, &[&cookie, "origin: http://evil.example"], &form).await, 403, "{line}");
    }
}

#[tokio::test]
async fn rejects_or_ignores_garbage_in_the_query() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    let viewer = format!("authorization: Bearer {VIEWER}");
    let long = format!("?target=x&filter={}", "%28".repeat(9000));
    let questions = [
        "?",
        "?&&==&",
        "?%ff=%fe",
        "?target=%00&before=%00&after=%00",
        "?limit=-1&from=-1&number=-1",
        "?from=1&from=2&target=a&target=b",
        "?limit=99999999999999999999&from=99999999999999999999",
        "?show=%3Cscript%3E&severity=x&number=x",
        "?text=%28%28%28",
        &long,
    ];
    for path in READ {
        for question in questions {
            let answer = ask(&site, &format!("GET {path}{question}"), &[&viewer], "", "192.0.2.9").await;
            let code = answer.status().as_u16();
            assert!(matches!(code, 200 | 303 | 400..=499), "{path}{question}: {code}");
            // Check only pages for the script. A message that is not a page can contain any text.
            let is_page = answer
                .headers()
                .get(header::CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
            let text = String::from_utf8_lossy(&octets(answer).await).into_owned();
            assert!(!is_page || !text.contains("<script>"), "{path}{question}: {text}");
        }
    }
}

#[tokio::test]
async fn a_browser_signs_in_and_out() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    let wrong = ask(&site, "POST /login", &[], "token=viewer-token-0123456780", "192.0.2.1").await;
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);
    assert!(!wrong.headers().contains_key(header::SET_COOKIE));

    let (cookie, key) = signed_in(&site, VIEWER).await;
    assert_eq!(status(&site, "GET /", &[&cookie], "").await, 200);
    assert_eq!(status(&site, "POST /logout", &[&cookie], "").await, 403, "the request has no form key");
    assert_eq!(status(&site, "POST /logout", &[&cookie], &format!("key={key}")).await, 303);
    assert_eq!(status(&site, "GET /", &[&cookie], "").await, 401, "the session is over");
}

#[tokio::test]
async fn the_cookie_is_for_this_site_only_and_for_tls_if_a_proxy_adds_it() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    let form = format!("token={OPERATOR}&next=//evil.example");
    for (headers, secure) in [(&[][..], false), (&["x-forwarded-proto: https"][..], true)] {
        let answer = ask(&site, "POST /login", headers, &form, "192.0.2.1").await;
        let cookie = answer.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(OPERATOR), "{cookie}");
        assert_eq!(cookie.ends_with("; Secure"), secure, "{cookie}");
        assert_eq!(answer.headers()[header::LOCATION], "/", "redirects only to this server");
    }
}

#[tokio::test]
async fn programs_send_their_token_with_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    let (viewer, operator) = (format!("authorization: Bearer {VIEWER}"), format!("authorization: Bearer {OPERATOR}"));
    assert_eq!(status(&site, "GET /", &[&viewer], "").await, 200);
    assert_eq!(status(&site, "GET /", &["authorization: Bearer x"], "").await, 401);
    // Viewers can only read. A POST request of an operator needs an address that accepts POST.
    assert_eq!(status(&site, "POST /", &[&viewer], "").await, 403);
    assert_eq!(status(&site, "POST /", &[&operator], "").await, 405);
}

#[tokio::test]
async fn the_api_rejects_with_json() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    for headers in [&["authorization: Bearer viewer-token-0123456780"][..], &[]] {
        let answer = ask(&site, "GET /api/runs", headers, "", "192.0.2.9").await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(answer.headers()[header::WWW_AUTHENTICATE], "Bearer realm=\"weft\"");
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/json");
        let problem: serde_json::Value = serde_json::from_slice(&octets(answer).await).unwrap();
        assert!(problem["error"].as_str().unwrap().contains("token"), "{problem}");
    }
    let viewer = format!("authorization: Bearer {VIEWER}");
    let answer = ask(&site, "POST /api/runs", &[&viewer], "", "192.0.2.9").await;
    assert_eq!(
        (answer.status(), &answer.headers()[header::CONTENT_TYPE]),
        (StatusCode::FORBIDDEN, &"application/json".parse().unwrap())
    );
}

#[tokio::test]
async fn rejects_forged_posts() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    let (cookie, key) = signed_in(&site, OPERATOR).await;
    let form = format!("key={key}");
    let (origin, ours) = ("origin: http://lab.example:7171", "sec-fetch-site: same-origin");
    // `/` accepts no POST: status 405 means that `authorize` admitted the form.
    assert_eq!(status(&site, "POST /", &[&cookie, origin, ours], &form).await, 405);
    for forged in
        ["origin: http://evil.example", "origin: null", "sec-fetch-site: cross-site", "sec-fetch-site: same-site"]
    {
        assert_eq!(status(&site, "POST /", &[&cookie, forged], &form).await, 403, "{forged}");
        let login = format!("token={VIEWER}");
        assert_eq!(status(&site, "POST /login", &[forged], &login).await, 403, "{forged}");
    }
    let (_, another) = signed_in(&site, OPERATOR).await;
    for form in ["", "key=", "key=0", "Key=x", &format!("key={another}"), &format!("key=x&key={key}"), "%ff=%f&&&=;"] {
        assert_eq!(status(&site, "POST /", &[&cookie, origin], form).await, 403, "{form}");
    }
}

#[tokio::test]
async fn guesses_have_to_wait_but_right_tokens_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    let wrong = "authorization: Bearer viewer-token-0123456780";
    for at in 0..10 {
        let answer = match at % 2 {
            0 => ask(&site, "GET /", &[wrong], "", "198.51.100.7").await,
            _ => ask(&site, "POST /login", &[], "token=x", "198.51.100.7").await,
        };
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }
    for answer in [
        ask(&site, "GET /", &[wrong], "", "198.51.100.7").await,
        ask(&site, "POST /login", &[], "token=x", "198.51.100.7").await,
    ] {
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        let seconds: u64 = answer.headers()[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    assert_eq!(ask(&site, "GET /", &[wrong], "", "198.51.100.8").await.status(), StatusCode::UNAUTHORIZED);
    // The server still accepts the right token, because all clients of a proxy have one address.
    let right = format!("authorization: Bearer {VIEWER}");
    assert_eq!(ask(&site, "GET /", &[&right], "", "198.51.100.7").await.status(), StatusCode::OK);
    let signs_in = ask(&site, "POST /login", &[], &format!("token={VIEWER}"), "198.51.100.7").await;
    assert_eq!(signs_in.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn the_case_of_the_scheme_does_not_matter_and_other_schemes_are_not_guesses() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    for scheme in ["bearer", "BEARER", "Bearer "] {
        let header = format!("authorization: {scheme} {VIEWER}");
        assert_eq!(status(&site, "GET /", &[&header], "").await, 200, "{header}");
    }
    // A proxy with a password forwards the header with the password, together with the cookie.
    let (cookie, _) = signed_in(&site, VIEWER).await;
    let basic = "authorization: Basic bGFiOnNlY3JldA==";
    for _ in 0..20 {
        assert_eq!(status(&site, "GET /", &[basic, &cookie], "").await, 200);
        assert_eq!(status(&site, "GET /", &[basic], "").await, 401);
    }
    let both = format!("authorization: Bearer {VIEWER}");
    assert_eq!(status(&site, "GET /", &[basic, &both], "").await, 200);
    let wrong = "authorization: bearer viewer-token-0123456780";
    assert_eq!(status(&site, "GET /", &[wrong], "").await, 401, "none of these counted as a guess");
}

#[tokio::test]
async fn sessions_of_viewers_end_no_session_of_an_operator() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    let (operator, _) = signed_in(&site, OPERATOR).await;
    for _ in 0..1000 {
        assert_eq!(status(&site, "POST /login", &[], &format!("token={VIEWER}")).await, 303);
    }
    assert_eq!(status(&site, "GET /", &[&operator], "").await, 200);
}

/// Event streams of a run that never ends.
async fn streams(site: &Site, run: &str, count: usize, headers: &[&str]) -> Vec<Response<Body>> {
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(ask(site, &format!("GET /runs/{run}/events"), headers, "", "192.0.2.9").await);
    }
    open
}

#[tokio::test]
async fn limits_event_streams_per_session_and_in_total() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = tempfile::tempdir().unwrap();
    let report = failing_run(recorded.path()).await;
    let site = guarded(folder.path()).await;
    site.store.begin(&report.run, &report.cases, &[report.results[0].key.clone()]).await.unwrap();
    let run = report.run.id.as_str();
    let refused = |open: &[Response<Body>]| {
        open.iter().filter(|answer| answer.status() == StatusCode::SERVICE_UNAVAILABLE).count()
    };
    let mut viewers = Vec::new();
    for number in 1..=12 {
        let (cookie, _) = signed_in(&site, VIEWER).await;
        let open = streams(&site, run, 33, &[&cookie]).await;
        assert_eq!(refused(&open), 1, "session {number}");
        viewers.extend(open);
    }
    let (last, _) = signed_in(&site, VIEWER).await;
    assert_eq!(refused(&streams(&site, run, 1, &[&last]).await), 1, "the rest is for operators");
    let (operator, _) = signed_in(&site, OPERATOR).await;
    assert_eq!(refused(&streams(&site, run, 1, &[&operator]).await), 0);
    assert_eq!(status(&site, "GET /", &[&last], "").await, 200, "pages are still served");
    drop(viewers);
    let has_place = async {
        while refused(&streams(&site, run, 1, &[&last]).await) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, has_place).await.expect("streams that end leave their slots");
}

#[tokio::test]
async fn answers_the_health_check_despite_too_many_requests() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = tempfile::tempdir().unwrap();
    let report = failing_run(recorded.path()).await;
    // Without tokens, a session has no limit.
    let site = site(folder.path()).await;
    site.store.begin(&report.run, &report.cases, &[report.results[0].key.clone()]).await.unwrap();
    let mut open = Vec::new();
    let mut served = 0;
    for _ in 0..1030 {
        let answer = site.get(&format!("/runs/{}/events", report.run.id)).await;
        served += usize::from(answer.status() == StatusCode::OK);
        open.push(answer);
    }
    assert_eq!(served, 512);
    assert_eq!(site.get("/").await.status(), StatusCode::SERVICE_UNAVAILABLE, "unread answers count, too");
    assert_eq!(site.get("/healthz").await.status(), StatusCode::OK);
    open.truncate(600);
    assert_eq!(site.get("/").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn rejects_long_forms_and_garbage() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(folder.path()).await;
    assert_eq!(status(&site, "POST /login", &[], &format!("token={}", "a".repeat(20 << 10))).await, 413);
    for form in ["", "token", "token=%", "token=%ff", "next=/", "token=a&token=b", "{\"token\":1}", "\0"] {
        let code = status(&site, "POST /login", &[], form).await;
        assert!((400..500).contains(&code), "{form:?}: {code}");
    }
    for line in
        ["GET /login?next", "GET /login?next=%ff&&=", "GET /login?%00=%0a", "GET /login?next=%0d%0aset-cookie:a"]
    {
        let code = status(&site, line, &[], "").await;
        assert!(code == 200 || (400..500).contains(&code), "{line}: {code}");
    }
    let mut odd = HeaderMap::new();
    for name in [header::COOKIE, header::AUTHORIZATION, header::ACCEPT, header::ORIGIN, header::IF_NONE_MATCH] {
        odd.append(name, axum::http::HeaderValue::from_bytes(b"\xff\xfe=\x80;weft-session=\xc0").unwrap());
    }
    let mut request = Request::get("/").header(header::HOST, "lab.example").body(Body::empty()).unwrap();
    *request.headers_mut() = odd.clone();
    assert_eq!(site.router.clone().oneshot(request).await.unwrap().status(), StatusCode::MISDIRECTED_REQUEST);
    odd.insert(header::HOST, "lab.example".parse().unwrap());
    let mut request = Request::get("/").body(Body::empty()).unwrap();
    *request.headers_mut() = odd;
    assert_eq!(site.router.clone().oneshot(request).await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn an_endless_form_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join(FILE_NAME)).await.unwrap();
    let (_stop, stopped) = watch::channel(false);
    let mut access = AccessControl::new(Access::default()).unwrap();
    access.form_timeout = Duration::from_millis(20);
    let app = App {
        watch: StoreWatch::new(store.clone()),
        store,
        folder: folder.path().to_owned(),
        live: Live::default(),
        starter: Starter::default(),
        schedule: RunSchedule::default(),
        clock: Clock::default(),
        captures: Captures::new(CaptureOptions::default(), stopped.clone()),
        exports: Exports::default(),
        streams: Slots::new(STREAMS),
        readers: Arc::new(Semaphore::new(routes::READERS)),
        access: Arc::new(access),
        stopped,
    };
    let first = tokio_stream::once(Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"token="))));
    let body = Body::new(StreamBody::new(first.chain(tokio_stream::pending())));
    let request = Request::post("/login").header(header::HOST, "localhost").body(body).unwrap();
    let answer = routes::router(app).oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test]
async fn idle_connections_lock_out_no_client() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // No timeout closes a connection here.
    let limits = Limits { connections: 4, head: 10 * LONG, read: LONG, end: Duration::from_secs(5) };
    let server = tokio::spawn(connections::accept(listener, site.router.clone(), limits, site.stop.subscribe()));
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    let mut watchdog = TcpStream::connect(address).await.unwrap();
    watchdog.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(rest(watchdog).await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(rest(idle.remove(0)).await, "", "the one that was idle longest was closed");
    site.stop.send_replace(true);
    tokio::time::timeout(LONG, server).await.expect("it ends").unwrap();
}

/// Reads until the server closes the connection.
async fn rest(mut connection: TcpStream) -> String {
    let mut received = Vec::new();
    let read = connection.read_to_end(&mut received);
    // A reset also ends the connection.
    let _ = tokio::time::timeout(LONG, read).await.expect("the server closes");
    String::from_utf8(received).unwrap()
}

#[tokio::test]
async fn a_silent_client_loses_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits { connections: 2, head: Duration::from_millis(50), read: LONG, end: Duration::from_secs(5) };
    let server = tokio::spawn(connections::accept(listener, site.router.clone(), limits, site.stop.subscribe()));
    // Two clients with endless requests use all connections. A third client is served after a
    // timeout.
    let mut slow = Vec::new();
    for begun in ["", "GET / HTTP/1.1\r\nHost: local"] {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(begun.as_bytes()).await.unwrap();
        slow.push(connection);
    }
    let mut third = TcpStream::connect(address).await.unwrap();
    third.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(rest(third).await.starts_with("HTTP/1.1 200 OK\r\n"));
    for connection in slow {
        assert!(!rest(connection).await.contains("200 OK"));
    }
    // An endless head is rejected early.
    let mut long = TcpStream::connect(address).await.unwrap();
    let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "a".repeat(64 << 10));
    let _ = long.write_all(head.as_bytes()).await;
    assert!(!rest(long).await.contains("200 OK"));
    site.stop.send_replace(true);
    tokio::time::timeout(LONG, server).await.expect("it ends").unwrap();
}

#[tokio::test]
async fn an_unfinished_request_does_not_keep_the_server_running() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits { connections: 1, head: LONG * 10, read: LONG, end: Duration::from_millis(50) };
    let server = tokio::spawn(connections::accept(listener, site.router.clone(), limits, site.stop.subscribe()));
    let mut stuck = TcpStream::connect(address).await.unwrap();
    // The answer shows that the connection was accepted. Then the client sends half of a form.
    stuck.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = [0; 15];
    stuck.read_exact(&mut answer).await.unwrap();
    stuck.write_all(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nt").await.unwrap();
    site.stop.send_replace(true);
    tokio::time::timeout(LONG, server).await.expect("it ends").unwrap();
}
