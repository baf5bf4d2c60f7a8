//! Loads the suites that a command line names.

use std::path::Path;

use weft_suites::script::Suites;

use crate::exit::{BadInput, reject};

/// Loads the suites of a folder. Without a folder, loads the built-in suites.
pub(crate) fn load(folder: Option<&Path>) -> anyhow::Result<Suites> {
    let loaded = match folder {
        Some(folder) if !folder.is_dir() => {
            reject!(
                "{}: there is no such folder of scripts; omit --suites to use the built-in suites",
                folder.display()
            );
        }
        Some(folder) => Suites::from_folder(folder),
        None => Suites::embedded(),
    };
    loaded.map_err(|error| BadInput(error.to_string()).into())
}
