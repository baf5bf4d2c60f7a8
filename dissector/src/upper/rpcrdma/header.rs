//! [`Header`]: the transport header of RPC-over-RDMA version 1 (RFC 8166 section 4.1).

use super::xdr::{Stop, Xdr};

/// Maximum number of segments that are stored of one header.
pub const MAX_SEGMENTS: usize = 256;
/// Length of a segment in bytes: handle, length and offset.
const SEGMENT_LEN: usize = 16;

/// The procedure of a header (RFC 8166 section 4.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Procedure {
    /// The RPC message follows the header.
    Msg,
    /// The RPC message is in a chunk.
    NoMsg,
    /// Like [`Procedure::Msg`], with alignment of bulk data. Not to be used.
    Msgp,
    /// The sender has read all chunks of a reply. Not to be used.
    Done,
    /// The responder cannot process a message.
    Error,
}

impl Procedure {
    /// The procedure with the number `number`; `None` if no specification assigns the number.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        match number {
            0 => Some(Procedure::Msg),
            1 => Some(Procedure::NoMsg),
            2 => Some(Procedure::Msgp),
            3 => Some(Procedure::Done),
            4 => Some(Procedure::Error),
            _ => None,
        }
    }
}

/// An RDMA segment: a part of a registered buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The STag.
    pub handle: u32,
    /// Length in bytes.
    pub length: u32,
    /// Tagged Offset of the first byte.
    pub offset: u64,
    /// Offset of the segment in the header, in bytes.
    pub at: u32,
}

impl Segment {
    /// The distance of the tagged offset `to` from the start of the segment; `None` if the segment
    /// does not contain it.
    #[must_use]
    pub fn distance(&self, stag: u32, to: u64) -> Option<u64> {
        let distance = to.checked_sub(self.offset)?;
        (stag == self.handle && distance < u64::from(self.length)).then_some(distance)
    }

    fn read(xdr: &mut Xdr<'_>) -> Result<Self, Stop> {
        let at = xdr.at();
        Ok(Segment { handle: xdr.u32()?, length: xdr.u32()?, offset: xdr.u64()?, at })
    }
}

/// A segment of the read list. Segments with the same position are one Read chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSegment {
    /// Position of the chunk in the XDR stream of the RPC message, in bytes. At position 0, the
    /// chunk contains the RPC message itself.
    pub position: u32,
    /// The segment.
    pub segment: Segment,
}

/// A Write chunk, or the Reply chunk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk {
    /// The segments, in the order in which the responder fills them.
    pub segments: Vec<Segment>,
    /// Number of segments in the header. It exceeds the number of stored segments if the header has
    /// more than [`MAX_SEGMENTS`] segments.
    pub count: u32,
    /// Offset of the number of segments in the header, in bytes.
    pub at: u32,
}

impl Chunk {
    /// Sum of the lengths of the stored segments in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.length)).sum()
    }

    /// The distance of the tagged offset `to` from the start of the chunk, in bytes; `None` if the
    /// chunk does not contain it.
    #[must_use]
    pub fn distance(&self, stag: u32, to: u64) -> Option<u64> {
        let mut before = 0;
        for segment in &self.segments {
            if let Some(distance) = segment.distance(stag, to) {
                return Some(before + distance);
            }
            before += u64::from(segment.length);
        }
        None
    }

    fn read(xdr: &mut Xdr<'_>, room: &mut usize) -> Result<Self, Stop> {
        let at = xdr.at();
        let count = xdr.u32()?;
        let mut segments = Vec::new();
        for _ in 0..count {
            if *room == 0 {
                xdr.take(SEGMENT_LEN)?;
                continue;
            }
            *room -= 1;
            segments.push(Segment::read(xdr)?);
        }
        Ok(Chunk { segments, count, at })
    }
}

/// The chunk lists of a header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lists {
    /// The read list.
    pub reads: Vec<ReadSegment>,
    /// The write list.
    pub writes: Vec<Chunk>,
    /// The Reply chunk.
    pub reply: Option<Chunk>,
}

