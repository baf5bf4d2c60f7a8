//! Operations of two messages: Reads and atomics. Matches each request with its response, and
//! counts requests without one.
//!
//! Responses come in the order of the requests, so one queue for each requester is enough. The
//! queue holds at most [`MOST`] requests. Above that limit, and after octets that the capture does
//! not hold, a Response is matched by its sink and no rule is checked: many requests may have the
//! same sink. A response that is read before its request waits for it ([`Early`]). [`Backlog`]
//! finds out when every request is answered; the queue is certain again from then on.

mod request;
mod response;

use std::collections::VecDeque;

use weft_core::wire::rdmap::{Opcode, ReadRequest};

use super::backlog::Backlog;
use super::early::{Early, Key};
use super::message::At;
use crate::fact::Operation;
use crate::parse::Located;

/// Requests without response that are kept for each requester.
const MOST: usize = 4096;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// An RDMA Read.
    Read(ReadRequest),
    /// An atomic operation.
    Atomic {
        /// Its Request Identifier.
        identifier: u32,
        /// A FetchAdd?
        fetch_add: bool,
        /// Remote TO.
        offset: u64,
    },
}

impl RequestKind {
    fn is_atomic(&self) -> bool {
        matches!(self, RequestKind::Atomic { .. })
    }

    /// Does a response with this key answer it?
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
    /// Its frame.
    pub frame: u64,
    /// Stream position after its FPDU.
    pub end: u64,
    time: u64,
    outstanding: u32,
    /// Octets of the response that were observed.
    pub answered: u64,
    /// The frame of the first of them.
    begun: Option<u64>,
    segments: u32,
    /// Was its response read first? Then the order is not checked.
    is_late: bool,
}

/// More requests without response than were negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overrun {
    /// The frame of the first request over the limit.
    pub frame: u64,
    /// Header of that request.
    pub header: Located,
    /// How many requests were outstanding.
    pub outstanding: u32,
    /// How many requests may be outstanding.
    pub limit: u32,
}

impl Overrun {
    /// The request of frame `requested` was answered in frame `answered`. If that was before the
    /// request that seemed one too many, the capture delivered the response late, and there was no
    /// overrun.
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

/// The operations of one requester.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operations {
    requests: VecDeque<Request>,
    /// The position in `requests` of the request whose Response is being received.
    current: Option<usize>,
    /// Is every request without response known?
    certain: bool,
    backlog: Backlog,
    /// Responses that came before their requests, oldest first.
    early: VecDeque<Early>,
    /// The header of the first response that came before any request.
    first_early: Option<(Located, Opcode)>,
    /// The first overrun by Reads alone, unless a later response explains it.
    overrun: Option<Overrun>,
    /// The first overrun by Reads and atomic operations together.
    mixed_overrun: Option<Overrun>,
    /// The maximum number of requests outstanding at a time, by the order of frames, while all were
    /// known.
    deepest: Option<usize>,
    /// How many requests may be without response.
    limit: Option<u32>,
}

impl Operations {
    /// Both directions are captured from their first octet.
    pub(crate) fn begin(&mut self) {
        self.certain = true;
    }

    /// Octets are missing that may hold `requests`, else responses. Later messages are still
    /// matched, but not checked.
    pub(crate) fn lose(&mut self, requests: bool) {
        let mut backlog = self.backlog;
        backlog.lose(self.outstanding(), requests || self.certain && !self.early.is_empty());
        let (requests, early) = (std::mem::take(&mut self.requests), std::mem::take(&mut self.early));
        let Operations { limit, deepest, .. } = *self;
        *self = Operations { requests, early, limit, deepest, backlog, ..Operations::default() };
    }

    /// Sets how many requests may be without response.
    pub(crate) fn limit(&mut self, limit: u32) {
        self.limit = Some(limit);
    }

    /// Requests without a complete response, oldest first; none if they are not all known.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|_| self.certain)
    }

    /// How many requests are without a complete response; `None` if they are not all known.
    pub(crate) fn outstanding(&self) -> Option<usize> {
        self.certain.then_some(self.requests.len())
    }

    /// Octets of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.requests.capacity() * size_of::<Request>() + self.early.capacity() * size_of::<Early>()
    }

    /// The Read Request with `msn`.
    pub(crate) fn request(&self, msn: u32) -> Option<&Request> {
        self.requests.iter().find(|request| request.msn == msn)
    }

    /// The first response that no request explains.
    pub(crate) fn unsolicited(&self) -> Option<(Located, Opcode)> {
        self.first_early.filter(|_| self.certain && !self.early.is_empty())
    }

    /// The first overrun by Reads alone.
    pub(crate) fn overrun(&self) -> Option<Overrun> {
        self.overrun.filter(|_| self.certain)
    }

    /// The first overrun if atomic operations count as well.
    pub(crate) fn mixed_overrun(&self) -> Option<Overrun> {
        self.mixed_overrun.filter(|_| self.certain)
    }

    /// Is `stag`, `to` the sink of a Read without response?
    pub(crate) fn awaits(&self, stag: u32, to: u64) -> bool {
        self.requests.iter().any(|request| request.kind.has_sink(stag, to))
    }

    /// Is it certain that no request is without response?
    pub(crate) fn is_idle(&self) -> bool {
        self.certain && self.requests.is_empty()
    }

    /// The sink of the next Read Response.
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
    /// The finished operation, whose last response segment is `at`; `direction` is the requester's.
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
