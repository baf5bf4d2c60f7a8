//! MPA Request and Reply frames (RFC 5044 section 7.1.1; RFC 6581 section 9).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |            Key (16 octets: "MPA ID Req Frame" or              |
//! |                            "MPA ID Rep Frame")                |
//! +-+-+-+-+-------+---------------+-------------------------------+
//! |M|C|R|S|  Res  |      Rev      |          PD_Length            |
//! +-+-+-+-+-------+---------------+-------------------------------+
//! |A|B|       IRD (14)            |C|D|       ORD (14)            |  only revision 2 with S=1; counted in PD_Length
//! +-+-+---------------------------+-+-+---------------------------+
//! |                  Private Data (PD_Length octets, at most 512) |
//! ```
//!
//! These frames have neither a CRC nor markers. The state machines of endpoint and monitor decide
//! which peer may send a frame and when a peer closes the connection.

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Found, Layer, WireError};
use crate::requirement;

/// Length in octets of the fixed part of a frame.
pub const HEADER_LEN: usize = 20;
/// Maximum value of `PD_Length` in octets (RFC 5044 7.1.1).
pub const MAX_PD_LENGTH: u16 = 512;
/// Length in octets of the two RFC 6581 words (IRD and ORD) in front of the private data.
pub const ENHANCED_LEN: usize = 4;
/// Highest revision that this crate knows.
pub const MAX_REVISION: u8 = 2;
/// Length of the key in octets.
pub const KEY_LEN: usize = 16;
/// Key of a Request frame.
pub const REQUEST_KEY: [u8; KEY_LEN] = *b"MPA ID Req Frame";
/// Key of a Reply frame.
pub const REPLY_KEY: [u8; KEY_LEN] = *b"MPA ID Rep Frame";

/// M: the sender of the frame wants to receive markers.
pub const FLAG_M: u8 = 0x80;
/// C: the sender of the frame wants CRCs in both directions.
pub const FLAG_C: u8 = 0x40;
/// R: the Responder rejects the connection.
pub const FLAG_R: u8 = 0x20;
/// S: the two RFC 6581 words follow the header. In revisions 0 and 1, this bit is reserved.
pub const FLAG_S: u8 = 0x10;

/// Raw view of the fixed part of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawStartup {
    /// Octets 0 to 15.
    pub key: [u8; KEY_LEN],
    /// Octet 16: `FLAG_*`, and reserved bits.
    pub flags: u8,
    /// Octet 17: Rev.
    pub revision: u8,
    /// Octets 18 and 19: number of octets that follow this header.
    pub pd_length: U16,
}

/// Raw view of the two RFC 6581 words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawEnhanced {
    /// A (0x8000), B (0x4000), IRD (14 bits).
    pub ird: U16,
    /// C (0x8000), D (0x4000), ORD (14 bits).
    pub ord: U16,
}

/// The kind of a start-up frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StartupKind {
    /// Sent by the MPA Initiator.
    Request,
    /// Sent by the MPA Responder.
    Reply,
}

impl StartupKind {
    /// The key at the start of a frame of this kind.
    #[must_use]
    pub fn key(self) -> [u8; KEY_LEN] {
        match self {
            StartupKind::Request => REQUEST_KEY,
            StartupKind::Reply => REPLY_KEY,
        }
    }

    /// The kind of the frame that starts with `key`; `None` if `key` is neither of the two keys.
    #[must_use]
    pub fn of_key(key: &[u8]) -> Option<Self> {
        [StartupKind::Request, StartupKind::Reply].into_iter().find(|kind| kind.key() == key)
    }
}

/// The content of the two RFC 6581 words (section 9): the depths IRD and ORD, and the flags A to D.
/// Each of the flags B to D allows one kind of message as the ready-to-receive (RTR) message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Enhanced {
    /// A: the sender requests (Request) or accepts (Reply) the peer-to-peer model.
    pub peer_to_peer: bool,
    /// B: a zero-length Send (zero-length FULPDU) may be the ready-to-receive message.
    pub rtr_send: bool,
    /// Inbound RDMA Read queue depth, 0 to 0x3FFF; 0x3FFF means not negotiated.
    pub ird: u16,
    /// C: a zero-length RDMA Write may be the ready-to-receive message.
    pub rtr_write: bool,
    /// D: a zero-length RDMA Read may be the ready-to-receive message.
    pub rtr_read: bool,
    /// Outbound RDMA Read queue depth, 0 to 0x3FFF; 0x3FFF means not negotiated.
    pub ord: u16,
}

