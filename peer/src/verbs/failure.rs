//! Failures of the RNIC itself, at the Consumer's wish (draft Figures 24 and 25, Local Errors).
//!
//! Software has no parity errors. A tester still wants to see what a peer makes of an RNIC that
//! dies, and what is reported to a Consumer: so a thing can be made to fail, and then behaves as
//! the draft has it. Nothing else calls this.

use super::async_event::{AsyncEvent, EventId, Resource};
use super::rnic::Rnic;
use super::{CqHandle, QpHandle, QpState, SrqHandle};
use crate::time::Instant;

/// The operation that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// A CQ takes no more completions. Reported at once; each Queue Pair with one for it terminates
    /// then (code 0x0207).
    Cq(CqHandle),
    /// An S-RQ gives no more receives. Reported at once; each Queue Pair that wants one terminates
    /// then (code 0x0207).
    Srq(SrqHandle),
    /// A Queue Pair in RTS, which terminates (code 0x0207).
    Qp(QpHandle),
    /// The RNIC: all Queue Pairs in RTS terminate (code 0x0208).
    Rnic,
}

impl Rnic {
    /// Lets something fail; false when it is not there, or is a Queue Pair that is not in RTS.
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

    /// Ends a stream for an error of its Queue Pair that `event` reports, or of the RNIC itself.
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
