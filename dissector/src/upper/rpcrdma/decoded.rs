//! [`Decoded`]: a message of RPC-over-RDMA with its RPC message.

use std::fmt;

use super::header::{Header, Lists};
use super::message::{Call, Reply, ReplyStatus, RpcMessage, Target};
use super::nfs::{Body, Operation, ParameterKind};
use super::private_data::Settings;
use super::program::{accept_status_name, auth_status_name};
use super::xdr::Stop;
use crate::frame_number::FrameNumber;

/// Maximum number of operations in a summary.
const MAX_SHOWN_OPERATIONS: usize = 12;

/// The carrier of an RPC message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// The Send with the transport header.
    Send,
    /// A Position Zero Read chunk. The message is decoded when the last Read Response arrives.
    ReadChunk,
    /// A Reply chunk. The message is decoded when the `RDMA_NOMSG` arrives.
    ReplyChunk,
}

impl Carrier {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Send => "send",
            Carrier::ReadChunk => "read_chunk",
            Carrier::ReplyChunk => "reply_chunk",
        }
    }
}

/// The call to which a reply, an error or the bytes of a chunk belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallReference {
    /// The frame that completed the Send of the call.
    pub frame: FrameNumber,
    /// Capture time of this frame in nanoseconds since 1970.
    pub time: u64,
    /// The chunk lists of the call.
    pub lists: Lists,
    /// Number of bytes that Read Responses transferred from the Read chunks of the call.
    pub read_bytes: u64,
    /// Number of bytes that RDMA Writes transferred to the Write chunks and the Reply chunk.
    pub written_bytes: u64,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The transport header; `None` if the message is in a Position Zero Read chunk.
    pub header: Option<Header>,
    /// The RPC message, if the carrier has it and it could be read.
    pub message: Option<RpcMessage>,
    /// Why the rest of the message was not read; `None` if it was read to its end.
    pub stop: Option<Stop>,
    /// The carrier of the RPC message.
    pub carrier: Carrier,
    /// Whether the message belongs to a call in the reverse direction (RFC 8167): the server calls
    /// the client. `None` if the roles are not known.
    pub is_reverse: Option<bool>,
    /// The settings of the connection.
    pub settings: Settings,
    /// The inline threshold of the sender of this message in bytes.
    pub inline_threshold: u32,
    /// Length of the Send in bytes; for a Position Zero Read chunk, length of the chunk.
    pub len: u64,
    /// Message Offset of the segment that completes the Send, in bytes. Only bytes from this offset
    /// on are in the current FPDU.
    pub segment_at: u32,
    /// The call to which the message belongs, if the message is not itself a call in a Send.
    pub call: Option<CallReference>,
}

impl Decoded {
    /// The offset of the RPC message in the Send, in bytes; `None` if the RPC message is not in the
    /// Send.
    #[must_use]
    pub fn rpc_at(&self) -> Option<u32> {
        match (self.carrier, &self.header) {
            (Carrier::Send, Some(header)) => Some(header.len),
            _ => None,
        }
    }
}

/// A summary of the RPC message.
impl fmt::Display for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = self.header.as_ref().and_then(|header| header.error) {
            let code = error.code();
            match super::header::TransportError::name(code) {
                Some(name) => write!(f, "{name}")?,
                None => write!(f, "error {code}")?,
            }
        }
        match &self.message {
            Some(RpcMessage::Call(call)) => self.fmt_call(call, f)?,
            Some(RpcMessage::Reply(reply)) => self.fmt_reply(reply, f)?,
            None => {}
        }
        match (self.stop, &self.message) {
            (Some(stop), Some(_)) => write!(f, "  [{}]", stop.remark()),
            (Some(stop), None) => write!(f, "[{}]", stop.remark()),
            (None, _) => Ok(()),
        }
    }
}

impl Decoded {
    /// Whether the summary is not empty.
    #[must_use]
    pub fn has_summary(&self) -> bool {
        self.message.is_some() || self.stop.is_some() || self.header.as_ref().is_some_and(|it| it.error.is_some())
    }

