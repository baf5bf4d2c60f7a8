//! [`Pdu`]: an iSCSI PDU in a Send, with its iSER header (RFC 7145 section 9.2). The PDU starts
//! with a basic header segment (BHS) of 48 bytes (RFC 7143 section 11.2.1). Additional header
//! segments (AHS) and the data segment follow. All fields are big-endian.

use std::ops::Range;

use super::cdb::{Cdb, Lun};
use super::header::{ControlHeader, HEADER_LEN};
use super::opcode::Opcode;
use super::sense::Sense;
use super::tasks::Task;
use super::text::{self, is_key};
use crate::frame_number::FrameNumber;
use crate::upper::protocol::only;

/// Length in bytes of the BHS.
const BHS_LEN: usize = 48;
/// Length in bytes of the iSER header and the BHS.
pub(crate) const HEAD_LEN: usize = HEADER_LEN + BHS_LEN;
/// The value of a tag that names no task.
pub(super) const NO_TAG: u32 = 0xffff_ffff;
/// AHS type of the Bidirectional Read Expected Data Transfer Length (RFC 7143 section 11.2.2.4),
/// and its length.
const BIDIRECTIONAL_READ: u8 = 2;
const BIDIRECTIONAL_READ_LEN: usize = 5;
/// Maximum length of sense data in bytes (SPC-4 section 4.5.1).
const MAX_SENSE_LEN: usize = 252;

/// The PDU that a Reject is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectedPdu {
    /// The opcode.
    pub opcode: Opcode,
    /// Initiator Task Tag.
    pub task_tag: u32,
}

impl RejectedPdu {
    /// Reads the data segment of a Reject.
    fn parse(data: &[u8]) -> Option<Self> {
        let [first, ..] = *data.first_chunk::<BHS_LEN>()?;
        let task_tag = u32::from_be_bytes(*data.get(16..)?.first_chunk()?);
        Some(RejectedPdu { opcode: Opcode(first & 0x3f), task_tag })
    }
}

/// An iSCSI PDU with its iSER header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pdu {
    /// The iSER header and the BHS.
    head: [u8; HEAD_LEN],
    /// Length of the Send in bytes.
    pub len: u32,
    /// For a SCSI Command in both directions: the number of bytes that the initiator expects to
    /// read, from an AHS.
    pub bidirectional_read_len: Option<u32>,
    /// For a SCSI Response: the sense data.
    pub sense: Option<Sense>,
    /// For a Reject: the rejected PDU, from the copy of its BHS in the data segment (RFC 7143
    /// section 11.17.4). `None` if the data segment has no complete BHS.
    pub rejected: Option<RejectedPdu>,
    /// For a response: the request that it answers. `None` if weft does not know this request. The
    /// reason can be that the capture lacks the request, or that the request was parsed after the
    /// response.
    pub request: Option<Task>,
    /// Whether the data segment starts with a text key.
    has_text: bool,
}

