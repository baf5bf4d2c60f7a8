//! Facts that the monitor derives from several units: complete messages, operations, STags, and the
//! errors that Terminates report.
//!
//! [`Sink::fact`](crate::Sink::fact) delivers a fact as soon as it is certain. A fact is not a
//! verdict. If octets are missing in the capture, the monitor does not report facts that depend on
//! these octets.

use weft_core::wire::ddp::Msn;
use weft_core::wire::rdmap::{Opcode, TerminateError};

use crate::frame_number::FrameNumber;

/// A fact about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// A message is complete.
    Message(Message),
    /// A Read or an atomic operation has its complete response.
    Operation(Operation),
    /// The use of an STag ended, because the STag was invalidated or the connection ended.
    Stag(Stag),
    /// A Terminate reports an error.
    Terminate(Terminate),
}

/// A DDP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Number of the direction in which the message was sent: 0 or 1.
    pub direction: u8,
    /// RDMAP opcode in the last segment of the message.
    pub opcode: Opcode,
    /// Queue number and message sequence number; `None` for tagged messages.
    pub queue: Option<(u32, Msn)>,
    /// Length of the payload in octets.
    pub len: u64,
    /// Number of segments.
    pub segments: u32,
    /// Frame numbers of the first and the last segment.
    pub frames: (FrameNumber, FrameNumber),
    /// Capture times of the two frames in `frames`, in nanoseconds since 1970.
    pub times: (u64, u64),
}

/// A Read or an atomic operation with its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Number of the direction in which the requester sends: 0 or 1.
    pub direction: u8,
    /// Whether the operation is an atomic operation. If false, it is a Read.
    pub atomic: bool,
    /// Number of requested octets; 8 for an atomic operation.
    pub len: u32,
    /// Number of outstanding operations of the requester directly after it sent the request. The
    /// number includes this operation. `None` if octets are missing in the capture, and the number
    /// is therefore not certain.
    pub outstanding: Option<u32>,
    /// Frame numbers of the request, and of the first and the last octets of the response.
    pub frames: (FrameNumber, FrameNumber, FrameNumber),
    /// Time from the request to the last octets of the response, in nanoseconds of capture time.
    pub latency: u64,
}

/// The life of an STag on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stag {
    /// The STag.
    pub stag: u32,
    /// Number of the direction in which the owner of the STag's buffer sends: 0 or 1.
    pub owner: u8,
    /// First frame that contains the STag.
    pub first: FrameNumber,
    /// Frame of the first Read Request whose Data Sink is the STag.
    pub advertised: Option<FrameNumber>,
    /// Number of tagged messages, Reads and atomic operations that used the STag.
    pub uses: u64,
    /// Frame of the latest use.
    pub used: Option<FrameNumber>,
    /// Frame of the Send that invalidated the STag.
    pub invalidated: Option<FrameNumber>,
}

