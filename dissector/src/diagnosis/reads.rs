//! The Read Requests of an endpoint that have no complete response.
//!
//! **Memory.** At most [`MAX_READS`] requests are kept. The oldest ones are dropped first.

use std::collections::VecDeque;

use crate::exchange::CapturePoint;
use crate::frame_number::FrameNumber;

/// Maximum number of requests that are kept.
const MAX_READS: usize = 64;

/// The Read Requests of one endpoint without a complete response, the oldest first.
#[derive(Debug, Default)]
pub(super) struct OutstandingReads(VecDeque<CapturePoint>);

impl OutstandingReads {
    /// Records a Read Request.
    pub(super) fn add(&mut self, at: CapturePoint) {
        if self.0.len() >= MAX_READS {
            self.0.pop_front();
        }
        self.0.push_back(at);
    }

    /// Records that the Read Request in frame `request` has its complete response.
    pub(super) fn complete(&mut self, request: FrameNumber) {
        if let Some(at) = self.0.iter().position(|read| read.frame == request) {
            self.0.remove(at);
        }
    }

    /// The oldest request, and the number of all requests. `None` if there is no request.
    pub(super) fn oldest(&self) -> Option<(CapturePoint, u64)> {
        self.0.front().map(|oldest| (*oldest, self.0.len() as u64))
    }
}
