//! The fields of a target file. The JSON schema (`schema/target.json`) is generated from them.
//! [`super::Target::from_toml`] checks that the fields are consistent.
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

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::wire::mpa::startup::{Enhanced, NOT_NEGOTIATED};

use super::{DriverCommand, KindName, MarkerDirections, Service};
use crate::baseline::BaselineEntry;
use crate::model::{Capability, Labels, Role};
use crate::targets::SdpStart;

/// The fields of a target file. Other fields are rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetFile {
    /// Name of the target in reports: letters, digits, `.`, `_` and `-`. The name must not begin
    /// with `.`.
    pub name: String,
    /// How the tester reaches the target.
    pub kind: KindName,
    /// Defaults for a known implementation: `siw`, `cxgb4`, `irdma`, `qedr`.
    #[serde(default)]
    pub preset: Option<String>,
    /// Address of the target as `host:port`. This field is required for a responder of kind `tcp`,
    /// and rejected for other targets. For the service `port-mapper`, the port is a UDP port.
    #[serde(default)]
    pub address: Option<String>,
    /// Role of the target: `responder` or `initiator`. Default `responder`. If a target can play
    /// both roles, write a file for each role.
    #[serde(default = "responder")]
    pub role: Role,
    /// Address on this machine that an initiator of kind `tcp` connects to. If the port is 0, weft
    /// chooses a free port. For the service `port-mapper`, this is the UDP address that receives
    /// the target's requests. The target then connects to TCP ports of the same IP address.
    #[serde(default)]
    pub listen: Option<String>,
    /// A command with its arguments that starts an initiator. weft runs the command on this
    /// machine, without a shell, for each connection. weft replaces `{address}` and `{port}` by the
    /// address to connect to, and `{mapper_address}` and `{mapper_port}` by the address of the port
    /// mapper. The initiator must connect within 30 s times `time_scale`. When the case ends, weft
    /// kills the command. Without `start`, weft prints the address for each connection, and waits
    /// 300 s times `time_scale` for a person to start the initiator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    /// The service that runs on the target. Default: `echo` for the builtin targets, `none`
    /// otherwise.
    #[serde(default)]
    pub service: Option<Service>,
    /// Capabilities beyond those that every implementation must have. Default: the capabilities of
    /// the preset. Without a preset, a run probes a responder of kind `tcp` to find them out, and
    /// another target has none.
    #[serde(default)]
    pub capabilities: Option<Vec<Capability>>,
    /// Factor for all time limits of the tester, 0.1 to 1000. Use a factor above 1 for a slow
    /// target. Default: the factor of the preset, or 1 without a preset.
    #[serde(default)]
    pub time_scale: Option<f64>,
    /// Limits of each case, in place of the limits of the tier.
    #[serde(default)]
    pub limits: LimitsTable,
    /// Names of deviations: deliberate faults of a builtin target.
    #[serde(default)]
    pub deviations: Vec<String>,
    /// Size in bytes of the data buffer of `rping -s` (its option `-S`), 64 to 65535. Default for
    /// kind `tcp`: 64, the default of rping.
    #[serde(default)]
    pub rping_size: Option<u32>,
    /// How the tester starts a connection: fields of its MPA Request, and a pause after the Reply.
    #[serde(default)]
    pub startup: StartupTable,
    /// For an SDP service: how SDP connections start.
    #[serde(default)]
    pub sdp: SdpTable,
    /// For the service `port-mapper`: the services that the target maps.
    #[serde(default)]
    pub portmap: MapperTable,
    /// A command with its arguments that restarts a dead target. weft runs the command on this
    /// machine, without a shell, if a case did not pass and the good exchange after the case fails.
    /// The good exchange is a correct exchange with the target's service. The time limit of the
    /// command is 120 s times `time_scale`. Exit status 0 means that the target is available again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart: Vec<String>,
    /// A command with its arguments that checks whether the target has crashed. For example, it
    /// reads the target's console. weft runs the command on this machine, without a shell, if a
    /// case timed out and the target's host does not answer. Exit status 0 means that the target
    /// has crashed. With another status, weft assumes that the link is lost, and the case is
    /// inconclusive. The time limit of the command is 10 s times `time_scale`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashed: Vec<String>,
    /// The `weft agent` on the NIC's host. Cases use it to call the NIC's verbs. The value is
    /// `"host:port"`, or a command with its arguments, for example `["ssh", "nic", "weft", "agent",
    /// "--stdio"]`. The command speaks the agent's protocol on standard input and output. weft runs
    /// the command on this machine, without a shell. In cases that use the agent, the tester
    /// connects to the IP address of `address`, or the agent connects to the IP address of
    /// `listen`. Only for kind `tcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentField>,
    /// The token that the agent was started with. Default: the environment variable
    /// `WEFT_AGENT_TOKEN`, if `WEFT_AGENT_TOKEN_FOR` names the agent's host. Without
    /// `WEFT_AGENT_TOKEN_FOR`, the default is only for an agent on this machine. If `agent` is a
    /// command, there is no default token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_token: Option<String>,
    /// Address that the agent listens on or connects to. Set this field only if this address
    /// differs from `address` or `listen`, for example because of address translation. Default: a
    /// free port at the IP address of `address` or `listen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_at: Option<SocketAddr>,
    /// The tester's own TCP, with which the tester chooses its TCP segments. Only for a responder of
    /// kind `tcp`, without the service `port-mapper`. Default: the TCP of the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireTable>,
    /// Network interface to capture on during a run, as with `--capture`. The evidence then shows
    /// the traffic on the wire.
    #[serde(default)]
    pub capture: Option<String>,
    /// Facts about the target that weft cannot find out, for reports: for example
    /// `firmware = "2.1"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub identity: BTreeMap<String, String>,
    /// Labels of the runs against this target, for reports and filters: for example `lab = "3"`.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Outcomes that are known and expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<BaselineEntry>,
}

