//! Locks of the shared state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex. Ignores poisoning: no code under these locks panics during an update.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
