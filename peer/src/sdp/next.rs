//! Selects the next message and writes its header. Messages are sent in MSeq order (section 10.1)
//! as soon as there is enough credit (section 10.5). Answers are sent first, then messages for
//! commands of the user, then data. An update is sent if no other message announces free buffers to
//! the peer.

use weft_core::wire::sdp::{
    Body, ChRcvBuf, ChRcvBufAck, Flags, Message, Mid, Mode, ModeChange, RdmaRdCompl, RdmaWrCompl, SinkAvail, SrcAvail,
};

use super::connection::Connection;
use super::control::{Carrier, Control, is_solicited};
use super::op::Op;
use super::sink::Revoke;
use super::source::{Plan, Room, payload_room};
use super::transfer_counts::is_answer;
use super::{Event, Exposed, Half, Output, Piece, Region};
use crate::time::Instant;
use crate::verbs::RemoteAddress;

/// Function that registers memory for access by the peer.
type Register<'a> = &'a mut dyn FnMut(Exposed) -> Option<Region>;

impl Connection {
    /// Appends the outputs of the next step to `out`.
    pub(super) fn produce(&mut self, now: Instant, register: Register<'_>) {
        if !self.is_open() || self.suspension.has_stopped_sending() {
            return;
        }
        if self.close.is_aborting() {
            self.answer_now();
            return;
        }
        if self.suspension.is_halting() {
            self.quiesce(now, register);
            return;
        }
        let _ = self.answer_now()
            || !self.control.is_empty()
            || self.change_mode()
            || self.revoke()
            || self.resize_now()
            || self.octets(now, register)
            || self.disconnect(now)
            || self.update(now);
        self.watch_for_deadlock(now);
    }

    /// Finishes the transfers in progress for a suspension and starts no new ones (section 13.1.1).
    fn quiesce(&mut self, now: Instant, register: Register<'_>) {
        let answering = self.suspension.is_answering();
        let _ = self.answer_now()
            || !self.control.is_empty()
            || !answering && self.revoke()
            || !answering && self.source.has_requested_data() && self.octets(now, register)
            || self.suspend_now(now)
            || !answering && !self.suspension.has_stopped_sending() && self.update(now);
    }

    /// Sends the oldest answer. If there is not enough credit for the answer, all later messages
    /// wait too, because the answer reports earlier events.
    pub(super) fn answer_now(&mut self) -> bool {
        let control = loop {
            let Some(control) = self.control.front().copied() else { return false };
            let Control::SrcCanceled { send_sm } = control else { break control };
            // The SrcAvailCancel is complete. If a SendSm follows, its MSeqAck acknowledges the
            // SrcAvailCancel.
            self.credits.ack_limit = None;
            self.pool.release_ack();
            if send_sm {
                break control;
            }
            self.control.pop_front();
        };
        if !self.credits.allow(false) {
            return false;
        }
        self.control.pop_front();
        let wants_pipelined = self.settings.policy.wants_pipelined;
        let mut carrier = Carrier::default();
        let body = match control {
            Control::SendSm | Control::SrcCanceled { .. } => Body::SendSm,
            Control::RdmaRdCompl { len, last } => {
                carrier.req_pipe = wants_pipelined && self.sink.mode != Mode::Buffered;
                carrier.invalidate = last;
                Body::RdmaRdCompl(RdmaRdCompl { len })
            }
            Control::RdmaWrCompl { len, stag } => {
                carrier.req_pipe = wants_pipelined && self.sink.mode != Mode::Buffered;
                carrier.invalidate = Some(stag);
                Body::RdmaWrCompl(RdmaWrCompl { len })
            }
            Control::SinkCancelAck => Body::SinkCancelAck,
            Control::AbortConn => {
                carrier.op = Some(self.new_op(Op::AbortConn));
                Body::AbortConn
            }
            Control::Update => Body::Data(&[]),
        };
        self.emit(body, carrier);
        true
    }