impl Lists {
    /// Length of the Position Zero Read chunk in bytes; 0 if there is none.
    #[must_use]
    pub fn position_zero_len(&self) -> u64 {
        let zero = self.reads.iter().filter(|read| read.position == 0);
        zero.map(|read| u64::from(read.segment.length)).sum()
    }

    /// Allocated memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let segments = |chunk: &Chunk| size_of::<Chunk>() + chunk.segments.len() * size_of::<Segment>();
        let chunks: usize = self.writes.iter().chain(&self.reply).map(segments).sum();
        self.reads.len() * size_of::<ReadSegment>() + chunks
    }

    fn read(xdr: &mut Xdr<'_>) -> Result<Self, Stop> {
        let (mut lists, mut room) = (Lists::default(), MAX_SEGMENTS);
        while xdr.flag()? {
            let read = ReadSegment { position: xdr.u32()?, segment: Segment::read(xdr)? };
            if room > 0 {
                room -= 1;
                lists.reads.push(read);
            }
        }
        while xdr.flag()? {
            let chunk = Chunk::read(xdr, &mut room)?;
            // An empty chunk uses memory, too.
            if lists.writes.len() < MAX_SEGMENTS {
                lists.writes.push(chunk);
            }
        }
        if xdr.flag()? {
            lists.reply = Some(Chunk::read(xdr, &mut room)?);
        }
        Ok(lists)
    }
}

/// The error in an `RDMA_ERROR` (RFC 8166 section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportError {
    /// `ERR_VERS`: the responder does not support the version.
    Version {
        /// Lowest supported version.
        low: u32,
        /// Highest supported version.
        high: u32,
    },
    /// `ERR_CHUNK`: the responder cannot process the chunk lists or the message.
    Chunk,
    /// An error code that no specification assigns.
    Other(u32),
}

impl TransportError {
    /// The error code on the wire.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            TransportError::Version { .. } => 1,
            TransportError::Chunk => 2,
            TransportError::Other(code) => code,
        }
    }

    /// The name of an error code; `None` if no specification assigns it.
    #[must_use]
    pub fn name(code: u32) -> Option<&'static str> {
        match code {
            1 => Some("ERR_VERS"),
            2 => Some("ERR_CHUNK"),
            _ => None,
        }
    }

    fn read(xdr: &mut Xdr<'_>) -> Result<Self, Stop> {
        Ok(match xdr.u32()? {
            1 => TransportError::Version { low: xdr.u32()?, high: xdr.u32()? },
            2 => TransportError::Chunk,
            code => TransportError::Other(code),
        })
    }
}

/// A transport header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// XID.
    pub xid: u32,
    /// Version.
    pub version: u32,
    /// Requested credits in a call, granted credits in a reply.
    pub credits: u32,
    /// The procedure.
    pub procedure: Procedure,
    /// In an `RDMA_MSGP`, the alignment and the threshold in bytes.
    pub alignment: Option<(u32, u32)>,
    /// The chunk lists. They are empty in `RDMA_DONE` and `RDMA_ERROR`.
    pub lists: Lists,
    /// The error of an `RDMA_ERROR`.
    pub error: Option<TransportError>,
    /// Length of the header in bytes. In an `RDMA_MSG`, the RPC message follows.
    pub len: u32,
}

impl Header {
    /// Whether the procedure has chunk lists.
    #[must_use]
    pub fn has_lists(&self) -> bool {
        matches!(self.procedure, Procedure::Msg | Procedure::NoMsg | Procedure::Msgp)
    }

