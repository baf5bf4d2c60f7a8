//! Work requests, their completions, and asynchronous events.

use bytes::Bytes;
use weft_core::wire::rdmap::AtomicOperation;
use weft_peer::Instant;
use weft_peer::hostile::{ConnectionOutcome, conceals_outcome};
use weft_peer::memory::{Bind, RemoteAccess, Stag, StagKey};
use weft_peer::verbs::{
    CompletionStatus, CqHandle, Fence, Notification, NotifyKind, Operation as Verb, Payload, ReceiveWr, RemoteAddress,
    Resource, SendWr, Sge, WorkCompletion,
};

use super::connection::Pair;
use super::{DeviceObject, Inner, invalid, names};
use crate::common::not_found;
use crate::protocol::{Access, Action, Completion, Event, Failure, Object, Operation, Part, Success};

impl Inner {
    fn sges(&self, parts: &[Part]) -> Result<Vec<Sge>, Failure> {
        let sge = |part: &Part| {
            let region = self.find_region(part.region)?;
            let stag = part.key.unwrap_or(region.stag.to_bits());
            Ok(Sge { stag, tagged_offset: region.address.wrapping_add(part.offset), length: part.length })
        };
        parts.iter().map(sge).collect()
    }

    pub(super) fn post_receive(&mut self, on: Object, work: u64, parts: &[Part]) -> Result<Success, Failure> {
        let wr = ReceiveWr { wr_id: work, scatter: self.sges(parts)? };
        let posted = match self.objects.get(&on) {
            Some(DeviceObject::Shared(srq)) => self.rnic.post_srq(*srq, [wr]),
            _ => {
                let qp = self.find_pair(on)?.qp;
                self.rnic.post_receive(qp, [wr])
            }
        };
        posted.map(|_| Success::Nothing).map_err(invalid)
    }

    pub(super) fn post_send(&mut self, action: Action) -> Result<Success, Failure> {
        let Action::PostSend { connection, work, operation, parts, signaled, fence, inline } = action else {
            return Err(Failure::of("the request is not a work request"));
        };
        let qp = self.find_pair(connection)?.qp;
        let mut done = Success::Nothing;
        let verb = match operation {
            Operation::Send { solicited, invalidate } => {
                Verb::Send { payload: self.payload(&parts, inline)?, solicited, invalidate }
            }
            Operation::Write { address, key } => {
                let remote = RemoteAddress { stag: key, tagged_offset: address };
                Verb::Write { payload: self.payload(&parts, inline)?, remote }
            }
            Operation::Read { address, key } => {
                let local = match self.sges(&parts)?[..] {
                    [local] => local,
                    [] => Sge { stag: 0, tagged_offset: 0, length: 0 },
                    _ => return Err(invalid("an RDMA Read can have only one part")),
                };
                let remote = RemoteAddress { stag: key, tagged_offset: address };
                Verb::Read { local, remote, invalidate_local: false }
            }
            Operation::FetchAdd { address, key, add } => Verb::Atomic {
                remote: RemoteAddress { stag: key, tagged_offset: address },
                operation: AtomicOperation::FetchAdd { add_data: add, add_mask: 0 },
            },
            Operation::CompareSwap { address, key, compare, swap } => Verb::Atomic {
                remote: RemoteAddress { stag: key, tagged_offset: address },
                operation: AtomicOperation::CmpSwap {
                    swap_data: swap,
                    swap_mask: u64::MAX,
                    compare_data: compare,
                    compare_mask: u64::MAX,
                },
            },
            Operation::Invalidate { key } => {
                Verb::InvalidateLocal(Stag::from_bits(key).ok_or_else(|| invalid("0 is not a valid STag index"))?)
            }
            Operation::Bind { window, region, offset, length, access } => {
                let bind = self.bind(window, region, (offset, length), &access)?;
                done = Success::Bound { remote_key: bind.window.to_bits() };
                Verb::Bind(bind)
            }
        };
        let fence = match verb {
            Verb::InvalidateLocal(_) if fence => Fence::Local,
            _ if fence => Fence::Read,
            _ => Fence::None,
        };
        self.rnic.post_send(qp, [SendWr { wr_id: work, signaled, fence, operation: verb }]).map_err(invalid)?;
        if let Success::Bound { remote_key } = done
            && let Some(stag) = Stag::from_bits(remote_key)
        {
            self.objects.values_mut().for_each(|device_object| {
                if let DeviceObject::Window { index, key } = device_object
                    && *index == stag.index
                {
                    *key = stag.key.0;
                }
            });
        }
        Ok(done)
    }

