//! Turns the requirement catalogues (`requirements/*.csv`) into a static table.
//!
//! The build fails if an id is duplicate, if a level or a way of observing is unknown, if a file
//! has wrong columns, or if a sentence belongs to no requirement. All of weft depends on the
//! catalogues, so a damaged catalogue must not compile.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::{env, fs, path::Path};

/// Each catalogue: the name of its file without `.csv`, and its variant of `Catalogue`.
const CATALOGUES: [(&str, &str); 9] = [
    ("mpa", "Mpa"),
    ("mpa-p2p", "MpaP2p"),
    ("ddp", "Ddp"),
    ("rdmap", "Rdmap"),
    ("sdp", "Sdp"),
    ("sdp-pm", "SdpPm"),
    ("verbs", "Verbs"),
    ("iser", "Iser"),
    ("rpcrdma", "RpcRdma"),
];
const COLUMNS: [&str; 7] = ["id", "section", "level", "role", "summary", "observe", "check"];
const CLASS_COLUMNS: [&str; 3] = ["id", "class", "reason"];
const SENTENCE_COLUMNS: [&str; 2] = ["id", "text"];

/// Returns the class of each requirement id as Rust source text. The classes are in
/// `requirements/classes/*.csv`. A catalogue may have no such file.
fn classes() -> BTreeMap<String, String> {
    let mut classes = BTreeMap::new();
    // The next line names the folder, not its files. If a named file were missing, cargo would run
    // this script again in each build.
    println!("cargo::rerun-if-changed=requirements/classes");
    for (stem, _) in CATALOGUES {
        let path = format!("requirements/classes/{stem}.csv");
        if !Path::new(&path).exists() {
            continue;
        }
        let mut reader = csv::Reader::from_path(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(
            reader.headers().expect("headers").iter().collect::<Vec<_>>(),
            CLASS_COLUMNS,
            "{path}: wrong columns"
        );
        for record in reader.records() {
            let record = record.unwrap_or_else(|e| panic!("{path}: {e}"));
            let (id, class, reason) = (&record[0], &record[1], &record[2]);
            let class = match class {
                "judgeable" => "Judgeable",
                "permission" => "Permission",
                "outside" => "Outside",
                other => panic!("{path}: {id}: unknown class {other:?}"),
            };
            assert!(
                class == "Judgeable" || !reason.is_empty(),
                "{path}: {id}: a row that is not judgeable needs a reason"
            );
            let text = format!(
                "Some(crate::requirement::Classification {{ class: crate::requirement::Class::{class}, \
                 reason: {reason:?} }})"
            );
            assert!(classes.insert(id.to_owned(), text).is_none(), "{path}: duplicate id {id}");
        }
    }
    classes
}

/// Returns the specification's own words for each requirement id. They are in
/// `requirements/sentences/*.csv`.
fn sentences() -> BTreeMap<String, String> {
    let mut sentences = BTreeMap::new();
    println!("cargo::rerun-if-changed=requirements/sentences");
    for entry in fs::read_dir("requirements/sentences").expect("requirements/sentences") {
        let path = entry.expect("a file of requirements/sentences").path();
        let mut reader = csv::Reader::from_path(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let headers: Vec<_> = reader.headers().expect("headers").iter().map(str::to_owned).collect();
        assert_eq!(headers, SENTENCE_COLUMNS, "{path:?}: wrong columns");
        for record in reader.records() {
            let record = record.unwrap_or_else(|e| panic!("{path:?}: {e}"));
            assert!(!record[1].is_empty(), "{path:?}: {}: no text", &record[0]);
            let earlier = sentences.insert(record[0].to_owned(), record[1].to_owned());
            assert!(earlier.is_none(), "{path:?}: duplicate id {}", &record[0]);
        }
    }
    sentences
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut rows = String::new();
    let mut ids = BTreeMap::new();
    let mut classes = classes();
    let mut sentences = sentences();
    for (stem, variant) in CATALOGUES {
        let path = format!("requirements/{stem}.csv");
        println!("cargo::rerun-if-changed={path}");
        let mut reader = csv::Reader::from_path(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(reader.headers().expect("headers").iter().collect::<Vec<_>>(), COLUMNS, "{path}: wrong columns");
        for record in reader.records() {
            let record = record.unwrap_or_else(|e| panic!("{path}: {e}"));
            let [id, section, level, role, summary, observe, check] = [0, 1, 2, 3, 4, 5, 6].map(|i| &record[i]);
            let level = match level {
                "MUST" => "Must",
                "MUST NOT" => "MustNot",
                "REQUIRED" => "Required",
                "must-lower" => "MustLower",
                "SHOULD" => "Should",
                "SHOULD NOT" => "ShouldNot",
                "RECOMMENDED" => "Recommended",
                "MAY" => "May",
                "OPTIONAL" => "Optional",
                other => panic!("{path}: {id}: unknown level {other:?}"),
            };
            let observe = match observe {
                "wire" => "Wire",
                "reaction" => "Reaction",
                "upper" => "Upper",
                "api" => "Api",
                "local" => "Local",
                "doc" => "Doc",
                other => panic!("{path}: {id}: unknown way of observing {other:?}"),
            };
            let ordinal = ids.len();
            let class = classes.remove(id).unwrap_or_else(|| "None".to_owned());
            let sentence = sentences.remove(id);
            assert!(ids.insert(id.to_owned(), ordinal).is_none(), "{path}: duplicate id {id}");
            writeln!(
                rows,
                "Requirement {{ id: {id:?}, catalogue: Catalogue::{variant}, section: {section:?}, level: Level::{level}, \
                 role: {role:?}, summary: {summary:?}, observe: Observe::{observe}, check: {check:?}, classified: {class}, sentence: {sentence:?} }},"
            )
            .expect("write to a string");
        }
    }
    assert!(classes.is_empty(), "requirements/classes has ids that are in no catalogue: {:?}", classes.keys());
    assert!(sentences.is_empty(), "requirements/sentences has ids that are in no catalogue: {:?}", sentences.keys());
    let by_id: String = ids.iter().map(|(id, ordinal)| format!("({id:?}, {ordinal}),\n")).collect();
    let text = format!(
        "static ROWS: [Requirement; {n}] = [\n{rows}];\n/// Sorted by id.\nstatic BY_ID: [(&str, u16); {n}] = [\n{by_id}];\n",
        n = ids.len()
    );
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("catalogue.rs"), text).expect("write the table");
}
