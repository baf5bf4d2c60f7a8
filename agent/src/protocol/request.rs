//! What a tester sends: requests, and their content.

use serde::{Deserialize, Serialize};

use super::{Address, Object, Octets};

/// What the tester asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Comes back with the answer.
    pub id: u64,
    /// What is to be done.
    #[serde(rename = "do")]
    pub action: Action,
}

/// What can be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// The first request, and no other.
    Hello {
        /// [`VERSION`](super::VERSION).
        version: u32,
        /// What the agent was started with.
        #[serde(default)]
        token: Option<String>,
    },
    /// What the device is and holds: [`Done::Device`](super::Done::Device).
    Device,
    /// Waits for connections: [`Done::Listener`](super::Done::Listener); each that comes is an
    /// [`Event::Request`](super::Event::Request).
    Listen {
        /// One of the device's.
        address: Address,
        /// 0: any; the answer has it.
        port: u16,
        /// Requests that wait for an answer.
        #[serde(default = "sixteen")]
        backlog: u32,
    },
    /// Finds the way to a peer: [`Done::Connection`](super::Done::Connection). Not yet a
    /// connection: that is [`Action::Connect`], with a Queue Pair.
    Resolve {
        /// The peer's.
        address: Address,
        /// The peer's.
        port: u16,
    },
    /// A Protection Domain: [`Done::Domain`](super::Done::Domain).
    Domain,
    /// Memory of the agent, registered: [`Done::Region`](super::Done::Region). It is all zeros.
    Register {
        /// Where it belongs.
        domain: Object,
        /// Its length, from 1.
        octets: u64,
        /// What may be done to it. Local reading is always allowed.
        #[serde(default)]
        access: Vec<Access>,
    },
    /// A memory window, bound to nothing: [`Done::Window`](super::Done::Window).
    Window {
        /// Where it belongs.
        domain: Object,
        /// Bound by a posted work request, and invalidated (type 2); or bound by a verb of its own
        /// (type 1).
        #[serde(default)]
        posted: bool,
    },
    /// A shared receive queue: [`Done::Shared`](super::Done::Shared).
    Shared {
        /// Where it belongs.
        domain: Object,
        /// Receives that it holds.
        depth: u32,
        /// Parts of a receive.
        #[serde(default = "one")]
        parts: u32,
    },
    /// A shared receive queue reports, once, that it has fewer receives than this limit: an
    /// [`Event::Asynchronous`](super::Event::Asynchronous).
    Limit {
        /// The region whose memory is shared.
        shared: Object,
        /// How many; 0: it reports nothing.
        receives: u32,
    },
    /// The Queue Pair of a connection, before it is connected or accepted. Receives can be posted
    /// from then on.
    Pair {
        /// Whose.
        connection: Object,
        /// Where it belongs.
        domain: Object,
        /// Takes its receives.
        #[serde(default)]
        shared: Option<Object>,
        /// Work requests that the Send Queue holds, and receives that the Receive Queue does.
        #[serde(default = "sixteen")]
        depth: u32,
        /// Parts of a work request.
        #[serde(default = "one")]
        parts: u32,
        /// Octets that go with a work request.
        #[serde(default)]
        inline: u32,
        /// After its first completion, it reports the others once a Send with Solicited Event has
        /// arrived, or an error. Absent unless requested, so that an agent from before this option
        /// accepts the request.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        solicited: bool,
    },
    /// Connects what [`Action::Resolve`] found: an
    /// [`Event::Established`](super::Event::Established),
    /// [`Event::Rejected`](super::Event::Rejected) or [`Event::Failed`](super::Event::Failed)
    /// follows.
    Connect(Parameters),
    /// Accepts what an [`Event::Request`](super::Event::Request) brought: an
    /// [`Event::Established`](super::Event::Established) or [`Event::Failed`](super::Event::Failed)
    /// follows.
    Accept(Parameters),
    /// Rejects it.
    Reject {
        /// The connection.
        connection: Object,
        /// Private data for the peer.
        #[serde(default)]
        private_data: Octets,
    },
    /// Ends a connection: an [`Event::Disconnected`](super::Event::Disconnected) follows.
    Disconnect {
        /// The connection.
        connection: Object,
    },
    /// Gives an object back: a connection or listener at once, without a word to the peer but
    /// TCP's.
    Destroy {
        /// The object.
        object: Object,
    },
    /// A receive, on the Queue Pair of a connection or on a shared receive queue.
    PostReceive {
        /// Where.
        on: Object,
        /// Comes back with its completion.
        work: u64,
        /// Where the message goes.
        #[serde(default)]
        parts: Vec<Part>,
    },
    /// A work request on the Send Queue.
    PostSend {
        /// On whose Queue Pair.
        connection: Object,
        /// Comes back with its completion.
        work: u64,
        /// What is to be done.
        operation: Operation,
        /// The octets, or where those that are Read go.
        #[serde(default)]
        parts: Vec<Part>,
        /// It completes also when nothing went wrong.
        #[serde(default = "yes")]
        signaled: bool,
        /// Waits for the Reads before it.
        #[serde(default)]
        fence: bool,
        /// The octets are taken while it is posted.
        #[serde(default)]
        inline: bool,
    },
    /// Puts octets into a region's memory.
    Put {
        /// The region.
        region: Object,
        /// From its first octet.
        #[serde(default)]
        offset: u64,
        /// At most [`MOST_OCTETS`](super::MOST_OCTETS).
        octets: Octets,
    },
    /// Gives octets of a region's memory: [`Done::Octets`](super::Done::Octets).
    Get {
        /// The region.
        region: Object,
        /// From its first octet.
        #[serde(default)]
        offset: u64,
        /// At most [`MOST_OCTETS`](super::MOST_OCTETS).
        length: u64,
    },
    /// Fills a region's memory with the octets of [`pattern`](super::pattern).
    Fill {
        /// The region.
        region: Object,
        /// From its first octet.
        #[serde(default)]
        offset: u64,
        /// How many.
        length: u64,
        /// Seed of the pattern.
        seed: u64,
    },
    /// The CRC32c of octets of a region's memory: [`Done::Hash`](super::Done::Hash).
    Hash {
        /// The region.
        region: Object,
        /// From its first octet.
        #[serde(default)]
        offset: u64,
        /// How many.
        length: u64,
    },
    /// The agent's process ends at once, as one that was killed. There is no answer.
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

