//! Finds the first FPDU of a direction without a start-up frame. Correct CRCs of two consecutive
//! FPDUs prove the position of the first FPDU. In this module, a "run" is a sequence of consecutive
//! FPDUs with correct CRCs and markers.

use weft_core::crc::{self, CRC_LEN};
use weft_core::marker::INTERVAL;
use weft_core::wire::mpa::Layout;

use super::choose::{check_markers, crc_good, header_at, plausible};
use super::reader::Reader;
use crate::parse::marker_positions;
use crate::tcp::{DirectionStream, Pending};

/// Maximum number of FPDUs that are checked in a run. The checks distinguish possible settings.
const LONGEST_RUN: u32 = 64;

/// Length in octets of `ULPDU_Length` and the longest DDP header.
const LONGEST_HEADER: u64 = 2 + 18;

/// A run of FPDUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FpduRun {
    /// Number of FPDUs.
    pub(super) count: u32,
    /// The possible marker phases; `None` if there are no markers. A phase is the remainder of the
    /// marker positions modulo 512.
    pub(super) phases: Option<Vec<u16>>,
    /// Set if the octets after the run have not arrived yet, so that the run may be longer.
    pub(super) more: Option<Pending>,
}

/// The result of a search for the first FPDU.
pub(super) struct Lock {
    /// Whether the first FPDU was found, at position `to`.
    pub(super) found: bool,
    /// No FPDU starts before this position.
    pub(super) to: u64,
    /// The octets that the search needs before it can continue at `to`.
    pub(super) pending: Option<Pending>,
}

impl Reader {
    /// Searches positions `from..to` for the first position at which a run of at least two FPDUs
    /// starts.
    pub(super) fn lock(&mut self, half: &DirectionStream, from: u64, to: u64) -> Lock {
        if self.settings.crc == Some(false) {
            return Lock { found: false, to, pending: None };
        }
        let captured: Vec<_> = half.spans(from, to).filter(|span| span.captured).collect();
        for span in captured {
            let octets = half.contiguous(span.start);
            let within = usize::try_from(span.end - span.start).unwrap_or(usize::MAX).min(octets.len());
            for (index, head) in octets[..within].windows(4).enumerate() {
                if !plausible(head) {
                    continue;
                }
                let header = span.start + index as u64;
                let cost = 2 * u64::from(u16::from_be_bytes([head[0], head[1]]));
                if !self.budget.allows(header, cost) && !half.segment_starts_at(header) {
                    continue;
                }
                match self.try_lock(half, from, header) {
                    Ok(Some(start)) => return Lock { found: true, to: start, pending: None },
                    Ok(None) => {}
                    // A marker of four octets can precede the header.
                    Err(pending) => {
                        let to = header.saturating_sub(4).max(from);
                        return Lock { found: false, to, pending: Some(pending) };
                    }
                }
            }
        }
        let to = if half.is_finished() { to } else { to.saturating_sub(8).max(from) };
        Lock { found: false, to, pending: None }
    }

    fn try_lock(&mut self, half: &DirectionStream, from: u64, header: u64) -> Result<Option<u64>, Pending> {
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
        let runs: Vec<_> = tries.into_iter().map(|(at, phases)| (at, self.fpdu_run(half, at, phases))).collect();
        if let Some(pending) = runs.iter().filter(|(_, run)| run.count < 2).find_map(|(_, run)| run.more) {
            return Err(pending);
        }
        let proven: Vec<_> = runs.iter().filter(|(_, run)| run.count >= 2).collect();
        let ambiguous =
            proven.len() > 1 || proven.iter().any(|(_, run)| run.phases.as_ref().is_some_and(|p| p.len() > 1));
        if ambiguous && let Some(pending) = proven.iter().find_map(|(_, run)| run.more) {
            return Err(pending);
        }
        let Some((at, run)) = proven.into_iter().rev().max_by_key(|(_, run)| run.count) else { return Ok(None) };
        self.origin = *at;
        let relative = |phase: &u16| (u64::from(*phase) + INTERVAL - self.zero % INTERVAL) % INTERVAL;
        let phase = run.phases.as_ref().and_then(|phases| phases.iter().copied().min_by_key(relative));
        self.assume(phase, true);
        self.guesses_phase = run.phases.as_ref().is_some_and(|phases| phases.len() > 1);
        Ok(Some(*at))
    }

