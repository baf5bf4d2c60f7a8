//! [`PduPart`]: the content of a Send in the form that Wireshark's dissector of the protocol reads.
//!
//! Each protocol converts its Sends with one function, `Protocol::pdu`. The function needs no
//! state. The export (`crate::output::upper_pdu`) joins the parts of a PDU, and inserts the data
//! that RDMA Writes and RDMA Reads transferred.

use std::borrow::Cow;

/// The name of a dissector in Wireshark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DissectorName {
    /// The name of a registered dissector, such as `rpc`.
    Registered(&'static str),
    /// The short name of a heuristic dissector, such as `smb2_smb_direct`. Some protocols, such as
    /// SMB2, have only heuristic dissectors.
    Heuristic(&'static str),
}

impl DissectorName {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DissectorName::Registered(name) | DissectorName::Heuristic(name) => name,
        }
    }
}

/// The content of a Send: a PDU for Wireshark, or a part of a PDU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PduPart<'a> {
    /// The dissector of the PDU.
    pub(crate) dissector: DissectorName,
    /// The first octets of the part. The next octets were not captured.
    pub(crate) octets: Cow<'a, [u8]>,
    /// Length of the part in octets, at least the length of `octets`.
    pub(crate) len: u64,
    /// Whether a PDU can start with the part. Otherwise the part only continues a PDU.
    pub(crate) is_start: bool,
    /// Number of octets of the PDU in later Sends of the same direction.
    pub(crate) remaining: u64,
    /// A number that the answer to the PDU has, too, such as the XID of RPC. `None` if no PDU of
    /// the protocol has chunks.
    pub(crate) id: Option<u64>,
    /// The data of the PDU that RDMA Writes or RDMA Reads transfer.
    pub(crate) chunks: Vec<Chunk>,
    /// Whether the peer reads the chunks after the Send. Otherwise they were written before it.
    pub(crate) is_read_later: bool,
    /// A text for the person who reads the PDU in Wireshark.
    pub(crate) remark: Option<String>,
}

impl<'a> PduPart<'a> {
    /// A complete PDU without chunks. `len` is its length in octets, and `octets` has its captured
    /// octets.
    pub(crate) fn new(dissector: DissectorName, octets: &'a [u8], len: u64) -> Self {
        PduPart {
            dissector,
            octets: Cow::Borrowed(octets),
            len,
            is_start: true,
            remaining: 0,
            id: None,
            chunks: Vec::new(),
            is_read_later: false,
            remark: None,
        }
    }
}

/// Data of a PDU that is not in the Send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Where the data belongs.
    pub(crate) place: Place,
    /// The buffers with the data, in the order of the data.
    pub(crate) segments: Vec<ChunkSegment>,
}

impl Chunk {
    /// Length of the data in octets.
    pub(crate) fn len(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.len)).sum()
    }
}

/// The place of a chunk in its PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this offset of the complete PDU, in octets.
    At(u64),
    /// After a length field of four octets in big-endian order. The field has the length of the
    /// chunk.
    AfterLength,
}

/// A part of a registered buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkSegment {
    /// STag of the buffer.
    pub(crate) stag: u32,
    /// Tagged Offset of the first octet.
    pub(crate) offset: u64,
    /// Length in octets.
    pub(crate) len: u32,
}