impl Pdu {
    /// Reads the first bytes of a Send. Returns `None` if `bytes` are shorter than the iSER header
    /// and the BHS, or if the opcode is not assigned. The fields `len` and `request` are not in
    /// `bytes`, and are 0 and `None`.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD_LEN] = bytes.first_chunk()?;
        let mut pdu = Pdu {
            head: *head,
            len: 0,
            bidirectional_read_len: None,
            sense: None,
            rejected: None,
            request: None,
            has_text: false,
        };
        if !pdu.opcode().is_assigned() {
            return None;
        }
        let (additional, data) = bytes[HEAD_LEN..].split_at(pdu.additional_len().min(bytes.len() - HEAD_LEN));
        let data = &data[..data.len().min(pdu.data_len() as usize)];
        match pdu.opcode() {
            Opcode::SCSI_COMMAND => pdu.bidirectional_read_len = bidirectional_read_len(additional),
            Opcode::SCSI_RESPONSE => pdu.sense = sense(data),
            Opcode::REJECT => pdu.rejected = RejectedPdu::parse(data),
            Opcode::LOGIN_REQUEST | Opcode::LOGIN_RESPONSE => pdu.has_text = is_key(data),
            _ => {}
        }
        Some(pdu)
    }

    /// The ranges of the Send `bytes` without data of the user: the iSER header and the BHS, the
    /// additional header segments of a SCSI Command, the sense data of a SCSI Response, and the
    /// structure of text. A range can end after the end of `bytes`.
    pub(super) fn headers(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let at = self.data_at();
        let data = bytes.get(at..).unwrap_or_default();
        let data = &data[..data.len().min(self.data_len() as usize)];
        match self.opcode() {
            Opcode::SCSI_COMMAND => only(0..at),
            Opcode::SCSI_RESPONSE => vec![0..HEAD_LEN, at..at + sense_len(data)],
            Opcode::LOGIN_REQUEST | Opcode::LOGIN_RESPONSE | Opcode::TEXT_REQUEST | Opcode::TEXT_RESPONSE => {
                let structure = text::structure(data).into_iter().map(|range| at + range.start..at + range.end);
                std::iter::once(0..HEAD_LEN).chain(structure).collect()
            }
            _ => only(0..HEAD_LEN),
        }
    }

    /// The iSER header and the BHS.
    pub(crate) fn head(&self) -> &[u8; HEAD_LEN] {
        &self.head
    }

    /// The iSER header.
    #[must_use]
    pub fn header(&self) -> ControlHeader {
        ControlHeader::new(self.head.first_chunk().copied().unwrap_or([0; HEADER_LEN]))
    }

    /// The byte at offset `at` of the BHS.
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.head.get(HEADER_LEN + at).copied().unwrap_or(0)
    }

    /// The 16-bit number at offset `at` of the BHS.
    pub(super) fn short(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.byte(at), self.byte(at + 1)])
    }

    /// The 32-bit number at offset `at` of the BHS.
    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from(self.short(at)) << 16 | u32::from(self.short(at + 2))
    }

    /// `N` bytes of the BHS from offset `at` on.
    pub(super) fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|index| self.byte(at + index))
    }

    /// The opcode.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        Opcode(self.byte(0) & 0x3f)
    }

    /// I: whether the target must process the request immediately.
    #[must_use]
    pub fn is_immediate(&self) -> bool {
        self.byte(0) & 0x40 != 0
    }

    /// `TotalAHSLength` in bytes, 0 to 1020.
    #[must_use]
    pub fn additional_len(&self) -> usize {
        4 * usize::from(self.byte(4))
    }

    /// `DataSegmentLength` in bytes, without padding.
    #[must_use]
    pub fn data_len(&self) -> u32 {
        self.word(4) & 0x00ff_ffff
    }

    /// Offset of the data segment in the Send, in bytes.
    pub(crate) fn data_at(&self) -> usize {
        HEAD_LEN + self.additional_len()
    }

    /// Initiator Task Tag.
    #[must_use]
    pub fn task_tag(&self) -> u32 {
        self.word(16)
    }

    /// LUN, for those PDUs that have one.
    pub(super) fn lun(&self) -> Lun {
        Lun(self.bytes(8))
    }

    /// The CDB of a SCSI Command.
    pub fn cdb(&self) -> Option<Cdb> {
        (self.opcode() == Opcode::SCSI_COMMAND).then(|| Cdb(self.bytes(32)))
    }

    /// The task that the request starts. `frame` is the number of the frame that completed the
    /// request.
    pub(super) fn task(&self, frame: FrameNumber) -> Task {
        let (opcode, cdb) = (self.opcode(), self.cdb());
        let has_lun =
            matches!(opcode, Opcode::SCSI_COMMAND | Opcode::TASK_REQUEST | Opcode::TEXT_REQUEST | Opcode::NOP_OUT);
        Task {
            opcode,
            frame,
            header: self.header(),
            cdb,
            lun: if has_lun { self.lun() } else { Lun([0; 8]) },
            expected_len: if cdb.is_some() { self.word(20) } else { 0 },
            data_len: self.data_len(),
        }
    }

    /// Returns whether the Send has the length that the BHS announces, with or without the padding
    /// of the data segment.
    #[must_use]
    pub fn fits(&self) -> bool {
        let end = self.data_at() as u64 + u64::from(self.data_len());
        let len = u64::from(self.len);
        len == end || len == end.next_multiple_of(4)
    }

    /// Returns whether all fields have values that RFC 7143 and RFC 7145 allow, as far as weft
    /// checks this. Only such PDUs can prove the protocol. The PDUs that weft does not check are
    /// never plausible: messages that only a target can start, PDUs that iSER does not send, and
    /// vendor-specific PDUs.
    pub(super) fn is_plausible(&self) -> bool {
        let header = self.header();
        let has_buffers = header.write().is_some() || header.read().is_some();
        let is_request = self.opcode().0 < 0x20;
        let (flags, reserved) = (self.byte(1), self.short(2));
        // In a response, bit I is reserved, too.
        let reserved_bits = if is_request { 0x80 } else { 0xc0 };
        let has_legal_bits = self.byte(0) & reserved_bits == 0;
        let has_legal_fields = match self.opcode() {
            Opcode::SCSI_COMMAND => {
                let (reads, writes) = (flags & 0x40 != 0, flags & 0x20 != 0);
                let has_buffers_to_use = (header.write().is_none() || writes) && (header.read().is_none() || reads);
                flags & 0x18 == 0 && flags & 0x07 <= 4 && flags & 0xa0 != 0 && reserved == 0 && has_buffers_to_use
            }
            Opcode::TASK_REQUEST => flags & 0x80 != 0 && matches!(flags & 0x7f, 1..=12) && reserved == 0,
            Opcode::NOP_OUT | Opcode::NOP_IN => flags == 0x80 && reserved == 0,
            Opcode::TEXT_REQUEST | Opcode::TEXT_RESPONSE => flags & 0x3f == 0 && reserved == 0,
            Opcode::LOGOUT_REQUEST => matches!(flags, 0x80..=0x82) && reserved == 0,
            Opcode::SCSI_RESPONSE => flags & 0xe1 == 0x80 && self.has_no_lun(),
            Opcode::TASK_RESPONSE | Opcode::LOGOUT_RESPONSE => flags == 0x80 && self.byte(3) == 0 && self.has_no_lun(),
            Opcode::LOGIN_REQUEST => self.is_plausible_login() && self.is_immediate(),
            Opcode::LOGIN_RESPONSE => self.is_plausible_login() && self.byte(36) <= 3,
            _ => false,
        };
        let may_have_buffers = matches!(self.opcode(), Opcode::SCSI_COMMAND | Opcode::TASK_REQUEST);
        has_legal_bits && has_legal_fields && header.is_plausible() && (may_have_buffers || !has_buffers) && self.fits()
    }

    /// Returns whether bytes 8 to 15 of the BHS are zero.
    fn has_no_lun(&self) -> bool {
        self.bytes::<8>(8) == [0; 8]
    }

    /// Returns whether the fields that are common to Login Request and Login Response have legal
    /// values (RFC 7143 sections 11.12 and 11.13).
    fn is_plausible_login(&self) -> bool {
        let flags = self.byte(1);
        let (transits, continues) = (flags & 0x80 != 0, flags & 0x40 != 0);
        let (current, next) = (flags >> 2 & 0b11, flags & 0b11);
        let has_legal_stages = current != 2 && (!transits || next != 2 && next > current);
        let has_version_0 = self.short(2) == 0;
        flags & 0x30 == 0 && !(transits && continues) && has_legal_stages && has_version_0 && self.additional_len() == 0
    }

    /// Returns whether the PDU alone proves the protocol: a plausible Login with text keys.
    pub(super) fn is_proof(&self) -> bool {
        self.has_text && self.is_plausible()
    }
}

