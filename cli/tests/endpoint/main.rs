//! Tests the commands that use weft's own endpoint: `weft serve`, the workloads (`ping`, `probe`,
//! `bench`, `cat`), the port mapper, SDP sockets, the agent and the soak test.

mod agent;
mod ping;
mod pm;
mod probe;
mod sdp;
mod serve;
mod signals;
mod skip;
mod soak;
mod wait;
mod workloads;
