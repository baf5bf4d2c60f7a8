//! SDP messages whose fields are accessed by name. Messages may be valid or invalid, in both field
//! orders (draft-pinkerton-iwarp-sdp-01 section 6).
//!
//! This module does not judge messages. A script's message may be wrong, and so may the target's
//! answer.

pub(crate) mod observed_rules;

use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, FieldOrder, Mid, RawBsdh, RawHeader};

/// Length in bytes of the base header (BSDH) of an SDP message.
pub(crate) const BSDH_LEN: usize = 16;

/// A field of an extended header, at its position in figure order ([`FieldOrder::Figure`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Offset of the field's first byte in the message.
    start: usize,
    /// Length in bytes. Fields that share bytes have the same length.
    len: usize,
    /// Number of the field's lowest bit in these bytes, from 0.
    shift: u32,
    /// Length in bits.
    bits: u32,
    /// The correct value, which is used if a script sets no value.
    pub(crate) default: u64,
}

const fn field(name: &'static str, start: usize, len: usize, default: u64) -> Field {
    Field { name, start, len, shift: 0, bits: 8 * len as u32, default }
}

const fn part(name: &'static str, start: usize, len: usize, shift: u32, bits: u32, default: u64) -> Field {
    Field { name, start, len, shift, bits, default }
}

const ADVERTS: [Field; 4] = [
    field("max_adverts", 16, 2, 4),
    field("rsvd", 18, 1, 0),
    part("minv", 19, 1, 4, 4, 1),
    part("majv", 19, 1, 0, 4, 1),
];
const HELLO: [Field; 8] = [
    ADVERTS[0],
    ADVERTS[1],
    ADVERTS[2],
    ADVERTS[3],
    field("des_rem_rcv_sz", 20, 4, 1000),
    field("local_rcv_sz", 24, 4, 4096),
    field("loc_ird", 28, 2, 4),
    field("loc_ord", 30, 2, 4),
];
const HELLO_ACK: [Field; 7] = [
    ADVERTS[0],
    ADVERTS[1],
    ADVERTS[2],
    ADVERTS[3],
    field("act_rcv_sz", 20, 4, 4096),
    field("loc_ird", 24, 2, 4),
    field("loc_ord", 26, 2, 4),
];
const MODE_CHANGE: [Field; 3] =
    [part("rsvd", 16, 4, 4, 28, 0), part("mode", 16, 4, 1, 3, 2), part("s", 16, 4, 0, 1, 0)];
const COMPLETION: [Field; 1] = [field("length", 16, 4, 0)];
const DES_SZ: [Field; 1] = [field("des_sz", 16, 4, 2000)];
const ACT_SZ: [Field; 1] = [field("act_sz", 16, 4, 4096)];
const SUSP_COMM: [Field; 3] = [field("constant1", 16, 4, 0), field("port", 20, 2, 0), field("constant2", 22, 2, 1)];
const SRC_AVAIL: [Field; 3] =
    [field("length", 16, 4, 2000), field("stag", 20, 4, 0x0101), field("va", 24, 8, 0x7_0000_0001)];
const SINK_AVAIL: [Field; 4] = [SRC_AVAIL[0], SRC_AVAIL[1], SRC_AVAIL[2], field("non_discards", 32, 4, 0)];

/// Returns the fields of a message's extended header.
pub(crate) const fn extension(mid: Mid) -> &'static [Field] {
    match mid {
        Mid::HELLO => &HELLO,
        Mid::HELLO_ACK => &HELLO_ACK,
        Mid::MODE_CHANGE => &MODE_CHANGE,
        Mid::RDMA_WR_COMPL | Mid::RDMA_RD_COMPL => &COMPLETION,
        Mid::CH_RCV_BUF => &DES_SZ,
        Mid::CH_RCV_BUF_ACK => &ACT_SZ,
        Mid::SUSP_COMM => &SUSP_COMM,
        Mid::SRC_AVAIL => &SRC_AVAIL,
        Mid::SINK_AVAIL => &SINK_AVAIL,
        _ => &[],
    }
}

