//! Markers in a stream of FPDUs (RFC 5044 section 4.3). Scripts see FPDUs without markers.
//!
//! If the target requests markers, the tester inserts them into the bytes that a script sends. If
//! the tester requests markers, it removes them from the bytes that the target sends. The CRC of an
//! FPDU covers its markers. So this module changes each CRC field by the difference between the CRC
//! without markers and the CRC with markers. A correct CRC stays correct, and a wrong CRC stays
//! wrong by the same bits.
//!
//! The bytes may be illegal, and they may end in the middle of an FPDU. The positions of markers
//! depend only on the position in the stream. The FPDUPTR and the CRC depend on the ULPDU_Length of
//! the FPDU, whatever its value is. This module does not check the markers that it removes, because
//! the monitor checks them.

use weft_core::crc::{self, CRC_LEN};
use weft_core::marker::{self, INTERVAL, MARKER_LEN};
use weft_core::wire::mpa::fpdu::{LENGTH_LEN, pad_len};

/// One direction of a connection with markers, after the start-up frame of its sender.
#[derive(Debug, Clone, Default)]
pub(in crate::stage) struct MarkedStream {
    /// Number of bytes in the stream so far, with markers.
    position: u64,
    /// Position of the current FPDU's ULPDU_Length.
    header: u64,
    /// Number of bytes of the current FPDU so far, without markers.
    read: usize,
    /// The bytes of the current FPDU's ULPDU_Length so far.
    length: [u8; LENGTH_LEN],
    /// CRCs of the current FPDU so far, without and with markers.
    plain_crc: u32,
    marked_crc: u32,
}

impl MarkedStream {
    /// Returns the number of bytes in the stream so far, with markers.
    pub(in crate::stage) fn position(&self) -> u64 {
        self.position
    }

    /// Appends `plain` to `out`, with the markers that are due. `has_crc` is whether the connection
    /// uses CRCs.
    pub(in crate::stage) fn insert(&mut self, plain: &[u8], has_crc: bool, out: &mut Vec<u8>) {
        let mut rest = plain;
        while !rest.is_empty() {
            if self.position.is_multiple_of(INTERVAL) {
                // The FPDUPTR field has 16 bits. An FPDU that is too long for this field is
                // illegal.
                let distance = if self.read == 0 { 0 } else { (self.position - self.header) & 0xffff };
                let marker = marker::to_octets(u16::try_from(distance).unwrap_or_default());
                self.pass_marker(&marker);
                out.extend(marker);
            }
            let (run, further) = rest.split_at(self.run(rest.len()));
            self.pass(run, has_crc, out);
            rest = further;
        }
    }

    /// Appends `marked` to `out`, without its markers.
    pub(in crate::stage) fn remove(&mut self, marked: &[u8], has_crc: bool, out: &mut Vec<u8>) {
        let mut rest = marked;
        while !rest.is_empty() {
            let into = self.position % INTERVAL;
            let (run, further) = match (MARKER_LEN as u64).checked_sub(into) {
                Some(left @ 1..) => {
                    let (marker, further) = rest.split_at(rest.len().min(left as usize));
                    self.pass_marker(marker);
                    (&marker[..0], further)
                }
                _ => rest.split_at(self.run(rest.len())),
            };
            self.pass(run, has_crc, out);
            rest = further;
        }
    }

    /// Returns the number of bytes up to the next marker, or up to a boundary inside the FPDU:
    /// after its length field, before its CRC field, or at its end. Returns at most `most`.
    fn run(&self, most: usize) -> usize {
        let to_marker = INTERVAL - self.position % INTERVAL;
        let end = match (self.read < LENGTH_LEN, self.read < self.body()) {
            (true, _) => LENGTH_LEN,
            (false, true) => self.body(),
            (false, false) => self.body() + CRC_LEN,
        };
        most.min(usize::try_from(to_marker).unwrap_or(usize::MAX)).min(end - self.read)
    }

    /// Length in bytes of length field, ULPDU and PAD of the current FPDU.
    fn body(&self) -> usize {
        let length = u16::from_be_bytes(self.length);
        LENGTH_LEN + usize::from(length) + pad_len(length)
    }

