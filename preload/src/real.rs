//! The C library's own functions, which this shim replaces.

use core::ffi::CStr;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};

use libc::{RTLD_NEXT, c_int, c_void, sockaddr, socklen_t};

use crate::errno::set_errno;

/// A function's address, looked up once.
struct Symbol {
    name: &'static CStr,
    /// 0: not looked up.
    at: AtomicUsize,
}

impl Symbol {
    const fn new(name: &'static CStr) -> Self {
        Symbol { name, at: AtomicUsize::new(0) }
    }

    /// Its address. If the library has no such function, returns `None` and sets `errno`.
    fn address(&self) -> Option<usize> {
        let known = self.at.load(Ordering::Relaxed);
        if known != 0 {
            return Some(known);
        }
        // SAFETY: the name ends in a 0, and RTLD_NEXT is a handle that needs no opening.
        let found = unsafe { libc::dlsym(RTLD_NEXT, self.name.as_ptr()) } as usize;
        if found == 0 {
            set_errno(libc::ENOSYS);
            return None;
        }
        // A concurrent look-up finds the same.
        self.at.store(found, Ordering::Relaxed);
        Some(found)
    }
}

type Named = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;

static CONNECT: Symbol = Symbol::new(c"connect");
static LISTEN: Symbol = Symbol::new(c"listen");
static ACCEPT: Symbol = Symbol::new(c"accept");
static ACCEPT4: Symbol = Symbol::new(c"accept4");
static GETPEERNAME: Symbol = Symbol::new(c"getpeername");
static GETSOCKNAME: Symbol = Symbol::new(c"getsockname");
static GETSOCKOPT: Symbol = Symbol::new(c"getsockopt");

/// # Safety
/// As the C library's.
pub(crate) unsafe fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    let Some(at) = CONNECT.address() else { return -1 };
    // SAFETY: the C library's function of this name has this type.
    let call = unsafe { transmute::<usize, unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int>(at) };
    // SAFETY: the arguments are the caller's.
    unsafe { call(fd, address, len) }
}

pub(crate) fn listen(fd: c_int, backlog: c_int) -> c_int {
    let Some(at) = LISTEN.address() else { return -1 };
    // SAFETY: the C library's function of this name has this type.
    let call = unsafe { transmute::<usize, extern "C" fn(c_int, c_int) -> c_int>(at) };
    call(fd, backlog)
}

/// # Safety
/// As the C library's.
pub(crate) unsafe fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { named(&ACCEPT, fd, address, len) }
}

/// # Safety
/// As the C library's.
pub(crate) unsafe fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    let Some(at) = ACCEPT4.address() else { return -1 };
    // SAFETY: the C library's function of this name has this type.
    let call =
        unsafe { transmute::<usize, unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int>(at) };
    // SAFETY: the arguments are the caller's.
    unsafe { call(fd, address, len, flags) }
}

/// # Safety
/// As the C library's.
pub(crate) unsafe fn getpeername(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { named(&GETPEERNAME, fd, address, len) }
}

/// # Safety
/// As the C library's.
pub(crate) unsafe fn getsockname(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { named(&GETSOCKNAME, fd, address, len) }
}

/// # Safety
/// As the C library's.
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
    // SAFETY: the arguments are the caller's.
    unsafe { call(fd, level, name, value, len) }
}

/// # Safety
/// As the C library's function of that name.
unsafe fn named(symbol: &Symbol, fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    let Some(at) = symbol.address() else { return -1 };
    // SAFETY: the three functions that use this have this type in the C library.
    let call = unsafe { transmute::<usize, Named>(at) };
    // SAFETY: the arguments are the caller's.
    unsafe { call(fd, address, len) }
}
