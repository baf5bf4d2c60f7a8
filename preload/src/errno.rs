//! Reads and sets `errno` of the calling thread.

use std::ffi::c_int;

/// Returns `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: the function has no preconditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the location belongs to this thread and is always valid.
    unsafe { *place }
}

/// Sets `errno`.
pub(crate) fn set_errno(number: c_int) {
    // SAFETY: the function has no preconditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the location belongs to this thread and is always valid.
    unsafe { *place = number };
}