    /// Sends a ModeChange towards the requested Mode (section 12).
    fn change_mode(&mut self) -> bool {
        if !self.credits.allow(false) {
            return false;
        }
        if self.sink.wants_combined && self.sink.mode == Mode::Buffered && !self.sink.ended {
            self.sink.wants_combined = false;
            self.sink.mode = Mode::Combined;
            self.emit(Body::ModeChange(ModeChange { mode: Mode::Combined, s: true }), Carrier::default());
            self.announce_mode(Half::In, Mode::Combined);
            return true;
        }
        // After DisConn this half-connection needs no other Mode, because TCP ends next
        // (SDP-8.2.1-32).
        let Some(wanted) = self.source.wanted.filter(|_| self.close.sent.is_none()) else { return false };
        let from = self.source.mode;
        let to = if (from, wanted) == (Mode::Pipelined, Mode::Buffered) { Mode::Combined } else { wanted };
        // In Buffered Mode the peer is Mode Master. The ModeChange of the peer arrived after the
        // request of the user, so the request is dropped.
        if to == from || from == Mode::Buffered {
            self.source.wanted = None;
            return false;
        }
        let waits = match (from, to) {
            _ if self.source.left_pipelined.is_some() => true,
            (Mode::Combined, Mode::Buffered) => !self.source.open.is_empty(),
            (Mode::Pipelined, _) => !self.source.writing.is_empty(),
            _ => false,
        };
        if waits {
            return false;
        }
        self.emit(Body::ModeChange(ModeChange { mode: to, s: false }), Carrier::default());
        self.source.mode = to;
        if from == Mode::Pipelined {
            self.source.leave_pipelined(self.credits.sent);
        }
        self.announce_mode(Half::Out, to);
        true
    }

    fn announce_mode(&mut self, half: Half, mode: Mode) {
        self.out.push_back(Output::Event(Event::ModeChanged { half, mode }));
    }

    /// Sends SrcAvailCancel or SinkAvailCancel.
    fn revoke(&mut self) -> bool {
        if !self.credits.allow(false) {
            return false;
        }
        if self.source.wants_cancel() {
            self.emit(Body::SrcAvailCancel, Carrier::default());
            self.source.sent_cancel(self.credits.sent);
            return true;
        }
        if self.sink.revoke == Revoke::Wanted {
            self.emit(Body::SinkAvailCancel, Carrier::default());
            self.sink.revoked();
            return true;
        }
        false
    }

    /// Sends ChRcvBuf or ChRcvBufAck.
    fn resize_now(&mut self) -> bool {
        if !self.credits.allow(false) {
            return false;
        }
        // A message larger than an advertised buffer would continue in the next buffer, which may
        // also be advertised (section 9.5.1). So the answer waits until no such buffer is
        // advertised.
        let fits = |size: u32| !self.pool.has_smaller() && !self.sink.advertises_up_to(size);
        let early = self.credits.conduct.acknowledges_early;
        // While MSeqAck is held back for a SrcAvailCancel, the peer would conclude from MSeqAck
        // that its later ChRcvBuf has not arrived (section 9.5.4). After both DisConns TCP ends,
        // and this side sends nothing else (SDP-8.2.1-32).
        let shows = self.credits.ack_limit.is_none() && !(self.close.sent.is_some() && self.close.received);
        if let Some(act_sz) = self.resize.answer.filter(|size| early || shows && fits(*size)) {
            self.resize.answer = None;
            self.emit(Body::ChRcvBufAck(ChRcvBufAck { act_sz }), Carrier::default());
            return true;
        }
        // After its DisConn this side needs no other size of the peer's Private Buffers.
        if let Some(des_sz) = self.resize.request().filter(|_| self.close.sent.is_none()) {
            self.emit(Body::ChRcvBuf(ChRcvBuf { des_sz }), Carrier::default());
            self.resize.requested(des_sz, self.credits.sent);
            return true;
        }
        false
    }

