//! The Sends that carry SDP messages: opcode, MSN, and whether their octets are trustworthy.

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use crate::parse::SegmentView;
use crate::parse::{Located, Unit};

/// A Send that carries an SDP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// One of the four Send opcodes.
    pub opcode: Opcode,
    /// The STag that a Send with Invalidate invalidates.
    pub invalidates: Option<u32>,
    /// Whether all octets between the previous Send and this Send were captured. For the first
    /// Send: whether all earlier octets were captured.
    pub follows: bool,
    /// Number of RDMA Writes and Read Requests between the previous Send and this Send. Only valid
    /// if `follows` is set.
    pub rdma: u32,
    /// Location of RDMAP's control octet.
    pub control: Located,
    msn: u32,
}

/// The Sends of one direction.
#[derive(Debug, Clone)]
pub(super) struct Sends {
    /// The MSN of the previous Send; `None` if octets after it are missing.
    before: Option<u32>,
    /// The latest Send; `None` if not all of its octets are trustworthy.
    current: Option<Sent>,
    rdma: u32,
}

impl Sent {
    /// Returns whether this Send is the first of its direction.
    pub(crate) fn is_first(&self) -> bool {
        self.msn == 1
    }
}

impl Default for Sends {
    fn default() -> Self {
        Sends { before: Some(0), current: None, rdma: 0 }
    }
}

impl Sends {
    /// Returns the latest Send; `None` if its octets are not trustworthy.
    pub(super) fn latest(&self) -> Option<Sent> {
        self.current
    }

    /// Records that octets are missing or not trustworthy.
    pub(super) fn lose(&mut self) {
        (self.before, self.current) = (None, None);
    }

    /// Records that the last message was unreadable. With `is_complete`, the message is too short.
    /// Otherwise octets of the message are missing.
    pub(super) fn unread(&mut self, is_complete: bool) {
        self.before = None;
        self.current = self.current.filter(|_| is_complete);
    }

    pub(super) fn segment(&mut self, view: &SegmentView<'_>, unit: &Unit<'_>) {
        let opcode = view.opcode();
        let Segment::Untagged(header, _) = view.segment else {
            self.rdma += u32::from(opcode == Opcode::WRITE && view.last());
            return;
        };
        if !opcode.is_send() {
            self.rdma += u32::from(opcode == Opcode::READ_REQUEST);
            return;
        }
        let msn = header.msn.get();
        if header.mo.get() == 0 {
            let follows = self.before.is_some_and(|before| before.wrapping_add(1) == msn);
            let invalidates = opcode.invalidates().then_some(header.ulp_word.get());
            let (control, rdma) = (unit.locate_first(3..4), std::mem::take(&mut self.rdma));
            self.current = Some(Sent { opcode, invalidates, follows, rdma, control, msn });
        } else if self.current.is_none_or(|sent| sent.msn != msn) {
            // The first segment of the Send is missing.
            return self.lose();
        }
        self.before = Some(msn);
    }
}
