//! The SDP port mapper over UDP, in real time.
//!
//! - [`PmClient`]: queries any port mapper, with one future for each query;
//! - [`connect`](fn@connect), [`follow`]: query, then connect to the address in the answer, by SDP
//!   or by plain TCP;
//! - [`PmServer`]: a port mapper that answers on one or more addresses.
//!
//! If a server is bound to the unspecified address, the operating system picks the source address
//! of its answers. On a host with several addresses, bind the server to each address.

mod client;
mod connect;
mod server;
mod socket;
mod watch;

pub use client::{PmClient, PmError};
pub use connect::{ConnectError, Mapped, connect, follow, socket_at, source_for};
pub use server::PmServer;
