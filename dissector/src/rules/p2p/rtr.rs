//! Checks the ready-to-receive message. This message is the Initiator's first FPDU in the
//! peer-to-peer model (RFC 6581 section 9.2).

use weft_core::requirement;
use weft_core::wire::ddp::Msn;
use weft_core::wire::rdmap::Opcode;

use crate::follow::{ConnectionState, FirstSegment, StartupPair};
use crate::frame_number::FrameNumber;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static FIRST_FPDU: Rule = Check::Segment(first_fpdu).covers(requirements![
    "P2P-1.1-2",
    "P2P-5-4",
    "P2P-9-3",
    "P2P-9-4",
    "P2P-9-5",
    "P2P-9-6",
    "P2P-9.2-2",
    "P2P-9.2-9",
    "P2P-9.2-10",
    "P2P-9.2-11",
    "P2P-9.2-13",
    "P2P-mail.2-3",
    "P2P-mail.4-1",
    "P2P-mail.7-1"
]);

pub(super) static ONLY_ONE: Rule = Check::Segment(only_one).covers(requirements!["P2P-1.1-3"]);

pub(super) static IS_SENT: Rule = Check::End(is_sent).covers(requirements!["P2P-3-3", "P2P-9.3-1", "P2P-mail.0-1"]);

pub(super) static IS_ANSWERED: Rule = Check::End(is_answered).covers(requirements!["P2P-9.2-12", "P2P-9.2-5"]);

/// Formats opcode and length of the message for a finding.
fn describe(first: &FirstSegment) -> String {
    format!("{} of {} bytes", first.opcode.name(), first.read_size.unwrap_or(first.payload_len))
}

fn first_fpdu(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let direction = unit.direction();
    if state.mpa.streams[direction].fpdus != 1 {
        return;
    }
    let Some(first) = state.mpa.first_segments[direction].first.filter(FirstSegment::is_known) else { return };
    let Some(pair) = state.connection.startup_pair().filter(|pair| pair.is_accepted() && pair.initiator == direction)
    else {
        return;
    };
    let at = ULPDU_AT..ULPDU_AT + view.header_len;
    if pair.request.revision == 1 && first.is_empty_write() {
        // The only purpose of a Write without payload is to be a ready-to-receive message. In
        // revision 1, the endpoints must have agreed on this message outside MPA.
        let expected = "a zero-length RDMA Read, as the peer-to-peer proposal of 2007 (an e-mail) recommends";
        findings.as_note().report(requirement!("P2P-mail.7-1"), unit, at, expected, describe(&first));
        return;
    }
    if let Some((request, reply)) = pair.request.words.zip(pair.reply.words)
        && !(request.peer_to_peer || reply.peer_to_peer)
        && first.is_empty_write()
    {
        // The start-up frames could have negotiated a ready-to-receive message, but did not.
        let expected = "a message of the ULP, because A = 0 in the Request and the Reply";
        findings.as_note().report(requirement!("P2P-mail.2-3"), unit, at, expected, describe(&first));
        return;
    }
    let (true, Some(reply)) = (pair.is_peer_to_peer(), pair.reply.words) else { return };
    let mut report = |id, expected: &str| findings.report(id, unit, at.clone(), expected, describe(&first));
    let (write, read, send) = (first.is_empty_write(), first.is_empty_read(), first.is_empty_send());
    if first.opcode.is_send() && !send && reply.rtr_send && first.msn != Some(Msn::FIRST) {
        // The Send with MSN 1 is another message. It can be the ready-to-receive message, sent too
        // late.
        report(requirement!("P2P-5-4"), "the ready-to-receive message before every other message");
        report(requirement!("P2P-9.2-13"), "a Send (opcode 3) with MSN 1 and no payload");
        return;
    }
    let chosen = write && reply.rtr_write || read && reply.rtr_read || send && reply.rtr_send;
    if !chosen {
        report(requirement!("P2P-9.2-9"), "a ready-to-receive message of a type that the Reply accepts");
    }
    if !(write || read || send) {
        report(requirement!("P2P-1.1-2"), "a zero-length Send, RDMA Read or RDMA Write");
        report(requirement!("P2P-5-4"), "the ready-to-receive message before every other message");
        report(requirement!("P2P-9-3"), "a ready-to-receive message, because A = 1");
    }
    let offered = [
        (send && !reply.rtr_send, requirement!("P2P-9-4"), "no zero-length Send, because B = 0 in the Reply"),
        (write && !reply.rtr_write, requirement!("P2P-9-5"), "no zero-length RDMA Write, because C = 0 in the Reply"),
        (read && !reply.rtr_read, requirement!("P2P-9-6"), "no zero-length RDMA Read, because D = 0 in the Reply"),
    ];
    for (_, id, expected) in offered.into_iter().filter(|(is, ..)| *is) {
        report(id, expected);
    }
    // The Initiator supports the type that it sends, so its Request had to announce that type.
    if let Some(request) = pair.request.words
        && (write && !request.rtr_write || read && !request.rtr_read || send && !request.rtr_send)
    {
        let expected = "a ready-to-receive message of a type that the Initiator's own Request offers";
        report(requirement!("P2P-9.2-2"), expected);
    }
    match first.opcode {
        Opcode::WRITE if reply.rtr_write && !(write && first.last) => {
            report(requirement!("P2P-9.2-10"), "an RDMA Write with L = 1 and no payload");
        }
        Opcode::READ_REQUEST if reply.rtr_read && (!read || first.msn != Some(Msn::FIRST)) => {
            report(requirement!("P2P-9.2-11"), "a Read Request with MSN 1 and RDMARDSZ 0");
        }
        opcode if opcode.is_send() && reply.rtr_send && (!send || first.msn != Some(Msn::FIRST)) => {
            report(requirement!("P2P-9.2-13"), "a Send (opcode 3) with MSN 1 and no payload");
        }
        _ => {}
    }
    if !chosen {
        let expected = "a zero-length Read, Write or Send of a type that the Reply accepts";
        findings.as_note().report(requirement!("P2P-mail.4-1"), unit, at, expected, describe(&first));
    }
}

