//! The `LD_PRELOAD` shim: programs that know nothing of SDP use it through the socket calls that they make already.
//!
//! **Choice.** A program keeps its kernel descriptors. The shim only changes where they lead: a `connect` that a rule matches goes to
//! the agent (`weft sdp agent`) over the loopback interface, after the agent has connected by SDP to where the program wanted to go; at a
//! `listen` that a rule matches the agent is told to listen by SDP too, and hands each SDP connection to the program's own TCP listener.
//! What follows is the kernel's: non-blocking descriptors, poll, select, epoll, `sendfile`, `dup`, `fork`, `exec`, descriptors passed on. The shim
//! keeps no table of descriptors, so nothing gets lost by any of these; whose peer's name (`getpeername`, `accept`) is to be the true one is seen
//! by its address, which is the agent's own.
//!
//! A `connect` that does not block gets an address of the agent where a connection is neither accepted nor refused before SDP's is. So the
//! kernel reports to the program, in its own time, what came of it. The kernel knows only a reset where SDP failed: SO_ERROR, and a second
//! `connect`, give the error that the agent has.
//!
//! **Cost.** Each octet passes the loopback interface once more, and a second process. What does not go through the C library's `connect`, `listen`, `accept`, `getsockopt` and names is not seen: static programs,
//! raw system calls (Go), io_uring, `sendto` with MSG_FASTOPEN; nor set-user-ID programs.
//!
//! An engine in the process would save the hop, and have to do all of the above by itself, for each descriptor that a program can make of another.
//!
//! | file | what |
//! | --- | --- |
//! | `lib` | the functions that are put in front of the C library's |
//! | `calls` | what they do besides |
//! | `agent` | questions to the agent |
//! | `rules` | the file that `WEFT_SDP_RULES` names; without that variable, nothing is done |
//! | `socket` | what a descriptor is, names as the C library has them |
//! | `real` | the C library's own functions |
#![expect(unsafe_code, reason = "functions in C's manner, and the C library's: pointers come in, and go out")]
#![deny(clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block, unsafe_op_in_unsafe_fn)]

mod agent;
mod calls;
mod real;
mod rules;
mod socket;

use libc::{c_int, c_void, sockaddr, socklen_t};

use crate::socket::Room;

/// connect(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller vouches for `len` octets at `address`.
    let to = unsafe { socket::read_name(address, len) };
    if let Some(to) = to
        && let Some(result) = calls::connect(fd, to)
    {
        return result;
    }
    // SAFETY: the arguments are the caller's.
    unsafe { real::connect(fd, address, len) }
}

/// getsockopt(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    let result = unsafe { real::getsockopt(fd, level, name, value, len) };
    if result == 0 && level == libc::SOL_SOCKET && name == libc::SO_ERROR {
        // SAFETY: the kernel has put there how long the value is.
        let octets = unsafe { len.read_unaligned() };
        if octets as usize != size_of::<c_int>() {
            return result;
        }
        // SAFETY: the kernel has put a number there.
        let error = unsafe { value.cast::<c_int>().read_unaligned() };
        if let Some(error) = calls::after_error(fd, error) {
            // SAFETY: there is room for one.
            unsafe { value.cast::<c_int>().write_unaligned(error) };
        }
    }
    result
}

/// listen(2).
#[unsafe(no_mangle)]
pub extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    calls::before_listen(fd).unwrap_or_else(|| real::listen(fd, backlog))
}

/// accept(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the arguments are the caller's.
    let room = unsafe { Room::new(address, len) };
    // SAFETY: the arguments are the caller's.
    let accepted = unsafe { real::accept(fd, address, len) };
    calls::after_accept(accepted, room)
}

/// accept4(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: the arguments are the caller's.
    let room = unsafe { Room::new(address, len) };
    // SAFETY: the arguments are the caller's.
    let accepted = unsafe { real::accept4(fd, address, len, flags) };
    calls::after_accept(accepted, room)
}

/// getpeername(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the arguments are the caller's.
    let room = unsafe { Room::new(address, len) };
    // SAFETY: the arguments are the caller's.
    let result = unsafe { real::getpeername(fd, address, len) };
    calls::after_name(fd, result, room, |names| names.peer)
}

/// getsockname(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the arguments are the caller's.
    let room = unsafe { Room::new(address, len) };
    // SAFETY: the arguments are the caller's.
    let result = unsafe { real::getsockname(fd, address, len) };
    calls::after_name(fd, result, room, |names| names.local)
}
