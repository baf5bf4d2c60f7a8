//! Messages from a tester: requests.

use serde::{Deserialize, Serialize};

use super::{Address, Object, Octets};

/// A request of a tester.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Number of the request. The answer has the same number.
    pub id: u64,
    /// Action to execute.
    #[serde(rename = "do")]
    pub action: Action,
}

/// An action that a tester can request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Starts the control connection. A tester must send this request first, and only once.
    Hello {
        /// Version of the protocol: [`VERSION`](super::VERSION).
        version: u32,
        /// The token with which the agent was started.
        #[serde(default)]
        token: Option<String>,
    },
    /// Describes the device and its limits. The result is
    /// [`Success::Device`](super::Success::Device).
    Device,
    /// Listens for connections. The result is [`Success::Listener`](super::Success::Listener). The
    /// agent reports each connection request as an [`Event::Request`](super::Event::Request).
    Listen {
        /// Address of the device to listen on.
        address: Address,
        /// Port to listen on. 0 selects a free port. The answer contains the selected port.
        port: u16,
        /// Maximum number of connection requests that wait for an answer.
        #[serde(default = "sixteen")]
        backlog: u32,
    },
    /// Resolves the address of a peer and the route to the peer. The result is
    /// [`Success::Connection`](super::Success::Connection). This request does not open the
    /// connection. To open the connection, create a Queue Pair with [`Action::Pair`], and then send
    /// [`Action::Connect`].
    Resolve {
        /// IP address of the peer.
        address: Address,
        /// Port of the peer.
        port: u16,
    },
    /// Creates a Protection Domain. The result is [`Success::Domain`](super::Success::Domain).
    Domain,
    /// Allocates and registers memory of the agent. The result is
    /// [`Success::Region`](super::Success::Region). The memory is all zeros.
    Register {
        /// Protection Domain of the region.
        domain: Object,
        /// Length of the region in bytes, at least 1.
        octets: u64,
        /// Permitted access. Local reading is always permitted.
        #[serde(default)]
        access: Vec<Access>,
    },
    /// Creates a memory window that is not bound. The result is
    /// [`Success::Window`](super::Success::Window).
    Window {
        /// Protection Domain of the window.
        domain: Object,
        /// Whether the window has type 2. If so, a posted work request binds or invalidates the
        /// window. Otherwise the window has type 1, and a separate verb binds the window.
        #[serde(default)]
        posted: bool,
    },
    /// Creates a shared receive queue. The result is [`Success::Shared`](super::Success::Shared).
    Shared {
        /// Protection Domain of the queue.
        domain: Object,
        /// Maximum number of receives in the queue.
        depth: u32,
        /// Maximum number of parts in a receive.
        #[serde(default = "one")]
        parts: u32,
    },
    /// Sets the limit of a shared receive queue. When the queue has fewer receives than this limit,
    /// the agent reports an [`Event::Asynchronous`](super::Event::Asynchronous) once.
    Limit {
        /// The shared receive queue.
        shared: Object,
        /// Limit, as a number of receives. 0 disables the report.
        receives: u32,
    },
    /// Creates the Queue Pair of a connection. Send this request before [`Action::Connect`] or
    /// [`Action::Accept`]. After this request, receives can be posted.
    Pair {
        /// The connection.
        connection: Object,
        /// Protection Domain of the Queue Pair.
        domain: Object,
        /// Shared receive queue that supplies the receives. If absent, the Queue Pair has its own
        /// Receive Queue.
        #[serde(default)]
        shared: Option<Object>,
        /// Maximum number of work requests in the Send Queue, and of receives in the Receive Queue.
        #[serde(default = "sixteen")]
        depth: u32,
        /// Maximum number of parts in a work request.
        #[serde(default = "one")]
        parts: u32,
        /// Maximum number of inline bytes in a work request.
        #[serde(default)]
        inline: u32,
        /// Whether the agent reports only the first completion at once, and delays all later
        /// completions. If `false`, the agent reports each completion at once. If `true`, later
        /// completions wait in the completion queue of the connection until one of two events: a
        /// Send with Solicited Event arrives, or a work request fails. The agent then reports all
        /// completions that are in the queue.
        ///
        /// The request contains this field only if the value is `true`. Older agents do not know
        /// the field, but they accept a request without it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        solicited: bool,
    },
    /// Connects a connection that [`Action::Resolve`] created. An
    /// [`Event::Established`](super::Event::Established),
    /// [`Event::Rejected`](super::Event::Rejected) or [`Event::Failed`](super::Event::Failed)
    /// follows.
    Connect(Parameters),
    /// Accepts the connection request of an [`Event::Request`](super::Event::Request). An
    /// [`Event::Established`](super::Event::Established) or [`Event::Failed`](super::Event::Failed)
    /// follows.
    Accept(Parameters),
    /// Rejects the connection request of an [`Event::Request`](super::Event::Request).
    Reject {
        /// The connection.
        connection: Object,
        /// Private data for the peer.
        #[serde(default)]
        private_data: Octets,
    },
    /// Closes a connection. An [`Event::Disconnected`](super::Event::Disconnected) follows.
    Disconnect {
        /// The connection.
        connection: Object,
    },
    /// Destroys an object. A connection or listener closes at once. The peer receives no message:
    /// it notices only that the TCP connection ends.
    Destroy {
        /// The object.
        object: Object,
    },
    /// Posts a receive on the Queue Pair of a connection or on a shared receive queue.
    PostReceive {
        /// The connection or the shared receive queue.
        on: Object,
        /// Number of the receive. The completion of the receive contains this number.
        work: u64,
        /// Memory for the message.
        #[serde(default)]
        parts: Vec<Part>,
    },
    /// Posts a work request on the Send Queue.
    PostSend {
        /// Connection whose Queue Pair executes the work request.
        connection: Object,
        /// Number of the work request. The completion of the work request contains this number.
        work: u64,
        /// Operation to execute.
        operation: Operation,
        /// Memory with the data to send, or memory for the data that an RDMA Read returns.
        #[serde(default)]
        parts: Vec<Part>,
        /// Whether success of the work request also produces a completion. A failure always
        /// produces a completion.
        #[serde(default = "yes")]
        signaled: bool,
        /// Whether the work request waits for earlier RDMA Reads.
        #[serde(default)]
        fence: bool,
        /// Whether the data is copied when the work request is posted.
        #[serde(default)]
        inline: bool,
    },
    /// Writes bytes into a region's memory.
    Put {
        /// The region.
        region: Object,
        /// Offset in bytes from the start of the region.
        #[serde(default)]
        offset: u64,
        /// Bytes to write. Only the maximum length of a line,
        /// [`LONGEST_LINE`](super::LONGEST_LINE), limits their number.
        octets: Octets,
    },
    /// Reads bytes of a region's memory. The result is [`Success::Octets`](super::Success::Octets).
    Get {
        /// The region.
        region: Object,
        /// Offset in bytes from the start of the region.
        #[serde(default)]
        offset: u64,
        /// Number of bytes, at most [`MAX_TRANSFER_OCTETS`](super::MAX_TRANSFER_OCTETS).
        length: u64,
    },
    /// Fills a region's memory with the bytes of [`pattern`](super::pattern).
    Fill {
        /// The region.
        region: Object,
        /// Offset in bytes from the start of the region.
        #[serde(default)]
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// Seed of the pattern.
        seed: u64,
    },
    /// Computes the CRC32c of bytes in a region's memory. The result is
    /// [`Success::Hash`](super::Success::Hash).
    Hash {
        /// The region.
        region: Object,
        /// Offset in bytes from the start of the region.
        #[serde(default)]
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Ends the agent's process at once, as if it were killed. There is no answer.
    Exit,
}

