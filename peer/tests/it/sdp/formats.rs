//! These tests check the message formats of draft-pinkerton-iwarp-sdp-01 section 6. They check all
//! messages of one recorded conversation ([`Talk`]).

use weft_core::coverage::{Coverage, CoverageKind};

use crate::sdp::bench::SentMessage;
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::talk::{BUFS, SIZE, Talk, figure_3};
use crate::sdp::wire::word;

/// Returns whether there is at least one item and all items meet the condition.
fn all<T>(of: impl IntoIterator<Item = T>, is: impl Fn(T) -> bool) -> bool {
    let mut any = false;
    of.into_iter().all(|one| {
        any = true;
        is(one)
    }) && any
}

fn has_len(talk: &Talk, mid: u8, len: usize) -> bool {
    all(talk.of(mid), |message| 16 + message.rest.len() == len)
}

#[test]
fn every_message_begins_with_a_bsdh() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let talk = Talk::held();
    let octets: Vec<&[u8]> = talk
        .items
        .iter()
        .filter_map(|(_, item)| match item {
            Item::Message { octets, .. } | Item::Streaming(octets) => Some(&octets[..]),
            _ => None,
        })
        .collect();
    let numbers = |side| -> Vec<u32> {
        talk.messages()
            .iter()
            .filter(|(from, message)| *from == side && message.mid != 1)
            .map(|(_, message)| message.mseq)
            .collect()
    };
    let moved = talk.items.iter().filter(|(_, item)| matches!(item, Item::Write { .. } | Item::ReadRequest { .. }));
    let word_at = |octets: &[u8], at: usize| u32::from_be_bytes(octets[at..at + 4].try_into().unwrap());
    shows!(proof:
        "SDP-6-1" => all(&octets, |octets| octets.len() >= 16 && word_at(octets, 4) as usize == octets.len());
        // The fields are in the order of Figure 2. At first, all Private Buffers are posted, so
        // Bufs is their number.
        "SDP-6.1-1" => talk.hello()[..2] == BUFS.to_be_bytes() && talk.hello()[2..4] == [0, 0]
            && all(&octets, |octets| figure_3(octets[3]).is_some());
        "SDP-6-4" => talk.hello()[4..8] == [0, 0, 0, 32] && octets[1][4..8] == [0, 0, 0, 28];
        "SDP-6.1.4-1" => all(talk.messages(), |(_, message)| figure_3(message.mid).is_some_and(|(header, payload)|
            message.rest.len() == header || payload && message.rest.len() > header));
        "SDP-6.1.5-1" => word_at(octets[0], 8) == 0 && word_at(octets[1], 8) == 0;
        // The conversation also has RDMA Reads and Writes between the messages. MSeq does not count
        // them.
        "SDP-5-2" => moved.count() >= 8 && (0..2).all(|side| numbers(side).into_iter().eq(1..=numbers(side).len() as u32));
        // The first STag of a host is 0x201. Each next STag is higher by 0x101.
        "SDP-6-2" => all(talk.of(0xfe).iter().chain(&talk.of(0xfd)), |message| message.word(4) % 0x101 == 0x201 % 0x101)
            && all(talk.of(7), |message| message.word(0) <= 4) && octets[1][16..18] == [0, 7];
        "SDP-6.1.1-1" => all(talk.messages(), |(_, message)| figure_3(message.mid).is_some_and(|(header, payload)|
            message.rest.len() >= header && (payload || message.rest.len() == header)));
    );
}

#[test]
fn mids_are_those_of_figure_3() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let talk = Talk::held();
    let none_in = |from: u8, to: u8| all(talk.messages(), |(_, message)| !(from..=to).contains(&message.mid));
    let first: Vec<(usize, SentMessage)> = talk.messages().into_iter().take(1).collect();
    shows!(proof:
        "SDP-6.1.1-2" => talk.hello().len() == 32 && talk.hello()[3] == 0 && talk.hello()[4..8] == word(32);
        "SDP-6.1.1-3" => first[0].0 == 1 && first[0].1.mid == 1 && first[0].1.rest.len() == 12;
        "SDP-6.1.1-17" => none_in(0x0f, 0x0f);
        "SDP-6.1.1-18" => none_in(0x10, 0x3f);
        "SDP-6.1.1-19" => none_in(0x40, 0x7f);
        "SDP-6.1.1-20" => none_in(0x80, 0xfc);
        "SDP-6.3.1-3" => all(talk.messages(), |(_, message)| message.mid >= 0xfd || message.rest.len() <= 12);
        // The first message carries the payload 1 to 5, directly after the BSDH.
        "SDP-6.3.1-1" => talk.of(0xff)[0].rest == [1, 2, 3, 4, 5];
    );
}

