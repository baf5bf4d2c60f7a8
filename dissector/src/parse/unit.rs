//! One unit: its kind, its octets, and their location.

use std::net::SocketAddr;
use std::ops::Range;

use weft_core::wire::mpa::{Layout, StartupKind, fpdu::Piece};
use weft_core::wire::sdp::FieldOrder;

use crate::direction::Direction;
use crate::located::{Located, Placed};
use crate::part::Part;
use crate::stream_id::StreamId;
use crate::tcp::{Arrived, Half};

/// The two ends of a direction, ready to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// `src` as `10.0.0.1:4210` or `[fd00::1]:4210`.
    pub src_text: String,
    /// `dst`, the same way.
    pub dst_text: String,
}

impl Ends {
    /// The ends of the direction from `src` to `dst`.
    #[must_use]
    pub fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        Ends { src, dst, src_text: src.to_string(), dst_text: dst.to_string() }
    }
}

/// One unit of a direction.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// Number of the TCP connection, from 0; `None` for a UDP datagram.
    pub stream: Option<StreamId>,
    /// 0: sent by the end that sent the connection's first frame; 1: by the other.
    pub direction: u8,
    /// Sender and receiver.
    pub ends: &'a Ends,
    /// The largest number of the frames that first supplied its octets.
    pub frame: u64,
    /// When that frame was captured, in nanoseconds since 1970.
    pub time: u64,
    /// Are octets of it missing in the capture?
    pub incomplete: bool,
    /// What it is.
    pub kind: Kind<'a>,
    /// Location of its octets.
    pub origin: Origin<'a>,
    /// Explanation for octets in which no FPDU was found.
    pub misread: Option<Misread>,
}

/// The explanation why no FPDU with the layout of RFC 5044 was found where one was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Misread {
    /// A marker precedes `ULPDU_Length`, but this direction has none.
    UnrequestedMarker,
    /// `ULPDU_Length` is little-endian.
    LengthSwapped,
    /// `ULPDU_Length` counts this many octets more than the ULPDU has.
    LengthCounts(u8),
    /// This many PAD octets instead of those that lead to a multiple of four.
    Pad(u8),
    /// CRC is in use, and the CRC field is left out.
    NoCrcField,
    /// No simple explanation.
    Unexplained,
}

/// The type of a unit.
#[derive(Debug, Clone, Copy)]
pub enum Kind<'a> {
    /// An MPA Request or Reply frame; the part begins at the key.
    Startup(StartupKind, Part<'a>),
    /// An FPDU.
    Fpdu(Fpdu<'a>),
    /// An SDP message, after the unit that completed it (a Hello in streaming mode has no such
    /// unit).
    Sdp(Carrier, FieldOrder, Part<'a>),
    /// A datagram from or to a port mapper.
    PortMapper(Part<'a>),
    /// TCP octets outside MPA: the CRC-32 (of zlib) of all of them unless some are missing, and the
    /// first few of them.
    Streaming {
        /// Number of octets.
        len: u64,
        /// CRC-32 of them all; `None` when octets are missing.
        crc32: Option<u32>,
        /// The first octets, at most [`STREAMING_HEAD`].
        head: &'a [u8],
    },
    /// Octets that no unit holds and that are not in the capture.
    Gap {
        /// Number of octets.
        len: u64,
    },
    /// Octets of an MPA direction in which no FPDU was found.
    Unparsed {
        /// Number of octets.
        len: u64,
    },
}

impl Kind<'_> {
    /// The name in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Startup(StartupKind::Request, _) => "mpa_request",
            Kind::Startup(StartupKind::Reply, _) => "mpa_reply",
            Kind::Fpdu(_) => "fpdu",
            Kind::Sdp(..) => "sdp",
            Kind::PortMapper(_) => "sdp_pm",
            Kind::Streaming { .. } => "streaming",
            Kind::Gap { .. } => "gap",
            Kind::Unparsed { .. } => "unparsed",
        }
    }
}

/// What carried an SDP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// TCP octets before MPA.
    Streaming,
    /// The private data of a start-up frame.
    PrivateData,
    /// A Send.
    Send,
}

impl Carrier {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Streaming => "streaming",
            Carrier::PrivateData => "private_data",
            Carrier::Send => "send",
        }
    }
}

/// Octets of a streaming stretch that its unit shows.
pub const STREAMING_HEAD: usize = 64;

/// An FPDU and its location in the stream.
#[derive(Debug, Clone, Copy)]
pub struct Fpdu<'a> {
    /// Positions of its parts.
    pub layout: Layout,
    /// `ULPDU_Length`, ULPDU and PAD, without markers.
    pub body: Part<'a>,
    /// The octets of its markers, in stream order; `None` for markers that were not captured.
    pub markers: &'a [Option<[u8; 4]>],
    /// Are the markers right?
    pub marker_status: MarkerStatus,
    /// The octets of the CRC field; `None` if there is none, or if it was not captured completely.
    pub crc: Option<[u8; 4]>,
    /// Is the CRC right?
    pub crc_status: CrcStatus,
}

