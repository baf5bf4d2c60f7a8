//! `weft suite history`: prints the results of a case in earlier runs.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use weft_core::text::visible_in_line;
use weft_suites::store::Store;

use crate::exit::reject;
use crate::results::open_store;
use crate::runtime;
use crate::target::resolve;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft suite history nic.toml mpa/7.1.1-key/wrong-octet --out nic    all variants of the case\n  \
    weft suite history nic.toml 'mpa/7.1.1-key/wrong-octet[octet=3]'   one variant of the case")]
pub(crate) struct Arguments {
    /// Print the results of this target: builtin, another builtin name, or a TOML file
    #[arg(value_name = "TARGET")]
    target: String,
    /// Print the results of this case, or of the variant CASE[parameter=value]
    #[arg(value_name = "CASE")]
    case: String,
    /// Read the results store in this folder, which `weft test` wrote
    #[arg(long, short, value_name = "DIR", default_value = "weft-report")]
    out: PathBuf,
    /// Use this results store instead of the file in the folder of --out
    ///
    /// The URL is sqlite://PATH or postgres://USER@HOST/DATABASE. Set the password of PostgreSQL in
    /// PGPASSWORD, not in the URL.
    #[arg(long, value_name = "URL", env = "WEFT_STORE", hide_env_values = true)]
    store: Option<String>,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let target = resolve(&arguments.target, &[], false)?;
    runtime::block_on(async {
        let store = open_store(arguments.store.as_deref(), &arguments.out).await?;
        print(&store, target.name(), &arguments.case).await
    })
}

/// Maximum number of results that are printed.
const MAX_RESULTS: u32 = 200;

/// Prints one line per result, newest first.
pub(crate) async fn print(store: &Store, target: &str, case: &str) -> anyhow::Result<ExitCode> {
    let history = store.history(target, case, MAX_RESULTS).await?;
    if history.is_empty() {
        reject!("the store has no result of {case} on {target}");
    }
    let mut out = std::io::stdout();
    for past in &history {
        let (run, key) = (visible_in_line(&past.run), past.key.to_string());
        writeln!(out, "{run:<26} {:<14} {}", past.verdict, visible_in_line(&key))?;
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}
