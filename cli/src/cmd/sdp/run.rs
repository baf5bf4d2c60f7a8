//! `weft sdp run`: runs a program with the preload library.

mod program;

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use self::program::warnings;
use crate::exit::{BadInput, note, reject};
use crate::linkage;

/// File name of the preload library.
const LIBRARY: &str = "libweft_preload.so";
/// The variable that names the preload library for the dynamic linker.
const PRELOAD: &str = "LD_PRELOAD";
/// The variable that names the rules file for the preload library.
const RULES: &str = "WEFT_SDP_RULES";

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Start an agent (`weft sdp agent`) first. weft, the agent and the library must have the same\n\
    version. docs/sdp.md describes the rules file.\n\n\
    weft exits with the exit code of the program, or with 2 if the program did not start.\n\n\
    Examples:\n  \
    weft sdp run --rules /etc/weft-sdp.rules nginx    run a server\n  \
    weft sdp run curl http://192.0.2.17/              run a client, with $WEFT_SDP_RULES"
)]
pub(crate) struct Arguments {
    /// Use the rules in this file to select SDP connections (default: $WEFT_SDP_RULES)
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Use this preload library (default: beside weft, or in ../lib/weft)
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Run this program with these arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Replaces this process by the program. Returns only on an error.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Some((name, rest)) = arguments.command.split_first() else {
        reject!("missing program");
    };
    let rules = match arguments.rules.clone().or_else(|| env::var_os(RULES).map(PathBuf::from)) {
        Some(rules) => absolute(&rules)?,
        None => reject!("missing rules: use --rules FILE, or set {RULES}"),
    };
    if let Err(error) = std::fs::File::open(&rules) {
        reject!("cannot read the rules in {}: {error}", rules.display());
    }
    let library = match &arguments.library {
        Some(library) => absolute(library)?,
        None => beside()?,
    };
    let program = find(name).ok_or_else(|| BadInput(format!("cannot find the program {}", name.display())))?;
    for warning in warnings(&program) {
        note(&format!("{}: {warning}", program.display()));
    }
    let error = Command::new(&program)
        .arg0(name)
        .args(rest)
        .env(RULES, rules)
        .env(PRELOAD, preloads(&library, env::var_os(PRELOAD).as_deref()))
        .exec();
    Err(BadInput(format!("cannot run {}: {error}", program.display())).into())
}

/// Makes a path absolute, because the program can change its current folder.
fn absolute(path: &Path) -> Result<PathBuf, BadInput> {
    std::path::absolute(path).map_err(|error| BadInput(format!("{}: {error}", path.display())))
}

/// Returns the new value of [`PRELOAD`]: the library, followed by the old value `others`.
fn preloads(library: &Path, others: Option<&OsStr>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// Finds the preload library of this installation.
fn beside() -> Result<PathBuf, BadInput> {
    let here = env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf)).unwrap_or_default();
    let places = [here.join(LIBRARY), here.join("../lib/weft").join(LIBRARY)];
    places.iter().find(|place| place.exists()).cloned().ok_or_else(|| {
        let hint = linkage::preload().unwrap_or("use --library FILE");
        BadInput(format!(
            "there is no {LIBRARY} in {} or {}; {hint}",
            here.display(),
            here.join("../lib/weft").display()
        ))
    })
}

/// Finds a program by its path, or by its name in $PATH.
fn find(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 || path.is_absolute() {
        return path.is_file().then(|| path.to_path_buf());
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(path)).find(|path| path.is_file())
}
