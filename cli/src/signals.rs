//! Signals that stop the process: SIGINT (Ctrl-C), SIGTERM (containers, systemd, CI systems) and
//! SIGHUP (a closed terminal or ssh connection).
//!
//! Exit statuses follow one rule. A command that runs until it is stopped (a server, an endless
//! ping, a live capture) exits with 0. A command that is stopped before it is done exits with 128
//! plus the number of the signal. A shell reports the same number for a process that a signal
//! ended. `weft test` exits with the status that the results of its finished cases determine.
//!
//! By default, the kernel ends a process that receives one of these signals. An exception is
//! process 1 of a PID namespace, which is the first process of a container. So weft calls [`guard`]
//! if it is process 1. It also calls [`guard`] if it must complete a capture before the process
//! ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::task::Poll;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::CommandFailure;
use crate::lock::locked;

/// A signal that stops the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StopSignal(SignalKind);

impl StopSignal {
    /// The signals that stop this process. SIGHUP is missing if this process ignores SIGHUP, for
    /// example because nohup started it.
    fn all() -> impl Iterator<Item = Self> {
        let all = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        all.into_iter().filter(|kind| *kind != SignalKind::hangup() || !is_ignored(*kind)).map(StopSignal)
    }

    /// The exit status of a command that this signal stopped before it was done.
    pub(crate) fn status(self) -> u8 {
        u8::try_from(128 + self.0.as_raw_value()).unwrap_or(u8::MAX)
    }

    fn name(self) -> &'static str {
        match self.0 {
            kind if kind == SignalKind::interrupt() => "SIGINT",
            kind if kind == SignalKind::terminate() => "SIGTERM",
            _ => "SIGHUP",
        }
    }

    /// Makes the error of a command that this signal stopped before the event `what`.
    pub(crate) fn before(self, what: &str) -> anyhow::Error {
        CommandFailure { code: self.status(), text: format!("stopped by {} before {what}", self.name()) }.into()
    }
}

/// Returns whether this process ignores a signal. weft can read this information only on Linux. On
/// other systems, this function returns `false`.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 != 0
}

/// Whether the command handles signals itself. If so, [`guard`] does not end the process.
static COMMAND_LISTENS: AtomicBool = AtomicBool::new(false);

/// Returns a future that completes when a signal requests the process to stop.
///
/// After this call, signals do not end the process, and no signal is lost, even before the future
/// is polled. Call this function within a runtime, and before an output line reports that the
/// process is ready.
pub(crate) fn interrupted() -> Pin<Box<dyn Future<Output = StopSignal> + Send>> {
    COMMAND_LISTENS.store(true, Ordering::Relaxed);
    listen()
}

fn listen() -> Pin<Box<dyn Future<Output = StopSignal> + Send>> {
    let mut streams: Vec<_> = StopSignal::all().filter_map(|stop| Some((stop, signal(stop.0).ok()?))).collect();
    Box::pin(std::future::poll_fn(move |context| {
        for (stop, stream) in &mut streams {
            if stream.poll_recv(context) == Poll::Ready(Some(())) {
                return Poll::Ready(*stop);
            }
        }
        Poll::Pending
    }))
}

/// Calls `done` in its own thread when a signal requests the process to stop. A second signal ends
/// the process at once.
///
/// After this function has returned, no signal is lost.
pub(crate) fn on_interrupt(done: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    COMMAND_LISTENS.store(true, Ordering::Relaxed);
    on_thread(|| {
        let first = listen();
        async move {
            first.await;
            done();
            let second = listen().await;
            std::process::exit(i32::from(second.status()));
        }
    })
}

/// Functions that [`guard`] calls before it ends the process.
static TO_FINISH: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());
/// Whether [`guard`] has started its thread.
static IS_GUARDED: AtomicBool = AtomicBool::new(false);

/// Runs `finish` before a signal ends the process, unless the command handles signals itself.
pub(crate) fn finish_first(finish: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    locked(&TO_FINISH).push(Box::new(finish));
    guard()
}

/// Starts a thread that ends the process on a signal, unless the command handles signals itself.
pub(crate) fn guard() -> anyhow::Result<()> {
    if IS_GUARDED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    on_thread(|| {
        let mut stopped = listen();
        async move {
            loop {
                let stop = stopped.await;
                if !COMMAND_LISTENS.load(Ordering::Relaxed) {
                    let to_finish = std::mem::take(&mut *locked(&TO_FINISH));
                    to_finish.into_iter().for_each(|finish| finish());
                    std::process::exit(i32::from(stop.status()));
                }
                stopped = listen();
            }
        }
    })
}

/// Starts a thread that calls `work` and runs the future that `work` returns. Waits until the
/// thread has this future. The future therefore receives all signals that arrive after this
/// function has returned.
fn on_thread<F: Future<Output = ()>>(work: impl FnOnce() -> F + Send + 'static) -> anyhow::Result<()> {
    let (ready, listens) = mpsc::channel();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let work = async move {
            let work = work();
            // Sending fails only if the caller is gone.
            let _ = ready.send(());
            work.await;
        };
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(work),
            Err(error) => tracing::warn!(%error, "weft cannot receive signals"),
        }
    })?;
    // Receiving fails if the thread cannot receive signals. Then there is nothing to wait for.
    let _ = listens.recv();
    Ok(())
}
