//! The SDP port mapper (draft-pinkerton-iwarp-sdp-01 section 7): who wants to connect to a service
//! asks which address speaks SDP.
//!
//! | file | what |
//! | --- | --- |
//! | `client` | the PM Client: asks, repeats, takes the first answer, acknowledges it |
//! | `ask` | requests to a client, and their results: the SDP Address, or the Conventional Address and why |
//! | `cache` | answers that PmTime lets a client keep |
//! | `server` | the PM Server: answers Requests from its table |
//! | `table` | what is mapped to what, over several addresses, fixed or made for each Request |
//! | `requests` | Requests that were accepted: duplicates, the timer until the PMAck, limits |
//! | `rate` | the alarm of section 15.2.1 |
//! | `message` | from a datagram's octets to a message, and what is discarded |
//!
//! Both are sans-IO: datagrams, commands and an instant go in; datagrams, events and the next
//! deadline come out. After each call, `poll_datagram` and `poll_event` are to be drained. The
//! datagrams that a server gives answer the one it was just handed, so they leave by the socket
//! that one came in by.
//!
//! Left out: connections. The requester opens them itself, and reports a reset ([`Client::reset`]);
//! a listener informs the server that one arrived ([`Server::handle_connection`]). Authentication
//! (section 15.1) is the host's.

mod ask;
mod cache;
mod client;
mod message;
mod rate;
mod requests;
mod server;
mod table;

use core::net::SocketAddr;

pub use ask::{Ask, AskError, Fallback, Resolution};
pub use client::{Client, ClientSettings, Resolved, Transaction};
pub use message::Discarded;
pub use server::{Denial, Server, ServerEvent, ServerSettings};
pub use table::{Mapping, Table, TableError, Target};

/// A datagram to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Where to.
    pub to: SocketAddr,
    /// Its octets.
    pub octets: Vec<u8>,
    /// From another port than that of the machine; only a deviation asks for it.
    pub aside: bool,
}
