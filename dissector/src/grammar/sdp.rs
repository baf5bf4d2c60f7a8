//! Defines the fields of SDP messages (draft-pinkerton-iwarp-sdp-01, section 6), in both field
//! orders (see [`FieldOrder`]).
//!
//! The tables have the offsets from the figures of the draft. [`FieldOrder::wire_range`] converts
//! these offsets to the field order of the connection.

use weft_core::wire::sdp::{FieldOrder, Mid};

use super::reader::Reader;
use crate::part::Part;
use crate::unit::Carrier;

use super::field::{Base, Field, Group, Value, Visitor, fields, nth_name};

/// An SDP message.
pub static MESSAGE: Group = Group { name: "iwarp_sdp", label: "SDP", section: "SDP 6.1" };

fields! { 3:
    CARRIER: "iwarp_sdp.carrier", "Carried by", Base::Text, "SDP 8.1.1";
    ORDER: "iwarp_sdp.order", "Field order", Base::Text, "SDP 6";
    BUFS: "iwarp_sdp.bufs", "Bufs", Base::Dec, "SDP 6.1.3";
    FLAGS: "iwarp_sdp.flags", "Flags", Base::Hex(2), "SDP 6.1.2", names flags_name;
    MID: "iwarp_sdp.mid", "MID", Base::Hex(2), "SDP 6.1.1", names mid_name;
    LEN: "iwarp_sdp.len", "Len", Base::Dec, "SDP 6.1.4";
    MSEQ: "iwarp_sdp.mseq", "MSeq", Base::Dec, "SDP 6.1.5";
    MSEQACK: "iwarp_sdp.mseqack", "MSeqAck", Base::Dec, "SDP 6.1.6";
    HH_MAXADVERTS: "iwarp_sdp.hh.maxadverts", "MaxAdverts", Base::Dec, "SDP 6.2.1.3";
    HH_RSVD: "iwarp_sdp.hh.rsvd", "Rsvd", Base::Hex(2), "SDP 6.2.1.8";
    HH_MINV: "iwarp_sdp.hh.minv", "MinV", Base::Dec, "SDP 6.2.1.2", mask 0xf0;
    HH_MAJV: "iwarp_sdp.hh.majv", "MajV", Base::Dec, "SDP 6.2.1.1", mask 0x0f;
    HH_DESREMRCVSZ: "iwarp_sdp.hh.desremrcvsz", "DesRemRcvSz", Base::Dec, "SDP 6.2.1.4";
    HH_LOCALRCVSZ: "iwarp_sdp.hh.localrcvsz", "LocalRcvSz", Base::Dec, "SDP 6.2.1.5";
    HH_LOCIRD: "iwarp_sdp.hh.locird", "LocIRD", Base::Dec, "SDP 6.2.1.6";
    HH_LOCORD: "iwarp_sdp.hh.locord", "LocORD", Base::Dec, "SDP 6.2.1.7";
    HAH_MAXADVERTS: "iwarp_sdp.hah.maxadverts", "MaxAdverts", Base::Dec, "SDP 6.2.2.3";
    HAH_RSVD: "iwarp_sdp.hah.rsvd", "Rsvd", Base::Hex(2), "SDP 6.2.2.7";
    HAH_MINV: "iwarp_sdp.hah.minv", "MinV", Base::Dec, "SDP 6.2.2.2", mask 0xf0;
    HAH_MAJV: "iwarp_sdp.hah.majv", "MajV", Base::Dec, "SDP 6.2.2.1", mask 0x0f;
    HAH_ACTRCVSZ: "iwarp_sdp.hah.actrcvsz", "ActRcvSz", Base::Dec, "SDP 6.2.2.4";
    HAH_LOCIRD: "iwarp_sdp.hah.locird", "LocIRD", Base::Dec, "SDP 6.2.2.5";
    HAH_LOCORD: "iwarp_sdp.hah.locord", "LocORD", Base::Dec, "SDP 6.2.2.6";
    SRCAH_LEN: "iwarp_sdp.srcah.len", "Len", Base::Dec, "SDP 6.3.2.1";
    SRCAH_STAG: "iwarp_sdp.srcah.stag", "STag", Base::Hex(8), "SDP 6.3.2.3";
    SRCAH_VA: "iwarp_sdp.srcah.va", "VA", Base::Hex(16), "SDP 6.3.2.2";
    SINKAH_LEN: "iwarp_sdp.sinkah.len", "Len", Base::Dec, "SDP 6.3.3.1";
    SINKAH_STAG: "iwarp_sdp.sinkah.stag", "STag", Base::Hex(8), "SDP 6.3.3.3";
    SINKAH_VA: "iwarp_sdp.sinkah.va", "VA", Base::Hex(16), "SDP 6.3.3.2";
    SINKAH_NONDISCARDS: "iwarp_sdp.sinkah.nondiscards", "NonDiscards", Base::Dec, "SDP 6.3.3.4";
    RWCH_LEN: "iwarp_sdp.rwch.len", "Len", Base::Dec, "SDP 6.3.6.1";
    RRCH_LEN: "iwarp_sdp.rrch.len", "Len", Base::Dec, "SDP 6.3.7.1";
    MCH_WORD: "iwarp_sdp.mch.word", "Mode word", Base::Hex(8), "SDP 6.3.8";
    MCH_MODE: "iwarp_sdp.mch.mode", "Mode", Base::Dec, "SDP 6.3.8.2", names mode_name;
    MCH_S: "iwarp_sdp.mch.s", "S", Base::Flag, "SDP 6.3.8.1", names half_name;
    CRBH_DESSZ: "iwarp_sdp.crbh.dessz", "DesSz", Base::Dec, "SDP 6.4.1.1";
    CRBAH_ACTSZ: "iwarp_sdp.crbah.actsz", "ActSz", Base::Dec, "SDP 6.4.2.1";
    SUSPCH_CONSTANT1: "iwarp_sdp.suspch.constant1", "Constant1", Base::Dec, "SDP 6.5.1.2";
    SUSPCH_PORT: "iwarp_sdp.suspch.port", "Port", Base::Dec, "SDP 6.5.1.1";
    SUSPCH_CONSTANT2: "iwarp_sdp.suspch.constant2", "Constant2", Base::Dec, "SDP 6.5.1.3";
}

