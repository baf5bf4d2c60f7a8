//! Tests the tester's own TCP (`[wire]` in a target file) against the TCP of the kernel, through a
//! pair of interfaces in new network namespaces. If a needed right or program is missing, a test
//! prints the reason and skips itself.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weft_dissector::source::Capture;

use crate::between::can_bridge;

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

/// A script that runs in a new user and network namespace. Its arguments are WEFT, FOLDER, the
/// address of the responder, and the cases. It makes one more network namespace with a responder. The
/// tester's side of the pair of interfaces has no address.
const TESTED: &str = r#"
set -eu
weft=$1 folder=$2 target=$3
shift 3
unshare --net sleep 300 >/dev/null 2>&1 & far=$!
started=$far
trap 'kill $started 2>/dev/null || true' EXIT
until [ "$(readlink /proc/$far/ns/net 2>/dev/null)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add near0 type veth peer name far0
ip link set near0 up
ip link set far0 netns $far
within() { nsenter --net=/proc/$far/ns/net "$@"; }
within ip address add 10.9.0.2/24 dev far0
within ip -6 address add fd00:9::2/64 dev far0 nodad || echo "no IPv6"
within ip link set far0 up
# A function in the background is a shell of its own: to kill it does not end the responder.
nsenter --net=/proc/$far/ns/net "$weft" serve --listen "$target" >"$folder/server" 2>&1 & started="$started $!"
until grep -q listening "$folder/server"; do kill -0 $! || { cat "$folder/server"; exit 9; }; sleep 0.01; done
status=0
"$weft" test "$folder/target.toml" --tier smoke --seed 1 --out "$folder/run" "$@" || status=$?
echo "status: $status"
"#;

/// Runs `weft test` with the tester's own TCP. Returns the output.
fn tested(folder: &Path, (target, own): (&str, &str), more: &str, cases: &[&str]) -> String {
    let text = format!(
        "name = \"far\"\nkind = \"tcp\"\naddress = \"{target}\"\nrole = \"responder\"\nservice = \"echo\"\n\
         capabilities = [\"crc\", \"revision-1\", \"revision-2\", \"markers\"]\n{more}\n\
         [wire]\ninterface = \"near0\"\naddress = \"{own}\"\n"
    );
    fs::write(folder.join("target.toml"), text).unwrap();
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--kill-child", "sh", "-c", TESTED, "sh", WEFT])
        .arg(folder)
        .arg(target)
        .args(cases)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_cases_of_mpa_pass_over_the_testers_own_tcp() {
    if !can_bridge() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = tested(folder.path(), ("10.9.0.2:7174", "10.9.0.9/24"), "", &["mpa"]);
    assert!(text.contains("status: 0"), "{text}");
    let report: Value = serde_json::from_slice(&fs::read(folder.path().join("run/report.json")).unwrap()).unwrap();
    assert!(report.to_string().contains("with the tester's own TCP at 10.9.0.9 on near0"), "{report}");
}

#[test]
fn the_testers_own_tcp_uses_ipv6() {
    if !can_bridge() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = tested(folder.path(), ("[fd00:9::2]:7174", "fd00:9::9/64"), "", &["mpa/7.1.1-key"]);
    if text.contains("no IPv6") {
        println!("this machine has no IPv6: not tried");
        return;
    }
    assert!(text.contains("status: 0"), "{text}");
}

#[test]
fn the_evidence_has_the_captured_frames() {
    if !can_bridge() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let addresses = ("10.9.0.2:7174", "10.9.0.9/24");
    let text = tested(folder.path(), addresses, "capture = \"near0\"", &["mpa/7.1.1-key"]);
    assert!(text.contains("status: 0"), "{text}");
    let mut captures = Vec::new();
    find(&folder.path().join("run/cases"), &mut captures);
    assert!(!captures.is_empty(), "{text}");
    for path in captures {
        let mut capture = Capture::open(&path).unwrap();
        let frame = capture.next_frame().unwrap();
        // The tester's Ethernet address: 02:57 and the four bytes of its IPv4 address. It is the
        // source of the SYN.
        assert_eq!(frame.octets.get(6..12), Some(&[0x02, 0x57, 10, 9, 0, 9][..]), "{}", path.display());
    }
}

/// Collects the captures of all cases.
fn find(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, found);
        } else if path.file_name().is_some_and(|name| name == "evidence.pcapng") {
            found.push(path);
        }
    }
}
