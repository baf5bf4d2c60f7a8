//! `weft web` as a process of its own: a run is started over its API, the process is killed in the middle of it, and the next one knows
//! all that was finished, and nothing by halves.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Ends with the test.
struct Server {
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
        let mut process = Command::new(env!("CARGO_BIN_EXE_weft"))
            .args(["web", "--listen", "127.0.0.1:0", "--target", "builtin", "--out"])
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("dashboard: http://").unwrap().trim_end_matches('/').to_owned();
        Server { process, address }
    }

    /// Asks; what comes back is read by the caller.
    fn ask(&self, method: &str, path: &str, document: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, document.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{document}").as_bytes()).unwrap();
        BufReader::new(stream)
    }

    fn json(&self, method: &str, path: &str, document: &str) -> Value {
        let mut answer = String::new();
        self.ask(method, path, document).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {answer}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }
}

/// Events of a run, until `enough` of its cases are finished: their keys.
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

/// The run that is newest, once there is one.
fn newest(server: &Server) -> String {
    loop {
        let runs = server.json("GET", "/api/runs?limit=1", "");
        if let Some(run) = runs["runs"][0]["run"]["id"].as_str() {
            return run.to_owned();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_of_a_run_has_all_that_was_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    server.json("POST", "/api/targets/builtin/runs", r#"{"tier": "full", "seed": 1}"#);
    let run = newest(&server);
    let told = finished(&server, &run, 40);
    // SIGKILL.
    server.process.kill().unwrap();
    server.process.wait().unwrap();

    let server = Server::start(folder.path());
    let after = server.json("GET", &format!("/api/runs/{run}"), "");
    assert_eq!(after["status"], "cancelled", "{after}");
    let cases = server.json("GET", &format!("/api/runs/{run}/cases"), "");
    let cases = cases["cases"].as_array().unwrap();
    let done: Vec<&Value> = cases.iter().filter(|case| case["verdict"].is_string()).collect();
    assert!(done.len() >= told.len() && done.len() < cases.len(), "{} of {}", done.len(), cases.len());
    assert_eq!((&after["finished"], &after["planned"]), (&done.len().into(), &cases.len().into()));
    let keys: Vec<&str> = done.iter().map(|case| case["key"]["case"].as_str().unwrap()).collect();
    for key in &told {
        let case = key.split('[').next().unwrap();
        assert!(keys.contains(&case), "{key} was told and is not there");
    }
    for case in &done {
        let path = case["path"].as_str().unwrap().replace('%', "%25");
        let result = server.json("GET", &format!("/api/runs/{run}/cases/{path}"), "");
        assert_eq!((&result["key"], &result["verdict"]), (&case["key"], &case["verdict"]), "whole");
        for file in result["evidence"]["files"].as_array().unwrap() {
            let file = folder.path().join("targets/builtin").join(file["path"].as_str().unwrap());
            assert!(file.metadata().unwrap().len() > 0, "{}", file.display());
        }
    }
    // It can be gone on with: what there is stays, and is not run again.
    server.json("POST", "/api/targets/builtin/runs", r#"{"resume": true}"#);
    assert_eq!(newest(&server), run);
    // Until it has begun again it is the cancelled one, whose events are over.
    while server.json("GET", &format!("/api/runs/{run}"), "")["status"] == "cancelled" {
        std::thread::yield_now();
    }
    let more = finished(&server, &run, done.len() + 5);
    assert_eq!(more[..told.len()], told[..], "in the same order");
}
