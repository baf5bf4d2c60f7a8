//! What a tester and an agent say to each other: a line of JSON for each [`Request`], answer ([`Outcome`]) and [`Event`], in UTF-8, of at most
//! [`LONGEST_LINE`] octets with its line feed.
//!
//! The tester speaks first: [`Action::Hello`] with the version and, where the agent wants one, the token. Every request has a number
//! of the tester's own and gets one answer with that number, in the order in which they were asked. Between answers come events:
//! what happened to a connection, a completion, an asynchronous event of the device. Both have the agent's time.
//!
//! Objects have numbers that the agent gives. All that a control connection made ends with it.
//!
//! Octets (`private_data`, `octets`) are hexadecimal. STags and addresses are numbers as the verbs have them: what goes on the wire.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The version of this protocol. An agent answers no other.
pub const VERSION: u32 = 1;
/// Octets of a line, its line feed included.
pub const LONGEST_LINE: usize = 1 << 20;
/// Octets of memory that one request carries: twice as many digits have room in a line.
pub const MOST_OCTETS: usize = 1 << 18;

/// The number of an object, as an answer or event told it.
pub type Object = u32;

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
        /// [`VERSION`].
        version: u32,
        /// What the agent was started with.
        #[serde(default)]
        token: Option<String>,
    },
    /// What the device is and holds: [`Done::Device`].
    Device,
    /// Waits for connections: [`Done::Listener`]; each that comes is an [`Event::Request`].
    Listen {
        /// One of the device's.
        address: IpAddr,
        /// 0: any; the answer has it.
        port: u16,
        /// Requests that wait for an answer.
        #[serde(default = "sixteen")]
        backlog: u32,
    },
    /// Finds the way to a peer: [`Done::Connection`]. Not yet a connection: that is [`Action::Connect`], with a Queue Pair.
    Resolve {
        /// The peer's.
        address: IpAddr,
        /// The peer's.
        port: u16,
    },
    /// A Protection Domain: [`Done::Domain`].
    Domain,
    /// Memory of the agent, registered: [`Done::Region`]. It is all zeros.
    Register {
        /// Where it belongs.
        domain: Object,
        /// Its length, from 1.
        octets: u64,
        /// What may be done to it. Local reading is always allowed.
        #[serde(default)]
        access: Vec<Access>,
    },
    /// A memory window, bound to nothing: [`Done::Window`].
    Window {
        /// Where it belongs.
        domain: Object,
        /// Bound by a posted work request, and invalidated (type 2); or bound by a verb of its own (type 1).
        #[serde(default)]
        posted: bool,
    },
    /// A shared receive queue: [`Done::Shared`].
    Shared {
        /// Where it belongs.
        domain: Object,
        /// Receives that it holds.
        depth: u32,
        /// Parts of a receive.
        #[serde(default = "one")]
        parts: u32,
    },
    /// The Queue Pair of a connection, before it is connected or accepted. Receives can be posted from then on.
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
    },
    /// Connects what [`Action::Resolve`] found: an [`Event::Established`], [`Event::Rejected`] or [`Event::Failed`] follows.
    Connect(Parameters),
    /// Accepts what an [`Event::Request`] brought: an [`Event::Established`] or [`Event::Failed`] follows.
    Accept(Parameters),
    /// Rejects it.
    Reject {
        /// Which.
        connection: Object,
        /// What the peer is told.
        #[serde(default)]
        private_data: Octets,
    },
    /// Ends a connection: an [`Event::Disconnected`] follows.
    Disconnect {
        /// Which.
        connection: Object,
    },
    /// Gives an object back: a connection or listener at once, without a word to the peer but TCP's.
    Destroy {
        /// Which.
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
        /// Which.
        region: Object,
        /// From its first octet.
        #[serde(default)]
        offset: u64,
        /// At most [`MOST_OCTETS`].
        octets: Octets,
    },
    /// Gives octets of a region's memory: [`Done::Octets`].
    Get {
        /// Which.
        region: Object,
        /// From its first octet.
        #[serde(default)]
        offset: u64,
        /// At most [`MOST_OCTETS`].
        length: u64,
    },
    /// Fills a region's memory with the octets of [`pattern`].
    Fill {
        /// Which.
        region: Object,
        /// From its first octet.
        #[serde(default)]
        offset: u64,
        /// How many.
        length: u64,
        /// Of the pattern.
        seed: u64,
    },
    /// The CRC32c of octets of a region's memory: [`Done::Hash`].
    Hash {
        /// Which.
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
    /// Which.
    pub connection: Object,
    /// What the peer is told, at most 255 octets (librdmacm counts in one octet; MPA would take 512).
    #[serde(default)]
    pub private_data: Octets,
    /// Reads of the peer that are answered at once (`responder_resources`).
    #[serde(default = "most")]
    pub ird: u8,
    /// Reads that are asked for at once (`initiator_depth`).
    #[serde(default = "most")]
    pub ord: u8,
}