    fn payload(&mut self, parts: &[Part], inline: bool) -> Result<Payload, Failure> {
        if !inline {
            return self.sges(parts).map(Payload::Gather);
        }
        let mut octets = Vec::new();
        for part in parts {
            if let Success::Octets { octets: more } = self.get(part.region, part.offset, part.length.into())? {
                octets.extend(more.0);
            }
        }
        Ok(Payload::Inline(Bytes::from(octets)))
    }

    /// Returns the work request that binds a window to a range of a region. In the new STag of the
    /// window, the key (the lowest byte) is one higher than before.
    fn bind(
        &self,
        window: Object,
        region: Object,
        (offset, length): (u64, u64),
        access: &[Access],
    ) -> Result<Bind, Failure> {
        let Some(DeviceObject::Window { index, key }) = self.objects.get(&window) else {
            return Err(not_found(window, "window"));
        };
        let region = self.find_region(region)?;
        Ok(Bind {
            window: Stag { index: *index, key: StagKey(key.wrapping_add(1)) },
            region: region.stag,
            address: region.address.wrapping_add(offset),
            length,
            va_based: !access.contains(&Access::ZeroBased),
            access: RemoteAccess {
                read: access.contains(&Access::RemoteRead),
                write: access.contains(&Access::RemoteWrite),
            },
        })
    }

    fn drain_completions(&mut self, now: Instant, connection: Object, cq: CqHandle) {
        while let Ok(completion) = self.rnic.poll_cq(cq) {
            self.events.push_back((now, completion_event(connection, &completion)));
        }
    }

    /// Turns completions and notifications of the RNIC into events.
    pub(super) fn collect(&mut self, now: Instant) {
        let pairs: Vec<_> =
            self.connections.iter().filter_map(|(object, entry)| Some((*object, entry.pair?))).collect();
        for (connection, pair) in pairs.iter().filter(|(_, pair)| !pair.solicited) {
            self.drain_completions(now, *connection, pair.cq);
        }
        while let Some(notification) = self.rnic.poll_notification() {
            let event = match notification {
                Notification::Asynchronous { event, .. } => event,
                Notification::Completion { cq, .. } => {
                    // First request the next notification, then poll. The request fails only if the
                    // queue no longer exists.
                    let _ = self.rnic.request_completion_notification(cq, NotifyKind::NextSolicited);
                    if let Some((connection, _)) = pairs.iter().find(|(_, pair)| pair.cq == cq) {
                        self.drain_completions(now, *connection, cq);
                    }
                    continue;
                }
            };
            let Some(kind) = names::asynchronous(event.event) else { continue };
            let of_event = |pair: &Pair| matches!(event.resource, Resource::Qp(qp, _) if qp == pair.qp);
            let connection = pairs.iter().find(|(_, pair)| of_event(pair)).map(|(object, _)| *object);
            self.events.push_back((now, Event::Asynchronous { kind: kind.to_owned(), connection }));
        }
        self.report_ended(now);
        let deviations = &self.settings.deviations;
        self.events.retain(|(_, event)| outcome(event).is_none_or(|outcome| !conceals_outcome(deviations, outcome)));
    }
}

/// Returns the outcome of a connection, if the event reports an outcome.
fn outcome(event: &Event) -> Option<ConnectionOutcome> {
    match event {
        Event::Disconnected { .. } => Some(ConnectionOutcome::Disconnected),
        Event::Failed { .. } => Some(ConnectionOutcome::Failed),
        Event::Rejected { .. } => Some(ConnectionOutcome::Rejected),
        Event::Asynchronous { .. } | Event::Completion(_) | Event::Established { .. } | Event::Request { .. } => None,
    }
}

fn completion_event(connection: Object, completion: &WorkCompletion) -> Event {
    Event::Completion(Completion {
        connection,
        work: completion.wr_id,
        status: names::status(completion.status, completion.operation).to_owned(),
        operation: names::operation(completion.operation).to_owned(),
        octets: completion.octets,
        invalidated: completion.invalidated.filter(|_| completion.status == CompletionStatus::Success),
        immediate: completion.immediate.map(|immediate| u64::from_be_bytes(immediate.data)),
        found: completion.original_value,
    })
}
