//! The SDP port mapper (draft-pinkerton-iwarp-sdp-01 section 7). A client requests the address at
//! which a service accepts SDP connections.
//!
//! The *Conventional Address* is the address of a service for TCP without SDP. The *SDP Address* is
//! the address of the same service for SDP. The *PM Client* sends a PMReq with the Conventional
//! Address. The *PM Server* answers with a PMAccept, which has the SDP Address, or with a PMDeny.
//! The client acknowledges a PMAccept with a PMAck. In this module, "Request" means a PMReq.
//!
//! | file | purpose |
//! | --- | --- |
//! | `client` | the PM Client: sends and repeats Requests, acknowledges the first answer |
//! | `query` | a query to the client, and its result: the SDP or the Conventional Address |
//! | `cache` | answers that a client may keep for their PmTime |
//! | `server` | the PM Server: answers Requests from its table |
//! | `table` | mapping of services to fixed SDP Addresses, or to one port for each Request |
//! | `requests` | accepted Requests: duplicates, the timer until the PMAck, limits |
//! | `rate` | the alarm for too many Requests in one second (section 15.2.1) |
//! | `message` | conversion of a datagram to a message; reasons to discard a datagram |
//!
//! Client and server are sans-IO. Inputs are datagrams, commands and the current time. Outputs are
//! datagrams, events and the next deadline. After each call, call `poll_datagram` and `poll_event`
//! until they return `None`. Each datagram that a server returns is an answer to the last datagram
//! that the caller passed in. The caller sends the answer through the socket that received this
//! last datagram.
//!
//! This module opens no connections. The caller of a client opens the connections, and reports a
//! reset ([`Client::reset`]). A listener reports each new connection to the server
//! ([`Server::handle_connection`]). Authentication (section 15.1) is a task of the host.

mod cache;
mod client;
mod message;
mod query;
mod rate;
mod requests;
mod server;
mod table;

use core::net::SocketAddr;

pub use client::{Client, ClientSettings, Resolved, Transaction};
pub use message::Discarded;
pub use query::{Fallback, Query, QueryError, Resolution};
pub use server::{Denial, Server, ServerEvent, ServerSettings};
pub use table::{Mapping, Table, TableError, Target};

/// A datagram to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Destination of the datagram.
    pub to: SocketAddr,
    /// Content of the datagram.
    pub octets: Vec<u8>,
    /// True if the datagram is sent from a port that is not the port of the client or server. Only
    /// a deviation (a deliberate protocol violation) sets this field.
    pub from_other_port: bool,
}
