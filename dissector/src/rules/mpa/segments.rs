//! Checks how TCP carries FPDUs. Each TCP segment should begin with an FPDU and contain only
//! complete FPDUs. Each direction should end with a complete FPDU. TCP itself should follow its
//! specification.
//!
//! Appendix A of RFC 5044 is informative, so its findings are notes. Section 5.1 allows TCP to
//! split an FPDU between two segments if small FPDUs fill the first segment, or if a congestion or
//! receive window limits the segment. So a few split FPDUs prove nothing. There is a finding about
//! section 5.1 only if more than half of the FPDUs of a direction were split without such a cause.
//! A split counts only if the segment was not full, and if the next segment followed before the
//! peer acknowledged more octets.

use weft_core::requirement;

use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::frame_number::FrameNumber;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static COMPLETE_FPDUS: Rule =
    Check::End(complete_fpdus).covers(requirements!["MPA-5.1-4", "MPA-5.1-6", "MPA-A.1-1"]);

pub(super) static DIRECTION_ENDS_WITH_FPDU: Rule =
    Check::End(direction_ends_with_fpdu).covers(requirements!["MPA-4.1-1", "MPA-7.2-1", "MPA-A.1-3"]);

pub(super) static TCP_RULES: Rule =
    Check::End(tcp_rules).covers(requirements!["MPA-7.1.5-3", "MPA-A.1-4", "MPA-A.3-3", "MPA-A.5.1-1"]);

/// Minimum number of FPDUs of a direction that are needed for a finding about its segmentation.
const ENOUGH: u64 = 8;

fn complete_fpdus(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (direction, stream) in Direction::BOTH.into_iter().zip(&state.mpa.streams) {
        let expected = "TCP segments with complete FPDUs only";
        if let Some(frame) = stream.split_after_fpdu_frame {
            let found = || {
                format!(
                    "{} of {} FPDUs begin inside a segment and continue in the next segment",
                    stream.split_after_fpdu, stream.fitting_fpdus
                )
            };
            findings.as_note().report_in_frame(requirement!("MPA-A.1-1"), direction, frame, expected, found());
            if stream.fitting_fpdus >= ENOUGH
                && 2 * stream.split_after_fpdu.min(stream.split_by_choice) > stream.fitting_fpdus
            {
                findings.as_behaviour().report_in_frame(requirement!("MPA-5.1-6"), direction, frame, expected, found());
            }
        }
        if let Some(frame) = stream.split_at_start_frame {
            let found = format!(
                "{} of {} FPDUs begin at the start of a segment and continue in the next segment",
                stream.split_at_start, stream.fitting_fpdus
            );
            findings.as_note().report_in_frame(requirement!("MPA-A.1-1"), direction, frame, expected, found);
        }
        if stream.fitting_fpdus < ENOUGH
            || 4 * stream.complete >= stream.fitting_fpdus
            || 2 * stream.split_by_choice <= stream.fitting_fpdus
        {
            continue;
        }
        if let Some(frame) = stream.first {
            let found =
                format!("only {} of {} FPDUs are complete in one segment", stream.complete, stream.fitting_fpdus);
            let expected = "TCP segments that begin at FPDU boundaries";
            findings.report_in_frame(requirement!("MPA-5.1-4"), direction, frame, expected, found);
        }
    }
}

/// Reports a direction whose FIN comes in the middle of an FPDU.
fn direction_ends_with_fpdu(state: &ConnectionState, findings: &mut Findings<'_>) {
    for (direction, stream) in Direction::BOTH.into_iter().zip(&state.mpa.streams) {
        let (Some(octets), Some(fin)) = (stream.cut_fpdu, state.connection.fin[direction]) else { continue };
        if state.mpa.tcp[direction].lacks_last_octets() {
            continue;
        }
        let found = || format!("an FPDU without its last bytes, then FIN in frame {fin}");
        let expected = "a FIN after the last byte of an FPDU";
        findings.report_in_frame(requirement!("MPA-4.1-1"), direction, octets, "complete FPDUs up to the FIN", found());
        findings.as_behaviour().report_in_frame(requirement!("MPA-7.2-1"), direction, octets, expected, found());
        let expected = "all bytes of each ULPDU that the sender starts";
        findings.as_note().report_in_frame(requirement!("MPA-A.1-3"), direction, octets, expected, found());
    }
}

