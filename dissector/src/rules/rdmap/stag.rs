//! Checks how endpoints choose STags, as far as their Read Requests show the choice. Also checks
//! that endpoints do not use invalidated STags.

use weft_core::requirement;

use crate::direction::Direction;
use crate::follow::{ConnectionState, Remark, RemarkKind};
use crate::frame_number::FrameNumber;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static CHOICE: Rule = Check::End(choice).covers(requirements!["RDMAP-8.1.1-8", "RDMAP-8.1.1-9"]);

pub(super) static INVALIDATED: Rule = Check::Remark(invalidated).covers(requirements!["RDMAP-1.2-2"]);

/// Minimum number of different STags that are needed for a finding about their choice.
const ENOUGH: usize = 8;
/// If the difference between the lowest and the highest STag is less than this factor times the
/// number of STags, the STags are not sparse.
const DENSE: u32 = 16;

fn choice(state: &ConnectionState, findings: &mut Findings<'_>) {
    for owner in Direction::BOTH {
        let stags = state.traffic.stags.advertised(owner);
        let (Some((first, _)), Some((last, frame))) = (stags.first(), stags.last()) else { continue };
        if stags.len() < ENOUGH {
            continue;
        }
        let step = |pair: &[(u32, FrameNumber)]| pair[1].0.wrapping_sub(pair[0].0);
        let even = stags.windows(2).all(|pair| step(pair) == step(&stags[..2]));
        let count = stags.len();
        if even {
            let found = format!("{count} STags at equal distances of {:#x}", step(&stags[..2]));
            let expected = "STags that are hard to predict";
            findings.report_in_frame(requirement!("RDMAP-8.1.1-8"), owner, *frame, expected, found);
        }
        let (low, high) =
            stags.iter().fold((*first, *last), |(low, high), (stag, _)| (low.min(*stag), high.max(*stag)));
        // The key is the low octet of an STag, and the ULP chooses it. If the STags differ only in
        // their keys, and the keys are not in order, all STags belong to one buffer that is
        // registered repeatedly. So the STags need not be sparse.
        let ordered = stags.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let one_index = stags.iter().all(|(stag, _)| stag >> 8 == first >> 8);
        if one_index && !ordered {
            continue;
        }
        if u64::from(high - low) < u64::from(DENSE) * count as u64 {
            let found = format!("{count} STags between {low:#010x} and {high:#010x}");
            let expected = "STags that are spread sparsely over the number space";
            findings.report_in_frame(requirement!("RDMAP-8.1.1-9"), owner, *frame, expected, found);
        }
    }
}

fn invalidated(state: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    let RemarkKind::Invalidated { stag, by } = remark.kind else { return };
    // If the order of the units is not certain, the monitor possibly does not know a message that
    // made the STag valid again.
    if !state.is_in_send_order() {
        return;
    }
    // Without CRC, the monitor parses an FPDU only when the next FPDU has arrived. It is possible
    // that the owner of the STag has sent an FPDU that is not parsed yet.
    if state.mpa.tcp[remark.direction.peer()].latest_octets.is_some_and(|latest| latest > by) {
        return;
    }
    let found = format!("STag {stag:#010x}, invalidated in frame {by} (its owner has sent nothing since then)");
    // The finding is only a warning, because the endpoints may have made the STag valid again by an
    // agreement outside this connection.
    findings.as_behaviour().report_remark(requirements!["RDMAP-1.2-2"], unit, remark, "an STag that is valid", &found);
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, proves};

    fn reads(stags: impl Iterator<Item = u32>) -> Wire {
        let mut wire = Wire::started();
        for (msn, stag) in (1..).zip(stags) {
            wire.send_ulpdu(
                0,
                &format!(
                    "4141 00000000 00000001 {msn:08x} 00000000
                    {stag:08x} 0000000000001000 00000004 00000200 0000000000002000"
                ),
            );
        }
        wire
    }

    const INVALIDATES_7: &str = "4144 00000007 00000000 00000002 00000000";
    const WRITES_TO_7: &str = "c140 00000007 0000000000000000 01020304";

    #[test]
    fn an_stag_that_was_invalidated_is_not_used() {
        let after = |between: &[(usize, &str)], last: &str| {
            let mut wire = Wire::started();
            wire.send_ulpdu(0, "4143 00000000 00000000 00000001 00000000 61");
            wire.send_ulpdu(1, "4143 00000000 00000000 00000001 00000000 61");
            wire.send_ulpdu(0, INVALIDATES_7);
            for (direction, octets) in between {
                wire.send_ulpdu(*direction, octets);
            }
            wire.send_ulpdu(0, last);
            wire
        };
        let other = WRITES_TO_7.replace("07", "08");
        proves(requirement!("RDMAP-1.2-2"), &after(&[], WRITES_TO_7), &after(&[], &other));
        // It is possible that a message of the owner reported that the STag is valid again.
        let sent = (1, "4143 00000000 00000000 00000002 00000000 61");
        proves(requirement!("RDMAP-1.2-2"), &after(&[(0, &other)], WRITES_TO_7), &after(&[sent], WRITES_TO_7));
        let reads =
            "4141 00000000 00000001 00000001 00000000 00000009 0000000000000000 00000004 00000007 0000000000002000";
        proves(requirement!("RDMAP-1.2-2"), &after(&[], reads), &after(&[], &reads.replace("00000007", "00000006")));
        // A zero-length Write does not access a buffer.
        assert_eq!(after(&[], "c140 00000007 0000000000000000").findings(), []);
    }

    /// Without CRC, the monitor accepts an FPDU only if the FPDU ends at the end of a TCP segment,
    /// or if another FPDU follows.
    #[test]
    fn an_stag_is_advertised_again_without_crc() {
        let flags = |mut frame: Vec<u8>| {
            frame[16] = 0;
            frame
        };
        let mut wire = Wire::started_as(&flags(testing::request()), &flags(testing::reply()));
        wire.send_ulpdu(0, "4143 00000000 00000000 00000001 00000000 61");
        wire.send_ulpdu(1, "4143 00000000 00000000 00000001 00000000 61");
        wire.send_ulpdu(0, INVALIDATES_7);
        wire.send_ulpdu(1, "4143 00000000 00000000 00000002 00000000 07");
        wire.send_ulpdu(0, WRITES_TO_7);
        wire.send_ulpdu(0, "4143 00000000 00000000 00000003 00000000 61");
        assert_eq!(wire.errors(), []);
    }

    #[test]
    fn stags_are_hard_to_guess() {
        let spread = reads((1..=8u32).map(|n| n.wrapping_mul(n).wrapping_mul(0x1357_9bdf)));
        proves(requirement!("RDMAP-8.1.1-8"), &reads((1..=8).map(|n| n << 16)), &spread);
        let close = [5, 9, 12, 33, 71, 72, 99, 100];
        proves(requirement!("RDMAP-8.1.1-9"), &reads(close.into_iter()), &spread);
        let indices = [0x105, 0x109, 0x102, 0x133, 0x151, 0x0fc, 0x110, 0x111];
        proves(requirement!("RDMAP-8.1.1-9"), &reads(indices.into_iter()), &spread);
        // These STags differ only in their keys.
        assert_eq!(reads([5, 9, 2, 33, 71, 12, 99, 100].into_iter()).findings(), []);
        // Repeated use of one STag does not show how the endpoint chooses STags.
        assert_eq!(reads([7; 20].into_iter()).findings(), []);
    }
}
