//! If octets are missing in the capture, it is unknown how many requests are unanswered. This
//! module finds the point after which all requests are answered again.

use weft_core::wire::ddp::Msn;

/// An upper bound on the unanswered requests of one requester, if requests may be missing in the
/// capture. The number of requests is derived from their MSNs. Therefore missing requests count as
/// well. Each captured response answers one request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backlog {
    /// Upper bound on the number of unanswered requests. `None` until a request is captured or
    /// [`Backlog::record_loss`] sets the bound.
    max: Option<u64>,
    /// Number of responses captured since [`Backlog::record_loss`] last set the bound.
    responses: u64,
    /// Whether requests after the last captured request may be missing or may be captured late.
    may_lack_requests: bool,
    last_msn: Option<Msn>,
}

impl Backlog {
    /// Records that octets are missing. `known` is the number of unanswered requests, or `None` if
    /// this number is uncertain. If `requests` is set, the missing octets may contain requests.
    pub(super) fn record_loss(&mut self, known: Option<usize>, requests: bool) {
        if let Some(known) = known {
            (self.max, self.responses) = (Some(known as u64), 0);
        }
        self.may_lack_requests |= requests;
    }

    pub(super) fn record_request(&mut self, msn: Msn) {
        let sent = match (self.max, self.last_msn) {
            (Some(max), Some(last)) => max + u64::from(msn.messages_since(last).max(1)),
            _ => u64::from(msn.get()).saturating_sub(self.responses).max(1),
        };
        *self = Backlog { max: Some(sent), may_lack_requests: false, last_msn: Some(msn), ..*self };
    }

    pub(super) fn record_response(&mut self) {
        self.responses += 1;
        // If the bound is already 0, there are more responses than requests. So some requests will
        // be captured after their responses.
        self.may_lack_requests |= self.max == Some(0);
        self.max = self.max.map(|max| max.saturating_sub(1));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.max == Some(0) && !self.may_lack_requests
    }
}
