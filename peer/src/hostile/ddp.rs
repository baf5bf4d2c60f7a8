//! Deviations in DDP segments that are sent (RFC 5041 sections 4 and 5).

use weft_core::wire::rdmap::Opcode;

use super::context::segment::{
    DeviationState, MO, MSN, QN, SENDS, STAG, SentSegment, TO, WORD, add, change_word, has_payload, header_len,
    is_last, is_tagged, is_untagged, make_tagged, make_untagged, octet, opcode, set_word, word,
};

/// Length in bytes of the longest segments on Ethernet. This is MULPDU for an EMSS of 1460 bytes,
/// without markers.
const FULL: usize = 1454;

/// Applies a change to each segment that `selected` selects, if the segment continues the message
/// of the previous segment.
fn later(sent: &mut SentSegment<'_>, selected: impl Fn(&[u8]) -> bool, change: impl Fn(&mut Vec<u8>)) {
    if sent.continues_message() {
        sent.each_if(selected, change);
    }
}

deviations! {
    "ddp.begins-with-msn-2" [Segment(|sent| sent.each_if(is_untagged, |octets| add(octets, MSN, 1)))]
        ["DDP-4.3-7"] "sends MSN 2 in the first message of each queue";
    "ddp.begins-with-mo-4" [Segment(|sent| sent.each_if(is_untagged, |octets| add(octets, MO, 4)))]
        ["DDP-4.3-10", "DDP-1.2-5"] "sends MO 4 in the first segment of an untagged message";
    "ddp.begins-with-mo-65536" [Segment(|sent| sent.of(SENDS, |octets| change_word(octets, MO, |word| word | 0x1_0000)))]
        ["DDP-1.2-5", "DDP-4.3-10"] "sets a bit in the upper half of the MO of Sends";
    "ddp.changes-msn" [Segment(|sent| later(sent, is_untagged, |octets| add(octets, MSN, 1)))]
        ["DDP-4.3-9", "DDP-4.3-16"] "changes MSN after the first segment of an untagged message";
    "ddp.changes-qn" [Segment(|sent| later(sent, is_untagged, |octets| set_word(octets, QN, 5)))]
        ["DDP-4.3-5", "DDP-4.3-15", "RDMAP-4.1-10", "RDMAP-4.1-9"] "changes QN after the first segment of an untagged message";
    "ddp.changes-stag" [Segment(|sent| later(sent, is_tagged, |octets| change_word(octets, STAG, |word| word ^ 0x100)))]
        ["DDP-4.2-6", "DDP-4.2-13", "DDP-4.2-12"] "changes the STag after the first segment of a tagged message";
    "ddp.changes-tagged-ulp-octet" [Segment(|sent| later(sent, is_tagged, |octets| octet(octets, 1, |octet| *octet ^= 2)))]
        ["DDP-4.2-4", "DDP-4.2-10", "RDMAP-3.1-3", "RDMAP-3.1-9"] "changes the opcode after the first segment of a tagged message";
    "ddp.changes-untagged-ulp-octets" [Segment(|sent| later(sent, is_untagged, |octets| change_word(octets, WORD, |word| word ^ 0x100)))]
        ["DDP-4.3-3", "RDMAP-3.1-9", "RDMAP-5.3-19"] "changes the four bytes before the QN field in later segments of an untagged message";
    "ddp.cuts-header" [Segment(|sent| sent.each(|octets| if !has_payload(octets) { octets.truncate(12) }))]
        ["DDP-4.4-1", "RDMAP-3.1-1", "RDMAP-3.1-5"] "sends a header of 12 bytes in segments without payload";
    "ddp.drops-a-segment" [Segment(|sent| {
        let later = sent.continues_message();
        sent.suppress(|octets| later && !is_last(octets));
    })] ["DDP-5.2-3"] "sends only the first and the last segment of a message";
    "ddp.empty-message-in-two" [Segment(|sent| sent.precede(|octets| {
        (!has_payload(octets) && is_last(octets)).then(|| {
            let mut first = octets.to_vec();
            octet(&mut first, 0, |octet| *octet &= !0x40);
            first
        })
    }))] ["DDP-5.2-8"] "sends a message without payload in two segments";
    "ddp.empty-tagged-ulp-octet" [Segment(|sent| sent.each_if(is_tagged, |octets| if !has_payload(octets) { octet(octets, 1, |octet| *octet |= 0x30) }))]
        ["DDP-5.2-9", "DDP-4.2-2"] "sets reserved bits in the second byte of a tagged message without payload";
    "ddp.exceeds-mulpdu" [Mulpdu(|mulpdu| *mulpdu = mulpdu.saturating_add(200))]
        ["DDP-5.2-12"] "sends segments that are 200 bytes longer than MULPDU";
    "ddp.forgets-last" [Segment(|sent| later(sent, |_| true, |octets| octet(octets, 0, |octet| *octet &= !0x40)))]
        ["DDP-4.1-4"] "never sets L in a message of several segments";
    "ddp.forgets-last-when-full" [Segment(|sent| sent.each(|octets| if octets.len() >= FULL {
        octet(octets, 0, |octet| *octet &= !0x40);
    }))] ["DDP-4.1-4", "DDP-4.1-5"] "does not set L in the last segment if the segment has the maximum length";
    "ddp.forgets-version" [Segment(|sent| later(sent, is_untagged, |octets| octet(octets, 0, |octet| *octet &= !3)))]
        ["DDP-4.1-12", "DDP-4.1-1", "DDP-4.1-13"] "sends DV 0 after the first segment of an untagged message";
    "ddp.header-only-once" [Segment(|sent| later(sent, |_| true, |octets| drop(octets.drain(..header_len(octets)))))]
        ["DDP-5.2-1", "DDP-4.3-1", "DDP-4.4-1", "RDMAP-4.1-1", "RDMAP-4.1-2"] "sends a DDP header only in the first segment of a message";
    "ddp.last-everywhere" [Segment(|sent| sent.each(|octets| octet(octets, 0, |octet| *octet |= 0x40)))]
        ["DDP-4.1-5", "DDP-5.2-7"] "sets L in every segment";
    "ddp.last-before-others" [Segment(|sent| {
        let later = sent.continues_message();
        sent.swap(|octets| later && !is_tagged(octets));
    })] ["DDP-4.1-6", "DDP-4.1-7", "DDP-5.3-2"] "swaps the last two of three segments of a message";
    "ddp.mo-counts-headers" [Segment(|sent| {
        sent.state.numbers[0] = if sent.continues_message() { sent.state.numbers[0] + 1 } else { 0 };
        let more = sent.state.numbers[0] * 18;
        sent.each_if(is_untagged, |octets| add(octets, MO, more));
    })] ["DDP-5.2-5", "DDP-4.3-11"] "counts the header bytes of earlier segments in MO";
    "ddp.mo-goes-on" [Segment(|sent| {
        let later = sent.continues_message();
        let DeviationState { numbers: [begins, length, ..], .. } = &mut *sent.state;
        for octets in sent.out.iter_mut().filter(|octets| is_untagged(octets)) {
            if !later {
                *begins = std::mem::take(length);
            }
            if !is_last(octets) || later {
                *length = word(octets, MO) + u32::try_from(octets.len() - header_len(octets)).unwrap_or(0);
            }
            add(octets, MO, *begins);
        }
    })] ["DDP-1.2-5", "DDP-4.3-10"] "does not restart MO at 0 after a message of several segments";
    "ddp.mo-constant" [Segment(|sent| sent.each_if(is_untagged, |octets| set_word(octets, MO, 0)))]
        ["DDP-4.3-11", "DDP-5.2-5"] "sends MO 0 in every segment";
    "ddp.msn-of-all-queues" [Segment(|sent| {
        let later = sent.continues_message();
        for octets in sent.out.iter_mut().filter(|octets| is_untagged(octets) && word(octets, QN) < 2) {
            sent.state.numbers[0] += u32::from(!later);
            set_word(octets, MSN, sent.state.numbers[0]);
        }
    })] ["DDP-4.3-6", "DDP-4.3-7"] "counts MSN for queue 0 and queue 1 together";
    "ddp.msn-of-segments" [Segment(|sent| for octets in sent.out.iter_mut().filter(|octets| is_untagged(octets) && word(octets, QN) < 3) {
        let number = &mut sent.state.numbers[word(octets, QN) as usize % 3];
        *number += 1;
        set_word(octets, MSN, *number);
    })] ["DDP-4.3-16", "DDP-4.3-9", "DDP-4.3-6"] "counts segments in MSN, not messages";
    "ddp.msn-skips" [Segment(|sent| sent.each_if(is_untagged, |octets| change_word(octets, MSN, |word| word.wrapping_mul(2).wrapping_sub(1))))]
        ["DDP-4.3-6"] "increments MSN by two for each message";
    "ddp.msn-of-8-bits" [Segment(|sent| sent.of(&[Opcode::READ_REQUEST], |octets| change_word(octets, MSN, |word| word & 0xff)))]
        ["DDP-4.3-6"] "keeps the MSN of its Read Requests in eight bits";
    "ddp.msn-constant" [Segment(|sent| sent.each_if(is_untagged, |octets| set_word(octets, MSN, 1)))]
        ["DDP-4.3-6", "DDP-5.2-7"] "sends MSN 1 in every message";
    "ddp.reserved-bits" [Segment(|sent| sent.each(|octets| octet(octets, 0, |octet| *octet |= 0x3c)))]
        ["DDP-4.1-10", "DDP-4.1-1"] "sets the four reserved bits in the first byte of each DDP header";
    "ddp.second-message-first" [Segment(|sent| sent.swap(|octets| SENDS.contains(&opcode(octets)) && octets.len() < 100))]
        ["DDP-5.3-1"] "sends each pair of short Sends in reverse order";
    "ddp.send-as-tagged" [Segment(|sent| sent.of(SENDS, make_tagged))] ["DDP-4.1-3", "RDMAP-4.1-10", "RDMAP-4.1-11", "RDMAP-4.1-12", "RDMAP-4.1-9", "RDMAP-5.3-1", "RDMAP-5.3-12"] "sends each Send with a tagged header";
    "ddp.stag-of-nobody" [Segment(|sent| sent.of(&[Opcode::WRITE], |octets| {
        change_word(octets, STAG, |word| word ^ 0x00ff_ff00);
    }))] ["DDP-4.2-5", "DDP-4.2-11"] "writes to an STag that the peer never advertised";
    "ddp.swaps-segments" [Segment(|sent| {
        sent.continues_message();
        sent.swap(|octets| is_tagged(octets) && !is_last(octets));
    })] ["DDP-5.3-2"] "sends each pair of segments of a tagged message in reverse order, except the last segment";
    "ddp.tagged-little-endian" [Segment(|sent| sent.each_if(is_tagged, |octets| if octets.len() >= 14 {
        octets[STAG..TO].reverse();
        octets[TO..14].reverse();
    }))] ["DDP-4.2-1", "DDP-4.2-5"] "sends STag and TO in little-endian byte order";
    "ddp.to-constant" [Segment(|sent| {
        let later = sent.continues_message();
        if let Some(right) = sent.out.first().filter(|octets| is_tagged(octets)) {
            let to = [word(right, TO), word(right, TO + 4)];
            if !later {
                sent.state.held = vec![[to[0].to_be_bytes(), to[1].to_be_bytes()].concat()];
            }
            let first = sent.state.held.first().cloned().unwrap_or_default();
            sent.each(|octets| {
                set_word(octets, TO, word(&first, 0));
                set_word(octets, TO + 4, word(&first, 4));
            });
        }
    })] ["DDP-4.2-9", "DDP-5.2-6"] "sends the same TO in every segment of a tagged message";
    "ddp.terminate-qn-as-msn" [Segment(|sent| sent.of(&[Opcode::TERMINATE], |octets| {
        let (qn, msn) = (word(octets, QN), word(octets, MSN));
        set_word(octets, QN, msn);
        set_word(octets, MSN, qn);
    }))] ["DDP-4.3-1", "RDMAP-5.4-8", "RDMAP-3.1-2", "RDMAP-4.1-13"] "swaps QN and MSN of the Terminate";
    "ddp.to-overlaps" [Segment(|sent| later(sent, is_tagged, |octets| add(octets, TO + 4, 8_u32.wrapping_neg())))]
        ["DDP-4.2-9", "DDP-5.2-6"] "sends a TO that is eight bytes too low after the first segment of a tagged message";
    "ddp.to-words-exchanged" [Segment(|sent| sent.of(&[Opcode::WRITE], |octets| if octets.len() >= 14 {
        octets[TO..14].rotate_left(4);
    }))] ["DDP-4.2-1", "DDP-4.2-9", "DDP-5.2-6"] "swaps the upper and the lower half of the TO of a Write";
    "ddp.unknown-queue" [Segment(|sent| sent.of(SENDS, |octets| set_word(octets, QN, 4)))]
        ["DDP-4.3-14", "RDMAP-4.1-10", "RDMAP-4.1-11", "RDMAP-4.1-12", "RDMAP-4.1-9"] "sends each Send with QN 4";
    "ddp.untagged-little-endian" [Segment(|sent| sent.each_if(is_untagged, |octets| if octets.len() >= 18 {
        octets[QN..MSN].reverse();
        octets[MSN..MO].reverse();
        octets[MO..18].reverse();
    }))] ["DDP-4.3-1", "DDP-4.3-6", "DDP-4.3-7"] "sends QN, MSN and MO in little-endian byte order";
    "ddp.version-2" [Segment(|sent| sent.each(|octets| octet(octets, 0, |octet| *octet ^= 3)))]
        ["DDP-4.1-12"] "sends DV 2 instead of 1";
    "ddp.version-changes" [Segment(|sent| sent.each_if(is_tagged, |octets| octet(octets, 0, |octet| *octet ^= 3)))]
        ["DDP-4.1-13", "DDP-4.1-12"] "sends DV 2 in tagged segments and DV 1 in untagged segments";
    "ddp.write-as-untagged" [Segment(|sent| sent.of(&[Opcode::WRITE], make_untagged))]
        ["DDP-4.1-2", "RDMAP-3.1-4", "RDMAP-4.1-6", "RDMAP-4.1-18", "RDMAP-4.1-19", "RDMAP-5.1-1", "RDMAP-5.1-6"]
        "sends Writes with an untagged header";
    "ddp.writes-to-invalidated-stag" [Segment(|sent| for octets in &mut sent.out {
        if opcode(octets).invalidates() && sent.state.count == 0 {
            sent.state.count = word(octets, WORD);
        } else if opcode(octets) == Opcode::WRITE && has_payload(octets) && sent.state.count != 0 {
            set_word(octets, STAG, sent.state.count);
        }
    })] ["DDP-4.2-5", "DDP-4.2-11"] "writes to the STag that its first Send with Invalidate has invalidated";
}
