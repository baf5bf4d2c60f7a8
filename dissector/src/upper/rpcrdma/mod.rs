//! Recognises RPC-over-RDMA version 1 (RFC 8166 section 4). A message consists of XID, version,
//! credits and procedure, then chunk lists, and then an RPC message.
//!
//! **Proof**: Two kinds of messages prove the protocol. The first kind is an `RDMA_MSG` with
//! complete chunk lists, and after them an RPC call or reply (RFC 5531) with the same XID. The
//! second kind is an `RDMA_NOMSG` with chunk lists that end at the end of the message; at least one
//! list must not be empty. If a later Send does not have a header of version 1 with valid lists, it
//! disproves the protocol.
//!
//! After the recognition, the module `follow` decodes the messages: the transport header, the RPC
//! message (RFC 5531), and the arguments and results of NFS. The result is [`Decoded`]. A reply has
//! no procedure number, so the module keeps the calls that have no reply yet. It also stores the
//! RPC messages that chunks carry. The private data of start-up frames can announce settings (RFC
//! 8797).

pub mod auth;
pub mod decoded;
mod follow;
pub mod header;
pub mod message;
pub mod nfs;
mod outstanding;
mod placed;
pub mod private_data;
pub mod program;
#[cfg(test)]
mod tests;
mod xdr;

mod rpc_message;

use std::fmt;
use std::ops::Range;

pub use decoded::Decoded;
pub(crate) use follow::Follower;
pub use xdr::Stop;

use super::pdu::PduPart;
use super::protocol::{self, Len, Protocol, Verdict, only, word};

/// Version in the header (RFC 8166 section 4.1).
const VERSION: u32 = 1;
const RDMA_MSG: u32 = 0;
const RDMA_NOMSG: u32 = 1;
const RDMA_MSGP: u32 = 2;
const RDMA_DONE: u32 = 3;
const RDMA_ERROR: u32 = 4;
/// Length in bytes of XID, version, credits and procedure.
const FIXED: usize = 16;
/// Length in bytes of a segment: handle, length and offset.
const SEGMENT: usize = 16;

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// XID.
    pub xid: u32,
    /// Requested or granted credits.
    pub credits: u32,
    /// The procedure.
    pub procedure: u32,
    /// Number of read segments, write chunks and reply chunks.
    pub chunks: [u32; 3],
}

impl protocol::Message for Message {
    fn name(&self) -> &'static str {
        match self.procedure {
            RDMA_MSG => "RDMA_MSG",
            RDMA_NOMSG => "RDMA_NOMSG",
            RDMA_MSGP => "RDMA_MSGP",
            RDMA_DONE => "RDMA_DONE",
            _ => "RDMA_ERROR",
        }
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " XID {:#010x} credits {}", self.xid, self.credits)?;
        let [read, write, reply] = self.chunks;
        if self.chunks != [0; 3] {
            write!(f, " chunks: read {read}, write {write}, reply {reply}")?;
        }
        Ok(())
    }
}

/// The protocol. It needs no state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection;

impl Protocol for Connection {
    const NAME: &'static str = "rpcrdma";
    const TITLE: &'static str = "RPC-over-RDMA";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
        let short = if is_complete { Verdict::Not } else { Verdict::Open };
        let (Some(xid), Some(version), Some(credits), Some(procedure)) =
            (word(bytes, 0), word(bytes, 4), word(bytes, 8), word(bytes, 12))
        else {
            return short;
        };
        if version != VERSION || credits == 0 || procedure > RDMA_ERROR {
            return Verdict::Not;
        }
        let is = |chunks, len, proves| Verdict::Is { parsed: Message { xid, credits, procedure, chunks }, len, proves };
        let lists_at = match procedure {
            RDMA_DONE => return is([0; 3], Len::Exactly(FIXED as u64), false),
            // After ERR_VERS, there are two version numbers. After ERR_CHUNK, there is nothing (RFC
            // 8166 section 4.5).
            RDMA_ERROR => {
                return match word(bytes, FIXED) {
                    Some(1) => is([0; 3], Len::Exactly(FIXED as u64 + 12), false),
                    Some(2) => is([0; 3], Len::Exactly(FIXED as u64 + 4), false),
                    Some(_) => Verdict::Not,
                    None => short,
                };
            }
            RDMA_MSGP => FIXED + 8,
            _ => FIXED,
        };
        let (chunks, end) = match lists(bytes, lists_at, short) {
            Ok(found) => found,
            Err(verdict) => return verdict,
        };
        if procedure == RDMA_NOMSG {
            return is(chunks, Len::Exactly(end as u64), chunks != [0; 3]);
        }
        // An RPC message starts with the XID. In a call, 0 and the RPC version 2 follow. In a
        // reply, 1 follows, and then 0 or 1.
        match (word(bytes, end), word(bytes, end + 4), word(bytes, end + 8)) {
            (Some(inner), Some(kind), Some(next)) => {
                let message = matches!((kind, next), (0, 2) | (1, 0 | 1));
                if inner == xid && message { is(chunks, Len::AtLeast(end as u64 + 12), true) } else { Verdict::Not }
            }
            _ => short,
        }
    }

    fn pdu(octets: &[u8], len: u64) -> Option<PduPart<'_>> {
        match word(octets, 12)? {
            RDMA_MSG => rpc_message::read(octets, len, FIXED, true),
            RDMA_MSGP => rpc_message::read(octets, len, FIXED + 8, true),
            RDMA_NOMSG => rpc_message::read(octets, len, FIXED, false),
            _ => None,
        }
    }

    fn headers(bytes: &[u8], is_complete: bool) -> Vec<Range<usize>> {
        let len = match Self::read(bytes, is_complete) {
            // After the chunk lists, an RDMA_MSG has the XID and the next two words of the RPC
            // message. All other messages end with their headers.
            Verdict::Is { len: Len::Exactly(len) | Len::AtLeast(len), .. } => usize::try_from(len).unwrap_or(0),
            // The headers do not end within these bytes.
            Verdict::Open => bytes.len(),
            Verdict::Not => 0,
        };
        only(0..len)
    }
}

/// Reads the three chunk lists, which start at offset `at`. Returns the number of chunks in each
/// list, and the offset of the end of the lists.
fn lists(bytes: &[u8], mut at: usize, short: Verdict<Message>) -> Result<([u32; 3], usize), Verdict<Message>> {
    let mut chunks = [0; 3];
    // Each item of the read list has a position and a segment.
    while more(bytes, &mut at, short)? {
        chunks[0] += 1;
        at += 4 + SEGMENT;
    }
    while more(bytes, &mut at, short)? {
        chunks[1] += 1;
        segments(bytes, &mut at, short)?;
    }
    if more(bytes, &mut at, short)? {
        chunks[2] = 1;
        segments(bytes, &mut at, short)?;
    }
    if at > bytes.len() { Err(short) } else { Ok((chunks, at)) }
}

/// Reads the XDR flag before an optional item: 1 if the item is present, 0 if it is absent.
fn more(bytes: &[u8], at: &mut usize, short: Verdict<Message>) -> Result<bool, Verdict<Message>> {
    let mark = word(bytes, *at).ok_or(short)?;
    *at += 4;
    match mark {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Verdict::Not),
    }
}

/// Skips a counted array of segments.
fn segments(bytes: &[u8], at: &mut usize, short: Verdict<Message>) -> Result<(), Verdict<Message>> {
    let count = word(bytes, *at).ok_or(short)? as usize;
    // No message can contain more than this number of segments.
    if count > (1 << 24) {
        return Err(Verdict::Not);
    }
    *at += 4 + count * SEGMENT;
    Ok(())
}
