//! Operations that consist of a request and a response: RDMA Reads and atomic operations. Matches
//! each request with its response, and counts requests without response.
//!
//! Responses come in the order of the requests, so one queue for each requester is enough. The
//! queue holds at most [`MOST`] requests. Above that limit, and after octets missing in the
//! capture, the queue is uncertain. A Response is then matched by its sink. No rule is checked
//! then, because many requests may have the same sink. A response that is processed before its
//! request is kept until the request arrives ([`Early`]). [`Backlog`] finds out when all requests
//! are answered. The queue is certain again from then on.

mod request;
mod response;

use std::collections::VecDeque;

use weft_core::wire::rdmap::{Opcode, ReadRequest};

use super::backlog::Backlog;
use super::early::{Early, Key};
use super::message::At;
use crate::fact::Operation;
use crate::parse::Located;

/// Maximum number of unanswered requests that are kept for each requester.
const MOST: usize = 4096;

/// The type of a request, with its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// An RDMA Read.
    Read(ReadRequest),
    /// An atomic operation.
    Atomic {
        /// The Request Identifier.
        identifier: u32,
        /// Whether the operation is a FetchAdd.
        fetch_add: bool,
        /// Remote TO: the address of the operand.
        offset: u64,
    },
}

impl RequestKind {
    fn is_atomic(&self) -> bool {
        matches!(self, RequestKind::Atomic { .. })
    }

    /// Returns whether a response with this key answers the request.
    fn is_answered_by(&self, key: Key) -> bool {
        match (self, key) {
            (RequestKind::Read(read), Key::Sink(stag, to)) => read.sink_stag == stag && read.sink_to == to,
            (RequestKind::Atomic { identifier, .. }, Key::Identifier(found)) => *identifier == found,
            (RequestKind::Read(_), Key::Identifier(_)) | (RequestKind::Atomic { .. }, Key::Sink(..)) => false,
        }
    }

    fn has_sink(&self, stag: u32, to: u64) -> bool {
        matches!(self, RequestKind::Read(read) if read.sink_stag == stag && read.sink_to == to)
    }
}

/// A request without a complete response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// Read or atomic operation, with its fields.
    pub kind: RequestKind,
    /// MSN on queue 1.
    pub msn: u32,
    /// The frame of the request.
    pub frame: u64,
    /// Stream position after the request's FPDU.
    pub end: u64,
    time: u64,
    outstanding: u32,
    /// Octets of the response's payload captured so far.
    pub answered: u64,
    /// The frame in which the response began.
    begun: Option<u64>,
    segments: u32,
    /// Whether the response was processed before the request. The order is then not checked.
    is_late: bool,
}

/// More unanswered requests than were negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overrun {
    /// The frame of the first request over the limit.
    pub frame: u64,
    /// Header of that request.
    pub header: Located,
    /// Number of requests outstanding at that time.
    pub outstanding: u32,
    /// Number of requests that may be outstanding.
    pub limit: u32,
}

impl Overrun {
    /// Corrects `overrun` after the request of frame `requested` was answered in frame `answered`.
    /// If both frames are before the request over the limit, the monitor processed the response
    /// late. One request less was then outstanding, and the overrun may disappear.
    fn answered(overrun: &mut Option<Self>, requested: u64, answered: u64) {
        if let Some(Overrun { frame, outstanding, limit, .. }) = overrun
            && answered < *frame
            && requested < *frame
        {
            *outstanding -= 1;
            if *outstanding <= *limit {
                *overrun = None;
            }
        }
    }
}

/// The Reads and atomic operations of one requester.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operations {
    requests: VecDeque<Request>,
    /// The position in `requests` of the request whose Response is being received.
    current: Option<usize>,
    /// Whether all unanswered requests are known.
    certain: bool,
    backlog: Backlog,
    /// Responses that were processed before their requests, oldest first.
    early: VecDeque<Early>,
    /// Header and opcode of the first response that was processed before its request.
    first_early: Option<(Located, Opcode)>,
    /// The first overrun by Reads alone, unless a response that was processed late explains it.
    overrun: Option<Overrun>,
    /// The first overrun by Reads and atomic operations together.
    mixed_overrun: Option<Overrun>,
    /// The maximum number of requests outstanding at a time, by the order of frames. Counted only
    /// while all requests are known.
    deepest: Option<usize>,
    /// Number of requests that may be outstanding; `None` if not negotiated.
    limit: Option<u32>,
}

