//! The integration tests of the dissector, one module for each subject, in one binary: the
//! workspace then links the libraries once for all of them.

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
