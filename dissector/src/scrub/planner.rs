//! [`Planner`]: decides which octets of each unit stay.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use weft_core::crc::CRC_LEN;
use weft_core::wire::mpa::RawStartup;
use weft_core::wire::mpa::fpdu::{LENGTH_LEN, Layout, Piece};
use weft_core::wire::mpa::startup::{ENHANCED_LEN, FLAG_S, HEADER_LEN, KEY_LEN, REPLY_KEY, REQUEST_KEY};
use weft_core::wire::portmap::{Message, UDP_PORT};
use zerocopy::FromBytes;

use crate::dissector::Dissector;
use crate::frame_number::FrameNumber;
use crate::packet::Packet;
use crate::parse::{Carrier, CrcStatus, Fpdu, Kind};
use crate::part::Part;
use crate::sink::Sink;
use crate::source::Frame;
use crate::stream_id::StreamId;
use crate::unit::Unit;
use crate::upper::smb_direct::{self, PrivateData};
use crate::upper::{Ulp, lustre, rsockets};

use super::addresses::AddressMap;
use super::crc_field::new_field;
use super::fill::FILL;
use super::fragments::Fragments;
use super::kept::{OpenSend, Upper, headers, sdp_headers_len};
use super::plan::{DirectionKey, Plan};
use super::portmap;
use super::scrubber::Scrubber;
use super::survey::Survey;

/// Maximum number of wrong octets in octets that the monitor treats as the key of a start-up frame.
const MAX_WRONG_KEY_OCTETS: usize = 6;
/// Length of a port mapper message.
const PORTMAP_LEN: usize = 48;
/// The first octets of the private data of RPC-over-RDMA (RFC 8797), and the length of this data.
const RPCRDMA_MAGIC: [u8; 4] = [0xf6, 0xab, 0x0e, 0x18];
const RPCRDMA_LEN: usize = 8;
/// Length of the private data of NVMe over RDMA, and of the part before the reserved octets.
const NVME_LEN: usize = 32;
const NVME_USED: usize = 10;
/// Length of the private data of iSER. Its first octet has two flags. All other bits are reserved.
const ISER_LEN: usize = 4;
const ISER_RESERVED: u8 = 0x3f;

/// The sink of the second pass: decides which octets of each TCP stream stay.
///
/// The memory grows with the number of units, by about 60 bytes for each FPDU.
#[derive(Debug)]
pub struct Planner {
    survey: Survey,
    plan: Plan,
    addresses: AddressMap,
    /// The latest Send of each direction.
    open: HashMap<DirectionKey, Option<OpenSend>>,
    /// The connections with a start-up frame.
    started: HashSet<StreamId>,
    fragments: Fragments,
    /// The packet of the latest frame.
    packet: Option<Packet>,
    /// Whether the latest frame has a fragment of an incomplete IP packet.
    is_waiting: bool,
}

impl Planner {
    /// Starts the second pass. It must read the frames of the first pass, with an equal dissector.
    #[must_use]
    pub fn new(survey: Survey) -> Self {
        Planner {
            survey,
            plan: Plan::default(),
            addresses: AddressMap::default(),
            open: HashMap::new(),
            started: HashSet::new(),
            fragments: Fragments::default(),
            packet: None,
            is_waiting: false,
        }
    }

    /// Passes a frame to `dissector`, which reports to this sink. At the end of the pass, call
    /// [`Dissector::finish`] with this sink.
    pub fn frame(&mut self, frame: &Frame<'_>, dissector: &mut Dissector) {
        (self.packet, self.is_waiting) = (None, false);
        dissector.frame(frame, self);
        self.fragments.record(frame, self.packet, self.is_waiting);
    }

    /// Ends the second pass. The third pass must read the same frames. `dissector` must be new, and
    /// have the same settings as in the other passes.
    #[must_use]
    pub fn finish(self, dissector: Dissector) -> Scrubber {
        Scrubber::new(self.plan, self.addresses, self.fragments, dissector)
    }