#[test]
fn flags_are_those_of_figure_4() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let talk = Talk::held();
    let data = talk.of(0xff);
    let with =
        |flag: u8| -> Vec<SentMessage> { data.iter().filter(|message| message.flags & flag != 0).cloned().collect() };
    let by = |side: usize, mid: u8| -> Vec<u8> {
        talk.messages()
            .iter()
            .filter(|(from, message)| *from == side && message.mid == mid)
            .map(|(_, message)| message.flags)
            .collect()
    };
    shows!(proof:
        "SDP-6.1.2-5" => all(talk.messages(), |(_, message)| message.flags & 0xf8 == 0);
        "SDP-6.1.2-8" => all(talk.messages().iter().filter(|(_, message)| message.mid != 0xff), |(_, message)| message.flags & 1 == 0);
        "SDP-6.1.2-16" => all(talk.messages().iter().filter(|(_, message)| message.flags & 4 != 0), |(_, message)|
            matches!(message.mid, 5 | 6));
        // Each side sent one urgent octet, which was the last of 40 octets.
        "SDP-6.1.2-2" => with(1).len() == 2 && all(with(1), |message| message.rest.last() == Some(&40));
        "SDP-6.1.2-3" => with(2).len() == 2;
        "SDP-6.1.2-1" => talk.hello()[2] == 0 && all(talk.messages(), |(_, message)| match message.mid {
            0xff => message.flags <= 3,
            5 | 6 => message.flags == 4 || message.flags == 0,
            _ => message.flags == 0,
        });
        // Side 0 prefers Pipelined Mode; side 1 does not.
        "SDP-6.3.6-3" => all(by(0, 5), |flags| flags == 4) && all(by(1, 5), |flags| flags == 0);
        "SDP-6.3.7-3" => all(by(0, 6), |flags| flags == 4) && all(by(1, 6), |flags| flags == 0);
    );
}

#[test]
fn messages_that_are_a_bsdh_alone() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let talk = Talk::held();
    shows!(proof:
        "SDP-6.2.3-1" => has_len(&talk, 0x02, 16);
        "SDP-6.2.4-1" => has_len(&talk, 0x03, 16);
        "SDP-6.3.5-2" => has_len(&talk, 0x04, 16);
        "SDP-6.3.9-1" => has_len(&talk, 0x08, 16);
        "SDP-6.3.10-1" => has_len(&talk, 0x09, 16);
        "SDP-6.3.11-2" => has_len(&talk, 0x0a, 16);
    );
}

#[test]
fn messages_with_one_field_after_the_bsdh() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let talk = Talk::held();
    let words = |mid: u8| -> Vec<u32> { talk.of(mid).iter().map(|message| message.word(0)).collect() };
    shows!(proof:
        "SDP-6.3.6-2" => has_len(&talk, 0x05, 20);
        "SDP-6.3.7-2" => has_len(&talk, 0x06, 20);
        "SDP-6.3.8-2" => has_len(&talk, 0x07, 20);
        "SDP-6.4.1-1" => has_len(&talk, 0x0b, 20);
        "SDP-6.4.2-1" => has_len(&talk, 0x0c, 20);
        // The two sizes that side 0 requested, and the sizes that side 1 granted.
        "SDP-6.4.1-2" => words(0x0b) == [80, 40];
        "SDP-6.4.2-2" => words(0x0c) == [80, 40];
        "SDP-6.4.2-3" => {
            let of = |mids: &[u8]| talk.messages().into_iter().filter(|(_, message)| mids.contains(&message.mid)).collect::<Vec<_>>();
            of(&[0x0b, 0x0c]).iter().map(|(side, message)| (*side, message.mid)).eq([(0, 0x0b), (1, 0x0c), (0, 0x0b), (1, 0x0c)])
        };
    );
}

