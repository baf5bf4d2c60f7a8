//! Tests `weft dissect -i`: usage errors, and live captures in a new network namespace. If libpcap
//! or the needed rights are missing, a test prints the reason and skips itself. `.ci/checks/live`
//! has libpcap and the rights, and also compares the output with the output of tshark.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::skip::skip;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

pub(crate) fn weft(arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = Command::new(WEFT).args(arguments).stdin(Stdio::null()).output().unwrap();
    (status.code().unwrap(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

/// Returns whether weft was built with libpcap. If it was not, checks that the commands about
/// interfaces name the package to install.
pub(crate) fn built_with_libpcap() -> bool {
    let (code, text) = weft(&["dissect", "-D"]);
    if text.contains("built without libpcap") {
        assert!(code == 4 && text.contains("apt-get install libpcap-dev"), "{text}");
        let (code, text) = weft(&["dissect", "-i", "lo"]);
        assert!(code == 4 && text.contains("apt-get install libpcap-dev"), "{text}");
        println!("built without libpcap: not tried");
        return false;
    }
    assert!(code == 0 && text.contains(". lo"), "{text}");
    true
}

#[test]
fn slips_are_reported() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/rping-crc.pcap").display().to_string();
    for (arguments, wanted) in [
        (&["dissect", &capture, "-f", "tcp"][..], "-f needs -i IF"),
        (&["lint", &capture, "-a", "packets:1"], "-a needs -i IF"),
        (&["stats", &capture, "-s", "96"], "-s needs -i IF"),
        (&["dissect", &capture, "-w", "x", "-b", "packets:1"], "-b needs -i IF and -w"),
        (&["dissect", "-i", "lo", &capture], "cannot be used with"),
        (&["dissect", "-i", "lo", "-w", "-"], "use -w FILE"),
        (&["dissect", "-i", "lo", "-a", "packets:x"], "-a packets:x: use duration:SECONDS"),
        (&["dissect", "-i", "lo", "-a", "filesize:1"], "limits the size of the files that -w writes"),
        (&["dissect", "-i", "lo", "-s", "262145"], "0..=262144"),
        (&["dissect", "-i", "lo", "-w", "x", "-a", "files:2"], "needs -w and -b"),
        // weft does not have these options of tshark.
        (&["dissect", "-i", "lo", "-i", "eth0"], "`-i any` captures on all"),
        (&["dissect", "-i", "-"], "weft dissect -"),
        (&["dissect", "-L"], "link type"),
        (&["dissect", "-i", "lo", "-y", "EN10MB"], "link type"),
        (&["dissect", "-r", &capture, "-F", "pcap"], "editcap -F"),
        (&["dissect", "-r", &capture, "-v"], "weft --version"),
    ] {
        let (code, text) = weft(arguments);
        assert!(code == 2 && text.contains(wanted), "{arguments:?}: {code} {text}");
    }
    if built_with_libpcap() {
        let (code, text) = weft(&["dissect", "-i", "weft-none0"]);
        // If the user has no right to capture, libpcap can report this before it reports the
        // missing interface.
        assert!(
            code == 2 && text.contains("there is no such interface") || code == 4 && text.contains("setcap"),
            "{text}"
        );
    }
}

/// A child process. It is killed if it still runs at the end of the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a command that runs a program in a new network namespace, in which `lo` is up. The
/// caller adds the program.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""]);
    command
}

/// Returns whether this user can create and enter a network namespace.
pub(crate) fn has_namespaces() -> bool {
    let succeeds = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    succeeds(unshare().arg("true")) && succeeds(Command::new("nsenter").arg("--version"))
}

/// Starts weft in the network namespace of the process `beside`, or in a new one if `beside` is
/// `None`.
pub(crate) fn started(beside: Option<u32>, arguments: &[&str]) -> Running {
    let mut command = match beside {
        None => unshare(),
        Some(pid) => {
            let mut command = Command::new("nsenter");
            command.args(["--preserve-credentials", "--user", "--net", "--target", &pid.to_string()]);
            command
        }
    };
    command.arg(WEFT).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(command.spawn().unwrap())
}

/// Waits for a line with `word`.
pub(crate) fn wait_for(output: &mut impl BufRead, word: &str) {
    let mut printed = String::new();
    loop {
        let start = printed.len();
        let length = output.read_line(&mut printed).unwrap();
        assert!(length > 0, "weft ended before it printed '{word}':\n{printed}");
        if printed[start..].contains(word) {
            return;
        }
    }
}

/// Starts weft as [`started`] does, and waits for a line with `word` on standard error. Returns the
/// process, and the rest of standard error.
fn running(beside: Option<u32>, arguments: &[&str], word: &str) -> (Running, BufReader<std::process::ChildStderr>) {
    let mut child = started(beside, arguments);
    let mut stderr = BufReader::new(child.0.stderr.take().unwrap());
    wait_for(&mut stderr, word);
    (child, stderr)
}

#[test]
fn what_is_seen_live_is_what_the_file_has() {
    if !built_with_libpcap() {
        return;
    }
    if !has_namespaces() {
        return skip("no network namespace for this user, or no nsenter or ip (Debian: util-linux, iproute2)");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lo.pcapng").display().to_string();
    let capture = ["dissect", "-i", "lo", "-f", "tcp port 7174", "-w", &file];
    let (mut capture, mut stderr) = running(None, &capture, "capturing on lo");
    let beside = Some(capture.0.id());
    let (mut server, _server) = running(beside, &["ping", "-s", "-d", "-a", "127.0.0.1"], "listening on");
    let (mut client, _client) = running(beside, &["ping", "-c", "-d", "-a", "127.0.0.1", "-C", "10"], "connected");
    assert!(client.0.wait().unwrap().success());
    assert!(server.0.wait().unwrap().success());
    let interrupted = Command::new("kill").args(["-INT", &capture.0.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let mut shown = String::new();
    capture.0.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(capture.0.wait().unwrap().success());
    assert!(rest.contains(" captured, 0 dropped by the kernel, 0 by the interface; "), "{rest}");
    // A round of rping has seven FPDUs: two Sends in each direction, a Read Request, its Read
    // Response, and a Write.
    let (code, counts) = weft(&["dissect", "-q", &file]);
    assert!(code == 0 && counts.contains("2 start-up frames, 70 FPDUs: CRC 70 good, 0 bad"), "{counts}");
    let (code, read) = weft(&["dissect", &file]);
    assert_eq!((code, read), (0, shown));
}

/// The responder violates RDMAP-4.1-3 in each message. The wait has no other end than the finding.
#[test]
fn a_live_wait_saves_the_complete_connection_of_the_finding() {
    if !built_with_libpcap() {
        return;
    }
    if !has_namespaces() {
        return skip("no network namespace for this user, or no nsenter or ip (Debian: util-linux, iproute2)");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fault.pcapng").display().to_string();
    let until = ["--until", "finding", "--keep", "60s", "-w", &file];
    let capture = [&["dissect", "-i", "lo", "-f", "tcp port 7174"][..], &until].concat();
    let (mut capture, _notes) = running(None, &capture, "capturing on lo");
    let beside = Some(capture.0.id());
    let serve = ["serve", "--listen", "127.0.0.1:0", "--workloads", "127.0.0.1:7174", "--deviate", "rdmap.version-0"];
    let mut server = started(beside, &serve);
    let mut printed = BufReader::new(server.0.stdout.take().unwrap());
    wait_for(&mut printed, "serving ping");
    let mut client = started(beside, &["ping", "-c", "-a", "127.0.0.1", "-C", "1"]);
    client.0.wait().unwrap();
    let mut shown = String::new();
    capture.0.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    assert_eq!(capture.0.wait().unwrap().code(), Some(1), "{shown}");
    assert!(shown.contains(" stream 0 "), "{shown}");
    let (code, findings) = weft(&["lint", &file]);
    assert!(code == 1 && findings.contains("RDMAP-4.1-3 "), "{findings}");
    // The file has the connection from its start, and no bytes are missing.
    let (_, stats) = weft(&["stats", "--json", &file]);
    assert!(stats.contains("\"frame\":\"Request\"") && !stats.contains("\"partial\":true"), "{stats}");
}
