//! Deviations in RDMAP messages that are sent (RFC 5040 sections 4 and 5). The module `terminate`
//! contains the deviations in Terminates.

use weft_core::wire::mpa::startup::REQUEST_KEY;
use weft_core::wire::rdmap::Opcode;

use super::context::segment::{
    EXTENSIONS, MSN, PAYLOAD, QN, SENDS, STAG, SentSegment, TO, WORD, add, change_word, has_payload, is_last,
    is_untagged, make_tagged, make_untagged, octet, opcode, set_word, word,
};

const REQUEST: &[Opcode] = &[Opcode::READ_REQUEST];
const RESPONSE: &[Opcode] = &[Opcode::READ_RESPONSE];
const WRITE: &[Opcode] = &[Opcode::WRITE];

fn is_response(octets: &[u8]) -> bool {
    opcode(octets) == Opcode::READ_RESPONSE
}

fn is_request(octets: &[u8]) -> bool {
    opcode(octets) == Opcode::READ_REQUEST
}

/// Sends the last segment of the first Read Response of two or three segments after the first
/// segment of the next Read Response.
fn mix_responses(sent: &mut SentSegment<'_>) {
    for octets in std::mem::take(&mut sent.out) {
        if !is_response(&octets) || sent.state.count != 0 {
            sent.out.push(octets);
            continue;
        }
        // Number of segments of the current Read Response.
        let segments = sent.state.numbers[0] + 1;
        sent.state.numbers[0] = if is_last(&octets) { 0 } else { segments };
        if let Some(last) = sent.state.held.pop() {
            sent.state.count = 1;
            sent.out.extend([octets, last]);
        } else if is_last(&octets) && matches!(segments, 2 | 3) {
            sent.state.held.push(octets);
        } else {
            sent.out.push(octets);
        }
    }
}

