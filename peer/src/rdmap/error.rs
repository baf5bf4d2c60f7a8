//! Errors that end a stream after start-up, and the Terminate that reports each error.

use weft_core::wire::ddp::RawHeader;
use weft_core::wire::rdmap::{ErrorLayer, Opcode, ReadRequest, Terminate, TerminateError};
use weft_core::{RequirementId, requirement};

use super::Fault;
use crate::mpa::{FpduError, SetupError};

/// An error that ends the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The FPDU is invalid.
    #[error(transparent)]
    Fpdu(FpduError),
    /// The FPDU is valid, but it contains an invalid DDP segment, or a segment of an invalid
    /// message.
    #[error(transparent)]
    Segment(SegmentError),
    /// This endpoint cannot continue with the values of an accepting Reply, or has a local error.
    #[error(transparent)]
    Setup(SetupError),
}

/// A rejected DDP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault} ({code}), in a DDP segment of {segment_length} bytes", code = self.code())]
pub struct SegmentError {
    /// Reason for the rejection.
    pub fault: Fault,
    /// The received header of the segment. `None` if the segment is too short for a header.
    pub header: Option<RawHeader>,
    /// Length of the segment in bytes, including the header.
    pub segment_length: u16,
    /// The Read Request in the segment, if the peer is not allowed to read the requested memory.
    /// Otherwise `None`.
    pub read_request: Option<ReadRequest>,
}

impl SegmentError {
    /// Describes the rejection of the segment `ulpdu` because of `fault`.
    #[must_use]
    pub fn of(fault: Fault, ulpdu: &[u8]) -> Self {
        let segment_length = u16::try_from(ulpdu.len()).unwrap_or(u16::MAX);
        let (header, payload) = RawHeader::from_prefix(ulpdu).unzip();
        let is_request = header.is_some_and(|header| header.ulp_control().opcode() == Opcode::READ_REQUEST);
        // A Terminate contains the Read Request only if the source of the Read is rejected (RFC
        // 5040 section 4.8, Figure 10).
        let read_request = payload.filter(|_| is_request && matches!(fault, Fault::Source(_)));
        let read_request = read_request.and_then(|payload| ReadRequest::parse(payload).ok());
        SegmentError { fault, header, segment_length, read_request }
    }

    /// Layer, type and code for the Terminate.
    #[must_use]
    pub const fn code(&self) -> TerminateError {
        self.fault.code()
    }

    /// The Terminate that reports `error`, with the headers that RFC 5040 Figure 10 requires.
    #[must_use]
    pub fn terminate(&self, error: TerminateError) -> Terminate {
        let local = error.layer == ErrorLayer::RDMAP && error.error_type == 0;
        let ddp_header = self.header.filter(|_| !local);
        let read_request = self.read_request.filter(|_| ddp_header.is_some());
        Terminate { error, segment_length: ddp_header.map(|_| self.segment_length), ddp_header, read_request }
    }
}

impl StreamError {
    /// Layer, type and code for the Terminate.
    #[must_use]
    pub fn code(&self) -> TerminateError {
        match self {
            StreamError::Fpdu(FpduError::Crc { .. }) => TerminateError::MPA_CRC,
            StreamError::Fpdu(FpduError::Marker { .. }) => TerminateError::MPA_MARKER,
            StreamError::Segment(segment) => segment.code(),
            StreamError::Setup(SetupError::InsufficientIrd { .. }) => TerminateError::MPA_INSUFFICIENT_IRD,
            StreamError::Setup(SetupError::LocalCatastrophic) => TerminateError::MPA_LOCAL_CATASTROPHIC,
            StreamError::Setup(SetupError::NoMatchingRtr) => TerminateError::MPA_NO_MATCHING_RTR,
        }
    }

