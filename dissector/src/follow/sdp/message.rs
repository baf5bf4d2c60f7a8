//! Reads the parts of an SDP message that the monitor uses: the base header (BSDH), the extended
//! header, and the length of the payload.

use weft_core::wire::sdp::{
    FieldOrder, Flags, Mid, RawAdverts, RawBsdh, RawChRcvBuf, RawChRcvBufAck, RawHeader, RawHello, RawHelloAck,
    RawModeChange, RawRdmaRdCompl, RawRdmaWrCompl, RawSinkAvail, RawSrcAvail, RawSuspComm,
};

use crate::frame_number::FrameNumber;
use crate::parse::Location;
use crate::part::Part;

/// The headers of an SDP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    pub mid: Mid,
    pub bufs: u16,
    pub flags: Flags,
    pub mseq: u32,
    pub mseq_ack: u32,
    pub extension: Extension,
    /// Length of the ULP payload in octets.
    pub payload: u32,
    /// The STag that the Send with the message invalidates. [`Message::read`] does not set it.
    pub invalidates: Option<u32>,
    /// The frame of the message.
    pub frame: FrameNumber,
    /// Location of the BSDH. If the BSDH is in several pieces, this is the location of the first
    /// piece.
    pub header: Location,
}

/// The fields of the extended header that the monitor uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extension {
    None,
    /// Hello or HelloAck.
    Setup(Setup),
    /// SrcAvail or SinkAvail. A SrcAvail has no NonDiscards, so `non_discards` is 0.
    Advert {
        len: u32,
        stag: u32,
        va: u64,
        non_discards: u32,
    },
    /// RdmaRdCompl or RdmaWrCompl, with the number of moved octets.
    Moved(u32),
    /// ModeChange, with the new Mode and the S bit. The S bit shows which half-connection changes
    /// its Mode.
    Mode {
        mode: u8,
        s: bool,
    },
    /// ChRcvBuf or ChRcvBufAck, with the size of a receive Private Buffer in octets.
    Size(u32),
    /// SuspComm, with a TCP port. On this port, the sender waits for the connection to be resumed.
    Port(u16),
}

/// The fields of Hello or HelloAck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Major protocol version.
    pub majv: u8,
    /// Number of advertisements that the sender can keep (MaxAdverts).
    pub max_adverts: u16,
    /// Size of the sender's receive Private Buffers, in octets.
    pub receive_size: u32,
    /// Number of RDMA Read Requests that the sender can process at the same time (LocIRD).
    pub loc_ird: u16,
    /// Number of RDMA Read Requests of the sender that can be outstanding at the same time
    /// (LocORD).
    pub loc_ord: u16,
}

impl Message {
    /// Reads the headers; `None` if octets of the headers are missing.
    pub(super) fn read(part: Part<'_>, order: FieldOrder, (frame, header): (FrameNumber, Location)) -> Option<Self> {
        let (bsdh, _) = RawBsdh::read(part.get(0..RawBsdh::LEN)?, order)?;
        let mid = bsdh.mid();
        let head = RawBsdh::LEN + mid.extension_len().unwrap_or(0);
        let octets = part.get(RawBsdh::LEN..head)?;
        let payload = u32::try_from(part.len().saturating_sub(head)).unwrap_or(u32::MAX);
        Some(Message {
            mid,
            bufs: bsdh.bufs.get(),
            flags: Flags::from_raw(bsdh.flags),
            mseq: bsdh.mseq.get(),
            mseq_ack: bsdh.mseq_ack.get(),
            extension: extension(mid, octets, order)?,
            payload: if mid.may_carry_payload() { payload } else { 0 },
            invalidates: None,
            frame,
            header,
        })
    }

    /// Returns whether the message only updates credit, or has a type by which a Data Sink settles
    /// a SrcAvailCancel (see [`super::sdp_peer`]).
    pub(super) fn is_answer(&self) -> bool {
        matches!(self.mid, Mid::SEND_SM | Mid::RDMA_RD_COMPL) || self.is_gratuitous()
    }