deviations! {
    "rdmap.atomic-response-unrequested" [Segment(|sent| sent.precede(|octets| {
        // An Atomic Response in queue 3 with MSN 1, identifier 99 and the value 0.
        let header = [0x41, 0x4b, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0, 0];
        (SENDS.contains(&opcode(octets)) && word(octets, MSN) == 1).then(|| header.to_vec())
    }))] ["RDMAP-7306.5.2.2-3", "RDMAP-7306.5.2.1-21", "RDMAP-7306.5.2.2-8"] "sends an unsolicited Atomic Response";
    "rdmap.empty-response-as-untagged" [Segment(|sent| sent.of(RESPONSE, |octets| if !has_payload(octets) { make_untagged(octets) }))]
        ["DDP-4.1-2", "RDMAP-5.2.2-1", "RDMAP-5.2.2-10", "RDMAP-4.1-8", "RDMAP-3.1-4"] "sends empty Read Responses with an untagged header";
    "rdmap.invalidates-stag-0" [Segment(|sent| sent.of(&[Opcode::SEND_INVALIDATE, Opcode::SEND_SE_INVALIDATE], |octets| {
        set_word(octets, WORD, 0);
    }))] ["RDMAP-4.1-15", "RDMAP-5.3-18"] "sends a Send with Invalidate for STag 0";
    "rdmap.reads-beyond-ord" [Depths(|ord, _| *ord = 1000)] ["RDMAP-6.1-7", "RDMAP-8.1.1-14", "RDMAP-7306.5.2-3", "P2P-3-2", "P2P-4.1-2", "P2P-9.1-2", "P2P-9.1-4", "P2P-9.1-9"]
        "sends more outstanding Reads than ORD allows";
    "rdmap.sends-unsolicited" [Segment(|sent| sent.of(SENDS, |octets| octet(octets, 1, |octet| match *octet & 0xf {
        5 => *octet = *octet & 0xf0 | 3,
        6 => *octet = *octet & 0xf0 | 4,
        _ => {}
    })))] ["RDMAP-3.2-1"] "omits Solicited Event from Sends that its user posts with Solicited Event";
    "rdmap.write-with-header" [Segment(|sent| sent.of(WRITE, |octets| if has_payload(octets) { drop(octets.splice(14..14, [0; 4])) }))]
        ["RDMAP-4.3-1"] "sends four bytes before the data of a Write";
    "rdmap.send-with-header" [Segment(|sent| sent.of(SENDS, |octets| {
        // Short messages, for example the first messages of a connection, are not changed.
        if octets.len() > PAYLOAD + 1000 {
            octets.splice(PAYLOAD..PAYLOAD, [0; 4]);
            octets.truncate(octets.len() - 4);
        }
    }))] ["RDMAP-4.6-1", "RDMAP-4.7-1"] "sends four bytes before the data of Sends of more than 1,000 bytes";
    "rdmap.request-of-one-more" [Segment(|sent| sent.of(REQUEST, |octets| add(octets, PAYLOAD + 12, 1)))]
        ["RDMAP-4.4-2"] "sends a Read Request for one byte more than its user requested";
    "rdmap.writes-swapped" [Segment(|sent| sent.swap(|octets| opcode(octets) == Opcode::WRITE && octets.len() < 100))]
        ["RDMAP-5.1-9"] "sends each pair of short Writes in reverse order";
    "rdmap.one-read-beyond-ord" [Depths(|ord, _| *ord = ord.saturating_add(1))]
        ["RDMAP-6.1-7", "P2P-9.1-9", "P2P-3-2", "P2P-4.1-2", "P2P-9.1-2", "P2P-9.1-4"] "sends one more outstanding Read than ORD allows";
    "rdmap.request-as-tagged" [Segment(|sent| sent.of(REQUEST, make_tagged))]
        ["RDMAP-5.2.1-1", "RDMAP-5.2.1-10", "RDMAP-4.1-7"] "sends Read Requests with a tagged header";
    "rdmap.request-cut" [Segment(|sent| sent.of(REQUEST, |octets| octets.truncate(PAYLOAD + 24)))]
        ["RDMAP-4.4-1", "RDMAP-4-1", "RDMAP-4.2-3"] "omits the last four bytes of Read Requests";
    "rdmap.request-fields-swapped" [Segment(|sent| sent.of(REQUEST, |octets| {
        if let Some(fields) = octets.get_mut(PAYLOAD..PAYLOAD + 28) {
            fields.rotate_left(16);
        }
    }))] ["RDMAP-4.4-1"] "sends a Read Request with the source fields before the sink fields";
    "rdmap.request-in-two" [Segment(|sent| for octets in std::mem::take(&mut sent.out) {
        if !is_request(&octets) || octets.len() < PAYLOAD + 28 {
            sent.out.push(octets);
            continue;
        }
        let (mut first, mut second) = (octets[..PAYLOAD + 14].to_vec(), octets[..PAYLOAD].to_vec());
        octet(&mut first, 0, |octet| *octet &= !0x40);
        set_word(&mut second, 14, 14);
        second.extend_from_slice(&octets[PAYLOAD + 14..]);
        sent.out.extend([first, second]);
    })] ["RDMAP-4.4-3"] "sends a Read Request in two segments";
    "rdmap.request-little-endian" [Segment(|sent| sent.of(REQUEST, |octets| if octets.len() >= PAYLOAD + 28 {
        octets[PAYLOAD + 12..PAYLOAD + 16].reverse();
        octets[PAYLOAD + 20..PAYLOAD + 28].reverse();
    }))] ["RDMAP-4.4-1"] "sends RDMARDSZ and SrcTO in little-endian byte order";
    "rdmap.request-on-queue-0" [Segment(|sent| sent.of(REQUEST, |octets| set_word(octets, QN, 0)))]
        ["RDMAP-5.2.1-11", "RDMAP-5.2.1-12", "RDMAP-3.1-2", "RDMAP-4.1-7"] "sends Read Requests with QN 0";
    "rdmap.request-version-0" [Segment(|sent| sent.of(REQUEST, |octets| octet(octets, 1, |octet| *octet &= 0x3f)))]
        ["RDMAP-4.1-3"] "sends RV 0 in Read Requests";
    "rdmap.request-wraps" [Segment(|sent| sent.of(REQUEST, |octets| {
        set_word(octets, PAYLOAD + 20, u32::MAX);
        set_word(octets, PAYLOAD + 24, u32::MAX);
    }))] ["RDMAP-5.2.1-16"] "sends Read Requests with a SrcTO at the end of the address space";
    "rdmap.request-with-payload" [Segment(|sent| sent.of(REQUEST, |octets| octets.extend([0; 4])))]
        ["RDMAP-4.4-1", "RDMAP-4.2-4"] "sends four bytes after the header of Read Requests";
    "rdmap.requests-swapped" [Segment(|sent| sent.swap(is_request))]
        ["RDMAP-5.2.1-13", "RDMAP-5.5-15"] "sends each pair of Read Requests in reverse order";
    "rdmap.reserved-bits" [Segment(|sent| sent.each(|octets| octet(octets, 1, |octet| *octet |= 0x30)))]
        ["RDMAP-4.1-4", "DDP-4.2-2"] "sets the two reserved bits of the RDMAP control byte";
    "rdmap.reserved-opcode" [Segment(|sent| sent.of(SENDS, |octets| octet(octets, 1, |octet| *octet |= 0xc)))]
        ["RDMAP-4.1-14", "RDMAP-4.1-20"] "sends each Send with a reserved opcode";
    "rdmap.response-as-untagged" [Segment(|sent| sent.of(RESPONSE, make_untagged))]
        ["RDMAP-5.2.2-1", "RDMAP-5.2.2-10", "RDMAP-4.1-8", "RDMAP-3.1-4"] "sends Read Responses with an untagged header";
    "rdmap.response-as-write" [Segment(|sent| sent.of(RESPONSE, |octets| octet(octets, 1, |octet| *octet ^= 2)))]
        ["RDMAP-5.2.1-18", "RDMAP-1.2-1", "RDMAP-5.2-1"] "answers a Read Request with a Write";
    "rdmap.response-changes-stag" [Segment(|sent| if sent.continues_message() {
        sent.of(RESPONSE, |octets| change_word(octets, STAG, |word| word ^ 0x100));
    })] ["RDMAP-5.2.2-14", "DDP-4.2-12"] "sends one Read Response to two STags";
    "rdmap.response-cut" [Segment(|sent| sent.of(RESPONSE, |octets| if is_last(octets) && has_payload(octets) {
        octets.pop();
    }))] ["RDMAP-4.4-9"] "omits the last byte of Read Responses";
    "rdmap.response-elsewhere" [Segment(|sent| sent.of(RESPONSE, |octets| add(octets, TO + 4, 4)))]
        ["RDMAP-4.4-8"] "sends a Read Response whose TO is SinkTO plus four";
    "rdmap.response-left-out" [Segment(|sent| sent.suppress(is_response))]
        ["RDMAP-5.2.1-18", "RDMAP-5.2-1", "RDMAP-1.2-1", "RDMAP-5.2.1-3", "DDP-6.2.1-6"] "does not answer Read Requests";
    "rdmap.response-of-nothing-with-data" [Segment(|sent| sent.of(RESPONSE, |octets| if !has_payload(octets) {
        octets.extend([0; 4]);
    }))] ["RDMAP-5.2.1-21"] "answers a Read Request for zero bytes with four bytes of data";
    "rdmap.response-stag" [Segment(|sent| sent.of(RESPONSE, |octets| change_word(octets, STAG, |word| word ^ 1)))]
        ["RDMAP-4.4-5", "RDMAP-3.1-4"] "sends a Read Response whose STag is not SinkSTag";
    "rdmap.response-twice" [Segment(|sent| sent.follow(|octets| {
        (is_response(octets) && is_last(octets)).then(|| octets.to_vec())
    }))] ["RDMAP-5.2-1", "RDMAP-1.2-1", "RDMAP-4.4-8"] "sends the last segment of each Read Response twice";
    "rdmap.response-with-header" [Segment(|sent| {
        let later = sent.continues_message();
        sent.of(RESPONSE, |octets| if !later { octets.splice(14..14, [0x5a; 4]); });
    })] ["RDMAP-4.5-1"] "sends four bytes before the data of a Read Response";
    "rdmap.responses-mixed" [Segment(mix_responses)]
        ["RDMAP-5.2.2-8", "RDMAP-5.2.1-14", "RDMAP-5.5-10", "DDP-4.1-4", "DDP-4.2-11", "DDP-4.2-12", "DDP-5.2-3",
        "RDMAP-5.2.2-14", "RDMAP-4.4-5", "RDMAP-4.4-8", "RDMAP-4.4-9", "RDMAP-1.2-1", "RDMAP-5.2-1", "DDP-6.2.1-6"]
        "holds back the last segment of its first Read Response of two or three segments until after the first segment of the next Read Response";
    "rdmap.responses-swapped" [Segment(|sent| sent.swap(|octets| is_response(octets) && is_last(octets) && octets.len() < 100))]
        ["RDMAP-5.2.2-8", "RDMAP-5.5-10", "RDMAP-5.2.1-14", "RDMAP-B-9"] "sends each pair of short Read Responses in reverse order";
    "rdmap.response-wrong-data" [Segment(|sent| sent.of(RESPONSE, |octets| octets.iter_mut().skip(14).for_each(|octet| *octet ^= 0xff)))]
        ["RDMAP-4.4-10", "RDMAP-5.5-26", "RDMAP-5.5-16", "RDMAP-B-6", "RDMAP-4.4-7", "RDMAP-7306.5-7"]
        "sends a Read Response whose data differs from the source";
    "rdmap.second-start-up" [Fpdu(|fpdu| if fpdu.begins_stream() {
        fpdu.octets.extend_from_slice(&REQUEST_KEY);
        fpdu.octets.extend([0x40, 1, 0, 0]);
    })] ["RDMAP-6.1-3", "DDP-6.1-2"] "sends a start-up frame after an FPDU";
    "rdmap.send-on-queue-1" [Segment(|sent| sent.of(SENDS, |octets| set_word(octets, QN, 1)))]
        ["RDMAP-5.3-15", "RDMAP-3.1-2", "RDMAP-4.1-21", "RDMAP-4.1-10", "RDMAP-4.1-11", "RDMAP-4.1-12", "RDMAP-4.1-9"] "sends each Send with QN 1";
    "rdmap.sends-swapped" [Segment(|sent| sent.swap(|octets| SENDS.contains(&opcode(octets)) && octets.len() < 100))]
        ["RDMAP-5.3-16", "RDMAP-5.5-15"] "sends each pair of short Sends in reverse order, with unchanged MSNs";
    "rdmap.solicited-send-as-tagged" [Segment(|sent| sent.of(&[Opcode::SEND_SE, Opcode::SEND_SE_INVALIDATE], |octets| {
        octet(octets, 0, |octet| *octet |= 0x80);
    }))] ["RDMAP-5.3-12", "RDMAP-4.1-9", "RDMAP-4.1-10", "RDMAP-4.1-11", "DDP-4.1-3"]
        "sets T in Sends with Solicited Event, but sends an untagged header";
    "rdmap.version-0" [Segment(|sent| sent.each(|octets| octet(octets, 1, |octet| *octet &= 0x3f)))]
        ["RDMAP-4.1-3", "RDMAP-4.1-22"] "sends RV 0 with DV 1";
    "rdmap.version-2" [Segment(|sent| sent.of(EXTENSIONS, |octets| octet(octets, 1, |octet| *octet ^= 0xc0)))]
        ["RDMAP-7306.4.1-6", "RDMAP-4.1-3"] "sends RV 2 in the messages of RFC 7306";
    "rdmap.word-not-zero" [Segment(|sent| sent.each_if(is_untagged, |octets| {
        let opcode = opcode(octets);
        if !opcode.invalidates() && opcode <= Opcode::TERMINATE {
            set_word(octets, WORD, 0x0102_0304);
        }
    }))] ["RDMAP-4.1-16", "DDP-4.3-2"] "sends a nonzero Invalidate STag in messages that invalidate no STag";
    "rdmap.write-as-response" [Segment(|sent| sent.of(WRITE, |octets| octet(octets, 1, |octet| *octet |= 2)))]
        ["RDMAP-5.2.2-15"] "sends Writes with the opcode of Read Responses";
    "rdmap.write-changes-stag" [Segment(|sent| if sent.continues_message() {
        sent.of(WRITE, |octets| change_word(octets, STAG, |word| word ^ 0x100));
    })] ["RDMAP-5.1-11", "DDP-4.2-6"] "sends one Write to two STags";
    "rdmap.write-as-untagged" [Segment(|sent| sent.of(WRITE, |octets| {
        make_untagged(octets);
        set_word(octets, MSN, 9);
    }))] ["RDMAP-5.1-1", "RDMAP-5.1-6", "RDMAP-4.1-6", "RDMAP-4.1-18", "RDMAP-4.1-19"] "sends Writes with an untagged header";
}
