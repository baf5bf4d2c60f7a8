//! The buffers that an endpoint advertised to its peer.
//!
//! These messages advertise a buffer: a Read Request (the buffer is its Data Sink), a SrcAvail or
//! SinkAvail of SDP, a command of NVMe or iSCSI, and other messages of a ULP in a Send. Most ULPs
//! are unknown. So this module keeps the first octets of the Sends. If a Send has the STag of an
//! access, next to an address and a length that fit the access, the Send advertised the buffer.
//!
//! **Memory.** At most [`MAX_BUFFERS`] buffers and [`MAX_SENDS`] Sends are kept for each endpoint.
//! The oldest ones are dropped first.

use std::collections::VecDeque;

use weft_core::wire::rdmap::Opcode;

use crate::frame_number::FrameNumber;

/// Maximum number of buffers that are kept.
const MAX_BUFFERS: usize = 64;
/// Maximum number of Sends whose first octets are kept.
const MAX_SENDS: usize = 32;
/// Number of octets that are kept of each Send.
const HEAD: usize = 64;
/// A Send with other contents can look like an advertisement. So an advertised buffer of a Send has
/// at most this length in octets.
const MAX_LEN: u32 = 1 << 31;
/// If two STags differ in at most this number of bits, they are similar.
const MAX_BITS: u32 = 2;

/// The message that advertised a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advert {
    /// A Read Request: the buffer is the Data Sink of its Read Response.
    ReadRequest,
    /// A SrcAvail of SDP: the peer may read the buffer.
    SrcAvail,
    /// A SinkAvail of SDP: the peer may write to the buffer.
    SinkAvail,
    /// A command of NVMe.
    Nvme,
    /// A command of iSCSI (iSER).
    Iser,
    /// A message of another ULP in a Send.
    Send,
}

/// The accesses that an advertisement allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// The advertisement does not show it.
    Unknown,
    /// Only Reads.
    Reads,
    /// Only Writes.
    Writes,
}

impl Allowed {
    /// The allowed accesses in the plural.
    pub(super) fn name(self) -> &'static str {
        match self {
            Allowed::Unknown => "any access",
            Allowed::Reads => "Reads",
            Allowed::Writes => "Writes",
        }
    }
}

/// A buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) stag: u32,
    pub(super) to: u64,
    /// Length in octets.
    pub(super) len: u64,
    /// The frame that advertised the buffer.
    pub(super) frame: FrameNumber,
    pub(super) advert: Advert,
    pub(super) allowed: Allowed,
}

/// A range of octets that the peer reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) stag: u32,
    pub(super) to: u64,
    /// Length in octets.
    pub(super) len: u64,
}

impl Span {
    /// Number of octets from `to` to the end of the span, as positions that cannot wrap.
    fn end(self) -> u128 {
        u128::from(self.to) + u128::from(self.len)
    }

    /// Returns whether the last octet is beyond the largest offset.
    pub(super) fn wraps(self) -> bool {
        self.end() > 1 << 64
    }
}

impl Buffer {
    fn end(self) -> u128 {
        u128::from(self.to) + u128::from(self.len)
    }

    /// Returns whether `to` is in the buffer, or is the offset after its last octet.
    fn has(self, to: u64) -> bool {
        self.to <= to && u128::from(to) <= self.end()
    }

    /// Returns whether the advertisement forbids an access with `opcode`.
    pub(super) fn forbids(self, opcode: Opcode) -> bool {
        match self.allowed {
            Allowed::Unknown => false,
            Allowed::Reads => opcode == Opcode::WRITE,
            Allowed::Writes => opcode == Opcode::READ_REQUEST,
        }
    }

    /// Number of octets of `span` before and after the buffer.
    pub(super) fn excess(self, span: Span) -> (u64, u64) {
        let before = self.to.saturating_sub(span.to).min(span.len);
        let after = span.end().saturating_sub(self.end()).min(u128::from(span.len));
        (before, u64::try_from(after).unwrap_or(u64::MAX))
    }
}

/// The first octets of a Send.
#[derive(Debug, Clone, Copy)]
struct SendHead {
    frame: FrameNumber,
    octets: [u8; HEAD],
    len: usize,
    is_complete: bool,
}

/// The buffers that one endpoint advertised.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    known: VecDeque<Buffer>,
    sends: VecDeque<SendHead>,
}

impl Buffers {
    /// Records an advertised buffer.
    pub(super) fn add(&mut self, buffer: Buffer) {
        if self.known.len() >= MAX_BUFFERS {
            self.known.pop_front();
        }
        self.known.push_back(buffer);
    }

