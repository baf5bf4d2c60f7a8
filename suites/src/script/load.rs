//! Loads the built-in suites, or a folder with suites.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use include_dir::{Dir, include_dir};
use mlua::Lua;

use super::combination::Combination;
use super::combine;
use super::declare::{self, DeclaredCase};
use super::{Limits, location, sandbox};
use crate::model::{CaseInfo, CaseKey, SourceLocation, Tier};

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/suites");

/// Maximum size of a script in bytes.
const MAX_SCRIPT: u64 = 1 << 20;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 8;
/// Maximum number of scripts in one folder of suites.
const MAX_SCRIPTS: usize = 10_000;

/// The reason why suites do not load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A script is wrong.
    #[error("{at}: {message}")]
    Script {
        /// The line.
        at: SourceLocation,
        /// Describes the mistake.
        message: String,
    },
    /// A folder or file cannot be read.
    #[error("cannot read {path}: {error}", path = path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// There is no case.
    #[error("{path} contains no case: expected <protocol>/<section>-<topic>.lua in it", path = .0.display())]
    Empty(PathBuf),
}

/// One script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// Path relative to the suites folder, with `/` between the parts.
    pub(crate) file: String,
    pub(crate) source: String,
}

/// A case and its script.
#[derive(Debug, Clone)]
pub(crate) struct SuiteCase {
    pub(crate) info: CaseInfo,
    pub(crate) combination: Combination,
    /// Parameters for which each value between the listed values is valid.
    pub(crate) scales: Vec<String>,
    pub(crate) script: Arc<Script>,
}

/// Loaded and checked suites. Cloning them is cheap.
#[derive(Debug, Clone)]
pub struct Suites {
    cases: Arc<Vec<SuiteCase>>,
    pub(crate) limits: Limits,
    /// The folder of the scripts. `None` for the built-in suites.
    pub(crate) folder: Option<PathBuf>,
}

impl Suites {
    /// Returns the built-in suites.
    ///
    /// # Errors
    /// A script is wrong.
    pub fn embedded() -> Result<Self, LoadError> {
        let mut scripts = Vec::new();
        collect_embedded(&EMBEDDED, &mut scripts);
        Self::from_scripts(scripts, Limits::default())
    }

    /// Loads the suites in `folder`. The scripts are `<protocol>/<section>-<topic>.lua`.
    ///
    /// # Errors
    /// A script is wrong or cannot be read, or the folder contains no case.
    pub fn from_folder(folder: &Path) -> Result<Self, LoadError> {
        Self::from_folder_with(folder, Limits::default())
    }

    /// Like [`Suites::from_folder`], with other limits for the scripts.
    ///
    /// # Errors
    /// The same as those of [`Suites::from_folder`].
    pub fn from_folder_with(folder: &Path, limits: Limits) -> Result<Self, LoadError> {
        let mut scripts = Vec::new();
        collect_folder(folder, "", 0, &mut scripts)?;
        scripts.sort_by(|a, b| a.file.cmp(&b.file));
        let suites = Suites { folder: Some(folder.to_owned()), ..Self::from_scripts(scripts, limits)? };
        if suites.cases.is_empty() { Err(LoadError::Empty(folder.to_owned())) } else { Ok(suites) }
    }

    /// Returns suites without a case.
    pub(crate) fn none() -> Self {
        Suites { cases: Arc::default(), limits: Limits::default(), folder: None }
    }

    /// Returns the only case of a generated script.
    ///
    /// # Errors
    /// The script is wrong.
    pub(crate) fn generated(file: &str, source: String) -> Result<SuiteCase, LoadError> {
        let suites = Self::from_scripts(vec![Script { file: file.to_owned(), source }], Limits::default())?;
        suites.cases.first().cloned().ok_or_else(|| LoadError::Empty(PathBuf::from(file)))
    }

    fn from_scripts(scripts: Vec<Script>, limits: Limits) -> Result<Self, LoadError> {
        let mut cases: Vec<SuiteCase> = Vec::new();
        for script in scripts {
            let script = Arc::new(script);
            let (_lua, declared) = load(&script, limits, 0)?;
            for DeclaredCase { info, combination, scales, .. } in declared {
                if let Some(other) = cases.iter().find(|other| other.info.id == info.id) {
                    let message = format!("case {} is already declared in {}", info.id, other.info.source);
                    return Err(LoadError::Script { at: info.source, message });
                }
                cases.push(SuiteCase { info, combination, scales, script: script.clone() });
            }
        }
        cases.sort_by(|a, b| a.info.id.cmp(&b.info.id));
        Ok(Suites { cases: Arc::new(cases), limits, folder: None })
    }

