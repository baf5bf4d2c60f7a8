//! Records the life of each STag: when it was first captured, when a Read Request advertised it,
//! when it was used, and when it was invalidated.
//!
//! The monitor does not read STags inside the messages of a ULP. At most [`MAX_STAGS`] STags are
//! tracked on a connection. All STags beyond this limit are ignored.

use std::ops::Range;

use foldhash::HashMap;
use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{Opcode, RawAtomicRequest, ReadRequest};
use zerocopy::FromBytes;

use super::message::SegmentPosition;
use super::remark::{Remark, RemarkKind};
use super::segment_location::SegmentLocation;
use crate::direction::Direction;
use crate::fact::Stag;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;

/// Maximum number of STags that are tracked on a connection.
const MAX_STAGS: usize = 4096;
/// Maximum number of STags of each owner that are kept in their order of appearance.
const MAX_ADVERTISED: usize = 64;

/// Position of the STag of a tagged segment in its FPDU.
const TAGGED_STAG: Range<usize> = 4..8;
/// Position of the Data Source STag of a Read Request in its FPDU.
const SOURCE_STAG: Range<usize> = 36..40;

/// The STags of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stags {
    known: HashMap<(u8, u32), Stag>,
    /// The STags that each owner advertised in Read Requests, and the frame of each first
    /// advertisement. Each STag is listed once.
    in_order: [Vec<(u32, FrameNumber)>; 2],
    /// For each owner and STag, the frame in which the owner's peer invalidated the STag.
    invalidated_in: HashMap<(u8, u32), FrameNumber>,
}

impl Stags {
    /// Returns the STags that `owner` advertised in Read Requests, each with the frame of its first
    /// advertisement, in the order of these advertisements. The list has at most [`MAX_ADVERTISED`]
    /// STags, and each STag once.
    pub(crate) fn advertised(&self, owner: Direction) -> &[(u32, FrameNumber)] {
        &self.in_order[owner]
    }

    /// Memory in use, in octets.
    pub(crate) fn memory(&self) -> usize {
        self.known.capacity() * size_of::<((u8, u32), Stag)>()
            + self.invalidated_in.capacity() * size_of::<((u8, u32), FrameNumber)>()
    }

    /// Processes a segment. Returns the STag that the segment invalidates. `peer_latest` is the
    /// frame of the peer's latest FPDU; `None` if octets of the connection are missing.
    pub(crate) fn record_segment(
        &mut self,
        at: SegmentLocation,
        view: &SegmentView<'_>,
        position: SegmentPosition,
        peer_latest: Option<FrameNumber>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Stag> {
        let (own, peer) = (u8::from(at.direction), u8::from(at.direction.peer()));
        match (view.opcode(), view.segment) {
            // In a zero-length message, the STag need not be valid.
            (Opcode::WRITE | Opcode::READ_RESPONSE, Segment::Tagged(header, _))
                if position.first && view.payload_len > 0 =>
            {
                remarks.extend(self.record_use(at, header.stag.get(), TAGGED_STAG, peer_latest));
            }
            (Opcode::READ_REQUEST, Segment::Untagged(..)) => {
                let request = ReadRequest::parse(view.payload.all()?).ok().filter(|request| request.rdmardsz > 0)?;
                remarks.extend(self.record_use(at, request.src_stag, SOURCE_STAG, peer_latest));
                if let Some(stag) = self.entry(own, request.sink_stag, at.frame)
                    && stag.advertised.is_none()
                {
                    stag.advertised = Some(at.frame);
                    let order = &mut self.in_order[at.direction];
                    if order.len() < MAX_ADVERTISED {
                        order.push((request.sink_stag, at.frame));
                    }
                }
            }
            (Opcode::ATOMIC_REQUEST, Segment::Untagged(..)) => {
                let raw = RawAtomicRequest::ref_from_bytes(view.payload.all()?).ok()?;
                remarks.extend(self.record_use(at, raw.remote_stag.get(), 3..4, peer_latest));
            }
            (opcode, Segment::Untagged(header, _)) if opcode.invalidates() && view.last() => {
                let named = header.ulp_word.get();
                if self.invalidated_in.len() < MAX_STAGS || self.invalidated_in.contains_key(&(peer, named)) {
                    self.invalidated_in.insert((peer, named), at.frame);
                }
                self.entry(peer, named, at.frame)?.invalidated = Some(at.frame);
                return self.known.remove(&(peer, named));
            }
            _ => {}
        }
        None
    }

    /// Removes and returns all STags that were not invalidated.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Stag> {
        let mut all: Vec<Stag> = self.known.drain().map(|(_, stag)| stag).collect();
        all.sort_unstable_by_key(|stag| (stag.first, stag.owner, stag.stag));
        all.into_iter()
    }

    /// Records that a segment uses an STag of the peer. If the STag was invalidated, and its owner
    /// has sent nothing after that, returns a remark about `range`. After any message of the owner,
    /// the STag is possibly valid again. For example, a message of the ULP can advertise the STag,
    /// but the monitor does not read such messages.
    fn record_use(
        &mut self,
        at: SegmentLocation,
        stag: u32,
        range: Range<usize>,
        peer_latest: Option<FrameNumber>,
    ) -> Option<Remark> {
        let owner = u8::from(at.direction.peer());
        if let Some(entry) = self.entry(owner, stag, at.frame) {
            entry.uses += 1;
            entry.used = Some(at.frame);
        }
        let by = self.invalidated_in.remove(&(owner, stag))?;
        let is_invalid = peer_latest.is_some_and(|peer_latest| peer_latest <= by);
        is_invalid.then(|| at.remark(RemarkKind::Invalidated { stag, by }, range))
    }

    fn entry(&mut self, owner: u8, stag: u32, frame: FrameNumber) -> Option<&mut Stag> {
        if self.known.len() >= MAX_STAGS && !self.known.contains_key(&(owner, stag)) {
            return None;
        }
        Some(self.known.entry((owner, stag)).or_insert(Stag {
            stag,
            owner,
            first: frame,
            advertised: None,
            uses: 0,
            used: None,
            invalidated: None,
        }))
    }
}
