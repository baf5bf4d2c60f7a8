//! Data Sink of a connection without registered memory. It receives Sends, and Reads of zero bytes.
//! A Read of zero bytes reads no memory, so its STag is not checked (RDMAP-5.2.1-18).
//!
//! A posted receive is only a length. The sink allocates memory when payload arrives, and never in
//! advance for an announced length.

use std::collections::VecDeque;

use bytes::Bytes;
use weft_core::wire::ddp;
use weft_core::wire::rdmap::{ReadRequest, Terminate};

use super::{DataSink, Fault, Received, Receiver, SegmentError};
use crate::hostile::Deviations;
use crate::memory::{AccessError, InvalidateError};
use crate::reject::reject_if;

/// The Data Sink of one stream.
#[derive(Debug)]
pub struct Inbound {
    pub(crate) receiver: Receiver,
    receives: Receives,
}

/// A message for the ULP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// A complete Send.
    Message {
        /// Payload of the Send.
        octets: Bytes,
        /// The Send requests a solicited event.
        solicited: bool,
    },
    /// The peer's Terminate, which ends the stream.
    Terminate(Terminate),
}

impl Default for Inbound {
    fn default() -> Self {
        Inbound::deviating(ddp::Control::VERSION, Deviations::NONE)
    }
}

impl Inbound {
    /// Creates a Data Sink with deliberate protocol violations (`deviations`). `version` is the
    /// version of DDP and RDMAP.
    #[must_use]
    pub fn deviating(version: u8, deviations: Deviations) -> Self {
        // Without RFC 7306, the opcodes above Terminate are reserved (RFC 5040 4.3).
        Inbound { receiver: Receiver::deviating(version, false, deviations), receives: Receives::default() }
    }

    /// Posts a receive buffer of `length` octets.
    pub fn post_receive(&mut self, length: u32) {
        self.receives.posted.push_back(length);
    }

    /// Number of posted receive buffers that are unused.
    #[must_use]
    pub fn posted_receives(&self) -> usize {
        self.receives.posted.len()
    }

    /// Processes one ULPDU. If the ULPDU completes a message, returns the message.
    ///
    /// # Errors
    /// The segment is rejected. The stream has to end with a Terminate.
    pub fn handle_segment(&mut self, ulpdu: &[u8]) -> Result<Option<Delivery>, SegmentError> {
        self.receiver.handle_segment(ulpdu, &mut self.receives)?;
        Ok(self.receives.delivery.take())
    }

    /// Returns the Read Request of zero bytes in the last segment, which needs a Read Response.
    pub(crate) fn take_empty_read(&mut self) -> Option<ReadRequest> {
        self.receives.empty_read.take()
    }
}

#[derive(Debug, Default)]
struct Receives {
    /// Lengths of the posted buffers, in octets.
    posted: VecDeque<u32>,
    /// Bytes of the arriving message.
    arrived: Vec<u8>,
    delivery: Option<Delivery>,
    empty_read: Option<ReadRequest>,
}

impl DataSink for Receives {
    fn receive_buffer(&mut self) -> Result<u64, Fault> {
        self.posted.front().map(|length| u64::from(*length)).ok_or(Fault::NoBuffer)
    }

    fn receive(&mut self, offset: u32, payload: &[u8]) -> Result<(), Fault> {
        // The receiver has checked that the payload fits into the posted buffer.
        let begin = offset as usize;
        if begin == self.arrived.len() {
            self.arrived.extend_from_slice(payload);
            return Ok(());
        }
        // Segments before the last one can arrive in any order.
        let end = begin + payload.len();
        if self.arrived.len() < end {
            self.arrived.resize(end, 0);
        }
        self.arrived[begin..end].copy_from_slice(payload);
        Ok(())
    }

    fn received(&mut self, message: Received) -> Result<(), Fault> {
        reject_if(message.invalidate.is_some(), Fault::Invalidate(InvalidateError::InvalidStag))?;
        self.posted.pop_front();
        let octets = Bytes::from(std::mem::take(&mut self.arrived));
        self.delivery = Some(Delivery::Message { octets, solicited: message.solicited });
        Ok(())
    }

