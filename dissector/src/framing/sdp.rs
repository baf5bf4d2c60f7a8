//! Assembles SDP messages from the DDP segments of Sends.

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::sdp::{FieldOrder, Mid, RawBsdh, RawHeader};

use super::unit_output::UnitOutput;
use crate::frame_number::FrameNumber;
use crate::location::StreamLocation;
use crate::parse::{Carrier, Fpdu, Kind, StreamOrigin};
use crate::part::Part;
use crate::tcp::DirectionStream;

/// Maximum length of a stored message in octets. Longer messages are dropped. The draft requires
/// that an SDP message fits in a Private Buffer.
const LONGEST_MESSAGE: usize = 16 << 20;

/// Offset of the payload of an untagged segment in the body of its FPDU, in octets.
const PAYLOAD_AT: u64 = 2 + 18;

/// The incomplete message of one direction. Its segments are still arriving.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// MSN of the message; `None` before a message begins, and if octets of the message are
    /// missing.
    open: Option<Msn>,
    octets: Vec<u8>,
    known: Vec<u8>,
    /// Number and capture time of the latest frame that supplied octets.
    frame: (FrameNumber, u64),
    start: u64,
    /// The field order of an earlier message of this direction, if the connection has no Hello.
    shown: Option<FieldOrder>,
    /// Locations of the first octets of the message. The locations include all segments that
    /// contain the first [`MIN_LOCATED_OCTETS`] octets.
    locations: Vec<StreamLocation>,
}

/// For each message, the locations of at least this number of octets are stored. All headers are
/// shorter.
const MIN_LOCATED_OCTETS: usize = 64;

impl Collector {
    /// Used memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.octets.capacity() + self.known.capacity() + self.locations.capacity() * size_of::<StreamLocation>()
    }

    /// Processes the Send segment in `fpdu`. If the segment is the last segment of a message,
    /// delivers the message.
    ///
    /// `order` is the field order of the Hello. If there is no Hello, `order` is `None`, and the
    /// function derives the order from the messages (see [`order_of`]). Until a message shows the
    /// order, messages are dropped.
    pub(super) fn segment(
        &mut self,
        half: &DirectionStream,
        fpdu: &Fpdu<'_>,
        order: Option<FieldOrder>,
        start: u64,
        frame: (FrameNumber, u64),
        out: &mut UnitOutput<'_>,
    ) {
        let ulpdu = fpdu.ulpdu();
        if ulpdu.get(0..2).is_none() {
            return;
        }
        let Ok(Segment::Untagged(header, _)) = Segment::parse(ulpdu.raw().0) else { return };
        if !header.ulp_control.opcode().is_send() {
            return;
        }
        // If octets of the DDP header are missing, the message is lost.
        let header = ulpdu.get(0..18).map(|_| (header.msn(), header.mo.get()));
        let continues = header.is_some_and(|(msn, mo)| self.open == Some(msn) && mo as usize == self.octets.len());
        match header {
            Some((msn, 0)) => {
                self.octets.clear();
                self.known.clear();
                self.locations.clear();
                (self.open, self.frame, self.start) = (Some(msn), frame, start);
            }
            _ if continues => self.frame = self.frame.max(frame),
            _ => self.open = None,
        }
        if self.open.is_none() || self.octets.len() > LONGEST_MESSAGE {
            self.open = None;
            return;
        }
        if self.octets.len() < MIN_LOCATED_OCTETS {
            let (at, origin) =
                (self.octets.len() as u64, StreamOrigin { half, arrived: out.arrived, start, kept: &[] });
            origin.locate_body(&fpdu.layout, PAYLOAD_AT..u64::from(fpdu.layout.ulpdu_length) + 2, &mut |location| {
                self.locations.push(StreamLocation { at: at + location.at - PAYLOAD_AT, ..location });
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
            self.open = None;
            let part = Part::with_known(&self.octets, &self.known);
            let incomplete = !part.is_complete();
            self.shown = self.shown.or_else(|| order_of(part));
            let Some(order) = order.or(self.shown) else { return };
            let kind = Kind::Sdp(Carrier::Send, order, part);
            out.deliver_with_locations(half, (self.start, &self.locations), self.frame, incomplete, kind, None);
        }
    }
}

/// Derives the field order from a message. The function reads the message with both field orders.
/// An order is plausible if the MID is assigned and is not Hello, Len is the length of the message,
/// and reserved flags are clear. The message must also contain all headers of its MID. Octets after
/// these headers are allowed only if the MID allows payload. If both orders are plausible, returns
/// the order with the smaller Bufs, which is more likely.
fn order_of(part: Part<'_>) -> Option<FieldOrder> {
    let octets = part.get(0..RawBsdh::LEN)?;
    let orders = [FieldOrder::Figure, FieldOrder::Mirrored].into_iter().filter_map(|order| {
        let (bsdh, _) = RawBsdh::read(octets, order)?;
        let (mid, len) = (bsdh.mid(), part.len());
        let headers = RawBsdh::LEN + mid.extension_len()?;
        // A Send does not carry a Hello. Endpoints send the Hello in streaming mode or in private
        // data.
        let fits = mid != Mid::HELLO
            && bsdh.flags & RESERVED_FLAGS == 0
            && usize::try_from(bsdh.len.get()).is_ok_and(|announced| announced == len)
            && (len == headers || len > headers && mid.may_carry_payload());
        fits.then_some((bsdh.bufs.get(), order))
    });
    orders.min_by_key(|(bufs, _)| *bufs).map(|(_, order)| order)
}

/// Bits 3 to 7 of Flags (Figure 4 of the SDP draft).
const RESERVED_FLAGS: u8 = 0xf8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// Tests octets in the order of Figures 2 and 7 of the SDP draft, and in mirrored order.
    #[test]
    fn a_message_shows_its_order() {
        let order = |octets: &str| order_of(Part::complete(&hex(octets)));
        assert_eq!(order("0006 00 ff 00000014 00000001 00000002 01020304"), Some(FieldOrder::Figure));
        assert_eq!(order("ff 00 0006 00000014 00000001 00000002 01020304"), Some(FieldOrder::Mirrored));
        // In figure order, the octets of the previous line would be an RdmaRdCompl with 65280
        // Private Buffers.
        assert_eq!(order("0006 00 06 00000014 00000001 00000002 00001000"), Some(FieldOrder::Figure));
        // Each of these messages has one error. In this order: Len differs from the length, the MID
        // is unassigned, a reserved flag is set, the MID allows no payload, and the header is
        // incomplete.
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
