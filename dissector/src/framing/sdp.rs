//! SDP messages in Sends: assembles them from their segments, in stream order.

use weft_core::wire::ddp::Segment;
use weft_core::wire::sdp::{FieldOrder, Mid, RawBsdh, RawHeader};

use super::target::Target;
use crate::located::Placed;
use crate::parse::{Carrier, Fpdu, Kind, StreamOrigin};
use crate::part::Part;
use crate::tcp::Half;

/// Octets of one message that are kept. An SDP message is not longer than a Private Buffer; longer
/// messages than this are dropped.
const LONGEST_MESSAGE: usize = 16 << 20;

/// Where the payload of an untagged segment begins in the body of its FPDU.
const PAYLOAD_AT: u64 = 2 + 18;

/// The message whose segments are arriving.
#[derive(Debug, Default)]
pub(super) struct Collector {
    open: bool,
    msn: u32,
    octets: Vec<u8>,
    known: Vec<u8>,
    /// The largest frame that supplied octets, and when it was captured.
    frame: (u64, u64),
    start: u64,
    /// The order that an earlier message of the direction showed, if there was no Hello.
    shown: Option<FieldOrder>,
    /// Locations of its first octets: those of the segments with the first [`LOCATED`] octets.
    placed: Vec<Placed>,
}

/// Octets of a message that are located: any header, and more.
const LOCATED: usize = 64;

impl Collector {
    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.octets.capacity() + self.known.capacity() + self.placed.capacity() * size_of::<Placed>()
    }

    /// Processes the Send segment that `fpdu` carries; delivers the message with its last segment.
    /// Without a Hello, `order` is not known. The messages then show it, and messages that do not
    /// show it are not delivered.
    pub(super) fn segment(
        &mut self,
        half: &Half,
        fpdu: &Fpdu<'_>,
        order: Option<FieldOrder>,
        start: u64,
        frame: (u64, u64),
        out: &mut Target<'_>,
    ) {
        let ulpdu = fpdu.ulpdu();
        if ulpdu.get(0..2).is_none() {
            return;
        }
        let Ok(Segment::Untagged(header, _)) = Segment::parse(ulpdu.raw().0) else { return };
        if !header.ulp_control.opcode().is_send() {
            return;
        }
        // If its header is incomplete, its message is lost.
        let header = ulpdu.get(0..18).map(|_| (header.msn.get(), header.mo.get()));
        let goes_on = header.is_some_and(|(msn, mo)| self.open && (msn, mo as usize) == (self.msn, self.octets.len()));
        match header {
            Some((msn, 0)) => {
                self.octets.clear();
                self.known.clear();
                self.placed.clear();
                (self.open, self.msn, self.frame, self.start) = (true, msn, frame, start);
            }
            _ if goes_on => self.frame = self.frame.max(frame),
            _ => self.open = false,
        }
        if !self.open || self.octets.len() > LONGEST_MESSAGE {
            self.open = false;
            return;
        }
        if self.octets.len() < LOCATED {
            let (at, origin) =
                (self.octets.len() as u64, StreamOrigin { half, arrived: out.arrived, start, kept: &[] });
            origin.locate_body(&fpdu.layout, PAYLOAD_AT..u64::from(fpdu.layout.ulpdu_length) + 2, &mut |placed| {
                self.placed.push(Placed { at: at + placed.at - PAYLOAD_AT, ..placed });
            });
        }
        let (octets, known) = ulpdu.from(18).raw();
        self.octets.extend_from_slice(octets);
        if known.is_empty() {
            self.known.resize(self.octets.len(), 1);
        } else {
            self.known.extend_from_slice(known);
        }
        let last = ulpdu.get(0..1).is_some_and(|octet| octet[0] & 0x40 != 0);
        if last {
            self.open = false;
            let part = Part::with_known(&self.octets, &self.known);
            let incomplete = !part.is_complete();
            self.shown = self.shown.or_else(|| order_of(part));
            let Some(order) = order.or(self.shown) else { return };
            let kind = Kind::Sdp(Carrier::Send, order, part);
            out.kept(half, (self.start, &self.placed), self.frame, incomplete, kind, None);
        }
    }
}

/// The order of a message's fields, if one order is plausible: its MID is assigned, its Len is its
/// length, its headers fit, and reserved flags are clear. If both orders are plausible, the one
/// with fewer Private Buffers is more likely.
fn order_of(part: Part<'_>) -> Option<FieldOrder> {
    let octets = part.get(0..RawBsdh::LEN)?;
    let orders = [FieldOrder::Figure, FieldOrder::Mirrored].into_iter().filter_map(|order| {
        let (bsdh, _) = RawBsdh::read(octets, order)?;
        let (mid, len) = (bsdh.mid(), part.len());
        let headers = RawBsdh::LEN + mid.extension_len()?;
        // A Hello is sent in streaming mode or in private data.
        let fits = mid != Mid::HELLO
            && bsdh.flags & RESERVED_FLAGS == 0
            && usize::try_from(bsdh.len.get()).is_ok_and(|announced| announced == len)
            && (len == headers || len > headers && mid.may_carry_payload());
        fits.then_some((bsdh.bufs.get(), order))
    });
    orders.min_by_key(|(bufs, _)| *bufs).map(|(_, order)| order)
}

/// Bits 3 to 7 of Flags (Figure 4).
const RESERVED_FLAGS: u8 = 0xf8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// Octets as figures 2 and 7 of the draft have them, and turned around.
    #[test]
    fn a_message_shows_its_order() {
        let order = |octets: &str| order_of(Part::complete(&hex(octets)));
        assert_eq!(order("0006 00 ff 00000014 00000001 00000002 01020304"), Some(FieldOrder::Figure));
        assert_eq!(order("ff 00 0006 00000014 00000001 00000002 01020304"), Some(FieldOrder::Mirrored));
        // 20 octets would be an RdmaRdCompl in the figures' order, with 65280 Private Buffers.
        assert_eq!(order("0006 00 06 00000014 00000001 00000002 00001000"), Some(FieldOrder::Figure));
        // Len is not the length; a MID that is not assigned; a reserved flag; no payload may
        // follow.
        for octets in [
            "0006 00 ff 00000015 00000001 00000002 01020304",
            "0006 00 40 00000014 00000001 00000002 01020304",
            "0006 08 ff 00000014 00000001 00000002 01020304",
            "0006 00 02 00000014 00000001 00000002 01020304",
            "0006 00",
        ] {
            assert_eq!(order(octets), None, "{octets}");
        }
    }
}