/// The `[wire]` table of a target file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WireTable {
    /// Ethernet interface of this machine in the network of the target, for example `eth1`. To open
    /// it, weft needs root or `CAP_NET_RAW`.
    pub interface: String,
    /// IP address of the tester with the prefix length of its subnet, for example `192.0.2.9/24`. No
    /// host may use this address, not even this machine.
    pub address: String,
    /// IP address of the gateway to the target. Required if the target is in another subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
}

/// How weft reaches the agent of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AgentField {
    /// The agent's address as `host:port`.
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
    /// Whether the fields inside each 32-bit word are in reverse order, as in InfiniBand. Default
    /// false.
    pub mirrored: bool,
    /// MSeq of the first message after Hello and HelloAck, 0 or 1. Section 6.1.5 of
    /// draft-pinkerton-iwarp-sdp-01 can mean 0 or 1. Default 1.
    pub first_mseq: Option<u32>,
    /// The commands that a driven socket executes (docs/sdp-driver.md). A case that needs another
    /// command does not judge the target. Default: all commands.
    pub commands: Option<Vec<DriverCommand>>,
}

/// The `[limits]` table of a target file: limits of each case. A field that is not set has the
/// limit of the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    /// Maximum number of steps that a transcript keeps, 100 to 1000000. A note replaces further
    /// steps in the middle.
    pub steps: Option<u32>,
    /// Maximum amount that a case sends, 1 to 1023 MiB.
    pub sent_mib: Option<u32>,
    /// Maximum amount that a case receives, 1 to 1023 MiB.
    pub received_mib: Option<u32>,
    /// Maximum amount of traffic that the capture of a case keeps, 1 to 1023 MiB. Of further
    /// traffic in the middle, the evidence has only the number of bytes and their CRC32c.
    pub evidence_mib: Option<u32>,
    /// Time limit of a case in seconds, 1 to 86400. If `time_scale` is above 1, it is a factor for
    /// this time limit.
    pub seconds: Option<u32>,
}

impl LimitsTable {
    /// Returns the first value that is out of range, as an error message.
    pub(super) fn fault(&self) -> Option<String> {
        // A gap of a capture must be smaller than the largest TCP window, which is 1024 MiB.
        // Otherwise readers of the capture cannot interpret the sequence numbers after the gap.
        let ranges: [(&str, Option<u32>, u32, u32); 5] = [
            ("steps", self.steps, 100, 1_000_000),
            ("sent_mib", self.sent_mib, 1, 1023),
            ("received_mib", self.received_mib, 1, 1023),
            ("evidence_mib", self.evidence_mib, 1, 1023),
            ("seconds", self.seconds, 1, 86_400),
        ];
        ranges.into_iter().find_map(|(name, value, least, most)| {
            let value = value.filter(|value| !(least..=most).contains(value))?;
            Some(format!("limits.{name} = {value}: expected {least} to {most}"))
        })
    }
}

/// The `[portmap]` table of a target file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MapperTable {
    /// IPv4 address and port of a service that the target maps. Required for a responder with the
    /// service `port-mapper`.
    pub service: Option<SocketAddr>,
    /// IPv4 address and port of a service that the target does not map. Default: port 9 of the IP
    /// address in `service`.
    pub unmapped: Option<SocketAddr>,
    /// Two addresses: the port mapper's IPv6 address, and the address of an IPv6 service that the
    /// port mapper maps.
    pub v6: Option<[SocketAddr; 2]>,
}

/// The `[startup]` table of a target file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartupTable {
    /// Revision field of the MPA Request. Default 1.
    pub revision: Option<u8>,
    /// C flag of the MPA Request, which requests CRCs. Default true.
    pub crc: Option<bool>,
    /// Runs all cases with markers in these directions. `from-target` requires the capability
    /// `markers`, and `to-target` requires the capability `asks-for-markers`.
    pub markers: Option<MarkerDirections>,
    /// Makes the MPA Request enhanced (RFC 6581), with S=1. Requires `revision = 2`.
    pub enhanced: Option<EnhancedTable>,
    /// Private data of the MPA Request in hexadecimal, at most 512 bytes. Some presets allow only
    /// 256 bytes. For an enhanced Request, the limit is 4 bytes lower.
    pub private_data: String,
    /// Pause in milliseconds after the Reply. Then the tester sends its first FPDU, or closes a
    /// connection without FPDUs. Default: the pause of the preset, or 20 without a preset. Some
    /// implementations need the pause: they do not process bytes that arrive directly after their
    /// own Reply, or they fail on a FIN at that time.
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
    /// Ready-to-receive messages that the Request offers. If the list is not empty, the Request
    /// requests the peer-to-peer model. Default: empty.
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
    /// Returns the enhanced header of the Request, or `None` if IRD or ORD is above 16383.
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
