//! Functions that a driver calls for a stream. "Draft" means draft-hilland-rddp-verbs-00.
//!
//! After each call, and after work is posted, a driver calls
//! [`poll_notification`](Rnic::poll_notification), [`poll_transmit`](Rnic::poll_transmit) and
//! [`poll_timeout`](Rnic::poll_timeout), in this order.

use std::io::IoSlice;

use super::batch::PayloadSource;
use super::llp::{Fin, Llp, ReceivedUlpdu, TransmitResult};
use super::llp_settings::LlpSettings;
use super::qp::outbound::Step;
use super::qp::{Context, WireEvent};
use super::rnic::Rnic;
use super::slab::Key;
use super::{LlpHandle, QpError};
use crate::hostile;
use crate::mpa::FpduError;
use crate::reject::reject_if;
use crate::time::Instant;

/// Number of bytes that the RNIC can always store while a message waits for a receive. The driver
/// can have read these bytes from TCP before the wait began.
const MIN_HELD_LIMIT: usize = 1 << 18;

impl Rnic {
    /// Attaches a stream after MPA start-up. The last start-up frame can still be unsent. Modify QP
    /// can send this frame as a stream message.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InsufficientResources`.
    pub fn attach_stream(&mut self, settings: LlpSettings) -> Result<LlpHandle, QpError> {
        reject_if(!self.open, QpError::InvalidRnicHandle)?;
        let key =
            self.llps.insert(Llp::new(settings, &self.shared.deviations)).ok_or(QpError::InsufficientResources)?;
        Ok(LlpHandle { rnic: self.shared.id, key })
    }

    /// Removes a stream, and its handle becomes invalid. The Queue Pair handles the removal as a
    /// reset of the stream.
    pub fn detach_stream(&mut self, now: Instant, llp: LlpHandle) {
        self.handle_reset(now, llp);
        if llp.rnic == self.shared.id {
            self.llps.remove(llp.key);
        }
    }

    /// Returns whether the stream is closed. A closed stream sends and receives nothing more.
    #[must_use]
    pub fn is_stream_over(&self, llp: LlpHandle) -> bool {
        self.llp(llp).is_none_or(|llp| llp.over)
    }

    /// Processes received bytes. TCP can split the bytes at any position.
    pub fn handle_octets(&mut self, now: Instant, llp: LlpHandle, mut octets: &[u8]) {
        let Some(stream) = self.llp_mut(llp) else { return };
        if stream.qp.is_none() {
            let room = stream.settings.max_early.saturating_sub(stream.early.len());
            if octets.len() > room && stream.is_usable() {
                // The driver has read more bytes than the RNIC can store.
                stream.want_reset();
            } else if stream.is_usable() {
                stream.early.extend_from_slice(octets);
            }
            return;
        }
        if stream.waiting.is_some() {
            stream.held.extend_from_slice(octets);
            if stream.held.len() > stream.settings.max_early.max(MIN_HELD_LIMIT) {
                stream.want_reset();
            }
            return;
        }
        let Some(mut deframer) = stream.deframer.take() else { return };
        while let Some(mut context) = self.context(now, llp.key) {
            let Some(ulpdu) = deframer.next(&mut octets) else {
                let needs_alignment = context.llp.as_ref().is_some_and(|llp| llp.conduct.needs_alignment);
                if needs_alignment && !deframer.is_at_boundary() {
                    context.fpdu_error(FpduError::Crc { position: 0, computed: 0, found: 0 });
                }
                break;
            };
            if context.llp.as_ref().is_some_and(|llp| llp.conduct.drops_after_first) {
                octets = &[];
            }
            match (ulpdu, &mut context.llp) {
                (Ok(ulpdu), Some(llp)) => match llp.classify(ulpdu) {
                    ReceivedUlpdu::Message if context.must_wait(ulpdu) => {
                        if let Some(llp) = &mut context.llp {
                            llp.waiting = Some(ulpdu.to_vec());
                            llp.held.extend_from_slice(octets);
                        }
                        break;
                    }
                    ReceivedUlpdu::Message => context.handle_segment(ulpdu),
                    ReceivedUlpdu::Ready(kind) => context.qp.skip_inbound(kind),
                    ReceivedUlpdu::Answer => {}
                },
                (Err(error), _) => {
                    context.shared.refuse_fpdu(deframer.damaged_ulpdu());
                    context.fpdu_error(error);
                    break;
                }
                (Ok(_), None) => break,
            }
        }
        if let Some(stream) = self.llp_mut(llp) {
            stream.deframer = Some(deframer);
        }
    }