    /// The Terminate to send. For a rejected segment, the Terminate has the length and the DDP
    /// header of the segment (RFC 5040 Figure 10, section 7.1). The Terminate has no length and no
    /// header in two cases: the segment is too short for a header, or MPA reports the error. After
    /// an error of MPA, the received bytes are unreliable.
    #[must_use]
    pub fn terminate(&self) -> Terminate {
        match self {
            StreamError::Segment(segment) => segment.terminate(segment.code()),
            StreamError::Fpdu(_) | StreamError::Setup(_) => {
                Terminate { error: self.code(), segment_length: None, ddp_header: None, read_request: None }
            }
        }
    }

    /// The requirement that the peer violated, or the requirement to detect the error. `None` if
    /// the requirement catalogue has no requirement for this error.
    #[must_use]
    pub fn requirement(&self) -> Option<RequirementId> {
        let code = self.code();
        Some(match code {
            TerminateError::MPA_CRC => requirement!("MPA-8-2"),
            TerminateError::MPA_MARKER => requirement!("MPA-8-3"),
            TerminateError::MPA_INSUFFICIENT_IRD => requirement!("P2P-9.1-24"),
            TerminateError::MPA_LOCAL_CATASTROPHIC => requirement!("P2P-9.3-4"),
            TerminateError::MPA_NO_MATCHING_RTR => requirement!("P2P-9.2-23"),
            TerminateError::DDP_TAGGED_INVALID_STAG => requirement!("DDP-7.1-10"),
            TerminateError::DDP_TAGGED_INVALID_VERSION | TerminateError::DDP_UNTAGGED_INVALID_VERSION => {
                requirement!("DDP-4.1-13")
            }
            TerminateError::DDP_UNTAGGED_INVALID_QN => requirement!("DDP-7.1-1"),
            TerminateError::DDP_UNTAGGED_NO_BUFFER => requirement!("DDP-7.1-2"),
            TerminateError::DDP_UNTAGGED_MSN_RANGE => requirement!("DDP-7.1-9"),
            TerminateError::DDP_UNTAGGED_INVALID_MO => requirement!("DDP-7.1-7"),
            TerminateError::DDP_UNTAGGED_TOO_LONG => requirement!("DDP-7.1-8"),
            TerminateError::DDP_LOCAL_CATASTROPHIC => requirement!("DDP-4.4-1"),
            TerminateError::RDMAP_INVALID_VERSION => requirement!("RDMAP-7.2-3"),
            TerminateError::RDMAP_UNEXPECTED_OPCODE => requirement!("RDMAP-7.2-2"),
            TerminateError::RDMAP_INVALID_STAG => requirement!("RDMAP-5.3-10"),
            _ if code.layer == ErrorLayer::RDMAP => requirement!("RDMAP-5.4-10"),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::AccessError;

    fn payload(error: StreamError) -> Vec<u8> {
        let mut out = Vec::new();
        error.terminate().emit(&mut out);
        out
    }

    /// Tests Terminates of RFC 5040 Figures 7 to 10.
    #[test]
    fn copied_headers_follow_figure_10() {
        let crc = FpduError::Crc { position: 0, computed: 1, found: 2 };
        assert_eq!(payload(StreamError::Fpdu(crc)), [0x20, 0x02, 0, 0]);

        let octets = b"\xc1\x40\xde\xad\xbe\xef\0\0\0\0\0\0\x20\0";
        let header = RawHeader::from_prefix(octets).map(|(header, _)| header);
        let fault = Fault::Tagged(AccessError::InvalidStag);
        let refused = SegmentError { fault, header, segment_length: 30, read_request: None };
        let refused = StreamError::Segment(refused);
        assert_eq!(payload(refused), [&[0x11, 0x00, 0xc0, 0x00, 0x00, 0x1e], &octets[..]].concat());

        let headless = SegmentError { fault: Fault::SegmentSize, header: None, segment_length: 3, read_request: None };
        let headless = StreamError::Segment(headless);
        assert_eq!(payload(headless), [0x10, 0x00, 0, 0]);
    }
}
