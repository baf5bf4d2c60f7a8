//! Describes a target: its name, its role, its service and its capabilities.
//! [`TargetAccess`](super::kind::TargetAccess) describes how the tester reaches the target.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weft_core::wire::sdp::FieldOrder;
use weft_peer::driver::VirtualLink;
use weft_peer::service::RpingServer;

use super::{DriverCommand, Service};
use crate::baseline::BaselineEntry;
use crate::correct::StartupFields;
use crate::model::{Capability, Role};
use crate::targets::SdpStart;

/// Port of a service that the builtin port mapper maps. `UNMAPPED` is the port of a service
/// that it does not map.
pub(crate) const MAPPED: u16 = 5001;
const UNMAPPED: u16 = 5999;
/// Port of a service that the builtin port mapper maps to a new port for each PMReq.
pub(crate) const MADE: u16 = 5002;

/// The description of a target, independent of the way to reach it.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) service: Service,
    pub(crate) capabilities: Vec<Capability>,
    /// Fields of an MPA Request that the target accepts.
    pub(crate) request: StartupFields,
    /// Size in bytes of the data buffer of `rping -s`.
    pub(crate) rping_size: u32,
    pub(crate) sdp: SdpFacts,
    /// The commands that a driven SDP socket executes. `None`: all commands.
    pub(crate) commands: Option<Vec<DriverCommand>>,
    pub(crate) mapper: MapperFacts,
    /// Outcomes that are known and expected.
    pub(crate) baseline: Vec<BaselineEntry>,
    /// Facts about the target, for reports.
    pub(crate) identity: BTreeMap<String, String>,
}

/// How a target speaks SDP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SdpFacts {
    /// Start-up profile of SDP connections.
    pub(crate) start: SdpStart,
    /// Order of the fields in SDP messages.
    pub(crate) order: FieldOrder,
    /// MSeq of the first message after Hello and HelloAck. draft-pinkerton-iwarp-sdp-01 section
    /// 6.1.5 can mean 1 or 0.
    pub(crate) first_mseq: u32,
}

impl Default for SdpFacts {
    fn default() -> Self {
        SdpFacts { start: SdpStart::default(), order: FieldOrder::default(), first_mseq: 1 }
    }
}

/// What the port mapper of a target maps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MapperFacts {
    /// Address of a service that the port mapper maps.
    pub(crate) mapped: SocketAddr,
    /// Address of a service that the port mapper does not map.
    pub(crate) unmapped: SocketAddr,
    /// Address of a service that the port mapper maps to a new port for each PMReq, if there is
    /// one.
    pub(crate) made: Option<SocketAddr>,
    /// Address of the port mapper over IPv6, and address of an IPv6 service that it maps.
    pub(crate) v6: Option<(SocketAddr, SocketAddr)>,
}

impl MapperFacts {
    /// Returns the services of the builtin port mapper.
    pub(crate) fn builtin() -> Self {
        let v6 = VirtualLink::mapper(true, false);
        MapperFacts {
            mapped: SocketAddr::new(VirtualLink::TARGET.ip(), MAPPED),
            unmapped: SocketAddr::new(VirtualLink::TARGET.ip(), UNMAPPED),
            made: Some(SocketAddr::new(VirtualLink::TARGET.ip(), MADE)),
            v6: Some((v6, SocketAddr::new(v6.ip(), MAPPED))),
        }
    }
}

impl Description {
    /// Returns the description of weft's own responder with the echo service.
    pub(crate) fn builtin() -> Self {
        Description {
            name: "builtin".into(),
            role: Role::Responder,
            service: Service::Echo,
            capabilities: vec![
                Capability::AsksForMarkers,
                Capability::Atomics,
                Capability::Crc,
                Capability::Markers,
                Capability::Revision1,
                Capability::Revision2,
            ],
            request: StartupFields::REQUEST,
            rping_size: RpingServer::SIZE,
            sdp: SdpFacts::default(),
            commands: None,
            mapper: MapperFacts::builtin(),
            baseline: Vec::new(),
            identity: BTreeMap::new(),
        }
    }

    /// Removes capabilities.
    pub(crate) fn remove_capabilities(&mut self, missing: &[Capability]) {
        self.capabilities.retain(|capability| !missing.contains(capability));
    }
}