#[test]
fn mode_change_words() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let talk = Talk::held();
    let changes: Vec<(usize, u32)> = talk
        .messages()
        .iter()
        .filter(|(_, message)| message.mid == 7)
        .map(|(side, message)| (*side, message.word(0)))
        .collect();
    let mode = |of: u32| changes.iter().filter(|(_, word)| word >> 1 == of).copied().collect::<Vec<_>>();
    shows!(proof:
        // Mode is in bits 1 to 3, and S is in bit 0. First, each side changes from Combined Mode to
        // Pipelined Mode. Then side 0 changes to Combined Mode and to Buffered Mode. At the end,
        // side 1 ends this Buffered Mode.
        "SDP-6.3.8-1" => changes == [(0, 4), (1, 4), (0, 2), (0, 0), (1, 3)];
        "SDP-6.3.8.2-1" => all(&changes, |(_, word)| word >> 1 <= 2);
        "SDP-6.3.8.2-2" => mode(0) == [(0, 0)];
        "SDP-6.3.8.2-3" => mode(1) == [(0, 2), (1, 3)];
        "SDP-6.3.8.2-4" => mode(2) == [(0, 4), (1, 4)];
        "SDP-6.3.8.2-5" => (3..=7).all(|reserved| mode(reserved).is_empty());
        "SDP-6.3.8.3-1" => all(&changes, |(_, word)| word & !0xf == 0);
        "SDP-5-4" => all(&changes, |(side, word)| if word & 1 == 1 { *side == 1 } else { *word != 2 || *side == 0 });
    );
}

#[test]
fn advertisements_and_their_completions() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let talk = Talk::held();
    let (sources, sinks) = (talk.of(0xfe), talk.of(0xfd));
    shows!(proof:
        "SDP-6.3.2-1" => all(&sources, |message| message.rest.len() >= 16);
        // In Combined Mode, a SrcAvail carries ten octets of payload, as the policy sets it. In
        // Pipelined Mode, it carries no payload.
        "SDP-6.3.2-2" => all(&sources, |message| matches!(message.rest.len(), 16 | 26))
            && sources.iter().any(|message| message.rest.len() == 16) && sources.iter().any(|message| message.rest.len() == 26);
        "SDP-6.3.2.1-1" => all(&sources, |message| message.word(0) > 0);
        "SDP-6.3.3-2" => all(&sinks, |message| message.rest.len() >= 20);
        "SDP-6.3.3.1-2" => all(&sinks, |message| message.word(0) > 0);
        "SDP-9-1" => all(&sinks, |message| message.word(0) > SIZE);
        "SDP-6.3.6-1" => all(talk.of(5), |message| message.rest.len() == 4 && matches!(message.word(0), 100 | 150));
        "SDP-6.3.7-1" => all(talk.of(6), |message| message.rest.len() == 4 && matches!(message.word(0), 140 | 150 | 151 | 160));
    );
}

/// STag and number of octets.
type Moved = Vec<(u32, u32)>;

/// The octets moved by RDMA Write and by RDMA Read.
fn moved(talk: &Talk) -> (Moved, Moved) {
    let write = |item: &Item| match item {
        Item::Write { stag, octets, .. } => Some((*stag, octets.len() as u32)),
        _ => None,
    };
    let read = |item: &Item| match item {
        Item::ReadRequest { stag, len, .. } => Some((*stag, *len)),
        _ => None,
    };
    let items = || talk.items.iter().map(|(_, item)| item);
    (items().filter_map(write).collect(), items().filter_map(read).collect())
}

#[test]
fn rdma_transfers_stay_within_the_advertisements() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let talk = Talk::held();
    let (writes, reads) = moved(&talk);
    let stags = |mid: u8| -> Vec<u32> { talk.of(mid).iter().map(|message| message.word(4)).collect() };
    let sum = |mid: u8| talk.of(mid).iter().map(|message| u64::from(message.word(0))).sum::<u64>();
    shows!(proof:
        "SDP-6.3.2.3-2" => all(&reads, |(stag, _)| stags(0xfe).contains(stag));
        "SDP-6.3.3.3-2" => all(&writes, |(stag, _)| stags(0xfd).contains(stag));
        "SDP-6.3.6.1-1" => sum(5) == writes.iter().map(|(_, len)| u64::from(*len)).sum::<u64>();
        "SDP-6.3.7.1-1" => sum(6) == reads.iter().map(|(_, len)| u64::from(*len)).sum::<u64>();
        // Each RdmaWrCompl reports the length of an RDMA Write, and each RdmaRdCompl reports the
        // length of an RDMA Read.
        "SDP-6.3.4-1" => all(talk.of(5), |message| writes.iter().any(|(_, len)| *len == message.word(0)))
            && all(talk.of(6), |message| reads.iter().any(|(_, len)| *len == message.word(0)));
        "SDP-14.2-9" => all(talk.of(6), |message| message.solicited);
        "SDP-9.3-10" => all(talk.of(5), |message| message.solicited);
        "SDP-14.2-17" => all(talk.of(0x0b), |message| !message.solicited);
    );
}
