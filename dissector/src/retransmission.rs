//! Detects FPDUs that the network damaged and that TCP repaired. Such an FPDU is first captured
//! with a bad CRC. Before the receiver acknowledges the FPDU, the sender retransmits it with a good
//! CRC.
//!
//! An MPA implementation with access to TCP segments is allowed to drop a damaged segment silently,
//! although the TCP checksum of the segment is correct. TCP then retransmits the segment (RFC 5044
//! section 8). Findings about such an FPDU become notes.
//!
//! The dissector often reads an FPDU with a bad CRC only after the next FPDU has arrived. At this
//! time, it is possible that the retransmission is already captured. Therefore this module stores
//! retransmitted segments. If no stored segment repairs the FPDU, this module delays the findings
//! until the retransmission arrives, until the receiver acknowledges the octets, or until the
//! connection ends.
//!
//! **Memory.** For each connection, this module stores the octets of at most [`MAX_DAMAGED`] FPDUs
//! and of at most [`MAX_RETRANSMISSIONS`] segments.

use std::collections::VecDeque;

use weft_core::requirement::Severity;

use crate::direction::Direction;
use crate::finding::Finding;
use crate::follow::{ConnectionState, Fault};
use crate::frame_number::FrameNumber;
use crate::framing::crc_good;
use crate::ip::Segment;
use crate::parse::{CrcStatus, Kind, Unit};
use crate::tcp::before;

/// Maximum number of FPDUs with delayed findings. Findings about further FPDUs are not delayed.
const MAX_DAMAGED: usize = 8;
/// Maximum number of stored segments that repeat octets.
const MAX_RETRANSMISSIONS: usize = 16;

/// A segment that repeats unacknowledged octets.
#[derive(Debug)]
struct Retransmission {
    direction: Direction,
    frame: FrameNumber,
    /// Sequence number of the first octet.
    start: u32,
    octets: Vec<u8>,
}

/// An FPDU with a bad CRC and delayed findings.
#[derive(Debug)]
struct DamagedFpdu {
    direction: Direction,
    frame: FrameNumber,
    /// Sequence number of the first octet.
    start: u32,
    /// Stream position after the last octet.
    end: u64,
    octets: Vec<u8>,
    findings: Vec<Finding>,
}

impl DamagedFpdu {
    /// Returns whether the acknowledgement number `ack` covers the complete FPDU.
    fn is_acknowledged(&self, ack: u32) -> bool {
        !before(ack, self.start.wrapping_add(self.octets.len() as u32))
    }

    /// Overwrites octets of the FPDU with the octets of the later segment `repeat`. Returns whether
    /// this changed octets and made the CRC correct.
    fn overlay(&mut self, repeat: &Retransmission) -> bool {
        let offset = i64::from(repeat.start.wrapping_sub(self.start).cast_signed());
        let (from, to) = (offset.max(0), (offset + repeat.octets.len() as i64).min(self.octets.len() as i64));
        if repeat.direction != self.direction || repeat.frame <= self.frame || from >= to {
            return false;
        }
        let own = &mut self.octets[from as usize..to as usize];
        let other = &repeat.octets[(from - offset) as usize..(to - offset) as usize];
        if own == other {
            return false;
        }
        own.copy_from_slice(other);
        crc_good(&self.octets)
    }

    /// Returns the findings as notes. The segment in frame `frame` repaired the FPDU.
    fn into_notes(mut self, frame: FrameNumber) -> Vec<Finding> {
        let why = format!("; the network damaged the FPDU: frame {frame} repeats it with a correct CRC");
        for finding in &mut self.findings {
            finding.severity = Severity::Note;
            finding.found.push_str(&why);
        }
        self.findings
    }
}

/// The state of one connection. The state has the FPDUs with delayed findings, in the order of
/// their delivery. It also has the stored segments that can repair later FPDUs.
#[derive(Debug, Default)]
pub(crate) struct DamagedFpdus {
    waiting: VecDeque<DamagedFpdu>,
    retransmissions: VecDeque<Retransmission>,
}

