//! Deviations in the processing of received DDP segments (RFC 5040 section 7, RFC 5041 section 7,
//! RFC 7306 section 8).
//!
//! If a deviation ignores a fault, the faulty segment has no effect: no data is placed and no
//! message is sent.

use weft_core::wire::ddp::queue;
use weft_core::wire::rdmap::Opcode;

use super::context::segment::{
    DeviationState, EXTENSIONS, MO, PAYLOAD, SENDS, STAG, TO, WORD, change_word, has_payload, is_last, is_tagged,
    octet, opcode, set_word, word,
};
use crate::ddp::QueueError;
use crate::memory::AccessError;
use crate::rdmap::Fault;

/// Offset of the last byte of an Atomic Request's Remote TO.
const ATOMIC_TO_END: usize = PAYLOAD + 19;
const ATOMIC_OPCODE: usize = PAYLOAD + 3;
/// Offsets of the fields of a Read Request.
const SINK_TO: usize = PAYLOAD + 4;
const RDMARDSZ: usize = PAYLOAD + 12;
const SRC_STAG: usize = PAYLOAD + 16;
const SRC_TO: usize = PAYLOAD + 20;

/// Number of lengths that `rdmap.repeats-lengths` stores.
const LENGTHS: usize = 1024;

/// Changes the length of a Send of one segment after 1,024 such Sends. Send 1,025 gets the length
/// of Send 1, and so on.
fn repeat_length(octets: &mut Vec<u8>, state: &mut DeviationState) {
    let is_send = SENDS.contains(&opcode(octets)) && is_last(octets) && word(octets, MO) == 0;
    if !is_send || octets.len() < PAYLOAD {
        return;
    }
    let at = state.count as usize % LENGTHS;
    state.count = state.count.wrapping_add(1);
    match state.lengths.get(at) {
        Some(length) => octets.resize(*length, 0),
        None => state.lengths.push(octets.len()),
    }
}

/// Number of segments of one kind that a deviation of many messages accepts on a stream.
const ACCEPTED: u32 = 100;

/// Drops the segment if `counted` is set and [`ACCEPTED`] such segments have arrived before.
fn drop_after_many(octets: &mut Vec<u8>, state: &mut DeviationState, counted: bool) {
    if counted {
        state.count = state.count.saturating_add(1);
        if state.count > ACCEPTED {
            octets.clear();
        }
    }
}

/// Rejects Writes to, and Reads from, the STag of a Send with Invalidate whose last segment has not
/// arrived.
fn invalidate_early(octets: &[u8], state: &mut DeviationState) -> Option<Fault> {
    let arrived = opcode(octets);
    if arrived.invalidates() {
        state.count = if is_last(octets) { 0 } else { word(octets, WORD) };
    }
    let is_invalid = |at| state.count != 0 && word(octets, at) == state.count;
    match arrived {
        Opcode::READ_REQUEST if is_invalid(SRC_STAG) => Some(Fault::Source(AccessError::InvalidStag)),
        Opcode::WRITE if has_payload(octets) && is_invalid(STAG) => Some(Fault::Tagged(AccessError::InvalidStag)),
        _ => None,
    }
}

/// Rejects a message with the opcode `rejected` that arrives before the first Send.
fn needs_a_send(octets: &[u8], state: &mut DeviationState, rejected: Opcode) -> Option<Fault> {
    let arrived = opcode(octets);
    state.count |= u32::from(SENDS.contains(&arrived));
    (arrived == rejected && state.count == 0).then_some(Fault::NoBuffer)
}

