//! The async runtime of the subcommands that need one.

use std::future::Future;
use std::process::ExitCode;

/// Ends when somebody wants the process to end: Ctrl-C, or SIGTERM as a CI system sends it. Never, where neither can be heard.
pub(crate) async fn interrupted() {
    let terminated = async {
        #[cfg(unix)]
        if let Ok(mut signals) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            && signals.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    };
    let typed = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = terminated => {}
        () = typed => {}
    }
}

/// Runs `work` to its end on two threads: one for the run, one for its readers.
pub(crate) fn block_on(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(work)
}

/// Runs `work` to its end on this thread alone: nothing is handed from thread to thread, which makes round trips short.
pub(crate) fn on_one_thread(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
