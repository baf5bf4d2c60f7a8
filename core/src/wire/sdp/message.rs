//! A complete SDP message that makes sense: BSDH, extended header, payload.

use super::bsdh::{FLAG_OOB_PRES, Flags};
use super::check::{bad, field};
use super::{
    ChRcvBuf, ChRcvBufAck, FieldOrder, Hello, HelloAck, MIN_INITIAL_BUFS, Mid, ModeChange, RawBsdh, RawHeader,
    RdmaRdCompl, RdmaWrCompl, SinkAvail, SrcAvail, SuspComm,
};
use crate::RequirementId;
use crate::error::{Found, Layer, WireError};
use crate::requirement;
use zerocopy::network_endian::{U16, U32};

/// The content of a message, by its MID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// Hello.
    Hello(Hello),
    /// HelloAck.
    HelloAck(HelloAck),
    /// DisConn: its sender sends no more ULP data.
    DisConn,
    /// AbortConn: the DisConn of its sender turns abortive.
    AbortConn,
    /// SendSm: the rest of the oldest SrcAvail is wanted as Data.
    SendSm,
    /// RdmaWrCompl.
    RdmaWrCompl(RdmaWrCompl),
    /// RdmaRdCompl.
    RdmaRdCompl(RdmaRdCompl),
    /// ModeChange.
    ModeChange(ModeChange),
    /// SrcAvailCancel: unprocessed SrcAvails are taken back.
    SrcAvailCancel,
    /// SinkAvailCancel: unprocessed SinkAvails are taken back.
    SinkAvailCancel,
    /// SinkCancelAck: the SinkAvails are dropped.
    SinkCancelAck,
    /// ChRcvBuf.
    ChRcvBuf(ChRcvBuf),
    /// ChRcvBufAck.
    ChRcvBufAck(ChRcvBufAck),
    /// SuspComm.
    SuspComm(SuspComm),
    /// SuspCommAck: its sender has suspended.
    SuspCommAck,
    /// SinkAvail, and payload for the other direction.
    SinkAvail(SinkAvail, &'a [u8]),
    /// SrcAvail, and a copy of the first octets of its buffer.
    SrcAvail(SrcAvail, &'a [u8]),
    /// Data.
    Data(&'a [u8]),
}

impl<'a> Body<'a> {
    /// The MID of such a message.
    #[must_use]
    pub const fn mid(&self) -> Mid {
        match self {
            Body::Hello(_) => Mid::HELLO,
            Body::HelloAck(_) => Mid::HELLO_ACK,
            Body::DisConn => Mid::DIS_CONN,
            Body::AbortConn => Mid::ABORT_CONN,
            Body::SendSm => Mid::SEND_SM,
            Body::RdmaWrCompl(_) => Mid::RDMA_WR_COMPL,
            Body::RdmaRdCompl(_) => Mid::RDMA_RD_COMPL,
            Body::ModeChange(_) => Mid::MODE_CHANGE,
            Body::SrcAvailCancel => Mid::SRC_AVAIL_CANCEL,
            Body::SinkAvailCancel => Mid::SINK_AVAIL_CANCEL,
            Body::SinkCancelAck => Mid::SINK_CANCEL_ACK,
            Body::ChRcvBuf(_) => Mid::CH_RCV_BUF,
            Body::ChRcvBufAck(_) => Mid::CH_RCV_BUF_ACK,
            Body::SuspComm(_) => Mid::SUSP_COMM,
            Body::SuspCommAck => Mid::SUSP_COMM_ACK,
            Body::SinkAvail(..) => Mid::SINK_AVAIL,
            Body::SrcAvail(..) => Mid::SRC_AVAIL,
            Body::Data(_) => Mid::DATA,
        }
    }

    /// The ULP payload; empty for messages that never carry any.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        match self {
            Body::SinkAvail(_, payload) | Body::SrcAvail(_, payload) | Body::Data(payload) => payload,
            _ => &[],
        }
    }

    /// Reads extended header and payload of a message of this MID from the octets after the BSDH.
    fn parse(mid: Mid, octets: &'a [u8], order: FieldOrder) -> Result<Self, WireError> {
        let (body, rest) = match mid {
            Mid::HELLO => Hello::parse(octets, order).map(|(header, rest)| (Body::Hello(header), rest))?,
            Mid::HELLO_ACK => HelloAck::parse(octets, order).map(|(header, rest)| (Body::HelloAck(header), rest))?,
            Mid::DIS_CONN => (Body::DisConn, octets),
            Mid::ABORT_CONN => (Body::AbortConn, octets),
            Mid::SEND_SM => (Body::SendSm, octets),
            Mid::RDMA_WR_COMPL => {
                RdmaWrCompl::parse(octets, order).map(|(header, rest)| (Body::RdmaWrCompl(header), rest))?
            }
            Mid::RDMA_RD_COMPL => {
                RdmaRdCompl::parse(octets, order).map(|(header, rest)| (Body::RdmaRdCompl(header), rest))?
            }
            Mid::MODE_CHANGE => {
                ModeChange::parse(octets, order).map(|(header, rest)| (Body::ModeChange(header), rest))?
            }
            Mid::SRC_AVAIL_CANCEL => (Body::SrcAvailCancel, octets),
            Mid::SINK_AVAIL_CANCEL => (Body::SinkAvailCancel, octets),
            Mid::SINK_CANCEL_ACK => (Body::SinkCancelAck, octets),
            Mid::CH_RCV_BUF => ChRcvBuf::parse(octets, order).map(|(header, rest)| (Body::ChRcvBuf(header), rest))?,
            Mid::CH_RCV_BUF_ACK => {
                ChRcvBufAck::parse(octets, order).map(|(header, rest)| (Body::ChRcvBufAck(header), rest))?
            }
            Mid::SUSP_COMM => SuspComm::parse(octets, order).map(|(header, rest)| (Body::SuspComm(header), rest))?,
            Mid::SUSP_COMM_ACK => (Body::SuspCommAck, octets),
            Mid::SINK_AVAIL => {
                let (header, payload) = SinkAvail::parse(octets, order)?;
                return Ok(Body::SinkAvail(header, payload));
            }
            Mid::SRC_AVAIL => {
                let (header, payload) = SrcAvail::parse(octets, order)?;
                return Ok(Body::SrcAvail(header, payload));
            }
            Mid::DATA => return Ok(Body::Data(octets)),
            other => {
                let expected = "the MID of one of the 18 messages";
                return Err(bad("MID", (order, 3, 1), expected, u32::from(other.0), unassigned(other)));
            }
        };
        if rest.is_empty() {
            return Ok(body);
        }
        Err(WireError {
            layer: Layer::Sdp,
            field: "payload",
            offset: RawBsdh::LEN + octets.len() - rest.len(),
            expected: "none after the headers of this MID",
            found: Found::Octets(rest.len()),
            requirement: Some(no_payload(mid)),
        })
    }

    fn emit(&self, order: FieldOrder, out: &mut Vec<u8>) {
        match self {
            Body::Hello(header) => header.to_raw().append(order, out),
            Body::HelloAck(header) => header.to_raw().append(order, out),
            Body::RdmaWrCompl(header) => header.to_raw().append(order, out),
            Body::RdmaRdCompl(header) => header.to_raw().append(order, out),
            Body::ModeChange(header) => header.to_raw().append(order, out),
            Body::ChRcvBuf(header) => header.to_raw().append(order, out),
            Body::ChRcvBufAck(header) => header.to_raw().append(order, out),
            Body::SuspComm(header) => header.to_raw().append(order, out),
            Body::SinkAvail(header, _) => header.to_raw().append(order, out),
            Body::SrcAvail(header, _) => header.to_raw().append(order, out),
            Body::DisConn
            | Body::AbortConn
            | Body::SendSm
            | Body::SrcAvailCancel
            | Body::SinkAvailCancel
            | Body::SinkCancelAck
            | Body::SuspCommAck
            | Body::Data(_) => {}
        }
        out.extend_from_slice(self.payload());
    }
}

