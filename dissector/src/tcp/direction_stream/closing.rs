//! Handles the FIN of a direction. If octets at the end of the direction are missing, only the FIN
//! can show this.

use crate::frame_number::FrameNumber;
use crate::ip::Segment;

use super::super::checksum::Checksum;
use super::super::sequence_number::FAR;
use super::fin::FinSegment;
use super::{DirectionStream, ORIGIN};

impl DirectionStream {
    /// Records the first FIN that was not damaged in transit. `seq` is the sequence number of the
    /// FIN itself.
    pub(super) fn record_fin(&mut self, segment: &Segment<'_>, seq: u32) {
        let is_damaged = self.has_right_checksum && Checksum::of(segment) == Checksum::Wrong;
        if !segment.rst && !is_damaged {
            self.fin_segment.get_or_insert(FinSegment {
                seq,
                frame: segment.frame,
                time: segment.time,
                has_hole: false,
            });
        }
    }

    /// At the end of the capture, extends the direction up to the FIN, because the sender sent all
    /// octets before the FIN. Ignores a FIN that is outside every possible window.
    pub(super) fn extend_to_fin(&mut self) {
        if let Some(position) = self.fin_position()
            && let Some(segment) = &mut self.fin_segment
            && position > self.end
            && position - self.end <= u64::from(FAR)
        {
            self.end = position;
            segment.has_hole = true;
        }
    }

    /// Returns whether the FIN shows that octets were sent in segments that weft has not read yet.
    pub(crate) fn awaits_octets_before_fin(&self) -> bool {
        !self.finished && self.fin_position().is_some_and(|position| position > self.end)
    }

    /// Returns whether only the FIN shows that the octets before `position` were sent.
    pub(crate) fn is_hole_before_fin(&self, position: u64) -> bool {
        self.fin_segment.is_some_and(|segment| segment.has_hole) && self.fin_position() == Some(position)
    }

    /// Number and capture time of the frame after a gap that ends at `position`. If there is no
    /// such frame, the number and the time are zero.
    pub(crate) fn frame_after(&self, position: u64) -> (FrameNumber, u64) {
        let (frame, time) = self.frame_of(position, position + 1);
        match self.fin_segment {
            Some(segment) if frame == FrameNumber::NONE && self.fin_position() == Some(position) => {
                (segment.frame, segment.time)
            }
            _ => (frame, time),
        }
    }

    fn fin_position(&self) -> Option<u64> {
        let (segment, base) = (self.fin_segment?, self.base.filter(|_| self.seen)?);
        Some(self.position(segment.seq, base)).filter(|position| *position >= ORIGIN)
    }
}

#[cfg(test)]
mod tests {
    use crate::frame_number::FrameNumber;
    use crate::output::text::summary;
    use crate::testing::{Wire, exchange, fpdu, hex};
    use crate::unit::Unit;
    use crate::{Dissector, Sink};

    const SEND: &str = "4143 00000000 00000000 00000001 00000000 01020304";

    /// Returns the frame number and the summary of each unit.
    fn lines(wire: &Wire) -> Vec<(FrameNumber, String)> {
        struct Lines(Vec<(FrameNumber, String)>);
        impl Sink for Lines {
            fn unit(&mut self, unit: &Unit<'_>) {
                self.0.push((unit.frame, summary(unit)));
            }
        }
        let mut lines = Lines(Vec::new());
        wire.feed(&mut lines);
        lines.0
    }

    fn has_gap(wire: &Wire) -> bool {
        lines(wire).iter().any(|(_, line)| line.starts_with("not captured"))
    }

    /// The FPDU that was not captured has 28 octets: the length (2), the DDP header (18), the
    /// payload (4) and the CRC (4).
    #[test]
    fn octets_missing_before_a_fin_are_a_gap_at_its_frame() {
        let mut wire = exchange(&[(0, SEND)]);
        wire.lose(0, &fpdu(&hex(SEND)));
        wire.fin(0);
        // The first five frames are SYN, SYN-ACK, Request, Reply and Send. The missing segment has
        // no frame.
        let gap = |frame: u64| Some((frame.into(), "not captured  28 bytes".to_owned()));
        assert_eq!(lines(&wire).pop(), gap(6));
        // The result is the same without the SYNs.
        let late = wire.changed(|frames| frames[2..].to_vec());
        assert_eq!(lines(&late).pop(), gap(4));
    }

    #[test]
    fn a_fin_right_after_the_octets_shows_no_gap() {
        let mut wire = exchange(&[(0, SEND)]);
        wire.fin(0);
        wire.fin(1);
        assert!(!has_gap(&wire));
    }

    /// The dissector holds back the frame of the FIN as long as a segment can fill the gap.
    #[test]
    fn a_hole_before_a_fin_holds_its_frame_back() {
        struct Nothing;
        impl Sink for Nothing {
            fn unit(&mut self, _: &Unit<'_>) {}
        }
        let mut wire = exchange(&[(0, SEND)]);
        wire.lose(0, &fpdu(&hex(SEND)));
        wire.fin(0);
        let mut held_back = Vec::new();
        wire.feed_to(Dissector::default(), &mut Nothing, |dissector| held_back.push(dissector.holds_back()));
        assert_eq!(held_back[4..], [false, true]);
    }

    /// All octets before the gap were captured.
    #[test]
    fn the_gap_is_not_part_of_streaming_data() {
        let mut wire = Wire::connected();
        wire.send(0, b"GET / HTTP/1.1\r\n");
        wire.lose(0, b"\r\n");
        wire.fin(0);
        let expected = [(3_u64, "streaming data  16 bytes"), (4, "not captured  2 bytes")];
        assert_eq!(lines(&wire), expected.map(|(frame, line)| (frame.into(), line.to_owned())));
    }

    /// The octets before the FIN are captured only after the FIN. So no octets are missing.
    #[test]
    fn octets_captured_after_the_fin_fill_the_hole() {
        let mut wire = exchange(&[(0, SEND)]);
        wire.fin(0);
        assert!(!has_gap(&wire.changed(|mut frames| {
            frames.swap(4, 5);
            frames
        })));
    }

    /// A FIN of another connection with the same ports can have any sequence number.
    #[test]
    fn a_fin_outside_every_window_proves_nothing() {
        let mut wire = exchange(&[(0, SEND)]);
        wire.fin_at(0, 0x6000_0000);
        assert!(!has_gap(&wire));
    }
}
