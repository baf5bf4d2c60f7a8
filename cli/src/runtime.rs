//! The async runtime, for the subcommands that need a runtime.

use std::future::Future;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::exit::{CommandFailure, HARNESS};

/// A listener waits this long after a failed `accept`. Usually `accept` fails because the process
/// has no free file descriptor. A descriptor becomes free only when a connection ends, so an
/// immediate retry would waste CPU time.
pub(crate) const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Raises the limit of file descriptors to the maximum. The default is often 1024, because `select`
/// cannot handle more descriptors. A relay needs two descriptors per connection.
pub(crate) fn take_all_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Ignore a failure, because the existing limit can be enough.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Maximum number of descriptors that a process needs in addition to those of its connections.
const OTHER_DESCRIPTORS: u64 = 32;

/// Raises the limit of file descriptors. Fails if the maximum is too low for this many connections,
/// each with `each` descriptors.
pub(crate) fn enough_descriptors(connections: u32, each: u64) -> anyhow::Result<()> {
    take_all_descriptors();
    let needed = u64::from(connections) * each + OTHER_DESCRIPTORS;
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if needed > most {
        let text = format!(
            "{connections} connections need {needed} file descriptors, but the limit is {most}; \
             raise it with `ulimit -n {needed}`"
        );
        return Err(CommandFailure { code: HARNESS, text }.into());
    }
    Ok(())
}

/// Time that tasks get to finish after the work is done.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs `work` on two threads. While one task computes, the other thread runs the other tasks.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(work);
    // Abandons a task that does not end, such as a script in an endless loop.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    done
}

/// Runs `work` on this thread only. Messages do not pass between threads, so round trips are short.
pub(crate) fn on_one_thread<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
