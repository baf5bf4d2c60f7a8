//! Tests `weft target check`. The command queries a target with the protocol of the service in the
//! target's file. It reports if the target differs from its file.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

/// A listening process of weft.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
    // The standard output of the process. It stays open, so that the process can print.
    lines: BufReader<ChildStdout>,
}

impl Server {
    /// Returns the address at the end of the next output line.
    pub(crate) fn next_address(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().rsplit(' ').next().unwrap().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn server(arguments: &[&str]) -> Server {
    let mut process = Command::new(WEFT)
        .args(arguments)
        .args(["--listen", "127.0.0.1:0", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap());
    let mut server = Server { process, address: String::new(), lines };
    server.address = server.next_address();
    server
}

/// Runs `weft target check` on a target file with this address and the lines `more`. Returns the
/// exit code and the output.
fn checked(address: &str, more: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    std::fs::write(&file, format!("name = \"t\"\nkind = \"tcp\"\naddress = \"{address}\"\n{more}\n")).unwrap();
    let output = Command::new(WEFT).args(["target", "check"]).arg(&file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

#[test]
fn the_service_of_an_sdp_socket_is_found_out() {
    for (kind, does) in [
        (&["echo"][..], "sends back what it receives: sdp-echo"),
        (&["sink"], "accepts the data, and sends nothing: sdp-sink"),
        (&["source", "--octets", "3000"], "sends without a request: sdp-source"),
    ] {
        let server = server(&[&["sdp", "serve"], kind].concat());
        for service in ["sdp-echo", "sdp-sink", "sdp-source"] {
            let (code, text) = checked(&server.address, &format!("service = \"{service}\""));
            let right = does.ends_with(service);
            let expected = if right { does.to_owned() } else { format!("{does}, not {service}") };
            assert!(text.contains(&expected) && text.contains("HelloAck (MSeq"), "{kind:?}: {text}");
            assert_eq!(code, if right { 0 } else { 3 }, "{kind:?}: {text}");
            assert!(!text.contains("revision 1"), "{text}");
        }
    }
}

#[test]
fn a_start_that_is_another_is_found_out() {
    let server = server(&["sdp", "serve", "--profile", "bare"]);
    let (code, text) = checked(&server.address, "service = \"sdp-echo\"\n[sdp]\nstart = \"bare\"");
    assert!(code == 0 && text.contains("HelloAck (MSeq"), "{text}");
    let (code, text) = checked(&server.address, "service = \"sdp-echo\"\n[sdp]\nstart = \"swapped\"");
    assert!(code == 3 && text.contains("start = \"bare\"") && text.contains("is answered by HelloAck"), "{text}");
}

#[test]
fn a_target_of_another_protocol_is_named() {
    let responder = server(&["serve"]);
    let (code, text) = checked(&responder.address, "service = \"sdp-echo\"");
    assert!(code == 3 && text.contains("the target uses MPA without SDP (Reply, revision 1"), "{text}");
    let sdp = server(&["sdp", "serve"]);
    let (code, text) = checked(&sdp.address, "service = \"echo\"");
    assert!(code == 3 && text.contains("the target uses SDP; set service to \"sdp-echo\""), "{text}");
}

#[test]
fn names_the_other_iwarp_service_and_a_larger_buffer_of_rping() {
    let mut serve = server(&["serve", "--workloads", "127.0.0.1:0"]);
    let (echo, rping) = (serve.address.clone(), serve.next_address());
    let (code, text) = checked(&rping, "service = \"echo\"");
    assert!(code == 3 && text.contains("the target runs rping, not echo; set service = \"rping\""), "{text}");
    let (code, text) = checked(&echo, "service = \"rping\"");
    assert!(code == 3 && text.contains("the target runs echo, not rping; set service = \"echo\""), "{text}");
    let (code, text) = checked(&rping, "service = \"rping\"");
    assert!(
        code == 0 && text.contains("accepts a byte after the end of a buffer of `rping_size` = 64 bytes"),
        "{text}"
    );
    let (code, text) = checked(&rping, "");
    assert!(code == 0 && text.contains("the target runs rping -s; set service = \"rping\" to run more"), "{text}");
    let (code, text) = checked(&rping, "service = \"rping\"\nrping_size = 65535");
    assert!(code == 0 && !text.contains("its buffer"), "{text}");
}

#[test]
fn reports_a_target_that_does_not_listen() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, text) = checked(&address.to_string(), "service = \"echo\"");
    assert!(code == 3 && text.contains("is the target running, and does it listen on this address?"), "{text}");
}

#[test]
fn a_port_mapper_is_queried_by_udp_for_the_service_of_its_file() {
    let server = server(&["pm", "serve", "--map", "127.0.0.1:80=127.0.0.9:7080"]);
    let service = "service = \"port-mapper\"\n[portmap]\n";
    let (code, text) = checked(&server.address, &format!("{service}service = \"127.0.0.1:80\""));
    assert_eq!(code, 0, "{text}");
    for part in [
        &format!("t: UDP {}", server.address)[..],
        "PMAccept: 127.0.0.1:80 is at 127.0.0.9:7080",
        "PMDeny of 127.0.0.1:9",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("revision") && !text.contains("TCP"), "{text}");
    let wrong = format!("{service}service = \"127.0.0.1:81\"\nunmapped = \"127.0.0.1:80\"");
    let (code, text) = checked(&server.address, &wrong);
    assert!(code == 3 && text.contains("PMDeny of 127.0.0.1:81; set portmap.service"), "{text}");
    assert!(text.contains("PMAccept: 127.0.0.1:80 is at 127.0.0.9:7080; set portmap.unmapped"), "{text}");
}

#[test]
fn an_undeclared_capability_is_named() {
    let responder = server(&["serve"]);
    let (code, text) = checked(&responder.address, "service = \"echo\"\ncapabilities = [\"revision-1\"]");
    assert!(
        code == 0
            && text.contains("its capabilities")
            && text.contains("the target file does not declare these: crc, revision-2;"),
        "{text}"
    );
    // Without a service, the C bit of the Reply shows that the target has CRCs.
    let (code, text) = checked(&responder.address, "");
    assert!(code == 0 && text.contains("does not declare these: crc, revision-1, revision-2;"), "{text}");
    assert!(text.contains("the target echoes; set service = \"echo\" to run more cases"), "{text}");
    let declared = "service = \"echo\"\ncapabilities = [\"crc\", \"revision-1\", \"revision-2\"]";
    let (code, text) = checked(&responder.address, declared);
    assert!(code == 0 && !text.contains("its capabilities"), "{text}");
}

/// A target file from another person can contain commands, and weft would run them on this host.
/// With `--no-commands`, weft rejects such a file.
#[test]
fn a_file_with_commands_is_refused_with_no_commands() {
    let folder = tempfile::tempdir().unwrap();
    let (file, ran) = (folder.path().join("t.toml"), folder.path().join("ran"));
    let touch = format!("[\"touch\", \"{}\"]", ran.display());
    let initiator = "name = \"t\"\nkind = \"tcp\"\nrole = \"initiator\"\nlisten = \"127.0.0.1:0\"\n";
    let responder = "name = \"t\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\n";
    for (field, head) in [("start", initiator), ("agent", responder), ("restart", responder), ("crashed", responder)] {
        std::fs::write(&file, format!("{head}{field} = {touch}\n")).unwrap();
        for command in [&["target", "check", "--no-commands"][..], &["test", "--no-commands", "--out", "out"]] {
            let mut weft = Command::new(WEFT);
            let output = weft.args(command).arg(&file).current_dir(folder.path()).output().unwrap();
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{text}");
            let why = format!("t.toml: the field {field} runs a command, which --no-commands forbids: touch ");
            assert!(text.contains(&why), "{text}");
            assert!(!ran.exists());
        }
    }
}

/// The help and the pages explain that a target file can run commands, and how a user can prevent
/// this.
#[test]
fn help_and_pages_warn_about_the_commands_of_a_target_file() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (command, sentences) in [
        (
            &["test"][..],
            &[
                "--no-commands Reject a target file that runs commands on this machine",
                "The fields start, restart, crashed and agent can have commands.",
            ][..],
        ),
        (&["target", "check"], &["--no-commands Reject a target file that runs commands on this machine"]),
        (
            &["target"],
            &[
                "A target file can contain commands, which weft runs on this machine with your rights.",
                "So treat the file like a shell script.",
                "With --no-commands, weft rejects a file with commands.",
            ],
        ),
    ] {
        let output = Command::new(WEFT).args(command).arg("--help").output().unwrap();
        let help = words(&String::from_utf8(output.stdout).unwrap());
        for sentence in sentences {
            assert!(help.contains(sentence), "{command:?}: {sentence}: {help}");
        }
    }
    for (page, sentences) in [
        ("README.md", &["`weft test` runs these commands on your machine with your rights.", "`--no-commands`"][..]),
        ("SECURITY.md", &["Treat a target file like a shell script: read it before you use it.", "`--no-commands`"]),
        ("suites/suites/TARGETS.md", &["weft runs these commands with your rights.", "`--no-commands`"]),
        ("docs/ci.md", &["A target file can contain commands that weft runs on the runner", "`--no-commands`"]),
        ("docs/conformance.md", &["With `--no-commands`, weft refuses a file that contains commands."]),
    ] {
        let file = format!("{}/../{page}", env!("CARGO_MANIFEST_DIR"));
        let text = words(&std::fs::read_to_string(file).unwrap());
        for sentence in sentences {
            assert!(text.contains(sentence), "{page}: {sentence}");
        }
    }
}

#[test]
fn an_agent_token_that_everybody_can_read_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, nobody) = (tempfile::tempdir().unwrap(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let (path, address) = (folder.path().join("t.toml"), nobody.local_addr().unwrap().to_string());
    drop(nobody);
    let file = path.to_str().unwrap();
    let head =
        format!("name = \"t\"\nkind = \"tcp\"\naddress = \"{address}\"\nagent = \"{address}\"\ntime_scale = 0.1\n");
    let warning =
        format!("weft: {file}: every user of this machine can read the agent's token; run chmod 600 {file}\n");
    let token = "agent_token = \"sixteen-letters-\"\n";
    for (more, mode, warned) in [(token, 0o644, true), (token, 0o640, false), (token, 0o600, false), ("", 0o644, false)]
    {
        std::fs::write(&path, format!("{head}{more}")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        for command in [&["target", "check"][..], &["test", "--list"]] {
            let mut weft = Command::new(WEFT);
            let output = weft.args(command).arg(&path).env("WEFT_AGENT_TOKEN", "letters-sixteen-").output().unwrap();
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(text.contains(&warning), warned, "{more:?} {mode:o} {command:?}: {text}");
        }
    }
}

/// A target file names an agent on some host. weft sends the token from the environment only to the
/// host in `WEFT_AGENT_TOKEN_FOR`.
#[test]
fn a_token_goes_only_to_the_host_that_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    let text = "name = \"t\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\nagent = \"192.0.2.66:7471\"\n";
    std::fs::write(&file, text).unwrap();
    for bound_to in [None, Some("192.0.2.17")] {
        let mut weft = Command::new(WEFT);
        weft.args(["target", "check"])
            .arg(&file)
            .env("WEFT_AGENT_TOKEN", "sixteen-letters-")
            .env_remove("WEFT_AGENT_TOKEN_FOR");
        weft.envs(bound_to.map(|host| ("WEFT_AGENT_TOKEN_FOR", host)));
        let output = weft.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains("weft does not send WEFT_AGENT_TOKEN there")
                && text.contains("WEFT_AGENT_TOKEN_FOR=192.0.2.66"),
            "{text}"
        );
    }
}

/// The target accepts connections, but never sends anything. weft stops after a few queries. The
/// time-outs are reduced to a tenth, to make the test fast.
#[test]
fn a_silent_target_does_not_get_every_query() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    for service in ["echo", "sdp-echo"] {
        let (code, text) = checked(&address, &format!("service = \"{service}\"\ntime_scale = 0.1"));
        assert!(code == 3 && text.contains("its service"), "{text}");
        assert!(text.lines().count() <= 5 && text.contains("answers neither"), "{text}");
    }
}
