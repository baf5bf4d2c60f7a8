//! Matches each request with its response, and counts requests without response. Two kinds of
//! operations consist of a request and a response: RDMA Reads and atomic operations.
//!
//! Responses come in the order of the requests. Therefore one queue for each requester is enough.
//! The queue has at most [`MAX_REQUESTS`] requests. If more requests are unanswered, or if octets
//! are missing in the capture, the queue is uncertain. While it is uncertain, a Response is matched
//! by its sink. Several requests can have the same sink, so rules do not check this match. If a
//! response is processed before its request, it is kept until the request arrives
//! ([`EarlyResponse`]). [`Backlog`] finds out when all requests are answered. From this moment on,
//! the queue is certain again.

mod request;
mod response;

use std::collections::VecDeque;

use weft_core::wire::ddp::Msn;
use weft_core::wire::rdmap::{Opcode, ReadRequest};

use super::backlog::Backlog;
use super::early_responses::{EarlyResponse, ResponseKey};
use super::segment_location::SegmentLocation;
use crate::fact::Operation;
use crate::frame_number::FrameNumber;
use crate::parse::Location;

/// Maximum number of unanswered requests that are kept for each requester. This is also the maximum
/// number of kept responses whose requests are not processed yet.
const MAX_REQUESTS: usize = 4096;

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
    fn is_answered_by(&self, key: ResponseKey) -> bool {
        match (self, key) {
            (RequestKind::Read(read), ResponseKey::Sink(stag, to)) => read.sink_stag == stag && read.sink_to == to,
            (RequestKind::Atomic { identifier, .. }, ResponseKey::Identifier(found)) => *identifier == found,
            (RequestKind::Read(_), ResponseKey::Identifier(_))
            | (RequestKind::Atomic { .. }, ResponseKey::Sink(..)) => false,
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
    pub msn: Msn,
    /// The frame of the request.
    pub frame: FrameNumber,
    /// Stream position after the request's FPDU.
    pub end: u64,
    time: u64,
    /// Number of outstanding requests directly after this request; `None` if some of these requests
    /// may be unknown, or may be answered.
    outstanding: Option<u32>,
    /// Number of captured payload octets of the response so far.
    pub answered: u64,
    /// The frame in which the response began.
    response_frame: Option<FrameNumber>,
    segments: u32,
    /// Whether the response was processed before the request. If so, the response is not compared
    /// with the request.
    is_late: bool,
}

/// An overrun: more requests are unanswered than the endpoints negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overrun {
    /// The frame of the first request over the limit.
    pub frame: FrameNumber,
    /// Header of the request in `frame`.
    pub header: Location,
    /// Number of requests that were outstanding at that time.
    pub outstanding: u32,
    /// Maximum number of outstanding requests that the endpoints negotiated.
    pub limit: u32,
}

impl Overrun {
    /// Corrects `overrun` if the monitor processed a response late. Frame `answered` has the
    /// response to the request in frame `requested`. If both frames are before the first request
    /// over the limit, the response had already arrived. So one request fewer was outstanding at
    /// that time, and it is possible that there was no overrun.
    fn correct(overrun: &mut Option<Self>, requested: FrameNumber, answered: FrameNumber) {
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
    /// Index in `requests` of the request whose Response is being received.
    current: Option<usize>,
    /// Whether all unanswered requests are known.
    certain: bool,
    backlog: Backlog,
    /// Responses that were processed before their requests, oldest first.
    early_responses: VecDeque<EarlyResponse>,
    /// Header and opcode of the first response that was processed before its request.
    first_early_response: Option<(Location, Opcode)>,
    /// The first overrun if only Reads are counted. `None` if a response that was processed late
    /// explains the overrun.
    overrun: Option<Overrun>,
    /// The first overrun if Reads and atomic operations are counted together.
    mixed_overrun: Option<Overrun>,
    /// The maximum number of requests that were outstanding at the same time, according to the
    /// order of frames. The number is counted only while all requests are known.
    max_outstanding: Option<usize>,
    /// Maximum number of outstanding requests that the endpoints negotiated; `None` if they
    /// negotiated no limit.
    pub limit: Option<u32>,
}

impl Operations {
    /// Starts the matching. Call this only if the capture has the first octet of both directions.
    pub(crate) fn start(&mut self) {
        self.certain = true;
    }

    /// Records that octets are missing. If `requests` is set, the missing octets may contain
    /// requests. Otherwise they may contain responses. Later messages are still matched, but the
    /// matches are not checked.
    pub(crate) fn record_loss(&mut self, requests: bool) {
        let mut backlog = self.backlog;
        backlog.record_loss(self.outstanding(), requests || self.certain && !self.early_responses.is_empty());
        let (mut requests, early_responses) =
            (std::mem::take(&mut self.requests), std::mem::take(&mut self.early_responses));
        requests.iter_mut().for_each(|request| request.outstanding = None);
        let Operations { limit, max_outstanding, .. } = *self;
        *self = Operations { requests, early_responses, limit, max_outstanding, backlog, ..Operations::default() };
    }

    /// Returns the requests without a complete response, oldest first. If some of these requests
    /// may be unknown, the iterator is empty.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|_| self.certain)
    }

    /// Returns the number of requests without a complete response; `None` if some of these requests
    /// may be unknown.
    pub(crate) fn outstanding(&self) -> Option<usize> {
        self.certain.then_some(self.requests.len())
    }

    /// Memory in use, in octets.
    pub(crate) fn memory(&self) -> usize {
        self.requests.capacity() * size_of::<Request>() + self.early_responses.capacity() * size_of::<EarlyResponse>()
    }

    /// Returns the unanswered request with `msn`.
    pub(crate) fn request(&self, msn: Msn) -> Option<&Request> {
        self.requests.iter().find(|request| request.msn == msn)
    }

    /// Returns the first response without a request: the location of its header, and its opcode.
    pub(crate) fn unsolicited(&self) -> Option<(Location, Opcode)> {
        self.first_early_response.filter(|_| self.certain && !self.early_responses.is_empty())
    }

    /// Returns the first overrun if only Reads are counted.
    pub(crate) fn overrun(&self) -> Option<Overrun> {
        self.overrun.filter(|_| self.certain)
    }

    /// Returns the first overrun if Reads and atomic operations are counted together.
    pub(crate) fn mixed_overrun(&self) -> Option<Overrun> {
        self.mixed_overrun.filter(|_| self.certain)
    }

    /// Returns whether an unanswered Read has the sink `stag` and `to`.
    pub(crate) fn is_awaiting(&self, stag: u32, to: u64) -> bool {
        self.requests.iter().any(|request| request.kind.has_sink(stag, to))
    }

    /// Returns whether all requests are certainly answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.certain && self.requests.is_empty()
    }

    /// Returns the STag and the TO of the sink where the next Read Response should begin. Returns
    /// `None` if the current Response is incomplete, or if no Read is outstanding.
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
    fn operation(&self, direction: u8, at: SegmentLocation) -> Operation {
        Operation {
            direction,
            atomic: self.kind.is_atomic(),
            len: match self.kind {
                RequestKind::Read(read) => read.rdmardsz,
                RequestKind::Atomic { .. } => 8,
            },
            outstanding: self.outstanding,
            frames: (self.frame, self.response_frame.unwrap_or(at.frame), at.frame),
            latency: at.time.saturating_sub(self.time),
        }
    }
}
