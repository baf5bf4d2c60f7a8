//! Selects the next message and writes its header. Messages are sent in MSeq order (section 10.1 of
//! the SDP draft) as soon as there is enough credit (section 10.5). Answers are sent first, then
//! messages for commands of the user, then data. With `Policy::data_first`, the commands follow the
//! data. An update (Data without payload) is sent if no other message announces free buffers to the
//! peer.

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

/// One step that selects and writes messages.
pub(super) struct Producer<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) now: Instant,
    pub(super) register: Register<'a>,
}

impl Producer<'_> {
    /// Appends the outputs of the next step to `out`.
    pub(super) fn produce(&mut self) {
        if !self.connection.is_open() || self.connection.suspension.has_stopped_sending() {
            return;
        }
        if self.connection.close.is_aborting() {
            self.answer_now();
            return;
        }
        if self.connection.suspension.is_halting() {
            self.quiesce();
            return;
        }
        // A ChRcvBufAck precedes data and SinkAvails even with `data_first`. Until the ChRcvBufAck,
        // the old size decides which receives this side may advertise (SDP-10.6-15).
        let data_first = self.connection.settings.policy.data_first && self.connection.resize.answer.is_none();
        let _ = self.answer_now()
            || !self.connection.control.is_empty()
            || data_first && self.octets()
            || self.connection.credits.allow(false) && (self.change_mode() || self.revoke() || self.resize_now())
            || !data_first && self.octets()
            || self.disconnect()
            || self.update();
        self.connection.watch_for_deadlock(self.now);
    }

    /// Before a suspension, finishes the transfers that are in progress, and starts no new
    /// transfers (section 13.1.1).
    fn quiesce(&mut self) {
        let answering = self.connection.suspension.is_answering();
        let _ = self.answer_now()
            || !self.connection.control.is_empty()
            || !answering && self.connection.credits.allow(false) && self.revoke()
            || !answering && self.connection.source.has_requested_data() && self.octets()
            || self.suspend_now()
            || !answering && !self.connection.suspension.has_stopped_sending() && self.update();
    }

    /// Sends the oldest answer. If there is not enough credit for the answer, all other messages
    /// wait, too. They must follow the answer, because the answer reports earlier events.
    pub(super) fn answer_now(&mut self) -> bool {
        let connection = &mut *self.connection;
        let control = loop {
            let Some(control) = connection.control.front().copied() else { return false };
            let Control::SrcCanceled { send_sm } = control else { break control };
            // The SrcAvailCancel is complete. If a SendSm follows, its MSeqAck acknowledges the
            // SrcAvailCancel.
            connection.credits.ack_limit = None;
            connection.pool.release_ack();
            if send_sm {
                break control;
            }
            connection.control.pop_front();
        };
        if !connection.credits.allow(false) {
            return false;
        }
        connection.control.pop_front();
        let wants_pipelined = connection.settings.policy.wants_pipelined;
        let mut carrier = Carrier::default();
        let body = match control {
            Control::SendSm | Control::SrcCanceled { .. } => Body::SendSm,
            Control::RdmaRdCompl { len, last } => {
                carrier.req_pipe = wants_pipelined && connection.sink.mode != Mode::Buffered;
                carrier.invalidate = last;
                Body::RdmaRdCompl(RdmaRdCompl { len })
            }
            Control::RdmaWrCompl { len, stag } => {
                carrier.req_pipe = wants_pipelined && connection.sink.mode != Mode::Buffered;
                carrier.invalidate = Some(stag);
                Body::RdmaWrCompl(RdmaWrCompl { len })
            }
            Control::SinkCancelAck => Body::SinkCancelAck,
            Control::AbortConn => {
                carrier.op = Some(connection.ops.assign(Op::AbortConn));
                Body::AbortConn
            }
            Control::Update => Body::Data(&[]),
        };
        self.emit(body, carrier);
        true
    }

    /// Sends a ModeChange towards the requested Mode (section 12). The caller has checked the
    /// credit.
    fn change_mode(&mut self) -> bool {
        let sink = &mut self.connection.sink;
        if sink.wants_combined && sink.mode == Mode::Buffered && !sink.ended {
            sink.wants_combined = false;
            sink.mode = Mode::Combined;
            self.emit(Body::ModeChange(ModeChange { mode: Mode::Combined, s: true }), Carrier::default());
            self.announce_mode(Half::In, Mode::Combined);
            return true;
        }
        // After DisConn, this half-connection needs no other Mode, because the end of TCP follows
        // (SDP-8.2.1-32).
        if self.connection.close.sent.is_some() {
            return false;
        }
        let from = self.connection.source.mode;
        let Some(to) = self.connection.source.next_mode() else { return false };
        self.emit(Body::ModeChange(ModeChange { mode: to, s: false }), Carrier::default());
        self.connection.source.mode = to;
        if from == Mode::Pipelined {
            self.connection.source.leave_pipelined(self.connection.credits.sent);
        }
        self.announce_mode(Half::Out, to);
        true
    }

    fn announce_mode(&mut self, half: Half, mode: Mode) {
        self.connection.out.push_back(Output::Event(Event::ModeChanged { half, mode }));
    }

    /// Sends SrcAvailCancel or SinkAvailCancel. The caller has checked the credit.
    fn revoke(&mut self) -> bool {
        if self.connection.source.wants_cancel() {
            self.emit(Body::SrcAvailCancel, Carrier::default());
            self.connection.source.sent_cancel(self.connection.credits.sent);
            return true;
        }
        if self.connection.sink.revoke == Revoke::Wanted {
            self.emit(Body::SinkAvailCancel, Carrier::default());
            self.connection.sink.revoked();
            return true;
        }
        false
    }

    /// Sends ChRcvBuf or ChRcvBufAck. The caller has checked the credit.
    fn resize_now(&mut self) -> bool {
        let connection = &mut *self.connection;
        // With larger Private Buffers, the peer can send a message that is larger than an
        // advertised buffer. The end of the message would then be placed in the next advertised
        // buffer. But the peer may write to that buffer with RDMA (section 9.5.1). So ChRcvBufAck
        // waits until this side has no smaller buffer advertised and no smaller Private Buffer
        // posted.
        let fits = |size: u32| !connection.pool.has_smaller() && !connection.sink.advertises_up_to(size);
        let early = connection.credits.conduct.acknowledges_early;
        // While MSeqAck is held back for a SrcAvailCancel, MSeqAck does not acknowledge a ChRcvBuf
        // that the peer sent after the SrcAvailCancel. A ChRcvBufAck with this MSeqAck would show
        // the peer that its ChRcvBuf has not arrived (section 9.5.4). After both DisConns, TCP
        // ends, and this side sends nothing else (SDP-8.2.1-32).
        let shows =
            connection.credits.ack_limit.is_none() && !(connection.close.sent.is_some() && connection.close.received);
        if let Some(act_sz) = connection.resize.answer.filter(|size| early || shows && fits(*size)) {
            connection.resize.answer = None;
            self.emit(Body::ChRcvBufAck(ChRcvBufAck { act_sz }), Carrier::default());
            return true;
        }
        // After its DisConn this side needs no other size of the peer's Private Buffers.
        if let Some(des_sz) = connection.resize.request().filter(|_| connection.close.sent.is_none()) {
            self.emit(Body::ChRcvBuf(ChRcvBuf { des_sz }), Carrier::default());
            self.connection.resize.requested(des_sz, self.connection.credits.sent);
            return true;
        }
        false
    }

    /// Sends data, or advertises a receive.
    fn octets(&mut self) -> bool {
        let connection = &mut *self.connection;
        let open = connection.source.open.len() + connection.sink.adverts();
        let adverts = usize::from(connection.peer_max_adverts).saturating_sub(open);
        let room = Room { message: connection.resize.limit, adverts };
        let plan = connection.source.plan(&connection.settings.policy, room, connection.unregistered);
        match plan {
            Plan::Nothing => self.advertise_sink(room, None),
            Plan::Write { start, len, stag, va } => {
                let Some(data) = connection.source.piece(start, u64::from(len)) else { return false };
                let op = connection.ops.assign(Op::Write);
                connection.source.begin_write(op, start, len);
                let remote = RemoteAddress { stag, tagged_offset: va };
                connection.out.push_back(Output::Write { op, data, remote });
                true
            }
            Plan::SrcAvail { start, len, payload } => {
                if !connection.credits.allow(payload > 0) {
                    return payload > 0 && self.wait_for_credit() || self.advertise_sink(room, None);
                }
                self.src_avail((start, len, payload))
            }
            Plan::Data { start, len, urgent } => {
                let limited = connection.urgent.limit(start, len);
                let (len, urgent) = (limited, urgent && limited == len);
                // Data that a SendSm requested is sent as Data messages, and never with a SinkAvail
                // (section 9.2).
                let joins =
                    !urgent && !connection.source.has_requested_data() && connection.settings.policy.transactions;
                let has_credit = connection.credits.allow(true);
                if joins && has_credit && self.advertise_sink(room, Some((start, len))) {
                    return true;
                }
                if !has_credit {
                    return self.wait_for_credit() || self.advertise_sink(room, None);
                }
                self.data(start, len, urgent)
            }
        }
    }

    fn data(&mut self, start: u64, len: u64, urgent: bool) -> bool {
        let connection = &mut *self.connection;
        let Some(piece) = connection.source.piece(start, len) else { return false };
        let op = Some(connection.ops.assign(Op::Payload));
        self.emit(Body::Data(&[]), Carrier { payload: Some(piece), urgent, op, ..Carrier::default() });
        self.connection.source.assign(start, len);
        true
    }

    fn src_avail(&mut self, (start, len, payload): (u64, u32, u32)) -> bool {
        let connection = &mut *self.connection;
        let Some(exposed) = connection.source.piece(start, u64::from(len)) else { return false };
        let Some(region) = (self.register)(Exposed::Source(exposed)) else {
            connection.unregistered = Some(exposed.send);
            return self.octets();
        };
        let piece = (payload > 0).then_some(Piece { len: payload, ..exposed });
        let op = piece.map(|_| connection.ops.assign(Op::Payload));
        let header = SrcAvail { len, stag: region.stag, va: region.va };
        self.emit(Body::SrcAvail(header, &[]), Carrier { payload: piece, op, ..Carrier::default() });
        self.connection.source.advertised(self.connection.credits.sent, start, len, payload, region.stag);
        true
    }

    /// Sends a SinkAvail, if a receive is suitable. `payload` is a position and a length in the
    /// half-connection on which this side sends. If `payload` is set, the message also carries
    /// these bytes and is a Transaction (section 9.4).
    fn advertise_sink(&mut self, room: Room, payload: Option<(u64, u64)>) -> bool {
        let connection = &mut *self.connection;
        let policy = connection.settings.policy;
        let refused = connection.sinks_refused == Some(connection.sink.ends);
        if refused
            || connection.suspension.is_halting()
            || room.adverts == 0
            || connection.sink.adverts() >= policy.sink_avails
        {
            return false;
        }
        // A receive must be larger than the Private Buffers. If their size shrinks, the old size
        // applies until ChRcvBufAck is sent (SDP-10.6-15). If their size grows, the new size
        // applies at once. If the old size still applied, this side could advertise receives that
        // are not larger than the new size. ChRcvBufAck would then have to wait for these receives.
        let least = connection.sink_threshold();
        let fits = u64::from(payload_room(Mid::SINK_AVAIL, room));
        if !connection.credits.allow(payload.is_some()) || payload.is_some_and(|(_, len)| len > fits) {
            return false;
        }
        let Some((receive, len)) = connection.sink.advertisable(least) else { return false };
        let Some(region) = (self.register)(Exposed::Sink { receive, len }) else {
            connection.sinks_refused = Some(connection.sink.ends);
            return false;
        };
        let piece = payload.and_then(|(start, len)| connection.source.piece(start, len));
        let op = piece.map(|_| connection.ops.assign(Op::Payload));
        let non_discards = connection.sink.non_discards;
        let header = SinkAvail { len, stag: region.stag, va: region.va, non_discards };
        self.emit(Body::SinkAvail(header, &[]), Carrier { payload: piece, op, ..Carrier::default() });
        self.connection.sink.advertised(region.stag);
        if let Some((start, len)) = payload.filter(|_| piece.is_some()) {
            self.connection.source.assign(start, len);
        }
        true
    }

    /// Sends DisConn, if it is due.
    fn disconnect(&mut self) -> bool {
        let connection = &mut *self.connection;
        let due = connection.close.requested && connection.close.sent.is_none() && connection.source.is_done();
        if !due || !connection.credits.allow(false) {
            return false;
        }
        let op = Some(connection.ops.assign(Op::DisConn));
        self.emit(Body::DisConn, Carrier { op, ..Carrier::default() });
        let connection = &mut *self.connection;
        connection.close.sent = Some(connection.credits.sent);
        connection.close.deadline = connection.close.received.then(|| self.now + connection.settings.close_timeout);
        true
    }

    /// Waits for credit for payload. If there are exactly two credits, sends an empty message after
    /// a wait. Returns whether the empty message was sent.
    fn wait_for_credit(&mut self) -> bool {
        if self.connection.credits.available() != 2 {
            self.connection.credit_request.stop();
            return false;
        }
        let due = self.connection.credit_request.is_due(self.now);
        if due {
            self.emit(Body::Data(&[]), Carrier::default());
        }
        due
    }

    /// Sends an update (Data without payload) if the peer runs out of credit, or if Out-Of-Band
    /// data must be announced.
    fn update(&mut self) -> bool {
        let connection = &mut *self.connection;
        let announces = connection.urgent.can_announce(connection.source.settled());
        if !connection.credits.allow(false) || !announces && !connection.credits.wants_update(connection.pool.target) {
            connection.echo.stop();
            return false;
        }
        // If each side has only two posted Private Buffers, each update makes its receiver send an
        // update. Without a wait, the updates would never end.
        if !announces && !connection.credits.news {
            if connection.echoed && !connection.echo.is_due(self.now) {
                return false;
            }
            connection.echoed = true;
        }
        self.emit(Body::Data(&[]), Carrier::default());
        true
    }

    /// Writes the headers of a message and queues the Send. The payload is not copied.
    pub(super) fn emit(&mut self, body: Body<'_>, carrier: Carrier) {
        let connection = &mut *self.connection;
        let Carrier { payload, urgent, req_pipe, op, invalidate } = carrier;
        if payload.is_some() {
            connection.credit_request.reset();
        }
        if connection.credits.news {
            connection.echo.reset();
            connection.echoed = false;
        }
        let oob_pend = connection.urgent.announce(connection.source.settled());
        let (bufs, mseq, mseq_ack) = connection.credits.stamp();
        let flags = Flags { oob_pres: urgent, oob_pend, req_pipe };
        let message = Message { bufs, flags, mseq, mseq_ack, body };
        let moved = if is_answer(message.mid()) { &mut connection.moved_in } else { &mut connection.moved_out };
        moved.note(&message.body, payload.map_or(0, |piece| piece.len));
        let mut head = Vec::with_capacity(36);
        message.emit(connection.order, &mut head);
        // The field Len includes the payload. The position of Len is the same in both field orders.
        let len = message.wire_len().saturating_add(payload.map_or(0, |piece| piece.len));
        if let Some(field) = head.get_mut(4..8) {
            field.copy_from_slice(&len.to_be_bytes());
        }
        let solicited = is_solicited(message.mid()) || message.mid() == Mid::DATA && (urgent || oob_pend);
        connection.out.push_back(Output::Send { op, head, payload, solicited, invalidate });
    }
}
