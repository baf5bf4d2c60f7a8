//! `weft web`: shows the test runs of a results store in a browser.

mod healthy;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use weft_suites::store::{self, Store};
use weft_suites::targets::Target;
use weft_web::{Access, CaptureOptions, Live, Retention, RunSchedule, Start, Tokens, WebOptions, Webhook};

use crate::dashboard::{announce, explain};
use crate::exit::{BadInput, note, reject};
use crate::results::make_folder;
use crate::suites::load;
use crate::target::resolve;
use crate::{allocator, runtime, secrets, signals};

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "An operator is a user with an operator token, or any user if there are no tokens. Operators can\n\
    start and delete runs, and upload captures. Viewers can only read. Ctrl-C stops the server.\n\n\
    To show a single run while it is active, use `weft test ... --web ADDRESS`.\n\n\
    Examples:\n  \
    weft web                                        show the runs in ./weft-report\n  \
    weft web --listen 127.0.0.1:8080 --out nic      show the runs in the folder nic\n  \
    weft web --listen 0.0.0.0:7171 --token-file F   serve other hosts, with tokens\n  \
    weft web --out nic --targets lab/targets        let operators start runs of these targets\n  \
    weft web --store postgres://weft@db/weft        show the runs in a database"
)]
pub(crate) struct Arguments {
    /// Listen on this address and port
    ///
    /// Addresses other than loopback require --token-file. For port 0, weft uses a free port and
    /// prints it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7171")]
    listen: SocketAddr,
    /// Show the runs in a folder that `weft test` wrote, or in a results.sqlite file
    #[arg(long, short, value_name = "DIR", default_value = "weft-report")]
    out: PathBuf,
    /// Use this results store instead of the file in the folder of --out
    ///
    /// The URL is sqlite://PATH or postgres://USER@HOST/DATABASE. weft still reads the evidence
    /// files from the folder of --out. Set the password of PostgreSQL in PGPASSWORD, not in the
    /// URL.
    #[arg(long, value_name = "URL", env = "WEFT_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Let operators start runs against this target (name or TOML file); repeatable
    #[arg(long = "target", value_name = "TARGET")]
    targets: Vec<String>,
    /// Let operators start runs against each target file (TOML) of this folder
    #[arg(long = "targets", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Use the suites of this folder for started runs, instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    suites: Option<PathBuf>,
    /// Require a token of this file from all clients, also from clients on this host
    ///
    /// Each line of the file is `viewer TOKEN` or `operator TOKEN`.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Accept requests with this host name in the URL; repeatable
    ///
    /// Without this option, the URL in the browser must have an IP address or localhost.
    #[arg(long = "name", value_name = "HOST", requires = "token_file")]
    names: Vec<String>,
    /// Check a running dashboard at --listen: exit with 0 if it is healthy, 3 if not
    #[arg(long)]
    healthy: bool,
    /// Show the captures of this folder, and let operators upload captures to it
    ///
    /// Without this option, the dashboard shows only the captures of test cases.
    #[arg(long, value_name = "DIR")]
    captures: Option<PathBuf>,
    /// Accept uploads of at most this size
    #[arg(long, value_name = "MIB", default_value_t = 256, requires = "captures",
        value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    upload_limit: u64,
    /// Delete runs that started more than this number of days ago
    ///
    /// The newest run of each target stays, and the runs whose results the matrix shows. weft looks
    /// for old runs at its start and then every hour. It logs each run that it deletes.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36_500))]
    keep_age: Option<u64>,
    /// Delete the oldest runs while the files of all runs are larger than this
    ///
    /// The files are those in the folder of --out. The size of the database does not count. The
    /// same runs stay as with --keep-age.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    keep_size: Option<u64>,
    /// Post JSON to this http:// address when the verdict of a target changes
    ///
    /// The verdict of a target is passed, failed or down. All runs that finish in the results store
    /// count, also those of `weft test`. Runs that had finished when the dashboard started do not
    /// count. weft does not use TLS: for a receiver with https, run a relay on this machine that
    /// accepts http on loopback and forwards it to the receiver.
    #[arg(long, value_name = "URL")]
    webhook: Option<Webhook>,
    /// Start runs at the times in this TOML file
    ///
    /// Each table `[[run]]` has a target, and `every` (such as "6h") or `at` (such as "02:30", in
    /// UTC). It can have a tier, a list `select` of cases, and a table of labels.
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
}

