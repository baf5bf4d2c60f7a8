//! Tests of uploads: permissions, accepted file types, and that a rejected upload leaves no file.

use std::convert::Infallible;

use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};

use super::captures::{capture_path, read};
use super::*;
use crate::access::Tokens;

const VIEWER: &str = "viewer-token-0123456789";
const OPERATOR: &str = "operator-token-0123456789";

struct UploadSite {
    folder: tempfile::TempDir,
    site: Site,
}

impl UploadSite {
    async fn new(access: Access, most_upload: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let capture_folder = folder.path().join("capture_folder");
        std::fs::create_dir(&capture_folder).unwrap();
        let captures = CaptureOptions { folder: Some(capture_folder), most_upload };
        UploadSite { site: site_with(folder.path(), access, None, captures).await, folder }
    }

    /// The names in the folder, including hidden names.
    fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path().join("capture_folder")).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The key of the page's form.
    async fn key(&self) -> String {
        let page = self.site.text("/captures").await;
        page.split("name=\"key\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }

    async fn post(&self, headers: &[(&str, &str)], body: Body) -> Response<Body> {
        let mut request = Request::post("/captures")
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "multipart/form-data; boundary=B");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.site.router.clone().oneshot(request.body(body).unwrap()).await.unwrap()
    }
}

fn part(head: &str, octets: &[u8]) -> Vec<u8> {
    [format!("--B\r\nContent-Disposition: form-data; {head}\r\n\r\n").as_bytes(), octets, b"\r\n"].concat()
}

fn form(key: &str, name: &str, octets: &[u8]) -> Vec<u8> {
    let file = part(&format!("name=\"file\"; filename=\"{name}\""), octets);
    [part("name=\"key\"", key.as_bytes()), file, b"--B--\r\n".to_vec()].concat()
}

fn good() -> Vec<u8> {
    std::fs::read(capture_path("siw/rping-crc.pcap")).unwrap()
}

#[tokio::test]
async fn shows_and_deletes_an_upload() {
    let uploads = UploadSite::new(Access::default(), 1 << 20).await;
    let key = uploads.key().await;
    for name in ["../../a b.pcap", "a_b.pcap"] {
        let answer = uploads.post(&[], form(&key, name, &good()).into()).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let capture = answer.headers()[header::LOCATION].to_str().unwrap().to_owned();
        let (status, page) = read(&uploads.site, &capture).await;
        assert!(status == StatusCode::OK && page.contains("52 packets"), "{page}");
    }
    assert_eq!(uploads.names(), ["a_b-2.pcap", "a_b.pcap"]);
    let page = uploads.site.text("/captures").await;
    let delete = page.split("action=\"").find(|part| part.contains("/delete\"")).unwrap().split('"').next().unwrap();
    for (key, status) in [("", 403), ("x", 403), (key.as_str(), 303), (key.as_str(), 404)] {
        let request =
            Request::post(delete).header(header::HOST, "localhost").body(Body::from(format!("key={key}"))).unwrap();
        assert_eq!(uploads.site.router.clone().oneshot(request).await.unwrap().status(), status, "{key}");
    }
    assert_eq!(uploads.names().len(), 1);
}

#[tokio::test]
async fn a_rejected_upload_leaves_nothing() {
    let uploads = UploadSite::new(Access::default(), 8192).await;
    let key = uploads.key().await;
    let long = vec![0xa5; 9000];
    let complete = form(&key, "a.pcap", &good()[..4000]);
    let no_file = [part("name=\"key\"", key.as_bytes()), b"--B--\r\n".to_vec()].concat();
    let bare = [part("name=\"file\"; filename=\"a.pcap\"", &good()), b"--B--\r\n".to_vec()].concat();
    let many: Vec<u8> = (0..50).flat_map(|_| part("name=\"x\"", b"y")).collect();
    for (what, body, status) in [
        ("too long", form(&key, "a.pcap", &long), 413),
        ("no capture", form(&key, "a.pcap", b"\xff\xd8\xff\xe0 a picture"), 422),
        ("empty", form(&key, "a.pcap", b""), 422),
        ("a packed nothing", form(&key, "a.pcap.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03"), 422),
        ("cut off", complete[..2000].to_vec(), 400),
        ("no file", no_file, 400),
        ("no form", b"GET / HTTP/1.1\r\n\r\n".to_vec(), 400),
        ("nothing", Vec::new(), 400),
        ("no key", bare, 403),
        ("a wrong key", form("00", "a.pcap", &good()), 403),
        ("a long key", form(&"0".repeat(4000), "a.pcap", &good()), 403),
        ("many fields", many, 403),
    ] {
        let answer = uploads.post(&[], body.into()).await;
        assert_eq!(answer.status(), status, "{what}");
        assert_eq!(uploads.names(), [""; 0], "{what}");
    }
    for forged in [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site"), ("origin", "null")] {
        let answer = uploads.post(&[forged], form(&key, "a.pcap", &good()[..4000]).into()).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{forged:?}");
    }
    assert_eq!(uploads.names(), [""; 0]);
    assert_eq!(uploads.post(&[], complete.into()).await.status(), StatusCode::SEE_OTHER, "a capture can end early");
}

