//! What an agent sends: answers and events, and their content.

use serde::{Deserialize, Serialize};

use super::{Object, Octets};

/// A message of an agent: an event, or an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentMessage {
    /// Nanoseconds since the agent's process began, of a clock that never goes back.
    pub at: u64,
    /// The content.
    #[serde(flatten)]
    pub what: What,
}

/// The content.
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
    /// Done as requested.
    Done(Done),
    /// Not at all.
    Failed(Failure),
}

/// What an action gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// No result to report.
    Nothing,
    /// The version that is spoken, and the agent's own.
    Hello {
        /// [`VERSION`](super::VERSION).
        version: u32,
        /// Version of weft.
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
        /// L_Key: for its own side.
        local_key: u32,
        /// R_Key: the STag that is advertised to the peer.
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
        /// Private data for the peer.
        remote_key: u32,
    },
    /// Memory.
    Octets {
        /// As they were when they were read.
        octets: Octets,
    },
    /// The hash of memory.
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
    /// The error of the library or the driver, if it came from one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

impl Failure {
    /// Without a number.
    pub fn of(what: impl Into<String>) -> Self {
        Failure { what: what.into(), errno: None }
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A peer asks for a connection.
    Request {
        /// Where.
        listener: Object,
        /// Its number from now on.
        connection: Object,
        /// The peer's private data.
        private_data: Octets,
        /// Reads that it accepts at once, as it announced.
        ird: u8,
        /// Reads that it requests at once, as it announced.
        ord: u8,
    },
    /// A connection is there.
    Established {
        /// The connection.
        connection: Object,
        /// The private data of the peer's answer; empty if the peer sent the request.
        private_data: Octets,
        /// `responder_resources` of the event.
        ird: u8,
        /// `initiator_depth` of the event.
        ord: u8,
    },
    /// The peer rejected it.
    Rejected {
        /// The connection.
        connection: Object,
        /// An errno, without its sign.
        status: i32,
        /// The peer's private data.
        private_data: Octets,
    },
    /// It did not come to a connection.
    Failed {
        /// The connection.
        connection: Object,
        /// librdmacm's name of the event.
        kind: String,
        /// An errno, without its sign.
        status: i32,
    },
    /// A connection has ended, whichever side ended it.
    Disconnected {
        /// The connection.
        connection: Object,
    },
    /// A work request is done.
    Completion(Completion),
    /// An asynchronous event of the device.
    Asynchronous {
        /// Its name, as libibverbs has it, in lower case: `qp_fatal`.
        kind: String,
        /// The connection, if the event concerns one.
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
    /// `success`, or the name of `enum ibv_wc_status` in lower case without its prefix:
    /// `wr_flush_err`.
    pub status: String,
    /// `send`, `write`, `read`, `bind`, `invalidate`, `fetch_add`, `compare_swap`, `receive`, or a
    /// number; it has no meaning for one that failed.
    pub operation: String,
    /// Octets of a receive or Read.
    pub octets: u32,
    /// The STag that a receive found invalidated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidated: Option<u32>,
    /// The eight octets of Immediate Data that a receive got in place of a Send (RFC 7306), as a
    /// number in network byte order. libibverbs has no room for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immediate: Option<u64>,
    /// What an Atomic Operation found. libibverbs puts it into the part that the operation has, in
    /// the order of octets of its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<u64>,
}

/// What is known of a device. Counts are the device's own limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The kernel's name of the device.
    pub name: String,
    /// The kernel's driver, if sysfs has it.
    pub driver: Option<String>,
    /// Version of the firmware.
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
    /// Reads that are requested at once.
    pub max_ord: u32,
    /// Shared receive queues; 0: none.
    pub max_shared: u32,
    /// Windows; 0: none.
    pub max_windows: u32,
    /// It serves Atomic Operations.
    #[serde(default)]
    pub atomics: bool,
    /// `window_type_1`, `window_type_2a`, `window_type_2b`, `memory_management_extensions`.
    pub capabilities: Vec<String>,
}