/// Serves the dashboard until a signal stops it.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.healthy {
        return Ok(healthy::run(arguments.listen));
    }
    let start = start(arguments)?;
    if let Some(folder) = arguments.captures.as_ref().filter(|folder| !folder.is_dir()) {
        reject!("--captures {}: there is no such folder", folder.display());
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
    let schedule = match &arguments.schedule {
        Some(file) => schedule(file)?,
        None => RunSchedule::default(),
    };
    let webhook = arguments.webhook.clone();
    let retention = Retention {
        age: arguments.keep_age.map(|days| Duration::from_secs(days * 86_400)),
        size: arguments.keep_size.map(|mib| mib << 20),
    };
    let listen = arguments.listen;
    let options = WebOptions { listen, store, folder, access, live, start, captures, retention, schedule, webhook };
    runtime::block_on(async {
        let stopped = signals::interrupted();
        let stopped = async { _ = stopped.await };
        weft_web::serve(options, announce, stopped).await.map_err(explain)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Returns the URL of the store, and the folder of its runs. If operators are allowed to start runs
/// (`starts`), creates a missing folder, and accepts a store that does not exist yet. If the
/// command line has `--captures` but no `--store`, also creates a missing folder and accepts a
/// missing store.
fn place(arguments: &Arguments, starts: bool) -> anyhow::Result<(String, PathBuf)> {
    let out = arguments.out.display();
    if let Some(url) = &arguments.store {
        if starts {
            make_folder(&arguments.out)?;
        } else if !arguments.out.is_dir() {
            note(&format!("there is no folder {out}, so the pages show no evidence"));
        }
        // A mistake in the path must not create a new, empty store.
        let only_read = url.starts_with("sqlite:") && !url.contains('?') && !starts;
        return Ok((if only_read { format!("{url}?mode=rw") } else { url.clone() }, arguments.out.clone()));
    }
    let file = store_file(&arguments.out);
    // With --captures, a dashboard without runs is useful, too.
    if (starts || arguments.captures.is_some()) && !file.is_file() {
        make_folder(&arguments.out)?;
        // `store_file` returns another path now, because the folder exists.
        return Ok((Store::url(&store_file(&arguments.out))?, arguments.out.clone()));
    } else if !file.is_file() {
        reject!("{out} has no results; run `weft test TARGET --out {out}` first");
    }
    let folder = file.parent().map(ToOwned::to_owned).unwrap_or_default();
    Ok((Store::url(&file)?, folder))
}

/// Loads the targets for which operators can start runs. Returns `None` without targets.
fn start(arguments: &Arguments) -> anyhow::Result<Option<Start>> {
    let mut names = arguments.targets.clone();
    if let Some(folder) = &arguments.folder {
        names.extend(files(folder).map_err(|error| BadInput(format!("{}: {error}", folder.display())))?);
    }
    let mut targets: Vec<Target> = Vec::new();
    for name in &names {
        let target = resolve(name, &[], false)?;
        if targets.iter().any(|other| other.name() == target.name()) {
            reject!("{name}: another target has the name {}, too", target.name());
        }
        targets.push(target);
    }
    if arguments.folder.is_some() && targets.is_empty() {
        reject!("--targets: there is no TOML file in this folder");
    }
    if targets.is_empty() { Ok(None) } else { Ok(Some(Start { targets, suites: load(arguments.suites.as_deref())? })) }
}

/// Returns the paths of the TOML files in a folder, sorted.
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

/// Reads the times at which runs start.
fn schedule(file: &Path) -> Result<RunSchedule, BadInput> {
    let failed = |error: &dyn std::fmt::Display| BadInput(format!("{}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    text.parse::<RunSchedule>().map_err(|error| failed(&error))
}

/// Reads the tokens, and warns if all users of this machine can read the file.
fn tokens(file: &Path) -> Result<Tokens, BadInput> {
    let failed = |error: &dyn std::fmt::Display| BadInput(format!("{}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    secrets::warn_if_readable(file, "the tokens").map_err(|error| failed(&error))?;
    Tokens::parse(&text).map_err(|error| failed(&error))
}

/// Returns the path of the results store. If `out` is a folder, the store is a file in this folder.
/// Otherwise `out` itself is the store.
fn store_file(out: &Path) -> PathBuf {
    if out.is_dir() { out.join(store::FILE_NAME) } else { out.to_owned() }
}
