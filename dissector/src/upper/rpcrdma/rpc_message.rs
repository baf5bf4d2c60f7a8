//! Extracts the RPC message from an RPC-over-RDMA message (RFC 8166 section 3.4).
//!
//! The RPC message can be after the chunk lists. Parts of it, or all of it, can be in chunks. The
//! client announces the chunks in the call. The server reads Read chunks after it has received the
//! call. It writes Write chunks and the Reply chunk before it sends the reply, and the reply has
//! their final lengths.

use std::collections::BTreeMap;

use crate::upper::pdu::{Chunk, ChunkSegment, DissectorName, PduPart, Place};
use crate::upper::protocol::word;

const DISSECTOR: DissectorName = DissectorName::Registered("rpc");
/// The type of an RPC message that is a reply (RFC 5531 section 9).
const REPLY: u32 = 1;
/// Maximum number of chunks of a message, and of their segments. Real messages have at most a few
/// chunks, and one segment for each page of the data.
const MAX_CHUNKS: usize = 64;
const MAX_SEGMENTS: usize = 1024;

/// Returns the RPC message in a Send of `len` octets. `octets` has the captured octets of the Send.
/// The chunk lists are at offset `lists_at`. `is_inline` is set if the RPC message is after the
/// lists. Otherwise it is in a chunk. Returns `None` if the lists are not complete, or are longer
/// than the limits.
pub(super) fn read(octets: &[u8], len: u64, lists_at: usize, is_inline: bool) -> Option<PduPart<'_>> {
    let mut lists = Lists { octets, at: lists_at, segments: 0 };
    let (reads, writes, reply) = (lists.reads()?, lists.writes()?, lists.reply()?);
    let inline = octets.get(lists.at..)?;
    let is_reply = if is_inline { word(inline, 4)? == REPLY } else { reads.is_empty() };
    let chunks = match (is_reply, is_inline) {
        (false, _) => reads,
        (true, true) => writes,
        (true, false) => reply.into_iter().chain(writes).collect(),
    };
    if !is_inline && chunks.is_empty() {
        return None;
    }
    let message = if is_inline {
        PduPart::new(DISSECTOR, inline, len.checked_sub(lists.at as u64)?)
    } else {
        PduPart::new(DISSECTOR, &[], 0)
    };
    let is_read_later = !is_reply && !chunks.is_empty();
    Some(PduPart { id: word(octets, 0).map(u64::from), chunks, is_read_later, ..message })
}

/// Reads the chunk lists of a header.
struct Lists<'a> {
    octets: &'a [u8],
    /// Offset of the next octet.
    at: usize,
    /// Number of segments so far.
    segments: usize,
}

