//! Endpoints of `weft-peer` and the monitor of `weft-dissector`, tested against each other. The
//! monitor must catch a hostile endpoint, and must report nothing about a correct endpoint.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

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
