//! Ready-to-receive messages (RFC 6581 sections 4, 9.2). Such a message is the first message of an
//! Initiator, and has length zero. The message allows the Responder to send.
//!
//! Ready-to-receive messages are part of start-up, so this module builds and recognises complete
//! ULPDUs. Ready-to-receive messages access no memory, and their STags have no meaning
//! (P2P-9.2-14). A Send or a Read uses message sequence number 1 of its queue, so the next message
//! of this queue has number 2. A Write has no such number.

use weft_core::wire::ddp::{self, queue};
use weft_core::wire::mpa::Enhanced;
use weft_core::wire::rdmap::{Control, Opcode, ReadRequest};

/// A kind of ready-to-receive message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rtr {
    /// A Read Request of 0 bytes (flag D). The Responder answers this Request with a Read Response
    /// of 0 bytes.
    Read,
    /// A Send without payload (flag B).
    Send,
    /// An RDMA Write without payload (flag C).
    Write,
}

impl Rtr {
    /// All kinds.
    pub const ALL: [Rtr; 3] = [Rtr::Read, Rtr::Send, Rtr::Write];

    /// The complete ULPDU of this message. A Send or a Read is the first message of its queue. All
    /// fields that can have any value are zero.
    #[must_use]
    pub fn ulpdu(self, version: u8) -> Vec<u8> {
        let mut out = Vec::new();
        let control = |opcode| Control::new(opcode, version);
        let untagged = |qn| ddp::Untagged { last: true, qn, msn: ddp::Msn::FIRST, mo: 0 };
        match self {
            Rtr::Write => {
                ddp::Tagged { last: true, stag: 0, tagged_offset: 0 }.emit(version, control(Opcode::WRITE), &mut out);
            }
            Rtr::Send => {
                let ulp = ddp::UntaggedUlp { control: control(Opcode::SEND), word: 0 };
                untagged(queue::SEND).emit(version, ulp, &mut out);
            }
            Rtr::Read => {
                let ulp = ddp::UntaggedUlp { control: control(Opcode::READ_REQUEST), word: 0 };
                untagged(queue::READ_REQUEST).emit(version, ulp, &mut out);
                ReadRequest::default().emit(&mut out);
            }
        }
        out
    }
}

/// A ready-to-receive message that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivedRtr {
    /// A Read Request of 0 bytes.
    Read {
        /// SinkSTag of the Read Request, which the Read Response must carry.
        sink_stag: u32,
        /// SinkTO of the Read Request, which the Read Response must carry.
        sink_to: u64,
    },
    /// A Send.
    Send,
    /// A Write.
    Write,
}

impl ArrivedRtr {
    /// Recognises a ready-to-receive message in `ulpdu`, the first ULPDU of its direction. Returns
    /// `None` if `ulpdu` is another message.
    #[must_use]
    pub fn of(ulpdu: &[u8], version: u8) -> Option<Self> {
        if let Ok((header, control, payload)) = ddp::Tagged::parse(ulpdu, version) {
            let write = control == Control::new(Opcode::WRITE, version);
            return (write && header.last && payload.is_empty()).then_some(ArrivedRtr::Write);
        }
        let (header, ulp, payload) = ddp::Untagged::parse(ulpdu, version).ok()?;
        if !header.last || header.msn != ddp::Msn::FIRST || header.mo != 0 || ulp.control.version() != version {
            return None;
        }
        match (ulp.control.opcode(), header.qn) {
            (Opcode::SEND, queue::SEND) => payload.is_empty().then_some(ArrivedRtr::Send),
            (Opcode::READ_REQUEST, queue::READ_REQUEST) => {
                let read = ReadRequest::parse(payload).ok().filter(|read| read.rdmardsz == 0)?;
                Some(ArrivedRtr::Read { sink_stag: read.sink_stag, sink_to: read.sink_to })
            }
            _ => None,
        }
    }
}

/// The zero-length Read Response that answers an [`ArrivedRtr::Read`] (P2P-9.2-12).
#[must_use]
pub fn read_response(version: u8, sink_stag: u32, sink_to: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let header = ddp::Tagged { last: true, stag: sink_stag, tagged_offset: sink_to };
    header.emit(version, Control::new(Opcode::READ_RESPONSE, version), &mut out);
    out
}

/// Returns whether `ulpdu` is a zero-length Read Response.
#[must_use]
pub fn is_read_response(ulpdu: &[u8], version: u8) -> bool {
    ddp::Tagged::parse(ulpdu, version).is_ok_and(|(header, control, payload)| {
        header.last && payload.is_empty() && control == Control::new(Opcode::READ_RESPONSE, version)
    })
}

