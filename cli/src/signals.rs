//! Signals that ask the process to stop: SIGINT (Ctrl-C), SIGTERM (containers, systemd, CI systems) and SIGHUP (a terminal or ssh
//! connection that goes away).
//!
//! One rule for exit statuses. A command that runs until it is stopped (a server, an endless ping, a live capture) exits with 0. A
//! command that is stopped before it has done what it was asked exits with 128 and the number of the signal, as a shell
//! reports a process that the signal ended. `weft test` exits with the status of what it finished.
//!
//! The kernel ends a process for these signals by default, but not process 1 of a PID namespace, which is what a container starts.
//! So process 1 gets [`guard`]; everywhere else the kernel does it, unless a capture is to be completed first.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::task::Poll;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Unsuccessful;

/// A signal that asks the process to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stop(SignalKind);

impl Stop {
    /// Those that are received. SIGHUP is none of them if the parent ignores it, as nohup does.
    fn all() -> impl Iterator<Item = Self> {
        let all = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        all.into_iter().filter(|kind| *kind != SignalKind::hangup() || !is_ignored(*kind)).map(Stop)
    }

    /// The exit status of a command that has not done what it was asked.
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

    /// The outcome of a command that was stopped before `what`.
    pub(crate) fn before(self, what: &str) -> anyhow::Error {
        Unsuccessful { code: self.status(), text: format!("stopped by {} before {what}", self.name()) }.into()
    }
}

/// Does this process ignore a signal? Linux tells; elsewhere it counts as not ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 != 0
}

/// Has the command itself asked for signals? Then [`guard`] leaves them to it.
static COMMAND_LISTENS: AtomicBool = AtomicBool::new(false);

/// Ends when a signal asks the process to stop. Never, if no signal can be received.
///
/// From this call on, no signal ends the process or is lost, even before the future is polled: make it before a line on the
/// output shows that the process is ready. Must be called within a runtime.
pub(crate) fn interrupted() -> Pin<Box<dyn Future<Output = Stop> + Send>> {
    COMMAND_LISTENS.store(true, Ordering::Relaxed);
    listen()
}

fn listen() -> Pin<Box<dyn Future<Output = Stop> + Send>> {
    let mut streams: Vec<_> = Stop::all().filter_map(|stop| Some((stop, signal(stop.0).ok()?))).collect();
    Box::pin(std::future::poll_fn(move |context| {
        for (stop, stream) in &mut streams {
            if stream.poll_recv(context) == Poll::Ready(Some(())) {
                return Poll::Ready(*stop);
            }
        }
        Poll::Pending
    }))
}

/// Calls `done`, from a thread of its own, when a signal asks the process to stop; the second signal ends it at once.
///
/// When this returns no signal is missed any more.
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

/// What is to be done before a signal ends the process.
static TO_FINISH: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());
static IS_GUARDED: AtomicBool = AtomicBool::new(false);

/// Does `finish` before a signal ends the process, unless the command has asked for signals itself.
pub(crate) fn finish_first(finish: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    TO_FINISH.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(finish));
    guard()
}

/// From now on, ends the process when a signal asks for it, unless the command has asked for signals itself.
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
                    let to_finish = std::mem::take(&mut *TO_FINISH.lock().unwrap_or_else(PoisonError::into_inner));
                    to_finish.into_iter().for_each(|finish| finish());
                    std::process::exit(i32::from(stop.status()));
                }
                stopped = listen();
            }
        }
    })
}

/// Starts a thread that does `work`; returns when the future is there, so that it misses no signal.
fn on_thread<F: Future<Output = ()>>(work: impl FnOnce() -> F + Send + 'static) -> anyhow::Result<()> {
    let (ready, listens) = mpsc::channel();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let work = async move {
            let work = work();
            // Nobody waits for it any more only where its caller is gone.
            let _ = ready.send(());
            work.await;
        };
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(work),
            Err(error) => tracing::warn!(%error, "signals are not received"),
        }
    })?;
    // A channel that is closed says that there is nothing to wait for.
    let _ = listens.recv();
    Ok(())
}