    /// Reads a header.
    ///
    /// # Errors
    /// Bytes are missing, or the header is malformed.
    pub(super) fn read(xdr: &mut Xdr<'_>) -> Result<Self, Stop> {
        let (xid, version, credits) = (xdr.u32()?, xdr.u32()?, xdr.u32()?);
        let procedure = Procedure::new(xdr.u32()?).ok_or(Stop::Malformed)?;
        let (mut alignment, mut lists, mut error) = (None, Lists::default(), None);
        match procedure {
            Procedure::Msg | Procedure::NoMsg => lists = Lists::read(xdr)?,
            Procedure::Msgp => {
                alignment = Some((xdr.u32()?, xdr.u32()?));
                lists = Lists::read(xdr)?;
            }
            Procedure::Done => {}
            Procedure::Error => error = Some(TransportError::read(xdr)?),
        }
        Ok(Header { xid, version, credits, procedure, alignment, lists, error, len: xdr.at() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    fn read(bytes: &str, is_complete: bool) -> Result<Header, Stop> {
        Header::read(&mut Xdr::new(&hex(bytes), is_complete))
    }

    /// The header of a READDIRPLUS call of the Linux client (NFSv3), with a Reply chunk of three
    /// segments.
    const REPLY_CHUNK: &str = "74a394ae 00000001 00000080 00000000 00000000 00000000
        00000001 00000003 382bd001 0000007c 74a394ae0a148800 f8628501 00010000 74a394ae09fbb000
        23423401 00000004 74a394ae0a14887c";

    #[test]
    fn reads_a_reply_chunk_of_three_segments() {
        let header = read(&format!("{REPLY_CHUNK} 74a394ae"), false).unwrap();
        assert_eq!((header.xid, header.credits, header.procedure), (0x74a3_94ae, 128, Procedure::Msg));
        let reply = header.lists.reply.unwrap();
        assert_eq!((reply.count, reply.segments.len(), reply.length()), (3, 3, 124 + 65536 + 4));
        assert_eq!((reply.at, reply.segments[1].at, header.len), (28, 48, 80));
        // The second segment starts after the 124 bytes of the first segment.
        assert_eq!(reply.distance(0xf862_8501, 0x74a3_94ae_09fb_b380), Some(124 + 896));
        assert_eq!(reply.distance(0xf862_8501, 0x74a3_94ae_09fc_b000), None);
        assert_eq!(reply.distance(0x382b_d001, 0x74a3_94ae_09fb_b000), None);
    }

    #[test]
    fn reads_a_read_list_and_a_write_list() {
        let segment = "704379f4 00001388 89a394ae092e3000";
        let lists = format!("00000001 00000070 {segment} 00000000 00000001 00000001 {segment} 00000000 00000000");
        let lists = read(&format!("89a394ae 00000001 00000080 00000001 {lists}"), true).unwrap().lists;
        assert_eq!((lists.reads[0].position, lists.reads[0].segment.length), (112, 5000));
        assert_eq!((lists.writes.len(), lists.writes[0].length(), lists.position_zero_len()), (1, 5000, 0));
    }

    #[test]
    fn reads_errors() {
        let head = "74a394ae 00000001 00000080 00000004";
        let error = |rest: &str| read(&format!("{head} {rest}"), true).map(|header| header.error.unwrap());
        assert_eq!(error("00000001 00000001 00000002"), Ok(TransportError::Version { low: 1, high: 2 }));
        assert_eq!(error("00000002").map(TransportError::code), Ok(2));
        assert_eq!(error("00000001 00000001"), Err(Stop::Malformed));
        assert_eq!(read(&format!("{} 00000005", &head[..26]), true), Err(Stop::Malformed));
    }

    #[test]
    fn a_header_that_ends_early_is_an_error() {
        let all = hex(REPLY_CHUNK);
        for len in 0..all.len() {
            assert_eq!(Header::read(&mut Xdr::new(&all[..len], true)), Err(Stop::Malformed), "{len}");
            assert_eq!(Header::read(&mut Xdr::new(&all[..len], false)), Err(Stop::Missing), "{len}");
        }
    }

    #[test]
    fn a_huge_number_of_segments_needs_no_memory() {
        let head = "74a394ae 00000001 00000080 00000001 00000000 00000000 00000001";
        assert_eq!(read(&format!("{head} ffffffff"), true), Err(Stop::Malformed));
        let segments = "00000001 00000002 0000000000000003".repeat(MAX_SEGMENTS + 1);
        let reply = read(&format!("{head} 00000101 {segments}"), true).unwrap().lists.reply.unwrap();
        assert_eq!((reply.count, reply.segments.len()), (257, MAX_SEGMENTS));
    }
}