    /// Returns the parameters of a case for which each value between the listed values is valid.
    pub(crate) fn scales_of(&self, case: &str) -> &[String] {
        self.case(case).map_or(&[], |case| &case.scales)
    }

    /// Returns the declarations of the cases, sorted by id.
    pub fn cases(&self) -> impl ExactSizeIterator<Item = &CaseInfo> {
        self.cases.iter().map(|case| &case.info)
    }

    /// Returns every variant of every case, in the order of cases, names and values.
    pub fn keys(&self) -> impl Iterator<Item = CaseKey> {
        self.cases().flat_map(declare::variants)
    }

    /// Returns the text of the script of a case, or `None` if there is no such case.
    #[must_use]
    pub fn source_of(&self, case: &str) -> Option<&str> {
        self.case(case).map(|case| case.script.source.as_str())
    }

    /// Describes how each tier combines the parameters of a case. `None` if there is no such case.
    #[must_use]
    pub fn combination_of(&self, case: &str) -> Option<String> {
        let combination = self.case(case)?.combination;
        let word = |tier: Tier| {
            combination.of(tier).map_or_else(|| "not in this tier".into(), |strategy| strategy.to_string())
        };
        Some(Tier::ALL.map(|tier| format!("{tier}: {}", word(tier))).join(", "))
    }

    /// Returns the variants of a case that a tier runs.
    pub(crate) fn chosen(&self, case: &str, tier: Tier, seed: u64) -> Vec<CaseKey> {
        let Some(case) = self.case(case) else { return Vec::new() };
        let strategy = case.combination.of(tier);
        strategy.map_or_else(Vec::new, |strategy| combine::chosen(&case.info, strategy, seed))
    }

    pub(crate) fn case(&self, id: &str) -> Option<&SuiteCase> {
        self.cases.iter().find(|case| case.info.id == id)
    }
}

/// Loads a script into a new Lua state. The functions of the declared cases belong to this state.
pub(crate) fn load(script: &Script, limits: Limits, seed: u64) -> Result<(Lua, Vec<DeclaredCase>), LoadError> {
    let wrong = |error: &mlua::Error| {
        let (at, message) = location::of_error(error, &script.file);
        let at = at.unwrap_or_else(|| SourceLocation { file: script.file.clone(), line: 1 });
        let at = quoted_line(script, at, &message);
        LoadError::Script { at, message }
    };
    let lua = sandbox::new(&script.file, limits, seed).map_err(|error| wrong(&error))?;
    let declarations = declare::install(&lua, &script.file).map_err(|error| wrong(&error))?;
    let environment = sandbox::environment(&lua).map_err(|error| wrong(&error))?;
    let chunk = lua.load(&script.source).set_name(format!("@{}", script.file)).set_mode(mlua::chunk::ChunkMode::Text);
    chunk.set_environment(environment.clone()).exec().map_err(|error| wrong(&error))?;
    // A case cannot declare cases while it runs.
    environment.raw_set("case", mlua::Value::Nil).map_err(|error| wrong(&error))?;
    let declared = std::mem::take(&mut *declarations.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((lua, declared))
}

/// Returns the line with the text that the message quotes. Lua knows only the line where `case {`
/// begins.
fn quoted_line(script: &Script, at: SourceLocation, message: &str) -> SourceLocation {
    let first = usize::try_from(at.line.saturating_sub(1)).unwrap_or(0);
    let mut quotes = message.split(['"', '`']).skip(1).step_by(2).filter(|quoted| !quoted.is_empty());
    let line = quotes.next().and_then(|quoted| {
        let mut lines = script.source.lines().enumerate().skip(first);
        lines.find(|(_, line)| line.contains(quoted)).and_then(|(i, _)| u32::try_from(i + 1).ok())
    });
    SourceLocation { line: line.unwrap_or(at.line), ..at }
}

fn collect_embedded(folder: &Dir<'_>, scripts: &mut Vec<Script>) {
    for file in folder.files() {
        if let (Some("lua"), Some(source)) = (extension(file.path()), file.contents_utf8()) {
            scripts.push(Script { file: file.path().to_string_lossy().replace('\\', "/"), source: source.to_owned() });
        }
    }
    for folder in folder.dirs() {
        collect_embedded(folder, scripts);
    }
}

fn collect_folder(folder: &Path, prefix: &str, depth: usize, scripts: &mut Vec<Script>) -> Result<(), LoadError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |error| LoadError::Read { path, error }
    };
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && depth < MAX_DEPTH && !name.starts_with('.') {
            collect_folder(&path, &format!("{prefix}{name}/"), depth + 1, scripts)?;
        } else if extension(&path) == Some("lua") {
            let size = fs::metadata(&path).map_err(failed(&path))?.len();
            if size > MAX_SCRIPT || scripts.len() >= MAX_SCRIPTS {
                let why = format!("expected at most {MAX_SCRIPT} bytes in a script, and at most {MAX_SCRIPTS} scripts");
                return Err(LoadError::Read { path, error: std::io::Error::other(why) });
            }
            let source = fs::read_to_string(&path).map_err(failed(&path))?;
            scripts.push(Script { file: format!("{prefix}{name}"), source });
        }
    }
    Ok(())
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(source: &str) -> Result<Suites, String> {
        loaded_from("mpa/x.lua", source)
    }

    fn loaded_from(file: &str, source: &str) -> Result<Suites, String> {
        let script = Script { file: file.into(), source: source.into() };
        Suites::from_scripts(vec![script], Limits::default()).map_err(|error| error.to_string())
    }

    const GOOD: &str = r#"-- a comment
