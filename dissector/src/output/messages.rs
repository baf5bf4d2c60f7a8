//! Reassembles DDP messages from the FPDUs of one connection, for display.
//!
//! Segments are joined in stream order. Missing segments are not detected. Only the first
//! [`MOST_KEPT`] octets of a message are stored.

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use crate::unit::{Kind, Unit};
use crate::upper::UlpMessage;

/// Maximum number of stored octets of a message.
pub const MOST_KEPT: usize = 1 << 20;
/// Maximum number of incomplete messages. A real sender has a few incomplete messages at a time.
const MOST_OPEN: usize = 64;

/// The destination of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
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
        msn: u32,
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
    pub place: Place,
    /// The first octets of the message, without DDP headers.
    pub octets: Vec<u8>,
    /// Length of the message in octets, without DDP headers.
    pub len: u64,
    /// Frame numbers of the first and the last segment.
    pub frames: (u64, u64),
    /// Capture time of the last segment in nanoseconds since 1970.
    pub time: u64,
    /// Number of segments with a bad CRC, or with octets that were not captured.
    pub doubtful: u32,
    /// Content of the message in the protocol above RDMAP, if this protocol was recognised.
    pub ulp_message: Option<UlpMessage>,
}

/// Reassembles the messages of one connection.
#[derive(Debug, Default)]
pub struct Messages {
    open: Vec<Message>,
}

impl Messages {
    /// Processes a unit. Returns the message that the unit completes; `None` if it completes no
    /// message.
    pub fn unit(&mut self, unit: &Unit<'_>) -> Option<Message> {
        let Kind::Fpdu(fpdu) = &unit.kind else { return None };
        let ulpdu = fpdu.ulpdu();
        let segment = Segment::parse(ulpdu.raw().0).ok()?;
        // If octets of the header are missing, the message of the segment is unknown.
        ulpdu.get(0..ulpdu.len() - segment.payload().len())?;
        let (opcode, place, last, payload) = match segment {
            Segment::Tagged(header, payload) => {
                let place = Place::Tagged { stag: header.stag.get(), offset: header.tagged_offset.get() };
                (header.ulp_control.opcode(), place, header.control.last(), payload)
            }
            Segment::Untagged(header, payload) => {
                let place = Place::Untagged { queue: header.qn.get(), msn: header.msn.get() };
                (header.ulp_control.opcode(), place, header.control.last(), payload)
            }
        };
        let index = self.open.iter().position(|open| open.direction == unit.direction && belongs(open, place));
        let mut message = match index {
            Some(index) => self.open.swap_remove(index),
            None => Message {
                direction: unit.direction,
                opcode,
                place,
                octets: Vec::new(),
                len: 0,
                frames: (unit.frame, unit.frame),
                time: unit.time,
                doubtful: 0,
                ulp_message: None,
            },
        };
        let room = MOST_KEPT.saturating_sub(message.octets.len()).min(payload.len());
        message.octets.extend_from_slice(&payload[..room]);
        message.len += payload.len() as u64;
        message.frames.1 = unit.frame;
        message.time = unit.time;
        message.opcode = opcode;
        message.doubtful += u32::from(fpdu.crc_status == crate::unit::CrcStatus::Bad || unit.incomplete);
        if last {
            message.ulp_message = super::text::ulp_message(unit).copied();
            return Some(message);
        }
        if self.open.len() == MOST_OPEN {
            self.open.remove(0);
        }
        self.open.push(message);
        None
    }
}

fn belongs(open: &Message, place: Place) -> bool {
    match (open.place, place) {
        (Place::Untagged { .. }, Place::Untagged { .. }) => open.place == place,
        (Place::Tagged { stag, offset }, Place::Tagged { stag: other, offset: at }) => {
            stag == other && at == offset.wrapping_add(open.len)
        }
        _ => false,
    }
}

impl std::fmt::Display for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place {
            Place::Untagged { queue, .. } if self.opcode == Opcode::TERMINATE => {
                f.write_str(&super::text::terminate(queue, &self.octets))?;
            }
            Place::Untagged { queue, msn } => {
                write!(f, "{}  QN {queue} MSN {msn}  {} bytes", self.opcode, self.len)?;
            }
            Place::Tagged { stag, offset } => {
                write!(f, "{}  STag {stag:#010x} TO {offset:#x}  {} bytes", self.opcode, self.len)?;
            }
        }
        if let Some(message) = &self.ulp_message {
            write!(f, "  {message}")?;
        }
        if self.doubtful > 0 {
            write!(f, "  {} segments bad or cut", self.doubtful)?;
        }
        Ok(())
    }
}