/// How a connection begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The connection.
    pub connection: Object,
    /// Private data for the peer, at most 255 octets (librdmacm counts in one octet; MPA would take
    /// 512).
    #[serde(default)]
    pub private_data: Octets,
    /// Reads of the peer that are answered at once (`responder_resources`).
    #[serde(default = "one_read")]
    pub ird: u8,
    /// Reads that are requested at once (`initiator_depth`).
    #[serde(default = "one_read")]
    pub ord: u8,
}

fn one_read() -> u8 {
    1
}

/// Access rights to a region; its own side may always read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// By this side's own work requests.
    LocalWrite,
    /// RDMA Writes of the peer.
    RemoteWrite,
    /// RDMA Reads of the peer.
    RemoteRead,
    /// Windows may be bound to it.
    Bind,
    /// Offsets count from 0 and not from its address.
    ZeroBased,
}

/// A range of a region in a work request, in bytes. The agent does not check it: the device must
/// reject a wrong one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The region.
    pub region: Object,
    /// From its first octet. It may be after its last.
    #[serde(default)]
    pub offset: u64,
    /// How many.
    pub length: u32,
    /// Another key than the region's own L_Key.
    #[serde(default)]
    pub key: Option<u32>,
}

/// The operation of a work request on the Send Queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// A Send.
    Send {
        /// With Solicited Event.
        #[serde(default)]
        solicited: bool,
        /// Invalidates this STag of the peer.
        #[serde(default)]
        invalidate: Option<u32>,
    },
    /// An RDMA Write.
    Write {
        /// The peer's Tagged Offset.
        address: u64,
        /// The peer's STag.
        key: u32,
    },
    /// An RDMA Read.
    Read {
        /// The peer's Tagged Offset.
        address: u64,
        /// The peer's STag.
        key: u32,
    },
    /// An Atomic Operation that adds (RFC 7306 section 5.1.1).
    FetchAdd {
        /// The peer's Tagged Offset, of eight octets.
        address: u64,
        /// The peer's STag.
        key: u32,
        /// What is added.
        add: u64,
    },
    /// An Atomic Operation that compares, and then changes (RFC 7306 section 5.1.2).
    CompareSwap {
        /// The peer's Tagged Offset, of eight octets.
        address: u64,
        /// The peer's STag.
        key: u32,
        /// What has to be there.
        compare: u64,
        /// What is there then.
        swap: u64,
    },
    /// Invalidates an STag of this side.
    Invalidate {
        /// The STag.
        key: u32,
    },
    /// Binds a window.
    Bind {
        /// The window.
        window: Object,
        /// To what.
        region: Object,
        /// From the region's first octet.
        #[serde(default)]
        offset: u64,
        /// How many octets.
        length: u64,
        /// [`Access::RemoteRead`], [`Access::RemoteWrite`].
        #[serde(default)]
        access: Vec<Access>,
    },
}
