//! Visits messages of SMB 2 and 3: their headers, and the bodies through `body`.

use super::body;
use super::smb2::{
    AID, CHAIN_OFFSET, CHANNEL_SEQUENCE, CMD, COMPRESSION, CREDIT_CHARGE, CREDITS_GRANTED, CREDITS_REQUESTED, FLAGS,
    FLAGS_ASYNC, FLAGS_CHAINED, FLAGS_DFS, FLAGS_REPLAY, FLAGS_RESPONSE, FLAGS_SIGNATURE, KIND, MSG_ID, MSG_SIZE,
    NT_STATUS, ORIGINAL_SIZE, PROBLEM, RESPONSE_TO, SESID, SMB2, TID,
};
use crate::grammar::field::Visitor;
use crate::grammar::output::Output;
use crate::upper::smb2::{Body, Compound, CompressionHeader, HEADER_LEN, Header, Message, Pdu, TransformHeader};

/// Visits a message. `start` is the offset of the message in the unit; `None` if octets of the
/// message are in other units. `end` is the offset after the last octet of the unit.
pub(super) fn visit<V: Visitor>(message: &Message, start: Option<usize>, end: usize, visitor: &mut V) {
    visitor.begin_list(&SMB2);
    match message {
        Message::Compound(Compound { pdus, end: compound_end }) => {
            for (number, pdu) in pdus.iter().enumerate() {
                let pdu_start = start.and_then(|start| start.checked_add(usize::try_from(pdu.at).ok()?));
                let mut output = Output::new(&mut *visitor, pdu_start, end);
                let is_last = number + 1 == pdus.len();
                visit_pdu(pdu, compound_end.problem().filter(|_| is_last), &mut output);
            }
        }
        Message::Encrypted(header) => visit_encrypted(header, &mut Output::new(&mut *visitor, start, end)),
        Message::Compressed(header) => visit_compressed(header, &mut Output::new(&mut *visitor, start, end)),
    }
    visitor.end_list();
}

/// Visits a request or response. `problem` is the reason why the next one was not read.
fn visit_pdu<V: Visitor>(pdu: &Pdu, problem: Option<&'static str>, output: &mut Output<'_, V>) {
    output.enter(&SMB2, 0..usize::try_from(pdu.len).unwrap_or(HEADER_LEN));
    let is_response = matches!(pdu.body, Body::Response(_));
    output.name(&KIND, if is_response { "response" } else { "request" });
    visit_header(&pdu.header, output);
    if let Some(answered) = &pdu.answered {
        output.derived(&RESPONSE_TO, answered.frame);
    }
    if let Some(problem) = problem.or_else(|| body::problem(&pdu.body)) {
        output.name(&PROBLEM, problem);
    }
    match &pdu.body {
        Body::Request(request) => body::visit_request(request, output),
        Body::Response(response) => body::visit_response(response, output),
    }
    output.leave();
}

fn visit_header<V: Visitor>(header: &Header, output: &mut Output<'_, V>) {
    output.uint(&CREDIT_CHARGE, header.credit_charge, 6..8);
    if let Some(status) = header.status {
        output.uint(&NT_STATUS, status.0, 8..12);
    }
    if let Some(sequence) = header.channel_sequence {
        output.uint(&CHANNEL_SEQUENCE, sequence, 8..10);
    }
    output.uint(&CMD, header.command.0, 12..14);
    let credits = if header.flags.is_response() { &CREDITS_GRANTED } else { &CREDITS_REQUESTED };
    output.uint(credits, header.credits, 14..16);
    output.uint(&FLAGS, header.flags.0, 16..20);
    for flag in [&FLAGS_RESPONSE, &FLAGS_ASYNC, &FLAGS_CHAINED, &FLAGS_SIGNATURE, &FLAGS_DFS, &FLAGS_REPLAY] {
        output.bits(flag, header.flags.0, 16..20);
    }
    output.uint(&CHAIN_OFFSET, header.next_command, 20..24);
    output.uint(&MSG_ID, header.message_id, 24..32);
    if let Some(async_id) = header.async_id {
        output.uint(&AID, async_id, 32..40);
    }
    if let Some(tree_id) = header.tree_id {
        output.uint(&TID, tree_id, 36..40);
    }
    output.uint(&SESID, header.session_id, 40..48);
}

fn visit_encrypted<V: Visitor>(header: &TransformHeader, output: &mut Output<'_, V>) {
    output.enter(&SMB2, 0..52);
    output.name(&KIND, "encrypted");
    output.uint(&MSG_SIZE, header.original_size, 36..40);
    output.uint(&SESID, header.session_id, 44..52);
    output.leave();
}

fn visit_compressed<V: Visitor>(header: &CompressionHeader, output: &mut Output<'_, V>) {
    output.enter(&SMB2, 0..16);
    output.name(&KIND, "compressed");
    output.uint(&ORIGINAL_SIZE, header.original_size, 4..8);
    output.uint(&COMPRESSION, header.algorithm, 8..10);
    output.leave();
}
