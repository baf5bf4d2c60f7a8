//! Outputs of a [`Connection`](super::Connection), in the order in which the driver carries them
//! out.

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
    /// A send of the user: chosen by the user, reported back when it ends.
    SendId(u64),
    /// A receive of the user: chosen by the user, reported back when it ends.
    ReceiveId(u64),
    /// A receive Private Buffer. The machine numbers them from 0 on.
    PrivateBuffer(u32),
    /// An operation whose completion the machine needs.
    OpId(u64),
}

/// A piece of a send's octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Whose.
    pub send: SendId,
    /// First octet, counted from the start of the send.
    pub from: u64,
    /// Octets.
    pub len: u32,
}

/// Registered memory, as it is advertised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// STag.
    pub stag: u32,
    /// Tagged Offset of the first octet.
    pub va: u64,
}

/// What is to be registered for the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposed {
    /// Octets of a send, for RDMA Read by the peer.
    Source(Piece),
    /// A complete receive, for RDMA Write by the peer.
    Sink {
        /// Whose.
        receive: ReceiveId,
        /// Its octets.
        len: u32,
    },
}

/// One of the two directions of a connection, as this side sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    /// This side is the Data Source.
    Out,
    /// This side is the Data Sink.
    In,
}

/// Something to do. Sends, Reads and Writes go to the Send Queue in the order in which they come
/// out (section 10.1).
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Post this Private Buffer with this many octets. A number that comes again with another size
    /// is another buffer.
    Receive {
        /// The buffer.
        buffer: PrivateBuffer,
        /// Its size.
        octets: u32,
    },
    /// This Private Buffer is not needed any more.
    Release(PrivateBuffer),
    /// Streaming-mode octets: they go to TCP as they are.
    Streaming(Vec<u8>),
    /// iWARP begins. Octets of TCP that `unread` does not have are the RNIC's from here on.
    Start(Box<Start>),
    /// One Send.
    Send {
        /// The completion is wanted.
        op: Option<OpId>,
        /// The first octets: all headers.
        head: Vec<u8>,
        /// The octets after them.
        payload: Option<Piece>,
        /// With Solicited Event.
        solicited: bool,
        /// With Invalidate of this STag of the peer.
        invalidate: Option<u32>,
    },
    /// One RDMA Read into a receive; its completion is wanted.
    Read {
        /// Names it.
        op: OpId,
        /// Where from.
        remote: RemoteAddress,
        /// Where to.
        receive: ReceiveId,
        /// First octet of the receive.
        at: u64,
        /// Octets.
        len: u32,
    },
    /// One RDMA Write of a send's octets; its completion is wanted.
    Write {
        /// Names it.
        op: OpId,
        /// The data.
        data: Piece,
        /// Where to.
        remote: RemoteAddress,
    },
    /// Copy octets from a Private Buffer to a receive: the copy of Bcopy.
    Place {
        /// From.
        buffer: PrivateBuffer,
        /// First octet there.
        from: u32,
        /// Octets.
        len: u32,
        /// To.
        receive: ReceiveId,
        /// First octet there.
        at: u64,
    },
    /// This registered memory is not the peer's any more: invalidate it, if the peer has not, and
    /// give it up.
    Withdraw {
        /// The STag that registering gave.
        stag: u32,
    },
    /// Report to the user.
    Event(Event),
    /// End the LLP connection.
    Disconnect {
        /// By a reset; otherwise gracefully, after everything that was posted.
        abortive: bool,
    },
}

/// How iWARP begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// What MPA's frames settled; `None` in the bare profile.
    pub negotiated: Option<Negotiated>,
    /// Version of DDP and RDMAP.
    pub version: u8,
    /// How FPDUs look that go out.
    pub framing_sent: Framing,
    /// How FPDUs look that come in.
    pub framing_received: Framing,
    /// FPDUs may be sent before one arrived.
    pub speaks_first: bool,
    /// Ready-to-receive messages of RFC 6581.
    pub rtr: RtrKinds,
    /// The last octets of streaming mode, to be sent when the RNIC is ready to receive.
    pub last: Vec<u8>,
    /// Octets that arrived and are the RNIC's already.
    pub unread: Vec<u8>,
}

impl Start {
    /// What the RNIC needs for such a stream.
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
pub enum SendEnd {
    /// All of it is out.
    Complete,
    /// It was canceled.
    Canceled,
    /// The connection ended; the peer may have fewer octets than are reported.
    Aborted,
}

/// How a receive ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceiveEnd {
    /// It has octets; more may come.
    More,
    /// The peer sends no more (section 8.2.1).
    EndOfStream,
    /// It was canceled.
    Canceled,
    /// The connection ended abortively.
    Aborted,
}

/// What is reported to the user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// Start-up is over.
    Opened(Agreed),
    /// The peer's Hello or HelloAck is no good; the connection ends.
    Refused(Refusal),
    /// A send ended; its octets are not looked at any more.
    Sent {
        /// The send.
        send: SendId,
        /// How many of its octets went out.
        octets: u64,
        /// How.
        end: SendEnd,
    },
    /// A receive ended.
    Received {
        /// The receive.
        receive: ReceiveId,
        /// How many octets it has.
        octets: u64,
        /// The last of them is Out-Of-Band data.
        urgent: bool,
        /// How.
        end: ReceiveEnd,
    },
    /// Out-Of-Band data is on its way.
    UrgentPending,
    /// A half-connection has another Mode.
    ModeChanged {
        /// The half.
        half: Half,
        /// Its Mode.
        mode: Mode,
    },
    /// The peer answered ChRcvBuf: its Private Buffers have this size, in octets.
    Resized(u32),
    /// The connection rests (section 13): after the end of TCP another connection is to be made, or
    /// taken, and [`reconnected`](super::Connection::reconnected) called.
    Suspended {
        /// The port to connect to, at the peer's address; `None`: the peer connects.
        reconnect: Option<u16>,
    },
    /// The connection goes on.
    Resumed(Agreed),
    /// The peer sent DisConn: it sends no more.
    PeerClosed,
    /// The connection is over.
    Closed {
        /// The peer had sent DisConn, and nobody AbortConn (section 8.2.1, step 4).
        graceful: bool,
        /// The peer's violation, if that ended it.
        violation: Option<Violation>,
    },
}