impl Lists<'_> {
    /// The Read list. The segments of a chunk have the same position.
    fn reads(&mut self) -> Option<Vec<Chunk>> {
        let mut by_position: BTreeMap<u32, Vec<ChunkSegment>> = BTreeMap::new();
        while self.is_present()? {
            let position = self.word()?;
            let segment = self.segment()?;
            by_position.entry(position).or_default().push(segment);
            if by_position.len() > MAX_CHUNKS {
                return None;
            }
        }
        let chunks = by_position
            .into_iter()
            .map(|(position, segments)| Chunk { place: Place::At(u64::from(position)), segments });
        Some(chunks.collect())
    }

    /// The Write list.
    fn writes(&mut self) -> Option<Vec<Chunk>> {
        let mut chunks = Vec::new();
        while self.is_present()? {
            if chunks.len() == MAX_CHUNKS {
                return None;
            }
            chunks.push(Chunk { place: Place::AfterLength, segments: self.segments()? });
        }
        Some(chunks)
    }

    /// The Reply chunk, if there is one.
    fn reply(&mut self) -> Option<Vec<Chunk>> {
        if !self.is_present()? {
            return Some(Vec::new());
        }
        Some(vec![Chunk { place: Place::At(0), segments: self.segments()? }])
    }

    /// Reads the XDR flag before an optional item.
    fn is_present(&mut self) -> Option<bool> {
        self.word().map(|flag| flag != 0)
    }

    fn segments(&mut self) -> Option<Vec<ChunkSegment>> {
        let count = self.word()?;
        // If the count is too large, the octets end first.
        (0..count).map(|_| self.segment()).collect()
    }

    fn segment(&mut self) -> Option<ChunkSegment> {
        self.segments += 1;
        if self.segments > MAX_SEGMENTS {
            return None;
        }
        let (stag, len, high, low) = (self.word()?, self.word()?, self.word()?, self.word()?);
        Some(ChunkSegment { stag, offset: u64::from(high) << 32 | u64::from(low), len })
    }

    fn word(&mut self) -> Option<u32> {
        let word = word(self.octets, self.at)?;
        self.at += 4;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// XID 0x12345678, version 1, 32 credits, and the procedure.
    fn head(procedure: u32) -> String {
        format!("12345678 00000001 00000020 {procedure:08x}")
    }

    #[test]
    fn a_call_has_its_read_chunks_at_their_positions() {
        // Two segments at position 0x30, then one at 0x20; a Write chunk of one segment; no Reply
        // chunk. Then the first words of a call.
        let text = head(0)
            + "00000001 00000030 0000000a 00000005 0000000000001000
               00000001 00000030 0000000b 00000006 0000000000002000
               00000001 00000020 0000000c 00000007 0000000100000000
               00000000 00000001 00000001 0000000d 00001000 0000000000003000 00000000 00000000
               12345678 00000000 00000002";
        let octets = hex(&text);
        let message = read(&octets, octets.len() as u64 + 8, 16, true).unwrap();
        assert_eq!((message.dissector.name(), message.id), ("rpc", Some(0x1234_5678)));
        assert_eq!((&*message.octets, message.len), (&hex("12345678 00000000 00000002")[..], 20));
        let segment = |stag, offset, len| ChunkSegment { stag, offset, len };
        let chunk = |at, segments| Chunk { place: Place::At(at), segments };
        let first = chunk(0x20, vec![segment(0xc, 1 << 32, 7)]);
        let second = chunk(0x30, vec![segment(0xa, 0x1000, 5), segment(0xb, 0x2000, 6)]);
        assert_eq!((second.len(), message.chunks), (11, vec![first, second]));
        assert!(message.is_read_later);
    }

    #[test]
    fn a_reply_has_its_write_chunks_and_its_reply_chunk() {
        let writes = "00000000 00000001 00000001 0000000d 00000009 0000000000003000 00000000";
        let octets = hex(&(head(0) + writes + "00000000 12345678 00000001 00000000 00000000"));
        let message = read(&octets, octets.len() as u64, 16, true).unwrap();
        let written =
            Chunk { place: Place::AfterLength, segments: vec![ChunkSegment { stag: 13, offset: 0x3000, len: 9 }] };
        assert_eq!((&message.chunks[..], message.is_read_later), (&[written.clone()][..], false));
        // The complete reply is in the Reply chunk, except the data of the Write chunk.
        let octets = hex(&(head(1) + writes + "00000001 00000001 0000000e 00000040 0000000000004000"));
        let message = read(&octets, octets.len() as u64, 16, false).unwrap();
        let reply = Chunk { place: Place::At(0), segments: vec![ChunkSegment { stag: 14, offset: 0x4000, len: 64 }] };
        assert_eq!((message.len, message.chunks), (0, vec![reply, written]));
    }

    /// Without limits, the work for one Send would grow with the square of its length.
    #[test]
    fn lists_that_are_too_long_are_no_message() {
        let chunk = "00000001 00000001 0000000d 00000009 0000000000003000";
        let read = |lists: &str| {
            let octets = hex(&format!("{} {lists}", head(1)));
            super::read(&octets, octets.len() as u64, 16, false).map(|message| message.chunks.len())
        };
        let writes = |count| format!("00000000 {} 00000000 00000001 00000000", chunk.repeat(count));
        assert_eq!(read(&writes(MAX_CHUNKS)), Some(MAX_CHUNKS + 1));
        assert_eq!(read(&writes(MAX_CHUNKS + 1)), None);
        // All of these segments have position 0.
        let item = "00000001 00000000 0000000d 00000009 0000000000003000";
        let reads = |count| format!("{} 00000000 00000000 00000000", item.repeat(count));
        assert_eq!((read(&reads(MAX_SEGMENTS)), read(&reads(MAX_SEGMENTS + 1))), (Some(1), None));
    }

    #[test]
    fn lists_that_are_not_complete_are_no_message() {
        for lists in ["", "00000001 00000030", "00000000 00000001 ffffffff 0000000d", "00000000 00000000 00000000"] {
            let octets = hex(&(head(1) + lists));
            assert_eq!(read(&octets, octets.len() as u64, 16, false), None, "{lists}");
        }
    }
}