    /// Processes the peer's FIN.
    pub fn handle_fin(&mut self, now: Instant, llp: LlpHandle) {
        if let Some(stream) = self.llp_mut(llp) {
            stream.peer_fin = true;
            stream.over |= stream.is_closed() && stream.qp.is_none();
            if stream.waiting.is_some() {
                // Process the FIN after the message that waits.
                return;
            }
        }
        self.wire_event(now, llp.key, WireEvent::Fin);
        self.check_closed(now, llp.key);
    }

    /// Returns whether the driver should read from the stream. False while a message waits for a
    /// receive (draft section 13.2). If the driver does not read, the TCP window closes, and the
    /// peer also waits.
    #[must_use]
    pub fn wants_octets(&self, llp: LlpHandle) -> bool {
        self.llp(llp).is_none_or(|llp| llp.waiting.is_none())
    }

    /// Processes the waiting message if a receive has been posted, or if the Queue Pair needs no
    /// receive any more. Then processes the bytes after the message.
    fn resume(&mut self, now: Instant, llp: LlpHandle) {
        let Some(ulpdu) = self.llp_mut(llp).and_then(|llp| llp.waiting.take()) else { return };
        let Some(mut context) = self.context(now, llp.key) else { return };
        if context.must_wait(&ulpdu) {
            if let Some(stream) = self.llp_mut(llp) {
                stream.waiting = Some(ulpdu);
            }
            return;
        }
        context.handle_segment(&ulpdu);
        let held = self.llp_mut(llp).map(|llp| std::mem::take(&mut llp.held)).unwrap_or_default();
        self.handle_octets(now, llp, &held);
        if self.llp(llp).is_some_and(|llp| llp.peer_fin) {
            self.handle_fin(now, llp);
        }
    }

    /// Processes a reset of the connection.
    pub fn handle_reset(&mut self, now: Instant, llp: LlpHandle) {
        if let Some(stream) = self.llp_mut(llp) {
            stream.over = true;
            self.wire_event(now, llp.key, WireEvent::Reset);
        }
    }

    /// Processes the loss of the connection: TCP has given up.
    pub fn handle_lost(&mut self, now: Instant, llp: LlpHandle) {
        if let Some(stream) = self.llp_mut(llp) {
            stream.over = true;
            self.wire_event(now, llp.key, WireEvent::TimedOut);
        }
    }

    /// Processes the time `now`. Does nothing before the time that
    /// [`poll_timeout`](Self::poll_timeout) returned.
    pub fn handle_timeout(&mut self, now: Instant, llp: LlpHandle) {
        let Some(stream) = self.llp_mut(llp) else { return };
        if stream.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        stream.deadline = None;
        if stream.qp.is_none() {
            stream.want_reset();
        }
        self.wire_event(now, llp.key, WireEvent::TimedOut);
    }

    /// Time at which the driver has to call [`handle_timeout`](Self::handle_timeout). `None` if no
    /// time-out is active.
    #[must_use]
    pub fn poll_timeout(&self, llp: LlpHandle) -> Option<Instant> {
        self.llp(llp)?.deadline
    }

