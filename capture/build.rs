//! Searches for libpcap in the same way as the linker. Sets the cfg `libpcap` if libpcap exists.
//!
//! The linker needs libpcap only if code uses the package pcap. Without the cfg `libpcap`, no code
//! uses this package. So weft also builds on a machine without libpcap. The build then prints a
//! warning that names the package to install.

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
        // The libpcap.a of a distribution may need libraries that have no static version. Debian's
        // libpcap.a is an example. So a static build uses only a libpcap.a in LIBPCAP_LIBDIR.
        if let Some(library) = folder.map(|folder| folder.join("libpcap.a")).filter(|library| library.exists()) {
            println!("cargo::rustc-cfg=libpcap");
            watch(&library);
        } else {
            println!(
                "cargo::warning=building weft without live capture; to include live capture in a static build, set \
                 LIBPCAP_LIBDIR to a folder with a libpcap.a that needs no other library (`dist/build static` makes this libpcap.a)"
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
        "cargo::warning=libpcap not found, building weft without live capture; to include live capture, install \
         libpcap (Debian: apt-get install libpcap-dev)"
    );
    // When the user installs libpcap, its package adds a file to this folder. Cargo then runs this
    // script again.
    if let Some(folder) = known_to_the_compiler("libc.so").as_deref().and_then(Path::parent) {
        let descriptions = folder.join("pkgconfig");
        watch(if descriptions.is_dir() { &descriptions } else { folder });
    }
}

/// Returns the path at which the C compiler, which also links, finds a library.
fn known_to_the_compiler(library: &str) -> Option<PathBuf> {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let output = Command::new(linker).arg(format!("-print-file-name={library}")).output().ok()?;
    // If the compiler does not find the library, it prints the name unchanged.
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
