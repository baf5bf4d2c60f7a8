//! The integration tests of the agent that share one process. Two more binaries have a process
//! each: `harm` counts its descriptors and threads, and `exhausted` lowers its limits.

mod control;
mod layout;
mod sockets;
mod talk;
