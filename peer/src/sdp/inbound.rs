//! Effect of each message of the peer. Section numbers are those of the SDP draft.

use weft_core::wire::sdp::{Body, Message, Mid, Mode, RawBsdh, RawHeader};

use super::connection::{Arrival, Connection};
use super::control::Control;
use super::phase::Phase;
use super::transfer_counts::is_answer;
use super::{Event, Half, Output, PrivateBuffer, Violation, hello, resize};
use crate::reject::reject_if;
use crate::time::Instant;

/// A message that filled a posted Private Buffer.
pub(super) struct Inbound<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) now: Instant,
    pub(super) buffer: PrivateBuffer,
    pub(super) arrival: Arrival,
}

impl Inbound<'_> {
    /// Processes the message. `octets` is the complete message.
    pub(super) fn process(&mut self, octets: &[u8]) -> Result<(), Violation> {
        if matches!(self.connection.phase, Phase::WaitHelloAck) {
            match hello::judge_hello_ack(octets, &self.connection.settings) {
                Ok(agreed) => self.connection.open(agreed),
                Err(refusal) => self.connection.refuse(refusal),
            }
            self.free_buffer();
            return Ok(());
        }
        if !self.connection.is_open() {
            return Ok(());
        }
        if let Some((raw, _)) =
            RawBsdh::read(octets, self.connection.order).filter(|(raw, _)| raw.mid().is_experimental())
        {
            // This is an experimental message, which the draft does not define but allows (Figure
            // 3). The message uses one credit and has no other effect.
            self.free_buffer();
            let mseq_ack = raw.mseq_ack.get();
            self.header(raw.bufs.get(), raw.mseq.get(), mseq_ack, false)?;
            self.finish_message(mseq_ack, true);
            return Ok(());
        }
        let message = Message::parse(octets, self.connection.order).map_err(Violation::Malformed)?;
        let mid = message.mid();
        let payload = message.body.payload();
        let update = mid == Mid::DATA && payload.is_empty();
        self.header(message.bufs, message.mseq, message.mseq_ack, update)?;
        let ended = self.connection.close.received && (!payload.is_empty() || mid == Mid::SRC_AVAIL)
            || self.connection.close.received_here && mid == Mid::DIS_CONN;
        reject_if(ended || matches!(mid, Mid::HELLO | Mid::HELLO_ACK), Violation::OutOfPlace(mid))?;
        if message.flags.oob_pend {
            self.connection.out.push_back(Output::Event(Event::UrgentPending));
        }
        // The extended header can contain an advertisement. The advertised data belongs to the
        // other half-connection, or follows the payload in the stream. So the payload can be
        // processed before the extended header.
        let from = octets.len() - payload.len();
        if payload.is_empty() {
            self.free_buffer();
        }
        let (from, len) = (length(from), length(payload.len()));
        self.body(&message, from, len)?;
        let moved = if is_answer(mid) { &mut self.connection.moved_out } else { &mut self.connection.moved_in };
        moved.note(&message.body, len);
        self.finish_message(message.mseq_ack, payload.is_empty());
        Ok(())
    }

    /// Processes the header of a message. `update` is true for Data without payload.
    fn header(&mut self, bufs: u16, mseq: u32, mseq_ack: u32, update: bool) -> Result<(), Violation> {
        self.connection.credits.header(bufs, mseq, mseq_ack, update)?;
        self.connection.source.acknowledged(mseq_ack);
        self.connection.close.acknowledged(mseq_ack);
        Ok(())
    }

    /// Final step for each message. `empty` is true for a message without payload.
    fn finish_message(&mut self, mseq_ack: u32, empty: bool) {
        self.has_seen(mseq_ack);
        // While MSeqAck is held back, a message without payload needs one more buffer. Payload
        // cannot arrive, because a SrcAvail is open and the peer must not send payload (sections
        // 11.2 and 11.3).
        if self.connection.credits.ack_limit.is_some() && empty {
            self.connection.post_extra(1);
        }
    }

    /// Returns the Private Buffer to the pool, because its bytes are not needed any more.
    fn free_buffer(&mut self) {
        self.connection.pool.free(self.buffer, &mut self.connection.out);
        self.connection.credits.posted = self.connection.pool.announced();
    }

    /// Processes the payload and the extended header. `from` and `payload` are the offset and the
    /// length of the payload in bytes.
    fn body(&mut self, message: &Message<'_>, from: u32, payload: u32) -> Result<(), Violation> {
        let connection = &mut *self.connection;
        let most = connection.settings.max_adverts;
        let req_pipe = message.flags.req_pipe && connection.settings.policy.follows_hints;
        if payload > 0 {
            reject_if(connection.sink.comes_too_early(payload), Violation::AfterSrcAvail(message.mid()))?;
            let urgent = message.flags.oob_pres;
            connection.sink.arrived((self.buffer, from, payload), urgent, &mut connection.out);
        }
        match message.body {
            Body::Data(_) | Body::Hello(_) | Body::HelloAck(_) => {}
            Body::SrcAvail(advert, _) => connection.sink.src_avail(&advert, payload, most)?,
            Body::SinkAvail(advert, _) => connection.source.sink_avail(&advert, most, &mut connection.out)?,
            Body::SendSm => connection.source.send_sm(message.mseq_ack, &mut connection.out)?,
            Body::RdmaRdCompl(header) => {
                connection.source.read_completed(header.len, self.arrival.invalidated, &mut connection.out)?;
                connection.source.follow_hint(req_pipe);
            }
            Body::RdmaWrCompl(header) => {
                connection.sink.write_completed(header.len, self.arrival.invalidated, &mut connection.out)?;
                // REQ_PIPE concerns the half-connection on which this side sends.
                connection.source.follow_hint(req_pipe);
            }
            Body::ModeChange(header) => self.mode_change(header.mode, header.s)?,
            Body::SrcAvailCancel => self.src_avail_cancel(message.mseq),
            Body::SinkAvailCancel => {
                if connection.source.sink_avail_cancel() {
                    if connection.source.writing.is_empty() {
                        connection.control.push_back(Control::SinkCancelAck);
                    } else {
                        connection.source.sink_cancel = true;
                    }
                }
            }
            Body::SinkCancelAck => connection.sink.sink_cancel_ack(&mut connection.out)?,
            Body::ChRcvBuf(header) => self.ch_rcv_buf(header.des_sz, message.mseq_ack)?,
            Body::ChRcvBufAck(header) => {
                let size = connection.resize.acknowledged(header.act_sz)?;
                connection.out.push_back(Output::Event(Event::Resized(size)));
            }
            Body::DisConn => self.dis_conn(message.mseq_ack)?,
            Body::AbortConn => self.abort_conn(),
            Body::SuspComm(header) => self.susp_comm(header)?,
            Body::SuspCommAck => self.susp_comm_ack()?,
        }
        Ok(())
    }

    /// Processes a SrcAvailCancel (section 9.5.4). A SendSm that is already queued still requests
    /// Data. The SendSm is sent with an MSeqAck below the MSeq of the SrcAvailCancel. The peer can
    /// therefore distinguish this SendSm from the answer to the SrcAvailCancel.
    fn src_avail_cancel(&mut self, mseq: u32) {
        let connection = &mut *self.connection;
        let open = connection.sink.src_avail_cancel();
        let decided = connection.control.contains(&Control::SendSm);
        if open || decided {
            connection.credits.ack_limit = Some(mseq);
        }
        let again = connection.control.contains(&Control::SrcCanceled { send_sm: false });
        if !open && decided && !again {
            connection.control.push_back(Control::SrcCanceled { send_sm: false });
        }
    }

    /// Processes a ModeChange (section 12). If `s` is false, the ModeChange concerns the
    /// half-connection on which the peer sends. If `s` is true, the ModeChange concerns the
    /// half-connection on which this side sends.
    fn mode_change(&mut self, to: Mode, s: bool) -> Result<(), Violation> {
        let connection = &mut *self.connection;
        let from = if s { connection.source.mode } else { connection.sink.mode };
        let legal = match (from, to) {
            (Mode::Buffered, Mode::Combined) => s,
            (Mode::Combined, Mode::Buffered | Mode::Pipelined) | (Mode::Pipelined, Mode::Combined) => !s,
            _ => false,
        };
        reject_if(!legal, Violation::Transition { from, to, by_source: !s })?;
        if s {
            connection.source.mode = to;
        } else {
            if from == Mode::Combined && to == Mode::Buffered && !connection.sink.sources.is_empty() {
                // For this change, all SrcAvails must be complete (section 12.1).
                return Err(Violation::Transition { from, to, by_source: true });
            }
            connection.sink.mode = to;
            if to != Mode::Pipelined {
                // When Pipelined Mode ends, all SinkAvails become void (Figure 29).
                connection.sink.void(&mut connection.out);
            }
        }
        let half = if s { Half::Out } else { Half::In };
        connection.out.push_back(Output::Event(Event::ModeChanged { half, mode: to }));
        Ok(())
    }

    fn ch_rcv_buf(&mut self, wanted: u32, mseq_ack: u32) -> Result<(), Violation> {
        let connection = &mut *self.connection;
        if connection.resize.answer.is_some() {
            // The peer must not send a ChRcvBuf before this side has answered the previous ChRcvBuf
            // (SDP-10.6-19).
            return Err(Violation::OutOfPlace(Mid::CH_RCV_BUF));
        }
        if !connection.resize.answers(connection.role, mseq_ack) {
            return Ok(());
        }
        let size = resize::granted(wanted, connection.pool.size, connection.settings.max_recv_size);
        connection.pool.resize(size, &mut connection.out);
        connection.credits.posted = connection.pool.announced();
        connection.resize.answer = Some(size);
        Ok(())
    }
}

fn length(octets: usize) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}
