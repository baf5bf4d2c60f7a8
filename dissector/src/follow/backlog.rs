//! Finds out when every request is answered, after octets that the capture does not hold.

/// How many requests may be without response if not all of them were captured. Requests count by
/// their MSNs, including missing requests. Each captured response answers one request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backlog {
    /// Upper bound on the requests; `None` before the first request.
    most: Option<u64>,
    /// Responses before the first request.
    responses: u64,
    /// May requests after the last captured one be missing or late?
    open: bool,
    last_msn: Option<u32>,
}

impl Backlog {
    /// Octets are missing while `known` requests have no response. `requests`: the octets are the
    /// requester's.
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
        // There are more responses than requests: the requests come late.
        self.open |= self.most == Some(0);
        self.most = self.most.map(|most| most.saturating_sub(1));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.most == Some(0) && !self.open
    }
}