impl<'a> Fpdu<'a> {
    /// The ULPDU: the DDP segment.
    #[must_use]
    #[inline]
    pub fn ulpdu(&self) -> Part<'a> {
        self.body.from(2).up_to(usize::from(self.layout.ulpdu_length))
    }

    /// The PAD octets; fewer than there should be at the end of a capture.
    #[must_use]
    #[inline]
    pub fn pad(&self) -> Part<'a> {
        self.body.from(2 + usize::from(self.layout.ulpdu_length))
    }
}

/// Result of checking the markers of an FPDU (RFC 5044 section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkerStatus {
    /// There are no markers in this direction.
    None,
    /// Every captured marker is right.
    Good,
    /// They are in the right places, but one has a wrong RESERVED or FPDUPTR.
    BadValue,
    /// They are in wrong places.
    Misplaced,
}

impl MarkerStatus {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MarkerStatus::None => "none",
            MarkerStatus::Good => "good",
            MarkerStatus::BadValue => "bad_value",
            MarkerStatus::Misplaced => "misplaced",
        }
    }
}

/// Result of checking the CRC of an FPDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrcStatus {
    /// Right.
    Good,
    /// Wrong.
    Bad,
    /// CRC was not negotiated; the field has no meaning.
    Unchecked,
    /// CRC was negotiated, but octets are missing.
    Truncated,
    /// The sender leaves the CRC field out.
    Absent,
}

impl CrcStatus {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CrcStatus::Good => "good",
            CrcStatus::Bad => "bad",
            CrcStatus::Unchecked => "unchecked",
            CrcStatus::Truncated => "truncated",
            CrcStatus::Absent => "absent",
        }
    }
}

/// Location of the octets of a unit, in the stream and in the capture.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// In the octets of a direction.
    Stream(StreamOrigin<'a>),
    /// In one frame.
    Frame {
        /// Its number.
        frame: u64,
        /// Offset of the unit in its octets; `None` if it was reassembled from fragments.
        offset: Option<u32>,
        /// Octets of the unit that were captured.
        len: u64,
    },
}

/// The octets of a unit in a direction.
#[derive(Debug, Clone, Copy)]
pub struct StreamOrigin<'a> {
    /// The stream.
    pub(crate) half: &'a Half,
    /// The segment that holds them, unless the stream itself does.
    pub(crate) arrived: Option<&'a Arrived<'a>>,
    /// Stream position of the unit's first octet.
    pub(crate) start: u64,
    /// Location of the first octets of the unit, if the stream does not keep them long enough or
    /// not in one piece.
    pub(crate) kept: &'a [Placed],
}

impl<'a> StreamOrigin<'a> {
    fn octets(&self, start: u64, end: u64) -> Option<&'a [u8]> {
        match self.arrived {
            Some(arrived) => arrived.octets(start, end),
            None => self.half.octets(start, end).ok().flatten(),
        }
    }

    fn locate(&self, start: u64, end: u64, found: &mut impl FnMut(Placed)) {
        match self.arrived {
            Some(arrived) => arrived.locate(start, end).into_iter().for_each(found),
            None => self.half.locate(start, end).for_each(found),
        }
    }

    /// Locations of octets `range` of the body of an FPDU; `found` gets them with their positions
    /// in the body.
    pub(crate) fn locate_body(&self, layout: &Layout, range: Range<u64>, found: &mut impl FnMut(Placed)) {
        let mut at = 0;
        for piece in layout.pieces() {
            let Piece::Body(stretch) = piece else { continue };
            let len = stretch.end - stretch.start;
            let (from, to) = (at.max(range.start), (at + len).min(range.end));
            if from < to {
                self.locate(stretch.start + (from - at), stretch.start + (to - at), &mut |placed: Placed| {
                    found(Placed { at: at + (placed.at - stretch.start), ..placed });
                });
            }
            at += len;
            if at >= range.end {
                return;
            }
        }
    }

    /// Locations of octets `range` of the unit, as far as they were kept.
    fn locate_kept(&self, range: Range<u64>, found: &mut impl FnMut(Placed)) {
        for Placed { at, located } in self.kept {
            let (from, to) = (range.start.max(*at), range.end.min(at + located.len));
            if from < to {
                found(Placed { at: from, located: located.part(from - at..to - at) });
            }
        }
    }
}