    /// Sends data, or advertises a receive.
    fn octets(&mut self, now: Instant, register: Register<'_>) -> bool {
        let open = self.source.open.len() + self.sink.adverts();
        let adverts = usize::from(self.peer_max_adverts).saturating_sub(open);
        let room = Room { message: self.resize.limit, adverts };
        let plan = self.source.plan(&self.settings.policy, room, self.unregistered);
        match plan {
            Plan::Nothing => self.advertise_sink(room, None, register),
            Plan::Write { start, len, stag, va } => {
                let Some(data) = self.source.piece(start, u64::from(len)) else { return false };
                let op = self.new_op(Op::Write);
                self.source.begin_write(op, start, len);
                let remote = RemoteAddress { stag, tagged_offset: va };
                self.out.push_back(Output::Write { op, data, remote });
                true
            }
            Plan::SrcAvail { start, len, payload } => {
                if !self.credits.allow(payload > 0) {
                    return payload > 0 && self.wait_for_credit(now) || self.advertise_sink(room, None, register);
                }
                self.src_avail(now, (start, len, payload), register)
            }
            Plan::Data { start, len, urgent } => {
                let limited = self.urgent.limit(start, len);
                let (len, urgent) = (limited, urgent && limited == len);
                // Data that a SendSm requested is sent as Data messages (section 9.2).
                let joins = !urgent && !self.source.has_requested_data() && self.settings.policy.transactions;
                if joins && self.credits.allow(true) && self.advertise_sink(room, Some((start, len)), register) {
                    return true;
                }
                if !self.credits.allow(true) {
                    return self.wait_for_credit(now) || self.advertise_sink(room, None, register);
                }
                self.data(start, len, urgent)
            }
        }
    }

    fn data(&mut self, start: u64, len: u64, urgent: bool) -> bool {
        let Some(piece) = self.source.piece(start, len) else { return false };
        let op = Some(self.new_op(Op::Payload));
        self.emit(Body::Data(&[]), Carrier { payload: Some(piece), urgent, op, ..Carrier::default() });
        self.source.assign(start, len);
        true
    }

    fn src_avail(&mut self, now: Instant, (start, len, payload): (u64, u32, u32), register: Register<'_>) -> bool {
        let Some(exposed) = self.source.piece(start, u64::from(len)) else { return false };
        let Some(region) = register(Exposed::Source(exposed)) else {
            self.unregistered = Some(exposed.send);
            return self.octets(now, register);
        };
        let piece = (payload > 0).then_some(Piece { len: payload, ..exposed });
        let op = piece.map(|_| self.new_op(Op::Payload));
        let header = SrcAvail { len, stag: region.stag, va: region.va };
        self.emit(Body::SrcAvail(header, &[]), Carrier { payload: piece, op, ..Carrier::default() });
        self.source.advertised(self.credits.sent, start, len, payload, region.stag);
        true
    }

    /// Sends a SinkAvail, if a receive is suitable. `payload` is a position and a length in the
    /// other half-connection. If `payload` is set, the message also carries these bytes and is a
    /// Transaction (section 9.4).
    fn advertise_sink(&mut self, room: Room, payload: Option<(u64, u64)>, register: Register<'_>) -> bool {
        let policy = self.settings.policy;
        let refused = self.sinks_refused == Some(self.sink.ends);
        if refused || self.suspension.is_halting() || room.adverts == 0 || self.sink.adverts() >= policy.sink_avails {
            return false;
        }
        // A receive must be larger than the Private Buffers. If their size shrinks, the old size
        // counts until ChRcvBufAck is sent (SDP-10.6-15). If their size grows, the new size counts
        // at once. Otherwise ChRcvBufAck would have to wait for the smaller receives that are
        // advertised.
        let least = self.sink_threshold();
        let fits = u64::from(payload_room(Mid::SINK_AVAIL, room));
        if !self.credits.allow(payload.is_some()) || payload.is_some_and(|(_, len)| len > fits) {
            return false;
        }
        let Some((receive, len)) = self.sink.advertisable(least) else { return false };
        let Some(region) = register(Exposed::Sink { receive, len }) else {
            self.sinks_refused = Some(self.sink.ends);
            return false;
        };
        let piece = payload.and_then(|(start, len)| self.source.piece(start, len));
        let op = piece.map(|_| self.new_op(Op::Payload));
        let non_discards = self.sink.non_discards;
        let header = SinkAvail { len, stag: region.stag, va: region.va, non_discards };
        self.emit(Body::SinkAvail(header, &[]), Carrier { payload: piece, op, ..Carrier::default() });
        self.sink.advertised(region.stag);
        if let Some((start, len)) = payload.filter(|_| piece.is_some()) {
            self.source.assign(start, len);
        }
        true
    }

