//! Socket addresses in the format of the C libraries.

use std::net::SocketAddr;

use libc::{AF_INET, AF_INET6, in_addr, in6_addr, sockaddr_in, sockaddr_in6, sockaddr_storage};

pub(super) fn socket_address(address: SocketAddr) -> sockaddr_storage {
    // SAFETY: zero is a valid value of each member.
    let mut storage: sockaddr_storage = unsafe { core::mem::zeroed() };
    match address {
        SocketAddr::V4(address) => {
            let socket = sockaddr_in {
                sin_family: AF_INET as _,
                sin_port: address.port().to_be(),
                sin_addr: in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is large enough and suitably aligned.
            unsafe { (&raw mut storage).cast::<sockaddr_in>().write(socket) };
        }
        SocketAddr::V6(address) => {
            let socket = sockaddr_in6 {
                sin6_family: AF_INET6 as _,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            // SAFETY: the storage is large enough and suitably aligned.
            unsafe { (&raw mut storage).cast::<sockaddr_in6>().write(socket) };
        }
    }
    storage
}