impl DamagedFpdus {
    /// Used memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let waiting = self.waiting.iter().map(|damaged| size_of::<DamagedFpdu>() + damaged.octets.capacity());
        let repeats = self.retransmissions.iter().map(|repeat| size_of::<Retransmission>() + repeat.octets.capacity());
        waiting.chain(repeats).sum()
    }

    /// If `unit` is an FPDU with a bad CRC and TCP can still retransmit the FPDU, delays the
    /// findings in `found`. If a stored segment already repairs the FPDU, returns true, and changes
    /// the findings in `found` to notes.
    pub(crate) fn hold(&mut self, state: &ConnectionState, unit: &Unit<'_>, found: &mut Vec<Finding>) -> bool {
        let Kind::Fpdu(fpdu) = &unit.kind else { return false };
        if fpdu.crc_status != CrcStatus::Bad || unit.incomplete || found.is_empty() {
            return false;
        }
        let (layout, direction) = (&fpdu.layout, unit.direction());
        let (Some(octets), Some(start)) = (unit.stream_octets(layout.start, layout.end), unit.sequence_number()) else {
            return false;
        };
        let (octets, findings) = (octets.to_vec(), std::mem::take(found));
        let mut damaged = DamagedFpdu { direction, frame: unit.frame, start, end: layout.end, octets, findings };
        if let Some(repeat) = self.retransmissions.iter().find(|repeat| damaged.overlay(repeat)) {
            *found = damaged.into_notes(repeat.frame);
            return true;
        }
        let acknowledged = state.mpa.tcp[direction].last_ack;
        if self.waiting.len() >= MAX_DAMAGED || acknowledged.is_some_and(|ack| damaged.is_acknowledged(ack)) {
            *found = damaged.findings;
        } else {
            self.waiting.push_back(damaged);
        }
        false
    }

    /// Processes a segment of `direction` before `state` records it. If the segment repairs FPDUs
    /// of its direction, or acknowledges FPDUs of the other direction, the findings about these
    /// FPDUs are added to `found`.
    pub(crate) fn segment(
        &mut self,
        state: &mut ConnectionState,
        direction: Direction,
        segment: &Segment<'_>,
        found: &mut Vec<Finding>,
    ) {
        if segment.rst {
            return;
        }
        // The TCP checksum does not matter here. Some programs that change headers in a capture leave
        // every checksum wrong, and a segment that the network damaged makes no CRC correct.
        if state.mpa.tcp[direction].repeats_unacknowledged(segment) {
            let Segment { frame, seq: start, octets, .. } = *segment;
            let repeat = Retransmission { direction, frame, start, octets: octets.to_vec() };
            while let Some(at) = self.waiting.iter_mut().position(|damaged| damaged.overlay(&repeat)) {
                let Some(damaged) = self.waiting.remove(at) else { break };
                let next = self.waiting.iter().find(|other| other.direction == direction);
                let next = next.map(|it| Fault { frame: it.frame, number: u64::MAX, end: it.end });
                state.traffic.repair(direction, damaged.frame, next);
                found.append(&mut damaged.into_notes(frame));
            }
            if self.retransmissions.len() >= MAX_RETRANSMISSIONS {
                self.retransmissions.pop_front();
            }
            self.retransmissions.push_back(repeat);
        }
        let is_over =
            |it: &DamagedFpdu| it.direction != direction && segment.ack_flag && it.is_acknowledged(segment.ack);
        while let Some(at) = self.waiting.iter().position(is_over) {
            let Some(mut damaged) = self.waiting.remove(at) else { break };
            found.append(&mut damaged.findings);
        }
    }

    /// Adds all delayed findings to `found` when the connection ends.
    pub(crate) fn finish(&mut self, found: &mut Vec<Finding>) {
        self.waiting.drain(..).for_each(|mut damaged| found.append(&mut damaged.findings));
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{Wire, fpdu, send_of};

    /// Plays a connection whose second FPDU has a bad CRC. `then` sends further segments. After
    /// that, an FPDU of the peer acknowledges everything, and both endpoints close.
    fn damaged(then: impl FnOnce(&mut Wire, &[u8], &[u8])) -> Wire {
        let mut wire = Wire::started();
        (0..2).for_each(|direction| wire.send(direction, &fpdu(&send_of(1, 30))));
        let good = fpdu(&send_of(2, 30));
        let mut bad = good.clone();
        bad[24] ^= 1;
        wire.send(0, &bad);
        then(&mut wire, &good, &bad);
        wire.send(1, &fpdu(&send_of(2, 30)));
        (0..2).for_each(|direction| wire.fin(direction));
        wire
    }

    #[test]
    fn a_retransmission_that_repairs_an_unacknowledged_fpdu_makes_a_note() {
        let in_one = damaged(|wire, good, _| wire.send_again(0, 36, good));
        let in_two = damaged(|wire, good, _| {
            wire.send_again(0, 36, &good[..20]);
            wire.send_again(0, 16, &good[20..]);
        });
        for wire in [in_one, in_two] {
            assert_eq!(wire.errors(), []);
            let found = wire.findings();
            let note = found.iter().find(|finding| finding.requirement == requirement!("MPA-4.1-6"));
            let note = note.map(|finding| (finding.frame, finding.found.contains("repeats it with a correct CRC")));
            assert_eq!(note, Some((7.into(), true)), "{found:#?}");
        }
    }

    /// A program that changed the headers in the capture left wrong TCP checksums.
    #[test]
    fn a_repetition_may_have_a_wrong_checksum() {
        let wire = damaged(|wire, good, _| {
            wire.send_again(0, 36, &good[..20]);
            wire.send_again(0, 16, &good[20..]);
        });
        // The headers of Ethernet and IPv4 have 34 octets, and the checksum follows 16 more octets.
        let wrong = wire.changed(|mut frames| {
            frames.iter_mut().for_each(|(_, frame)| frame[50] ^= 0x55);
            frames
        });
        assert_eq!(wrong.errors(), []);
    }

    /// The next FPDU arrives before the retransmission of the damaged FPDU.
    #[test]
    fn a_repetition_may_come_after_other_octets() {
        let wire = damaged(|wire, good, _| {
            wire.send(0, &fpdu(&send_of(3, 30)));
            wire.send_again(0, 72, good);
        });
        assert_eq!(wire.errors(), []);
    }

    #[test]
    fn a_bad_crc_that_is_acknowledged_or_repeated_is_an_error() {
        let acknowledged = damaged(|wire, good, _| {
            wire.send(1, &[]);
            wire.send_again(0, 36, good);
        });
        let as_bad = damaged(|wire, _, bad| wire.send_again(0, 36, bad));
        let once = damaged(|_, _, _| {});
        for wire in [acknowledged, as_bad, once] {
            let ids: Vec<_> = wire.errors().iter().map(|finding| finding.requirement).collect();
            for id in [requirement!("MPA-4.1-6"), requirement!("DDP-7-1"), requirement!("RDMAP-6.2.1-1")] {
                assert!(ids.contains(&id), "{id}: {ids:?}");
            }
        }
    }
}
