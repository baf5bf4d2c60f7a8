//! The device of this host: libibverbs and librdmacm, loaded at run time. The only place of this
//! crate with unsafe code.
//!
//! | file | what |
//! | --- | --- |
//! | `abi` | the structures that both libraries share with their users |
//! | `load` | the libraries, and their functions |
//! | `device` | which device it is, and what is known of it |
//! | `connect` | librdmacm's identifiers, from a listener or an address to the end |
//! | `work` | work requests, and what comes of them |
//! | `memory` | octets that a device reads and writes at times of its own |
//! | `route` | asynchronous events, brought to whom they concern |
//! | `socket_address` | socket addresses as the libraries take them |
//! | `names` | names of the libraries' numbers |
//! | `nic` | the objects of one control connection, and what is done with them |
#![expect(unsafe_code, reason = "libraries in C, found at run time")]
#![deny(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]

#[expect(missing_docs, reason = "the members' names are the libraries' own")]
pub mod abi;
mod connect;
mod device;
mod load;
mod memory;
mod names;
mod nic;
mod route;
mod socket_address;
mod work;

pub use device::{NoDevice, Opened};
pub use load::Missing;
pub use nic::Nic;