impl Field {
    /// Returns the byte range of the field in this field order, and the number of the field's
    /// lowest bit in the range.
    fn place(&self, order: FieldOrder) -> (std::ops::Range<usize>, u32) {
        let place = order.wire_range(self.start..self.start + self.len);
        let width = 8 * u32::try_from(self.len).unwrap_or(0);
        // The mirrored order also reverses the position of the field within its bytes.
        match order {
            FieldOrder::Figure => (place, self.shift),
            FieldOrder::Mirrored => (place, width - self.shift - self.bits),
        }
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    fn put(&self, order: FieldOrder, value: u64, octets: &mut [u8]) {
        let (place, shift) = self.place(order);
        let len = place.len();
        let Some(at) = octets.get_mut(place) else { return };
        let mut word = [0; 8];
        word[8 - len..].copy_from_slice(at);
        let kept = u64::from_be_bytes(word) & !(self.mask() << shift);
        let word = (kept | (value & self.mask()) << shift).to_be_bytes();
        at.copy_from_slice(&word[8 - len..]);
    }

    fn get(&self, order: FieldOrder, octets: &[u8]) -> Option<u64> {
        let (place, shift) = self.place(order);
        let at = octets.get(place)?;
        let mut word = [0; 8];
        word[8 - at.len()..].copy_from_slice(at);
        Some(u64::from_be_bytes(word) >> shift & self.mask())
    }
}

/// A message to send. The connection fills in the counters that the message does not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) mid: u8,
    pub(crate) flags: u8,
    pub(crate) bufs: Option<u16>,
    pub(crate) len: Option<u32>,
    pub(crate) mseq: Option<u32>,
    pub(crate) mseq_ack: Option<u32>,
    /// Order of the fields, if the message does not use the connection's order.
    pub(crate) order: Option<FieldOrder>,
    /// Fields of the extended header, and their values.
    pub(crate) extension: Vec<(Field, u64)>,
    pub(crate) payload: Vec<u8>,
    /// Bytes that follow the message. The field Len does not include them.
    pub(crate) trailing: Vec<u8>,
}

/// The fields that a connection fills in if the message does not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) bufs: u16,
    pub(crate) mseq: u32,
    pub(crate) mseq_ack: u32,
    pub(crate) order: FieldOrder,
}

impl Draft {
    /// Creates a message with the default values of its extended header, and no payload.
    pub(crate) fn new(mid: Mid) -> Self {
        Draft {
            mid: mid.0,
            flags: 0,
            bufs: None,
            len: None,
            mseq: None,
            mseq_ack: None,
            order: None,
            extension: extension(mid).iter().map(|field| (*field, field.default)).collect(),
            payload: Vec::new(),
            trailing: Vec::new(),
        }
    }

    /// Returns the bytes of the message.
    pub(crate) fn octets(&self, counters: Counters) -> Vec<u8> {
        let order = self.order.unwrap_or(counters.order);
        let extension = self.extension.iter().map(|(field, _)| field.start + field.len).max().unwrap_or(BSDH_LEN);
        let len = u32::try_from(extension + self.payload.len()).unwrap_or(u32::MAX);
        let mut octets = Vec::new();
        RawBsdh {
            bufs: self.bufs.unwrap_or(counters.bufs).into(),
            flags: self.flags,
            mid: self.mid,
            len: self.len.unwrap_or(len).into(),
            mseq: self.mseq.unwrap_or(counters.mseq).into(),
            mseq_ack: self.mseq_ack.unwrap_or(counters.mseq_ack).into(),
        }
        .append(order, &mut octets);
        octets.resize(extension, 0);
        for (field, value) in &self.extension {
            field.put(order, *value, &mut octets);
        }
        octets.extend_from_slice(&self.payload);
        octets.extend_from_slice(&self.trailing);
        octets
    }
}

/// A received message, which may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceivedMessage {
    pub(crate) mid: Mid,
    pub(crate) flags: u8,
    pub(crate) bufs: u16,
    pub(crate) len: u32,
    pub(crate) mseq: u32,
    pub(crate) mseq_ack: u32,
    pub(crate) extension: Vec<(&'static str, u64)>,
    pub(crate) payload: Vec<u8>,
    pub(crate) octets: Vec<u8>,
    /// RDMAP opcode of the message. 0 if the message has none.
    pub(crate) opcode: u8,
    /// Invalidate STag of the Send that carried the message.
    pub(crate) invalidates: u32,
}

impl ReceivedMessage {
    /// Reads a message. Returns `None` if the BSDH is incomplete.
    pub(crate) fn read(octets: &[u8], order: FieldOrder) -> Option<Self> {
        let (bsdh, rest) = RawBsdh::read(octets, order)?;
        let fields = extension(bsdh.mid());
        let header = fields.iter().map(|field| field.start + field.len).max().unwrap_or(BSDH_LEN) - BSDH_LEN;
        Some(ReceivedMessage {
            mid: bsdh.mid(),
            flags: bsdh.flags,
            bufs: bsdh.bufs.get(),
            len: bsdh.len.get(),
            mseq: bsdh.mseq.get(),
            mseq_ack: bsdh.mseq_ack.get(),
            extension: fields.iter().filter_map(|field| Some((field.name, field.get(order, octets)?))).collect(),
            payload: rest.get(header..).unwrap_or_default().to_vec(),
            octets: octets.to_vec(),
            opcode: 0,
            invalidates: 0,
        })
    }

    /// Returns whether the message is a Data without payload and Out-Of-Band flags, which only
    /// updates counters. The other bits of Flags have no meaning in a Data (section 6.1.2).
    pub(crate) fn is_update(&self) -> bool {
        self.mid == Mid::DATA && self.payload.is_empty() && self.flags & (FLAG_OOB_PEND | FLAG_OOB_PRES) == 0
    }

