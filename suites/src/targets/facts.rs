//! The facts that probes found out about a target. A run uses them if the target file has no
//! capabilities.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::description::SdpFacts;
use super::{DiscoverError, Probe, Service, Target, discover};
use crate::correct::StartupFields;
use crate::model::{Capability, EventSink, Role};
use crate::stage::service::Protocol;

/// What probes found out about a responder.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The service. `None` if weft does not know the program on the target.
    pub(crate) service: Option<Service>,
    /// The capabilities that the answers of the target show.
    pub(crate) shown: BTreeSet<Capability>,
    /// A Request that the target accepts, if it rejects the Request of its target file.
    pub(crate) request: Option<StartupFields>,
    /// Size in bytes of rping's buffer, if it is not the usual size.
    pub(crate) rping_size: Option<u32>,
    pub(crate) speaks_sdp: bool,
    pub(crate) sdp: SdpFacts,
    /// The results of the probes.
    pub probes: Vec<Probe>,
}

impl Facts {
    /// Returns the capabilities of the target. The list always has CRCs, because every MPA
    /// implementation must support them (MPA-4.4-1). A target with SDP needs no capabilities.
    pub(crate) fn capabilities(&self) -> Vec<Capability> {
        if self.speaks_sdp {
            return Vec::new();
        }
        let mut capabilities = self.shown.clone();
        capabilities.insert(Capability::Crc);
        capabilities.into_iter().collect()
    }

    /// Returns what the target did in a probe.
    pub(crate) fn answer(&self, what: &str) -> Option<&str> {
        self.probes.iter().find(|probe| probe.what == what).map(|probe| probe.text.as_str())
    }

    /// Returns whether weft knows the program on the target.
    #[must_use]
    pub fn has_known_service(&self) -> bool {
        self.service.is_some_and(|service| service != Service::None)
    }
}

/// Describes the capabilities and the service in one line.
impl std::fmt::Display for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let capabilities: Vec<String> = self.capabilities().iter().map(ToString::to_string).collect();
        match capabilities.is_empty() {
            true => f.write_str("SDP")?,
            false => f.write_str(&capabilities.join(", "))?,
        }
        match self.service.filter(|_| self.has_known_service()) {
            Some(service) => write!(f, "; service {}", service.as_str()),
            None => f.write_str("; no service that weft knows"),
        }
    }
}

impl Target {
    /// Returns the same target with the facts that probes find out, if its target file has no
    /// capabilities. A builtin target, an initiator, an SDP socket and a port mapper are never
    /// probed. If the target is down, returns it unchanged, and the run reports that it is down.
    pub async fn complete(mut self, sink: Arc<dyn EventSink>) -> Self {
        let is_lacking = self.options.unstated.capabilities
            && self.remote().is_some()
            && self.role() == Role::Responder
            && self.service().driver().facts().protocol == Protocol::Iwarp;
        if is_lacking {
            match discover(&self, sink).await {
                Ok(facts) => self.apply(&facts),
                Err(DiscoverError::Open(_) | DiscoverError::Down(_)) => {}
                Err(error) => self.options.probed = Some(format!("nothing, because {error}")),
            }
        }
        self
    }

    /// Adds facts to the description. Fields of the target file stay.
    fn apply(&mut self, facts: &Facts) {
        self.options.probed = Some(facts.to_string());
        let description = &mut self.description;
        description.capabilities = facts.capabilities();
        if self.options.unstated.service {
            description.service = facts.service.unwrap_or(Service::None);
            description.sdp = if facts.speaks_sdp { facts.sdp } else { description.sdp };
            description.rping_size = facts.rping_size.unwrap_or(description.rping_size);
        }
        if self.options.unstated.request
            && let Some(request) = &facts.request
        {
            description.request = request.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(more: &str) -> Target {
        Target::from_toml("t.toml", &format!("name = \"t\"\nkind = \"tcp\"\naddress = \"192.0.2.7:1\"\n{more}"))
            .unwrap()
    }

    fn echo() -> Facts {
        let shown = [Capability::Revision2, Capability::Markers].into();
        Facts { service: Some(Service::Echo), shown, ..Facts::default() }
    }

    #[test]
    fn crc_is_always_a_capability() {
        assert_eq!(echo().to_string(), "crc, markers, revision-2; service echo");
        assert_eq!(Facts::default().to_string(), "crc; no service that weft knows");
    }

    #[test]
    fn facts_do_not_replace_fields_of_the_file() {
        let revision = |facts: &Facts, more: &str| {
            let mut target = target(more);
            target.apply(facts);
            (target.service(), target.description.request.revision)
        };
        let enhanced = StartupFields { revision: 2, ..StartupFields::REQUEST };
        let facts = Facts { request: Some(enhanced), ..echo() };
        assert_eq!(revision(&facts, ""), (Service::Echo, 2));
        assert_eq!(revision(&facts, "service = \"none\"\n[startup]\nrevision = 1\n"), (Service::None, 1));
    }

    #[tokio::test]
    async fn a_target_with_capabilities_or_another_protocol_is_not_probed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        for more in ["capabilities = []\n", "preset = \"siw\"\n", "service = \"sdp-echo\"\n"] {
            let text = format!("name = \"t\"\nkind = \"tcp\"\naddress = \"{address}\"\n{more}");
            let target = Target::from_toml("t.toml", &text).unwrap();
            let completed = target.clone().complete(Arc::new(|_: &crate::model::Event| {})).await;
            assert_eq!(completed.info(), target.info(), "{more}");
        }
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}
