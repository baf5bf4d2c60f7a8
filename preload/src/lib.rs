//! A library for `LD_PRELOAD` (the shim). With the shim, programs that do not support SDP use SDP
//! through their normal socket calls.
//!
//! **Design.** A program keeps the descriptors of the kernel. The shim only changes the address to
//! which a descriptor connects.
//!
//! - `connect`: If a rule matches, the shim requests a connection from the agent
//!   (`weft sdp agent`). The agent connects to the requested address by SDP. The program's socket
//!   then connects to the agent over the loopback interface.
//! - `listen`: If a rule matches, the agent also listens by SDP. For each SDP connection that the
//!   agent accepts, the agent connects to the program's own TCP listener.
//! - `getpeername`, `getsockname`, `accept`: If the peer's address is the agent's own address, the
//!   shim replaces the addresses by the addresses of the SDP connection.
//!
//! The kernel does everything else: non-blocking descriptors, poll, select, epoll, `sendfile`,
//! `dup`, `fork`, `exec`, and descriptors that are passed to another process. The shim keeps no
//! table of descriptors, so all of these still work.
//!
//! For a non-blocking `connect`, the agent returns an address. A TCP connection to this address
//! waits until the SDP connection has opened or failed. Then the agent completes or resets the TCP
//! connection. So the kernel reports the result to the program at the right time. If SDP fails, the
//! kernel receives only a reset. The shim then makes SO_ERROR and a second `connect` return the
//! error of the agent.
//!
//! **Cost.** Each byte makes an extra loopback hop through a second process. An SDP implementation
//! in the shim would avoid this hop. But then the shim would have to do the kernel's work for each
//! descriptor, including descriptors that a program derives from other descriptors.
//!
//! **Limits.** The shim replaces only the C library's `connect`, `listen`, `accept`, `accept4`,
//! `getsockopt`, `getpeername` and `getsockname`. It does not cover statically linked programs, raw
//! system calls (Go), io_uring, `sendto` with MSG_FASTOPEN, or set-user-ID programs.
//!
//! | file | contents |
//! | --- | --- |
//! | `lib` | the functions that replace functions of the C library |
//! | `calls` | the actions of these functions before or after the C library's function |
//! | `agent` | requests to the agent |
//! | `rules` | the file that `WEFT_SDP_RULES` names; without that variable, the shim does nothing |
//! | `socket` | the state of a descriptor; socket addresses in the C library's format |
//! | `real` | the C library's own functions |
//! | `errno` | the error number of the calling thread |
#![expect(unsafe_code, reason = "the functions here have the types of the C library's functions, with raw pointers")]
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
/// The rules of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the caller guarantees `len` bytes at `address`.
    let to = unsafe { socket::read_name(address, len) };
    if let Some(to) = to
        && let Some(result) = calls::connect(fd, to)
    {
        return result;
    }
    // SAFETY: the caller guarantees valid arguments.
    unsafe { real::connect(fd, address, len) }
}

/// getsockopt(2).
///
/// # Safety
/// The rules of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller guarantees valid arguments.
    let result = unsafe { real::getsockopt(fd, level, name, value, len) };
    if result == 0 && level == libc::SOL_SOCKET && name == libc::SO_ERROR {
        // SAFETY: the call succeeded, so `len` is valid and has the length of the value.
        let octets = unsafe { len.read_unaligned() };
        if octets as usize != size_of::<c_int>() {
            return result;
        }
        // SAFETY: the kernel has stored a `c_int` at `value`.
        let error = unsafe { value.cast::<c_int>().read_unaligned() };
        if let Some(error) = calls::after_error(fd, error) {
            // SAFETY: `value` has room for a `c_int`, because the kernel has stored one.
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
/// The rules of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees valid arguments.
    let room = unsafe { Room::new(address, len) };
    // SAFETY: the caller guarantees valid arguments.
    let accepted = unsafe { real::accept(fd, address, len) };
    calls::after_accept(accepted, room)
}

/// accept4(2).
///
/// # Safety
/// The rules of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: the caller guarantees valid arguments.
    let room = unsafe { Room::new(address, len) };
    // SAFETY: the caller guarantees valid arguments.
    let accepted = unsafe { real::accept4(fd, address, len, flags) };
    calls::after_accept(accepted, room)
}

/// getpeername(2).
///
/// # Safety
/// The rules of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees valid arguments.
    let room = unsafe { Room::new(address, len) };
    // SAFETY: the caller guarantees valid arguments.
    let result = unsafe { real::getpeername(fd, address, len) };
    calls::after_name(fd, result, room, |names| names.peer)
}

/// getsockname(2).
///
/// # Safety
/// The rules of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees valid arguments.
    let room = unsafe { Room::new(address, len) };
    // SAFETY: the caller guarantees valid arguments.
    let result = unsafe { real::getsockname(fd, address, len) };
    calls::after_name(fd, result, room, |names| names.local)
}
