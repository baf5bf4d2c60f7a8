//! The state of a connection, so that a plain exchange can continue there.

use weft_core::wire::ddp::{Segment, queue};
use weft_core::wire::mpa::Startup;
use weft_core::wire::mpa::fpdu::len_without_markers;

use super::{TaggedBuffer, crc_is_right, ulpdu};

/// The state of one connection, so that a plain exchange can continue there.
#[derive(Debug, Clone, Copy)]
pub(in crate::stage) struct Progress {
    /// Whether CRCs are in use.
    pub(in crate::stage) crc: bool,
    /// MSN of the tester's next Send. `read_msn` is the MSN of the tester's next Read Request.
    pub(in crate::stage) send_msn: u32,
    pub(in crate::stage) read_msn: u32,
    /// MSN of the first Send that the target sent.
    pub(in crate::stage) first_msn: Option<u32>,
    /// Whether the tester has sent an FPDU.
    pub(in crate::stage) has_sent: bool,
    /// A buffer of the target that the tester may write and read.
    pub(in crate::stage) buffer: Option<TaggedBuffer>,
}

impl Default for Progress {
    fn default() -> Self {
        Progress { crc: false, send_msn: 1, read_msn: 1, first_msn: None, has_sent: false, buffer: None }
    }
}

impl Progress {
    /// Notes bytes that the tester sends: a start-up frame, FPDUs without markers, or other bytes
    /// of a script. Returns whether the bytes begin with the connection's first FPDU and this FPDU
    /// has a wrong CRC.
    pub(in crate::stage) fn sends(&mut self, octets: &[u8]) -> bool {
        if let Ok(frame) = Startup::parse(octets) {
            self.crc |= frame.crc;
            return false;
        }
        let first_len = octets.first_chunk().map(|length| len_without_markers(u16::from_be_bytes(*length)));
        let first = first_len.and_then(|len| octets.get(..len)).filter(|_| !self.has_sent && self.crc);
        let is_bad = first.is_some_and(|fpdu| !crc_is_right(fpdu));
        self.has_sent = true;
        let mut rest = octets;
        while let Some(length) = rest.first_chunk().map(|length| u16::from_be_bytes(*length)) {
            if let Ok(Segment::Untagged(header, _)) = Segment::parse(ulpdu(rest))
                && header.control.last()
            {
                let next = header.msn.get().wrapping_add(1);
                match header.qn.get() {
                    queue::SEND => self.send_msn = next,
                    queue::READ_REQUEST => self.read_msn = next,
                    _ => {}
                }
            }
            rest = rest.get(len_without_markers(length)..).unwrap_or_default();
        }
        is_bad
    }

    /// Notes a start-up frame that the target sent.
    pub(in crate::stage) fn started(&mut self, frame: &[u8]) {
        if let Ok(frame) = Startup::parse(frame) {
            self.crc |= frame.crc;
        }
    }

    /// Notes an FPDU that the target sent.
    pub(in crate::stage) fn receives(&mut self, fpdu: &[u8]) {
        if let Ok(Segment::Untagged(header, _)) = Segment::parse(ulpdu(fpdu))
            && header.ulp_control.opcode().is_send()
        {
            self.first_msn.get_or_insert(header.msn.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correct;

    #[test]
    fn numbers_follow_what_was_sent() {
        let mut progress = Progress::default();
        let fpdus = [correct::fpdu(&correct::send(1, b"a"), true), correct::fpdu(&correct::send(2, b"b"), true)];
        assert!(!progress.sends(&fpdus.concat()));
        assert_eq!((progress.send_msn, progress.read_msn, progress.crc), (3, 1, false));
        progress.started(b"MPA ID Rep Frame\x40\x01\0\0");
        progress.receives(&fpdus[0]);
        progress.receives(&fpdus[1]);
        assert_eq!((progress.crc, progress.first_msn), (true, Some(1)));
    }

    #[test]
    fn a_first_fpdu_with_a_wrong_crc_is_noticed() {
        let mut progress = Progress::default();
        assert!(!progress.sends(b"MPA ID Req Frame\x40\x01\0\0"));
        let bad = correct::fpdu(&correct::send(1, b"a"), false);
        assert!(progress.sends(&bad));
        assert!(!progress.sends(&bad));
    }
}