deviations! {
    "ddp.acts-after-error" [Conduct(|conduct| conduct.acts_after_error = true)]
        ["DDP-7.1-18", "DDP-3-13", "RDMAP-7-2", "RDMAP-5.4-12", "DDP-7.1-19", "RDMAP-7-3", "RDMAP-7-4"]
        "keeps the connection open after a Terminate, acts on later segments and reports further errors";
    "ddp.checks-empty-write" [RefusesSegment(|octets, _| {
        (opcode(octets) == Opcode::WRITE && is_tagged(octets) && !has_payload(octets) && word(octets, 2) != 0)
            .then_some(Fault::Tagged(AccessError::InvalidStag))
    })] ["DDP-5.2-10", "RDMAP-5.1-12"] "rejects a Write without payload if its STag is not zero";
    "ddp.delivers-without-last" [SegmentArrived(|octets| if SENDS.contains(&opcode(octets)) {
        octet(octets, 0, |octet| *octet |= 0x40);
    })] ["DDP-4.1-9", "DDP-5.4-2", "RDMAP-5.5-20", "DDP-3-8"] "treats each segment of a Send as the last segment of the message";
    "ddp.forgets-tagged-ulp-octet" [SegmentArrived(|octets| if opcode(octets) == Opcode::READ_RESPONSE {
        octet(octets, 1, |octet| *octet &= 0xf0);
    })] ["DDP-4.2-3", "DDP-4.2-14", "RDMAP-3.1-10"] "treats a Read Response as a Write";
    "ddp.forgets-untagged-ulp-octets" [SegmentArrived(|octets| if opcode(octets).invalidates() {
        octet(octets, 1, |octet| *octet = *octet & 0xf0 | if *octet & 0xf == 4 { 3 } else { 5 });
    })] ["DDP-4.3-4", "DDP-5.4-7", "RDMAP-5.3-8", "RDMAP-1.2-2", "RDMAP-3.1-10"] "does not invalidate the STag of a Send with Invalidate";
    "ddp.loses-far-segments" [SegmentArrived(|octets| if SENDS.contains(&opcode(octets)) && word(octets, MO) > 60_000 {
        octets.clear();
    })] ["DDP-5.2-4", "RDMAP-5.3-5"] "loses all bytes of a Send after the first 60,000 bytes";
    "ddp.loses-long-segments" [SegmentArrived(|octets| if SENDS.contains(&opcode(octets)) && octets.len() > 32_000 {
        octets.clear();
    })] ["DDP-5.2-4", "RDMAP-5.3-5"] "loses a segment of a Send if its ULPDU has more than 32,000 bytes";
    "ddp.needs-a-receive" [RefusesSegment(|octets, state| needs_a_send(octets, state, Opcode::READ_REQUEST))] ["DDP-5.1.2-5"] "rejects a Read Request that arrives before the first Send, and reports that no buffer is available";
    "ddp.overlooks-association" [Overlooks(|fault, _| fault == Fault::Tagged(AccessError::NotAssociated))]
        ["DDP-8.2-3", "DDP-8.3.1-1", "DDP-7.2-5", "RDMAP-8.1.1-1", "DDP-8.2-4", "DDP-8.3.1-2", "RDMAP-8.1.1-2", "DDP-8.2-1", "DDP-8.2-2",
        "DDP-8.3-3"]
        "ignores a Write to an STag of another Protection Domain, and reports no error";
    "ddp.overlooks-bounds" [Overlooks(|fault, _| fault == Fault::Tagged(AccessError::BaseAndBounds))]
        ["DDP-7.1-13", "DDP-7.1-12", "DDP-7.2-4", "DDP-8.3-6", "DDP-8.3.1-3", "RDMAP-8.1.1-3", "DDP-8.1-1", "DDP-8.3-1"]
        "ignores a Write beyond the end of its buffer, and reports no error";
    "ddp.overlooks-long-send" [Overlooks(|fault, _| fault == Fault::Queue { qn: queue::SEND, error: QueueError::TooLong })]
        ["DDP-7.1-8", "DDP-1.2-4", "DDP-7.2-12", "RDMAP-5.3-4", "RDMAP-3.2-3"]
        "ignores a Send that is longer than its buffer, and reports no error";
    "ddp.overlooks-missing-buffer" [Overlooks(|fault, _| fault == Fault::NoBuffer)]
        ["DDP-7.1-2", "DDP-1.2-2", "DDP-7.2-9"] "ignores a Send for which no receive is posted, and reports no error";
    "ddp.overlooks-mo" [Overlooks(|fault, _| matches!(fault, Fault::Queue { error: QueueError::MessageOffset, .. }))]
        ["DDP-7.1-7", "DDP-7.2-11", "RDMAP-7306.8.2-4", "RDMAP-7.2-15"] "ignores a segment whose MO does not continue its message, and reports no error";
    "ddp.overlooks-msn" [Overlooks(|fault, _| matches!(fault, Fault::Queue { error: QueueError::MsnGap | QueueError::MsnRange, .. }))]
        ["DDP-7.1-9", "DDP-7.2-10", "RDMAP-7.2-1", "RDMAP-7306.8.2-4", "RDMAP-7.2-15"] "ignores a segment that does not belong to the next message, and reports no error";
    "ddp.overlooks-queue-number" [Overlooks(|fault, _| fault == Fault::QueueNumber)]
        ["DDP-7.1-1", "DDP-7.2-8", "RDMAP-7306.8.2-4"] "ignores a segment for a queue that does not exist, and reports no error";
    "ddp.overlooks-rights" [Overlooks(|fault, _| fault == Fault::Tagged(AccessError::Rights))]
        ["DDP-7.1-11", "DDP-7.2-5", "DDP-8.3.1-5", "RDMAP-8.1.1-5"] "ignores a Write to an STag that does not allow remote writes, and reports no error";
    "ddp.overlooks-stag" [Overlooks(|fault, _| fault == Fault::Tagged(AccessError::InvalidStag))]
        ["DDP-7.1-10", "DDP-7.1-11", "DDP-7.2-3", "DDP-8.3-7", "DDP-8.3.1-6", "RDMAP-3.2-6", "RDMAP-8.1.1-6"]
        "ignores a Write to an invalid STag, and reports no error";
    "ddp.overlooks-version" [Overlooks(|fault, _| matches!(fault, Fault::DdpVersion { .. }))]
        ["DDP-7.2-7", "DDP-7.2-13", "DDP-4.1-13"] "ignores a segment of another DDP version, and reports no error";
    "ddp.overlooks-wrap" [Overlooks(|fault, _| fault == Fault::Tagged(AccessError::Wrap))]
        ["DDP-7.1-14", "DDP-7.2-6"] "ignores a Write beyond the end of the address space, and reports no error";
    "ddp.resets-at-once" [Conduct(|conduct| (conduct.skips_terminate, conduct.resets) = (true, true))]
        ["DDP-6.2.2-4", "DDP-6.2-1", "DDP-6.2.2-3", "RDMAP-6.2.1-1", "RDMAP-6.2.1-8"] "resets TCP after a DDP or RDMAP error, and sends no Terminate";
    "ddp.refuses-later-segments" [RefusesSegment(|octets, _| {
        (SENDS.contains(&opcode(octets)) && word(octets, MO) != 0)
            .then_some(Fault::Queue { qn: queue::SEND, error: QueueError::MessageOffset })
    })] ["DDP-5.2-4", "RDMAP-5.3-5"] "rejects each segment of a Send if the MO of the segment is not 0";
    "ddp.refuses-odd-to" [RefusesSegment(|octets, _| {
        (is_tagged(octets) && has_payload(octets) && word(octets, TO + 4) & 1 != 0)
            .then_some(Fault::Tagged(AccessError::Wrap))
    })] ["DDP-4.2-8", "RDMAP-4.4-6"] "rejects a tagged segment with an odd TO";
    "ddp.refuses-reserved-bits" [RefusesSegment(|octets, _| {
        octets.first().is_some_and(|octet| octet & 0x3c != 0).then_some(Fault::DdpVersion { tagged: is_tagged(octets) })
    })] ["DDP-4.1-11"] "rejects a segment with reserved bits set in its first byte";
    "ddp.refuses-second-write" [RefusesSegment(|octets, state| {
        let to = word(octets, TO + 4).wrapping_add(1);
        let again = opcode(octets) == Opcode::WRITE && has_payload(octets)
            && std::mem::replace(&mut state.count, to) == to;
        again.then_some(Fault::Tagged(AccessError::Rights))
    })] ["DDP-5.1.1-4"] "rejects a Write to the same address as the previous Write";
    "ddp.stops-at-empty-segment" [
        RefusesSegment(|octets, state| {
            state.count |= u32::from(is_tagged(octets) && !has_payload(octets) && !is_last(octets));
            (state.count != 0).then_some(Fault::Tagged(AccessError::InvalidStag))
        }),
        Overlooks(|_, state| state.count != 0),
    ] ["RDMAP-5.2.1-18"] "ignores everything after an empty tagged segment with L=0";
    "ddp.takes-mo-of-16-bits" [SegmentArrived(|octets| if !is_tagged(octets) { change_word(octets, MO, |mo| mo & 0xffff) })]
        ["DDP-7.1-7", "DDP-7.2-11", "RDMAP-7.2-15"] "checks only the lower half of MO";
    "ddp.refuses-write-in-send" [RefusesSegment(|octets, state| {
        match opcode(octets) {
            opcode if SENDS.contains(&opcode) => state.count = u32::from(!is_last(octets)),
            Opcode::WRITE if state.count != 0 => return Some(Fault::MissingLast),
            _ => {}
        }
        None
    })] ["RDMAP-5.3-5"] "rejects a Write that arrives between two segments of a Send";
    "rdmap.answers-with-nothing" [SegmentArrived(|octets| if opcode(octets) == Opcode::READ_REQUEST { set_word(octets, RDMARDSZ, 0) })]
        ["RDMAP-7.2-4", "DDP-5.2-3", "RDMAP-4.4-9"] "answers each Read Request with an empty Read Response";
    "rdmap.aligns-atomics" [SegmentArrived(|octets| if opcode(octets) == Opcode::ATOMIC_REQUEST {
        octet(octets, ATOMIC_TO_END, |octet| *octet &= !7);
    })] ["RDMAP-7306.5.1.1-4", "RDMAP-7306.5.1.1-5", "RDMAP-7306.5.1.1-7", "RDMAP-7306.5.1.2-5", "RDMAP-7306.5.1.2-6",
        "RDMAP-7306.5.1.2-8", "RDMAP-7306.8.2-7", "RDMAP-7306.8.2-8"] "executes a misaligned Atomic Request at the next lower aligned address";
    "rdmap.checks-empty-read" [RefusesSegment(|octets, _| {
        let empty = opcode(octets) == Opcode::READ_REQUEST && word(octets, RDMARDSZ) == 0;
        (empty && word(octets, SRC_STAG) == 0).then_some(Fault::Source(AccessError::InvalidStag))
    })] ["RDMAP-5.2.1-7"] "rejects a Read Request for zero bytes from STag 0";
    "rdmap.delays-terminate" [Conduct(|conduct| conduct.delays_terminate = true)]
        ["RDMAP-5.3-10", "RDMAP-7.2-10", "RDMAP-7.2-14", "RDMAP-7.1-2", "RDMAP-7-2", "DDP-7.1-18"]
        "sends the Terminate for a bad segment only when the peer closes";
    "rdmap.forgets-invalidate-of-long-sends" [SegmentArrived(|octets| {
        if opcode(octets).invalidates() && (!is_last(octets) || word(octets, MO) != 0) {
            octet(octets, 1, |octet| *octet = *octet & 0xf0 | if *octet & 0xf == 4 { 3 } else { 5 });
        }
    })] ["DDP-5.4-7", "RDMAP-5.3-8", "RDMAP-1.2-2"] "does not invalidate the STag if a Send with Invalidate has several segments";
    "rdmap.holds-one-read-less" [Depths(|_, ird| *ird = ird.saturating_sub(1))]
        ["P2P-3-1", "P2P-9.1-1", "P2P-9.1-23", "RDMAP-6.1-4"] "accepts only IRD - 1 outstanding Read Requests";
    "rdmap.invalidates-early" [RefusesSegment(invalidate_early)] ["RDMAP-5.2.1-18"]
        "invalidates the STag of a Send with Invalidate of several segments when its first segment arrives";
    "rdmap.keeps-open" [Conduct(|conduct| conduct.keeps_open = true)] ["RDMAP-7-3", "DDP-3-11"]
        "leaves TCP open after a Terminate";
    "rdmap.reads-with-ord-0" [Depths(|ord, _| *ord = (*ord).max(1))] ["P2P-9.1-18", "RDMAP-6.1-7"]
        "sends a Read Request although its negotiated ORD is 0";
    "rdmap.resets" [Conduct(|conduct| conduct.resets = true)] ["RDMAP-6.2.1-8", "DDP-6.2.1-8"]
        "resets TCP instead of closing it, even after a Terminate";
    "rdmap.serves-version-0" [SegmentArrived(|octets| if opcode(octets) == Opcode::READ_REQUEST {
        octet(octets, 1, |octet| *octet = *octet & 0x3f | 0x40);
    })] ["RDMAP-7.2-17", "RDMAP-4.8-25"] "does not check the RDMAP version of Read Requests";
    "rdmap.skips-terminate" [Conduct(|conduct| conduct.skips_terminate = true)]
        ["RDMAP-6.2.1-1", "DDP-6.2.2-3", "DDP-6.2-1", "DDP-6.2.2-4", "RDMAP-7.1-2", "DDP-7-1"]
        "ends the connection after a DDP or RDMAP error, but sends no Terminate";
    "rdmap.ignores-terminate" [SegmentArrived(|octets| if opcode(octets) == Opcode::TERMINATE { octets.clear() })]
        ["RDMAP-5.4-4"] "ignores the peer's Terminate";
    "rdmap.loses-later-empty-sends" [SegmentArrivedAfter(|octets, state| {
        let counted = SENDS.contains(&opcode(octets)) && word(octets, MO) == 0 && !has_payload(octets);
        drop_after_many(octets, state, counted);
    })] ["RDMAP-5.3-5", "DDP-5.2-4"] "loses each Send without payload after the first 100 such Sends of a connection";
    "rdmap.loses-later-read-requests" [SegmentArrivedAfter(|octets, state| {
        let counted = opcode(octets) == Opcode::READ_REQUEST;
        drop_after_many(octets, state, counted);
    })] ["RDMAP-5.2.1-18"] "loses each Read Request after the first 100 Read Requests of a connection";
    "rdmap.loses-later-solicited-sends" [SegmentArrivedAfter(|octets, state| {
        let counted = matches!(opcode(octets), Opcode::SEND_SE | Opcode::SEND_SE_INVALIDATE);
        drop_after_many(octets, state, counted);
    })] ["RDMAP-5.3-5", "DDP-5.2-4"]
        "loses each segment of a Send with Solicited Event after the first 100 such segments of a connection";
    "rdmap.numbers-stags" [Conduct(|conduct| conduct.numbers_stags = true)] ["RDMAP-8.1.1-8", "RDMAP-8.1.1-9"]
        "assigns consecutive STags";
    "rdmap.needs-a-receive-for-terminate" [RefusesSegment(|octets, state| needs_a_send(octets, state, Opcode::TERMINATE))] ["RDMAP-5.4-3"] "rejects a Terminate that arrives before the first Send, and reports that no buffer is available";
    "rdmap.one-read" [Depths(|_, ird| *ird = 1)]
        ["RDMAP-6.1-4", "RDMAP-5.2.2-2", "RDMAP-5.2.1-2", "RDMAP-7306.5.2.1-15", "RDMAP-7306.5.2.2-9"]
        "serves only one Read or Atomic Operation at a time, whatever IRD was negotiated";
    "rdmap.overlooks-atomic-opcode" [SegmentArrived(|octets| if opcode(octets) == Opcode::ATOMIC_REQUEST {
        octet(octets, ATOMIC_OPCODE, |octet| *octet &= !1);
    })] ["RDMAP-7306.5.2.1-5"] "treats an unsupported AOpCode as the next lower supported AOpCode";
    "rdmap.overlooks-atomic-response" [Overlooks(|fault, _| fault == Fault::AtomicResponse)]
        ["RDMAP-7306.5.2.2-5"] "ignores an invalid Atomic Response, and reports no error";
    "rdmap.overlooks-immediate-size" [Overlooks(|fault, _| fault == Fault::ImmediateSize)]
        ["RDMAP-7306.6.3-4", "RDMAP-7306.6.1-2", "RDMAP-7306.8.2-3", "RDMAP-7306.8.1-1"]
        "ignores Immediate Data that is not eight bytes long, and reports no error";
    "rdmap.overlooks-invalidate" [Overlooks(|fault, _| matches!(fault, Fault::Invalidate(_)))]
        ["RDMAP-5.3-10", "RDMAP-7.2-10", "RDMAP-7.2-14", "RDMAP-5.3-20", "RDMAP-4.8-23", "RDMAP-4.8-29", "RDMAP-8.1.1-7"]
        "ignores a Send with Invalidate whose STag cannot be invalidated, and reports no error";
    "rdmap.overlooks-opcode" [Overlooks(|fault, _| matches!(fault, Fault::Opcode | Fault::UnexpectedReadResponse))]
        ["RDMAP-7.2-2", "RDMAP-7.2-16", "RDMAP-4.8-26", "RDMAP-7306.8.2-5", "RDMAP-7306.1.1-1", "RDMAP-5.1-3"]
        "ignores a segment with a reserved or misplaced opcode, and reports no error";
    "rdmap.overlooks-read-bounds" [Overlooks(|fault, _| fault == Fault::Source(AccessError::BaseAndBounds))]
        ["RDMAP-7.2-18", "RDMAP-7.2-7", "RDMAP-4.8-19", "RDMAP-8.1.1-3", "RDMAP-3.2-8", "RDMAP-7306.9-1"]
        "ignores a Read beyond the end of its source, and reports no error";
    "rdmap.overlooks-read-response" [Overlooks(|fault, _| matches!(fault,
        Fault::Tagged(_) | Fault::UnexpectedReadResponse))]
        ["RDMAP-5.2.2-6"] "ignores a Read Response that is unsolicited or has the wrong sink, and reports no error";
    "rdmap.overlooks-read-rights" [Overlooks(|fault, _| fault == Fault::Source(AccessError::Rights))]
        ["RDMAP-4.8-20", "RDMAP-8.1.1-5"] "ignores a Read from an STag that does not allow remote reads, and reports no error";
    "rdmap.overlooks-read-association" [Overlooks(|fault, _| fault == Fault::Source(AccessError::NotAssociated))]
        ["RDMAP-7.2-5", "RDMAP-4.8-21", "RDMAP-8.1.1-1", "RDMAP-8.1.1-2"]
        "ignores a Read from an STag of another Protection Domain, and reports no error";
    "rdmap.overlooks-read-stag" [Overlooks(|fault, _| fault == Fault::Source(AccessError::InvalidStag))]
        ["RDMAP-7.2-4", "RDMAP-5.2.1-20", "RDMAP-4.8-18", "RDMAP-3.2-8", "RDMAP-7306.5-8"]
        "ignores a Read from an invalid STag, and reports no error";
    "rdmap.overlooks-read-wrap" [Overlooks(|fault, _| fault == Fault::Source(AccessError::Wrap))]
        ["RDMAP-7.2-8", "RDMAP-4.8-22"] "ignores a Read beyond the end of the address space, and reports no error";
    "rdmap.overlooks-request-size" [Overlooks(|fault, _| fault == Fault::RequestSize)]
        ["RDMAP-5.2.1-5", "RDMAP-4.2-4", "RDMAP-7306.4.2-4"]
        "ignores a Read Request or Atomic Request of a wrong size, and reports no error";
    "rdmap.overlooks-terminate" [Overlooks(|fault, _| {
        fault == Fault::Terminate || matches!(fault, Fault::Queue { qn: queue::TERMINATE, .. })
    })] ["RDMAP-5.4-10"] "ignores an invalid Terminate, and reports no error";
    "rdmap.overlooks-too-many-reads" [Overlooks(|fault, _| fault == Fault::TooManyReads)]
        ["RDMAP-6.1-8"] "ignores Read Requests beyond its IRD, and reports no error";
    "rdmap.overlooks-version" [Overlooks(|fault, _| fault == Fault::RdmapVersion)]
        ["RDMAP-7.2-3", "RDMAP-7.2-17", "RDMAP-4.8-25", "RDMAP-5.3-14", "RDMAP-5.1-3", "RDMAP-7306.8.2-6"]
        "ignores a segment of another RDMAP version, and reports no error";
    "rdmap.refuses-atomic-responses" [RefusesSegment(|octets, _| {
        (opcode(octets) == Opcode::ATOMIC_RESPONSE).then_some(Fault::NoBuffer)
    })] ["RDMAP-7306.5.2.2-4"] "rejects Atomic Responses, and reports that no buffer is available";
    "rdmap.refuses-cmp-swap" [RefusesSegment(|octets, _| {
        let swaps = opcode(octets) == Opcode::ATOMIC_REQUEST && octets.get(ATOMIC_OPCODE).is_some_and(|octet| octet & 0xf == 2);
        swaps.then_some(Fault::AtomicOpcode)
    })] ["RDMAP-7306.5-3", "RDMAP-7306.1.1-3", "RDMAP-7306.5.2.1-11"] "rejects CmpSwap, but accepts FetchAdd";
    "rdmap.refuses-extension-word" [RefusesSegment(|octets, _| {
        (EXTENSIONS.contains(&opcode(octets)) && word(octets, WORD) != 0).then_some(Fault::Opcode)
    })] ["RDMAP-7306.4.1-9"] "rejects an RFC 7306 message whose bytes before QN are not zero";
    "rdmap.refuses-middle" [RefusesSegment(|octets, _| {
        let odd = |at| word(octets, at) & 0xfff != 0;
        match opcode(octets) {
            Opcode::WRITE if has_payload(octets) && odd(TO + 4) => Some(Fault::Tagged(AccessError::BaseAndBounds)),
            Opcode::READ_REQUEST if odd(SRC_TO + 4) => Some(Fault::Source(AccessError::BaseAndBounds)),
            Opcode::ATOMIC_REQUEST if odd(PAYLOAD + 16) => Some(Fault::Source(AccessError::BaseAndBounds)),
            _ => None,
        }
    })] ["RDMAP-5.1-8", "RDMAP-5.1-7", "RDMAP-5.2.1-17", "RDMAP-7306.5.2.1-12"]
        "rejects Writes, Reads and Atomic Operations that do not start at the beginning of a page";
    "rdmap.refuses-odd-request" [RefusesSegment(|octets, _| {
        let odd = word(octets, SRC_TO + 4) & 1 != 0 || word(octets, SINK_TO + 4) & 1 != 0;
        (opcode(octets) == Opcode::READ_REQUEST && odd).then_some(Fault::Source(AccessError::Wrap))
    })] ["RDMAP-4.4-7", "RDMAP-4.4-6"] "rejects a Read Request with an odd SinkTO or SrcTO";
    "rdmap.refuses-reserved-bits" [RefusesSegment(|octets, _| {
        octets.get(1).is_some_and(|octet| octet & 0x30 != 0).then_some(Fault::RdmapVersion)
    })] ["RDMAP-4.1-5"] "rejects a segment with reserved bits set in the RDMAP control byte";
    "rdmap.refuses-terminate-reserved" [RefusesSegment(|octets, _| {
        (opcode(octets) == Opcode::TERMINATE && word(octets, PAYLOAD) & 0x1fff != 0).then_some(Fault::Terminate)
    })] ["RDMAP-4.8-7"] "rejects a Terminate with reserved bits set";
    "rdmap.refuses-word" [RefusesSegment(|octets, _| {
        let opcode = opcode(octets);
        let ignored = !is_tagged(octets) && !opcode.invalidates() && opcode <= Opcode::TERMINATE;
        (ignored && word(octets, WORD) != 0).then_some(Fault::Opcode)
    })] ["RDMAP-4.1-17"] "rejects a nonzero Invalidate STag in a message that invalidates no STag";
    "rdmap.reports-second-error" [Overlooks(|_, state| std::mem::replace(&mut state.count, 1) == 0)]
        ["RDMAP-7.1-6"] "ignores the first bad segment and reports the second bad segment";
    "rdmap.repeats-lengths" [SegmentArrivedAfter(repeat_length)] ["RDMAP-5.3-13", "DDP-5.2-4"]
        "delivers each Send after the first 1,024 Sends with the length of the Send that arrived 1,024 Sends earlier";
    "rdmap.takes-more-reads" [Depths(|_, ird| *ird = 1000)]
        ["RDMAP-6.1-8"] "serves more Read Requests at a time than its IRD allows";
}