    /// Keeps the header of a start-up frame, and the private data that a specification defines.
    fn startup(&mut self, key: DirectionKey, unit: &Unit<'_>, part: Part<'_>) {
        let position = unit.position();
        let octets = part.beginning();
        let words = match RawStartup::ref_from_prefix(octets) {
            Ok((header, _)) if header.revision >= 2 && header.flags & FLAG_S != 0 => ENHANCED_LEN,
            _ => 0,
        };
        let private_at = HEADER_LEN + words;
        let private = octets.get(private_at..).unwrap_or_default();
        let private_len = part.from(private_at).len();
        let known = if self.is_smb_direct(&key, unit) && private.len() == private_len && is_ird_and_ord(private) {
            private_len
        } else {
            known_private_data(private, private_len)
        };
        let len = (private_at + known).min(part.len());
        self.plan.direction(key).keep(position..position + len as u64);
        self.started.insert(key.0);
    }

    /// Returns whether the connection has the port of SMB Direct, or is recognised as SMB Direct.
    /// The private data has no magic number, so its value alone is no proof.
    fn is_smb_direct(&self, key: &DirectionKey, unit: &Unit<'_>) -> bool {
        unit.ends.src.port() == smb_direct::PORT
            || unit.ends.dst.port() == smb_direct::PORT
            || matches!(self.survey.upper(key), Upper::Recognised(ulps) if ulps.contains(&Ulp::SmbDirect))
    }

    /// Keeps the headers and the markers of an FPDU, and writes its CRC.
    fn fpdu(&mut self, key: DirectionKey, unit: &Unit<'_>, fpdu: &Fpdu<'_>) {
        let layout = &fpdu.layout;
        let open = self.open.entry(key).or_default();
        let kept = positions(layout, &kept_of_body(fpdu, headers(fpdu.ulpdu(), self.survey.upper(&key), open)));
        let direction = self.plan.direction(key);
        kept.iter().for_each(|range| direction.keep(range.clone()));
        if layout.end == layout.crc {
            return;
        }
        match (unit.stream_octets(layout.start, layout.crc), fpdu.crc) {
            (Some(octets), Some(field)) => {
                let mut new = vec![FILL; octets.len()];
                for range in &kept {
                    let within = (range.start - layout.start) as usize..(range.end - layout.start) as usize;
                    if let (Some(new), Some(octets)) = (new.get_mut(within.clone()), octets.get(within)) {
                        new.copy_from_slice(octets);
                    }
                }
                let field = new_field(fpdu, octets, &new, field);
                if fpdu.crc_status == CrcStatus::Bad {
                    direction.put_wrong_crc(layout.crc, field, layout.crc - layout.start);
                } else {
                    direction.put(layout.crc, &field);
                }
            }
            // Octets of the FPDU are missing, so the field does not show whether it is correct.
            (None, Some(field)) if field == [0; CRC_LEN] => direction.keep(layout.crc..layout.end),
            _ => {}
        }
    }

    /// Keeps the octets of streaming data that a rule of the monitor reads. `head` are its first
    /// octets, and `len` is its length.
    fn streaming(&mut self, key: DirectionKey, unit: &Unit<'_>, head: &[u8], len: u64) {
        let position = unit.position();
        if len == PORTMAP_LEN as u64
            && unit.ends.dst.port() == UDP_PORT
            && let Some(message) = head.get(..PORTMAP_LEN).filter(|message| Message::parse(message).is_ok())
        {
            let mut message = message.to_vec();
            portmap::replace(&mut message, [unit.ends.src.ip(), unit.ends.dst.ip()], &mut self.addresses);
            return self.plan.direction(key).put(position, &message);
        }
        let kept = if len == 4 && head == [0; 4] || has_key(head) {
            head.len().min(HEADER_LEN)
        } else if self.started.contains(&key.0) {
            fpdu_headers_len(head)
        } else {
            0
        };
        self.plan.direction(key).keep(position..position + kept as u64);
    }
}

