//! The labels of a run: names and values that its user chooses, such as `firmware=2.1`.

use std::collections::BTreeMap;

/// The labels of a run, by name.
pub type Labels = BTreeMap<String, String>;

/// Maximum number of characters in the name of a label.
const MAX_NAME: usize = 60;
/// Maximum number of characters in the value of a label.
const MAX_VALUE: usize = 200;

/// Parses a label with the form `KEY=VALUE`.
///
/// # Errors
/// The text has no `=`. Or the name has other characters than letters, digits, `.`, `_` and `-`, or
/// not 1 to 60 of them. Or the value has not 1 to 200 characters, or has a control character.
pub fn parse_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as firmware=2.1")?;
    match label_fault(name, value) {
        Some(fault) => Err(fault),
        None => Ok((name.to_owned(), value.to_owned())),
    }
}

/// Returns why a label is not allowed, if it is not. A name has 1 to 60 letters, digits, `.`, `_`
/// and `-`. A value has 1 to 200 characters without control characters.
pub(crate) fn label_fault(name: &str, value: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !(1..=MAX_NAME).contains(&name.len()) || !name.chars().all(is_allowed) {
        return Some(format!("{name:?}: expected a name of 1 to {MAX_NAME} letters, digits, '.', '_' and '-'"));
    }
    let fits = (1..=MAX_VALUE).contains(&value.chars().count()) && !value.chars().any(char::is_control);
    (!fits).then(|| format!("{name}: expected a value of 1 to {MAX_VALUE} characters without control characters"))
}

/// Returns the labels as text, `driver=6.8, firmware=2.1`.
pub(crate) fn labels_text(labels: &Labels) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_a_name_and_a_value() {
        assert_eq!(parse_label("firmware=2.1=b").unwrap(), ("firmware".to_owned(), "2.1=b".to_owned()));
        let (long_name, long_value) = (format!("{}=x", "n".repeat(61)), format!("x={}", "v".repeat(201)));
        for wrong in ["", "firmware", "=2.1", "firm ware=2.1", "firmware=", "a=\u{1b}[2J", &long_name, &long_value] {
            assert!(parse_label(wrong).is_err(), "{wrong}");
        }
    }
}
