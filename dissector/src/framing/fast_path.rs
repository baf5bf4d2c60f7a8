//! Reads FPDUs directly from their TCP segment, and does not store the octets. This fast path reads
//! most FPDUs.
//!
//! An FPDU cannot use the fast path if it has markers, if its CRC is bad or not in use, or if it is
//! in several segments. The stream stores the octets of such an FPDU, and [`choose`](super::choose)
//! determines its layout.

use weft_core::wire::mpa::Layout;

use super::choose::{ChosenLayout, crc_good};
use super::reader::{Reader, State};
use super::unit_output::UnitOutput;
use crate::tcp::{DirectionStream, SegmentOctets};

impl Reader {
    /// Reads FPDUs. Stops at the first FPDU that is incomplete in `arrived` or has no correct CRC.
    pub(crate) fn read_fast(
        &mut self,
        half: &mut DirectionStream,
        arrived: &SegmentOctets<'_>,
        out: &mut UnitOutput<'_>,
    ) {
        if self.state != State::InSync || self.settings.crc != Some(true) || self.phase.is_some() {
            return;
        }
        if !half.continues_with(arrived) {
            return;
        }
        while let Some(chosen) = complete_fpdu(arrived, half.consumed()) {
            self.emit_fpdu(half, &chosen, out);
            half.consume_unstored(chosen.layout.end);
        }
    }
}

/// The FPDU at `start`; `None` if it is incomplete in `arrived` or its CRC is wrong.
fn complete_fpdu<'a>(arrived: &SegmentOctets<'a>, start: u64) -> Option<ChosenLayout<'a>> {
    let octets = arrived.from(start);
    let layout = Layout::new(start, u16::from_be_bytes(*octets.first_chunk()?), None);
    let octets = octets.get(..usize::try_from(layout.end - start).ok()?)?;
    crc_good(octets).then_some(ChosenLayout { layout, captured: Some(octets), crc_good: Some(true) })
}

#[cfg(test)]
mod tests {
    use crate::frame_number::FrameNumber;
    use crate::testing::{Wire, fpdu, send_of};
    use crate::unit::{CrcStatus, Kind, Location, Unit};
    use crate::{Dissector, Sink};

    /// The properties of an FPDU that the tests compare: frame, CRC status, body, stream octets and
    /// body location.
    type FpduSummary = (FrameNumber, CrcStatus, Vec<u8>, Option<Vec<u8>>, Vec<Location>);

    #[derive(Default)]
    struct Fpdus(Vec<FpduSummary>);

    impl Sink for Fpdus {
        fn unit(&mut self, unit: &Unit<'_>) {
            let Kind::Fpdu(fpdu) = &unit.kind else { return };
            let body = fpdu.body.all().unwrap().to_vec();
            let stream_octets = unit.stream_octets(fpdu.layout.start, fpdu.layout.end).map(<[u8]>::to_vec);
            self.0.push((unit.frame, fpdu.crc_status, body, stream_octets, unit.locate(0..fpdu.body.len())));
        }
    }

    /// Twenty FPDUs of 36 octets in segments of `cut` octets. The first FPDU and each `bad`th FPDU
    /// after that have a bad CRC.
    fn in_segments_of(cut: usize, bad: usize) -> (Vec<Vec<u8>>, Vec<FpduSummary>, Vec<bool>) {
        let mut fpdus: Vec<Vec<u8>> = (1..=20).map(|msn| fpdu(&send_of(msn, 30))).collect();
        fpdus.iter_mut().step_by(bad).for_each(|octets| octets[30] ^= 1);
        let mut wire = Wire::started();
        fpdus.concat().chunks(cut).for_each(|piece| wire.send(0, piece));
        let (mut received, mut held_back) = (Fpdus::default(), Vec::new());
        wire.feed_to(Dissector::default(), &mut received, |dissector| held_back.push(dissector.holds_back()));
        (fpdus, received.0, held_back)
    }

    #[test]
    fn fpdus_are_the_same_however_they_are_cut() {
        for cut in [36, 72, 90, 35, 7, 1000] {
            let (fpdus, received, _) = in_segments_of(cut, 5);
            assert_eq!(received.len(), fpdus.len(), "in segments of {cut}");
            for (n, ((frame, crc, body, stream_octets, located), octets)) in
                received.into_iter().zip(&fpdus).enumerate()
            {
                // The first four frames are SYN, SYN-ACK, Request and Reply.
                assert_eq!(frame, FrameNumber::from(5 + ((n * 36 + 35) / cut) as u64));
                let (first, last) = (n * 36, n * 36 + 31);
                assert_eq!(crc, if n % 5 == 0 { CrcStatus::Bad } else { CrcStatus::Good });
                assert_eq!((&body[..], stream_octets.as_ref()), (&octets[..32], Some(octets)));
                // Ethernet, IPv4 and TCP headers have 54 octets.
                let pieces = (first / cut..=last / cut).map(|segment| {
                    let (from, to) = (first.max(segment * cut), (last + 1).min((segment + 1) * cut));
                    let offset = u32::try_from(54 + from - segment * cut).unwrap();
                    Location { frame: (5 + segment as u64).into(), offset: Some(offset), len: (to - from) as u64 }
                });
                assert_eq!(located, pieces.collect::<Vec<_>>(), "FPDU {n} in segments of {cut}");
            }
        }
    }

    #[test]
    fn keeps_octets_of_incomplete_fpdus() {
        // The last 18 of the 90 octets are half an FPDU.
        assert_eq!(in_segments_of(90, 20).2[4..8], [true, false, true, false]);
        assert_eq!(in_segments_of(72, 20).2[4..], [false; 10]);
    }
}
