//! Tests the two machines of the SDP port mapper (draft-pinkerton-iwarp-sdp-01 section 7), PM
//! Client and PM Server, without a network. The tests compare the messages with octets in the
//! layout of the draft's Figure 17.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

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
