//! Tests `weft agent` on a host without RDMA libraries or without an RDMA device. The command
//! prints one line with the remedy and exits with code 2. With `--soft`, it uses weft's own RNIC
//! and needs no device. `interop/siw/agent` tests the agent with a device.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn weft(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).env_remove("WEFT_AGENT_TOKEN").output().unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn without_a_device_one_line_has_the_remedy() {
    if Path::new("/sys/class/infiniband").exists() {
        println!("skipped: this host has RDMA devices");
        return;
    }
    for arguments in [&["agent", "--report"][..], &["agent"], &["agent", "--stdio"]] {
        let (code, out, message) = weft(arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("apt install ibverbs-providers") || message.contains("modprobe siw"), "{message}");
    }
}

#[test]
fn beyond_loopback_a_token_is_required() {
    for arguments in [&["agent", "--listen", "0.0.0.0:0"][..], &["agent", "--listen", "[::]:0", "--token", ""]] {
        let (code, _, message) = weft(arguments);
        assert_eq!(code, Some(2), "{message}");
        assert!(message.contains("WEFT_AGENT_TOKEN"), "{message}");
    }
}

#[test]
fn a_short_token_is_refused() {
    let (code, out, message) = weft(&["agent", "--soft", "--token", "fifteen-letters"]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{message}");
    let expected = "weft: the token has 15 bytes, but needs at least 16; for a random token: openssl rand -hex 16\n";
    assert_eq!(message, expected);
}

/// A listening process in the background. It is killed at the end of the test.
struct Listening {
    process: Child,
    address: String,
}

impl Listening {
    /// Starts the process. Its first line, on standard output or standard error, ends with the
    /// address.
    fn new(arguments: &[&str]) -> Self {
        let (mut output, input) = std::io::pipe().map(|(output, input)| (BufReader::new(output), input)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(arguments).env_remove("WEFT_AGENT_TOKEN").stdin(Stdio::null());
        let process = command.stdout(input.try_clone().unwrap()).stderr(input).spawn().unwrap();
        drop(command);
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim().rsplit_once("listening on ").unwrap_or_else(|| panic!("{arguments:?}: {line}")).1;
        // Read the later output of the process, so that the process never waits for a full pipe.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Listening { address: address.to_owned(), process }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the commands of `docs/agent.md` with the target file of this page. Replaces the ports by
/// free ports.
#[test]
fn the_example_of_the_guide_without_a_device_works() {
    let page = include_str!("../../../docs/agent.md");
    let commands: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("    weft serve"))
        .map_while(|line| line.strip_prefix("    weft "))
        .collect();
    let [serve, agent, check, test] = commands[..] else { panic!("{commands:?}") };
    let file = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let listening = |line: &str| {
        let line = line.strip_suffix(" &").unwrap().replace(":7174", ":0").replace(":7471", ":0");
        Listening::new(&line.split(' ').collect::<Vec<_>>())
    };
    let (responder, agent) = (listening(serve), listening(agent));
    let folder = tempfile::tempdir().unwrap();
    let file = file.replace("127.0.0.1:7174", &responder.address).replace("127.0.0.1:7471", &agent.address);
    std::fs::write(folder.path().join("soft.toml"), file).unwrap();
    let run = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        let output = command.args(line.split(' ')).current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
        let message = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), message)
    };
    let (code, message) = run(check);
    assert!(code == Some(0) && message.contains("ok  a good exchange by its agent works"), "{message}");
    assert!(!message.contains("device differs"), "{message}");
    let (code, message) = run(test);
    assert!(code == Some(0) && message.contains("rdmap/5.1-posted/read") && !message.contains(" fail"), "{message}");
}

#[test]
fn the_software_rnic_reports_itself() {
    let (code, out, message) = weft(&["agent", "--soft", "--report"]);
    assert_eq!((code, message.as_str()), (Some(0), ""));
    assert!(out.starts_with("weft0\n  driver         weft\n") && out.contains("  atomics        supported\n"), "{out}");
    let (code, _, message) = weft(&["agent", "--soft", "--device", "siw0"]);
    assert_eq!(code, Some(2), "{message}");
}
