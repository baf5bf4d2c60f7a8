//! Finds the TCP segments whose IP packets are fragmented.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::frame_number::FrameNumber;
use crate::ip::IpFragment;
use crate::packet::{Packet, TransportKind};
use crate::source::Frame;

use super::plan::DirectionKey;

/// IP protocol number.
const TCP: u8 = 6;
/// Length in octets of the longest TCP header.
const LONGEST_TCP_HEADER: usize = 60;
/// Maximum number of incomplete packets. If there are more, weft drops all of them.
const MAX_WAITING: usize = 4096;

/// The part of a TCP segment in one fragment.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentPart {
    /// The direction of the segment.
    pub(super) key: DirectionKey,
    /// Sequence number of the first octet of the segment's payload.
    pub(super) seq: u32,
    /// Length in octets of the headers before the payload.
    pub(super) head: usize,
    /// Offset of the fragment. The headers start at offset 0.
    pub(super) offset: usize,
}

/// What identifies an IP packet with fragments: see [`IpFragment::packet`].
type PacketId = (IpAddr, IpAddr, u32, u8);

/// The fragments of TCP segments.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// The fragments of incomplete packets.
    waiting: HashMap<PacketId, Vec<(FrameNumber, IpFragment)>>,
    /// The part of a segment in each frame with a fragment.
    found: HashMap<FrameNumber, SegmentPart>,
}

impl Fragments {
    /// Records a frame. `is_waiting` is set if the frame has a fragment of a packet that is still
    /// incomplete. Otherwise, `packet` is the packet that the dissector found.
    pub(super) fn record(&mut self, frame: &Frame<'_>, packet: Option<Packet>, is_waiting: bool) {
        if !is_waiting && self.waiting.is_empty() {
            return;
        }
        let Some(fragment) = IpFragment::of(frame) else { return };
        if is_waiting {
            if self.waiting.len() >= MAX_WAITING {
                self.waiting.clear();
            }
            self.waiting.entry(fragment.packet).or_default().push((frame.number, fragment));
            return;
        }
        let mut parts = self.waiting.remove(&fragment.packet).unwrap_or_default();
        parts.push((frame.number, fragment));
        let Some(packet) = packet else { return };
        let TransportKind::Tcp { stream, seq, syn, .. } = packet.transport else { return };
        // In a tunnel, the fragments also have headers with addresses.
        let (src, dst, _, protocol) = fragment.packet;
        if protocol != TCP || (src, dst) != (packet.src.ip(), packet.dst.ip()) {
            return;
        }
        let total = parts.iter().map(|(_, part)| part.offset + part.len).max().unwrap_or(0);
        let head = total.checked_sub(packet.payload_len as usize);
        // If the fragments contradict each other, the headers seem to be longer than possible. Then
        // octets of the payload would stay.
        let Some(head) = head.filter(|head| *head <= LONGEST_TCP_HEADER) else { return };
        let seq = seq.wrapping_add(u32::from(syn));
        for (number, part) in parts {
            self.found.insert(number, SegmentPart { key: (stream, packet.src), seq, head, offset: part.offset });
        }
    }

    /// The part of a segment in this frame.
    pub(super) fn part(&self, number: FrameNumber) -> Option<SegmentPart> {
        self.found.get(&number).copied()
    }
}
