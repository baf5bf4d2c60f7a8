//! [`Pdu`]: one request or response of a message, and the request that a response answers.

use std::fmt;

use super::file_id::FileId;
use super::header::Header;
use super::names;
use super::request::{InfoClass, Request};
use super::response::Response;
use super::status::Status;
use crate::frame_number::FrameNumber;

/// A request or response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdu {
    /// Offset of the header in the message, in bytes.
    pub at: u64,
    /// Length in bytes, with the padding before the next header.
    pub len: u64,
    /// Header.
    pub header: Header,
    /// Body.
    pub body: Body,
    /// The request that a response answers; `None` for a request, and if weft does not know the
    /// request.
    pub answered: Option<Box<SentRequest>>,
    /// The response to a request, if weft read the response before the request.
    pub early_response: Option<EarlyResponse>,
}

/// A response that weft read before its request. This happens only if a connection has no CRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyResponse {
    /// Status.
    pub status: Status,
    /// Body.
    pub response: Response,
    /// Number of the frame that completed the response.
    pub frame: FrameNumber,
    /// Capture time of this frame in nanoseconds since 1970.
    pub time: u64,
}

/// The body of a request or response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Of a request.
    Request(Request),
    /// Of a response.
    Response(Response),
}

/// A request with the time at which it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRequest {
    /// Header.
    pub header: Header,
    /// Body.
    pub request: Request,
    /// Number of the frame that completed the request.
    pub frame: FrameNumber,
    /// Capture time of this frame in nanoseconds since 1970.
    pub time: u64,
}

impl SentRequest {
    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<SentRequest>() + self.request.memory()
    }
}

impl Pdu {
    /// Allocated memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let body = match &self.body {
            Body::Request(request) => request.memory(),
            Body::Response(_) => 0,
        };
        body + self.answered.as_ref().map_or(0, |answered| answered.memory())
    }
}

impl fmt::Display for Pdu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header { command, message_id, .. } = self.header;
        match &self.body {
            Body::Request(request) => {
                write!(f, "{command} Request {message_id}")?;
                parameters(request, f)
            }
            Body::Response(response) => {
                write!(f, "{command} Response {message_id}")?;
                if let Some(status) = self.header.status {
                    write!(f, " {status}")?;
                }
                results(response, f)?;
                let Some(answered) = &self.answered else { return Ok(()) };
                write!(f, ", request in frame {}", answered.frame)?;
                match &answered.request {
                    Request::Read(read) => write!(f, " (offset {} length {})", read.offset, read.length),
                    Request::Write(write) => write!(f, " (offset {} length {})", write.offset, write.total_len()),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Writes the main parameters of a request, each after a space.
fn parameters(request: &Request, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match request {
        Request::Negotiate(negotiate) => {
            f.write_str(" dialects")?;
            negotiate.dialects.iter().try_for_each(|dialect| write!(f, " {dialect:#06x}"))
        }
        Request::TreeConnect { path: Some(path) } => write!(f, " {path}"),
        Request::Create(create) => {
            if let Some(name) = create.name.as_ref().filter(|name| !name.is_empty()) {
                write!(f, " {name}")?;
            }
            named(f, names::disposition(create.disposition.into()), create.disposition)
        }
        Request::Read(read) => write!(f, " offset {} length {}{}", read.offset, read.length, read.channel),
        Request::Write(write) => {
            write!(f, " offset {} length {}{}", write.offset, write.total_len(), write.channel)
        }
        Request::Ioctl { code, .. } => named(f, names::ioctl((*code).into()), *code),
        Request::QueryDirectory { class, pattern, .. } => {
            named(f, names::file_info((*class).into()), (*class).into())?;
            pattern.as_ref().map_or(Ok(()), |pattern| write!(f, " {pattern}"))
        }
        Request::QueryInfo { info, .. } | Request::SetInfo { info, .. } => {
            let class = info.class.into();
            let name = match info.info_type {
                InfoClass::FILE => names::file_info(class),
                InfoClass::FILE_SYSTEM => names::fs_info(class),
                other => names::info_type(other.into()),
            };
            named(f, name, info.class.into())
        }
        Request::Close { file, .. } | Request::Flush { file } if *file != FileId::PREVIOUS => write!(f, " file {file}"),
        Request::Lock { count, .. } => write!(f, " ranges {count}"),
        Request::OplockBreak { level, .. } => named(f, names::oplock((*level).into()), (*level).into()),
        Request::Unparsed => f.write_str(" with a wrong body"),
        Request::SessionSetup(_)
        | Request::Logoff
        | Request::TreeConnect { path: None }
        | Request::TreeDisconnect
        | Request::Close { .. }
        | Request::Flush { .. }
        | Request::Cancel
        | Request::Echo
        | Request::ChangeNotify { .. }
        | Request::LeaseBreak { .. } => Ok(()),
    }
}

/// Writes the main results of a response, each after a space.
fn results(response: &Response, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match response {
        Response::Negotiate(negotiate) => named(f, names::dialect(negotiate.dialect.into()), negotiate.dialect.into()),
        Response::TreeConnect { share_type, .. } => {
            named(f, names::share_type((*share_type).into()), (*share_type).into())
        }
        Response::Create { action, file, .. } => {
            named(f, names::create_action((*action).into()), *action)?;
            write!(f, " file {file}")
        }
        Response::Read { length, .. } => write!(f, " length {length}"),
        Response::Write { count } => write!(f, " count {count}"),
        Response::Output { len } => write!(f, " {len} bytes"),
        Response::OplockBreak { level, .. } => named(f, names::oplock((*level).into()), (*level).into()),
        Response::Unparsed => f.write_str(" with a wrong body"),
        Response::Error { .. }
        | Response::SessionSetup { .. }
        | Response::Close { .. }
        | Response::Ioctl { .. }
        | Response::LeaseBreak { .. }
        | Response::Empty => Ok(()),
    }
}

/// Writes the name of a value, or the value if it has no name.
fn named(f: &mut fmt::Formatter<'_>, name: Option<&str>, value: u32) -> fmt::Result {
    match name {
        Some(name) => write!(f, " {name}"),
        None => write!(f, " {value:#x}"),
    }
}
