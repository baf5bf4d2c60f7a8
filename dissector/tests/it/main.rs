//! The integration tests of the dissector, one module for each subject. All modules are in one
//! binary, so that the build links the libraries once and not for each module.

mod common;
mod connections;
mod files;
mod filters_doc;
mod framing;
mod habits;
mod layers;
mod links;
mod metamorphic;
mod networks;
mod osc;
mod portmap;
mod sdp_port;
mod sources;
mod streams;
mod tunnels;
