//! Limits how much freed memory the C library keeps.
//!
//! glibc gives the threads of a process up to eight heaps ("arenas") per core. glibc rarely
//! returns the freed memory of an arena to the system. Threads that use another arena cannot use
//! this memory. A server that reads large captures in several threads therefore occupied twice as
//! much memory as it needed.
#![expect(unsafe_code, reason = "the allocator has an interface in C only")]

/// Makes all threads share one arena. Call this function before the process starts threads.
pub(crate) fn share_one_arena() {
    // musl's allocator has only one heap, so it has no setting for arenas.
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes two integers and changes the allocator's own settings. A failure
    // changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
