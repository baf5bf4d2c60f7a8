//! weft's own endpoint in this process, on a virtual link with a virtual clock.

use std::sync::Arc;

use weft_agent::soft::SoftDevice;
use weft_peer::Settings;
use weft_peer::driver::{Link, VirtualLink};
use weft_peer::hostile::Deviation;

use super::super::open_error::OpenError;
use super::super::{Description, Service, Start, Target};
use super::{Builtin, CaseLink, Connector, Kind, Opening, TargetAccess, builtin};
use crate::agent::Agent;
use crate::model::Role;

pub(super) const KIND: Kind = Kind {
    name: "builtin",
    about: "weft's own responder inside the weft process, with a virtual clock.",
    read: |file| builtin::read(file, InProcess::default()),
};

/// weft's own endpoint in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct InProcess(pub(crate) Builtin);

impl TargetAccess for InProcess {
    fn description(&self, _: &Description) -> String {
        "in process, virtual clock".into()
    }

    fn builtin(&self) -> Option<&Builtin> {
        Some(&self.0)
    }

    fn has_virtual_clock(&self) -> bool {
        true
    }

    fn segments_advice(&self) -> Option<&'static str> {
        None
    }

    fn with_deviation(&self, deviation: &'static Deviation) -> Option<Arc<dyn TargetAccess>> {
        Some(Arc::new(InProcess(self.0.with_deviation(deviation))))
    }

    fn offers(&self, service: Service, _: &Description) -> bool {
        service != Service::None
    }

    fn maps_v6(&self, target: &Description) -> bool {
        target.mapper.v6.is_some()
    }

    fn open<'t>(&'t self, target: &'t Target) -> Opening<'t> {
        let settings = self.0.settings();
        // Each link creates an RNIC. Create one now, to report an error early.
        let tried = match target.role() {
            Role::Initiator => VirtualLink::rping_client(settings.clone()).map(drop),
            Role::Responder | Role::Both => VirtualLink::rping(settings.clone()).map(drop),
        };
        let opened = tried.map(|()| Box::new(VirtualConnector(settings)) as Box<dyn Connector>);
        Box::pin(std::future::ready(opened.map_err(OpenError::from)))
    }
}

/// Creates an endpoint with these settings for each case.
struct VirtualConnector(Settings);

impl Connector for VirtualConnector {
    fn jobs(&self, requested: usize) -> usize {
        requested.max(1)
    }

    fn link(&self, target: &Target) -> Result<CaseLink, OpenError> {
        let settings = Builtin::for_case(&self.0, target);
        let start = (target.role() == Role::Initiator).then_some(Start::Virtual);
        if target.service() == Service::Agent {
            let deviations = settings.deviations.clone();
            let soft = SoftDevice::new(settings)?;
            let nic = soft.clone();
            let link = VirtualLink::serving(move |now| nic.accept_stream(now)).deviating(&deviations);
            return Ok(CaseLink { link: Link::Virtual(link), start, agent: Some(Agent::Soft(soft)) });
        }
        let service = target.service().driver();
        let link = match start {
            Some(_) => service.initiator(settings)?,
            None => service.responder(settings)?,
        };
        Ok(CaseLink { link: Link::Virtual(link), start, agent: None })
    }
}