/// The row that keeps an unassigned MID off the wire; experimental ones may be used.
fn unassigned(mid: Mid) -> Option<RequirementId> {
    match mid.0 {
        0x0f => Some(requirement!("SDP-6.1.1-17")),
        0x10..=0x3f => Some(requirement!("SDP-6.1.1-18")),
        0x80..=0xfc => Some(requirement!("SDP-6.1.1-20")),
        _ => None,
    }
}

/// The row of Figure 3 that requires "no payload" for a MID.
fn no_payload(mid: Mid) -> RequirementId {
    match mid {
        Mid::HELLO => requirement!("SDP-6.1.1-2"),
        Mid::HELLO_ACK => requirement!("SDP-6.1.1-3"),
        Mid::DIS_CONN => requirement!("SDP-6.1.1-4"),
        Mid::ABORT_CONN => requirement!("SDP-6.1.1-5"),
        Mid::SEND_SM => requirement!("SDP-6.1.1-6"),
        Mid::RDMA_WR_COMPL => requirement!("SDP-6.1.1-7"),
        Mid::RDMA_RD_COMPL => requirement!("SDP-6.1.1-8"),
        Mid::MODE_CHANGE => requirement!("SDP-6.1.1-9"),
        Mid::SRC_AVAIL_CANCEL => requirement!("SDP-6.1.1-10"),
        Mid::SINK_AVAIL_CANCEL => requirement!("SDP-6.1.1-11"),
        Mid::SINK_CANCEL_ACK => requirement!("SDP-6.1.1-12"),
        Mid::CH_RCV_BUF => requirement!("SDP-6.1.1-13"),
        Mid::CH_RCV_BUF_ACK => requirement!("SDP-6.1.1-14"),
        Mid::SUSP_COMM => requirement!("SDP-6.1.1-15"),
        Mid::SUSP_COMM_ACK => requirement!("SDP-6.1.1-16"),
        _ => requirement!("SDP-6.1.1-1"),
    }
}

