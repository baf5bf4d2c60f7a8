//! SDP messages that Sends carry: put together from the segments of each, in stream order.

use weft_core::wire::ddp::Segment;
use weft_core::wire::sdp::FieldOrder;

use crate::part::Part;
use crate::tcp::Half;
use crate::unit::{Carrier, Fpdu, Kind};

use super::emit::Target;

/// Octets of one message that are kept; an SDP message is no longer than a Private Buffer, and those that are longer than
/// this are given up.
const LONGEST_MESSAGE: usize = 16 << 20;

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
}

impl Collector {
    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.octets.capacity() + self.known.capacity()
    }

    /// Takes the Send segment in that `fpdu` carries; hands the message out when that is its last.
    pub(super) fn segment(
        &mut self,
        half: &Half,
        fpdu: &Fpdu<'_>,
        order: FieldOrder,
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
        // A header that is not all there says nothing: its message is lost.
        let header = ulpdu.get(0..18).map(|_| (header.msn.get(), header.mo.get()));
        let goes_on = header.is_some_and(|(msn, mo)| self.open && (msn, mo as usize) == (self.msn, self.octets.len()));
        match header {
            Some((msn, 0)) => {
                self.octets.clear();
                self.known.clear();
                (self.open, self.msn, self.frame, self.start) = (true, msn, frame, start);
            }
            _ if goes_on => self.frame = self.frame.max(frame),
            _ => self.open = false,
        }
        if !self.open || self.octets.len() > LONGEST_MESSAGE {
            self.open = false;
            return;
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
            let incomplete = !part.is_whole();
            out.unit(half, self.start, self.frame, incomplete, Kind::Sdp(Carrier::Send, order, part));
        }
    }
}
