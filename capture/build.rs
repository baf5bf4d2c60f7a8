//! Looks for libpcap where the linker will, and sets `libpcap` when it is there.
//!
//! The package pcap is linked only by code that names it (an unused dependency brings no `-lpcap`),
//! so a machine without libpcap builds too, with a warning that names what to install.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(libpcap)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LIBPCAP_LIBDIR");
    if env::var_os("CARGO_FEATURE_LIVE").is_none() {
        return;
    }
    let folder = env::var_os("LIBPCAP_LIBDIR").map(PathBuf::from);
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if features.split(',').any(|feature| feature == "crt-static") {
        // An archive of a distribution may need libraries that have no static form, as Debian's
        // does.
        if let Some(library) = folder.map(|folder| folder.join("libpcap.a")).filter(|library| library.exists()) {
            println!("cargo::rustc-cfg=libpcap");
            watch(&library);
        } else {
            println!(
                "cargo::warning=building without live capture: a static build needs LIBPCAP_LIBDIR, a folder with a \
                 libpcap.a that needs no other library (dist/build static makes one)"
            );
        }
        return;
    }
    let own = folder.map(|folder| folder.join("libpcap.so"));
    if let Some(library) = own.filter(|library| library.exists()).or_else(|| known_to_the_compiler("libpcap.so")) {
        println!("cargo::rustc-cfg=libpcap");
        watch(&library);
        return;
    }
    println!(
        "cargo::warning=libpcap is not there: building without live capture (Debian: apt-get install libpcap-dev)"
    );
    // Where its package will put something.
    if let Some(folder) = known_to_the_compiler("libc.so").as_deref().and_then(Path::parent) {
        let descriptions = folder.join("pkgconfig");
        watch(if descriptions.is_dir() { &descriptions } else { folder });
    }
}

/// The path of a library, as the C compiler that links knows it.
fn known_to_the_compiler(library: &str) -> Option<PathBuf> {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let output = Command::new(linker).arg(format!("-print-file-name={library}")).output().ok()?;
    // A name that it does not know comes back as it is.
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
