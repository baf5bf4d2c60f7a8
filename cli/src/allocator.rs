//! How the C library's allocator keeps memory that was freed.
//!
//! glibc gives the threads of a process up to eight heaps ("arenas") per core. What is freed in one arena is
//! rarely returned to the system, and threads of another arena cannot use it. A server whose threads take
//! turns with large captures therefore grew to twice what it used.
#![expect(unsafe_code, reason = "the allocator has an interface in C only")]

/// Makes all threads share one arena. To be called before the process starts threads.
pub(crate) fn share_one_arena() {
    // musl's allocator has one heap and no such setting.
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes two integers and changes the allocator's own settings. A refusal changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
