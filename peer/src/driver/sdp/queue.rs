//! Work Requests that wait for the Send Queue, and the headers of messages whose payload is
//! gathered from other memory.
//!
//! One call posts all Work Requests that are due. Therefore one write passes them to TCP.

use std::collections::VecDeque;

use super::SdpError;
use super::area::Area;
use crate::driver::Device;
use crate::memory::{Access, PdId};
use crate::verbs::{Operation, Payload, QpHandle, SendWr};

/// Maximum number of Work Requests in the Send Queue.
pub(super) const SENDS: u32 = 256;
/// Maximum size of a message's headers in bytes.
pub(super) const HEAD: usize = 40;

/// Work Requests in the order in which they have to be posted.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    waiting: VecDeque<Waiting>,
    in_queue: u32,
    /// Headers of messages whose payload is gathered: a ring with one slot for each Work Request
    /// that the Send Queue can hold.
    pub(super) heads: Option<Area>,
    next_head: u64,
}

#[derive(Debug)]
struct Waiting {
    wr: SendWr,
    /// The headers, which precede the gathered payload.
    head: Vec<u8>,
}

impl SendQueue {
    /// Adds a Work Request. `head`, at most [`HEAD`] bytes, precedes the payload, which is in
    /// registered memory.
    pub(super) fn push(&mut self, device: &Device, pd: PdId, wr: SendWr, head: Vec<u8>) -> Result<(), SdpError> {
        if !head.is_empty() {
            let heads = match self.heads.take() {
                Some(heads) => heads,
                None => device.verbs(|rnic| Area::new(rnic, HEAD * SENDS as usize))?,
            };
            self.heads.insert(heads).ensure_registered(device, pd, Access::LOCAL)?;
        }
        self.waiting.push_back(Waiting { wr, head });
        Ok(())
    }

    /// Posts Work Requests until the Send Queue is full.
    pub(super) fn post(&mut self, device: &Device, qp: QpHandle) {
        let count = self.waiting.len().min(SENDS.saturating_sub(self.in_queue) as usize);
        if count == 0 {
            return;
        }
        let SendQueue { waiting, heads, next_head, .. } = self;
        let due: Vec<SendWr> = device.verbs(|rnic| {
            let complete = |Waiting { mut wr, head }| {
                if let (false, Some(heads)) = (head.is_empty(), &*heads)
                    && let Operation::Send { payload: Payload::Gather(gather), .. } = &mut wr.operation
                {
                    let at = *next_head % u64::from(SENDS) * HEAD as u64;
                    *next_head += 1;
                    heads.put(rnic, usize::try_from(at).unwrap_or(usize::MAX), &head);
                    let len = u32::try_from(head.len()).unwrap_or(u32::MAX);
                    if let Some(part) = heads.part(at, len) {
                        gather.insert(0, part);
                    }
                }
                wr
            };
            waiting.drain(..count).map(complete).collect()
        });
        let mut due = due.into_iter();
        while due.len() > 0 {
            let left = due.len();
            // If the Queue Pair has left RTS, it rejects Work Requests. A rejected Work Request
            // gets no completion. The completions of the receives report the end of the connection.
            let posted = device.post_send(qp, due.by_ref()).unwrap_or_else(|error| error.posted);
            self.in_queue += u32::try_from(posted).unwrap_or(u32::MAX);
            if due.len() == left {
                // The Queue Pair no longer exists, so it accepts no Work Request.
                break;
            }
        }
    }

    /// Notes that a posted Work Request has completed.
    pub(super) fn completed(&mut self) {
        self.in_queue = self.in_queue.saturating_sub(1);
    }

    /// Returns whether no Work Request is queued or in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.in_queue == 0
    }

    /// Takes the memory of the headers if no Work Request needs this memory now.
    pub(super) fn rest(&mut self) -> Option<Area> {
        self.heads.take_if(|_| self.waiting.is_empty() && self.in_queue == 0)
    }

    /// Drops all Work Requests, because the Queue Pair was replaced.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.in_queue = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::queue_pair;
    use super::*;
    use crate::sdp::Settings;
    use crate::verbs::{Node, RnicSettings};

    /// A message can end the connection while Work Requests of an earlier message are still in the
    /// queue. The queue then drops these Work Requests.
    #[tokio::test]
    async fn a_queue_pair_that_is_gone_keeps_nobody_waiting() {
        let device = Device::new(Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0);
        let pd = device.verbs(|rnic| rnic.memory_mut().allocate_pd()).unwrap();
        let (_, qp) = queue_pair(&device, pd, &Settings::default()).unwrap();
        device.destroy_qp(qp).unwrap();
        let mut queue = SendQueue::default();
        for wr_id in 0..3 {
            let payload = Payload::Inline(vec![1].into());
            let wr = SendWr::new(wr_id, Operation::Send { payload, solicited: false, invalidate: None });
            queue.push(&device, pd, wr, Vec::new()).unwrap();
        }
        queue.post(&device, qp);
        assert!(queue.is_empty());
    }
}
