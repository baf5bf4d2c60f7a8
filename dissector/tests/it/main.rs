//! These are the integration tests of the dissector. Each subject has its own module. All modules
//! are in one binary, so that the build links the libraries only once.

mod causes;
mod common;
mod connections;
mod diagnosis;
mod files;
mod filters_doc;
mod framing;
mod habits;
mod io;
mod io_protocols;
mod iser;
mod layers;
mod links;
mod metamorphic;
mod networks;
mod nvme;
mod osc;
mod portmap;
mod sdp_port;
mod smb;
mod sources;
mod streams;
mod tunnels;
