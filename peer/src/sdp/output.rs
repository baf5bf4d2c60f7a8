//! Outputs of a [`Connection`](super::Connection). The driver performs the outputs in the order in
//! which they are returned. Section numbers are those of the SDP draft.

use weft_core::wire::sdp::Mode;

use super::{Agreed, Refusal, Violation};
use crate::mpa::{Negotiated, RtrKinds};
use crate::verbs::{LlpSettings, RemoteAddress};
use weft_core::wire::mpa::Framing;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident($number:ty),)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(pub $number);
        )+
    };
}

names! {
    /// Id of a send. The user chooses the id, and [`Event::Sent`] reports it.
    SendId(u64),
    /// Id of a receive. The user chooses the id, and [`Event::Received`] reports it.
    ReceiveId(u64),
    /// Number of a receive Private Buffer. The machine numbers its Private Buffers from 0.
    PrivateBuffer(u32),
    /// Id of a Work Request whose completion the machine needs.
    OpId(u64),
}

/// A range of bytes of one send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The send that contains the bytes.
    pub send: SendId,
    /// Offset of the first byte, from the start of the send.
    pub from: u64,
    /// Number of bytes.
    pub len: u32,
}

/// Registered memory that is advertised to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// STag of the memory.
    pub stag: u32,
    /// Tagged Offset of the first byte.
    pub va: u64,
}

/// Memory to register for access by the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposed {
    /// Bytes of a send, for an RDMA Read by the peer.
    Source(Piece),
    /// All bytes of a receive, for an RDMA Write by the peer.
    Sink {
        /// The receive to register.
        receive: ReceiveId,
        /// Number of bytes to register.
        len: u32,
    },
}

/// One of the two half-connections, from the point of view of this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    /// This side is the Data Source.
    Out,
    /// This side is the Data Sink.
    In,
}

/// A step for the driver. The driver posts Sends, Reads and Writes to the Send Queue in the order
/// in which [`Connection::poll`](super::Connection::poll) returns them (section 10.1).
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Post a Private Buffer of this size. If an earlier `Receive` had the same number and another
    /// size, a new buffer replaces the old buffer.
    Receive {
        /// The Private Buffer to post.
        buffer: PrivateBuffer,
        /// Size in bytes.
        octets: u32,
    },
    /// Free this Private Buffer. The machine does not use it any more.
    Release(PrivateBuffer),
    /// Write these bytes to TCP unchanged, in streaming mode.
    Streaming(Vec<u8>),
    /// Start iWARP. [`Start::unread`] has the bytes for the RNIC that have already arrived. Pass
    /// the bytes that arrive after the start to the RNIC, too.
    Start(Box<Start>),
    /// Post one Send.
    Send {
        /// If set, report the completion with this id.
        op: Option<OpId>,
        /// All headers. They are the first bytes of the message.
        head: Vec<u8>,
        /// The bytes after the headers.
        payload: Option<Piece>,
        /// Send with Solicited Event.
        solicited: bool,
        /// If set, use a Send with Invalidate, which invalidates this STag of the peer.
        invalidate: Option<u32>,
    },
    /// Post one RDMA Read into a receive, and report its completion.
    Read {
        /// Id for the completion.
        op: OpId,
        /// Source of the Read.
        remote: RemoteAddress,
        /// Receive that the Read fills.
        receive: ReceiveId,
        /// Offset of the first byte in the receive.
        at: u64,
        /// Number of bytes to read.
        len: u32,
    },
    /// Post one RDMA Write with bytes of a send, and report its completion.
    Write {
        /// Id for the completion.
        op: OpId,
        /// The bytes to write.
        data: Piece,
        /// Destination of the Write.
        remote: RemoteAddress,
    },
    /// Copy bytes from a Private Buffer to a receive. This is the copy of Bcopy.
    Place {
        /// Source of the copy.
        buffer: PrivateBuffer,
        /// Offset of the first byte in the Private Buffer.
        from: u32,
        /// Number of bytes to copy.
        len: u32,
        /// Destination of the copy.
        receive: ReceiveId,
        /// Offset of the first byte in the receive.
        at: u64,
    },
    /// End the peer's access to this registered memory. If the peer has not invalidated the STag
    /// yet, invalidate the STag. Then deregister the memory.
    Withdraw {
        /// STag from the registration.
        stag: u32,
    },
    /// Report this event to the user.
    Event(Event),
    /// End the LLP connection.
    Disconnect {
        /// True: reset TCP. False: close TCP gracefully after all posted Work Requests.
        abortive: bool,
    },
}