impl Sink for Planner {
    fn packet(&mut self, packet: &Packet) {
        self.packet = Some(*packet);
    }

    fn fragment(&mut self, _: FrameNumber) {
        self.is_waiting = true;
    }

    fn unit(&mut self, unit: &Unit<'_>) {
        let (Some(stream), Some(seq)) = (unit.stream, unit.sequence_number()) else { return };
        let key = (stream, unit.ends.src);
        let position = unit.position();
        self.plan.direction(key).set_base(seq, position);
        match &unit.kind {
            Kind::Startup(_, part) => self.startup(key, unit, *part),
            Kind::Fpdu(fpdu) => self.fpdu(key, unit, fpdu),
            Kind::Sdp(Carrier::Streaming | Carrier::PrivateData, order, part) => {
                let len = sdp_headers_len(part.beginning(), *order).min(part.len());
                self.plan.direction(key).keep(position..position + len as u64);
            }
            Kind::Streaming { len, head, .. } => self.streaming(key, unit, head, *len),
            Kind::Unparsed { len } => self.plan.direction(key).keep_unparsed(position, *len, unit.sender_error),
            // The FPDUs of a message have its headers.
            Kind::Sdp(Carrier::Send, ..) | Kind::PortMapper(_) | Kind::Gap { .. } => {}
        }
    }
}

/// The number of octets of the ULP's private data `octets` that stay, because a specification
/// defines them. On the wire, the private data has `len` octets.
fn known_private_data(octets: &[u8], len: usize) -> usize {
    if octets.starts_with(&RPCRDMA_MAGIC) && octets.len() >= RPCRDMA_LEN {
        return RPCRDMA_LEN;
    }
    // The NIDs after these octets contain addresses.
    if lustre::is_private_data(octets) {
        return lustre::KEPT_LEN;
    }
    let is_zero = |octets: &[u8]| octets.iter().all(|octet| *octet == 0);
    let is_known = match *octets {
        _ if octets.len() != len => false,
        _ if rsockets::PrivateData::parse(octets).is_some() => true,
        // RECFMT of NVMe over RDMA is 0.
        [0, 0, ..] if len == NVME_LEN => is_zero(&octets[NVME_USED..]),
        [flags, 0, 0, 0] if len == ISER_LEN => flags & ISER_RESERVED == 0,
        _ => is_zero(octets),
    };
    if is_known { len } else { 0 }
}

/// Returns whether `private` is the private data of SMB Direct: IRD and ORD in big-endian or
/// little-endian order.
fn is_ird_and_ord(private: &[u8]) -> bool {
    PrivateData::parse(private).is_some()
}

/// The octets of the FPDU body that stay: `ULPDU_Length`, these ranges of headers in the ULPDU, and
/// the PAD octets that are zero. The ranges are in order and do not overlap.
fn kept_of_body(fpdu: &Fpdu<'_>, headers: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let end = LENGTH_LEN + fpdu.ulpdu().len();
    let headers = headers.into_iter().map(|range| LENGTH_LEN + range.start..(LENGTH_LEN + range.end).min(end));
    let pad_at = LENGTH_LEN + usize::from(fpdu.layout.ulpdu_length);
    let (pad, _) = fpdu.pad().raw();
    let zeros = (pad_at..).zip(pad).filter(|(_, octet)| **octet == 0).map(|(at, _)| at..at + 1);
    let kept = std::iter::once(0..LENGTH_LEN).chain(headers).chain(zeros);
    kept.filter(|range| range.start < range.end).collect()
}

/// The stream positions of the octets `kept` of the body, and of the markers, in stream order.
fn positions(layout: &Layout, kept: &[Range<usize>]) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut at = 0;
    for piece in layout.pieces() {
        match piece {
            Piece::Marker { position, .. } => found.push(position..position + 4),
            Piece::Body(positions) => {
                let end = at + (positions.end - positions.start);
                for range in kept {
                    let (from, to) = ((range.start as u64).max(at), (range.end as u64).min(end));
                    if from < to {
                        found.push(positions.start + (from - at)..positions.start + (to - at));
                    }
                }
                at = end;
            }
        }
    }
    found
}

