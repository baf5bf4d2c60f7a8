//! `weft agent` on a host without libraries or device: one line that says what to do, exit code 2. What it does with a device is
//! `interop/siw/agent`'s to check.
#![allow(clippy::unwrap_used, reason = "a helper of a test may stop it")]

use std::path::Path;
use std::process::Command;

fn weft(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).env_remove("WEFT_AGENT_TOKEN").output().unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn without_a_device_one_line_says_what_to_do() {
    if Path::new("/sys/class/infiniband").exists() {
        println!("skipped: this host has RDMA devices");
        return;
    }
    for arguments in [&["agent", "--report"][..], &["agent"], &["agent", "--stdio"]] {
        let (code, out, told) = weft(arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains("apt install ibverbs-providers") || told.contains("modprobe siw"), "{told}");
    }
}

#[test]
fn beyond_loopback_a_token_is_asked_for() {
    for arguments in [&["agent", "--listen", "0.0.0.0:0"][..], &["agent", "--listen", "[::]:0", "--token", ""]] {
        let (code, _, told) = weft(arguments);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains("WEFT_AGENT_TOKEN"), "{told}");
    }
}