case {
  id = "mpa/x/one",
  version = 1,
  title = "A title",
  requirements = { "MPA-7.1.1-2" },
  roles = { "responder" },
  parameters = { octet = range(0, 2), crc = { true, false } },
  run = function(t, p) end,
}
"#;

    #[test]
    fn the_embedded_suites_load() {
        let suites = Suites::embedded().unwrap();
        let case = suites.case("mpa/7.1.1-key/wrong-octet").unwrap();
        assert_eq!(case.info.requirements, [weft_core::requirement!("MPA-7.1.1-2")]);
        assert_eq!(suites.keys().filter(|key| key.case == case.info.id).count(), 16);
        let line = case.script.source.lines().nth(case.info.source.line as usize - 1).unwrap();
        assert_eq!(line, "case {");
    }

    #[test]
    fn parameters_are_combined_in_a_fixed_order() {
        let keys: Vec<String> = loaded(GOOD).unwrap().keys().map(|key| key.to_string()).collect();
        assert_eq!(keys.len(), 6);
        assert_eq!(keys[0], "mpa/x/one[crc=true,octet=0]");
        assert_eq!(keys[5], "mpa/x/one[crc=false,octet=2]");
    }

    /// Each row has the correct text, the wrong text, the expected line, and a part of the expected
    /// message.
    #[test]
    fn rejects_each_mistake_with_its_line() {
        for (good, bad, line, word) in [
            ("\"MPA-7.1.1-2\"", "\"MPA-7.1.1-999\"", 6, "unknown requirement"),
            ("version = 1", "versoin = 1", 4, "no field \"versoin\""),
            ("title = \"A title\",", "title = \"A title\",\n  titel = \"x\",", 6, "no field \"titel\""),
            ("{ \"responder\" }", "{ \"respnder\" }", 7, "unknown variant"),
            ("{ \"responder\" }", "{}", 2, "roles"),
            ("mpa/x/one", "mpa/y/one", 3, "expected \"mpa/x/<name>\""),
            ("mpa/x/one", "mpa/x/", 3, "expected \"mpa/x/<name>\""),
            ("range(0, 2)", "{ 1.5 }", 2, "octet"),
            ("range(0, 2)", "{ 1, 1 }", 2, "twice"),
            ("range(0, 2)", "rnge(0, 2)", 8, "rnge"),
            ("function(t, p) end", "function(t, p) en", 10, "expected"),
            ("run = function(t, p) end", "run = 7", 2, "run"),
            ("version = 1", "version = 0", 2, "version"),
            ("version = 1", "version = 1, tier = 'smok'", 4, "unknown tier"),
            ("version = 1", "version = 1, combine = { ful = 'all' }", 4, "no field \"ful\""),
            ("version = 1", "version = 1, combine = { full = 'some' }", 2, "pairwise"),
        ] {
            let error = loaded(&GOOD.replacen(good, bad, 1)).unwrap_err();
            assert!(error.starts_with(&format!("mpa/x.lua:{line}: ")) && error.contains(word), "{bad}: {error}");
        }
    }

    #[test]
    fn a_topic_may_be_a_folder_of_files() {
        let suites = loaded_from("mpa/x/part.lua", GOOD).unwrap();
        assert_eq!(suites.case("mpa/x/one").unwrap().info.source.file, "mpa/x/part.lua");
        let error = loaded_from("mpa/y/x.lua", GOOD).unwrap_err();
        assert!(error.contains("expected \"mpa/y/<name>\""), "{error}");
    }

    #[test]
    fn an_id_is_declared_once() {
        let error = loaded(&format!("{GOOD}{GOOD}")).unwrap_err();
        assert!(error.starts_with("mpa/x.lua:12: ") && error.contains("mpa/x.lua:2"), "{error}");
    }

    #[test]
    fn rejects_an_endless_script() {
        let error = loaded("\nwhile true do end").unwrap_err();
        assert!(error.starts_with("mpa/x.lua:2: ") && error.contains("instructions"), "{error}");
    }
}
