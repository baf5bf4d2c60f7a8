//! Checks how an RDMAP stream ends.

use weft_core::requirement;
use weft_core::wire::rdmap::TerminateError;

use crate::direction::Direction;
use crate::follow::{ConnectionState, Remark, RemarkKind};
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

/// The error of the Terminate that RFC 6581 section 9.3 requires "before resetting the connection".
const LOCAL_CATASTROPHIC: TerminateError = TerminateError::new(2, 0, 5);

pub(super) static AFTER_TERMINATE: Rule = Check::Remark(after_terminate).covers(requirements!["RDMAP-5.4-12"]);

pub(super) static ERRORS: Rule = Check::End(errors).covers(requirements!["RDMAP-6.2.1-1", "RDMAP-6.2.1-8"]);

fn after_terminate(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    if let RemarkKind::AfterTerminate(opcode) = remark.kind {
        let expected = "no message after a Terminate";
        findings.report_remark(requirements!["RDMAP-5.4-12"], unit, remark, expected, &opcode.to_string());
    }
}

/// Returns whether the sender of direction `side` sent an SDP AbortConn, which announces a reset
/// (section 8.2.2 of the SDP draft).
fn aborts_sdp(state: &ConnectionState, side: Direction) -> bool {
    state.context().sdp.as_deref().is_some_and(|sdp| sdp.closing.abort_conn[side].is_some())
}

fn errors(state: &ConnectionState, findings: &mut Findings<'_>) {
    let (connection, traffic) = (&state.connection, &state.traffic);
    for side in Direction::BOTH {
        let (own, peer) = (&traffic.directions[side], &traffic.directions[side.peer()]);
        let (fin, rst) = (connection.fin[side], connection.rst[side]);
        if let Some(seen) = &own.terminate {
            // An RST with an unexpected sequence number follows octets that were not captured, most
            // likely a FIN.
            let alone = fin.is_none() && !state.mpa.tcp[side].has_unexpected_reset;
            if let Some(rst) = rst.filter(|rst| *rst > seen.frame && alone) {
                let expected = "a graceful close after the Terminate";
                let found = format!("a reset after the Terminate of frame {}", seen.frame);
                let mut findings = findings.as_note_if(seen.error == LOCAL_CATASTROPHIC);
                findings.report_in_frame(requirement!("RDMAP-6.2.1-8"), side, rst, expected, found);
            }
            continue;
        }
        if !state.would_know_terminate(side) {
            continue;
        }
        // MPA forbids a Responder to send a Terminate before the Responder has received a valid
        // FPDU. So a bad CRC in the first FPDU causes no finding.
        let bad_crc = peer.bad_crc.filter(|bad| peer.fpdus.is_some_and(|(first, _)| first < bad.frame));
        let closed = fin.into_iter().chain(rst).min();
        let expected = "a Terminate before the close";
        if let Some(error) = peer.fault.into_iter().chain(bad_crc).min_by_key(|error| error.frame)
            && let Some(closed) = closed.filter(|closed| state.mpa.may_know(side, *closed, error.frame, error.end))
        {
            let found = format!("a close without Terminate after the error of frame {}", error.frame);
            findings.report_in_frame(requirement!("RDMAP-6.2.1-1"), side, closed, expected, found);
        } else if let Some(rst) =
            rst.filter(|rst| connection.fin.iter().chain(&connection.rst).flatten().all(|end| end >= rst))
            && peer.terminate.is_none()
            && !aborts_sdp(state, side)
            && peer.fpdus.is_some_and(|(first, _)| first < rst)
        {
            // The capture does not show the reason for the reset. It is possible that the ULP
            // requested the reset.
            let found = "a reset without a visible reason";
            let expected = "a Terminate that reports why the stream ends";
            findings.as_note().report_in_frame(requirement!("RDMAP-6.2.1-1"), side, rst, expected, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;

    use weft_core::wire::sdp::{FieldOrder, Mid};

    use crate::testing::sdp::SdpScript;
    use crate::testing::{Wire, exchange, proves};

    const SEND: &str = "4143 00000000 00000000 00000001 00000000 2a";
    /// A segment with opcode 0xD, which is not assigned.
    const BAD: &str = "414d 00000000 00000000 00000002 00000000 2a";
    const TERMINATE: &str =
        "4147 00000000 00000002 00000001 00000000 0206c000 0013 414d 00000000 00000000 00000002 00000000";

    fn then(begin: &[(usize, &str)], end: impl FnOnce(&mut Wire)) -> Wire {
        let mut wire = exchange(begin);
        end(&mut wire);
        wire
    }

    #[test]
    fn an_error_ends_with_one_terminate_and_a_close() {
        let right = || exchange(&[(0, SEND), (0, BAD), (1, TERMINATE)]);
        let mut more = right();
        more.send_ulpdu(1, SEND);
        proves(requirement!("RDMAP-5.4-12"), &more, &right());
        let silent = then(&[(0, SEND), (0, BAD)], |wire| wire.fin(1));
        let reported = then(&[(0, SEND), (0, BAD), (1, TERMINATE)], |wire| wire.fin(1));
        proves(requirement!("RDMAP-6.2.1-1"), &silent, &reported);
        let crossing = then(&[(0, SEND)], |wire| wire.at_once(|wire| wire.send_ulpdu(0, BAD), |wire| wire.fin(1)));
        proves(requirement!("RDMAP-6.2.1-1"), &silent, &crossing);
        let reset = then(&[(0, SEND), (0, BAD), (1, TERMINATE)], |wire| wire.rst(1));
        proves(requirement!("RDMAP-6.2.1-8"), &reset, &reported);
        assert!(reset.errors().iter().any(|finding| finding.requirement == requirement!("RDMAP-6.2.1-8")));
        let catastrophic = "4147 00000000 00000002 00000001 00000000 20050000";
        let announced = then(&[(0, SEND), (1, catastrophic)], |wire| wire.rst(1));
        proves(requirement!("RDMAP-6.2.1-8"), &announced, &reported);
        assert_eq!(announced.errors(), []);
    }

    #[test]
    fn an_abort_of_sdp_announces_its_reset() {
        let mut script = SdpScript::open(FieldOrder::Figure);
        script.send(0, Mid::DIS_CONN, "", 0);
        script.send(0, Mid::ABORT_CONN, "", 0);
        script.wire.rst(0);
        let found = script.wire.findings();
        assert!(found.iter().all(|finding| finding.requirement != requirement!("RDMAP-6.2.1-1")), "{found:#?}");
    }

    #[test]
    fn a_reset_without_a_known_error_is_only_noted() {
        let findings = then(&[(0, SEND)], |wire| wire.rst(1)).findings();
        let of = requirement!("RDMAP-6.2.1-1");
        assert!(findings.iter().any(|f| f.requirement == of && f.severity == Severity::Note), "{findings:#?}");
        let graceful = then(&[(0, SEND)], |wire| wire.fin(1));
        assert_eq!(graceful.findings(), []);
    }
}
