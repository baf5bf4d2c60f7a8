//! Effect of each message of the peer.

use weft_core::wire::sdp::{Body, Message, Mid, Mode, RawBsdh, RawHeader};

use super::connection::{Arrival, Connection};
use super::control::Control;
use super::phase::Phase;
use super::transfer_counts::is_answer;
use super::{Event, Half, Output, PrivateBuffer, Violation, hello, resize};
use crate::reject::reject_if;
use crate::time::Instant;

impl Connection {
    /// Processes a message that filled a posted Private Buffer.
    pub(super) fn message(
        &mut self,
        now: Instant,
        buffer: PrivateBuffer,
        octets: &[u8],
        arrival: Arrival,
    ) -> Result<(), Violation> {
        if matches!(self.phase, Phase::WaitHelloAck) {
            match hello::judge_hello_ack(octets, &self.settings) {
                Ok(agreed) => self.open(agreed),
                Err(refusal) => self.refuse(refusal),
            }
            self.free_buffer(buffer);
            return Ok(());
        }
        if !self.is_open() {
            return Ok(());
        }
        if let Some((raw, _)) = RawBsdh::read(octets, self.order).filter(|(raw, _)| raw.mid().is_experimental()) {
            // This is an experimental message, which the draft does not define but allows (Figure
            // 3). The message uses one credit and has no other effect.
            self.free_buffer(buffer);
            let mseq_ack = raw.mseq_ack.get();
            self.header(raw.bufs.get(), raw.mseq.get(), mseq_ack, false)?;
            self.finish_message(mseq_ack, true);
            return Ok(());
        }
        let message = Message::parse(octets, self.order).map_err(Violation::Malformed)?;
        let mid = message.mid();
        let payload = message.body.payload();
        let update = mid == Mid::DATA && payload.is_empty();
        self.header(message.bufs, message.mseq, message.mseq_ack, update)?;
        let ended = self.close.received && (!payload.is_empty() || mid == Mid::SRC_AVAIL)
            || self.close.received_here && mid == Mid::DIS_CONN;
        reject_if(ended || matches!(mid, Mid::HELLO | Mid::HELLO_ACK), Violation::OutOfPlace(mid))?;
        if message.flags.oob_pend {
            self.out.push_back(Output::Event(Event::UrgentPending));
        }
        // The extended header can contain an advertisement. The advertised data belongs to the
        // other half-connection, or follows the payload in the stream. So the payload can be
        // processed before the extended header.
        let from = octets.len() - payload.len();
        if payload.is_empty() {
            self.free_buffer(buffer);
        }
        let place = (buffer, length(from), length(payload.len()));
        self.body(now, &message, arrival, place)?;
        let moved = if is_answer(mid) { &mut self.moved_out } else { &mut self.moved_in };
        moved.note(&message.body, place.2);
        self.finish_message(message.mseq_ack, payload.is_empty());
        Ok(())
    }

    /// Processes the header of a message. `update` is true for Data without payload.
    fn header(&mut self, bufs: u16, mseq: u32, mseq_ack: u32, update: bool) -> Result<(), Violation> {
        self.credits.header(bufs, mseq, mseq_ack, update)?;
        self.source.acknowledged(mseq_ack);
        self.close.acknowledged(mseq_ack);
        Ok(())
    }

    /// Final step for each message. `empty` is true for a message without payload.
    fn finish_message(&mut self, mseq_ack: u32, empty: bool) {
        self.has_seen(mseq_ack);
        // Only a message without payload needs one more buffer. While a SrcAvail is open, the peer
        // must not send payload (sections 11.2 and 11.3).
        if self.credits.ack_limit.is_some() && empty {
            self.post_extra(1);
        }
    }

    /// Posts up to `count` Private Buffers beyond the normal number.
    pub(super) fn post_extra(&mut self, count: usize) {
        for _ in 0..count {
            self.pool.post_extra(&mut self.out);
        }
        self.credits.posted = self.pool.posted();
    }

    /// Changes to Pipelined Mode if the peer prefers this Mode, and if the policy follows the
    /// peer's hints.
    fn follow_hint(&mut self, req_pipe: bool) {
        if req_pipe && self.source.mode == Mode::Combined && self.settings.policy.follows_hints {
            self.source.wanted = Some(Mode::Pipelined);
        }
    }

