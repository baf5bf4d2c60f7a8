//! Selective acknowledgements (RFC 2018) in a synthetic capture.

use super::{Wire, hex};

impl Wire {
    /// `direction` reports that `missing` octets of its peer are missing, and that it has the later
    /// octets. The first missing octet is `back` octets before the next octet of the peer.
    pub(crate) fn sack(&mut self, direction: usize, back: u32, missing: u32) {
        let end = self.next[1 - direction];
        let ack = end.wrapping_sub(back);
        let start = ack.wrapping_add(missing);
        // Two NOPs, kind 5, length 10, and the left and right edge of the block.
        let options = hex(&format!("0101 050a {start:08x} {end:08x}"));
        self.segment(direction, |tcp| tcp.ack(ack).options_raw(&options).unwrap(), &[], true);
    }
}
