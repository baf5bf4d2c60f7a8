//! The command that runs a variant of a case again.

use crate::model::{CaseKey, RunInfo};
use crate::targets::Target;

/// The placeholder for the target file, if the run did not record the path of its file.
const UNKNOWN_FILE: &str = "TARGET.toml";
/// Begin of the suffix of a target's name, in a run with `--markers`.
const MARKERS: &str = "+markers";

/// Returns the command that runs the variant `key` again, with the same seed.
pub(super) fn command(run: &RunInfo, key: &CaseKey) -> String {
    let target = &run.target;
    let (name, directions) = match target.name.split_once(MARKERS) {
        Some((name, directions)) => (name, Some(directions.trim_start_matches('-'))),
        None => (target.name.as_str(), None),
    };
    let mut words = vec!["weft test".to_owned()];
    match &target.file {
        // The file has the deviations.
        Some(file) => words.push(quoted(file)),
        None if Target::is_builtin_name(name) => {
            words.push(name.to_owned());
            words.extend(target.deviations.iter().map(|name| format!("--deviate {name}")));
        }
        None => words.push(UNKNOWN_FILE.to_owned()),
    }
    if let Some(directions) = directions {
        words.push(format!("--markers {}", if directions.is_empty() { "both" } else { directions }));
    }
    if let Some(folder) = &run.suites {
        words.push(format!("--suites {}", quoted(folder)));
    }
    words.push(format!("'{key}' --seed {}", run.seed));
    words.join(" ")
}

/// Returns a path as a word of a shell command.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | '@');
    match !path.is_empty() && path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn run(target: &Target) -> RunInfo {
        RunInfo {
            id: "1".into(),
            target: target.info(),
            seed: 7,
            started_unix_ms: 0,
            weft_version: "0".into(),
            is_selection: true,
            rerun_of: None,
            suites: None,
            labels: BTreeMap::new(),
        }
    }

    #[test]
    fn a_builtin_target_keeps_its_deviations_and_markers() {
        let key = CaseKey::new("mpa/7.1.1-key/wrong-octet");
        let target = Target::builtin().with_deviations(["mpa.accepts-wrong-key"]).unwrap();
        let command_of = |target: &Target| command(&run(target), &key);
        assert_eq!(
            command_of(&target),
            "weft test builtin --deviate mpa.accepts-wrong-key 'mpa/7.1.1-key/wrong-octet' --seed 7"
        );
        let target = target.with_markers(crate::targets::MarkerDirections::ToTarget).unwrap();
        assert!(command_of(&target).contains("builtin --deviate mpa.accepts-wrong-key --markers to-target 'mpa/"));
    }

    #[test]
    fn a_target_file_is_named_by_its_path() {
        let mut run = run(&Target::builtin());
        run.target.name = "nic".into();
        run.suites = Some("my-suites".into());
        let key = CaseKey::new("mpa/x/one");
        assert_eq!(command(&run, &key), "weft test TARGET.toml --suites my-suites 'mpa/x/one' --seed 7");
        run.target.file = Some("lab/the nic's.toml".into());
        run.suites = None;
        assert_eq!(command(&run, &key), r"weft test 'lab/the nic'\''s.toml' 'mpa/x/one' --seed 7");
    }
}