    /// Checks the CRC of an FPDU whose header is at position `header`. The first result is whether
    /// the CRC is correct without markers. The second result is whether the CRC is correct with
    /// markers.
    ///
    /// Without markers, the FPDU has one possible end. With markers, the number of markers depends
    /// on the phase: there are two possible numbers, and so two possible ends. The function
    /// therefore computes three CRCs. Each computation continues the previous computation.
    fn may_begin(&self, half: &DirectionStream, header: u64) -> Result<(bool, bool), Pending> {
        let Some(head) = half.octets(header, header + 2)? else { return Ok((false, false)) };
        let ulpdu_length = u16::from_be_bytes([head[0], head[1]]);
        let marked =
            |to_marker: u64| Layout::new(header, ulpdu_length, Some(((header + to_marker) % INTERVAL) as u16)).crc;
        let mut good = [false; 3];
        let (mut sum, mut at) = (0, header);
        let ends = [Layout::new(header, ulpdu_length, None).crc, marked(INTERVAL - 4), marked(4)];
        for (index, (end, good)) in ends.into_iter().zip(&mut good).enumerate() {
            if self.settings.markers == Some(index == 0) {
                // This possible end does not match the settings of the direction.
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

    /// The run of FPDUs that starts at `start`. Markers have one of the phases in `phases`.
    pub(super) fn fpdu_run(&self, half: &DirectionStream, start: u64, phases: Option<Vec<u16>>) -> FpduRun {
        self.fpdu_run_up_to(half, start, phases, LONGEST_RUN)
    }

    pub(super) fn fpdu_run_up_to(
        &self,
        half: &DirectionStream,
        start: u64,
        phases: Option<Vec<u16>>,
        most: u32,
    ) -> FpduRun {
        let mut run = FpduRun { count: 0, phases, more: None };
        let mut at = start;
        while run.count < most {
            let step = match half.is_end(at) {
                Ok(true) => return run,
                Ok(false) => self.next_in_run(half, at, run.phases.as_deref()),
                Err(pending) => Err(pending),
            };
            match step {
                Ok(Some((end, phases))) => {
                    run.count += 1;
                    run.phases = phases;
                    at = end;
                }
                Ok(None) => return run,
                Err(pending) => {
                    run.more = Some(pending);
                    return run;
                }
            }
        }
        run
    }

    /// Checks the FPDU at `at`. Returns the end of the FPDU and the phases that are still possible.
    /// Returns `None` if, for each phase in `phases`, the CRC or a marker is wrong.
    #[allow(clippy::type_complexity)]
    fn next_in_run(
        &self,
        half: &DirectionStream,
        at: u64,
        phases: Option<&[u16]>,
    ) -> Result<Option<(u64, Option<Vec<u16>>)>, Pending> {
        let Some(phases) = phases else {
            return Ok(self.good_fpdu(half, at, None)?.map(|end| (end, None)));
        };
        let (mut kept, mut in_header) = (Vec::new(), Vec::new());
        let mut found = None;
        let mut sums: Vec<(u64, u64, bool)> = Vec::new();
        for phase in phases {
            let Some(ulpdu_length) = header_at(half, at, Some(*phase))?.0 else { continue };
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
                let first = marker_positions(&layout).next();
                let is_in_header = first.is_some_and(|(position, _)| (1..LONGEST_HEADER).contains(&(position - at)));
                if is_in_header {
                    in_header.push(*phase);
                } else {
                    kept.push(*phase);
                }
                found = Some(layout.end);
            }
        }
        // A header field can look like a marker, for example the MSN 12 at offset 12. So a phase
        // with a marker in the header is kept only if no other phase is possible.
        if kept.is_empty() {
            kept = in_header;
        }
        Ok(found.map(|end| (end, Some(kept))))
    }

    fn good_fpdu(&self, half: &DirectionStream, at: u64, phase: Option<u16>) -> Result<Option<u64>, Pending> {
        let Some(ulpdu_length) = header_at(half, at, phase)?.0 else { return Ok(None) };
        let layout = Layout::new(at, ulpdu_length, phase);
        Ok(half.octets(at, layout.end)?.is_some_and(crc_good).then_some(layout.end))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Marked, Wire, send_of};

    /// The FPDU with MSN 12 has its marker in the payload. But its MSN field at offset 12 also
    /// looks like a marker: it has the value 12, as the FPDUPTR of a marker at this offset.
    #[test]
    fn an_msn_that_looks_like_a_marker_is_none() {
        let (mut wire, mut marked) = (Wire::started_with_markers(), Marked::default());
        (1..=16).for_each(|msn| wire.send(0, &marked.fpdu(&send_of(msn, 35))));
        assert_eq!(marked.markers, 2);
        // The SYNs, the start-up frames, and the first FPDU with its marker are missing in the
        // capture.
        let from_the_middle = wire.changed(|mut frames| frames.split_off(5));
        assert_eq!(from_the_middle.errors(), []);
    }

    /// The start-up frames are missing, and no complete FPDU has a marker. The only marker is in
    /// the DDP header of an FPDU whose CRC field was not captured.
    #[test]
    fn a_marker_in_a_cut_header_is_not_a_field() {
        let (mut wire, mut marked) = (Wire::started_with_markers(), Marked::default());
        (1..=18).for_each(|msn| wire.send(0, &marked.fpdu(&send_of(msn, 22))));
        // The first FPDU has 4 + 28 octets, and each later FPDU has 28 octets. So the next header
        // starts at 508.
        assert_eq!((marked.at, marked.markers), (508, 1));
        wire.send(0, &marked.fpdu(&send_of(19, 100)));
        (20..=30).for_each(|msn| wire.send(0, &marked.fpdu(&send_of(msn, 22))));
        let from_the_middle = wire.changed(|mut frames| frames.split_off(5)).cut_to(100);
        assert_eq!(from_the_middle.errors(), []);
    }

    /// The Request requests markers, and the Reply is missing. All FPDUs before the first truncated
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
            // The start-up frame and the first FPDUs of the responder are missing in the capture.
            let without_begin = wire.changed(|mut frames| {
                frames.drain(3..lost);
                frames
            });
            assert_eq!(without_begin.cut_to(128).errors(), [], "after {first} FPDUs");
        }
    }
}
