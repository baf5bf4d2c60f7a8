//! `errno` of the calling thread.

use std::ffi::c_int;

/// `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: it is a location of this thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: and it always exists.
    unsafe { *place }
}

/// Sets `errno`.
pub(crate) fn set_errno(number: c_int) {
    // SAFETY: it is a location of this thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: and it always exists.
    unsafe { *place = number };
}