/// Maximum value of IRD and ORD: all 14 bits are one. This value means "not negotiated".
pub const NOT_NEGOTIATED: u16 = 0x3FFF;

impl Enhanced {
    /// Reads the two words. Every value is valid.
    #[must_use]
    pub fn from_raw(raw: RawEnhanced) -> Self {
        let (ird, ord) = (raw.ird.get(), raw.ord.get());
        Enhanced {
            peer_to_peer: ird & 0x8000 != 0,
            rtr_send: ird & 0x4000 != 0,
            ird: ird & NOT_NEGOTIATED,
            rtr_write: ord & 0x8000 != 0,
            rtr_read: ord & 0x4000 != 0,
            ord: ord & NOT_NEGOTIATED,
        }
    }

    /// The raw words. IRD and ORD are cut to 14 bits.
    #[must_use]
    pub fn to_raw(self) -> RawEnhanced {
        let word = |high: bool, next: bool, depth: u16| {
            U16::new(u16::from(high) << 15 | u16::from(next) << 14 | (depth & NOT_NEGOTIATED))
        };
        RawEnhanced {
            ird: word(self.peer_to_peer, self.rtr_send, self.ird),
            ord: word(self.rtr_write, self.rtr_read, self.ord),
        }
    }
}

/// A valid Request or Reply frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Startup<'a> {
    /// Request or Reply.
    pub kind: StartupKind,
    /// M: the sender of the frame wants to receive markers.
    pub markers: bool,
    /// C: the sender of the frame wants CRCs in both directions.
    pub crc: bool,
    /// R: the Responder rejects the connection. R has no meaning in a Request.
    pub reject: bool,
    /// Rev: 0 (RDMA Consortium), 1 (RFC 5044) or 2 (RFC 6581).
    pub revision: u8,
    /// The two RFC 6581 words; only in revision 2 with S=1.
    pub enhanced: Option<Enhanced>,
    /// Private data: at most 512 octets, or 508 with `enhanced`.
    pub private_data: &'a [u8],
}

impl<'a> Startup<'a> {
    /// Reads the frame at the start of `octets`. Octets after the frame are ignored. Reserved bits
    /// are ignored, too, as RFC 5044 7.1.1 requires.
    ///
    /// # Errors
    /// The frame is incomplete, its key is neither of the two keys, its revision is above 2, or
    /// `PD_Length` is above 512. In revision 2 with S=1, a `PD_Length` below 4 is also an error.
    pub fn parse(octets: &'a [u8]) -> Result<Self, WireError> {
        let (raw, rest) = RawStartup::ref_from_prefix(octets)
            .map_err(|_| WireError::too_short(Layer::Mpa, "startup frame", "20 octets of header", octets.len()))?;
        let wrong = |field, offset, expected, found, requirement| WireError {
            layer: Layer::Mpa,
            field,
            offset,
            expected,
            found,
            requirement,
        };
        let Some(kind) = StartupKind::of_key(&raw.key) else {
            let at = raw.key.iter().zip(REQUEST_KEY).position(|(a, b)| *a != b && *a != REPLY_KEY[9]).unwrap_or(9);
            let found = Found::Value(u64::from(raw.key[at]));
            let requirement = Some(requirement!("MPA-7.1.1-2"));
            return Err(wrong("key", at, "\"MPA ID Req Frame\" or \"MPA ID Rep Frame\"", found, requirement));
        };
        if raw.revision > MAX_REVISION {
            return Err(wrong("rev", 17, "0, 1 or 2", Found::Value(u64::from(raw.revision)), None));
        }
        let pd_length = raw.pd_length.get();
        if pd_length > MAX_PD_LENGTH {
            return Err(wrong("pd_length", 18, "0 to 512", Found::Value(u64::from(pd_length)), None));
        }
        let Some(private_data) = rest.get(..usize::from(pd_length)) else {
            return Err(wrong("private data", HEADER_LEN, "PD_Length octets", Found::Octets(rest.len()), None));
        };
        let (enhanced, private_data) = if raw.revision == 2 && raw.flags & FLAG_S != 0 {
            let (words, rest) = RawEnhanced::ref_from_prefix(private_data)
                .map_err(|_| wrong("pd_length", 18, "at least 4 with S=1", Found::Value(u64::from(pd_length)), None))?;
            (Some(Enhanced::from_raw(*words)), rest)
        } else {
            (None, private_data)
        };
        Ok(Startup {
            kind,
            markers: raw.flags & FLAG_M != 0,
            crc: raw.flags & FLAG_C != 0,
            reject: raw.flags & FLAG_R != 0,
            revision: raw.revision,
            enhanced,
            private_data,
        })
    }