impl Operations {
    /// Starts the matching. Both directions were captured from their first octet on.
    pub(crate) fn begin(&mut self) {
        self.certain = true;
    }

    /// Records that octets are missing. With `requests`, the octets may contain requests, otherwise
    /// responses. Later messages are still matched, but not checked.
    pub(crate) fn lose(&mut self, requests: bool) {
        let mut backlog = self.backlog;
        backlog.lose(self.outstanding(), requests || self.certain && !self.early.is_empty());
        let (requests, early) = (std::mem::take(&mut self.requests), std::mem::take(&mut self.early));
        let Operations { limit, deepest, .. } = *self;
        *self = Operations { requests, early, limit, deepest, backlog, ..Operations::default() };
    }

    /// Sets the number of requests that may be outstanding.
    pub(crate) fn limit(&mut self, limit: u32) {
        self.limit = Some(limit);
    }

    /// Returns the requests without a complete response, oldest first. The iterator is empty if not
    /// all of these requests are known.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|_| self.certain)
    }

    /// Returns the number of requests without a complete response; `None` if not all of these
    /// requests are known.
    pub(crate) fn outstanding(&self) -> Option<usize> {
        self.certain.then_some(self.requests.len())
    }

    /// Octets of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.requests.capacity() * size_of::<Request>() + self.early.capacity() * size_of::<Early>()
    }

    /// Returns the unanswered request with `msn`.
    pub(crate) fn request(&self, msn: u32) -> Option<&Request> {
        self.requests.iter().find(|request| request.msn == msn)
    }

    /// Returns header and opcode of the first response without a request.
    pub(crate) fn unsolicited(&self) -> Option<(Located, Opcode)> {
        self.first_early.filter(|_| self.certain && !self.early.is_empty())
    }

    /// Returns the first overrun by Reads alone.
    pub(crate) fn overrun(&self) -> Option<Overrun> {
        self.overrun.filter(|_| self.certain)
    }

    /// Returns the first overrun by Reads and atomic operations together.
    pub(crate) fn mixed_overrun(&self) -> Option<Overrun> {
        self.mixed_overrun.filter(|_| self.certain)
    }

    /// Returns whether an unanswered Read has the sink `stag` and `to`.
    pub(crate) fn awaits(&self, stag: u32, to: u64) -> bool {
        self.requests.iter().any(|request| request.kind.has_sink(stag, to))
    }

    /// Returns whether all requests are certainly answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.certain && self.requests.is_empty()
    }

    /// Returns STag and TO of the sink where the next Read Response should begin. `None` if a
    /// Response is incomplete, or if no Read is outstanding.
    pub(crate) fn next_sink(&self) -> Option<(u32, u64)> {
        if self.current.is_some() {
            return None;
        }
        self.requests.iter().find_map(|request| match request.kind {
            RequestKind::Read(read) => Some((read.sink_stag, read.sink_to)),
            RequestKind::Atomic { .. } => None,
        })
    }
}

impl Request {
    /// Creates the finished operation. `direction` is the requester's direction. `at` is the last
    /// segment of the response.
    fn operation(&self, direction: u8, at: At) -> Operation {
        Operation {
            direction,
            atomic: self.kind.is_atomic(),
            len: match self.kind {
                RequestKind::Read(read) => read.rdmardsz,
                RequestKind::Atomic { .. } => 8,
            },
            outstanding: self.outstanding,
            frames: (self.frame, self.begun.unwrap_or(at.frame), at.frame),
            latency: at.time.saturating_sub(self.time),
        }
    }
}
