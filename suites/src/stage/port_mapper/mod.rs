//! The exchanges with a target that is a port mapper (`server`), or a client of a port mapper
//! (`client`).

pub(super) mod client;
pub(super) mod server;