#[tokio::test]
async fn viewers_and_unknown_clients_cannot_upload() {
    let tokens = Tokens::parse(&format!("viewer {VIEWER}\noperator {OPERATOR}")).unwrap();
    let uploads = UploadSite::new(Access { tokens, names: Vec::new() }, 1 << 20).await;
    let [viewer, operator] = [VIEWER, OPERATOR].map(|token| format!("Bearer {token}"));
    let body = || Body::from(form("", "a.pcap", &good()));
    assert_eq!(uploads.post(&[], body()).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(uploads.post(&[("authorization", &viewer)], body()).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(uploads.names(), [""; 0]);
    assert_eq!(uploads.post(&[("authorization", &operator)], body()).await.status(), StatusCode::SEE_OTHER);
    let request = Request::get("/captures").header(header::HOST, "localhost").header("authorization", &viewer);
    let page = uploads.site.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let page = String::from_utf8(octets(page).await).unwrap();
    assert!(page.contains("a.pcap") && !page.contains("type=\"file\"") && !page.contains("/delete"), "{page}");
}

#[tokio::test]
async fn programs_add_and_delete_captures() {
    let uploads = UploadSite::new(Access::default(), 1 << 20).await;
    let send = async |line: &str, kind: &str, body: Vec<u8>| {
        let (method, uri) = line.split_once(' ').unwrap();
        let request = Request::builder().method(method).uri(uri).header(header::HOST, "localhost");
        let request = request.header(header::CONTENT_TYPE, kind).body(Body::from(body)).unwrap();
        uploads.site.router.clone().oneshot(request).await.unwrap()
    };
    // Content types that a form of another site can send are rejected.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=B", ""] {
        assert_eq!(send("POST /api/captures", kind, good()).await.status(), 415, "{kind}");
    }
    assert_eq!(send("POST /api/captures", "application/octet-stream", b"x".to_vec()).await.status(), 422);
    assert_eq!(send("POST /api/captures", "application/octet-stream", vec![0; 2 << 20]).await.status(), 413);
    assert_eq!(uploads.names(), [""; 0]);
    let made = send("POST /api/captures?name=a%2Fb.pcap", "application/octet-stream", good()).await;
    assert_eq!(made.status(), StatusCode::CREATED);
    let made: serde_json::Value = serde_json::from_slice(&octets(made).await).unwrap();
    assert_eq!(uploads.names(), ["b.pcap"]);
    let one = format!("DELETE /api/captures/{}", made["id"].as_str().unwrap());
    for status in [204, 404] {
        assert_eq!(send(&one, "", Vec::new()).await.status(), status);
    }
    assert_eq!(uploads.names(), [""; 0]);
}

#[tokio::test]
async fn rejects_silent_clients_and_too_many_uploads() {
    let mut uploads = UploadSite::new(Access::default(), 1 << 20).await;
    let key = uploads.key().await;
    let complete = form(&key, "a.pcap", &good());
    // A body that begins and then stops.
    let stuck = || {
        let begun = Bytes::copy_from_slice(&complete[..2000]);
        let first = tokio_stream::once(Ok::<_, Infallible>(Frame::data(begun)));
        Body::new(StreamBody::new(first.chain(tokio_stream::pending())))
    };
    let router = uploads.site.router.clone();
    let request = || {
        let head = Request::post("/captures").header(header::HOST, "localhost");
        head.header(header::CONTENT_TYPE, "multipart/form-data; boundary=B").body(stuck()).unwrap()
    };
    let slow: Vec<_> = (0..2).map(|_| tokio::spawn(router.clone().oneshot(request()))).collect();
    let have_begun = async {
        while uploads.names().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, have_begun).await.expect("two uploads begin");
    assert!(uploads.names().iter().all(|name| name.starts_with(".weft-upload-")), "{:?}", uploads.names());
    assert!(uploads.site.text("/captures").await.contains("There is no capture in the folder yet."));
    assert_eq!(uploads.post(&[], complete.clone().into()).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    // Both clients disconnect, which deletes their uploads.
    for client in slow {
        client.abort();
        assert!(client.await.is_err());
    }
    let are_gone = async {
        while !uploads.names().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, are_gone).await.expect("uploads of clients that disconnect are deleted");
    assert_eq!(uploads.post(&[], complete.clone().into()).await.status(), StatusCode::SEE_OTHER);
    // A silent client times out.
    let (site, _folder) = impatient(&mut uploads).await;
    let key = site.text("/captures").await;
    let key = key.split("name=\"key\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let begun = Bytes::from(form(&key, "a.pcap", &good())[..2000].to_vec());
    let first = tokio_stream::once(Ok::<_, Infallible>(Frame::data(begun)));
    let body = Body::new(StreamBody::new(first.chain(tokio_stream::pending())));
    let head = Request::post("/captures").header(header::HOST, "localhost");
    let request = head.header(header::CONTENT_TYPE, "multipart/form-data; boundary=B").body(body).unwrap();
    assert_eq!(site.router.clone().oneshot(request).await.unwrap().status(), StatusCode::REQUEST_TIMEOUT);
}

/// A server with short time limits.
async fn impatient(uploads: &mut UploadSite) -> (Site, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join(FILE_NAME)).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let access = Arc::new(AccessControl::new(Access::default()).unwrap());
    let capture_folder = uploads.folder.path().join("capture_folder");
    let options = CaptureOptions { folder: Some(capture_folder), ..CaptureOptions::default() };
    let mut captures = Captures::new(options, stopped.clone());
    captures.uploads.silence = Duration::from_millis(20);
    let path = folder.path().to_owned();
    let (live, starter) = (Live::default(), Starter::default());
    let app = App {
        store: store.clone(),
        watch: StoreWatch::new(store.clone()),
        folder: path,
        live: live.clone(),
        starter: starter.clone(),
        schedule: RunSchedule::default(),
        clock: Clock::default(),
        access,
        captures,
        exports: Exports::default(),
        streams: Slots::new(STREAMS),
        readers: Arc::new(Semaphore::new(routes::READERS)),
        stopped,
    };
    (Site { store, live, starter, router: routes::router(app), stop }, folder)
}
