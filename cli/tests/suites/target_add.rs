//! Tests `weft target add`, and runs whose target file has no capabilities. Both probe the target.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::target_check::server;
use crate::test_resume::suites;

/// Runs weft in a folder. Returns the exit code, the standard output and the standard error.
fn weft(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = command.env_remove("WEFT_STORE").args(arguments).current_dir(folder).output().unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_responder_gets_a_file_with_which_it_can_be_tested() {
    let (folder, responder) = (tempfile::tempdir().unwrap(), server(&["serve"]));
    let add = ["target", "add", &responder.address, "--name", "nic"];
    let (code, text, error) = weft(folder.path(), &add);
    assert_eq!(code, 0, "{text}{error}");
    let found = format!("{}: crc, markers, revision-1, revision-2; service echo\n", responder.address);
    assert!(text.starts_with(&found) && text.contains("\nwrote nic.toml\n"), "{text}");
    for part in ["\na run will test ", ", and will not test:\n", "\nnext: weft test nic.toml --out nic --tier smoke\n"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(" They are for other kinds of targets.\n") && !text.contains("sdp-echo"), "{text}");
    assert!(text.contains(" The target has no agent.\n") && !text.contains("question"), "{text}");

    let (code, text, error) = weft(folder.path(), &["target", "check", "nic.toml"]);
    assert!(code == 0 && !text.contains("its capabilities"), "{text}{error}");
    let case = ["test", "nic.toml", "mpa/7.1.1-key/wrong-octet[octet=3]", "--out", "out"];
    let (code, text, error) = weft(folder.path(), &case);
    assert!(code == 0 && !text.contains("probed"), "{text}{error}");

    // The file is not replaced without --force.
    let file = folder.path().join("nic.toml");
    fs::write(&file, "mine").unwrap();
    let (code, _, error) = weft(folder.path(), &add);
    assert_eq!((code, &*error), (2, "weft: nic.toml: the file exists; to replace it, add --force\n"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let (code, _, error) = weft(folder.path(), &[&add[..], &["--force"]].concat());
    assert!(code == 0 && fs::read_to_string(&file).unwrap().contains("\nname = \"nic\"\n"), "{error}");
}

#[test]
fn rping_and_its_buffer_are_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut serve = server(&["serve", "--workloads", "127.0.0.1:0"]);
    let rping = serve.next_address();
    let (code, text, error) = weft(folder.path(), &["target", "add", &rping, "-o", "rping.toml"]);
    assert!(code == 0 && text.contains("; service rping\n"), "{text}{error}");
    let file = fs::read_to_string(folder.path().join("rping.toml")).unwrap();
    // The server's buffer has 65535 bytes (`peer`, module `service::rping`).
    assert!(file.contains("\nservice = \"rping\"\nrping_size = 65535 "), "{file}");
    // The default name has the address.
    assert!(file.contains(&format!("\nname = \"{}\"\n", rping.replace(':', "-"))), "{file}");
}

#[test]
fn an_sdp_socket_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let sdp = server(&["sdp", "serve", "sink", "--profile", "bare"]);
    let (code, text, error) = weft(folder.path(), &["target", "add", &sdp.address, "--name", "sdp"]);
    assert!(code == 0 && text.contains(": SDP; service sdp-sink\n"), "{text}{error}");
    let (code, text, error) = weft(folder.path(), &["target", "check", "sdp.toml"]);
    assert!(code == 0 && text.contains("accepts the data, and sends nothing: sdp-sink"), "{text}{error}");
}

#[test]
fn a_target_that_cannot_be_added_gets_advice_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    // The listener is closed at once, so this address refuses connections.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (code, _, error) = weft(folder.path(), &["target", "add", &address]);
    let down =
        format!("weft: target is down: {address} refused the connection; start the target or correct the address");
    assert!(code == 3 && error.contains(&down), "{error}");
    // RFC 6761 section 6.4: a name that ends with `.invalid` never resolves.
    let (code, _, error) = weft(folder.path(), &["target", "add", "nic.invalid:7174"]);
    assert!(code == 3 && error.contains("weft: target is down: nic.invalid:7174 cannot be resolved: "), "{error}");
    assert!(error.ends_with("; correct the name, or use an IP address\n"), "{error}");
    for (arguments, words) in [
        (&["192.0.2.17"][..], "expected host:port, for example 192.0.2.17:7174"),
        (&["192.0.2.17:7174", "--name", "../nic"], "--name \"../nic\": expected letters"),
    ] {
        let (code, _, error) = weft(folder.path(), &[&["target", "add"], arguments].concat());
        assert!(code == 2 && error.contains(words), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// If the target file has no capabilities, a run uses those that probes find out.
#[test]
fn a_run_probes_what_its_target_file_lacks() {
    let (folder, responder) = (tempfile::tempdir().unwrap(), server(&["serve"]));
    let head = format!("name = \"nic\"\nkind = \"tcp\"\naddress = \"{}\"\n", responder.address);
    let run = |more: &str| {
        fs::write(folder.path().join("nic.toml"), format!("{head}{more}")).unwrap();
        // This case needs the capability `revision-2`.
        let (code, text, error) = weft(folder.path(), &["test", "nic.toml", "P2P-10-9", "--out", "out"]);
        let report = fs::read(folder.path().join("out/report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        (code, text + &error, report["run"]["target"].clone())
    };
    let found = "crc, markers, revision-1, revision-2; service echo";
    let (code, text, target) = run("");
    assert_eq!(code, 0, "{text}");
    let line = format!("\nprobed, because the target file has no `capabilities`: {found}\n");
    assert!(text.contains(&line), "{text}");
    assert_eq!((target["probed"].as_str(), target["service"].as_str()), (Some(found), Some("echo")));
    let (code, text, target) = run("capabilities = [\"crc\", \"revision-1\"]\n");
    assert!(code == 2 && !text.contains("probed"), "{text}");
    assert_eq!(target["probed"], serde_json::Value::Null);
}

/// The run is killed, and the target is down when the run resumes. New probes would find out
/// nothing, so the description of the target would have changed.
#[test]
fn a_resumed_run_has_the_probes_of_its_first_part() {
    let (folder, responder) = (tempfile::tempdir().unwrap(), server(&["serve"]));
    let target = format!("name = \"nic\"\nkind = \"tcp\"\naddress = \"{}\"\n", responder.address);
    fs::write(folder.path().join("nic.toml"), target).unwrap();
    let scripts = folder.path().join("suites");
    suites(&scripts, "if p.n == 3 then t:pause(3600) end");
    let run = ["test", "nic.toml", "--suites", "suites", "--out", "out", "--markers", "from-target"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.env_remove("WEFT_STORE").args(run).current_dir(folder.path()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let finished = lines.filter(|line| line.trim_start().starts_with("pass")).take(2).count();
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(finished, 2);
    drop(responder);

    suites(&scripts, "");
    let (code, text, error) = weft(folder.path(), &[&run[..], &["--resume"]].concat());
    assert_eq!(code, 3, "{text}{error}");
    let probed = "`capabilities`: crc, markers, revision-1, revision-2; service echo\n";
    assert!(text.contains(probed) && text.contains("4 cases: 2 inconclusive, 2 pass; done"), "{text}{error}");
}

/// If the probes no longer find a capability, the cases that need it do not run. This must not look
/// like a success.
#[test]
fn a_run_fails_if_the_target_lost_a_capability() {
    let folder = tempfile::tempdir().unwrap();
    let run = |serve: &[&str]| {
        let responder = server(serve);
        let target = format!("name = \"nic\"\nkind = \"tcp\"\naddress = \"{}\"\n", responder.address);
        fs::write(folder.path().join("nic.toml"), target).unwrap();
        let (code, text, error) = weft(folder.path(), &["test", "nic.toml", "P2P-10-9", "--out", "out"]);
        (code, text + &error)
    };
    let (code, text) = run(&["serve"]);
    assert!(code == 0 && !text.contains("lost the capability"), "{text}");
    let (code, text) = run(&["serve", "--deviate", "mpa.refuses-markers"]);
    assert_eq!(code, 1, "{text}");
    let lost = "the target lost the capability markers";
    assert!(text.contains(&format!("\nwarning: {lost} since an earlier run")), "{text}");
    assert!(text.contains(&format!("\nexit code 1: {lost}\n")), "{text}");
}
