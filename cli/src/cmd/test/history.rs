//! `weft test TARGET --history CASE`: the results of a case in earlier runs.

use std::io::Write as _;
use std::process::ExitCode;

use weft_core::text::visible_in_line;
use weft_suites::store::Store;

use crate::exit::BadInput;

/// At most this many results are printed.
const MOST: u32 = 200;

/// Prints one line per result, newest first.
pub(super) async fn run(store: &Store, target: &str, case: &str) -> anyhow::Result<ExitCode> {
    let history = store.history(target, case, MOST).await?;
    if history.is_empty() {
        return Err(BadInput(format!("the store has no result of {case} on {target}")).into());
    }
    let mut out = std::io::stdout();
    for past in &history {
        let (run, key) = (visible_in_line(&past.run), past.key.to_string());
        writeln!(out, "{run:<26} {:<14} {}", past.verdict, visible_in_line(&key))?;
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}
