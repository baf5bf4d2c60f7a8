//! Tests of PM Client and PM Server as sans-IO machines. Their messages are compared with synthetic
//! octets in the layout of the draft's Figure 17.
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
