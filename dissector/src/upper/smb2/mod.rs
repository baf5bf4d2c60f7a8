//! Reads messages of SMB 2 and 3 (MS-SMB2): headers, compounds, and the main parameters of each
//! command. [`Conversation`] finds the request that each response answers.
//!
//! All fields are little-endian. Every offset, length and count comes from the wire, and is checked
//! before it is used. If a body is too short or has a wrong StructureSize, it is `Unparsed`. Lists
//! and texts have maximum lengths: 64 requests or responses of a compound, 64 dialects, 64
//! descriptors, 64 ranges of a lock, and 1024 UTF-16 code units of a name.
//!
//! Encrypted and compressed messages are only named.

mod bytes;
mod channel;
mod command;
mod conversation;
mod file_id;
mod header;
mod message;
pub(crate) mod names;
mod pdu;
mod request;
mod response;
mod status;
#[cfg(test)]
mod tests;

pub use channel::{BufferDescriptor, Channel, ChannelInfo, MAX_DESCRIPTORS};
pub use command::Command;
pub use conversation::{Conversation, MAX_OUTSTANDING, MAX_OUTSTANDING_BYTES};
pub use file_id::FileId;
pub use header::{Flags, HEADER_LEN, Header};
pub use message::{Compound, CompoundEnd, CompressionHeader, MAX_COMPOUND, Message, TransformHeader};
pub use pdu::{Body, EarlyResponse, Pdu, SentRequest};
pub use request::{
    CreateRequest, InfoClass, LockRange, NegotiateRequest, ReadRequest, Request, SessionSetupRequest, WriteRequest,
};
pub use response::{NegotiateResponse, Response};
pub use status::Status;
