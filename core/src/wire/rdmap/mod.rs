//! Remote Direct Memory Access Protocol: RFC 5040, with the messages of RFC 7306.
//!
//! RDMAP's control octet and the STag to invalidate are fields of the DDP header
//! ([`crate::wire::ddp`]). This module describes the octets after the DDP header, in one file for
//! each message.

mod atomic;
mod control;
mod immediate;
mod opcode;
mod read_request;
mod terminate;
mod terminate_error;

pub use atomic::{AtomicOpcode, AtomicOperation, AtomicRequest, AtomicResponse, RawAtomicRequest, RawAtomicResponse};
pub use control::Control;
pub use immediate::{Immediate, RawImmediate};
pub use opcode::Opcode;
pub use read_request::{RawReadRequest, ReadRequest};
pub use terminate::{HeaderControl, RawTerminate, RawTerminateParts, SEGMENT_LENGTH_LEN, Terminate};
pub use terminate_error::{ErrorLayer, TerminateError};