    /// Returns whether the message is a Data message without payload. Such a message only updates
    /// credit (section 10.4 of the SDP draft).
    pub(super) fn is_gratuitous(&self) -> bool {
        self.mid == Mid::DATA && self.payload == 0
    }
}

/// Returns whether a message with this MID may have `size` octets. Experimental and unknown MIDs have
/// no allowed size.
fn allows(mid: Mid, size: usize) -> bool {
    let Some(head) = mid.extension_len().map(|len| RawBsdh::LEN + len) else { return false };
    size == head || size > head && mid.may_carry_payload()
}

/// Returns the other field order if the message in a Send is correct in that order, but not in
/// `order`. `is_open` is set if the HelloAck was already sent.
pub(super) fn other_order(part: Part<'_>, order: FieldOrder, is_open: bool) -> Option<FieldOrder> {
    let octets = part.get(0..RawBsdh::LEN)?;
    let mid = RawBsdh::read(octets, order)?.0.mid();
    // A Send carries no Hello.
    if mid.is_experimental() || mid != Mid::HELLO && allows(mid, part.len()) {
        return None;
    }
    let other = if order == FieldOrder::Figure { FieldOrder::Mirrored } else { FieldOrder::Figure };
    let (bsdh, _) = RawBsdh::read(octets, other)?;
    let mid = bsdh.mid();
    let is_due = mid != Mid::HELLO && !(is_open && mid == Mid::HELLO_ACK);
    let has_reserved_flags = Flags::from_raw(bsdh.flags).to_raw() != bsdh.flags;
    let fits = bsdh.len.get() as usize == part.len() && allows(mid, part.len());
    (is_due && fits && !has_reserved_flags).then_some(other)
}

fn setup(adverts: RawAdverts, receive_size: u32, loc_ird: u16, loc_ord: u16) -> Extension {
    let (majv, max_adverts) = (adverts.version.majv(), adverts.max_adverts.get());
    Extension::Setup(Setup { majv, max_adverts, receive_size, loc_ird, loc_ord })
}

fn extension(mid: Mid, octets: &[u8], order: FieldOrder) -> Option<Extension> {
    Some(match mid {
        Mid::HELLO => {
            let (raw, _) = RawHello::read(octets, order)?;
            setup(raw.adverts, raw.local_rcv_sz.get(), raw.loc_ird.get(), raw.loc_ord.get())
        }
        Mid::HELLO_ACK => {
            let (raw, _) = RawHelloAck::read(octets, order)?;
            setup(raw.adverts, raw.act_rcv_sz.get(), raw.loc_ird.get(), raw.loc_ord.get())
        }
        Mid::SRC_AVAIL => {
            let (raw, _) = RawSrcAvail::read(octets, order)?;
            Extension::Advert { len: raw.len.get(), stag: raw.stag.get(), va: raw.va.get(), non_discards: 0 }
        }
        Mid::SINK_AVAIL => {
            let (raw, _) = RawSinkAvail::read(octets, order)?;
            let (len, stag, va) = (raw.len.get(), raw.stag.get(), raw.va.get());
            Extension::Advert { len, stag, va, non_discards: raw.non_discards.get() }
        }
        Mid::RDMA_WR_COMPL => Extension::Moved(RawRdmaWrCompl::read(octets, order)?.0.len.get()),
        Mid::RDMA_RD_COMPL => Extension::Moved(RawRdmaRdCompl::read(octets, order)?.0.len.get()),
        Mid::MODE_CHANGE => {
            let (raw, _) = RawModeChange::read(octets, order)?;
            Extension::Mode { mode: raw.mode(), s: raw.s() }
        }
        Mid::CH_RCV_BUF => Extension::Size(RawChRcvBuf::read(octets, order)?.0.des_sz.get()),
        Mid::CH_RCV_BUF_ACK => Extension::Size(RawChRcvBufAck::read(octets, order)?.0.act_sz.get()),
        Mid::SUSP_COMM => Extension::Port(RawSuspComm::read(octets, order)?.0.port.get()),
        _ => Extension::None,
    })
}
