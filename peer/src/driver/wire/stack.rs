//! The tester's own TCP, shared by its links and connections, and the task that polls it.

use core::time::Duration;
use std::fmt;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::address::WireAddress;
use super::engine::{Engine, NextPoll};
use super::ethernet::EthernetInterface;

/// The tester's own TCP on an Ethernet interface. Clones share it. When the last clone, link and
/// connection is dropped, the TCP resets its connections and closes the interface.
#[derive(Clone)]
pub struct WireStack(Arc<Shared>);

/// A reference to a [`WireStack`] that does not keep it open.
#[derive(Clone, Default)]
pub struct WeakWireStack(Weak<Shared>);

struct Shared {
    engine: Mutex<Engine>,
    address: WireAddress,
    /// Notifies that the state of a connection may have changed.
    changed: Notify,
    /// Makes the task compute the time of its next poll again.
    wake: Arc<Notify>,
}

impl fmt::Debug for WireStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireStack").field("address", &self.0.address).finish_non_exhaustive()
    }
}

impl fmt::Debug for WeakWireStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakWireStack").field("is_open", &(self.0.strong_count() > 0)).finish()
    }
}

impl WeakWireStack {
    /// Returns the TCP if it is still open.
    #[must_use]
    pub fn upgrade(&self) -> Option<WireStack> {
        self.0.upgrade().map(WireStack)
    }
}

impl WireStack {
    /// Starts a TCP with this address on `interface`. Call this function in a runtime of tokio. A
    /// task of the runtime polls the TCP.
    ///
    /// # Errors
    /// The descriptor of the interface cannot be registered with the runtime.
    pub fn open(interface: Box<dyn EthernetInterface>, address: WireAddress) -> io::Result<Self> {
        #[expect(deprecated, reason = "an OwnedFd stays open and unchanged, and the replacement is unsafe")]
        let descriptor = AsyncFd::with_interest(interface.descriptor()?, Interest::READABLE)?;
        let wake = Arc::new(Notify::new());
        let engine = Mutex::new(Engine::new(interface, address));
        let shared = Arc::new(Shared { engine, address, changed: Notify::new(), wake: Arc::clone(&wake) });
        tokio::spawn(drive(descriptor, Arc::downgrade(&shared), wake));
        Ok(WireStack(shared))
    }

    /// Returns a reference that does not keep the TCP open.
    #[must_use]
    pub fn downgrade(&self) -> WeakWireStack {
        WeakWireStack(Arc::downgrade(&self.0))
    }

    /// Returns the IP address of the tester.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.0.address.ip()
    }

    /// Returns the address of the next connection.
    pub(super) fn next_address(&self) -> SocketAddr {
        self.0.lock().next_address()
    }

    /// Calls `act`, and then sends what is due.
    pub(super) fn act<R>(&self, act: impl FnOnce(&mut Engine) -> R) -> R {
        let result = act(&mut self.0.lock());
        self.poll();
        result
    }

    /// Processes the frames that have arrived, and sends what is due.
    pub(super) fn poll(&self) {
        // The task then computes the time of its next poll, which may have changed.
        let _ = self.0.poll();
        self.0.wake.notify_one();
    }

    /// Waits until `ready` returns a result.
    pub(super) async fn wait<R>(&self, mut ready: impl FnMut(&mut Engine) -> Option<R>) -> R {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // A change after this call ends the wait, even if it happens before the wait begins.
            changed.as_mut().enable();
            let result = ready(&mut self.0.lock());
            if let Some(result) = result {
                return result;
            }
            changed.await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Engine> {
        // If a holder of the lock panicked, other connections are still usable.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(&self) -> NextPoll {
        let next = self.lock().poll();
        self.changed.notify_waiters();
        next
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let engine = self.engine.get_mut().unwrap_or_else(PoisonError::into_inner);
        engine.reset_all();
        // Sends the resets. The interface is then closed, so no further poll follows.
        let _ = engine.poll();
        self.wake.notify_one();
    }
}

/// Polls the TCP when a frame arrives and when a timer is due, until the TCP is dropped or its
/// interface ends.
async fn drive(descriptor: AsyncFd<OwnedFd>, shared: Weak<Shared>, wake: Arc<Notify>) {
    loop {
        // The task must not keep the TCP open while it waits.
        let Some(next) = shared.upgrade().map(|shared| shared.poll()) else { return };
        let delay = match next {
            NextPoll::AtOnce => {
                tokio::task::yield_now().await;
                continue;
            }
            NextPoll::Later(delay) => delay,
            NextPoll::Never => return,
        };
        tokio::select! {
            readable = descriptor.readable() => match readable {
                // The next poll receives all frames that have arrived before it.
                Ok(mut readable) => readable.clear_ready(),
                Err(error) => {
                    tracing::warn!(%error, "cannot wait for frames");
                    return;
                }
            },
            () = wake.notified() => {}
            () = pause(delay) => {}
        }
    }
}

async fn pause(delay: Option<Duration>) {
    match delay {
        Some(delay) => sleep(delay).await,
        None => pending().await,
    }
}
