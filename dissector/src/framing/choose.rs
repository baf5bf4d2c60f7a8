//! Determines the layout of the next FPDU. The layout is the layout of RFC 5044, or a layout with a
//! known error of a real sender.
//!
//! Known errors:
//!
//! - markers at wrong positions, because the sender ignores its CRC fields when it counts octets
//! - markers at wrong positions, with a constant distance from the correct positions
//! - FPDUPTR in little-endian order, or FPDUPTR counted from a marker at the start of the FPDU
//! - no markers although they were negotiated, or markers that were not negotiated
//! - no CRC field

use weft_core::crc;
use weft_core::marker::INTERVAL;
use weft_core::wire::ddp::Control as DdpControl;
use weft_core::wire::mpa::Layout;
use weft_core::wire::mpa::fpdu::header_position;
use weft_core::wire::rdmap::Control as RdmapControl;

use super::reader::Reader;
use crate::parse::marker_positions;
use crate::tcp::{DirectionStream, Pending};

/// Length in octets of `ULPDU_Length`, the DDP header and the longest RDMAP header (Atomic Request,
/// RFC 7306 section 5.2.1).
const LONGEST_HEADERS: u8 = 2 + 18 + 52;

/// Returns whether the four octets in `head` look like the start of an FPDU: `ULPDU_Length` and the
/// two control octets of a DDP segment that carries RDMAP.
pub(super) fn plausible(head: &[u8]) -> bool {
    let &[high, low, ddp, rdmap, ..] = head else { return false };
    let (ulpdu_length, ddp, rdmap) = (u16::from_be_bytes([high, low]), DdpControl(ddp), RdmapControl(rdmap));
    ddp.reserved() == 0
        && ddp.version() <= 1
        && rdmap.version() == ddp.version()
        && rdmap.reserved() == 0
        && rdmap.opcode().is_tagged() == Some(ddp.tagged())
        && ulpdu_length >= if ddp.tagged() { 14 } else { 18 }
}

/// Returns whether the last four octets are the correct CRC of the octets before them.
pub(crate) fn crc_good(octets: &[u8]) -> bool {
    octets
        .split_last_chunk::<{ crc::CRC_LEN }>()
        .is_some_and(|(covered, field)| crc::crc32c(covered) == crc::from_octets(*field))
}

/// The chosen layout of an FPDU.
pub(super) struct ChosenLayout<'h> {
    pub(super) layout: Layout,
    /// All octets of the FPDU, if they were captured.
    pub(super) captured: Option<&'h [u8]>,
    /// Whether the CRC is correct; `None` if the CRC was not checked.
    pub(super) crc_good: Option<bool>,
}

impl<'h> ChosenLayout<'h> {
    #[inline]
    fn new(layout: Layout, captured: Option<&'h [u8]>, crc_good: Option<bool>) -> Self {
        ChosenLayout { layout, captured, crc_good }
    }
}

/// The result of checking the markers of a layout.
pub(super) struct MarkerCheck {
    /// Whether all captured markers are correct.
    pub(super) right: bool,
    /// Number of captured markers that were checked. The check stops at the first wrong marker.
    pub(super) seen: usize,
}

/// Compares the captured markers with the markers that RFC 5044 section 4.3 requires.
pub(super) fn check_markers(half: &DirectionStream, layout: &Layout) -> Result<MarkerCheck, Pending> {
    let mut found = MarkerCheck { right: true, seen: 0 };
    if layout.phase().is_none() {
        return Ok(found);
    }
    for (position, fpduptr) in marker_positions(layout) {
        let Some(octets) = half.octets(position, position + 4)? else { continue };
        found.seen += 1;
        if octets != weft_core::marker::to_octets(fpduptr) {
            found.right = false;
            break;
        }
    }
    Ok(found)
}

/// Returns whether the FPDU has markers, and all markers were captured and recognised. A marker is
/// recognised if it is correct, or if its FPDUPTR has a known error of real senders (see the start
/// of this file).
fn markers_recognised(half: &DirectionStream, layout: &Layout) -> Result<bool, Pending> {
    let mut any = false;
    for (position, fpduptr) in marker_positions(layout) {
        let Some(&[0, 0, a, b]) = half.octets(position, position + 4)? else { return Ok(false) };
        any = true;
        let from_marker = (layout.has_leading_marker() && position != layout.start)
            .then_some(((position - layout.start) & 0xffff) as u16);
        let found = [u16::from_be_bytes([a, b]), u16::from_le_bytes([a, b])];
        if !found.iter().any(|value| *value == fpduptr || Some(*value) == from_marker) {
            return Ok(false);
        }
    }
    Ok(any)
}