fn most() -> u8 {
    1
}

/// What may be done to a region, beside reading by its own side.
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

/// Octets of a region, in a work request. What is beside the region, or wrong, is for the device to find.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Which.
    pub region: Object,
    /// From its first octet. It may be behind its last.
    #[serde(default)]
    pub offset: u64,
    /// How many.
    pub length: u32,
    /// Another key than the region's own L_Key.
    #[serde(default)]
    pub key: Option<u32>,
}

/// What a work request of the Send Queue does.
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
    /// Invalidates an STag of this side.
    Invalidate {
        /// Which.
        key: u32,
    },
    /// Binds a window.
    Bind {
        /// Which.
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

/// What an agent says of its own accord, and in answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Nanoseconds since the agent's process began, of a clock that never goes back.
    pub at: u64,
    /// What is told.
    #[serde(flatten)]
    pub what: What,
}

/// What is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An answer.
    Answer {
        /// The request's number; absent where it could not be read.
        id: Option<u64>,
        /// How it went.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// Something happened.
    Event(Event),
}

/// How a request went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As asked.
    Done(Done),
    /// Not at all.
    Failed(Failure),
}

/// What an action gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// Nothing that has to be told.
    Nothing,
    /// The version that is spoken, and the agent's own.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// Of weft.
        agent: String,
    },
    /// The device.
    Device(Box<Device>),
    /// A listener.
    Listener {
        /// Its number.
        listener: Object,
        /// Where it listens.
        port: u16,
    },
    /// What may become a connection.
    Connection {
        /// Its number.
        connection: Object,
    },
    /// A Protection Domain.
    Domain {
        /// Its number.
        domain: Object,
    },
    /// Registered memory.
    Region {
        /// Its number.
        region: Object,
        /// The Tagged Offset of its first octet.
        address: u64,
        /// L_Key: what its own side says.
        local_key: u32,
        /// R_Key: the STag that the peer is told.
        remote_key: u32,
    },
    /// A window.
    Window {
        /// Its number.
        window: Object,
        /// The STag that it has until it is bound.
        remote_key: u32,
    },
    /// A shared receive queue.
    Shared {
        /// Its number.
        shared: Object,
    },
    /// A bound window's STag.
    Bound {
        /// What the peer is told.
        remote_key: u32,
    },
    /// Memory.
    Octets {
        /// As they were when they were read.
        octets: Octets,
    },
    /// Of memory.
    Hash {
        /// CRC32c, as iWARP computes it.
        crc32c: u32,
    },
}

