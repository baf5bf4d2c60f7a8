//! Peer and monitor against each other: the hostile twin is caught, the correct one is not.
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
