//! Checks errors of connection establishment. These are Terminates of layer 2 (MPA) with codes 5 to
//! 7 (RFC 6581 sections 8 and 9).

use weft_core::requirement;
use weft_core::wire::ddp::{Msn, Segment, queue};
use weft_core::wire::mpa::startup::NOT_NEGOTIATED;

use crate::follow::{ConnectionState, TerminateSummary};
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static ESTABLISHMENT_ERROR: Rule =
    Check::Opcode(1 << 7, establishment_error).covers(requirements!["P2P-8-4"]);

pub(super) static RIGHT_CODE: Rule =
    Check::Opcode(1 << 7, right_code).covers(requirements!["P2P-9.1-24", "P2P-9.2-9", "P2P-9.2-23", "P2P-9.3-4"]);

const CONTROL_AT: usize = ULPDU_AT + 18;
/// Length in octets of the Terminate message if it contains no copy of a header. This length does
/// not include the DDP header that precedes the message.
const BARE: u32 = 4;

fn establishment_error(_: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(error) = TerminateSummary::read(unit, view).filter(|error| error.layer == 2) else { return };
    if !(5..=7).contains(&error.code) || error.has_swapped_layer_and_type() {
        return;
    }
    let Some(&header_control) = view.payload.get(2..3).and_then(<[u8]>::first) else { return };
    let bare = header_control >> 5 == 0 && view.payload_len == BARE;
    let place =
        matches!(&view.segment, Segment::Untagged(h, _) if (h.qn.get(), h.msn()) == (queue::TERMINATE, Msn::FIRST));
    if error.etype == 0 && bare && place {
        return;
    }
    let found = format!(
        "type {}, header control {:#05b}, {} bytes{}",
        error.etype,
        header_control >> 5,
        view.payload_len,
        if place { "" } else { ", not MSN 1 of queue 2" }
    );
    let expected = "layer 2, type 0, no copied header, and MSN 1 of queue 2";
    findings.report(requirement!("P2P-8-4"), unit, CONTROL_AT..CONTROL_AT + 3, expected, found);
}

/// Checks a Terminate that is the Initiator's first FPDU. The Initiator rejects the Reply by this
/// Terminate, and the code gives the reason.
fn right_code(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let direction = unit.direction();
    if state.mpa.streams[direction].fpdus != 1 || state.mpa.streams[direction.peer()].fpdus > 0 {
        return;
    }
    let Some(error) = TerminateSummary::read(unit, view) else { return };
    let Some(pair) = state.connection.startup_pair().filter(|pair| pair.is_accepted() && pair.initiator == direction)
    else {
        return;
    };
    let (Some(request), Some(reply)) = (pair.request.words, pair.reply.words) else { return };
    let too_deep = reply.ord != NOT_NEGOTIATED && request.ird != NOT_NEGOTIATED && reply.ord > request.ird;
    let common = request.rtr_send && reply.rtr_send
        || request.rtr_write && reply.rtr_write
        || request.rtr_read && reply.rtr_read;
    // If the Request's ORD or the Reply's IRD is 0, the Initiator cannot send a Read as
    // ready-to-receive message.
    let ready = request.rtr_send && reply.rtr_send
        || request.rtr_write && reply.rtr_write
        || common && request.ord > 0 && reply.ird > 0;
    let no_type = pair.is_peer_to_peer() && !common;
    let code = (error.layer, error.etype, error.code);
    let found = format!("layer {}, type {}, code {}", error.layer, error.etype, error.code);
    let at = CONTROL_AT..CONTROL_AT + 2;
    match (too_deep, no_type) {
        (true, false) if code != (2, 0, 6) => {
            let expected = "error 20 06, because IRD is too small for the ORD of the Reply";
            findings.report(requirement!("P2P-9.1-24"), unit, at, expected, found);
        }
        (false, true) if code != (2, 0, 7) => {
            let expected =
                "error 20 07, because the Initiator can send no ready-to-receive type that the Reply accepts";
            findings.report(requirement!("P2P-9.2-23"), unit, at, expected, found);
        }
        // If the Request and the Reply have a common type that the Initiator can send, the
        // Initiator MUST send a ready-to-receive message of this type. Here, the Initiator sends
        // error 20 07 instead. This error means that there is no such type. Error 02 07 is RDMAP's
        // catastrophic error. It does not violate P2P-9.2-9.
        (false, false) if pair.is_peer_to_peer() && ready && code == (2, 0, 7) => {
            let expected = "a ready-to-receive message of a type that the Request offers and the Reply accepts";
            findings.report(requirement!("P2P-9.2-9"), unit, at, expected, found);
        }
        // Section 9.3 describes the sequence with A = 1. With A = 0, the connection is established
        // after the Reply, so the Initiator can report other errors.
        (false, false)
            if pair.is_peer_to_peer() && !(error.layer == 2 && error.etype == 0 && (4..=7).contains(&error.code)) =>
        {
            let expected = "error 20 05 for a local error without a separate code";
            findings.report(requirement!("P2P-9.3-4"), unit, at, expected, found);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, fpdu, proves};

    /// Plays start-up frames. Then the Initiator's first FPDU is a Terminate.
    fn terminate(request: &str, reply: &str, error: &str) -> Wire {
        let request = testing::startup_frame(0x50, 2, &testing::hex(request));
        let mut wire = Wire::started_as(&request, &testing::reply_frame(0x50, 2, &testing::hex(reply)));
        let ulpdu = format!("4147 00000000 00000002 00000001 00000000 {error}");
        wire.send(0, &fpdu(&testing::hex(&ulpdu)));
        wire
    }

    #[test]
    fn errors_of_establishment_copy_no_header() {
        let words = ("8001 c001", "8001 c002");
        let copied = "2006 c000 000e c140 00000001 0000000000000000";
        proves(
            requirement!("P2P-8-4"),
            &terminate(words.0, words.1, copied),
            &terminate(words.0, words.1, "2006 0000"),
        );
        // The octets 21 06 mean layer 2 and type 1, which is not assigned. With exchanged nibbles
        // in the first octet, they are 12 06: a DDP error (layer 1, type 2, code 06).
        let exchanged = terminate(words.0, words.1, "2106 0000");
        proves(requirement!("P2P-8-4"), &terminate(words.0, words.1, copied), &exchanged);
    }

    #[test]
    fn the_code_is_the_reason() {
        let deep = |error: &str| terminate("8001 c001", "8001 c002", error);
        proves(requirement!("P2P-9.1-24"), &deep("2005 0000"), &deep("2006 0000"));
        let no_type = |error: &str| terminate("8001 8001", "8001 4001", error);
        proves(requirement!("P2P-9.2-23"), &no_type("2005 0000"), &no_type("2007 0000"));
        let local = |error: &str| terminate("8001 c001", "8001 c001", error);
        proves(requirement!("P2P-9.3-4"), &local("0000 0000"), &local("2005 0000"));
        proves(requirement!("P2P-9.2-9"), &local("2007 0000"), &local("0207 0000"));
        let read = |reply: &str| terminate("8001 4001", reply, "2007 0000");
        proves(requirement!("P2P-9.2-9"), &read("8001 4001"), &read("8000 4001"));
        // In the client-server model, the connection is established after the Reply, so the
        // Initiator is allowed to report an RDMAP error.
        proves(requirement!("P2P-9.3-4"), &local("0206 0000"), &terminate("0001 0001", "0001 0001", "0206 0000"));
    }
}
