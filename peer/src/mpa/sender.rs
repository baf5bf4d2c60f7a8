//! Packs ULPDUs into FPDUs, in one direction of a connection, after start-up.

use weft_core::WireError;
use weft_core::wire::mpa::{Framing, fpdu};

use crate::hostile::{self, DeviationState, Deviations};

/// Sender of the FPDUs of one direction. The sender counts the bytes of the stream, because the
/// positions of markers depend on this count.
#[derive(Debug)]
pub struct FpduSender {
    framing: Framing,
    position: u64,
    deviations: Deviations,
    deviation_state: DeviationState,
}

impl FpduSender {
    /// Creates a sender. Its output starts with the first byte after this endpoint's start-up
    /// frame.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        FpduSender::deviating(framing, Deviations::NONE)
    }

    /// Creates a sender with deliberate protocol violations (`deviations`).
    #[must_use]
    pub fn deviating(framing: Framing, deviations: Deviations) -> Self {
        FpduSender { framing, position: 0, deviations, deviation_state: DeviationState::default() }
    }

    /// Returns the next FPDU. Its ULPDU is the concatenation of the slices in `ulpdu`.
    ///
    /// # Errors
    /// The ULPDU is longer than 64,768 bytes (MPA-3-4). An error does not change the position in
    /// the stream.
    pub fn fpdu(&mut self, ulpdu: &[&[u8]]) -> Result<Vec<u8>, WireError> {
        if let Some(ulpdus) = hostile::hook::segments(&self.deviations, &mut self.deviation_state, ulpdu) {
            let fpdus: Result<Vec<Vec<u8>>, WireError> = ulpdus.iter().map(|ulpdu| self.framed(&[ulpdu])).collect();
            return fpdus.map(|fpdus| fpdus.concat());
        }
        self.framed(ulpdu)
    }

    fn framed(&mut self, ulpdu: &[&[u8]]) -> Result<Vec<u8>, WireError> {
        if let Some(octets) = hostile::hook::fpdu(&self.deviations, self.position, ulpdu, self.framing) {
            self.position += octets.len() as u64;
            return Ok(octets);
        }
        let mut out = Vec::new();
        self.position = fpdu::emit(self.position, ulpdu, self.framing, &mut out)?.end;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    /// Tests the FPDUs of RFC 5044 Figures 5 and 6. The Send with MSN 1 is at the start of the
    /// stream. The Send with MSN 2 is at 0x1EC and has a marker inside. An FPDU of 440 octets is
    /// between these two.
    #[test]
    fn figures_5_and_6_in_one_stream() {
        let header = |msn: u8| hex(&format!("4143 00000000 00000000 000000{msn:02x} 00000000"));
        let mut sender = FpduSender::new(Framing { markers: true, crc: true });
        let first = sender.fpdu(&[&header(1), &[0; 24]]).unwrap();
        let expected = format!("00000000 002a 4143 00000000 00000000 00000001 00000000 {} 52239983", "00".repeat(24));
        assert_eq!(first, hex(&expected));
        assert_eq!(sender.fpdu(&[&[1; 65_536]]).unwrap_err().field, "ULPDU_Length");
        assert_eq!(sender.fpdu(&[&[0; 434]]).unwrap().len(), 440);
        let second = sender.fpdu(&[&header(2), &[0; 24]]).unwrap();
        let expected = format!("002a 4143 00000000 00000000 00000002 00000000 00000014 {} 84925898", "00".repeat(24));
        assert_eq!(second, hex(&expected));
    }
}
