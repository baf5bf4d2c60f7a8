//! SDP's twins against each other and the monitor.

mod clean;
mod end;
mod net;
mod random;