impl Unit<'_> {
    /// Its direction.
    pub(crate) fn direction(&self) -> Direction {
        self.direction.into()
    }

    /// Octets `start..end` of the unit's stream, if all of them were captured and still exist.
    pub(crate) fn stream_octets(&self, start: u64, end: u64) -> Option<&[u8]> {
        match self.origin {
            Origin::Stream(origin) => origin.octets(start, end),
            Origin::Frame { .. } => None,
        }
    }

    /// Does an FPDU exceed the last octet of its direction, although the capture holds all octets
    /// from the first one on?
    pub(crate) fn ends_with_data(&self) -> bool {
        let (Kind::Fpdu(fpdu), Origin::Stream(origin)) = (&self.kind, self.origin) else { return false };
        let end = origin.half.end();
        fpdu.layout.end > end && self.stream_octets(origin.start, end).is_some()
    }

    /// Stream position of its first octet; 0 for a datagram.
    pub(crate) fn position(&self) -> u64 {
        match self.origin {
            Origin::Stream(origin) => origin.start,
            Origin::Frame { .. } => 0,
        }
    }

    /// TCP sequence number of its first octet.
    pub(crate) fn sequence_number(&self) -> Option<u32> {
        match self.origin {
            Origin::Stream(origin) => origin.half.sequence_number(origin.start),
            Origin::Frame { .. } => None,
        }
    }

    /// Does its first octet begin a TCP segment, and where does the segment with that octet end?
    pub(crate) fn in_segment(&self) -> Option<(bool, u64)> {
        match self.origin {
            Origin::Stream(StreamOrigin { half, start, .. }) => {
                half.segment_end_after(start).map(|end| (half.segment_starts_at(start), end))
            }
            Origin::Frame { .. } => None,
        }
    }

    /// Location of the ports in the UDP header before a datagram: source, then destination. Only
    /// its frame if that is not known.
    pub(crate) fn udp_ports(&self) -> Located {
        let Origin::Frame { frame, offset: Some(offset), .. } = self.origin else {
            return Located { frame: self.frame, ..Located::default() };
        };
        offset.checked_sub(8).map_or(Located { frame, ..Located::default() }, |at| Located {
            frame,
            offset: Some(at),
            len: 4,
        })
    }

    /// Octets of the unit's part: of an FPDU `ULPDU_Length` and ULPDU; 0 where a unit has no part.
    #[must_use]
    pub fn octets_len(&self) -> usize {
        match &self.kind {
            Kind::Startup(_, part) | Kind::Sdp(_, _, part) | Kind::PortMapper(part) => part.len(),
            Kind::Fpdu(fpdu) => 2 + usize::from(fpdu.layout.ulpdu_length),
            Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. } => 0,
        }
    }

    /// Location of octets `range` of the unit's part (start-up frame, or FPDU body without markers)
    /// in the capture.
    #[must_use]
    pub fn locate(&self, range: Range<usize>) -> Vec<Located> {
        let mut found = Vec::new();
        self.locate_each(range, &mut |placed| found.push(placed.located));
        found
    }

    /// The first piece of octets `range`. If their location is not known, it has the unit's frame
    /// and no octets.
    pub(crate) fn locate_first(&self, range: Range<usize>) -> Located {
        let mut first = None;
        self.locate_each(range, &mut |placed| first = first.or(Some(placed.located)));
        first.unwrap_or(Located { frame: self.frame, ..Located::default() })
    }

    fn locate_each(&self, range: Range<usize>, found: &mut impl FnMut(Placed)) {
        let (start, end) = (range.start as u64, range.end as u64);
        let origin = match self.origin {
            Origin::Stream(origin) => origin,
            Origin::Frame { frame, offset, len } => {
                let located = Located { frame, offset, len }.part(start..end);
                if located.len > 0 {
                    found(Placed { at: start, located });
                }
                return;
            }
        };
        let fpdu = match &self.kind {
            Kind::Fpdu(fpdu) => fpdu,
            Kind::Sdp(Carrier::Send, ..) | Kind::Streaming { .. } | Kind::Unparsed { .. } => {
                return origin.locate_kept(start..end, found);
            }
            _ => return origin.locate(origin.start + start, origin.start + end, found),
        };
        origin.locate_body(&fpdu.layout, start..end, found);
        // After the body: the CRC field, then the markers.
        let at = fpdu.body.len() as u64;
        if end <= at {
            return;
        }
        let field = fpdu.layout.end - fpdu.layout.crc;
        if start < at + field {
            let from = fpdu.layout.crc + start.saturating_sub(at);
            origin.locate(from, (fpdu.layout.crc + end - at).min(fpdu.layout.end), found);
        }
        let markers = fpdu.layout.pieces().filter_map(|piece| match piece {
            Piece::Marker { position, .. } => Some(position),
            Piece::Body(_) => None,
        });
        for (index, position) in markers.enumerate() {
            let coordinate = at + 4 + 4 * index as u64;
            if start < coordinate + 4 && end > coordinate {
                origin.locate(position, position + 4, found);
            }
        }
    }
}
