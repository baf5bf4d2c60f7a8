//! The threads that read captures: how many at a time, and how much work may wait.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Cheap to clone; clones share the threads.
#[derive(Debug, Clone)]
pub(crate) struct Workers {
    /// Work under way, and such as waits.
    places: Arc<Semaphore>,
    threads: Arc<Semaphore>,
}

/// A right to work, soon.
pub(crate) struct Ticket {
    workers: Workers,
    _place: OwnedSemaphorePermit,
}

impl Workers {
    /// So many threads, for which so much work may wait.
    pub(crate) fn new(threads: usize, waiting: usize) -> Self {
        Workers { places: Arc::new(Semaphore::new(threads + waiting)), threads: Arc::new(Semaphore::new(threads)) }
    }

    /// `None`: too much waits already.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Ticket { workers: self.clone(), _place: place })
    }
}

impl Ticket {
    /// Does the work when a thread is free; `None` where it broke off.
    pub(crate) async fn work<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let thread = Arc::clone(&self.workers.threads).acquire_owned().await.ok()?;
        // The thread is taken until the work ends, whoever waits for it or does not.
        let worked = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(thread);
            done
        });
        worked.await.inspect_err(|error| tracing::error!("reading a capture broke off: {error}")).ok()
    }
}
