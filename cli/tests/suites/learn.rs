//! Tests `weft learn` with weft's own endpoint, and with targets that cannot be learned.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `weft learn` in `folder`. Returns the exit code and the output.
fn learn(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_weft")).arg("learn").args(arguments).current_dir(folder).output().unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn machine(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// Returns the output of the last input, and whether the connection has then ended.
fn output(machine: &Value, inputs: &[&str]) -> String {
    let names: Vec<&str> = machine["inputs"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let (mut state, mut last) = (0, String::new());
    for input in inputs {
        let place = names.iter().position(|name| name == input).unwrap();
        let transition = &machine["states"][state]["transitions"][place];
        last = transition["output"].as_str().unwrap().to_owned();
        state = usize::try_from(transition["to"].as_u64().unwrap()).unwrap();
    }
    last
}

#[test]
fn learns_the_start_up_of_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = learn(folder.path(), &["builtin", "--seed", "7", "--tests", "150"]);
    // On a slow machine, weft shows its progress.
    let is_progress = |line: &str| line.starts_with("weft: ") && line.ends_with(" in agreement");
    assert!(code == 0 && stderr.lines().all(is_progress), "{code} {stdout}{stderr}");
    assert!(
        stdout.contains("state 0, at the beginning") && stdout.contains("learned builtin with seed 7: "),
        "{stdout}"
    );
    let learned = machine(folder.path(), "weft-learn/builtin.machine.json");
    for (inputs, expected) in [
        (&["request"][..], "Reply Rev 1 C"),
        (&["request", "send"], "Send of 4 bytes"),
        (&["request", "send", "fin"], "close"),
        (&["request-wrong-key"], "close"),
        (&["request", "send", "send-wrong-crc"], "Terminate 2002 0000 (4 bytes), close"),
        // A Responder must not send an FPDU before it has received one (MPA-7.1.2-17).
        (&["request", "send-wrong-crc"], "close"),
        // The ready-to-receive message is not for the user, and the next Send is.
        (&["request-peer-to-peer-send", "send-of-0-bytes"], "-"),
        (&["request-peer-to-peer-send", "send-of-0-bytes", "send"], "Send of 4 bytes"),
        (&["request", "terminate", "send"], "ended"),
    ] {
        assert_eq!(output(&learned, inputs), expected, "{inputs:?}");
    }
    let dot = fs::read_to_string(folder.path().join("weft-learn/builtin.dot")).unwrap();
    assert!(dot.starts_with("digraph \"builtin\" {") && dot.contains("doublecircle"), "{dot}");
    assert!(!folder.path().join("weft-learn/.weft-sequence").exists());
    // Another seed and fewer inputs find the same behaviour.
    let inputs = "request,request-wrong-key,send,send-wrong-crc,fin,terminate";
    let again = ["builtin", "--seed", "8", "--tests", "50", "--inputs", inputs, "--out", "again"];
    assert_eq!(learn(folder.path(), &again).0, 0);
    let files = ["weft-learn/builtin.machine.json", "again/builtin.machine.json"];
    let (code, stdout, _) = learn(folder.path(), &[&["--diff"][..], &files].concat());
    assert!(
        code == 0 && stdout.contains("do not differ in any sequence that was played: 7 states with 6 inputs in common"),
        "{code} {stdout}"
    );
}

#[test]
fn a_difference_is_a_case_that_names_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let diff = ["--diff", "builtin", "builtin", "--deviate", "mpa.accepts-any-revision", "--seed", "1"];
    let few = ["--tests", "10", "--inputs", "request,request-revision-0,send,fin"];
    let (code, stdout, stderr) = learn(folder.path(), &[&diff[..], &few].concat());
    assert_eq!((code, stderr.as_str()), (1, ""), "{stdout}");
    let expected =
        "builtin (A) and builtin (B) differ\n\nafter request-revision-0\n  builtin (A)  close\n  builtin (B)  Reply";
    assert!(stdout.starts_with(expected), "{stdout}");
    let run = |case: &str, deviations: &[&str]| {
        let arguments = [&["test", "builtin", "--suites", "weft-learn", case], deviations].concat();
        let run = Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).current_dir(folder.path()).output().unwrap();
        (run.status.code().unwrap(), String::from_utf8(run.stdout).unwrap())
    };
    let (like_a, like_b) = ("learn/difference/like-a", "learn/difference/like-b");
    let (code, stdout) = run(like_a, &[]);
    assert!(code == 0 && stdout.contains("1 case: 1 pass"), "{code} {stdout}");
    let (code, stdout) = run(like_b, &[]);
    let sentence = "The target behaves like builtin (A). Its last output is: close";
    assert!(code == 3 && stdout.contains(sentence), "{code} {stdout}");
    let accepts = ["--deviate", "mpa.accepts-any-revision"];
    let (_, stdout) = run(like_a, &accepts);
    assert!(stdout.contains("The target behaves like builtin (B)."), "{stdout}");
    // The monitor also observes the violation of the target.
    let (_, stdout) = run(like_b, &accepts);
    assert!(stdout.contains("1 case: 1 pass"), "{stdout}");
}

