//! The receive window that an endpoint advertises. The right edge of the window is the
//! acknowledgement number plus the window. This module detects whether the right edge moves left
//! (RFC 5041 Appendix A).
//!
//! A segment is compared only with segments that have lower acknowledgement numbers. These segments
//! were certainly sent earlier, even if the capture is out of order. With a window scale, an
//! endpoint can advertise only multiples of a power of two. Differences below this power are
//! ignored, because they come from rounding (RFC 7323 section 2.3). The size of the window is not
//! checked.

use crate::frame_number::FrameNumber;
use crate::ip::Segment;
use crate::tcp::before;

/// The windows that one endpoint advertised.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window {
    latest: Option<Edges>,
    /// The first segment that moves the right edge left.
    pub shrink: Option<WindowShrink>,
}

/// A right edge that moved left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowShrink {
    /// The frame of the segment whose edge is farther left.
    pub frame: FrameNumber,
    /// The frame of the earlier segment. Its edge is farther right.
    pub before: FrameNumber,
    /// How far the edge moved left, in octets.
    pub octets: u32,
}

/// A right edge (sequence number), and the frame that advertised this edge.
type Edge = (u32, FrameNumber);

#[derive(Debug, Clone, Copy)]
struct Edges {
    /// The highest acknowledgement number so far.
    ack: u32,
    /// The rightmost edge that was advertised with the acknowledgement number `ack`.
    with: Edge,
    /// The rightmost edge that was advertised with a lower acknowledgement number.
    before: Option<Edge>,
}

impl Window {
    /// Records a segment that this endpoint sent. `scale` is the shift count of the endpoint's
    /// windows; `None` if the shift count is not known.
    pub(super) fn record_segment(&mut self, segment: &Segment<'_>, scale: Option<u8>) {
        let Some(scale) = scale.filter(|_| segment.ack_flag && !segment.rst) else { return };
        // The window of a SYN is not scaled (RFC 7323 section 2.2).
        let width = if segment.syn { u32::from(segment.window) } else { u32::from(segment.window) << scale };
        let edge = (segment.ack.wrapping_add(width), segment.frame);
        let Some(latest) = &mut self.latest else {
            self.latest = Some(Edges { ack: segment.ack, with: edge, before: None });
            return;
        };
        let farther = |a: Edge, b: Edge| if before(a.0, b.0) { b } else { a };
        if before(segment.ack, latest.ack) {
            latest.before = Some(latest.before.map_or(edge, |known| farther(known, edge)));
            return;
        }
        if segment.ack == latest.ack {
            latest.with = farther(latest.with, edge);
        } else {
            let known = latest.before.map_or(latest.with, |known| farther(known, latest.with));
            *latest = Edges { ack: segment.ack, with: edge, before: Some(known) };
        }
        if let Some((farthest, frame)) = latest.before
            && before(edge.0, farthest)
            && farthest.wrapping_sub(edge.0) >= 1 << scale
        {
            let octets = farthest.wrapping_sub(edge.0);
            self.shrink.get_or_insert(WindowShrink { frame: segment.frame, before: frame, octets });
        }
    }
}
