//! `weft web`: shows the runs of a results store in a browser.

mod healthy;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_suites::store::{self, Store};
use weft_suites::targets::Target;
use weft_web::{Access, CaptureOptions, Live, Start, Tokens, WebOptions};

use crate::dashboard::{announce, explain};
use crate::exit::{BadInput, note};
use crate::results::make_folder;
use crate::suites::load;
use crate::target::resolve;
use crate::{allocator, runtime, secrets, signals};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft web                                        the runs in ./weft-report\n  \
    weft web --listen 127.0.0.1:8080 --out nic      the runs in the folder nic\n  \
    weft web --listen 0.0.0.0:7171 --token-file F   for the lab; F has lines `viewer TOKEN` and `operator TOKEN`\n  \
    weft web --out nic --targets lab/targets        let operators start runs against the targets in this folder\n  \
    weft web --store postgres://weft@db/weft        the runs of a database that `weft test --store` fills\n\n\
    `weft test ... --web ADDRESS` shows its run live. Ctrl-C stops the server.")]
pub(crate) struct Arguments {
    /// Listen on this address and port; beyond loopback, --token-file is required
    ///
    /// Port 0 takes a free port and prints it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7171")]
    listen: SocketAddr,
    /// Show the runs of this folder of `weft test --out`, or of this results.sqlite
    #[arg(long, short, value_name = "DIR", default_value = "weft-report")]
    out: PathBuf,
    /// Use this results store instead of the file in the folder of --out
    ///
    /// The URL is sqlite://PATH or postgres://USER@HOST/DATABASE. Evidence is still in the folder
    /// of --out. Set the password of PostgreSQL in PGPASSWORD, not in the URL.
    #[arg(long, value_name = "URL", env = "WEFT_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Let operators start runs against this target (name or TOML file); repeatable
    #[arg(long = "target", value_name = "TARGET")]
    targets: Vec<String>,
    /// Let operators start runs against each target file (TOML) of this folder
    #[arg(long = "targets", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Use the suites of this folder instead of the built-in ones for started runs
    #[arg(long, value_name = "DIR")]
    suites: Option<PathBuf>,
    /// Require one of the tokens in this file from each client, also on this host
    ///
    /// Its lines are `viewer TOKEN` and `operator TOKEN`.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Accept this host name from browsers, beside the addresses; repeatable
    #[arg(long = "name", value_name = "HOST", requires = "token_file")]
    names: Vec<String>,
    /// Check the dashboard at --listen and exit: 0 if it is healthy, 3 if not
    #[arg(long)]
    healthy: bool,
    /// Show the captures of this folder, to which operators can upload
    ///
    /// Without this option, the pages show only captures that cases recorded.
    #[arg(long, value_name = "DIR")]
    captures: Option<PathBuf>,
    /// Accept uploads of at most this size
    #[arg(long, value_name = "MIB", default_value_t = 256, requires = "captures",
        value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    upload_limit: u64,
}

/// Serves until it is interrupted.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.healthy {
        return Ok(healthy::run(arguments.listen));
    }
    let start = start(arguments)?;
    if let Some(folder) = arguments.captures.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(BadInput(format!("--captures {}: there is no such folder", folder.display())).into());
    }
    let (store, folder) = place(arguments, start.is_some())?;
    let tokens = match &arguments.token_file {
        Some(file) => tokens(file)?,
        None => Tokens::default(),
    };
    let access = Access { tokens, names: arguments.names.clone() };
    let captures = CaptureOptions { folder: arguments.captures.clone(), most_upload: arguments.upload_limit << 20 };
    let live = Live::default();
    runtime::take_all_descriptors();
    allocator::share_one_arena();
    let options = WebOptions { listen: arguments.listen, store, folder, access, live, start, captures };
    runtime::block_on(async {
        let stopped = signals::interrupted();
        let stopped = async { _ = stopped.await };
        weft_web::serve(options, announce, stopped).await.map_err(explain)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The URL of the store, and the folder of its runs. If runs may be started, the store may be new,
/// and weft creates the folder.
fn place(arguments: &Arguments, starts: bool) -> anyhow::Result<(String, PathBuf)> {
    let out = arguments.out.display();
    if let Some(url) = &arguments.store {
        if starts {
            make_folder(&arguments.out)?;
        } else if !arguments.out.is_dir() {
            note(&format!("there is no folder {out}: the pages show no evidence"));
        }
        // A mistake in the path must not create a new, empty store.
        let only_read = url.starts_with("sqlite:") && !url.contains('?') && !starts;
        return Ok((if only_read { format!("{url}?mode=rw") } else { url.clone() }, arguments.out.clone()));
    }
    let file = store_file(&arguments.out);
    // A user who only views captures needs no runs.
    if (starts || arguments.captures.is_some()) && !file.is_file() {
        make_folder(&arguments.out)?;
        // The folder exists now.
        return Ok((Store::url(&store_file(&arguments.out))?, arguments.out.clone()));
    } else if !file.is_file() {
        return Err(BadInput(format!("{out} has no results; run `weft test TARGET --out {out}` first")).into());
    }
    let folder = file.parent().map(ToOwned::to_owned).unwrap_or_default();
    Ok((Store::url(&file)?, folder))
}

/// The targets that an operator may start runs against; `None` without targets.
fn start(arguments: &Arguments) -> anyhow::Result<Option<Start>> {
    let mut names = arguments.targets.clone();
    if let Some(folder) = &arguments.folder {
        names.extend(files(folder).map_err(|error| BadInput(format!("{}: {error}", folder.display())))?);
    }
    let mut targets: Vec<Target> = Vec::new();
    for name in &names {
        let target = resolve(name, &[], false)?;
        if targets.iter().any(|other| other.name() == target.name()) {
            return Err(BadInput(format!("{name}: another target has the name {}, too", target.name())).into());
        }
        targets.push(target);
    }
    if arguments.folder.is_some() && targets.is_empty() {
        return Err(BadInput("--targets: there is no TOML file in this folder".to_owned()).into());
    }
    if targets.is_empty() { Ok(None) } else { Ok(Some(Start { targets, suites: load(arguments.suites.as_deref())? })) }
}

/// The TOML files of a folder, by name.
fn files(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path.display().to_string());
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn tokens(file: &Path) -> Result<Tokens, BadInput> {
    let failed = |error: &dyn std::fmt::Display| BadInput(format!("{}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    secrets::warn_if_readable(file, "the tokens").map_err(|error| failed(&error))?;
    Tokens::parse(&text).map_err(|error| failed(&error))
}

fn store_file(out: &Path) -> PathBuf {
    if out.is_dir() { out.join(store::FILE_NAME) } else { out.to_owned() }
}