    fn fmt_call(&self, call: &Call, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_target(&call.target, f)?;
        f.write_str(" call")?;
        if let Some(body) = &call.body {
            fmt_body(&call.target, body, f)?;
        }
        self.fmt_carrier(f)
    }

    fn fmt_reply(&self, reply: &Reply, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(target) = &reply.target {
            fmt_target(target, f)?;
            f.write_str(" ")?;
        }
        f.write_str("reply")?;
        let named = |status: u32, name: Option<&'static str>| name.map_or_else(|| status.to_string(), str::to_owned);
        match reply.status {
            ReplyStatus::Accepted(0) => {}
            ReplyStatus::Accepted(status) => write!(f, " {}", named(status, accept_status_name(status)))?,
            ReplyStatus::ProgramMismatch { low, high } => write!(f, " PROG_MISMATCH versions {low} to {high}")?,
            ReplyStatus::RpcMismatch { low, high } => write!(f, " RPC_MISMATCH versions {low} to {high}")?,
            ReplyStatus::AuthenticationError(status) => {
                write!(f, " AUTH_ERROR {}", named(status, auth_status_name(status)))?;
            }
        }
        if let (Some(target), Some(body)) = (&reply.target, &reply.body) {
            fmt_body(target, body, f)?;
        }
        self.fmt_carrier(f)
    }

    fn fmt_carrier(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.carrier {
            Carrier::Send => Ok(()),
            Carrier::ReadChunk => f.write_str(" in a Read chunk"),
            Carrier::ReplyChunk => f.write_str(" in a Reply chunk"),
        }
    }
}

fn fmt_target(target: &Target, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match target.program.name() {
        Some(name) => write!(f, "{name} V{} ", target.version)?,
        None => write!(f, "program {} V{} ", target.program_number, target.version)?,
    }
    match target.procedure_name() {
        Some(name) => f.write_str(name),
        None => write!(f, "procedure {}", target.procedure),
    }
}

fn fmt_status(target: &Target, status: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match target.status_name(status) {
        Some(name) => write!(f, " {name}"),
        None => write!(f, " status {status}"),
    }
}

/// Writes the operations of a COMPOUND, or the parameters of another procedure.
fn fmt_body(target: &Target, body: &Body, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if body.count.is_none() && body.tag.is_none() && body.status.is_none() {
        for operation in &body.operations {
            if let Some(status) = operation.status {
                fmt_status(target, status, f)?;
            }
            fmt_parameters(operation, f)?;
        }
        return Ok(());
    }
    if let Some((status, _)) = body.status {
        fmt_status(target, status, f)?;
    }
    for (index, operation) in body.operations.iter().take(MAX_SHOWN_OPERATIONS).enumerate() {
        f.write_str(if index == 0 { ": " } else { ", " })?;
        match target.operation_name(operation.opcode) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "operation {}", operation.opcode)?,
        }
        if let Some(status) = operation.status.filter(|status| *status != 0) {
            fmt_status(target, status, f)?;
        }
        fmt_parameters(operation, f)?;
    }
    match body.operations.len().checked_sub(MAX_SHOWN_OPERATIONS) {
        Some(more) if more > 0 => write!(f, " and {more} more"),
        _ => Ok(()),
    }
}

/// The parameters that a summary shows, with their labels.
const SHOWN_NUMBERS: [(ParameterKind, &str); 9] = [
    (ParameterKind::Slot, "slot"),
    (ParameterKind::Offset, "offset"),
    (ParameterKind::Count, "count"),
    (ParameterKind::Length, "length"),
    (ParameterKind::Stable, "stable"),
    (ParameterKind::Committed, "committed"),
    (ParameterKind::ReadDataLength, "data"),
    (ParameterKind::WriteDataLength, "data"),
    (ParameterKind::Entries, "entries"),
];

fn fmt_parameters(operation: &Operation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for name in operation.texts(ParameterKind::Name) {
        write!(f, " {:?}", name.as_str())?;
    }
    for target in operation.texts(ParameterKind::LinkTarget) {
        write!(f, " target {:?}", target.as_str())?;
    }
    for (kind, label) in SHOWN_NUMBERS {
        if let Some(number) = operation.number(kind) {
            write!(f, " {label} {number}")?;
        }
    }
    Ok(())
}