/// The header of an FPDU: `ULPDU_Length`, and whether the first four octets are [`plausible`]. If
/// the octets of one of these two values were not captured, this value is `None`.
type Header = (Option<u16>, Option<bool>);

/// The header of an FPDU that starts at `start`.
pub(super) fn header_at(half: &DirectionStream, start: u64, phase: Option<u16>) -> Result<Header, Pending> {
    Ok((length_at(half, start, phase)?, plausible_at(half, start, phase)?))
}

/// `ULPDU_Length` of an FPDU that starts at `start`.
#[inline]
fn length_at(half: &DirectionStream, start: u64, phase: Option<u16>) -> Result<Option<u16>, Pending> {
    let at = header_position(start, phase);
    Ok(half.octets(at, at + 2)?.map(|octets| u16::from_be_bytes([octets[0], octets[1]])))
}

/// Returns whether the first four octets of an FPDU that starts at `start` are plausible.
fn plausible_at(half: &DirectionStream, start: u64, phase: Option<u16>) -> Result<Option<bool>, Pending> {
    let at = header_position(start, phase);
    Ok(half.octets(at, at + 4)?.map(plausible))
}

/// Returns whether a plausible header starts at `position`, or after a marker that starts at
/// `position`. Returns `None` if the octets at `position` were not captured.
fn header_follows(half: &DirectionStream, position: u64, phase: Option<u16>) -> Result<Option<bool>, Pending> {
    let Some(head) = half.octets(position, position + 4)? else { return Ok(None) };
    let after_marker = |half: &DirectionStream| {
        let octets = half.octets(position + 4, position + 8)?;
        Ok(octets.is_some_and(plausible))
    };
    Ok(Some(plausible(head) || header_position(position, phase) != position && after_marker(half)?))
}

/// Returns whether an FPDU certainly ends at `position`. A plausible header or a FIN at `position`
/// proves this. The end of the capture, or missing octets, do not prove it.
fn ends_for_certain(half: &DirectionStream, position: u64, phase: Option<u16>) -> Result<bool, Pending> {
    if half.is_end(position)? {
        return Ok(position == half.end() && half.ends_with_fin());
    }
    Ok(header_follows(half, position, phase)? == Some(true))
}