    /// Records the first octets of a Send. `is_complete` is set if they are the complete Send.
    pub(super) fn add_send(&mut self, frame: FrameNumber, payload: &[u8], is_complete: bool) {
        if self.sends.len() >= MAX_SENDS {
            self.sends.pop_front();
        }
        let len = payload.len().min(HEAD);
        let mut octets = [0; HEAD];
        octets[..len].copy_from_slice(&payload[..len]);
        let is_complete = is_complete && payload.len() == len;
        self.sends.push_back(SendHead { frame, octets, len, is_complete });
    }

    /// Finds the buffer for an access that was sent in frame `before`. If several advertisements
    /// have the STag, the latest one that contains the start of the access is the buffer.
    ///
    /// A Read Request advertises its Data Sink only for the Read Response. So if `is_response` is
    /// set, only Read Requests count. Otherwise all other messages count.
    pub(super) fn find(&self, span: Span, before: FrameNumber, is_response: bool) -> Option<Buffer> {
        let fits = |buffer: &&Buffer| {
            let is_read = buffer.advert == Advert::ReadRequest;
            buffer.stag == span.stag && buffer.frame < before && is_read == is_response
        };
        let containing = self.known.iter().rev().filter(fits).find(|buffer| buffer.has(span.to)).copied();
        let in_sends = || if is_response { None } else { self.in_sends(span, before) };
        containing.or_else(in_sends).or_else(|| self.known.iter().rev().find(fits).copied())
    }

    /// Finds the latest advertisement of another STag whose buffer contains the access. If a Send
    /// can have several of them, the Send does not count.
    pub(super) fn find_other_stag(&self, span: Span, before: FrameNumber) -> Option<Buffer> {
        if span.to == 0 {
            return None;
        }
        let has_access = |buffer: &Buffer| {
            let is_other = buffer.stag != span.stag && buffer.advert != Advert::ReadRequest;
            is_other && buffer.has(span.to) && buffer.excess(span) == (0, 0)
        };
        let known = self.known.iter().rev().find(|buffer| has_access(buffer) && buffer.frame < before);
        let mut sends = self.sends.iter().rev().filter(|send| send.frame < before);
        known.copied().or_else(|| {
            sends.find_map(|send| {
                let mut found: Vec<Buffer> = send.candidates().filter(has_access).collect();
                found.dedup_by_key(|buffer| buffer.stag);
                if let [one] = found[..] { Some(one) } else { None }
            })
        })
    }

    /// Finds the latest STag before frame `before` that differs from `stag` in at most two bits,
    /// and the frame of its Send. Returns `None` if a Send has `stag` itself.
    pub(super) fn find_similar_stag(&self, stag: u32, before: FrameNumber) -> Option<(u32, FrameNumber)> {
        let sends = || self.sends.iter().rev().filter(|send| send.frame < before);
        let known = self.known.iter().rev().filter(|buffer| buffer.frame < before);
        let known = known.map(|buffer| (buffer.stag, buffer.frame));
        let words = sends().flat_map(|send| send.words().map(|word| (word, send.frame)));
        let mut similar = None;
        for (word, frame) in known.chain(words) {
            if word == stag {
                return None;
            }
            if (word ^ stag).count_ones() <= MAX_BITS {
                similar.get_or_insert((word, frame));
            }
        }
        similar
    }

    /// Returns whether all Sends before frame `before` are known completely, and none of them has
    /// `stag` at a multiple of four octets. No other advertisement has the STag, either.
    pub(super) fn never_has(&self, stag: u32, before: FrameNumber) -> bool {
        let words = [stag.to_be_bytes(), stag.to_le_bytes()];
        let is_stag = |word: &[u8]| words.iter().any(|it| it == word);
        let has = |send: &SendHead| send.octets[..send.len].chunks_exact(4).any(is_stag);
        self.sends.len() < MAX_SENDS
            && self.known.len() < MAX_BUFFERS
            && self.known.iter().all(|buffer| buffer.stag != stag)
            && self.sends.iter().filter(|send| send.frame < before).all(|send| send.is_complete && !has(send))
    }

    /// Finds the buffer for an access in the Sends. If one Send has several possible buffers, the
    /// result is uncertain, so the Send does not count.
    fn in_sends(&self, span: Span, before: FrameNumber) -> Option<Buffer> {
        let fits = |buffer: &Buffer| buffer.stag == span.stag && buffer.has(span.to);
        let sends = self.sends.iter().rev().filter(|send| send.frame < before);
        let mut sends = sends.map(|send| {
            let mut found: Vec<Buffer> = send.candidates().filter(fits).collect();
            found.dedup_by_key(|buffer| (buffer.to, buffer.len));
            if let [one] = found[..] { Some(one) } else { None }
        });
        sends.find_map(|found| found)
    }
}

