//! Tests that the committed JSON Schemas match the current types. `WEFT_BLESS=1 cargo test -p
//! weft-suites --test run schema` writes the schemas again.

use std::path::PathBuf;

use schemars::{JsonSchema, schema_for};
use weft_suites::model::{Event, RunReport};
use weft_suites::targets::TargetFile;

fn is_current<T: JsonSchema>(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schema").join(name);
    let mut now = serde_json::to_string_pretty(&schema_for!(T)).unwrap();
    now.push('\n');
    if std::env::var_os("WEFT_BLESS").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(committed == now, "schema/{name} is not current; see the head of this test");
}

#[test]
fn of_events() {
    is_current::<Event>("event.json");
}

#[test]
fn of_reports() {
    is_current::<RunReport>("report.json");
}

#[test]
fn of_target_files() {
    is_current::<TargetFile>("target.json");
}