/// Why an action was not done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}{}", errno.map(|errno| format!(" (errno {errno})")).unwrap_or_default())]
pub struct Failure {
    /// A sentence.
    pub what: String,
    /// What the library or the driver said, where it was one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

impl Failure {
    /// Without a number.
    pub fn of(what: impl Into<String>) -> Self {
        Failure { what: what.into(), errno: None }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A peer asks for a connection.
    Request {
        /// Where.
        listener: Object,
        /// Its number from now on.
        connection: Object,
        /// What the peer says.
        private_data: Octets,
        /// Reads that it holds at once, as it says.
        ird: u8,
        /// Reads that it asks for at once, as it says.
        ord: u8,
    },
    /// A connection is there.
    Established {
        /// Which.
        connection: Object,
        /// What the peer's answer says; nothing, where it was the peer that asked.
        private_data: Octets,
        /// `responder_resources` of the event.
        ird: u8,
        /// `initiator_depth` of the event.
        ord: u8,
    },
    /// The peer said no.
    Rejected {
        /// Which.
        connection: Object,
        /// An errno, without its sign.
        status: i32,
        /// What the peer says.
        private_data: Octets,
    },
    /// It did not come to a connection.
    Failed {
        /// Which.
        connection: Object,
        /// librdmacm's name of the event.
        kind: String,
        /// An errno, without its sign.
        status: i32,
    },
    /// A connection has ended, whoever ended it.
    Disconnected {
        /// Which.
        connection: Object,
    },
    /// A work request is done.
    Completion(Completion),
    /// An asynchronous event of the device.
    Asynchronous {
        /// Its name, as libibverbs has it, in lower case: `qp_fatal`.
        kind: String,
        /// Of which connection, where it is one's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        connection: Option<Object>,
    },
}

/// A completed work request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// On whose Queue Pair.
    pub connection: Object,
    /// What it was posted with.
    pub work: u64,
    /// `success`, or the name of `enum ibv_wc_status` in lower case without its prefix: `wr_flush_err`.
    pub status: String,
    /// `send`, `write`, `read`, `bind`, `invalidate`, `receive`, or a number; of one that failed it says nothing.
    pub operation: String,
    /// Octets of a receive or Read.
    pub octets: u32,
    /// The STag that a receive found invalidated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidated: Option<u32>,
}

/// What is known of a device. Counts are the device's own limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// As the kernel names it.
    pub name: String,
    /// The kernel's driver, where sysfs tells.
    pub driver: Option<String>,
    /// Of the firmware.
    pub firmware: String,
    /// PCI's.
    pub vendor: u32,
    /// PCI's.
    pub part: u32,
    /// Ports, with their states (`active`).
    pub ports: Vec<String>,
    /// Octets of a region.
    pub max_region: u64,
    /// Queue Pairs.
    pub max_queue_pairs: u32,
    /// Work requests of a queue.
    pub max_work_requests: u32,
    /// Parts of a work request.
    pub max_parts: u32,
    /// Parts of a Read.
    pub max_read_parts: u32,
    /// Reads of the peer that are held at once.
    pub max_ird: u32,
    /// Reads that are asked for at once.
    pub max_ord: u32,
    /// Shared receive queues; 0: none.
    pub max_shared: u32,
    /// Windows; 0: none.
    pub max_windows: u32,
    /// `window_type_1`, `window_type_2a`, `window_type_2b`, `memory_management_extensions`.
    pub capabilities: Vec<String>,
}

/// Octets, as hexadecimal digits.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Octets(pub Vec<u8>);

impl std::fmt::Debug for Octets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl Serialize for Octets {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{self:?}"))
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let octets = digits.as_bytes().chunks(2).map(|pair| match *pair {
            [high, low] => Some(value(high)? << 4 | value(low)?),
            _ => None,
        });
        let octets: Option<Vec<u8>> = octets.collect();
        octets.map(Octets).ok_or_else(|| serde::de::Error::custom("not hexadecimal digits, two for each octet"))
    }
}

/// Octets of [`Action::Fill`]: the `index`-th of a region filled with `seed`. Both sides can compute it.
pub fn pattern(seed: u64, index: u64) -> u8 {
    // The middle octets of a product: neighbours differ, and no short row repeats.
    let mixed = (index ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()[2]
}
