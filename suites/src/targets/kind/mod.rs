//! The kinds of targets. Each kind has a file, and an entry in [`KINDS`].
//!
//! | file | kind |
//! | --- | --- |
//! | `in_process` | weft's own endpoint on a virtual link |
//! | `loopback` | weft's own endpoint over loopback TCP |
//! | `tcp` | an implementation at a TCP address, or an implementation that connects |
//! | `builtin` | shared code of `in_process` and `loopback` |
//! | `remote` | the agent and the commands of an implementation under test |
//!
//! A kind reads its part of a target file into a [`TargetAccess`]. A run opens the [`TargetAccess`]
//! as a [`Connector`], which creates a link for each case.

mod builtin;
mod in_process;
mod loopback;
mod remote;
mod tcp;

use std::fmt::Debug;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use weft_peer::driver::Link;
use weft_peer::hostile::Deviation;

pub(crate) use builtin::{Builtin, sdp_link};
pub(crate) use in_process::InProcess;
pub(crate) use loopback::{LOOPBACK, Loopback};
pub(crate) use remote::Remote;

use super::description::MapperFacts;
use super::open_error::OpenError;
use super::{Description, Service, Start, Target, TargetFile};
use crate::agent::Agent;

/// All kinds, in the order of the documentation.
const KINDS: &[&Kind] = &[&in_process::KIND, &loopback::KIND, &tcp::KIND];
const NAMES: [&str; KINDS.len()] = {
    let mut names = [""; KINDS.len()];
    let mut n = 0;
    while n < names.len() {
        names[n] = KINDS[n].name;
        n += 1;
    }
    names
};

/// A kind of target.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Name of the kind in target files.
    pub(crate) name: &'static str,
    /// Description of the kind in the schema of target files.
    pub(crate) about: &'static str,
    /// Reads the fields of this kind from a target file. The error text names the fault, but not
    /// the file.
    pub(crate) read: fn(&TargetFile) -> Result<KindSettings, String>,
}

/// Result of reading the fields of a kind.
#[derive(Debug)]
pub(crate) struct KindSettings {
    pub(crate) access: Arc<dyn TargetAccess>,
    /// The service, if the file does not name a service.
    pub(crate) service: Service,
    /// Size in bytes of rping's data buffer, if the file has no `rping_size`.
    pub(crate) rping_size: u32,
    pub(crate) mapper: MapperFacts,
}

/// A way to reach a target.
pub(crate) trait TargetAccess: Debug + Send + Sync {
    /// Describes, for reports, how the tester reaches the target.
    fn description(&self, target: &Description) -> String;

    /// weft's own endpoint. `None` for an implementation under test.
    fn builtin(&self) -> Option<&Builtin> {
        None
    }

    /// The host of an implementation under test. `None` for weft's own endpoint.
    fn remote(&self) -> Option<&Remote> {
        None
    }

    /// Returns whether the target's TCP connections stay on this machine.
    fn is_on_this_machine(&self) -> bool {
        true
    }

    /// Returns a sentence for the user: what to change so that the tester chooses its TCP segments.
    /// Returns `None` if the tester already chooses them.
    fn segments_advice(&self) -> Option<&'static str>;

    /// Returns a link on which weft checks whether the target's host answers. Returns `None` if the
    /// TCP of the operating system reaches the host.
    fn host_link(&self, address: SocketAddr, within: Duration) -> Option<Link> {
        let _ = (address, within);
        None
    }

    /// Returns whether waiting takes no wall time.
    fn has_virtual_clock(&self) -> bool {
        false
    }

    /// Returns the same endpoint with one more deviation. `None` if the endpoint is not weft's own.
    fn with_deviation(&self, deviation: &'static Deviation) -> Option<Arc<dyn TargetAccess>> {
        let _ = deviation;
        None
    }

    /// Returns whether this service also runs on the target, besides the service in its
    /// description.
    fn offers(&self, service: Service, target: &Description) -> bool;

    /// Returns whether the target's port mapper maps services over IPv6. For a client of a port
    /// mapper, returns whether the client sends its requests over IPv6.
    fn maps_v6(&self, target: &Description) -> bool;

    /// Returns the commands that a run executes on this machine. Each entry has the name of the
    /// field in the target file, and the command line.
    fn commands(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Starts weft's own endpoint, or resolves the address of another target. Sends nothing to the
    /// target.
    fn open<'t>(&'t self, target: &'t Target) -> Opening<'t>;
}

/// The future of [`TargetAccess::open`].
pub(crate) type Opening<'t> = Pin<Box<dyn Future<Output = Result<Box<dyn Connector>, OpenError>> + Send + 't>>;

/// An open target.
pub(crate) trait Connector: Send + Sync {
    /// Returns the number of cases that may run at the same time. `requested` is 0 if the user did
    /// not choose a number. Cases do not disturb each other on weft's own endpoint. On another
    /// target, several cases would disturb each other.
    fn jobs(&self, _requested: usize) -> usize {
        1
    }

    /// Creates a link for one case. The link's clock starts now.
    ///
    /// # Errors
    /// The RNIC of the endpoint cannot be opened, or no port is free.
    fn link(&self, target: &Target) -> Result<CaseLink, OpenError>;
}

/// The link of one case.
pub(crate) struct CaseLink {
    pub(crate) link: Link,
    /// Method to make an initiator connect. `None` for a responder.
    pub(crate) start: Option<Start>,
    /// The agent, if it is in this process.
    pub(crate) agent: Option<Agent>,
}

/// The name of a kind in a target file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct KindName(&'static str);

impl KindName {
    /// Returns the kind of this name.
    pub(crate) fn kind(self) -> &'static Kind {
        KINDS.iter().copied().find(|kind| kind.name == self.0).unwrap_or(&tcp::KIND)
    }
}

impl<'de> Deserialize<'de> for KindName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = NAMES.into_iter().find(|known| *known == name);
        known.map(KindName).ok_or_else(|| serde::de::Error::unknown_variant(&name, &NAMES))
    }
}

impl JsonSchema for KindName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TargetKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let one_of =
            |kind: &&Kind| serde_json::json!({"description": kind.about, "type": "string", "const": kind.name});
        let kinds: Vec<_> = KINDS.iter().map(one_of).collect();
        schemars::json_schema!({"description": "How a target is reached.", "oneOf": kinds})
    }
}
