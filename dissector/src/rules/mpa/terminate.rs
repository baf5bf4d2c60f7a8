//! Checks Terminates that report an MPA error: the error codes, and the end of the connection after
//! the Terminate.

use weft_core::requirement;

use crate::direction::Direction;
use crate::follow::{ConnectionState, TerminateSummary};
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static ERROR_IS_KNOWN: Rule = Check::Opcode(1 << 7, error_is_known).covers(requirements!["MPA-8-5"]);

pub(super) static MARKERS_AS_DECLARED: Rule =
    Check::Opcode(1 << 7, markers_as_declared).covers(requirements!["MPA-7.1.1-5"]);

pub(super) static ENDS_CONNECTION: Rule = Check::End(ends_connection).covers(requirements!["MPA-8-15"]);

/// The layer number in Terminates that report an MPA error.
const LLP: u8 = 2;
/// Error code: marker and ULPDU_Length do not match (RFC 5044 section 8).
const MARKER_MISMATCH: u8 = 3;
/// Offset of a Terminate's layer, type and code in the FPDU.
const CONTROL_AT: usize = ULPDU_AT + 18;
/// Maximum time in nanoseconds (120 s) between an error and the close of the connection. weft chose
/// this value, because no specification defines a maximum.
const TEAR_DOWN: u64 = 120_000_000_000;

fn error_is_known(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(error) = TerminateSummary::read(unit, view).filter(|error| error.layer == LLP) else { return };
    if error.etype == 0 && (1..=7).contains(&error.code) || error.has_swapped_layer_and_type() {
        return;
    }
    let found = format!("error type {}, code {:#04x}", error.etype, error.code);
    let expected = "an MPA error of type 0, with code 1 to 7";
    findings.report(requirement!("MPA-8-5"), unit, CONTROL_AT..CONTROL_AT + 2, expected, found);
}

/// Reports a Terminate with an error about markers if the sender of the Terminate had sent M=0.
/// Such an endpoint receives no markers.
fn markers_as_declared(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(error) = TerminateSummary::read(unit, view) else { return };
    let own = state.connection.startup[unit.direction()];
    if (error.layer, error.etype, error.code) != (LLP, 0, MARKER_MISMATCH)
        || own.is_none_or(|frame| frame.wants_markers())
        || state.connection.startup_pair().is_none_or(|pair| pair.is_rdmac())
    {
        return;
    }
    let found = "an error about markers from an endpoint that sent M = 0";
    let expected = "M = 1 from an endpoint that needs markers";
    findings.report(requirement!("MPA-7.1.1-5"), unit, CONTROL_AT..CONTROL_AT + 2, expected, found);
}

/// Reports a connection that stays open after an MPA error. RFC 5044 section 8 allows last messages
/// after the error, so an FPDU after the Terminate is no violation (see `RDMAP-5.4-12`).
fn ends_connection(state: &ConnectionState, findings: &mut Findings<'_>) {
    let connection = &state.connection;
    for (direction, stream) in Direction::BOTH.into_iter().zip(&state.mpa.streams) {
        let Some(error) = stream.terminate.filter(|error| error.layer == LLP) else { continue };
        let closed = connection.fin.iter().chain(&connection.rst).any(Option::is_some);
        let after = connection.last_time.saturating_sub(error.time);
        if !closed && after > TEAR_DOWN {
            let found = format!("a connection that is open {} s after the Terminate", after / 1_000_000_000);
            let (id, expected) = (requirement!("MPA-8-15"), "the end of the connection after an error of MPA");
            findings.as_behaviour().report_in_frame(id, direction, error.frame, expected, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, fpdu, proves};

    fn terminate(request_flags: u8, error: [u8; 2]) -> Wire {
        let mut wire =
            Wire::started_as(&testing::startup_frame(request_flags, 1, &[]), &testing::reply_frame(0x40, 1, &[]));
        wire.send(0, &fpdu(&testing::send_of(1, 30)));
        let ulpdu = format!("4147 00000000 00000002 00000001 00000000 {:02x}{:02x} 0000", error[0], error[1]);
        wire.send(0, &fpdu(&testing::hex(&ulpdu)));
        wire
    }

    #[test]
    fn the_error_is_one_of_mpa() {
        proves(requirement!("MPA-8-5"), &terminate(0x40, [0x20, 0x20]), &terminate(0x40, [0x20, 2]));
        // The octets 21 02 mean layer 2 and type 1, which is not assigned. With exchanged nibbles
        // in the first octet, they are 12 02: a DDP error (layer 1, type 2, code 02). So the error
        // is not an unknown MPA error.
        proves(requirement!("MPA-8-5"), &terminate(0x40, [0x21, 0x20]), &terminate(0x40, [0x21, 2]));
    }

    #[test]
    fn an_end_that_declined_markers_does_not_report_their_absence() {
        proves(requirement!("MPA-7.1.1-5"), &terminate(0x40, [0x20, 3]), &terminate(0x40, [0x20, 2]));
    }

    #[test]
    fn a_terminate_ends_the_connection() {
        let stays = |fin: bool| {
            let mut wire = terminate(0x40, [0x20, 2]);
            if fin {
                wire.fin(0);
            }
            wire.wait(130_000_000_000);
            wire.send(1, &fpdu(&testing::send_of(1, 30)));
            wire
        };
        proves(requirement!("MPA-8-15"), &stays(false), &stays(true));
        // A last message is allowed.
        let mut continues = terminate(0x40, [0x20, 2]);
        continues.send(0, &fpdu(&testing::send_of(2, 30)));
        continues.fin(0);
        proves(requirement!("MPA-8-15"), &stays(false), &continues);
    }
}
