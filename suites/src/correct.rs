//! Correct bytes. The tester sends them unless it deviates on purpose.

use weft_core::crc;
use weft_core::wire::ddp::{RawTagged, RawUntagged, queue};
use weft_core::wire::mpa::fpdu::pad_len;
use weft_core::wire::mpa::startup::{Enhanced, NOT_NEGOTIATED};
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::wire::{ddp, rdmap};
use zerocopy::IntoBytes;

/// The fields of the tester's start-up frame. A script may set other values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartupFields {
    pub(crate) reply: bool,
    pub(crate) revision: u8,
    pub(crate) crc: bool,
    pub(crate) markers: bool,
    /// The fields of the enhanced header. If they are set, the frame has S=1, and `revision` must
    /// be 2.
    pub(crate) enhanced: Option<Enhanced>,
    pub(crate) private_data: Vec<u8>,
}

impl StartupFields {
    /// A Request: revision 1, CRC, no markers, no private data.
    pub(crate) const REQUEST: StartupFields = StartupFields {
        reply: false,
        revision: 1,
        crc: true,
        markers: false,
        enhanced: None,
        private_data: Vec::new(),
    };
    /// The Reply to [`REQUEST`](Self::REQUEST).
    pub(crate) const REPLY: StartupFields =
        StartupFields { reply: true, revision: 1, crc: true, markers: false, enhanced: None, private_data: Vec::new() };
}

/// Returns an MPA start-up frame.
pub(crate) fn startup(fields: &StartupFields) -> Vec<u8> {
    let mut octets = Vec::new();
    Startup {
        kind: if fields.reply { StartupKind::Reply } else { StartupKind::Request },
        markers: fields.markers,
        crc: fields.crc,
        reject: false,
        revision: fields.revision,
        enhanced: fields.enhanced,
        private_data: &fields.private_data,
    }
    .emit(&mut octets);
    octets
}

/// Returns the ULPDU of a Send that has one segment.
pub(crate) fn send(msn: u32, payload: &[u8]) -> Vec<u8> {
    let mut octets = untagged(Opcode::SEND, queue::SEND, msn).as_bytes().to_vec();
    octets.extend_from_slice(payload);
    octets
}

/// Returns the ULPDU of one segment of a Send.
pub(crate) fn send_segment(opcode: Opcode, stag: u32, msn: u32, offset: u32, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut header = untagged(opcode, queue::SEND, msn);
    header.control = ddp::Control::new(false, last, ddp::Control::VERSION);
    header.ulp_word = stag.into();
    header.mo = offset.into();
    [header.as_bytes(), payload].concat()
}

/// Returns the fields of the correct Reply to a Request: the Request's revision, R=0, and the flags
/// C and M of `own`. An enhanced Reply also has the requested model and the offered kinds of
/// ready-to-receive messages. Its IRD is the Request's ORD, and its ORD is the Request's IRD, each
/// at most 16 (RFC 6581 sections 9.1 and 9.2).
pub(crate) fn reply_to(request: &[u8], own: &StartupFields) -> StartupFields {
    const MAX_DEPTH: u16 = 16;
    let reply = StartupFields { crc: own.crc, markers: own.markers, ..StartupFields::REPLY };
    let Ok(request) = Startup::parse(request) else { return reply };
    let depth = |other: u16| if other == NOT_NEGOTIATED { other } else { other.min(MAX_DEPTH) };
    let enhanced = request.enhanced.map(|words| Enhanced {
        peer_to_peer: words.peer_to_peer,
        ird: depth(words.ord),
        ord: depth(words.ird),
        rtr_send: words.peer_to_peer && words.rtr_send,
        rtr_write: words.peer_to_peer && words.rtr_write,
        rtr_read: words.peer_to_peer && words.rtr_read,
    });
    StartupFields { revision: request.revision, enhanced, ..reply }
}

/// Returns the ULPDU of a Read Request.
pub(crate) fn read_request(msn: u32, read: &ReadRequest) -> Vec<u8> {
    let mut octets = untagged(Opcode::READ_REQUEST, queue::READ_REQUEST, msn).as_bytes().to_vec();
    read.emit(&mut octets);
    octets
}

/// Returns the ULPDUs of a Read Response, or of a part of it. Each ULPDU has at most `most` bytes
/// of data.
pub(crate) fn read_response(stag: u32, tagged_offset: u64, data: &[u8], most: usize) -> Vec<Vec<u8>> {
    tagged(Opcode::READ_RESPONSE, stag, tagged_offset, data, most)
}

