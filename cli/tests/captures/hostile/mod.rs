//! Tests the endpoints of `weft-peer` together with the monitor, which is the dissector and the
//! rules of `weft-dissector`. A hostile endpoint commits a deviation (a named fault). The monitor
//! must catch a hostile endpoint, and must report nothing about a correct endpoint.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

mod capture;
mod clean;
mod ladders;
mod mpa;
mod pair;
mod portmap;
mod proof;
mod reactions;
mod run;
mod sdp;
mod side;
mod traffic;
mod verdict;
mod world;
