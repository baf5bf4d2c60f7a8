//! Data that all Queue Pairs of an RNIC share: memory, Completion Queues, Shared Receive Queues,
//! events.

use std::collections::{BTreeMap, VecDeque};

use weft_core::wire::ddp::RawHeader;

use super::async_event::{AsyncEvent, EventId, Resource};
use super::cq::{Cq, Cqe, PushError};
use super::read_pool::ReadPool;
use super::slab::{Key, Slab};
use super::srq::Srq;
use super::work_request::ReceiveWr;
use super::{
    CompletionHandlerId, CqHandle, HandlerAddress, Notification, RnicId, RnicSettings, SrqHandle, WorkCompletion,
};
use crate::hostile::{self, Deviations};
use crate::memory::{Memory, MemoryRange};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: RnicId,
    pub(super) settings: RnicSettings,
    /// Deliberate protocol violations. By default, there are none.
    pub(super) deviations: Deviations,
    pub(super) memory: Memory,
    pub(super) cqs: Slab<Cq>,
    pub(super) srqs: Slab<Srq>,
    pub(super) handlers: BTreeMap<CompletionHandlerId, HandlerAddress>,
    pub(super) async_handler: Option<HandlerAddress>,
    pub(super) notifications: VecDeque<Notification>,
    pub(super) reads: ReadPool,
    /// A reused buffer for functions that need several [`MemoryRange`]s at a time.
    pub(super) ranges: Vec<MemoryRange>,
    /// Completions that a deviation delays.
    pub(super) held: Vec<WorkCompletion>,
    /// Bytes whose placement a deviation delays.
    pub(super) late: Vec<(PlacedPayload, MemoryRange, Vec<u8>)>,
}

/// The operation whose payload is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlacedPayload {
    Send,
    Write,
}

impl Shared {
    /// Reports an event to the asynchronous event handler. Without a handler, the event is lost
    /// (VERBS-8.3.3-6).
    pub(super) fn notify(&mut self, event: AsyncEvent) {
        if hostile::hook::conceals(&self.deviations, event.event) {
            return;
        }
        if let Some(handler) = self.async_handler {
            self.notifications.push_back(Notification::Asynchronous { handler, event });
        }
    }

    /// Writes received payload to memory.
    pub(super) fn place(&mut self, of: PlacedPayload, range: MemoryRange, octets: &[u8]) {
        if !self.deviations.is_empty() {
            let conduct = hostile::hook::conduct(&self.deviations);
            if matches!(
                (of, conduct.places_sends_late, conduct.places_writes_late),
                (PlacedPayload::Send, true, _) | (PlacedPayload::Write, _, true)
            ) {
                self.late.push((of, range, octets.to_vec()));
                // Place everything except the payload that arrived last.
                for (_, range, octets) in self.late.drain(..self.late.len() - 1) {
                    self.memory.put(range, &octets);
                }
                return;
            }
        }
        self.memory.put(range, octets);
    }

    /// Handles a rejected Write. Only a deviation places the payload of such a Write.
    pub(super) fn refuse_write(&mut self, stag: u32, to: u64, octets: &[u8]) {
        if hostile::hook::conduct(&self.deviations).places_refused {
            self.memory.write_unchecked(stag, to, octets);
        }
    }

    /// Handles an invalid FPDU. Only a deviation places the payload of its ULPDU.
    pub(super) fn refuse_fpdu(&mut self, ulpdu: &[u8]) {
        if hostile::hook::conduct(&self.deviations).places_bad_crc
            && let Some((RawHeader::Tagged(header), payload)) = RawHeader::from_prefix(ulpdu)
        {
            self.memory.write_unchecked(header.stag.get(), header.tagged_offset.get(), payload);
        }
    }

    /// Adds a completion to a CQ. If the CQ rejects the completion, returns the event to report for
    /// the Queue Pair.
    pub(super) fn complete(&mut self, key: Key, cqe: Cqe) -> Option<EventId> {
        if self.deviations.is_empty() {
            return self.push(key, cqe);
        }
        let completed = hostile::hook::completed(&self.deviations, &mut self.held, cqe.completion);
        completed.into_iter().fold(None, |failed, completion| failed.or(self.push(key, Cqe { completion, ..cqe })))
    }

    fn push(&mut self, key: Key, cqe: Cqe) -> Option<EventId> {
        let Some(cq) = self.cqs.get_mut(key) else { return Some(EventId::CqOperation) };
        let handle = CqHandle { rnic: self.id, key };
        match cq.push(cqe) {
            Ok(handler) => {
                // A handler that was removed in the meantime is not called (VERBS-9.3.2.2-4).
                if let Some(handler) = handler.and_then(|id| self.handlers.get(&id)).copied() {
                    self.notifications.push_back(Notification::Completion { handler, cq: handle });
                }
                None
            }
            Err(PushError::Failed) => Some(EventId::CqOperation),
            Err(PushError::Overflow) => {
                self.notify(AsyncEvent { resource: Resource::Cq(handle), event: EventId::CqOverflowDetected });
                Some(EventId::CqOverflow)
            }
        }
    }

    /// Takes a receive from an S-RQ, for a Queue Pair whose receives complete on the CQ `taker`.
    /// Also returns whether the event for the S-RQ limit has to be raised.
    pub(super) fn take_shared_receive(&mut self, key: Key, taker: Key) -> (SrqHandle, Option<(ReceiveWr, bool)>) {
        let handle = SrqHandle { rnic: self.id, key };
        let Some(srq) = self.srqs.get_mut(key) else { return (handle, None) };
        srq.taker = Some(taker);
        (handle, srq.take())
    }
}