impl SendHead {
    /// The words at multiples of four octets.
    fn words(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.octets[..self.len].as_chunks().0;
        words.iter().map(|word| u32::from_be_bytes(*word))
    }

    /// Every buffer that the octets can describe. An advertisement has an STag, a length of 32 bits
    /// and an offset of 64 bits, next to each other, in one of three orders.
    fn candidates(&self) -> impl Iterator<Item = Buffer> + '_ {
        let octets = &self.octets[..self.len];
        let word = move |at: usize| Some(u32::from_be_bytes(*octets.get(at..)?.first_chunk()?));
        let long = move |at: usize| Some(u64::from_be_bytes(*octets.get(at..)?.first_chunk()?));
        let orders = [(8, 12, 0), (0, 4, 8), (4, 0, 8)];
        let starts = (0..octets.len()).step_by(4).flat_map(move |start| orders.map(|order| (start, order)));
        starts.filter_map(move |(start, (stag, len, to))| {
            let (stag, len, to) = (word(start + stag)?, word(start + len)?, long(start + to)?);
            let is_possible = stag != 0 && (1..=MAX_LEN).contains(&len);
            let (frame, len) = (self.frame, u64::from(len));
            is_possible.then_some(Buffer { stag, to, len, frame, advert: Advert::Send, allowed: Allowed::Unknown })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    fn span(stag: u32, to: u64, len: u64) -> Span {
        Span { stag, to, len }
    }

    fn with_send(text: &str) -> Buffers {
        let mut buffers = Buffers::default();
        buffers.add_send(5.into(), &hex(text), true);
        buffers
    }

    #[test]
    fn finds_a_buffer_in_a_send_in_three_orders() {
        for text in [
            "0000560000001000 11223344 00000040",
            "11223344 00000040 0000560000001000",
            "00000040 11223344 0000560000001000",
            "0badcafe 0000560000001000 11223344 00000040",
        ] {
            let found = with_send(text).find(span(0x1122_3344, 0x5600_0000_1010, 96), 9.into(), false).unwrap();
            assert_eq!((found.to, found.len, found.frame), (0x5600_0000_1000, 64, 5.into()), "{text}");
            assert_eq!(found.excess(span(0x1122_3344, 0x5600_0000_1010, 96)), (0, 48));
        }
    }

    #[test]
    fn a_send_without_the_stag_advertises_nothing() {
        let buffers = with_send("0000560000001000 11223344 00000040");
        assert_eq!(buffers.find(span(0x1122_3345, 0x5600_0000_1000, 8), 9.into(), false), None);
        assert_eq!(buffers.find(span(0x1122_3344, 0x5600_0000_2000, 8), 9.into(), false), None);
        // The Send came after the access.
        assert_eq!(buffers.find(span(0x1122_3344, 0x5600_0000_1000, 8), 5.into(), false), None);
        assert!(buffers.never_has(0x1122_3345, 9.into()) && !buffers.never_has(0x1122_3344, 9.into()));
    }

    #[test]
    fn another_stag_for_the_same_offset_is_found() {
        let buffers = with_send("0000560000001000 11223344 00000040");
        let other = buffers.find_other_stag(span(0x1122_3345, 0x5600_0000_1000, 8), 9.into());
        assert_eq!(other.map(|buffer| buffer.stag), Some(0x1122_3344));
        let inside = buffers.find_other_stag(span(0x1122_3345, 0x5600_0000_1038, 8), 9.into());
        assert_eq!(inside, other);
        assert_eq!(buffers.find_other_stag(span(0x1122_3345, 0x5600_0000_1039, 8), 9.into()), None);
    }

    #[test]
    fn a_similar_stag_differs_in_two_bits() {
        let buffers = with_send("0000560000001000 11223344 00000040");
        assert_eq!(buffers.find_similar_stag(0x1122_3347, 9.into()), Some((0x1122_3344, 5.into())));
        assert_eq!(buffers.find_similar_stag(0x1122_334b, 9.into()), None);
        assert_eq!(buffers.find_similar_stag(0x1122_3344, 9.into()), None);
    }

    #[test]
    fn a_span_at_the_end_of_the_offsets_wraps() {
        assert!(span(1, u64::MAX, 2).wraps() && !span(1, u64::MAX, 1).wraps());
    }
}
