//! Reassembles DDP messages from the FPDUs of one connection, for display.
//!
//! Segments are put together in stream order. Missing segments are not detected. Only the first
//! [`MAX_MESSAGE_OCTETS`] octets of a message are stored.

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::rdmap::Opcode;

use crate::format::counted;
use crate::frame_number::FrameNumber;
use crate::unit::{CrcStatus, Kind, Unit};
use crate::upper::{UlpMessage, rpcrdma};

/// Maximum number of stored octets of a message.
pub const MAX_MESSAGE_OCTETS: usize = 1 << 20;
/// Maximum number of incomplete messages. A real sender has only a few incomplete messages at a
/// time.
const MAX_INCOMPLETE: usize = 64;

/// The destination of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// A tagged buffer of the peer.
    Tagged {
        /// Steering tag.
        stag: u32,
        /// Tagged Offset of the first octet of the message.
        offset: u64,
    },
    /// A queue of the peer.
    Untagged {
        /// Queue number.
        queue: u32,
        /// Message sequence number.
        msn: Msn,
    },
}

/// A complete message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Number of the direction, 0 or 1.
    pub direction: u8,
    /// RDMAP opcode in the last segment.
    pub opcode: Opcode,
    /// Destination of the message.
    pub destination: Destination,
    /// The first octets of the message, without DDP headers.
    pub octets: Vec<u8>,
    /// Length of the message in octets, without DDP headers.
    pub len: u64,
    /// Frame numbers of the first and the last segment.
    pub frames: (FrameNumber, FrameNumber),
    /// Capture time of the last segment in nanoseconds since 1970.
    pub time: u64,
    /// Number of segments with a bad CRC.
    pub bad_crc: u32,
    /// Number of further segments with octets that were not captured.
    pub incomplete: u32,
    /// Content of the message in the protocol above RDMAP, if this protocol was recognised.
    pub ulp_message: Option<UlpMessage>,
    /// The message of RPC-over-RDMA that ends with this message.
    pub rpc: Option<Box<rpcrdma::Decoded>>,
}

/// Reassembles the messages of one connection.
#[derive(Debug, Default)]
pub struct Messages {
    open: Vec<Message>,
}

impl Messages {
    /// Processes a unit. If the unit completes a message, returns the message.
    pub fn unit(&mut self, unit: &Unit<'_>) -> Option<Message> {
        let Kind::Fpdu(fpdu) = &unit.kind else { return None };
        let ulpdu = fpdu.ulpdu();
        let segment = Segment::parse(ulpdu.raw().0).ok()?;
        // If octets of the header are missing, it is unknown to which message the segment belongs.
        ulpdu.get(0..ulpdu.len() - segment.payload().len())?;
        let destination = match segment {
            Segment::Tagged(header, _) => {
                Destination::Tagged { stag: header.stag.get(), offset: header.tagged_offset.get() }
            }
            Segment::Untagged(header, _) => Destination::Untagged { queue: header.qn.get(), msn: header.msn() },
        };
        let (opcode, payload) = (segment.ulp_control().opcode(), segment.payload());
        let index = self.open.iter().position(|open| open.direction == unit.direction && continues(open, destination));
        let mut message = match index {
            Some(index) => self.open.swap_remove(index),
            None => Message {
                direction: unit.direction,
                opcode,
                destination,
                octets: Vec::new(),
                len: 0,
                frames: (unit.frame, unit.frame),
                time: unit.time,
                bad_crc: 0,
                incomplete: 0,
                ulp_message: None,
                rpc: None,
            },
        };
        let room = MAX_MESSAGE_OCTETS.saturating_sub(message.octets.len()).min(payload.len());
        message.octets.extend_from_slice(&payload[..room]);
        message.len += payload.len() as u64;
        message.frames.1 = unit.frame;
        message.time = unit.time;
        message.opcode = opcode;
        let is_bad = fpdu.crc_status == CrcStatus::Bad;
        message.bad_crc += u32::from(is_bad);
        message.incomplete += u32::from(unit.incomplete && !is_bad);
        if segment.control().last() {
            message.ulp_message = super::text::ulp_message(unit).copied();
            message.rpc = unit.context.and_then(|context| context.rpc.clone());
            return Some(message);
        }
        if self.open.len() == MAX_INCOMPLETE {
            self.open.remove(0);
        }
        self.open.push(message);
        None
    }
}

fn continues(open: &Message, destination: Destination) -> bool {
    match (open.destination, destination) {
        (Destination::Untagged { .. }, Destination::Untagged { .. }) => open.destination == destination,
        (Destination::Tagged { stag, offset }, Destination::Tagged { stag: other, offset: at }) => {
            stag == other && at == offset.wrapping_add(open.len)
        }
        _ => false,
    }
}

impl std::fmt::Display for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.destination {
            Destination::Untagged { queue, .. } if self.opcode == Opcode::TERMINATE => {
                f.write_str(&super::text::terminate(queue, &self.octets))?;
            }
            Destination::Untagged { queue, msn } => {
                write!(f, "{}  QN {queue} MSN {msn}  {} bytes", self.opcode, self.len)?;
            }
            Destination::Tagged { stag, offset } => {
                write!(f, "{}  STag {stag:#010x} TO {offset:#x}  {} bytes", self.opcode, self.len)?;
            }
        }
        if let Some(message) = &self.ulp_message {
            write!(f, "  {message}")?;
        }
        if let Some(rpc) = self.rpc.as_ref().filter(|rpc| rpc.has_summary()) {
            write!(f, "  {rpc}")?;
        }
        for (count, what) in [(self.bad_crc, "a bad CRC"), (self.incomplete, "missing bytes")] {
            if count > 0 {
                write!(f, "  {} with {what}", counted(count.into(), "segment"))?;
            }
        }
        Ok(())
    }
}
