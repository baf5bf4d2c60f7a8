//! The state of a descriptor, and socket addresses in the C library's format.
//!
//! A *name* is the address and port of a socket, as in getsockname(2). A *family* is the address
//! family of a socket: AF_INET (IPv4) or AF_INET6 (IPv6).

use core::mem::{size_of, zeroed};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use core::ptr;

use libc::{AF_INET, AF_INET6, c_int, c_void, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

use crate::real;

/// The TCP state CLOSE in the kernel's `tcp_info`: the socket is neither connected, nor connecting,
/// nor listening.
const TCP_CLOSE: u8 = 7;

/// A buffer for a name of any family.
type Storage = libc::sockaddr_storage;

/// A caller's buffer for a name.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    address: *mut sockaddr,
    len: *mut socklen_t,
    /// Size of the buffer in bytes.
    octets: usize,
}

impl Room {
    /// Makes the value from the arguments of a socket call. The arguments can be null.
    ///
    /// # Safety
    /// While this value is used, `len` is null, or points to the number of bytes at `address`.
    pub(crate) unsafe fn new(address: *mut sockaddr, len: *mut socklen_t) -> Self {
        let octets = if address.is_null() || len.is_null() {
            0
        } else {
            // SAFETY: `len` is not null, and the caller guarantees that it is valid.
            let len = unsafe { len.read_unaligned() };
            len as usize
        };
        Room { address, len, octets }
    }

    /// Returns whether the caller requested a name.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.address.is_null() && !self.len.is_null()
    }

    /// Stores a name in the format of `family`, which is the family of the caller's socket. If the
    /// buffer is too small, truncates the name. Always stores the complete length of the name.
    pub(crate) fn put(&self, name: SocketAddr, family: c_int) {
        if !self.is_wanted() {
            return;
        }
        let (storage, full_len) = encode(name, family);
        let octets = self.octets.min(full_len as usize);
        // SAFETY: both buffers have at least `octets` bytes: the caller's because of `Room::new`,
        // and `storage` because of `encode`. They do not overlap, because `storage` is local.
        unsafe { ptr::copy_nonoverlapping((&raw const storage).cast::<u8>(), self.address.cast::<u8>(), octets) };
        // SAFETY: `len` is not null, and `Room::new` requires that it is valid.
        unsafe { self.len.write_unaligned(full_len) };
    }
}

