//! These integration tests of the agent share one process. Two other test binaries have their own
//! processes: `harm` counts its descriptors and threads, and `exhausted` lowers its limits.

mod control;
mod layout;
mod sockets;
mod talk;
