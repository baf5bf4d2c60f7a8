//! Finds the SDP Hello of a direction.

use weft_core::wire::mpa::startup::{ENHANCED_LEN, FLAG_S};
use weft_core::wire::mpa::{RawStartup, StartupKind};
use weft_core::wire::sdp::{FieldOrder, Hello as SdpHello, Mid, RawBsdh, RawHeader, RawHello};
use zerocopy::FromBytes;

use crate::parse::Carrier;
use crate::tcp::DirectionStream;

/// Length of an SDP Hello in octets.
pub(super) const HELLO_LEN: u64 = 32;

/// An SDP Hello. A Hello shows that a connection uses SDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The carrier of the Hello.
    pub(crate) carrier: Carrier,
    /// The order of the fields in the Hello and in all later messages.
    pub(crate) order: FieldOrder,
}

/// If `octets` start with an SDP Hello (MID 0, Len 32, MSeq 0, MSeqAck 0), returns the order of its
/// fields. Also accepts a Hello in which one of these fields, or the field Flags, has a wrong
/// value.
pub(super) fn hello_order(octets: &[u8]) -> Option<FieldOrder> {
    let octets = octets.get(..HELLO_LEN as usize)?;
    if octets[4..16] != [0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0] {
        return [FieldOrder::Figure, FieldOrder::Mirrored].into_iter().find(|order| is_odd_hello(octets, *order));
    }
    if octets[3] == 0 {
        return Some(FieldOrder::Figure);
    }
    FieldOrder::of_hello(octets)
        .or_else(|| [FieldOrder::Figure, FieldOrder::Mirrored].into_iter().find(|order| is_odd_hello(octets, *order)))
}

/// Returns whether `octets` are a Hello in which exactly one fixed field of the base header (BSDH)
/// is wrong.
fn is_odd_hello(octets: &[u8], order: FieldOrder) -> bool {
    let Some((bsdh, rest)) = RawBsdh::read(octets, order) else { return false };
    let fixed = [
        bsdh.mid() == Mid::HELLO,
        bsdh.flags == 0,
        bsdh.len.get() == HELLO_LEN as u32,
        bsdh.mseq.get() == 0,
        bsdh.mseq_ack.get() == 0,
    ];
    let wrong = fixed.into_iter().filter(|right| !right).count();
    let version = |raw: RawHello| (raw.adverts.version.majv(), raw.adverts.version.minv(), raw.adverts.rsvd);
    wrong == 1
        && bsdh.bufs.get() > 0
        && RawHello::read(rest, order).is_some_and(|(raw, _)| version(raw) == (1, 1, 0))
        && SdpHello::parse(rest, order).is_ok()
}

/// The SDP Hello at the start of the unread octets.
pub(super) fn streaming_hello(half: &DirectionStream) -> Option<Hello> {
    let order = hello_order(half.contiguous(half.consumed()));
    order.map(|order| Hello { carrier: Carrier::Streaming, order })
}

/// The SDP Hello in the private data of a Request at the start of the unread octets.
pub(super) fn private_hello(half: &DirectionStream) -> Option<Hello> {
    let octets = half.contiguous(half.consumed());
    let (header, private) = RawStartup::ref_from_prefix(octets).ok()?;
    if StartupKind::of_key(&header.key) != Some(StartupKind::Request) {
        return None;
    }
    let order = hello_order(private.get(private_at(header)..)?);
    order.map(|order| Hello { carrier: Carrier::PrivateData, order })
}

/// Offset in octets of the ULP's private data within the private data of a start-up frame. The
/// offset is the length of the words that RFC 6581 adds before the ULP's private data, or 0 if the
/// frame does not have these words.
pub(super) fn private_at(header: &RawStartup) -> usize {
    if header.revision >= 2 && header.flags & FLAG_S != 0 { ENHANCED_LEN } else { 0 }
}