/// The error that a Terminate reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminate {
    /// Number of the direction in which the Terminate was sent: 0 or 1.
    pub direction: u8,
    /// The frame of the Terminate.
    pub frame: FrameNumber,
    /// Layer, type and code of the error.
    pub error: TerminateError,
    /// Frame of the segment whose header the Terminate copies. `None` if the Terminate copies no
    /// header, or if no captured segment has the copied header.
    pub target: Option<FrameNumber>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sink;
    use crate::stream_id::StreamId;
    use crate::testing::{self, Wire, exchange};
    use crate::unit::Unit;

    fn facts(wire: &Wire) -> Vec<Fact> {
        struct Collect(Vec<Fact>);
        impl Sink for Collect {
            fn unit(&mut self, _: &Unit<'_>) {}
            fn fact(&mut self, stream: StreamId, fact: &Fact) {
                assert_eq!(stream, StreamId::FIRST);
                self.0.push(*fact);
            }
        }
        let mut found = Collect(Vec::new());
        wire.feed(&mut found);
        found.0
    }

    /// Parts of a message: opcode, queue number and MSN, payload length, and number of segments.
    type Shape = (Opcode, Option<(u32, Msn)>, u64, u32);

    fn messages(wire: &Wire) -> Vec<Shape> {
        let each = |fact: Fact| match fact {
            Fact::Message(message) => Some((message.opcode, message.queue, message.len, message.segments)),
            _ => None,
        };
        facts(wire).into_iter().filter_map(each).collect()
    }

    const READ: &str = "4141 00000000 00000001 00000001 00000000
        00000100 0000000000001000 00000008 00000200 0000000000002000";

    #[test]
    fn reports_complete_messages() {
        let wire = exchange(&[
            (0, "0143 00000000 00000000 00000001 00000000 01020304"),
            (0, "4143 00000000 00000000 00000001 00000004 05060708"),
            (0, "8140 11223344 0000000000001000 01020304"),
            (0, "c140 11223344 0000000000001004 0506"),
        ]);
        let expected = [(Opcode::SEND, Some((0, Msn::FIRST)), 8, 2), (Opcode::WRITE, None, 6, 2)];
        assert_eq!(messages(&wire), expected);
        // The capture does not have the first segment of this message.
        let mut wire = exchange(&[(0, "4143 00000000 00000000 00000001 00000000 01020304")]);
        wire.lose(0, &testing::fpdu(&testing::hex("8140 11223344 0000000000001000 01020304")));
        wire.send_ulpdu(0, "c140 11223344 0000000000001004 0506");
        wire.send_ulpdu(0, "c140 11223344 0000000000002000 0506");
        let expected = [(Opcode::SEND, Some((0, Msn::FIRST)), 4, 1), (Opcode::WRITE, None, 2, 1)];
        assert_eq!(messages(&wire), expected);
    }

    #[test]
    fn reports_a_read_with_its_response() {
        let wire = exchange(&[
            (0, READ),
            (1, "8142 00000100 0000000000001000 01020304"),
            (1, "c142 00000100 0000000000001004 05060708"),
        ]);
        let operation = facts(&wire).into_iter().find_map(|fact| match fact {
            Fact::Operation(operation) => Some(operation),
            _ => None,
        });
        let operation = operation.unwrap();
        assert_eq!(
            (operation.direction, operation.atomic, operation.len, operation.outstanding),
            (0, false, 8, Some(1))
        );
        // The first four frames are SYN, SYN-ACK, Request and Reply.
        assert_eq!(operation.frames, (5.into(), 6.into(), 7.into()));
        assert!(operation.latency > 0);
    }

    #[test]
    fn the_life_of_an_stag() {
        let wire = exchange(&[
            (0, READ),
            (1, "c142 00000100 0000000000001000 0102030405060708"),
            (1, "4144 00000100 00000000 00000001 00000000 2a"),
        ]);
        let stags: Vec<Stag> = facts(&wire)
            .into_iter()
            .filter_map(|fact| match fact {
                Fact::Stag(stag) => Some(stag),
                _ => None,
            })
            .collect();
        let [request, response, send] = [5, 6, 7].map(FrameNumber::from);
        let sink = Stag {
            stag: 0x100,
            owner: 0,
            first: request,
            advertised: Some(request),
            uses: 1,
            used: Some(response),
            invalidated: Some(send),
        };
        let source = Stag { stag: 0x200, owner: 1, advertised: None, used: Some(request), invalidated: None, ..sink };
        assert_eq!(stags, [sink, source]);
    }

    #[test]
    fn a_terminate_points_at_what_it_complains_of() {
        let wire = exchange(&[
            (0, "c140 11223344 0000000000001000 01"),
            (0, "c140 deadbeef 0000000000002000 02"),
            (1, "4147 00000000 00000002 00000001 00000000 1100c000 000f c140 deadbeef 0000000000002000"),
        ]);
        let terminate = facts(&wire).into_iter().find_map(|fact| match fact {
            Fact::Terminate(terminate) => Some(terminate),
            _ => None,
        });
        let error = TerminateError::DDP_TAGGED_INVALID_STAG;
        assert_eq!(terminate, Some(Terminate { direction: 1, frame: 7.into(), error, target: Some(6.into()) }));
    }
}
