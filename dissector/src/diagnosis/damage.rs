//! FPDUs with a wrong CRC that TCP sends again with a right CRC. The network changed the first
//! copy, even if the TCP checksum of this copy is right.
//!
//! The receiver acknowledges the first copy, because its TCP did not detect the change. So the
//! monitor reports the wrong CRC as an error of the sender.
//!
//! The dissector often delivers an FPDU with a wrong CRC only after the next FPDU has arrived. So
//! this module also keeps the latest retransmissions.
//!
//! **Memory.** The octets of at most [`MAX_FPDUS`] FPDUs and of at most [`MAX_REPEATS`] segments
//! are kept.

use std::collections::VecDeque;

use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::framing::crc_good;
use crate::packet::TcpSegment;
use crate::unit::{Kind, Unit};

/// Maximum number of FPDUs that are kept.
const MAX_FPDUS: usize = 4;
/// Maximum number of retransmissions that are kept.
const MAX_REPEATS: usize = 8;

/// Octets of one direction.
#[derive(Debug)]
struct Octets {
    direction: Direction,
    frame: FrameNumber,
    /// Sequence number of the first octet.
    start: u32,
    octets: Vec<u8>,
}

/// The latest FPDUs with a wrong CRC, and the latest retransmissions.
#[derive(Debug, Default)]
pub(super) struct BadFpdus {
    fpdus: VecDeque<Octets>,
    repeats: VecDeque<Octets>,
}

impl BadFpdus {
    /// Records an FPDU with a wrong CRC. If a later segment repeats it with a right CRC, returns
    /// the frame of this segment.
    pub(super) fn add(&mut self, unit: &Unit<'_>) -> Option<FrameNumber> {
        let Kind::Fpdu(fpdu) = &unit.kind else { return None };
        let octets = unit.stream_octets(fpdu.layout.start, fpdu.layout.end)?.to_vec();
        let (direction, frame, start) = (unit.direction(), unit.frame, unit.sequence_number()?);
        let mut bad = Octets { direction, frame, start, octets };
        let repeat = self.repeats.iter().find(|repeat| bad.is_repaired_by(repeat)).map(|repeat| repeat.frame);
        if self.fpdus.len() >= MAX_FPDUS {
            self.fpdus.pop_front();
        }
        self.fpdus.push_back(bad);
        repeat
    }

    /// Records a retransmission. If it repeats an FPDU with a right CRC, returns the frame of this
    /// FPDU.
    pub(super) fn repeat(&mut self, direction: Direction, segment: &TcpSegment<'_>) -> Option<FrameNumber> {
        let (frame, start, octets) = (segment.frame(), segment.seq(), segment.octets().to_vec());
        let repeat = Octets { direction, frame, start, octets };
        let repaired = self.fpdus.iter_mut().find_map(|bad| bad.is_repaired_by(&repeat).then_some(bad.frame));
        if self.repeats.len() >= MAX_REPEATS {
            self.repeats.pop_front();
        }
        self.repeats.push_back(repeat);
        repaired
    }
}

impl Octets {
    /// Overwrites octets of this FPDU with the octets of the later segment `repeat`. Returns
    /// whether this changed octets and made the CRC right.
    fn is_repaired_by(&mut self, repeat: &Octets) -> bool {
        let offset = i64::from(repeat.start.wrapping_sub(self.start).cast_signed());
        let (from, to) = (offset.max(0), (offset + repeat.octets.len() as i64).min(self.octets.len() as i64));
        if repeat.direction != self.direction || repeat.frame <= self.frame || from >= to {
            return false;
        }
        let old = &mut self.octets[from as usize..to as usize];
        let new = &repeat.octets[(from - offset) as usize..(to - offset) as usize];
        let is_changed = old != new;
        old.copy_from_slice(new);
        is_changed && crc_good(&self.octets)
    }
}
