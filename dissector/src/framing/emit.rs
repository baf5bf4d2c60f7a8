//! Delivers units. If the octets of a unit are contiguous and have no markers, they are borrowed.
//! Otherwise they are copied.

use weft_core::crc::CRC_LEN;
use weft_core::wire::mpa::fpdu::Piece;

use super::choose::{ChosenLayout, check_markers, crc_good};
use super::hello::{HELLO_LEN, Hello};
use super::reader::Reader;
use super::unit_output::UnitOutput;
use crate::parse::{CrcStatus, Fpdu, Kind, MarkerStatus, marker_positions};
use crate::part::Part;
use crate::tcp::{DirectionStream, SegmentOctets};

impl Reader {
    /// Delivers the chosen FPDU.
    pub(super) fn emit_fpdu(&mut self, half: &DirectionStream, chosen: &ChosenLayout<'_>, out: &mut UnitOutput<'_>) {
        let layout = &chosen.layout;
        self.fpdus += 1;
        let stop = layout.end.min(half.end());
        let captured = chosen.captured;
        let marker = |(position, _): (u64, u16)| {
            half.octets(position, position + 4).ok().flatten().and_then(|octets| octets.first_chunk::<4>().copied())
        };
        let markers: Vec<_> = marker_positions(layout).map(marker).collect();
        let has_right_markers = !markers.is_empty() && check_markers(half, layout).is_ok_and(|markers| markers.right);
        if self.guesses_phase && chosen.crc_good == Some(true) && has_right_markers {
            (self.phase, self.guesses_phase) = (layout.phase(), false);
        }
        let marker_status = if self.guesses_phase {
            MarkerStatus::Good
        } else if layout.phase() != self.phase {
            MarkerStatus::Misplaced
        } else if self.phase.is_none() {
            MarkerStatus::None
        } else if check_markers(half, layout).is_ok_and(|markers| markers.right) {
            MarkerStatus::Good
        } else {
            MarkerStatus::BadValue
        };
        let has_field = layout.end > layout.crc;
        let crc_status = if !has_field {
            CrcStatus::Absent
        } else if self.settings.crc != Some(true) {
            CrcStatus::Unchecked
        } else {
            match captured {
                None => CrcStatus::Truncated,
                Some(octets) if chosen.crc_good.unwrap_or_else(|| crc_good(octets)) => CrcStatus::Good,
                Some(_) => CrcStatus::Bad,
            }
        };
        self.guesses_end = self.guesses_markers() && captured.is_none();
        let covers_interval = layout.end - layout.start >= weft_core::marker::INTERVAL;
        self.guesses_no_markers &= !(crc_status == CrcStatus::Good && layout.phase().is_none() && covers_interval);
        let field = match captured {
            Some(octets) => octets.last_chunk::<CRC_LEN>(),
            None => half.octets(layout.crc, layout.crc + CRC_LEN as u64).ok().flatten().and_then(<[u8]>::first_chunk),
        };
        let body = match captured {
            Some(octets) if layout.phase().is_none() => Part::complete(&octets[..(layout.crc - layout.start) as usize]),
            _ => {
                let bodies = layout.pieces().filter_map(|piece| match piece {
                    Piece::Body(range) => Some(range),
                    Piece::Marker { .. } => None,
                });
                self.scratch.part(half, bodies)
            }
        };
        let fpdu = Fpdu {
            layout: *layout,
            body,
            markers: &markers,
            marker_status,
            crc: field.filter(|_| has_field).copied(),
            crc_status,
        };
        let frame = out.arrived.map_or_else(|| half.frame_of(layout.start, stop), SegmentOctets::frame);
        // If `is_damaged` is set, the capture has damaged octets. The receiver received correct
        // octets, but the capture does not have the correct octets.
        let is_damaged = crc_status == CrcStatus::Bad && half.is_damaged(layout.start, stop);
        out.unit(half, layout.start, frame, captured.is_none() || is_damaged, Kind::Fpdu(fpdu));
        if self.sdp.is_some() || self.as_sdp {
            let order = self.sdp.map(|hello| hello.order);
            self.collector.segment(half, &fpdu, order, layout.start, frame, out);
        }
    }

    /// Delivers the SDP Hello at the start of the direction as a separate unit.
    pub(super) fn emit_hello(&mut self, half: &mut DirectionStream, hello: Hello, out: &mut UnitOutput<'_>) {
        let (start, end) = (half.consumed(), half.consumed() + HELLO_LEN);
        let part = self.scratch.part(half, std::iter::once(start..end));
        let frame = half.frame_of(start, end);
        out.unit(half, start, frame, !part.is_complete(), Kind::Sdp(hello.carrier, hello.order, part));
        half.consume(end);
    }
}
