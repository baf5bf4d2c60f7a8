//! Reads a file that has a baseline and nothing else, such as `weft baseline write` makes.

use std::path::Path;

use serde::Deserialize;

use super::TargetError;
use super::file::{read_text, wrong_toml};
use crate::baseline::{BaselineEntry, checked, missing_fields};

/// Maximum size of the file in bytes. A run of all variants can have thousands of failures.
const MAX_FILE: u64 = 16 << 20;

/// The fields of the file. Other fields are rejected.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BaselineFile {
    #[serde(default)]
    baseline: Vec<BaselineEntry>,
}

/// Reads the `[[baseline]]` entries of a file.
///
/// # Errors
/// The file cannot be read, or its fields are wrong. The error names the field or the line.
pub fn read_baseline(path: &Path) -> Result<Vec<BaselineEntry>, TargetError> {
    let text = read_text(path, MAX_FILE)?;
    let file = path.display().to_string();
    let wrong = |message: String| TargetError::Sense { file: file.clone(), message };
    if let Some(missing) = toml::from_str(&text).ok().and_then(|table| missing_fields(&table)) {
        return Err(wrong(missing));
    }
    let fields: BaselineFile = toml::from_str(&text).map_err(|error| wrong_toml(&file, &text, &error))?;
    checked(fields.baseline).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_of_a_baseline_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known.toml");
        let entry = "[[baseline]]\ncase = \"mpa/x/one\"\noutcome = \"fail\"\nsignature = \"x\"\n";
        for (text, fault) in [
            (entry.to_owned(), "entry 1 (mpa/x/one) lacks reason"),
            (format!("{entry}reason = \" \"\n"), "mpa/x/one: expected a reason"),
            (format!("{entry}reason = \"known\"\ncause = 1\n"), "unknown field `cause`"),
            (format!("name = \"nic\"\n{entry}reason = \"known\"\n"), "unknown field `name`"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = read_baseline(&path).unwrap_err().to_string();
            assert!(error.starts_with(&path.display().to_string()) && error.contains(fault), "{error}");
        }
        std::fs::write(&path, format!("{entry}reason = \"known\"\n")).unwrap();
        assert_eq!(read_baseline(&path).unwrap()[0].reason, "known");
        std::fs::write(&path, "").unwrap();
        assert_eq!(read_baseline(&path).unwrap(), []);
    }
}
