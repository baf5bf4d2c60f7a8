//! The `LD_PRELOAD` shim: programs that know nothing of SDP use it through the socket calls that
//! they already make.
//!
//! **Design.** A program keeps its kernel descriptors. The shim only changes where they lead. A
//! `connect` that a rule matches goes to the agent (`weft sdp agent`) over the loopback interface,
//! after the agent has connected to the requested address by SDP. At a `listen` that a rule
//! matches, the shim also makes the agent listen by SDP. The agent then hands each SDP connection
//! to the program's own TCP listener. Everything else is left to the kernel: non-blocking
//! descriptors, poll, select, epoll, `sendfile`, `dup`, `fork`, `exec`, passed descriptors. The
//! shim keeps no table of descriptors, so none of these loses anything. It recognises a peer whose
//! true name it must report (`getpeername`, `accept`) by its address, which is the agent's own.
//!
//! A non-blocking `connect` gets an address of the agent where a connection is neither accepted nor
//! refused before the SDP connection is. So the kernel reports the result to the program at the
//! right time. If SDP fails, the kernel only knows a reset: SO_ERROR and a second `connect` return
//! the error that the agent has.
//!
//! **Cost.** Each octet makes an extra loopback hop, through a second process. The shim covers only
//! the C library's `connect`, `listen`, `accept`, `getsockopt` and names. It does not cover static
//! programs, raw system calls (Go), io_uring, `sendto` with MSG_FASTOPEN, or set-user-ID programs.
//!
//! An engine in the process would save the hop. It would have to do all of the above itself, for
//! each descriptor that a program can derive from another.
//!
//! | file | contents |
//! | --- | --- |
//! | `lib` | the functions that replace the C library's |
//! | `calls` | what they do in addition |
//! | `agent` | requests to the agent |
//! | `rules` | the file that `WEFT_SDP_RULES` names; without that variable, the shim does nothing |
//! | `socket` | the state of a descriptor, names in the C library's format |
//! | `real` | the C library's own functions |
#![expect(unsafe_code, reason = "functions in C's manner, and the C library's: pointers come in, and go out")]
#![deny(clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block, unsafe_op_in_unsafe_fn)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

mod agent;
mod calls;
mod errno;
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
    // SAFETY: the caller guarantees `len` octets at `address`.
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
        // SAFETY: the kernel has stored the length of the value there.
        let octets = unsafe { len.read_unaligned() };
        if octets as usize != size_of::<c_int>() {
            return result;
        }
        // SAFETY: the kernel has stored a number there.
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
