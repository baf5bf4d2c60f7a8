//! Records the opcode and the MSN of each Send that carries an SDP message. Also records whether
//! the octets of the Send are trustworthy.

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::rdmap::Opcode;

use crate::parse::SegmentView;
use crate::parse::{Location, Unit};

/// A Send that carries an SDP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SdpSend {
    /// One of the four Send opcodes.
    pub opcode: Opcode,
    /// The STag that the Send invalidates, if the Send is a Send with Invalidate.
    pub invalidates: Option<u32>,
    /// Whether all octets between the previous Send and this Send were captured. For the first
    /// Send, this concerns all octets before this Send.
    pub follows: bool,
    /// Number of RDMA Writes and Read Requests between the previous Send and this Send. The number
    /// is valid only if `follows` is set.
    pub rdma: u32,
    /// Location of RDMAP's control octet.
    pub control: Location,
    msn: Msn,
}

/// The Sends of one direction.
#[derive(Debug, Clone)]
pub(super) struct Sends {
    /// The MSN of the previous Send; `None` if octets after the previous Send are missing.
    previous_msn: Option<Msn>,
    /// The latest Send; `None` if not all of its octets are trustworthy.
    current: Option<SdpSend>,
    rdma: u32,
}

impl SdpSend {
    /// Returns whether this Send is the first Send of its direction.
    pub(crate) fn is_first(&self) -> bool {
        self.msn == Msn::FIRST
    }
}

impl Default for Sends {
    fn default() -> Self {
        Sends { previous_msn: Some(Msn::new(0)), current: None, rdma: 0 }
    }
}

impl Sends {
    /// Returns the latest Send; `None` if its octets are not trustworthy.
    pub(super) fn latest(&self) -> Option<SdpSend> {
        self.current
    }

    /// Records that octets are missing or not trustworthy.
    pub(super) fn record_loss(&mut self) {
        (self.previous_msn, self.current) = (None, None);
    }

    /// Records that the last message was unreadable. If `is_complete` is true, all octets of the
    /// message were captured, but the message is too short for a header. If `is_complete` is false,
    /// octets of the message are missing.
    pub(super) fn record_unreadable(&mut self, is_complete: bool) {
        self.previous_msn = None;
        self.current = self.current.filter(|_| is_complete);
    }

    pub(super) fn record_segment(&mut self, view: &SegmentView<'_>, unit: &Unit<'_>) {
        let opcode = view.opcode();
        let Segment::Untagged(header, _) = view.segment else {
            self.rdma += u32::from(opcode == Opcode::WRITE && view.last());
            return;
        };
        if !opcode.is_send() {
            self.rdma += u32::from(opcode == Opcode::READ_REQUEST);
            return;
        }
        let msn = header.msn();
        if header.mo.get() == 0 {
            let follows = self.previous_msn.is_some_and(|previous_msn| previous_msn.next() == msn);
            let invalidates = opcode.invalidates().then_some(header.ulp_word.get());
            let (control, rdma) = (unit.locate_first(3..4), std::mem::take(&mut self.rdma));
            self.current = Some(SdpSend { opcode, invalidates, follows, rdma, control, msn });
        } else if self.current.is_none_or(|send| send.msn != msn) {
            // The first segment of the Send is missing.
            return self.record_loss();
        }
        self.previous_msn = Some(msn);
    }
}
