//! Tests `interop/siw/run-siw-guest build`. Scripts replace the commands that fetch and compile. If
//! the driver does not compile, the command makes no image.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The commands, each with the script that replaces it.
const FAKES: [(&str, &str); 8] = [
    ("id", "echo 0"),
    ("apt-cache", "printf 'Depends: linux-image-6.1.0-1-amd64\\nVersion: 1\\n'"),
    ("apt-get", ": >linux-image-6.1.0-1-amd64_1.deb"),
    (
        "dpkg",
        "mkdir -p \"$3/usr/src/linux-headers-6.1.0-1-amd64\"; : >\"$3/usr/src/linux-headers-6.1.0-1-amd64/Makefile\"",
    ),
    ("tar", "mkdir -p \"$2/$5\"; : >\"$2/$5/siw_main.c\"; : >\"$2/$5/siw_cm.c\"; : >\"$2/$5/siw.h\""),
    ("make", "echo 'siw_main.c: error' >&2; exit 2"),
    ("qemu-system-x86_64", ":"),
    ("ldconfig", "echo libelf.so.1"),
];

#[test]
fn a_driver_that_does_not_compile_makes_no_image() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, body: &str| {
        let file = folder.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    FAKES.iter().for_each(|(name, body)| put(name, body));
    for name in ["cpio", "gcc-12", "xz", "depmod", "strip", "flock"] {
        put(name, ":");
    }
    let cache = folder.path().join("cache");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interop/siw/run-siw-guest");
    let output = Command::new(script)
        .arg("build")
        .env("PATH", format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap()))
        .env("SIW_LAB_CACHE", &cache)
        .env("SIW_LAB_NO_APT", "1")
        .output()
        .unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!output.status.success(), "{printed}");
    assert!(printed.contains("variant stock does not compile") && !printed.contains("image built"), "{printed}");
}
