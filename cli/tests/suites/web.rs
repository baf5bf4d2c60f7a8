//! Tests `weft web`, which runs as a process. A client starts a run with the API, or uploads a
//! capture, and the test kills the process in the meantime. The next process must have everything
//! that was finished, and nothing that is incomplete.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::wait::wait_for;

/// A running `weft web`. It is killed at the end of the test.
pub(crate) struct Server {
    process: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut command = weft(&["web", "--listen", "127.0.0.1:0", "--target", "builtin"], folder);
        Self::of(&mut command)
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("dashboard: http://").unwrap().trim_end_matches('/').to_owned();
        Server { process, address }
    }

    /// Sends a request. Returns a reader, from which the caller reads the answer.
    fn ask(&self, method: &str, path: &str, document: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, document.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{document}").as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Returns the text of a page.
    pub(crate) fn text(&self, path: &str) -> String {
        let mut answer = String::new();
        self.ask("GET", path, "").read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        body.to_owned()
    }

    fn json(&self, method: &str, path: &str, document: &str) -> Value {
        let mut answer = String::new();
        self.ask(method, path, document).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {answer}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }
}

/// Makes a command of weft with `--out folder`. The command ignores a store that is set in the
/// environment of the tests.
pub(crate) fn weft(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.env_remove("WEFT_STORE").args(arguments).arg("--out").arg(folder).stdin(Stdio::null());
    command
}

#[test]
fn a_folder_that_is_not_there_yet_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("lab"));
    assert!(folder.path().join("lab/results.sqlite").is_file());
    drop(server);
}

/// Reads the events of a run until `enough` cases are finished. Returns the keys of these cases.
fn finished(server: &Server, run: &str, enough: usize) -> Vec<String> {
    let mut keys = Vec::new();
    for line in server.ask("GET", &format!("/runs/{run}/events"), "").lines() {
        let line = line.unwrap();
        let Some(event) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(event).unwrap();
        if event["event"] == "finished" {
            keys.push(event["key"].as_str().unwrap().to_owned());
        }
        if keys.len() == enough {
            return keys;
        }
    }
    panic!("the run ended after {} cases", keys.len());
}

/// Waits until there is a run. Returns the newest run.
fn newest(server: &Server) -> String {
    wait_for("a run", || {
        let runs = server.json("GET", "/api/runs?limit=1", "");
        runs["runs"][0]["run"]["id"].as_str().map(str::to_owned)
    })
}

