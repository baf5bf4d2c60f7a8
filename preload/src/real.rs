//! Calls the C library's own functions, which the shim (this preload library) replaces.

use core::ffi::CStr;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};

use libc::{RTLD_NEXT, c_int, c_void, sockaddr, socklen_t};

use crate::errno::set_errno;

/// A function of the C library. Its address is looked up at the first call.
struct Symbol {
    name: &'static CStr,
    /// The address, or 0 before the first look-up.
    at: AtomicUsize,
}

impl Symbol {
    const fn new(name: &'static CStr) -> Self {
        Symbol { name, at: AtomicUsize::new(0) }
    }

    /// Returns the address of the function. If the library has no such function, returns `None` and
    /// sets `errno` to ENOSYS.
    fn address(&self) -> Option<usize> {
        let known = self.at.load(Ordering::Relaxed);
        if known != 0 {
            return Some(known);
        }
        // SAFETY: the name ends with a 0 byte, and RTLD_NEXT is always a valid handle.
        let found = unsafe { libc::dlsym(RTLD_NEXT, self.name.as_ptr()) } as usize;
        if found == 0 {
            set_errno(libc::ENOSYS);
            return None;
        }
        // A concurrent look-up stores the same address.
        self.at.store(found, Ordering::Relaxed);
        Some(found)
    }
}

/// The type of `accept`, `getpeername` and `getsockname`.
type Named = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;

static CONNECT: Symbol = Symbol::new(c"connect");
static LISTEN: Symbol = Symbol::new(c"listen");
static ACCEPT: Symbol = Symbol::new(c"accept");
static ACCEPT4: Symbol = Symbol::new(c"accept4");
static GETPEERNAME: Symbol = Symbol::new(c"getpeername");
static GETSOCKNAME: Symbol = Symbol::new(c"getsockname");
static GETSOCKOPT: Symbol = Symbol::new(c"getsockopt");

/// # Safety
/// The rules of the C library's function apply.
pub(crate) unsafe fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    let Some(at) = CONNECT.address() else { return -1 };
    // SAFETY: the C library's function of this name has this type.
    let call = unsafe { transmute::<usize, unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int>(at) };
    // SAFETY: the caller guarantees valid arguments.
    unsafe { call(fd, address, len) }
}

pub(crate) fn listen(fd: c_int, backlog: c_int) -> c_int {
    let Some(at) = LISTEN.address() else { return -1 };
    // SAFETY: the C library's function of this name has this type.
    let call = unsafe { transmute::<usize, extern "C" fn(c_int, c_int) -> c_int>(at) };
    call(fd, backlog)
}

/// # Safety
/// The rules of the C library's function apply.
pub(crate) unsafe fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees valid arguments.
    unsafe { named(&ACCEPT, fd, address, len) }
}

/// # Safety
/// The rules of the C library's function apply.
pub(crate) unsafe fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    let Some(at) = ACCEPT4.address() else { return -1 };
    // SAFETY: the C library's function of this name has this type.
    let call =
        unsafe { transmute::<usize, unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int>(at) };
    // SAFETY: the caller guarantees valid arguments.
    unsafe { call(fd, address, len, flags) }
}

/// # Safety
/// The rules of the C library's function apply.
pub(crate) unsafe fn getpeername(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees valid arguments.
    unsafe { named(&GETPEERNAME, fd, address, len) }
}

/// # Safety
/// The rules of the C library's function apply.
pub(crate) unsafe fn getsockname(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the caller guarantees valid arguments.
    unsafe { named(&GETSOCKNAME, fd, address, len) }
}

/// # Safety
/// The rules of the C library's function apply.
pub(crate) unsafe fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    type Getsockopt = unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;
    let Some(at) = GETSOCKOPT.address() else { return -1 };
    // SAFETY: the C library's function of this name has this type.
    let call = unsafe { transmute::<usize, Getsockopt>(at) };
    // SAFETY: the caller guarantees valid arguments.
    unsafe { call(fd, level, name, value, len) }
}

/// Calls a function of the type [`Named`].
///
/// # Safety
/// `symbol` must be the name of a function of this type. The rules of that function apply.
unsafe fn named(symbol: &Symbol, fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    let Some(at) = symbol.address() else { return -1 };
    // SAFETY: the caller passes the symbol of a C function that has the type `Named`.
    let call = unsafe { transmute::<usize, Named>(at) };
    // SAFETY: the caller guarantees valid arguments.
    unsafe { call(fd, address, len) }
}
