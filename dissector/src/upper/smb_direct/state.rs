//! [`SmbState`]: the messages of SMB 2 and 3 on a connection of SMB Direct.
//!
//! **Memory** is bounded. For each direction, the state has at most one incomplete Send with
//! [`MAX_SEND_BYTES`](super::MAX_SEND_BYTES), one incomplete message with
//! [`MAX_MESSAGE_BYTES`](super::MAX_MESSAGE_BYTES), and the outstanding requests of
//! [`Conversation`](crate::upper::smb2::Conversation).

use weft_core::wire::ddp::Segment;

use super::fragments::{Completed, Fragment, Fragments};
use super::message::Message;
use super::sends::PartialSend;
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;
use crate::upper::smb2;

/// The state of a connection, and the message that the latest unit completes.
#[derive(Debug, Clone, Default)]
pub struct SmbState {
    /// The incomplete Send of each direction.
    sends: [Option<PartialSend>; 2],
    fragments: [Fragments; 2],
    conversation: smb2::Conversation,
    /// The upper-layer message that ends with the latest unit.
    latest: Option<UpperMessage>,
    /// The message of SMB Direct that ends with the latest unit.
    transport: Option<Message>,
    /// Whether the Send that ends with the latest unit has only one segment.
    is_single: bool,
}

/// A complete message of the protocol above SMB Direct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpperMessage {
    /// Frame of the first Data Transfer.
    pub first_frame: FrameNumber,
    /// Capture time of this frame, in nanoseconds since 1970.
    pub first_time: u64,
    /// Number of Data Transfers.
    pub fragments: u32,
    /// Length in bytes.
    pub len: u64,
    /// Offset of the message in the payload of the FPDU that completes it, in bytes; `None` if the
    /// message is in several FPDUs.
    pub at: Option<u32>,
    /// The message; `None` if it is not a message of SMB 2 or 3.
    pub message: Option<smb2::Message>,
}

impl SmbState {
    /// The upper-layer message that ends with the latest unit.
    #[must_use]
    pub fn latest(&self) -> Option<&UpperMessage> {
        self.latest.as_ref()
    }

    /// The message of SMB Direct that ends with the latest unit.
    #[must_use]
    pub fn transport(&self) -> Option<&Message> {
        self.transport.as_ref()
    }

    /// Returns whether the Send that ends with the latest unit has only one segment.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.is_single
    }

    /// Number of requests without a response.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.conversation.outstanding()
    }

    /// Forgets the message of the previous unit. Call this for each unit.
    pub(crate) fn start_unit(&mut self) {
        self.latest = None;
        self.transport = None;
        self.is_single = false;
    }

    /// Records that bytes of `direction` are missing.
    pub(crate) fn record_missing(&mut self, direction: Direction) {
        self.sends[direction] = None;
        self.fragments[direction].drop_open();
    }

    /// Processes a segment. `message` is the message that ends with the segment. `frame` completed
    /// the segment at `time`, in nanoseconds since 1970.
    pub(crate) fn segment(
        &mut self,
        direction: Direction,
        view: &SegmentView<'_>,
        message: Option<&Message>,
        (frame, time): (FrameNumber, u64),
    ) {
        let Segment::Untagged(header, _) = view.segment else { return };
        if !view.opcode().is_send() {
            return;
        }
        self.transport = message.copied();
        let (msn, mo) = (header.msn(), header.mo.get());
        let captured = view.payload.beginning();
        if mo == 0 && view.last() {
            self.sends[direction] = None;
            self.is_single = true;
            return self.send(direction, captured, message, (frame, time));
        }
        if mo == 0 {
            self.sends[direction] = Some(PartialSend::new(msn));
        }
        // If a segment does not continue the Send, segments are missing or not in order.
        let continues = |send: &PartialSend| send.msn == msn && send.len == u64::from(mo);
        let Some(mut send) = self.sends[direction].take().filter(continues) else {
            if view.last() {
                self.fragments[direction].drop_open();
            }
            return;
        };
        send.add(captured, view.payload_len);
        if view.last() {
            self.send(direction, &send.octets, message, (frame, time));
        } else {
            self.sends[direction] = Some(send);
        }
    }

    /// Processes a complete Send.
    fn send(&mut self, direction: Direction, octets: &[u8], message: Option<&Message>, at: (FrameNumber, u64)) {
        let Some(message) = message else { return self.fragments[direction].drop_open() };
        let Message::Data { offset, len, remaining, .. } = *message else { return };
        if len == 0 {
            return;
        }
        let data = octets.get(offset as usize..).unwrap_or_default();
        let data = &data[..data.len().min(len as usize)];
        let fragment = Fragment { octets: data, len, remaining, at };
        let completed = self.fragments[direction].add(fragment);
        self.latest = match completed {
            None => None,
            Some(Completed::Alone) => Some(UpperMessage {
                first_frame: at.0,
                first_time: at.1,
                fragments: 1,
                len: len.into(),
                at: self.is_single.then_some(offset),
                message: self.conversation.message(direction, (data, len.into()), at),
            }),
            Some(Completed::Message(all)) => Some(UpperMessage {
                first_frame: all.first.0,
                first_time: all.first.1,
                fragments: all.fragments,
                len: all.len,
                at: None,
                message: self.conversation.message(direction, (&all.octets[..], all.len), at),
            }),
        };
    }

    /// Allocated memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let sends: usize = self.sends.iter().flatten().map(|send| send.octets.capacity()).sum();
        let fragments: usize = self.fragments.iter().map(Fragments::memory).sum();
        let latest = self.latest.as_ref().and_then(|latest| latest.message.as_ref()).map_or(0, smb2::Message::memory);
        sends + fragments + latest + self.conversation.memory()
    }
}
