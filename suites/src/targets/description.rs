//! What a target is: its name, its role, its service, and what it can do. How it is reached is its
//! [`Reach`](super::kind::Reach).

use std::net::SocketAddr;

use weft_core::wire::sdp::FieldOrder;
use weft_peer::driver::VirtualLink;
use weft_peer::service::RpingServer;

use super::Service;
use crate::baseline::BaselineEntry;
use crate::correct::StartupFields;
use crate::model::{Capability, Role};
use crate::targets::SdpStart;

/// The ports of a service that the builtin port mapper maps, and of one that it does not.
pub(crate) const MAPPED: u16 = 5001;
const UNMAPPED: u16 = 5999;
/// A service that the builtin port mapper maps to a new port for each Request.
pub(crate) const MADE: u16 = 5002;

/// The description of a target, independent of how it is reached.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) service: Service,
    pub(crate) capabilities: Vec<Capability>,
    /// The start-up frame that it accepts.
    pub(crate) request: StartupFields,
    /// Octets of the data buffer of `rping -s`.
    pub(crate) rping_size: u32,
    pub(crate) sdp: SdpFacts,
    pub(crate) mapper: MapperFacts,
    /// Outcomes that are known and expected.
    pub(crate) baseline: Vec<BaselineEntry>,
}

/// How a target speaks SDP.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SdpFacts {
    /// How connections are started.
    pub(crate) start: SdpStart,
    /// Field order of messages.
    pub(crate) order: FieldOrder,
}

/// What the port mapper of a target maps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MapperFacts {
    /// A service that it maps.
    pub(crate) mapped: SocketAddr,
    /// A service that it does not map.
    pub(crate) unmapped: SocketAddr,
    /// A service that it maps to a new port for each Request, if it has one.
    pub(crate) made: Option<SocketAddr>,
    /// The port mapper over IPv6, and a service of that family.
    pub(crate) v6: Option<(SocketAddr, SocketAddr)>,
}

impl MapperFacts {
    /// Those of the builtin port mapper.
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
    /// weft's own responder with the echo service.
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
            mapper: MapperFacts::builtin(),
            baseline: Vec::new(),
        }
    }

    /// Removes capabilities.
    pub(crate) fn remove_capabilities(&mut self, missing: &[Capability]) {
        self.capabilities.retain(|capability| !missing.contains(capability));
    }
}
