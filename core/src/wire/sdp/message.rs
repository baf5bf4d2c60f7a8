//! A complete, valid SDP message: the BSDH (base header), the extended header, and payload of the
//! upper-layer protocol (ULP).

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
    /// DisConn: the sender will send no more ULP data.
    DisConn,
    /// AbortConn: the sender changes its earlier DisConn into an abortive close.
    AbortConn,
    /// SendSm: the sender requests that the peer sends the remaining octets of the oldest
    /// advertised buffer (SrcAvail) in Data messages.
    SendSm,
    /// RdmaWrCompl.
    RdmaWrCompl(RdmaWrCompl),
    /// RdmaRdCompl.
    RdmaRdCompl(RdmaRdCompl),
    /// ModeChange.
    ModeChange(ModeChange),
    /// SrcAvailCancel: the sender withdraws its unprocessed SrcAvails.
    SrcAvailCancel,
    /// SinkAvailCancel: the sender withdraws its unprocessed SinkAvails.
    SinkAvailCancel,
    /// SinkCancelAck: the sender has dropped the withdrawn SinkAvails.
    SinkCancelAck,
    /// ChRcvBuf.
    ChRcvBuf(ChRcvBuf),
    /// ChRcvBufAck.
    ChRcvBufAck(ChRcvBufAck),
    /// SuspComm.
    SuspComm(SuspComm),
    /// SuspCommAck: the sender has suspended the connection.
    SuspCommAck,
    /// SinkAvail, with ULP payload of the sender.
    SinkAvail(SinkAvail, &'a [u8]),
    /// SrcAvail, with a copy of the first octets of the advertised buffer.
    SrcAvail(SrcAvail, &'a [u8]),
    /// Data, with its ULP payload.
    Data(&'a [u8]),
}

impl<'a> Body<'a> {
    /// The MID of a message with this body.
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

    /// The ULP payload; empty for messages that cannot carry payload.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        match self {
            Body::SinkAvail(_, payload) | Body::SrcAvail(_, payload) | Body::Data(payload) => payload,
            _ => &[],
        }
    }

    /// Reads extended header and payload of a message with MID `mid` from the octets after the
    /// BSDH.
    fn parse(mid: Mid, octets: &'a [u8], order: FieldOrder) -> Result<Self, WireError> {
        let (body, rest) = match mid {
            Mid::HELLO => with_header(Body::Hello, Hello::parse(octets, order)?),
            Mid::HELLO_ACK => with_header(Body::HelloAck, HelloAck::parse(octets, order)?),
            Mid::DIS_CONN => (Body::DisConn, octets),
            Mid::ABORT_CONN => (Body::AbortConn, octets),
            Mid::SEND_SM => (Body::SendSm, octets),
            Mid::RDMA_WR_COMPL => with_header(Body::RdmaWrCompl, RdmaWrCompl::parse(octets, order)?),
            Mid::RDMA_RD_COMPL => with_header(Body::RdmaRdCompl, RdmaRdCompl::parse(octets, order)?),
            Mid::MODE_CHANGE => with_header(Body::ModeChange, ModeChange::parse(octets, order)?),
            Mid::SRC_AVAIL_CANCEL => (Body::SrcAvailCancel, octets),
            Mid::SINK_AVAIL_CANCEL => (Body::SinkAvailCancel, octets),
            Mid::SINK_CANCEL_ACK => (Body::SinkCancelAck, octets),
            Mid::CH_RCV_BUF => with_header(Body::ChRcvBuf, ChRcvBuf::parse(octets, order)?),
            Mid::CH_RCV_BUF_ACK => with_header(Body::ChRcvBufAck, ChRcvBufAck::parse(octets, order)?),
            Mid::SUSP_COMM => with_header(Body::SuspComm, SuspComm::parse(octets, order)?),
            Mid::SUSP_COMM_ACK => (Body::SuspCommAck, octets),
            Mid::SINK_AVAIL => {
                return SinkAvail::parse(octets, order).map(|(header, payload)| Body::SinkAvail(header, payload));
            }
            Mid::SRC_AVAIL => {
                return SrcAvail::parse(octets, order).map(|(header, payload)| Body::SrcAvail(header, payload));
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
            expected: "no payload after the headers of this MID",
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

/// Returns the body for the header in `parsed`, and the octets after the header.
fn with_header<'a, T>(body: fn(T) -> Body<'a>, parsed: (T, &'a [u8])) -> (Body<'a>, &'a [u8]) {
    (body(parsed.0), parsed.1)
}

/// The requirement that forbids the unassigned MID `mid`; `None` for experimental MIDs, which are
/// allowed.
fn unassigned(mid: Mid) -> Option<RequirementId> {
    match mid.0 {
        0x0f => Some(requirement!("SDP-6.1.1-17")),
        0x10..=0x3f => Some(requirement!("SDP-6.1.1-18")),
        0x80..=0xfc => Some(requirement!("SDP-6.1.1-20")),
        _ => None,
    }
}

/// The requirement from Figure 3 of the SDP draft that forbids payload for a MID.
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

/// An SDP message with valid fields. Sequence numbers, credits and Modes are not checked, because
/// they depend on earlier messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Number of Private Buffers that the sender has posted; at least 3 in Hello and HelloAck.
    pub bufs: u16,
    /// Flags.
    pub flags: Flags,
    /// Sequence number of this message, modulo 2^32; zero in Hello and HelloAck.
    pub mseq: u32,
    /// Sequence number of the last received message, modulo 2^32.
    pub mseq_ack: u32,
    /// Extended header and payload.
    pub body: Body<'a>,
}

impl<'a> Message<'a> {
    /// Reads one complete message: the ULP octets of one Send, or the 32 octets of a Hello that is
    /// sent before the MPA start-up.
    ///
    /// The parser does not check fields that receivers must ignore: reserved flags, Rsvd fields,
    /// REQ_PIPE, and MSeq and MSeqAck of Hello and HelloAck.
    ///
    /// # Errors
    /// - The BSDH is incomplete, or Len differs from the number of octets.
    /// - The MID is unassigned.
    /// - The extended header is incomplete, or a field is out of range.
    /// - The message carries payload that its MID does not allow.
    /// - OOB_PRES is set, but the message is not a Data message with payload.
    pub fn parse(octets: &'a [u8], order: FieldOrder) -> Result<Self, WireError> {
        let (raw, rest) = RawBsdh::read(octets, order).ok_or(WireError {
            requirement: Some(requirement!("SDP-6-1")),
            ..WireError::too_short(Layer::Sdp, "BSDH", "16 octets", octets.len())
        })?;
        let len = raw.len.get();
        let fits = usize::try_from(len) == Ok(octets.len());
        field(fits, "Len", (order, 4, 4), "the length of the message", len, Some(requirement!("SDP-6.1.4-1")))?;
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
            let expected = "OOB_PRES only in a Data message with payload";
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

    /// Length of the message in octets: the value of Len.
    ///
    /// The payload of a valid message fits in a Private Buffer of at most 2^31 octets, so the
    /// length fits in 32 bits. For a longer message, this method returns 2^32 - 1.
    #[must_use]
    pub fn wire_len(&self) -> u32 {
        let extension = self.mid().extension_len().unwrap_or(0);
        u32::try_from(RawBsdh::LEN + extension + self.body.payload().len()).unwrap_or(u32::MAX)
    }

    /// The raw BSDH.
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
