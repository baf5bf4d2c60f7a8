//! Accesses the device of this host with libibverbs and librdmacm, which are loaded at run time.
//! This is the only module of the crate with unsafe code.
//!
//! | file | content |
//! | --- | --- |
//! | `abi` | the structures that both libraries share with programs |
//! | `load` | the libraries, and their functions |
//! | `device` | selection and description of the device |
//! | `connect` | connections and listeners: librdmacm's identifiers |
//! | `work` | work requests, completions and asynchronous events |
//! | `memory` | memory that the device can read or write at any time |
//! | `route` | passes asynchronous events to the control connections that they concern |
//! | `socket_address` | socket addresses in the format of the libraries |
//! | `names` | names of the libraries' numeric constants |
//! | `nic` | the objects of one control connection, and the actions on them |
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

pub use device::{OpenError, OpenOptions};
pub use load::LibraryError;
pub use nic::Nic;