impl Reader {
    /// The layout of the FPDU at `start`; `None` if no FPDU is recognised at `start`.
    pub(super) fn choose<'h>(
        &mut self,
        half: &'h DirectionStream,
        start: u64,
    ) -> Result<Option<ChosenLayout<'h>>, Pending> {
        let Some(ulpdu_length) = length_at(half, start, self.phase)? else { return Ok(None) };
        let rfc = self.layout(start, ulpdu_length, self.phase, self.without_crc);
        let captured = half.octets(start, rfc.end)?;
        let crc_on = self.settings.crc == Some(true);
        // If CRC is in use, nearly every FPDU has a correct CRC. Then only its marker phase has to
        // be found.
        if crc_on && captured.is_some_and(crc_good) {
            return Ok(Some(ChosenLayout::new(self.find_marker_phase(half, rfc)?, captured, Some(true))));
        }
        let plausible = plausible_at(half, start, self.phase)?;
        if captured.is_none() && self.guesses_markers() {
            let is_other = plausible == Some(false) || !check_markers(half, &rfc)?.right;
            if is_other || self.may_contain_marker(half, start) {
                return Ok(None);
            }
        }
        let within = rfc.end <= half.end();
        match captured {
            Some(_) if crc_on => {}
            // Accept the FPDU if it ends at the end of a TCP segment. The end of the segment is as
            // good a proof as the header of the next FPDU, and sometimes this header arrives much
            // later.
            Some(_)
                if check_markers(half, &rfc)?.right
                    && (plausible == Some(true) && half.segment_ends_at(rfc.end)
                        || self.may_end_at(half, rfc.end, self.phase)?) =>
            {
                return Ok(Some(ChosenLayout::new(rfc, captured, None)));
            }
            Some(_) => {}
            None if within => {
                let believed = plausible.is_none_or(|p| p) || self.may_end_at(half, rfc.end, self.phase)?;
                return Ok(believed.then(|| ChosenLayout::new(rfc, None, None)));
            }
            None => {}
        }
        if let Some(marked) = self.with_unrequested_markers(half, start)? {
            let octets = half.octets(marked.start, marked.end)?;
            return Ok(Some(ChosenLayout::new(marked, octets, crc_on.then_some(true))));
        }
        // Later octets cannot confirm an FPDU that extends past the end of the data.
        let confirmed = within && self.may_end_at(half, rfc.end, self.phase)?;
        if within
            && !confirmed
            && !crc_on
            && plausible == Some(true)
            && (self.wrong_pad(half, start)?.is_some() || self.length_includes_crc(half, start, ulpdu_length)?)
        {
            return Ok(None);
        }
        if let Some(wrong) = self.layout_with_known_error(half, start, confirmed && !self.guesses_phase)? {
            let octets = half.octets(wrong.start, wrong.end)?;
            return Ok(Some(ChosenLayout::new(wrong, octets, crc_on.then_some(true))));
        }
        let plausible = plausible == Some(true);
        let is_accepted = if within { confirmed || (!crc_on && plausible) } else { plausible };
        if self.guesses_end && captured.is_some() && crc_on {
            // The end of the previous FPDU is a guess, so it is possible that this FPDU starts at
            // another position.
            return Ok(None);
        }
        // If all octets were captured and CRC is in use, this point is reached only with a bad CRC.
        let is_crc_good = (crc_on && captured.is_some()).then_some(false);
        Ok(is_accepted.then(|| ChosenLayout::new(rfc, captured, is_crc_good)))
    }

    /// Returns whether the marker phase (the remainder of marker positions modulo 512), or the
    /// absence of markers, is only a guess.
    pub(super) fn guesses_markers(&self) -> bool {
        self.guesses_phase || self.guesses_no_markers && self.phase.is_none()
    }

    /// Returns whether the headers of the FPDU at `start` possibly contain an unexpected marker.
    /// This is possible only while neither a start-up frame nor a CRC has shown the positions of
    /// markers. Until then, any four octets with the value of a correct marker (RFC 5044 section
    /// 4.3) count as a possible marker.
    pub(super) fn may_contain_marker(&self, half: &DirectionStream, start: u64) -> bool {
        let is_marker = |offset: u8| {
            let at = start + u64::from(offset);
            matches!(half.octets(at, at + 4), Ok(Some(octets)) if octets == [0, 0, 0, offset])
        };
        let is_expected =
            |offset: &u8| self.phase.is_some_and(|phase| (start + u64::from(*offset)) % INTERVAL == u64::from(phase));
        self.guesses_markers() && (4..LONGEST_HEADERS).step_by(4).filter(|offset| !is_expected(offset)).any(is_marker)
    }

    pub(super) fn layout(&self, start: u64, ulpdu_length: u16, phase: Option<u16>, without_crc: bool) -> Layout {
        let layout = Layout::new(start, ulpdu_length, phase);
        if without_crc { layout.without_crc_field() } else { layout }
    }

    /// The layout of the FPDU at `start` if the FPDU has markers although markers were not
    /// negotiated. Returns this layout only if it is proven and all markers are recognised. With
    /// CRC, a correct CRC proves the layout. Without CRC, two conditions together prove the layout.
    /// An FPDU can end at the end of this layout ([`Reader::may_end_at`]), and a marker is in the
    /// FPDU or directly after the FPDU.
    fn with_unrequested_markers(&self, half: &DirectionStream, start: u64) -> Result<Option<Layout>, Pending> {
        if self.phase.is_some() || self.settings.markers != Some(false) {
            return Ok(None);
        }
        let phase = Some((self.origin % INTERVAL) as u16);
        let (Some(ulpdu_length), Some(true)) = header_at(half, start, phase)? else { return Ok(None) };
        let layout = self.layout(start, ulpdu_length, phase, self.without_crc);
        let is_marked = marker_positions(&layout).next().is_some();
        if is_marked && !markers_recognised(half, &layout)? {
            return Ok(None);
        }
        let Some(octets) = half.octets(start, layout.end)? else { return Ok(None) };
        let proven = if self.settings.crc == Some(true) {
            crc_good(octets)
        } else {
            let before_marker = is_marked || half.octets(layout.end, layout.end + 4)? == Some(&[0; 4]);
            before_marker && self.may_end_at(half, layout.end, phase)?
        };
        let phase = phase.filter(|_| is_marked);
        Ok(proven.then(|| self.layout(start, ulpdu_length, phase, self.without_crc)))
    }

    /// Finds the marker phase of an FPDU. In the layout `rfc`, the CRC of the FPDU is correct.
    /// Therefore the length of this layout is also correct. Returns the layout with the marker
    /// phase.
    fn find_marker_phase(&self, half: &DirectionStream, rfc: Layout) -> Result<Layout, Pending> {
        if rfc.phase().is_none() || check_markers(half, &rfc)?.right || markers_recognised(half, &rfc)? {
            return Ok(rfc);
        }
        for phase in self.other_phases() {
            let other = Layout::new(rfc.start, rfc.ulpdu_length, Some(phase));
            if other.end == rfc.end
                && other.has_leading_marker() == rfc.has_leading_marker()
                && markers_recognised(half, &other)?
            {
                return Ok(other);
            }
        }
        Ok(rfc)
    }

    /// All marker phases except the negotiated phase. The first phase is the phase of a sender that
    /// ignores its CRC fields when it counts octets.
    fn other_phases(&self) -> impl Iterator<Item = u16> + use<> {
        let due = u64::from(self.phase.unwrap_or(0));
        let drifted = 4 * self.fpdus % INTERVAL;
        let shifts = std::iter::once(drifted)
            .filter(|shift| *shift > 0)
            .chain((4..INTERVAL).step_by(4).filter(move |shift| *shift != drifted));
        let has_markers = self.phase.is_some();
        shifts.filter(move |_| has_markers).map(move |shift| ((due + shift) % INTERVAL) as u16)
    }

    /// Returns whether the sender of the FPDU at `start` counts the CRC field in `ULPDU_Length`.
    /// Such an FPDU looks like an FPDU without a CRC field. This function therefore checks the next
    /// FPDU: if the next FPDU has a CRC field, the FPDU at `start` also has a CRC field. With
    /// markers, the result is always false, because a misplaced marker has the same effect.
    fn length_includes_crc(&self, half: &DirectionStream, start: u64, ulpdu_length: u16) -> Result<bool, Pending> {
        let is_possible = self.phase.is_none() && !self.without_crc && !self.peer_without_crc;
        let Some(real) = ulpdu_length.checked_sub(4).filter(|_| is_possible) else { return Ok(false) };
        let next = self.layout(start, real, None, false).end;
        let (Some(length), Some(true)) = header_at(half, next, None)? else { return Ok(false) };
        let with_field = self.layout(next, length, None, false).end;
        let without_field = self.layout(next, length, None, true).end;
        Ok(self.may_end_at(half, with_field, None)? && !self.may_end_at(half, without_field, None)?)
    }

    /// The layout of the FPDU at `start` with a known error of real senders; `None` if no such
    /// layout is proven. If the length of the FPDU is already confirmed, set `markers_only`. The
    /// function then tries only layouts with misplaced markers.
    fn layout_with_known_error(
        &mut self,
        half: &DirectionStream,
        start: u64,
        markers_only: bool,
    ) -> Result<Option<Layout>, Pending> {
        let crc_on = self.settings.crc == Some(true);
        let tries_without = !self.without_crc && !crc_on && !markers_only;
        for without_crc in std::iter::once(self.without_crc).chain(tries_without.then_some(true)) {
            let phases = self.phase.into_iter().chain(self.other_phases()).map(Some);
            for phase in phases.chain((!markers_only).then_some(None)) {
                let (Some(ulpdu_length), Some(true)) = header_at(half, start, phase)? else { continue };
                let layout = self.layout(start, ulpdu_length, phase, without_crc);
                let Some(octets) = half.octets(start, layout.end)? else { continue };
                if phase.is_some() && !markers_recognised(half, &layout)? {
                    continue;
                }
                // For a layout without markers, check the next header with the negotiated phase.
                let follows = phase.or(self.phase);
                // If the peer omits the CRC field, this sender probably also omits it. In this
                // case, a weaker proof of the end is sufficient.
                let as_peer = without_crc && self.peer_without_crc;
                let proven = if crc_on {
                    crc_good(octets)
                } else {
                    ends_for_certain(half, layout.end, follows)?
                        || as_peer && self.may_end_at(half, layout.end, follows)?
                };
                if proven {
                    self.without_crc = without_crc;
                    return Ok(Some(layout));
                }
            }
        }
        Ok(None)
    }

    /// Returns whether an FPDU can end at `position`. An FPDU can end at the end of the data,
    /// before missing octets, before a plausible header, or before an FPDU with a correct CRC.
    pub(super) fn may_end_at(
        &self,
        half: &DirectionStream,
        position: u64,
        phase: Option<u16>,
    ) -> Result<bool, Pending> {
        if half.is_end(position)? {
            return Ok(position == half.end());
        }
        if header_follows(half, position, phase)? != Some(false) {
            return Ok(true);
        }
        if self.settings.crc != Some(true) {
            return Ok(false);
        }
        let run = self.fpdu_run_up_to(half, position, phase.map(|p| vec![p]), 1);
        match run.more {
            Some(pending) if run.count == 0 => Err(pending),
            _ => Ok(run.count == 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::frame_number::FrameNumber;
    use crate::testing::{Marked, Wire, fpdu, reply_frame, send_of, startup_frame};
    use crate::unit::{Kind, Unit};
    use crate::{Dissector, Sink};

    #[derive(Default)]
    struct Frames(Vec<FrameNumber>);

    impl Sink for Frames {
        fn unit(&mut self, unit: &Unit<'_>) {
            if let Kind::Fpdu(_) = &unit.kind {
                self.0.push(unit.frame);
            }
        }
    }

    /// If CRC is not in use, the header of the next FPDU confirms where an FPDU ends. The end of a
    /// TCP segment also confirms this.
    #[test]
    fn without_crc_an_fpdu_that_ends_with_its_segment_does_not_wait() {
        let mut wire = Wire::started_as(&startup_frame(0, 1, &[]), &reply_frame(0, 1, &[]));
        let [one, two, three, four] = [1, 2, 3, 4].map(|msn| fpdu(&send_of(msn, 30)));
        wire.send(0, &one);
        wire.send(1, &one);
        wire.send(0, &two[..9]);
        wire.send(0, &two[9..]);
        // Two octets of the next header do not prove where the FPDU ends.
        wire.send(0, &[&three[..], &four[..2]].concat());
        wire.send(1, &two);
        wire.send(0, &four[2..]);
        let (mut fpdus, mut held_back) = (Frames::default(), Vec::new());
        wire.feed_to(Dissector::default(), &mut fpdus, |dissector| held_back.push(dissector.holds_back()));
        assert_eq!(held_back[4..], [false, false, true, false, true, true, false]);
        assert_eq!(fpdus.0, [5, 6, 8, 10, 9, 11].map(FrameNumber::from));
    }

    /// If a sender does not count its CRC fields for marker positions, some of its FPDUs have one
    /// marker too many or too few. If CRC is not in use, this can look like another fault: a length
    /// that includes the CRC field, or a missing CRC field.
    #[test]
    fn without_crc_drifting_markers_do_not_hide_fpdus() {
        for len in [38, 102, 230, 358, 486] {
            let mut wire = Wire::started_as(&startup_frame(0x80, 1, &[]), &reply_frame(0x80, 1, &[]));
            let mut sender = Marked { crc_counts: false, ..Marked::default() };
            (1..=60)
                .for_each(|msn| wire.send(0, &sender.fpdu_with(&send_of(msn, len), |_, [a, b, c, d]| [a, b, d, c])));
            let mut fpdus = Frames::default();
            wire.feed_to(Dissector::default(), &mut fpdus, |_| {});
            assert_eq!(fpdus.0.len(), 60, "ULPDUs of {len}");
        }
    }
}