    /// Sends DisConn, if it is due.
    fn disconnect(&mut self, now: Instant) -> bool {
        if !self.wants_dis_conn() || !self.credits.allow(false) {
            return false;
        }
        let op = Some(self.new_op(Op::DisConn));
        self.emit(Body::DisConn, Carrier { op, ..Carrier::default() });
        self.close.sent = Some(self.credits.sent);
        self.close.deadline = self.close.received.then(|| now + self.settings.close_timeout);
        true
    }

    /// Waits for credit for payload. If there are exactly two credits, sends an empty message after
    /// a wait. Returns whether it sent the empty message.
    fn wait_for_credit(&mut self, now: Instant) -> bool {
        if self.credits.available() != 2 {
            self.credit_request.stop();
            return false;
        }
        let due = self.credit_request.is_due(now);
        if due {
            self.emit(Body::Data(&[]), Carrier::default());
        }
        due
    }

    /// Sends an update (Data without payload) if the peer runs out of credit, or if Out-Of-Band
    /// data must be announced.
    fn update(&mut self, now: Instant) -> bool {
        let announces = self.urgent.can_announce(self.source.settled());
        if !self.credits.allow(false) || !announces && !self.credits.wants_update(self.pool.target) {
            self.echo.stop();
            return false;
        }
        // If both sides have two Private Buffers left, each update makes the receiver send an
        // update. Without a wait, the updates would never end.
        if !announces && !self.credits.news {
            if self.echoed && !self.echo.is_due(now) {
                return false;
            }
            self.echoed = true;
        }
        self.emit(Body::Data(&[]), Carrier::default());
        true
    }

    /// Writes the headers of a message and queues the Send. The payload is not copied.
    pub(super) fn emit(&mut self, body: Body<'_>, carrier: Carrier) {
        let Carrier { payload, urgent, req_pipe, op, invalidate } = carrier;
        if payload.is_some() {
            self.credit_request.reset();
        }
        if self.credits.news {
            self.echo.reset();
            self.echoed = false;
        }
        let oob_pend = self.urgent.announce(self.source.settled());
        let (bufs, mseq, mseq_ack) = self.credits.stamp();
        let flags = Flags { oob_pres: urgent, oob_pend, req_pipe };
        let message = Message { bufs, flags, mseq, mseq_ack, body };
        let moved = if is_answer(message.mid()) { &mut self.moved_in } else { &mut self.moved_out };
        moved.note(&message.body, payload.map_or(0, |piece| piece.len));
        let mut head = Vec::with_capacity(36);
        message.emit(self.order, &mut head);
        // The field Len includes the payload. The position of Len is the same in both field orders.
        let len = message.wire_len().saturating_add(payload.map_or(0, |piece| piece.len));
        if let Some(field) = head.get_mut(4..8) {
            field.copy_from_slice(&len.to_be_bytes());
        }
        let solicited = is_solicited(message.mid()) || message.mid() == Mid::DATA && (urgent || oob_pend);
        self.out.push_back(Output::Send { op, head, payload, solicited, invalidate });
    }
}