/// Returns the ULPDUs of a tagged message. Each ULPDU has at most `most` bytes of data.
pub(crate) fn tagged(opcode: Opcode, stag: u32, tagged_offset: u64, data: &[u8], most: usize) -> Vec<Vec<u8>> {
    let count = data.len().div_ceil(most.max(1)).max(1);
    let segment = |index: usize| {
        let start = index * most;
        let header = RawTagged {
            control: ddp::Control::new(true, index + 1 == count, ddp::Control::VERSION),
            ulp_control: rdmap::Control::new(opcode, rdmap::Control::VERSION),
            stag: stag.into(),
            tagged_offset: tagged_offset.wrapping_add(start as u64).into(),
        };
        [header.as_bytes(), &data[start..data.len().min(start + most)]].concat()
    };
    (0..count).map(segment).collect()
}

/// Returns the ready-to-receive message that an initiator chooses, as a ULPDU. `None` if the Reply
/// allows none. If the Reply allows several, the initiator prefers a zero-length Write to a
/// zero-length Read, and a zero-length Read to a zero-length Send (RFC 6581 section 9.2). The
/// values of the STags have no meaning.
pub(crate) fn ready_to_receive(agreed: &Enhanced) -> Option<(Rtr, Vec<u8>)> {
    const STAG: u32 = 1;
    if agreed.rtr_write {
        let header = RawTagged {
            control: ddp::Control::new(true, true, ddp::Control::VERSION),
            ulp_control: rdmap::Control::new(Opcode::WRITE, rdmap::Control::VERSION),
            stag: STAG.into(),
            tagged_offset: 0.into(),
        };
        return Some((Rtr::Write, header.as_bytes().to_vec()));
    }
    if agreed.rtr_read {
        let read = ReadRequest { sink_stag: STAG, src_stag: STAG, ..ReadRequest::default() };
        return Some((Rtr::Read, read_request(1, &read)));
    }
    agreed.rtr_send.then(|| (Rtr::Send, send(1, b"")))
}

/// The kinds of ready-to-receive message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rtr {
    Send,
    Write,
    Read,
}

fn untagged(opcode: Opcode, qn: u32, msn: u32) -> RawUntagged {
    RawUntagged {
        control: ddp::Control::new(false, true, ddp::Control::VERSION),
        ulp_control: rdmap::Control::new(opcode, rdmap::Control::VERSION),
        ulp_word: 0.into(),
        qn: qn.into(),
        msn: msn.into(),
        mo: 0.into(),
    }
}

/// Returns the FPDU, without markers, of a ULPDU of at most 65,535 bytes. Without `with_crc`, the
/// CRC field is zero.
pub(crate) fn fpdu(ulpdu: &[u8], with_crc: bool) -> Vec<u8> {
    let length = u16::try_from(ulpdu.len()).unwrap_or(u16::MAX);
    let mut octets = length.to_be_bytes().to_vec();
    octets.extend_from_slice(&ulpdu[..usize::from(length)]);
    octets.resize(octets.len() + pad_len(length), 0);
    let field = if with_crc { crc::to_octets(crc::crc32c(&octets)) } else { [0; crc::CRC_LEN] };
    octets.extend(field);
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes follow RFC 6581 sections 6 and 9. Byte 16 has the flags C and S. The two
    /// words after PD_Length have A=1 and IRD 1, then C=1, D=1 and ORD 1.
    #[test]
    fn an_enhanced_request_is_that_of_the_rfc() {
        let enhanced =
            Enhanced { peer_to_peer: true, ird: 1, ord: 1, rtr_write: true, rtr_read: true, ..Enhanced::default() };
        let fields = StartupFields { revision: 2, enhanced: Some(enhanced), ..StartupFields::REQUEST };
        assert_eq!(startup(&fields)[16..], [0x50, 0x02, 0x00, 0x04, 0x80, 0x01, 0xc0, 0x01]);
    }

    /// The expected bytes follow RFC 5041 Figure 4 and RFC 5040 Figure 3. T is 1, L is 1 only in
    /// the last segment, and the opcode is 2. The TO of the second segment follows the data of the
    /// first.
    #[test]
    fn a_read_response_is_cut() {
        let made = read_response(7, 0x10, b"abcde", 3);
        assert_eq!(made, [&b"\x81\x42\0\0\0\x07\0\0\0\0\0\0\0\x10abc"[..], b"\xc1\x42\0\0\0\x07\0\0\0\0\0\0\0\x13de"]);
        assert_eq!(read_response(7, 0, b"", 3).len(), 1);
    }

    #[test]
    fn ready_to_receive_messages_are_of_an_agreed_kind_and_empty() {
        let kind = |agreed: Enhanced| ready_to_receive(&agreed).map(|(kind, ulpdu)| (kind, ulpdu.len()));
        let none = Enhanced::default();
        assert_eq!(kind(none), None);
        assert_eq!(kind(Enhanced { rtr_read: true, rtr_send: true, ..none }), Some((Rtr::Read, 18 + 28)));
        assert_eq!(kind(Enhanced { rtr_write: true, rtr_read: true, ..none }), Some((Rtr::Write, 14)));
        assert_eq!(kind(Enhanced { rtr_send: true, ..none }), Some((Rtr::Send, 18)));
    }
}
