//! [`Unit`]: one protocol unit of a capture, with its kind, its octets and their location.

use std::net::SocketAddr;
use std::ops::Range;

use weft_core::wire::mpa::{Layout, StartupKind, fpdu::Piece};
use weft_core::wire::sdp::FieldOrder;

use crate::direction::Direction;
use crate::format::named;
use crate::frame_number::FrameNumber;
use crate::location::{Location, StreamLocation};
use crate::part::Part;
use crate::stream_id::StreamId;
use crate::tcp::{DirectionStream, SegmentOctets};

/// Sender and receiver of a direction, as addresses and as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// `src` as `10.0.0.1:4210` or `[fd00::1]:4210`.
    pub src_text: String,
    /// `dst` in the same format.
    pub dst_text: String,
}

impl Endpoints {
    /// The direction from `src` to `dst`.
    #[must_use]
    pub fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        Endpoints { src, dst, src_text: src.to_string(), dst_text: dst.to_string() }
    }
}

/// One protocol unit: a part of a direction of a TCP connection, or a UDP datagram.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// Number of the TCP connection; the first connection has number 0. `None` for a UDP datagram.
    pub stream: Option<StreamId>,
    /// 0 if the sender of the unit sent the first frame of the connection, otherwise 1.
    pub direction: u8,
    /// Sender and receiver.
    pub ends: &'a Endpoints,
    /// Number of the frame that completed the unit: the last frame that supplied new octets of the
    /// unit.
    pub frame: FrameNumber,
    /// Capture time of `frame` in nanoseconds since 1970.
    pub time: u64,
    /// Whether octets of the unit are missing in the capture.
    pub incomplete: bool,
    /// The type of the unit, with the parts of the unit.
    pub kind: Kind<'a>,
    /// Location of the octets of the unit.
    pub origin: Origin<'a>,
    /// The probable error of the sender, if no FPDU was found in the octets.
    pub sender_error: Option<SenderError>,
}

/// The probable error of a sender, if an FPDU was expected but the octets do not have the layout of
/// RFC 5044.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SenderError {
    /// A marker precedes `ULPDU_Length`, but no markers were negotiated for this direction.
    UnrequestedMarker,
    /// `ULPDU_Length` is little-endian.
    LengthSwapped,
    /// `ULPDU_Length` is too large. The value is the difference to the length of the ULPDU, in
    /// octets.
    LengthCounts(u8),
    /// The FPDU has the wrong number of PAD octets. The value is this wrong number.
    Pad(u8),
    /// CRC is in use, but the sender omits the CRC field.
    NoCrcField,
    /// There is no simple explanation.
    Unexplained,
}

/// The type of a unit.
#[derive(Debug, Clone, Copy)]
pub enum Kind<'a> {
    /// An MPA Request or Reply frame. The first octet of the [`Part`] is the first octet of the
    /// key.
    Startup(StartupKind, Part<'a>),
    /// An FPDU.
    Fpdu(Fpdu<'a>),
    /// An SDP message. It is delivered after the FPDU or the start-up frame that completed the
    /// message. A Hello in streaming mode is not in an FPDU or a start-up frame.
    Sdp(Carrier, FieldOrder, Part<'a>),
    /// A datagram from or to a port mapper.
    PortMapper(Part<'a>),
    /// TCP octets outside MPA.
    Streaming {
        /// Number of octets.
        len: u64,
        /// CRC-32 (as in zlib) of all octets; `None` if octets are missing.
        crc32: Option<u32>,
        /// The first octets, at most [`STREAMING_HEAD`] octets.
        head: &'a [u8],
    },
    /// Octets that are missing in the capture and belong to no other unit.
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

named! {
    /// The carrier of an SDP message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Carrier {
        /// TCP octets before MPA.
        Streaming = "streaming",
        /// The private data of a start-up frame.
        PrivateData = "private_data",
        /// A Send.
        #[default]
        Send = "send",
    }
}

/// Position and FPDUPTR of each marker in an FPDU.
pub(crate) fn marker_positions(layout: &Layout) -> impl Iterator<Item = (u64, u16)> + use<> {
    layout.pieces().filter_map(|piece| match piece {
        Piece::Marker { position, fpduptr } => Some((position, fpduptr)),
        Piece::Body(_) => None,
    })
}

/// Maximum number of octets in the `head` of [`Kind::Streaming`].
pub const STREAMING_HEAD: usize = 64;

/// An FPDU and its location in the stream.
#[derive(Debug, Clone, Copy)]
pub struct Fpdu<'a> {
    /// Stream positions of the parts of the FPDU.
    pub layout: Layout,
    /// `ULPDU_Length`, ULPDU and PAD, without markers.
    pub body: Part<'a>,
    /// The octets of the markers, in stream order; `None` for markers that were not captured.
    pub markers: &'a [Option<[u8; 4]>],
    /// Result of checking the markers.
    pub marker_status: MarkerStatus,
    /// The octets of the CRC field; `None` if the FPDU has no CRC field, or if the field was not
    /// captured completely.
    pub crc: Option<[u8; 4]>,
    /// Result of checking the CRC.
    pub crc_status: CrcStatus,
}

impl<'a> Fpdu<'a> {
    /// The ULPDU: the DDP segment.
    #[must_use]
    #[inline]
    pub fn ulpdu(&self) -> Part<'a> {
        self.body.from(2).up_to(usize::from(self.layout.ulpdu_length))
    }

    /// The PAD octets. At the end of a capture, PAD may be incomplete.
    #[must_use]
    #[inline]
    pub fn pad(&self) -> Part<'a> {
        self.body.from(2 + usize::from(self.layout.ulpdu_length))
    }
}

