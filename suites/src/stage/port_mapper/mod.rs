//! A target that is a port mapper (`server`), or a client of one (`client`).

pub(super) mod client;
pub(super) mod server;
