//! A batch of FPDUs that are sent with one write. Headers and trailers are in a buffer that all
//! batches reuse. Payload stays in registered memory.
//!
//! A batch exists only during one call. Its slices borrow registered memory, so the memory cannot
//! change. The CRC therefore matches the sent bytes. Bytes that the stream does not accept are
//! copied: at most the bytes of one batch.

use std::io::IoSlice;
use std::ops::Range;

use weft_core::crc;
use weft_core::wire::mpa::{Framing, fpdu};

use crate::memory::{Memory, MemoryRange};

/// Number of bytes at which a batch is full.
const FULL_OCTETS: usize = 512 << 10;
/// Number of pieces at which a batch is full.
const FULL_PIECES: usize = 48;
/// Greatest number of slices in one write.
const SLICES: usize = 64;
/// A payload of at most this number of bytes is copied between its header and trailer. A separate
/// slice for such a payload would cost more time.
const SMALL: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Batch {
    scratch: Vec<u8>,
    pieces: Vec<Piece>,
    octets: usize,
    /// Payload of the FPDU that is being built.
    pub(super) ranges: Vec<MemoryRange>,
}

#[derive(Debug)]
enum Piece {
    Scratch(Range<usize>),
    Memory(MemoryRange),
}

/// Source of a segment's payload.
pub(super) enum PayloadSource<'a> {
    /// The memory in [`Batch::ranges`].
    Ranges,
    /// The bytes in this variant.
    Octets(&'a [u8]),
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.scratch.clear();
        self.pieces.clear();
        self.octets = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.octets >= FULL_OCTETS || self.pieces.len() >= FULL_PIECES
    }

    /// Adds the FPDU of one DDP segment. `position` is the position in the stream before the FPDU.
    /// Returns the position after the FPDU.
    pub(super) fn push(
        &mut self,
        memory: &Memory,
        framing: Framing,
        position: u64,
        header: &[u8],
        payload: &PayloadSource<'_>,
    ) -> u64 {
        let before = self.scratch.len();
        if framing.markers {
            let ulpdu = self.ulpdu(memory, header, payload);
            // A segment has at most MULPDU bytes, which always fit into an FPDU.
            let Ok(layout) = fpdu::emit(position, &[&ulpdu], framing, &mut self.scratch) else { return position };
            self.scratch_piece(before);
            self.octets += self.scratch.len() - before;
            return layout.end;
        }
        let payload_len = match payload {
            PayloadSource::Octets(octets) => octets.len(),
            PayloadSource::Ranges => self.ranges.iter().map(MemoryRange::len).sum(),
        };
        let length = u16::try_from(header.len() + payload_len).unwrap_or(u16::MAX);
        self.scratch.extend_from_slice(&length.to_be_bytes());
        self.scratch.extend_from_slice(header);
        let small = payload_len <= SMALL;
        match payload {
            PayloadSource::Octets(octets) => self.scratch.extend_from_slice(octets),
            PayloadSource::Ranges if small => {
                self.ranges.iter().for_each(|range| memory.copy_to(*range, &mut self.scratch));
            }
            PayloadSource::Ranges => {}
        }
        let mut sum = if framing.crc { crc::crc32c(&self.scratch[before..]) } else { 0 };
        self.scratch_piece(before);
        if let PayloadSource::Ranges = payload
            && !small
        {
            for range in &self.ranges {
                if framing.crc {
                    sum = memory.slices(*range).fold(sum, crc::append);
                }
                self.pieces.push(Piece::Memory(*range));
            }
        }
        let trailer = self.scratch.len();
        let pad = fpdu::pad_len(length);
        self.scratch.resize(trailer + pad, 0);
        if framing.crc {
            sum = crc::append(sum, &self.scratch[trailer..]);
        }
        self.scratch.extend_from_slice(&crc::to_octets(sum));
        self.scratch_piece(trailer);
        let total = fpdu::LENGTH_LEN + usize::from(length) + pad + crc::CRC_LEN;
        self.octets += total;
        position + total as u64
    }

    /// A complete DDP segment as one vector.
    pub(super) fn ulpdu(&self, memory: &Memory, header: &[u8], payload: &PayloadSource<'_>) -> Vec<u8> {
        let mut ulpdu = header.to_vec();
        match payload {
            PayloadSource::Octets(octets) => ulpdu.extend_from_slice(octets),
            PayloadSource::Ranges => self.ranges.iter().for_each(|range| memory.copy_to(*range, &mut ulpdu)),
        }
        ulpdu
    }

    /// Adds bytes unchanged.
    pub(super) fn push_octets(&mut self, octets: &[u8]) {
        let before = self.scratch.len();
        self.scratch.extend_from_slice(octets);
        self.octets += octets.len();
        if !octets.is_empty() {
            self.scratch_piece(before);
        }
    }

    /// Adds the scratch bytes from `start` to the end as a new piece, or extends the last piece by
    /// these bytes.
    fn scratch_piece(&mut self, start: usize) {
        let end = self.scratch.len();
        match self.pieces.last_mut() {
            Some(Piece::Scratch(range)) if range.end == start => range.end = end,
            _ => self.pieces.push(Piece::Scratch(start..end)),
        }
    }

    /// Passes the batch to `take`, which returns the number of accepted bytes. Appends the
    /// remaining bytes to `rest`. Returns the number of accepted bytes.
    pub(super) fn offer(
        &self,
        memory: &Memory,
        take: &mut dyn FnMut(&[IoSlice<'_>]) -> usize,
        rest: &mut Vec<u8>,
    ) -> usize {
        let taken = match self.pieces.as_slice() {
            [Piece::Scratch(range)] => take(&[IoSlice::new(&self.scratch[range.clone()])]),
            _ => {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let mut count = 0;
                self.for_each_slice(memory, |slice| {
                    if let Some(free) = slices.get_mut(count) {
                        *free = IoSlice::new(slice);
                        count += 1;
                    }
                });
                take(&slices[..count])
            }
        };
        if taken < self.octets {
            let mut skip = taken;
            rest.reserve_exact(self.octets - taken);
            self.for_each_slice(memory, |slice| {
                let skipped = skip.min(slice.len());
                skip -= skipped;
                rest.extend_from_slice(&slice[skipped..]);
            });
        }
        taken
    }

    fn for_each_slice<'a>(&'a self, memory: &'a Memory, mut each: impl FnMut(&'a [u8])) {
        for piece in &self.pieces {
            match piece {
                Piece::Scratch(range) => each(&self.scratch[range.clone()]),
                Piece::Memory(range) => memory.slices(*range).for_each(&mut each),
            }
        }
    }
}