fn mid_name(mid: u64) -> Option<&'static str> {
    u8::try_from(mid).ok().map(|mid| Mid(mid).name())
}

/// Names of the flags that are set (Figure 4). Reserved bits have no names.
pub(crate) fn flags_name(flags: u64) -> Option<&'static str> {
    match flags & 7 {
        0 => None,
        1 => Some("OOB_PRES"),
        2 => Some("OOB_PEND"),
        3 => Some("OOB_PRES, OOB_PEND"),
        4 => Some("REQ_PIPE"),
        5 => Some("OOB_PRES, REQ_PIPE"),
        6 => Some("OOB_PEND, REQ_PIPE"),
        _ => Some("OOB_PRES, OOB_PEND, REQ_PIPE"),
    }
}

/// The half-connection to which a ModeChange with this S bit applies.
pub(crate) fn half_name(s: u64) -> Option<&'static str> {
    Some(if s == 0 { "receiver's receive half" } else { "receiver's send half" })
}

pub(crate) fn mode_name(mode: u64) -> Option<&'static str> {
    nth_name(&["Buffered", "Combined", "Pipelined"], mode).or(Some("reserved"))
}

/// A field, its offset in the figures (counted from the start of the message), and its length.
/// Offset and length are in octets.
type Row = (&'static Field, usize, usize);

static BSDH: &[Row] = &[(&BUFS, 0, 2), (&FLAGS, 2, 1), (&MID, 3, 1), (&LEN, 4, 4), (&MSEQ, 8, 4), (&MSEQACK, 12, 4)];

static HELLO: &[Row] = &[
    (&HH_MAXADVERTS, 16, 2),
    (&HH_RSVD, 18, 1),
    (&HH_DESREMRCVSZ, 20, 4),
    (&HH_LOCALRCVSZ, 24, 4),
    (&HH_LOCIRD, 28, 2),
    (&HH_LOCORD, 30, 2),
];
static HELLO_ACK: &[Row] =
    &[(&HAH_MAXADVERTS, 16, 2), (&HAH_RSVD, 18, 1), (&HAH_ACTRCVSZ, 20, 4), (&HAH_LOCIRD, 24, 2), (&HAH_LOCORD, 26, 2)];
static SRC_AVAIL: &[Row] = &[(&SRCAH_LEN, 16, 4), (&SRCAH_STAG, 20, 4), (&SRCAH_VA, 24, 8)];
static SINK_AVAIL: &[Row] =
    &[(&SINKAH_LEN, 16, 4), (&SINKAH_STAG, 20, 4), (&SINKAH_VA, 24, 8), (&SINKAH_NONDISCARDS, 32, 4)];
static RDMA_WR_COMPL: &[Row] = &[(&RWCH_LEN, 16, 4)];
static RDMA_RD_COMPL: &[Row] = &[(&RRCH_LEN, 16, 4)];
static MODE_CHANGE: &[Row] = &[(&MCH_WORD, 16, 4)];
static CH_RCV_BUF: &[Row] = &[(&CRBH_DESSZ, 16, 4)];
static CH_RCV_BUF_ACK: &[Row] = &[(&CRBAH_ACTSZ, 16, 4)];
static SUSP_COMM: &[Row] = &[(&SUSPCH_CONSTANT1, 16, 4), (&SUSPCH_PORT, 20, 2), (&SUSPCH_CONSTANT2, 22, 2)];

/// The fields of the extended header of a message. MajV, MinV and the parts of the Mode word are
/// reported separately.
fn extension(mid: Mid) -> &'static [Row] {
    match mid {
        Mid::HELLO => HELLO,
        Mid::HELLO_ACK => HELLO_ACK,
        Mid::SRC_AVAIL => SRC_AVAIL,
        Mid::SINK_AVAIL => SINK_AVAIL,
        Mid::RDMA_WR_COMPL => RDMA_WR_COMPL,
        Mid::RDMA_RD_COMPL => RDMA_RD_COMPL,
        Mid::MODE_CHANGE => MODE_CHANGE,
        Mid::CH_RCV_BUF => CH_RCV_BUF,
        Mid::CH_RCV_BUF_ACK => CH_RCV_BUF_ACK,
        Mid::SUSP_COMM => SUSP_COMM,
        _ => &[],
    }
}