    /// Returns the value of a field by its name in scripts.
    pub(crate) fn field(&self, name: &str) -> Option<u64> {
        let flag = |bit: u8| Some(u64::from(self.flags & bit != 0));
        match name {
            "mid" => Some(self.mid.0.into()),
            "bufs" => Some(self.bufs.into()),
            "flags" => Some(self.flags.into()),
            "oob_pres" => flag(FLAG_OOB_PRES),
            "oob_pend" => flag(FLAG_OOB_PEND),
            "req_pipe" => flag(weft_core::wire::sdp::FLAG_REQ_PIPE),
            "len" => Some(self.len.into()),
            "mseq" => Some(self.mseq.into()),
            "mseq_ack" => Some(self.mseq_ack.into()),
            "opcode" => Some(self.opcode.into()),
            "invalidates" => Some(self.invalidates.into()),
            "payload_length" => Some(self.payload.len() as u64),
            _ => self.extension.iter().find(|(other, _)| *other == name).map(|(_, value)| *value),
        }
    }
}

/// Returns whether a message of this type has a field of this name.
pub(crate) fn has_field(mid: Mid, name: &str) -> bool {
    let (order, counters) = (FieldOrder::Figure, Counters { bufs: 0, mseq: 0, mseq_ack: 0, order: FieldOrder::Figure });
    let message = ReceivedMessage::read(&Draft::new(mid).octets(counters), order);
    message.is_some_and(|message| message.field(name).is_some())
}

/// Returns the type of the message that has this name in scripts.
pub(crate) fn by_name(name: &str) -> Option<Mid> {
    NAMES.iter().find(|(_, other)| *other == name).map(|(mid, _)| *mid)
}

/// The names of messages in scripts.
pub(crate) const NAMES: [(Mid, &str); 18] = [
    (Mid::HELLO, "hello"),
    (Mid::HELLO_ACK, "hello_ack"),
    (Mid::DIS_CONN, "dis_conn"),
    (Mid::ABORT_CONN, "abort_conn"),
    (Mid::SEND_SM, "send_sm"),
    (Mid::RDMA_WR_COMPL, "rdma_wr_compl"),
    (Mid::RDMA_RD_COMPL, "rdma_rd_compl"),
    (Mid::MODE_CHANGE, "mode_change"),
    (Mid::SRC_AVAIL_CANCEL, "src_avail_cancel"),
    (Mid::SINK_AVAIL_CANCEL, "sink_avail_cancel"),
    (Mid::SINK_CANCEL_ACK, "sink_cancel_ack"),
    (Mid::CH_RCV_BUF, "ch_rcv_buf"),
    (Mid::CH_RCV_BUF_ACK, "ch_rcv_buf_ack"),
    (Mid::SUSP_COMM, "susp_comm"),
    (Mid::SUSP_COMM_ACK, "susp_comm_ack"),
    (Mid::SINK_AVAIL, "sink_avail"),
    (Mid::SRC_AVAIL, "src_avail"),
    (Mid::DATA, "data"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::wire::sdp::Message;

    const COUNTERS: Counters = Counters { bufs: 16, mseq: 7, mseq_ack: 5, order: FieldOrder::Figure };

    /// The expected bytes are those of `weft_core`, which implements the figures independently.
    #[test]
    fn what_is_made_is_what_the_figures_show() {
        for order in [FieldOrder::Figure, FieldOrder::Mirrored] {
            for (mid, name) in NAMES {
                let mut draft = Draft::new(mid);
                if matches!(mid, Mid::RDMA_RD_COMPL | Mid::RDMA_WR_COMPL) {
                    draft.extension[0].1 = 9;
                }
                if mid == Mid::SUSP_COMM {
                    draft.extension[1].1 = 5001;
                }
                let octets = draft.octets(Counters { order, ..COUNTERS });
                let parsed = Message::parse(&octets, order).unwrap_or_else(|error| panic!("{name} {order:?}: {error}"));
                assert_eq!(parsed.mid(), mid);
                let mut again = Vec::new();
                parsed.emit(order, &mut again);
                assert_eq!(again, octets, "{name} {order:?}");
                let message = ReceivedMessage::read(&octets, order).unwrap();
                for (field, value) in &draft.extension {
                    assert_eq!(message.field(field.name), Some(*value), "{name} {}", field.name);
                }
                assert_eq!((message.mseq, message.mseq_ack, message.bufs), (7, 5, 16));
            }
        }
    }

    #[test]
    fn an_update_may_have_flags_without_meaning() {
        let is_update = |flags| {
            let draft = Draft { flags, ..Draft::new(Mid::DATA) };
            ReceivedMessage::read(&draft.octets(COUNTERS), FieldOrder::Figure).unwrap().is_update()
        };
        assert!(is_update(0));
        // REQ_PIPE and the reserved bits (section 6.1.2).
        assert!(is_update(weft_core::wire::sdp::FLAG_REQ_PIPE | 0xf8));
        assert!(!is_update(FLAG_OOB_PRES));
        assert!(!is_update(FLAG_OOB_PEND));
    }
}