    /// Processes the payload and the extended header. `place` has the Private Buffer, and the
    /// offset and the length of the payload in bytes.
    fn body(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        arrival: Arrival,
        place: (PrivateBuffer, u32, u32),
    ) -> Result<(), Violation> {
        let most = self.settings.max_adverts;
        let payload = place.2;
        if payload > 0 {
            reject_if(self.sink.comes_too_early(payload), Violation::AfterSrcAvail(message.mid()))?;
            let urgent = message.flags.oob_pres;
            self.sink.arrived(place, urgent, &mut self.out);
        }
        match message.body {
            Body::Data(_) | Body::Hello(_) | Body::HelloAck(_) => {}
            Body::SrcAvail(advert, _) => self.sink.src_avail(&advert, payload, most)?,
            Body::SinkAvail(advert, _) => self.source.sink_avail(&advert, most, &mut self.out)?,
            Body::SendSm => self.source.send_sm(message.mseq_ack, &mut self.out)?,
            Body::RdmaRdCompl(header) => {
                self.source.read_completed(header.len, arrival.invalidated, &mut self.out)?;
                self.follow_hint(message.flags.req_pipe);
            }
            Body::RdmaWrCompl(header) => {
                self.sink.write_completed(header.len, arrival.invalidated, &mut self.out)?;
                // REQ_PIPE concerns the half-connection on which this side sends.
                self.follow_hint(message.flags.req_pipe);
            }
            Body::ModeChange(header) => self.mode_change(header.mode, header.s)?,
            Body::SrcAvailCancel => self.src_avail_cancel(message.mseq),
            Body::SinkAvailCancel => {
                if self.source.sink_avail_cancel() {
                    if self.source.writing.is_empty() {
                        self.control.push_back(Control::SinkCancelAck);
                    } else {
                        self.source.sink_cancel = true;
                    }
                }
            }
            Body::SinkCancelAck => self.sink.sink_cancel_ack(&mut self.out)?,
            Body::ChRcvBuf(header) => self.ch_rcv_buf(header.des_sz, message.mseq_ack)?,
            Body::ChRcvBufAck(header) => {
                let size = self.resize.acknowledged(header.act_sz)?;
                self.out.push_back(Output::Event(Event::Resized(size)));
            }
            Body::DisConn => self.dis_conn(now, message.mseq_ack)?,
            Body::AbortConn => self.abort_conn(),
            Body::SuspComm(header) => self.susp_comm(now, header)?,
            Body::SuspCommAck => self.susp_comm_ack(now)?,
        }
        Ok(())
    }

    /// Processes a SrcAvailCancel (section 9.5.4). A SendSm that is already queued still requests
    /// Data. It is sent with an MSeqAck below the SrcAvailCancel, so the peer can distinguish it
    /// from the answer to the SrcAvailCancel.
    fn src_avail_cancel(&mut self, mseq: u32) {
        let open = self.sink.src_avail_cancel();
        let decided = self.control.contains(&Control::SendSm);
        if open || decided {
            self.credits.ack_limit = Some(mseq);
        }
        let again = self.control.contains(&Control::SrcCanceled { send_sm: false });
        if !open && decided && !again {
            self.control.push_back(Control::SrcCanceled { send_sm: false });
        }
    }

    /// Processes a ModeChange (section 12). If `s` is false, the ModeChange concerns the
    /// half-connection on which the peer sends. If `s` is true, it concerns the half-connection on
    /// which this side sends.
    fn mode_change(&mut self, to: Mode, s: bool) -> Result<(), Violation> {
        let from = if s { self.source.mode } else { self.sink.mode };
        let legal = match (from, to) {
            (Mode::Buffered, Mode::Combined) => s,
            (Mode::Combined, Mode::Buffered | Mode::Pipelined) | (Mode::Pipelined, Mode::Combined) => !s,
            _ => false,
        };
        reject_if(!legal, Violation::Transition { from, to, by_source: !s })?;
        if s {
            self.source.mode = to;
        } else {
            if from == Mode::Combined && to == Mode::Buffered && !self.sink.sources.is_empty() {
                // No SrcAvail may be open (section 12.1).
                return Err(Violation::Transition { from, to, by_source: true });
            }
            self.sink.mode = to;
            if to != Mode::Pipelined {
                // When Pipelined Mode ends, all SinkAvails become void (Figure 29).
                self.sink.void(&mut self.out);
            }
        }
        let half = if s { Half::Out } else { Half::In };
        self.out.push_back(Output::Event(Event::ModeChanged { half, mode: to }));
        Ok(())
    }

    fn ch_rcv_buf(&mut self, wanted: u32, mseq_ack: u32) -> Result<(), Violation> {
        if self.resize.answer.is_some() {
            // SDP-10.6-19.
            return Err(Violation::OutOfPlace(Mid::CH_RCV_BUF));
        }
        if !self.resize.answers(self.role, mseq_ack) {
            return Ok(());
        }
        let size = resize::granted(wanted, self.pool.size, self.settings.max_recv_size);
        self.pool.resize(size, &mut self.out);
        self.credits.posted = self.pool.posted();
        self.resize.answer = Some(size);
        Ok(())
    }
}

fn length(octets: usize) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}