named! {
    /// Result of checking the markers of an FPDU (RFC 5044 section 4.3).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum MarkerStatus {
        /// This direction has no markers.
        None = "none",
        /// Every captured marker is correct.
        Good = "good",
        /// The markers are at the correct positions, but a marker has a wrong RESERVED or FPDUPTR.
        BadValue = "bad_value",
        /// The markers are at wrong positions.
        Misplaced = "misplaced",
    }
}

named! {
    /// Result of checking the CRC of an FPDU.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum CrcStatus {
        /// The CRC is correct.
        Good = "good",
        /// The CRC is wrong.
        Bad = "bad",
        /// CRC was not negotiated, so the CRC field has no meaning.
        Unchecked = "unchecked",
        /// CRC was negotiated, but octets of the FPDU are missing.
        Truncated = "truncated",
        /// The sender omits the CRC field.
        Absent = "absent",
    }
}

/// Where the octets of a unit come from. The locations of the octets in the capture are derived
/// from this.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// In the octets of a direction.
    Stream(StreamOrigin<'a>),
    /// In one frame.
    Frame {
        /// Number of the frame.
        frame: FrameNumber,
        /// Offset of the unit in the octets of the frame; `None` if the unit was reassembled from
        /// IP fragments.
        offset: Option<u32>,
        /// Number of octets of the unit that were captured.
        len: u64,
    },
}

/// Location of a unit in the octets of a direction.
#[derive(Debug, Clone, Copy)]
pub struct StreamOrigin<'a> {
    /// The reassembled octets of the direction.
    pub(crate) half: &'a DirectionStream,
    /// The TCP segment that contains the octets of the unit; `None` if `half` contains them.
    pub(crate) arrived: Option<&'a SegmentOctets<'a>>,
    /// Stream position of the unit's first octet.
    pub(crate) start: u64,
    /// Locations of the first octets of the unit. These locations are stored only if the octets of
    /// the unit are no longer in `half`, or are not contiguous in `half`.
    pub(crate) kept: &'a [StreamLocation],
}

impl<'a> StreamOrigin<'a> {
    fn octets(&self, start: u64, end: u64) -> Option<&'a [u8]> {
        match self.arrived {
            Some(arrived) => arrived.octets(start, end),
            None => self.half.octets(start, end).ok().flatten(),
        }
    }

    fn locate(&self, start: u64, end: u64, found: &mut impl FnMut(StreamLocation)) {
        match self.arrived {
            Some(arrived) => arrived.locate(start, end).into_iter().for_each(found),
            None => self.half.locate(start, end).for_each(found),
        }
    }

    /// Calls `found` with each location of the octets `range` of an FPDU body. In these locations,
    /// [`StreamLocation::at`] is the offset in the body.
    pub(crate) fn locate_body(&self, layout: &Layout, range: Range<u64>, found: &mut impl FnMut(StreamLocation)) {
        let mut at = 0;
        for piece in layout.pieces() {
            let Piece::Body(stretch) = piece else { continue };
            let len = stretch.end - stretch.start;
            let (from, to) = (at.max(range.start), (at + len).min(range.end));
            if from < to {
                self.locate(stretch.start + (from - at), stretch.start + (to - at), &mut |found_at: StreamLocation| {
                    found(StreamLocation { at: at + (found_at.at - stretch.start), ..found_at });
                });
            }
            at += len;
            if at >= range.end {
                return;
            }
        }
    }

    /// Calls `found` with each stored location of the octets `range` of the unit.
    fn locate_kept(&self, range: Range<u64>, found: &mut impl FnMut(StreamLocation)) {
        for StreamLocation { at, location } in self.kept {
            let (from, to) = (range.start.max(*at), range.end.min(at + location.len));
            if from < to {
                found(StreamLocation { at: from, location: location.part(from - at..to - at) });
            }
        }
    }
}

