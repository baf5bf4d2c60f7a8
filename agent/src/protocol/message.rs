//! Messages from an agent: answers and events.

use serde::{Deserialize, Serialize};

use super::{Object, Octets};

/// A message from an agent: an event, or an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentMessage {
    /// Time since the agent's process started, in nanoseconds, from a monotonic clock.
    pub at: u64,
    /// The event or answer.
    #[serde(flatten)]
    pub what: MessageContent,
}

/// Content of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageContent {
    /// The answer to a request.
    Answer {
        /// Number of the request. `None` if the agent could not read the number.
        id: Option<u64>,
        /// Result of the request.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// An event.
    Event(Event),
}

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The request succeeded.
    Done(Success),
    /// The request failed.
    Failed(Failure),
}

/// Result of a successful request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Success {
    /// No result to report.
    Nothing,
    /// Versions of the protocol and of the agent.
    Hello {
        /// Version of the protocol: [`VERSION`](super::VERSION).
        version: u32,
        /// Version of weft.
        agent: String,
    },
    /// The device.
    Device(Box<Device>),
    /// A listener.
    Listener {
        /// Number of the listener.
        listener: Object,
        /// Port on which the listener accepts connections.
        port: u16,
    },
    /// A connection that is not established yet.
    Connection {
        /// Number of the connection.
        connection: Object,
    },
    /// A Protection Domain.
    Domain {
        /// Number of the Protection Domain.
        domain: Object,
    },
    /// Registered memory.
    Region {
        /// Number of the region.
        region: Object,
        /// Tagged Offset of the region's first byte.
        address: u64,
        /// L_Key, for local access.
        local_key: u32,
        /// R_Key: the STag to advertise to the peer.
        remote_key: u32,
    },
    /// A memory window.
    Window {
        /// Number of the window.
        window: Object,
        /// STag of the window before it is bound.
        remote_key: u32,
    },
    /// A shared receive queue.
    Shared {
        /// Number of the shared receive queue.
        shared: Object,
    },
    /// A window has a new STag, because the request binds this window.
    Bound {
        /// New STag of the window.
        remote_key: u32,
    },
    /// Content of a region's memory.
    Octets {
        /// The bytes at the time of reading.
        octets: Octets,
    },
    /// Hash over a region's memory.
    Hash {
        /// CRC32c, computed as in iWARP.
        crc32c: u32,
    },
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}{}", errno.map(|errno| format!(" (errno {errno})")).unwrap_or_default())]
pub struct Failure {
    /// The reason, as a sentence.
    pub what: String,
    /// errno, if the library or the driver reported the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

impl Failure {
    /// Returns a failure without an errno.
    pub fn of(what: impl Into<String>) -> Self {
        Failure { what: what.into(), errno: None }
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A peer requests a connection.
    Request {
        /// Listener that received the request.
        listener: Object,
        /// Number of the new connection.
        connection: Object,
        /// The peer's private data.
        private_data: Octets,
        /// Maximum number of concurrent RDMA Reads that the peer accepts, as announced by the peer.
        ird: u8,
        /// Maximum number of concurrent RDMA Reads that the peer sends, as announced by the peer.
        ord: u8,
    },
    /// A connection is established.
    Established {
        /// The connection.
        connection: Object,
        /// Private data of the peer's Reply. Empty if the peer sent the Request.
        private_data: Octets,
        /// `responder_resources` of librdmacm's event.
        ird: u8,
        /// `initiator_depth` of librdmacm's event.
        ord: u8,
    },
    /// The peer rejected the connection.
    Rejected {
        /// The connection.
        connection: Object,
        /// An errno, as a positive number.
        status: i32,
        /// The peer's private data.
        private_data: Octets,
    },
    /// A connection was not established, or can report no more completions.
    Failed {
        /// The connection. If the agent rejected a peer's request because of the limit of objects,
        /// this field contains the listener instead.
        connection: Object,
        /// Name of librdmacm's event, or of the library's function that failed.
        kind: String,
        /// An errno, as a positive number.
        status: i32,
    },
    /// A connection has ended. This side or the peer ended it.
    Disconnected {
        /// The connection.
        connection: Object,
    },
    /// A work request completed.
    Completion(Completion),
    /// An asynchronous event of the device.
    Asynchronous {
        /// Name of the event in libibverbs, in lower case, for example `qp_fatal`.
        kind: String,
        /// The connection, if the event concerns a connection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        connection: Option<Object>,
    },
}

/// A completed work request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// Connection whose Queue Pair executed the work request.
    pub connection: Object,
    /// Value of `work` in the request that posted the work request.
    pub work: u64,
    /// `success`, or the name of `enum ibv_wc_status` in lower case without its prefix, for example
    /// `wr_flush_err`.
    pub status: String,
    /// `send`, `write`, `read`, `bind`, `invalidate`, `fetch_add`, `compare_swap`, `receive`, or
    /// the number of an unknown operation. If the work request failed, this field has no meaning.
    pub operation: String,
    /// Number of bytes that a receive or an RDMA Read transferred.
    pub octets: u32,
    /// STag that the received message invalidated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidated: Option<u32>,
    /// If Immediate Data (RFC 7306) arrived instead of a Send: its eight bytes, as a number in
    /// network byte order. libibverbs has no field for this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immediate: Option<u64>,
    /// Value that was in memory before the Atomic Operation. With libibverbs, this field is `None`,
    /// because the value is in other memory: libibverbs writes it to the part of the work request.
    /// There, the value has the byte order of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<u64>,
}

/// Description of a device. The maximum values are the limits that the device reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The kernel's name of the device.
    pub name: String,
    /// The kernel's driver, if sysfs has it.
    pub driver: Option<String>,
    /// Version of the firmware.
    pub firmware: String,
    /// Name and release of the host's kernel, if the agent knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// PCI vendor ID.
    pub vendor: u32,
    /// The vendor's part ID.
    pub part: u32,
    /// States of the ports, such as `active`.
    pub ports: Vec<String>,
    /// Maximum size of a region in bytes.
    pub max_region: u64,
    /// Maximum number of Queue Pairs.
    pub max_queue_pairs: u32,
    /// Maximum number of work requests in a queue.
    pub max_work_requests: u32,
    /// Maximum number of parts in a work request.
    pub max_parts: u32,
    /// Maximum number of parts in an RDMA Read.
    pub max_read_parts: u32,
    /// Maximum number of concurrent RDMA Reads from the peer (IRD).
    pub max_ird: u32,
    /// Maximum number of concurrent RDMA Reads to the peer (ORD).
    pub max_ord: u32,
    /// Maximum number of shared receive queues. 0 if the device does not support them.
    pub max_shared: u32,
    /// Maximum number of memory windows. 0 if the device does not support them.
    pub max_windows: u32,
    /// Whether the device supports Atomic Operations.
    #[serde(default)]
    pub atomics: bool,
    /// The supported functions: some of `window_type_1`, `window_type_2a`, `window_type_2b` and
    /// `memory_management_extensions`.
    pub capabilities: Vec<String>,
}
