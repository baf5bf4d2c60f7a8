//! Tests the page `docs/filters.md`. Every filter on the page must be valid, and the page must list
//! exactly the field names that weft knows.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::path::Path;

use weft_dissector::filter::{Filter, WantedFields, known};

/// Returns the lines of the code blocks with the language `kind` on the page.
fn blocks(kind: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/filters.md");
    let text = std::fs::read_to_string(page).unwrap();
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(opened) = line.strip_prefix("```") {
            inside = !inside && opened == kind;
        } else if inside {
            lines.push(line.to_owned());
        }
    }
    lines
}

#[test]
fn every_filter_is_read() {
    let filters: Vec<String> = blocks("filter").into_iter().filter(|line| !line.starts_with('#')).collect();
    assert!(filters.len() > 20, "{filters:?}");
    for filter in filters {
        if let Err(error) = Filter::parse(&filter, &mut WantedFields::default()) {
            panic!("{error}\n{}", error.pointed(&filter));
        }
    }
}

#[test]
fn every_name_is_listed() {
    let lines = blocks("fields");
    let listed: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    let known: Vec<&str> = known::all().iter().map(|known| known.name).collect();
    assert_eq!(listed, known);
}