/// Reads a message. The reader must be at the first octet of the message. Returns the payload, or
/// `None` if the MID was not captured.
pub(super) fn message<'a, V: Visitor>(
    carrier: Carrier,
    order: FieldOrder,
    reader: &mut Reader<'a, '_, V>,
) -> Option<Part<'a>> {
    let all = reader.left();
    reader.enter(&MESSAGE, all);
    reader.derived(&CARRIER, Value::Text(carrier.name()), 0);
    if order == FieldOrder::Mirrored {
        reader.derived(&ORDER, Value::Text("mirrored"), 0);
    }
    let mut mid = None;
    for &(field, at, len) in BSDH {
        let value = reader.uint_at(field, order.wire_range(at..at + len));
        if std::ptr::eq(field, &MID) {
            mid = value;
        }
    }
    let rows = mid.map_or(&[][..], |mid| extension(Mid(mid as u8)));
    for &(field, at, len) in rows {
        let value = reader.uint_at(field, order.wire_range(at..at + len));
        if std::ptr::eq(field, &MCH_WORD)
            && let Some(word) = value
        {
            let (mode, s) = match order {
                FieldOrder::Figure => (word >> 1 & 7, word & 1),
                FieldOrder::Mirrored => (word >> 28 & 7, word >> 31),
            };
            reader.report_at(&MCH_MODE, Value::Uint(mode), 16..20);
            reader.report_at(&MCH_S, Value::Uint(s), 16..20);
        }
    }
    if let Some(mid @ (0 | 1)) = mid {
        let at = order.wire_range(19..20);
        if let Some(octet) = reader.rest().get(at.clone()) {
            let octet = if order == FieldOrder::Mirrored { octet[0].rotate_left(4) } else { octet[0] };
            let fields = if mid == 0 { [&HH_MINV, &HH_MAJV] } else { [&HAH_MINV, &HAH_MAJV] };
            reader.report_at(fields[0], Value::Uint(u64::from(octet >> 4)), at.clone());
            reader.report_at(fields[1], Value::Uint(u64::from(octet & 15)), at);
        }
    }
    reader.leave();
    let head = rows.iter().map(|(_, at, len)| at + len).max().unwrap_or(0).max(16);
    (mid.is_some() || all < 4).then(|| reader.rest().from(head))
}