/// An SDP message that makes sense by itself. Sequence, credits and Modes are not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Private Buffers posted; at least 3 in Hello and HelloAck.
    pub bufs: u16,
    /// Flags.
    pub flags: Flags,
    /// Number of this message, modulo 2^32; zero in Hello and HelloAck.
    pub mseq: u32,
    /// Number of the last message received, modulo 2^32.
    pub mseq_ack: u32,
    /// The rest, by MID.
    pub body: Body<'a>,
}

impl<'a> Message<'a> {
    /// Reads one complete message: the ULP octets of one Send, or the 32 octets of a Hello before
    /// MPA.
    ///
    /// The parser skips fields that receivers must ignore: reserved flags, Rsvd fields, MSeq and
    /// MSeqAck of Hello and HelloAck, REQ_PIPE.
    ///
    /// # Errors
    /// A BSDH that is cut short, a Len that is not the number of octets, an unassigned MID, an
    /// extended header that is cut short or holds a value out of range, payload where none belongs,
    /// OOB_PRES without an octet of Data that it could mean.
    pub fn parse(octets: &'a [u8], order: FieldOrder) -> Result<Self, WireError> {
        let (raw, rest) = RawBsdh::read(octets, order).ok_or(WireError {
            requirement: Some(requirement!("SDP-6-1")),
            ..WireError::too_short(Layer::Sdp, "BSDH", "16 octets", octets.len())
        })?;
        let len = raw.len.get();
        let fits = usize::try_from(len) == Ok(octets.len());
        field(fits, "Len", (order, 4, 4), "the octets of the message", len, Some(requirement!("SDP-6.1.4-1")))?;
        let body = Body::parse(raw.mid(), rest, order)?;
        let bufs = raw.bufs.get();
        if let Some(requirement) = match body {
            Body::Hello(_) => Some(requirement!("SDP-6.2.1-6")),
            Body::HelloAck(_) => Some(requirement!("SDP-6.2.2-6")),
            _ => None,
        } {
            let enough = bufs >= MIN_INITIAL_BUFS;
            field(enough, "Bufs", (order, 0, 2), "at least 3", u32::from(bufs), Some(requirement))?;
        }
        if raw.flags & FLAG_OOB_PRES != 0 && !matches!(body, Body::Data([_, ..])) {
            let requirement = match body {
                Body::Data(_) => requirement!("SDP-6.1.2-7"),
                _ => requirement!("SDP-6.1.2-8"),
            };
            let expected = "OOB_PRES only in Data that ends with the OOB octet";
            return Err(bad("Flags", (order, 2, 1), expected, u32::from(raw.flags), Some(requirement)));
        }
        let flags = Flags::from_raw(raw.flags);
        Ok(Message { bufs, flags, mseq: raw.mseq.get(), mseq_ack: raw.mseq_ack.get(), body })
    }

    /// The MID.
    #[must_use]
    pub const fn mid(&self) -> Mid {
        self.body.mid()
    }

    /// Octets of the message as Len has it.
    ///
    /// Payload comes from a Private Buffer of at most 2^31 octets; one beyond what Len can express
    /// gives the greatest Len.
    #[must_use]
    pub fn wire_len(&self) -> u32 {
        let extension = self.mid().extension_len().unwrap_or(0);
        u32::try_from(RawBsdh::LEN + extension + self.body.payload().len()).unwrap_or(u32::MAX)
    }

    /// The BSDH, raw.
    #[must_use]
    pub fn to_raw(&self) -> RawBsdh {
        RawBsdh {
            bufs: U16::new(self.bufs),
            flags: self.flags.to_raw(),
            mid: self.mid().0,
            len: U32::new(self.wire_len()),
            mseq: U32::new(self.mseq),
            mseq_ack: U32::new(self.mseq_ack),
        }
    }

    /// Appends the message to `out`.
    pub fn emit(&self, order: FieldOrder, out: &mut Vec<u8>) {
        self.to_raw().append(order, out);
        self.body.emit(order, out);
    }
}

#[cfg(test)]
mod tests;