fn sixteen() -> u32 {
    16
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// Parameters of a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The connection.
    pub connection: Object,
    /// Private data for the peer, at most 255 bytes. (librdmacm stores the length in one byte. MPA
    /// would allow 512.)
    #[serde(default)]
    pub private_data: Octets,
    /// Maximum number of concurrent RDMA Reads that this side accepts (`responder_resources`).
    #[serde(default = "one_read")]
    pub ird: u8,
    /// Maximum number of concurrent RDMA Reads that this side sends (`initiator_depth`).
    #[serde(default = "one_read")]
    pub ord: u8,
}

fn one_read() -> u8 {
    1
}

/// Access rights to a region. Local reading is always permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Local work requests may write to the region.
    LocalWrite,
    /// The peer may write to the region with RDMA Writes.
    RemoteWrite,
    /// The peer may read the region with RDMA Reads.
    RemoteRead,
    /// Memory windows may be bound to the region.
    Bind,
    /// The region is zero-based: the Tagged Offset of its first byte is 0 instead of the region's
    /// address.
    ZeroBased,
}

/// A range of a region in a work request, in bytes. The agent does not check the range. If the
/// range is wrong, the device must reject the work request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The region.
    pub region: Object,
    /// Offset in bytes from the start of the region. The offset can be beyond the end of the
    /// region.
    #[serde(default)]
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
    /// Key to use instead of the region's own L_Key.
    #[serde(default)]
    pub key: Option<u32>,
}

/// The operation of a work request on the Send Queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// A Send.
    Send {
        /// Whether this is a Send with Solicited Event.
        #[serde(default)]
        solicited: bool,
        /// STag that the peer invalidates when it receives this Send.
        #[serde(default)]
        invalidate: Option<u32>,
    },
    /// An RDMA Write.
    Write {
        /// Tagged Offset in the peer's memory.
        address: u64,
        /// STag of the peer's memory.
        key: u32,
    },
    /// An RDMA Read.
    Read {
        /// Tagged Offset in the peer's memory.
        address: u64,
        /// STag of the peer's memory.
        key: u32,
    },
    /// An Atomic Operation that adds a number to a value in the peer's memory (RFC 7306 section
    /// 5.1.1).
    FetchAdd {
        /// Tagged Offset of eight bytes in the peer's memory.
        address: u64,
        /// STag of the peer's memory.
        key: u32,
        /// Number to add.
        add: u64,
    },
    /// An Atomic Operation that compares a value in the peer's memory with an expected value, and
    /// replaces the value if they are equal (RFC 7306 section 5.1.2).
    CompareSwap {
        /// Tagged Offset of eight bytes in the peer's memory.
        address: u64,
        /// STag of the peer's memory.
        key: u32,
        /// Expected value.
        compare: u64,
        /// New value.
        swap: u64,
    },
    /// Invalidates a local STag.
    Invalidate {
        /// The STag.
        key: u32,
    },
    /// Binds a memory window.
    Bind {
        /// The window.
        window: Object,
        /// Region to which the window is bound.
        region: Object,
        /// Offset in bytes from the start of the region.
        #[serde(default)]
        offset: u64,
        /// Length of the window in bytes.
        length: u64,
        /// Access through the window: [`Access::RemoteRead`], [`Access::RemoteWrite`] and
        /// [`Access::ZeroBased`].
        #[serde(default)]
        access: Vec<Access>,
    },
}