/// Reports two different ready-to-receive messages, one directly after the other. The finding is a
/// note, because the second message is possibly a zero-length message of the ULP, which RFC 6581
/// allows.
fn only_one(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let direction = unit.direction();
    if state.mpa.streams[direction].fpdus != 2 {
        return;
    }
    let first_segments = &state.mpa.first_segments[direction];
    let (Some(first), Some(second)) = (first_segments.first, first_segments.second) else { return };
    let is_initiator = state.connection.startup_pair().is_some_and(|p| p.is_peer_to_peer() && p.initiator == direction);
    let ready = |first: &FirstSegment| first.is_empty_write() || first.is_empty_read();
    if is_initiator && ready(&first) && ready(&second) && first.opcode != second.opcode {
        let at = ULPDU_AT..ULPDU_AT + view.header_len;
        let expected = "only one ready-to-receive message";
        let found = format!("a second message, {}", describe(&second));
        findings.as_note().report(requirement!("P2P-1.1-3"), unit, at, expected, found);
    }
}

/// Reports a missing ready-to-receive message. The message is due after the Reply and before the
/// Responder's first FPDU.
fn is_sent(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(pair) = state.connection.startup_pair().filter(StartupPair::is_peer_to_peer) else { return };
    let (own, other) = (&state.mpa.streams[pair.initiator], &state.mpa.streams[pair.responder]);
    let tcp = &state.mpa.tcp;
    let had_no_reply = |frame: FrameNumber| {
        tcp[pair.initiator].had_received(frame, &tcp[pair.responder], pair.reply.end) == Some(false)
    };
    if own.first.is_some_and(|first| first < pair.reply.frame && had_no_reply(first)) {
        let found = || format!("an FPDU before frame {}, which contains the Reply", pair.reply.frame);
        let expected = "the ready-to-receive message after the Reply";
        findings.report_in_frame(requirement!("P2P-3-3"), pair.initiator, own.first_octets, expected, found());
        let expected = "Request, Reply, ready-to-receive message, then all other messages";
        findings.report_in_frame(requirement!("P2P-9.3-1"), pair.initiator, own.first_octets, expected, found());
    }
    // If the SYN is missing, acknowledgements cannot be compared with stream positions. Then weft
    // uses another sign: until this frame, the Responder acknowledged octets that the capture shows
    // only later, or never. In this case, weft assumes that the Responder had received the message.
    let had_own = |frame: FrameNumber| {
        let had = tcp[pair.responder].had_received(frame, &tcp[pair.initiator], own.first_valid_end);
        had.unwrap_or_else(|| tcp[pair.initiator].may_be_late_at(frame))
    };
    if let Some(first) = other.first
        && !own.broken
        && own.first.is_none_or(|own| first < own)
        && !tcp[pair.initiator].missed
        && !had_own(first)
    {
        let found = "an FPDU of the Responder before the ready-to-receive message";
        let expected = "Request, Reply, ready-to-receive message, then all other messages";
        findings.report_in_frame(requirement!("P2P-9.3-1"), pair.responder, other.first_octets, expected, found);
    }
    if own.first.is_none()
        && !own.broken
        && own.after_startup.is_none()
        && let Some(fin) = state.connection.fin[pair.initiator]
        && state.connection.fin[pair.responder].is_none_or(|other| fin < other)
        && state.connection.rst == [None; 2]
    {
        let found = "a FIN before any message";
        let expected = "a message from the initiating side, which has to send first";
        findings.as_note().report_in_frame(requirement!("P2P-mail.0-1"), pair.initiator, fin, expected, found);
    }
}

