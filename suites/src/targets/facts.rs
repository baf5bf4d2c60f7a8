//! The facts that probes found out about a target. A run uses them if the target file has no
//! capabilities. The run stores them, so that it can be resumed or repeated without new probes, and
//! so that a later run notices what the target lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use weft_core::wire::mpa::Startup;
use weft_core::wire::sdp::FieldOrder;

use super::description::SdpFacts;
use super::file::hexadecimal;
use super::{DiscoverError, Probe, Service, Target, discover};
use crate::correct::{StartupFields, startup};
use crate::model::{Capability, EventSink, Octets, ProbedFacts, ProbedSdp, Role, TargetInfo};
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

    /// Returns the facts as a run stores them.
    pub(crate) fn stored(&self) -> ProbedFacts {
        let request = self.request.as_ref().map(|request| {
            let public = StartupFields { private_data: Vec::new(), ..request.clone() };
            Octets::new(&startup(&public)).hex
        });
        let SdpFacts { start, order, first_mseq } = self.sdp;
        let sdp = ProbedSdp { start, mirrored: order == FieldOrder::Mirrored, first_mseq };
        ProbedFacts {
            capabilities: self.capabilities(),
            service: self.service,
            request,
            rping_size: self.rping_size,
            sdp: self.speaks_sdp.then_some(sdp),
        }
    }

    /// Returns the facts that a run stored. The results of the probes are not stored.
    fn of_stored(stored: &ProbedFacts) -> Self {
        let sdp = stored.sdp.map(|ProbedSdp { start, mirrored, first_mseq }| {
            let order = if mirrored { FieldOrder::Mirrored } else { FieldOrder::Figure };
            SdpFacts { start, order, first_mseq }
        });
        Facts {
            service: stored.service,
            shown: stored.capabilities.iter().copied().collect(),
            request: stored.request.as_deref().and_then(request_of),
            rping_size: stored.rping_size,
            speaks_sdp: sdp.is_some(),
            sdp: sdp.unwrap_or_default(),
            probes: Vec::new(),
        }
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

/// Returns the fields of a stored MPA Request.
fn request_of(digits: &str) -> Option<StartupFields> {
    let octets = hexadecimal(digits)?;
    let Startup { markers, crc, revision, enhanced, .. } = Startup::parse(&octets).ok()?;
    Some(StartupFields { revision, crc, markers, enhanced, ..StartupFields::REQUEST })
}

/// Returns the capabilities in the facts. The service of the target is one of them.
fn all_capabilities(facts: &ProbedFacts) -> BTreeSet<Capability> {
    let of_service = facts.service.and_then(|service| service.driver().facts().capability);
    facts.capabilities.iter().copied().chain(of_service).collect()
}

impl Target {
    /// Returns whether a run has to find out the capabilities of this target, because its target
    /// file has none. A builtin target, an initiator, an SDP socket and a port mapper are never
    /// probed.
    #[must_use]
    pub fn lacks_capabilities(&self) -> bool {
        self.options.unstated.capabilities
            && self.remote().is_some()
            && self.role() == Role::Responder
            && self.service().driver().facts().protocol == Protocol::Iwarp
    }

    /// Returns the same target for a run that resumes or repeats an earlier run. `earlier` is the
    /// target of the earlier run. If this target [lacks capabilities](Self::lacks_capabilities), it
    /// gets those that the earlier run used. It is probed only if the earlier run did not store the
    /// results of its probes.
    pub async fn complete_like(mut self, earlier: &TargetInfo, sink: Arc<dyn EventSink>) -> Self {
        if !self.lacks_capabilities() {
            return self;
        }
        if let Some(stored) = &earlier.probed_facts {
            self.apply(&Facts::of_stored(stored));
        } else if earlier.capabilities == self.capabilities() && earlier.service == self.service().as_str() {
            // The target was down, or the probes found out nothing.
            self.options.probed.clone_from(&earlier.probed);
        } else {
            return self.complete(sink).await;
        }
        self.options.lost_capabilities = Some(earlier.lost_capabilities.clone());
        self
    }

    /// Returns the capabilities that the target had in an earlier run, or that it had already lost
    /// in that run, and that it does not have now. The service counts as a capability, unless the
    /// target file has the service. Empty if one of the two runs has no results of probes.
    pub(crate) fn lost_since(&self, earlier: &TargetInfo) -> Vec<Capability> {
        let (Some(before), Some(now)) = (&earlier.probed_facts, &self.options.probed_facts) else { return Vec::new() };
        let now = all_capabilities(now);
        let mut lost = all_capabilities(before);
        lost.extend(&earlier.lost_capabilities);
        let is_probed = |capability: &Capability| capability.is_declared() || self.options.unstated.service;
        lost.retain(|capability| is_probed(capability) && !now.contains(capability));
        lost.into_iter().collect()
    }

    /// Returns the same target with the facts that probes find out, if it [lacks
    /// capabilities](Self::lacks_capabilities). If the target is down, returns it unchanged, and
    /// the run reports that it is down.
    pub async fn complete(mut self, sink: Arc<dyn EventSink>) -> Self {
        if self.lacks_capabilities() {
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
        self.options.probed_facts = Some(facts.stored());
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
            // Only the target file has private data.
            let private_data = std::mem::take(&mut description.request.private_data);
            description.request = StartupFields { private_data, ..request.clone() };
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::wire::mpa::startup::Enhanced;

    use super::*;
    use crate::model::Event;
    use crate::targets::SdpStart;

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

    /// Returns the target of an earlier run, as a program reads it from a results store.
    fn earlier(target: &Target) -> TargetInfo {
        serde_json::from_str(&serde_json::to_string(&target.info()).unwrap()).unwrap()
    }

    /// No host has the address of these targets, so a probe would report that the target is down.
    #[tokio::test]
    async fn a_resumed_run_has_all_facts_of_its_probes() {
        let file = "[startup]\nprivate_data = \"07\"\n";
        let enhanced =
            Enhanced { peer_to_peer: true, ird: 1, ord: 1, rtr_write: true, rtr_read: true, ..Enhanced::default() };
        let request = StartupFields { revision: 2, crc: false, enhanced: Some(enhanced), ..StartupFields::REQUEST };
        let request = StartupFields { private_data: vec![7], ..request };
        let rping =
            Facts { service: Some(Service::Rping), request: Some(request.clone()), rping_size: Some(1000), ..echo() };
        let sdp = SdpFacts { start: SdpStart::PrivateData, order: FieldOrder::Mirrored, first_mseq: 0 };
        let sdp = Facts { service: Some(Service::SdpSink), speaks_sdp: true, sdp, ..Facts::default() };
        let described = |target: &Target| {
            let SdpFacts { start, order, first_mseq } = target.description.sdp;
            (target.description.request.clone(), target.rping_size(), start, order, first_mseq)
        };
        for facts in [echo(), rping, sdp] {
            let mut probed = target(file);
            probed.apply(&facts);
            let earlier = earlier(&probed);
            let resumed = target(file).complete_like(&earlier, Arc::new(|_: &Event| {})).await;
            assert_eq!(resumed.info(), earlier);
            assert_eq!(described(&resumed), described(&probed));
            let is_rping = resumed.service() == Service::Rping;
            assert_eq!(resumed.description.request == request, is_rping, "{:?}", resumed.description.request);
        }
    }

    #[tokio::test]
    async fn a_run_that_found_out_nothing_is_resumed_without_probes() {
        let mut silent = target("");
        silent.options.probed = Some("nothing, because it is silent".to_owned());
        for before in [target(""), silent] {
            let resumed = target("").complete_like(&earlier(&before), Arc::new(|_: &Event| {})).await;
            assert_eq!(resumed.info(), before.info());
        }
        // The file has capabilities now, so the facts of the earlier run do not count.
        let mut probed = target("");
        probed.apply(&echo());
        let declared = target("capabilities = [\"crc\"]\n");
        let resumed = declared.clone().complete_like(&earlier(&probed), Arc::new(|_: &Event| {})).await;
        assert_eq!(resumed.info(), declared.info());
    }

    #[test]
    fn a_capability_is_lost_until_it_is_back() {
        let with = |facts: &Facts, more: &str| {
            let mut target = target(more);
            target.apply(facts);
            target
        };
        let before = earlier(&with(&echo(), ""));
        let less = Facts { service: None, shown: [Capability::Revision2].into(), ..Facts::default() };
        let lost = with(&less, "").lost_since(&before);
        assert_eq!(lost, [Capability::Echo, Capability::Markers]);
        assert_eq!(with(&less, "service = \"none\"\n").lost_since(&before), [Capability::Markers]);
        let next = TargetInfo { lost_capabilities: lost.clone(), ..earlier(&with(&less, "")) };
        assert_eq!(with(&less, "").lost_since(&next), lost);
        assert_eq!(with(&echo(), "").lost_since(&next), []);
        assert_eq!(target("").lost_since(&next), []);
    }

    #[tokio::test]
    async fn a_target_with_capabilities_or_another_protocol_is_not_probed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        for more in ["capabilities = []\n", "preset = \"siw\"\n", "service = \"sdp-echo\"\n"] {
            let text = format!("name = \"t\"\nkind = \"tcp\"\naddress = \"{address}\"\n{more}");
            let target = Target::from_toml("t.toml", &text).unwrap();
            let completed = target.clone().complete(Arc::new(|_: &Event| {})).await;
            assert_eq!(completed.info(), target.info(), "{more}");
        }
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}
