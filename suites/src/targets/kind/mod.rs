//! The kinds of targets: one file for each, and its line in [`KINDS`].
//!
//! | file | kind |
//! | --- | --- |
//! | `in_process` | weft's own endpoint on a virtual link |
//! | `loopback` | weft's own endpoint over loopback TCP |
//! | `tcp` | an implementation at a TCP address, or one that connects |
//! | `builtin` | what the first two share |
//! | `remote` | what an implementation under test may have on its host: an agent, commands |
//!
//! A kind reads its part of a target file into a [`Reach`], and a run opens that as a
//! [`Connector`], which gives each case a link.

mod builtin;
mod in_process;
mod loopback;
mod remote;
mod tcp;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

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
const KINDS: [&Kind; 3] = [&in_process::KIND, &loopback::KIND, &tcp::KIND];
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
    /// Its name in target files.
    pub(crate) name: &'static str,
    /// Its description in the schema of target files.
    pub(crate) about: &'static str,
    /// Reads its part of a target file. The error is the fault, without the file's name.
    pub(crate) read: fn(&TargetFile) -> Result<Facts, String>,
}

/// What a target file means by its kind.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) reach: Arc<dyn Reach>,
    /// The service, if the file names none.
    pub(crate) service: Service,
    /// Octets of rping's data buffer, if the file has no `rping_size`.
    pub(crate) rping_size: u32,
    pub(crate) mapper: MapperFacts,
}

/// A way to reach a target.
pub(crate) trait Reach: Debug + Send + Sync {
    /// The way, for reports.
    fn description(&self, target: &Description) -> String;

    /// weft's own endpoint; `None` for an implementation under test.
    fn builtin(&self) -> Option<&Builtin> {
        None
    }

    /// The host of an implementation under test; `None` for weft's own endpoint.
    fn remote(&self) -> Option<&Remote> {
        None
    }

    /// The same endpoint with one more deviation; `None` if it is not weft's own.
    fn with_deviation(&self, deviation: &'static Deviation) -> Option<Arc<dyn Reach>> {
        let _ = deviation;
        None
    }

    /// Does this service run on it, besides the one that its description names?
    fn offers(&self, service: Service, target: &Description) -> bool;

    /// Does its port mapper map over IPv6? For a client of a port mapper: does it send its requests
    /// over IPv6?
    fn maps_v6(&self, target: &Description) -> bool;

    /// The commands that a run executes on this machine: the field of the target file, and the
    /// command line.
    fn commands(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Starts weft's own endpoint; resolves the address of any other. Sends nothing to it.
    fn open<'t>(&'t self, target: &'t Target) -> Opening<'t>;
}

/// The future of [`Reach::open`].
pub(crate) type Opening<'t> = Pin<Box<dyn Future<Output = Result<Box<dyn Connector>, OpenError>> + Send + 't>>;

/// An open target.
pub(crate) trait Connector: Send + Sync {
    /// The number of cases that may run at the same time; `requested` is 0 if the user did not
    /// choose. Cases do not disturb each other on weft's own endpoint.
    fn jobs(&self, requested: usize) -> usize;

    /// A new link for one case; its clock starts now.
    ///
    /// # Errors
    /// The endpoint has no RNIC; no port is free.
    fn link(&self, target: &Target) -> Result<Reached, OpenError>;
}

/// The link of one case.
pub(crate) struct Reached {
    pub(crate) link: Link,
    /// What makes an initiator connect; `None` for a responder.
    pub(crate) start: Option<Start>,
    /// The agent, if it is in this process.
    pub(crate) agent: Option<Agent>,
}

/// The name of a kind in a target file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct KindName(&'static str);

impl KindName {
    /// The row of the table.
    pub(crate) fn kind(self) -> &'static Kind {
        KINDS.into_iter().find(|kind| kind.name == self.0).unwrap_or(&tcp::KIND)
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
