//! These tests check the dependencies between the crates, and which source files use the operating
//! system.
//!
//! `ARCHITECTURE.md` has a table of the crates. For each crate, the table lists the crates that it
//! is allowed to use. A test compares this table with `cargo metadata`. The tests also check two
//! more rules of that page. `weft-core` and `weft-dissector` depend on no crate with sockets or an
//! async runtime. In `peer`, only `driver` uses sockets, tokio and clocks.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// For each package of this repository, the packages of this repository that it is allowed to use.
type Table = BTreeMap<String, BTreeSet<String>>;

/// The crates that only read bytes. They must not depend on sockets or an async runtime.
const PURE: [&str; 2] = ["weft-core", "weft-dissector"];
const SOCKETS_AND_RUNTIMES: [&str; 8] = ["async-std", "axum", "hyper", "mio", "pcap", "smol", "socket2", "tokio"];

/// Texts that no source file of `peer` outside `driver` is allowed to contain. They are the names
/// of sockets, of the runtime, of clocks and of random sources. A nested import such as `use
/// std::{net, time}` is also forbidden, because it would hide these names.
const IMPURE: [&str; 14] = [
    "tokio",
    "socket2",
    "std::net",
    "std::os",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::{",
    "std::{",
    "Instant::now()",
    "std::thread",
    "RandomState",
    "getrandom",
    "rand::rng",
    "random_seed()",
];

#[test]
fn no_crate_uses_one_that_the_table_forbids() {
    let broken = violations(&metadata(), &table(&architecture()));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn only_the_driver_touches_sockets_runtime_and_clock() {
    let src = root().join("peer/src");
    let mut broken = Vec::new();
    for file in rust_files(&src) {
        if !file.starts_with(src.join("driver")) {
            broken.extend(impure_lines(&file.display().to_string(), &fs::read_to_string(&file).unwrap()));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn table_is_read_from_the_page() {
    let table = table(&architecture());
    assert_eq!(table["weft-core"], set(&[]));
    assert_eq!(table["weft-dissector"], set(&["weft-core"]));
    assert_eq!(table["weft-peer"], set(&["weft-core"]));
    assert_eq!(table["weft-preload"], set(&["weft-peer"]));
    assert_eq!(table["weft-suites"], set(&["weft-agent", "weft-capture", "weft-core", "weft-dissector", "weft-peer"]));
    assert!(table["weft"].contains("weft-web"));
}

#[test]
fn forbidden_arrow_is_found_in_every_kind_of_dependency() {
    for kind in [Value::Null, json!("dev"), json!("build")] {
        let metadata = workspace(&[("weft-core", vec![]), ("weft-peer", vec![("weft-dissector", kind.clone())])]);
        let allowed = Table::from([
            ("weft-core".to_owned(), set(&[])),
            ("weft-peer".to_owned(), set(&["weft-core"])),
            ("weft-dissector".to_owned(), set(&["weft-core"])),
        ]);
        let found = violations(&metadata, &allowed);
        assert!(found.iter().any(|line| line.starts_with("weft-peer uses weft-dissector")), "{kind}: {found:?}");
    }
}

#[test]
fn arrow_under_another_name_is_found() {
    // This is the dependency `watch = { package = "weft-dissector", path = "../dissector" }`. In
    // cargo's output, `name` is the name of the package, and `rename` is `watch`.
    let mut metadata = workspace(&[("weft-peer", vec![("weft-dissector", Value::Null)]), ("weft-dissector", vec![])]);
    metadata["packages"][0]["dependencies"][0]["rename"] = json!("watch");
    let allowed = Table::from([("weft-peer".to_owned(), set(&[])), ("weft-dissector".to_owned(), set(&[]))]);
    assert_eq!(violations(&metadata, &allowed), ["weft-peer uses weft-dissector, which the table forbids"]);
}

#[test]
fn socket_in_a_pure_crate_is_found() {
    let metadata = workspace(&[("weft-core", vec![("tokio", json!("dev"))])]);
    let allowed = Table::from([("weft-core".to_owned(), set(&[]))]);
    assert_eq!(
        violations(&metadata, &allowed),
        ["weft-core depends on tokio, but must not depend on sockets or an async runtime"]
    );
}

#[test]
fn member_and_row_without_each_other_are_found() {
    let metadata = workspace(&[("weft-loom", vec![])]);
    let allowed = Table::from([("weft-core".to_owned(), set(&[]))]);
    assert_eq!(
        violations(&metadata, &allowed),
        ["weft-core has a row in the table, but is no member", "weft-loom has no row in the table"]
    );
}

#[test]
fn allowed_arrows_and_other_peoples_crates_pass() {
    let metadata = workspace(&[
        ("weft-core", vec![("zerocopy", Value::Null)]),
        ("weft-peer", vec![("weft-core", Value::Null), ("tokio", Value::Null), ("weft-core", json!("dev"))]),
    ]);
    let allowed = Table::from([("weft-core".to_owned(), set(&[])), ("weft-peer".to_owned(), set(&["weft-core"]))]);
    assert_eq!(violations(&metadata, &allowed), [""; 0]);
}

#[test]
fn impure_line_is_found_and_a_comment_is_not() {
    let text = "//! Never std::net here.\nuse core::time::Duration;\n    let now = std::time::Instant; // why\n";
    assert_eq!(impure_lines("x.rs", text), ["x.rs:3: std::time::Instant is outside peer/src/driver"]);
    for line in [
        "use std::time::{Duration, Instant};",
        "use std::{fmt, net::TcpStream};",
        "RandomState::new()",
        "Instant::now()",
    ] {
        assert!(!impure_lines("x.rs", line).is_empty(), "{line}");
    }
}

/// Compares the packages with `table`. Returns a sorted list of messages: one for each forbidden
/// dependency, one for each row without a package, and one for each package without a row.
fn violations(metadata: &Value, table: &Table) -> Vec<String> {
    let packages = metadata["packages"].as_array().unwrap();
    let members: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    let mut found = BTreeSet::new();
    for row in table.keys().filter(|row| !members.contains(row.as_str())) {
        found.insert(format!("{row} has a row in the table, but is no member"));
    }
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let Some(allowed) = table.get(name) else {
            found.insert(format!("{name} has no row in the table"));
            continue;
        };
        // This list has the normal dependencies, the dev-dependencies and the build-dependencies of
        // all targets. It also has the optional dependencies.
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let ours = members.contains(used) || table.contains_key(used);
            if ours && used != name && !allowed.contains(used) {
                found.insert(format!("{name} uses {used}, which the table forbids"));
            }
            if PURE.contains(&name) && SOCKETS_AND_RUNTIMES.contains(&used) {
                found.insert(format!("{name} depends on {used}, but must not depend on sockets or an async runtime"));
            }
        }
    }
    found.into_iter().collect()
}

/// Reads the table in the section "Code map". Its columns are folder, package, content and allowed
/// packages.
fn table(page: &str) -> Table {
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<(String, String, Vec<String>)> = page
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
            let [folder, package, _what, may_use] = cells.as_slice() else { return None };
            Some((quoted(folder).pop()?, quoted(package).pop()?, quoted(may_use)))
        })
        .collect();
    let package_of: BTreeMap<&str, &str> = rows.iter().map(|(folder, package, _)| (&**folder, &**package)).collect();
    rows.iter()
        .map(|(_, package, may_use)| {
            (package.clone(), may_use.iter().map(|folder| package_of[folder.as_str()].to_owned()).collect())
        })
        .collect()
}

/// Returns the lines of a source file of `peer` that use the operating system. Comments do not
/// count.
fn impure_lines(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for word in IMPURE.iter().filter(|word| code.contains(**word)) {
            found.push(format!("{name}:{}: {word} is outside peer/src/driver", number + 1));
        }
    }
    found
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Makes the output of `cargo metadata` for an invented workspace. `packages` has the packages and
/// their dependencies, each dependency with its kind.
fn workspace(packages: &[(&str, Vec<(&str, Value)>)]) -> Value {
    let package = |(name, dependencies): &(&str, Vec<(&str, Value)>)| {
        let dependencies: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({ "name": name, "kind": kind, "rename": null })).collect();
        json!({ "name": name, "dependencies": dependencies })
    };
    json!({ "packages": packages.iter().map(package).collect::<Vec<_>>() })
}