    /// Passes the next bytes to `take`, which returns the number of bytes that TCP accepted. The
    /// driver calls this function repeatedly, until the function returns `Nothing` or TCP accepts
    /// no more bytes.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        llp: LlpHandle,
        take: impl FnMut(&[IoSlice<'_>]) -> usize,
    ) -> TransmitResult {
        let sent = self.transmit(now, llp, take);
        // Each transmission restarts the close time-out.
        let restart = now + self.shared.settings.close_timeout;
        if matches!(sent, TransmitResult::Octets(1..))
            && let Some(deadline) = self.llp_mut(llp).and_then(|stream| stream.deadline.as_mut())
        {
            *deadline = restart;
        }
        sent
    }

    fn transmit(
        &mut self,
        now: Instant,
        llp: LlpHandle,
        mut take: impl FnMut(&[IoSlice<'_>]) -> usize,
    ) -> TransmitResult {
        self.resume(now, llp);
        let Some(stream) = self.llp_mut(llp) else { return TransmitResult::Nothing };
        if stream.reset {
            (stream.reset, stream.over) = (false, true);
            return TransmitResult::Reset;
        }
        if stream.over || stream.fin == Fin::Sent {
            return TransmitResult::Nothing;
        }
        if let Some(message) = stream.raw.front_mut() {
            let taken = take(&[IoSlice::new(message)]).min(message.len());
            let _ = message.split_to(taken);
            if message.is_empty() {
                stream.raw.pop_front();
            }
            return TransmitResult::Octets(taken);
        }
        if !stream.backlog.is_empty() {
            let rest = &stream.backlog[stream.backlog_sent..];
            let taken = take(&[IoSlice::new(rest)]).min(rest.len());
            stream.backlog_sent += taken;
            if stream.backlog_sent == stream.backlog.len() {
                // An idle connection does not keep the memory of a batch.
                (stream.backlog, stream.backlog_sent) = (Vec::new(), 0);
            }
            return TransmitResult::Octets(taken);
        }
        if stream.may_send
            && let Some(sent) = self.transmit_fpdus(now, llp.key, &mut take)
        {
            return sent;
        }
        let Some(stream) = self.llp_mut(llp) else { return TransmitResult::Nothing };
        if stream.reset {
            (stream.reset, stream.over) = (false, true);
            return TransmitResult::Reset;
        }
        if stream.fin != Fin::Wanted {
            return TransmitResult::Nothing;
        }
        stream.fin = Fin::Sent;
        if hostile::hook::conduct(&self.shared.deviations).resets {
            self.handle_reset(now, llp);
            return TransmitResult::Reset;
        }
        let Some(stream) = self.llp_mut(llp) else { return TransmitResult::Nothing };
        stream.over |= stream.is_closed() && stream.qp.is_none();
        self.check_closed(now, llp.key);
        TransmitResult::Fin
    }

    /// Builds one batch and passes it to `take`.
    fn transmit_fpdus(
        &mut self,
        now: Instant,
        key: Key,
        take: &mut dyn FnMut(&[IoSlice<'_>]) -> usize,
    ) -> Option<TransmitResult> {
        let Rnic { batch, llps, qps, shared, .. } = self;
        batch.clear();
        let llp = llps.get_mut(key)?;
        while let Some(ulpdu) = llp.ahead.pop_front() {
            llp.push(&shared.memory, batch, &ulpdu, &PayloadSource::Octets(&[]));
        }
        if let Some(qp) = llp.qp.and_then(|qp| qps.get_mut(qp)) {
            let mut context = Context { now, shared, qp, llp: Some(llp) };
            while !batch.is_full() && context.add_fpdu(batch) == Step::Added {}
        }
        if batch.is_empty() {
            return None;
        }
        let llp = llps.get_mut(key)?;
        Some(TransmitResult::Octets(batch.offer(&shared.memory, take, &mut llp.backlog)))
    }

    fn check_closed(&mut self, now: Instant, key: Key) {
        if self.llps.get(key).is_some_and(Llp::is_closed) {
            self.wire_event(now, key, WireEvent::Closed);
        }
    }

    fn wire_event(&mut self, now: Instant, key: Key, event: WireEvent) {
        if let Some(mut context) = self.context(now, key) {
            context.wire_event(event);
        }
    }

    /// The Queue Pair of a stream, with all data that its functions need.
    pub(super) fn context(&mut self, now: Instant, key: Key) -> Option<Context<'_>> {
        let llp = self.llps.get_mut(key)?;
        let qp = self.qps.get_mut(llp.qp?)?;
        Some(Context { now, shared: &mut self.shared, qp, llp: Some(llp) })
    }

    fn llp(&self, llp: LlpHandle) -> Option<&Llp> {
        self.llps.get(llp.key).filter(|_| llp.rnic == self.shared.id)
    }

    fn llp_mut(&mut self, llp: LlpHandle) -> Option<&mut Llp> {
        self.llps.get_mut(llp.key).filter(|_| llp.rnic == self.shared.id)
    }
}