/// Reads the sense data in the data segment of a SCSI Response (RFC 7143 section 11.4.7).
fn sense(data: &[u8]) -> Option<Sense> {
    let (len, rest) = data.split_first_chunk::<2>()?;
    let len = usize::from(u16::from_be_bytes(*len));
    Sense::parse(&rest[..len.min(rest.len())])
}

/// Length in bytes of the sense data in the data segment `data`, with the length field before it.
fn sense_len(data: &[u8]) -> usize {
    let Some(len) = data.first_chunk::<2>() else { return 0 };
    let len = usize::from(u16::from_be_bytes(*len)).min(MAX_SENSE_LEN);
    (2 + len).min(data.len())
}

/// Searches the additional header segments for the Bidirectional Read Expected Data Transfer
/// Length. Each segment has a length of 2 bytes, a type, data of this length, and padding to a
/// multiple of 4 bytes (RFC 7143 section 11.2.2).
fn bidirectional_read_len(mut segments: &[u8]) -> Option<u32> {
    loop {
        let (&[high, low, kind], rest) = segments.split_first_chunk::<3>()?;
        let len = usize::from(u16::from_be_bytes([high, low]));
        if kind & 0x3f == BIDIRECTIONAL_READ && len == BIDIRECTIONAL_READ_LEN {
            // A reserved byte is before the number.
            return rest.get(1..5)?.first_chunk().map(|number| u32::from_be_bytes(*number));
        }
        segments = segments.get((3 + len).next_multiple_of(4)..)?;
    }
}