    fn pass_marker(&mut self, marker: &[u8]) {
        // A marker after PAD is a part of the FPDU, so the CRC covers it. Only an illegal FPDU can
        // have a marker inside its CRC field, so this case needs no separate code.
        self.marked_crc = crc::append(self.marked_crc, marker);
        self.position += marker.len() as u64;
        if self.read == 0 {
            self.header = self.position;
        }
    }

    /// Appends `run` to `out`, and adapts bytes of the CRC field. `run` contains no marker, and
    /// does not cross a boundary of the FPDU.
    fn pass(&mut self, run: &[u8], has_crc: bool, out: &mut Vec<u8>) {
        if run.is_empty() {
            return;
        }
        if self.read == 0 {
            self.header = self.position;
        }
        self.position += run.len() as u64;
        if self.read < LENGTH_LEN {
            self.length[self.read..self.read + run.len()].copy_from_slice(run);
        }
        let body = self.body();
        if self.read < LENGTH_LEN || self.read < body {
            self.plain_crc = crc::append(self.plain_crc, run);
            self.marked_crc = crc::append(self.marked_crc, run);
            out.extend_from_slice(run);
        } else {
            let difference = crc::to_octets(if has_crc { self.plain_crc ^ self.marked_crc } else { 0 });
            out.extend(run.iter().zip(&difference[self.read - body..]).map(|(octet, change)| octet ^ change));
        }
        self.read += run.len();
        if self.read >= LENGTH_LEN && self.read == self.body() + CRC_LEN {
            *self = MarkedStream { position: self.position, ..MarkedStream::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_core::wire::mpa::fpdu::{Framing, emit};

    use super::*;
    use crate::correct;

    proptest! {
        /// `insert` produces the RFC's layout: markers at the right positions, and CRCs that cover
        /// the markers. `remove` restores the original FPDUs. The results do not depend on the
        /// pieces in which the bytes arrive.
        #[test]
        fn markers_are_inserted_and_removed(
            lengths in proptest::collection::vec(0usize..3000, 1..6), piece in 1usize..1400, flips in any::<u8>(),
        ) {
            let (mut plain, mut marked) = (Vec::new(), Vec::new());
            for length in lengths {
                let ulpdu: Vec<u8> = (0..length).map(|octet| (octet * 7) as u8).collect();
                let position = marked.len() as u64;
                let end = plain.len() + correct::fpdu(&ulpdu, true).len();
                plain.extend(correct::fpdu(&ulpdu, true));
                emit(position, &[&ulpdu], Framing { markers: true, crc: true }, &mut marked).unwrap();
                // A wrong CRC stays wrong by the same bits.
                plain[end - 1] ^= flips;
                *marked.last_mut().unwrap() ^= flips;
            }
            let (mut sender, mut receiver) = (MarkedStream::default(), MarkedStream::default());
            let (mut inserted, mut removed) = (Vec::new(), Vec::new());
            for piece in plain.chunks(piece) {
                sender.insert(piece, true, &mut inserted);
            }
            prop_assert_eq!(&inserted, &marked);
            for piece in marked.chunks(piece) {
                receiver.remove(piece, true, &mut removed);
            }
            prop_assert_eq!(removed, plain);
            prop_assert_eq!(sender.position, receiver.position);
        }

        /// `insert` and then `remove` also restore bytes that are not FPDUs.
        #[test]
        fn any_bytes_return(octets in proptest::collection::vec(any::<u8>(), 0..4000), has_crc: bool) {
            let (mut sender, mut receiver) = (MarkedStream::default(), MarkedStream::default());
            let (mut inserted, mut removed) = (Vec::new(), Vec::new());
            sender.insert(&octets, has_crc, &mut inserted);
            prop_assert_eq!(inserted.len(), octets.len() + octets.len().div_ceil(508) * 4);
            receiver.remove(&inserted, has_crc, &mut removed);
            prop_assert_eq!(removed, octets);
        }
    }
}
