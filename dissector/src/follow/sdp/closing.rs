//! Records how an SDP connection begins and ends. The recorded events are HelloAck, DisConn,
//! AbortConn, SuspComm, SuspCommAck, and the end of TCP.

use weft_core::wire::sdp::Mid;

use super::message::{Extension, Message};
use crate::direction::Direction;
use crate::format::named;
use crate::frame_number::FrameNumber;

named! {
    /// The state of an SDP connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum State {
        /// The Hello was sent. The HelloAck was not sent.
        Hello = "hello",
        /// Hello and HelloAck were sent.
        Open = "open",
        /// One endpoint sent DisConn.
        HalfClosed = "half_closed",
        /// Both endpoints sent DisConn.
        Closed = "closed",
        /// An endpoint sent AbortConn.
        Aborted = "aborted",
        /// An endpoint sent SuspComm (section 13 of the SDP draft).
        Suspending = "suspending",
        /// An endpoint answered with SuspCommAck.
        Suspended = "suspended",
    }
}

/// A SuspComm message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspension {
    /// The frame of the SuspComm.
    pub frame: FrameNumber,
    /// The TCP port on which the sender of the SuspComm waits for the connection to be resumed.
    pub port: u16,
}

/// The frames of the messages that begin and end a connection. Arrays have one element for each
/// direction.
#[derive(Debug, Clone, Default)]
pub struct Closing {
    /// The HelloAck.
    pub hello_ack: Option<FrameNumber>,
    /// The first DisConn of each direction.
    pub dis_conn: [Option<FrameNumber>; 2],
    /// The first AbortConn of each direction.
    pub abort_conn: [Option<FrameNumber>; 2],
    /// The first SuspComm of each direction.
    pub susp_comm: [Option<Suspension>; 2],
    /// The first SuspCommAck of each direction.
    pub susp_comm_ack: [Option<FrameNumber>; 2],
    /// The first FIN or RST of TCP.
    pub llp_end: Option<FrameNumber>,
}

impl Closing {
    pub(super) fn sent(&mut self, direction: Direction, message: &Message) {
        let frame = message.frame;
        match (message.mid, message.extension) {
            (Mid::HELLO_ACK, _) => _ = self.hello_ack.get_or_insert(frame),
            (Mid::DIS_CONN, _) => _ = self.dis_conn[direction].get_or_insert(frame),
            (Mid::ABORT_CONN, _) => _ = self.abort_conn[direction].get_or_insert(frame),
            (Mid::SUSP_COMM, Extension::Port(port)) => {
                self.susp_comm[direction].get_or_insert(Suspension { frame, port });
            }
            (Mid::SUSP_COMM_ACK, _) => _ = self.susp_comm_ack[direction].get_or_insert(frame),
            _ => {}
        }
    }

    /// Returns the state of the connection. It is derived from the recorded messages.
    #[must_use]
    pub fn state(&self) -> State {
        let any = |frames: &[Option<FrameNumber>; 2]| frames.iter().flatten().count();
        match any(&self.dis_conn) {
            _ if any(&self.abort_conn) > 0 => State::Aborted,
            _ if any(&self.susp_comm_ack) > 0 => State::Suspended,
            _ if self.susp_comm.iter().any(Option::is_some) => State::Suspending,
            2 => State::Closed,
            1 => State::HalfClosed,
            _ if self.hello_ack.is_some() => State::Open,
            _ => State::Hello,
        }
    }

    /// Returns whether the close was graceful for the sender of `direction` (section 8.2.1, step
    /// 4). The close is graceful if the peer sent DisConn and did not send AbortConn. Returns
    /// `None` if TCP did not end, or if the connection was suspended.
    #[must_use]
    pub fn graceful(&self, direction: Direction) -> Option<bool> {
        self.llp_end?;
        let peer = direction.peer();
        (self.state() != State::Suspended).then(|| self.dis_conn[peer].is_some() && self.abort_conn[peer].is_none())
    }
}