    /// Appends the frame to `out`. Private data is cut to 512 octets, or 508 octets with
    /// `enhanced`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let words = self.enhanced.map(Enhanced::to_raw);
        let room = usize::from(MAX_PD_LENGTH) - if words.is_some() { ENHANCED_LEN } else { 0 };
        let private_data = &self.private_data[..self.private_data.len().min(room)];
        let pd_length = private_data.len() + if words.is_some() { ENHANCED_LEN } else { 0 };
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let raw = RawStartup {
            key: self.kind.key(),
            flags: flag(self.markers, FLAG_M)
                | flag(self.crc, FLAG_C)
                | flag(self.reject, FLAG_R)
                | flag(words.is_some(), FLAG_S),
            revision: self.revision,
            pd_length: U16::new(u16::try_from(pd_length).unwrap_or(MAX_PD_LENGTH)),
        };
        out.extend_from_slice(raw.as_bytes());
        if let Some(words) = words {
            out.extend_from_slice(words.as_bytes());
        }
        out.extend_from_slice(private_data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn emitted(frame: &Startup<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        frame.emit(&mut out);
        out
    }

    const PLAIN: Startup<'static> = Startup {
        kind: StartupKind::Request,
        markers: false,
        crc: true,
        reject: false,
        revision: 1,
        enhanced: None,
        private_data: &[],
    };

    /// By RFC 5044 section 7.1.1, a minimal frame of revision 1 with CRC has the key, and then the
    /// octets `40 01 00 00`.
    #[test]
    fn minimal_request_of_revision_1() {
        let expected = b"\x4d\x50\x41\x20\x49\x44\x20\x52\x65\x71\x20\x46\x72\x61\x6d\x65\x40\x01\x00\x00";
        assert_eq!(emitted(&PLAIN), expected);
    }

    /// Tests the enhanced data of RFC 6581 section 9. The frame has the flags C and S. The first
    /// word of the enhanced data has the flag A and IRD 1. The second word has the flags C and D,
    /// and ORD 1.
    #[test]
    fn enhanced_words_count_in_pd_length() {
        let enhanced =
            Enhanced { peer_to_peer: true, rtr_send: false, ird: 1, rtr_write: true, rtr_read: true, ord: 1 };
        let frame = Startup { revision: 2, enhanced: Some(enhanced), ..PLAIN };
        assert_eq!(emitted(&frame)[16..], [0x50, 0x02, 0x00, 0x04, 0x80, 0x01, 0xc0, 0x01]);
    }

    #[test]
    fn each_wrong_key_octet_is_named() {
        for at in 0..KEY_LEN {
            let mut octets = emitted(&PLAIN);
            octets[at] ^= 0x80;
            let error = Startup::parse(&octets).unwrap_err();
            assert_eq!((error.field, error.offset), ("key", at));
            assert_eq!(error.requirement, Some(requirement!("MPA-7.1.1-2")));
        }
    }

    #[test]
    fn lengths_are_checked() {
        let mut octets = emitted(&Startup { private_data: &[7; 12], ..PLAIN });
        assert!(Startup::parse(&octets).is_ok());
        assert_eq!(Startup::parse(&octets[..31]).unwrap_err().field, "private data");
        octets[18..20].copy_from_slice(&513u16.to_be_bytes());
        assert_eq!(Startup::parse(&octets).unwrap_err().field, "pd_length");
        octets[16..20].copy_from_slice(&[FLAG_S, 2, 0, 3]);
        assert_eq!(Startup::parse(&octets).unwrap_err().expected, "at least 4 with S=1");
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_read_back(
            reply: bool, markers: bool, crc: bool, reject: bool, revision in 0u8..=2, s: bool,
            flags: [bool; 4], ird in 0u16..0x4000, ord in 0u16..0x4000,
            private_data in proptest::collection::vec(any::<u8>(), 0..=508),
        ) {
            let [peer_to_peer, rtr_send, rtr_write, rtr_read] = flags;
            let enhanced = Enhanced { peer_to_peer, rtr_send, ird, rtr_write, rtr_read, ord };
            let frame = Startup {
                kind: if reply { StartupKind::Reply } else { StartupKind::Request },
                markers, crc, reject, revision,
                enhanced: (s && revision == 2).then_some(enhanced),
                private_data: &private_data,
            };
            let octets = emitted(&frame);
            prop_assert_eq!(Startup::parse(&octets), Ok(frame));
        }

        #[test]
        fn no_octets_panic(octets: Vec<u8>) {
            let _ = Startup::parse(&octets);
        }
    }
}