fn tcp_rules(state: &ConnectionState, findings: &mut Findings<'_>) {
    if state.connection.startup.iter().all(Option::is_none) {
        // It is not certain that the connection carries MPA.
        return;
    }
    for (direction, tcp) in Direction::BOTH.into_iter().zip(&state.mpa.tcp) {
        if let Some(frame) = tcp.after_fin_frame {
            let found = "bytes after the FIN".to_owned();
            findings.report_in_frame(requirement!("MPA-7.1.5-3"), direction, frame, "no bytes after a FIN", found);
        }
        let mut notes = findings.as_note();
        let mut note = |id, frame: Option<FrameNumber>, expected: &str, found: &str| {
            if let Some(frame) = frame {
                notes.report_in_frame(id, direction, frame, expected, found.to_owned());
            }
        };
        let expected = "retransmissions with the same segment boundaries as the first transmission";
        note(requirement!("MPA-A.1-4"), tcp.resegmented_frame, expected, "a retransmission with other boundaries");
        note(requirement!("MPA-A.3-3"), tcp.no_sack_frame, "SACK-permitted in the SYN", "no SACK-permitted option");
        note(requirement!("MPA-A.5.1-1"), tcp.fragmentable_frame, "DF = 1 (Don't Fragment)", "DF = 0");
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, fpdu, proves};

    /// Plays sixteen Sends in TCP segments of `cut` octets.
    fn cut_at(cut: usize) -> Wire {
        cut_at_all(&[cut])
    }

    /// Plays sixteen Sends. The TCP segments have the lengths `lengths`, again and again in this
    /// order.
    fn cut_at_all(lengths: &[usize]) -> Wire {
        let mut wire = Wire::connected_with_mss(1460);
        wire.send(0, &testing::request());
        wire.send(1, &testing::reply());
        let octets: Vec<u8> = (1..17).flat_map(|msn| fpdu(&testing::send_of(msn, 30))).collect();
        let mut left = &octets[..];
        for length in lengths.iter().cycle() {
            let (piece, rest) = left.split_at(left.len().min(*length));
            wire.send(0, piece);
            left = rest;
            if left.is_empty() {
                break;
            }
        }
        wire
    }

    #[test]
    fn segments_contain_complete_fpdus() {
        // An FPDU has 36 octets.
        let (bad, good) = (cut_at(34), cut_at(36));
        proves(requirement!("MPA-A.1-1"), &bad, &good);
        proves(requirement!("MPA-5.1-6"), &bad, &good);
        proves(requirement!("MPA-5.1-4"), &bad, &cut_at(72));
    }

    #[test]
    fn fpdus_that_would_fit_are_not_torn() {
        // Each FPDU begins a TCP segment and ends in the next TCP segment.
        let torn = cut_at_all(&[20, 16]);
        proves(requirement!("MPA-5.1-4"), &torn, &cut_at(36));
        proves(requirement!("MPA-A.1-1"), &torn, &cut_at(36));
        // Each segment has octets of only one FPDU, so there is no finding for MPA-5.1-6. A few
        // splits cause no finding for MPA-5.1-4, because a window can be their reason.
        let names = |wire: &Wire, id| wire.findings().iter().any(|finding| finding.requirement == id);
        assert!(!names(&torn, requirement!("MPA-5.1-6")));
        assert!(!names(&cut_at_all(&[36, 36, 36, 36, 36, 36, 36, 20, 16]), requirement!("MPA-5.1-4")));
    }

    /// RFC 5044 section 5.1 lists the reasons to split an FPDU that would fit into one segment.
    #[test]
    fn windows_and_full_segments_may_cut_fpdus() {
        let has_findings = |wire: &Wire| {
            let found = wire.findings();
            let ids = [requirement!("MPA-5.1-4"), requirement!("MPA-5.1-6")];
            ids.map(|id| found.iter().any(|finding| finding.requirement == id))
        };
        let octets: Vec<u8> = (1..33).flat_map(|msn| fpdu(&testing::send_of(msn, 30))).collect();
        let cut = |mss: u16, length: usize, acknowledged: bool| {
            let mut wire = Wire::connected_with_mss(mss);
            wire.send(0, &testing::request());
            wire.send(1, &testing::reply());
            for piece in octets.chunks(length) {
                wire.send(0, piece);
                if acknowledged {
                    wire.send(1, &[]);
                }
            }
            wire
        };
        assert_eq!(has_findings(&cut(1460, 35, false)), [true; 2]);
        assert_eq!(has_findings(&cut(1460, 35, true)), [false; 2], "each segment waited for an acknowledgement");
        assert_eq!(has_findings(&cut(1460, 500, false)), [false; 2], "a segment can be limited to 500 octets");
        // By RFC 5044 section 4.5, the segmentation rules do not apply if the EMSS is below 128
        // octets.
        assert_eq!(has_findings(&cut(128, 35, false)), [true; 2]);
        assert_eq!(has_findings(&cut(127, 35, false)), [false; 2]);
    }

    #[test]
    fn a_half_ends_with_a_complete_fpdu() {
        let ends = |octets: usize| {
            let mut wire = Wire::started();
            wire.send(0, &fpdu(&testing::send_of(1, 30)));
            wire.send(0, &fpdu(&testing::send_of(2, 30))[..octets]);
            wire.fin(0);
            wire.fin(1);
            // Acknowledge the FIN of the peer.
            wire.send(0, &[]);
            wire
        };
        proves(requirement!("MPA-7.2-1"), &ends(20), &ends(36));
        proves(requirement!("MPA-A.1-3"), &ends(20), &ends(36));
        proves(requirement!("MPA-4.1-1"), &ends(20), &ends(36));
    }

    #[test]
    fn tcp_keeps_its_rules() {
        let fin_first = |fin: bool| {
            let mut wire = Wire::started();
            if fin {
                wire.fin(0);
            }
            wire.send(0, &fpdu(&testing::send_of(1, 30)));
            wire
        };
        proves(requirement!("MPA-7.1.5-3"), &fin_first(true), &fin_first(false));
        // The FIN of the previous connection arrives after the SYN. The FIN has a sequence number
        // before the SYN, so TCP drops the FIN.
        let mut late = Wire::connected();
        late.fin_at(0, 500);
        late.send(0, &testing::request());
        late.send(1, &testing::reply());
        late.send(0, &fpdu(&testing::send_of(1, 30)));
        late.fin(0);
        late.fin(1);
        assert_eq!(late.errors(), []);
        // The capture begins with the FINs of the previous connection.
        let mut again = Wire::started();
        (0..2).for_each(|direction| again.fin(direction));
        again.send(0, &[]);
        again.connect_from(101_000, 105_000);
        again.send(0, &testing::request());
        again.send(1, &testing::reply());
        again.send(0, &fpdu(&testing::send_of(1, 30)));
        assert_eq!(again.changed(|mut frames| frames.split_off(4)).errors(), []);
        let again = |back: u32, len: usize| {
            let mut wire = Wire::started();
            let octets = fpdu(&testing::send_of(1, 30));
            wire.send(0, &octets);
            wire.send_again(0, back, &octets[..len]);
            wire
        };
        proves(requirement!("MPA-A.1-4"), &again(36, 20), &again(36, 36));
    }

    #[test]
    fn options_and_flags_that_help() {
        let syn = |options: &[u8]| {
            let mut wire = Wire::connected_with_options(options);
            wire.send(0, &testing::request());
            wire
        };
        let (bare, sack) = (testing::hex("020405b4"), testing::hex("020405b4 0402 0101"));
        proves(requirement!("MPA-A.3-3"), &syn(&bare), &syn(&sack));
        let fragments = |may: bool| {
            let mut wire = Wire::connected();
            wire.may_fragment = may;
            wire.send(0, &testing::request());
            wire
        };
        proves(requirement!("MPA-A.5.1-1"), &fragments(true), &fragments(false));
    }
}
