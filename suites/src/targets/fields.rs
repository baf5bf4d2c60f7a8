//! The fields of a target file, as its schema (`schema/target.json`) has them. Whether they make
//! sense together is found out where a file is read ([`super::Target::from_toml`]).
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

/// The fields of a target file. A field that is not listed here is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetFile {
    /// A name for reports, of letters, digits, `.`, `_` and `-`; it does not begin with `.`.
    pub name: String,
    /// How it is reached.
    pub kind: KindName,
    /// Defaults for what is known about an implementation: `siw`, `cxgb4`, `irdma`, `qedr`.
    #[serde(default)]
    pub preset: Option<String>,
    /// `host:port`; needed by a responder of kind `tcp`, refused otherwise.
    #[serde(default)]
    pub address: Option<String>,
    /// The role that it plays: `responder` or `initiator`. Default `responder`. What plays both has
    /// a file for each.
    #[serde(default = "responder")]
    pub role: Role,
    /// Where an initiator of kind `tcp` connects to: an address of this machine and a port, 0 for a
    /// free one. With the service `port-mapper` the UDP port where it asks; what it connects to
    /// then are TCP ports of the same address.
    #[serde(default)]
    pub listen: Option<String>,
    /// A command and its arguments, run here without a shell each time that an initiator shall
    /// connect; `{address}` and `{port}` in them stand for where, `{mapper_address}` and
    /// `{mapper_port}` for the port mapper that it asks. It has 30 s times `time_scale` to connect,
    /// and is ended with its case. Without it, the run says each time what is to be started, and
    /// waits 300 s times `time_scale`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    /// What runs on it. Default: `echo` for the builtin targets, `none` otherwise.
    #[serde(default)]
    pub service: Option<Service>,
    /// What it can do beyond what every implementation must.
    #[serde(default)]
    pub capabilities: Option<Vec<Capability>>,
    /// Factor on every time that the tester waits, 0.1 to 1000; above 1 for a slow target. Default 1.
    #[serde(default)]
    pub time_scale: Option<f64>,
    /// Deviations of a builtin target, by name.
    #[serde(default)]
    pub deviations: Vec<String>,
    /// Octets that `rping -s` was given with `-S`, 64 to 65535. Default 64, as rping's.
    #[serde(default)]
    pub rping_size: Option<u32>,
    /// How the tester starts a connection that the target accepts.
    #[serde(default)]
    pub startup: StartupTable,
    /// How SDP connections are started, where its service is one of SDP's.
    #[serde(default)]
    pub sdp: SdpTable,
    /// What its port mapper maps, where that is its service.
    #[serde(default)]
    pub portmap: MapperTable,
    /// A command and its arguments, run here without a shell, that brings a dead target back: after
    /// a case that did not pass, when the target does no good exchange any more. It has 120 s times
    /// `time_scale`; status 0 says that the target is there again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart: Vec<String>,
    /// A command and its arguments, run here without a shell, when a case waited in vain and the
    /// target's host does not answer: status 0 says that the target has crashed, as its console may
    /// show. Otherwise the link to it counts as lost, and the case is inconclusive. It has 10 s
    /// times `time_scale`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashed: Vec<String>,
    /// What drives the NIC's verbs for cases that need that, `weft agent` on its host:
    /// `"host:port"`, or a command and its arguments, run here without a shell, that speaks its
    /// protocol on standard input and output, as `["ssh", "nic", "weft", "agent", "--stdio"]`. Such
    /// cases connect to, or from, the IP address of `address`, or of `listen`. For kind `tcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentField>,
    /// What the agent was started with as its token. Default: the environment's `WEFT_AGENT_TOKEN`,
    /// for an agent of this machine or of the host that `WEFT_AGENT_TOKEN_FOR` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_token: Option<String>,
    /// Where the agent listens, or connects to, when its host knows the place of `address`, or of
    /// `listen`, by another name: behind address translation. Default: a port of its own at the IP
    /// address of `address`; `listen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_at: Option<SocketAddr>,
    /// An interface to capture on while a run lasts, as `--capture` says it: the evidence is what
    /// was on the wire there.
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
    /// Are the fields of its words mirrored, as InfiniBand has them? Default false.
    pub mirrored: bool,
}

/// The `[portmap]` table of a target file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MapperTable {
    /// IPv4 address and port of a service that it maps. Needed where its service is `port-mapper`.
    pub service: Option<SocketAddr>,
    /// IPv4 address and port of one that it does not map. Default: port 9 of the same address.
    pub unmapped: Option<SocketAddr>,
    /// The port mapper's address over IPv6, and a service of that family that it maps.
    pub v6: Option<[SocketAddr; 2]>,
}

/// The `[startup]` table of a target file. Defaults are the preset's, where there is one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartupTable {
    /// Rev of the Request. Default 1.
    pub revision: Option<u8>,
    /// C of the Request. Default true.
    pub crc: Option<bool>,
    /// With it the Request is enhanced (RFC 6581): S=1 and revision 2.
    pub enhanced: Option<EnhancedTable>,
    /// Private data of the Request in hexadecimal, at most 512 octets.
    pub private_data: String,
    /// Pause between the Reply and the first FPDU, in milliseconds, or an end that tries nothing.
    /// Default 20: some implementations lose octets that arrive right behind their own Reply until
    /// more arrive, and some do not bear an end there.
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
    /// The ready-to-receive messages that are offered. With any, the Request is for the peer-to-peer
    /// model. Default none.
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
    /// The words of the Request.
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