#[test]
fn a_server_that_is_killed_in_the_middle_of_a_run_has_all_that_was_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    server.json("POST", "/api/targets/builtin/runs", r#"{"tier": "full", "seed": 1}"#);
    let run = newest(&server);
    let reported = finished(&server, &run, 40);
    // SIGKILL.
    server.process.kill().unwrap();
    server.process.wait().unwrap();

    let server = Server::start(folder.path());
    let after = server.json("GET", &format!("/api/runs/{run}"), "");
    assert_eq!(after["status"], "cancelled", "{after}");
    let cases = server.json("GET", &format!("/api/runs/{run}/cases"), "");
    let cases = cases["cases"].as_array().unwrap();
    let done: Vec<&Value> = cases.iter().filter(|case| case["verdict"].is_string()).collect();
    assert!(done.len() >= reported.len() && done.len() < cases.len(), "{} of {}", done.len(), cases.len());
    assert_eq!((&after["finished"], &after["planned"]), (&done.len().into(), &cases.len().into()));
    let keys: Vec<&str> = done.iter().map(|case| case["key"]["case"].as_str().unwrap()).collect();
    for key in &reported {
        let case = key.split('[').next().unwrap();
        assert!(keys.contains(&case), "{key} was reported and is not there");
    }
    for case in &done {
        let path = case["path"].as_str().unwrap().replace('%', "%25");
        let result = server.json("GET", &format!("/api/runs/{run}/cases/{path}"), "");
        assert_eq!((&result["key"], &result["verdict"]), (&case["key"], &case["verdict"]), "complete");
        for file in result["evidence"]["files"].as_array().unwrap() {
            let file = folder.path().join("targets/builtin").join(file["path"].as_str().unwrap());
            assert!(file.metadata().unwrap().len() > 0, "{}", file.display());
        }
    }
    // The new process can resume the run. Its results stay, and the finished cases do not run
    // again.
    server.json("POST", "/api/targets/builtin/runs", r#"{"resume": true}"#);
    assert_eq!(newest(&server), run);
    // Until the run resumes, its status is still "cancelled", and it sends no events.
    let status = || server.json("GET", &format!("/api/runs/{run}"), "")["status"].clone();
    wait_for("the run has begun again", || (status() != "cancelled").then_some(()));
    let more = finished(&server, &run, done.len() + 5);
    assert_eq!(more[..reported.len()], reported[..], "in the same order");
}

#[test]
fn a_server_that_is_killed_in_the_middle_of_an_upload_has_no_half_of_it() {
    let (folder, shelf) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = shelf.path().to_str().unwrap();
    let start = || Server::of(&mut weft(&["web", "--listen", "127.0.0.1:0", "--captures", place], folder.path()));
    let files = || -> Vec<_> { std::fs::read_dir(shelf.path()).unwrap().map(|file| file.unwrap()).collect() };
    let capture = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../captures/siw/rping-crc.pcap")).unwrap();
    let mut server = start();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let (host, length) = (&server.address, capture.len());
    let head = format!(
        "POST /api/captures?name=nic.pcap HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&capture[..length / 2]).unwrap();
    // Wait until the server has written a part of the upload.
    let is_begun = || files().iter().any(|file| file.metadata().is_ok_and(|about| about.len() > 0));
    wait_for("a part of the upload", || is_begun().then_some(()));
    // SIGKILL.
    server.process.kill().unwrap();
    server.process.wait().unwrap();

    let server = start();
    assert_eq!(server.json("GET", "/api/captures", "")["captures"].as_array().map(Vec::len), Some(0));
    let left: Vec<_> = files().iter().map(|file| file.file_name().into_string().unwrap()).collect();
    assert!(
        left.len() == 1 && left[0].starts_with(".weft-upload-"),
        "for a day, under a name that nobody sees: {left:?}"
    );
}

#[test]
fn a_store_of_any_name_is_shown_with_the_evidence_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("lab");
    let url = format!("sqlite://{}", folder.path().join("all.db").display());
    let run = ["test", "builtin", "mpa/7.1.1-key", "--seed", "1", "--store", &url];
    assert!(weft(&run, &out).stdout(Stdio::null()).status().unwrap().success());
    assert!(!out.join("results.sqlite").exists());
    // Set the store with the option, and then with the environment variable that a container uses.
    let mut command = weft(&["web", "--listen", "127.0.0.1:0"], &out);
    for server in [
        Server::of(&mut weft(&["web", "--listen", "127.0.0.1:0", "--store", &url], &out)),
        Server::of(command.env("WEFT_STORE", &url)),
    ] {
        let run = newest(&server);
        let cases = server.json("GET", &format!("/api/runs/{run}/cases"), "");
        let case = cases["cases"][0]["path"].as_str().unwrap().to_owned();
        let mut answer = Vec::new();
        server.ask("GET", &format!("/runs/{run}/evidence/pcapng/{case}"), "").read_to_end(&mut answer).unwrap();
        let kept = std::fs::read(out.join("cases").join(&case).join("evidence.pcapng")).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(&kept), "{case}");
    }
}

#[test]
fn a_store_that_is_none_is_refused_and_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let slip = format!("sqlite://{}", folder.path().join("lba.db").display());
    for (url, code, words) in [("mysql://db/weft", 2, "postgres://"), (slip.as_str(), 2, "unable to open")] {
        let web = ["web", "--listen", "127.0.0.1:0", "--store", url];
        let output = weft(&web, folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && text.contains(words), "{url}: {text}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The server writes each line to its log before it sends the answer. So the log has all lines even
/// if the server is killed.
#[test]
fn wrong_tokens_and_actions_are_logged_to_standard_error() {
    const OPERATOR: &str = "operator-token-0123456789";
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, format!("operator {OPERATOR}\n")).unwrap();
    let arguments = ["web", "--listen", "127.0.0.1:0", "--target", "builtin", "--token-file", tokens.to_str().unwrap()];
    let log = |level: Option<&str>| {
        let mut command = weft(&arguments, &folder.path().join("out"));
        command.env_remove("WEFT_LOG").stderr(Stdio::piped());
        command.envs(level.map(|level| ("WEFT_LOG", level)));
        let mut server = Server::of(&mut command);
        for (line, token) in
            [("GET /api/runs", "operator-token-0123456780"), ("DELETE /api/targets/builtin/jobs/7", OPERATOR)]
        {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            let host = &server.address;
            let head = format!(
                "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
        server.process.kill().unwrap();
        let mut log = String::new();
        server.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    };
    let lines = log(None);
    let has = |line: &str| lines.lines().any(|other| other.ends_with(line));
    assert!(has("WARN wrong token from 127.0.0.1 for /api/runs"), "{lines}");
    assert!(has("INFO audit: operator at 127.0.0.1: DELETE /api/targets/builtin/jobs/7"), "{lines}");
    let lines = log(Some("warn"));
    assert!(lines.contains("wrong token") && !lines.contains("audit"), "{lines}");
}
