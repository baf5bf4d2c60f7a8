//! A [`Call`] is a datagram that a target sends to the tester's port mapper, or a connection to the
//! address in the port mapper's answer.

use std::net::SocketAddr;

use bytes::Bytes;

use super::tester::TesterConnection;

/// A datagram or connection from a target that queries a port mapper.
#[derive(Debug)]
pub enum Call {
    /// A datagram.
    Datagram {
        /// The tester's UDP socket that received the datagram.
        to: SocketAddr,
        /// The target's address.
        from: SocketAddr,
        /// Payload of the datagram.
        octets: Bytes,
    },
    /// A TCP connection.
    Connection {
        /// The tester's address that the target connected to; see
        /// [`Link::reserve_address`](super::Link::reserve_address).
        to: SocketAddr,
        /// The tester's side of the connection.
        connection: Box<TesterConnection>,
    },
}