/// Returns whether `head` starts with a key of a start-up frame, or with octets that the monitor
/// treats as a wrong key.
fn has_key(head: &[u8]) -> bool {
    let Some(key) = head.get(..KEY_LEN).filter(|_| head.len() >= HEADER_LEN) else { return false };
    let wrong = |right: [u8; KEY_LEN]| key.iter().zip(right).filter(|(octet, right)| **octet != *right).count();
    wrong(REQUEST_KEY).min(wrong(REPLY_KEY)) <= MAX_WRONG_KEY_OCTETS
}

/// Length of the headers if `head` looks like an FPDU after a rejected start-up, possibly with a
/// leading marker. Otherwise the result is 0.
fn fpdu_headers_len(head: &[u8]) -> usize {
    let marker = if head.starts_with(&[0; 4]) { 4 } else { 0 };
    let Some(&[_, _, ddp, rdmap, ..]) = head.get(marker..) else { return 0 };
    let is_header = ddp & 0x3c == 0 && ddp & 3 <= 1 && rdmap >> 6 == ddp & 3 && rdmap & 0x30 == 0;
    let headers = match rdmap & 0xf {
        // Of a Terminate, also the error.
        7 => LENGTH_LEN + 18 + 4,
        0 | 2 => LENGTH_LEN + 14,
        1..=11 => LENGTH_LEN + 18,
        _ => 0,
    };
    if is_header { (marker + headers).min(head.len()) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    #[test]
    fn keeps_private_data_of_known_protocols_only() {
        let known = |octets: &[u8]| known_private_data(octets, octets.len());
        assert_eq!(known(&[0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3, b'h', b'o', b's', b't']), 8);
        let mut nvme = [0; 32];
        nvme[3] = 1;
        assert_eq!(known(&nvme), 32);
        nvme[31] = 1;
        assert_eq!(known(&nvme), 0);
        assert_eq!((known(&[0x80, 0, 0, 0]), known(&[0x81, 0, 0, 0])), (4, 0));
        assert_eq!((known(b"host1"), known(&[0; 7]), known(&[])), (0, 7, 0));
        assert_eq!(known_private_data(&[0; 7], 9), 0);
    }

    /// The private data of rsockets has no addresses of hosts. That of LNet has NIDs.
    #[test]
    fn keeps_private_data_of_rsockets_and_the_start_of_lnet() {
        let known = |octets: &[u8]| known_private_data(octets, octets.len());
        let rsockets =
            hex("01 02 0180 000000 00 0000000000001000 00000100 00000002 0000000000002000 00000200 00010000");
        assert_eq!((known(&rsockets), known(&rsockets[..39])), (40, 0));
        let mut lnet = hex("911be90b 1200 c0 01 38000000 00000000 0200000a00000500");
        lnet.resize(56, 1);
        assert_eq!(known(&lnet), 12);
        lnet[0] = 0;
        assert_eq!(known(&lnet), 0);
    }

    /// The FPDU of RFC 5044 Figure 6: its marker is at 0x200, after 20 octets.
    #[test]
    fn positions_of_headers_do_not_include_a_marker() {
        let layout = Layout::new(0x1ec, 42, Some(0));
        let kept = [0..2, 2..20, 30..31];
        let expected = [0x1ec..0x1ee, 0x1ee..0x200, 0x200..0x204, 0x20e..0x20f];
        assert_eq!(positions(&layout, &kept), expected);
    }

    #[test]
    fn recognises_wrong_keys() {
        assert!(has_key(b"MPA ID Req Frame\0\0\0\0"));
        assert!(has_key(b"MPX ID Req FrXme\0\0\0\0"));
        assert!(!has_key(b"GET / HTTP/1.1\r\nHost: "));
        assert!(!has_key(b"MPA ID Req Frame"));
    }
}
