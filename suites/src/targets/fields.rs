//! The fields of a target file. Its schema (`schema/target.json`) is made from them.
//! [`super::Target::from_toml`] checks that they fit together.
//!
//! ```
//! let target: weft_suites::targets::TargetFile = toml::from_str(r#"
//!     name = "nic-under-test"
//!     kind = "tcp"
//!     address = "192.0.2.7:7174"
//!     role = "responder"
//!     service = "none"
//! "#).unwrap();
//! assert_eq!(target.service.unwrap().as_str(), "none");
//! ```

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::wire::mpa::startup::{Enhanced, NOT_NEGOTIATED};

use super::{KindName, Service};
use crate::baseline::BaselineEntry;
use crate::model::{Capability, Role};
use crate::targets::SdpStart;

/// The fields of a target file. Other fields are rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetFile {
    /// The name in reports: letters, digits, `.`, `_` and `-`. It must not begin with `.`.
    pub name: String,
    /// How it is reached.
    pub kind: KindName,
    /// Defaults for a known implementation: `siw`, `cxgb4`, `irdma`, `qedr`.
    #[serde(default)]
    pub preset: Option<String>,
    /// `host:port`. Required for a responder of kind `tcp`, rejected for other targets.
    #[serde(default)]
    pub address: Option<String>,
    /// The role that it plays: `responder` or `initiator`. Default `responder`. A target that plays
    /// both has a file for each.
    #[serde(default = "responder")]
    pub role: Role,
    /// The address that an initiator of kind `tcp` connects to: an address of this machine and a
    /// port, 0 for a free one. For the service `port-mapper`, the UDP port that gets its requests;
    /// it then connects to TCP ports of the same address.
    #[serde(default)]
    pub listen: Option<String>,
    /// A command with its arguments that makes an initiator connect. It runs on this machine,
    /// without a shell, for each connection. `{address}` and `{port}` are replaced by the address to
    /// connect to, `{mapper_address}` and `{mapper_port}` by that of the port mapper. The initiator
    /// must connect within 30 s times `time_scale`. The command is ended with its case. Without
    /// `start`, the run prints the address each time and waits 300 s times `time_scale`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    /// The service that runs on it. Default: `echo` for the builtin targets, `none` otherwise.
    #[serde(default)]
    pub service: Option<Service>,
    /// Capabilities beyond those that every implementation must have.
    #[serde(default)]
    pub capabilities: Option<Vec<Capability>>,
    /// Factor for all of the tester's time limits, 0.1 to 1000; above 1 for a slow target. Default 1.
    #[serde(default)]
    pub time_scale: Option<f64>,
    /// Deviations of a builtin target, by name.
    #[serde(default)]
    pub deviations: Vec<String>,
    /// Size in bytes of `rping -s -S`, 64 to 65535. Default 64, the default of rping.
    #[serde(default)]
    pub rping_size: Option<u32>,
    /// How the tester starts a connection that the target accepts.
    #[serde(default)]
    pub startup: StartupTable,
    /// How SDP connections are started, for an SDP service.
    #[serde(default)]
    pub sdp: SdpTable,
    /// The services that its port mapper maps, for the service `port-mapper`.
    #[serde(default)]
    pub portmap: MapperTable,
    /// A command with its arguments that restarts a dead target. It runs on this machine, without a
    /// shell, if the good exchange fails after a case that did not pass. Its time limit is 120 s
    /// times `time_scale`. Exit status 0 means that the target is available again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart: Vec<String>,
    /// A command with its arguments that checks whether the target has crashed, for example on its
    /// console. It runs on this machine, without a shell, if a case timed out and the target's host
    /// does not answer. Exit status 0 means that the target has crashed. With another status, the
    /// link counts as lost, and the case is inconclusive. Its time limit is 10 s times
    /// `time_scale`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashed: Vec<String>,
    /// The `weft agent` on the NIC's host, which cases use to drive the NIC's verbs: `"host:port"`,
    /// or a command with its arguments that speaks the agent's protocol on standard input and
    /// output, for example `["ssh", "nic", "weft", "agent", "--stdio"]`. The command runs on this
    /// machine, without a shell. Such cases connect to, or from, the IP address of `address` or
    /// `listen`. For kind `tcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentField>,
    /// The token that the agent was started with. Default: the environment's `WEFT_AGENT_TOKEN`,
    /// for an agent of this machine or of the host that `WEFT_AGENT_TOKEN_FOR` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_token: Option<String>,
    /// The address that the agent listens on, or connects to, if address translation makes it
    /// different from `address` or `listen`. Default: a free port at the IP address of `address`, or
    /// `listen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_at: Option<SocketAddr>,
    /// The interface to capture on during a run, as in `--capture`: the evidence is then the traffic
    /// on the wire.
    #[serde(default)]
    pub capture: Option<String>,
    /// Outcomes that are known and expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<BaselineEntry>,
}