/// A set of kinds of ready-to-receive message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RtrKinds {
    /// [`Rtr::Send`].
    pub send: bool,
    /// [`Rtr::Write`].
    pub write: bool,
    /// [`Rtr::Read`].
    pub read: bool,
}

impl RtrKinds {
    /// All three kinds.
    pub const ALL: RtrKinds = RtrKinds { send: true, write: true, read: true };
    /// The empty set.
    pub const NONE: RtrKinds = RtrKinds { send: false, write: false, read: false };

    /// The set of one kind.
    #[must_use]
    pub const fn only(kind: Rtr) -> Self {
        RtrKinds { send: matches!(kind, Rtr::Send), write: matches!(kind, Rtr::Write), read: matches!(kind, Rtr::Read) }
    }

    /// The set that the enhanced data announces in its flags B, C and D.
    #[must_use]
    pub const fn of(enhanced: &Enhanced) -> Self {
        RtrKinds { send: enhanced.rtr_send, write: enhanced.rtr_write, read: enhanced.rtr_read }
    }

    /// Returns whether the set contains `kind`.
    #[must_use]
    pub const fn contains(self, kind: Rtr) -> bool {
        match kind {
            Rtr::Read => self.read,
            Rtr::Send => self.send,
            Rtr::Write => self.write,
        }
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        !self.send && !self.write && !self.read
    }

    /// The kinds that both sets contain.
    #[must_use]
    pub const fn and(self, other: RtrKinds) -> RtrKinds {
        RtrKinds { send: self.send && other.send, write: self.write && other.write, read: self.read && other.read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::wire::mpa::{Framing, fpdu};

    fn framed(ulpdu: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        fpdu::emit(0, &[ulpdu], Framing { markers: false, crc: true }, &mut out).unwrap();
        out
    }

    /// An independent implementation computed the expected CRCs. All fields that can have any value
    /// are zero.
    #[test]
    fn octets_of_each_kind() {
        let zeros = |count: usize| vec![0; count];
        let write = [&b"\x00\x0e\xc1\x40"[..], &zeros(12), b"\xa3\x05\x72\xab"].concat();
        assert_eq!(framed(&Rtr::Write.ulpdu(1)), write);
        let send = [&b"\x00\x12\x41\x43"[..], &zeros(11), b"\x01", &zeros(4), b"\x58\x7b\xe8\xc4"].concat();
        assert_eq!(framed(&Rtr::Send.ulpdu(1)), send);
        let read = [&b"\x00\x2e\x41\x41"[..], &zeros(7), b"\x01\0\0\0\x01", &zeros(32), b"\xf2\xc6\xdd\x3d"].concat();
        assert_eq!(framed(&Rtr::Read.ulpdu(1)), read);
        let response = [&b"\x00\x0e\xc1\x42"[..], &zeros(12), b"\x69\x75\xd6\xca"].concat();
        assert_eq!(framed(&read_response(1, 0, 0)), response);
    }

    #[test]
    fn each_kind_is_recognised_in_its_version_alone() {
        for version in [0, 1] {
            for kind in Rtr::ALL {
                let ulpdu = kind.ulpdu(version);
                let expected = match kind {
                    Rtr::Read => ArrivedRtr::Read { sink_stag: 0, sink_to: 0 },
                    Rtr::Send => ArrivedRtr::Send,
                    Rtr::Write => ArrivedRtr::Write,
                };
                assert_eq!(ArrivedRtr::of(&ulpdu, version), Some(expected));
                assert_eq!(ArrivedRtr::of(&ulpdu, 1 - version), None);
                assert_eq!(ArrivedRtr::of(&[&ulpdu[..], b"x"].concat(), version), None, "{kind:?} with payload");
                assert!(!is_read_response(&ulpdu, version));
            }
            assert!(is_read_response(&read_response(version, 7, 8), version));
            assert_eq!(ArrivedRtr::of(&read_response(version, 7, 8), version), None);
        }
    }

    /// STags and offsets are allowed to have any value. The drivers siw and nes send different
    /// values.
    #[test]
    fn free_fields_do_not_matter() {
        let mut write = Rtr::Write.ulpdu(1);
        write[2..].fill(0xff);
        assert_eq!(ArrivedRtr::of(&write, 1), Some(ArrivedRtr::Write));
        let mut read = Rtr::Read.ulpdu(1);
        read[18..30].copy_from_slice(b"\0\0\0\x01\0\0\0\0\0\0\0\x02");
        read[34..46].fill(0xff);
        assert_eq!(ArrivedRtr::of(&read, 1), Some(ArrivedRtr::Read { sink_stag: 1, sink_to: 2 }));
        read[33] = 1;
        assert_eq!(ArrivedRtr::of(&read, 1), None, "RDMARDSZ 1");
    }
}
