//! Checks TCP's receive window below DDP (RFC 5041 Appendix A). The appendix is informative, so all
//! findings are notes.

use weft_core::requirement;

use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static RIGHT_EDGE: Rule = Check::End(right_edge).covers(requirements!["DDP-A-2"]);

fn right_edge(state: &ConnectionState, findings: &mut Findings<'_>) {
    if state.connection.startup.iter().all(Option::is_none) {
        // It is not certain that the connection carries DDP.
        return;
    }
    for (direction, window) in Direction::BOTH.into_iter().zip(&state.mpa.windows) {
        let Some(shrink) = window.shrink else { continue };
        let found = format!("a right edge that is {} bytes lower than in frame {}", shrink.octets, shrink.before);
        let expected = "a receive window whose right edge does not move back";
        findings.as_note().report_in_frame(requirement!("DDP-A-2"), direction, shrink.frame, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, fpdu, proves};

    /// SYN options: MSS, and a window scale of 7 (windows count in units of 128 octets).
    const SCALED: &str = "020405b4 01 030307";

    /// The acceptor acknowledges three FPDUs of 36 octets, one after the other. `windows` are the
    /// window fields of these acknowledgements.
    fn windows(options: &str, windows: [u16; 3]) -> Wire {
        let mut wire = Wire::connected_with_options(&testing::hex(options));
        wire.send(0, &testing::request());
        wire.send(1, &testing::reply());
        for (msn, window) in (1..).zip(windows) {
            wire.send(0, &fpdu(&testing::send_of(msn, 30)));
            wire.window = window;
            wire.send(1, &[]);
            wire.window = 65535;
        }
        wire
    }

    #[test]
    fn the_right_edge_is_not_pulled_back() {
        // Without window scale, an FPDU of 36 octets is allowed to reduce the window by at most 36.
        let plain = "020405b4 0402 0101";
        let (bad, good) = (windows(plain, [65535, 65498, 65462]), windows(plain, [65535, 65499, 65463]));
        proves(requirement!("DDP-A-2"), &bad, &good);
        // With window scale, rounding can explain a window that shrinks by one unit of 128 octets.
        // Rounding cannot explain a window that shrinks by two units: 256 > 36 + 127.
        let (bad, good) = (windows(SCALED, [65535, 65533, 65533]), windows(SCALED, [65535, 65534, 65534]));
        proves(requirement!("DDP-A-2"), &bad, &good);
    }

    #[test]
    fn the_order_of_the_capture_does_not_matter() {
        let acknowledge = |msn: u32| {
            move |wire: &mut Wire| {
                wire.send(0, &fpdu(&testing::send_of(msn, 30)));
                wire.send(1, &[]);
            }
        };
        let mut wire = windows("020405b4 0402 0101", [65535; 3]);
        // The right edge moves forward twice. The capture has the second acknowledgement first.
        wire.swapped(acknowledge(4), acknowledge(5));
        let ids: Vec<_> = wire.findings().iter().map(|finding| finding.requirement).collect();
        assert!(!ids.contains(&requirement!("DDP-A-2")), "{ids:?}");
    }
}