impl Unit<'_> {
    fn stream_origin(&self) -> Option<StreamOrigin<'_>> {
        match self.origin {
            Origin::Stream(origin) => Some(origin),
            Origin::Frame { .. } => None,
        }
    }

    /// The direction of the unit.
    pub(crate) fn direction(&self) -> Direction {
        self.direction.into()
    }

    /// The octets at stream positions `start..end`. Returns `None` if one of these octets was not
    /// captured or is no longer in memory.
    pub(crate) fn stream_octets(&self, start: u64, end: u64) -> Option<&[u8]> {
        self.stream_origin()?.octets(start, end)
    }

    /// Returns whether the unit is an FPDU, and the data of its direction ends inside this FPDU.
    /// All octets from the start of the FPDU to the end of the data must also have been captured.
    pub(crate) fn ends_with_data(&self) -> bool {
        let (Kind::Fpdu(fpdu), Origin::Stream(origin)) = (&self.kind, self.origin) else { return false };
        let end = origin.half.end();
        fpdu.layout.end > end && self.stream_octets(origin.start, end).is_some()
    }

    /// Stream position of the first octet of the unit; 0 for a datagram.
    pub(crate) fn position(&self) -> u64 {
        self.stream_origin().map_or(0, |origin| origin.start)
    }

    /// TCP sequence number of the first octet of the unit; `None` for a datagram.
    pub(crate) fn sequence_number(&self) -> Option<u32> {
        let StreamOrigin { half, start, .. } = self.stream_origin()?;
        half.sequence_number(start)
    }

    /// Returns two facts about the TCP segment that contains the first octet of the unit: whether
    /// the segment starts with that octet, and the stream position of the segment's end.
    pub(crate) fn in_segment(&self) -> Option<(bool, u64)> {
        let StreamOrigin { half, start, .. } = self.stream_origin()?;
        half.segment_end_after(start).map(|end| (half.segment_starts_at(start), end))
    }

    /// Location of the source port and the destination port in the UDP header of a datagram. If the
    /// offset is unknown, only the frame is set.
    pub(crate) fn udp_ports(&self) -> Location {
        let Origin::Frame { frame, offset: Some(offset), .. } = self.origin else {
            return Location { frame: self.frame, ..Location::default() };
        };
        offset.checked_sub(8).map_or(Location { frame, ..Location::default() }, |at| Location {
            frame,
            offset: Some(at),
            len: 4,
        })
    }

    /// Length of the unit in octets, for a start-up frame, an SDP message and a datagram. For an
    /// FPDU, the length of `ULPDU_Length` and ULPDU together. For all other units, 0.
    #[must_use]
    pub fn octets_len(&self) -> usize {
        match &self.kind {
            Kind::Startup(_, part) | Kind::Sdp(_, _, part) | Kind::PortMapper(part) => part.len(),
            Kind::Fpdu(fpdu) => 2 + usize::from(fpdu.layout.ulpdu_length),
            Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. } => 0,
        }
    }

    /// Where the octets `range` of the unit are in the capture. [`crate::grammar`] defines how
    /// offsets within a unit count.
    #[must_use]
    pub fn locate(&self, range: Range<usize>) -> Vec<Location> {
        let mut found = Vec::new();
        self.locate_each(range, &mut |found_at| found.push(found_at.location));
        found
    }

    /// The first of the locations that [`Unit::locate`] returns. If there is no location, the
    /// result has the frame of the unit and length 0.
    pub(crate) fn locate_first(&self, range: Range<usize>) -> Location {
        let mut first = None;
        self.locate_each(range, &mut |found_at| first = first.or(Some(found_at.location)));
        first.unwrap_or(Location { frame: self.frame, ..Location::default() })
    }

    fn locate_each(&self, range: Range<usize>, found: &mut impl FnMut(StreamLocation)) {
        let (start, end) = (range.start as u64, range.end as u64);
        let origin = match self.origin {
            Origin::Stream(origin) => origin,
            Origin::Frame { frame, offset, len } => {
                let location = Location { frame, offset, len }.part(start..end);
                if location.len > 0 {
                    found(StreamLocation { at: start, location });
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
        // The offsets after the body belong first to the CRC field, and then to the markers.
        let at = fpdu.body.len() as u64;
        if end <= at {
            return;
        }
        let field = fpdu.layout.end - fpdu.layout.crc;
        if start < at + field {
            let from = fpdu.layout.crc + start.saturating_sub(at);
            origin.locate(from, (fpdu.layout.crc + end - at).min(fpdu.layout.end), found);
        }
        for (index, (position, _)) in marker_positions(&fpdu.layout).enumerate() {
            let coordinate = at + 4 + 4 * index as u64;
            if start < coordinate + 4 && end > coordinate {
                origin.locate(position, position + 4, found);
            }
        }
    }
}
