//! Display filters.

use weft_dissector::filter::{Filter, Wanted};

/// Reads any text as a filter; an error must show itself.
pub fn any_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Filter::parse(text, &mut Wanted::default()) {
        Ok(filter) => drop(format!("{filter:?}")),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
