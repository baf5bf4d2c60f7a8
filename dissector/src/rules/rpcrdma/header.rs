//! Checks the transport header: its procedure, and its chunk lists.

use weft_core::requirement;

use super::sent::{SENDS, Sent};
use crate::follow::ConnectionState;
use crate::parse::{SegmentView, Unit};
use crate::rules::rule::{Check, Findings, Rule};
use crate::upper::rpcrdma::header::{MAX_SEGMENTS, Procedure};

/// The procedure, the fourth word of the header.
const PROCEDURE_AT: std::ops::Range<u32> = 12..16;
/// The begin of the read list: 1 if it has a segment.
const READ_LIST_AT: std::ops::Range<u32> = 16..20;

pub(super) static PROCEDURE: Rule =
    Check::Opcode(SENDS, procedure).covers(requirements!["RPCRDMA-4.6.1-1", "RPCRDMA-4.6.2-1"]);

fn procedure(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let (id, name) = match sent.header.procedure {
        Procedure::Msgp => (requirement!("RPCRDMA-4.6.1-1"), "RDMA_MSGP"),
        Procedure::Done => (requirement!("RPCRDMA-4.6.2-1"), "RDMA_DONE"),
        Procedure::Msg | Procedure::NoMsg | Procedure::Error => return,
    };
    sent.report(findings, id, PROCEDURE_AT, "RDMA_MSG, RDMA_NOMSG or RDMA_ERROR", name);
}

pub(super) static LISTS: Rule =
    Check::Opcode(SENDS, lists).covers(requirements!["RPCRDMA-3.4.5-1", "RPCRDMA-4.2.4-1", "RPCRDMA-4.3.1-1"]);

fn lists(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let lists = &sent.header.lists;
    if let Some(read) = lists.reads.iter().find(|read| !read.position.is_multiple_of(4)) {
        let at = read.segment.at;
        let found = format!("Position {}", read.position);
        let expected = "a Position that is a multiple of 4";
        sent.report(findings, requirement!("RPCRDMA-3.4.5-1"), at.saturating_sub(4)..at, expected, found);
    }
    let has_payload = lists.reply.is_some() || lists.reads.iter().any(|read| read.position == 0);
    // Further segments are not stored.
    let is_known = lists.reads.len() < MAX_SEGMENTS;
    if sent.header.procedure == Procedure::NoMsg && !has_payload && is_known {
        let expected = "a Read segment with Position 0 or a Reply chunk, which holds the RPC message";
        let range = READ_LIST_AT.start..sent.header.len;
        sent.report(findings, requirement!("RPCRDMA-4.2.4-1"), range, expected, "neither");
    }
    if sent.is_reply() && !lists.reads.is_empty() {
        let found = format!("{} segments", lists.reads.len());
        let expected = "an empty Read list, because the message is a reply";
        sent.report(findings, requirement!("RPCRDMA-4.3.1-1"), READ_LIST_AT, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::super::testing::{after_a_call, call_with, is_clean, reply_with};
    use crate::testing::proves;

    const SEGMENT: &str = "704379f4 00001388 89a394ae092e3000";

    #[test]
    fn obsolete_procedures_are_not_sent() {
        let good = after_a_call(&[]);
        is_clean(&good);
        let done = after_a_call(&[(0, "4143 00000000", "88a394ae 00000001 00000080 00000003")]);
        proves(requirement!("RPCRDMA-4.6.2-1"), &done, &good);
        let padded = call_with("00000001 00000002", "00000004 00000400 00000000 00000000 00000000");
        let padded = after_a_call(&[(0, "4143 00000000", padded.as_str())]);
        proves(requirement!("RPCRDMA-4.6.1-1"), &padded, &good);
    }

    #[test]
    fn a_position_is_a_multiple_of_four() {
        let with = |position: &str| {
            let lists = format!("00000001 {position} {SEGMENT} 00000000 00000000 00000000");
            after_a_call(&[(0, "4143 00000000", call_with("00000001 00000000", &lists).as_str())])
        };
        let good = with("00000070");
        is_clean(&good);
        proves(requirement!("RPCRDMA-3.4.5-1"), &with("00000072"), &good);
    }

    #[test]
    fn a_message_in_a_chunk_has_this_chunk() {
        let with = |lists: &str| {
            let message = format!("88a394ae 00000001 00000080 00000001 {lists}");
            after_a_call(&[(0, "4143 00000000", message.as_str())])
        };
        let good = with(&format!("00000001 00000000 {SEGMENT} 00000000 00000000 00000000"));
        is_clean(&good);
        let bad = with(&format!("00000000 00000001 00000001 {SEGMENT} 00000000 00000000"));
        proves(requirement!("RPCRDMA-4.2.4-1"), &bad, &good);
        proves(requirement!("RPCRDMA-4.2.4-1"), &with("00000000 00000000 00000000"), &good);
    }

    #[test]
    fn a_reply_has_no_read_list() {
        let with = |lists: &str| after_a_call(&[(1, "4143 00000000", reply_with(lists).as_str())]);
        let good = with("00000000 00000000 00000000");
        is_clean(&good);
        let bad = with(&format!("00000001 00000070 {SEGMENT} 00000000 00000000 00000000"));
        proves(requirement!("RPCRDMA-4.3.1-1"), &bad, &good);
    }
}
