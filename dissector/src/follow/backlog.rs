//! Finds out when all requests are answered, after octets were missing in the capture.

/// An upper bound on the unanswered requests of one requester, if requests may be missing in the
/// capture. Requests are counted by their MSNs, so missing requests count as well. Each captured
/// response answers one request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backlog {
    /// Upper bound on the number of unanswered requests. `None` until a request is captured or
    /// [`Backlog::lose`] sets the bound.
    most: Option<u64>,
    /// Number of responses captured since [`Backlog::lose`] last set the bound.
    responses: u64,
    /// Whether requests after the last captured request may be missing or may be captured late.
    open: bool,
    last_msn: Option<u32>,
}

impl Backlog {
    /// Records that octets are missing. `known` is the number of unanswered requests, or `None` if
    /// that number is uncertain. `requests`: the missing octets may contain requests.
    pub(super) fn lose(&mut self, known: Option<usize>, requests: bool) {
        if let Some(known) = known {
            (self.most, self.responses) = (Some(known as u64), 0);
        }
        self.open |= requests;
    }

    pub(super) fn requested(&mut self, msn: u32) {
        let sent = match (self.most, self.last_msn) {
            (Some(most), Some(last)) => most + u64::from(msn.wrapping_sub(last).max(1)),
            _ => u64::from(msn).saturating_sub(self.responses).max(1),
        };
        *self = Backlog { most: Some(sent), open: false, last_msn: Some(msn), ..*self };
    }

    pub(super) fn answered(&mut self) {
        self.responses += 1;
        // There are more responses than requests, so some requests are captured late.
        self.open |= self.most == Some(0);
        self.most = self.most.map(|most| most.saturating_sub(1));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.most == Some(0) && !self.open
    }
}
