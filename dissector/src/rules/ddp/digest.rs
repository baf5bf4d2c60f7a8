//! Checks that the layer below DDP uses a digest, as RFC 5041 section 3 requires.

use weft_core::requirement;

use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static DIGEST: Rule = Check::End(digest).covers(requirements!["DDP-3-7"]);

/// Reports each direction that does not use CRC, with one finding. The finding is a note, because
/// MPA allows peers to turn CRC off, but DDP always requires a digest.
fn digest(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (direction, side) in Direction::BOTH.into_iter().zip(&state.traffic.directions) {
        let Some((frame, has_field)) = side.unchecked_crc else { continue };
        if has_field && !state.traffic.crc_is_off() {
            // At least one start-up frame was not captured, so it is unknown whether CRC is in use.
            continue;
        }
        let expected = "for each DDP segment, a digest at least as strong as CRC32c";
        let found = if has_field { "CRC switched off by both sides" } else { "FPDUs without CRC field" };
        findings.as_note().report_in_frame(requirement!("DDP-3-7"), direction, frame, expected, found.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, proves};

    fn with_flags(flags: u8) -> Wire {
        let mut wire = Wire::connected();
        for (direction, mut frame) in [testing::request(), testing::reply()].into_iter().enumerate() {
            frame[16] = flags;
            wire.send(direction, &frame);
        }
        wire.send_ulpdu(0, "4143 00000000 00000000 00000001 00000000 2a");
        wire
    }

    #[test]
    fn notes_segments_without_a_digest() {
        proves(requirement!("DDP-3-7"), &with_flags(0), &with_flags(0x40));
    }
}