/// Checks the answer to a Read that is the ready-to-receive message. The answer has to be an empty
/// Read Response to the Read's sink. If a Responder answers such a Read, it supports Reads as
/// ready-to-receive messages. So if the Request had D = 1, the Reply should also have D = 1.
fn is_answered(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(pair) = state.connection.startup_pair().filter(StartupPair::is_peer_to_peer) else { return };
    let first_segments = &state.mpa.first_segments;
    let Some(read) = first_segments[pair.initiator].first.filter(FirstSegment::is_empty_read) else { return };
    let Some(response) = first_segments[pair.responder].response else { return };
    let (frame, responder) = (response.frame, pair.responder);
    if response.payload_len != 0 || !response.last || response.stag_and_to != read.stag_and_to {
        let found =
            format!("{}, STag {:#x}, TO {:#x}", describe(&response), response.stag_and_to.0, response.stag_and_to.1);
        let expected =
            format!("an empty Read Response to STag {:#x}, TO {:#x}", read.stag_and_to.0, read.stag_and_to.1);
        findings.report_in_frame(requirement!("P2P-9.2-12"), responder, frame, &expected, found);
    }
    let words = (pair.request.words, pair.reply.words);
    if let (Some(request), Some(reply)) = words
        && request.rtr_read
        && !reply.rtr_read
    {
        let found = format!("D = 0, although the Responder answers a zero-length Read in frame {frame}");
        let expected = "D = 1, because the Request offers a Read and the Responder supports it";
        findings.report_in_frame(requirement!("P2P-9.2-5"), responder, pair.reply.header, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;

    use crate::testing::{self, Wire, fpdu, proves};

    const WRITE: &str = "c140 00000001 0000000000000000";
    const READ: &str =
        "4141 00000000 00000001 00000001 00000000 00000009 0000000000000090 00000000 00000001 0000000000000000";
    const SEND: &str = "4143 00000000 00000000 00000001 00000000";
    const RESPONSE: &str = "c142 00000009 0000000000000090";

    /// Plays start-up frames with IRD 1 and ORD 1, and then messages of the Initiator. `reply` has
    /// the IRD and ORD fields of the Reply.
    fn start(reply: &str, messages: &[&str]) -> Wire {
        let request = testing::startup_frame(0x50, 2, &testing::hex("c001 c001"));
        let mut wire = Wire::started_as(&request, &testing::reply_frame(0x50, 2, &testing::hex(reply)));
        messages.iter().for_each(|message| wire.send(0, &fpdu(&testing::hex(message))));
        wire
    }

    const ALL: &str = "c001 c001";
    const ONLY_SEND: &str = "c001 0001";
    const ONLY_WRITE: &str = "8001 8001";
    const ONLY_READ: &str = "8001 4001";

    #[test]
    fn the_first_fpdu_is_one_of_three_messages() {
        let data = "4143 00000000 00000000 00000001 00000000 2a2b";
        let (bad, good) = (start(ALL, &[data]), start(ALL, &[SEND, data]));
        proves(requirement!("P2P-1.1-2"), &bad, &good);
        proves(requirement!("P2P-5-4"), &bad, &good);
        proves(requirement!("P2P-9-3"), &bad, &good);
        proves(requirement!("P2P-9.2-9"), &bad, &good);
        proves(requirement!("P2P-mail.4-1"), &bad, &good);
        proves(requirement!("P2P-1.1-3"), &start(ALL, &[WRITE, READ]), &start(ALL, &[WRITE, SEND]));
    }

    #[test]
    fn a_late_ready_to_receive_message() {
        let data = "4143 00000000 00000000 00000001 00000000 2a2b";
        let (bad, good) = (start(ALL, &[data]), start(ALL, &[SEND, data]));
        // The ready-to-receive message is sent, but after the second Send.
        let second = "4143 00000000 00000000 00000002 00000000 2a2b";
        let swapped = start(ALL, &[second, SEND]);
        proves(requirement!("P2P-5-4"), &swapped, &good);
        for id in [requirement!("P2P-1.1-2"), requirement!("P2P-9-3"), requirement!("P2P-9.2-9")] {
            proves(id, &bad, &swapped);
        }
    }

    /// The first message of the upper-layer protocol is allowed to be a zero-length RDMA Read.
    #[test]
    fn a_zero_length_read_after_the_message_is_only_a_note() {
        let found = start(ALL, &[WRITE, READ]).findings();
        let noted = found.iter().filter(|finding| finding.requirement == requirement!("P2P-1.1-3"));
        assert!(noted.clone().count() > 0 && noted.clone().all(|it| it.severity == Severity::Note), "{found:#?}");
    }

    #[test]
    fn the_type_is_in_the_reply() {
        proves(requirement!("P2P-9-4"), &start(ONLY_WRITE, &[SEND]), &start(ONLY_SEND, &[SEND]));
        proves(requirement!("P2P-9-5"), &start(ONLY_READ, &[WRITE]), &start(ONLY_WRITE, &[WRITE]));
        proves(requirement!("P2P-9-6"), &start(ONLY_WRITE, &[READ]), &start(ONLY_READ, &[READ]));
        proves(requirement!("P2P-9.2-9"), &start(ONLY_WRITE, &[READ]), &start(ONLY_READ, &[READ]));
    }

    #[test]
    fn the_type_is_in_the_request() {
        let with = |request: &str| {
            let request = testing::startup_frame(0x50, 2, &testing::hex(request));
            let mut wire = Wire::started_as(&request, &testing::reply_frame(0x50, 2, &testing::hex(ONLY_WRITE)));
            wire.send(0, &fpdu(&testing::hex(WRITE)));
            wire
        };
        proves(requirement!("P2P-9.2-2"), &with(ONLY_READ), &with(ONLY_WRITE));
    }

    #[test]
    fn each_type_has_its_format() {
        let write = "c140 00000001 0000000000000000 2a2b";
        proves(requirement!("P2P-9.2-10"), &start(ONLY_WRITE, &[write]), &start(ONLY_WRITE, &[WRITE]));
        let second = READ.replacen("00000001 00000001", "00000001 00000002", 1);
        proves(requirement!("P2P-9.2-11"), &start(ONLY_READ, &[&second]), &start(ONLY_READ, &[READ]));
        let solicited = SEND.replacen("4143", "4145", 1);
        proves(requirement!("P2P-9.2-13"), &start(ONLY_SEND, &[&solicited]), &start(ONLY_SEND, &[SEND]));
        let revision_1 = |message: &str| {
            let mut wire = Wire::started();
            wire.send(0, &fpdu(&testing::hex(message)));
            wire
        };
        proves(requirement!("P2P-mail.7-1"), &revision_1(WRITE), &revision_1(READ));
        let client_server = |message: &str| {
            let frame = |kind: fn(u8, u8, &[u8]) -> Vec<u8>| kind(0x50, 2, &testing::hex("0001 0001"));
            let mut wire = Wire::started_as(&frame(testing::startup_frame), &frame(testing::reply_frame));
            wire.send(0, &fpdu(&testing::hex(message)));
            wire
        };
        let data = "c140 00000001 0000000000000000 2a2b";
        proves(requirement!("P2P-mail.2-3"), &client_server(WRITE), &client_server(data));
    }

    #[test]
    fn the_message_comes_between_the_reply_and_other_messages() {
        let order = |early: bool| {
            let mut wire = Wire::connected();
            wire.send(0, &testing::startup_frame(0x50, 2, &testing::hex(ALL)));
            if early {
                wire.send(0, &fpdu(&testing::hex(WRITE)));
            }
            wire.send(1, &testing::reply_frame(0x50, 2, &testing::hex(ALL)));
            if !early {
                wire.send(0, &fpdu(&testing::hex(WRITE)));
            }
            wire
        };
        proves(requirement!("P2P-3-3"), &order(true), &order(false));
        proves(requirement!("P2P-9.3-1"), &order(true), &order(false));
        let closes = |messages: &[&str]| {
            let mut wire = start(ALL, messages);
            wire.fin(0);
            wire
        };
        proves(requirement!("P2P-mail.0-1"), &closes(&[]), &closes(&[WRITE]));
    }

    #[test]
    fn a_read_is_answered() {
        let answered = |reply: &str, response: &str| {
            let mut wire = start(reply, &[READ]);
            wire.send(1, &fpdu(&testing::hex(response)));
            wire
        };
        let good = answered(ONLY_READ, RESPONSE);
        proves(requirement!("P2P-9.2-12"), &answered(ONLY_READ, &RESPONSE.replacen('9', "8", 1)), &good);
        proves(requirement!("P2P-9.2-5"), &answered(ONLY_WRITE, RESPONSE), &good);
    }

    /// The capture consists of two files, one after the other. Each file has one direction. The SYN
    /// is missing.
    #[test]
    fn acknowledged_messages_came_before_the_first_fpdu_of_the_responder() {
        let mut wire = start(ALL, &[WRITE]);
        wire.send(1, &fpdu(&testing::send_of(1, 30)));
        let appended = wire.changed(|mut frames| {
            frames.remove(0);
            frames.sort_by_key(|(_, frame)| frame[29] != 1);
            frames
        });
        let found = appended.findings();
        assert!(found.iter().all(|finding| finding.requirement != requirement!("P2P-9.3-1")), "{found:#?}");
    }
}