/// How the agent of a target is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AgentField {
    /// `host:port`.
    Address(String),
    /// A command and its arguments.
    Command(Vec<String>),
}

/// The `[sdp]` table of a target file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SdpTable {
    /// The start-up profile. Default `swapped`.
    pub start: SdpStart,
    /// Are the fields inside 32-bit words in reverse order, as in InfiniBand? Default false.
    pub mirrored: bool,
}

/// The `[portmap]` table of a target file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MapperTable {
    /// IPv4 address and port of a service that it maps. Required for the service `port-mapper`.
    pub service: Option<SocketAddr>,
    /// IPv4 address and port of a service that it does not map. Default: port 9 of the same address.
    pub unmapped: Option<SocketAddr>,
    /// The port mapper's IPv6 address, and an IPv6 service that it maps.
    pub v6: Option<[SocketAddr; 2]>,
}

/// The `[startup]` table of a target file. The defaults are those of the preset, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartupTable {
    /// Rev of the Request. Default 1.
    pub revision: Option<u8>,
    /// C of the Request. Default true.
    pub crc: Option<bool>,
    /// Makes the Request enhanced (RFC 6581): S=1 and revision 2.
    pub enhanced: Option<EnhancedTable>,
    /// Private data of the Request in hexadecimal, at most 512 octets.
    pub private_data: String,
    /// Pause in milliseconds between the Reply and the first FPDU, or the end of a connection without
    /// FPDUs. Default 20: some implementations do not process bytes that arrive directly after their
    /// own Reply until more bytes arrive, and some fail on a FIN there.
    pub settle_ms: Option<u32>,
}

/// The `[startup.enhanced]` table of a target file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnhancedTable {
    /// IRD of the Request, 0 to 16383. Default 1.
    pub ird: u16,
    /// ORD of the Request, 0 to 16383. Default 1.
    pub ord: u16,
    /// The ready-to-receive messages that the Request offers. If there are any, it requests the
    /// peer-to-peer model. Default none.
    pub rtr: Vec<RtrKind>,
}

impl Default for EnhancedTable {
    fn default() -> Self {
        EnhancedTable { ird: 1, ord: 1, rtr: Vec::new() }
    }
}

/// A ready-to-receive message of RFC 6581 section 9.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtrKind {
    /// A zero-length Send.
    Send,
    /// A zero-length RDMA Write.
    Write,
    /// A zero-length RDMA Read.
    Read,
}

impl EnhancedTable {
    /// The enhanced header of the Request.
    pub(super) fn words(&self) -> Option<Enhanced> {
        let fits = self.ird <= NOT_NEGOTIATED && self.ord <= NOT_NEGOTIATED;
        fits.then(|| Enhanced {
            peer_to_peer: !self.rtr.is_empty(),
            ird: self.ird,
            ord: self.ord,
            rtr_send: self.rtr.contains(&RtrKind::Send),
            rtr_write: self.rtr.contains(&RtrKind::Write),
            rtr_read: self.rtr.contains(&RtrKind::Read),
        })
    }
}

fn responder() -> Role {
    Role::Responder
}
