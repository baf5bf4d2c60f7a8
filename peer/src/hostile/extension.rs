//! Deviations in the RFC 7306 messages that are sent, and in the effect of Atomic Operations.

use weft_core::wire::rdmap::{AtomicOperation, Opcode};

use super::context::segment::{
    EXTENSIONS, PAYLOAD, QN, WORD, change_word, is_last, make_tagged, octet, opcode, set_word,
};

const IMMEDIATE: &[Opcode] = &[Opcode::IMMEDIATE, Opcode::IMMEDIATE_SE];
const REQUEST: &[Opcode] = &[Opcode::ATOMIC_REQUEST];
const RESPONSE: &[Opcode] = &[Opcode::ATOMIC_RESPONSE];
/// Offsets of the fields of an Atomic Request.
const ATOMIC_OPCODE: usize = PAYLOAD + 3;
const REMOTE_TO: usize = PAYLOAD + 12;
const COMPARE_DATA: usize = PAYLOAD + 36;
const COMPARE_MASK: usize = PAYLOAD + 44;

fn is_fetch_add(octets: &[u8]) -> bool {
    octets.get(ATOMIC_OPCODE).is_some_and(|octet| octet & 0xf == 0)
}

deviations! {
    "rdmap.atomic-adds-one-more" [Atomic(|operation| if let AtomicOperation::FetchAdd { add_data, .. } = operation {
        *add_data = add_data.wrapping_add(1);
    })] ["RDMAP-7306.5.1.1-1", "RDMAP-7306.1.1-4"] "computes a sum that is one too high in a FetchAdd";
    "rdmap.atomic-always-swaps" [Atomic(|operation| if let AtomicOperation::CmpSwap { compare_mask, .. } = operation {
        *compare_mask = 0;
    })] ["RDMAP-7306.5.1.2-2", "RDMAP-7306.5.1.2-1"] "executes the swap of a CmpSwap even if the comparison fails";
    "rdmap.atomic-byte-order" [Atomic(|operation| if let AtomicOperation::FetchAdd { add_data, .. } = operation {
        *add_data = add_data.swap_bytes();
    })] ["RDMAP-7306.5.1.1-8"] "reads the Add Data field of a FetchAdd in little-endian byte order";
    "rdmap.atomic-forgets-mask" [Atomic(|operation| if let AtomicOperation::FetchAdd { add_mask, .. } = operation {
        *add_mask = 0;
    })] ["RDMAP-7306.5.1.1-2"] "lets the carry of a FetchAdd cross the boundaries that the Add Mask field sets";
    "rdmap.atomic-misaligned" [Segment(|sent| sent.of(REQUEST, |octets| {
        octet(octets, REMOTE_TO + 7, |octet| *octet |= 4);
    }))] ["RDMAP-7306.5.1.1-3", "RDMAP-7306.5.1.2-4", "RDMAP-7306.5.2.1-13"]
        "sends Atomic Requests for an address that is not a multiple of eight";
    "rdmap.atomic-never-swaps" [Atomic(|operation| if let AtomicOperation::CmpSwap { swap_mask, .. } = operation {
        *swap_mask = 0;
    })] ["RDMAP-7306.5.1.2-3", "RDMAP-7306.5.1.2-1"] "never executes the swap of a CmpSwap";
    "rdmap.atomic-request-as-tagged" [Segment(|sent| sent.of(REQUEST, make_tagged))]
        ["RDMAP-7306.5.2.1-6", "RDMAP-7306.5.2.1-14", "RDMAP-7306.4.1-3"] "sends Atomic Requests with a tagged header";
    "rdmap.atomic-request-compare-data" [Segment(|sent| sent.of(REQUEST, |octets| if is_fetch_add(octets) {
        octet(octets, COMPARE_DATA, |octet| *octet = 1);
    }))] ["RDMAP-7306.5.2.1-22"] "sends a FetchAdd whose Compare Data field is not zero";
    "rdmap.atomic-request-compare-mask" [Segment(|sent| sent.of(REQUEST, |octets| if is_fetch_add(octets) {
        set_word(octets, COMPARE_MASK, 0);
    }))] ["RDMAP-7306.5.2.1-23"] "sends a FetchAdd whose Compare Mask field is not all ones";
    "rdmap.atomic-request-cut" [Segment(|sent| sent.of(REQUEST, |octets| octets.truncate(PAYLOAD + 32)))]
        ["RDMAP-7306.5.2.1-1", "RDMAP-7306.4-1", "RDMAP-7306.4.2-3", "RDMAP-7306.A-1"]
        "sends Atomic Requests with a header of 32 bytes instead of 52 bytes";
    "rdmap.atomic-request-on-queue-0" [Segment(|sent| sent.of(REQUEST, |octets| set_word(octets, QN, 0)))]
        ["RDMAP-7306.5.2-1", "RDMAP-7306.5.2.1-17", "RDMAP-7306.5.2.1-18", "RDMAP-7306.4.1-3"] "sends Atomic Requests with QN 0";
    "rdmap.atomic-request-opcode-1" [Segment(|sent| sent.of(REQUEST, |octets| if is_fetch_add(octets) {
        octet(octets, ATOMIC_OPCODE, |octet| *octet |= 1);
    }))] ["RDMAP-7306.5.2.1-3"] "sends FetchAdd with AOpCode 1";
    "rdmap.atomic-request-opcode-3" [Segment(|sent| sent.of(REQUEST, |octets| if !is_fetch_add(octets) {
        octet(octets, ATOMIC_OPCODE, |octet| *octet |= 1);
    }))] ["RDMAP-7306.5.2.1-4"] "sends CmpSwap with AOpCode 3";
    "rdmap.atomic-request-reserved-bits" [Segment(|sent| sent.of(REQUEST, |octets| {
        octet(octets, PAYLOAD, |octet| *octet = 0xff);
    }))] ["RDMAP-7306.5.2.1-2"] "sets reserved bits of an Atomic Request";
    "rdmap.atomic-request-with-payload" [Segment(|sent| sent.of(REQUEST, |octets| octets.extend([0; 4])))]
        ["RDMAP-7306.4.2-4", "RDMAP-7306.5.2.1-1", "RDMAP-7306.4-1"] "sends four bytes after the header of an Atomic Request";
    "rdmap.atomic-requests-swapped" [Segment(|sent| sent.swap(|octets| opcode(octets) == Opcode::ATOMIC_REQUEST))]
        ["RDMAP-7306.5.2.1-19"] "sends each pair of Atomic Requests in reverse order";
    "rdmap.atomic-response-as-tagged" [Segment(|sent| sent.of(RESPONSE, make_tagged))]
        ["RDMAP-7306.5.2.2-2", "RDMAP-7306.5.2.2-6", "RDMAP-7306.5-5", "RDMAP-7306.4.1-4"] "sends Atomic Responses with a tagged header";
    "rdmap.atomic-response-before-read" [Segment(|sent| for octets in std::mem::take(&mut sent.out) {
        match (opcode(&octets), sent.state.count) {
            (Opcode::READ_RESPONSE, 1) if is_last(&octets) => {
                sent.state.count = 2;
                sent.state.held.push(octets);
            }
            (Opcode::ATOMIC_RESPONSE, count) => {
                sent.state.count = count.max(1);
                sent.out.push(octets);
                sent.out.append(&mut sent.state.held);
            }
            _ => sent.out.push(octets),
        }
    })] ["RDMAP-7306.7-14", "RDMAP-7306.7-10"] "delays the first Read Response after an Atomic Response until the next Atomic Response";
    "rdmap.atomic-response-cut" [Segment(|sent| sent.of(RESPONSE, |octets| octets.truncate(PAYLOAD + 8)))]
        ["RDMAP-7306.5.2.2-1", "RDMAP-7306.4-1"] "omits the last four bytes of Atomic Responses";
    "rdmap.atomic-response-of-32" [Segment(|sent| sent.of(RESPONSE, |octets| octets.extend([0; 20])))]
        ["RDMAP-7306.5.2.2-1", "RDMAP-7306.4-1", "RDMAP-7306.4.2-3"] "sends Atomic Responses with a header of 32 bytes (RFC 7306 section 4) instead of 12 bytes (Figure 6)";
    "rdmap.atomic-response-identifier" [Segment(|sent| sent.of(RESPONSE, |octets| {
        change_word(octets, PAYLOAD, |word| word ^ 0x8000_0000);
    }))] ["RDMAP-7306.5.2.2-3"] "sends Atomic Responses whose identifier differs from the identifier of the request";
    "rdmap.atomic-response-left-out" [Segment(|sent| sent.suppress(|octets| opcode(octets) == Opcode::ATOMIC_RESPONSE))]
        ["RDMAP-7306.5.2.1-21", "RDMAP-7306.5.2.1-8", "RDMAP-7306.5-3", "RDMAP-7306.5.2.1-11", "RDMAP-7306.1.1-3"]
        "does not answer Atomic Requests";
    "rdmap.atomic-response-new-value" [Segment(|sent| sent.of(RESPONSE, |octets| {
        octet(octets, PAYLOAD + 11, |octet| *octet ^= 0xff);
    }))] ["RDMAP-7306.5.1.1-1", "RDMAP-7306.5.1.2-1", "RDMAP-7306.5.2.2-12"] "sends an Atomic Response with a value that is not the original value";
    "rdmap.atomic-response-on-queue-0" [Segment(|sent| sent.of(RESPONSE, |octets| set_word(octets, QN, 0)))]
        ["RDMAP-7306.5.2-2", "RDMAP-7306.5.2.2-7", "RDMAP-7306.5.2.2-8", "RDMAP-7306.4.1-10", "RDMAP-7306.5-5"]
        "sends Atomic Responses with QN 0";
    "rdmap.atomic-responses-swapped" [Segment(|sent| sent.swap(|octets| opcode(octets) == Opcode::ATOMIC_RESPONSE))]
        ["RDMAP-7306.5.2.2-11", "RDMAP-7306.5.4-11", "RDMAP-7306.5.2.1-20", "RDMAP-7306.5.4-1", "RDMAP-7306.7-11"]
        "sends each pair of Atomic Responses in reverse order";
    "rdmap.extension-word-not-zero" [Segment(|sent| sent.of(EXTENSIONS, |octets| set_word(octets, WORD, 0x0102_0304)))]
        ["RDMAP-7306.4.1-8"] "sends Immediate Data and Atomic messages whose Invalidate STag is not zero";
    "rdmap.immediate-as-tagged" [Segment(|sent| sent.of(IMMEDIATE, make_tagged))]
        ["RDMAP-7306.6.3-5", "RDMAP-7306.6.3-6", "RDMAP-7306.4.1-1", "RDMAP-7306.4.1-2"] "sends Immediate Data with a tagged header";
    "rdmap.immediate-cut" [Segment(|sent| sent.of(IMMEDIATE, |octets| octets.truncate(PAYLOAD + 7)))]
        ["RDMAP-7306.6.2-1", "RDMAP-7306.6.3-9", "RDMAP-7306.4-1"] "sends Immediate Data of seven bytes";
    "rdmap.immediate-on-queue-1" [Segment(|sent| sent.of(IMMEDIATE, |octets| set_word(octets, QN, 1)))]
        ["RDMAP-7306.6.3-8", "RDMAP-7306.4.1-1", "RDMAP-7306.4.1-2", "RDMAP-7306.4.1-7"] "sends Immediate Data with QN 1";
    "rdmap.immediates-swapped" [Segment(|sent| sent.swap(|octets| IMMEDIATE.contains(&opcode(octets))))]
        ["RDMAP-7306.6.3-10"] "sends each pair of Immediate Data messages in reverse order";
}
