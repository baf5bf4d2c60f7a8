//! Checks that FPDUs are contiguous. If octets in place of the next FPDU are not an FPDU, the
//! findings explain the cause, as far as it is known.

use weft_core::requirement;

use super::switch::continues_frame;
use crate::follow::{AfterStartup, ConnectionState};
use crate::parse::{Kind, STREAMING_HEAD, SenderError, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static FRAMING_IS_INTACT: Rule = Check::Other(framing_is_intact).covers(requirements![
    "MPA-4.1-1",
    "MPA-4.1-2",
    "MPA-4.1-5",
    "MPA-2-5",
    "MPA-4.4-13",
    "MPA-4.1-6"
]);

/// Reports octets that are not an FPDU, if no earlier octets are missing. Only the first such
/// octets of a direction are reported.
fn framing_is_intact(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Kind::Unparsed { len } = &unit.kind else { return };
    let direction = unit.direction();
    let Some(sender_error) = unit.sender_error else { return };
    let stream = &state.mpa.streams[direction];
    // The connection's state already includes this unit. So `after_startup` is this unit if the
    // unit comes directly after the start-up frame. All other octets that are not an FPDU are
    // reported only if an FPDU precedes them.
    let first = stream.after_startup == Some(AfterStartup::Unparsed { frame: unit.frame, len: *len });
    if !(first || stream.fpdus > 0) {
        return;
    }
    let octets = unit.locate_first(0..STREAMING_HEAD);
    let mut found =
        |id, expected: &str, found: String| findings.report_in_frame(id, direction, octets, expected, found);
    match sender_error {
        SenderError::UnrequestedMarker => {}
        SenderError::LengthSwapped => {
            let expected = "ULPDU_Length in network byte order";
            found(requirement!("MPA-4.1-1"), expected, "ULPDU_Length in little-endian order".to_owned());
        }
        SenderError::LengthCounts(more) => found(
            requirement!("MPA-4.1-2"),
            "a ULPDU_Length that counts only the ULPDU",
            format!("a ULPDU_Length that exceeds the ULPDU by {more} bytes"),
        ),
        // If it is unknown whether the direction has markers, four superfluous bytes of PAD can be
        // a marker.
        SenderError::Pad(4..) if state.connection.peer_startup(direction).is_none() => {}
        SenderError::Pad(pad) => {
            let expected = "PAD up to a multiple of four bytes";
            found(requirement!("MPA-4.1-5"), expected, format!("{pad} PAD bytes"));
            let expected = "1 to 3 PAD bytes, and only if needed for a multiple of four bytes";
            found(requirement!("MPA-2-5"), expected, format!("{pad} PAD bytes"));
        }
        SenderError::NoCrcField => {
            let expected = "a CRC field at the end of each FPDU";
            found(requirement!("MPA-4.4-13"), expected, "the next FPDU in place of the CRC field".to_owned());
            found(requirement!("MPA-4.1-6"), "CRC32c of the FPDU", "no CRC field".to_owned());
        }
        // The octets are a part of the start-up frame, not of the FPDUs.
        SenderError::Unexplained if continues_frame(state, unit) => {}
        SenderError::Unexplained => {
            let expected = "contiguous FPDUs, each with ULPDU_Length, ULPDU, PAD and CRC";
            found(requirement!("MPA-4.1-1"), expected, format!("{len} bytes that are not an FPDU"));
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, fpdu, proves, with_crc};

    const SEND: &str = "4143 00000000 00000000 00000001 00000000 2a";
    const NEXT: &str = "4143 00000000 00000000 00000002 00000000 2b2c2d2e";

    /// Plays a stream with `octets`, and with valid FPDUs after them.
    fn then_good(octets: &[u8]) -> Wire {
        let mut wire = Wire::started();
        wire.send(0, octets);
        wire.send(0, &fpdu(&testing::hex(NEXT)));
        wire.send(0, &fpdu(&testing::hex(NEXT)));
        wire
    }

    /// Without CRC, only the next FPDUs show whether a sender counts the CRC field in ULPDU_Length,
    /// or omits the field.
    #[test]
    fn without_crc_a_length_that_counts_the_field_is_found() {
        let sent = |first: &[u8], next: &[u8]| {
            let mut wire = Wire::started_as(&testing::startup_frame(0, 1, &[]), &testing::reply_frame(0, 1, &[]));
            wire.send(0, &fpdu(&testing::hex("4143 00000000 00000000 00000001 00000000 01020304 05060708")));
            wire.send(0, first);
            wire.send(0, next);
            wire
        };
        let second = fpdu(&testing::hex("4143 00000000 00000000 00000002 00000000 01020304 05060708"));
        let third = fpdu(&testing::hex("4143 00000000 00000000 00000003 00000000 01020304 05060708"));
        let mut counts = second.clone();
        counts[1] += 4;
        let wrong = sent(&counts, &third);
        proves(requirement!("MPA-4.1-2"), &wrong, &sent(&second, &third));
        let field = |wire: &Wire| wire.findings().iter().any(|found| found.requirement == requirement!("MPA-4.4-13"));
        assert!(!field(&wrong));
        // This sender omits all CRC fields.
        let bare = sent(&second[..second.len() - 4], &third[..third.len() - 4]);
        assert!(field(&bare));
        assert!(bare.findings().iter().all(|found| found.requirement != requirement!("MPA-4.1-2")));
    }

    fn good() -> Wire {
        then_good(&fpdu(&testing::hex(SEND)))
    }

    #[test]
    fn octets_that_are_not_an_fpdu_are_found() {
        let stray = then_good(&[fpdu(&testing::hex(SEND)), vec![0xab; 12]].concat());
        proves(requirement!("MPA-4.1-1"), &stray, &good());
        // These octets are a part of the Request.
        let mut long_request = Wire::connected();
        long_request.send(0, &[testing::request(), vec![8; 4]].concat());
        long_request.send(1, &testing::reply());
        long_request.send(0, &fpdu(&testing::hex(SEND)));
        long_request.send(0, &fpdu(&testing::hex(NEXT)));
        proves(requirement!("MPA-4.1-1"), &stray, &long_request);
        let swapped = with_crc(testing::hex("1300 4143 00000000 00000000 00000001 00000000 2a 000000"));
        let many = |first: &[u8]| {
            let mut wire = then_good(first);
            // Send more octets than the swapped length announces when it is read in network byte
            // order.
            (0..200).for_each(|_| wire.send(0, &fpdu(&testing::send_of(3, 34))));
            wire
        };
        proves(requirement!("MPA-4.1-1"), &many(&swapped), &many(&fpdu(&testing::hex(SEND))));
    }

    /// The last octets before the FIN are too few for an FPDU.
    #[test]
    fn up_to_three_octets_before_the_fin_are_found() {
        let ending = |rest: &[u8]| {
            let mut wire = good();
            if !rest.is_empty() {
                wire.send(0, rest);
            }
            wire.fin(0);
            wire.fin(1);
            wire
        };
        for len in 1..=3 {
            proves(requirement!("MPA-4.1-1"), &ending(&[0xff; 3][..len]), &ending(&[]));
        }
        // Without the FIN, the rest of an FPDU can come after the end of the capture.
        let mut open = good();
        open.send(0, &[0; 2]);
        assert!(open.findings().iter().all(|found| found.requirement != requirement!("MPA-4.1-1")));
    }

    #[test]
    fn a_length_that_counts_itself_and_the_crc_is_found() {
        let counted = with_crc(testing::hex("0019 4143 00000000 00000000 00000001 00000000 2a 000000"));
        proves(requirement!("MPA-4.1-2"), &then_good(&counted), &good());
    }

    #[test]
    fn a_pad_of_another_length_is_found() {
        let none = with_crc(testing::hex("0013 4143 00000000 00000000 00000001 00000000 2a"));
        let four_too_many = with_crc(testing::hex("0014 4143 00000000 00000000 00000001 00000000 2a2b 0000 00000000"));
        proves(requirement!("MPA-4.1-5"), &then_good(&none), &good());
        proves(requirement!("MPA-2-5"), &then_good(&four_too_many), &good());
    }

    #[test]
    fn a_lost_segment_is_no_breach() {
        let mut wire = Wire::started();
        wire.send(0, &fpdu(&testing::hex(SEND)));
        wire.lose(0, &fpdu(&testing::hex(SEND)));
        wire.send(0, &[0xab; 12]);
        assert_eq!(wire.errors(), []);
    }
}
