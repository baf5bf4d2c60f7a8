//! PM Client and PM Server as sans-IO machines, against octets laid out by hand as Figure 17 of the draft has them.
#![expect(clippy::unwrap_used, reason = "the lint's exemption of tests does not reach their helpers")]

mod accept;
mod ack;
mod cache;
mod client;
mod deny;
mod limits;
mod mangled;
mod octets;
mod request;
mod server;
mod several;
