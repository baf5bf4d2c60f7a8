//! The integration tests of the endpoint, one module for each subject, in one binary: the workspace
//! then links the libraries once for all of them.

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
mod workload;