/// Parameters with which iWARP starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Result of the MPA start-up frames. `None` in the bare profile, which has no such frames.
    pub negotiated: Option<Negotiated>,
    /// Version of DDP and RDMAP, 0 or 1.
    pub version: u8,
    /// Markers and CRC of the FPDUs that this side sends.
    pub framing_sent: Framing,
    /// Markers and CRC of the FPDUs that this side receives.
    pub framing_received: Framing,
    /// This side may send FPDUs before it has received an FPDU.
    pub speaks_first: bool,
    /// Kinds of the ready-to-receive message of RFC 6581.
    pub rtr: RtrKinds,
    /// Last bytes of streaming mode. Send them when the RNIC is ready to receive.
    pub last: Vec<u8>,
    /// Bytes that belong to the RNIC and have already arrived.
    pub unread: Vec<u8>,
}

impl Start {
    /// Returns the settings for the RNIC. `emss` is the effective maximum segment size of TCP in
    /// bytes.
    #[must_use]
    pub fn llp(&self, emss: u32) -> LlpSettings {
        LlpSettings {
            version: self.version,
            framing_sent: self.framing_sent,
            framing_received: self.framing_received,
            emss,
            speaks_first: self.speaks_first,
            rtr: self.rtr,
            max_early: 1 << 16,
        }
    }
}

/// How a send ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SendOutcome {
    /// All bytes of the send were sent.
    Complete,
    /// The user canceled the send.
    Canceled,
    /// The connection ended. The peer has possibly received fewer bytes than [`Event::Sent`]
    /// reports.
    Aborted,
}

/// How a receive ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceiveOutcome {
    /// The receive has bytes. More bytes can arrive for the receives that follow.
    More,
    /// The peer has ended its half-connection: no more bytes will arrive (section 8.2.1).
    EndOfStream,
    /// The user canceled the receive.
    Canceled,
    /// The connection ended abortively.
    Aborted,
}

/// An event for the user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// Start-up has succeeded.
    Opened(Agreed),
    /// This side rejects the peer's Hello or HelloAck, or start-up failed. The connection ends.
    Refused(Refusal),
    /// A send has ended. The machine does not use its bytes any more.
    Sent {
        /// The send.
        send: SendId,
        /// Number of bytes of the send that were sent.
        octets: u64,
        /// How the send ended.
        end: SendOutcome,
    },
    /// A receive has ended.
    Received {
        /// The receive.
        receive: ReceiveId,
        /// Number of bytes in the receive.
        octets: u64,
        /// The last byte is Out-Of-Band data.
        urgent: bool,
        /// How the receive ended.
        end: ReceiveOutcome,
    },
    /// The peer has announced Out-Of-Band data.
    UrgentPending,
    /// A half-connection has changed its Mode.
    ModeChanged {
        /// The half-connection.
        half: Half,
        /// The new Mode.
        mode: Mode,
    },
    /// The peer answered ChRcvBuf. The value is the size of the peer's Private Buffers in bytes.
    Resized(u32),
    /// The connection is suspended (section 13). After TCP has ended, connect or accept again, then
    /// call [`reconnected`](super::Connection::reconnected).
    Suspended {
        /// TCP port to connect to at the peer's address. `None`: the peer connects to this side.
        reconnect: Option<u16>,
    },
    /// The connection continues after a suspension.
    Resumed(Agreed),
    /// The peer sent DisConn and sends no more data.
    PeerClosed,
    /// The connection has ended.
    Closed {
        /// The close was graceful: the peer sent DisConn, and neither side sent AbortConn (section
        /// 8.2.1, step 4).
        graceful: bool,
        /// The peer's violation, if a violation ended the connection.
        violation: Option<Violation>,
    },
}
