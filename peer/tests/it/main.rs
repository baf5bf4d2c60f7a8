//! These are the integration tests of the endpoint. Each subject has its own module. All modules
//! are in one binary, so the libraries are linked only once.

mod cm;
mod connection;
mod hostile;
mod link;
mod mpa;
mod pm_driver;
mod portmap;
mod sdp;
mod sdp_socket;
mod sdp_wire;
mod tcp;
mod tester_service;
mod verbs;
mod wire;
mod workload;
