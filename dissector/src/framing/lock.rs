//! Finds the first FPDU of a direction without a start-up frame. A correct CRC of two consecutive
//! FPDUs proves the position. In this module, a "row" is a sequence of consecutive FPDUs with
//! correct CRCs and markers.

use weft_core::crc::{self, CRC_LEN};
use weft_core::marker::INTERVAL;
use weft_core::wire::mpa::Layout;
use weft_core::wire::mpa::fpdu::Piece;

use super::choose::{check_markers, crc_good, header_at, plausible};
use super::reader::Reader;
use crate::tcp::{Half, Later};

/// Maximum number of FPDUs in a row that are checked to distinguish settings.
const LONGEST_ROW: u32 = 64;

/// Length in octets of `ULPDU_Length` and the longest DDP header.
const LONGEST_HEADER: u64 = 2 + 18;

/// A row of FPDUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Number of FPDUs.
    pub(super) count: u32,
    /// The possible marker phases (remainders of marker positions modulo 512); `None` if there are
    /// no markers.
    pub(super) phases: Option<Vec<u16>>,
    /// Set if the row may continue when further octets have arrived.
    pub(super) more: Option<Later>,
}

/// The result of a search for the first FPDU.
pub(super) struct Lock {
    /// Whether the first FPDU was found, at position `to`.
    pub(super) found: bool,
    /// No FPDU starts before this position.
    pub(super) to: u64,
    /// The octets that the search needs to decide about `to`.
    pub(super) later: Option<Later>,
}

impl Reader {
    /// Searches positions `from..to` for the first position that starts a row of at least two
    /// FPDUs.
    pub(super) fn lock(&mut self, half: &Half, from: u64, to: u64) -> Lock {
        if self.settings.crc == Some(false) {
            return Lock { found: false, to, later: None };
        }
        let captured: Vec<_> = half.stretches(from, to).filter(|stretch| stretch.captured).collect();
        for stretch in captured {
            let octets = half.contiguous(stretch.start);
            let within = usize::try_from(stretch.end - stretch.start).unwrap_or(usize::MAX).min(octets.len());
            for (index, head) in octets[..within].windows(4).enumerate() {
                if !plausible(head) {
                    continue;
                }
                let header = stretch.start + index as u64;
                let cost = 2 * u64::from(u16::from_be_bytes([head[0], head[1]]));
                if !self.effort.allows(header, cost) && !half.segment_starts_at(header) {
                    continue;
                }
                match self.try_lock(half, from, header) {
                    Ok(Some(start)) => return Lock { found: true, to: start, later: None },
                    Ok(None) => {}
                    // A marker of four octets may precede the header.
                    Err(later) => {
                        let to = header.saturating_sub(4).max(from);
                        return Lock { found: false, to, later: Some(later) };
                    }
                }
            }
        }
        let to = if half.is_finished() { to } else { to.saturating_sub(8).max(from) };
        Lock { found: false, to, later: None }
    }

    fn try_lock(&mut self, half: &Half, from: u64, header: u64) -> Result<Option<u64>, Later> {
        let mut tries = Vec::new();
        let residue = |position: u64| (position % INTERVAL) as u16;
        let (without, with) = self.may_begin(half, header)?;
        if without {
            tries.push((header, None));
        }
        if with {
            tries.push((header, Some((4..INTERVAL).step_by(4).map(|i| residue(header + i)).collect())));
        }
        if self.settings.markers != Some(false)
            && header >= from + 4
            && half.octets(header - 4, header)? == Some(&[0; 4])
        {
            tries.push((header - 4, Some(vec![residue(header - 4)])));
        }
        let rows: Vec<_> = tries.into_iter().map(|(at, phases)| (at, self.chain(half, at, phases))).collect();
        if let Some(later) = rows.iter().filter(|(_, row)| row.count < 2).find_map(|(_, row)| row.more) {
            return Err(later);
        }
        let proven: Vec<_> = rows.iter().filter(|(_, row)| row.count >= 2).collect();
        let ambiguous =
            proven.len() > 1 || proven.iter().any(|(_, row)| row.phases.as_ref().is_some_and(|p| p.len() > 1));
        if ambiguous && let Some(later) = proven.iter().find_map(|(_, row)| row.more) {
            return Err(later);
        }
        let Some((at, row)) = proven.into_iter().rev().max_by_key(|(_, row)| row.count) else { return Ok(None) };
        self.origin = *at;
        let relative = |phase: &u16| (u64::from(*phase) + INTERVAL - self.zero % INTERVAL) % INTERVAL;
        self.phase = row.phases.as_ref().and_then(|phases| phases.iter().copied().min_by_key(relative));
        self.guesses_phase = row.phases.as_ref().is_some_and(|phases| phases.len() > 1);
        self.settings.crc = Some(true);
        self.guesses_no_markers = row.phases.is_none() && self.settings.markers.is_none();
        self.settings.markers = Some(row.phases.is_some());
        Ok(Some(*at))
    }

