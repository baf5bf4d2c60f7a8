//! Display filters.

use weft_dissector::filter::{Filter, WantedFields};

/// Parses `data` as a display filter. If parsing fails, the error must have a message.
pub fn any_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Filter::parse(text, &mut WantedFields::default()) {
        Ok(filter) => drop(format!("{filter:?}")),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