    /// The Response is sent at once, so requests never wait.
    fn request_buffer(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn read_request(&mut self, request: ReadRequest) -> Result<(), Fault> {
        reject_if(request.rdmardsz > 0, Fault::Source(AccessError::InvalidStag))?;
        self.empty_read = Some(request);
        Ok(())
    }

    fn terminate(&mut self, terminate: Terminate) {
        self.delivery = Some(Delivery::Terminate(terminate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weft_core::wire::ddp::RawUntagged;
    use weft_core::wire::rdmap::TerminateError;
    use zerocopy::IntoBytes;

    /// Returns an untagged segment with a Send of `payload`. `change` modifies the valid header.
    fn untagged(payload: &[u8], change: impl FnOnce(&mut RawUntagged)) -> Vec<u8> {
        let mut header = RawUntagged {
            control: ddp::Control(0x41),
            ulp_control: weft_core::wire::rdmap::Control(0x43),
            ulp_word: 0.into(),
            qn: 0.into(),
            msn: 1.into(),
            mo: 0.into(),
        };
        change(&mut header);
        [header.as_bytes(), payload].concat()
    }

    fn refusal(segment: &[u8]) -> (u8, u8) {
        let mut inbound = Inbound::default();
        inbound.post_receive(8);
        let refused = inbound.handle_segment(segment).unwrap_err();
        assert_eq!(usize::from(refused.segment_length), segment.len());
        let error = refused.code();
        (error.layer.0 << 4 | error.error_type, error.code)
    }

    #[test]
    fn sends_are_delivered_and_reserved_bits_ignored() {
        let mut inbound = Inbound::default();
        inbound.post_receive(8);
        inbound.post_receive(0);
        let first = untagged(b"octets", |h| (h.control.0, h.ulp_control.0) = (0x7d, 0x73));
        let octets = Bytes::from_static(b"octets");
        assert_eq!(inbound.handle_segment(&first), Ok(Some(Delivery::Message { octets, solicited: false })));
        let second = untagged(b"", |h| (h.msn, h.ulp_control.0) = (2.into(), 0x45));
        let empty = Delivery::Message { octets: Bytes::new(), solicited: true };
        assert_eq!(inbound.handle_segment(&second), Ok(Some(empty)));
        assert_eq!(inbound.posted_receives(), 0);
    }

    #[test]
    fn each_fault_has_its_code() {
        // The first errors are from RFC 5041 sections 7.1 and 7.2.
        assert_eq!(refusal(&untagged(b"", |h| h.control.0 = 0x40)), (0x12, 0x06));
        assert_eq!(refusal(&untagged(b"", |h| h.control.0 = 0x43)), (0x12, 0x06));
        assert_eq!(refusal(&untagged(b"a", |h| h.qn = 3.into())), (0x12, 0x01));
        assert_eq!(refusal(&untagged(b"a", |h| h.qn = u32::MAX.into())), (0x12, 0x01));
        assert_eq!(refusal(&untagged(b"a", |h| h.msn = 2.into())), (0x12, 0x03));
        assert_eq!(refusal(&untagged(b"a", |h| h.mo = 9.into())), (0x12, 0x04));
        assert_eq!(refusal(&untagged(b"nine octe", |_| ())), (0x12, 0x05));
        // These errors are from RFC 5040 section 7.2.
        for version in [0x03, 0x83, 0xc3] {
            assert_eq!(refusal(&untagged(b"a", |h| h.ulp_control.0 = version)), (0x02, 0x05));
        }
        for opcode in [0x47, 0x41, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4f] {
            assert_eq!(refusal(&untagged(b"a", |h| h.ulp_control.0 = opcode)), (0x02, 0x06));
        }
        // This segment has a reserved opcode and an unknown queue number. The opcode is reported
        // (RDMAP-7306.1.1-1).
        assert_eq!(refusal(&untagged(&[0; 12], |h| (h.ulp_control.0, h.qn) = (0x4b, 3.into()))), (0x02, 0x06));
        for opcode in [0x44, 0x46] {
            assert_eq!(refusal(&untagged(b"a", |h| h.ulp_control.0 = opcode)), (0x01, 0x00));
        }
        // This Read Request has the size 1, and no region is registered.
        let mut of_one_byte = [0; 28];
        of_one_byte[15] = 1;
        assert_eq!(refusal(&untagged(&of_one_byte, |h| (h.ulp_control.0, h.qn) = (0x41, 1.into()))), (0x01, 0x00));
        // These segments are tagged.
        assert_eq!(refusal(b"\xc1\x40\0\0\0\x01\0\0\0\0\0\0\0\0x"), (0x11, 0x00));
        assert_eq!(refusal(b"\xc2\x40\0\0\0\x01\0\0\0\0\0\0\0\0x"), (0x11, 0x04));
        assert_eq!(refusal(b"\xc1\x42\0\0\0\x01\0\0\0\0\0\0\0\0"), (0x02, 0x06));
        // These segments are too short for a header.
        assert_eq!(refusal(b""), (0x10, 0x00));
        assert_eq!(refusal(&[0x41; 17]), (0x10, 0x00));
    }

    #[test]
    fn no_receive_posted() {
        let refused = Inbound::default().handle_segment(&untagged(b"a", |_| ())).unwrap_err();
        assert_eq!(refused.code(), TerminateError::DDP_UNTAGGED_NO_BUFFER);
    }

    /// Its STag is not checked (RDMAP-5.2.1-18).
    #[test]
    fn a_read_of_zero_bytes_needs_a_response() {
        let mut inbound = Inbound::default();
        for msn in 1..=2 {
            let read = untagged(&[0; 28], |h| (h.ulp_control.0, h.qn, h.msn) = (0x41, 1.into(), msn.into()));
            assert_eq!(inbound.handle_segment(&read), Ok(None));
            assert_eq!(inbound.take_empty_read().map(|read| read.rdmardsz), Some(0));
            assert_eq!(inbound.take_empty_read(), None);
        }
    }

    /// By DDP-5.2-10, the STag and the TO of a zero-length Write are not checked.
    #[test]
    fn a_zero_length_write_is_taken_whatever_it_names() {
        let write = b"\xc1\x40\xde\xad\xbe\xef\xff\xff\xff\xff\xff\xff\xff\xff";
        assert_eq!(Inbound::default().handle_segment(write), Ok(None));
    }

    #[test]
    fn a_terminate_needs_no_posted_receive() {
        let code = |octets: &[u8], change: fn(&mut RawUntagged)| {
            let segment = untagged(octets, |h| {
                (h.ulp_control.0, h.qn) = (0x47, 2.into());
                change(h);
            });
            Inbound::default().handle_segment(&segment).map_err(|refused| refused.code())
        };
        let Ok(Some(Delivery::Terminate(terminate))) = code(&[0x20, 0x02, 0, 0], |_| ()) else { panic!("delivered") };
        assert_eq!(terminate.error, TerminateError::MPA_CRC);
        assert_eq!(code(&[0x20, 2, 0, 0], |h| h.msn = 2.into()), Err(TerminateError::DDP_UNTAGGED_MSN_RANGE));
        assert_eq!(code(&[0x20, 2, 0, 0], |h| h.mo = 1.into()), Err(TerminateError::DDP_UNTAGGED_INVALID_MO));
        assert_eq!(code(&[0x20, 2, 0, 0], |h| h.control.0 = 0x01), Err(TerminateError::DDP_UNTAGGED_TOO_LONG));
        assert_eq!(code(&[0x20, 2, 0, 0], |h| h.ulp_control.0 = 0x43), Err(TerminateError::RDMAP_UNEXPECTED_OPCODE));
        assert_eq!(code(&[0x20, 2], |_| ()), Err(TerminateError::RDMAP_OPERATION_UNSPECIFIED));
    }

    proptest! {
        #[test]
        fn no_octets_panic(segments: Vec<Vec<u8>>) {
            let mut inbound = Inbound::default();
            inbound.post_receive(64);
            for segment in segments {
                let _ = inbound.handle_segment(&segment);
                prop_assert!(inbound.posted_receives() <= 1);
            }
        }
    }
}