    /// Returns two flags for the position `header`: whether an FPDU without markers and a correct
    /// CRC may start there, and whether an FPDU with markers and a correct CRC may start there.
    ///
    /// An FPDU with markers has two possible numbers of markers, which depend on the phase. So
    /// there are three possible ends. The function computes three CRCs, and each computation
    /// continues the previous one.
    fn may_begin(&self, half: &Half, header: u64) -> Result<(bool, bool), Later> {
        let Some(head) = half.octets(header, header + 2)? else { return Ok((false, false)) };
        let ulpdu_length = u16::from_be_bytes([head[0], head[1]]);
        let marked =
            |to_marker: u64| Layout::new(header, ulpdu_length, Some(((header + to_marker) % INTERVAL) as u16)).crc;
        let mut good = [false; 3];
        let (mut sum, mut at) = (0, header);
        let ends = [Layout::new(header, ulpdu_length, None).crc, marked(INTERVAL - 4), marked(4)];
        for (index, (end, good)) in ends.into_iter().zip(&mut good).enumerate() {
            if self.settings.markers == Some(index == 0) {
                // This variant does not match the settings of the direction.
                continue;
            }
            let Some(octets) = half.octets(at, end + CRC_LEN as u64)? else { break };
            let Some((covered, field)) = octets.split_last_chunk() else { break };
            sum = if at == header { crc::crc32c(covered) } else { crc::append(sum, covered) };
            at = end;
            *good = sum == crc::from_octets(*field);
        }
        Ok((good[0], good[1] || good[2]))
    }

    /// The row of FPDUs that starts at `start`, with markers in one of `phases`.
    pub(super) fn chain(&self, half: &Half, start: u64, phases: Option<Vec<u16>>) -> Row {
        self.chain_up_to(half, start, phases, LONGEST_ROW)
    }

    pub(super) fn chain_up_to(&self, half: &Half, start: u64, phases: Option<Vec<u16>>, most: u32) -> Row {
        let mut row = Row { count: 0, phases, more: None };
        let mut at = start;
        while row.count < most {
            let step = match half.is_end(at) {
                Ok(true) => return row,
                Ok(false) => self.next_in_row(half, at, row.phases.as_deref()),
                Err(later) => Err(later),
            };
            match step {
                Ok(Some((end, phases))) => {
                    row.count += 1;
                    row.phases = phases;
                    at = end;
                }
                Ok(None) => return row,
                Err(later) => {
                    row.more = Some(later);
                    return row;
                }
            }
        }
        row
    }

