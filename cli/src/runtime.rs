//! The async runtime of the subcommands that need one.

use std::future::Future;
use std::process::ExitCode;

/// Runs `work` to its end on two threads: one for the run, one for its readers.
pub(crate) fn block_on(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(work)
}

/// Runs `work` to its end on this thread alone: nothing is handed from thread to thread, which makes round trips short.
pub(crate) fn on_one_thread(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