/// The deviations change the answer to a start-up frame, a later state, or the opening of an
/// initiator. `.ci/checks/learn` tries all deviations in the start-up.
#[test]
fn deviations_change_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    for (target, deviation, after) in [
        ("builtin", "mpa.frame-reserved-bits", "request\n"),
        ("builtin", "mpa.never-times-out-startup", "wait\n"),
        ("builtin-initiator", "p2p.opens-twice", "reply\n"),
        ("builtin-initiator", "mpa.accepts-wrong-reply-key", "reply-wrong-key\n"),
    ] {
        let inputs = match target {
            "builtin" => "request,half-request,send,wait",
            _ => "reply,reply-wrong-key,send,fin",
        };
        let diff = ["--diff", target, target, "--deviate", deviation, "--seed", "1", "--tests", "10"];
        let (code, stdout, stderr) = learn(folder.path(), &[&diff[..], &["--inputs", inputs]].concat());
        assert!(code == 1 && stdout.contains(&format!("differ\n\nafter {after}")), "{deviation}: {stdout}{stderr}");
    }
}

/// This target accepts only every second connection. So a repeated sequence always agrees with the
/// first time.
#[test]
fn a_target_with_different_answers_is_not_learned() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 20];
            if stream.read_exact(&mut request).is_ok() && number.is_multiple_of(2) {
                // The tester may already have reset the connection.
                let _ = stream.write_all(b"MPA ID Rep Frame\x40\x01\0\0");
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let target = format!("name = \"odd\"\nkind = \"tcp\"\naddress = \"{address}\"\nservice = \"echo\"\n");
    fs::write(folder.path().join("odd.toml"), target).unwrap();
    let arguments = ["odd.toml", "--inputs", "request,request-without-crc,fin", "--silence", "50"];
    let (code, _, stderr) = learn(folder.path(), &arguments);
    assert_eq!(code, 3, "{stderr}");
    assert!(
        stderr.contains("does not always answer in the same way: after [") && stderr.contains("--silence"),
        "{stderr}"
    );
}

/// This target sends its Reply after 150 ms.
#[test]
fn a_target_that_answers_after_the_silence_is_not_learned() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut request = [0; 20];
                if stream.read_exact(&mut request).is_ok() {
                    std::thread::sleep(std::time::Duration::from_millis(150));
                    // The tester may already have reset the connection.
                    let _ = stream.write_all(b"MPA ID Rep Frame\x40\x01\0\0");
                }
            });
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let target = format!("name = \"slow\"\nkind = \"tcp\"\naddress = \"{address}\"\nservice = \"echo\"\n");
    fs::write(folder.path().join("slow.toml"), target).unwrap();
    let (code, _, stderr) = learn(folder.path(), &["slow.toml", "--inputs", "request,fin", "--silence", "50"]);
    assert!(
        code == 3 && stderr.contains("answers `request` after more than 50 ms; use a longer --silence, such as 200"),
        "{stderr}"
    );
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("broken.json", "{}");
    write("sdp.toml", "name = \"s\"\nkind = \"tcp\"\naddress = \"127.0.0.1:9\"\nservice = \"sdp-echo\"\n");
    for (arguments, code, text) in [
        (&["builtin", "--inputs", "requst"][..], 2, "requst is not an input; `weft learn --list` lists the inputs"),
        (&["builtin", "--inputs", "reply"], 2, "the options select no input for this target"),
        (&["sdp.toml"], 2, "s has the service sdp-echo; weft learn needs a target with MPA start-up"),
        (&["--diff", "broken.json", "builtin"], 2, "broken.json is not a state machine that `weft learn` wrote"),
        (&["broken.json"], 2, "broken.json is a state machine, not a target; to compare state machines, use --diff"),
        (&["--diff", "missing.json", "builtin"], 2, "cannot read missing.json: "),
        (&["builtin", "--states", "2", "--inputs", "request,send,fin"], 3, "the target has more than 2 states"),
        (&[], 2, "required"),
    ] {
        let (found, _, stderr) = learn(folder.path(), arguments);
        assert!(found == code && stderr.contains(text), "{arguments:?}: {found} {stderr}");
    }
    let (code, stdout, _) = learn(folder.path(), &["--list"]);
    assert!(code == 0 && stdout.contains("request-wrong-key") && stdout.contains("reply-no-kind"), "{stdout}");
}
