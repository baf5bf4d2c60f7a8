//! Checks the end of streaming mode: start-up frames must be complete and without markers, and
//! FPDUs must follow the start-up frames directly.

use weft_core::requirement;
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::HEADER_LEN;

use crate::direction::Direction;
use crate::follow::{AfterStartup, ConnectionState};
use crate::parse::{Kind, STREAMING_HEAD, SenderError, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static FRAME_ENDS_STREAMING: Rule = Check::Other(frame_ends_streaming).covers(requirements![
    "MPA-7.1-1",
    "MPA-7.1-2",
    "MPA-7.1.1-24",
    "MPA-7.1.1-25",
    "MPA-7.1.2-16",
    "P2P-6-10"
]);

pub(super) static FRAME_IS_PLAIN: Rule = Check::Startup(frame_is_plain).covers(requirements!["MPA-7.1-5"]);

pub(super) static FRAME_IS_COMPLETE: Rule = Check::End(frame_is_complete).covers(requirements!["MPA-7.1.1-24"]);

pub(super) static FRAME_IS_NO_LONGER: Rule = Check::End(frame_is_no_longer).covers(requirements!["MPA-7.1.1-24"]);

/// Returns whether `unit` has octets that are not an FPDU directly after a start-up frame, and the
/// sender meant them as part of this frame. This is the case if the octets arrived together with
/// the frame, or before the peer could answer. The rules of this file report such octets.
pub(in crate::rules) fn continues_frame(state: &ConnectionState, unit: &Unit<'_>) -> bool {
    let Kind::Unparsed { len } = unit.kind else { return false };
    let (direction, frame) = (unit.direction(), unit.frame);
    let Some(own) = state.connection.startup[direction] else { return false };
    let is_first = state.mpa.streams[direction].after_startup == Some(AfterStartup::Unparsed { frame, len });
    let peer = state.connection.peer_startup(direction);
    is_first && peer.is_some_and(|peer| frame == own.frame || own.kind == StartupKind::Request && frame < peer.frame)
}

/// On an accepted connection, reports octets that follow a start-up frame directly but are not an
/// FPDU.
fn frame_ends_streaming(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Kind::Unparsed { len } = &unit.kind else { return };
    let direction = unit.direction();
    let stream = &state.mpa.streams[direction];
    let Some(own) = state.connection.startup[direction] else { return };
    let first = stream.after_startup == Some(AfterStartup::Unparsed { frame: unit.frame, len: *len });
    // Other rules report mistakes inside an FPDU.
    if !first || unit.sender_error != Some(SenderError::Unexplained) {
        return;
    }
    let octets = unit.locate_first(0..STREAMING_HEAD);
    let mut found =
        |id, expected: &str, found: String| findings.report_in_frame(id, direction, octets, expected, found);
    let stray = || format!("{len} bytes that are not an FPDU");
    let expected = "FPDUs from the first byte after the start-up frame";
    found(requirement!("MPA-7.1-1"), expected, stray());
    found(requirement!("MPA-7.1-2"), "FPDUs in both directions after the start-up frames", stray());
    if own.kind == StartupKind::Request {
        let accepted = state.connection.startup_pair().is_some_and(|pair| pair.is_accepted());
        if accepted && stream.fpdus == 0 {
            found(requirement!("MPA-7.1.2-16"), "FPDUs from the Initiator after an accepting Reply", stray());
        }
    }
    if continues_frame(state, unit) {
        let expected = format!("{} bytes of Private Data, as PD_Length announces", own.pd_length);
        found(requirement!("MPA-7.1.1-24"), &expected, format!("{len} additional bytes after the Private Data"));
        if own.pd_length == 0 {
            found(requirement!("MPA-7.1.1-25"), "no Private Data, because PD_Length is 0", format!("{len} bytes"));
        }
        if own.is_enhanced() {
            let expected = "a PD_Length that includes the 4 bytes of IRD and ORD";
            found(requirement!("P2P-6-10"), expected, format!("{len} bytes more than PD_Length announces"));
        }
    }
}

/// Reports four octets of zero, as in a marker, directly before the key of a start-up frame.
fn frame_is_plain(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let direction = unit.direction();
    if let Some(frame) = state.mpa.streams[direction].zeros_before {
        let found = "00 00 00 00, as in a marker, before the key";
        findings.report_in_frame(requirement!("MPA-7.1-5"), direction, frame, "start-up frames without markers", found);
    }
}

/// Reports a sender that closed before the Private Data of its start-up frame was complete.
fn frame_is_complete(state: &ConnectionState, findings: &mut Findings<'_>) {
    for direction in Direction::BOTH {
        let Some(frame) = state.connection.startup[direction] else { continue };
        let (there, announced) = (frame.private_len(), usize::from(frame.pd_length));
        let closed = state.connection.fin[direction].is_some() && !state.mpa.tcp[direction].lacks_last_octets();
        if frame.len < HEADER_LEN || there >= announced || !closed || !frame.complete {
            continue;
        }
        let expected = format!("{announced} bytes of Private Data, as PD_Length announces");
        let (id, length) = (requirement!("MPA-7.1.1-24"), frame.header.part(18..20));
        findings.report_in_frame(id, direction, length, &expected, format!("{there} bytes, then FIN"));
    }
}

/// Reports a Request with more octets than PD_Length announces. There is a finding only if the
/// additional octets cannot be an FPDU, the sender sent no octets after them, and the peer closed
/// without a Reply.
fn frame_is_no_longer(state: &ConnectionState, findings: &mut Findings<'_>) {
    let (connection, tcp) = (&state.connection, &state.mpa.tcp);
    for direction in Direction::BOTH {
        let (own, other) = (&state.mpa.streams[direction], &state.mpa.streams[direction.peer()]);
        let Some(AfterStartup::Unparsed { len, .. }) = own.after_startup else { continue };
        let request =
            connection.startup[direction].filter(|frame| frame.kind == StartupKind::Request && frame.complete);
        let Some(request) = request else { continue };
        let ended = |end: Direction| connection.fin[end].is_some() && !tcp[end].lacks_last_octets() && !tcp[end].missed;
        let is_silent = other.after_startup.is_none()
            && !other.broken
            && connection.startup[direction.peer()].is_none()
            && connection.streaming_start[direction.peer()].is_none();
        let is_no_fpdu = own.fpdus == 0 && (len < SHORTEST_FPDU || !len.is_multiple_of(4));
        if !(is_silent && is_no_fpdu && connection.syn == [true; 2] && Direction::BOTH.into_iter().all(ended)) {
            continue;
        }
        let (announced, there) = (u64::from(request.pd_length), request.private_len() as u64 + len);
        let expected = format!("{announced} bytes of Private Data, as PD_Length announces");
        let (id, length) = (requirement!("MPA-7.1.1-24"), request.header.part(18..20));
        findings.report_in_frame(id, direction, length, &expected, format!("{there} bytes, then FIN"));
    }
}

/// Length of the shortest FPDU in octets: `ULPDU_Length`, two octets of PAD, CRC.
const SHORTEST_FPDU: u64 = 8;

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, fpdu, proves};

    /// The Initiator sends a Request, with the octets `extra` in the same segment. The Responder
    /// sends a Reply. Then the Initiator sends the octets `then`. At the end, both endpoints send
    /// FPDUs.
    fn start(request: &[u8], extra: &[u8], then: &[u8]) -> Wire {
        let mut wire = Wire::connected();
        wire.send(0, &[request, extra].concat());
        wire.send(1, &testing::reply());
        if !then.is_empty() {
            wire.send(0, then);
        }
        wire.send(0, &fpdu(&testing::send_of(1, 30)));
        wire.send(0, &fpdu(&testing::send_of(2, 30)));
        wire.send(1, &fpdu(&testing::send_of(1, 30)));
        wire
    }

    #[test]
    fn fpdus_follow_the_frame() {
        let good = start(&testing::request(), &[], &[]);
        let bad = start(&testing::request(), &[], b"GET / HTTP/1.0\r\n");
        proves(requirement!("MPA-7.1-1"), &bad, &good);
        proves(requirement!("MPA-7.1-2"), &bad, &good);
        proves(requirement!("MPA-7.1.2-16"), &bad, &good);
    }

    #[test]
    fn private_data_is_as_long_as_announced() {
        let good = start(&testing::startup_frame(0x40, 1, &[7; 12]), &[], &[]);
        proves(requirement!("MPA-7.1.1-24"), &start(&testing::startup_frame(0x40, 1, &[7; 12]), &[8; 4], &[]), &good);
        proves(requirement!("MPA-7.1.1-25"), &start(&testing::request(), &[8; 4], &[]), &good);
        let enhanced = testing::startup_frame(0x50, 2, &testing::hex("0001 0001"));
        proves(requirement!("P2P-6-10"), &start(&enhanced, &[8; 4], &[]), &start(&enhanced, &[], &[]));
        let closed = |octets: usize| {
            let mut wire = Wire::connected();
            let frame = testing::startup_frame(0x40, 1, &[7; 12]);
            wire.send(0, &frame[..20 + octets]);
            wire.fin(0);
            wire
        };
        proves(requirement!("MPA-7.1.1-24"), &closed(8), &closed(12));
        // The peer closes without an answer.
        let unanswered = |announced: u8, extra: &[u8]| {
            let mut wire = Wire::connected();
            let mut frame = testing::startup_frame(0x40, 1, &[7; 12]);
            frame[19] = announced;
            wire.send(0, &[&frame, extra].concat());
            wire.fin(1);
            wire.fin(0);
            wire
        };
        proves(requirement!("MPA-7.1.1-24"), &unanswered(8, &[]), &unanswered(12, &[]));
        // It is possible that the octets after the Request are an FPDU that was sent too early.
        let early = fpdu(&testing::send_of(1, 30));
        proves(requirement!("MPA-7.1.1-24"), &unanswered(8, &[]), &unanswered(12, &early));
        // The rest of the start-up frame was not captured, and the FIN follows.
        let mut lost = Wire::connected();
        let frame = testing::startup_frame(0x40, 1, &[7; 12]);
        lost.send(0, &frame[..28]);
        lost.lose(0, &frame[28..]);
        lost.fin(0);
        proves(requirement!("MPA-7.1.1-24"), &closed(8), &lost);
    }

    #[test]
    fn no_marker_comes_before_the_key() {
        let begins = |front: &[u8]| start(&[front, &testing::request()].concat(), &[], &[]);
        proves(requirement!("MPA-7.1-5"), &begins(&[0; 4]), &begins(&[]));
    }
}