    /// Checks the FPDU at `at`. Returns its end and the phases that are still possible, or `None`
    /// if CRC or markers are wrong in all `phases`.
    #[allow(clippy::type_complexity)]
    fn next_in_row(
        &self,
        half: &Half,
        at: u64,
        phases: Option<&[u16]>,
    ) -> Result<Option<(u64, Option<Vec<u16>>)>, Later> {
        let Some(phases) = phases else {
            return Ok(self.good_fpdu(half, at, None)?.map(|end| (end, None)));
        };
        let (mut kept, mut in_header) = (Vec::new(), Vec::new());
        let mut found = None;
        let mut sums: Vec<(u64, u64, bool)> = Vec::new();
        for phase in phases {
            let Some(ulpdu_length) = header_at(half, at, Some(*phase))?.ulpdu_length else { continue };
            let layout = Layout::new(at, ulpdu_length, Some(*phase));
            let good = match sums.iter().find(|(header, end, _)| (*header, *end) == (layout.header, layout.end)) {
                Some((_, _, good)) => *good,
                None => {
                    let good = half.octets(at, layout.end)?.is_some_and(crc_good);
                    sums.push((layout.header, layout.end, good));
                    good
                }
            };
            if good && check_markers(half, &layout)?.right {
                let first = layout.pieces().find_map(|piece| match piece {
                    Piece::Marker { position, .. } => Some(position - at),
                    Piece::Body(_) => None,
                });
                let is_in_header = first.is_some_and(|offset| (1..LONGEST_HEADER).contains(&offset));
                if is_in_header {
                    in_header.push(*phase);
                } else {
                    kept.push(*phase);
                }
                found = Some(layout.end);
            }
        }
        // A header field may look like a marker, for example the MSN 12 at offset 12. So a phase
        // with a marker in the header counts only if there is no other phase.
        if kept.is_empty() {
            kept = in_header;
        }
        Ok(found.map(|end| (end, Some(kept))))
    }

    fn good_fpdu(&self, half: &Half, at: u64, phase: Option<u16>) -> Result<Option<u64>, Later> {
        let Some(ulpdu_length) = header_at(half, at, phase)?.ulpdu_length else { return Ok(None) };
        let layout = Layout::new(at, ulpdu_length, phase);
        Ok(half.octets(at, layout.end)?.is_some_and(crc_good).then_some(layout.end))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Marked, Wire, send_of};

    /// An FPDU with MSN 12 has its marker in the payload. The MSN is at offset 12 and therefore
    /// looks like a marker, too.
    #[test]
    fn an_msn_that_looks_like_a_marker_is_none() {
        let (mut wire, mut marked) = (Wire::started_with_markers(), Marked::default());
        (1..=16).for_each(|msn| wire.send(0, &marked.fpdu(&send_of(msn, 35))));
        assert_eq!(marked.markers, 2);
        // The capture lacks the SYNs, the start-up frames and the first FPDU with its marker.
        let from_the_middle = wire.changed(|mut frames| frames.split_off(5));
        assert_eq!(from_the_middle.errors(), []);
    }

    /// The start-up frames are missing, and no complete FPDU has a marker. The only marker is in
    /// the DDP header of an FPDU whose CRC field was not captured.
    #[test]
    fn a_marker_in_a_cut_header_is_not_a_field() {
        let (mut wire, mut marked) = (Wire::started_with_markers(), Marked::default());
        (1..=18).for_each(|msn| wire.send(0, &marked.fpdu(&send_of(msn, 22))));
        // The first FPDU has 4 + 28 octets, and each later FPDU 28. So the next header starts at
        // 508.
        assert_eq!((marked.at, marked.markers), (508, 1));
        wire.send(0, &marked.fpdu(&send_of(19, 100)));
        (20..=30).for_each(|msn| wire.send(0, &marked.fpdu(&send_of(msn, 22))));
        let from_the_middle = wire.changed(|mut frames| frames.split_off(5)).cut_to(100);
        assert_eq!(from_the_middle.errors(), []);
    }

    /// The Request asks for markers and the Reply is missing. All FPDUs before the first truncated
    /// frame are too short to show the positions of the markers.
    #[test]
    fn unknown_places_of_markers_accuse_nobody() {
        for first in 0..20 {
            let (mut wire, mut marked) = (Wire::started_with_markers(), Marked::default());
            (1..=first).for_each(|msn| wire.send(1, &marked.fpdu(&send_of(msn, 22))));
            let lost = 5 + first as usize;
            (first + 1..=first + 3).for_each(|msn| wire.send(1, &marked.fpdu(&send_of(msn, 22))));
            (first + 4..=first + 9).for_each(|msn| wire.send(1, &marked.fpdu(&send_of(msn, 700))));
            (first + 10..=first + 13).for_each(|msn| wire.send(1, &marked.fpdu(&send_of(msn, 22))));
            // The capture lacks the start-up frame and the first FPDUs of the responder.
            let without_begin = wire.changed(|mut frames| {
                frames.drain(3..lost);
                frames
            });
            assert_eq!(without_begin.cut_to(128).errors(), [], "after {first} FPDUs");
        }
    }
}
