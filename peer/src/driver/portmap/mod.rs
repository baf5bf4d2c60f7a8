//! The SDP port mapper over UDP, in real time.
//!
//! - [`PmClient`]: questions to any port mapper, each a future;
//! - [`connect`](fn@connect), [`follow`]: asks, and connects to what came of it: SDP's address, or plain TCP;
//! - [`PmServer`]: answers on one or more addresses.
//!
//! A server that is bound to the unspecified address lets the host choose where its answers come
//! from; where a host has several addresses, bind each of them.

mod client;
mod connect;
mod server;
mod socket;
mod watch;

pub use client::{PmClient, PmError};
pub use connect::{ConnectError, Mapped, connect, follow, socket_at, source_for};
pub use server::PmServer;
