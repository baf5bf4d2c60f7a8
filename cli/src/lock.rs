//! Locks a mutex, even if another thread panicked while it had the lock. No panic interrupts a
//! change of the data, so the data is valid.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