/// Reads a name of IPv4 or IPv6. Returns `None` if the name has another family or is too short.
///
/// # Safety
/// `address` is null or points to `len` bytes.
pub(crate) unsafe fn read_name(address: *const sockaddr, len: socklen_t) -> Option<SocketAddr> {
    let len = len as usize;
    if address.is_null() || len < size_of::<sa_family_t>() {
        return None;
    }
    // SAFETY: `address` has enough bytes, and each kind of name begins with the family.
    let family = unsafe { address.cast::<sa_family_t>().read_unaligned() };
    match c_int::from(family) {
        AF_INET if len >= size_of::<sockaddr_in>() => {
            // SAFETY: `address` has enough bytes, and each bit pattern is a valid name.
            let name = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            Some((ip, u16::from_be(name.sin_port)).into())
        }
        AF_INET6 if len >= size_of::<sockaddr_in6>() => {
            // SAFETY: `address` has enough bytes, and each bit pattern is a valid name.
            let name = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            let port = u16::from_be(name.sin6_port);
            Some(SocketAddrV6::new(ip, port, name.sin6_flowinfo, name.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Encodes a name in the format of a socket of `family`. Returns the name and its length in bytes.
fn encode(name: SocketAddr, family: c_int) -> (Storage, socklen_t) {
    // SAFETY: all zeros is a valid value: a name without a family (AF_UNSPEC).
    let mut storage = unsafe { zeroed::<Storage>() };
    let len = match (name.ip(), family) {
        (IpAddr::V4(ip), AF_INET) => {
            // SAFETY: all zeros is a valid name.
            let mut it = unsafe { zeroed::<sockaddr_in>() };
            it.sin_family = AF_INET as sa_family_t;
            it.sin_port = name.port().to_be();
            it.sin_addr.s_addr = u32::from(ip).to_be();
            // SAFETY: the storage is large enough and aligned for each kind of name.
            unsafe { (&raw mut storage).cast::<sockaddr_in>().write(it) };
            size_of::<sockaddr_in>()
        }
        (ip, _) => {
            // SAFETY: all zeros is a valid name.
            let mut it = unsafe { zeroed::<sockaddr_in6>() };
            it.sin6_family = AF_INET6 as sa_family_t;
            it.sin6_port = name.port().to_be();
            it.sin6_addr.s6_addr = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            if let SocketAddr::V6(name) = name {
                it.sin6_scope_id = name.scope_id();
            }
            // SAFETY: the storage is large enough and aligned for each kind of name.
            unsafe { (&raw mut storage).cast::<sockaddr_in6>().write(it) };
            size_of::<sockaddr_in6>()
        }
    };
    (storage, len as socklen_t)
}

/// Calls the C library's `connect` with the address `to`, in the format of the socket's family.
pub(crate) fn connect(fd: c_int, to: SocketAddr, family: c_int) -> c_int {
    let (storage, len) = encode(to, family);
    // SAFETY: the storage has `len` bytes.
    unsafe { real::connect(fd, (&raw const storage).cast(), len) }
}

/// Makes the kernel discard the failed connection of a socket, as a second connect(2) does.
pub(crate) fn disconnect(fd: c_int) {
    // SAFETY: all zeros is a valid value: a name without a family (AF_UNSPEC).
    let no_name = unsafe { zeroed::<sockaddr>() };
    let len = size_of::<sockaddr>() as socklen_t;
    // SAFETY: the name has `len` bytes.
    let _ = unsafe { real::connect(fd, &raw const no_name, len) };
}

/// Returns the local name of a socket.
pub(crate) fn local(fd: c_int) -> Option<SocketAddr> {
    // SAFETY: the buffer has the given length.
    name(|address, len| unsafe { real::getsockname(fd, address, len) })
}

/// Returns the kernel's name of the peer. For a connection through the agent, this is the name of
/// the agent's socket.
pub(crate) fn peer(fd: c_int) -> Option<SocketAddr> {
    // SAFETY: the buffer has the given length.
    name(|address, len| unsafe { real::getpeername(fd, address, len) })
}

fn name(call: impl FnOnce(*mut sockaddr, *mut socklen_t) -> c_int) -> Option<SocketAddr> {
    // SAFETY: all zeros is a valid value: a name without a family (AF_UNSPEC).
    let mut storage = unsafe { zeroed::<Storage>() };
    let mut len = size_of::<Storage>() as socklen_t;
    if call((&raw mut storage).cast(), &raw mut len) != 0 {
        return None;
    }
    // SAFETY: the storage has at least this number of bytes.
    unsafe { read_name((&raw const storage).cast(), len.min(size_of::<Storage>() as socklen_t)) }
}

/// Returns the family of a TCP socket of IPv4 or IPv6. Returns `None` for any other descriptor.
pub(crate) fn family(fd: c_int) -> Option<c_int> {
    if option(fd, libc::SOL_SOCKET, libc::SO_TYPE)? != libc::SOCK_STREAM
        || option(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL)? != libc::IPPROTO_TCP
    {
        return None;
    }
    option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN).filter(|family| [AF_INET, AF_INET6].contains(family))
}

/// Returns whether an IPv6 socket accepts only IPv6 (IPV6_V6ONLY).
pub(crate) fn is_only_v6(fd: c_int) -> bool {
    option(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY).is_some_and(|only| only != 0)
}

/// Returns whether a socket is neither connected, nor connecting, nor listening.
pub(crate) fn is_closed(fd: c_int) -> bool {
    let mut state = 0u8;
    let mut len = 1;
    // SAFETY: the buffer has `len` bytes. The first byte of the option's value is the TCP state.
    let got = unsafe {
        real::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut state).cast::<c_void>(), &raw mut len)
    };
    got == 0 && state == TCP_CLOSE
}

/// Allows another socket to connect from the same port (SO_REUSEADDR).
pub(crate) fn share_port(fd: c_int) {
    let (on, len): (c_int, _) = (1, size_of::<c_int>() as socklen_t);
    // SAFETY: the value has the given length.
    let _ = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, (&raw const on).cast(), len) };
}

/// Returns whether the descriptor is non-blocking.
pub(crate) fn is_non_blocking(fd: c_int) -> bool {
    // SAFETY: this call takes no pointer.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_NONBLOCK != 0
}

fn option(fd: c_int, level: c_int, name: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    // SAFETY: the buffer has the given length.
    let got = unsafe { real::getsockopt(fd, level, name, (&raw mut value).cast::<c_void>(), &raw mut len) };
    (got == 0).then_some(value)
}

/// Sends bytes. Causes no SIGPIPE if the peer has closed the connection. Returns the number of sent
/// bytes, or a negative number on an error.
pub(crate) fn send(fd: c_int, octets: &[u8]) -> isize {
    // SAFETY: the slice has the given length.
    unsafe { libc::send(fd, octets.as_ptr().cast::<c_void>(), octets.len(), libc::MSG_NOSIGNAL) }
}
