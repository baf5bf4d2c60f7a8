//! Shared code of the kinds of builtin targets: settings, checks of the target file, and an SDP
//! socket with a port mapper.

use std::net::SocketAddr;

use weft_core::wire::portmap::PmTime;
use weft_peer::driver::VirtualLink;
use weft_peer::hostile::Deviation;
use weft_peer::mpa::{EnhancedUse, Model};
use weft_peer::portmap::{Mapping, ServerSettings, Table, Target as PmTarget};
use weft_peer::sdp::Role as SdpRole;
use weft_peer::service::{RpingServer, SdpServer, SdpUser};
use weft_peer::{Deviations, Settings};

use super::super::description::{MADE, MAPPED, MapperFacts};
use super::super::open_error::OpenError;
use super::super::{Service, Target, TargetFile};
use super::remote::wrong_command;
use super::{KindSettings, TargetAccess};
use crate::model::Role;

/// weft's own endpoint as a target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Builtin {
    pub(crate) deviations: Deviations,
    /// Whether the endpoint requests no CRCs, and does not implement RFC 6581.
    pub(crate) plain: bool,
}

impl Builtin {
    /// Returns the settings of the endpoint, without the settings that a single case requests.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings { deviations: self.deviations.clone(), ..Settings::default() };
        if self.plain {
            (settings.mpa.crc, settings.mpa.enhanced) = (false, EnhancedUse::Off);
        }
        settings
    }

    /// Returns the same endpoint with one more deviation.
    pub(crate) fn with_deviation(&self, deviation: &'static Deviation) -> Self {
        let mut builtin = self.clone();
        builtin.deviations.insert(deviation);
        builtin
    }

    /// Returns the settings for one case.
    pub(super) fn for_case(settings: &Settings, target: &Target) -> Settings {
        let mut settings = settings.clone();
        let options = &target.options;
        settings.mpa.markers |= options.requests_markers;
        if target.service() == Service::Agent {
            if options.requests_enhanced {
                settings.mpa.enhanced = EnhancedUse::Request;
            }
            return settings;
        }
        if target.role() == Role::Initiator && options.requests_enhanced {
            settings.mpa.enhanced = EnhancedUse::Request;
            settings.mpa.enhanced_settings.model = Model::PeerToPeer;
        }
        settings
    }
}

/// Reads the target file of a builtin target.
pub(super) fn read(file: &TargetFile, access: impl TargetAccess + 'static) -> Result<KindSettings, String> {
    if file.address.is_some() {
        return Err(
            "a responder of kind = \"tcp\" needs address = \"host:port\"; for other targets, remove this field".into(),
        );
    }
    if file.listen.is_some() {
        return Err(
            "an initiator of kind = \"tcp\" needs listen = \"address:port\"; for other targets, remove this field"
                .into(),
        );
    }
    if !file.start.is_empty() {
        return Err("start: expected a command; only an initiator of kind = \"tcp\" has this field".into());
    }
    for (field, command) in [("restart", &file.restart), ("crashed", &file.crashed)] {
        if !command.is_empty() {
            return Err(wrong_command(field));
        }
    }
    if file.capture.is_some() {
        return Err(
            "capture: expected an interface; only kind = \"tcp\" has this field, because builtin targets have no wire"
                .into(),
        );
    }
    if file.wire.is_some() {
        return Err("wire: a builtin target has no wire; only kind = \"tcp\" has this table".into());
    }
    if file.agent.is_some() {
        return Err("agent: a builtin target has its own agent; only kind = \"tcp\" has this field".into());
    }
    Ok(KindSettings {
        access: std::sync::Arc::new(access),
        service: Service::Echo,
        rping_size: RpingServer::SIZE,
        mapper: MapperFacts::builtin(),
    })
}

/// Creates an SDP socket, with a port mapper that maps services to it.
pub(crate) fn sdp_link(user: SdpUser, role: SdpRole, settings: &Settings) -> Result<VirtualLink, OpenError> {
    let deviations = settings.deviations.clone();
    let link = VirtualLink::sdp(SdpServer::new(user, role, deviations.clone())).map_err(OpenError::Sdp)?;
    let mut table = Table::default();
    let target = VirtualLink::TARGET;
    let v6 = VirtualLink::mapper(true, false).ip();
    let mappings = [
        (SocketAddr::new(target.ip(), MAPPED), PmTarget::Fixed(vec![target]), PmTime(8)),
        (SocketAddr::new(target.ip(), MADE), PmTarget::PortRange { at: target, ports: 20_000..=20_009 }, PmTime::ONCE),
        (SocketAddr::new(v6, MAPPED), PmTarget::Fixed(vec![SocketAddr::new(v6, target.port())]), PmTime(8)),
    ];
    for (service, target, pm_time) in mappings {
        table.insert(Mapping { service, target, pm_time }).map_err(OpenError::Table)?;
    }
    Ok(link.with_mapper(ServerSettings { deviations, ..ServerSettings::default() }, table))
}
