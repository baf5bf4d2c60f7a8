//! Simulated failures of the RNIC (draft-hilland-rddp-verbs Figures 24 and 25, Local Errors).
//!
//! Software has no parity errors. But a tester needs to observe how a peer reacts to a failing
//! RNIC, and what the RNIC reports to a Consumer. Therefore a tester can make a part of the RNIC
//! fail. After the failure, the RNIC behaves as the draft requires.

use super::async_event::{AsyncEvent, EventId, Resource};
use super::rnic::Rnic;
use super::{CqHandle, QpHandle, QpState, SrqHandle};
use crate::time::Instant;

/// The part of the RNIC that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// A CQ. The failed CQ accepts no more completions. The RNIC reports the failure at once. Each
    /// Queue Pair terminates (code 0x0207) when it has a completion for the CQ.
    Cq(CqHandle),
    /// An S-RQ. The failed S-RQ provides no more receives. The RNIC reports the failure at once.
    /// Each Queue Pair terminates (code 0x0207) when it needs a receive of the S-RQ.
    Srq(SrqHandle),
    /// A Queue Pair in RTS, which terminates (code 0x0207).
    Qp(QpHandle),
    /// The RNIC itself. All Queue Pairs in RTS terminate (code 0x0208).
    Rnic,
}

impl Rnic {
    /// Makes a part of the RNIC fail. Returns false if the part does not exist, or is a Queue Pair
    /// that is not in RTS.
    pub fn fail(&mut self, now: Instant, failure: Failure) -> bool {
        if !self.open {
            return false;
        }
        let (resource, event) = match failure {
            Failure::Cq(handle) => {
                let Ok(cq) = self.cq_mut(handle) else { return false };
                cq.failed = true;
                (Resource::Cq(handle), EventId::CqOperationError)
            }
            Failure::Srq(handle) => {
                let Ok(srq) = self.srq_mut(handle) else { return false };
                srq.failed = true;
                (Resource::Srq(handle), EventId::SrqCatastrophic)
            }
            Failure::Qp(handle) => {
                return self.end_stream_of(now, handle, Some(EventId::LocalQpCatastrophic));
            }
            Failure::Rnic => {
                for key in self.qps.keys() {
                    let handle = QpHandle { rnic: self.shared.id, key };
                    self.end_stream_of(now, handle, None);
                }
                (Resource::Rnic, EventId::RnicCatastrophic)
            }
        };
        self.shared.notify(AsyncEvent { resource, event });
        true
    }

    /// Ends the stream of a Queue Pair. If the Queue Pair has an error, `event` is the event that
    /// reports this error. If the RNIC has an error, `event` is `None`.
    fn end_stream_of(&mut self, now: Instant, qp: QpHandle, event: Option<EventId>) -> bool {
        let Ok(key) = self.qp_key(qp) else { return false };
        let Some(llp) = self.qps.get(key).and_then(|qp| qp.llp) else { return false };
        let Some(mut context) = self.context(now, llp) else { return false };
        if context.qp.state != QpState::Rts {
            return false;
        }
        match event {
            Some(event) => context.local_error(event),
            None => context.rnic_error(),
        }
        true
    }
}
