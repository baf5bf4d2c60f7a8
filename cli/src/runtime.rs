//! The async runtime of the subcommands that need one.

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::exit::{HARNESS, Unsuccessful};

/// How long a listener waits behind an `accept` that failed. Mostly there is no descriptor left, one comes back when a connection ends, and nothing
/// tells of that; to ask again at once would only use up the processor.
pub(crate) const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Takes as many descriptors as the administrator lets this process have. What a process begins with is often 1024, for programs that
/// use `select`: too few for a relay, which has two for each connection.
pub(crate) fn take_all_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Those that there are may do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Descriptors that a process has beside those of its connections, at most.
const BESIDE: u64 = 32;

/// Takes all descriptors, and refuses where there are too few for so many connections with so many descriptors `each`.
pub(crate) fn enough_descriptors(connections: u32, each: u64) -> anyhow::Result<()> {
    take_all_descriptors();
    let needed = u64::from(connections) * each + BESIDE;
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if needed > most {
        let text = format!(
            "{connections} connections take {needed} descriptors, and this process may have {most}: allow more with `ulimit -n {needed}`"
        );
        return Err(Unsuccessful { code: HARNESS, text }.into());
    }
    Ok(())
}

/// What still runs when all that was asked for is done has so long to end.
const AT_THE_END: Duration = Duration::from_secs(1);

/// Runs `work` to its end on two threads: one for the run, one for its readers.
pub(crate) fn block_on(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(work);
    // What does not end by itself, as a script that computes without end, is not waited for.
    runtime.shutdown_timeout(AT_THE_END);
    done
}

/// Runs `work` to its end on this thread alone: nothing is handed from thread to thread, which makes round trips short.
pub(crate) fn on_one_thread(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
